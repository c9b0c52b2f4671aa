// SPDX-License-Identifier: Apache-2.0
#include "model/profile/sample_weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static const char UNANSWERED[] = "did not answer";

// Of a level, such as memory, the mean of each process is weighed: how often it was looked at, and
// what is left of the divisions so far.
struct share {
    uint64_t looks;
    int64_t rest;
};

enum { LEVELS = 3 };

struct weighing {
    struct profile *profile;
    const struct sample_choice *choice;
    struct share (*shares)[LEVELS]; // of each process
    struct sample_walk walk;
    uint32_t unanswered; // the stack of what did not answer
    uint16_t none;       // the identity of what works for no request
    bool failed;         // no memory
};

static const enum flame_metric levels[LEVELS] = {FLAME_MEMORY, FLAME_QUEUE, FLAME_BINARY};

// The place of a metric among those of levels; LEVELS: it is none.
static int level_of(enum flame_metric metric) {
    int at = 0;
    while (at < LEVELS && levels[at] != metric) {
        at++;
    }
    return at;
}

bool samples_is_level(enum flame_metric metric) {
    return level_of(metric) < LEVELS;
}

// -- values ---------------------------------------------------------------------------------------

static bool of_known(const struct sample_state *s, int one, int other, int64_t *value) {
    bool known = s->known & 1U << one;
    *value = known ? s->values[one] + (other >= 0 ? s->values[other] : 0) : 0;
    return known;
}

bool samples_value(const struct sample_walk *w, enum flame_metric metric, int64_t *value) {
    const struct sample_state *s = &w->states[w->record.process];
    int64_t binary = w->changes[VALUE_BINARY] + w->changes[VALUE_OLD_BINARY];
    int64_t memory = w->changes[VALUE_MEMORY];
    *value = 0;
    switch (metric) {
    case FLAME_SAMPLES:
        *value = 1;
        return true;
    case FLAME_ACTIVE:
        *value = w->record.kind == SAMPLE_UNANSWERED || w->changes[VALUE_REDUCTIONS] > 0;
        break;
    case FLAME_REDUCTIONS:
        *value = w->changes[VALUE_REDUCTIONS];
        break;
    case FLAME_MEMORY:
        return of_known(s, VALUE_MEMORY, -1, value);
    case FLAME_MEMORY_GROWTH:
        *value = memory > 0 ? memory : 0;
        break;
    case FLAME_MEMORY_RELEASE:
        *value = memory < 0 ? -memory : 0;
        break;
    case FLAME_QUEUE:
        return of_known(s, VALUE_QUEUE, -1, value);
    case FLAME_QUEUE_GROWTH:
        *value = w->changes[VALUE_QUEUE] > 0 ? w->changes[VALUE_QUEUE] : 0;
        break;
    case FLAME_BINARY:
        return of_known(s, VALUE_BINARY, VALUE_OLD_BINARY, value);
    case FLAME_BINARY_GROWTH:
        *value = binary > 0 ? binary : 0;
        break;
    case FLAME_BINARY_RELEASE:
        *value = binary < 0 ? -binary : 0;
        break;
    default:
        return false;
    }
    return *value > 0;
}

// -- groups ---------------------------------------------------------------------------------------

static const char *status_text(const struct sample_record *r) {
    return r->kind == SAMPLE_UNANSWERED ? UNANSWERED : samples_status(r->status);
}

static const char *memory_text(const struct sample_state *s) {
    static const char *const texts[] = {
        "memory below 16 kB", "memory 16-64 kB",     "memory 64-256 kB", "memory 256 kB-1 MB",
        "memory 1-4 MB",      "memory 4-16 MB",      "memory 16-64 MB",  "memory 64-256 MB",
        "memory 256 MB-1 GB", "memory 1 GB and more"};
    enum { LAST = sizeof texts / sizeof *texts - 1 };
    int64_t bytes = 0;
    if (!of_known(s, VALUE_MEMORY, -1, &bytes)) {
        return "memory not known";
    }
    int at = 0;
    for (int64_t limit = 1 << 14; at < LAST && bytes >= limit; limit *= 4) {
        at++;
    }
    return texts[at];
}

static const char *queue_text(const struct sample_state *s) {
    static const char *const texts[] = {"queue empty",   "queue 1-9",       "queue 10-99",
                                        "queue 100-999", "queue 1000-9999", "queue 10000 and more"};
    enum { LAST = sizeof texts / sizeof *texts - 1 };
    int64_t messages = 0;
    if (!of_known(s, VALUE_QUEUE, -1, &messages)) {
        return "queue not known";
    }
    int at = 0;
    for (int64_t limit = 1; at < LAST && messages >= limit; limit *= 10) {
        at++;
    }
    return texts[at];
}

static const char *process_text(const struct weighing *g, const struct sampled_process *p) {
    uint32_t name = p->name != NAME_NONE ? p->name : p->initial;
    return name != NAME_NONE ? names_text(&g->profile->stacks.names, name) : p->pid;
}

// What a look is grouped by, a name; PROFILE_NOBODY: nothing.
static uint16_t group_of(struct weighing *g) {
    const struct sample_record *r = &g->walk.record;
    const struct sampled_process *process = &g->profile->samples->processes[r->process];
    const struct sample_state *state = &g->walk.states[r->process];
    const char *text = NULL;
    switch (g->choice->group) {
    case FLAME_BY_STATUS:
        text = status_text(r);
        break;
    case FLAME_BY_PROCESS:
        text = process_text(g, process);
        break;
    case FLAME_BY_APPLICATION:
        text = process->application != NAME_NONE
                   ? names_text(&g->profile->stacks.names, process->application)
                   : "no application";
        break;
    case FLAME_BY_MEMORY:
        text = memory_text(state);
        break;
    case FLAME_BY_QUEUE:
        text = queue_text(state);
        break;
    default:
        return PROFILE_NOBODY;
    }
    uint32_t name = names_intern(&g->profile->stacks.names, slice_text(text));
    return name < PROFILE_NOBODY ? (uint16_t)name : PROFILE_NOBODY;
}

