// SPDX-License-Identifier: Apache-2.0
// Several data connections of a node: what one connection would have brought, however they lie
// against each other; and what is lost where one of them is.
#include "ingest/merge.h"

#include <inttypes.h>
#include <stdlib.h>

#include "ingest/pipeline_node.h"
#include "ledger_sum.h"
#include "native_bytes.h"
#include "trace_bytes.h"

#define MS 1000000LL
static const int64_t SECOND = 1000000000, START = 1000000000000;

enum { REQUESTS = 400, OF_REQUEST = 6, APART_MS = 7, STREAMS = 3 };

// -- what the node sends --------------------------------------------------------------------------

static struct sent {
    int64_t time;
    uint32_t process; // 0 or 1: the request's own, or the one that works for it
    size_t at, len;   // in `out`
} sent[REQUESTS * OF_REQUEST];

static int64_t begins[REQUESTS], ends[REQUESTS];
static size_t put_from;
static uint64_t seed;

static void note(uint32_t i, uint32_t process, int64_t time) {
    sent[i] = (struct sent){time, process, put_from, out.len - put_from};
    put_from = out.len;
}

static int by_time(const void *a, const void *b) {
    const struct sent *x = a, *y = b;
    return (x->time > y->time) - (x->time < y->time);
}

// Requests of 20 to 30 ms that overlap, each with a call in a process of its own.
static void script(void) {
    seed = 17;
    put_from = out.len;
    for (uint32_t r = 0; r < REQUESTS; r++) {
        int64_t time = START + r * APART_MS * MS;
        begins[r] = time;
        uint32_t pid = 1000 + r, other = 5000 + r, i = r * OF_REQUEST, label = r + 1;
        frame_mark("request_begin", pid, label, "create", time);
        note(i, 0, time);
        for (uint32_t k = 0; k < 2; k++) {
            uint32_t process = k == 0 ? pid : other;
            time += (3 + (int64_t)(random_u64(&seed) % 3)) * MS;
            size_t at = frame_begin();
            put_call(process, label, pid, time);
            frame_end(at);
            note(i + 1 + k, k, time);
        }
        for (uint32_t k = 2; k-- > 0;) {
            time += (3 + (int64_t)(random_u64(&seed) % 3)) * MS;
            size_t at = frame_begin();
            put_return_head(k == 0 ? pid : other);
            put_atom("ok");
            put_big(time);
            frame_end(at);
            note(i + 4 - k, k, time);
        }
        time += (3 + (int64_t)(random_u64(&seed) % 3)) * MS;
        frame_mark("request_end", pid, label, "ok", time);
        ends[r] = time;
        note(i + 5, 0, time);
    }
    qsort(sent, REQUESTS * OF_REQUEST, sizeof *sent, by_time);
}

// -- a node with its connections ------------------------------------------------------------------

static struct pipeline *p;
static struct pipeline_node *n;
static struct merge *m;
static int64_t now;

static int64_t take(void *context, struct slice bytes) {
    assert_ptr_equal(context, &n);
    return pipeline_feed(n, bytes);
}

static void tick(int64_t time) {
    now = time;
    pipeline_sync(n, now, (struct pipeline_now){now, now});
    pipeline_tick(p, (struct pipeline_now){now, now});
    merge_tick(m);
}

static void start(void) {
    struct tier_set set;
    p = pipeline_new(
        &(struct pipeline_options){.bucket_s = 10, .timeout_ns = 30 * SECOND, .shared = true});
    assert_non_null(p);
    n = pipeline_node(p, slice_text("n@h"));
    assert_true(tier_set_init(&set));
    tier_set_add(&set, slice_text("db"), slice_text("query"), 2,
                 directory_tier(pipeline_directory(p), slice_text("db")));
    pipeline_set_tiers(n, set);
    pipeline_set_clock(n, SECOND, 0);
    assert_true(pipeline_begin(
        n, &(struct pipeline_stream){.live = true, .markers = true, .entry = TIER_NONE}));
    pipeline_tick(p, (struct pipeline_now){START, START});
    m = merge_new(n, take, &n);
    assert_non_null(m);
    tick(START);
}

