#include "model/requests.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/slab.h"
#include "model/directory.h"
#include "model/tier_set.h"

enum { CHUNK_SPANS = 7, SWEEP_SECONDS = 60, CLOSED_WAYS = 8, LATEST = 256 };

// A span while its request is open: 40 bytes.
struct live_span {
    int64_t start;
    int64_t end;
    uint64_t pid;
    uint64_t from;
    uint32_t parent; // in its request, SPAN_NONE: none in its process
    uint16_t tier;
    uint8_t open;
    uint8_t error;
};

struct chunk {
    uint32_t next; // SLAB_NONE: the last
    struct live_span spans[CHUNK_SPANS];
};

// State of a request, and the list that it is in, which is in the order of what the request waits for: to be looked at again
// (deadline), to expire (first, within a second or so), to be closed (deadline).
enum phase { PHASE_NEW, PHASE_OPEN, PHASE_CLOSING, PHASES };

struct request {
    uint64_t token;
    int64_t first; // time of its earliest message
    int64_t last;  // and of its latest
    int64_t begin;
    int64_t end;
    int64_t deadline; // when new: is looked at again; when closing: is closed
    uint64_t root_pid;
    uint32_t generation;
    uint32_t losses; // the tracker's when the request opened: another number now means that messages were lost
    uint32_t previous, next;
    uint32_t first_chunk, last_chunk;
    uint32_t count; // spans
    uint32_t open;  // of them without a return
    uint32_t root;  // without markers: the span that is the request, SPAN_NONE: none yet
    uint16_t identity;
    uint8_t phase;
    uint8_t asked;
    uint8_t answers_due;
    uint8_t named_place; // of the call that named it by an answer
    bool has_begin, has_end;
    bool error;
    bool damaged; // cut at a cap, or a return never came
};

// An open call: 32 bytes. A process's calls are a list from the top of its stack down.
struct call {
    uint32_t below; // the call below it in its process, SLAB_NONE: none
    uint32_t request;
    uint32_t generation;
    uint32_t span;  // in the request
    uint32_t chunk; // that holds it
    uint32_t losses;
    uint32_t depth;    // calls below it
    uint16_t requests; // how many times the request changes from here down to the last loss
    uint16_t tier;
};

struct process {
    uint64_t pid;
    int64_t last;
    uint32_t top;
};

struct request_pool {
    struct slab requests;
    struct slab chunks;
    struct slab calls;
    struct slab processes;
    struct request_tree *tree;
    // Tokens closed lately, of all nodes: sets of CLOSED_WAYS keys, the latest first; 0 is none. A set is within a cache line.
    uint64_t *closed;
    uint32_t nodes_made;
    uint32_t generation;
};

struct list {
    uint32_t head, tail;
};

// Answers of a map, each at the place that its key has: few processes and requests make most of the messages at a time.
struct latest {
    uint64_t key;
    uint32_t value; // SLAB_NONE: not known
};

struct tracker {
    struct request_pool *pool;
    struct tracker_options options;
    struct map by_token;
    struct map by_pid;
    struct latest tokens[LATEST];    // what by_token said lately
    struct latest processes[LATEST]; // and by_pid
    struct list lists[PHASES];
    uint64_t salt;        // tells its closed tokens from other nodes'
    int64_t now;
    int64_t swept;
    uint32_t losses;
    bool markers;
    uint8_t told[LIMIT_TIER_NAMES + 1]; // tiers of which never_returns was told
    struct request_counts counts;
};

static const struct request_ref NO_REQUEST = {SPAN_NONE, 0};

// -- pool ------------------------------------------------------------------------------------------------------------

