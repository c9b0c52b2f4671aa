// SPDX-License-Identifier: Apache-2.0
#include "store/query_samples.h"

#include <stdio.h>

#include "internal.h"
#include "model/profile/sample_walk.h"

static const char what[] = "read samples";

struct reading {
    struct store *store;
    struct profile *profile;
    const uint32_t *stacks;
    uint32_t stack_count;
    struct buffer records; // of a second
};

static bool damaged(const struct reading *r, const char *why) {
    snprintf(r->store->error, sizeof r->store->error, "%s: %s", what, why);
    return false;
}

static struct slice text(sqlite3_stmt *at, int column) {
    const unsigned char *bytes = sqlite3_column_text(at, column);
    return slice_of(bytes, bytes ? (size_t)sqlite3_column_bytes(at, column) : 0);
}

static uint32_t name(struct reading *r, sqlite3_stmt *at, int column) {
    struct slice of = text(at, column);
    return of.len > 0 ? names_intern(&r->profile->stacks.names, of) : NAME_NONE;
}

static bool read_counts(void *to, sqlite3_stmt *at) {
    struct reading *r = to;
    struct sample_counts *c = &r->profile->samples->counts;
    uint64_t *const counts[] = {&c->looks,   &c->unchanged, &c->unanswered, &c->held_us,
                                &c->late_us, &c->cut,       &c->cost_us};
    for (int i = 0; i < (int)(sizeof counts / sizeof *counts); i++) {
        int64_t value = sqlite3_column_int64(at, i);
        *counts[i] = value > 0 ? (uint64_t)value : 0;
    }
    return true;
}

// Identities have to be known before looks tell them.
static bool read_identity(void *to, sqlite3_stmt *at) {
    struct reading *r = to;
    name(r, at, 0);
    return true;
}

static bool read_process(void *to, sqlite3_stmt *at) {
    struct reading *r = to;
    struct sampled_process p = {
        .name = name(r, at, 2), .initial = name(r, at, 3), .application = name(r, at, 4)};
    names_clean(text(at, 1), p.pid, sizeof p.pid);
    if (sqlite3_column_int64(at, 0) != r->profile->samples->process_count) {
        return damaged(r, "its processes are not in order");
    }
    return samples_process(r->profile->samples, &p) != UINT32_MAX ||
           damaged(r, "it has too many processes");
}

static bool read_second(void *to, sqlite3_stmt *at) {
    struct reading *r = to;
    int64_t second = sqlite3_column_int64(at, 0);
    struct slice stored = slice_of(sqlite3_column_blob(at, 1), (size_t)sqlite3_column_bytes(at, 1));
    buffer_reset(&r->records);
    if (!samples_renumber(stored, r->stacks, r->stack_count, &r->records) || second < 0 ||
        second > UINT32_MAX ||
        !samples_second(r->profile->samples, (uint32_t)second,
                        slice_of(r->records.data, r->records.len))) {
        return damaged(r, "its seconds cannot be read");
    }
    return true;
}

static bool check(struct reading *r) {
    struct sample_walk walk;
    bool ok = sample_walk_begin(&walk, r->profile);
    while (ok && sample_walk_next(&walk)) {
    }
    ok = ok && !walk.damaged;
    sample_walk_end(&walk);
    return ok || damaged(r, "its looks cannot be read");
}

bool query_samples(struct store *s, int64_t id, const uint32_t *stacks, uint32_t count,
                   struct profile *out) {
    struct reading r = {s, out, stacks, count, buffer_make(LIMIT_SAMPLE_BYTES)};
    out->samples = samples_new();
    if (!out->samples) {
        return query_no_memory(s);
    }
    bool ok =
        query_rows_of(s, what, id,
                      "SELECT looks, unchanged, unanswered, held_us, late_us, cut, cost_us FROM "
                      "profile_sampled_rows WHERE profile_id = ?1",
                      read_counts, &r) &&
        query_rows_of(
            s, what, id,
            "SELECT DISTINCT i.name FROM profile_value_rows AS v JOIN identity_names AS i "
            "ON i.id = v.identity_id WHERE v.profile_id = ?1",
            read_identity, &r) &&
        query_rows_of(s, what, id,
                      "SELECT process, pid, name, initial, application FROM "
                      "profile_sampled_processes WHERE profile_id = ?1 ORDER BY process",
                      read_process, &r) &&
        query_rows_of(s, what, id,
                      "SELECT second, records FROM profile_second_rows WHERE profile_id = ?1 ORDER "
                      "BY second",
                      read_second, &r) &&
        check(&r);
    buffer_free(&r.records);
    return ok;
}