static void stop(void) {
    merge_free(m);
    m = NULL;
    pipeline_free(p);
    p = NULL;
}

static int setup(void **state) {
    out = buffer_make(64 << 20);
    script();
    start();
    (void)state;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    stop();
    buffer_free(&out);
    return 0;
}

static struct slice bytes_of(const struct sent *s) {
    return slice_of(out.data + s->at, s->len);
}

static void empty_frame(uint32_t stream) {
    static const uint8_t empty[5];
    assert_int_equal(merge_feed(m, stream, slice_of(empty, sizeof empty), false), -1);
}

static void finish(void) {
    int64_t cut;
    merge_end(m);
    assert_false(pipeline_end(n, true, &cut));
}

// All that the statistics say but the number of bytes, which counts empty frames, too.
static void tell(struct buffer *b) {
    const struct stats *s = pipeline_stats(p);
    const struct directory *d = pipeline_directory(p);
    for (uint32_t i = 0; i < stats_rows(s); i++) {
        const struct stat_row *r = stats_row_at(s, i);
        buffer_printf(b, "%s %s: %lu requests %lu calls %lu ns, %lu self, %lu to %lu, waited %lu\n",
                      names_text(&d->identities, r->key.identity),
                      names_text(&d->tiers, r->key.tier), (unsigned long)r->requests,
                      (unsigned long)r->calls, (unsigned long)r->total_ns,
                      (unsigned long)r->self_ns, (unsigned long)r->min_ns, (unsigned long)r->max_ns,
                      (unsigned long)histogram_count(&r->durations));
    }
    struct ledger_row sum = ledger_sum(p);
    sum.bytes = 0;
#define TELL_COUNT(column) buffer_printf(b, " " #column " %lu", (unsigned long)sum.column);
    LEDGER_COLUMNS(TELL_COUNT)
#undef TELL_COUNT
}

// The whole script on so many connections: a process' messages on one of them, which is late_ms of
// it behind, or at half the node's speed. Empty frames come where nothing else does for 10 ms.
struct lies {
    uint32_t streams;
    int64_t late_ms[STREAMS];
    bool slow[STREAMS];
    bool
        lists; // what comes at once comes as a list; and each connection but the first says its end
    bool blocks; // what the first connection brings at once comes as a block
};

// One frame with a list of these messages.
static void feed_list(uint32_t stream, const struct sent *const *messages, uint32_t count) {
    size_t at = out.len;
    put_u8(0);
    put_u32(0);
    put_u8(TERM_VERSION);
    put_u8(TERM_LIST);
    put_u32(count);
    for (uint32_t i = 0; i < count; i++) { // each without its own frame and version
        size_t len = messages[i]->len - 6;
        assert_non_null(buffer_reserve(&out, len)); // it may move what is copied
        buffer_append(&out, out.data + messages[i]->at + 6, len);
    }
    put_u8(TERM_NIL);
    uint32_t size = __builtin_bswap32((uint32_t)(out.len - at - 5));
    memcpy(out.data + at + 1, &size, sizeof size);
    assert_int_equal(merge_feed(m, stream, slice_of(out.data + at, out.len - at), false), -1);
    out.len = at;
}

// The same as blocks of so many messages at most.
static void feed_blocks(uint32_t stream, const struct sent *const *messages, uint32_t count,
                        uint32_t most) {
    struct buffer terms = buffer_make(16 << 20), blocks = buffer_make(16 << 20);
    for (uint32_t i = 0; i < count; i++) {
        buffer_append(&terms, out.data + messages[i]->at, messages[i]->len);
    }
    assert_int_equal(native_of_terms(slice_of(terms.data, terms.len), most, &blocks), count);
    assert_int_equal(merge_feed(m, stream, slice_of(blocks.data, blocks.len), false), -1);
    buffer_free(&terms);
    buffer_free(&blocks);
}

static void end_frame(uint32_t stream) {
    static const uint8_t end[5] = {1};
    assert_int_equal(merge_feed(m, stream, slice_of(end, sizeof end), false), -1);
}

static int64_t arrives(const struct lies *lies, uint32_t stream, int64_t time) {
    return time + lies->late_ms[stream] * MS + (lies->slow[stream] ? time - START : 0);
}

