// SPDX-License-Identifier: Apache-2.0
#include "ingest/pipeline.h"

#include <inttypes.h>

#include "base/limits.h"
#include "captures.h"
#include "ingest/capture.h"
#include "ledger_sum.h"
#include "model/profile/samples.h"
#include "trace_bytes.h"

#define MS 1000000LL
static const int64_t SECOND = 1000000000;

// -- a pipeline with one node ---------------------------------------------------------------------

static struct pipeline *p;
static struct pipeline_node *n;
static unsigned asked, disarmed, printed, slow, stale;
static uint64_t stale_label;
static uint32_t asked_id;
static int user;

static void on_identify(void *u, uint32_t id, const struct traced_function *f,
                        struct slice arguments) {
    assert_ptr_equal(u, &user);
    assert_string_equal(f->module, "db");
    assert_true(arguments.len > 0);
    asked++;
    asked_id = id;
}

static void on_disarm(void *u, const struct traced_function *f) {
    assert_ptr_equal(u, &user);
    assert_string_equal(f->function, "loop");
    disarmed++;
}

static void on_stale(void *u, const char *tier, uint64_t label) {
    assert_ptr_equal(u, &user);
    assert_string_equal(tier, "db");
    stale_label = label;
    stale++;
}

static void on_calls(void *u, const struct pipeline_calls *calls) {
    assert_ptr_equal(u, &user);
    assert_int_equal(calls->result->fate, REQUEST_COMPLETE);
    printed++;
}

static void on_slow(void *u, const struct pipeline_calls *calls) {
    assert_ptr_equal(u, &user);
    assert_int_equal(calls->result->end - calls->result->begin, 10 * MS);
    slow++;
}

static struct tier_set tiers(void) {
    struct tier_set set;
    struct directory *d = pipeline_directory(p);
    assert_true(tier_set_init(&set));
    tier_set_add(&set, slice_text("db"), slice_text("query"), 2,
                 directory_tier(d, slice_text("db")));
    tier_set_add(&set, slice_text("db"), slice_text("loop"), 1,
                 directory_tier(d, slice_text("loop")));
    tier_set_add(&set, slice_text("b1"), slice_text("f"), 1, directory_tier(d, slice_text("f")));
    return set;
}

static void begin(bool live, bool markers) {
    struct pipeline_stream stream = {.live = live, .markers = markers, .entry = TIER_NONE};
    assert_true(pipeline_begin(n, &stream));
}

static int setup(void **state) {
    (void)state;
    struct pipeline_options options = {.bucket_s = 10,
                                       .timeout_ns = 30 * SECOND,
                                       .identify = on_identify,
                                       .disarm = on_disarm,
                                       .stale = on_stale,
                                       .calls = on_calls,
                                       .slow = on_slow};
    out = buffer_make(64 << 20);
    p = pipeline_new(&options);
    assert_non_null(p);
    n = pipeline_node(p, slice_text("n@h"));
    assert_non_null(n);
    pipeline_set_tiers(n, tiers());
    asked = disarmed = printed = slow = stale = labels_start = 0;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    pipeline_free(p);
    buffer_free(&out);
    return 0;
}

static int64_t feed(void) {
    int64_t bad = pipeline_feed(n, slice_of(out.data, out.len));
    buffer_reset(&out);
    return bad;
}

static void end(bool clean) {
    int64_t cut = -1;
    assert_false(pipeline_end(n, clean, &cut));
}

// All statistics as text, rows sorted as they were made; the ledger summed, since its buckets
// depend on how bytes come in pieces.
static void dump(struct buffer *b) {
    const struct stats *s = pipeline_stats(p);
    const struct directory *d = pipeline_directory(p);
    const struct ledger_row sum = ledger_sum(p);
    for (uint32_t i = 0; i < stats_rows(s); i++) {
        const struct stat_row *r = stats_row_at(s, i);
        buffer_printf(
            b,
            "%" PRId64
            " %s %s %s: %lu requests %lu calls %lu errors %lu async total %lu self %lu async %lu sum %lu min "
            "%lu max %lu histogram %lu\n",
            r->key.bucket_start, names_text(&d->nodes, r->key.node),
            names_text(&d->identities, r->key.identity), names_text(&d->tiers, r->key.tier),
            r->requests, r->calls, r->errors, r->async_calls, r->total_ns, r->self_ns, r->async_ns,
            r->duration_ns, r->min_ns, r->max_ns, histogram_count(&r->durations));
    }
    buffer_printf(
        b,
        "%lu complete %lu incomplete %lu expired %lu messages %lu bytes %lu dropped %lu orphans %lu stale %lu errors\n",
        sum.requests_complete, sum.requests_incomplete, sum.requests_expired, sum.messages,
        sum.bytes, sum.dropped_messages, sum.orphan_returns, sum.stale_calls, sum.decode_errors);
}

static void expect(const char *expected) {
    struct buffer b = buffer_make(1 << 20);
    dump(&b);
    buffer_append(&b, "", 1);
    if (strcmp((char *)b.data, expected) != 0) {
        fail_msg("\n  got      %s\n  expected %s", (char *)b.data, expected);
    }
    buffer_free(&b);
}

// -- messages -------------------------------------------------------------------------------------

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

// A request of 10 ms with a call of 2 ms.
static void request(uint32_t pid, uint32_t label, int64_t time) {
    frame_mark("request_begin", pid, label, "create", time);
    call(pid, label, time + 3 * MS);
    ret(pid, time + 5 * MS);
    frame_mark("request_end", pid, label, "ok", time + 10 * MS);
}

static void plain(void **state) {
    (void)state;
    begin(false, true);
    request(1, 1, 0);
    request(1, 2, 9995 * MS); // ends in the next bucket
    assert_int_equal(out.len, 864);
    assert_int_equal(feed(), -1);
    end(true);
    expect(
        "0 n@h create _total: 1 requests 1 calls 0 errors 0 async total 10000000 self 8000000 async 0 sum 10000000 min 10000000 "
        "max 10000000 histogram 1\n"
        "0 n@h create db: 1 requests 1 calls 0 errors 0 async total 2000000 self 2000000 async 0 sum 2000000 min 2000000 max "
        "2000000 histogram 1\n"
        "10 n@h create _total: 1 requests 1 calls 0 errors 0 async total 10000000 self 8000000 async 0 sum 10000000 min 10000000 "
        "max 10000000 histogram 1\n"
        "10 n@h create db: 1 requests 1 calls 0 errors 0 async total 2000000 self 2000000 async 0 sum 2000000 min 2000000 max "
        "2000000 histogram 1\n"
        "2 complete 0 incomplete 0 expired 8 messages 864 bytes 0 dropped 0 orphans 0 stale 0 errors\n");
    // each request's fate stands in its bucket
    const struct stats *s = pipeline_stats(p);
    uint64_t complete[2] = {0};
    for (uint32_t i = 0; i < stats_ledgers(s); i++) {
        complete[stats_ledger_at(s, i)->bucket_start / 10] +=
            stats_ledger_at(s, i)->requests_complete;
    }
    assert_int_equal(complete[0], 1);
    assert_int_equal(complete[1], 1);
}

