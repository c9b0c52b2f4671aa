// SPDX-License-Identifier: Apache-2.0
#include "pipeline_node.h"

#include <stdlib.h>
#include <string.h>

#include "base/time_math.h"
#include "model/stats/keep.h"

enum {
    ADVANCE_NS = 50000000, // stream time between two looks for what is over
    // how far a live clock stays behind: what is on its way must not come too late
    IDLE_NS = 500000000
};
// A node tells its time every second. Where the last time is this old, it may have stood still
// meanwhile, as a machine that sleeps.
static const int64_t LATELY_NS = 5LL * NANOSECONDS;
// A live message this far from the node's clock has no time worth having: it would close
// everything, or open a bucket in another century.
static const int64_t STRANGE_NS = 3600LL * NANOSECONDS;
// Once the node has told its time, what is further ahead than its clock and ours may drift apart in
// between is none either.
static const int64_t AHEAD_NS = 10LL * NANOSECONDS;

// -- messages -------------------------------------------------------------------------------------

// The node's time of a message. Returns false when it has none that can be true.
static inline bool message_time(struct pipeline_node *n, const struct message *m, int64_t *time) {
    if (m->clock == MESSAGE_MONOTONIC || m->clock == MESSAGE_STRICT) {
        *time = pipeline_node_ns(n, m->time);
    } else if (m->clock == MESSAGE_UNTIMED) {
        n->totals.untimed++;
        return false;
    } else if (__builtin_sub_overflow(m->time, n->account.offset, time)) {
        return false;
    }
    int64_t away;
    if (n->live && (__builtin_sub_overflow(*time, pipeline_node_now(n), &away) ||
                    !pipeline_within(away, STRANGE_NS) || (n->synced && away > AHEAD_NS))) {
        return false;
    }
    return pipeline_within(*time, TRACKER_FARTHEST);
}

// What the message's function means. The reader keeps it with what it knows of such messages.
static const struct traced_function *function_of(struct pipeline_node *n, const struct message *m) {
    if (!m->head || n->full_count > 0) { // which needs the function's name each time
        return tier_set_find(&n->tiers, m);
    }
    if (!m->head->meant) {
        m->head->meaning = tier_set_find(&n->tiers, m);
        m->head->meant = true;
    }
    return m->head->meaning;
}

static inline void count_cost(struct cost *cost, size_t bytes) {
    cost->messages++;
    cost->bytes += bytes;
}

void stream_lose(struct pipeline_node *n) {
    if (!n->tracker) { // nothing came since the node was gone: nothing is open
        return;
    }
    tracker_lost(n->tracker, n->latest);
    tracker_lost_until(n->tracker, INT64_MAX); // until the next message tells the time
    n->lost = true;
    pipeline_full_lost(n);
}

// Apart from what runs for each message.
__attribute__((noinline)) static void advance(struct pipeline_node *n, int64_t now) {
    n->advanced = now;
    n->advance_at = time_add(now, ADVANCE_NS);
    if (n->rested != INT64_MIN && now > time_add(n->rested, DISORDER_NS)) {
        tracker_rested(n->tracker, n->rested);
        n->rested = INT64_MIN;
    }
    for (uint32_t i = 0; i < n->full_count; i++) { // before requests are closed: that waits longer
        full_trace_advance(n->full[i], time_sub(now, DISORDER_NS));
    }
    tracker_advance(n->tracker, now);
    ledger_settle(n);
    ledger_settle_costs(n);
}

// The latest messages that were lost were before this time, or an earlier loss's.
static void lost_until(struct pipeline_node *n, int64_t time) {
    n->lost_until = time > n->lost_until ? time : n->lost_until;
    if (!n->lost) {
        tracker_lost_until(n->tracker, n->lost_until);
    }
}

static inline void pass_time(struct pipeline_node *n, int64_t time) {
    if (n->lost && n->gaps == 0) {
        n->lost = false;
        lost_until(n, (time > n->latest ? time : n->latest) + DISORDER_NS);
    }
    if (time > n->latest) {
        n->latest = time;
        if (time >= n->advance_at) {
            advance(n, time);
        }
    }
}

// Apart, as what follows.
__attribute__((noinline)) static void full_size(const struct pipeline_node *n, size_t bytes) {
    for (uint32_t i = 0; i < n->full_count; i++) {
        full_trace_size(n->full[i], bytes);
    }
}

