// SPDX-License-Identifier: Apache-2.0
// What is said of a profile that has been found.
#pragma once

#include "report/flame.h"

// What self holds besides, as it was not traced: that was not safe on the node's release. waiting:
// nor is waiting told from it. False, and "": nothing.
bool notes_in_self(const struct profile_head *h, bool waiting, char out[FLAME_NOTE_BYTES]);

// A part of a profile in words: "12s to 18s". Returns out.
enum { NOTES_PART_BYTES = 96 };
char *notes_part(uint64_t from_us, uint64_t until_us, char out[NOTES_PART_BYTES]);

// Adds a line, unless there are as many as there may be.
__attribute__((format(printf, 2, 3))) void notes_add(struct flame_lines *lines, const char *format,
                                                     ...);

// What samples are of, what they cannot see, and what they lack; last: of several profiles, else 0.
void notes_sampled(const struct profile *p, int64_t id, int64_t last, enum flame_metric metric,
                   struct flame_lines *n);

// Writes the notes, of which those of the picture are note_lines, too, and what it has cost.
void notes_put(struct flame_answer *a, const struct flame_question *q);
