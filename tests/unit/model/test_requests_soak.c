// SPDX-License-Identifier: Apache-2.0
// Random requests on random processes, with messages that overtake each other and get lost, against
// a model that is slow and knows the truth. Prints the seed of a run that fails; KPROF_SOAK_SEED
// and KPROF_SOAK_RUNS choose others.
//
// What must hold: a request that is told as complete has exactly the spans, parents, times and
// outcome that it truly had; one that lost nothing is complete unless messages were lost while the
// tracker had it; every other one is told as something else or not at all; and at the end nothing
// is left.
#include "base/limits.h"
#include "request_script.h"

enum {
    REQUESTS = 40,
    SPANS = 60, // of one request
    EVENTS = 8192,
    SERVERS = 4,
    TIERS = 5,
    MS = SCRIPT_MS
};

enum kind { CALL, RETURN, BEGIN, END };

struct true_span {
    int64_t start, end;
    uint64_t pid, from;
    uint32_t below; // in its process, SPAN_NONE: none
    uint16_t tier;
    bool error;
};

struct true_request {
    struct true_span spans[SPANS];
    uint32_t count;
    uint64_t pid; // that began it
    int64_t begin, end;
    bool error;
    bool lost_own;       // one of its messages did not arrive
    bool seen;           // one did
    bool lost_meanwhile; // messages were lost after the first that arrived, before it was told
    bool told;
};

struct event {
    int64_t arrives; // in this order
    uint32_t number;
    int64_t time;
    enum kind kind;
    uint32_t request;
    uint64_t pid, from;
    uint16_t tier;
    bool error;
};

struct world {
    uint64_t random;
    struct true_request requests[REQUESTS];
    uint32_t request; // the one in the making
    struct event events[EVENTS];
    uint32_t count;
    int64_t server_free[SERVERS];
    int64_t arrived[100000]; // by process: its latest message, since order holds within a process
    uint64_t next_pid;
    uint64_t unique;
    struct tracker *tracker;
    unsigned complete, others, lossless;
    bool damaged; // a message was lost now and then
    uint64_t seed;
};

static unsigned below(struct world *w, unsigned n) {
    return (unsigned)(random_u64(&w->random) % n);
}

// A time after `t` by up to `ms`, that no other message has.
static int64_t later(struct world *w, int64_t t, unsigned ms) {
    return (t / MS + 1 + below(w, ms)) * MS + (int64_t)(w->unique++ % MS);
}

static void emit(struct world *w, struct event e) {
    assert_true(w->count < EVENTS);
    int64_t arrives = e.time + (int64_t)below(w, 4) * MS;
    int64_t *before = &w->arrived[e.pid];
    *before = arrives > *before ? arrives : *before;
    e.arrives = *before;
    e.number = w->count;
    e.request = w->request;
    w->events[w->count++] = e;
}

static int64_t work(struct world *w, uint64_t pid, uint64_t from, int64_t t, unsigned depth,
                    uint32_t under, unsigned busy);

// A call of a tier in a process, with what it does inside. Returns when it ended.
static int64_t run_span(struct world *w, uint64_t pid, uint64_t from, int64_t t, unsigned depth,
                        uint32_t under, unsigned busy) {
    struct true_request *r = &w->requests[w->request];
    if (r->count == SPANS) {
        return t;
    }
    uint32_t i = r->count++;
    int64_t start = later(w, t, 2);
    uint16_t tier = (uint16_t)(1 + below(w, TIERS));
    emit(w, (struct event){.time = start, .kind = CALL, .pid = pid, .from = from, .tier = tier});
    r->spans[i] = (struct true_span){start, 0, pid, from, under, tier, below(w, 10) == 0};
    int64_t end = later(w, work(w, pid, from, start, depth + 1, i, busy), 3);
    emit(w, (struct event){
                .time = end, .kind = RETURN, .pid = pid, .tier = tier, .error = r->spans[i].error});
    r->spans[i].end = end;
    return end;
}

