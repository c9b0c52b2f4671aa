// SPDX-License-Identifier: Apache-2.0
// The calls, returns, markers, spawns, deaths, losses and pauses of some processes in any order and
// at times that run back too, for two nodes that share a pool: every request that began is told
// once, every call stands in a request or is counted as stale, spans form a tree with times that
// can be, and when all is over nothing is kept.
#include "model/requests/tracker.h"

#include "fuzz.h"

enum { NODES = 2, PIDS = 6, TOKENS = 6, TIERS = 3, FUNCTIONS = 4, FIRST_NAME = 100, BEGUN = 10000 };
static const int64_t START = 1000000000000, TIMEOUT_NS = 30000000000, HOUR_NS = 3600000000000;

struct node {
    struct tracker *tracker;
    int64_t time, latest;
    bool ran_back;
    bool marked;            // a marker has come: what has no begin is not complete from then on
    struct request_ref ref; // of the latest request that began
    uint64_t calls, told_calls, told_stale;
    struct request_counts counts;
};

struct input {
    const uint8_t *data;
    size_t left;
};

static struct node nodes[NODES];
static uint8_t told[BEGUN]; // by name: how often a request that began was told
static uint32_t begun;

static uint8_t next(struct input *in) {
    in->left -= in->left > 0;
    return in->left > 0 ? *in->data++ : 0;
}

// -- what is told ---------------------------------------------------------------------------------

static void check_span(const struct node *n, const struct request_result *r, uint32_t i) {
    const struct span *span = &r->spans[i];
    MUST(i == 0 || r->spans[i - 1].start <= span->start);
    MUST(span->wait >= 0 && span->gc >= 0 && span->off_cpu >= 0 && span->self >= 0 &&
         span->waiting >= 0 && span->waiting <= span->wait);
    MUST(span->open || (span->end >= span->start && span->self <= span->end - span->start));
    MUST(span->async || span->open || span->end <= r->end);
    if (span->parent == SPAN_NONE) {
        MUST(span->depth == 0);
        return;
    }
    MUST(span->parent < i);
    const struct span *above = &r->spans[span->parent];
    MUST(span->depth == above->depth + 1);
    MUST(n->ran_back || above->pid != span->pid || above->open || span->open ||
         span->end <= above->end);
}

static void on_stale(void *context, uint16_t tier, uint64_t over) {
    (void)over;
    struct node *n = context;
    MUST(tier <= LIMIT_TIER_NAMES);
    n->told_stale++;
}

static void on_finished(void *context, const struct request_result *r) {
    struct node *n = context;
    n->told_calls += r->calls;
    MUST(r->fate <= REQUEST_EXPIRED && (!r->cut || r->fate == REQUEST_INCOMPLETE));
    MUST(!r->remote || r->fate == REQUEST_COMPLETE);
    MUST((r->fate == REQUEST_INCOMPLETE) == (r->reason != REASON_NONE) &&
         r->reason < INCOMPLETE_REASONS);
    if (r->identity >= FIRST_NAME) {
        told[r->identity - FIRST_NAME]++;
    } else {
        MUST(r->fate != REQUEST_COMPLETE || r->remote || !n->marked);
    }
    for (size_t i = 0; i < sizeof r->parent; i++) {
        MUST(((const uint8_t *)&r->parent)[i] == r->parent.flags);
    }
    if (r->fate != REQUEST_COMPLETE) {
        MUST(r->count == 0);
        return;
    }
    MUST(r->count == r->calls && r->begin <= r->end && r->times.uncovered >= 0 &&
         r->times.uncovered <= r->end - r->begin && r->times.waiting >= 0 &&
         r->times.parallel >= 0);
    for (uint32_t i = 0; i < r->count; i++) {
        check_span(n, r, i);
    }
}

static uint16_t on_maker(void *context, uint64_t label) {
    (void)context;
    return label % 3 == 0 ? 1 : DIRECTORY_NONE;
}

static uint16_t on_identity(void *context, struct slice name) {
    (void)context;
    MUST(slice_is(name, "its begin's name"));
    return IDENTITY_OTHER;
}

static void on_never_returns(void *context, uint16_t tier) {
    (void)context;
    MUST(tier >= 1 && tier <= TIERS);
}

// -- what happens ---------------------------------------------------------------------------------