// -- weighing -------------------------------------------------------------------------------------

// On to the next look within the stretch.
static bool next_look(struct weighing *g) {
    const struct sample_choice *c = g->choice;
    while (sample_walk_next(&g->walk)) {
        uint8_t kind = g->walk.record.kind;
        if (c->until_us > 0 && g->walk.us >= c->until_us) {
            return false;
        }
        if (g->walk.us >= c->from_us &&
            (kind == SAMPLE_LOOK || kind == SAMPLE_UNCHANGED || kind == SAMPLE_UNANSWERED)) {
            return true;
        }
    }
    return false;
}

// What the look is by a metric. A process that did not answer tells nothing but that.
static bool value_of(const struct weighing *g, enum flame_metric metric, int64_t *value) {
    bool answered = g->walk.record.kind != SAMPLE_UNANSWERED;
    bool of_looks = metric == FLAME_SAMPLES || metric == FLAME_ACTIVE;
    *value = 0;
    return (answered || of_looks) && samples_value(&g->walk, metric, value);
}

static bool count_looks(struct weighing *g) {
    int64_t value;
    bool ok = sample_walk_begin(&g->walk, g->profile);
    while (ok && next_look(g)) {
        for (int i = 0; i < LEVELS; i++) {
            g->shares[g->walk.record.process][i].looks += value_of(g, levels[i], &value);
        }
    }
    ok = ok && !g->walk.damaged;
    sample_walk_end(&g->walk);
    return ok;
}

// What the look weighs by a metric. False, and 0: it tells nothing of it.
static bool weight_of(struct weighing *g, enum flame_metric metric, int64_t *value) {
    int level = level_of(metric);
    bool told = value_of(g, metric, value);
    if (told && level < LEVELS) {
        struct share *share = &g->shares[g->walk.record.process][level];
        int64_t sum = *value + share->rest;
        *value = sum / (int64_t)share->looks;
        share->rest = sum % (int64_t)share->looks;
    }
    *value = told ? *value : 0;
    return told;
}

// Adds to the values of a weight, which may be the first ones of it.
static void add_values(struct weighing *g, uint32_t weight, const int64_t more[SAMPLE_METRICS]) {
    struct samples *s = g->profile->samples;
    uint32_t room = s->value_room;
    if (!array_grow((void **)&s->values, &s->value_room, weight, SAMPLE_METRICS * sizeof *more)) {
        g->failed = true;
        return;
    }
    int64_t *values = s->values + (size_t)weight * SAMPLE_METRICS;
    if (s->value_room > room) {
        memset(s->values + (size_t)room * SAMPLE_METRICS, 0,
               (size_t)(s->value_room - room) * SAMPLE_METRICS * sizeof *more);
    }
    for (int i = 0; i < SAMPLE_METRICS; i++) {
        values[i] += more[i];
    }
}

static void add_look(struct weighing *g) {
    const struct sample_record *r = &g->walk.record;
    const struct sample_state *state = &g->walk.states[r->process];
    uint32_t stack = r->kind == SAMPLE_UNANSWERED ? g->unanswered : state->stack;
    uint16_t identity = state->identity == PROFILE_NOBODY ? g->none : state->identity;
    uint64_t key = profile_key(stack, identity, group_of(g));
    if (g->choice->kept) {
        profile_add(g->profile, key, 1, g->walk.changes[VALUE_REDUCTIONS]);
        return;
    }
    int64_t values[SAMPLE_METRICS];
    bool told = false;
    for (enum flame_metric m = FLAME_SAMPLES; m < FLAME_METRICS; m++) {
        bool known = weight_of(g, m, &values[m - FLAME_SAMPLES]);
        told = told || (known && m == g->choice->metric);
    }
    struct weight *w =
        profile_add(g->profile, key, told, values[g->choice->metric - FLAME_SAMPLES]);
    if (w) {
        uint32_t weight = (uint32_t)(w - g->profile->weights.all);
        add_values(g, weight, values);
        if (g->choice->each) {
            g->choice->each(g->choice->user, g->walk.us, weight, values);
        }
    }
}

static bool add_looks(struct weighing *g) {
    bool ok = sample_walk_begin(&g->walk, g->profile);
    while (ok && next_look(g)) {
        add_look(g);
    }
    ok = ok && !g->walk.damaged && !g->failed;
    sample_walk_end(&g->walk);
    return ok;
}

bool samples_weigh(struct profile *p, const struct sample_choice *choice) {
    struct stacks *s = &p->stacks;
    uint32_t none = names_intern(&s->names, slice_text("_none"));
    struct weighing g = {
        .profile = p,
        .choice = choice,
        .shares = calloc(p->samples->process_count + 1, sizeof *g.shares),
        .unanswered = stacks_push(
            s, STACK_ROOT, stacks_frame(s, FRAME_GROUP, slice_text(UNANSWERED), slice_of(NULL, 0))),
        .none = none < PROFILE_NOBODY ? (uint16_t)none : PROFILE_NOBODY};
    weights_clear(&p->weights);
    p->of_processes = 0;
    free(p->samples->values);
    p->samples->values = NULL;
    p->samples->value_room = 0;
    bool ok = g.shares && (choice->kept || count_looks(&g)) && add_looks(&g);
    free(g.shares);
    return ok;
}
