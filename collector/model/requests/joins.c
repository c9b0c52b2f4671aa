// SPDX-License-Identifier: Apache-2.0
// Which of a process's open calls a message ends.
//
// A return or an exception names its function: it ends the latest open call of it, and what lies
// above was unwound. A return_to (of tiers whose return values do not travel) names only where
// control goes. Its rules:
//
//   - It ends the first call from the top that returns there, and those right below it that do too:
//     they were left by tail calls. (Not a call of the very function: that one has just called.)
//     What lay above was left by an exception.
//   - When it names the function of an open call, control is in that call: what lay above it was
//     left by an exception.
//   - It has not passed an open call whose return has a value: that would have come before. (Except
//     that it was lost.)
//   - Behind a message that has a return_to of its own (a return with a value, an exception, a
//     marker, a spawn) it is that one's and ends nothing.
//   - Else an exception has passed some of the calls on top that have no return values, nobody can
//     tell which.
//
// That several calls ended at once, or one behind a return with a value, is a guess until the next
// return_to that nothing on the stack explains, or only a call of an older request, shows it to be
// wrong: the request of the last such guess in the process is incomplete then. It cannot show where
// the tier's call that was taken for over is between two turns of a recursion of an untraced
// function (which called it, and in it others) and ends by a tail call, an exception or a death.
// And an exception sends a return_to only if the function that catches it is the very one that
// called the traced call (next_catch in beam_common.c): what is found to be left by an exception
// later on has ended before, nobody knows when, unless each call was made by the function of the
// one below it. So is what a call of another request, or of none, is made right above.
//
// Whether a call without a value has returned or raised is not said: its caller may have caught
// what it raised, and control is back there either way. But one that is left without a return_to of
// its own has raised, and so has the call below that its function was called by, if that does not
// catch it: what is behind it is told. Of all others the outcome is not known.
#include "tracker.h"

static void hurt(struct tracker *t, uint32_t request, uint32_t generation) {
    struct request_ref ref = piece_ref(t, (struct request_ref){request, generation});
    if (ref.index != SPAN_NONE) {
        request_hurt(request_at(t, ref.index), REASON_RETURN);
    }
}

// The call that a request is has returned.
__attribute__((noinline)) static void root_returns(struct tracker *t, uint32_t request, bool error,
                                                   int64_t time) {
    request_ends(t, request,
                 &(struct tracker_end){
                     .pid = request_at(t, request)->root_pid, .time = time, .error = error});
}

// A call is over at a time. Returns its span, NULL when it is a spawn or its request is closed.
// Inlined, as each return comes by here.
__attribute__((always_inline)) static inline const struct span_record *
end_call(struct tracker *t, const struct call *call, bool error, int64_t time) {
    if (call->tier == RECORD_SPAWN || !alive(t, call->request, call->generation)) {
        return NULL;
    }
    struct request *r = request_at(t, call->request);
    struct span_record *span = span_of(t, call);
    span->end = time > span->start ? time : span->start;
    span->open = false;
    span->error = error;
    r->open--;
    r->last = time > r->last ? time : r->last;
    if (call->span == r->root && (r->by_entry || (!t->markers && !r->has_begin))) {
        root_returns(t, call->request, error, time);
    }
    return span;
}

void calls_cut(struct tracker *t, const struct process *p, uint32_t request, int64_t time) {
    for (uint32_t i = p->top; i != SLAB_NONE; i = call_at(t, i)->below) {
        if (call_at(t, i)->request == request) {
            end_call(t, call_at(t, i), false, time);
            call_at(t, i)->request = SLAB_NONE;
        }
    }
}

// How calls without return values ended that lay above the one that is known to have.
enum left_by { LEFT_BY_TAIL_CALL, LEFT_BY_EXCEPTION };

// Whether a call without a value that an exception has left may have been left before, or
// otherwise.
static bool unclear(const struct tracker *t, const struct call *call) {
    bool direct = call->below != SLAB_NONE && call_at(t, call->below)->function == call->caller;
    return !direct || call->function == call->caller; // a recursion: or by a tail call of itself
}

// An entry's return never came: its request is over all the same.
static void end_unwound_entry(struct tracker *t, const struct call *call, int64_t time) {
    const struct request *r =
        alive(t, call->request, call->generation) ? request_at(t, call->request) : NULL;
    if (r && r->by_entry && call->span == r->root) {
        request_ends(t, call->request, &(struct tracker_end){.pid = r->begin_pid, .time = time});
    }
}

