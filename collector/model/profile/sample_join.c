// SPDX-License-Identifier: Apache-2.0
#include "model/profile/sample_join.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/hash.h"
#include "model/profile/sample_walk.h"

// What the joined records have told last of a process.
struct told {
    uint32_t stack; // STACK_NONE: none
    uint32_t identity;
};

struct sample_join {
    struct profile *into;
    struct map by_process; // hash of a process's texts -> its number
    struct told *told;     // of each process
    uint32_t told_room;
    uint64_t us; // told last
};

// A profile that is added. Numbers of its own to those of what is joined, plus 1; 0: not looked up
// yet.
struct adding {
    struct sample_join *join;
    const struct profile *profile;
    uint32_t *frames, *stacks, *processes;
    bool failed; // no memory
};

struct sample_join *sample_join_new(struct profile *into) {
    struct sample_join *j = calloc(1, sizeof *j);
    if (j && map_init(&j->by_process)) {
        j->into = into;
        into->samples = samples_new();
    }
    if (!j || !j->into || !into->samples) {
        sample_join_free(j);
        return NULL;
    }
    return j;
}

void sample_join_free(struct sample_join *j) {
    if (j) {
        map_free(&j->by_process);
        free(j->told);
        free(j);
    }
}

uint64_t sample_join_us(const struct sample_join *j) {
    return j->us;
}

// -- numbers --------------------------------------------------------------------------------------

static struct slice text_of(const struct profile *p, uint32_t name) {
    return slice_text(name != NAME_NONE ? names_text(&p->stacks.names, name) : "");
}

static uint32_t name_in(const struct adding *a, uint32_t name) {
    struct slice text = text_of(a->profile, name);
    return text.len > 0 ? names_intern(&a->join->into->stacks.names, text) : NAME_NONE;
}

static uint32_t frame_in(const struct adding *a, uint32_t frame) {
    const struct stack_frame *f = &a->profile->stacks.frames[frame];
    if (a->frames[frame] == 0) {
        struct slice module = text_of(a->profile, f->module);
        const char *application = profile_application(a->profile, f->module);
        a->frames[frame] = 1 + stacks_frame(&a->join->into->stacks, (enum stack_frame_kind)f->kind,
                                            text_of(a->profile, f->name), module);
        if (application[0]) {
            profile_module(a->join->into, module, slice_text(application));
        }
    }
    return a->frames[frame] - 1;
}

static uint32_t stack_in(const struct adding *a, uint32_t stack) {
    const struct stack *s = &a->profile->stacks.all[stack];
    if (stack == STACK_ROOT) {
        return STACK_ROOT;
    }
    if (a->stacks[stack] == 0) {
        uint32_t below = stack_in(a, s->parent); // it is not deep: STACK_DEEPEST
        a->stacks[stack] = 1 + stacks_push(&a->join->into->stacks, below, frame_in(a, s->frame));
    }
    return a->stacks[stack] - 1;
}

// A pid alone is not enough: the node may have been started anew between two profiles.
static uint64_t key_of(const struct profile *p, const struct sampled_process *s) {
    const struct slice texts[] = {slice_text(s->pid), text_of(p, s->name), text_of(p, s->initial),
                                  text_of(p, s->application)};
    uint64_t key = 0;
    for (int i = 0; i < 4; i++) {
        key = hash_mix(key + hash_bytes(texts[i]));
    }
    return key;
}

// UINT32_MAX: there is no room for it.
static uint32_t new_process(struct adding *a, const struct sampled_process *of, uint64_t key) {
    struct sample_join *j = a->join;
    struct sampled_process process = *of;
    process.name = name_in(a, of->name);
    process.initial = name_in(a, of->initial);
    process.application = name_in(a, of->application);
    uint32_t at = samples_process(j->into->samples, &process);
    if (at != UINT32_MAX && (!array_grow((void **)&j->told, &j->told_room, at, sizeof *j->told) ||
                             !map_set(&j->by_process, key, at))) {
        a->failed = true;
        return UINT32_MAX;
    }
    if (at != UINT32_MAX) {
        j->told[at] = (struct told){STACK_NONE, NAME_NONE};
    }
    return at;
}

