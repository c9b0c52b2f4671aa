// SPDX-License-Identifier: Apache-2.0
// The sum in base/limits.h is true: each of its lines that is memory of ours is filled to the brim
// here, in a process of its own, and takes no more than the line says, nor much less.
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "ingest/pipeline.h"
#include "model/message/message.h"
#include "model/profile/flame.h"
#include "model/profile/full_trace.h"
#include "model/profile/sample_taker.h"
#include "model/profile/sample_weights.h"
#include "model/requests/requests.h"
#include "model/stats/keep.h"
#include "model/stats/live.h"
#include "unit.h"

enum { MB = 1000000, OCTAVES = 64 };

static int64_t resident(void) {
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*d %ld", &pages), 1);
    fclose(f);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

// Bytes that filling takes, in a process of its own.
static int64_t taken_by(void (*fill)(void)) {
    int ends[2];
    int64_t taken = -1;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        int64_t before = resident();
        fill();
        taken = resident() - before;
        _exit(write(ends[1], &taken, sizeof taken) != sizeof taken);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &taken, sizeof taken), sizeof taken);
    close(ends[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return taken;
}

static void expect(const char *line, void (*fill)(void), int64_t besides, int64_t most_mb) {
    int64_t taken = taken_by(fill) + besides;
    print_message("%s: %lld MB of %lld\n", line, (long long)(taken / MB), (long long)most_mb);
#ifndef __SANITIZE_ADDRESS__
    assert_true(taken <= most_mb * MB);
    assert_true(taken >= most_mb * MB / 2);
#endif
}

// -- requests -------------------------------------------------------------------------------------

static void on_finished(void *context, const struct request_result *result) {
    (void)context;
    (void)result;
}

static uint16_t on_identity(void *context, struct slice name) {
    (void)context;
    (void)name;
    return IDENTITY_UNDEFINED;
}

static void on_never_returns(void *context, uint16_t tier) {
    (void)context;
    (void)tier;
}

// One node that has all: open requests with names and spans, processes, calls with costs, and its
// indexes.
static void fill_requests_of(struct request_pool *pool) {
    struct tracker_options options = {.timeout_ns = INT64_MAX / 4,
                                      .markers = true,
                                      .entry = TIER_NONE,
                                      .events = {.finished = on_finished,
                                                 .identity = on_identity,
                                                 .never_returns = on_never_returns}};
    struct tracker *t = tracker_new(pool, &options);
    for (uint64_t i = 0; i < LIMIT_OPEN_REQUESTS; i++) {
        struct tracker_call call = {
            .pid = i + 1, .token = i + 1, .from = i + 1, .time = (int64_t)i};
        struct request_ref ref = tracker_begin(t, &call);
        char name[LIMIT_NAME_BYTES + 1];
        memset(name, 'x', LIMIT_NAME_BYTES);
        name[LIMIT_NAME_BYTES] = 0;
        tracker_name_begun(t, ref, slice_text(name));
    }
    for (uint64_t i = 0; i < LIMIT_OPEN_CALLS; i++) {
        uint64_t pid = 1 + i % LIMIT_PROCESSES;
        struct tracker_call call = {.pid = pid,
                                    .token = 1 + i % LIMIT_OPEN_REQUESTS,
                                    .from = pid,
                                    .time = (int64_t)i,
                                    .tier = 1};
        tracker_call(t, &call);
        tracker_pause(t, pid, PAUSE_GC, true, (int64_t)i + 1);
        tracker_pause(t, pid, PAUSE_GC, false, (int64_t)i + 2);
    }
    // messages that were taken, and spans that have ended, in one process
    for (uint64_t i = 0; i < LIMIT_HOPS; i++) {
        struct tracker_call call = {.pid = 1, .token = 1, .from = 2, .time = 10000000};
        tracker_taken(t, &call);
    }
    for (uint64_t i = 0; i < 7ULL * LIMIT_SPAN_CHUNKS; i++) {
        struct tracker_call call = {
            .pid = 1, .token = 1 + i % LIMIT_OPEN_REQUESTS, .from = 1, .time = 10000000, .tier = 2};
        tracker_call(t, &call);
        tracker_return(t, 1, 2, false, 10000001);
    }
}

static void fill_requests(void) {
    fill_requests_of(request_pool_new());
}

static void fill_spared(void) {
    struct request_pool *pool = request_pool_new();
    assert_true(request_pool_spare(pool, LIMIT_MB_PROFILES + LIMIT_MB_SAMPLES));
    fill_requests_of(pool);
    assert_false(request_pool_open(pool) > LIMIT_OPEN_REQUESTS / 9);
}

// -- statistics -----------------------------------------------------------------------------------

static void count(struct stat_row *row) {
    for (unsigned bit = 0; row && bit < OCTAVES; bit++) {
        stats_count(row, 1ULL << bit);
    }
}

static void fill_set(void) {
    static struct kept_span spans[LIMIT_KEPT_SPANS];
    struct stats *s = stats_new();
    for (int64_t b = 0; !stats_overflowed(s); b += 10) {
        for (uint16_t tier = 1; tier <= 200; tier++) {
            count(stats_row(s, (struct stat_key){b, (uint16_t)(tier % LIMIT_NODES), 77, tier}));
        }
    }
    for (int64_t b = 0; b < LIMIT_STAT_ROWS; b += 10) { // others of _other, so that _total has all
        for (uint16_t tier = 301; tier <= 500; tier++) {
            count(stats_row(
                s, (struct stat_key){b, (uint16_t)(tier % LIMIT_NODES), IDENTITY_OTHER, tier}));
        }
    }
    for (uint32_t i = 0; i < LIMIT_STAT_ROWS; i++) {
        stats_ledger(s, i, 1)->messages++;
        stats_cost(s, i, 1, 1);
    }
    for (uint32_t i = 0; stats_path(s, 0, 1, (uint16_t)(i / LIMIT_PATHS), 1 + i % LIMIT_PATHS);
         i++) {
    }
    memset(spans, 1, sizeof spans);
    while (stats_keep(s, &(struct kept_request){.count = LIMIT_KEPT_SPANS}, spans)) {
    }
    stats_add_totals(s);
}

static void fill_statistics(void) {
    fill_set();
    fill_set();
}

static void fill_keep(void) {
    struct keep *k = keep_new();
    struct account a = {.stats = stats_new(), .bucket_s = 10};
    struct request_result r = {.end = 100};
    for (; a.node < LIMIT_NODES; a.node++) {
        for (r.identity = 4; r.identity < LIMIT_IDENTITIES; r.identity++) {
            keep_offer(k, &a, &r, INT64_MAX);
        }
        stats_reset(a.stats);
    }
}

// -- nodes ----------------------------------------------------------------------------------------

static void fill_nodes(void) {
    struct pipeline *p = pipeline_new(
        &(struct pipeline_options){.bucket_s = 10, .timeout_ns = 30000000000, .shared = true});
    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        char text[100];
        struct tier_set set;
        snprintf(text, sizeof text, "a.node.of.a.long.name.%u@host.example.org", i);
        struct pipeline_node *n = pipeline_node(p, slice_text(text));
        assert_true(tier_set_init(&set));
        for (uint32_t k = 0; k < LIMIT_TIERS; k++) {
            snprintf(text, sizeof text,
                     "a.module.whose.name.is.as.long.as.they.come.and.then.some.more.of.it.%u", k);
            uint32_t tier = 1 + k * (LIMIT_TIER_NAMES / LIMIT_TIERS); // far apart
            tier_set_add(&set, slice_text(text), slice_text("function"), 2, (uint16_t)tier);
        }
        pipeline_set_tiers(n, set);
        assert_true(pipeline_begin(
            n, &(struct pipeline_stream){.live = true, .markers = true, .entry = TIER_NONE}));
    }
}