// What a process does for a request. busy: the servers that are waiting for it already.
static int64_t work(struct world *w, uint64_t pid, uint64_t from, int64_t t, unsigned depth,
                    uint32_t under, unsigned busy) {
    for (unsigned n = depth > 5 ? 0 : below(w, 4); n > 0; n--) {
        unsigned server = below(w, SERVERS);
        switch (below(w, 5)) {
        case 0:
        case 1:
            t = run_span(w, pid, from, t, depth, under, busy);
            break;
        case 2: // a gen_server's call
            if (!(busy >> server & 1)) {
                t = t > w->server_free[server] ? t : w->server_free[server];
                t = run_span(w, 1 + server, pid, t, depth, SPAN_NONE, busy | 1u << server);
                w->server_free[server] = t;
                from = 1 + server; // the answer brings the token back from there
            }
            break;
        case 3: { // a process of its own, for which nobody waits
            uint64_t child = w->next_pid++;
            int64_t end =
                run_span(w, child, pid, t + (int64_t)below(w, 20) * MS, depth, SPAN_NONE, ~0u);
            if (below(w, 2) == 0) {
                run_span(w, child, pid, end, depth, SPAN_NONE, ~0u);
            }
            break;
        }
        default:
            t = later(w, t, 5);
        }
    }
    return t;
}

static void make_request(struct world *w, uint32_t index) {
    struct true_request *r = &w->requests[index];
    uint64_t pid = w->next_pid++;
    w->request = index;
    r->pid = pid;
    r->begin = later(w, 0, 3000);
    emit(w, (struct event){.time = r->begin, .kind = BEGIN, .pid = pid});
    int64_t t = r->begin;
    for (unsigned n = below(w, 4); n > 0; n--) {
        t = work(w, pid, pid, t, 0, SPAN_NONE, 0);
    }
    r->error = below(w, 5) == 0;
    r->end = later(w, t, 3);
    emit(w, (struct event){.time = r->end, .kind = END, .pid = pid, .error = r->error});
}

static int by_arrival(const void *a, const void *b) {
    const struct event *x = a, *y = b;
    if (x->arrives != y->arrives) {
        return x->arrives < y->arrives ? -1 : 1;
    }
    // what is of one process keeps its order; the rest comes as it likes
    return x->pid == y->pid                                    ? (x->time < y->time ? -1 : 1)
           : x->number * 2654435761u < y->number * 2654435761u ? -1
                                                               : 1;
}

// -- the truth, the slow way ----------------------------------------------------------------------

static bool covers(const struct true_span *s, int64_t t) {
    return s->start <= t && t < s->end;
}

// Who brought a process the work that it does at its spans without one below them, and where these
// hang.
struct true_context {
    uint64_t sender; // the process itself: nobody
    uint32_t parent;
};

// The context of a process before a time, by its last span without one below it.
static struct true_context context_of(const struct true_request *r, const struct true_context *of,
                                      uint64_t pid, int64_t time) {
    struct true_context found = {pid, SPAN_NONE};
    int64_t latest = INT64_MIN;
    for (uint32_t k = 0; k < r->count; k++) {
        const struct true_span *s = &r->spans[k];
        if (s->pid == pid && s->below == SPAN_NONE && s->start < time && s->start > latest) {
            latest = s->start;
            found = of[k];
        }
    }
    return found;
}

// Whether a process has had work of another one, at first hand or further.
static bool has_worked_for(const struct true_request *r, const struct true_context *of,
                           uint64_t pid, uint64_t whom, int64_t time) {
    for (uint32_t k = 0; k < r->count; k++) {
        const struct true_span *s = &r->spans[k];
        if (s->pid == pid && s->below == SPAN_NONE && s->start < time && of[k].sender == whom) {
            return true;
        }
    }
    uint64_t sender = context_of(r, of, pid, time).sender;
    return sender != pid && has_worked_for(r, of, sender, whom, time);
}