// Takes off what lies above `match`. Calls whose return had to come are unwound: it never came.
// Returns whether `match`, if it is over too, was left by the same exception.
static bool unwind_to(struct tracker *t, struct process *p, uint32_t match, enum left_by how,
                      int64_t time) {
    bool raised = false;
    while (p->top != match) {
        const struct call *top = call_at(t, p->top);
        raised = how == LEFT_BY_EXCEPTION && top->caller != 0 && !unclear(t, top);
        if (top->caller != 0) {
            end_call(t, top, how == LEFT_BY_EXCEPTION, time);
            if (how == LEFT_BY_EXCEPTION && !raised) {
                t->counts.ambiguous_returns++;
                hurt(t, top->request, top->generation);
            }
        } else if (top->tier != RECORD_SPAWN) { // a spawn that raised has no return
            t->counts.unwound_frames++;
            hurt(t, top->request, top->generation);
            end_unwound_entry(t, top, time);
        }
        pop(t, p);
    }
    return raised;
}

bool entry_left(struct tracker *t, struct process *p, uint32_t caller, int64_t time) {
    uint32_t root = request_at(t, p->begun)->root;
    uint32_t i = p->top;
    while (i != SLAB_NONE && (call_at(t, i)->request != p->begun || call_at(t, i)->span != root)) {
        i = call_at(t, i)->below;
    }
    if (i == SLAB_NONE || call_at(t, i)->caller == 0 || call_at(t, i)->caller != caller) {
        return false;
    }
    unwind_to(t, p, call_at(t, i)->below, LEFT_BY_EXCEPTION, time);
    return true;
}

void tracker_return(struct tracker *t, uint64_t pid, uint16_t tier, bool error, int64_t time) {
    struct process *p = process_find(t, pid);
    if (p) {
        process_acts(t, p, time);
    }
    uint32_t match = p ? p->top : SLAB_NONE;
    while (match != SLAB_NONE && call_at(t, match)->tier != tier) {
        match = call_at(t, match)->below;
    }
    if (match == SLAB_NONE) {
        t->counts.orphan_returns++;
        return;
    }
    if (match != p->top) {
        unwind_to(t, p, match, error ? LEFT_BY_EXCEPTION : LEFT_BY_TAIL_CALL, time);
    }
    const struct call *call = call_at(t, match);
    episode_end(t, p, call, end_call(t, call, error, time), time);
    p->returned = call->request;
    pop(t, p);
    p->last_event = error ? LAST_EXCEPTION : LAST_RETURN;
    // It will call again, most likely: kept until it was idle for the request timeout, unless there
    // are very many.
    if (p->top == SLAB_NONE && t->pool->processes.used > LIMIT_IDLE_PROCESSES && p->web_open == 0 &&
        !alive(t, p->begun, p->begun_generation)) {
        process_leave(t, p);
    }
}

void tracker_spawned(struct tracker *t, uint64_t pid, uint64_t child) {
    struct process *p = process_find(t, pid);
    if (p && p->top != SLAB_NONE && call_at(t, p->top)->tier == RECORD_SPAWN) {
        const struct call *call = call_at(t, p->top);
        p->returned = call->request;
        if (alive(t, call->request, call->generation)) {
            struct span_record *spawn = span_of(t, call);
            spawn->from = child;
            if (request_at(t, call->request)->token != p->label || is_piece(t, call->request)) {
                cause_child(t, p, call->request, spawn);
            }
            if (child != 0) {
                hop_spawned(t, p, child, spawn->start, call->request);
            }
        }
        p->clock = clock_spawned(p->clock);
        pop(t, p);
        p->last_event = LAST_RETURN;
    }
}

// -- return_to ------------------------------------------------------------------------------------

enum landing { LANDS_NOWHERE, LANDS_AT_CALLER, LANDS_INSIDE };

// Looks from the top, as far as there are calls without return values, for the call that `function`
// is the caller of, or that is a call of it. Behind a return with a value the latter is likelier
// where both are so.
static enum landing find_landing(const struct tracker *t, const struct process *p,
                                 uint32_t function, uint32_t *where) {
    for (uint32_t i = p->top; i != SLAB_NONE && call_at(t, i)->blind > 0;
         i = call_at(t, i)->below) {
        const struct call *call = call_at(t, i);
        bool at_caller = call->caller == function;
        bool inside = call->function == function;
        *where = i;
        if (inside && (!at_caller || p->last_event != LAST_OTHER)) {
            return LANDS_INSIDE;
        }
        if (at_caller) {
            return LANDS_AT_CALLER;
        }
        if (call->caller == 0 && call->losses == t->losses) {
            break; // it would have returned before
        }
    }
    return LANDS_NOWHERE;
}

