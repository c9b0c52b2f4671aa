// SPDX-License-Identifier: Apache-2.0
// Stacks of a profile written as text: "a;b;waiting" is functions of one module, and what a process
// did instead of running.
#pragma once

#include <string.h>

#include "model/profile/profile.h"

// The frame of a name: waiting, asleep and gc are what they say, all else is a function of module.
static inline uint32_t fixture_frame(struct profile *p, const char *module, const char *name) {
    static const char *const special[] = {
        [FRAME_WAITING] = "waiting", [FRAME_ASLEEP] = "asleep", [FRAME_GC] = "gc"};
    enum stack_frame_kind kind = FRAME_FUNCTION;
    for (int k = FRAME_WAITING; k <= FRAME_GC; k++) {
        kind = strcmp(name, special[k]) == 0 ? (enum stack_frame_kind)k : kind;
    }
    return stacks_frame(&p->stacks, kind, slice_text(name),
                        slice_text(kind == FRAME_FUNCTION ? module : ""));
}

static inline uint32_t fixture_stack(struct profile *p, const char *module, const char *stack) {
    char text[1024];
    strcpy(text, stack);
    uint32_t at = STACK_ROOT;
    for (char *rest, *name = strtok_r(text, ";", &rest); name; name = strtok_r(NULL, ";", &rest)) {
        at = stacks_push(&p->stacks, at, fixture_frame(p, module, name));
    }
    return at;
}

static inline uint16_t fixture_name(struct profile *p, const char *name) {
    return name ? (uint16_t)names_intern(&p->stacks.names, slice_text(name)) : PROFILE_NOBODY;
}

// Adds a weight of a stack, of an identity's and a process's; NULL: of nobody's.
static inline void fixture_process(struct profile *p, const char *module, const char *identity,
                                   const char *process, const char *stack, uint64_t calls,
                                   int64_t ns) {
    uint32_t at = fixture_stack(p, module, stack);
    profile_add(p, profile_key(at, fixture_name(p, identity), fixture_name(p, process)), calls, ns);
}

static inline void fixture_weight(struct profile *p, const char *module, const char *identity,
                                  const char *stack, uint64_t calls, int64_t ns) {
    fixture_process(p, module, identity, NULL, stack, calls, ns);
}
