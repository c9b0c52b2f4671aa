// SPDX-License-Identifier: Apache-2.0
#include "store/retention.h"

#include <stdio.h>

#include "internal.h"
#include "store/changes.h"
#include "store/notes.h"

static const char *const tables[] = {"stat_rows", "ledger_rows", "path_rows", "cost_rows"};

static int64_t keep_s(uint32_t resolution_s) {
    return resolution_s < 60     ? RETENTION_FINE_S
           : resolution_s < 3600 ? RETENTION_MINUTES_S
                                 : RETENTION_HOURS_S;
}

// Deletes the oldest rows of a table at a resolution: the buckets before the cut, up to the one
// that holds row number RETENTION_STEP_ROWS. Returns the rows deleted, -1 on failure.
static int delete_oldest(struct store *s, const char *table, uint32_t resolution_s, int64_t cut) {
    char sql[512];
    snprintf(sql, sizeof sql,
             "DELETE FROM %s WHERE resolution_s = %u AND bucket_start < %lld AND bucket_start <= "
             "coalesce((SELECT bucket_start FROM %s WHERE resolution_s = %u ORDER BY bucket_start "
             "LIMIT 1 OFFSET %d), %lld)",
             table, resolution_s, (long long)cut, table, resolution_s, RETENTION_STEP_ROWS - 1,
             (long long)cut);
    if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        store_fail(s, "delete old rows");
        return -1;
    }
    return sqlite3_changes(s->db);
}

static bool expire_rows(struct store *s, int64_t now_s) {
    bool more = false;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        for (uint32_t r = store_next_resolution(s, tables[t], 0); r != 0;
             r = store_next_resolution(s, tables[t], r)) {
            // Whole hours go, so that where fine rows end the coarser ones are not cut in half.
            int64_t cut = floor_to(now_s - keep_s(r), r < 3600 ? 3600 : r);
            more = delete_oldest(s, tables[t], r, cut) >= RETENTION_STEP_ROWS || more;
        }
    }
    return more;
}

// -- kept requests --------------------------------------------------------------------------------

// Deletes the request that a statement stands at, whose columns are id, begin_ns and kept_spans.
// Returns how many rows these were, 0 on failure.
static int64_t delete_kept(struct store *s, sqlite3_stmt *deleting, sqlite3_stmt *at) {
    int64_t spans = sqlite3_column_int64(at, 2);
    sqlite3_bind_int64(deleting, 1, sqlite3_column_int64(at, 0));
    // whoever edits the file may enter anything
    return store_run(s, deleting, "delete old requests") ? time_add(1, spans < 0 ? 0 : spans) : 0;
}

// Deletes the requests before the cut, oldest first, while rows is less than a step. Returns the
// rows.
static int64_t delete_past(struct store *s, sqlite3_stmt *oldest, sqlite3_stmt *deleting,
                           int64_t cut_ns) {
    int64_t rows = 0, deleted = 1;
    for (; deleted > 0 && rows < RETENTION_STEP_SPANS && sqlite3_step(oldest) == SQLITE_ROW;
         sqlite3_reset(oldest)) {
        deleted = sqlite3_column_int64(oldest, 1) < cut_ns ? delete_kept(s, deleting, oldest) : 0;
        rows = time_add(rows, deleted);
    }
    return rows;
}

// How much more is kept than may be, and the node that has most of it. One whose clock is ahead has
// none that are old: who has most gives up its own oldest, so that no node's requests push out
// another's.
struct excess {
    int64_t requests;
    int64_t spans;
    int64_t node;
};

static bool excess_of(struct store *s, struct excess *e) {
    e->requests =
        store_integer(s, "SELECT count(*) FROM kept_requests", 0) - RETENTION_KEPT_REQUESTS;
    e->spans = time_sub(store_integer(s, "SELECT sum(kept_spans) FROM kept_requests", 0),
                        RETENTION_KEPT_SPANS);
    e->node = store_integer(
        s,
        e->requests > 0
            ? "SELECT node_id FROM kept_requests GROUP BY node_id ORDER BY count(*) DESC, node_id "
              "LIMIT 1"
            : "SELECT node_id FROM kept_requests GROUP BY node_id ORDER BY sum(kept_spans) DESC, "
              "node_id LIMIT 1",
        0);
    return e->requests > 0 || e->spans > 0;
}

// Deletes what is too much, from the node that has most, and looks anew who that is after some.
// Returns the rows.
static int64_t delete_excess(struct store *s, sqlite3_stmt *of_node, sqlite3_stmt *deleting,
                             int64_t rows) {
    enum { AT_ONCE = 2000 }; // requests
    struct excess e;
    while (rows < RETENTION_STEP_SPANS && excess_of(s, &e)) {
        int64_t deleted = 1;
        sqlite3_bind_int64(of_node, 1, e.node);
        for (int i = 0; i < AT_ONCE && deleted > 0 && rows < RETENTION_STEP_SPANS &&
                        (e.requests > 0 || e.spans > 0);
             i++) {
            deleted = sqlite3_step(of_node) == SQLITE_ROW ? delete_kept(s, deleting, of_node) : 0;
            sqlite3_reset(of_node);
            rows = time_add(rows, deleted);
            e.requests--;
            e.spans = time_sub(e.spans, deleted - 1);
        }
        if (deleted == 0) {
            break;
        }
    }
    return rows;
}

