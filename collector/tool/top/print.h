// SPDX-License-Identifier: Apache-2.0
// What kprof top shows, as text and as JSON.
#pragma once

#include "tool/top/rows.h"

struct top_style {
    const char *node;
    const char *at; // the time, as text
    enum top_by by;
    enum top_functions_by functions_by;
    uint32_t width;
    uint32_t processes, functions; // lines of each at most
    bool keys;                     // the last line says which there are
    bool colour;
};

// A table of processes and one of functions, both sorted.
void top_table(const struct top_rows *r, const struct top_style *style, struct buffer *out);
// One line with an object.
void top_json(const struct top_rows *r, const struct top_style *style, struct buffer *out);