// Ends the calls on top that return to `function`, the first of them perhaps by an exception.
// Whatever is a guess of that is remembered.
static uint16_t end_chain(struct tracker *t, struct process *p, uint32_t function, bool raised,
                          int64_t time) {
    uint16_t tier = call_at(t, p->top)->tier;
    bool guess = p->last_event != LAST_OTHER;
    uint32_t whose = guess ? p->returned : call_at(t, p->top)->request;
    const struct call *call;
    do {
        call = call_at(t, p->top);
        const struct span_record *span = end_call(t, call, raised, time);
        // it is the other one's: this one was left in silence before
        if (!same_request(t, call->request, whose)) {
            t->counts.ambiguous_returns++;
            hurt(t, call->request, call->generation);
        } else if (guess) {
            p->guessed = call->request;
            p->guessed_generation = call->generation;
        }
        episode_end(t, p, call, span, time);
        pop(t, p);
        call = p->top == SLAB_NONE ? NULL : call_at(t, p->top);
        guess = true;
        raised = false;
    } while (call && call->caller == function && call->function != function);
    return tier;
}

// A return_to ends a call that is older than the request that the process is at, where one of that
// was taken for over by a guess: the old call, left in silence, may explain by chance what shows
// the guess to be wrong.
static void doubt_guess(struct tracker *t, const struct process *p) {
    bool guessed = p->guessed == p->begun && p->guessed_generation == p->begun_generation &&
                   alive(t, p->begun, p->begun_generation);
    if (guessed && p->last_event == LAST_OTHER &&
        !same_request(t, p->begun, call_at(t, p->top)->request)) {
        t->counts.ambiguous_returns++;
        hurt(t, p->guessed, p->guessed_generation);
    }
}

// A return_to that nothing on the stack explains.
static void unexplained(struct tracker *t, struct process *p) {
    uint32_t blind = 0;
    for (uint32_t i = p->top; i != SLAB_NONE && call_at(t, i)->caller != 0;
         i = call_at(t, i)->below) {
        blind++;
    }
    if (p->last_event != LAST_OTHER) {
        return; // that one's own: of those on top none was called by the function
    }
    struct request_ref guessed =
        piece_ref(t, (struct request_ref){p->guessed, p->guessed_generation});
    bool wrong = guessed.index != SPAN_NONE; // it is of a call that was taken for ended
    if (blind == 0) {                        // else of one that nobody wants to know of
        t->counts.ambiguous_returns += wrong;
        hurt(t, p->guessed, p->guessed_generation);
        return;
    }
    t->counts.ambiguous_returns++;
    hurt(t, p->guessed, p->guessed_generation);
    for (uint32_t i = p->top; blind > 0; blind--, i = call_at(t, i)->below) {
        hurt(t, call_at(t, i)->request, call_at(t, i)->generation);
    }
}

uint16_t tracker_return_to(struct tracker *t, uint64_t pid, uint32_t function, int64_t time) {
    struct process *p = process_find(t, pid);
    uint16_t tier = TIER_NONE;
    uint32_t where;
    bool raised;
    if (!p) {
        return TIER_NONE;
    }
    process_acts(t, p, time);
    if (p->top != SLAB_NONE && call_at(t, p->top)->tier == RECORD_SPAWN) { // it raised
        p->returned = call_at(t, p->top)->request;
        pop(t, p);
        p->last_event = LAST_EXCEPTION;
    }
    switch (find_landing(t, p, function, &where)) {
    case LANDS_AT_CALLER:
        raised = unwind_to(t, p, where, LEFT_BY_EXCEPTION, time);
        doubt_guess(t, p);
        tier = end_chain(t, p, function, raised, time);
        break;
    case LANDS_INSIDE:
        unwind_to(t, p, where, LEFT_BY_EXCEPTION, time);
        break;
    case LANDS_NOWHERE:
        unexplained(t, p);
        break;
    }
    p->last_event = LAST_OTHER;
    return tier;
}

// -- death ----------------------------------------------------------------------------------------

void tracker_exited(struct tracker *t, uint64_t pid, int64_t time) {
    struct process *p = process_find(t, pid);
    if (!p) {
        return;
    }
    process_acts(t, p, time);
    bool crashed = p->last_event == LAST_EXCEPTION && p->top == SLAB_NONE;
    while (p->top != SLAB_NONE) {
        const struct call *top = call_at(t, p->top);
        if (top->caller == 0 && top->tier != RECORD_SPAWN && top->losses != t->losses) {
            break; // its return may have been lost
        }
        if (top->tier != RECORD_SPAWN) {
            // by a kill, which is silent from OTP 27 on; before, such calls end by an exception
            end_call(t, top, true, time);
            crashed = top->below == SLAB_NONE && top->request == p->begun &&
                      top->generation == p->begun_generation;
        }
        // or in silence before, also where others were called since
        if (top->caller != 0 && unclear(t, top)) {
            t->counts.ambiguous_returns++;
            hurt(t, top->request, top->generation);
        }
        pop(t, p);
    }
    unwind_to(t, p, SLAB_NONE, LEFT_BY_EXCEPTION, time);
    request_died(t, p, crashed, time);
    process_dies(t, p);
}
