// SPDX-License-Identifier: Apache-2.0
#include "report/heat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_amount.h"
#include "base/text_time.h"
#include "report/flame/find.h"
#include "report/flame/notes.h"
#include "report/heat/cells.h"

// -- in words -------------------------------------------------------------------------------------

char *heat_value_text(const struct heat *h, int64_t value, char out[HEAT_VALUE_BYTES]) {
    const char *unit = flame_metric_unit(h->metric); // a plural
    char text[TEXT_GROUPED_BYTES];
    if (strcmp(unit, "bytes") == 0) {
        snprintf(out, HEAT_VALUE_BYTES, "%s", text_size((double)value, text));
    } else {
        snprintf(out, HEAT_VALUE_BYTES, "%s %.*s", text_grouped((uint64_t)value, text),
                 (int)(strlen(unit) - (value == 1)), unit);
    }
    return out;
}

const char *heat_state_text(const struct heat *h, enum heat_state state) {
    switch (state) {
    case HEAT_IDLE:
        return h->metric == FLAME_ACTIVE ? "idle: looked at, and no process had run"
                                         : "nothing: looked at, and there was none of it";
    case HEAT_LATE:
        return "too busy: the node had no time for the sampler";
    case HEAT_HELD:
        return "held back: the sampler kept to its budget";
    case HEAT_NOTHING:
        return "not looked at: no look was due";
    case HEAT_NO_PROFILE:
        return "no profile: nothing is kept of that time";
    default:
        return "seen";
    }
}

char *heat_axis_text(const struct heat_answer *a, uint64_t us, char out[HEAT_TIME_BYTES]) {
    uint64_t s = us / 1000000;
    if (a->id == 0) {
        bool whole = a->heat.column_us % 60000000 == 0 || s % 60 == 0;
        snprintf(out, HEAT_TIME_BYTES,
                 whole ? "%02" PRIu64 ":%02" PRIu64 : "%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64,
                 s / 3600 % 24, s / 60 % 60, s % 60);
    } else if (us % 1000000 == 0 && s > 0 && s % 60 == 0) {
        snprintf(out, HEAT_TIME_BYTES, s % 3600 == 0 ? "%" PRIu64 "h" : "%" PRIu64 "m",
                 s % 3600 == 0 ? s / 3600 : s / 60);
    } else {
        heat_time_text(us, out);
    }
    return out;
}

char *heat_time_text(uint64_t us, char out[HEAT_TIME_BYTES]) {
    int len = snprintf(out, HEAT_TIME_BYTES, "%" PRIu64 ".%06" PRIu64, us / 1000000, us % 1000000);
    while (out[len - 1] == '0') {
        len--;
    }
    len -= out[len - 1] == '.';
    strcpy(out + len, "s");
    return out;
}

uint32_t heat_marks(const struct heat *h, uint32_t most) {
    static const uint32_t steps[] = {1,   2,   5,    10,   15,   20,   30,    60,    120,   300,
                                     600, 900, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400};
    uint64_t column_s = h->column_us / 1000000;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (steps[i] % column_s == 0 && h->columns / (steps[i] / column_s) < most) {
            return (uint32_t)(steps[i] / column_s);
        }
    }
    return h->columns;
}

// -- answering ------------------------------------------------------------------------------------

static const char *what_is_hot(enum flame_metric metric) {
    switch (metric) {
    case FLAME_SAMPLES:
        return "looks at processes, whatever they did";
    case FLAME_ACTIVE:
        return "looks at processes that had run since the look before, or did not answer";
    case FLAME_REDUCTIONS:
        return "reductions that processes had done since the look before";
    case FLAME_MEMORY:
        return "memory that the processes looked at have together, at its highest";
    case FLAME_QUEUE:
        return "messages in the queues of the processes looked at, at their most";
    case FLAME_BINARY:
        return "binaries off the heap that the processes looked at have together, at their most";
    case FLAME_MEMORY_GROWTH:
        return "memory by which processes had grown since the look before";
    case FLAME_MEMORY_RELEASE:
        return "memory that processes had given back since the look before";
    case FLAME_QUEUE_GROWTH:
        return "messages by which queues had grown since the look before";
    case FLAME_BINARY_GROWTH:
        return "binaries off the heap by which processes had grown since the look before";
    default: // FLAME_BINARY_RELEASE
        return "binaries off the heap that processes had given back since the look before";
    }
}

void heat_put_grid_notes(struct heat_answer *a) {
    const struct heat *h = &a->heat;
    char column[TEXT_DURATION_BYTES], cell[TEXT_DURATION_BYTES];
    text_duration((double)h->column_us * 1000, column);
    text_duration((double)heat_cell_us(h) * 1000, cell);
    notes_add(&a->notes, "Hot are %s", what_is_hot(h->metric));
    if (h->column_us == 1000000) {
        notes_add(&a->notes, "A column is a second, from the bottom up, and each of its cells %s",
                  cell);
    } else {
        notes_add(&a->notes,
                  "A column is %s, from the bottom up, and each of its cells %s: seconds are put "
                  "together, as there are many; --%s draw fewer",
                  column, cell, a->id > 0 ? "from and --to" : "since and --until");
    }
}

static void put_notes(struct heat_answer *a) {
    a->notes.most = FLAME_NOTES;
    notes_sampled(&a->profile, a->id, 0, a->heat.metric, &a->notes);
    heat_put_grid_notes(a);
}

static enum heat_found make(struct heat_answer *a, const struct heat_question *q) {
    if (!a->profile.samples) {
        return HEAT_FULL_TRACE;
    }
    switch (heat_make(&a->heat, &a->profile, &q->choice)) {
    case HEAT_MADE:
        return HEAT_FOUND;
    case HEAT_OUTSIDE:
        return HEAT_NOT_THEN;
    default:
        return HEAT_FAILED;
    }
}

enum heat_found heat_ask(struct store *s, const struct heat_question *q, struct heat_answer *a) {
    char started[TEXT_TIME_BYTES];
    *a = (struct heat_answer){0};
    switch (flame_find(s, q->profile, &a->id, &a->profile)) {
    case FLAME_FOUND:
        break;
    case FLAME_NONE:
        return HEAT_NONE;
    default:
        return HEAT_UNREAD;
    }
    enum heat_found found = make(a, q);
    if (found == HEAT_FOUND) {
        const struct profile_head *h = &a->profile.head;
        snprintf(a->title, sizeof a->title, "%s%s%s of %s, %s", h->name, h->name[0] ? ": " : "",
                 flame_metric_name(a->heat.metric), h->node,
                 text_time_format(h->begin_ns, false, started));
        put_notes(a);
        a->started_ns = h->begin_ns;
        a->pieces = calloc(1, sizeof *a->pieces);
        found = a->pieces ? HEAT_FOUND : HEAT_FAILED;
    }
    if (found == HEAT_FOUND) {
        a->pieces[a->piece_count++] = (struct heat_piece){a->id, 0, (int64_t)a->heat.length_us};
    }
    return found;
}

void heat_answer_free(struct heat_answer *a) {
    heat_free(&a->heat);
    profile_free(&a->profile);
    free(a->pieces);
    *a = (struct heat_answer){0};
}