// The same bytes whole, byte by byte and in random pieces give the same statistics.
static void in_pieces(struct slice bytes, bool markers) {
    char *whole = NULL;
    uint64_t random = 7;
    for (int way = 0; way < 6; way++) {
        teardown(NULL);
        setup(NULL);
        begin(false, markers);
        for (size_t at = 0; at < bytes.len;) {
            size_t piece = way == 0   ? bytes.len
                           : way == 1 ? 1
                                      : 1 + random_u64(&random) % (way == 2   ? 10
                                                                   : way == 3 ? 300
                                                                              : 9000);
            piece = piece < bytes.len - at ? piece : bytes.len - at;
            assert_int_equal(pipeline_feed(n, slice_of(bytes.data + at, piece)), -1);
            at += piece;
        }
        end(true);
        struct buffer b = buffer_make(1 << 20);
        dump(&b);
        buffer_append(&b, "", 1);
        if (whole) {
            assert_string_equal((char *)b.data, whole);
            buffer_free(&b);
        } else {
            whole = (char *)b.data;
        }
    }
    free(whole);
}

static void pieces(void **state) {
    (void)state;
    struct slice file = data_file("otp27-calls.cap");
    in_pieces(file, false);
    assert_int_equal(pipeline_totals(n).messages, 2000);
    assert_int_equal(pipeline_totals(n).bytes, file.len);
    free((void *)file.data);
    // with everything that a stream has: drops, heartbeats, frames that are too large or no
    // messages
    uint64_t random = 3;
    for (uint32_t i = 1; i < 400; i++) {
        uint64_t x = random_u64(&random);
        request(i % 7 + 1, i, i * 2 * SECOND);
        if (x % 8 == 0) {
            frame_dropped(3);
        } else if (x % 8 == 1) {
            put_u8(0);
            put_u32(0);
        } else if (x % 64 == 2) {
            put_u8(0);
            put_u32(LIMIT_FRAME_BYTES + 1);
            uint8_t *zeros = buffer_reserve(&out, LIMIT_FRAME_BYTES + 1);
            memset(zeros, 0, LIMIT_FRAME_BYTES + 1);
            buffer_grow(&out, LIMIT_FRAME_BYTES + 1);
        } else if (x % 8 == 3) {
            size_t at = frame_begin();
            put_atom("nonsense");
            frame_end(at);
        }
    }
    struct buffer kept = out;
    out = buffer_make(1 << 20);
    in_pieces(slice_of(kept.data, kept.len), true);
    assert_true(pipeline_totals(n).dropped > 50 && pipeline_totals(n).decode_errors > 20);
    assert_true(pipeline_totals(n).complete > 50 && pipeline_totals(n).incomplete > 50);
    // and the ledger has all of it
    struct pipeline_totals t = pipeline_totals(n);
    struct ledger_row l = ledger_sum(p);
    assert_int_equal(l.dropped_messages, t.dropped);
    assert_int_equal(l.decode_errors, t.decode_errors);
    assert_int_equal(l.messages, t.messages);
    assert_int_equal(l.bytes, t.bytes);
    assert_int_equal(l.requests_complete, t.complete);
    assert_int_equal(l.requests_incomplete, t.incomplete);
    assert_int_equal(l.stale_calls, t.stale_calls);
    assert_int_equal(l.orphan_returns, t.orphan_returns);
    buffer_free(&kept);
}

static void drops(void **state) {
    (void)state;
    begin(false, true);
    frame_mark("request_begin", 1, 1, "create", 0);
    frame_dropped(5);
    frame_mark("request_end", 1, 1, "ok", 10 * MS);
    request(2, 2, 20 * MS);
    assert_int_equal(feed(), -1);
    end(true);
    struct pipeline_totals t = pipeline_totals(n);
    assert_int_equal(t.dropped, 5);
    assert_int_equal(t.incomplete, 1);
    assert_int_equal(t.complete, 1);
    assert_int_equal(t.decode_errors, 0);
    assert_int_equal(t.first_error, -1);
    struct ledger_row l = ledger_sum(p);
    assert_int_equal(l.dropped_messages, 5);
    assert_int_equal(l.requests_incomplete, 1);
    assert_int_equal(l.requests_complete, 1);
}

static void damage(void **state) {
    (void)state;
    // a term that is no message: lost, and the stream goes on
    begin(false, true);
    frame_mark("request_begin", 1, 1, "create", 0);
    size_t good = out.len, at = frame_begin();
    put_tuple(3);
    put_atom("trace_ts");
    frame_end(at);
    frame_mark("request_end", 1, 1, "ok", 10 * MS);
    request(2, 2, 20 * MS);
    assert_int_equal(feed(), -1);
    struct pipeline_totals t = pipeline_totals(n);
    assert_int_equal(t.decode_errors, 1);
    assert_int_equal(t.first_error, good);
    // no frame: the offset of what is none, whole and in pieces, and nothing after it counts
    request(3, 3, 40 * MS);
    uint64_t before = pipeline_totals(n).bytes;
    size_t third = out.len;
    buffer_text(&out, "GET / HTTP/1.0");
    int64_t bad = feed();
    assert_int_equal(bad, before + third);
    for (uint32_t i = 4; i < 8; i++) {
        request(3, i, 60 * MS);
        assert_int_equal(feed(), bad);
    }
    assert_int_equal(pipeline_totals(n).decode_errors, 2);
    end(false);
    t = pipeline_totals(n);
    assert_int_equal(t.complete + t.incomplete, 3);
    // the second was over long before the first of the rest was lost
    assert_int_equal(t.complete, 1);
    // another stream begins anew
    begin(false, true);
    request(1, 1, 0);
    assert_int_equal(feed(), -1);
    end(true);
    assert_int_equal(pipeline_totals(n).complete, 2);
    // the bad byte first in a piece, behind a partial frame
    begin(false, true);
    request(1, 2, 0);
    size_t len = out.len;
    buffer_text(&out, "\3\3\3\3\3\3\3\3");
    for (size_t i = 0; i < out.len; i++) {
        bad = pipeline_feed(n, slice_of(out.data + i, 1));
        assert_int_equal(bad, i < len ? -1 : (int64_t)len);
    }
    buffer_reset(&out);
    end(false);
}

static void cut_off(void **state) {
    (void)state;
    int64_t cut = -1;
    begin(false, true);
    request(1, 1, 0);
    size_t whole = out.len;
    request(1, 2, 20 * MS);
    out.len = whole + 20;
    assert_int_equal(feed(), -1);
    assert_true(pipeline_end(n, true, &cut));
    assert_int_equal(cut, whole);
    assert_int_equal(pipeline_totals(n).incomplete, 1); // what was lost may have been its
    assert_int_equal(pipeline_totals(n).decode_errors, 1);
    // in the middle of a frame that is skipped
    begin(false, true);
    put_u8(0);
    put_u32(0);
    whole = out.len;
    put_u8(0);
    put_u32(LIMIT_FRAME_BYTES + 1);
    put_u32(0);
    assert_int_equal(feed(), -1);
    assert_true(pipeline_end(n, true, &cut));
    assert_int_equal(cut, whole);
    // without an end in order everything open is lost; what is over its grace time is not
    begin(false, true);
    request(1, 1, 0);
    request(1, 2, 1500 * MS);
    feed();
    end(false);
    assert_int_equal(pipeline_totals(n).complete, 1);
    assert_int_equal(pipeline_totals(n).incomplete, 2);
    // no stream: nothing happens
    assert_false(pipeline_end(n, true, &cut));
    // a stream that begins ends the one before as lost: the node was restarted
    begin(false, true);
    request(1, 1, 100 * SECOND);
    feed();
    begin(false, true);
    assert_int_equal(pipeline_totals(n).incomplete, 3);
    request(1, 1, 0); // its clock and its labels begin anew
    feed();
    end(true);
    assert_int_equal(pipeline_totals(n).complete, 2);
    assert_int_equal(pipeline_totals(n).stale_calls, 0);
}

