// SPDX-License-Identifier: Apache-2.0
#include "model/profile/sample_taker.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"

enum { SECOND_US = 1000000 };

// Numbers of the shim's to ours, as far as it has told them.
struct numbers {
    uint32_t *ours;
    uint32_t count, room;
};

struct sample_taker {
    struct profile *profile;
    struct sample_labels *labels;
    uint32_t label_count; // records of them
    struct numbers frames, stacks, processes;
    struct map by_pid; // hash of a pid's text -> our number
    uint64_t us;       // time of the next record
    uint64_t told_us;  // and as the records tell it
};

struct sample_taker *sample_taker_new(struct profile *p) {
    struct sample_taker *t = calloc(1, sizeof *t);
    if (t && map_init(&t->by_pid)) {
        t->profile = p;
        p->samples = p->samples ? p->samples : samples_new();
        t->labels = sample_labels_new(p);
    }
    if (!t || !t->profile || !p->samples || !t->labels) {
        sample_taker_free(t);
        return NULL;
    }
    return t;
}

void sample_taker_free(struct sample_taker *t) {
    if (t) {
        free(t->frames.ours);
        free(t->stacks.ours);
        free(t->processes.ours);
        sample_labels_free(t->labels);
        map_free(&t->by_pid);
        free(t);
    }
}

static size_t numbers_bytes(const struct numbers *n) {
    return n->room * sizeof *n->ours;
}

size_t sample_taker_bytes(const struct sample_taker *t) {
    return sizeof *t + sample_labels_bytes(t->labels) + map_bytes(&t->by_pid) +
           numbers_bytes(&t->frames) + numbers_bytes(&t->stacks) + numbers_bytes(&t->processes);
}

struct sample_labels *sample_taker_labels(struct sample_taker *t) {
    return t->labels;
}

static bool number_add(struct numbers *n, uint32_t ours, uint32_t most) {
    if (n->count == most || !array_grow((void **)&n->ours, &n->room, n->count, sizeof *n->ours)) {
        return false;
    }
    n->ours[n->count++] = ours;
    return true;
}

// -- what is told once ----------------------------------------------------------------------------

static bool take_frame(struct sample_taker *t, const struct sample_record *r) {
    static struct mfa mfa; // large
    char text[MFA_TEXT_BYTES];
    if (!samples_frame(r, &mfa)) {
        return false;
    }
    uint32_t frame = stacks_frame(&t->profile->stacks, FRAME_FUNCTION,
                                  slice_text(mfa_text(&mfa, text)), slice_text(mfa.module));
    return number_add(&t->frames, frame, LIMIT_SAMPLE_FRAMES);
}

static bool take_stack(struct sample_taker *t, const struct sample_record *r) {
    struct stacks *s = &t->profile->stacks;
    uint32_t stack = STACK_ROOT;
    if (r->flags & SAMPLE_STACK_CUT) {
        uint32_t cut = stacks_frame(s, FRAME_CUT, slice_text("..."), slice_of(NULL, 0));
        stack = stacks_push(s, stack, cut);
        t->profile->samples->counts.cut++;
    }
    for (uint32_t i = 0; i < r->frame_count; i++) {
        if (r->frames[i] >= t->frames.count) {
            return false;
        }
        stack = stacks_push(s, stack, t->frames.ours[r->frames[i]]);
    }
    return number_add(&t->stacks, stack, LIMIT_SAMPLE_STACKS);
}

static uint32_t name_of(struct sample_taker *t, struct slice text) {
    return text.len > 0 ? names_intern(&t->profile->stacks.names, text) : NAME_NONE;
}

