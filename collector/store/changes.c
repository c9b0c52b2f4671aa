// SPDX-License-Identifier: Apache-2.0
// Marks of what changes, for an export: made in the writer's transactions, taken away by its
// reports. schema/016_export.sql has the tables.
#include "store/changes.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "internal.h"

enum {
    // After a bucket's end its last requests are still written.
    SETTLE_S = 5,
    // What goes on changing, as an hour's bucket, is sent this often.
    OFTEN_S = 60,
    SECOND_NS = 1000000000,
    // A bucket's start, a node and a resolution in the key of a map.
    NODE_SHIFT = 12,
    BUCKET_SHIFT = 28
};

// Starts of buckets below this fit into such a key: some two thousand years.
static const int64_t BUCKET_MOST = 1LL << (64 - BUCKET_SHIFT);

// -- following ------------------------------------------------------------------------------------

bool store_followed(struct store *s) {
    return store_integer(s, "SELECT id FROM export_state", 0) == 1;
}

// Everything that is there is marked. Each bucket and node with any statistics has a row in the
// ledger, as that counts their requests.
static bool begin_following(struct store *s) {
    char sql[640];
    int64_t now = clock_wall();
    snprintf(sql, sizeof sql,
             "INSERT INTO export_state (id, database_id, revision, lost, refused) "
             "VALUES (1, random(), %lld, 0, 0);"
             "INSERT INTO export_marks SELECT bucket_start, resolution_s, node_id, %lld, %lld "
             "FROM ledger_rows;"
             "INSERT INTO export_marks SELECT DISTINCT bucket_start, 0, node_id, %lld, %lld "
             "FROM kept_requests",
             (long long)now / 1000000, (long long)now / 1000000, (long long)now / SECOND_NS,
             (long long)now / 1000000, (long long)now / SECOND_NS);
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK || store_fail(s, "follow");
}

// Runs within a transaction of its own.
static bool alone(struct store *s, bool (*what)(struct store *s)) {
    return store_begin(s, "begin") && store_end(s, what(s), "commit");
}

bool store_follow(struct store *s) {
    s->follow = true;
    return store_followed(s) || alone(s, begin_following);
}

static bool end_following(struct store *s) {
    return sqlite3_exec(s->db,
                        "DELETE FROM export_state; DELETE FROM export_marks; "
                        "DELETE FROM export_refusals",
                        NULL, NULL, NULL) == SQLITE_OK ||
           store_fail(s, "end the export");
}

bool store_unfollow(struct store *s) {
    s->follow = false;
    return !store_followed(s) || alone(s, end_following);
}

// -- marks ----------------------------------------------------------------------------------------

struct marking {
    struct store *store;
    const struct resolutions *resolutions;
    int64_t revision;
    int64_t now_s;
};

// When a change of a bucket is to be sent: when it is over, and where that is long from now, at the
// next of the times at which all goes that goes on changing, in one batch. What begins right before
// such a time goes then, too: so an engine has in the shorter buckets all that it has in a long
// one.
static int64_t due_s(const struct marking *m, uint32_t resolution_s, int64_t bucket) {
    int64_t over = time_add(bucket, (int64_t)resolution_s + SETTLE_S);
    int64_t often = floor_to(time_sub(m->now_s, SETTLE_S), OFTEN_S) + OFTEN_S + SETTLE_S;
    int64_t due = over < often ? over : often;
    return over > m->now_s ? due : m->now_s + SETTLE_S;
}

static bool mark_one(const struct marking *m, uint32_t resolution_s, int64_t bucket, uint16_t node,
                     int64_t due) {
    struct store *s = m->store;
    sqlite3_stmt *marking = store_prepared(s, STATEMENT_MARK);
    int64_t id = store_node_id(s, node);
    if (!marking || !id) {
        return false;
    }
    sqlite3_bind_int64(marking, 1, bucket);
    sqlite3_bind_int64(marking, 2, resolution_s);
    sqlite3_bind_int64(marking, 3, id);
    sqlite3_bind_int64(marking, 4, m->revision);
    sqlite3_bind_int64(marking, 5, due);
    return store_run(s, marking, "mark a change");
}