struct request_pool *request_pool_new(void) {
    struct request_pool *p = calloc(1, sizeof *p);
    if (!p) {
        goto err0;
    }
    slab_init(&p->requests, sizeof(struct request), LIMIT_OPEN_REQUESTS);
    slab_init(&p->chunks, sizeof(struct chunk), LIMIT_SPAN_CHUNKS);
    slab_init(&p->calls, sizeof(struct call), LIMIT_OPEN_CALLS);
    slab_init(&p->processes, sizeof(struct process), LIMIT_PROCESSES);
    p->tree = request_tree_new();
    if (!p->tree) {
        goto err1;
    }
    p->closed = calloc(LIMIT_CLOSED_TOKENS, sizeof *p->closed);
    if (!p->closed) {
        goto err2;
    }
    return p;
err2:
    request_tree_free(p->tree);
err1:
    free(p);
err0:
    return NULL;
}

void request_pool_free(struct request_pool *p) {
    if (p) {
        slab_free(&p->requests);
        slab_free(&p->chunks);
        slab_free(&p->calls);
        slab_free(&p->processes);
        request_tree_free(p->tree);
        free(p->closed);
        free(p);
    }
}

uint32_t request_pool_open(const struct request_pool *p) {
    return p->requests.used;
}

static uint64_t closed_key(const struct tracker *t, uint64_t token) {
    return hash_mix(token ^ t->salt) | 1; // never 0
}

static uint64_t *closed_set(const struct tracker *t, uint64_t key) {
    return &t->pool->closed[(key >> 32) % (LIMIT_CLOSED_TOKENS / CLOSED_WAYS) * CLOSED_WAYS];
}

static void remember_closed(struct tracker *t, uint64_t token) {
    uint64_t key = closed_key(t, token);
    uint64_t *set = closed_set(t, key);
    uint64_t older[CLOSED_WAYS - 1]; // by way of registers: memmove is a call
    memcpy(older, set, sizeof older);
    memcpy(set + 1, older, sizeof older);
    set[0] = key;
}

static bool closed_lately(const struct tracker *t, uint64_t token) {
    uint64_t key = closed_key(t, token);
    const uint64_t *set = closed_set(t, key);
    bool found = false;
    for (int i = 0; i < CLOSED_WAYS; i++) {
        found |= set[i] == key;
    }
    return found;
}

// A token is used again: what comes under it is no longer stale.
static void forget_closed(struct tracker *t, uint64_t token) {
    uint64_t key = closed_key(t, token);
    uint64_t *set = closed_set(t, key);
    for (int i = 0; i < CLOSED_WAYS; i++) {
        set[i] = set[i] == key ? 0 : set[i];
    }
}

// -- requests --------------------------------------------------------------------------------------------------------

static struct request *request_at(const struct tracker *t, uint32_t index) {
    return slab_at(&t->pool->requests, index);
}

static void list_append(struct tracker *t, uint32_t index, enum phase phase, int64_t deadline) {
    struct list *l = &t->lists[phase];
    struct request *r = request_at(t, index);
    r->deadline = deadline;
    r->phase = (uint8_t)phase;
    r->previous = l->tail;
    r->next = SLAB_NONE;
    if (l->tail == SLAB_NONE) {
        l->head = index;
    } else {
        request_at(t, l->tail)->next = index;
    }
    l->tail = index;
}

static void list_remove(struct tracker *t, uint32_t index) {
    struct request *r = request_at(t, index);
    struct list *l = &t->lists[r->phase];
    if (r->previous == SLAB_NONE) {
        l->head = r->next;
    } else {
        request_at(t, r->previous)->next = r->next;
    }
    if (r->next == SLAB_NONE) {
        l->tail = r->previous;
    } else {
        request_at(t, r->next)->previous = r->previous;
    }
}

// Opens a request under a token. SLAB_NONE at the cap.
static uint32_t request_open(struct tracker *t, uint64_t token, int64_t time) {
    uint32_t index = slab_take(&t->pool->requests);
    if (index == SLAB_NONE) {
        return SLAB_NONE;
    }
    if (!map_set(&t->by_token, token, index)) {
        slab_give(&t->pool->requests, index);
        return SLAB_NONE;
    }
    t->tokens[token % LATEST] = (struct latest){token, index};
    if (++t->pool->generation == 0) {
        t->pool->generation = 1; // 0 is no request's
    }
    *request_at(t, index) = (struct request){.token = token,
                                             .first = time,
                                             .last = time,
                                             .generation = t->pool->generation,
                                             .losses = t->losses,
                                             .first_chunk = SLAB_NONE,
                                             .last_chunk = SLAB_NONE,
                                             .root = SPAN_NONE,
                                             .identity = IDENTITY_UNDEFINED,
                                             .named_place = UINT8_MAX};
    list_append(t, index, PHASE_NEW, time + GRACE_NS);
    return index;
}