// A message of the trace session that full traces have of their own: it is nobody else's.
__attribute__((noinline)) static bool handle_full(struct pipeline_node *n,
                                                  const struct message *m) {
    int64_t time;
    if (!message_time(n, m, &time)) {
        return false;
    }
    pass_time(n, time);
    n->full_apart = true;
    deliver_full(n, m, time, FULL_PLAIN);
    return true;
}

// Takes a message of that many bytes. Returns false when it should have been of use and is not.
static bool handle(struct pipeline_node *n, const struct message *m, size_t bytes) {
    int64_t time;
    if (m->kind == MESSAGE_OTHER) {
        return true;
    }
    if (n->full_count > 0) {
        full_size(n, bytes);
    }
    if (n->live && m->clock == MESSAGE_STRICT) {
        return handle_full(n, m);
    }
    if (m->kind > MESSAGE_EXCEPTION) {
        if (!message_time(n, m, &time)) {
            return false;
        }
        pass_time(n, time);
        struct cost *cost = pipeline_node_cost(n, deliver_state(n, m, time));
        if (cost) {
            count_cost(cost, bytes);
        }
        return true;
    }
    const struct traced_function *f = function_of(n, m);
    if (!f) {
        if (n->full_count > 0 && message_time(n, m, &time)) {
            pass_time(n, time);
            deliver_full(n, m, time, FULL_PLAIN);
        }
        return true;
    }
    count_cost(&n->costs[f - n->tiers.functions], bytes); // of what is no tier it goes nowhere
    if (!message_time(n, m, &time)) {
        return false;
    }
    pass_time(n, time);
    if (m->kind == MESSAGE_CALL) {
        deliver_call(n, f, m, time);
    } else {
        deliver_return(n, f, m, time);
    }
    return true;
}

// A frame or a part of one is unusable: what was in it is lost.
static void count_error(struct pipeline_node *n) {
    n->totals.decode_errors++;
    if (n->totals.first_error < 0) {
        n->totals.first_error = n->place.offset;
    }
    stream_lose(n);
}

// The frame at the offset is too large: so many bytes of it, behind those that are there, are
// passed over when they come.
static void pass_over(struct pipeline_node *n, uint64_t bytes) {
    count_error(n);
    n->place.skipping = bytes;
    n->skipped = n->place.offset;
}

static void handle_term(struct pipeline_node *n, struct slice body) {
    struct cursor c;
    struct message m;
    uint32_t count = message_frame(body, &c);
    if (count == 0 && c.failed) {
        n->totals.messages++;
        count_error(n);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        n->totals.messages++;
        const uint8_t *start = c.at;
        if (!message_decode(&n->reader, &c, count == 1, &m)) {
            count_error(n);
            return;
        }
        if (!handle(n, &m, (size_t)(c.at - start) + (count == 1 ? FRAME_HEADER + 1 : 0))) {
            count_error(n);
        }
    }
}

// Messages of between two times are lost. Those of full traces' own trace session have nothing to
// do with the tiers' requests.
static void handle_loss(struct pipeline_node *n, const struct native_loss *loss) {
    // a frame of dropped messages tells of no more
    n->totals.dropped += loss->messages < UINT32_MAX ? loss->messages : UINT32_MAX;
    if (n->live && loss->clock == MESSAGE_STRICT) {
        pipeline_full_lost(n);
        return;
    }
    struct message from = {.clock = loss->clock, .time = loss->time};
    struct message to = {.clock = loss->clock, .time = loss->until};
    int64_t since, until;
    if (!message_time(n, &from, &since) || !message_time(n, &to, &until)) {
        stream_lose(n);
        return;
    }
    tracker_lost(n->tracker, since);
    lost_until(n, until);
    pipeline_full_lost(n);
}

// Takes the next message or loss of a block. False: there is none.
static bool handle_next(struct pipeline_node *n, struct native_reader *r) {
    struct message m;
    struct native_loss loss;
    size_t left = native_left(r);
    switch (native_next(r, &m, &loss)) {
    case NATIVE_IS_MESSAGE:
        n->totals.messages++;
        if (!handle(n, &m, left - native_left(r))) {
            count_error(n);
        }
        return true;
    case NATIVE_IS_LOSS:
        handle_loss(n, &loss);
        return true;
    case NATIVE_IS_OVER:
        break;
    case NATIVE_IS_BAD:
        stream_unreadable(n, 1);
        break;
    }
    return false;
}

static void handle_block(struct pipeline_node *n, struct slice body) {
    struct pipeline *p = n->pipeline;
    if (!p->native) {
        p->native = malloc(sizeof *p->native);
    }
    if (!p->native || !native_begin(p->native, body)) {
        stream_unreadable(n, 1);
        return;
    }
    while (handle_next(n, p->native)) {
    }
}

