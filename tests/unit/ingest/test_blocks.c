// SPDX-License-Identifier: Apache-2.0
// Blocks through the pipeline: they tell what terms tell; their losses and damage.
#include <inttypes.h>

#include "ingest/pipeline_node.h"
#include "ledger_sum.h"
#include "native_bytes.h"
#include "trace_bytes.h"

#define MS 1000000LL
static const int64_t SECOND = 1000000000;

static struct pipeline *p;
static struct pipeline_node *n;
static struct native_writer writer;
static struct buffer blocks;

static void start(bool live) {
    struct tier_set set;
    p = pipeline_new(&(struct pipeline_options){.bucket_s = 10, .timeout_ns = 30 * SECOND});
    assert_non_null(p);
    n = pipeline_node(p, slice_text("n@h"));
    assert_non_null(n);
    assert_true(tier_set_init(&set));
    tier_set_add(&set, slice_text("db"), slice_text("query"), 2,
                 directory_tier(pipeline_directory(p), slice_text("db")));
    pipeline_set_tiers(n, set);
    assert_true(pipeline_begin(
        n, &(struct pipeline_stream){.live = live, .markers = true, .entry = TIER_NONE}));
}

static void stop(void) {
    pipeline_free(p);
    p = NULL;
}

static int setup(void **state) {
    (void)state;
    out = buffer_make(64 << 20);
    blocks = buffer_make(64 << 20);
    start(false);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    stop();
    buffer_free(&out);
    buffer_free(&blocks);
    return 0;
}

static void end(void) {
    int64_t cut;
    assert_false(pipeline_end(n, true, &cut));
}

static void call(uint32_t pid, uint32_t label, int64_t time) {
    size_t at = frame_begin();
    put_call(pid, label, pid, time);
    frame_end(at);
}

static void ret(uint32_t pid, int64_t time) {
    size_t at = frame_begin();
    put_return_head(pid);
    put_atom("ok");
    put_big(time);
    frame_end(at);
}

// What was put as terms is fed as blocks of so many messages.
static int64_t feed(uint32_t most) {
    buffer_reset(&blocks);
    native_of_terms(slice_of(out.data, out.len), most, &blocks);
    buffer_reset(&out);
    return pipeline_feed(n, slice_of(blocks.data, blocks.len));
}

static void begin_request(uint32_t id, int64_t time) {
    frame_mark("request_begin", id, id, "create", time);
}

static void end_request(uint32_t id, int64_t time) {
    frame_mark("request_end", id, id, "ok", time);
}

static void request(uint32_t id, int64_t time) {
    begin_request(id, time);
    call(id, id, time + 3 * MS);
    ret(id, time + 5 * MS);
    end_request(id, time + 10 * MS);
}

static void feed_loss_of(uint8_t flags, int64_t from, int64_t until, uint64_t messages) {
    static const uint8_t node[] = {TERM_SMALL_ATOM_UTF8, 3, 'n', '@', 'h'};
    struct told loss = {.kind = NATIVE_LOST, .time = from, .until = until, .messages = messages};
    assert_int_equal(feed(100), -1); // what was before it
    buffer_reset(&blocks);
    native_open(&writer, &blocks, flags, slice_of(node, sizeof node), from - 5);
    native_tell(&writer, &loss);
    native_close(&writer);
    assert_int_equal(pipeline_feed(n, slice_of(blocks.data, blocks.len)), -1);
}

static void feed_loss(int64_t from, int64_t until, uint64_t messages) {
    feed_loss_of(0, from, until, messages);
}

// All statistics but bytes.
static void tell(struct buffer *b) {
    const struct stats *s = pipeline_stats(p);
    const struct directory *d = pipeline_directory(p);
    struct ledger_row sum = ledger_sum(p);
    buffer_reset(b);
    for (uint32_t i = 0; i < stats_rows(s); i++) {
        const struct stat_row *r = stats_row_at(s, i);
        buffer_printf(b, "%" PRId64 " %s %s: %lu %lu %lu ns %lu %lu\n", r->key.bucket_start,
                      names_text(&d->identities, r->key.identity),
                      names_text(&d->tiers, r->key.tier), (unsigned long)r->requests,
                      (unsigned long)r->calls, (unsigned long)r->total_ns,
                      (unsigned long)r->self_ns, (unsigned long)r->min_ns);
    }
    sum.bytes = 0;
#define TELL_COUNT(column) buffer_printf(b, " " #column " %lu", (unsigned long)sum.column);
    LEDGER_COLUMNS(TELL_COUNT)
#undef TELL_COUNT
    buffer_append(b, "", 1);
    assert_false(b->failed);
}

