// SPDX-License-Identifier: Apache-2.0
// Requests that are kept whole. Of each bucket, node, identity and reason the slowest stay, up to a
// cap: longer first, of equally long ones the one that began earlier, then the one that came
// earlier. So the order of the batches decides nothing but the last.
#include "internal.h"

#include "base/hex.h"
#include "model/message/message.h"

static const uint32_t caps[KEPT_REASONS] = {[KEPT_OVER] = LIMIT_KEPT_OVER,
                                            [KEPT_FAILED] = LIMIT_KEPT_FAILED,
                                            [KEPT_SLOWEST] = LIMIT_KEPT_SLOWEST};

// The numbers stand in the file: schema/007_whole.sql.
_Static_assert(KEPT_OVER == 0 && KEPT_FAILED == 1 && KEPT_SLOWEST == 2,
               "reasons as the schema tells them");

struct group {
    int64_t bucket;
    int64_t node;
    int64_t identity;
    int reason;
};

static void bind_group(sqlite3_stmt *statement, const struct group *g) {
    sqlite3_bind_int64(statement, 1, g->bucket);
    sqlite3_bind_int64(statement, 2, g->node);
    sqlite3_bind_int64(statement, 3, g->identity);
    sqlite3_bind_int(statement, 4, g->reason);
}

// Whether the group is full, and then whether the request is better than the last that stays. False
// on failure.
static bool compare(struct store *s, const struct group *g, const struct kept_request *r,
                    bool *full, bool *better) {
    sqlite3_stmt *last = store_prepared(s, STATEMENT_LAST_KEPT);
    if (!last) {
        return false;
    }
    bind_group(last, g);
    sqlite3_bind_int64(last, 5, caps[g->reason] - 1);
    int rc = sqlite3_step(last);
    bool ok = rc == SQLITE_ROW || rc == SQLITE_DONE || store_fail(s, "read the kept requests");
    *full = rc == SQLITE_ROW;
    *better = true;
    if (*full) {
        int64_t duration = sqlite3_column_int64(last, 0);
        *better = r->duration > duration ||
                  (r->duration == duration && r->begin < sqlite3_column_int64(last, 1));
    }
    sqlite3_reset(last);
    return ok;
}