static bool expire_kept(struct store *s, int64_t now_s) {
    static const char *const sql[] = {
        "SELECT id, begin_ns, kept_spans FROM kept_requests ORDER BY begin_ns LIMIT 1",
        ("SELECT id, begin_ns, kept_spans FROM kept_requests WHERE node_id = ?1 "
         "ORDER BY begin_ns LIMIT 1"),
        "DELETE FROM kept_requests WHERE id = ?1"};
    enum { OLDEST, OF_NODE, DELETE, COUNT };
    sqlite3_stmt *statements[COUNT] = {NULL};
    bool ok = true, more = false;
    for (int i = 0; i < COUNT && ok; i++) {
        ok = sqlite3_prepare_v2(s->db, sql[i], -1, &statements[i], NULL) == SQLITE_OK;
    }
    if (!ok || sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK) {
        store_fail(s, "delete old requests");
    } else {
        int64_t rows = delete_past(s, statements[OLDEST], statements[DELETE],
                                   time_of_seconds(now_s - RETENTION_KEPT_S));
        more =
            delete_excess(s, statements[OF_NODE], statements[DELETE], rows) >= RETENTION_STEP_SPANS;
        sqlite3_reset(statements[OLDEST]);
        if (sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
            store_fail(s, "delete old requests");
            sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
            more = false;
        }
    }
    for (int i = 0; i < COUNT; i++) {
        sqlite3_finalize(statements[i]);
    }
    return more;
}

// -- profiles -------------------------------------------------------------------------------------

// Deletes the profile of a question with one row, its id and how many rows it has. Returns these, 0
// when there is none, or on failure.
static int64_t delete_profile(struct store *s, const char *which, int64_t cut_ns) {
    static const char what[] = "delete old profiles";
    sqlite3_stmt *at = NULL, *deleting = NULL;
    int64_t rows = 0;
    if (sqlite3_prepare_v2(s->db, which, -1, &at, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(s->db, "DELETE FROM profile_rows WHERE id = ?1", -1, &deleting, NULL) !=
            SQLITE_OK) {
        store_fail(s, what);
    } else {
        sqlite3_bind_int64(at, 1, cut_ns);
        if (sqlite3_step(at) == SQLITE_ROW) {
            int64_t has = sqlite3_column_int64(at, 1);
            sqlite3_bind_int64(deleting, 1, sqlite3_column_int64(at, 0));
            sqlite3_reset(at);
            // whoever edits the file may enter anything
            rows = store_run(s, deleting, what) ? time_add(1, has < 0 ? 0 : has) : 0;
        }
    }
    sqlite3_finalize(at);
    sqlite3_finalize(deleting);
    return rows;
}

// The profiles that share a room, and what they have in common that give up their oldest.
struct room {
    const char *which; // a condition of SQL
    const char *of;
    int64_t rows;
};

// Deletes the oldest profile of those that have most in a room that is too full. Returns its rows.
static int64_t delete_most(struct store *s, const struct room *room) {
    char sql[640];
    snprintf(sql, sizeof sql, "SELECT sum(rows) FROM profile_rows WHERE %s", room->which);
    if (store_integer(s, sql, 0) <= room->rows) {
        return 0;
    }
    snprintf(sql, sizeof sql,
             "SELECT id, rows FROM profile_rows WHERE %s AND (%s) = (SELECT %s FROM profile_rows "
             "WHERE %s GROUP BY %s ORDER BY sum(rows) DESC LIMIT 1) ORDER BY end_ns, id LIMIT 1",
             room->which, room->of, room->of, room->which, room->of);
    return delete_profile(s, sql, 0);
}

// A profile a step: of one with many rows it takes as long as some seconds' statistics.
static bool expire_profiles(struct store *s, int64_t now_s) {
    static const struct room rooms[] = {
        {"label = '' AND kind = 0", "node_id", RETENTION_PROFILE_ROWS},
        {"label = '' AND kind <> 0", "node_id", RETENTION_PROFILE_ROWS},
        {"label <> ''", "node_id, label", RETENTION_LABELLED_ROWS}};
    int64_t cut_ns = time_of_seconds(now_s - RETENTION_PROFILES_S);
    if (delete_profile(
            s, "SELECT id, rows FROM profile_rows WHERE end_ns < ?1 ORDER BY end_ns LIMIT 1",
            cut_ns) > 0) {
        return true;
    }
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        if (delete_most(s, &rooms[i]) > 0) {
            return true;
        }
    }
    return false;
}

// -- notes ----------------------------------------------------------------------------------------

// There are so few of them that all past their time may go at once.
static void expire_notes(struct store *s, int64_t now_s) {
    char sql[320];
    snprintf(sql, sizeof sql,
             "DELETE FROM note_rows WHERE at_ns < %lld; "
             "DELETE FROM note_rows WHERE id IN (SELECT id FROM note_rows ORDER BY at_ns DESC, "
             "id DESC LIMIT -1 OFFSET %d)",
             (long long)time_of_seconds(now_s - NOTE_KEPT_S), RETENTION_NOTES);
    if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        store_fail(s, "delete old notes");
    }
}

int change_days(uint32_t resolution_s) {
    enum { DAY_S = 86400 };
    return (int)((resolution_s == 0 ? RETENTION_KEPT_S : keep_s(resolution_s)) / DAY_S);
}

bool store_expire(struct store *s, int64_t now_s) {
    s->error[0] = 0;
    store_expire_marks(s, now_s, keep_s, RETENTION_KEPT_S);
    expire_notes(s, now_s);
    struct otlp_unsent unsent = store_otlp_unsent(s);
    bool rows = expire_rows(s, now_s);
    bool kept = expire_kept(s, now_s);
    store_otlp_lost(s, unsent);
    return expire_profiles(s, now_s) || kept || rows;
}