// Marks it once in a transaction.
static bool mark_at(const struct marking *m, uint32_t resolution_s, int64_t bucket, uint16_t node,
                    int64_t due) {
    struct map *marked = &m->store->marked;
    if (bucket >= 0 && bucket < BUCKET_MOST && resolution_s < 1u << NODE_SHIFT) {
        uint64_t key =
            (uint64_t)bucket << BUCKET_SHIFT | (uint64_t)node << NODE_SHIFT | resolution_s;
        if (map_get(marked, key) != MAP_NONE) {
            return true;
        }
        if (!map_set(marked, key, 0)) {
            snprintf(m->store->error, sizeof m->store->error, "mark a change: no memory");
            return false;
        }
    }
    return mark_one(m, resolution_s, bucket, node, due);
}

static bool mark(const struct marking *m, int64_t bucket, uint16_t node) {
    for (int i = 0; i < m->resolutions->count; i++) {
        uint32_t r = m->resolutions->all[i];
        int64_t start = floor_to(bucket, r);
        if (!mark_at(m, r, start, node, due_s(m, r, start))) {
            return false;
        }
    }
    return true;
}

// Of the requests that are kept whole: the finest bucket, as that is theirs.
static bool mark_kept(const struct marking *m, int64_t bucket, uint16_t node) {
    return mark_at(m, 0, bucket, node, due_s(m, m->resolutions->all[0], bucket));
}

static bool mark_set(const struct marking *m, const struct stats *set) {
    bool ok = true;
    for (uint32_t i = 0; ok && i < stats_rows(set); i++) {
        const struct stat_row *row = stats_row_at(set, i);
        ok = mark(m, row->key.bucket_start, row->key.node);
    }
    for (uint32_t i = 0; ok && i < stats_ledgers(set); i++) {
        ok = mark(m, stats_ledger_at(set, i)->bucket_start, stats_ledger_at(set, i)->node);
    }
    for (uint32_t i = 0; ok && i < stats_paths(set); i++) {
        ok = mark(m, stats_path_at(set, i)->bucket_start, stats_path_at(set, i)->node);
    }
    for (uint32_t i = 0; ok && i < stats_costs(set); i++) {
        ok = mark(m, stats_cost_at(set, i)->bucket_start, stats_cost_at(set, i)->node);
    }
    for (uint32_t i = 0; ok && i < stats_kept(set); i++) {
        const struct kept_request *r = stats_kept_at(set, i);
        // where its row is passed over the ledger says so
        ok = mark_kept(m, r->bucket_start, r->node) && mark(m, r->bucket_start, r->node);
    }
    return ok;
}

// A new revision; 0: the file is not followed, -1: that failed.
static int64_t revise(struct store *s, int64_t now_ms) {
    sqlite3_stmt *revising = store_prepared(s, STATEMENT_REVISE);
    if (!revising) {
        return -1;
    }
    sqlite3_bind_int64(revising, 1, now_ms);
    int rc = sqlite3_step(revising);
    int64_t revision = rc == SQLITE_ROW ? sqlite3_column_int64(revising, 0) : 0;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        store_fail(s, "give a revision");
        revision = -1;
    }
    sqlite3_reset(revising);
    return revision;
}

bool store_mark(struct store *s, const struct resolutions *resolutions,
                const struct stats *const *sets, uint32_t count) {
    int64_t now = clock_wall();
    if (s->follow && !store_followed(s) && !begin_following(s)) { // another file stands here
        return false;
    }
    struct marking m = {s, resolutions, revise(s, now / 1000000), now / SECOND_NS};
    if (m.revision <= 0) {
        return m.revision == 0;
    }
    if (s->marked.slots) {
        map_clear(&s->marked);
    } else if (!map_init(&s->marked)) {
        snprintf(s->error, sizeof s->error, "mark a change: no memory");
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!mark_set(&m, sets[i])) {
            return false;
        }
    }
    return true;
}

