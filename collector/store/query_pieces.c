// SPDX-License-Identifier: Apache-2.0
// Which rows answer a question about a stretch of time: the coarsest buckets that lie wholly
// inside, finer ones at its ends.
//
// What a collector writes in buckets of 10 s stands in minutes and hours too, all written at once;
// buckets that divide neither stand alone (store_coarser). So the resolutions of a file are trees:
// a bucket holds what all those below it hold together. Whatever was counted is taken once when of
// each tree the buckets taken do not overlap.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// -- the resolutions of a file --------------------------------------------------------------------

static int64_t edge(struct store *s, const char *which, uint32_t resolution_s, int64_t otherwise) {
    char sql[256];
    snprintf(
        sql, sizeof sql,
        "SELECT %s(b) FROM (SELECT %s(bucket_start) AS b FROM stat_rows WHERE resolution_s = %u "
        "UNION ALL SELECT %s(bucket_start) FROM ledger_rows WHERE resolution_s = %u)",
        which, which, resolution_s, which, resolution_s);
    return store_integer(s, sql, otherwise);
}

static uint32_t next_resolution(struct store *s, uint32_t resolution_s) {
    uint32_t stats = store_next_resolution(s, "stat_rows", resolution_s);
    uint32_t ledgers = store_next_resolution(s, "ledger_rows", resolution_s);
    return stats == 0 || (ledgers != 0 && ledgers < stats) ? ledgers : stats;
}

// The resolution of the file in whose rows those of e stand too, if any.
static const struct extent *above(const struct extents *of, const struct extent *e) {
    for (uint32_t r = store_coarser(e->resolution_s); r != 0; r = store_coarser(r)) {
        for (int i = 0; i < of->count; i++) {
            if (of->all[i].resolution_s == r) {
                return &of->all[i];
            }
        }
    }
    return NULL;
}

bool query_extents(struct store *s, struct extents *out) {
    out->count = 0;
    if (s->mirror) {
        return mirror_extents(s, out->all, EXTENTS, &out->count);
    }
    for (uint32_t r = next_resolution(s, 0); r != 0 && out->count < EXTENTS;
         r = next_resolution(s, r)) {
        out->all[out->count++] = (struct extent){r, edge(s, "min", r, 0), edge(s, "max", r, 0)};
    }
    return true;
}

bool extents_time(const struct extents *of, int64_t *first_s, int64_t *last_s) {
    for (int i = 0; i < of->count; i++) {
        const struct extent *e = &of->all[i];
        int64_t last = time_add(e->last_s, e->resolution_s);
        // The newest data is told as finely as it is kept: a coarse bucket ends later only because
        // it is longer. The oldest likewise.
        *first_s = i == 0                                             ? e->first_s
                   : floor_to(*first_s, e->resolution_s) > e->first_s ? e->first_s
                                                                      : *first_s;
        *last_s = i == 0 || e->last_s >= *last_s ? last : *last_s;
    }
    return of->count > 0;
}

// Whether one resolution's rows reach as far as the other's do within the time asked for, seen in
// the longer buckets of the two.
static bool reaches(const struct extent *one, const struct extent *other, const struct query *q) {
    int64_t r = larger(one->resolution_s, other->resolution_s);
    int64_t from = q->from_s == INT64_MIN ? other->first_s : larger(other->first_s, q->from_s);
    int64_t last = q->until_s == INT64_MAX ? other->last_s : smaller(other->last_s, q->until_s - 1);
    return from > last || (floor_to(one->first_s, r) <= floor_to(from, r) &&
                           floor_to(one->last_s, r) >= floor_to(last, r));
}

static int64_t overlap(const struct extent *e, const struct query *q) {
    return time_sub(smaller(time_add(e->last_s, e->resolution_s), q->until_s),
                    larger(e->first_s, q->from_s));
}

uint32_t extents_resolution(const struct extents *of, const struct query *q) {
    const struct extent *most = NULL;
    for (int i = 0; i < of->count; i++) {
        bool covers = true;
        for (int k = 0; k < of->count; k++) {
            covers = covers && (k == i || reaches(&of->all[i], &of->all[k], q));
        }
        if (covers) {
            return of->all[i].resolution_s;
        }
        if (!most || overlap(&of->all[i], q) > overlap(most, q)) {
            most = &of->all[i];
        }
    }
    return most ? most->resolution_s : 0;
}