static void request_ends(struct tracker *t, uint32_t index, bool error, int64_t time) {
    struct request *r = request_at(t, index);
    if (r->has_end) {
        return;
    }
    r->has_end = true;
    r->error = error;
    r->end = time;
    list_remove(t, index);
    list_append(t, index, PHASE_CLOSING, time + GRACE_NS);
}

static struct live_span *span_at(const struct tracker *t, uint32_t chunk, uint32_t span) {
    return &((struct chunk *)slab_at(&t->pool->chunks, chunk))->spans[span % CHUNK_SPANS];
}

// Copies the spans to the tree's scratch.
static struct span *spread_spans(struct tracker *t, const struct request *r) {
    struct span *spans = request_tree_spans(t->pool->tree);
    uint32_t index = r->first_chunk;
    for (uint32_t i = 0; i < r->count;) {
        const struct chunk *chunk = slab_at(&t->pool->chunks, index);
        for (uint32_t k = 0; k < CHUNK_SPANS && i < r->count; k++, i++) {
            const struct live_span *s = &chunk->spans[k];
            spans[i].start = s->start;
            spans[i].end = s->end;
            spans[i].pid = s->pid;
            spans[i].from = s->from;
            spans[i].parent = s->parent;
            spans[i].tier = s->tier;
            spans[i].open = s->open;
            spans[i].error = s->error;
        }
        index = chunk->next;
    }
    return spans;
}

// Without markers: takes begin, end and outcome from the call that opened the request. Returns false when that is not the one that
// should have, or did not return.
static bool request_rooted(const struct tracker *t, struct request *r, const struct span *spans) {
    uint32_t first = 0;
    for (uint32_t i = 1; i < r->count; i++) {
        first = spans[i].start < spans[first].start ? i : first;
    }
    if (r->count == 0 || spans[first].open ||
        (t->options.entry != TIER_NONE && spans[first].tier != t->options.entry)) {
        return false;
    }
    r->begin = spans[first].start;
    r->end = spans[first].end;
    r->error = spans[first].error;
    return true;
}

// Whether a request that has its end is whole, with begin and end set.
static bool request_whole(const struct tracker *t, struct request *r, const struct span *spans) {
    if (r->damaged || r->losses != t->losses || !r->has_end) {
        return false;
    }
    if (r->has_begin) {
        // What the ending process still has open is a return that never came. Elsewhere it is work that goes on.
        for (uint32_t i = 0; i < r->count; i++) {
            if (spans[i].open && spans[i].pid == r->root_pid && spans[i].start <= r->end) {
                return false;
            }
        }
        return r->end >= r->begin;
    }
    return !t->markers && request_rooted(t, r, spans); // with markers its begin was lost
}