// -- live -----------------------------------------------------------------------------------------

// the node's 0 in ns since 1970
static const int64_t NOW = 1795000000000000000, NODE_ZERO = 1700000000000000000;

static const int64_t BOOT = 1700000001000000000; // when the monotonic clock was 0

static struct pipeline_now moment(int64_t wall) {
    return (struct pipeline_now){wall, wall - BOOT};
}

static void heartbeat(void) {
    put_u8(0);
    put_u32(0);
    feed();
}

// A live stream with a request at NOW. Returns that on the node's clock.
static int64_t one_request(void) {
    const int64_t t = NOW - NODE_ZERO;
    pipeline_set_clock(n, SECOND, NODE_ZERO);
    pipeline_tick(p, moment(NOW));
    pipeline_sync(n, t, moment(NOW));
    begin(true, true);
    request(1, 1, t);
    feed();
    return t;
}

// A call of the tier, and a return from elsewhere to who calls it, as the trace session of a full
// trace tells them.
static void told_strictly(int64_t time) {
    size_t at = frame_begin();
    put_head(6, "trace_ts", 1);
    put_atom("call");
    put_function("db", "query", 2);
    put_tuple(2);
    put_token(7, 1);
    put_atom("create");
    put_tuple(2);
    put_big(time);
    put_small(1);
    frame_end(at);
    at = frame_begin();
    put_head(5, "trace_ts", 1);
    put_atom("return_to");
    put_function("a", "b", 0);
    put_tuple(2);
    put_big(time + MS);
    put_small(2);
    frame_end(at);
}

// What a full trace has a session for is no tier's, and no tracker's.
static void full_apart(void **state) {
    (void)state;
    struct full_trace_options options = {.since = 0, .requests = 1, .scheduling = true};
    struct full_trace *full = full_trace_new(&options);
    assert_non_null(full);
    const int64_t t = one_request();
    uint64_t calls = pipeline_totals(n).calls, returns = pipeline_totals(n).returns;
    told_strictly(t + 20 * MS); // before the collector knows of it
    feed();
    pipeline_add_full(n, full);
    told_strictly(t + 30 * MS);
    feed();
    assert_int_equal(full_trace_profile(full)->counts.messages, 2);
    assert_int_equal(pipeline_totals(n).calls, calls);
    assert_int_equal(pipeline_totals(n).returns, returns);
    call(1, 8, t + 40 * MS); // the tiers' own are both's
    ret(1, t + 41 * MS);
    feed();
    assert_int_equal(full_trace_profile(full)->counts.messages, 4);
    assert_int_equal(pipeline_totals(n).calls, calls + 1);
    assert_int_equal(pipeline_totals(n).decode_errors, 0);
    pipeline_remove_full(n, full);
    full_trace_free(full);
    end(true);
}

static void live(void **state) {
    (void)state;
    const int64_t t = one_request();
    pipeline_tick(p, moment(NOW + 5 * SECOND)); // with messages, time is theirs
    assert_int_equal(pipeline_totals(n).complete, 0);
    pipeline_tick(p, moment(NOW + 6 * SECOND)); // without any bytes the stream is held up
    assert_int_equal(pipeline_totals(n).complete, 0);
    heartbeat();
    pipeline_tick(p, moment(NOW + 1200 * MS)); // its grace time, and what is on its way
    assert_int_equal(pipeline_totals(n).complete, 0);
    heartbeat();
    pipeline_tick(p, moment(NOW + 1600 * MS));
    assert_int_equal(pipeline_totals(n).complete, 1);
    const struct stat_row *row = stats_row_at(pipeline_stats(p), 0);
    assert_int_equal(row->key.bucket_start, NOW / SECOND);
    // old messages that come late, out of full buffers, are served by their own time
    request(1, 2, t + 2000 * MS);
    frame_mark("request_begin", 1, 3, "create", t + 2020 * MS);
    feed();
    pipeline_tick(p, moment(NOW + 20 * SECOND));
    frame_mark("request_end", 1, 3, "ok", t + 2990 * MS);
    call(2, 2, t + 2950 * MS); // async, within the grace time
    feed();
    pipeline_tick(p, moment(NOW + 20 * SECOND));
    ret(2, t + 2960 * MS);
    feed();
    pipeline_tick(p, moment(NOW + 20 * SECOND));
    heartbeat();
    pipeline_sync(n, t + 20 * SECOND, moment(NOW + 20 * SECOND));
    pipeline_tick(p, moment(NOW + 21 * SECOND));
    assert_int_equal(pipeline_totals(n).complete, 3);
    assert_int_equal(pipeline_totals(n).stale_calls, 0);
    assert_int_equal(pipeline_totals(n).orphan_returns, 0);
    // the sampler's and the guard's counts stand in the bucket of now
    pipeline_count(n, &(struct pipeline_counts){.unsampled = 7,
                                                .paused_ms = 1500,
                                                .tripped_ms = 60,
                                                .away_ms = 5,
                                                .trips = 2,
                                                .lowered_ms = 300});
    const struct ledger_row *last =
        stats_ledger_at(pipeline_stats(p), stats_ledgers(pipeline_stats(p)) - 1);
    assert_int_equal(last->requests_unsampled, 7);
    assert_int_equal(last->paused_ms, 1500);
    assert_int_equal(last->tripped_ms, 60);
    assert_int_equal(last->away_ms, 5);
    assert_int_equal(last->trips, 2);
    assert_int_equal(last->lowered_ms, 300);
    assert_int_equal(pipeline_totals(n).shim.lowered_ms, 300);
    assert_int_equal(last->bucket_start, NOW / SECOND + 20);
    end(true);
}

// A node that has nothing to do keeps its ledger fresh: what tells of nothing but life stands where
// it came.
static void idle(void **state) {
    (void)state;
    const int64_t t = one_request();
    for (int64_t s = 1; s <= 605; s++) {
        pipeline_sync(n, t + s * SECOND, moment(NOW + s * SECOND));
        heartbeat();
        pipeline_tick(p, moment(NOW + s * SECOND));
    }
    const struct stats *stats = pipeline_stats(p);
    assert_int_equal(stats_ledgers(stats), 61);
    for (uint32_t i = 0; i <= 60; i++) {
        const struct ledger_row *row = stats_ledger_at(stats, i);
        assert_int_equal(row->bucket_start, NOW / SECOND + 10 * i);
        assert_int_equal(row->messages, i == 0 ? 4 : 0);
        assert_true(row->bytes > 0);
    }
    end(true);
}

