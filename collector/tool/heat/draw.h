// SPDX-License-Identifier: Apache-2.0
// A heat map as a terminal shows it. Text out, nothing else; check out->failed.
#pragma once

#include "report/heat.h"

struct heat_style {
    bool utf8;   // block characters; otherwise those of ASCII
    bool colour; // with the terminal's colours
};

// How much of it fits: columns, and rows that divide a second into parts that people can count by.
uint32_t heat_columns_of(uint32_t width);
uint32_t heat_rows_of(uint32_t height);
// The title, the notes, the map and its legend. Names are cleaned here.
void heat_draw(const struct heat_answer *a, uint32_t width, const struct heat_style *style,
               struct buffer *out);
