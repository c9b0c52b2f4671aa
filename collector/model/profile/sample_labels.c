// SPDX-License-Identifier: Apache-2.0
#include "model/profile/sample_labels.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/profile/samples.h"

enum { SECOND_US = 1000000, NOT_KNOWN = 0, NO_END = UINT32_MAX };
enum { STEP_US = 32 }; // of times that fit 32 bits
_Static_assert((uint64_t)LIMIT_SAMPLE_SECONDS *SECOND_US / STEP_US < NO_END, "they do");

// What became of a label's request.
struct fate {
    uint32_t end;      // the first step behind it
    uint16_t identity; // a name of the profile's; PROFILE_NOBODY: not known
};

struct sample_labels {
    struct profile *profile;
    struct map open;    // labels of which nothing is known yet -> their numbers
    struct fate *fates; // by number; that of NOT_KNOWN is none
    uint32_t count, room;
    uint16_t ended, not_known; // names
    // Requests that were over before a look told of them, each at a place that its label has.
    struct late {
        uint64_t label; // 0: none
        struct fate fate;
    } late[LIMIT_SAMPLE_LATE];
};

static uint16_t name_of(struct sample_labels *l, struct slice text) {
    uint32_t name = names_intern(&l->profile->stacks.names, text);
    return name < PROFILE_NOBODY ? (uint16_t)name : PROFILE_NOBODY;
}

struct sample_labels *sample_labels_new(struct profile *p) {
    struct sample_labels *l = calloc(1, sizeof *l);
    if (!l || !map_init(&l->open) ||
        !array_grow((void **)&l->fates, &l->room, 0, sizeof *l->fates)) {
        sample_labels_free(l);
        return NULL;
    }
    l->profile = p;
    l->fates[NOT_KNOWN] = (struct fate){NO_END, PROFILE_NOBODY};
    l->count = 1;
    l->ended = name_of(l, slice_text(SAMPLE_ENDED));
    l->not_known = name_of(l, slice_text(SAMPLE_NOT_KNOWN));
    return l;
}

void sample_labels_free(struct sample_labels *l) {
    if (l) {
        map_free(&l->open);
        free(l->fates);
        free(l);
    }
}

size_t sample_labels_bytes(const struct sample_labels *l) {
    return sizeof *l + map_bytes(&l->open) + l->room * sizeof *l->fates;
}

bool sample_labels_full(const struct sample_labels *l) {
    return l->count > LIMIT_SAMPLE_LABELS / 8 * 7;
}

static struct late *late_at(struct sample_labels *l, uint64_t label) {
    return &l->late[hash_mix(label) % LIMIT_SAMPLE_LATE];
}

uint32_t sample_labels_number(struct sample_labels *l, uint64_t label) {
    uint32_t number = map_get(&l->open, label);
    const struct late *late = late_at(l, label);
    bool known = late->label == label;
    if (number != MAP_NONE) {
        return number;
    }
    if (l->count == LIMIT_SAMPLE_LABELS || (!known && l->open.count == LIMIT_SAMPLE_OPEN) ||
        !array_grow((void **)&l->fates, &l->room, l->count, sizeof *l->fates) ||
        (!known && !map_set(&l->open, label, l->count))) {
        return NOT_KNOWN;
    }
    l->fates[l->count] = known ? late->fate : l->fates[NOT_KNOWN];
    return l->count++;
}

static struct fate fate_of(struct sample_labels *l, const struct sample_request *r) {
    struct fate fate = {NO_END, r->identity.len > 0 ? name_of(l, r->identity) : PROFILE_NOBODY};
    if (r->end_us < (int64_t)LIMIT_SAMPLE_SECONDS * SECOND_US) { // one before the run is over, too
        fate.end = r->end_us > 0 ? (uint32_t)((r->end_us + STEP_US - 1) / STEP_US) : 0;
    }
    return fate;
}

void sample_labels_over(struct sample_labels *l, const struct sample_request *request) {
    uint32_t number = map_get(&l->open, request->label);
    struct fate fate = fate_of(l, request);
    *late_at(l, request->label) = (struct late){request->label, fate};
    if (number != MAP_NONE) {
        l->fates[number] = fate;
        map_remove(&l->open, request->label, number);
    }
}

