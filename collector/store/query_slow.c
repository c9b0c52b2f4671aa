// SPDX-License-Identifier: Apache-2.0
#include "store/query_slow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

// Texts of an answer: its `texts` is the newest, each leads to the one before.
struct text {
    struct text *before;
    char bytes[];
};

// A copy of a column's text that lives as long as the answer; NULL without memory.
static const char *keep_text(void **texts, sqlite3_stmt *from, int column) {
    const unsigned char *bytes = sqlite3_column_text(from, column);
    size_t size = (bytes ? strlen((const char *)bytes) : 0) + 1;
    struct text *text = malloc(sizeof *text + size);
    if (!text) {
        return NULL;
    }
    memcpy(text->bytes, bytes ? (const char *)bytes : "", size);
    text->before = *texts;
    *texts = text;
    return text->bytes;
}

// The same, but *out is NULL where the column is. False without memory.
static bool keep_known(void **texts, sqlite3_stmt *from, int column, const char **out) {
    bool known = sqlite3_column_type(from, column) != SQLITE_NULL;
    *out = known ? keep_text(texts, from, column) : NULL;
    return *out || !known;
}

static void free_texts(void *texts) {
    for (struct text *t = texts; t;) {
        struct text *before = t->before;
        free(t);
        t = before;
    }
}

// Makes room for one more than `count` records of `size` bytes; NULL without memory, and the
// records are as they were then.
static void *room_for_one(void *records, uint32_t count, size_t size) {
    bool full = (count & (count - 1)) == 0; // 0, 1, 2, 4, …
    return full ? realloc(records, (count ? 2 * (size_t)count : 1) * size) : records;
}

// -- requests -------------------------------------------------------------------------------------

#define REQUESTS                                                                                   \
    "SELECT r.id, n.name, i.name, reason, error, cut, begin_ns, duration_ns, spans, kept_spans, "  \
    "m.name, trace_id, parent_span_id "                                                            \
    "FROM kept_requests AS r JOIN node_names AS n ON n.id = r.node_id "                            \
    "JOIN identity_names AS i ON i.id = r.identity_id "                                            \
    "LEFT JOIN node_names AS m ON m.id = r.maker_id "

static const char *reason_text(int64_t reason) {
    return reason == KEPT_OVER ? "over" : reason == KEPT_FAILED ? "failed" : "slowest";
}

static bool read_request(struct store *s, sqlite3_stmt *from, void **texts,
                         struct slow_request *out) {
    *out = (struct slow_request){.id = sqlite3_column_int64(from, 0),
                                 .node = keep_text(texts, from, 1),
                                 .identity = keep_text(texts, from, 2),
                                 .reason = reason_text(sqlite3_column_int64(from, 3)),
                                 .outcome = sqlite3_column_int64(from, 4) ? "error" : "ok",
                                 .cut = sqlite3_column_int64(from, 5) != 0,
                                 .started_ns = sqlite3_column_int64(from, 6),
                                 .duration_ns = sqlite3_column_int64(from, 7),
                                 .spans = (uint32_t)sqlite3_column_int64(from, 8),
                                 .kept = (uint32_t)sqlite3_column_int64(from, 9)};
    bool ok = out->node && out->identity && keep_known(texts, from, 10, &out->origin) &&
              keep_known(texts, from, 11, &out->trace_id) &&
              keep_known(texts, from, 12, &out->parent_span_id);
    return ok || query_no_memory(s);
}

static bool add_request(struct store *s, sqlite3_stmt *from, struct slow_list *list) {
    struct slow_request *more = room_for_one(list->requests, list->count, sizeof *more);
    if (!more) {
        return query_no_memory(s);
    }
    list->requests = more;
    if (!read_request(s, from, &list->texts, &more[list->count])) {
        return false;
    }
    list->count++;
    return true;
}