static void fill_watched(void) {
    for (uint32_t tool = 0; tool < LIMIT_TOOLS; tool++) {
        struct live *l = live_new();
        for (uint16_t identity = 4; identity < LIMIT_IDENTITIES + 4; identity++) {
            for (unsigned bit = 0; bit < OCTAVES - 1; bit++) {
                live_add(l, &(struct request_result){
                                .fate = REQUEST_COMPLETE, .identity = identity, .end = 1LL << bit});
            }
        }
    }
}

// -- profiles -------------------------------------------------------------------------------------

// The function of a number: its module and itself, as long as names may be, and told apart.
static struct slice function_of(uint32_t number, char text[LIMIT_NAME_BYTES + 1]) {
    memset(text, 'x', LIMIT_NAME_BYTES);
    text[LIMIT_NAME_BYTES] = 0;
    text[snprintf(text, LIMIT_NAME_BYTES, "%u", number)] = '_';
    return slice_text(text);
}

// Calls of all functions, each open below the next one of its process, until there is room for none
// any more: of requests, processes, open calls, lines of time; the last ones are held back.
static void fill_full_trace(struct full_trace *f) {
    enum { MESSAGES = 400000 };
    for (uint32_t i = 0; i < MESSAGES; i++) {
        char text[LIMIT_NAME_BYTES + 1];
        uint32_t process = i % LIMIT_FULL_PROCESSES;
        bool first = i < LIMIT_FULL_REQUESTS; // the others join these
        struct slice name = function_of(i * 7919 % LIMIT_PROFILE_FRAMES, text);
        struct message m = {.kind = MESSAGE_CALL,
                            .pid = 1 + process,
                            .has_token = true,
                            .token = 1 + process % LIMIT_FULL_REQUESTS,
                            .from = 1 + process % LIMIT_FULL_REQUESTS,
                            .name = name,
                            .module.text = name,
                            .function.text = slice_text("f")};
        full_trace_message(f, &m, i, first ? FULL_IS_ENTRY : FULL_PLAIN);
    }
    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct message m = {.kind = i / LIMIT_FULL_PROCESSES % 2 ? MESSAGE_IN : MESSAGE_OUT,
                            .pid = 1 + i % LIMIT_FULL_PROCESSES};
        full_trace_message(f, &m, MESSAGES + i, FULL_PLAIN);
    }
}

