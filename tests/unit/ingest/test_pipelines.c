// SPDX-License-Identifier: Apache-2.0
// Two pipelines on two threads that share names: the statistics are those of one after the other.
// Built with the thread sanitizer where the compiler has it.
#include "ingest/pipeline.h"

#include <inttypes.h>
#include <pthread.h>

#include "captures.h"
#include "ingest/pipeline_node.h"
#include "trace_bytes.h"

enum {
    PIPELINES = 2,
    ROUNDS = 250,
    NEW_NAMES = 20, // identities in a round, used in this one only
    OLD_NAMES = 50, // and those that both pipelines use, again and again
    PIECE = 1000    // bytes that are fed at a time
};
static const int64_t SECOND = 1000000000, START = 1000000000000;
_Static_assert(ROUNDS *NEW_NAMES > 2 * LIMIT_IDENTITIES, "names are given back on the way");

// -- what the nodes send --------------------------------------------------------------------------

static struct buffer sent[PIPELINES];
static size_t ends[PIPELINES][ROUNDS];

static void call(uint32_t pid, uint32_t label, int64_t time) {
    size_t at = frame_begin();
    put_call(pid, label, pid, time);
    frame_end(at);
    at = frame_begin();
    put_return_head(pid);
    put_atom("ok");
    put_big(time + 2000000);
    frame_end(at);
}

static void request(uint32_t label, const char *name, int64_t time) {
    uint32_t pid = label;
    frame_mark("request_begin", pid, label, name, time);
    call(pid, label, time + 1000000);
    frame_mark("request_end", pid, label, "ok", time + 5000000 + label);
}

// A round of ten seconds: requests, and one call for a request of the other pipeline's node.
static void script(uint32_t pipeline) {
    char name[32];
    uint32_t label = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        int64_t time = START + round * 10 * SECOND;
        labels_start = 1 + pipeline;
        for (uint32_t i = 0; i < NEW_NAMES; i++) {
            snprintf(name, sizeof name, "new%u_%u", pipeline, round * NEW_NAMES + i);
            request(++label, name, time += SECOND / 100);
        }
        for (uint32_t i = 0; i < OLD_NAMES; i++) {
            snprintf(name, sizeof name, "old%u", i);
            request(++label, name, time += SECOND / 100);
        }
        labels_start = PIPELINES - pipeline;
        call(1000000 + round, round + 1, time + SECOND / 100);
        ends[pipeline][round] = out.len;
    }
    sent[pipeline] = out;
    out = buffer_make(64 << 20);
}

static struct slice round_bytes(uint32_t pipeline, uint32_t round) {
    size_t from = round > 0 ? ends[pipeline][round - 1] : 0;
    return slice_of(sent[pipeline].data + from, ends[pipeline][round] - from);
}

static struct slice files[CAPTURES];

static void read_captures(void) {
    for (uint32_t i = 0; i < CAPTURES; i++) {
        char path[256];
        struct buffer b = buffer_make(64 << 20);
        uint8_t piece[65536];
        size_t n;
        snprintf(path, sizeof path, TEST_DATA "/%s.cap", captures[i]);
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        while ((n = fread(piece, 1, sizeof piece, f)) > 0) {
            buffer_append(&b, piece, n);
        }
        fclose(f);
        files[i] = slice_of(b.data, b.len);
    }
}

// -- a pipeline with what it has told -------------------------------------------------------------

struct worker {
    uint32_t number;
    struct pipeline *pipeline;
    struct pipeline_node *live, *other;
    struct stats *spare;
    struct buffer told; // its statistics as text
    bool failed;
};

static void tell_path(struct buffer *b, const struct directory *d, uint32_t path) {
    if (path == PATH_OTHER) {
        buffer_text(b, " _other");
        return;
    }
    for (; path != PATH_ROOT; path = d->paths.all[path].parent) {
        buffer_printf(b, " < %s", names_text(&d->tiers, d->paths.all[path].tier));
    }
}