static void run(const struct lies *lies) {
    size_t at[STREAMS] = {0};
    for (uint32_t i = 0; i < lies->streams; i++) {
        assert_true(merge_open(m, i));
    }
    for (int64_t time = START; time < START + 10 * SECOND; time += 10 * MS) {
        for (uint32_t i = 0; i < lies->streams; i++) {
            bool brought = false;
            const struct sent *list[REQUESTS];
            uint32_t listed = 0;
            for (; at[i] < REQUESTS * OF_REQUEST && arrives(lies, i, sent[at[i]].time) <= time;
                 at[i]++) {
                bool many = lies->lists || (lies->blocks && i == 0);
                if (sent[at[i]].process % lies->streams == i && many && listed < REQUESTS) {
                    list[listed++] = &sent[at[i]];
                } else if (sent[at[i]].process % lies->streams == i) {
                    assert_int_equal(merge_feed(m, i, bytes_of(&sent[at[i]]), false), -1);
                    brought = true;
                }
            }
            if (listed > 0 && lies->blocks && i == 0) {
                feed_blocks(i, list, listed, 1 + (uint32_t)(time / (10 * MS) % 7));
                brought = true;
            } else if (listed > 0) {
                feed_list(i, list, listed);
                brought = true;
            }
            if (!brought && !(lies->slow[i] && at[i] < REQUESTS * OF_REQUEST)) {
                empty_frame(i);
            }
        }
        tick(time);
    }
    for (uint32_t i = 0; i < lies->streams; i++) {
        if (lies->lists && i > 0) {
            end_frame(i);
        }
        merge_close(m, i, !lies->lists || i == 0);
    }
    finish();
}

static void same(void **state) {
    (void)state;
    static const struct lies ways[] = {
        {1, {0}, {0}, false, false},
        {2, {0, 0}, {0}, false, false},
        {2, {0, 60}, {0}, false, false},
        {2, {80, 20}, {0}, false, false},
        {3, {50, 10, 0}, {0}, false, false}, // one has nothing to tell
        {2, {0, 0}, {false, true}, false, false},
        {2, {50, 0}, {true, false}, false, false},
        {2, {0, 0}, {0}, true, false},
        {2, {0, 60}, {0}, true, false},
        {2, {80, 20}, {0}, true, false},
        {2, {50, 0}, {true, false}, true, false},
        {1, {0}, {0}, false, true},
        {2, {0, 0}, {0}, false, true},
        {2, {0, 60}, {0}, false, true},
        {2, {80, 20}, {0}, true, true},
        {3, {50, 10, 0}, {0}, false, true},
        {2, {50, 0}, {true, false}, false, true},
        {2, {0, 0}, {false, true}, true, true}};
    struct buffer alone = buffer_make(1 << 20), now_told = buffer_make(1 << 20);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct buffer *told = i == 0 ? &alone : &now_told;
        stop();
        start();
        run(&ways[i]);
        buffer_reset(told);
        tell(told);
        buffer_append(told, "", 1);
        assert_int_equal(ledger_sum(p).requests_complete, REQUESTS);
        assert_string_equal((char *)told->data, (char *)alone.data);
    }
    buffer_free(&alone);
    buffer_free(&now_told);
}

// -- by hand --------------------------------------------------------------------------------------

// What the script's messages from..until, of one process or (2) of both, bring on their streams.
static void bring(size_t from, size_t until, uint32_t process) {
    for (size_t i = from; i < until; i++) {
        if (process == 2 || sent[i].process == process) {
            assert_int_equal(merge_feed(m, sent[i].process, bytes_of(&sent[i]), false), -1);
        }
    }
    tick(sent[until - 1].time);
}

static size_t first_after(int64_t time) {
    size_t i = 0;
    while (sent[i].time < time) {
        i++;
    }
    return i;
}

// Requests that touch from..until, ms, or end less than 4 ms before.
static uint32_t touched(int64_t from_ms, int64_t until_ms) {
    uint32_t count = 0;
    for (uint32_t r = 0; r < REQUESTS; r++) {
        count += begins[r] < START + until_ms * MS && ends[r] + 4 * MS > START + from_ms * MS;
    }
    return count;
}