void stream_gaps(struct pipeline_node *n, uint32_t gaps) {
    if (gaps > n->gaps) {
        stream_lose(n);
    }
    n->gaps = gaps;
}

void stream_unreadable(struct pipeline_node *n, uint32_t messages) {
    n->totals.messages += messages;
    count_error(n);
}

bool stream_time(struct pipeline_node *n, struct cursor *c, bool last, int64_t *time) {
    struct message m;
    int64_t at;
    uint64_t untimed = n->totals.untimed; // is counted when the message is handed on
    bool read = message_decode(&n->reader, c, last, &m);
    if (read && m.kind != MESSAGE_OTHER && message_time(n, &m, &at)) {
        *time = at;
    }
    n->totals.untimed = untimed;
    return read;
}

void stream_native_time(struct pipeline_node *n, enum message_clock clock, int64_t ticks,
                        int64_t *time) {
    struct message m = {.clock = clock, .time = ticks};
    int64_t at;
    if (message_time(n, &m, &at)) {
        *time = at;
    }
}

// -- streams --------------------------------------------------------------------------------------

bool pipeline_begin(struct pipeline_node *n, const struct pipeline_stream *stream) {
    if (n->open) {
        int64_t cut;
        pipeline_end(n, false, &cut);
    }
    struct tracker_options options = {.timeout_ns = n->pipeline->options.timeout_ns,
                                      .markers = stream->markers,
                                      .entry = stream->entry,
                                      .events = pipeline_events(n, stream->live)};
    struct tracker *tracker = tracker_new(n->pipeline->pool, &options);
    if (!tracker) {
        return false;
    }
    tracker_free(n->tracker);
    n->tracker = tracker;
    memset(n->tiers_had, 0, sizeof n->tiers_had);
    pipeline_node_has_tiers(n);
    identify_reset(&n->identify);
    buffer_reset(&n->partial);
    n->stream_before = n->latest_stream;
    n->stream_before.came = pipeline_node_seen(n) - n->latest_stream.begun;
    n->latest_stream =
        (struct stream_count){.labels = n->labels_to_come, .begun = pipeline_node_seen(n)};
    n->labels_to_come = 0;
    n->open = true;
    n->live = stream->live;
    n->bad = false;
    n->lost = false;
    n->lost_until = INT64_MIN;
    n->gaps = 0;
    n->reader = (struct message_reader){0};
    n->place = (struct frame_place){0};
    n->latest = INT64_MIN;
    n->advanced = n->advance_at = n->rested = INT64_MIN;
    n->totals.first_error = -1;
    return true;
}

// A capture's bytes come from main memory, in frames of some 200: those of a few frames further on
// are asked for now. A prefetch of what is past the end does nothing.
static inline void prefetch_ahead(const uint8_t *at) {
    enum { AHEAD = 2048, LINE = 64, LINES = 4 };
    for (int i = 0; i < LINES; i++) {
        __builtin_prefetch((const void *)((uintptr_t)at + AHEAD + (uintptr_t)i * LINE));
    }
}

static inline void take_frame(void *context, const struct frame *frame) {
    struct pipeline_node *n = context;
    switch (frame->kind) {
    case FRAME_TERM:
        prefetch_ahead(frame->body.data);
        handle_term(n, frame->body);
        break;
    case FRAME_BLOCK:
        handle_block(n, frame->body);
        break;
    case FRAME_DROPPED:
        n->totals.dropped += frame->size;
        stream_lose(n);
        break;
    case FRAME_OVERSIZED:
        n->totals.messages++;
        pass_over(n, frame->size);
        break;
    case FRAME_EMPTY:
    case FRAME_END:
        break;
    }
}

static int64_t take_frames(void *context, struct slice bytes) {
    struct pipeline_node *n = context;
    return frame_each(&n->place, bytes, take_frame, n);
}

void partial_free(struct pipeline_node *n) {
    n->pipeline->partial_bytes -= n->partial.room;
    buffer_free(&n->partial);
}

// Whether the node may keep so many bytes of a frame that is not whole: always few, and more as
// long as others find room, too.
static bool may_keep(const struct pipeline_node *n, size_t len) {
    size_t others = n->pipeline->partial_bytes - n->partial.room;
    size_t most = LIMIT_PARTIAL_BYTES / n->pipeline->names->pipelines;
    size_t left = others < most ? most - others : 0;
    size_t room = len > n->partial.cap / 2 ? n->partial.cap : 2 * len; // as a buffer grows
    return !n->pipeline->options.shared || len <= LIMIT_SURE_BYTES || room <= left / 4 * 3;
}