static void tell(struct worker *w, const struct stats *s) {
    const struct directory *d = pipeline_directory(w->pipeline);
    for (uint32_t i = 0; i < stats_rows(s); i++) {
        const struct stat_row *r = stats_row_at(s, i);
        buffer_printf(&w->told,
                      "%" PRId64 " %s %s %s: %lu requests %lu calls, %lu ns, %lu self, %lu to %lu, "
                      "histogram %lu\n",
                      r->key.bucket_start, names_text(&d->nodes, r->key.node),
                      names_text(&d->identities, r->key.identity),
                      names_text(&d->tiers, r->key.tier), r->requests, r->calls, r->total_ns,
                      r->self_ns, r->min_ns, r->max_ns, histogram_count(&r->durations));
    }
    for (uint32_t i = 0; i < stats_paths(s); i++) {
        const struct path_row *r = stats_path_at(s, i);
        buffer_printf(&w->told, "%" PRId64 " %s %s", r->bucket_start,
                      names_text(&d->nodes, r->node), names_text(&d->identities, r->identity));
        tell_path(&w->told, d, r->path);
        buffer_printf(&w->told, ": %lu calls\n", r->calls);
    }
    for (uint32_t i = 0; i < stats_ledgers(s); i++) {
        const struct ledger_row *r = stats_ledger_at(s, i);
        buffer_printf(&w->told, "%" PRId64 " %s:", r->bucket_start, names_text(&d->nodes, r->node));
#define TELL_COUNT(column) buffer_printf(&w->told, " " #column " %lu", (unsigned long)r->column);
        LEDGER_COLUMNS(TELL_COUNT)
#undef TELL_COUNT
        buffer_text(&w->told, "\n");
    }
}

static void swap(struct worker *w) {
    stats_reset(w->spare);
    w->spare = pipeline_swap(w->pipeline, w->spare);
    tell(w, w->spare);
}

static struct pipeline_node *node(struct worker *w, const char *name, bool live) {
    static const struct {
        const char *m, *f;
        unsigned arity;
    } functions[] = {{"db", "query", 2}, {"t", "body", 1},  {"t", "leaf", 1},
                     {"t", "tail", 1},   {"t", "count", 1}, {"b1", "f", 1}};
    struct tier_set set;
    struct pipeline_node *n = pipeline_node(w->pipeline, slice_text(name));
    if (!n || !tier_set_init(&set)) {
        w->failed = true;
        return NULL;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        uint16_t tier = directory_tier_of(pipeline_directory(w->pipeline), pipeline_node_id(n),
                                          slice_text(functions[i].f));
        tier_set_add(&set, slice_text(functions[i].m), slice_text(functions[i].f),
                     functions[i].arity, tier);
    }
    pipeline_set_tiers(n, set);
    pipeline_set_clock(n, SECOND, 0);
    w->failed =
        w->failed || !pipeline_begin(n, &(struct pipeline_stream){
                                            .live = live, .markers = true, .entry = TIER_NONE});
    return n;
}

static void feed(struct worker *w, struct pipeline_node *n, struct slice bytes) {
    for (size_t at = 0; at < bytes.len; at += PIECE) {
        size_t len = bytes.len - at < PIECE ? bytes.len - at : PIECE;
        w->failed = pipeline_feed(n, slice_of(bytes.data + at, len)) >= 0 || w->failed;
    }
}

static void *run(void *worker) {
    struct worker *w = worker;
    int64_t cut;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        int64_t now = START + round * 10 * SECOND;
        pipeline_tick(w->pipeline, (struct pipeline_now){now, now});
        feed(w, w->live, round_bytes(w->number, round));
        // another node begins trace after trace
        pipeline_set_labels(w->other, 100 + 2 * round + w->number);
        pipeline_tick(w->pipeline, (struct pipeline_now){now + 9 * SECOND, now + 9 * SECOND});
        swap(w);
    }
    pipeline_end(w->live, true, &cut);
    for (uint32_t i = 0; i < CAPTURES; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%u@h", captures[i], w->number);
        struct pipeline_node *n = node(w, name, false);
        if (n) {
            feed(w, n, files[i]);
            pipeline_end(n, true, &cut);
        }
        swap(w);
    }
    return NULL;
}

// Both pipelines, at the same time or one after the other, and what they tell.
static void run_both(bool threads, struct buffer told[PIPELINES]) {
    struct pipeline_names *names = pipeline_names_new(PIPELINES);
    struct worker workers[PIPELINES];
    pthread_t ids[PIPELINES];
    assert_non_null(names);
    for (uint32_t i = 0; i < PIPELINES; i++) {
        struct worker *w = &workers[i];
        *w = (struct worker){.number = i, .told = buffer_make(256 << 20)};
        w->pipeline = pipeline_new(
            &(struct pipeline_options){.names = names, .bucket_s = 10, .timeout_ns = 30 * SECOND});
        assert_non_null(w->pipeline);
        w->spare = pipeline_stats_new(w->pipeline);
        assert_non_null(w->spare);
        pipeline_tick(w->pipeline, (struct pipeline_now){START, START});
        w->live = node(w, i == 0 ? "a@h" : "b@h", true);
        w->other = node(w, i == 0 ? "c@h" : "d@h", true);
        assert_false(w->failed);
        pipeline_set_labels(w->live, 1 + i);
    }
    // no more than were told of, and a node is one pipeline's
    assert_null(pipeline_new(
        &(struct pipeline_options){.names = names, .bucket_s = 10, .timeout_ns = SECOND}));
    assert_null(pipeline_node(workers[0].pipeline, slice_text("b@h")));
    for (uint32_t i = 0; i < PIPELINES; i++) {
        if (threads) {
            assert_int_equal(pthread_create(&ids[i], NULL, run, &workers[i]), 0);
        } else {
            run(&workers[i]);
        }
    }
    for (uint32_t i = 0; threads && i < PIPELINES; i++) {
        pthread_join(ids[i], NULL);
    }
    for (uint32_t i = 0; i < PIPELINES; i++) {
        struct worker *w = &workers[i];
        assert_false(w->failed || w->told.failed);
        pipeline_free(w->pipeline);
        stats_free(w->spare);
        buffer_append(&w->told, "", 1);
        told[i] = w->told;
    }
    pipeline_names_free(names);
}