static void end_all(bool clean) {
    for (int i = 0; i < 40; i++) {
        empty_frame(i % 2);
        tick(now + 10 * MS);
    }
    merge_close(m, 0, clean);
    merge_close(m, 1, clean);
    finish();
}

static void lost(void **state) {
    (void)state;
    size_t a = first_after(START + SECOND), b = first_after(START + 2 * SECOND);
    merge_open(m, 0);
    merge_open(m, 1);
    bring(0, a, 2);
    merge_close(m, 1, false);
    bring(a, b, 0);
    assert_true(merge_open(m, 1));
    bring(b, REQUESTS * OF_REQUEST, 2);
    end_all(true);
    struct ledger_row sum = ledger_sum(p);
    // whatever was open in that second, and as good as nothing else
    assert_true(sum.incomplete_loss >= touched(1000, 2000) - 4);
    assert_true(sum.incomplete_loss <= touched(1000, 2000) + 4);
    assert_int_equal(sum.requests_complete, REQUESTS - sum.requests_incomplete);
}

// Dropped messages are lost until the next one of the same connection, whatever others bring.
static void dropped(void **state) {
    (void)state;
    size_t a = first_after(START + SECOND), b = first_after(START + 2 * SECOND), at = out.len;
    merge_open(m, 0);
    merge_open(m, 1);
    bring(0, a, 2);
    frame_dropped(100);
    assert_int_equal(merge_feed(m, 1, slice_of(out.data + at, out.len - at), false), -1);
    out.len = at;
    bring(a, b, 0);
    bring(b, REQUESTS * OF_REQUEST, 2);
    end_all(true);
    struct ledger_row sum = ledger_sum(p);
    assert_int_equal(sum.dropped_messages, 100);
    assert_true(sum.incomplete_loss >= touched(1000, 2000) - 4);
    assert_true(sum.incomplete_loss <= touched(1000, 2000) + 4);
}

// Who never says a word, or no more, does not hold up the others for ever. What they bring
// meanwhile is incomplete; as soon as he is back, it is not.
static void silent(void **state) {
    (void)state;
    size_t half = REQUESTS * OF_REQUEST / 2;
    merge_open(m, 0);
    merge_open(m, 1);
    for (size_t i = 0; i < half; i++) {
        merge_feed(m, 0, bytes_of(&sent[i]), false);
        tick(sent[i].time);
        assert_true(now < START + MERGE_SILENT_NS || pipeline_totals(n).messages == i + 1);
        assert_true(now >= START + MERGE_SILENT_NS || pipeline_totals(n).messages == 0);
    }
    empty_frame(0);
    empty_frame(1);
    for (size_t i = half; i < REQUESTS * OF_REQUEST; i++) {
        merge_feed(m, 0, bytes_of(&sent[i]), false);
        empty_frame(1);
        tick(sent[i].time);
    }
    end_all(true);
    struct ledger_row sum = ledger_sum(p);
    assert_int_equal(sum.messages, REQUESTS * OF_REQUEST);
    assert_true(sum.incomplete_loss >= REQUESTS / 2 && sum.incomplete_loss < REQUESTS / 2 + 6);
    assert_int_equal(sum.requests_complete, REQUESTS - sum.incomplete_loss);
}

// Both bring what they have until a second has passed, and are up to date.
static size_t up_to_date(void) {
    size_t a = first_after(START + SECOND);
    merge_open(m, 0);
    merge_open(m, 1);
    for (size_t i = 0; i < a; i++) {
        bring(i, i + 1, 2);
    }
    for (int i = 0; i < 20; i++) {
        empty_frame(0);
        empty_frame(1);
        tick(now + 10 * MS);
    }
    assert_int_equal(pipeline_totals(n).messages, a);
    return a;
}