// One request after a quiet moment, node time t and the collector's clocks `now`: it is closed as
// soon as its grace time is over.
static void soon_closed(int64_t t, struct pipeline_now now, uint32_t label) {
    uint64_t before = pipeline_totals(n).complete;
    heartbeat();
    pipeline_tick(p, now);
    request(1, label, t + 100 * MS);
    feed();
    pipeline_tick(p, now);
    pipeline_sync(n, t + 2 * SECOND,
                  (struct pipeline_now){now.wall + 2 * SECOND, now.steady + 2 * SECOND});
    heartbeat();
    pipeline_tick(p, (struct pipeline_now){now.wall + 2 * SECOND, now.steady + 2 * SECOND});
    assert_int_equal(pipeline_totals(n).complete, before + 1);
    assert_int_equal(pipeline_totals(n).expired, 0);
    assert_int_equal(pipeline_totals(n).decode_errors, 0);
}

// Nothing sends a quiet node's time ahead of it, where its requests would wait until it has caught
// up, or be too old at once.
static void clocks_jump(void **state) {
    (void)state;
    const int64_t t = NOW - NODE_ZERO, DAY = 86400 * SECOND;
    struct pipeline_now now = moment(NOW);
    // before it has told its time: its clock may be another one than ours
    pipeline_set_clock(n, SECOND, NODE_ZERO);
    pipeline_tick(p, now);
    begin(true, true);
    soon_closed(t - 600 * SECOND, now, 1);
    end(true);
    // started anew, it counts its time anew, from long before what it told last
    pipeline_sync(n, t, now);
    pipeline_set_clock(n, SECOND, NOW);
    begin(true, true);
    soon_closed(0, now, 2);
    // our clock is set, forth and back
    now.wall += DAY;
    soon_closed(2 * SECOND, (struct pipeline_now){now.wall, now.steady + 2 * SECOND}, 3);
    now.wall -= 2 * DAY;
    soon_closed(4 * SECOND, (struct pipeline_now){now.wall, now.steady + 4 * SECOND}, 4);
    // its machine has slept, ours has not
    now.steady += 6 * SECOND + 20 * SECOND;
    soon_closed(6 * SECOND, now, 5);
    end(true);
}

// A node may tell any time of its own.
static void clocks_beyond_all(void **state) {
    (void)state;
    int64_t ahead;
    const int64_t far[] = {INT64_MIN, INT64_MAX};
    for (int i = 0; i < 2; i++) {
        pipeline_set_clock(n, SECOND, far[i]);
        pipeline_tick(p, moment(NOW));
        pipeline_sync(n, far[i], moment(NOW));
        assert_true(pipeline_clock_offset(n, &ahead));
        assert_true(i == 0 ? ahead < -(1LL << 62) : ahead > 1LL << 62);
        begin(true, true);
        request(1, 1, far[i]);
        feed();
        pipeline_gap(n, far[0], far[1], true);
        pipeline_count(n, &(struct pipeline_counts){.unsampled = 1});
        pipeline_tick(p, moment(NOW + 10 * SECOND));
        end(true);
    }
    assert_int_equal(pipeline_totals(n).shim.unsampled, 2);
}

// The node's clock is set (+C multi_time_warp): what ends from then on stands where its clock is.
static void node_clock_set(void **state) {
    (void)state;
    pipeline_set_clock(n, SECOND, 0);
    pipeline_tick(p, moment(NOW));
    pipeline_sync(n, 0, moment(NOW));
    begin(true, true);
    request(1, 1, SECOND);
    feed();
    pipeline_set_offset(n, NOW);
    request(1, 2, 2 * SECOND);
    feed();
    end(true);
    const struct stat_row *row = stats_row_at(pipeline_stats(p), 0);
    assert_int_equal(pipeline_totals(n).complete, 2);
    assert_int_equal(row->key.bucket_start, NOW / SECOND);
}

static uint64_t dropped_in_ledger(void) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < stats_ledgers(pipeline_stats(p)); i++) {
        sum += stats_ledger_at(pipeline_stats(p), i)->dropped_messages;
    }
    return sum;
}

static uint64_t told(uint32_t labels, uint64_t messages, uint64_t unsent) {
    return pipeline_total(
        n, &(struct pipeline_total){.labels = labels, .messages = messages, .unsent = unsent});
}

// What a trace port gave and did not come is lost, and what is open then incomplete. Told twice, it
// is lost once.
static void totals_told(void **state) {
    (void)state;
    const int64_t t = -5 * SECOND;
    pipeline_tick(p, moment(NOW));
    assert_int_equal(told(7, 30, 3), 3); // of a stream that nobody here knows
    assert_int_equal(told(7, 2, UINT64_MAX), 2);
    begin(true, true);
    assert_int_equal(pipeline_labels(n), 0);
    pipeline_set_clock(n, SECOND, NOW - t);
    pipeline_set_labels(n, 7);
    assert_int_equal(pipeline_labels(n), 7);
    request(1, 1, t); // four messages
    frame_mark("request_begin", 1, 2, "create", t + 10 * MS);
    feed();
    assert_int_equal(pipeline_totals(n).messages, 5);
    assert_int_equal(told(7, 30, 3), 25);
    assert_int_equal(told(7, 30, 3), 0);
    assert_int_equal(pipeline_totals(n).dropped, 30);
    frame_mark("request_end", 1, 2, "ok", t + 20 * MS);
    feed();
    end(true);
    assert_int_equal(pipeline_totals(n).complete, 0);
    assert_int_equal(pipeline_totals(n).incomplete, 2); // the first one was in its grace time
    // of the one before, while the next comes
    begin(true, true);
    pipeline_set_labels(n, 8);
    request(1, 3, t + SECOND);
    feed();
    assert_int_equal(told(7, 36, 0), 5);
    assert_int_equal(told(7, 36, 0), 0);
    assert_int_equal(told(8, 4, 0), 0);
    // its labels may be told on the one connection before it begins on the other
    pipeline_set_labels(n, 9);
    assert_int_equal(pipeline_labels(n), 8);
    end(true);
    begin(true, true);
    assert_int_equal(pipeline_labels(n), 9);
    request(1, 4, t + 2 * SECOND);
    feed();
    assert_int_equal(told(9, 4, 0), 0);
    assert_int_equal(told(8, 4, 0), 0);
    end(true);
    begin(true, true);
    assert_int_equal(pipeline_labels(n), 0);
    end(true);
    assert_int_equal(pipeline_totals(n).complete, 2);
    assert_int_equal(dropped_in_ledger(), 35);
}

// A time far from the node's clock is none: neither what was open nor the next buckets suffer more
// than one message lost.
static void strange_times(void **state) {
    (void)state;
    static const int64_t away[] = {3601,       -3601,       86400,      -86400,
                                   1000000000, -1000000000, 7000000000, -7000000000};
    const int64_t t = NOW - NODE_ZERO;
    pipeline_set_clock(n, SECOND, NODE_ZERO);
    pipeline_tick(p, moment(NOW));
    begin(true, true);
    for (uint32_t i = 0; i < 8; i++) {
        call(9, 100 + i, t + away[i] * SECOND);
    }
    call(9, 120, INT64_MAX);
    call(9, 121, INT64_MIN);
    ret(9, t - 3501 * SECOND); // what was lost was no later than the next message, and some ms
    request(1, 1, t + 3500 * SECOND);
    request(1, 2, t - 3500 * SECOND);
    assert_int_equal(feed(), -1);
    end(true);
    assert_int_equal(pipeline_totals(n).decode_errors, 10);
    assert_int_equal(pipeline_totals(n).complete, 2);
    // by the node's own word its clock may stand anywhere
    pipeline_sync(n, -500 * SECOND, moment(NOW));
    begin(true, true);
    request(1, 1, -500 * SECOND);
    feed();
    end(true);
    assert_int_equal(pipeline_totals(n).complete, 3);
    assert_int_equal(pipeline_totals(n).decode_errors, 10);
}

