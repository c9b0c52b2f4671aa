// SPDX-License-Identifier: Apache-2.0
// Calls as they come: the stack of their process, and the request that they belong to.
#include "tracker.h"

// Without markers: whether this call opens the token's next request, the one before being over.
static bool opens_again(struct tracker *t, const struct tracker_call *call,
                        const struct process *p) {
    if (call->tier != t->options.entry || p->top != SLAB_NONE || t->markers ||
        call->tier == TIER_NONE) {
        return false;
    }
    uint32_t index = request_find(t, call->token);
    return index == MAP_NONE || request_at(t, index)->has_end;
}

// Without markers: the span that is the request is the entry tier's first, or the first of all.
static void find_root(struct tracker *t, struct request *r, const struct tracker_call *call) {
    bool entry = t->options.entry == TIER_NONE || call->tier == t->options.entry;
    if (entry && !t->markers && !r->has_begin && r->phase != PHASE_PIECE) {
        r->root = r->count - 1;
        r->root_pid = call->pid;
    }
}

// Whether nothing has happened to a request yet, nor, while it is a piece, to its label's.
static bool unhurt(struct tracker *t, uint32_t index) {
    uint32_t labelled =
        is_piece(t, index) ? request_find(t, request_at(t, index)->token) : MAP_NONE;
    return request_at(t, index)->damage == REASON_NONE &&
           (labelled == MAP_NONE || request_at(t, labelled)->damage == REASON_NONE);
}

// A call of another request, or of none, above one whose return has no value: that one was left in
// silence, most likely.
static void doubt_below(struct tracker *t, const struct call *below, uint32_t request) {
    if (below->caller != 0 && !same_request(t, below->request, request) &&
        alive(t, below->request, below->generation) && unhurt(t, below->request)) {
        request_hurt(request_at(t, below->request), REASON_RETURN);
        t->counts.ambiguous_returns++;
    }
}

// What a process calls under the token of its request when the entry has returned: no match spec
// runs then that could take the token away.
static bool after_entry(const struct tracker *t, const struct tracker_call *call, uint32_t index) {
    const struct request *r = request_at(t, index);
    return r->by_entry && r->has_end && r->begin_pid == call->pid;
}

struct request_ref take_call(struct tracker *t, const struct tracker_call *call, uint16_t tier) {
    if (t->tokens[call->token % LATEST].key != call->token) { // a new one, most likely
        prefetch_closed(t, call->token);
    }
    struct process *p = process_for(t, call->pid, call->time);
    if (!p) {
        t->counts.refused_calls++;
        uint32_t known = map_get(&t->by_token, call->token);
        if (known != MAP_NONE) {
            request_hurt(request_at(t, known), REASON_ROOM);
        }
        return NO_REQUEST;
    }
    if (p->top != SLAB_NONE) {
        pop_lost(t, p);
    }
    if (opens_again(t, call, p)) {
        request_leave_token(t, call->token);
        forget_closed(t, call->token);
    }
    uint32_t index = cause_find(t, p, call, tier);
    if (index != SLAB_NONE && after_entry(t, call, index)) {
        stale_count(t, tier, call->token);
        index = SLAB_NONE;
    }
    struct call *open = push(t, p, tier);
    if (open) {
        open->function = call->function;
        open->caller = call->caller;
        if (call->caller != 0) {
            open->blind++;
        }
    }
    bool tells = tier != RECORD_SPAWN || index != SLAB_NONE; // a stale spawn tells nothing
    if (open && open->blind > 0 && open->below != SLAB_NONE && tells) {
        doubt_below(t, call_at(t, open->below), index);
    }
    if (index == SLAB_NONE) {
        return NO_REQUEST;
    }
    if (!open) {
        request_hurt(request_at(t, index), REASON_ROOM);
    }
    struct tracker_call asked = *call;
    struct hop_chain chain = {.count = 0};
    if (p->hop != 0 && open && open->below == SLAB_NONE && tier != RECORD_SPAWN) {
        asked.from = hop_asker(t, p, call, index, &chain);
    }
    if (!open || !span_add(t, index, open, &asked)) {
        t->counts.refused_calls++;
        return NO_REQUEST;
    }
    waits_add(t, index, open, &chain);
    return (struct request_ref){index, request_at(t, index)->generation};
}

struct request_ref tracker_call(struct tracker *t, const struct tracker_call *call) {
    struct request_ref ref = take_call(t, call, call->tier);
    if (ref.index != SPAN_NONE && request_at(t, ref.index)->root == SPAN_NONE) {
        find_root(t, request_at(t, ref.index), call);
    }
    return ref;
}

void tracker_spawn(struct tracker *t, const struct tracker_call *call) {
    const struct process *p = process_find(t, call->pid);
    bool at_work = p && (p->begun_open > 0 || p->top != SLAB_NONE);
    if (at_work || request_find(t, call->token) != MAP_NONE || !closed_lately(t, call->token)) {
        take_call(t, call, RECORD_SPAWN);
    } else { // of what is over it tells nothing, but it has a return
        tracker_pass(t, call->pid, RECORD_SPAWN, call->time);
    }
}

void tracker_pass(struct tracker *t, uint64_t pid, uint16_t tier, int64_t time) {
    struct process *p = process_for(t, pid, time);
    if (p) {
        pop_lost(t, p);
        push(t, p, tier);
    }
}
