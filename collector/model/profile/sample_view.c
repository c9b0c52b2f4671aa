// SPDX-License-Identifier: Apache-2.0
#include "model/profile/sample_view.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/names.h"
#include "codec/mfa.h"
#include "model/profile/samples.h"

struct frame {
    char name[VIEW_TEXT_BYTES];
    uint32_t self, total; // while a view is made
    uint32_t counted;     // the last stack that was counted for it, + 1
};

struct stack {
    uint32_t at, count; // its frames, innermost last
    uint32_t busy;      // looks since the time before
};

struct sample_view {
    // in the shim's numbers
    struct frame *frames;
    struct stack *stacks;
    struct view_process *processes;
    uint32_t *of_stacks; // frames of all stacks, one stack after the other
    uint32_t frame_count, stack_count, process_count, of_stack_count;
    uint32_t frame_room, stack_room, process_room, of_stack_room;
    uint64_t us, viewed_us; // time of the next record, and of the last view
    struct view view;
    const struct view_process *sorted[LIMIT_SAMPLE_PROCESSES];
};

struct sample_view *sample_view_new(void) {
    return calloc(1, sizeof(struct sample_view));
}

void sample_view_free(struct sample_view *v) {
    if (v) {
        free(v->frames);
        free(v->stacks);
        free(v->processes);
        free(v->of_stacks);
        free(v);
    }
}

size_t sample_view_bytes(const struct sample_view *v) {
    return sizeof *v + v->frame_room * sizeof *v->frames + v->stack_room * sizeof *v->stacks +
           v->process_room * sizeof *v->processes + v->of_stack_room * sizeof *v->of_stacks;
}

// -- what is told once ----------------------------------------------------------------------------

static bool take_frame(struct sample_view *v, const struct sample_record *r) {
    static struct mfa mfa; // large
    char text[MFA_TEXT_BYTES];
    if (v->frame_count == LIMIT_SAMPLE_FRAMES || !samples_frame(r, &mfa) ||
        !array_grow((void **)&v->frames, &v->frame_room, v->frame_count, sizeof *v->frames)) {
        return false;
    }
    struct frame *f = &v->frames[v->frame_count++];
    *f = (struct frame){0};
    names_clean(slice_text(mfa_text(&mfa, text)), f->name, sizeof f->name);
    return true;
}

static bool take_stack(struct sample_view *v, const struct sample_record *r) {
    if (v->stack_count == LIMIT_SAMPLE_STACKS ||
        !array_grow((void **)&v->stacks, &v->stack_room, v->stack_count, sizeof *v->stacks)) {
        return false;
    }
    struct stack *s = &v->stacks[v->stack_count];
    *s = (struct stack){.at = v->of_stack_count, .count = r->frame_count};
    for (uint32_t i = 0; i < r->frame_count; i++) {
        if (r->frames[i] >= v->frame_count ||
            !array_grow((void **)&v->of_stacks, &v->of_stack_room, v->of_stack_count,
                        sizeof *v->of_stacks)) {
            return false;
        }
        v->of_stacks[v->of_stack_count++] = r->frames[i];
    }
    v->stack_count++;
    return true;
}

static bool take_process(struct sample_view *v, const struct sample_record *r) {
    if (v->process_count == LIMIT_SAMPLE_PROCESSES || r->texts[0].len == 0 ||
        !array_grow((void **)&v->processes, &v->process_room, v->process_count,
                    sizeof *v->processes)) {
        return false;
    }
    struct view_process *p = &v->processes[v->process_count++];
    *p = (struct view_process){.status = STATUS_OTHER, .now = {-1, -1}, .before = {-1, -1}};
    names_clean(r->texts[0], p->pid, sizeof p->pid);
    names_clean(r->texts[1], p->name, sizeof p->name);
    names_clean(r->texts[2], p->initial, sizeof p->initial);
    names_clean(r->texts[3], p->application, sizeof p->application);
    return true;
}

// -- looks ----------------------------------------------------------------------------------------

static int64_t value_of(const struct sample_record *r, enum sample_value value) {
    uint64_t most = (uint64_t)SAMPLE_MOST_VALUE;
    return (int64_t)(r->values[value] < most ? r->values[value] : most);
}