static void request_close(struct tracker *t, uint32_t index, enum request_fate fate) {
    struct request *r = request_at(t, index);
    bool marked = t->markers || r->has_begin;
    if (marked && !r->has_begin && !r->has_end && r->losses == t->losses && !r->damaged) {
        // Never was a request: calls under somebody's token, or what came after a begin that nobody saw.
        t->counts.stale_calls += r->count;
    } else {
        struct span *spans = spread_spans(t, r);
        struct request_result result = {.identity = r->identity, .error = r->error};
        if (fate == REQUEST_COMPLETE && !request_whole(t, r, spans)) {
            fate = REQUEST_INCOMPLETE;
        }
        result.fate = fate;
        result.begin = fate == REQUEST_COMPLETE ? r->begin : r->first;
        result.end = fate == REQUEST_COMPLETE ? r->end : r->last;
        if (fate == REQUEST_COMPLETE) {
            result.self = request_tree_build(t->pool->tree, r->count, r->begin, r->end);
            result.spans = request_tree_spans(t->pool->tree);
            result.count = r->count;
        }
        t->options.events.finished(t->options.events.context, &result);
    }
    for (uint32_t chunk = r->first_chunk; chunk != SLAB_NONE;) {
        uint32_t next = ((struct chunk *)slab_at(&t->pool->chunks, chunk))->next;
        slab_give(&t->pool->chunks, chunk);
        chunk = next;
    }
    if (map_remove(&t->by_token, r->token, index)) { // else the token is another request's by now
        remember_closed(t, r->token);
    }
    t->tokens[r->token % LATEST].value = SLAB_NONE;
    list_remove(t, index);
    r->generation = 0; // no call's: refs to it are stale now
    slab_give(&t->pool->requests, index);
}

static bool alive(const struct tracker *t, uint32_t index, uint32_t generation) {
    // A given record keeps its fields but the first four bytes, until it is taken again with a new generation.
    return index != SLAB_NONE && request_at(t, index)->generation == generation;
}

// A token is no longer that of the request that it was.
static void token_free(struct tracker *t, uint64_t token) {
    uint32_t index = map_get(&t->by_token, token);
    if (index != MAP_NONE) {
        map_remove(&t->by_token, token, index);
    }
    t->tokens[token % LATEST].value = SLAB_NONE;
}

// The request of a token, or MAP_NONE.
static uint32_t request_find(struct tracker *t, uint64_t token) {
    struct latest *latest = &t->tokens[token % LATEST];
    if (latest->key != token || latest->value == SLAB_NONE) {
        *latest = (struct latest){token, map_get(&t->by_token, token)};
    }
    return latest->value;
}

// The request for a message under a token: known, or opened. SLAB_NONE when it is stale or past the cap.
static uint32_t request_for(struct tracker *t, uint64_t token, int64_t time) {
    uint32_t index = request_find(t, token);
    if (index == MAP_NONE) {
        if (closed_lately(t, token)) {
            t->counts.stale_calls++;
            return SLAB_NONE;
        }
        index = request_open(t, token, time);
        if (index == SLAB_NONE) {
            t->counts.refused_calls++;
        }
        return index;
    }
    struct request *r = request_at(t, index);
    r->first = time < r->first ? time : r->first;
    r->last = time > r->last ? time : r->last;
    return index;
}

// -- processes and their open calls ----------------------------------------------------------------------------------

// A process that has made calls, or NULL.
static struct process *process_find(struct tracker *t, uint64_t pid) {
    struct latest *latest = &t->processes[pid % LATEST];
    if (latest->key != pid || latest->value == SLAB_NONE) {
        *latest = (struct latest){pid, map_get(&t->by_pid, pid)};
    }
    return latest->value == SLAB_NONE ? NULL : slab_at(&t->pool->processes, latest->value);
}

static struct process *process_for(struct tracker *t, uint64_t pid, int64_t time) {
    struct process *p = process_find(t, pid);
    if (!p) {
        uint32_t index = slab_take(&t->pool->processes);
        if (index == SLAB_NONE) {
            return NULL;
        }
        if (!map_set(&t->by_pid, pid, index)) {
            slab_give(&t->pool->processes, index);
            return NULL;
        }
        t->processes[pid % LATEST] = (struct latest){pid, index};
        p = slab_at(&t->pool->processes, index);
        *p = (struct process){.pid = pid, .top = SLAB_NONE};
    }
    p->last = time;
    return p;
}

static struct call *call_at(const struct tracker *t, uint32_t index) {
    return slab_at(&t->pool->calls, index);
}

static void pop(struct tracker *t, struct process *p) {
    uint32_t top = p->top;
    p->top = call_at(t, top)->below;
    slab_give(&t->pool->calls, top);
}

