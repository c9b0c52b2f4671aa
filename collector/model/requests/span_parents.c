// SPDX-License-Identifier: Apache-2.0
#include "span_parents.h"

#include <stdlib.h>

#include "base/limits.h"
#include "base/map.h"

enum {
    // Each span's, its sender (of one that was spawned and only sends), each spawner, and the one
    // that began.
    PROCESSES = 2 * LIMIT_SPANS_PER_REQUEST + LIMIT_SPAWNS_PER_REQUEST + 1,
    // each span and each spawn brings one at most
    SENDERS = LIMIT_SPANS_PER_REQUEST + LIMIT_SPAWNS_PER_REQUEST,
    // processes or spawns that are looked through one by one
    FEW = 32,
    REMEMBERED = 256, // senders of one process that are looked through
    AWAITED = 64,     // and spans at its work, the latest
    DEEPEST = 64,     // processes one above the other
    // spans that are looked through for what a sender does next
    AHEAD = 64
};

// A process of the request, as far as the spans up to now tell.
struct worker {
    uint64_t pid;
    uint64_t sender;      // whose message or spawn brought what it works at; its own pid: nobody's
    struct worker *giver; // that process; NULL: nobody
    uint32_t senders;     // all it ever had: list in span_parents.senders, SPAN_NONE: none
    uint32_t last;        // the span last begun here, SPAN_NONE: none
    // of it and those below it the first that was not over yet when that was asked for last,
    // SPAN_NONE: none
    uint32_t inner;
    uint32_t top;    // the last of these without one below it on the stack
    uint32_t parent; // where such spans hang
    // such spans of others at the work that it gave them, unless known to be over: list in
    // span_parents.given
    uint32_t given;
    int64_t ended; // end of the one before that, INT64_MIN: there is none
    // the last thing it did or got back that is no span of its own, INT64_MIN: none
    int64_t event;
};

struct sender {
    uint64_t pid;
    uint32_t next;
};

struct span_parents {
    struct worker *workers; // PROCESSES
    uint64_t pids[FEW + 1]; // of the first of them, close together
    struct sender *senders; // SENDERS
    struct spawn *spawns;   // LIMIT_SPAWNS_PER_REQUEST
    uint32_t *given;        // LIMIT_SPANS_PER_REQUEST: span -> the next in the list that it is in
    uint32_t worker_count;
    uint32_t sender_count;
    uint32_t spawn_count;
    struct map by_pid;   // of workers, once they are more than FEW
    struct map by_child; // of spawns likewise
    struct span *spans;  // the request's
    const struct tree_request *request;
};

struct span_parents *span_parents_new(void) {
    struct span_parents *p = calloc(1, sizeof *p);
    if (!p) {
        return NULL;
    }
    p->workers = malloc(PROCESSES * sizeof *p->workers);
    p->senders = malloc(SENDERS * sizeof *p->senders);
    p->spawns = malloc(LIMIT_SPAWNS_PER_REQUEST * sizeof *p->spawns);
    p->given = malloc(LIMIT_SPANS_PER_REQUEST * sizeof *p->given);
    if (!p->workers || !p->senders || !p->spawns || !p->given || !map_init(&p->by_pid) ||
        !map_init(&p->by_child)) {
        span_parents_free(p);
        return NULL;
    }
    return p;
}

void span_parents_free(struct span_parents *p) {
    if (p) {
        map_free(&p->by_pid);
        map_free(&p->by_child);
        free(p->workers);
        free(p->senders);
        free(p->spawns);
        free(p->given);
        free(p);
    }
}

struct spawn *span_parents_spawns(struct span_parents *p) {
    return p->spawns;
}

// -- processes ------------------------------------------------------------------------------------

static inline uint32_t worker_index(struct span_parents *p, uint64_t pid) {
    if (p->worker_count > FEW) {
        return map_get(&p->by_pid, pid);
    }
    p->pids[p->worker_count] = pid; // where the search ends in any case
    uint32_t i = 0;
    while (p->pids[i] != pid) {
        i++;
    }
    return i < p->worker_count ? i : MAP_NONE;
}

static inline struct worker *worker_find(struct span_parents *p, uint64_t pid) {
    uint32_t i = worker_index(p, pid);
    return i == MAP_NONE ? NULL : &p->workers[i];
}

