// SPDX-License-Identifier: Apache-2.0
// The forms of flame_file.h, a file each. All append to the drawing's buffer, whose failure is
// looked at once, in the end.
#pragma once

#include "report/flame_file.h"

void flame_svg(const struct flame_drawing *d, struct buffer *out);
void flame_collapsed(const struct flame_drawing *d, struct buffer *out);
void flame_speedscope(const struct flame_drawing *d, struct buffer *out);
void flame_callgrind(const struct flame_drawing *d, struct buffer *out);
void flame_perf(const struct flame_drawing *d, struct buffer *out);

// The frame of a node.
static inline const struct flame_frame *flame_frame_of(const struct flame *t, uint32_t node) {
    return &t->frames[t->nodes[node].frame];
}

// Whether a node is a function, and not what a process did instead of running.
static inline bool flame_runs(const struct flame_frame *frame) {
    return frame->kind == FRAME_FUNCTION || frame->kind == FRAME_CUT || frame->kind == FRAME_GROUP;
}