static void process_forget(struct tracker *t, struct process *p) {
    while (p->top != SLAB_NONE) {
        pop(t, p);
    }
    uint32_t index = map_get(&t->by_pid, p->pid);
    map_remove(&t->by_pid, p->pid, index);
    t->processes[p->pid % LATEST].value = SLAB_NONE;
    slab_give(&t->pool->processes, index);
}

// Takes off calls whose request is closed and whose returns may have been lost: they would stay for ever.
static void pop_lost(struct tracker *t, struct process *p) {
    while (p->top != SLAB_NONE) {
        const struct call *top = call_at(t, p->top);
        if (top->losses == t->losses || alive(t, top->request, top->generation)) {
            return;
        }
        pop(t, p);
    }
}

// Calls have piled up in a process, from this one down: the tier that most of them are of never returns. Some on top may be of
// tiers that are called in the loop.
static void tell_never_returns(struct tracker *t, const struct call *top) {
    enum { LOOKED_AT = 64 };
    uint16_t tier = top->tier;
    int votes = 0; // majority vote
    for (int i = 0; i < LOOKED_AT; i++) {
        tier = votes == 0 ? top->tier : tier;
        votes += top->tier == tier ? 1 : -1;
        if (top->below == SLAB_NONE) {
            break;
        }
        top = call_at(t, top->below);
    }
    if (!t->told[tier]) {
        t->told[tier] = 1;
        t->options.events.never_returns(t->options.events.context, tier);
    }
}

// Puts a call onto its process's stack. Returns it, or NULL at a cap.
static struct call *push(struct tracker *t, struct process *p, uint16_t tier) {
    const struct call *below = p->top == SLAB_NONE ? NULL : call_at(t, p->top);
    if (below && below->depth >= LIMIT_CALL_DEPTH) {
        tell_never_returns(t, below);
        return NULL;
    }
    uint32_t index = slab_take(&t->pool->calls);
    if (index == SLAB_NONE) {
        return NULL;
    }
    struct call *call = call_at(t, index);
    *call = (struct call){.below = p->top,
                          .request = SLAB_NONE,
                          .losses = t->losses,
                          .depth = below ? below->depth + 1 : 0,
                          .requests = below && below->losses == t->losses ? below->requests : 0,
                          .tier = tier};
    p->top = index;
    return call;
}

// Adds a span for a call that was pushed. Returns false at a cap.
static bool span_add(struct tracker *t, uint32_t index, struct call *call, const struct tracker_call *what) {
    struct request *r = request_at(t, index);
    if (r->count == LIMIT_SPANS_PER_REQUEST) {
        return false;
    }
    if (r->count % CHUNK_SPANS == 0) {
        uint32_t chunk = slab_take(&t->pool->chunks);
        if (chunk == SLAB_NONE) {
            return false;
        }
        ((struct chunk *)slab_at(&t->pool->chunks, chunk))->next = SLAB_NONE;
        if (r->last_chunk == SLAB_NONE) {
            r->first_chunk = chunk;
        } else {
            ((struct chunk *)slab_at(&t->pool->chunks, r->last_chunk))->next = chunk;
        }
        r->last_chunk = chunk;
    }
    const struct call *below = call->below == SLAB_NONE ? NULL : call_at(t, call->below);
    bool nested = below && below->request == index && below->generation == r->generation;
    call->request = index;
    call->generation = r->generation;
    call->span = r->count;
    call->chunk = r->last_chunk;
    *span_at(t, r->last_chunk, r->count) = (struct live_span){.start = what->time,
                                                              .end = what->time,
                                                              .pid = what->pid,
                                                              .from = what->from,
                                                              .parent = nested ? below->span : SPAN_NONE,
                                                              .tier = what->tier,
                                                              .open = 1};
    // Returns that were lost pile up calls too: only what was called since the last loss counts.
    if (below && !nested && below->losses == t->losses && ++call->requests % LIMIT_LOOP_REQUESTS == 0) {
        tell_never_returns(t, call);
    }
    r->count++;
    r->open++;
    return true;
}

