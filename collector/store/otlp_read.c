// SPDX-License-Identifier: Apache-2.0
// What --otlp has not sent yet of a database, read.
#include <stdio.h>

#include "internal.h"
#include "store/otlp.h"

enum {
    // After a bucket's end its last requests are still written.
    SETTLE_S = 5,
    // Statistics that were sent are not sent again: those of a node that is behind by so much are
    // among them.
    LATE_S = 30,
    // What is so far ahead was made before the clock was set back, or by a node whose clock is.
    AHEAD_S = 60
};

bool otlp_state(struct store *s, struct otlp_state *out) {
    sqlite3_stmt *at = NULL;
    *out = (struct otlp_state){0};
    bool ok = sqlite3_prepare_v2(s->db,
                                 "SELECT database_id, request_id, bucket_start, node_id, "
                                 "identity_id, resolution_s, refused_spans, refused_points, "
                                 "lost_requests, lost_buckets, late_requests FROM otlp_state",
                                 -1, &at, NULL) == SQLITE_OK &&
              sqlite3_step(at) == SQLITE_ROW;
    if (ok) {
        int64_t n[11];
        for (int i = 0; i < 11; i++) {
            n[i] = sqlite3_column_int64(at, i);
        }
        *out =
            (struct otlp_state){.database_id = n[0],
                                // whoever edits the file may enter anything
                                .resolution_s = n[5] > 0 && n[5] <= UINT32_MAX ? (uint32_t)n[5] : 1,
                                .follows = {sqlite3_column_type(at, 1) != SQLITE_NULL,
                                            sqlite3_column_type(at, 2) != SQLITE_NULL},
                                .place = {n[1], n[2], n[3], n[4]},
                                .refused = {(uint64_t)n[6], (uint64_t)n[7]},
                                .lost = {(uint64_t)n[8], (uint64_t)n[9]},
                                .late = (uint64_t)n[10]};
    }
    sqlite3_finalize(at);
    return ok;
}

// -- what is due ----------------------------------------------------------------------------------

// Kept requests of buckets up to this one.
static int64_t last_request_bucket(const struct otlp_time *t) {
    return t->end ? INT64_MAX : time_sub(t->now_s, (int64_t)t->bucket_s + SETTLE_S);
}

// Statistics of buckets up to this one.
static int64_t last_point_bucket(const struct otlp_state *state, const struct otlp_time *t) {
    return time_sub(t->now_s, (int64_t)state->resolution_s + (t->end ? 0 : LATE_S));
}

bool otlp_waiting(struct store *s, const struct otlp_state *state, enum otlp_signal signal,
                  const struct otlp_time *time, struct otlp_waiting *out) {
    static const char *const sql[OTLP_SIGNALS] = {
        "SELECT count(*), min(bucket_start) FROM kept_requests WHERE id > ?1 AND "
        "(bucket_start <= ?2 OR bucket_start > ?3)",
        "SELECT count(*), min(bucket_start) FROM ledger_rows WHERE resolution_s = ?3 AND "
        "bucket_start > ?1 AND bucket_start <= ?2"};
    sqlite3_stmt *asking = NULL;
    bool traces = signal == OTLP_TRACES;
    *out = (struct otlp_waiting){0};
    bool ok = sqlite3_prepare_v2(s->db, sql[signal], -1, &asking, NULL) == SQLITE_OK;
    sqlite3_bind_int64(asking, 1, traces ? state->place.request_id : state->place.bucket_start);
    sqlite3_bind_int64(asking, 2,
                       traces ? last_request_bucket(time) : last_point_bucket(state, time));
    sqlite3_bind_int64(asking, 3, traces ? time_add(time->now_s, AHEAD_S) : state->resolution_s);
    ok = ok && sqlite3_step(asking) == SQLITE_ROW;
    if (ok) {
        int64_t oldest = sqlite3_column_int64(asking, 1);
        out->count = (uint64_t)sqlite3_column_int64(asking, 0);
        out->oldest_s = out->count == 0 ? 0
                        : traces        ? time_add(oldest, (int64_t)time->bucket_s + SETTLE_S)
                                        : time_add(oldest, (int64_t)state->resolution_s + LATE_S);
    } else {
        store_fail(s, "count what waits");
    }
    sqlite3_finalize(asking);
    return ok;
}

// -- reading --------------------------------------------------------------------------------------

static struct slice text_at(sqlite3_stmt *at, int column) {
    const void *bytes = sqlite3_column_blob(at, column);
    return slice_of(bytes ? bytes : "", (size_t)sqlite3_column_bytes(at, column));
}

static struct otlp_maybe maybe_at(sqlite3_stmt *at, int column) {
    return (struct otlp_maybe){sqlite3_column_type(at, column) != SQLITE_NULL,
                               sqlite3_column_int64(at, column)};
}

static bool begin(struct store *s) {
    return sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK ||
           store_fail(s, "read what is to be sent");
}