// -- pieces ---------------------------------------------------------------------------------------

static void add_piece(struct pieces *p, uint32_t resolution_s, int64_t from, int64_t until) {
    if (p->count == PIECES) {
        snprintf(p->store->error, sizeof p->store->error, "query: too many lengths of buckets");
        p->failed = true;
        return;
    }
    p->list[p->count++] = (struct piece){resolution_s, from, until};
}

#define PLUS_TOTAL(column) " + total(" #column ")"

// In a mirror: fetches what is weighed. Of calls those of all requests together will do: an engine
// drops old rows of all identities at once, and it has to read a part of its rows in 200 only.
static bool fetch_weights(struct store *s, const struct piece *piece) {
    struct mirror_ask ask = {.table = CHANGE_TIERS,
                             .identity = "_total",
                             .tier = "_total",
                             .pieces = piece,
                             .piece_count = 1};
    if (!mirror_empty(s) || !mirror_fill(s, &ask)) {
        return false;
    }
    ask.table = CHANGE_LEDGER;
    return mirror_fill(s, &ask);
}

// All that the rows of a stretch of time count, in one number, to be compared.
static double weight(struct pieces *p, uint32_t resolution_s, int64_t from, int64_t until) {
    sqlite3_stmt *statement = NULL;
    if (!fetch_weights(p->store, &(struct piece){resolution_s, from, until})) {
        p->failed = true;
        return 0;
    }
    if (sqlite3_prepare_v2(
            p->store->db,
            "SELECT (SELECT total(calls) FROM stat_rows WHERE resolution_s = ?1 AND "
            "bucket_start >= ?2 AND bucket_start < ?3) + (SELECT 0.0" LEDGER_COLUMNS(
                PLUS_TOTAL) " FROM ledger_rows WHERE resolution_s = ?1 AND bucket_start >= ?2 AND "
                            "bucket_start < ?3)",
            -1, &statement, NULL) != SQLITE_OK) {
        p->failed = !store_fail(p->store, "query");
        return 0;
    }
    sqlite3_bind_int64(statement, 1, resolution_s);
    sqlite3_bind_int64(statement, 2, from);
    sqlite3_bind_int64(statement, 3, until);
    if (sqlite3_step(statement) != SQLITE_ROW) {
        p->failed = !store_fail(p->store, "query");
    }
    double sum = sqlite3_column_double(statement, 0);
    sqlite3_finalize(statement);
    return sum;
}

// Whether the finer rows of a bucket are there, all of them: old ones are deleted.
static bool finer_hold(struct pieces *p, const struct extent *e, int64_t bucket) {
    double finer = 0;
    bool any = false;
    for (int i = 0; i < p->of.count; i++) {
        if (above(&p->of, &p->of.all[i]) == e) {
            any = true;
            finer +=
                weight(p, p->of.all[i].resolution_s, bucket, time_add(bucket, e->resolution_s));
        }
    }
    return any && finer >= weight(p, e->resolution_s, bucket, time_add(bucket, e->resolution_s));
}

static void take(struct pieces *p, const struct extent *e, int64_t from, int64_t until);

static void take_finer(struct pieces *p, const struct extent *e, int64_t from, int64_t until) {
    for (int i = 0; i < p->of.count; i++) {
        if (above(&p->of, &p->of.all[i]) == e) {
            take(p, &p->of.all[i], from, until);
        }
    }
}

// A bucket of which only the time from `from` until `until` is asked for.
static void take_end(struct pieces *p, const struct extent *e, int64_t from, int64_t until) {
    int64_t bucket = floor_to(from, e->resolution_s);
    if (finer_hold(p, e, bucket)) {
        take_finer(p, e, from, until);
    } else {
        add_piece(p, e->resolution_s, bucket, time_add(bucket, e->resolution_s));
    }
}