void store_expire_marks(struct store *s, int64_t now_s, int64_t (*keep_s)(uint32_t resolution_s),
                        int64_t kept_s) {
    enum { MINUTE_S = 60, HOUR_S = 3600 };
    char sql[512];
    if (!store_followed(s)) {
        return;
    }
    int64_t fine = floor_to(now_s - keep_s(1), HOUR_S);
    // the marks of what is kept for the shortest time are the only ones that are looked at, as a
    // rule
    snprintf(sql, sizeof sql,
             "DELETE FROM export_marks WHERE bucket_start < %lld AND bucket_start < CASE "
             "WHEN resolution_s = 0 THEN %lld WHEN resolution_s < %d THEN %lld "
             "WHEN resolution_s < %d THEN %lld ELSE %lld END",
             (long long)fine, (long long)(now_s - kept_s), MINUTE_S, (long long)fine, HOUR_S,
             (long long)floor_to(now_s - keep_s(MINUTE_S), HOUR_S),
             (long long)floor_to(now_s - keep_s(HOUR_S), HOUR_S));
    int64_t lost = sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK
                       ? sqlite3_changes(s->db)
                       : (store_fail(s, "delete old marks"), 0);
    if (lost > 0) {
        snprintf(sql, sizeof sql, "UPDATE export_state SET lost = lost + %lld", (long long)lost);
        if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK) {
            store_fail(s, "count what is lost to the export");
        }
        log_error("export: %lld buckets were deleted for their age before the engine had them",
                  (long long)lost);
    }
}

// -- what was sent --------------------------------------------------------------------------------

static bool take_marks(struct store *s, const struct change_report *report) {
    sqlite3_stmt *taking = NULL;
    bool ok = sqlite3_prepare_v2(s->db,
                                 "DELETE FROM export_marks WHERE bucket_start = ?1 AND "
                                 "resolution_s = ?2 AND node_id = ?3 AND revision = ?4",
                                 -1, &taking, NULL) == SQLITE_OK ||
              store_fail(s, "take marks away");
    for (uint32_t i = 0; ok && i < report->sent_count; i++) {
        const struct change *c = &report->sent[i];
        sqlite3_bind_int64(taking, 1, c->bucket_start);
        sqlite3_bind_int64(taking, 2, c->resolution_s);
        sqlite3_bind_int64(taking, 3, c->node_id);
        sqlite3_bind_int64(taking, 4, c->revision);
        ok = store_run(s, taking, "take marks away");
    }
    sqlite3_finalize(taking);
    return ok;
}

static bool keep_refusals(struct store *s, const struct change_report *report) {
    sqlite3_stmt *keeping = NULL;
    char sql[160];
    bool ok =
        sqlite3_prepare_v2(s->db,
                           "INSERT INTO export_refusals (at_s, table_name, bucket_start, "
                           "resolution_s, node_id, key_1, key_2, reason) VALUES (?,?,?,?,?,?,?,?)",
                           -1, &keeping, NULL) == SQLITE_OK ||
        store_fail(s, "keep refusals");
    for (uint32_t i = 0; ok && i < report->refusal_count; i++) {
        const struct change_refusal *r = &report->refusals[i];
        sqlite3_bind_int64(keeping, 1, clock_wall() / SECOND_NS);
        sqlite3_bind_text(keeping, 2, r->table, -1, SQLITE_STATIC);
        sqlite3_bind_int64(keeping, 3, r->of.bucket_start);
        sqlite3_bind_int64(keeping, 4, r->of.resolution_s);
        sqlite3_bind_int64(keeping, 5, r->of.node_id);
        sqlite3_bind_int64(keeping, 6, r->key[0]);
        sqlite3_bind_int64(keeping, 7, r->key[1]);
        sqlite3_bind_text(keeping, 8, r->reason, -1, SQLITE_STATIC);
        ok = store_run(s, keeping, "keep refusals");
    }
    sqlite3_finalize(keeping);
    snprintf(sql, sizeof sql,
             "DELETE FROM export_refusals WHERE id <= (SELECT max(id) FROM export_refusals) - %d",
             LIMIT_EXPORT_REFUSALS);
    return ok &&
           (report->refusal_count == 0 || sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ||
            store_fail(s, "keep refusals"));
}

static bool count_sent(struct store *s, const struct change_report *report) {
    char sql[160];
    if (report->gone == 0 && report->refused == 0) {
        return true;
    }
    snprintf(sql, sizeof sql, "UPDATE export_state SET lost = lost + %u, refused = refused + %llu",
             report->gone, (unsigned long long)report->refused);
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ||
           store_fail(s, "count what was sent");
}

bool store_sent(struct store *s, const struct change_report *report) {
    // reading a report of another file would take away what that file has still to send
    if (store_integer(s, "SELECT database_id FROM export_state", ~report->database_id) !=
        report->database_id) {
        return true;
    }
    return store_begin(s, "begin") &&
           store_end(s, take_marks(s, report) && keep_refusals(s, report) && count_sent(s, report),
                     "commit");
}