static void take_values(struct view_process *p, const struct sample_record *r) {
    if (r->mask & MASK_REDUCTIONS) {
        p->reductions += value_of(r, VALUE_REDUCTIONS);
        p->reductions = p->reductions < SAMPLE_MOST_VALUE ? p->reductions : SAMPLE_MOST_VALUE;
    }
    if (r->mask & MASK_QUEUE) {
        p->now.queue = value_of(r, VALUE_QUEUE);
        p->before.queue = p->before.queue < 0 ? p->now.queue : p->before.queue;
    }
    if (r->mask & MASK_MEMORY) {
        p->now.memory = value_of(r, VALUE_MEMORY);
        p->before.memory = p->before.memory < 0 ? p->now.memory : p->before.memory;
    }
}

static bool is_busy(uint8_t status) {
    return status == STATUS_RUNNING || status == STATUS_RUNNABLE || status == STATUS_COLLECTING;
}

static bool take_look(struct sample_view *v, const struct sample_record *r) {
    if (r->process >= v->process_count || r->stack > v->stack_count) {
        return false;
    }
    struct view_process *p = &v->processes[r->process];
    p->unanswered += r->kind == SAMPLE_UNANSWERED;
    p->gone = p->gone || r->kind == SAMPLE_GONE;
    if (r->kind == SAMPLE_LOOK) {
        p->stack = r->stack > 0 ? r->stack : p->stack;
        take_values(p, r);
    }
    if (r->kind == SAMPLE_LOOK || r->kind == SAMPLE_UNCHANGED) {
        p->status = r->status;
        p->looks += r->kind == SAMPLE_LOOK;
        p->unchanged += r->kind == SAMPLE_UNCHANGED;
        if (p->stack > 0 && is_busy(r->status)) {
            v->stacks[p->stack - 1].busy++;
        }
    }
    return true;
}

static void forget(struct sample_view *v) {
    v->frame_count = v->stack_count = v->process_count = v->of_stack_count = 0;
}

static bool take(struct sample_view *v, const struct sample_record *r) {
    switch (r->kind) {
    case SAMPLE_FRAME:
        return take_frame(v, r);
    case SAMPLE_STACK:
        return take_stack(v, r);
    case SAMPLE_PROCESS:
        return take_process(v, r);
    case SAMPLE_TIME:
        v->us += r->number;
        return r->number <= LIMIT_SAMPLE_SECONDS * UINT64_C(1000000);
    case SAMPLE_HELD:
    case SAMPLE_LATE:
        return true;
    case SAMPLE_FORGET:
        forget(v);
        return true;
    default:
        return take_look(v, r);
    }
}

bool sample_view_take(struct sample_view *v, struct slice records) {
    struct cursor c = cursor_of(records.data, records.len);
    struct sample_record r;
    while (sample_record_read(&c, &r)) {
        if (!take(v, &r)) {
            return false;
        }
    }
    return !c.failed;
}

// -- the view -------------------------------------------------------------------------------------

static uint32_t looks_of(const struct view_process *p) {
    return p->looks + p->unchanged + p->unanswered;
}

static int more(int64_t a, int64_t b) {
    return a < b ? 1 : a > b ? -1 : 0;
}

static int by_reductions(const void *a, const void *b) {
    const struct view_process *p = *(const struct view_process *const *)a,
                              *q = *(const struct view_process *const *)b;
    int order = more(p->reductions, q->reductions);
    return order ? order : strcmp(p->pid, q->pid);
}

static int by_memory(const void *a, const void *b) {
    const struct view_process *p = *(const struct view_process *const *)a,
                              *q = *(const struct view_process *const *)b;
    int order = more(p->now.memory, q->now.memory);
    return order ? order : by_reductions(a, b);
}

static int by_queue(const void *a, const void *b) {
    const struct view_process *p = *(const struct view_process *const *)a,
                              *q = *(const struct view_process *const *)b;
    int order = more(p->now.queue, q->now.queue);
    return order ? order : by_reductions(a, b);
}