// Clocks and times out of this world, in a replay and live: no sum overflows, and nothing crashes.
static void hostile_times(void **state) {
    (void)state;
    static const int64_t wild[] = {INT64_MIN,     INT64_MAX,    0, -1, INT64_MAX - 5,
                                   INT64_MIN / 2, INT64_MAX / 2};
    for (unsigned i = 0; i < 7 * 7 * 7; i++) {
        pipeline_set_clock(n, i % 2 ? SECOND : i % 4 ? 1 : 1000000000000, wild[i / 7 % 7]);
        pipeline_tick(p, moment(NOW));
        pipeline_sync(n, wild[i / 49], moment(NOW));
        begin(i % 3 == 0, i % 5 != 0);
        request(1, 1, wild[i % 7] / 2 + 10);
        call(1, 2, wild[i % 7]);
        ret(1, wild[i / 7 % 7]);
        size_t at = frame_begin();
        put_return_head(1);
        put_atom("ok");
        put_tuple(3);
        put_integer(9000);
        put_integer(1);
        put_integer(1);
        frame_end(at);
        assert_int_equal(feed(), -1);
        heartbeat();
        pipeline_tick(p, moment(NOW + SECOND));
        pipeline_count(n, &(struct pipeline_counts){.unsampled = 1, .paused_ms = 1});
        end(i % 2);
    }
}

static void other_ticks(void **state) {
    (void)state;
    pipeline_set_clock(n, 1000000, 5000000); // µs
    begin(false, true);
    request(1, 1, 1000); // 10 "ms" are 10 s then
    assert_int_equal(feed(), -1);
    end(true);
    const struct stat_row *row = stats_row_at(pipeline_stats(p), 0);
    assert_int_equal(row->total_ns, 10 * SECOND);
    assert_int_equal(row->key.bucket_start, 10); // ends 15 s after 1970
}

// -- tokens and names -----------------------------------------------------------------------------

static void ask(uint32_t pid, uint32_t label, unsigned argument, int64_t time) {
    size_t at = frame_begin();
    put_head(6, "trace_ts", pid);
    put_atom("call");
    put_function("db", "query", 2);
    put_tuple(3);
    put_token(label, pid);
    put_atom("ask");
    put_u8(TERM_LIST);
    put_u32(2);
    put_small(argument);
    put_atom("x");
    put_u8(TERM_NIL);
    put_big(time);
    frame_end(at);
}

static const char *identity_at(uint32_t row) {
    return names_text(&pipeline_directory(p)->identities,
                      stats_row_at(pipeline_stats(p), row)->key.identity);
}

static void identify(void **state) {
    (void)state;
    struct slice text = slice_text("read"), total = slice_text("_total");
    pipeline_set_user(n, &user);
    begin(false, true);
    frame_mark("request_begin", 1, 1, "undefined", 0);
    ask(1, 1, 5, MS);
    ret(1, 2 * MS);
    feed();
    assert_int_equal(asked, 1);
    pipeline_answer(n, asked_id + 1, &text); // nobody's
    pipeline_answer(n, asked_id, &text);
    pipeline_answer(n, asked_id, NULL); // twice
    ask(1, 1, 6, 3 * MS);               // it has its name
    ret(1, 4 * MS);
    frame_mark("request_end", 1, 1, "ok", 5 * MS);
    frame_mark("request_begin", 1, 2, "undefined", 10 * MS);
    ask(1, 2, 5, 11 * MS); // the answer is known
    ret(1, 12 * MS);
    frame_mark("request_end", 1, 2, "ok", 15 * MS);
    feed();
    assert_int_equal(asked, 1);
    frame_mark("request_begin", 1, 3, "undefined", 20 * MS);
    ask(1, 3, 7, 21 * MS);
    ret(1, 22 * MS);
    feed();
    assert_int_equal(asked, 2);
    pipeline_answer(n, asked_id, &total); // no name for a request
    frame_mark("request_end", 1, 3, "ok", 25 * MS);
    feed();
    end(true);
    assert_int_equal(stats_rows(pipeline_stats(p)), 4);
    assert_string_equal(identity_at(0), "read");
    assert_int_equal(stats_row_at(pipeline_stats(p), 0)->requests, 2);
    assert_string_equal(identity_at(2), "undefined");
    pipeline_answer(n, asked_id, &text); // no stream
    // without anybody to ask
    pipeline_set_user(n, NULL);
    begin(false, true);
    ask(1, 3, 9, 21 * MS);
    feed();
    assert_int_equal(asked, 2);
    end(true);
}

// An end marker of a web server's helper: {Outcome, How, Identity}.
static void web_end_changed(uint32_t label, int64_t shown, const char *identity, int64_t time) {
    size_t at = frame_begin();
    put_head(6, "trace_ts", 1);
    put_atom("call");
    put_function("kprof_mark", "request_end", 1);
    put_tuple(2);
    put_token(label, 1);
    put_tuple(3);
    put_atom("ok");
    put_tuple(2);
    put_atom("token_changed");
    put_big(shown);
    put_atom(identity);
    put_big(time);
    frame_end(at);
}

static void web_end(uint32_t label, const char *outcome, const char *how, const char *identity,
                    int64_t time) {
    size_t at = frame_begin();
    put_head(6, "trace_ts", 1);
    put_atom("call");
    put_function("kprof_mark", "request_end", 1);
    put_tuple(2);
    put_token(label, 1);
    put_tuple(3);
    put_atom(outcome);
    put_atom(how);
    put_atom(identity);
    put_big(time);
    frame_end(at);
}

static void named_at_the_end(void **state) {
    (void)state;
    struct slice text = slice_text("asked");
    pipeline_set_user(n, &user);
    begin(false, true);
    frame_mark("request_begin", 1, 1, "undefined", 0);
    web_end(1, "ok", "kept", "GET /a", MS);
    frame_mark("request_begin", 1, 2, "undefined", 2 * MS);
    web_end(2, "error", "kept", "GET /b", 3 * MS);
    frame_mark("request_begin", 1, 3, "mine", 4 * MS); // has its name
    web_end(3, "ok", "kept", "GET /c", 5 * MS);
    frame_mark("request_begin", 1, 4, "undefined", 6 * MS);
    web_end(4, "ok", "token_lost", "GET /a", 7 * MS);
    frame_mark("request_begin", 1, 5, "undefined", 8 * MS);
    ask(1, 5, 5, 9 * MS); // the answer comes later and goes before
    ret(1, 10 * MS);
    web_end(5, "ok", "kept", "GET /a", 11 * MS);
    feed();
    pipeline_answer(n, asked_id, &text);
    frame_mark("request_begin", 1, 6, "undefined", 12 * MS);
    web_end(6, "ok", "kept", "undefined", 13 * MS);
    frame_mark("request_begin", 1, 7, "undefined", 14 * MS);
    web_end_changed(7, 77, "GET /a", 15 * MS); // its name is behind what it says of the token
    feed();
    end(true);
    static const struct {
        const char *identity;
        uint64_t calls, errors;
    } expected[] = {
        {"GET /a", 2, 0}, {"GET /b", 1, 1}, {"mine", 1, 0}, {"asked", 1, 0}, {"undefined", 1, 0}};
    unsigned found = 0;
    for (uint32_t i = 0; i < stats_rows(pipeline_stats(p)); i++) {
        const struct stat_row *row = stats_row_at(pipeline_stats(p), i);
        for (size_t k = 0; k < sizeof expected / sizeof *expected && row->key.tier == TIER_TOTAL;
             k++) {
            if (strcmp(identity_at(i), expected[k].identity) == 0) {
                assert_int_equal(row->calls, expected[k].calls);
                assert_int_equal(row->errors, expected[k].errors);
                found++;
            }
        }
    }
    assert_int_equal(found, 5);
    uint64_t incomplete = 0;
    for (uint32_t i = 0; i < stats_ledgers(pipeline_stats(p)); i++) {
        incomplete += stats_ledger_at(pipeline_stats(p), i)->requests_incomplete;
    }
    assert_int_equal(incomplete, 1);
}

