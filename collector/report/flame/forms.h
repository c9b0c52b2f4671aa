// SPDX-License-Identifier: Apache-2.0
// The forms of flame_file.h, a file each. All append to the drawing's buffer, whose failure is
// looked at once, in the end.
#pragma once

#include "report/flame_file.h"

void flame_html(const struct flame_drawing *d, struct buffer *out);
void flame_svg(const struct flame_drawing *d, struct buffer *out);
void flame_collapsed(const struct flame_drawing *d, struct buffer *out);
void flame_speedscope(const struct flame_drawing *d, struct buffer *out);
void flame_chrome(const struct flame_drawing *d, struct buffer *out);
void flame_pprof(const struct flame_drawing *d, struct buffer *out);
void flame_callgrind(const struct flame_drawing *d, struct buffer *out);
void flame_perf(const struct flame_drawing *d, struct buffer *out);

// Appends a name with each of some characters replaced.
void flame_put_clean(struct buffer *out, const char *name, const char *bad, char instead);
// Appends text so that neither HTML nor XML takes it for anything else.
void flame_put_escaped(struct buffer *out, const char *text, size_t len);

// The longest request of a profile, walked through: in one of its processes (a line of its
// timeline) frames are opened and closed, each within the one before.
struct timeline_walk {
    void *context;
    // frame: of profile->stacks, or WALK_OUT, WALK_COLLECTS. time: ns from the request's begin
    void (*frame)(void *context, bool opens, uint32_t frame, int64_t time);
};
#define WALK_OUT UINT32_MAX            // it is scheduled out
#define WALK_COLLECTS (UINT32_MAX - 1) // or collects garbage
void timeline_walk(const struct profile *p, uint16_t line, const struct timeline_walk *walk);

// The same event by event. What is open in a process: all zero at first.
struct timeline_place {
    uint32_t stack; // STACK_ROOT: nothing
    uint32_t extra; // WALK_OUT or WALK_COLLECTS on top of it, 0: neither
};
// NULL: the request is over.
void timeline_step(const struct profile *p, const struct timeline_walk *walk,
                   struct timeline_place *now, const struct timeline_event *event);
// What a frame is called there.
const char *timeline_frame_name(const struct profile *p, uint32_t frame);

// The frame of a node.
static inline const struct flame_frame *flame_frame_of(const struct flame_tree *t, uint32_t node) {
    return &t->frames[t->nodes[node].frame];
}

// Whether a node is a function, and not what a process did instead of running.
static inline bool flame_runs(const struct flame_frame *frame) {
    return frame->kind == FRAME_FUNCTION || frame->kind == FRAME_CUT || frame->kind == FRAME_GROUP;
}
