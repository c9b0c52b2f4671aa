// SPDX-License-Identifier: Apache-2.0
// Whose work a call is.
//
// Its label does not prove it: who waits for a pool's worker, a lock, or an answer that was worked
// out for somebody else goes on under the label of the one who gave it back, and so do all whom it
// asks from then on. But the token's From names the process that really asked. What decides, in
// this order:
//
//   - what the process says itself (kprof:with_token/2, set_current_label/1),
//   - the one request that the process has begun itself and not ended,
//   - the message that it has taken, where that is told (hops.c),
//   - the call that is open in it: what it calls from within is the same work, unless a message of
//     another request came in between,
//   - what its sender was at when it sent: its own request, its open call, its latest call under
//     that label. A sender that has worked for the label's request before may have sent this long
//     ago: then the token's serial tells whether it was before the sender began what it is at now,
//     or behind the answer that ended what it was at before.
//   - the label.
//
// Messages of different processes overtake each other. Where the label does not fit what is known
// of the sender, and the sender's own messages do not reach as far as the call yet, the call and
// what hangs on it wait in a request of their own, a piece, which is joined to the right one when
// they do, or DISORDER_NS later. Where it fits, or nothing is known of the sender, the call goes by
// it, and is looked at again then (ahead.c).
//
// A label that a process shows while it works for another request is lent. What comes under it from
// a process of which nothing is known may be of anybody who holds it: then they are all incomplete.
#include "causes.h"

// A call in a process goes to a request that is not its label's.
static void recredit(struct tracker *t, const struct process *p, uint32_t index, uint64_t label) {
    t->counts.recredited_calls++;
    if (p->label != label || p->work != index ||
        p->work_generation != request_at(t, index)->generation) {
        cause_borrowed(t, index, label); // else as in the call before
    }
}

// The innermost call that is open in a process, NULL: none. A spawn that raised stays on its stack
// until the process's next call.
static const struct call *open_call(const struct tracker *t, const struct process *p) {
    const struct call *top = p->top == SLAB_NONE ? NULL : call_at(t, p->top);
    return top && top->tier != RECORD_SPAWN ? top : NULL;
}

// Whether a process that has begun a request had begun another one since when it sent this.
static bool begun_since(const struct process *p, const struct request *r,
                        const struct tracker_call *call) {
    return p->begun_generation != r->generation && p->begun_clock > 0 &&
           p->begun_clock < MESSAGE_LAST_SERIAL && call->serial >= p->begun_clock;
}

// A call goes by its label, from a process of which nothing is known.
static void unknown_sender(struct tracker *t, uint32_t index, const struct tracker_call *call) {
    request_at(t, index)->strangers = true;
    if (t->forgets) {
        forgotten_doubt(t, index, call->from, call->time);
    }
}

// Whether the label says what the sender, as far as its messages have come, is at.
static bool label_fits(struct tracker *t, const struct process *p, struct process *from,
                       const struct tracker_call *call, uint32_t index) {
    struct request *r = request_at(t, index);
    if (!from) {
        unknown_sender(t, index, call);
        return !t->lends || !lent_find(t, call->token);
    }
    if (from == p && p->work == SLAB_NONE) {
        r->unasked = true;
        return !t->lends || !lent_find(t, call->token); // it has done nothing else yet
    }
    if (from->last > call->time) {
        return false; // it was at something else then, perhaps
    }
    if (from->said != 0 && has_said(t, from, call->time)) {
        return from->said == call->token;
    }
    if (from->begun_open > 0 && alive(t, from->begun, from->begun_generation) &&
        !request_at(t, from->begun)->has_end) {
        return from->begun_open > 1 ? r->begin_pid == call->from && !r->has_end
                                    : from->begun == index;
    }
    const struct call *top = from == p ? NULL : open_call(t, from);
    if (top) {
        bool fits = top->request == index && top->generation == r->generation;
        if (fits && call->serial > from->sent && call->previous == from->got && from->got > 0) {
            from->sent = call->serial; // it has sent this at that
        }
        return fits;
    }
    bool latest = from->work == index && from->work_generation == r->generation;
    return (latest && from->label == call->token) ||
           (!t->lends && (latest || (r->begin_pid == call->from && !begun_since(from, r, call))));
}

// The request of a call whose process was brought a message of that request; SLAB_NONE: it is over.
static uint32_t of_message(struct tracker *t, const struct process *p,
                           const struct tracker_call *call, uint16_t tier, uint32_t index) {
    if (index == SLAB_NONE) {
        stale_count(t, tier, call->token);
    } else if (request_at(t, index)->token != call->token &&
               request_find(t, call->token) != index) {
        recredit(t, p, index, call->token);
    }
    return index;
}

