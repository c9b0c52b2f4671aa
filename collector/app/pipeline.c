#include "pipeline_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "codec/frame.h"
#include "codec/mfa.h"
#include "model/keep.h"

enum {
    ADVANCE_NS = 50000000,    // stream time between two looks for what is over
    NANOSECONDS = 1000000000, // per second
    IDLE_NS = 500000000       // how far a live clock stays behind: what is on its way must not come too late
};
// A node tells its time every second. Where the last time is this old, it may have stood still meanwhile, as a machine that sleeps.
static const int64_t LATELY_NS = 5LL * NANOSECONDS;
// A live message this far from the node's clock has no time worth having: it would close everything, or open a bucket in
// another century.
static const int64_t STRANGE_NS = 3600LL * NANOSECONDS;
// Once the node has told its time, what is further ahead than its clock and ours may drift apart in between is none either.
static const int64_t AHEAD_NS = 10LL * NANOSECONDS;

struct pipeline *pipeline_new(const struct pipeline_options *options) {
    struct pipeline *p = calloc(1, sizeof *p);
    if (!p) {
        goto err0;
    }
    p->options = *options;
    if (!directory_init(&p->directory)) {
        goto err1;
    }
    p->pool = request_pool_new();
    if (!p->pool) {
        goto err2;
    }
    p->stats = stats_new();
    if (!p->stats) {
        goto err3;
    }
    p->keep = keep_new();
    if (!p->keep) {
        goto err4;
    }
    if (!label_makers_init(&p->makers)) {
        goto err5;
    }
    return p;
err5:
    keep_free(p->keep);
err4:
    stats_free(p->stats);
err3:
    request_pool_free(p->pool);
err2:
    directory_free(&p->directory);
err1:
    free(p);
err0:
    return NULL;
}

static void node_free(struct pipeline_node *n) {
    tracker_free(n->tracker);
    tier_set_free(&n->tiers);
    identify_free(&n->identify);
    buffer_free(&n->partial);
    free(n);
}

void pipeline_free(struct pipeline *p) {
    if (!p) {
        return;
    }
    for (uint32_t i = 0; i < LIMIT_NODES && p->nodes[i]; i++) {
        node_free(p->nodes[i]);
    }
    stats_free(p->stats);
    keep_free(p->keep);
    label_makers_free(&p->makers);
    request_pool_free(p->pool);
    directory_free(&p->directory);
    free(p);
}

struct directory *pipeline_directory(struct pipeline *p) {
    return &p->directory;
}

// -- what the model tells ----------------------------------------------------------------------------------------------

// Whether one more in the second of `time` (ns since 1970) stays within the limit.
static bool within_rate(struct rate *rate, int64_t time, uint32_t limit) {
    int64_t second = time / NANOSECONDS;
    if (second != rate->second) {
        *rate = (struct rate){.second = second};
    }
    return rate->count++ < limit;
}

// Tells the node's shim or the log of a complete request, as they wish.
static void tell_calls(struct pipeline_node *n, const struct request_result *result) {
    const struct pipeline_options *o = &n->pipeline->options;
    struct pipeline_calls calls = {result, &n->pipeline->directory, n->account.offset};
    int64_t ended = result->end + n->account.offset;
    if (n->calls_wanted && o->calls && within_rate(&n->calls_rate, ended, LIMIT_CALLS_PER_SECOND)) {
        o->calls(n->user, &calls);
    }
    if (result->end - result->begin > n->slow_ns && o->slow && within_rate(&n->slow_rate, ended, LIMIT_SLOW_PER_SECOND)) {
        o->slow(n->user, &calls);
    }
}

static void on_finished(void *context, const struct request_result *result) {
    struct pipeline_node *n = context;
    n->totals.complete += result->fate == REQUEST_COMPLETE && !result->remote;
    n->totals.incomplete += result->fate == REQUEST_INCOMPLETE;
    n->totals.expired += result->fate == REQUEST_EXPIRED;
    account_request(&n->account, result);
    if (result->fate == REQUEST_COMPLETE || result->cut) {
        keep_offer(n->pipeline->keep, &n->account, result, n->slow_ns);
    }
    if (n->live_rows && !result->remote) {
        live_add(n->live_rows, result);
    }
    if (n->user && result->fate == REQUEST_COMPLETE && !result->remote) {
        tell_calls(n, result);
    }
}