// Past FEW they are found by an index. Without memory for it a process is not found again: its
// spans hang below the request.
__attribute__((noinline, cold)) static void index_workers(struct span_parents *p) {
    for (uint32_t i = p->worker_count == FEW + 1 ? 0 : p->worker_count - 1; i < p->worker_count;
         i++) {
        map_set(&p->by_pid, p->workers[i].pid, i);
    }
}

static inline struct worker *worker_for(struct span_parents *p, uint64_t pid) {
    uint32_t known = worker_index(p, pid);
    if (known != MAP_NONE) {
        return &p->workers[known];
    }
    if (p->worker_count == PROCESSES) { // only without memory for the index, see below
        return &p->workers[0];
    }
    struct worker *w = &p->workers[p->worker_count++];
    *w = (struct worker){.pid = pid,
                         .sender = pid,
                         .senders = SPAN_NONE,
                         .last = SPAN_NONE,
                         .inner = SPAN_NONE,
                         .ended = INT64_MIN,
                         .top = SPAN_NONE,
                         .parent = SPAN_NONE,
                         .given = SPAN_NONE,
                         .event = INT64_MIN};
    if (p->worker_count > FEW) {
        index_workers(p);
    }
    return w;
}

static void takes_work(struct span_parents *p, struct worker *w, struct worker *giver,
                       uint32_t parent) {
    bool another = w->senders == SPAN_NONE || w->sender != giver->pid;
    if (another && p->sender_count < SENDERS) { // more only when processes are not found again
        p->senders[p->sender_count] = (struct sender){giver->pid, w->senders};
        w->senders = p->sender_count++;
    }
    w->sender = giver->pid;
    w->giver = giver;
    w->parent = parent;
}

static bool had_work_of(const struct span_parents *p, const struct worker *w, uint64_t pid) {
    uint32_t i = w->senders;
    for (uint32_t n = 0; i != SPAN_NONE && n < REMEMBERED; n++, i = p->senders[i].next) {
        if (p->senders[i].pid == pid) {
            return true;
        }
    }
    return false;
}

// -- spawns ---------------------------------------------------------------------------------------

static int by_time(const void *a, const void *b) {
    const struct spawn *x = a, *y = b;
    return x->time != y->time    ? (x->time < y->time ? -1 : 1)
           : x->child < y->child ? -1
                                 : x->child > y->child;
}

static void prepare_spawns(struct span_parents *p, uint32_t count) {
    bool sorted = true;
    for (uint32_t i = 1; i < count; i++) {
        sorted = sorted && p->spawns[i - 1].time <= p->spawns[i].time;
    }
    if (!sorted) {
        qsort(p->spawns, count, sizeof *p->spawns, by_time);
    }
    p->spawn_count = count;
    // of several spawns of one number the first stays
    for (uint32_t i = count > FEW ? count : 0; i-- > 0;) {
        map_set(&p->by_child, p->spawns[i].child, i);
    }
}

// How a process came into the world, or NULL.
static const struct spawn *spawn_of(const struct span_parents *p, uint64_t child) {
    if (p->spawn_count > FEW) {
        uint32_t i = map_get(&p->by_child, child);
        return i == MAP_NONE ? NULL : &p->spawns[i];
    }
    for (uint32_t i = 0; i < p->spawn_count; i++) {
        if (p->spawns[i].child == child) {
            return &p->spawns[i];
        }
    }
    return NULL;
}

// Whether a process works for another one, if only by way of others.
static bool works_for(struct span_parents *p, const struct worker *w, uint64_t pid) {
    for (uint32_t n = 0; w && n < DEEPEST; n++) {
        if (had_work_of(p, w, pid)) {
            return true;
        }
        // it made no calls itself
        const struct spawn *spawn = !w->giver && p->spawn_count > 0 ? spawn_of(p, w->pid) : NULL;
        if (spawn && spawn->pid == pid) {
            return true;
        }
        w = spawn ? worker_find(p, spawn->pid) : w->giver;
    }
    return false;
}

// -- parents --------------------------------------------------------------------------------------

static bool over(const struct span *span, int64_t time) {
    return !span->open && span->end < time;
}

// The span below this one on its process's stack, SPAN_NONE: none.
static uint32_t below(const struct span_parents *p, uint32_t i) {
    uint32_t parent = p->spans[i].parent;
    return parent != SPAN_NONE && p->spans[parent].pid == p->spans[i].pid ? parent : SPAN_NONE;
}