// The request of a call whose label does not fit, or is new. Apart from what is done for nearly
// every call, which stays small.
__attribute__((noinline)) static uint32_t sent_by_another(struct tracker *t, struct process *p,
                                                          const struct tracker_call *call,
                                                          uint16_t tier) {
    uint32_t index = request_find(t, call->token);
    struct process *sender = process_find(t, call->from);
    bool at_own = sender && begun_here(t, sender, call->time) != SLAB_NONE;
    // a new label: of a request that it opens, or whose begin is still to come and which is lent
    // already
    bool later = sender && sender != p &&
                 (at_own ? sender->begun_clock == 0 || call->serial >= sender->begun_clock
                         : open_call(t, sender) != NULL);
    if (index == MAP_NONE && !later && !lent_find(t, call->token) &&
        !closed_lately(t, call->token)) {
        index = request_for(t, call->token, call->time, tier);
        if (index != SLAB_NONE) {
            request_at(t, index)->unasked = sender == p;
            if (!sender) {
                unknown_sender(t, index, call);
            }
        }
        return index;
    }
    struct brought b = {call->from, call->token, call->serial, call->previous, call->time};
    bool waits = !sender || sender->last < call->time;
    bool hints = sender && (sender->begun != SLAB_NONE || sender->said != 0 ||
                            sender->label == call->token || call->serial > sender->clock);
    // else the label stands in any case; and where returns come without values, waiting would make
    // their joins unclear
    hints = hints && (!t->blind || t->lends || (at_own && call->serial > sender->clock));
    if (waits && !hints && !lent_find(t, call->token)) {
        return request_for(t, call->token, call->time, tier);
    }
    if (waits) {
        index = piece_open(t, &b, sender);
        t->counts.refused_calls += index == SLAB_NONE;
        return index;
    }
    return of_message(t, p, call, tier, sender_request(t, &b));
}

// The request of a call by what is known of its sender and by its label.
static uint32_t of_sender(struct tracker *t, struct process *p, const struct tracker_call *call,
                          uint16_t tier) {
    struct process *from = call->from == call->pid ? p : process_find(t, call->from);
    uint32_t labelled = request_find(t, call->token);
    bool fits = labelled != MAP_NONE && label_fits(t, p, from, call, labelled);
    uint32_t index = fits ? labelled : sent_by_another(t, p, call, tier);
    bool by_label = fits || (index != SLAB_NONE && request_find(t, call->token) == index);
    if (!by_label || (from && (from->last >= call->time || from->said == call->token))) {
        return index; // its word stands
    }
    // a known one is at the same until it has the answer, unless labels are lent
    if (!from || t->lends || labelled == MAP_NONE) {
        struct brought b = {call->from, call->token, call->serial, call->previous, call->time};
        ahead_note(t, index, &b);
    } else {
        request_at(t, index)->unsure = true;
    }
    return index;
}

// The request of a call of which nothing in its own process tells but what it has taken. Where not
// even that is sure, and the label is lent, nobody can tell.
static uint32_t sent_by(struct tracker *t, struct process *p, const struct tracker_call *call,
                        uint16_t tier) {
    uint32_t known;
    p->sure = p->hop != 0 && hop_known(t, p, call, &known);
    if (p->sure) {
        return of_message(t, p, call, tier, known);
    }
    uint32_t index = of_sender(t, p, call, tier);
    if (t->takes && p->hop != 0 && index != SLAB_NONE && lent_find(t, call->token)) {
        request_hurt(request_at(t, index), REASON_CAUSE);
    }
    return index;
}

// Whether a process that calls under another label than it had does so from within the call that is
// open: what answers a message that it sent there has a higher serial than its token had. Else it
// has taken the next message.
static bool answered_inside(const struct tracker *t, const struct process *p,
                            const struct tracker_call *call, uint16_t tier) {
    // the same tier again is a loop
    return call->serial > p->clock && call_at(t, p->top)->tier != tier;
}

// Whether who has sent the answer is known to have worked for the label's request, and not for the
// one that the open call is of: then it may be the next message, too.
static bool sent_for_another(struct tracker *t, const struct tracker_call *call, uint32_t inside) {
    uint32_t known = request_find(t, call->token);
    return call->from != call->pid && known != MAP_NONE && known != inside &&
           worked_for(t, known, call->from, 0) && !worked_for(t, inside, call->from, call->pid);
}