// What the first of them has next waits for the second, which is behind, whatever time passes.
static void waits(size_t a, bool more) {
    static const uint8_t empty[5];
    size_t first = pipeline_totals(n).messages;
    for (int i = 0; i < 50; i++) {
        assert_int_equal(merge_feed(m, 1, slice_of(empty, sizeof empty), more), -1);
        if (i == 0) {
            merge_feed(m, 0, bytes_of(&sent[a]), false);
        }
        tick(now + 10 * MS);
        assert_int_equal(pipeline_totals(n).messages, first);
    }
}

// An empty frame with more behind it may be of long ago.
static void behind(void **state) {
    (void)state;
    size_t a = up_to_date();
    waits(a, true);
    empty_frame(1);
    tick(now + MERGE_HOLD_NS);
    assert_int_equal(pipeline_totals(n).messages, a + 1);
}

// So may each, once the collector has stood still; for a second.
static void stood_still(void **state) {
    (void)state;
    size_t a = up_to_date();
    tick(now + MERGE_STILL_NS);
    waits(a, false);
    for (int i = 0; i < 50; i++) {
        empty_frame(1);
        tick(now + 10 * MS);
    }
    empty_frame(1);
    assert_int_equal(pipeline_totals(n).messages, a + 1);
}

// What is no trace ends its connection, and nobody else's.
static void damaged(void **state) {
    (void)state;
    size_t half = REQUESTS * OF_REQUEST / 2;
    merge_open(m, 0);
    merge_open(m, 1);
    bring(0, half, 2);
    uint64_t before = ledger_sum(p).decode_errors;
    size_t len = 0;
    for (size_t i = 0; i < half; i++) {
        len += sent[i].process == 1 ? sent[i].len : 0;
    }
    assert_int_equal(merge_feed(m, 1, slice_text("GET / HTTP/1.0"), false), len);
    merge_close(m, 1, false);
    assert_true(merge_open(m, 1));
    bring(half, REQUESTS * OF_REQUEST, 2);
    end_all(true);
    assert_int_equal(ledger_sum(p).decode_errors, before + 1);
    assert_true(ledger_sum(p).requests_complete > REQUESTS - 12);
    assert_true(ledger_sum(p).incomplete_loss > 0);
}

// One that has said its end goes while the others go on: nothing is lost.
static void ended(void **state) {
    (void)state;
    size_t half = REQUESTS * OF_REQUEST / 2;
    merge_open(m, 0);
    merge_open(m, 1);
    for (size_t i = 0; i < REQUESTS * OF_REQUEST; i++) {
        uint32_t stream = i < half ? sent[i].process : 0;
        assert_int_equal(merge_feed(m, stream, bytes_of(&sent[i]), false), -1);
        tick(sent[i].time);
        if (i == half) {
            end_frame(1);
            merge_close(m, 1, false);
        }
    }
    for (int i = 0; i < 40; i++) {
        empty_frame(0);
        tick(now + 10 * MS);
    }
    merge_close(m, 0, true);
    finish();
    assert_int_equal(ledger_sum(p).requests_complete, REQUESTS);
}

// A list in whose middle there is something else: what is before it is there, and the rest is lost.
static void damaged_list(void **state) {
    (void)state;
    struct sent bad = {.at = out.len};
    frame_mark("request_begin", 1, 1, "x", START);
    bad.len = out.len - bad.at;
    out.data[bad.at + 6] = 255; // no term's tag
    const struct sent *list[] = {&sent[0], &sent[1], &bad, &sent[2], &sent[3]};
    merge_open(m, 0);
    merge_open(m, 1);
    empty_frame(0);
    feed_list(1, list, 5);
    end_all(true);
    assert_int_equal(pipeline_totals(n).messages, 5);
    assert_int_equal(ledger_sum(p).decode_errors, 1);
    assert_int_equal(ledger_sum(p).messages, 5);
}