// The memory of a large frame that is done with is there for others.
static void partial_settle(struct pipeline_node *n) {
    if (n->partial.len == 0 && n->partial.room > LIMIT_SURE_BYTES) {
        partial_free(n);
    }
}

// Keeps the start of a frame. Without room for it, or memory, what is kept of it goes and the rest
// is passed over when it comes.
static bool partial_add(void *context, struct slice bytes) {
    struct pipeline_node *n = context;
    partial_settle(n);
    size_t before = n->partial.room, len = n->partial.len + bytes.len;
    bool kept = may_keep(n, len) && buffer_append(&n->partial, bytes.data, bytes.len);
    n->pipeline->partial_bytes += n->partial.room - before;
    if (!kept && len >= FRAME_HEADER && len <= LIMIT_FRAME_BYTES + FRAME_HEADER) {
        uint8_t header[FRAME_HEADER];
        size_t have = n->partial.len < FRAME_HEADER ? n->partial.len : FRAME_HEADER;
        memcpy(header, n->partial.data, have);
        memcpy(header + have, bytes.data, FRAME_HEADER - have);
        n->totals.messages++;
        pass_over(n, frame_missing(slice_of(header, FRAME_HEADER)) + FRAME_HEADER - len);
        n->place.offset += (int64_t)len;
        partial_free(n);
        return true;
    }
    return kept;
}

int64_t pipeline_feed(struct pipeline_node *n, struct slice bytes) {
    struct frame_reader reader = {&n->partial, take_frames, partial_add, n};
    if (n->bad) {
        return n->place.offset;
    }
    n->totals.bytes += bytes.len;
    n->fresh = true;
    if (!frame_feed(&reader, bytes)) {
        count_error(n);
        buffer_reset(&n->partial);
        n->bad = true;
    }
    partial_settle(n);
    ledger_settle(n);
    return n->bad ? n->place.offset : -1;
}

bool pipeline_end(struct pipeline_node *n, bool clean, int64_t *cut_at) {
    if (!n->open) {
        return false;
    }
    n->open = false;
    bool cut = n->partial.len > 0 || n->place.skipping > 0;
    if (cut) {
        *cut_at = n->place.skipping > 0 ? n->skipped : n->place.offset;
        count_error(n);
    } else if (!clean) {
        tracker_lost(n->tracker, n->latest);
    }
    tracker_reset(n->tracker);
    ledger_settle(n);
    ledger_settle_costs(n);
    partial_free(n);
    return cut;
}

void pipeline_answer(struct pipeline_node *n, uint32_t id, const struct slice *identity) {
    if (n->open) {
        uint16_t named = identity ? deliver_identity(n, *identity) : IDENTITY_UNDEFINED;
        identify_answer(&n->identify, n->tracker, id,
                        named == IDENTITY_UNDEFINED ? DIRECTORY_NONE : named);
    }
}

// Whether the node's time can be told without its messages. A tracker that was sent ahead closes
// nothing until the node's time is there.
static bool told_lately(const struct pipeline_node *n) {
    return n->synced && n->pipeline->now.steady - n->synced_at.steady <= LATELY_NS;
}

// Once a second: what a burst took goes back.
static void trim(struct pipeline *p) {
    if (p->now.steady - p->trimmed < NANOSECONDS) {
        return;
    }
    p->trimmed = p->now.steady;
    request_pool_trim(p->pool);
    keep_trim(p->keep);
    names_settle(p);
    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        if (p->nodes[i] && p->nodes[i]->tracker) {
            tracker_trim(p->nodes[i]->tracker);
        }
    }
}

void pipeline_tick(struct pipeline *p, struct pipeline_now now) {
    p->now = now;
    trim(p);
    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        struct pipeline_node *n = p->nodes[i];
        if (!n) {
            continue;
        }
        // The gauge's empty frames come every 10 ms while the stream flows. They alone mean that
        // nothing is on its way; with messages among them time goes on by theirs, and without any
        // bytes the stream is held up.
        bool idle = n->fresh && n->totals.messages == n->ticked;
        if (n->open && n->live && idle && n->partial.len == 0 && told_lately(n)) {
            int64_t safe = pipeline_node_now(n) - IDLE_NS;
            if (safe > n->advanced) {
                advance(n, safe > n->latest ? safe : n->latest);
            }
        }
        n->fresh = false;
        n->ticked = n->totals.messages;
    }
}
