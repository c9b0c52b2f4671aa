// SPDX-License-Identifier: Apache-2.0
// Text that goes on over lines of a terminal: the first begins with a blank, the others are
// indented by three.
#pragma once

#include <stddef.h>

#include "base/buffer.h"

// Begins as {.out = …}. Ends with a newline of the caller's.
struct lines {
    struct buffer *out;
    size_t column; // 0: nothing is there yet
};

// What stands on one line: on this one if it fits there.
void lines_piece(struct lines *l, const char *text);
// Sentences, with what stands behind them: on this line if they fit there, else from the next one
// on. What stands in braces is not broken.
void lines_sentence(struct lines *l, const char *text, const char *stop);
