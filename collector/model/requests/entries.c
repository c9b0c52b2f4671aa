// SPDX-License-Identifier: Apache-2.0
// Requests that begin with a call of an entry function and end with its return.
//
// Each such call gets a token of its own from its match spec. No match spec runs when it returns:
// the process keeps the token, and so does whoever it sends messages to. What tells whether a
// process is inside of its request is its stack of open calls, which is exact. Tokens are counted
// in the node without a lock, so that two calls may get the same one when the kernel takes the
// processor away in between.
#include "tracker.h"

#include "base/hash.h"

// A token stands for a request besides its own.
static void add_token(struct tracker *t, uint32_t index, uint64_t token) {
    struct request *r = request_at(t, index);
    struct span_record record = {
        .start = (int64_t)token, .parent = SPAN_NONE, .tier = RECORD_TOKEN};
    if (request_find(t, token) == index) {
        return;
    }
    if (request_find(t, token) != MAP_NONE || r->tokens == LIMIT_SPANS_PER_REQUEST ||
        !record_add(t, index, &record)) {
        request_hurt(r, REASON_ROOM); // what comes under it is not found, or is another's already
        return;
    }
    r->tokens++;
    if (!map_set(&t->by_token, token, index)) {
        request_hurt(r, REASON_ROOM);
    }
    t->tokens[token % LATEST] = (struct latest){token, index};
}

struct token_owner {
    struct tracker *tracker;
    uint32_t index;
};

static void free_token(void *context, uint32_t i, const struct span_record *record) {
    (void)i;
    const struct token_owner *owner = context;
    uint64_t token = (uint64_t)record->start;
    if (record->tier == RECORD_TOKEN &&
        map_remove(&owner->tracker->by_token, token, owner->index)) {
        remember_closed(owner->tracker, token);
        latest_forget(owner->tracker->tokens, token);
    }
}

void entry_tokens_free(struct tracker *t, uint32_t index) {
    struct token_owner owner = {t, index};
    each_record(t, request_at(t, index), &owner, free_token);
}

struct entry_of {
    uint32_t root;
    uint16_t tier;
};

static void find_tier(void *context, uint32_t i, const struct span_record *record) {
    struct entry_of *entry = context;
    entry->tier = i == entry->root ? record->tier : entry->tier;
}

void entry_expired(struct tracker *t, uint32_t index) {
    const struct request *r = request_at(t, index);
    struct entry_of entry = {r->root, TIER_NONE};
    each_record(t, r, &entry, find_tier);
    if (r->tokens >= LIMIT_LOOP_ENTRIES && entry.tier <= LIMIT_TIER_NAMES && !t->told[entry.tier]) {
        t->told[entry.tier] = 1;
        t->options.events.never_returns(t->options.events.context, entry.tier);
    }
}

static void lose_token(struct tracker *t, struct request *r) {
    t->counts.lost_tokens += r->damage == REASON_NONE;
    request_hurt(r, REASON_TOKEN);
}

bool entry_made(const struct tracker *t, uint64_t token) {
    enum { MARKER_BITS = 31, LABEL_BITS = 32 }; // shim/src/requests/kprof_entry.erl
    uint64_t label = hash_unmix(token);
    uint32_t known = map_get(&t->by_token, token);
    return known != MAP_NONE ? request_at(t, known)->by_entry
                             : t->options.events.maker && label >> LABEL_BITS != 0 &&
                                   (label >> MARKER_BITS & 1) != 0;
}

struct request_ref entry_met(struct tracker *t, struct process *p,
                             const struct tracker_call *call) {
    uint32_t index = p->begun;
    if (request_find(t, call->token) == MAP_NONE) {
        add_token(t, index, call->token);
    }
    struct request *r = request_at(t, index);
    if (r->losses != t->losses) {
        request_hurt(r, REASON_LOSS); // perhaps it is over, and this is another one
    }
    r->last = call->time > r->last ? call->time : r->last;
    r->met = true;
    p->last_event = LAST_RETURN;
    p->returned = index;
    if (!t->met && t->options.events.met) {
        t->met = true;
        t->options.events.met(t->options.events.context);
    }
    return (struct request_ref){index, r->generation};
}

// A token that another request has already, and still needs: neither is known to have what comes
// under it.
static bool taken(struct tracker *t, uint64_t token) {
    uint32_t known = request_find(t, token);
    if (known == MAP_NONE || !request_at(t, known)->has_begin || request_at(t, known)->has_end) {
        return false;
    }
    request_hurt(request_at(t, known), REASON_CAUSE);
    return true;
}

struct request_ref tracker_enter(struct tracker *t, const struct tracker_call *call) {
    struct process *p = process_for(t, call->pid, call->time);
    enum incomplete_reason doubt = REASON_NONE;
    if (p && in_entry(t, p) && !(call->caller != 0 && entry_left(t, p, call->caller, call->time))) {
        if (request_at(t, p->begun)->losses == t->losses) {
            add_token(t, p->begun, call->token);
            return take_call(t, call, call->tier);
        }
        // Messages were lost since the call that is open began, perhaps its return: this one is
        // inside of it, or comes after it.
        doubt = REASON_LOSS;
        request_hurt(request_at(t, p->begun), doubt);
        request_ends(t, p->begun, &(struct tracker_end){.pid = call->pid, .time = call->time});
    }
    if (taken(t, call->token)) {
        doubt = REASON_CAUSE;
    }
    struct request_ref begun = request_begins(t, call);
    if (begun.index == SPAN_NONE) {
        t->counts.refused_calls++;
        return begun;
    }
    struct request *r = request_at(t, begun.index);
    r->by_entry = true;
    r->root_pid = call->pid;
    request_hurt(r, doubt);
    if (take_call(t, call, call->tier).index != SPAN_NONE) {
        r->root = r->count - 1;
    }
    return begun;
}

void tracker_upgraded(struct tracker *t, const struct tracker_call *call) {
    struct process *p = process_find(t, call->pid);
    if (p && in_entry(t, p)) {
        calls_cut(t, p, p->begun, call->time);
    }
}

void tracker_left_out(struct tracker *t, uint64_t pid) {
    struct process *p = process_find(t, pid);
    if (!p) {
        return;
    }
    const struct call *top = p->top == SLAB_NONE ? NULL : call_at(t, p->top);
    struct request_ref ref = in_entry(t, p) ? (struct request_ref){p->begun, p->begun_generation}
                             : top
                                 ? piece_ref(t, (struct request_ref){top->request, top->generation})
                                 : NO_REQUEST;
    if (ref.index != SPAN_NONE) {
        lose_token(t, request_at(t, ref.index));
    }
    p->last_event = LAST_RETURN; // a return_to that comes now is that call's
    p->returned = top ? top->request : SLAB_NONE;
}