// -- settling -------------------------------------------------------------------------------------

struct settling {
    struct sample_labels *labels;
    bool named; // there is room for identities; else none is known
    struct {
        uint32_t number; // of its label, + 1; 0: it holds no token
        uint16_t told;   // the identity
    } * processes;
    uint32_t *at; // where each second begins
    struct buffer out;
};

// Of a process's looks then; PROFILE_NOBODY: it works for no request.
static uint16_t identity_at(const struct settling *g, uint32_t process, uint64_t us) {
    const struct sample_labels *l = g->labels;
    uint32_t number = g->processes[process].number;
    if (number == 0) {
        return PROFILE_NOBODY;
    }
    const struct fate *f = &l->fates[number - 1];
    return !g->named || f->identity == PROFILE_NOBODY             ? l->not_known
           : f->end != NO_END && us >= (uint64_t)f->end * STEP_US ? l->ended
                                                                  : f->identity;
}

static void put(struct settling *g, const struct sample_record *r, uint64_t us) {
    bool looks =
        r->kind == SAMPLE_LOOK || r->kind == SAMPLE_UNCHANGED || r->kind == SAMPLE_UNANSWERED;
    if (r->kind == SAMPLE_LABEL) {
        g->processes[r->process].number = (uint32_t)r->number;
        return;
    }
    uint16_t identity = looks ? identity_at(g, r->process, us) : PROFILE_NOBODY;
    if (looks && identity != g->processes[r->process].told) {
        const struct names *names = &g->labels->profile->stacks.names;
        struct sample_record of = {.kind = SAMPLE_IDENTITY, .process = r->process};
        of.texts[0] = slice_text(identity == PROFILE_NOBODY ? "" : names_text(names, identity));
        sample_record_write(&g->out, &of);
        g->processes[r->process].told = identity;
    }
    sample_record_write(&g->out, r);
}

static bool put_all(struct settling *g) {
    const struct samples *s = g->labels->profile->samples;
    struct sample_record r;
    buffer_reset(&g->out);
    for (uint32_t i = 0; i < s->process_count; i++) {
        g->processes[i].number = 0;
        g->processes[i].told = PROFILE_NOBODY;
    }
    for (uint32_t i = 0; i < s->second_count; i++) {
        size_t from = s->seconds[i].at,
               until = i + 1 < s->second_count ? s->seconds[i + 1].at : s->records.len;
        uint64_t us = (uint64_t)s->seconds[i].second * SECOND_US;
        struct cursor c = cursor_of(s->records.data ? s->records.data + from : NULL, until - from);
        g->at[i] = (uint32_t)g->out.len;
        while (sample_record_read(&c, &r)) {
            us += r.kind == SAMPLE_TIME ? r.number : 0;
            put(g, &r, us);
        }
    }
    return !g->out.failed;
}

static void find_open(struct sample_labels *l, bool (*find)(void *, struct sample_request *),
                      void *user) {
    for (uint32_t i = 0; i <= l->open.mask; i++) {
        const struct map_slot *slot = &l->open.slots[i];
        struct sample_request r = {.label = slot->key, .end_us = INT64_MAX};
        if (slot->value != MAP_NONE && find(user, &r)) {
            l->fates[slot->value] = fate_of(l, &r);
        }
    }
}

bool sample_labels_settle(struct sample_labels *l,
                          bool (*find)(void *user, struct sample_request *request), void *user) {
    struct samples *s = l->profile->samples;
    struct settling g = {.labels = l,
                         .named = true,
                         .processes = calloc(s->process_count + 1, sizeof *g.processes),
                         .at = calloc(s->second_count + 1, sizeof *g.at),
                         .out = buffer_make(s->records.cap)};
    find_open(l, find, user);
    bool ok = g.processes && g.at && put_all(&g);
    if (g.processes && g.at && !ok) {
        g.named = false;
        ok = put_all(&g);
    }
    if (ok) {
        buffer_free(&s->records);
        s->records = g.out;
        for (uint32_t i = 0; i < s->second_count; i++) {
            s->seconds[i].at = g.at[i];
        }
    } else {
        buffer_free(&g.out);
    }
    free(g.processes);
    free(g.at);
    return ok;
}