static enum otlp_read end(struct store *s, bool taken, int rc) {
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        store_fail(s, "read what is to be sent");
    }
    if (!sqlite3_get_autocommit(s->db)) {
        sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
    }
    return rc != SQLITE_ROW && rc != SQLITE_DONE ? OTLP_FAILED : taken ? OTLP_ALL : OTLP_MORE;
}

// Whoever edits the file may enter anything: what is none is nothing.
static struct trace_parent parent_at(sqlite3_stmt *at, int column) {
    struct trace_parent parent;
    trace_parent_parse(text_at(at, column), text_at(at, column + 1),
                       (uint8_t)sqlite3_column_int64(at, column + 2), &parent);
    return parent;
}

static struct otlp_request request_at(sqlite3_stmt *at) {
    static const char *const reasons[] = {"over", "failed", "slowest"};
    int64_t reason = sqlite3_column_int64(at, 4);
    return (struct otlp_request){.id = sqlite3_column_int64(at, 0),
                                 .node = text_at(at, 2),
                                 .identity = text_at(at, 3),
                                 .reason = reasons[reason == 0 || reason == 1 ? reason : 2],
                                 .begin_ns = sqlite3_column_int64(at, 5),
                                 .duration_ns = sqlite3_column_int64(at, 6),
                                 .error = sqlite3_column_int64(at, 7) != 0,
                                 .cut = sqlite3_column_int64(at, 8) != 0,
                                 .spans = sqlite3_column_int64(at, 9),
                                 .kept_spans = sqlite3_column_int64(at, 10),
                                 .origin = text_at(at, 11),
                                 .label = maybe_at(at, 12),
                                 .uncovered_ns = maybe_at(at, 13),
                                 .parallel_ns = maybe_at(at, 14),
                                 .parent = parent_at(at, 15)};
}

static struct otlp_span span_at(sqlite3_stmt *at) {
    int64_t outcome = sqlite3_column_int64(at, 11);
    return (struct otlp_span){.span = sqlite3_column_int64(at, 0),
                              .parent = maybe_at(at, 1),
                              .pid = text_at(at, 2),
                              .name = text_at(at, 3),
                              .start_ns = sqlite3_column_int64(at, 4),
                              .duration_ns = sqlite3_column_int64(at, 5),
                              .self_ns = sqlite3_column_int64(at, 6),
                              .wait_ns = sqlite3_column_int64(at, 7),
                              .waiting_ns = maybe_at(at, 8),
                              .run_queue_ns = maybe_at(at, 9),
                              .async = sqlite3_column_int64(at, 10) != 0,
                              .outcome = outcome < 0 || outcome > 3 ? 3 : (int)outcome,
                              .measured = sqlite3_column_int64(at, 12) != 0};
}

// The spans of a request, and its end. *rc: SQLite's last word on them.
static bool take_request(sqlite3_stmt *spans, const struct otlp_request *r,
                         const struct otlp_taker *taker, int *rc) {
    if (!taker->begin(taker->to, r)) {
        return false;
    }
    sqlite3_bind_int64(spans, 1, r->id);
    while ((*rc = sqlite3_step(spans)) == SQLITE_ROW) {
        struct otlp_span span = span_at(spans);
        taker->span(taker->to, &span);
    }
    sqlite3_reset(spans);
    return *rc == SQLITE_DONE && taker->end(taker->to);
}

