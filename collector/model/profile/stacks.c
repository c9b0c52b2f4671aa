// SPDX-License-Identifier: Apache-2.0
#include "model/profile/stacks.h"

#include <stdlib.h>

#include "base/array.h"

// The name of the frame that STACK_ROOT has.
static const char ROOT[] = "all";

bool stacks_init(struct stacks *s) {
    *s = (struct stacks){0};
    if (!names_init(&s->names, 2 * LIMIT_PROFILE_FRAMES)) {
        *s = (struct stacks){0};
        return false;
    }
    bool ok = map_init(&s->by_frame) && map_init(&s->by_stack) &&
              stacks_frame(s, FRAME_GROUP, slice_text(ROOT), slice_of(NULL, 0)) != UINT32_MAX &&
              array_grow((void **)&s->all, &s->stack_room, 0, sizeof *s->all);
    if (!ok) {
        stacks_free(s);
        return false;
    }
    s->all[STACK_ROOT] = (struct stack){.parent = STACK_ROOT};
    s->stack_count = 1;
    return true;
}

void stacks_free(struct stacks *s) {
    names_free(&s->names);
    map_free(&s->by_frame);
    map_free(&s->by_stack);
    free(s->frames);
    free(s->all);
    *s = (struct stacks){0};
}

size_t stacks_bytes(const struct stacks *s) {
    enum { NAME = 16 + LIMIT_NAME_BYTES + sizeof *s->names.texts + sizeof *s->names.generations };
    return (size_t)s->names.count * NAME + map_bytes(&s->names.by_hash) + map_bytes(&s->by_frame) +
           map_bytes(&s->by_stack) + s->frame_room * sizeof *s->frames +
           s->stack_room * sizeof *s->all;
}

uint32_t stacks_frame(struct stacks *s, enum stack_frame_kind kind, struct slice name,
                      struct slice module) {
    uint32_t text = names_intern(&s->names, name);
    uint64_t key = (uint64_t)kind << 32 | text;
    uint32_t frame = text == NAME_NONE ? MAP_NONE : map_get(&s->by_frame, key);
    if (frame != MAP_NONE) {
        return frame;
    }
    uint32_t of = module.len > 0 ? names_intern(&s->names, module) : NAME_NONE;
    frame = s->frame_count;
    if (text == NAME_NONE || frame == LIMIT_PROFILE_FRAMES ||
        !array_grow((void **)&s->frames, &s->frame_room, frame, sizeof *s->frames) ||
        !map_set(&s->by_frame, key, frame)) {
        s->full = true;
        return UINT32_MAX;
    }
    s->frames[frame] = (struct stack_frame){.name = text, .module = of, .kind = (uint8_t)kind};
    s->frame_count++;
    return frame;
}

// The stack of exactly this frame there.
static uint32_t child(struct stacks *s, uint32_t below, uint32_t frame) {
    uint64_t key = (uint64_t)below << 32 | frame;
    uint32_t stack = map_get(&s->by_stack, key);
    if (stack != MAP_NONE) {
        return stack;
    }
    stack = s->stack_count;
    if (stack == LIMIT_PROFILE_STACKS ||
        !array_grow((void **)&s->all, &s->stack_room, stack, sizeof *s->all) ||
        !map_set(&s->by_stack, key, stack)) {
        s->full = true;
        return below;
    }
    s->all[stack] =
        (struct stack){.parent = below, .frame = frame, .depth = s->all[below].depth + 1};
    s->stack_count++;
    return stack;
}

uint32_t stacks_push(struct stacks *s, uint32_t below, uint32_t frame) {
    uint32_t depth = s->all[below].depth;
    if (frame == UINT32_MAX || depth == STACK_DEEPEST) {
        return below;
    }
    if (depth < LIMIT_PROFILE_DEPTH || s->frames[frame].kind != FRAME_FUNCTION) {
        return child(s, below, frame);
    }
    if (stacks_frame_of(s, below)->kind == FRAME_CUT) {
        return below;
    }
    uint32_t cut = stacks_frame(s, FRAME_CUT, slice_text("..."), slice_of(NULL, 0));
    return cut == UINT32_MAX ? below : child(s, below, cut);
}