static uint64_t total_calls(const char *identity) {
    uint64_t calls = 0;
    for (uint32_t i = 0; i < stats_rows(pipeline_stats(p)); i++) {
        const struct stat_row *row = stats_row_at(pipeline_stats(p), i);
        calls +=
            row->key.tier == TIER_TOTAL && strcmp(identity_at(i), identity) == 0 ? row->calls : 0;
    }
    return calls;
}

// What its begin calls a request is its name when no end does, and takes no place in the directory
// otherwise.
static void named_at_the_begin(void **state) {
    (void)state;
    begin(false, true);
    frame_mark("web_begin", 1, 1, "GET /a", 0);
    web_end(1, "error", "kept", "undefined", MS);
    frame_mark("web_begin", 1, 2, "GET /x", 2 * MS);
    web_end(2, "ok", "kept", "GET 404", 3 * MS);
    frame_mark("web_begin", 1, 3, "_total", 4 * MS);
    web_end(3, "ok", "kept", "undefined", 5 * MS);
    frame_mark("web_begin", 1, 4, "undefined", 6 * MS);
    web_end(4, "ok", "kept", "undefined", 7 * MS);
    feed();
    end(true);
    assert_int_equal(total_calls("GET /a"), 1);
    assert_int_equal(total_calls("GET 404"), 1);
    assert_int_equal(total_calls("undefined"), 2);
    assert_int_equal(pipeline_directory(p)->identities.count, IDENTITIES_FIXED + 2);
}

static void asked_for(uint32_t label, uint8_t tag, uint32_t len, const uint8_t *bytes, size_t there,
                      int64_t time) {
    size_t at = frame_begin();
    put_head(6, "trace_ts", 1);
    put_atom("call");
    put_function("kprof_mark", "trace_parent", 1);
    put_tuple(2);
    put_token(label, 1);
    put_u8(tag);
    put_u32(len);
    buffer_append(&out, bytes, there);
    put_big(time);
    frame_end(at);
}

// The span outside that has asked for a request is kept with it; what is none is nothing, and a
// term that is cut off is an error of the stream.
static void asked_for_from_outside(void **state) {
    (void)state;
    uint8_t good[TRACE_PARENT_BYTES + 1], no_trace[TRACE_PARENT_BYTES], no_span[TRACE_PARENT_BYTES];
    for (size_t i = 0; i < sizeof good; i++) {
        good[i] = (uint8_t)(i + 1);
    }
    memcpy(no_trace, good, sizeof no_trace);
    memset(no_trace, 0, TRACE_ID_BYTES);
    memcpy(no_span, good, sizeof no_span);
    memset(no_span + TRACE_ID_BYTES, 0, SPAN_ID_BYTES);
    const struct {
        const uint8_t *bytes;
        uint8_t tag, len;
    } marks[] = {{good, TERM_BINARY, 25}, {good, TERM_BINARY, 24},     {good, TERM_BINARY, 26},
                 {good, TERM_BINARY, 0},  {no_trace, TERM_BINARY, 25}, {no_span, TERM_BINARY, 25}};
    begin(false, true);
    for (uint32_t i = 0; i < 6; i++) {
        int64_t time = (int64_t)i * 100 * MS;
        frame_mark("web_begin", 1, i + 1, "GET /a", time);
        asked_for(i + 1, marks[i].tag, marks[i].len, marks[i].bytes, marks[i].len, time);
        web_end(i + 1, "ok", "kept", "undefined", time + (10 - i) * MS);
    }
    frame_mark("web_begin", 1, 7, "GET /b", 700 * MS);
    frame_mark("trace_parent", 1, 7, "no_binary", 700 * MS);
    asked_for(8, TERM_BINARY, 25, good, 25, 700 * MS); // of no request
    web_end(7, "ok", "kept", "undefined", 701 * MS);
    assert_int_equal(feed(), -1);
    end(true);
    assert_int_equal(pipeline_totals(n).decode_errors, 0);
    assert_int_equal(ledger_sum(p).requests_complete, 7);
    const struct stats *s = pipeline_stats(p);
    uint32_t known = 0;
    for (uint32_t i = 0; i < stats_kept(s); i++) {
        const struct kept_request *r = stats_kept_at(s, i);
        known += trace_parent_known(&r->parent);
        if (r->duration == 10 * MS) {
            assert_memory_equal(&r->parent, good, TRACE_PARENT_BYTES);
        }
    }
    assert_true(stats_kept(s) >= 4);
    assert_int_equal(known, 1);
    begin(false, true);
    asked_for(9, TERM_BINARY, 1000, good, 25, 0);
    feed();
    end(false);
    assert_int_equal(pipeline_totals(n).decode_errors, 1);
}

// A call without arguments where one is the identity, and an end marker that says nothing: no name,
// and nothing is read. (With clang's sanitizer: no cursor is made of nothing.)
static void nothing_to_name_by(void **state) {
    (void)state;
    struct tier_set set = tiers();
    assert_int_equal(tier_set_name_by(&set, slice_text("db"), slice_text("query"), 2, 2),
                     TIER_SET_OK);
    pipeline_set_tiers(n, set);
    begin(false, true);
    frame_mark("request_begin", 1, 1, "undefined", 0);
    call(1, 1, MS);
    ret(1, 2 * MS);
    size_t at = frame_begin();
    put_head(6, "trace_ts", 1);
    put_atom("call");
    put_function("kprof_mark", "request_end", 1);
    put_tuple(1);
    put_token(1, 1);
    put_big(3 * MS);
    frame_end(at);
    feed();
    end(true);
    assert_int_equal(ledger_sum(p).requests_complete, 1);
    assert_int_equal(total_calls("undefined"), 1);
}