// Labels tell only what shims have told of them.
static uint16_t on_maker(void *context, uint64_t label) {
    struct pipeline_node *n = context;
    uint16_t maker = label_makers_find(&n->pipeline->makers, label);
    return maker == n->id ? DIRECTORY_NONE : maker;
}

static uint16_t on_identity(void *context, struct slice name) {
    return deliver_identity(context, name);
}

static void on_never_returns(void *context, uint16_t tier) {
    struct pipeline_node *n = context;
    for (uint32_t i = 0; i < n->tiers.count; i++) {
        const struct traced_function *f = &n->tiers.functions[i];
        if (f->role == ROLE_TIER && f->tier == tier) {
            struct mfa mfa = {.arity = f->arity};
            char text[MFA_TEXT_BYTES];
            snprintf(mfa.module, sizeof mfa.module, "%s", f->module);
            snprintf(mfa.function, sizeof mfa.function, "%s", f->function);
            log_warning("node %s: tier %s (%s) never returns, taking it off", pipeline_node_name(n),
                        names_text(&n->pipeline->directory.tiers, tier), mfa_text(&mfa, text));
            if (n->user && n->pipeline->options.disarm) {
                n->pipeline->options.disarm(n->user, f);
            }
        }
    }
}

// -- nodes -------------------------------------------------------------------------------------------------------------

static struct pipeline_node *node_new(struct pipeline *p, uint16_t id) {
    struct pipeline_node *n = calloc(1, sizeof *n);
    if (!n) {
        return NULL;
    }
    *n = (struct pipeline_node){.pipeline = p,
                                .id = id,
                                .ticks_per_second = NANOSECONDS,
                                .slow_ns = INT64_MAX,
                                .partial = buffer_make(LIMIT_FRAME_BYTES + FRAME_HEADER),
                                .account = {.stats = p->stats,
                                            .paths = &p->directory.paths,
                                            .bucket_s = p->options.bucket_s,
                                            .node = id},
                                .totals.first_error = -1};
    if (!tier_set_init(&n->tiers)) {
        goto err0;
    }
    if (!identify_init(&n->identify)) {
        goto err1;
    }
    return n;
err1:
    tier_set_free(&n->tiers);
err0:
    free(n);
    return NULL;
}

struct pipeline_node *pipeline_node(struct pipeline *p, struct slice name) {
    uint16_t id = directory_node(&p->directory, name);
    if (id == DIRECTORY_NONE) {
        return NULL;
    }
    if (!p->nodes[id]) {
        p->nodes[id] = node_new(p, id);
    }
    return p->nodes[id];
}

const char *pipeline_node_name(const struct pipeline_node *n) {
    return names_text(&n->pipeline->directory.nodes, n->id);
}

void pipeline_set_user(struct pipeline_node *n, void *user) {
    n->user = user;
    n->labels_to_come = 0;
}

void pipeline_want_calls(struct pipeline_node *n, bool wanted) {
    n->calls_wanted = wanted;
}

void pipeline_set_live(struct pipeline_node *n, struct live *live) {
    n->live_rows = live;
}

void pipeline_set_slow(struct pipeline_node *n, int64_t slow_ns) {
    n->slow_ns = slow_ns;
}

void pipeline_set_tiers(struct pipeline_node *n, struct tier_set tiers) {
    tier_set_free(&n->tiers);
    n->tiers = tiers;
    n->reader = (struct message_reader){0};
    identify_reset(&n->identify);
}

// All messages that have come, and those known to be lost.
static uint64_t seen(const struct pipeline_node *n) {
    return n->totals.messages + n->totals.dropped;
}

void pipeline_set_labels(struct pipeline_node *n, uint32_t start) {
    if (n->open && n->latest_stream.labels == 0) {
        n->latest_stream.labels = start;
    } else {
        n->labels_to_come = start;
    }
    label_makers_tell(&n->pipeline->makers, n->id, start);
}

// Whether a time lies between -most and most.
static inline bool within(int64_t time, int64_t most) {
    return (uint64_t)time + (uint64_t)most - 1 < 2 * (uint64_t)most - 1;
}