static void pass_time(struct node *n, uint8_t by) {
    n->time += ((int64_t)by - 32) * 100000; // -3.2 … 22.3 ms
    n->ran_back |= by < 32;
    n->latest = n->time > n->latest ? n->time : n->latest;
}

// A request has begun, or goes on with an entry's inner call. A name that is its own tells it from
// then on.
static void begins(struct node *n, struct request_ref ref, bool name_it) {
    n->marked = true;
    if (ref.index == SPAN_NONE || !tracker_unnamed(n->tracker, ref) || begun == BEGUN) {
        return;
    }
    const struct request *r = request_at(n->tracker, ref.index);
    if (r->identity != IDENTITY_UNDEFINED || !r->has_begin) {
        // A marker in an entry's call might name it anew: then the name that it has would be told
        // of nobody. And what its process says it works for may never have begun.
        return;
    }
    n->ref = ref;
    if (name_it) {
        tracker_name_begun(n->tracker, ref, slice_text("its begin's name"));
    }
    tracker_name(n->tracker, ref, (uint16_t)(FIRST_NAME + begun++));
}

static void ends(struct node *n, const struct tracker_call *call, uint8_t how) {
    n->marked = true;
    tracker_end(n->tracker, &(struct tracker_end){.token = call->token,
                                                  .pid = call->pid,
                                                  .time = call->time,
                                                  .error = how & 1,
                                                  .token_lost = how % 5 == 4,
                                                  .by_helper = how % 3 == 1,
                                                  .sending = how % 7 == 3});
}

static void asks(struct node *n) {
    int place = tracker_asked(n->tracker, n->ref);
    MUST(place < (int)LIMIT_ASKS_PER_REQUEST);
    if (place >= 0 && place % 2 == 0) {
        tracker_answered(n->tracker, n->ref, place, IDENTITY_OTHER);
    }
}

static void leaps(struct node *n, uint8_t by) {
    n->time += ((int64_t)by - 64) * 250000000; // -16 … 48 s
    // or to the end of what the model can do sums with
    n->time = by == 255 ? TRACKER_FARTHEST - HOUR_NS
              : by == 0 ? -TRACKER_FARTHEST + HOUR_NS
                        : n->time;
    n->ran_back |= by < 64;
    n->latest = n->time > n->latest ? n->time : n->latest;
    tracker_advance(n->tracker, n->latest);
}

static void event(struct node *n, struct input *in) {
    enum {
        CALL,
        RETURN,
        BLIND_CALL,
        RETURN_TO,
        PASS,
        SPAWN,
        SPAWNED,
        EXIT,
        BEGIN,
        WEB_BEGIN,
        END,
        ENTER,
        LEFT_OUT,
        PAUSE,
        LOST,
        GAP,
        ASK,
        ADVANCE,
        LEAP,
        SAYS,
        ASKED_FOR,
        EVENTS
    };
    uint8_t what = next(in), who = next(in);
    pass_time(n, next(in));
    struct tracker_call call = {.pid = 1 + who % PIDS,
                                .token = 1 + who / PIDS % TOKENS,
                                .from = 1 + what / EVENTS % PIDS,
                                .time = n->time,
                                .tier = 1 + what / EVENTS % TIERS,
                                .function = 1 + what / EVENTS % FUNCTIONS};
    switch (what % EVENTS) {
    case BLIND_CALL:
        call.caller = 1 + who % FUNCTIONS;
        // fall through
    case CALL:
        n->calls++;
        tracker_call(n->tracker, &call);
        break;
    case RETURN:
        tracker_return(n->tracker, call.pid, call.tier, who > 200, call.time);
        break;
    case RETURN_TO: {
        uint16_t tier = tracker_return_to(n->tracker, call.pid, call.function, call.time);
        MUST(tier == TIER_NONE || (tier >= 1 && tier <= TIERS));
        break;
    }
    case PASS:
        tracker_pass(n->tracker, call.pid, call.tier, call.time);
        break;
    case SPAWN:
        tracker_spawn(n->tracker, &call);
        break;
    case SPAWNED:
        tracker_spawned(n->tracker, call.pid, who > 200 ? 0 : call.from);
        break;
    case EXIT:
        tracker_exited(n->tracker, call.pid, call.time);
        break;
    case ASKED_FOR: { // by a span whose ids and flags are all that byte
        struct trace_parent parent;
        memset(&parent, 1 + what / EVENTS, sizeof parent);
        tracker_asked_for(n->tracker, &call, &parent);
        break;
    }
    case BEGIN:
    case WEB_BEGIN: {
        bool web = what % EVENTS == WEB_BEGIN;
        struct request_ref ref =
            web ? tracker_web_begin(n->tracker, &call) : tracker_begin(n->tracker, &call);
        // None under an entry's token elsewhere. In its call it is the entry's, which has its name.
        bool inside = ref.index == SPAN_NONE || request_at(n->tracker, ref.index)->by_entry;
        MUST(inside || tracker_unnamed(n->tracker, ref)); // a new one
        n->marked = true;
        if (!inside) {
            begins(n, ref, who & 1);
        }
        break;
    }
    case END:
        ends(n, &call, what / EVENTS);
        break;
    case ENTER:
        n->calls++;
        begins(n, tracker_enter(n->tracker, &call), false);
        break;
    case LEFT_OUT:
        tracker_left_out(n->tracker, call.pid);
        break;
    case PAUSE:
        tracker_pause(n->tracker, call.pid, who > 128 ? PAUSE_GC : PAUSE_OFF_CPU, what / EVENTS & 1,
                      call.time);
        break;
    case LOST:
        tracker_lost(n->tracker, n->latest);
        tracker_lost_until(n->tracker, n->latest + DISORDER_NS);
        break;
    case GAP:
        tracker_gap(n->tracker, call.time - who * 100000, call.time);
        break;
    case ASK:
        asks(n);
        break;
    case ADVANCE:
        tracker_advance(n->tracker, n->latest);
        break;
    case LEAP:
        leaps(n, who);
        break;
    case SAYS:
        tracker_says(n->tracker, &call, what / EVENTS % 3);
        break;
    }
}