// --identity of a replay: an argument, however the list is written.
static void name_by_argument(void **state) {
    (void)state;
    struct tier_set set = tiers();
    assert_int_equal(tier_set_name_by(&set, slice_text("db"), slice_text("query"), 2, 2),
                     TIER_SET_OK);
    pipeline_set_tiers(n, set);
    begin(false, false);
    for (uint32_t i = 0; i < 3; i++) {
        int64_t t = (int64_t)i * 100 * MS;
        size_t at = frame_begin();
        put_head(6, "trace_ts", 1);
        put_atom("call");
        put_tuple(3);
        put_atom("db");
        put_atom("query");
        if (i == 0) {
            put_u8(TERM_STRING); // [1, 42]
            put_u8(0);
            put_u8(2);
            put_u8(1);
            put_u8(42);
        } else {
            put_u8(TERM_LIST);
            put_u32(2);
            put_small(1);
            if (i == 1) {
                put_small(42);
            } else {
                put_atom("read");
            }
            put_u8(TERM_NIL);
        }
        put_token(i, 1);
        put_big(t);
        frame_end(at);
        ret(1, t + MS);
    }
    assert_int_equal(feed(), -1);
    end(true);
    assert_int_equal(stats_rows(pipeline_stats(p)), 4);
    assert_string_equal(identity_at(0), "42");
    assert_int_equal(stats_row_at(pipeline_stats(p), 0)->requests, 2);
    assert_string_equal(identity_at(2), "read");
}

// Calls without a token are nobody's request, and their returns are no orphans and nobody else's.
static void without_a_token(void **state) {
    (void)state;
    begin(false, false);
    for (int round = 0; round < 2; round++) {
        if (round == 1) {
            call(1, 7, 0);
        }
        size_t at = frame_begin();
        put_head(6, "trace_ts", 1);
        put_atom("call");
        put_function("db", "query", 2);
        put_u8(TERM_NIL); // get_seq_token without one
        put_big(5 * MS);
        frame_end(at);
        ret(1, 6 * MS);
        if (round == 1) {
            ret(1, 20 * MS);
        }
    }
    feed();
    end(true);
    assert_int_equal(pipeline_totals(n).orphan_returns, 0);
    assert_int_equal(pipeline_totals(n).complete, 1);
    assert_int_equal(stats_row_at(pipeline_stats(p), 0)->total_ns, 20 * MS);
}

static void loop(void **state) {
    (void)state;
    pipeline_set_user(n, &user);
    begin(false, true);
    for (uint32_t i = 1; i < 150; i++) {
        request(1, i, i * 20 * MS);
        size_t at = frame_begin();
        put_head(6, "trace_ts", 5);
        put_atom("call");
        put_function("db", "loop", 1);
        put_token(i, 1);
        put_big(i * 20 * MS + MS);
        frame_end(at);
    }
    feed();
    end(true);
    assert_int_equal(disarmed, 1);
}

// Who looks at the node's processes is told what requests were called and when they were over, and
// may ask about those that go on.
static void sampled(void **state) {
    (void)state;
    enum { OURS = 7 };
    const uint64_t labels_of = (uint64_t)OURS << 32;
    struct profile profile;
    assert_true(profile_init(&profile));
    profile.samples = samples_new();
    struct sample_labels *labels = sample_labels_new(&profile);
    assert_non_null(labels);
    uint32_t number = sample_labels_number(labels, labels_of + 1);
    assert_int_equal(sample_labels_number(labels, labels_of + 1), number);
    pipeline_add_sampled(n, labels, 2 * MS);
    pipeline_set_user(n, &user);
    begin(true, true);
    pipeline_set_labels(n, OURS);
    pipeline_set_clock(n, SECOND, NOW);
    pipeline_tick(p, moment(NOW));
    labels_start = OURS;
    request(1, 1, 0);
    frame_mark("request_begin", 2, 2, "read", 11 * MS);
    assert_int_equal(feed(), -1);
    struct sample_request goes_on = {.label = labels_of + 2}, ends = {.label = labels_of + 1},
                          nobody = {.label = labels_of + 3};
    assert_true(pipeline_find_request(n, 2 * MS, &goes_on) && slice_is(goes_on.identity, "read"));
    assert_int_equal(goes_on.end_us, INT64_MAX);
    assert_true(pipeline_find_request(n, 2 * MS, &ends) && slice_is(ends.identity, "create"));
    assert_int_equal(ends.end_us, 8000);
    assert_false(pipeline_find_request(n, 2 * MS, &nobody));
    end(true);
    // it is known now, so that who comes with its label has a number with what is known
    assert_int_not_equal(sample_labels_number(labels, labels_of + 1), number);
    pipeline_remove_sampled(n, labels);
    sample_labels_free(labels);
    profile_free(&profile);
}

// The shim is told of labels of its node that calls come under although their requests are over:
// each once a second, and so many at most.
static void stale_labels(void **state) {
    (void)state;
    enum { OURS = 7, LABEL = 3, SERVED = 2 * LIMIT_STALE_PER_SECOND };
    pipeline_set_user(n, &user);
    begin(true, true);
    pipeline_set_labels(n, OURS);
    pipeline_set_clock(n, SECOND, NOW);
    pipeline_tick(p, moment(NOW));
    labels_start = OURS;
    request(1, LABEL, 0);
    frame_mark("request_begin", 3, 4, "create", 0);
    call(2, LABEL, 500 * MS); // asynchronous
    ret(2, 501 * MS);
    call(1, 4, 1200 * MS);
    feed();
    assert_int_equal(stale, 0);
    for (int i = 0; i < 5; i++) {
        call(2, LABEL, 2000 * MS + i * MS);
        ret(2, 2001 * MS + i * MS);
        call(3, 4, 2000 * MS + i * MS); // of a request that goes on
        ret(3, 2001 * MS + i * MS);
    }
    feed();
    assert_int_equal(stale, 1);
    assert_int_equal(stale_label, (uint64_t)OURS << 32 | LABEL);
    pipeline_tick(p, moment(NOW + SECOND));
    call(2, LABEL, 3000 * MS);
    ret(2, 3001 * MS);
    labels_start = OURS + 1; // somebody else's
    for (int i = 0; i < 5; i++) {
        call(2, 5, (3 + 2 * i) * SECOND);
        ret(2, (3 + 2 * i) * SECOND + MS);
    }
    feed();
    assert_int_equal(stale, 2);
    assert_true(pipeline_totals(n).stale_calls > 6);
    labels_start = OURS;
    for (uint32_t i = 0; i < SERVED; i++) {
        request(1, 10 + i, 20 * SECOND);
    }
    for (uint32_t i = 0; i < SERVED; i++) {
        call(2, 10 + i, 22 * SECOND);
        ret(2, 22 * SECOND + MS);
    }
    feed();
    assert_int_equal(stale, 1 + LIMIT_STALE_PER_SECOND);
    // what was never seen to begin, and has been given up
    pipeline_tick(p, moment(NOW + 2 * SECOND));
    call(2, 1000, 30 * SECOND);
    ret(2, 30 * SECOND + MS);
    call(1, 1001, 40 * SECOND);
    feed();
    assert_int_equal(stale, 2 + LIMIT_STALE_PER_SECOND);
    assert_int_equal(stale_label, (uint64_t)OURS << 32 | 1000);
    end(true);
}

// Times in which functions were not traced: where several were not at the same time it counts once.
static void gaps(void **state) {
    (void)state;
    begin(true, true);
    pipeline_set_clock(n, SECOND, NOW + 30 * SECOND); // times are below 0, as a node's are
    pipeline_gap(n, -30 * SECOND, -30 * SECOND + 10 * MS, true);
    pipeline_gap(n, -30 * SECOND + 5 * MS, -30 * SECOND + 8 * MS, true);
    pipeline_gap(n, -30 * SECOND + 8 * MS, -30 * SECOND + 14 * MS, true);
    pipeline_gap(n, -20 * SECOND, -20 * SECOND + MS / 2, false);
    assert_int_equal(ledger_sum(p).untraced_ms, 15);
    assert_int_equal(ledger_sum(p).reloads, 3);
    end(true);
}

