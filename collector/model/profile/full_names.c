// SPDX-License-Identifier: Apache-2.0
// What the processes of a full trace are called in its profile. Some are told apart by their pids,
// so that their node can be asked for their names; all others, and those that it does not know any
// more, go by the function that they called first. So pools of thousands of processes take no more
// room than a few.
#include "full_state.h"

#include <stdio.h>
#include <string.h>

static const char OTHERS[] = "other processes";

// Its place among those with names: of its own; or one for all that call that first.
static uint16_t place_of(struct full_trace *f, uint64_t pid, uint32_t frame) {
    for (uint16_t i = 0; i < f->named_count; i++) {
        const struct full_named *n = &f->named[i];
        if (n->pid == pid || (n->pid == 0 && frame != NO_FRAME && n->first == frame)) {
            return i;
        }
    }
    bool own = f->named_pids < LIMIT_FULL_NAMED;
    if (!own && (frame == NO_FRAME || f->named_count == FULL_NAMED)) {
        return PROFILE_NOBODY;
    }
    f->named[f->named_count] = (struct full_named){
        .pid = own ? pid : 0, .first = frame, .name = NAME_NONE, .called = PROFILE_NOBODY};
    f->named_pids += own;
    return f->named_count++;
}

void names_know(struct full_trace *f, struct full_process *p, uint32_t frame) {
    if (frame == FRAME_ELSEWHERE) {
        frame = NO_FRAME;
    }
    if (p->named == PROFILE_NOBODY) {
        p->named = place_of(f, p->pid, frame);
    } else if (f->named[p->named].first == NO_FRAME) {
        f->named[p->named].first = frame;
    }
}

// A name of processes, new or known; PROFILE_NOBODY when there are so many.
static uint16_t intern(struct full_trace *f, const char *text, uint32_t most) {
    uint32_t name = names_intern(&f->profile.stacks.names, slice_text(text));
    for (uint32_t i = 0; i < f->called_count; i++) {
        if (f->called[i] == name) {
            return (uint16_t)name;
        }
    }
    if (name == NAME_NONE || f->called_count >= most) {
        return PROFILE_NOBODY;
    }
    f->called[f->called_count++] = (uint16_t)name;
    return (uint16_t)name;
}

static const char *first_text(const struct full_trace *f, const struct full_named *n) {
    const struct stacks *s = &f->profile.stacks;
    return n->first == NO_FRAME ? "" : names_text(&s->names, s->frames[n->first].name);
}

// Names that the node tells take half of the room at most: who finds none goes by what it called
// first. Where there is one request only, its processes are told apart, whatever they are called.
static uint16_t call(struct full_trace *f, const struct full_named *n) {
    char text[LIMIT_NAME_BYTES + 40], pid[MESSAGE_PID_BYTES];
    const char *first = first_text(f, n);
    const char *name = n->name == NAME_NONE ? first : names_text(&f->profile.stacks.names, n->name);
    snprintf(text, sizeof text, "%s", name);
    if (f->options.requests == 1 && n->pid != 0) {
        message_pid_text(n->pid, pid);
        snprintf(text, sizeof text, "%s%s%s", name, name[0] ? " " : "", pid);
    }
    uint16_t called =
        text[0] ? intern(f, text, LIMIT_PROFILE_PROCESSES / 2) : (uint16_t)PROFILE_NOBODY;
    if (called == PROFILE_NOBODY && first[0]) {
        called = intern(f, first, LIMIT_PROFILE_PROCESSES - 1);
    }
    return called == PROFILE_NOBODY ? intern(f, OTHERS, LIMIT_PROFILE_PROCESSES) : called;
}

uint16_t names_called(struct full_trace *f, uint16_t place) {
    if (place == PROFILE_NOBODY) {
        return PROFILE_NOBODY;
    }
    struct full_named *n = &f->named[place];
    if (n->called == PROFILE_NOBODY) {
        n->called = call(f, n);
    }
    return n->called;
}

uint32_t full_trace_unnamed(struct full_trace *f, uint64_t *pids, uint32_t room) {
    uint32_t count = 0;
    for (; f->named_told < f->named_count && count < room; f->named_told++) {
        if (f->named[f->named_told].pid != 0) {
            pids[count++] = f->named[f->named_told].pid;
        }
    }
    return count;
}

void full_trace_named(struct full_trace *f, uint64_t pid, struct slice name) {
    for (uint16_t i = 0; i < f->named_told && pid != 0 && name.len > 0; i++) {
        struct full_named *n = &f->named[i];
        if (n->pid == pid && n->name == NAME_NONE) {
            n->name = names_intern(&f->profile.stacks.names, name);
            n->called = PROFILE_NOBODY;
            return;
        }
    }
}
