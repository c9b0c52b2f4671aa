// SPDX-License-Identifier: Apache-2.0
#include "store/keep_samples.h"

#include <stdio.h>

#include "internal.h"
#include "model/profile/samples.h"
#include "store/retention.h"

static const char what[] = "keep samples";

static sqlite3_stmt *prepare(struct store *s, const char *sql) {
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(s->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        store_fail(s, what);
    }
    return statement;
}

static bool add_counts(struct store *s, const struct sample_counts *c, int64_t id) {
    sqlite3_stmt *adding =
        prepare(s, "INSERT INTO profile_sampled_rows (profile_id, looks, unchanged, unanswered, "
                   "held_us, late_us, cut, cost_us) VALUES (?1,?2,?3,?4,?5,?6,?7,?8)");
    const uint64_t counts[] = {c->looks,   c->unchanged, c->unanswered, c->held_us,
                               c->late_us, c->cut,       c->cost_us};
    sqlite3_bind_int64(adding, 1, id);
    for (int i = 0; i < (int)(sizeof counts / sizeof *counts); i++) {
        store_bind_count(adding, 2 + i, counts[i]);
    }
    bool ok = adding && store_run(s, adding, what);
    sqlite3_finalize(adding);
    return ok;
}

static const char *name_of(const struct profile *p, uint32_t name) {
    return name == NAME_NONE ? "" : names_text(&p->stacks.names, name);
}

static bool add_processes(struct store *s, const struct profile *p, int64_t id) {
    sqlite3_stmt *adding =
        prepare(s, "INSERT INTO profile_sampled_processes (profile_id, process, pid, name, "
                   "initial, application) VALUES (?1,?2,?3,?4,?5,?6)");
    bool ok = adding != NULL;
    for (uint32_t i = 0; ok && i < p->samples->process_count; i++) {
        const struct sampled_process *process = &p->samples->processes[i];
        sqlite3_bind_int64(adding, 1, id);
        sqlite3_bind_int64(adding, 2, i);
        sqlite3_bind_text(adding, 3, process->pid, -1, SQLITE_STATIC);
        sqlite3_bind_text(adding, 4, name_of(p, process->name), -1, SQLITE_STATIC);
        sqlite3_bind_text(adding, 5, name_of(p, process->initial), -1, SQLITE_STATIC);
        sqlite3_bind_text(adding, 6, name_of(p, process->application), -1, SQLITE_STATIC);
        ok = store_run(s, adding, what);
    }
    sqlite3_finalize(adding);
    return ok;
}

// Each second's records, with the stacks' numbers in the file.
static bool add_seconds(struct store *s, const struct profile *p, int64_t id,
                        const uint32_t *stacks) {
    const struct samples *all = p->samples;
    struct buffer records = buffer_make(2 * LIMIT_SAMPLE_BYTES);
    sqlite3_stmt *adding = prepare(s, "INSERT INTO profile_second_rows (profile_id, second, "
                                      "records) VALUES (?1,?2,?3)");
    bool ok = adding != NULL;
    for (uint32_t i = 0; ok && i < all->second_count; i++) {
        size_t from = all->seconds[i].at,
               until = i + 1 < all->second_count ? all->seconds[i + 1].at : all->records.len;
        buffer_reset(&records);
        ok = samples_renumber(slice_of(all->records.data + from, until - from), stacks,
                              p->stacks.stack_count, &records);
        if (!ok) {
            snprintf(s->error, sizeof s->error, "%s: no memory", what);
            break;
        }
        sqlite3_bind_int64(adding, 1, id);
        sqlite3_bind_int64(adding, 2, all->seconds[i].second);
        sqlite3_bind_blob64(adding, 3, records.data ? records.data : (const uint8_t *)"",
                            records.len, SQLITE_STATIC);
        ok = store_run(s, adding, what);
    }
    sqlite3_finalize(adding);
    buffer_free(&records);
    return ok;
}

bool store_keep_samples(struct store *s, const struct profile *p, int64_t id,
                        const uint32_t *stacks, int64_t *rows) {
    // a second's looks are many bytes: as many rows as these would be
    *rows += 1 + p->samples->process_count + p->samples->second_count +
             (int64_t)(p->samples->records.len / RETENTION_ROW_BYTES);
    return add_counts(s, &p->samples->counts, id) && add_processes(s, p, id) &&
           add_seconds(s, p, id, stacks);
}