// A time in ns, as far as the tracker takes it.
static inline int64_t nanoseconds(const struct pipeline_node *n, int64_t ticks) {
    if (n->ticks_per_second == NANOSECONDS && within(ticks, TRACKER_FARTHEST)) {
        return ticks;
    }
    __extension__ __int128 ns = ticks;
    ns = ns * NANOSECONDS / n->ticks_per_second;
    return ns > TRACKER_FARTHEST ? TRACKER_FARTHEST : ns < -TRACKER_FARTHEST ? -TRACKER_FARTHEST : (int64_t)ns;
}

void pipeline_set_clock(struct pipeline_node *n, int64_t ticks_per_second, int64_t offset_ticks) {
    n->ticks_per_second = ticks_per_second;
    n->synced = false; // a node that was started anew counts its time anew
    pipeline_set_offset(n, offset_ticks);
}

void pipeline_set_offset(struct pipeline_node *n, int64_t offset_ticks) {
    n->account.offset = nanoseconds(n, offset_ticks);
}

void pipeline_sync(struct pipeline_node *n, int64_t at_ticks, struct pipeline_now now) {
    n->synced = true;
    n->synced_node = nanoseconds(n, at_ticks);
    n->synced_at = now;
}

// -- ledger ------------------------------------------------------------------------------------------------------------

// The node's time now: by its own word if it gave one, else as if its clock and ours were the same. Whoever sets our clock does not
// move it.
static int64_t node_now(const struct pipeline_node *n) {
    const struct pipeline_now *now = &n->pipeline->now;
    return n->synced ? n->synced_node + (now->steady - n->synced_at.steady) : now->wall - n->account.offset;
}

static struct ledger_row *ledger_at(struct pipeline_node *n, int64_t time) {
    return stats_ledger(n->account.stats, account_bucket(&n->account, time), n->id);
}