// A call whose message moves time on, so that the ledger is settled before the call is counted.
static void call_that_settles(void **state) {
    (void)state;
    begin(false, true);
    frame_mark("request_begin", 1, 1, "create", 0);
    assert_int_equal(feed(), -1);
    call(1, 1, 60 * MS);
    assert_int_equal(feed(), -1);
    ret(1, 61 * MS);
    frame_mark("request_end", 1, 1, "ok", 62 * MS);
    assert_int_equal(feed(), -1);
    end(true);
    assert_int_equal(ledger_sum(p).calls, 1);
    assert_int_equal(ledger_sum(p).messages, 4);
}

static void calls_for_printing(void **state) {
    (void)state;
    pipeline_set_user(n, &user);
    begin(false, true);
    pipeline_want_calls(n, true);
    for (uint32_t i = 0; i < 30; i++) {
        request(1, i, i * 2 * SECOND); // far apart by the node's time, at once by ours
    }
    feed();
    end(true);
    assert_int_equal(printed, LIMIT_CALLS_PER_SECOND);
    begin(false, true);
    pipeline_want_calls(n, false);
    request(1, 99, 5 * SECOND);
    feed();
    end(true);
    assert_int_equal(printed, LIMIT_CALLS_PER_SECOND);
}

static void slow_requests(void **state) {
    (void)state;
    pipeline_set_user(n, &user);
    begin(false, true);
    pipeline_set_slow(n, 9 * MS); // they take 10 ms
    for (uint32_t i = 0; i < 30; i++) {
        request(1, i, i * 2 * SECOND); // far apart by the node's time, at once by ours
    }
    feed();
    end(true);
    assert_int_equal(slow, LIMIT_SLOW_PER_SECOND);
    begin(false, true);
    pipeline_set_slow(n, 10 * MS);
    request(1, 99, 5 * SECOND);
    feed();
    end(true);
    assert_int_equal(slow, LIMIT_SLOW_PER_SECOND);
}

static void two_nodes(void **state) {
    (void)state;
    struct pipeline_node *one = n, *two = pipeline_node(p, slice_text("m@h"));
    assert_ptr_equal(pipeline_node(p, slice_text("n@h")), one);
    assert_true(two != one);
    assert_string_equal(pipeline_node_name(two), "m@h");
    begin(false, true);
    n = two;
    pipeline_set_tiers(n, tiers());
    begin(false, true);
    frame_mark("request_begin", 1, 1, "create", 0);
    feed();
    n = one;
    request(1, 1, 0);
    frame_dropped(1);
    feed();
    n = two;
    frame_mark("request_end", 1, 1, "ok", 30 * MS);
    feed();
    end(true);
    n = one;
    end(true);
    assert_int_equal(pipeline_totals(one).incomplete, 1);
    assert_int_equal(pipeline_totals(two).complete, 1);
    assert_int_equal(pipeline_totals(two).dropped, 0);
    // statistics go on in another set
    struct stats *empty = stats_new(), *full = pipeline_swap(p, empty);
    assert_ptr_equal(pipeline_stats(p), empty);
    begin(false, true);
    request(1, 1, 0);
    feed();
    end(true);
    assert_int_equal(stats_rows(empty), 2);
    assert_int_equal(stats_rows(full), 2); // that of _total is there now
    assert_int_equal(stats_row_at(full, 1)->key.identity, IDENTITY_TOTAL);
    stats_free(full);
}

static void untimed(void **state) {
    (void)state;
    begin(false, false);
    size_t at = frame_begin();
    put_tuple(5);
    put_atom("trace");
    put_pid("n@h", 1, 0, 5);
    put_atom("call");
    put_function("db", "query", 2);
    put_token(1, 1);
    frame_end(at);
    feed();
    end(true);
    assert_int_equal(pipeline_totals(n).untimed, 1);
    assert_int_equal(pipeline_totals(n).decode_errors, 1);
}

#define UNIT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

// Large frames of many nodes that come in pieces: some have room, the others are lost, and what
// comes behind them is not.
static void room_for_begun_frames(void **state) {
    (void)state;
    enum { NODES = 12, LARGE = 3 << 20, PIECE = 100000 };
    struct pipeline_options options = {.bucket_s = 10, .timeout_ns = 30 * SECOND, .shared = true};
    struct pipeline *shared = pipeline_new(&options);
    struct pipeline_node *nodes[NODES], *of_setup = n;
    uint32_t lost = 0;
    size_t at = frame_begin();
    put_head(6, "trace_ts", 1);
    put_atom("return_from");
    put_function("no", "matter", 2);
    put_u8(TERM_BINARY);
    put_u32(LARGE);
    uint8_t *zeros = buffer_reserve(&out, LARGE);
    memset(zeros, 0, LARGE);
    buffer_grow(&out, LARGE);
    put_big(0);
    frame_end(at);
    struct buffer frame = out;
    out = buffer_make(1 << 20);
    for (int i = 0; i < NODES; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d@h", i);
        n = nodes[i] = pipeline_node(shared, slice_text(name));
        begin(false, true);
    }
    for (size_t from = 0; from < frame.len; from += PIECE) {
        size_t piece = frame.len - from < PIECE ? frame.len - from : PIECE;
        for (int i = 0; i < NODES; i++) {
            assert_int_equal(pipeline_feed(nodes[i], slice_of(frame.data + from, piece)), -1);
        }
    }
    for (int i = 0; i < NODES; i++) {
        n = nodes[i];
        request(1, 1, 0);
        request(1, 2, SECOND);
        assert_int_equal(feed(), -1);
        end(true);
        struct pipeline_totals t = pipeline_totals(n);
        lost += t.decode_errors > 0;
        assert_true(t.messages == 9 && t.complete == 2 - t.decode_errors && t.decode_errors <= 1 &&
                    t.bytes == frame.len + 864);
        assert_true(t.first_error == (t.decode_errors > 0 ? 0 : -1));
    }
    assert_true(lost > 0 && lost <= NODES - 2);
    pipeline_free(shared);
    buffer_free(&frame);
    n = of_setup;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        UNIT(plain),
        UNIT(pieces),
        UNIT(drops),
        UNIT(damage),
        UNIT(cut_off),
        UNIT(live),
        UNIT(full_apart),
        UNIT(sampled),
        UNIT(strange_times),
        UNIT(hostile_times),
        UNIT(other_ticks),
        UNIT(idle),
        UNIT(identify),
        UNIT(name_by_argument),
        UNIT(nothing_to_name_by),
        UNIT(without_a_token),
        UNIT(totals_told),
        UNIT(stale_labels),
        UNIT(gaps),
        UNIT(call_that_settles),
        UNIT(loop),
        UNIT(calls_for_printing),
        UNIT(slow_requests),
        UNIT(two_nodes),
        UNIT(untimed),
        UNIT(named_at_the_end),
        UNIT(clocks_jump),
        UNIT(clocks_beyond_all),
        UNIT(node_clock_set),
        UNIT(named_at_the_begin),
        UNIT(asked_for_from_outside),
        UNIT(room_for_begun_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