// Without markers: whether this call opens the token's next request, the one before being over.
static bool opens_again(const struct tracker *t, const struct tracker_call *call, const struct process *p) {
    if (t->markers || call->tier != t->options.entry || p->top != SLAB_NONE) {
        return false;
    }
    uint32_t index = map_get(&t->by_token, call->token);
    return index == MAP_NONE || request_at(t, index)->has_end;
}

// Without markers: the span that is the request is the entry tier's first, or the first of all.
static void find_root(struct tracker *t, struct request *r, const struct tracker_call *call) {
    if (t->options.entry != TIER_NONE && call->tier != t->options.entry) {
        return;
    }
    if (r->root == SPAN_NONE) {
        r->root = r->count - 1;
        r->root_pid = call->pid;
    }
}

struct request_ref tracker_call(struct tracker *t, const struct tracker_call *call) {
    struct process *p = process_for(t, call->pid, call->time);
    if (!p) {
        t->counts.refused_calls++;
        uint32_t known = map_get(&t->by_token, call->token);
        if (known != MAP_NONE) {
            request_at(t, known)->damaged = true;
        }
        return NO_REQUEST;
    }
    pop_lost(t, p);
    if (opens_again(t, call, p)) {
        token_free(t, call->token);
        forget_closed(t, call->token);
    }
    uint32_t index = request_for(t, call->token, call->time);
    struct call *open = push(t, p, call->tier);
    if (index == SLAB_NONE) {
        return NO_REQUEST;
    }
    if (!open || !span_add(t, index, open, call)) {
        t->counts.refused_calls++;
        request_at(t, index)->damaged = true;
        return NO_REQUEST;
    }
    struct request *r = request_at(t, index);
    if (!t->markers && !r->has_begin) {
        find_root(t, r, call);
    }
    return (struct request_ref){index, r->generation};
}

void tracker_pass(struct tracker *t, uint64_t pid, uint16_t tier, int64_t time) {
    struct process *p = process_for(t, pid, time);
    if (p) {
        pop_lost(t, p);
        push(t, p, tier);
    }
}

void tracker_return(struct tracker *t, uint64_t pid, uint16_t tier, bool error, int64_t time) {
    struct process *p = process_find(t, pid);
    uint32_t match = p ? p->top : SLAB_NONE;
    while (match != SLAB_NONE && call_at(t, match)->tier != tier) {
        match = call_at(t, match)->below;
    }
    if (match == SLAB_NONE) {
        t->counts.orphan_returns++;
        return;
    }
    while (p->top != match) { // unwound: their returns never came
        const struct call *top = call_at(t, p->top);
        if (alive(t, top->request, top->generation)) {
            request_at(t, top->request)->damaged = true;
        }
        pop(t, p);
    }
    const struct call *call = call_at(t, match);
    if (alive(t, call->request, call->generation)) {
        struct request *r = request_at(t, call->request);
        struct live_span *span = span_at(t, call->chunk, call->span);
        span->end = time > span->start ? time : span->start;
        span->open = 0;
        span->error = error;
        r->open--;
        r->last = time > r->last ? time : r->last;
        if (!t->markers && !r->has_begin && call->span == r->root) {
            request_ends(t, call->request, error, time);
        }
    }
    pop(t, p);
    // It will call again, most likely: kept until it was idle for the request timeout, unless there are very many.
    if (p->top == SLAB_NONE && t->pool->processes.used > LIMIT_IDLE_PROCESSES) {
        process_forget(t, p);
    }
}

// A marker of a request: it is no longer one of a stream without markers, and an end that was found out is none.
static struct request *request_marked(struct tracker *t, uint32_t index) {
    struct request *r = request_at(t, index);
    if (r->root != SPAN_NONE) {
        r->root = SPAN_NONE;
        r->root_pid = 0;
        if (r->has_end) {
            r->has_end = false;
            r->error = false;
            list_remove(t, index);
            list_append(t, index, PHASE_NEW, t->now + GRACE_NS);
        }
    }
    return r;
}

