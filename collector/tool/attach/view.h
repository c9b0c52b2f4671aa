// SPDX-License-Identifier: Apache-2.0
// The live numbers of kprof attach: what the collector tells of the node each second, gathered, as
// a table or as JSON lines. Pure: no socket, no clock. One thread.
#pragma once

#include "base/buffer.h"
#include "codec/control.h"

enum { VIEW_NAME_BYTES = 128, VIEW_ROWS = 1000 };

struct view_identity {
    char name[VIEW_NAME_BYTES];
    double per_second; // of the last second, like the next two
    double mean_us, p99_us;
    // complete requests of the last second: 0 leaves the two above without meaning
    int64_t now;
    int64_t requests, errors; // since the beginning, like
    // incomplete and expired requests, by the name that they had got so far
    int64_t lost;
};

struct view {
    char node[256];
    char state[32];
    double seconds; // what the last rows cover
    // the first one is _total; up to VIEW_ROWS, what comes then is not shown
    struct view_identity *rows;
    uint32_t count;
    const char *hint; // what helps when there are no requests; NULL: nothing
    // since the beginning
    int64_t incomplete, expired, unsampled, dropped_messages, decode_errors, off_ms;
    int64_t unmarked_calls; // of tiers, while nothing has begun a request
};

struct view_style {
    uint32_t width, height; // of the terminal
    bool colour;
};

// Takes a message `rows` in. False without memory.
bool view_take(struct view *v, struct control_map rows);
// Nothing has been heard of late: no rates, and the state says so.
void view_silent(struct view *v);
void view_free(struct view *v);
// Draws the table: at most height lines, each shorter than width.
void view_table(const struct view *v, const struct view_style *style, struct buffer *out);
// Appends the message as one line of JSON. at: now, as text.
void view_json(struct control_map rows, const char *at, struct buffer *out);