// The last thing a process did before a time, or got back from those it had given work; INT64_MIN:
// nothing.
static int64_t last_done(const struct true_request *r, const struct true_context *of, uint64_t pid,
                         int64_t time) {
    int64_t last = pid == r->pid && r->begin < time ? r->begin : INT64_MIN;
    for (uint32_t k = 0; k < r->count; k++) {
        const struct true_span *s = &r->spans[k];
        bool given =
            s->pid != pid && s->below == SPAN_NONE && s->start < time && of[k].sender == pid;
        last = given && s->end < time && s->end > last ? s->end : last;
    }
    for (uint32_t k = 0; k < r->count; k++) {
        const struct true_span *s = &r->spans[k];
        last = s->pid == pid && s->start < time && s->start > last ? s->start : last;
        last = s->pid == pid && s->end < time && s->end > last ? s->end : last;
    }
    return last;
}

static int64_t last_end_of_top(const struct true_request *r, uint64_t pid, int64_t time) {
    int64_t start = INT64_MIN, end = INT64_MIN;
    for (uint32_t k = 0; k < r->count; k++) {
        const struct true_span *s = &r->spans[k];
        if (s->pid == pid && s->below == SPAN_NONE && s->start < time && s->start > start) {
            start = s->start;
            end = s->end;
        }
    }
    return end;
}

// Whether a process did anything within a time, or the request was at its end there before.
static bool busy_in(const struct true_request *r, uint64_t pid, int64_t from, int64_t until) {
    for (uint32_t k = 0; k < r->count; k++) {
        if (r->spans[k].pid == pid && r->spans[k].start > from && r->spans[k].start < until) {
            return true;
        }
    }
    return pid == r->pid && r->end < until;
}

// What was open in a process at a time; *last: else what was begun last.
static uint32_t open_in(const struct true_request *r, uint64_t pid, int64_t time,
                        uint32_t *begun_last) {
    uint32_t open = SPAN_NONE, last = SPAN_NONE;
    for (uint32_t k = 0; k < r->count; k++) {
        const struct true_span *p = &r->spans[k];
        if (p->pid == pid && p->start < time) {
            last = last == SPAN_NONE || p->start > r->spans[last].start ? k : last;
            if (covers(p, time)) {
                open = open == SPAN_NONE || p->start > r->spans[open].start ? k : open;
            }
        }
    }
    *begun_last = last;
    return open;
}

// The context in which span i hangs, those before it being known, as request_tree.h says. *wait:
// how long it waited.
static struct true_context true_context(const struct true_request *r, const struct true_context *of,
                                        uint32_t i, int64_t *wait) {
    const struct true_span *s = &r->spans[i];
    struct true_context own = context_of(r, of, s->pid, s->start);
    int64_t sent = last_done(r, of, s->from, s->start);
    *wait = 0;
    if (s->from == s->pid || sent == INT64_MIN ||
        has_worked_for(r, of, s->from, s->pid, s->start) ||
        (own.sender == s->from && sent <= last_end_of_top(r, s->pid, s->start))) {
        return own;
    }
    *wait = s->start - sent;
    uint32_t last, parent = open_in(r, s->from, s->start, &last);
    if (parent == SPAN_NONE && last != SPAN_NONE && busy_in(r, s->from, s->start, s->end)) {
        parent = last;
    }
    return (struct true_context){
        s->from, parent != SPAN_NONE ? parent : context_of(r, of, s->from, s->start).parent};
}

// All parents and waits, in order of start.
static void true_parents(const struct true_request *r, uint32_t *parents, int64_t *waits) {
    struct true_context of[SPANS];
    for (int64_t after = INT64_MIN;;) {
        uint32_t i = SPAN_NONE;
        for (uint32_t k = 0; k < r->count; k++) {
            i = r->spans[k].start > after &&
                        (i == SPAN_NONE || r->spans[k].start < r->spans[i].start)
                    ? k
                    : i;
        }
        if (i == SPAN_NONE) {
            return;
        }
        after = r->spans[i].start;
        parents[i] = r->spans[i].below;
        waits[i] = 0;
        if (parents[i] == SPAN_NONE) {
            of[i] = true_context(r, of, i, &waits[i]);
            parents[i] = of[i].parent;
        }
    }
}