static void fill_profile(struct profile *p) {
    char text[LIMIT_NAME_BYTES + 1];
    for (uint32_t i = 0; i < LIMIT_PROFILE_FRAMES; i++) {
        struct slice name = function_of(LIMIT_PROFILE_FRAMES + i, text);
        stacks_frame(&p->stacks, FRAME_FUNCTION, name, name);
        profile_module(p, function_of(i, text), slice_text("application"));
    }
    for (uint32_t i = 1; p->stacks.stack_count < LIMIT_PROFILE_STACKS; i++) {
        stacks_push(&p->stacks, i / LIMIT_PROFILE_FRAMES, i % LIMIT_PROFILE_FRAMES);
    }
    for (uint32_t i = 1; i < LIMIT_PROFILE_WEIGHTS; i++) {
        profile_add(p, profile_key(i, 0, PROFILE_NOBODY), 1, 1);
    }
    for (uint32_t i = 0; i <= LIMIT_PROCESS_WEIGHTS; i++) {
        profile_add(p, profile_key(i, 0, 1), 1, 1);
    }
    for (int64_t i = 0; i < LIMIT_TIMELINE_EVENTS; i++) {
        struct timeline_event e = {i, (uint32_t)i, 0, TIMELINE_RUNS};
        timeline_add(&p->timeline, &e, LIMIT_TIMELINE_EVENTS);
    }
}

