// SPDX-License-Identifier: Apache-2.0
#include "model/profile/sample_walk.h"

#include <stdlib.h>

enum { SECOND_US = 1000000 };

// Has a state for each process, new ones for those that are new. False without memory.
static bool make_states(struct sample_walk *w) {
    uint32_t count = w->profile->samples->process_count;
    struct sample_state *states = realloc(w->states, (count + 1) * sizeof *states);
    if (!states) {
        return false;
    }
    w->states = states;
    for (; w->state_count < count; w->state_count++) {
        states[w->state_count] = (struct sample_state){.identity = PROFILE_NOBODY};
    }
    return true;
}

bool sample_walk_begin(struct sample_walk *w, const struct profile *p) {
    *w = (struct sample_walk){.profile = p};
    return make_states(w);
}

bool sample_walk_again(struct sample_walk *w) {
    w->second = 0;
    w->us = 0;
    w->at = cursor_of(NULL, 0);
    return make_states(w);
}

void sample_walk_end(struct sample_walk *w) {
    free(w->states);
    w->states = NULL;
}

// On to the next second's records. False: there is none.
static bool next_second(struct sample_walk *w) {
    const struct samples *s = w->profile->samples;
    if (w->second == s->second_count) {
        return false;
    }
    size_t from = s->seconds[w->second].at,
           until = w->second + 1 < s->second_count ? s->seconds[w->second + 1].at : s->records.len;
    w->us = (uint64_t)s->seconds[w->second++].second * SECOND_US;
    // there may be seconds, and no bytes
    w->at = cursor_of(s->records.data ? s->records.data + from : NULL, until - from);
    return true;
}

// A look's values become those of its process.
static void take_values(struct sample_walk *w, struct sample_state *state) {
    static const uint8_t bit_of[SAMPLE_VALUES] = {[VALUE_REDUCTIONS] = MASK_REDUCTIONS,
                                                  [VALUE_QUEUE] = MASK_QUEUE,
                                                  [VALUE_HEAP] = MASK_HEAP,
                                                  [VALUE_STACK] = MASK_HEAP,
                                                  [VALUE_MEMORY] = MASK_MEMORY,
                                                  [VALUE_MINORS] = MASK_COLLECTIONS,
                                                  [VALUE_OLD_HEAP] = MASK_COLLECTIONS,
                                                  [VALUE_BINARY] = MASK_COLLECTIONS,
                                                  [VALUE_OLD_BINARY] = MASK_COLLECTIONS};
    for (int i = 0; i < SAMPLE_VALUES; i++) {
        bool told = w->record.mask & bit_of[i], counts = i == VALUE_REDUCTIONS || i == VALUE_MINORS;
        int64_t value = w->record.values[i] < (uint64_t)SAMPLE_MOST_VALUE
                            ? (int64_t)w->record.values[i]
                            : SAMPLE_MOST_VALUE;
        w->changes[i] = !told                    ? 0
                        : counts                 ? value
                        : state->known & 1U << i ? value - state->values[i]
                                                 : 0;
        if (told) {
            state->values[i] = value;
            state->known |= 1U << i;
        }
    }
}

// False: it names what is not there.
static bool take_process(struct sample_walk *w) {
    const struct sample_record *r = &w->record;
    if (r->process >= w->profile->samples->process_count) {
        return false;
    }
    struct sample_state *state = &w->states[r->process];
    memset(w->changes, 0, sizeof w->changes);
    if (r->kind == SAMPLE_LOOK) {
        if (r->stack > w->profile->stacks.stack_count) {
            return false;
        }
        state->stack = r->stack > 0 ? r->stack - 1 : state->stack;
        take_values(w, state);
    } else if (r->kind == SAMPLE_IDENTITY) {
        uint32_t name =
            r->texts[0].len > 0 ? names_find(&w->profile->stacks.names, r->texts[0]) : NAME_NONE;
        state->identity = name < PROFILE_NOBODY ? (uint16_t)name : PROFILE_NOBODY;
    }
    return true;
}

bool sample_walk_next(struct sample_walk *w) {
    while (!w->damaged) {
        if (!sample_record_read(&w->at, &w->record)) {
            w->damaged = w->at.failed;
            if (w->damaged || !next_second(w)) {
                return false;
            }
            continue;
        }
        switch (w->record.kind) {
        case SAMPLE_TIME:
            w->damaged = w->record.number > (uint64_t)LIMIT_SAMPLE_SECONDS * SECOND_US;
            w->us += w->record.number;
            break;
        case SAMPLE_LABEL: // of what is not settled: nobody knows the identity yet
            break;
        case SAMPLE_HELD:
        case SAMPLE_LATE:
            return true;
        case SAMPLE_LOOK:
        case SAMPLE_UNCHANGED:
        case SAMPLE_UNANSWERED:
        case SAMPLE_GONE:
        case SAMPLE_IDENTITY:
            w->damaged = !take_process(w);
            return !w->damaged;
        default: // what is told once stands elsewhere
            w->damaged = true;
        }
    }
    return false;
}