// Adds the pieces of one tree, or of one below it.
static void take(struct pieces *p, const struct extent *e, int64_t from, int64_t until) {
    int64_t r = e->resolution_s;
    int64_t first = larger(from, e->first_s), end = smaller(until, time_add(e->last_s, r));
    if (first >= end) {
        take_finer(p, e, from, until);
        return;
    }
    if (from < first) {
        take_finer(p, e, from, first);
    }
    if (end < until) {
        take_finer(p, e, end, until);
    }
    if (first == from && floor_to(first, r) != first) {
        int64_t next = time_add(floor_to(first, r), r);
        take_end(p, e, first, smaller(next, end));
        first = next;
    }
    if (first < end && end == until && floor_to(end, r) != end) {
        take_end(p, e, floor_to(end, r), end);
        end = floor_to(end, r);
    }
    if (first < end) {
        add_piece(p, e->resolution_s, first, end);
    }
}

static bool choose(struct store *s, const struct query *q, struct pieces *out) {
    *out = (struct pieces){.store = s};
    out->failed = !query_extents(s, &out->of);
    for (int i = 0; i < out->of.count; i++) {
        if (!above(&out->of, &out->of.all[i])) {
            take(out, &out->of.all[i], q->from_s, q->until_s);
        }
    }
    return !out->failed && mirror_empty(s);
}

bool query_pieces(struct store *s, const struct query *q, uint32_t *resolution_s,
                  bool (*read)(struct store *s, const struct query *q, const struct pieces *pieces,
                               void *out),
                  void *out) {
    if (sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
        return store_fail(s, "query");
    }
    struct pieces pieces;
    bool ok = choose(s, q, &pieces);
    *resolution_s = extents_resolution(&pieces.of, q);
    ok = ok && (pieces.count == 0 || read(s, q, &pieces, out));
    sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
    return ok;
}

bool pieces_fetch(const struct pieces *p, const struct query *q, enum change_table table,
                  const char *tier, int how) {
    struct mirror_ask ask = {.table = table,
                             .node = q->node,
                             .identity = q->identity,
                             .tier = tier,
                             .pieces = p->list,
                             .piece_count = p->count,
                             .each_bucket = how & PIECES_BUCKETS,
                             .counts = how & PIECES_COUNTS,
                             .counts_of = q->quantiles_of};
    return mirror_fill(p->store, &ask);
}

uint32_t pieces_resolution_at(const struct pieces *p, int64_t bucket) {
    uint32_t coarsest = 0;
    for (int i = 0; i < p->count; i++) {
        const struct piece *piece = &p->list[i];
        bool here = bucket >= piece->from_s && bucket < piece->until_s;
        coarsest = here && piece->resolution_s > coarsest ? piece->resolution_s : coarsest;
    }
    return coarsest;
}

void pieces_cover(const struct pieces *p, int64_t from, int64_t until, int64_t *first_s,
                  int64_t *last_s) {
    int64_t oldest = from, newest = until;
    extents_time(&p->of, &oldest, &newest);
    from = larger(from, oldest);
    until = smaller(until, newest);
    bool none = *first_s == 0 && *last_s == 0;
    *first_s = none ? from : smaller(*first_s, from);
    *last_s = none ? until : larger(*last_s, until);
}

sqlite3_stmt *pieces_prepare(const struct pieces *p, const char *sql, const struct query *q) {
    struct store *s = p->store;
    struct buffer text = buffer_make(64 * PIECES + strlen(sql) + 256);
    sqlite3_stmt *statement = NULL;
    buffer_text(&text, "WITH pieces (resolution, from_s, until_s) AS (VALUES ");
    for (int i = 0; i < p->count; i++) {
        const struct piece *piece = &p->list[i];
        buffer_printf(&text, "%s(%u,%lld,%lld)", i > 0 ? "," : "", piece->resolution_s,
                      (long long)piece->from_s, (long long)piece->until_s);
    }
    buffer_text(&text, ") ");
    buffer_text(&text, sql);
    if (text.failed) {
        query_no_memory(s);
    } else if (sqlite3_prepare_v2(s->db, (const char *)text.data, (int)text.len, &statement,
                                  NULL) != SQLITE_OK) {
        store_fail(s, "query");
    } else {
        // NULL binds NULL
        sqlite3_bind_text(statement, 1, mirror_node(s, q->node), -1, SQLITE_STATIC);
    }
    buffer_free(&text);
    return statement;
}
