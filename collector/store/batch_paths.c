// SPDX-License-Identifier: Apache-2.0
// Rows that only add up: times by position in the tree, and what tracing costs.
#include "internal.h"

static bool write_path(struct store *s, uint32_t resolution_s, const int64_t ids[3],
                       const struct path_row *row) {
    enum { FIRST_COUNT = 6, MIN = 14, MAX, WAITING, MEASURED, MAILBOX, RUN_QUEUE };
    sqlite3_stmt *adding = store_prepared(s, STATEMENT_ADD_PATH_ROW);
    if (!adding) {
        return false;
    }
    sqlite3_bind_int64(adding, 1, resolution_s);
    sqlite3_bind_int64(adding, 2, floor_to(row->bucket_start, resolution_s));
    for (int i = 0; i < 3; i++) {
        sqlite3_bind_int64(adding, 3 + i, ids[i]);
    }
    const uint64_t counts[] = {row->calls,   row->errors,   row->async_calls, row->total_ns,
                               row->self_ns, row->async_ns, row->wait_ns,     row->duration_ns};
    for (int i = 0; i < MIN - FIRST_COUNT; i++) {
        store_bind_count(adding, FIRST_COUNT + i, counts[i]);
    }
    store_bind_count(adding, WAITING, row->waiting_ns);
    store_bind_count(adding, MEASURED, row->measured_ns);
    if (row->mailbox_ns > 0 || row->run_queue_ns > 0) {
        store_bind_count(adding, MAILBOX, row->mailbox_ns);
        store_bind_count(adding, RUN_QUEUE, row->run_queue_ns);
    } else { // of nothing it is known
        sqlite3_bind_null(adding, MAILBOX);
        sqlite3_bind_null(adding, RUN_QUEUE);
    }
    if (row->calls > 0) {
        store_bind_count(adding, MIN, row->min_ns);
        store_bind_count(adding, MAX, row->max_ns);
    } else {
        sqlite3_bind_null(adding, MIN);
        sqlite3_bind_null(adding, MAX);
    }
    return store_run(s, adding, "write a path");
}

bool store_write_paths(struct store *s, const struct resolutions *resolutions,
                       const struct stats *batch) {
    for (uint32_t i = 0; i < stats_paths(batch); i++) {
        const struct path_row *row = stats_path_at(batch, i);
        const int64_t ids[3] = {store_node_id(s, row->node), store_identity_id(s, row->identity),
                                store_path_id(s, row->path)};
        if (!ids[0] || !ids[1] || !ids[2]) {
            return false;
        }
        for (int r = 0; r < resolutions->count; r++) {
            const struct row_place at = {&resolutions->all[r], 1, row->bucket_start, row->node};
            if (!write_path(s, resolutions->all[r], ids, row) &&
                !store_pass_over(
                    s, &at, "the path %lld of bucket %lld (%u s), node %s", (long long)ids[2],
                    (long long)floor_to(row->bucket_start, resolutions->all[r]),
                    resolutions->all[r], names_text(&s->directory->nodes, row->node))) {
                return false;
            }
        }
    }
    return true;
}

static bool write_cost(struct store *s, uint32_t resolution_s, int64_t node, int64_t tier,
                       const struct cost_row *row) {
    sqlite3_stmt *adding = store_prepared(s, STATEMENT_ADD_COST);
    if (!adding) {
        return false;
    }
    sqlite3_bind_int64(adding, 1, resolution_s);
    sqlite3_bind_int64(adding, 2, floor_to(row->bucket_start, resolution_s));
    sqlite3_bind_int64(adding, 3, node);
    sqlite3_bind_int64(adding, 4, tier);
    store_bind_count(adding, 5, row->messages);
    store_bind_count(adding, 6, row->bytes);
    store_bind_count(adding, 7, row->calls);
    store_bind_count(adding, 8, row->stale_calls);
    return store_run(s, adding, "write a tier's cost");
}

bool store_write_costs(struct store *s, const struct resolutions *resolutions,
                       const struct stats *batch) {
    for (uint32_t i = 0; i < stats_costs(batch); i++) {
        const struct cost_row *row = stats_cost_at(batch, i);
        int64_t node = store_node_id(s, row->node);
        int64_t tier = store_tier_id(s, row->tier);
        for (int r = 0; r < resolutions->count; r++) {
            bool written = node && tier && write_cost(s, resolutions->all[r], node, tier, row);
            const struct row_place at = {&resolutions->all[r], 1, row->bucket_start, row->node};
            if (!written &&
                !(node && tier &&
                  store_pass_over(s, &at, "the cost of tier %s, bucket %lld (%u s), node %s",
                                  names_text(&s->directory->tiers, row->tier),
                                  (long long)floor_to(row->bucket_start, resolutions->all[r]),
                                  resolutions->all[r],
                                  names_text(&s->directory->nodes, row->node)))) {
                return false;
            }
        }
    }
    return true;
}