// The writer has one profile as a tree, and the part of an identity besides.
static void fill_trees(const struct profile *p) {
    struct flame_options options = {.metric = p->samples ? FLAME_SAMPLES : FLAME_WALL};
    for (int i = 0; i < 2; i++) {
        struct flame_tree tree;
        assert_true(flame_tree_init(&tree) && flame_tree_add(&tree, p, &options, FLAME_AFTER) &&
                    flame_tree_finish(&tree));
    }
}

// All full traces that there may be.
static void fill_profiles(void) {
    struct profile *p = NULL;
    for (uint32_t i = 0; i < LIMIT_FULL_TRACES; i++) {
        struct full_trace *f = full_trace_new(
            &(struct full_trace_options){.requests = UINT32_MAX, .scheduling = true});
        assert_non_null(f);
        fill_full_trace(f);
        p = full_trace_profile(f);
        fill_profile(p);
        assert_int_equal(p->stacks.frame_count, LIMIT_PROFILE_FRAMES);
        assert_int_equal(p->stacks.stack_count, LIMIT_PROFILE_STACKS);
        assert_int_equal(p->of_processes, LIMIT_PROCESS_WEIGHTS);
    }
    fill_trees(p);
}

static void take(struct sample_taker *t, struct buffer *b, struct sample_record r, bool now) {
    sample_record_write(b, &r);
    if (now || b->len > 20000) {
        assert_true(sample_taker_take(t, slice_of(b->data, b->len)));
        buffer_reset(b);
    }
}

// What a shim tells of a run.
struct telling {
    uint32_t frames, stacks, processes; // stacks of the profile
    size_t bytes;                       // of looks
};

static void fill_samples(struct sample_taker *t, struct profile *p, const struct telling *told) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    char text[LIMIT_NAME_BYTES + 1];
    for (uint32_t i = 0; i < told->frames; i++) {
        struct slice name = function_of(LIMIT_PROFILE_FRAMES + i, text);
        struct sample_record frame = {.kind = SAMPLE_FRAME, .texts = {name, slice_text("f")}};
        take(t, &b, frame, true);
    }
    uint32_t stacks = 0;
    for (; stacks < LIMIT_SAMPLE_STACKS && p->stacks.stack_count < told->stacks; stacks++) {
        struct sample_record stack = {.kind = SAMPLE_STACK, .frame_count = 3};
        for (uint32_t f = 0; f < 3; f++) {
            stack.frames[f] = f ? (stacks * f) % told->frames : stacks / told->frames;
        }
        take(t, &b, stack, true);
    }
    for (uint32_t i = 0; i < told->processes; i++) {
        char pid[MESSAGE_PID_BYTES];
        snprintf(pid, sizeof pid, "<0.%u.%u>", i, i);
        struct slice name = function_of(2 * LIMIT_PROFILE_FRAMES + i, text);
        struct sample_record process = {.kind = SAMPLE_PROCESS, .texts = {slice_text(pid), name}};
        take(t, &b, process, true);
    }
    for (uint64_t i = 0; !p->samples->full && p->samples->records.len < told->bytes; i++) {
        struct sample_record look = {.kind = SAMPLE_LOOK,
                                     .process = (uint32_t)(i % told->processes),
                                     .stack = 1 + (uint32_t)(i % stacks)};
        take(t, &b, (struct sample_record){.kind = SAMPLE_TIME, .number = 250000}, false);
        take(t, &b, look, false);
    }
    buffer_free(&b);
}

// A run that was told so much; the bytes that it counts as.
static struct profile *fill_run(const struct telling *told, size_t *bytes) {
    struct profile *p = calloc(1, sizeof *p);
    assert_true(p && profile_init(p));
    struct sample_taker *t = sample_taker_new(p);
    assert_non_null(t);
    fill_samples(t, p, told);
    *bytes += sample_taker_bytes(t) + samples_bytes(p->samples) + stacks_bytes(&p->stacks);
    return p;
}

