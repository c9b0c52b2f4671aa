// SPDX-License-Identifier: Apache-2.0
// The frames and stacks of a profile. A frame is one line of a stack: a function, or what its
// process did instead of running. A stack is a frame on top of another stack, and one number: so
// that all stacks together are a tree, in which each stands behind the one below it.
//
// One thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/map.h"
#include "base/names.h"

enum stack_frame_kind {
    FRAME_FUNCTION,
    FRAME_WAITING, // for another process to begin, or to be run again after it
    FRAME_ASLEEP,  // scheduled out for any other reason
    FRAME_GC,
    FRAME_CUT,  // frames that lie too deep to be told apart
    FRAME_GROUP // what stacks are grouped by, below all functions: a process, an identity
};

// The stack without a frame, and no stack.
enum { STACK_ROOT = 0, STACK_NONE = UINT32_MAX };

// Frames of the deepest stack: functions, FRAME_CUT, and one thing that was done instead.
enum { STACK_DEEPEST = LIMIT_PROFILE_DEPTH + 2 };

struct stack_frame {
    uint32_t name;   // of stacks.names, as it is shown
    uint32_t module; // of a function: likewise; else NAME_NONE
    uint8_t kind;    // enum stack_frame_kind
};

struct stack {
    uint32_t parent; // STACK_ROOT has itself
    uint32_t frame;
    uint32_t depth; // frames in it
};

struct stacks {
    struct names names;
    struct stack_frame *frames;
    struct stack *all;
    uint32_t frame_count, stack_count;
    uint32_t frame_room, stack_room; // allocated
    struct map by_frame, by_stack;
    bool full; // a frame or a stack was one too many, or memory was out
};

// Returns false without memory.
bool stacks_init(struct stacks *s);
void stacks_free(struct stacks *s);
// Bytes that they take at most: as if each name were as long as it may be.
size_t stacks_bytes(const struct stacks *s);

// The frame of a kind and a name, new or known; its number, or UINT32_MAX when there is no room
// (LIMIT_PROFILE_FRAMES). module is empty for what is no function. Names are cut at
// LIMIT_NAME_BYTES.
uint32_t stacks_frame(struct stacks *s, enum stack_frame_kind kind, struct slice name,
                      struct slice module);

// The stack of a frame on top of another stack, new or known. What lies deeper than
// LIMIT_PROFILE_DEPTH is one stack there, of a frame FRAME_CUT. Without room
// (LIMIT_PROFILE_STACKS), and past STACK_DEEPEST, it is the stack below.
uint32_t stacks_push(struct stacks *s, uint32_t below, uint32_t frame);

static inline const struct stack_frame *stacks_frame_of(const struct stacks *s, uint32_t stack) {
    return &s->frames[s->all[stack].frame];
}
static inline const char *stacks_name_of(const struct stacks *s, uint32_t stack) {
    return names_text(&s->names, stacks_frame_of(s, stack)->name);
}