static uint32_t process_in(struct adding *a, uint32_t process) {
    const struct sampled_process *of = &a->profile->samples->processes[process];
    if (a->processes[process] == 0) {
        uint64_t key = key_of(a->profile, of);
        uint32_t known = map_get(&a->join->by_process, key);
        a->processes[process] = 1 + (known != MAP_NONE ? known : new_process(a, of, key));
    }
    return a->processes[process] - 1; // UINT32_MAX stays it
}

// -- records --------------------------------------------------------------------------------------

static void keep(struct sample_join *j, uint64_t us, const struct sample_record *r) {
    if (!j->into->samples->full) { // clocks of two runs may differ
        samples_keep(j->into->samples, r, us > j->us ? us : j->us, &j->us, 0);
    }
}

// For whom the process works, where that is another than what was told of it.
static void tell_identity(struct adding *a, uint64_t us, uint32_t process,
                          const struct sample_state *state) {
    struct told *told = &a->join->told[process];
    uint32_t name = state->identity == PROFILE_NOBODY ? NAME_NONE : name_in(a, state->identity);
    if (name != told->identity) {
        struct sample_record r = {.kind = SAMPLE_IDENTITY, .process = process};
        r.texts[0] = text_of(a->join->into, name);
        keep(a->join, us, &r);
        told->identity = name;
    }
}

// A look names its stack where another one was told last; one at a process that had done nothing
// cannot, and is told as a look that saw nothing new.
static void tell_stack(struct adding *a, struct sample_record *r,
                       const struct sample_state *state) {
    struct told *told = &a->join->told[r->process];
    uint32_t stack = stack_in(a, state->stack);
    if (r->kind == SAMPLE_UNCHANGED && stack != told->stack) {
        r->kind = SAMPLE_LOOK;
        r->mask = 0;
    }
    r->stack = r->kind == SAMPLE_LOOK && stack != told->stack ? stack + 1 : 0;
    told->stack = stack;
}

static void add_record(struct adding *a, const struct sample_walk *w, uint64_t us) {
    struct sample_record r = w->record;
    if (r.kind == SAMPLE_HELD || r.kind == SAMPLE_LATE) {
        keep(a->join, us, &r);
        return;
    }
    const struct sample_state *state = &w->states[r.process];
    r.process = process_in(a, r.process);
    if (r.process == UINT32_MAX || r.kind == SAMPLE_IDENTITY) {
        return; // that is told with the next look
    }
    if (r.kind != SAMPLE_GONE) {
        tell_identity(a, us, r.process, state);
    }
    if (r.kind == SAMPLE_LOOK || r.kind == SAMPLE_UNCHANGED) {
        tell_stack(a, &r, state);
    }
    keep(a->join, us, &r);
}

static bool add_records(struct adding *a, uint64_t at_us, uint64_t from_us, uint64_t until_us) {
    struct sample_walk w;
    bool ok = sample_walk_begin(&w, a->profile);
    const struct samples *into = a->join->into->samples;
    while (ok && !into->full && sample_walk_next(&w) && (until_us == 0 || w.us < until_us)) {
        if (w.us >= from_us) {
            add_record(a, &w, at_us + w.us);
        }
        ok = !a->failed;
    }
    ok = ok && !w.damaged && !into->records.failed;
    sample_walk_end(&w);
    return ok;
}

bool sample_join_add(struct sample_join *j, const struct profile *p, uint64_t at_us,
                     uint64_t from_us, uint64_t until_us) {
    struct adding a = {.join = j,
                       .profile = p,
                       .frames = calloc(p->stacks.frame_count + 1, sizeof *a.frames),
                       .stacks = calloc(p->stacks.stack_count + 1, sizeof *a.stacks),
                       .processes = calloc(p->samples->process_count + 1, sizeof *a.processes)};
    bool ok = a.frames && a.stacks && a.processes && add_records(&a, at_us, from_us, until_us);
    j->into->samples->counts.cut += p->samples->counts.cut;
    free(a.frames);
    free(a.stacks);
    free(a.processes);
    return ok;
}