static bool all_zero(const void *bytes, size_t len) {
    const uint8_t *p = bytes;
    return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

// Enters what was counted since the last time into the ledger's bucket of the stream's time.
static void settle(struct pipeline_node *n) {
    struct request_counts counts = tracker_take_counts(n->tracker);
    n->totals.orphan_returns += counts.orphan_returns;
    n->totals.incomplete += counts.refused_requests;
    if (n->live_rows) {
        live_refused(n->live_rows, counts.refused_requests);
    }
    n->totals.stale_calls += counts.stale_calls + counts.refused_calls;
    const struct pipeline_totals *now = &n->totals, *before = &n->settled;
    if (now->messages != before->messages || now->bytes != before->bytes || now->dropped != before->dropped ||
        now->decode_errors != before->decode_errors || !all_zero(&counts, sizeof counts)) {
        struct ledger_row *row = ledger_at(n, n->latest != INT64_MIN ? n->latest : node_now(n));
        row->messages += now->messages - before->messages;
        row->bytes += now->bytes - before->bytes;
        row->dropped_messages += now->dropped - before->dropped;
        row->decode_errors += now->decode_errors - before->decode_errors;
        row->orphan_returns += counts.orphan_returns;
        row->stale_calls += counts.stale_calls + counts.refused_calls;
        row->unwound_frames += counts.unwound_frames;
        row->ambiguous_returns += counts.ambiguous_returns;
        row->lost_tokens += counts.lost_tokens;
        row->requests_incomplete += counts.refused_requests;
    }
    n->settled = n->totals;
}

// Enters what the tiers' messages took into the same bucket.
static void settle_costs(struct pipeline_node *n) {
    for (uint32_t i = 0; i < n->tiers.count && n->latest != INT64_MIN; i++) {
        const struct traced_function *f = &n->tiers.functions[i];
        struct cost *cost = f->role == ROLE_TIER ? &n->costs[f->tier] : NULL;
        struct cost_row *row = cost && cost->messages > 0
                                   ? stats_cost(n->account.stats, account_bucket(&n->account, n->latest), n->id, f->tier)
                                   : NULL;
        if (row) {
            row->messages += cost->messages;
            row->bytes += cost->bytes;
            *cost = (struct cost){0};
        }
    }
}

static void advance(struct pipeline_node *n, int64_t now) {
    n->advanced = now;
    tracker_advance(n->tracker, now);
    settle(n);
    settle_costs(n);
}

void pipeline_count(struct pipeline_node *n, const struct pipeline_counts *counts) {
    struct pipeline_counts *sum = &n->totals.shim;
    if (counts->unsampled > 0 || counts->paused_ms > 0 || counts->trips > 0 || counts->lowered_ms > 0) {
        struct ledger_row *row = ledger_at(n, node_now(n));
        row->requests_unsampled += counts->unsampled;
        row->paused_ms += counts->paused_ms;
        row->trips += counts->trips;
        row->lowered_ms += counts->lowered_ms;
    }
    sum->unsampled += counts->unsampled;
    sum->paused_ms += counts->paused_ms;
    sum->trips += counts->trips;
    sum->lowered_ms += counts->lowered_ms;
}

// -- messages ----------------------------------------------------------------------------------------------------------

// The node's time of a message. Returns false when it has none that can be true.
static inline bool message_time(struct pipeline_node *n, const struct message *m, int64_t *time) {
    if (m->clock == MESSAGE_UNTIMED) {
        n->totals.untimed++;
        return false;
    }
    if (m->clock == MESSAGE_MONOTONIC) {
        *time = nanoseconds(n, m->time);
    } else if (__builtin_sub_overflow(m->time, n->account.offset, time)) {
        return false;
    }
    int64_t away;
    if (n->live && (__builtin_sub_overflow(*time, node_now(n), &away) || !within(away, STRANGE_NS) ||
                    (n->synced && away > AHEAD_NS))) {
        return false;
    }
    return within(*time, TRACKER_FARTHEST);
}

// What the message's function means. The reader keeps it with what it knows of such messages.
static const struct traced_function *function_of(struct pipeline_node *n, const struct message *m) {
    if (!m->head) {
        return tier_set_find(&n->tiers, m);
    }
    if (!m->head->meant) {
        m->head->meaning = tier_set_find(&n->tiers, m);
        m->head->meant = true;
    }
    return m->head->meaning;
}

static inline void count_cost(struct pipeline_node *n, uint16_t tier, size_t bytes) {
    if (tier <= LIMIT_TIER_NAMES) {
        n->costs[tier].messages++;
        n->costs[tier].bytes += bytes;
    }
}

// Messages were lost here.
static void lose(struct pipeline_node *n) {
    tracker_lost(n->tracker);
    tracker_lost_until(n->tracker, INT64_MAX); // until the next message tells the time
    n->lost = true;
}

static inline void pass_time(struct pipeline_node *n, int64_t time) {
    if (n->lost) {
        n->lost = false;
        tracker_lost_until(n->tracker, (time > n->latest ? time : n->latest) + DISORDER_NS);
    }
    if (time > n->latest) {
        n->latest = time;
        if (n->advanced == INT64_MIN || time - n->advanced >= ADVANCE_NS) {
            advance(n, time);
        }
    }
}

// Takes a message of that many bytes. Returns false when it should have been of use and is not.
static bool handle(struct pipeline_node *n, const struct message *m, size_t bytes) {
    int64_t time;
    if (m->kind == MESSAGE_OTHER) {
        return true;
    }
    if (m->kind > MESSAGE_EXCEPTION) {
        if (!message_time(n, m, &time)) {
            return false;
        }
        pass_time(n, time);
        count_cost(n, deliver_state(n, m, time), bytes);
        return true;
    }
    const struct traced_function *f = function_of(n, m);
    if (!f) {
        return true;
    }
    count_cost(n, f->tier, bytes);
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
        n->totals.first_error = n->offset;
    }
    lose(n);
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

uint32_t pipeline_labels(const struct pipeline_node *n) {
    return n->latest_stream.labels;
}

uint64_t pipeline_total(struct pipeline_node *n, const struct pipeline_total *total) {
    struct stream_count *latest = &n->latest_stream, *before = &n->stream_before;
    uint64_t lost = total->unsent < total->messages ? total->unsent : total->messages;
    if (total->labels == latest->labels || total->labels == before->labels) {
        uint64_t came = total->labels == latest->labels ? seen(n) - latest->begun : before->came;
        lost = total->messages > came ? total->messages - came : 0;
    }
    if (lost == 0) {
        return 0;
    }
    if (total->labels == latest->labels) {
        lose(n);
    } else {
        latest->begun += lost;
        before->came += total->labels == before->labels ? lost : 0;
    }
    ledger_at(n, node_now(n))->dropped_messages += lost;
    n->totals.dropped += lost;
    n->settled.dropped += lost;
    return lost;
}

// -- streams -----------------------------------------------------------------------------------------------------------

void pipeline_gap(struct pipeline_node *n, int64_t from_ticks, int64_t until_ticks, bool reload) {
    if (n->open && from_ticks <= until_ticks) {
        tracker_gap(n->tracker, nanoseconds(n, from_ticks), nanoseconds(n, until_ticks));
        ledger_at(n, node_now(n))->reloads += reload;
    }
}

bool pipeline_begin(struct pipeline_node *n, const struct pipeline_stream *stream) {
    if (n->open) {
        int64_t cut;
        pipeline_end(n, false, &cut);
    }
    struct tracker_options options = {.timeout_ns = n->pipeline->options.timeout_ns,
                                      .markers = stream->markers,
                                      .entry = stream->entry,
                                      .events = {.context = n,
                                                 .finished = on_finished,
                                                 .maker = stream->live ? on_maker : NULL,
                                                 .identity = on_identity,
                                                 .never_returns = on_never_returns}};
    struct tracker *tracker = tracker_new(n->pipeline->pool, &options);
    if (!tracker) {
        return false;
    }
    tracker_free(n->tracker);
    n->tracker = tracker;
    identify_reset(&n->identify);
    buffer_reset(&n->partial);
    n->stream_before = n->latest_stream;
    n->stream_before.came = seen(n) - n->latest_stream.begun;
    n->latest_stream = (struct stream_count){.labels = n->labels_to_come, .begun = seen(n)};
    n->labels_to_come = 0;
    n->open = true;
    n->live = stream->live;
    n->bad = false;
    n->lost = false;
    n->reader = (struct message_reader){0};
    n->skipping = 0;
    n->offset = 0;
    n->latest = INT64_MIN;
    n->advanced = INT64_MIN;
    n->totals.first_error = -1;
    return true;
}

// A capture's bytes come from main memory, in frames of some 200: those of a few frames further on are asked for now. A prefetch of
// what is past the end does nothing.
static inline void prefetch_ahead(const uint8_t *at) {
    enum { AHEAD = 2048, LINE = 64, LINES = 4 };
    for (int i = 0; i < LINES; i++) {
        __builtin_prefetch((const void *)((uintptr_t)at + AHEAD + (uintptr_t)i * LINE));
    }
}

// Takes the frames at the start of bytes. Returns how many bytes they were, -1 when a frame is none.
static int64_t take_frames(struct pipeline_node *n, struct slice bytes) {
    size_t used = 0;
    for (;;) {
        if (n->skipping > 0) {
            size_t skip = bytes.len - used < n->skipping ? bytes.len - used : (size_t)n->skipping;
            n->skipping -= skip;
            n->offset += (int64_t)skip;
            used += skip;
        }
        struct frame frame;
        prefetch_ahead(bytes.data + used);
        long size = frame_next(slice_of(bytes.data + used, bytes.len - used), &frame);
        if (size == FRAME_PARTIAL) {
            return (int64_t)used;
        }
        if (size == FRAME_BAD) {
            return -1;
        }
        switch (frame.kind) {
        case FRAME_TERM:
            handle_term(n, frame.body);
            break;
        case FRAME_DROPPED:
            n->totals.dropped += frame.size;
            lose(n);
            break;
        case FRAME_OVERSIZED:
            n->totals.messages++;
            count_error(n);
            n->skipping = frame.size;
            break;
        case FRAME_EMPTY:
            break;
        }
        used += (size_t)size;
        n->offset += size;
    }
}

// Bytes that a frame still lacks of which only the start is there: of its header, or behind that of its body.
static size_t frame_missing(struct slice begun) {
    if (begun.len < FRAME_HEADER) {
        return FRAME_HEADER - begun.len;
    }
    struct cursor size = cursor_of(begun.data + 1, FRAME_HEADER - 1);
    return FRAME_HEADER + (size_t)cursor_u32(&size) - begun.len;
}

int64_t pipeline_feed(struct pipeline_node *n, struct slice bytes) {
    int64_t used = 0;
    if (n->bad) {
        return n->offset;
    }
    n->totals.bytes += bytes.len;
    n->fresh = true;
    // A frame begun in earlier bytes is completed in the buffer, as far as it needs; the rest is read in place.
    while (n->partial.len > 0 && bytes.len > 0 && used >= 0) {
        size_t missing = frame_missing(slice_of(n->partial.data, n->partial.len));
        size_t piece = missing < bytes.len ? missing : bytes.len;
        if (!buffer_append(&n->partial, bytes.data, piece)) {
            used = -1;
            break;
        }
        bytes = slice_of(bytes.data + piece, bytes.len - piece);
        used = take_frames(n, slice_of(n->partial.data, n->partial.len));
        if (used > 0) {
            buffer_consume(&n->partial, (size_t)used);
        }
    }
    if (used >= 0 && bytes.len > 0) {
        used = take_frames(n, bytes);
        if (used >= 0 && !buffer_append(&n->partial, bytes.data + used, bytes.len - (size_t)used)) {
            used = -1;
        }
    }
    if (used < 0) {
        count_error(n);
        buffer_reset(&n->partial);
        n->bad = true;
    }
    settle(n);
    return n->bad ? n->offset : -1;
}

bool pipeline_end(struct pipeline_node *n, bool clean, int64_t *cut_at) {
    if (!n->open) {
        return false;
    }
    n->open = false;
    bool cut = n->partial.len > 0 || n->skipping > 0;
    if (cut) {
        *cut_at = n->offset;
        count_error(n);
    } else if (!clean) {
        tracker_lost(n->tracker);
    }
    tracker_reset(n->tracker);
    settle(n);
    settle_costs(n);
    buffer_free(&n->partial);
    return cut;
}

void pipeline_answer(struct pipeline_node *n, uint32_t id, const struct slice *identity) {
    if (n->open) {
        uint16_t named = identity ? directory_identity(&n->pipeline->directory, *identity) : DIRECTORY_NONE;
        bool none = named == IDENTITY_TOTAL || named == IDENTITY_REMOTE || named == IDENTITY_UNDEFINED;
        identify_answer(&n->identify, n->tracker, id, none ? DIRECTORY_NONE : named);
    }
}

// Whether the node's time can be told without its messages. A tracker that was sent ahead closes nothing until the node's time is there.
static bool told_lately(const struct pipeline_node *n) {
    return n->synced && n->pipeline->now.steady - n->synced_at.steady <= LATELY_NS;
}

void pipeline_tick(struct pipeline *p, struct pipeline_now now) {
    p->now = now;
    for (uint32_t i = 0; i < LIMIT_NODES && p->nodes[i]; i++) {
        struct pipeline_node *n = p->nodes[i];
        // The gauge's empty frames come every 10 ms while the stream flows. They alone mean that nothing is on its way; with messages
        // among them time goes on by theirs, and without any bytes the stream is held up.
        bool idle = n->fresh && n->totals.messages == n->ticked;
        if (n->open && n->live && idle && n->partial.len == 0 && told_lately(n)) {
            int64_t safe = node_now(n) - IDLE_NS;
            if (n->advanced == INT64_MIN || safe > n->advanced) {
                advance(n, safe > n->latest ? safe : n->latest);
            }
        }
        n->fresh = false;
        n->ticked = n->totals.messages;
    }
}

struct stats *pipeline_swap(struct pipeline *p, struct stats *empty) {
    struct stats *full = p->stats;
    p->stats = empty;
    for (uint32_t i = 0; i < LIMIT_NODES && p->nodes[i]; i++) {
        p->nodes[i]->account.stats = empty;
    }
    stats_add_totals(full);
    return full;
}

const struct stats *pipeline_stats(const struct pipeline *p) {
    return p->stats;
}

bool pipeline_clock_offset(const struct pipeline_node *n, int64_t *ahead) {
    *ahead = n->synced_node + n->account.offset - n->synced_at.wall;
    return n->synced;
}

uint32_t pipeline_tiers(const struct pipeline_node *n) {
    return n->tiers.tiers;
}

struct pipeline_totals pipeline_totals(const struct pipeline_node *n) {
    return n->totals;
}