// Another connection begins while the first is in the middle of a frame; or that never cut_off.
static void within_a_frame(void **state) {
    (void)state;
    for (int cut_off = 0; cut_off < 2; cut_off++) {
        const struct sent *s = sent;
        stop();
        start();
        merge_open(m, 0);
        merge_feed(m, 0, slice_of(out.data + s->at, 9), false);
        merge_open(m, 1);
        for (size_t i = 1; i < 20; i++) {
            if (sent[i].process == 1) {
                assert_int_equal(merge_feed(m, 1, bytes_of(&sent[i]), false), -1);
            }
        }
        assert_int_equal(pipeline_totals(n).messages, 0);
        if (cut_off) {
            merge_close(m, 0, false);
            assert_true(merge_open(m, 0));
        } else {
            merge_feed(m, 0, slice_of(out.data + s->at + 9, s->len - 9), false);
        }
        for (size_t i = 1; i < 20; i++) {
            if (sent[i].process == 0) {
                assert_int_equal(merge_feed(m, 0, bytes_of(&sent[i]), false), -1);
            }
        }
        tick(sent[19].time);
        end_all(true);
        assert_int_equal(pipeline_totals(n).messages, 20);
        assert_int_equal(ledger_sum(p).decode_errors, cut_off);
    }
}

// The start of a frame behind an empty one: its message is on its way, and may be older than what
// others have brought.
static void begun_frame(void **state) {
    (void)state;
    const struct sent *s = sent;
    while (s->process == 0) {
        s++;
    }
    merge_open(m, 0);
    merge_open(m, 1);
    tick(sent[19].time + 2 * MERGE_HOLD_NS);
    empty_frame(1);
    merge_feed(m, 1, slice_of(out.data + s->at, 9), false);
    for (size_t i = 0; i < 20; i++) {
        if (sent[i].process == 0) {
            merge_feed(m, 0, bytes_of(&sent[i]), false);
        }
    }
    assert_int_equal(pipeline_totals(n).messages, 0);
    merge_feed(m, 1, slice_of(out.data + s->at + 9, s->len - 9), false);
    empty_frame(1);
    assert_true(pipeline_totals(n).messages > 1);
}

// A connection that is busy and far behind holds the others up, as long as there is room.
static void room(void **state) {
    (void)state;
    uint64_t fed = 0, most = 0;
    merge_open(m, 0);
    merge_open(m, 1);
    merge_feed(m, 1, bytes_of(&sent[0]), false);
    merge_feed(m, 0, bytes_of(&sent[0]), false);
    while (fed < 3 * LIMIT_PARTIAL_BYTES) {
        const struct sent *s = &sent[random_u64(&seed) % (REQUESTS * OF_REQUEST)];
        assert_int_equal(merge_feed(m, 0, bytes_of(s), false), -1);
        fed += s->len;
        uint64_t waits = fed - pipeline_totals(n).bytes;
        most = waits > most && waits < fed ? waits : most;
    }
    assert_true(most > LIMIT_PARTIAL_BYTES / 8 && most < LIMIT_PARTIAL_BYTES);
    end_all(true);
    assert_true(ledger_sum(p).incomplete_loss + ledger_sum(p).requests_incomplete > 0);
}

// The same of one that brings its bytes in pieces, as sockets do: in the middle of a frame, too,
// the room for what waited is there again once that is handed on.
static void room_in_pieces(void **state) {
    (void)state;
    enum { PIECE = 100000 };
    uint64_t fed = 0;
    merge_open(m, 0);
    merge_open(m, 1);
    merge_feed(m, 1, bytes_of(&sent[0]), false);
    for (size_t at = 0; fed < 3 * LIMIT_PARTIAL_BYTES; fed += PIECE) {
        static uint8_t piece[PIECE];
        for (size_t i = 0; i < PIECE; i++, at = (at + 1) % put_from) {
            piece[i] = out.data[at];
        }
        assert_int_equal(merge_feed(m, 0, slice_of(piece, PIECE), false), -1);
    }
    assert_true(pipeline_totals(n).bytes > 2 * LIMIT_PARTIAL_BYTES);
}

// -- blocks ---------------------------------------------------------------------------------------

// What of the script's messages from..until is connection 0's, as blocks.
static void bring_blocks(size_t from, size_t until) {
    static const struct sent *list[REQUESTS * OF_REQUEST];
    uint32_t count = 0;
    for (size_t i = from; i < until; i++) {
        if (sent[i].process == 0) {
            list[count++] = &sent[i];
        }
    }
    feed_blocks(0, list, count, 100000);
}