static const char *function_of(const struct sample_view *v, const struct view_process *p) {
    const struct stack *s = p->stack > 0 ? &v->stacks[p->stack - 1] : NULL;
    return s && s->count > 0 ? v->frames[v->of_stacks[s->at + s->count - 1]].name : "";
}

static void view_processes(struct sample_view *v, enum view_by by) {
    static int (*const orders[])(const void *, const void *) = {by_reductions, by_memory, by_queue};
    struct view *out = &v->view;
    uint32_t count = 0;
    for (uint32_t i = 0; i < v->process_count; i++) {
        const struct view_process *p = &v->processes[i];
        out->looks += p->looks + p->unchanged;
        if (looks_of(p) > 0 || p->gone) {
            v->sorted[count++] = p;
        }
    }
    qsort(v->sorted, count, sizeof *v->sorted, orders[by]);
    out->process_count = count < VIEW_PROCESSES ? count : VIEW_PROCESSES;
    for (uint32_t i = 0; i < out->process_count; i++) {
        out->processes[i] = *v->sorted[i];
        out->processes[i].function = function_of(v, v->sorted[i]);
    }
}

// Gives the looks of each stack to its frames.
static void count_functions(struct sample_view *v) {
    for (uint32_t i = 0; i < v->stack_count; i++) {
        struct stack *s = &v->stacks[i];
        const uint32_t *frames = v->of_stacks + s->at;
        v->view.busy += s->busy;
        for (uint32_t k = 0; s->busy > 0 && k < s->count; k++) {
            struct frame *f = &v->frames[frames[k]];
            f->self += k + 1 == s->count ? s->busy : 0;
            f->total += f->counted != i + 1 ? s->busy : 0;
            f->counted = i + 1;
        }
    }
}

static int by_self(const void *a, const void *b) {
    const struct view_function *f = a, *g = b;
    return f->self != g->self     ? (f->self < g->self ? 1 : -1)
           : f->total != g->total ? (f->total < g->total ? 1 : -1)
                                  : strcmp(f->name, g->name);
}

static int by_total(const void *a, const void *b) {
    const struct view_function *f = a, *g = b;
    return f->total != g->total ? (f->total < g->total ? 1 : -1) : by_self(a, b);
}

// Those of the highest self, and of the others those of the highest total.
static void view_functions(struct sample_view *v) {
    struct view *out = &v->view;
    struct view_function *all = calloc(v->frame_count + 1, sizeof *all);
    uint32_t count = 0;
    count_functions(v);
    for (uint32_t i = 0; i < v->frame_count; i++) {
        struct frame *f = &v->frames[i];
        if (all && f->total > 0) {
            all[count++] = (struct view_function){f->name, f->self, f->total};
        }
        f->self = f->total = f->counted = 0;
    }
    if (all) {
        uint32_t first = count < VIEW_FUNCTIONS ? count : VIEW_FUNCTIONS, rest = count - first;
        qsort(all, count, sizeof *all, by_self);
        qsort(all + first, rest, sizeof *all, by_total);
        out->function_count = first + (rest < VIEW_FUNCTIONS ? rest : VIEW_FUNCTIONS);
        memcpy(out->functions, all, out->function_count * sizeof *all);
        qsort(out->functions, out->function_count, sizeof *all, by_self);
    }
    free(all);
}

// The next view begins.
static void clear(struct sample_view *v) {
    for (uint32_t i = 0; i < v->process_count; i++) {
        struct view_process *p = &v->processes[i];
        p->before = p->now;
        p->looks = p->unchanged = p->unanswered = 0;
        p->reductions = 0;
        p->gone = false;
    }
    for (uint32_t i = 0; i < v->stack_count; i++) {
        v->stacks[i].busy = 0;
    }
}

const struct view *sample_view_next(struct sample_view *v, enum view_by by) {
    if (v->us == v->viewed_us) {
        return NULL;
    }
    v->view.us = v->us - v->viewed_us;
    v->view.function_count = v->view.looks = v->view.busy = 0;
    view_processes(v, by);
    view_functions(v);
    clear(v);
    v->viewed_us = v->us;
    return &v->view;
}
