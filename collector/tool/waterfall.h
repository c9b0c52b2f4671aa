// SPDX-License-Identifier: Apache-2.0
// A request's calls, drawn below one another on a line of time. Text out, nothing else; check
// out->failed.
#pragma once

#include "base/buffer.h"
#include "store/query_slow.h"

// How it is drawn.
struct waterfall_style {
    uint32_t width; // columns of a line; where names need more, lines are longer
    bool utf8;      // bars of block characters; otherwise of '#'
    bool colour;    // with the terminal's colours
};

// What the calls are of. Functions have neither waiting nor an outcome.
enum waterfall_of { WATERFALL_TIERS, WATERFALL_FUNCTIONS };

// The style of the terminal that standard output is; width: 0: the terminal's.
struct waterfall_style waterfall_style(uint32_t width);
// A line above it, in bold, from here on, and no longer.
void waterfall_title(const struct waterfall_style *style, bool begins, struct buffer *out);
// A line a span in tree order, children under their parent by start, and a legend. Spans whose
// parent is none of those before them stand at the top. Names have been cleaned.
void waterfall_draw(const struct slow_spans *spans, enum waterfall_of what,
                    const struct waterfall_style *style, struct buffer *out);