static struct slice node_name(void) {
    static const uint8_t node[] = {TERM_SMALL_ATOM_UTF8, 3, 'n', '@', 'h'};
    return slice_of(node, sizeof node);
}

// A loss that a block tells has its place among the other connection's messages, which are there
// already, and hurts what was open between its two times.
static void loss_in_block(void **state) {
    (void)state;
    size_t a = first_after(START + SECOND);
    static struct native_writer writer;
    struct buffer block = buffer_make(1 << 16);
    struct told loss = {
        .kind = NATIVE_LOST, .time = START + SECOND, .messages = 70, .until = START + 2 * SECOND};
    native_open(&writer, &block, 0, node_name(), START);
    native_tell(&writer, &loss);
    native_close(&writer);
    merge_open(m, 0);
    merge_open(m, 1);
    for (size_t i = 0; i < REQUESTS * OF_REQUEST; i++) {
        if (sent[i].process == 1) {
            assert_int_equal(merge_feed(m, 1, bytes_of(&sent[i]), false), -1);
        }
    }
    bring_blocks(0, a);
    assert_int_equal(merge_feed(m, 0, slice_of(block.data, block.len), false), -1);
    bring_blocks(a, REQUESTS * OF_REQUEST);
    end_all(true);
    struct ledger_row sum = ledger_sum(p);
    assert_int_equal(sum.messages, REQUESTS * OF_REQUEST);
    assert_int_equal(sum.dropped_messages, 70);
    assert_true(sum.incomplete_loss >= touched(1000, 2000) - 1);
    assert_true(sum.incomplete_loss <= touched(1000, 2000) + 1);
    assert_int_equal(sum.requests_complete, REQUESTS - sum.requests_incomplete);
    assert_int_equal(n->pipeline->partial_bytes, 0);
    buffer_free(&block);
}

// It waits until the others have brought what was before it.
static void loss_waits(void **state) {
    (void)state;
    size_t half = first_after(START + SECOND / 2), over = first_after(START + SECOND);
    static struct native_writer writer;
    struct buffer block = buffer_make(1 << 16);
    struct told loss = {
        .kind = NATIVE_LOST, .time = START + SECOND, .messages = 70, .until = START + SECOND};
    native_open(&writer, &block, 0, node_name(), START);
    native_tell(&writer, &loss);
    native_close(&writer);
    merge_open(m, 0);
    merge_open(m, 1);
    assert_int_equal(merge_feed(m, 0, slice_of(block.data, block.len), false), -1);
    for (size_t i = 0; i <= over; i++) {
        assert_int_equal(merge_feed(m, 1, bytes_of(&sent[i]), false), -1);
        assert_true(i > half ||
                    (pipeline_totals(n).messages == i + 1 && pipeline_totals(n).dropped == 0));
    }
    assert_int_equal(pipeline_totals(n).dropped, 70);
    end_all(true);
    buffer_free(&block);
}

// Bytes of the script's first frames.
static size_t frames_bytes(int frames) {
    struct frame frame;
    size_t at = 0;
    for (; frames > 0; frames--) {
        at += (size_t)frame_next(slice_of(out.data + at, put_from - at), &frame);
    }
    return at;
}

// A block is read up to the damage, its rest is lost, and the next one is read again.
static void damaged_block(void **state) {
    (void)state;
    struct buffer block = buffer_make(1 << 20);
    native_of_terms(slice_of(out.data, frames_bytes(2)), 9, &block);
    block.data[block.len - 1] = 12; // instead of its end
    merge_open(m, 0);
    merge_open(m, 1);
    empty_frame(1);
    assert_int_equal(merge_feed(m, 0, slice_of(block.data, block.len), false), -1);
    bring_blocks(2, 50);
    end_all(true);
    uint32_t later = 0;
    for (size_t i = 2; i < 50; i++) {
        later += sent[i].process == 0;
    }
    assert_int_equal(pipeline_totals(n).messages, 3 + later);
    assert_int_equal(ledger_sum(p).decode_errors, 1);
    assert_true(ledger_sum(p).incomplete_loss > 0);
    assert_int_equal(n->pipeline->partial_bytes, 0);
    buffer_free(&block);
}