// A spawned process that works on, in a function that the tiers know by heart.
static void spawn(uint32_t pid, uint32_t child, int64_t time) {
    size_t at = frame_begin();
    put_head(6, "trace_ts", pid);
    put_atom("call");
    put_function("erlang", "spawn", 3);
    put_tuple(2);
    put_token(pid, pid);
    put_atom("undefined");
    put_big(time);
    frame_end(at);
    at = frame_begin();
    put_head(6, "trace_ts", pid);
    put_atom("return_from");
    put_function("erlang", "spawn", 3);
    put_pid("n@h", child, 0, 5);
    put_big(time + 1000);
    frame_end(at);
    call(child, pid, time + MS);
    ret(child, time + 2 * MS);
}

static void same_as_terms(void **state) {
    (void)state;
    struct buffer terms = buffer_make(1 << 20), told = buffer_make(1 << 20);
    static const size_t pieces[] = {SIZE_MAX, 1, 17, 4096};
    static const uint32_t most[] = {1, 4, 1000};
    uint64_t random = 3;
    for (uint32_t i = 1; i < 300; i++) {
        request(i, i * 20 * MS);
        begin_request(1000 + i, i * 20 * MS + 11 * MS);
        spawn(1000 + i, 2000 + i, i * 20 * MS + 12 * MS);
        end_request(1000 + i, i * 20 * MS + 15 * MS);
        if (random_u64(&random) % 32 == 0) {
            frame_dropped(3);
        }
    }
    assert_int_equal(pipeline_feed(n, slice_of(out.data, out.len)), -1);
    end();
    tell(&terms);
    assert_true(pipeline_totals(n).complete > 500 && pipeline_totals(n).incomplete > 5);
    for (size_t k = 0; k < sizeof most / sizeof *most; k++) {
        buffer_reset(&blocks);
        native_of_terms(slice_of(out.data, out.len), most[k], &blocks);
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
            stop();
            start(false);
            for (size_t at = 0, piece; at < blocks.len; at += piece) {
                piece = pieces[i] < blocks.len - at ? pieces[i] : blocks.len - at;
                assert_int_equal(pipeline_feed(n, slice_of(blocks.data + at, piece)), -1);
            }
            end();
            tell(&told);
            assert_string_equal((char *)told.data, (char *)terms.data);
            assert_int_equal(ledger_sum(p).bytes, blocks.len);
        }
    }
    buffer_free(&terms);
    buffer_free(&told);
}

// The process that a spawn function returned is known by its record, too.
static void spawned_is_found(void **state) {
    (void)state;
    struct pipeline_totals t;
    uint64_t pids[8];
    begin_request(1, 0);
    spawn(1, 77, 1 * MS);
    feed(100);
    assert_int_equal(pipeline_processes(n, pids, 8), 2);
    t = pipeline_totals(n);
    assert_int_equal(t.calls, 1);
    assert_int_equal(t.decode_errors, 0);
}

// A record and the names before it are its message's bytes.
static void bytes_of_messages(void **state) {
    (void)state;
    enum { HEAD = 2 + 5 + 8, END = 1 };
    call(1, 1, 5 * MS);
    feed(1);
    uint32_t of = n->cost_of[n->tiers.functions[n->tiers.count - 1].tier];
    assert_true(of > 0);
    const struct cost *cost = &n->costs[of - 1], before = *cost; // as far as it is not settled
    ret(1, 6 * MS);
    feed(1);
    size_t first = blocks.len - FRAME_HEADER - HEAD - END;
    assert_int_equal(cost->messages, before.messages + 1);
    assert_int_equal(cost->bytes, before.bytes + first);
    call(1, 1, 7 * MS);
    ret(1, 8 * MS);
    feed(2);
    assert_int_equal(cost->messages, before.messages + 3);
    assert_int_equal(cost->bytes, before.bytes + first + blocks.len - FRAME_HEADER - HEAD - END);
}

// -- losses ---------------------------------------------------------------------------------------

static void expect(uint64_t complete, uint64_t incomplete, uint64_t dropped) {
    end();
    struct ledger_row sum = ledger_sum(p);
    assert_int_equal(sum.requests_complete, complete);
    assert_int_equal(sum.requests_incomplete, incomplete);
    assert_int_equal(sum.incomplete_loss, incomplete);
    assert_int_equal(sum.dropped_messages, dropped);
    assert_int_equal(sum.decode_errors, 0);
    assert_int_equal(pipeline_totals(n).dropped, dropped);
}

