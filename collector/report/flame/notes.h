// SPDX-License-Identifier: Apache-2.0
// What is said of a profile that has been found.
#pragma once

#include "report/flame.h"

// Writes the notes, of which those of the picture are note_lines, too, and what it has cost.
void notes_put(struct flame_answer *a, const struct flame_question *q);
