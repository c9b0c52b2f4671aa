// SPDX-License-Identifier: Apache-2.0
// What kprof top shows: the processes and functions of a view (stacks_view), as the collector sends
// it, and in the order wanted. One thread.
#pragma once

#include "base/limits.h"
#include "codec/control.h"

enum { TOP_TEXT_BYTES = LIMIT_NAME_BYTES + 4, TOP_PROCESSES = 500, TOP_FUNCTIONS = 200 };

enum top_by { TOP_BY_REDUCTIONS, TOP_BY_MEMORY, TOP_BY_QUEUE };
enum top_functions_by { TOP_BY_SELF, TOP_BY_TOTAL };

// As the sampler calls it.
const char *top_by_name(enum top_by by);

struct top_process {
    char pid[TOP_TEXT_BYTES];
    char name[TOP_TEXT_BYTES]; // "": it has none, and so are these
    char initial[TOP_TEXT_BYTES];
    char application[TOP_TEXT_BYTES];
    char status[TOP_TEXT_BYTES];
    char function[TOP_TEXT_BYTES];
    int64_t reductions; // in the view's time, and so are the changes
    int64_t memory;     // bytes; -1: not known
    int64_t memory_change;
    int64_t queue, queue_change;
    int64_t samples, unanswered;
};

struct top_function {
    char name[TOP_TEXT_BYTES];
    int64_t self, total;
};

// What a run has told in all, up to a view.
struct top_totals {
    int64_t unchanged, unanswered, held_ms, late_ms, cost_us;
};

struct top_rows {
    double seconds;        // that the view covers
    int64_t samples, busy; // looks; and those that functions are of
    struct top_process processes[TOP_PROCESSES];
    struct top_function functions[TOP_FUNCTIONS];
    uint32_t process_count, function_count;
    struct top_totals totals, before; // before: up to the view before
};

// What the run has told (stacks_state).
void top_rows_totals(struct top_rows *r, struct control_map state);
// Takes a view. False: it is none.
bool top_rows_take(struct top_rows *r, struct control_map view);
void top_rows_sort(struct top_rows *r, enum top_by by, enum top_functions_by functions);