bool query_slow_list(struct store *s, const struct slow_filter *filter, struct slow_list *out) {
    int rc = SQLITE_ERROR;
    sqlite3_stmt *requests;
    *out = (struct slow_list){0};
    struct mirror_ask ask = {.table = CHANGE_REQUESTS,
                             .node = filter->node,
                             .identity = filter->identity,
                             .requests = MIRROR_LONGEST,
                             .from_ns = time_of_seconds(filter->from_s),
                             .until_ns = time_of_seconds(filter->until_s),
                             .failed = filter->failed,
                             .most = filter->most};
    if (!mirror_empty(s) || !mirror_fill(s, &ask)) {
        return false;
    }
    if (sqlite3_prepare_v2(
            s->db,
            REQUESTS "WHERE begin_ns >= ?1 AND begin_ns < ?2 AND (?3 IS NULL OR " QUERY_AMONG(
                "n.name", "?3") ") "
                                "AND (?4 IS NULL OR " QUERY_AMONG(
                                    "i.name", "?4") ") AND (?5 = 0 OR error = 1) "
                                                    "ORDER BY duration_ns DESC, r.id LIMIT ?6",
            -1, &requests, NULL) != SQLITE_OK) {
        return store_fail(s, "query the slow requests");
    }
    sqlite3_bind_int64(requests, 1, time_of_seconds(filter->from_s));
    sqlite3_bind_int64(requests, 2, time_of_seconds(filter->until_s));
    sqlite3_bind_text(requests, 3, filter->node, -1, SQLITE_STATIC); // NULL binds NULL
    sqlite3_bind_text(requests, 4, filter->identity, -1, SQLITE_STATIC);
    sqlite3_bind_int(requests, 5, filter->failed);
    sqlite3_bind_int64(requests, 6, filter->most);
    bool ok = true;
    while (ok && (rc = sqlite3_step(requests)) == SQLITE_ROW) {
        ok = add_request(s, requests, out);
    }
    ok = ok && (rc == SQLITE_DONE || store_fail(s, "query the slow requests"));
    sqlite3_finalize(requests);
    return ok;
}

void slow_list_free(struct slow_list *list) {
    free(list->requests);
    free_texts(list->texts);
    *list = (struct slow_list){0};
}

// -- one request and its spans --------------------------------------------------------------------

enum {
    SPAN,
    PARENT,
    PID,
    NAME,
    START,
    DURATION,
    SELF,
    WAIT,
    GC,
    OFF_CPU,
    ASYNC,
    OUTCOME,
    CALLER,
    WAITING,
    MEASURED,
    RUN_QUEUE
};

static const char spans_sql[] =
    "SELECT span, parent, pid, t.name, start_ns, duration_ns, self_ns, wait_ns, gc_ns, "
    "off_cpu_ns, async, outcome, caller, waiting_ns, measured, run_queue_ns FROM kept_spans AS k "
    "JOIN tier_names AS t ON t.id = k.tier_id WHERE request_id = ?1 ORDER BY span";

static const char *outcome_text(int64_t outcome) {
    static const char *const texts[] = {"ok", "error", "open"};
    return outcome >= 0 && outcome < 3 ? texts[outcome] : "unknown";
}

// -1: not known.
static int64_t known_ns(sqlite3_stmt *from, int column) {
    return sqlite3_column_type(from, column) == SQLITE_INTEGER ? sqlite3_column_int64(from, column)
                                                               : -1;
}

static bool add_span(struct store *s, sqlite3_stmt *from, struct slow_spans *out) {
    if (sqlite3_column_int64(from, SPAN) != out->count) { // parents would be others
        snprintf(s->error, sizeof s->error, "query a slow request: span %u is missing", out->count);
        return false;
    }
    struct slow_span *more = room_for_one(out->spans, out->count, sizeof *more);
    if (!more) {
        return query_no_memory(s);
    }
    out->spans = more;
    int64_t parent = sqlite3_column_type(from, PARENT) == SQLITE_INTEGER
                         ? sqlite3_column_int64(from, PARENT)
                         : -1;
    bool child = parent >= 0 && parent < out->count;
    struct slow_span span = {.start_ns = sqlite3_column_int64(from, START),
                             .duration_ns = sqlite3_column_int64(from, DURATION),
                             .self_ns = sqlite3_column_int64(from, SELF),
                             .wait_ns = sqlite3_column_int64(from, WAIT),
                             .waiting_ns = known_ns(from, WAITING),
                             .run_queue_ns = known_ns(from, RUN_QUEUE),
                             .measured = sqlite3_column_int64(from, MEASURED) != 0,
                             .gc_ns = sqlite3_column_int64(from, GC),
                             .off_cpu_ns = sqlite3_column_int64(from, OFF_CPU),
                             .parent = child ? (uint32_t)parent : UINT32_MAX,
                             .depth = child ? more[parent].depth + 1 : 0,
                             .name = keep_text(&out->texts, from, NAME),
                             .pid = keep_text(&out->texts, from, PID),
                             .caller = (uint64_t)sqlite3_column_int64(from, CALLER),
                             .outcome = outcome_text(sqlite3_column_int64(from, OUTCOME)),
                             .async = sqlite3_column_int64(from, ASYNC) != 0};
    if (!span.name || !span.pid) {
        return query_no_memory(s);
    }
    more[out->count++] = span;
    return true;
}