static void as_one_after_the_other(void **state) {
    (void)state;
    struct buffer alone[PIPELINES], together[PIPELINES];
    out = buffer_make(64 << 20);
    for (uint32_t i = 0; i < PIPELINES; i++) {
        script(i);
    }
    read_captures();
    run_both(false, alone);
    run_both(true, together);
    for (uint32_t i = 0; i < PIPELINES; i++) {
        const char *told = (const char *)alone[i].data;
        assert_string_equal((const char *)together[i].data, told);
        // and they are what was sent
        assert_non_null(strstr(told, i == 0 ? "a@h new0_4999 query: 1 requests 1 calls"
                                            : "b@h new1_4999 query: 1 requests 1 calls"));
        assert_non_null(
            strstr(told, i == 0 ? "a@h old49 query: 1 requests" : "b@h old49 query: 1 requests"));
        assert_non_null(strstr(told, "@h _remote query"));
        assert_null(strstr(told, "@h _other"));
        buffer_free(&alone[i]);
        buffer_free(&together[i]);
        buffer_free(&sent[i]);
    }
    for (uint32_t i = 0; i < CAPTURES; i++) {
        free((void *)files[i].data);
    }
    buffer_free(&out);
}

// What takes memory in the place of open requests takes it from all pipelines, or from none.
static void spared_by_all(void **state) {
    (void)state;
    enum { MOST = 170, OPEN = 8000 }; // MB, and requests of which a half has no room in the rest
    struct pipeline_names *names = pipeline_names_new(PIPELINES);
    struct worker workers[PIPELINES] = {0};
    for (uint32_t i = 0; i < PIPELINES; i++) {
        struct worker *w = &workers[i];
        w->pipeline = pipeline_new(
            &(struct pipeline_options){.names = names, .bucket_s = 10, .timeout_ns = 30 * SECOND});
        assert_non_null(w->pipeline);
        pipeline_tick(w->pipeline, (struct pipeline_now){START, START});
        w->live = node(w, i == 0 ? "a@h" : "b@h", true);
    }
    struct pipeline *a = workers[0].pipeline, *b = workers[1].pipeline;
    assert_int_equal(pipeline_siblings(b), 2);
    assert_ptr_equal(pipeline_sibling(b, 0), a);
    assert_ptr_equal(pipeline_of(workers[1].live), b);
    assert_true(pipeline_spare(b, SPARED_TRACES, MOST));
    assert_int_equal(a->spared[SPARED_TRACES], MOST);
    assert_int_equal(b->spared[SPARED_TRACES], MOST);
    assert_true(pipeline_spare(a, SPARED_TRACES, 0));
    out = buffer_make(64 << 20);
    labels_start = 0;
    for (uint32_t i = 1; i <= OPEN; i++) {
        frame_mark("request_begin", i, i, "open", START);
    }
    feed(&workers[1], workers[1].live, slice_of(out.data, out.len));
    assert_false(pipeline_spare(a, SPARED_TRACES, MOST));
    assert_int_equal(a->spared[SPARED_TRACES], 0);
    assert_int_equal(b->spared[SPARED_TRACES], 0);
    assert_true(pipeline_spare(a, SPARED_TRACES, MOST / 2));
    bool used[LIMIT_NODES];
    pipeline_used_nodes(a, used);
    assert_true(used[pipeline_node_id(workers[0].live)] && used[pipeline_node_id(workers[1].live)]);
    buffer_free(&out);
    pipeline_free(a);
    pipeline_free(b);
    pipeline_names_free(names);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_one_after_the_other),
                                       cmocka_unit_test(spared_by_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