enum otlp_read otlp_requests(struct store *s, const struct otlp_state *state,
                             const struct otlp_time *time, const struct otlp_taker *taker) {
    sqlite3_stmt *requests = NULL, *spans = NULL;
    char of_spans[512];
    // the file may have more than the collector writes
    snprintf(of_spans, sizeof of_spans,
             "SELECT s.span, s.parent, s.pid, t.name, s.start_ns, s.duration_ns, s.self_ns, "
             "s.wait_ns, s.waiting_ns, s.run_queue_ns, s.async, s.outcome, s.measured "
             "FROM kept_spans AS s LEFT JOIN tier_names AS t ON t.id = s.tier_id "
             "WHERE s.request_id = ?1 ORDER BY s.span LIMIT %u",
             LIMIT_KEPT_SPANS);
    if (!begin(s)) {
        return OTLP_FAILED;
    }
    int rc = sqlite3_prepare_v2(s->db,
                                "SELECT r.id, r.bucket_start, n.name, i.name, r.reason, "
                                "r.begin_ns, r.duration_ns, r.error, r.cut, r.spans, "
                                "r.kept_spans, m.name, r.label, r.uncovered_ns, r.parallel_ns, "
                                "o.trace_id, o.parent_span_id, o.trace_flags "
                                "FROM kept_requests AS r "
                                "LEFT JOIN kept_requests AS o ON o.id = "
                                "CASE WHEN r.maker_id IS NULL THEN r.id ELSE "
                                "(SELECT id FROM kept_requests AS own WHERE "
                                "own.label = r.label AND own.node_id = r.maker_id AND "
                                "own.trace_id IS NOT NULL LIMIT 1) END "
                                "LEFT JOIN node_names AS n ON n.id = r.node_id "
                                "LEFT JOIN identity_names AS i ON i.id = r.identity_id "
                                "LEFT JOIN node_names AS m ON m.id = r.maker_id "
                                "WHERE r.id > ?1 ORDER BY r.id",
                                -1, &requests, NULL);
    rc = rc == SQLITE_OK ? sqlite3_prepare_v2(s->db, of_spans, -1, &spans, NULL) : rc;
    sqlite3_bind_int64(requests, 1, state->place.request_id);
    bool taken = true, due = true;
    int of_span = SQLITE_DONE;
    if (rc == SQLITE_OK) {
        while (taken && due && (rc = sqlite3_step(requests)) == SQLITE_ROW) {
            int64_t bucket = sqlite3_column_int64(requests, 1);
            due = bucket <= last_request_bucket(time) || bucket > time_add(time->now_s, AHEAD_S);
            struct otlp_request r = request_at(requests);
            taken = !due || take_request(spans, &r, taker, &of_span);
        }
    }
    rc = of_span == SQLITE_DONE ? rc : of_span;
    enum otlp_read read = end(s, taken, rc);
    sqlite3_finalize(requests);
    sqlite3_finalize(spans);
    return read;
}

// The last bucket that there is anything of, up to one; what is behind that is not known yet.
static int64_t last_bucket(struct store *s, uint32_t resolution_s, int64_t until) {
    char sql[200];
    snprintf(sql, sizeof sql,
             "SELECT max(bucket_start) FROM ledger_rows WHERE resolution_s = %u AND bucket_start "
             "<= %lld",
             resolution_s, (long long)until);
    return store_integer(s, sql, INT64_MIN);
}

static struct otlp_point point_at(sqlite3_stmt *at) {
    return (struct otlp_point){.bucket_start = sqlite3_column_int64(at, 0),
                               .node_id = sqlite3_column_int64(at, 1),
                               .identity_id = sqlite3_column_int64(at, 2),
                               .node = text_at(at, 3),
                               .identity = text_at(at, 4),
                               .calls = sqlite3_column_int64(at, 5),
                               .errors = sqlite3_column_int64(at, 6),
                               .duration_ns = sqlite3_column_int64(at, 7),
                               .min_ns = maybe_at(at, 8),
                               .max_ns = maybe_at(at, 9),
                               .histogram = text_at(at, 10)};
}

enum otlp_read otlp_points(struct store *s, const struct otlp_state *state,
                           const struct otlp_time *time,
                           bool (*take)(void *to, const struct otlp_point *point), void *to,
                           struct otlp_place *behind) {
    sqlite3_stmt *at = NULL;
    int64_t until = last_point_bucket(state, time);
    const int64_t bound[] = {state->resolution_s, state->place.bucket_start, state->place.node_id,
                             state->place.identity_id, until};
    if (!begin(s)) {
        return OTLP_FAILED;
    }
    int rc = sqlite3_prepare_v2(
        s->db,
        "SELECT s.bucket_start, s.node_id, s.identity_id, n.name, i.name, s.calls, s.errors, "
        "s.duration_ns, s.min_ns, s.max_ns, s.histogram "
        "FROM stat_rows AS s LEFT JOIN node_names AS n ON n.id = s.node_id "
        "LEFT JOIN identity_names AS i ON i.id = s.identity_id "
        "WHERE s.resolution_s = ?1 AND (s.bucket_start, s.node_id, s.identity_id) > (?2, ?3, ?4) "
        "AND s.bucket_start <= ?5 "
        "AND s.tier_id = (SELECT id FROM tier_names WHERE name = '_total') "
        "AND i.name IS NOT '_total' ORDER BY s.bucket_start, s.node_id, s.identity_id",
        -1, &at, NULL);
    for (int i = 0; i < (int)(sizeof bound / sizeof *bound); i++) {
        sqlite3_bind_int64(at, 1 + i, bound[i]);
    }
    bool taken = true;
    *behind = state->place;
    if (rc == SQLITE_OK) {
        while (taken && (rc = sqlite3_step(at)) == SQLITE_ROW) {
            struct otlp_point point = point_at(at);
            taken = take(to, &point);
            behind->bucket_start = taken ? point.bucket_start : behind->bucket_start;
        }
    }
    int64_t last = last_bucket(s, state->resolution_s, until);
    behind->bucket_start = last > behind->bucket_start ? last : behind->bucket_start;
    behind->node_id = behind->identity_id = INT64_MAX;
    sqlite3_reset(at);
    enum otlp_read read = end(s, taken, rc);
    sqlite3_finalize(at);
    return read;
}
