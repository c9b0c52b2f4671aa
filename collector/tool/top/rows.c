// SPDX-License-Identifier: Apache-2.0
#include "tool/top/rows.h"

#include <stdlib.h>
#include <string.h>

#include "tool/text.h"

const char *top_by_name(enum top_by by) {
    static const char *const names[] = {[TOP_BY_REDUCTIONS] = "reductions",
                                        [TOP_BY_MEMORY] = "memory",
                                        [TOP_BY_QUEUE] = "message_queue_len"};
    return names[by];
}

// -- taking ---------------------------------------------------------------------------------------

// More than that of anything is nonsense; sums and differences of it fit.
static const int64_t MOST = INT64_C(1) << 60;

static bool take_change(struct control_map map, const char *key, int64_t *n) {
    *n = 0;
    return control_get_int(map, key, n) && *n <= MOST && *n >= -MOST;
}

static bool take_count(struct control_map map, const char *key, int64_t *n) {
    return take_change(map, key, n) && *n >= 0;
}

static bool take_process(struct control_map map, struct top_process *p) {
    int64_t memory = 0;
    bool known = control_get_int(map, FIELD_MEMORY, &memory);
    p->memory = -1;
    p->memory_change = 0;
    return text_take(map, FIELD_PID, p->pid, TOP_TEXT_BYTES) && p->pid[0] &&
           text_take(map, FIELD_NAME, p->name, TOP_TEXT_BYTES) &&
           text_take(map, FIELD_INITIAL_CALL, p->initial, TOP_TEXT_BYTES) &&
           text_take(map, FIELD_APPLICATION, p->application, TOP_TEXT_BYTES) &&
           text_take(map, FIELD_STATUS, p->status, TOP_TEXT_BYTES) &&
           text_take(map, FIELD_FUNCTION, p->function, TOP_TEXT_BYTES) &&
           take_count(map, FIELD_REDUCTIONS, &p->reductions) &&
           take_count(map, FIELD_QUEUE, &p->queue) &&
           take_change(map, FIELD_QUEUE_CHANGE, &p->queue_change) &&
           take_count(map, FIELD_SAMPLES, &p->samples) &&
           take_count(map, FIELD_UNANSWERED, &p->unanswered) &&
           (!known || (take_count(map, FIELD_MEMORY, &p->memory) &&
                       take_change(map, FIELD_MEMORY_CHANGE, &p->memory_change)));
}

static bool take_function(struct control_map map, struct top_function *f) {
    return text_take(map, FIELD_NAME, f->name, TOP_TEXT_BYTES) && f->name[0] &&
           take_count(map, FIELD_SELF, &f->self) && take_count(map, FIELD_TOTAL, &f->total);
}

void top_rows_totals(struct top_rows *r, struct control_map state) {
    const struct {
        const char *key;
        int64_t *to;
    } all[] = {{FIELD_UNCHANGED, &r->totals.unchanged},
               {FIELD_UNANSWERED, &r->totals.unanswered},
               {FIELD_HELD_MS, &r->totals.held_ms},
               {FIELD_LATE_MS, &r->totals.late_ms},
               {FIELD_COST_US, &r->totals.cost_us}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int64_t n = 0;
        if (take_count(state, all[i].key, &n)) {
            *all[i].to = n;
        }
    }
}

bool top_rows_take(struct top_rows *r, struct control_map view) {
    struct control_list processes = {0}, functions = {0};
    int64_t us = 0;
    if (!take_count(view, FIELD_DURATION_US, &us) || us == 0 ||
        !take_count(view, FIELD_SAMPLES, &r->samples) || !take_count(view, FIELD_BUSY, &r->busy) ||
        !control_get_list(view, FIELD_PROCESSES, &processes) || processes.count > TOP_PROCESSES ||
        !control_get_list(view, FIELD_FUNCTIONS, &functions) || functions.count > TOP_FUNCTIONS) {
        return false;
    }
    r->seconds = (double)us / 1e6;
    r->process_count = processes.count;
    r->function_count = functions.count;
    for (uint32_t i = 0; i < processes.count; i++) {
        if (!take_process(control_list_at(processes, i), &r->processes[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < functions.count; i++) {
        if (!take_function(control_list_at(functions, i), &r->functions[i])) {
            return false;
        }
    }
    return true;
}

// -- sorting --------------------------------------------------------------------------------------

static int more(int64_t a, int64_t b) {
    return a < b ? 1 : a > b ? -1 : 0;
}

static int by_reductions(const void *a, const void *b) {
    const struct top_process *p = a, *q = b;
    int order = more(p->reductions, q->reductions);
    return order ? order : strcmp(p->pid, q->pid);
}

static int by_memory(const void *a, const void *b) {
    const struct top_process *p = a, *q = b;
    int order = more(p->memory, q->memory);
    return order ? order : by_reductions(a, b);
}

static int by_queue(const void *a, const void *b) {
    const struct top_process *p = a, *q = b;
    int order = more(p->queue, q->queue);
    return order ? order : by_reductions(a, b);
}

static int by_self(const void *a, const void *b) {
    const struct top_function *f = a, *g = b;
    int order = more(f->self, g->self);
    order = order ? order : more(f->total, g->total);
    return order ? order : strcmp(f->name, g->name);
}

static int by_total(const void *a, const void *b) {
    const struct top_function *f = a, *g = b;
    int order = more(f->total, g->total);
    return order ? order : by_self(a, b);
}

void top_rows_sort(struct top_rows *r, enum top_by by, enum top_functions_by functions) {
    qsort(r->processes, r->process_count, sizeof *r->processes,
          by == TOP_BY_MEMORY  ? by_memory
          : by == TOP_BY_QUEUE ? by_queue
                               : by_reductions);
    qsort(r->functions, r->function_count, sizeof *r->functions,
          functions == TOP_BY_TOTAL ? by_total : by_self);
}