static sqlite3_stmt *prepare_for(struct store *s, const char *sql, int64_t id) {
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(s->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        store_fail(s, "query a slow request");
        return NULL;
    }
    sqlite3_bind_int64(statement, 1, id);
    return statement;
}

static bool find_request(struct store *s, int64_t id, bool *found, struct slow_spans *out) {
    sqlite3_stmt *request = prepare_for(s, REQUESTS "WHERE r.id = ?1", id);
    if (!request) {
        return false;
    }
    int rc = sqlite3_step(request);
    bool ok = rc == SQLITE_ROW || rc == SQLITE_DONE || store_fail(s, "query a slow request");
    if (rc == SQLITE_ROW) {
        ok = *found = read_request(s, request, &out->texts, &out->request);
    }
    sqlite3_finalize(request);
    return ok;
}

static bool add_spans(struct store *s, int64_t id, struct slow_spans *out) {
    int rc = SQLITE_ERROR;
    sqlite3_stmt *spans = prepare_for(s, spans_sql, id);
    bool ok = spans;
    while (ok && (rc = sqlite3_step(spans)) == SQLITE_ROW) {
        ok = add_span(s, spans, out);
    }
    ok = ok && (rc == SQLITE_DONE || store_fail(s, "query a slow request"));
    sqlite3_finalize(spans);
    return ok;
}

static const char parts_sql[] =
    "SELECT r.id, n.name, r.begin_ns, r.duration_ns, r.maker_id IS NOT NULL FROM kept_requests AS "
    "one JOIN kept_requests AS r ON r.label = one.label AND r.node_id <> one.node_id JOIN "
    "node_names AS n ON n.id = r.node_id WHERE one.id = ?1 ORDER BY r.begin_ns, r.id";

static bool add_part(struct store *s, sqlite3_stmt *from, struct slow_spans *out) {
    struct slow_part *more = room_for_one(out->parts, out->part_count, sizeof *more);
    if (!more) {
        return query_no_memory(s);
    }
    out->parts = more;
    struct slow_part part = {.id = sqlite3_column_int64(from, 0),
                             .node = keep_text(&out->texts, from, 1),
                             .started_ns = sqlite3_column_int64(from, 2),
                             .duration_ns = sqlite3_column_int64(from, 3),
                             .remote = sqlite3_column_int64(from, 4) != 0};
    if (!part.node) {
        return query_no_memory(s);
    }
    more[out->part_count++] = part;
    return true;
}

static bool add_parts(struct store *s, int64_t id, struct slow_spans *out) {
    int rc = SQLITE_ERROR;
    sqlite3_stmt *parts = prepare_for(s, parts_sql, id);
    bool ok = parts;
    while (ok && (rc = sqlite3_step(parts)) == SQLITE_ROW) {
        ok = add_part(s, parts, out);
    }
    ok = ok && (rc == SQLITE_DONE || store_fail(s, "query a slow request"));
    sqlite3_finalize(parts);
    return ok;
}

// In a mirror: fetches the request, its parts, and its spans.
static bool fetch(struct store *s, int64_t id) {
    struct mirror_ask ask = {.table = CHANGE_REQUESTS, .requests = MIRROR_ONE, .id = id};
    if (!mirror_empty(s) || !mirror_fill(s, &ask)) {
        return false;
    }
    ask.requests = MIRROR_PARTS;
    if (!mirror_fill(s, &ask)) {
        return false;
    }
    ask.requests = MIRROR_ONE;
    ask.table = CHANGE_SPANS;
    return mirror_fill(s, &ask);
}

bool query_slow_spans(struct store *s, int64_t id, bool *found, struct slow_spans *out) {
    *out = (struct slow_spans){0};
    *found = false;
    // One transaction: the writer may let the request go between the two queries.
    if (sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
        return store_fail(s, "query a slow request");
    }
    bool ok = fetch(s, id) && find_request(s, id, found, out) &&
              (!*found || (add_spans(s, id, out) && add_parts(s, id, out)));
    sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
    return ok;
}

void slow_spans_free(struct slow_spans *spans) {
    free(spans->spans);
    free(spans->parts);
    free_texts(spans->texts);
    *spans = (struct slow_spans){0};
}