void tracker_says(struct tracker *t, const struct tracker_call *call, enum tracker_word word) {
    struct process *p = process_for(t, call->pid, call->time);
    if (p) {
        p->clock = call->serial > p->clock ? call->serial : p->clock;
        p->said = word == SAYS_NO_MORE ? 0 : call->token;
        p->said_at = call->time;
        p->said_within = word == SAYS_WITHIN;
        p->label = call->token;
        p->last_event = LAST_RETURN;
        p->returned = p->top == SLAB_NONE ? SLAB_NONE : call_at(t, p->top)->request;
    }
}

// The request that a process says it works for; SLAB_NONE when it is over, which is counted.
static uint32_t of_word(struct tracker *t, struct process *p, const struct tracker_call *call,
                        uint16_t tier) {
    uint32_t said = request_for(t, p->said, call->time, tier);
    if (said != SLAB_NONE && call->token != p->said && request_find(t, call->token) != said) {
        recredit(t, p, said, call->token);
    }
    return said;
}

// The request of a call in a process that has another one open, of a request that is there.
static uint32_t of_open_call(struct tracker *t, struct process *p, const struct tracker_call *call,
                             uint16_t tier) {
    const struct call *top = call_at(t, p->top);
    uint32_t inside = top->request;
    if (request_at(t, inside)->token == call->token ||
        (p->label == call->token && p->work == inside)) {
        return inside;
    }
    if (!t->markers && request_find(t, call->token) == MAP_NONE && !closed_lately(t, call->token)) {
        return request_for(t, call->token, call->time, tier);
    }
    uint32_t known;
    if (p->hop != 0 && hop_known(t, p, call, &known) && known == inside) {
        return of_message(t, p, call, tier, inside);
    }
    // what has no return value may have been left in silence, by an exception: then it is over
    if (top->caller != 0 || !answered_inside(t, p, call, tier)) {
        // the next turn of a loop, or the same tier from within
        bool either = top->caller == 0 && call->serial > p->clock;
        uint32_t index = sent_by(t, p, call, tier);
        if (either && index != inside && index != SLAB_NONE) {
            requests_doubt_perhaps(t, inside, index);
        }
        return index;
    }
    if (!sent_for_another(t, call, inside)) {
        recredit(t, p, inside, call->token);
        return inside;
    }
    uint32_t index = sent_by(t, p, call, tier);
    if (index != inside) {
        requests_doubt_perhaps(t, inside, index);
    }
    return index;
}

static uint32_t of_process(struct tracker *t, struct process *p, const struct tracker_call *call,
                           uint16_t tier) {
    if (p->said != 0 && !p->said_within && p->said != call->token) {
        p->said = 0; // a message has brought another one
    }
    if (p->said != 0 && has_said(t, p, call->time)) {
        p->sure = true;
        return of_word(t, p, call, tier);
    }
    uint32_t begun = p->begun == SLAB_NONE ? SLAB_NONE : begun_here(t, p, call->time);
    const struct call *top = p->top == SLAB_NONE ? NULL : call_at(t, p->top);
    if (begun != SLAB_NONE) {
        p->sure = true;
        if (top && top->request != begun && same_request(t, top->request, begun) &&
            alive(t, top->request, top->generation)) {
            // a piece that is to be joined to it, and this call with the one below it
            return top->request;
        }
        if (call->token != request_at(t, begun)->token && request_find(t, call->token) != begun) {
            recredit(t, p, begun, call->token);
        }
        return begun;
    }
    const struct episode *last = top || !p->after_entry ? NULL : episode_find(t, p->episode);
    if (last && last->label == call->token) {
        // its entry has returned, and left it with that label
        uint32_t index = work_settled(t, last->request, last->generation);
        if (index == SLAB_NONE) {
            stale_count(t, tier, call->token);
        }
        return index;
    }
    return top && alive(t, top->request, top->generation) ? of_open_call(t, p, call, tier)
                                                          : sent_by(t, p, call, tier);
}

uint32_t cause_find(struct tracker *t, struct process *p, const struct tracker_call *call,
                    uint16_t tier) {
    if (call->caller != 0) {
        t->blind = true;
    }
    uint32_t index = of_process(t, p, call, tier);
    p->clock = call->serial > p->clock ? call->serial : p->clock;
    if (p->top == SLAB_NONE) {
        // it has sent nothing since it got this, or sent the last
        p->since_clock = clock_next(p->clock);
        p->got = call->from != call->pid ? call->serial : 0;
        p->sent = 0;
    }
    p->label = call->token;
    p->work = index;
    if (index != SLAB_NONE) {
        struct request *r = request_at(t, index);
        p->work_generation = r->generation;
        r->first = call->time < r->first ? call->time : r->first;
        r->last = call->time > r->last ? call->time : r->last;
    }
    return index;
}