static void losses(void **state) {
    (void)state;
    request(1, 80 * MS);              // over 10 ms before
    request(2, 88 * MS);              // over 2 ms before: what was lost may be its
    begin_request(3, 95 * MS);        // open
    feed_loss(100 * MS, 150 * MS, 5); // of which nobody knows when they were
    end_request(3, 102 * MS);
    request(4, 110 * MS); // within
    request(5, 149 * MS); // begins within
    request(6, 151 * MS); // after it
    feed(100);
    expect(2, 4, 5);
}

// What several losses tell adds up, in whatever order they come.
static void losses_in_disorder(void **state) {
    (void)state;
    request(1, 20 * MS);
    request(2, 42 * MS); // ends at 52
    begin_request(3, 90 * MS);
    feed_loss(100 * MS, 500 * MS, 1);
    feed_loss(50 * MS, 60 * MS, 2); // told late
    end_request(3, 170 * MS);
    request(4, 180 * MS); // within the first
    request(5, 501 * MS);
    feed_loss(505 * MS, 505 * MS, 0); // the fifth is open
    request(6, 530 * MS);
    feed(100);
    expect(2, 4, 3);
}

// A loss that a frame tells of lasts until the next message, also where a block tells of another
// one meanwhile.
static void losses_of_both_kinds(void **state) {
    (void)state;
    begin_request(1, 0);
    frame_dropped(7);
    feed_loss(1 * MS, 2 * MS, 1);
    request(2, 90 * MS); // what was dropped may have been its begin
    request(3, 200 * MS);
    end_request(1, 220 * MS);
    feed(100);
    expect(1, 2, 8);
}

// As long as a connection has lost messages and brought none since, more may be lost.
static void loss_within_a_gap(void **state) {
    (void)state;
    begin_request(1, 0);
    feed(100);
    stream_gaps(n, 1);
    feed_loss(1 * MS, 2 * MS, 1);
    request(2, 90 * MS);
    feed(100);
    stream_gaps(n, 0);
    end_request(1, 180 * MS);
    request(3, 200 * MS);
    feed(100);
    expect(1, 2, 1);
}

// Numbers that no ledger could hold.
static void huge_losses(void **state) {
    (void)state;
    feed_loss(0, INT64_MAX, UINT64_MAX);
    feed_loss(INT64_MAX, INT64_MAX, 1);
    feed_loss(INT64_MIN + 5, INT64_MIN + 5, 1);
    assert_true(pipeline_totals(n).dropped == (uint64_t)UINT32_MAX + 2);
}

// A loss that comes later than all that is there hurts nothing of it. At a time that cannot be true
// it may have hit all that is open.
static void strange_loss(void **state) {
    (void)state;
    const int64_t now = 1000 * SECOND;
    for (int strange = 0; strange < 2; strange++) {
        stop();
        start(true);
        pipeline_sync(n, now, (struct pipeline_now){now, now});
        pipeline_tick(p, (struct pipeline_now){now, now});
        begin_request(1, now);
        feed_loss(now + 90 * MS, strange ? now + 9000 * SECOND : now + 91 * MS, 1);
        end_request(1, now + 10 * MS);
        request(2, now + 20 * MS);
        feed(100);
        expect(strange ? 1 : 2, strange ? 1 : 0, 1);
    }
}

// What full traces lose, in a session of their own, is nothing of the tiers'.
static void loss_apart(void **state) {
    (void)state;
    const int64_t now = 1000 * SECOND;
    stop();
    start(true);
    pipeline_sync(n, now, (struct pipeline_now){now, now});
    pipeline_tick(p, (struct pipeline_now){now, now});
    begin_request(1, now);
    feed_loss_of(NATIVE_APART, now + 1 * MS, now + 5 * MS, 3);
    end_request(1, now + 10 * MS);
    feed(100);
    expect(1, 0, 3);
}

static void full_trace_is_told(void **state) {
    (void)state;
    struct full_trace_options options = {.since = 0, .requests = 1};
    struct full_trace *full = full_trace_new(&options);
    assert_non_null(full);
    pipeline_add_full(n, full);
    begin_request(1, 1 * MS);
    feed_loss(2 * MS, 3 * MS, 1);
    assert_int_equal(full_trace_profile(full)->counts.lost, 1);
    pipeline_remove_full(n, full);
    full_trace_free(full);
}