// What was open in a process at a time. Times come in order: what is over stays so, and a deep
// stack is walked down once.
static uint32_t open_at(const struct span_parents *p, struct worker *w, int64_t time) {
    while (w->inner != SPAN_NONE && over(&p->spans[w->inner], time)) {
        w->ended = p->spans[w->inner].end;
        w->inner = below(p, w->inner);
    }
    return w->inner;
}

// Whether a sender did something else while span i ran, or is done: then it does not wait for it.
static bool goes_on(const struct span_parents *p, const struct worker *sender, uint32_t i) {
    const struct tree_request *r = p->request;
    const struct span *span = &p->spans[i];
    int64_t end = span->open ? INT64_MAX : span->end;
    for (uint32_t k = i + 1; k < r->count && k - i <= AHEAD && p->spans[k].start < end; k++) {
        if (p->spans[k].pid == sender->pid) {
            return true;
        }
    }
    return sender->pid == r->end_pid && r->end < end;
}

// What a message from a process belongs to. Where no span is open in it, it has either cast from
// within the last one, or sends, as one that waits for the answer does, after it.
static uint32_t origin_of(const struct span_parents *p, struct worker *sender, uint32_t i) {
    uint32_t open = open_at(p, sender, p->spans[i].start);
    if (open != SPAN_NONE) {
        return open;
    }
    return sender->last != SPAN_NONE && goes_on(p, sender, i) ? sender->last : sender->parent;
}

// Work that a process gave away and that is over up to a time: it may have waited for that.
static void take_answers(const struct span_parents *p, struct worker *w, int64_t time) {
    uint32_t *link = &w->given;
    for (uint32_t n = 0; *link != SPAN_NONE && n < AWAITED; n++) {
        const struct span *span = &p->spans[*link];
        if (span->open || span->end > time) {
            link = &p->given[*link];
        } else {
            w->event = span->end > w->event ? span->end : w->event;
            *link = p->given[*link];
        }
    }
}

// When a process did or got back the last thing that is known of it up to a time; INT64_MIN:
// nothing.
static int64_t last_event(const struct span_parents *p, struct worker *w, int64_t time) {
    take_answers(p, w, time);
    uint32_t open = open_at(p, w, time);
    int64_t event = w->ended;
    // those that end right now are open, too
    for (uint32_t i = open; i != SPAN_NONE; i = below(p, i)) {
        const struct span *span = &p->spans[i];
        if (span->open || span->end > time) {
            event = event == INT64_MIN ? span->start : event;
            break;
        }
        event = span->end;
    }
    return event > w->event ? event : w->event;
}

// A process spawns another, which hangs below the span that did it, or where the spawner itself
// hangs at that time.
static void note_spawn(struct span_parents *p, struct spawn *spawn) {
    struct worker *spawner = worker_for(p, spawn->pid);
    spawner->event = spawn->time > spawner->event ? spawn->time : spawner->event;
    if (spawn->parent == SPAN_NONE) {
        // it made no calls: whose child is it?
        const struct spawn *own = spawner->giver ? NULL : spawn_of(p, spawn->pid);
        spawn->parent = own && own < spawn ? own->parent : spawner->parent;
    }
}

// A process begins with the place that its spawn gives it. Returns that, or NULL.
static const struct spawn *born(struct span_parents *p, struct worker *w, int64_t time) {
    const struct spawn *spawn = spawn_of(p, w->pid);
    if (!spawn || spawn->pid == w->pid || spawn->time > time) {
        return NULL;
    }
    takes_work(p, w, worker_for(p, spawn->pid), spawn->parent);
    return spawn;
}

// The process that a token came from; NULL when it is not known.
static struct worker *sender_of(struct span_parents *p, const struct span *span) {
    struct worker *sender = worker_find(p, span->from);
    bool unborn = !sender || (sender->top == SPAN_NONE && !sender->giver);
    if (p->spawn_count > 0 && unborn && spawn_of(p, span->from)) { // it has no spans yet
        sender = worker_for(p, span->from);
        const struct spawn *spawn = born(p, sender, span->start);
        if (spawn && spawn->time > sender->event) {
            sender->event = spawn->time;
        }
    }
    return sender;
}