static void add_counts(struct node *n) {
    struct request_counts counts = tracker_take_counts(n->tracker);
    n->counts.stale_calls += counts.stale_calls;
    n->counts.refused_calls += counts.refused_calls;
    n->counts.refused_requests += counts.refused_requests;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct request_pool *pool;
    struct input in = {data, size};
    if (!pool) {
        pool = request_pool_new();
    }
    MUST(pool);
    memset(told, 0, sizeof told);
    begun = 0;
    for (int i = 0; i < NODES; i++) {
        uint8_t how = next(&in);
        struct tracker_options options = {.timeout_ns = TIMEOUT_NS,
                                          .markers = how & 1,
                                          .entry = how & 2 ? 1 : TIER_NONE,
                                          .events = {.context = &nodes[i],
                                                     .finished = on_finished,
                                                     .maker = how & 4 ? on_maker : NULL,
                                                     .identity = on_identity,
                                                     .never_returns = on_never_returns,
                                                     .stale = on_stale}};
        nodes[i] = (struct node){.tracker = tracker_new(pool, &options),
                                 .time = START,
                                 .latest = START,
                                 .marked = how & 1};
        MUST(nodes[i].tracker);
    }
    while (in.left > 0) {
        struct node *n = &nodes[in.left % NODES];
        event(n, &in);
    }
    for (int i = 0; i < NODES; i++) {
        struct node *n = &nodes[i];
        if (size % 2 == 0) { // what waits is over some time, or with the stream
            tracker_advance(n->tracker, n->latest + HOUR_NS);
            tracker_advance(n->tracker, n->latest + 2 * HOUR_NS);
            MUST(n->tracker->by_token.count == 0);
        }
        tracker_reset(n->tracker);
        MUST(n->tracker->by_token.count == 0 && n->tracker->by_pid.count == 0);
        add_counts(n);
        // each is told or stale; of strangers' calls behind the end of their request both is true
        MUST(n->told_calls <= n->calls && n->calls <= n->told_calls + n->counts.stale_calls);
        MUST(n->told_stale <= n->counts.stale_calls && n->counts.stale_calls <= n->calls);
        MUST(n->counts.refused_calls == 0 && n->counts.refused_requests == 0);
        tracker_free(n->tracker);
    }
    for (uint32_t i = 0; i < begun; i++) {
        MUST(told[i] == 1);
    }
    MUST(request_pool_open(pool) == 0 && pool->names.used == 0 && pool->chunks.used == 0 &&
         pool->calls.used == 0);
    MUST(pool->costs.used == 0 && pool->processes.used == 0);
    return 0;
}