// As three columns, from this one on.
static void bind_parent(sqlite3_stmt *keeping, int at, const struct trace_parent *parent) {
    char trace[2 * TRACE_ID_BYTES + 1], span[2 * SPAN_ID_BYTES + 1];
    if (trace_parent_known(parent)) {
        hex_text(parent->trace_id, TRACE_ID_BYTES, trace);
        hex_text(parent->span_id, SPAN_ID_BYTES, span);
        sqlite3_bind_text(keeping, at, trace, -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(keeping, at + 1, span, -1, SQLITE_TRANSIENT);
        sqlite3_bind_int(keeping, at + 2, parent->flags);
    } else {
        for (int i = 0; i < 3; i++) {
            sqlite3_bind_null(keeping, at + i);
        }
    }
}

static bool keep_request(struct store *s, const struct group *g, const struct kept_request *r) {
    sqlite3_stmt *keeping = store_prepared(s, STATEMENT_KEEP);
    int64_t maker = r->remote ? store_node_id(s, r->maker) : 0;
    if (!keeping || (r->remote && !maker)) {
        return false;
    }
    bind_group(keeping, g);
    sqlite3_bind_int64(keeping, 5, r->begin);
    sqlite3_bind_int64(keeping, 6, r->duration);
    sqlite3_bind_int(keeping, 7, r->error);
    sqlite3_bind_int(keeping, 8, r->cut);
    sqlite3_bind_int64(keeping, 9, r->spans);
    sqlite3_bind_int64(keeping, 10, r->count);
    if (r->remote) {
        sqlite3_bind_int64(keeping, 11, maker);
    } else {
        sqlite3_bind_null(keeping, 11);
    }
    if (r->label != 0) {
        sqlite3_bind_int64(keeping, 12, (int64_t)r->label);
    } else {
        sqlite3_bind_null(keeping, 12);
    }
    sqlite3_bind_int64(keeping, 13, r->uncovered);
    sqlite3_bind_int64(keeping, 14, r->parallel);
    bind_parent(keeping, 15, &r->parent);
    return store_run(s, keeping, "keep a request");
}

// 0 … 3 as the schema tells them. That a call was ended by an exception is known of blind tiers,
// too, where it is.
static int outcome_of(const struct kept_span *span) {
    return span->open ? 2 : span->error ? 1 : span->blind ? 3 : 0;
}

static bool keep_span(struct store *s, int64_t request, uint32_t i, const struct kept_span *span) {
    char pid[MESSAGE_PID_BYTES];
    sqlite3_stmt *keeping = store_prepared(s, STATEMENT_KEEP_SPAN);
    int64_t tier = store_tier_id(s, span->tier);
    if (!keeping || !tier) {
        return false;
    }
    message_pid_text(span->pid, pid);
    sqlite3_bind_int64(keeping, 1, request);
    sqlite3_bind_int64(keeping, 2, i);
    if (span->parent < i) {
        sqlite3_bind_int64(keeping, 3, span->parent);
    } else {
        sqlite3_bind_null(keeping, 3);
    }
    sqlite3_bind_text(keeping, 4, pid, -1, SQLITE_STATIC);
    sqlite3_bind_int64(keeping, 5, tier);
    const int64_t times[] = {span->start, span->duration, span->self,
                             span->wait,  span->gc,       span->off_cpu};
    for (int k = 0; k < 6; k++) {
        sqlite3_bind_int64(keeping, 6 + k, times[k]);
    }
    sqlite3_bind_int(keeping, 12, span->async);
    sqlite3_bind_int(keeping, 13, outcome_of(span));
    if (span->caller != 0) {
        sqlite3_bind_int64(keeping, 14, (int64_t)span->caller);
    } else {
        sqlite3_bind_null(keeping, 14);
    }
    sqlite3_bind_int64(keeping, 15, span->waiting);
    sqlite3_bind_int(keeping, 16, span->measured);
    if (span->measured && span->run_queue != INT64_MIN) {
        sqlite3_bind_int64(keeping, 17, span->run_queue);
    } else {
        sqlite3_bind_null(keeping, 17);
    }
    return store_run(s, keeping, "keep a span");
}

// Lets go what lies past the cap.
static bool prune(struct store *s, const struct group *g) {
    sqlite3_stmt *pruning = store_prepared(s, STATEMENT_PRUNE_KEPT);
    if (!pruning) {
        return false;
    }
    bind_group(pruning, g);
    sqlite3_bind_int64(pruning, 5, caps[g->reason]);
    return store_run(s, pruning, "let a kept request go");
}

// What would be pruned at once is not written at all: a request may have thousands of spans.
static bool keep(struct store *s, const struct kept_request *r, const struct kept_span *spans) {
    bool full, better;
    const struct group g = {r->bucket_start, store_node_id(s, r->node),
                            store_identity_id(s, r->identity), r->reason};
    if (!g.node || !g.identity || !compare(s, &g, r, &full, &better)) {
        return false;
    }
    if (!better) {
        return true;
    }
    if (!keep_request(s, &g, r)) {
        return false;
    }
    int64_t id = sqlite3_last_insert_rowid(s->db);
    for (uint32_t i = 0; i < r->count; i++) {
        if (!keep_span(s, id, i, &spans[i])) {
            return false;
        }
    }
    return !full || prune(s, &g);
}

// A request with all of its spans, or nothing of it.
static bool keep_whole(struct store *s, const struct kept_request *r,
                       const struct kept_span *spans) {
    if (!store_run(s, store_prepared(s, STATEMENT_SAVE), "keep a request")) {
        return false;
    }
    bool kept = keep(s, r, spans);
    if (!kept && s->spoilt) {
        char why[sizeof s->error];
        memcpy(why, s->error, sizeof why);
        store_forget_ids(s); // of names that are new with it
        if (!store_run(s, store_prepared(s, STATEMENT_UNDO), "give a request up")) {
            return false;
        }
        s->spoilt = true;
        memcpy(s->error, why, sizeof why);
    }
    bool spoilt = s->spoilt;
    if ((kept || spoilt) && !store_run(s, store_prepared(s, STATEMENT_RELEASE), "keep a request")) {
        return false;
    }
    return kept;
}

bool store_write_kept(struct store *s, const struct resolutions *resolutions,
                      const struct stats *batch) {
    for (uint32_t i = 0; i < stats_kept(batch); i++) {
        const struct kept_request *r = stats_kept_at(batch, i);
        const struct row_place at = {resolutions->all, resolutions->count, r->bucket_start,
                                     r->node};
        if (!keep_whole(s, r, stats_kept_spans(batch, i)) &&
            !store_pass_over(s, &at, "a kept request of node %s",
                             names_text(&s->directory->nodes, r->node))) {
            return false;
        }
    }
    return true;
}
