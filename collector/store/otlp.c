// SPDX-License-Identifier: Apache-2.0
// How far --otlp has sent a database: the writer's side. schema/017_otlp.sql has the tables.
#include "store/otlp.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "internal.h"

enum { MINUTE_S = 60, SECOND_NS = 1000000000 };

_Static_assert(OTLP_SIGNALS == sizeof((struct store *)0)->otlp.signals, "room for each");

static bool run(struct store *s, const char *sql, const char *what) {
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK || store_fail(s, what);
}

// -- following ------------------------------------------------------------------------------------

// Metrics are of minutes, where statistics are as fine as that.
static uint32_t resolution_of(uint32_t bucket_s) {
    uint32_t coarser = store_coarser(bucket_s);
    return bucket_s < MINUTE_S && coarser == MINUTE_S ? coarser : bucket_s;
}

bool store_otlp_followed(struct store *s) {
    return store_integer(s, "SELECT id FROM otlp_state", 0) == 1;
}

// Within a transaction. What is there already was sent, or is not to be: an id is never given
// twice, and the bucket before this one is over.
static bool begin(struct store *s) {
    char sql[1200];
    int64_t before =
        time_sub(floor_to(clock_wall() / SECOND_NS, s->otlp.resolution_s), s->otlp.resolution_s);
    snprintf(sql, sizeof sql,
             "INSERT OR IGNORE INTO otlp_state (id, database_id, resolution_s, refused_spans, "
             "refused_points, lost_requests, lost_buckets, late_requests) "
             "VALUES (1, random(), %u, 0, 0, 0, 0, 0);"
             "UPDATE otlp_state SET resolution_s = %u, request_id = CASE WHEN %d THEN "
             "coalesce(request_id, (SELECT seq FROM sqlite_sequence WHERE name = 'kept_requests'), "
             "0) END;"
             "UPDATE otlp_state SET bucket_start = CASE WHEN %d THEN coalesce(bucket_start, %lld) "
             "END, node_id = CASE WHEN %d THEN coalesce(node_id, %lld) END, "
             "identity_id = CASE WHEN %d THEN coalesce(identity_id, %lld) END",
             s->otlp.resolution_s, s->otlp.resolution_s, s->otlp.signals[OTLP_TRACES],
             s->otlp.signals[OTLP_METRICS], (long long)before, s->otlp.signals[OTLP_METRICS],
             (long long)INT64_MAX, s->otlp.signals[OTLP_METRICS], (long long)INT64_MAX);
    return run(s, sql, "follow");
}

bool store_otlp_follow(struct store *s, const bool signals[OTLP_SIGNALS], uint32_t bucket_s) {
    s->otlp.follow = true;
    s->otlp.resolution_s = resolution_of(bucket_s);
    for (int i = 0; i < OTLP_SIGNALS; i++) {
        s->otlp.signals[i] = signals[i];
    }
    return store_begin(s, "begin") && store_end(s, begin(s), "commit");
}

bool store_otlp_unfollow(struct store *s) {
    s->otlp.follow = false;
    return !store_otlp_followed(s) ||
           (store_begin(s, "begin") && store_end(s,
                                                 run(s,
                                                     "DELETE FROM otlp_state; "
                                                     "DELETE FROM otlp_refusals",
                                                     "end the sending"),
                                                 "commit"));
}

// -- what comes too late --------------------------------------------------------------------------

static uint64_t late_of(const struct stats *set, int64_t sent, uint32_t resolution_s) {
    uint64_t late = 0;
    for (uint32_t i = 0; i < stats_rows(set); i++) {
        const struct stat_row *row = stats_row_at(set, i);
        if (row->key.tier == TIER_TOTAL && row->key.identity != IDENTITY_TOTAL &&
            floor_to(row->key.bucket_start, resolution_s) <= sent) {
            late += row->requests;
        }
    }
    return late;
}

bool store_otlp_late(struct store *s, const struct stats *const *sets, uint32_t count) {
    char sql[128];
    if (s->otlp.follow && !store_otlp_followed(s) && !begin(s)) { // another file stands here
        return false;
    }
    int64_t sent = store_integer(s, "SELECT bucket_start FROM otlp_state", INT64_MIN);
    int64_t resolution = store_integer(s, "SELECT resolution_s FROM otlp_state", 0);
    uint64_t late = 0;
    for (uint32_t i = 0; sent != INT64_MIN && resolution > 0 && i < count; i++) {
        late += late_of(sets[i], sent, (uint32_t)resolution);
    }
    snprintf(sql, sizeof sql, "UPDATE otlp_state SET late_requests = late_requests + %llu",
             (unsigned long long)late);
    return late == 0 || run(s, sql, "count what is late");
}

