// SPDX-License-Identifier: Apache-2.0
#include "report/processes_seen.h"

#include <stdlib.h>

#include "model/profile/sample_walk.h"

// -- taking ---------------------------------------------------------------------------------------

static const char *text_of(const struct profile *p, uint32_t name) {
    return name != NAME_NONE ? names_text(&p->stacks.names, name) : "";
}

static void name_all(const struct profile *p, struct processes_seen *out) {
    const struct samples *s = p->samples;
    out->count = s->process_count < SEEN_PROCESSES ? s->process_count : SEEN_PROCESSES;
    out->more = s->process_count - out->count;
    for (uint32_t i = 0; i < out->count; i++) {
        const struct sampled_process *of = &s->processes[i];
        out->of[i] = (struct process_seen){.pid = of->pid,
                                           .name = text_of(p, of->name),
                                           .initial = text_of(p, of->initial),
                                           .application = text_of(p, of->application)};
    }
}

static void take_value(struct seen_value *v, int64_t value, uint64_t us) {
    if (!v->known) {
        *v = (struct seen_value){true, value, value, value, us, us};
    }
    v->last = value;
    v->last_us = us;
    v->most = value > v->most ? value : v->most;
}

// stacks: in how many looks the process was in each.
static void take_look(struct process_seen *s, const struct sample_walk *w, uint32_t *stacks) {
    const struct sample_record *r = &w->record;
    const struct sample_state *state = &w->states[r->process];
    bool first = s->looks == 0;
    s->looks++;
    s->statuses[r->status]++;
    s->first_us = first ? w->us : s->first_us;
    s->last_us = w->us;
    // what it did before its first look is of another time
    s->reductions += first ? 0 : w->changes[VALUE_REDUCTIONS];
    if (r->kind == SAMPLE_LOOK && r->mask & MASK_QUEUE) {
        take_value(&s->queue, state->values[VALUE_QUEUE], w->us);
    }
    if (r->kind == SAMPLE_LOOK && r->mask & MASK_MEMORY) {
        take_value(&s->memory, state->values[VALUE_MEMORY], w->us);
    }
    uint32_t looks = ++stacks[state->stack];
    if (looks > s->stack_looks) {
        s->stack = state->stack;
        s->stack_looks = looks;
    }
}

static void take(struct processes_seen *out, const struct sample_walk *w, uint32_t *stacks) {
    const struct sample_record *r = &w->record;
    if (r->kind == SAMPLE_HELD || r->kind == SAMPLE_LATE || r->process >= out->count) {
        return;
    }
    struct process_seen *s = &out->of[r->process];
    s->unanswered += r->kind == SAMPLE_UNANSWERED;
    s->ended = s->ended || r->kind == SAMPLE_GONE;
    if (r->kind == SAMPLE_LOOK || r->kind == SAMPLE_UNCHANGED) {
        take_look(s, w, stacks + (size_t)r->process * w->profile->stacks.stack_count);
    }
}

bool processes_seen_take(const struct profile *p, uint64_t from_us, uint64_t until_us,
                         struct processes_seen *out) {
    struct sample_walk w;
    name_all(p, out);
    uint32_t *stacks = calloc((size_t)out->count * p->stacks.stack_count + 1, sizeof *stacks);
    bool good = sample_walk_begin(&w, p) && stacks;
    while (good && sample_walk_next(&w) && (until_us == 0 || w.us < until_us)) {
        if (w.us >= from_us) {
            take(out, &w, stacks);
        }
    }
    good = good && !w.damaged;
    sample_walk_end(&w);
    free(stacks);
    return good;
}

// -- telling --------------------------------------------------------------------------------------

static double per_second(int64_t change, uint64_t from_us, uint64_t until_us) {
    return until_us > from_us ? (double)change * 1e6 / (double)(until_us - from_us) : 0;
}

double seen_per_second(const struct seen_value *v) {
    return per_second(v->last - v->first, v->first_us, v->last_us);
}

double seen_reductions_per_second(const struct process_seen *s) {
    return per_second(s->reductions, s->first_us, s->last_us);
}

static void put_value(struct json *j, const char *key, const struct seen_value *v) {
    json_key(j, key);
    if (!v->known) {
        json_null(j);
        return;
    }
    json_open(j, '{');
    json_key_int(j, "first", v->first);
    json_key_int(j, "last", v->last);
    json_key_int(j, "most", v->most);
    json_key_number(j, "first_s", (double)v->first_us / 1e6, 6);
    json_key_number(j, "last_s", (double)v->last_us / 1e6, 6);
    json_key_number(j, "per_s", seen_per_second(v), 3);
    json_close(j, '}');
}

static void put_stack(const struct profile *p, uint32_t stack, struct json *j) {
    json_key(j, "stack");
    json_open(j, '[');
    for (; stack != STACK_ROOT; stack = p->stacks.all[stack].parent) {
        json_text(j, stacks_name_of(&p->stacks, stack));
    }
    json_close(j, ']');
}

static void put_process(const struct profile *p, const struct process_seen *s, struct json *j) {
    json_open(j, '{');
    json_key_text(j, "pid", s->pid);
    json_key_text(j, "name", s->name);
    json_key_text(j, "initial_call", s->initial);
    json_key_text(j, "application", s->application);
    json_key_int(j, "looks", (int64_t)s->looks);
    json_key_int(j, "unanswered", (int64_t)s->unanswered);
    json_key(j, "ended");
    json_bool(j, s->ended);
    json_key(j, "statuses");
    json_open(j, '{');
    for (int i = 0; i < SAMPLE_STATUSES; i++) {
        if (s->statuses[i] > 0) {
            json_key_int(j, samples_status((uint8_t)i), (int64_t)s->statuses[i]);
        }
    }
    json_close(j, '}');
    put_value(j, "queue", &s->queue);
    put_value(j, "memory", &s->memory);
    json_key_number(j, "reductions_per_s", seen_reductions_per_second(s), 3);
    put_stack(p, s->stack, j);
    json_key_int(j, "stack_looks", (int64_t)s->stack_looks);
    json_close(j, '}');
}

void processes_seen_json(const struct profile *p, const struct processes_seen *seen,
                         struct json *j) {
    json_open(j, '[');
    for (uint32_t i = 0; i < seen->count; i++) {
        put_process(p, &seen->of[i], j);
    }
    json_close(j, ']');
}