struct request_ref tracker_begin(struct tracker *t, const struct tracker_call *call) {
    t->markers = true;
    uint32_t known = map_get(&t->by_token, call->token);
    if (known != MAP_NONE && request_at(t, known)->has_begin) {
        token_free(t, call->token); // it is used again: the request before it closes by itself
    }
    forget_closed(t, call->token);
    uint32_t index = request_for(t, call->token, call->time);
    if (index == SLAB_NONE) {
        return NO_REQUEST;
    }
    struct request *r = request_marked(t, index);
    r->has_begin = true;
    r->begin = call->time;
    return (struct request_ref){index, r->generation};
}

void tracker_end(struct tracker *t, uint64_t token, uint64_t pid, bool error, int64_t time) {
    t->markers = true;
    uint32_t index = request_for(t, token, time); // new: its begin may be late
    if (index == SLAB_NONE) {
        return;
    }
    struct request *r = request_marked(t, index);
    if (!r->has_end) {
        r->root_pid = pid;
        request_ends(t, index, error, time);
    }
}

// -- identities ------------------------------------------------------------------------------------------------------

bool tracker_unnamed(const struct tracker *t, struct request_ref ref) {
    return alive(t, ref.index, ref.generation) && request_at(t, ref.index)->identity == IDENTITY_UNDEFINED;
}

struct request_ref tracker_find(const struct tracker *t, uint64_t token) {
    uint32_t index = map_get(&t->by_token, token);
    return index == MAP_NONE ? NO_REQUEST : (struct request_ref){index, request_at(t, index)->generation};
}

void tracker_name(struct tracker *t, struct request_ref ref, uint16_t identity) {
    if (tracker_unnamed(t, ref)) {
        request_at(t, ref.index)->identity = identity;
        request_at(t, ref.index)->named_place = 0;
    }
}

int tracker_asked(struct tracker *t, struct request_ref ref) {
    if (!alive(t, ref.index, ref.generation) || request_at(t, ref.index)->asked == LIMIT_ASKS_PER_REQUEST) {
        return -1;
    }
    request_at(t, ref.index)->answers_due++;
    return request_at(t, ref.index)->asked++;
}

void tracker_answered(struct tracker *t, struct request_ref ref, int place, uint16_t identity) {
    if (!alive(t, ref.index, ref.generation)) {
        return;
    }
    struct request *r = request_at(t, ref.index);
    if (r->answers_due > 0) {
        r->answers_due--;
    }
    if (identity != DIRECTORY_NONE && place < r->named_place) {
        r->identity = identity;
        r->named_place = (uint8_t)place;
    }
}

// -- loss and time ---------------------------------------------------------------------------------------------------

void tracker_lost(struct tracker *t) {
    t->losses++;
}

// Forgets processes that did nothing for the request timeout and wait for nothing but closed requests: they died, or their
// returns are stale anyway.
static void sweep(struct tracker *t, bool all) {
    uint32_t slots = t->by_pid.mask + 1;
    for (uint32_t i = 0; i < slots;) {
        uint32_t index = t->by_pid.slots[i].value;
        struct process *p = index == MAP_NONE ? NULL : slab_at(&t->pool->processes, index);
        bool idle = p && (all || t->now - p->last > t->options.timeout_ns);
        for (uint32_t c = idle && !all ? p->top : SLAB_NONE; c != SLAB_NONE && idle; c = call_at(t, c)->below) {
            idle = !alive(t, call_at(t, c)->request, call_at(t, c)->generation);
        }
        if (idle) {
            process_forget(t, p); // may move another entry into this slot: look at it again
        } else {
            i++;
        }
    }
}

static void close_due(struct tracker *t) {
    for (uint32_t index = t->lists[PHASE_CLOSING].head; index != SLAB_NONE; index = t->lists[PHASE_CLOSING].head) {
        struct request *r = request_at(t, index);
        if (r->deadline > t->now) {
            break;
        }
        if (r->answers_due > 0) {
            r->answers_due = 0;
            list_remove(t, index);
            list_append(t, index, PHASE_CLOSING, r->end + GRACE_NS + GRACE_ASK_NS);
        } else {
            request_close(t, index, REQUEST_COMPLETE);
        }
    }
}

