// SPDX-License-Identifier: Apache-2.0
#include "full_state.h"

#include "base/array.h"

// How many open calls, from the top, are searched for the caller.
enum { FARTHEST_CALLER = 256 };

// Makes room for one more open call of a process. LIMIT_FULL_CALLS bounds the room of all.
static bool grow(struct full_trace *f, struct full_process *p) {
    uint32_t room = p->room;
    if (p->depth == room && f->open_calls - room + array_next_room(room) > LIMIT_FULL_CALLS) {
        return false;
    }
    bool grown = array_grow((void **)&p->calls, &p->room, p->depth, sizeof *p->calls);
    f->open_calls += p->room - room;
    return grown;
}

bool frames_open(struct full_trace *f, struct full_process *p, uint32_t stack) {
    p->depth = 0;
    if (!grow(f, p)) {
        return false;
    }
    p->depth = 1;
    p->calls[0] = (struct open_call){.stack = stack, .number = ++p->numbers};
    return true;
}

// Takes off the calls above this depth. The first one stays.
static void cut_to(struct full_process *p, uint32_t depth) {
    p->depth = depth > 1 ? depth : 1;
}

// Whether a doubted call, which may have ended by a tail call, is over at the next call `e`. It
// goes on if it makes that call itself, or if its own caller makes it, to another function.
static bool over(const struct open_call *doubted, const struct full_event *e) {
    if (e->caller == doubted->function) {
        return false;
    }
    return e->caller != doubted->caller || e->function == doubted->function;
}

// The depth of the caller among the open calls; 0 where none of those near the top is it.
static uint32_t depth_of(const struct full_process *p, uint32_t caller) {
    uint32_t lowest = p->depth > FARTHEST_CALLER ? p->depth - FARTHEST_CALLER : 1;
    for (uint32_t depth = p->depth; depth > lowest; depth--) {
        if (p->calls[depth - 1].function == caller) {
            return depth;
        }
    }
    return 0;
}

static void count_call(struct full_trace *f, const struct full_process *p, uint32_t stack) {
    struct weight *w = full_request_weight(f, p, stack);
    if (w) {
        w->calls++;
    }
}

// The latest open call that is a frame. The first one is.
static struct open_call *top_frame(const struct full_process *p) {
    struct open_call *call = top_call(p);
    while (call->elsewhere) {
        call--;
    }
    return call;
}

void frames_call(struct full_trace *f, struct full_process *p, const struct full_event *e) {
    if (top_call(p)->doubted && over(top_call(p), e)) {
        cut_to(p, p->depth - 1);
    }
    top_call(p)->doubted = false;
    times_settle(f, p);
    uint32_t at = e->caller != 0 ? depth_of(p, e->caller) : 0;
    if (at > 0) {
        cut_to(p, at);
    }
    struct open_call *top = top_call(p);
    bool elsewhere = e->frame == FRAME_ELSEWHERE;
    if (at > 0 && top->function == e->function) {
        top->repeats++;
        if (!elsewhere) {
            count_call(f, p, top->stack);
        }
        return;
    }
    if (!grow(f, p)) {
        p->request->damaged = true;
        return;
    }
    // a function that calls itself through others that are no frames is one stack likewise
    top = top_frame(p);
    uint32_t stack = elsewhere || top->function == e->function
                         ? top->stack
                         : stacks_push(&f->profile.stacks, top->stack, e->frame);
    p->calls[p->depth++] = (struct open_call){.function = e->function,
                                              .caller = e->caller,
                                              .stack = stack,
                                              .number = ++p->numbers,
                                              .elsewhere = elsewhere};
    if (!elsewhere) {
        count_call(f, p, stack);
    }
}

void frames_return(struct full_trace *f, struct full_process *p, uint32_t function) {
    times_settle(f, p);
    uint32_t at = depth_of(p, function);
    if (at > 0 && p->calls[at - 1].repeats > 0) {
        cut_to(p, at);
        top_call(p)->repeats--;
    } else if (at > 0) {
        cut_to(p, at - 1);
    }
    top_call(p)->doubted = false;
}

void frames_return_to(struct full_trace *f, struct full_process *p, uint32_t function) {
    if (p->depth == 1) {
        times_settle(f, p);
        return;
    }
    struct open_call *top = top_call(p);
    if (top->doubted && top->caller != function) {
        cut_to(p, p->depth - 1);
        top = top_call(p);
    }
    top->doubted = false;
    times_settle(f, p);
    if (top->function == function && top->repeats > 0) {
        top->repeats--;
        return;
    }
    uint32_t lowest = p->depth > FARTHEST_CALLER ? p->depth - FARTHEST_CALLER : 1;
    for (uint32_t depth = p->depth; depth > lowest; depth--) {
        const struct open_call *call = &p->calls[depth - 1];
        if (call->caller == function) {
            cut_to(p, depth - 1);
            top = top_call(p);
            // It may have made that call itself, or left it to the one that has ended.
            top->doubted = top->caller == function && top->function != function;
            return;
        }
        if (call->function == function && depth < p->depth) {
            cut_to(p, depth);
            return;
        }
    }
    if (p->depth > 1 && p->calls[1].caller == function) { // the first one of many
        cut_to(p, 1);
    }
}