// Runs that have all that a run may have, until there is no room for more, and others that have
// what they are sure of. One is written: it is weighed, and its seconds are copied.
static void fill_runs(void) {
    const struct telling most = {LIMIT_SAMPLE_FRAMES, UINT32_MAX, LIMIT_SAMPLE_PROCESSES, SIZE_MAX},
                         sure = {200, 200, 200, LIMIT_SURE_RUN_BYTES / 5};
    struct profile *p = NULL;
    size_t bytes = 0, few = 0;
    for (uint32_t i = 0; i < LIMIT_STACK_RUNS + LIMIT_STANDING_RUNS; i++) {
        if (bytes < LIMIT_RUNS_BYTES) {
            p = fill_run(&most, &bytes);
        } else {
            few = 0;
            fill_run(&sure, &few);
            assert_true(few > LIMIT_SURE_RUN_BYTES / 2 && few <= LIMIT_SURE_RUN_BYTES);
        }
    }
    assert_true(few > 0);
    assert_true(samples_weigh(p, &(struct sample_choice){.kept = true}));
    fill_trees(p);
    struct buffer copy = buffer_make(p->samples->records.len);
    assert_true(buffer_append(&copy, p->samples->records.data, p->samples->records.len));
}

// -- the lines ------------------------------------------------------------------------------------

static void every_line(void **state) {
    (void)state;
    enum { SLOT = 16, MAPS = 3 * 2048 * SLOT }; // of a node: answers, questions, names of functions
    // for the largest request
    enum { SCRATCH = 490 * LIMIT_SPANS_PER_REQUEST + 40 * LIMIT_SPAWNS_PER_REQUEST };
    _Static_assert(LIMIT_ASK_CACHE <= 1536 && LIMIT_ASKS_OPEN <= 1536 &&
                       LIMIT_FUNCTION_NAMES <= 1536,
                   "they fit 2048 slots each");
    expect("requests", fill_requests, SCRATCH, LIMIT_MB_REQUESTS);
    expect("statistics", fill_statistics, 0, LIMIT_MB_STATISTICS);
    expect("what kept requests are compared with", fill_keep, 0, LIMIT_MB_KEPT);
    expect("nodes", fill_nodes, (int64_t)LIMIT_NODES * MAPS, LIMIT_MB_NODES);
    expect("watched nodes", fill_watched, 0, LIMIT_MB_WATCHED);
    // while the second tree is put in order
    enum { ORDER = LIMIT_PROFILE_STACKS * (sizeof(struct flame_node) + 20) };
    expect("profiles", fill_profiles, ORDER, LIMIT_MB_PROFILES);
    expect("runs of stack sampling", fill_runs, 0, LIMIT_MB_SAMPLES);
    expect("requests beside them", fill_spared, SCRATCH,
           LIMIT_MB_REQUESTS - LIMIT_MB_PROFILES - LIMIT_MB_SAMPLES);
}

// What is not ours to allocate: as many bytes as the caps say.
static void connections(void **state) {
    (void)state;
    const int64_t sessions = LIMIT_NODES + LIMIT_TOOLS;
    // begun frames; a buffer is twice what is in it at most
    int64_t bytes = LIMIT_PARTIAL_BYTES + 2LL * LIMIT_NODES * LIMIT_SURE_BYTES;
    // what waits to be read by others
    bytes += LIMIT_OUTPUT_ALL_BYTES + sessions * LIMIT_SURE_BYTES;
    bytes += LIMIT_CONTROL_LARGE * (int64_t)LIMIT_CONTROL_BYTES + sessions * LIMIT_CONTROL_SMALL +
             (LIMIT_NEWCOMERS * LIMIT_HELLO_BYTES);
    print_message("connections: %lld MB of %d\n", (long long)(bytes / MB), LIMIT_MB_CONNECTIONS);
    assert_true(bytes <= (int64_t)LIMIT_MB_CONNECTIONS * MB &&
                bytes >= (int64_t)LIMIT_MB_CONNECTIONS * MB / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_line),
        cmocka_unit_test(connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