// Requests that will get no end: those whose begin did not come, and those without a root call.
static bool hopeless(const struct tracker *t, const struct request *r) {
    bool rootless = t->markers ? !r->has_begin : r->root == SPAN_NONE && r->open == 0;
    return rootless && !r->has_begin && t->now - r->last > GRACE_NS;
}

static bool too_old(const struct tracker *t, const struct request *r) {
    return t->now - r->first > t->options.timeout_ns;
}

// Looks at the requests that are new no longer. Those that have begun as they should wait for their end from then on.
static void judge_new(struct tracker *t) {
    const struct list *l = &t->lists[PHASE_NEW];
    for (uint32_t index = l->head; index != SLAB_NONE && request_at(t, index)->deadline <= t->now; index = l->head) {
        const struct request *r = request_at(t, index);
        if (too_old(t, r)) {
            request_close(t, index, REQUEST_EXPIRED);
        } else if (hopeless(t, r)) {
            request_close(t, index, REQUEST_INCOMPLETE);
        } else {
            bool begun = r->has_begin || (!t->markers && r->root != SPAN_NONE);
            list_remove(t, index);
            list_append(t, index, begun ? PHASE_OPEN : PHASE_NEW, t->now + GRACE_NS);
        }
    }
}

static void expire_open(struct tracker *t) {
    const struct list *l = &t->lists[PHASE_OPEN];
    while (l->head != SLAB_NONE && too_old(t, request_at(t, l->head))) {
        request_close(t, l->head, REQUEST_EXPIRED);
    }
}

void tracker_advance(struct tracker *t, int64_t now) {
    t->now = now > t->now ? now : t->now;
    close_due(t);
    judge_new(t);
    expire_open(t);
    if (t->now - t->swept > SWEEP_SECONDS * 1000000000LL) {
        t->swept = t->now;
        sweep(t, false);
    }
}

void tracker_reset(struct tracker *t) {
    while (t->lists[PHASE_CLOSING].head != SLAB_NONE) {
        request_close(t, t->lists[PHASE_CLOSING].head, REQUEST_COMPLETE);
    }
    for (enum phase phase = PHASE_NEW; phase <= PHASE_OPEN; phase++) {
        while (t->lists[phase].head != SLAB_NONE) {
            request_close(t, t->lists[phase].head, REQUEST_INCOMPLETE);
        }
    }
    sweep(t, true);
    memset(t->told, 0, sizeof t->told);
    t->now = INT64_MIN / 2; // the next stream may have another clock
    t->swept = t->now;
}

struct request_counts tracker_take_counts(struct tracker *t) {
    struct request_counts counts = t->counts;
    t->counts = (struct request_counts){0};
    return counts;
}

struct tracker *tracker_new(struct request_pool *pool, const struct tracker_options *options) {
    struct tracker *t = calloc(1, sizeof *t);
    if (!t) {
        goto err0;
    }
    *t = (struct tracker){.pool = pool,
                          .options = *options,
                          .lists = {{SLAB_NONE, SLAB_NONE}, {SLAB_NONE, SLAB_NONE}, {SLAB_NONE, SLAB_NONE}},
                          .salt = hash_mix(++pool->nodes_made),
                          .now = INT64_MIN / 2,
                          .swept = INT64_MIN / 2,
                          .markers = options->markers};
    for (int i = 0; i < LATEST; i++) {
        t->tokens[i].value = t->processes[i].value = SLAB_NONE;
    }
    if (!map_init(&t->by_token)) {
        goto err1;
    }
    if (!map_init(&t->by_pid)) {
        goto err2;
    }
    return t;
err2:
    map_free(&t->by_token);
err1:
    free(t);
err0:
    return NULL;
}

void tracker_free(struct tracker *t) {
    if (t) {
        tracker_reset(t);
        map_free(&t->by_token);
        map_free(&t->by_pid);
        free(t);
    }
}