struct otlp_unsent store_otlp_unsent(struct store *s) {
    // NULL > is no truth: nothing is counted of what is not followed
    return (struct otlp_unsent){
        store_integer(s,
                      "SELECT count(*) FROM kept_requests WHERE id > (SELECT request_id FROM "
                      "otlp_state)",
                      0),
        store_integer(s,
                      "SELECT count(*) FROM ledger_rows WHERE resolution_s = (SELECT resolution_s "
                      "FROM otlp_state) AND bucket_start > (SELECT bucket_start FROM otlp_state)",
                      0)};
}

void store_otlp_lost(struct store *s, struct otlp_unsent before) {
    char sql[200];
    struct otlp_unsent now = store_otlp_unsent(s);
    int64_t requests = before.requests - now.requests, buckets = before.buckets - now.buckets;
    if (requests <= 0 && buckets <= 0) {
        return;
    }
    snprintf(sql, sizeof sql,
             "UPDATE otlp_state SET lost_requests = lost_requests + %lld, lost_buckets = "
             "lost_buckets + %lld",
             (long long)(requests > 0 ? requests : 0), (long long)(buckets > 0 ? buckets : 0));
    run(s, sql, "count what is lost to OTLP");
    log_error("otlp: %lld requests and %lld buckets were deleted for their age before the "
              "receiver had them",
              (long long)requests, (long long)buckets);
}

// -- what was sent --------------------------------------------------------------------------------

static bool put_forward(struct store *s, const struct otlp_report *r) {
    char sql[320];
    if (r->signal == OTLP_TRACES) {
        snprintf(sql, sizeof sql,
                 "UPDATE otlp_state SET request_id = %lld, refused_spans = refused_spans + %llu "
                 "WHERE request_id IS NOT NULL",
                 (long long)r->place.request_id, (unsigned long long)r->refused);
    } else {
        snprintf(sql, sizeof sql,
                 "UPDATE otlp_state SET bucket_start = %lld, node_id = %lld, identity_id = %lld, "
                 "refused_points = refused_points + %llu WHERE bucket_start IS NOT NULL",
                 (long long)r->place.bucket_start, (long long)r->place.node_id,
                 (long long)r->place.identity_id, (unsigned long long)r->refused);
    }
    return run(s, sql, "note what was sent");
}

static bool keep_refusals(struct store *s, const struct otlp_report *r) {
    sqlite3_stmt *keeping = NULL;
    char sql[160];
    if (r->refusal_count == 0) {
        return true;
    }
    bool ok = sqlite3_prepare_v2(s->db,
                                 "INSERT INTO otlp_refusals (at_s, signal, first, last, items, "
                                 "reason) VALUES (?,?,?,?,?,?)",
                                 -1, &keeping, NULL) == SQLITE_OK ||
              store_fail(s, "keep refusals");
    for (uint32_t i = 0; ok && i < r->refusal_count; i++) {
        const struct otlp_refusal *one = &r->refusals[i];
        sqlite3_bind_int64(keeping, 1, clock_wall() / SECOND_NS);
        sqlite3_bind_text(keeping, 2, r->signal == OTLP_TRACES ? "traces" : "metrics", -1,
                          SQLITE_STATIC);
        sqlite3_bind_int64(keeping, 3, one->first);
        sqlite3_bind_int64(keeping, 4, one->last);
        store_bind_count(keeping, 5, one->items);
        sqlite3_bind_text(keeping, 6, one->reason, -1, SQLITE_STATIC);
        ok = store_run(s, keeping, "keep refusals");
    }
    sqlite3_finalize(keeping);
    snprintf(sql, sizeof sql,
             "DELETE FROM otlp_refusals WHERE id <= (SELECT max(id) FROM otlp_refusals) - %d",
             LIMIT_EXPORT_REFUSALS);
    return ok && run(s, sql, "keep refusals");
}

bool store_otlp_sent(struct store *s, const struct otlp_report *report) {
    if (store_integer(s, "SELECT database_id FROM otlp_state", ~report->database_id) !=
        report->database_id) {
        return true;
    }
    return store_begin(s, "begin") &&
           store_end(s, put_forward(s, report) && keep_refusals(s, report), "commit");
}