// The first span of its process's stack, with the token of another process.
static void arrived(struct span_parents *p, struct worker *w, uint32_t i) {
    struct span *span = &p->spans[i];
    struct worker *sender = sender_of(p, span);
    bool fresh = w->last == SPAN_NONE && w->event == INT64_MIN; // nobody can have had work of it
    if (!sender || (!fresh && works_for(p, sender, w->pid))) {
        return; // an answer, or of somebody who makes no calls
    }
    int64_t sent = last_event(p, sender, span->start);
    bool again = w->top != SPAN_NONE && w->sender == span->from;
    // where messages are told one of them may be it, and else what the sender did meanwhile
    if (again &&
        (span->waits == SPAN_NONE ? sent <= p->spans[w->top].end : span->waits == SPAN_AGAIN)) {
        return; // still the same message
    }
    span->brought = true;
    // times may run back, as in a capture while somebody set the clock
    if (sent != INT64_MIN && sent <= span->start) {
        span->wait = span->start - sent;
    }
    takes_work(p, w, sender, origin_of(p, sender, i));
}

// A call that came under another label, whose request was not known yet to be this one, lies on its
// own process's stack all the same. Returns whether it does.
static bool on_its_stack(const struct span_parents *p, struct worker *w, uint32_t i) {
    uint32_t open = open_at(p, w, p->spans[i].start);
    while (open != SPAN_NONE && !p->spans[open].open && p->spans[open].end <= p->spans[i].start) {
        open = below(p, open); // it ended right then
    }
    p->spans[i].parent = open;
    return open != SPAN_NONE;
}

static void place(struct span_parents *p, struct worker *w, uint32_t i) {
    struct span *span = &p->spans[i];
    const struct spawn *spawn =
        p->spawn_count > 0 && w->top == SPAN_NONE && !w->giver ? born(p, w, span->start) : NULL;
    if (spawn && (span->from == w->pid || span->from == spawn->pid)) {
        span->wait = span->start - spawn->time;
        span->brought = true;
    } else if (span->from != w->pid) {
        arrived(p, w, i);
    }
    w->top = i;
    if (w->giver) {
        p->given[i] = w->giver->given;
        w->giver->given = i;
    }
    // Clocks are per node, so a parent begins first; damaged input must not make a cycle all the
    // same.
    span->parent = w->parent != SPAN_NONE && w->parent < i ? w->parent : SPAN_NONE;
}

// Whether all spans are of the process that began the request, and their stack tells each one's
// parent: then nothing came from elsewhere.
static bool at_home(const struct span *spans, const struct tree_request *request) {
    uint64_t home = request->has_begin || request->count == 0 ? request->begin_pid : spans[0].pid;
    int64_t over = INT64_MIN; // all that hang nowhere up to here
    for (uint32_t i = 0; i < request->count; i++) {
        if (spans[i].pid != home) {
            return false;
        }
        if (spans[i].parent == SPAN_NONE) {
            if (spans[i].start < over) {
                return false;
            }
            over = spans[i].open ? INT64_MAX : spans[i].end;
        }
    }
    return true;
}

void span_parents_find(struct span_parents *p, struct span *spans,
                       const struct tree_request *request) {
    if (at_home(spans, request)) {
        return;
    }
    if (p->worker_count > FEW) {
        map_clear(&p->by_pid);
    }
    if (p->spawn_count > FEW) {
        map_clear(&p->by_child);
    }
    p->spans = spans;
    p->request = request;
    p->worker_count = 0;
    p->sender_count = 0;
    prepare_spawns(p, request->spawns);
    if (request->has_begin) {
        worker_for(p, request->begin_pid)->event = request->begin;
    }
    uint32_t spawned = 0;
    struct worker *w = NULL;
    for (uint32_t i = 0; i < request->count; i++) {
        for (; spawned < p->spawn_count && p->spawns[spawned].time <= spans[i].start; spawned++) {
            note_spawn(p, &p->spawns[spawned]);
        }
        if (!w || w->pid != spans[i].pid) {
            w = worker_for(p, spans[i].pid);
        }
        if (spans[i].parent == SPAN_NONE && !on_its_stack(p, w, i)) {
            place(p, w, i);
        }
        w->last = w->inner = i;
        w->ended = INT64_MIN;
    }
}