// How much of a span's time, or of the request's, is its own: neither covered by spans below it (of
// the request: by any) nor waiting for one of them to begin; moment by moment. Those that end after
// the request do not count.
static int64_t true_own(const struct true_request *r, const uint32_t *parents, const int64_t *waits,
                        uint32_t of, int64_t from, int64_t to) {
    int64_t sum = 0;
    for (int64_t t = from; t < to;) {
        int64_t next = to;
        bool own = true;
        for (uint32_t k = 0; k < r->count; k++) {
            const struct true_span *s = &r->spans[k];
            bool below = of == SPAN_NONE || parents[k] == of;
            int64_t sent = s->start - waits[k];
            const int64_t borders[] = {sent, s->start, s->end};
            if (!below || s->end > r->end) {
                continue;
            }
            for (int b = 0; b < 3; b++) {
                next = borders[b] > t && borders[b] < next ? borders[b] : next;
            }
            bool waited = parents[k] == of && t >= sent && t < s->start && s->start <= to;
            for (uint32_t d = 0; d < r->count && waited;
                 d++) { // not before those up to then are over
                const struct true_span *e = &r->spans[d];
                waited = (of != SPAN_NONE && parents[d] != of) || e->end > r->end || e->end <= t ||
                         e->start > s->start || d == k;
            }
            own = own && !covers(s, t) && !waited;
        }
        sum += own ? next - t : 0;
        t = next;
    }
    return sum;
}

static void check_complete(const struct true_request *r, const struct request_result *result) {
    uint32_t parents[SPANS];
    assert_int_equal(result->begin, r->begin);
    assert_int_equal(result->end, r->end);
    assert_int_equal(result->error, r->error);
    assert_int_equal(result->count, r->count);
    int64_t waits[SPANS];
    true_parents(r, parents, waits);
    int64_t sum = result->times.uncovered + result->times.waiting - result->times.parallel;
    for (uint32_t k = 0; k < result->count; k++) {
        sum += result->spans[k].self;
    }
    assert_int_equal(sum, r->end - r->begin);
    assert_int_equal(result->times.uncovered,
                     true_own(r, parents, waits, SPAN_NONE, r->begin, r->end));
    for (uint32_t i = 0; i < r->count; i++) {
        const struct true_span *s = &r->spans[i];
        const struct span *got = NULL;
        for (uint32_t k = 0; k < result->count; k++) {
            got = result->spans[k].start == s->start ? &result->spans[k] : got;
        }
        assert_non_null(got);
        bool async = s->end > r->end, outermost = true;
        uint32_t depth = 0;
        for (uint32_t p = parents[i]; p != SPAN_NONE; p = parents[p]) {
            depth++;
            outermost =
                outermost && !(r->spans[p].tier == s->tier && covers(&r->spans[p], s->start));
        }
        assert_int_equal(got->pid, s->pid);
        assert_int_equal(got->tier, s->tier);
        assert_int_equal(got->error, s->error);
        assert_int_equal(got->open, false);
        assert_int_equal(got->end, s->end);
        assert_int_equal(got->async, async);
        assert_int_equal(got->outermost, outermost);
        assert_int_equal(got->depth, depth);
        assert_int_equal(got->wait, waits[i]);
        assert_int_equal(got->self, async ? 0 : true_own(r, parents, waits, i, s->start, s->end));
        assert_int_equal(got->parent == SPAN_NONE, parents[i] == SPAN_NONE);
        if (parents[i] != SPAN_NONE) {
            assert_int_equal(result->spans[got->parent].start, r->spans[parents[i]].start);
        }
    }
}

// A finished request names itself by its identity: 3 + index, given by its begin, or by its first
// call.
static void finished(void *context, const struct request_result *result) {
    struct world *w = context;
    w->complete += result->fate == REQUEST_COMPLETE;
    w->others += result->fate != REQUEST_COMPLETE;
    if (result->identity < 3) {
        assert_int_not_equal(result->fate, REQUEST_COMPLETE); // no begin, no call: an end only
        return;
    }
    struct true_request *r = &w->requests[result->identity - 3];
    if (result->fate == REQUEST_COMPLETE) {
        assert_false(r->lost_own);
        assert_false(r->lost_meanwhile);
        check_complete(r, result);
        r->told = true;
    } else {
        assert_true(r->lost_own || r->lost_meanwhile);
    }
}

static void never_returns(void *context, uint16_t tier) {
    (void)context;
    fail_msg("tier %u does return", tier);
}