// Messages of a full trace's own session are nobody else's.
static void apart(void **state) {
    (void)state;
    const int64_t now = 1000 * SECOND;
    static const uint8_t node[] = {TERM_SMALL_ATOM_UTF8, 3, 'n', '@', 'h'};
    static const uint8_t name[] = {
        TERM_SMALL_ATOM_UTF8, 2, 'd', 'b', TERM_SMALL_ATOM_UTF8, 5, 'q', 'u', 'e', 'r', 'y'};
    stop();
    start(true);
    pipeline_sync(n, now, (struct pipeline_now){now, now});
    pipeline_tick(p, (struct pipeline_now){now, now});
    for (unsigned flags = 0; flags < 2; flags++) {
        struct told t = {.kind = NATIVE_CALL,
                         .flags = NATIVE_TOKEN,
                         .time = now,
                         .process = {.number = 1},
                         .function = {slice_of(name, sizeof name), 2}};
        uint64_t before = pipeline_totals(n).calls;
        buffer_reset(&blocks);
        native_open(&writer, &blocks, flags, slice_of(node, sizeof node), now);
        native_tell(&writer, &t);
        native_close(&writer);
        assert_int_equal(pipeline_feed(n, slice_of(blocks.data, blocks.len)), -1);
        assert_int_equal(pipeline_totals(n).calls, before + (flags == 0));
        assert_int_equal(n->full_apart, flags);
    }
}

// -- damage ---------------------------------------------------------------------------------------

// What is before the damage is there; the rest of the block is lost, once, and the next one is read
// again.
static void damage(void **state) {
    (void)state;
    request(1, 0);
    feed(100);
    struct slice one = slice_of(blocks.data, blocks.len);
    for (size_t at = FRAME_HEADER; at < one.len; at++) {
        for (unsigned way = 0; way < 2; way++) {
            stop();
            start(false);
            begin_request(9, -5 * MS);
            struct slice good = slice_of(out.data, out.len);
            assert_int_equal(pipeline_feed(n, good), -1);
            size_t len = way == 0 ? at : one.len; // cut off, or changed
            uint8_t *bad = malloc(len);
            assert_non_null(bad);
            memcpy(bad, one.data, len);
            if (way == 0) {
                bad[3] = (uint8_t)((len - FRAME_HEADER) >> 8);
                bad[4] = (uint8_t)(len - FRAME_HEADER);
            } else {
                bad[len - 1] = 12;
            }
            assert_int_equal(pipeline_feed(n, slice_of(bad, len)), -1);
            struct pipeline_totals t = pipeline_totals(n);
            assert_int_equal(t.decode_errors, 1);
            assert_int_equal(t.first_error, good.len);
            assert_true(t.messages >= 2 && t.messages <= 6);
            assert_true(way == 0 || t.messages == 6);
            buffer_reset(&out);
            end_request(9, 30 * MS);
            request(10, 60 * MS);
            assert_int_equal(pipeline_feed(n, slice_of(out.data, out.len)), -1);
            buffer_reset(&out);
            end();
            assert_true(pipeline_totals(n).incomplete >= 1);
            assert_int_equal(pipeline_totals(n).complete, 1);
            free(bad);
        }
    }
}

static void no_memory(void **state) {
    (void)state;
    request(1, 0);
    fail_alloc_at(-1);
    buffer_reset(&blocks);
    native_of_terms(slice_of(out.data, out.len), 100, &blocks);
    fail_alloc_at(0);
    assert_int_equal(pipeline_feed(n, slice_of(blocks.data, blocks.len)), -1);
    fail_alloc_at(-1);
    assert_int_equal(pipeline_totals(n).decode_errors, 1);
    assert_int_equal(pipeline_totals(n).messages, 1);
    assert_int_equal(pipeline_feed(n, slice_of(blocks.data, blocks.len)), -1);
    assert_int_equal(pipeline_totals(n).decode_errors, 1);
    assert_int_equal(pipeline_totals(n).messages, 5);
}

#define UNIT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {UNIT(same_as_terms),
                                       UNIT(spawned_is_found),
                                       UNIT(bytes_of_messages),
                                       UNIT(losses),
                                       UNIT(losses_in_disorder),
                                       UNIT(losses_of_both_kinds),
                                       UNIT(loss_within_a_gap),
                                       UNIT(huge_losses),
                                       UNIT(strange_loss),
                                       UNIT(loss_apart),
                                       UNIT(full_trace_is_told),
                                       UNIT(apart),
                                       UNIT(damage),
                                       UNIT(no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