// A connection that is lost in the middle of a block's frame.
static void cut_block(void **state) {
    (void)state;
    struct buffer block = buffer_make(1 << 20);
    native_of_terms(slice_of(out.data, out.len), 9, &block);
    for (size_t cut = 1; cut < 200; cut++) {
        stop();
        start();
        merge_open(m, 0);
        merge_feed(m, 0, slice_of(block.data, cut), false);
        merge_close(m, 0, false);
        merge_open(m, 1);
        end_frame(1);
        assert_true(pipeline_totals(n).messages <= 9 && pipeline_totals(n).decode_errors <= 1);
        assert_true(cut <= FRAME_HEADER || pipeline_totals(n).decode_errors == 1);
        assert_false(n->bad); // what comes next is read
        merge_end(m);
    }
    buffer_free(&block);
}

// Without memory for one it goes on as it is, out of order, and nothing of it is lost.
static void no_memory_for_a_block(void **state) {
    (void)state;
    size_t first = frames_bytes(2), whole = frames_bytes(OF_REQUEST); // of the first request
    struct buffer begin = buffer_make(1 << 20), rest = buffer_make(1 << 20);
    native_of_terms(slice_of(out.data, first), 9, &begin);
    native_of_terms(slice_of(out.data + first, whole - first), 9, &rest);
    for (int failing = 0; failing < 2; failing++) {
        stop();
        start();
        merge_open(m, 0);
        merge_open(m, 1);
        empty_frame(1);
        merge_feed(m, 0, slice_of(begin.data, begin.len), false);
        tick(START + 150 * MS);
        empty_frame(1);
        assert_int_equal(pipeline_totals(n).messages, 2);
        merge_feed(m, 0, slice_of(rest.data, rest.len - 1), false);
        fail_alloc_at(failing ? 0 : -1);
        merge_feed(m, 0, slice_of(rest.data + rest.len - 1, 1), false);
        fail_alloc_at(-1);
        end_all(true);
        assert_int_equal(pipeline_totals(n).messages, OF_REQUEST);
        assert_int_equal(pipeline_totals(n).decode_errors, 0);
        assert_int_equal(ledger_sum(p).incomplete_loss, failing);
        assert_int_equal(ledger_sum(p).requests_complete, !failing);
        assert_int_equal(n->pipeline->partial_bytes, 0);
    }
    buffer_free(&begin);
    buffer_free(&rest);
}

// A connection that brings blocks and is far ahead waits for the other one, as long as there is
// room.
static void room_for_blocks(void **state) {
    (void)state;
    struct buffer blocks = buffer_make(16 << 20);
    uint64_t fed = 0, most = 0, told = 0;
    uint64_t each = native_of_terms(slice_of(out.data, out.len), 300, &blocks);
    merge_open(m, 0);
    merge_open(m, 1);
    merge_feed(m, 1, bytes_of(&sent[0]), false);
    while (fed < 3 * LIMIT_PARTIAL_BYTES) {
        assert_int_equal(merge_feed(m, 0, slice_of(blocks.data, blocks.len), false), -1);
        fed += blocks.len;
        told += each;
        size_t taken = n->pipeline->partial_bytes;
        most = taken > most ? taken : most;
    }
    end_all(true);
    assert_true(most > LIMIT_PARTIAL_BYTES / 8 && most < LIMIT_PARTIAL_BYTES / 8 * 9);
    assert_int_equal(pipeline_totals(n).messages, told + 1); // what was out of order is there, too
    assert_int_equal(n->pipeline->partial_bytes, 0);
    buffer_free(&blocks);
}

#define UNIT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        UNIT(same),
        UNIT(lost),
        UNIT(dropped),
        UNIT(silent),
        UNIT(behind),
        UNIT(stood_still),
        UNIT(damaged),
        UNIT(within_a_frame),
        UNIT(room),
        UNIT(ended),
        UNIT(damaged_list),
        UNIT(room_in_pieces),
        UNIT(begun_frame),
        UNIT(loss_in_block),
        UNIT(loss_waits),
        UNIT(damaged_block),
        UNIT(cut_block),
        UNIT(no_memory_for_a_block),
        UNIT(room_for_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