// A process may be told again: after the numbers began anew, or as it has told its names by then.
static bool take_process(struct sample_taker *t, const struct sample_record *r) {
    struct samples *s = t->profile->samples;
    uint64_t key = hash_bytes(r->texts[0]);
    uint32_t known = map_get(&t->by_pid, key);
    if (known == MAP_NONE) {
        struct sampled_process process = {
            .name = NAME_NONE, .initial = NAME_NONE, .application = NAME_NONE};
        names_clean(r->texts[0], process.pid, sizeof process.pid);
        known = samples_process(s, &process);
        if (known != UINT32_MAX && !map_set(&t->by_pid, key, known)) {
            return false;
        }
    }
    if (known != UINT32_MAX) {
        uint32_t *const names[] = {&s->processes[known].name, &s->processes[known].initial,
                                   &s->processes[known].application};
        for (int i = 0; i < 3; i++) {
            *names[i] = r->texts[i + 1].len > 0 ? name_of(t, r->texts[i + 1]) : *names[i];
        }
    }
    return number_add(&t->processes, known, LIMIT_SAMPLE_PROCESSES);
}

// -- what is told all the time --------------------------------------------------------------------

static void keep(struct sample_taker *t, const struct sample_record *r) {
    size_t more = (size_t)t->label_count * SAMPLE_LABEL_MORE; // when they are settled
    samples_keep(t->profile->samples, r, t->us, &t->told_us, more);
}

// Ours of a process's number; false: it was never told. Without room for it *kept is false.
static bool number_process(struct sample_taker *t, struct sample_record *r, bool *kept) {
    if (r->process >= t->processes.count) {
        return false;
    }
    r->process = t->processes.ours[r->process];
    *kept = r->process != UINT32_MAX;
    return true;
}

static bool take_look(struct sample_taker *t, struct sample_record *r) {
    bool kept = false;
    char identity[LIMIT_NAME_BYTES + 4];
    if (!number_process(t, r, &kept) || r->stack > t->stacks.count) {
        return false;
    }
    r->stack = r->stack > 0 ? t->stacks.ours[r->stack - 1] + 1 : 0;
    if (r->kind == SAMPLE_IDENTITY) { // as it is called in the table of names
        names_clean(r->texts[0], identity, sizeof identity);
        uint32_t name = name_of(t, slice_text(identity));
        r->texts[0] =
            slice_text(name == NAME_NONE ? "" : names_text(&t->profile->stacks.names, name));
    }
    if (r->kind == SAMPLE_LABEL && kept) {
        r->number = r->number > 0 ? 1 + sample_labels_number(t->labels, r->number) : 0;
        t->label_count++;
    }
    if (kept) {
        keep(t, r);
    }
    return true;
}

// Numbers begin anew, and what was known of processes is forgotten with them: their next looks tell
// all.
static void forget(struct sample_taker *t) {
    t->frames.count = t->stacks.count = t->processes.count = 0;
}

static bool take(struct sample_taker *t, struct sample_record *r) {
    switch (r->kind) {
    case SAMPLE_FRAME:
        return take_frame(t, r);
    case SAMPLE_STACK:
        return take_stack(t, r);
    case SAMPLE_PROCESS:
        return take_process(t, r);
    case SAMPLE_TIME:
        if (r->number > (uint64_t)LIMIT_SAMPLE_SECONDS * SECOND_US) {
            return false;
        }
        t->us += r->number;
        return true;
    case SAMPLE_HELD:
    case SAMPLE_LATE:
        keep(t, r);
        return true;
    case SAMPLE_FORGET:
        forget(t);
        return true;
    default:
        return take_look(t, r);
    }
}

bool sample_taker_take(struct sample_taker *t, struct slice records) {
    struct cursor c = cursor_of(records.data, records.len);
    struct sample_record r;
    while (sample_record_read(&c, &r)) {
        if (!take(t, &r)) {
            return false;
        }
    }
    return !c.failed;
}

uint64_t sample_taker_us(const struct sample_taker *t) {
    return t->us;
}

uint64_t sample_taker_clear(struct sample_taker *t) {
    struct samples *s = t->profile->samples;
    uint64_t passed = t->us;
    buffer_reset(&s->records);
    s->second_count = 0;
    s->full = false;
    t->us = t->told_us = 0;
    return passed;
}