static void lose(struct world *w) {
    tracker_lost(w->tracker, INT64_MIN);
    for (uint32_t i = 0; i < REQUESTS; i++) {
        w->requests[i].lost_meanwhile |= w->requests[i].seen && !w->requests[i].told;
    }
}

static void deliver(struct world *w, const struct event *e) {
    struct tracker_call call = {.pid = e->pid,
                                .token = 1000 + e->request,
                                .from = e->from,
                                .time = e->time,
                                .tier = e->tier};
    struct request_ref ref = {SPAN_NONE, 0};
    w->requests[e->request].seen = true;
    switch (e->kind) {
    case CALL:
        ref = tracker_call(w->tracker, &call);
        break;
    case RETURN:
        tracker_return(w->tracker, e->pid, e->tier, e->error, e->time);
        return;
    case BEGIN:
        ref = tracker_begin(w->tracker, &call);
        break;
    case END:
        script_end(w->tracker, call.token, e->pid, e->error, e->time);
        return;
    }
    if (tracker_unnamed(w->tracker, ref)) {
        tracker_name(w->tracker, ref, (uint16_t)(3 + e->request));
    }
}

// Messages before a request's begin are few ms of it; lost with nothing seen of it before, nothing
// tells. They are not lost here.
static bool may_be_lost(const struct world *w, const struct event *e) {
    return w->requests[e->request].seen || e->kind == BEGIN || e->kind == END;
}

static void run(struct world *w, struct request_pool *pool, bool losses) {
    struct tracker_options options = {
        .timeout_ns = 30000LL * MS,
        .markers = true,
        .entry = TIER_NONE,
        .events = {.context = w, .finished = finished, .never_returns = never_returns}};
    w->next_pid = 1 + SERVERS;
    w->damaged = losses;
    for (uint32_t i = 0; i < REQUESTS; i++) {
        make_request(w, i);
    }
    qsort(w->events, w->count, sizeof *w->events, by_arrival);
    w->tracker = tracker_new(pool, &options);
    assert_non_null(w->tracker);
    int64_t latest = INT64_MIN, advanced = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        const struct event *e = &w->events[i];
        if (losses && below(w, 60) == 0 && may_be_lost(w, e)) {
            w->requests[e->request].lost_own = true;
            lose(w);
            continue;
        }
        latest = e->time > latest ? e->time : latest;
        if (latest - advanced > 50 * MS) {
            tracker_advance(w->tracker, latest);
            advanced = latest;
        }
        deliver(w, e);
    }
    if (below(w, 2) == 0) {
        tracker_advance(w->tracker, latest + 3 * GRACE_NS);
        tracker_advance(w->tracker, latest + 40000LL * MS);
        assert_int_equal(request_pool_open(pool), 0);
    }
    tracker_reset(w->tracker);
    assert_int_equal(request_pool_open(pool), 0);
    struct request_counts counts = tracker_take_counts(w->tracker);
    assert_int_equal(counts.refused_calls, 0);
    if (!losses) {
        assert_int_equal(w->complete, REQUESTS);
        assert_int_equal(counts.orphan_returns + counts.stale_calls, 0);
    }
    tracker_free(w->tracker);
}

static uint64_t setting(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void soak(void **state) {
    (void)state;
    struct request_pool *pool = request_pool_new();
    assert_non_null(pool);
    uint64_t first = setting("KPROF_SOAK_SEED", 1), runs = setting("KPROF_SOAK_RUNS", 1500);
    unsigned complete = 0, others = 0;
    struct world *w = malloc(sizeof *w);
    assert_non_null(w);
    for (uint64_t seed = first; seed < first + runs; seed++) {
        memset(w, 0, sizeof *w);
        w->random = w->seed = seed;
        fprintf(stderr, "\rseed %lu ",
                (unsigned long)seed); // what stands there when it fails is the seed
        run(w, pool, seed % 2 == 1);
        complete += w->complete;
        others += w->others;
    }
    fprintf(stderr, "\r%u complete, %u not\n", complete, others);
    if (runs > 100) {
        assert_true(others > complete / 50); // both kinds were met
    }
    free(w);
    request_pool_free(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(soak)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
