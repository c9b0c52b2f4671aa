// SPDX-License-Identifier: Apache-2.0
// A heat map of the profiles that a sampler has made one after the other.
#include "report/heat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text_amount.h"
#include "base/text_time.h"
#include "base/time_math.h"
#include "report/flame/notes.h"
#include "report/heat/cells.h"

static const int64_t DAY_S = 86400, SECOND_US = 1000000;

// What was seen in all of them.
struct seen {
    uint64_t looks, unanswered, held_us, late_us;
    bool left_out; // there were more profiles
};

static bool is_of_it(const struct profile_line *l) {
    return l->head.kind == PROFILE_SAMPLES;
}

// The profiles, the oldest first; their times from the day's begin on.
static enum heat_found find(struct store *s, const struct heat_stretch *q, struct heat_answer *a,
                            struct seen *seen) {
    struct profile_filter filter = {.from_s = q->from_s,
                                    .until_s = q->until_s,
                                    .node = q->node,
                                    .label = q->label,
                                    .most = HEAT_MOST_PIECES + 1,
                                    .in_part = true};
    struct profile_list list;
    enum heat_found found = HEAT_FOUND;
    if (!query_profiles(s, &filter, &list)) {
        found = HEAT_UNREAD;
    } else if (!(a->pieces = calloc(list.count + 1, sizeof *a->pieces))) {
        found = HEAT_FAILED;
    } else {
        seen->left_out = list.count > HEAT_MOST_PIECES;
        for (uint32_t i = list.count - seen->left_out; i > 0; i--) {
            const struct profile_line *l = &list.lines[i - 1];
            if (is_of_it(l)) {
                a->pieces[a->piece_count++] =
                    (struct heat_piece){l->id, time_sub(l->head.begin_ns, a->started_ns) / 1000,
                                        time_sub(l->head.end_ns, a->started_ns) / 1000};
            }
        }
        found = a->piece_count > 0 ? HEAT_FOUND : HEAT_NONE;
    }
    profile_list_free(&list);
    return found;
}

static void count(struct seen *seen, const struct samples *s) {
    seen->looks += s->counts.looks + s->counts.unchanged;
    seen->unanswered += s->counts.unanswered;
    seen->held_us += s->counts.held_us;
    seen->late_us += s->counts.late_us;
}

// One after the other: a day of them all would take too much memory.
static enum heat_found add_all(struct store *s, struct heat_maker *m, const struct heat_answer *a,
                               struct seen *seen) {
    enum heat_found found = HEAT_FOUND;
    for (uint32_t i = 0; found == HEAT_FOUND && i < a->piece_count; i++) {
        struct profile p;
        bool there = false;
        bool read = query_profile(s, a->pieces[i].id, &there, &p);
        if (!read) {
            found = HEAT_UNREAD;
        } else if (there && p.samples) { // else it was deleted meanwhile
            count(seen, p.samples);
            found = heat_add(m, &p, a->pieces[i].from_us) ? HEAT_FOUND : HEAT_FAILED;
        }
        profile_free(&p);
    }
    return found;
}

static void put_notes(struct heat_answer *a, const struct seen *seen) {
    char looks[TEXT_GROUPED_BYTES], held[TEXT_DURATION_BYTES], late[TEXT_DURATION_BYTES];
    a->notes.most = FLAME_NOTES;
    notes_add(&a->notes, "%" PRIu32 " profile%s, %" PRId64 " to %" PRId64 ": %s looks at processes",
              a->piece_count, text_plural(a->piece_count), a->pieces[0].id,
              a->pieces[a->piece_count - 1].id, text_grouped(seen->looks, looks));
    if (seen->left_out) {
        notes_add(&a->notes, "Older ones are left out: there are more than %d", HEAT_MOST_PIECES);
    }
    if (seen->unanswered > 0) {
        notes_add(&a->notes, "%" PRIu64 " time%s a process did not answer", seen->unanswered,
                  text_plural(seen->unanswered));
    }
    if (seen->held_us + seen->late_us > 0) {
        text_duration((double)seen->held_us * 1000, held);
        text_duration((double)seen->late_us * 1000, late);
        notes_add(&a->notes,
                  "For %s the sampler held itself back, to keep to its budget; for %s the node had "
                  "no time for it",
                  held, late);
    }
    heat_put_grid_notes(a);
    notes_add(&a->notes, "Times of the day are UTC");
}

static void put_title(struct heat_answer *a, const struct heat_stretch *q) {
    char from[TEXT_TIME_BYTES], until[TEXT_TIME_BYTES];
    const struct heat *h = &a->heat;
    int64_t begin = time_add(a->started_ns, (int64_t)h->from_us * 1000);
    int64_t end = time_add(begin, (int64_t)(h->columns * h->column_us) * 1000);
    snprintf(a->title, sizeof a->title, "%.100s: %s of %.200s, %s to %s", q->label,
             flame_metric_name(h->metric), q->node, text_time_format(begin, false, from),
             text_time_format(end, false, until));
    snprintf(a->profile.head.name, sizeof a->profile.head.name, "%s", q->label);
    snprintf(a->profile.head.label, sizeof a->profile.head.label, "%s", q->label);
    snprintf(a->profile.head.node, sizeof a->profile.head.node, "%s", q->node);
    a->profile.head.begin_ns = a->started_ns;
}

// The part of the time in which there is something, of as many days as there are columns at most.
static bool set_times(struct heat_choice *choice, const struct heat_stretch *q, int64_t day_s,
                      const struct heat_answer *a) {
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (uint32_t i = 0; i < a->piece_count; i++) {
        first = a->pieces[i].from_us < first ? a->pieces[i].from_us : first;
        last = a->pieces[i].until_us > last ? a->pieces[i].until_us : last;
    }
    int64_t from = (q->from_s - day_s) * SECOND_US, until = (q->until_s - day_s) * SECOND_US;
    from = first > from ? first : from;
    until = last < until ? last : until;
    int64_t most = (choice->columns - 1) * DAY_S * SECOND_US;
    from = until - from > most ? until - most : from;
    choice->from_us = from > 0 ? (uint64_t)from : 0;
    choice->until_us = until > 0 ? (uint64_t)until : 0;
    return choice->from_us < choice->until_us;
}

enum heat_found heat_ask_stretch(struct store *s, const struct heat_stretch *q,
                                 struct heat_answer *a) {
    int64_t day_s = q->from_s / DAY_S * DAY_S;
    struct heat_choice choice = q->choice;
    struct seen seen = {0};
    *a = (struct heat_answer){.started_ns = time_of_seconds(day_s)};
    enum heat_found found = find(s, q, a, &seen);
    if (found != HEAT_FOUND) {
        return found;
    }
    if (!set_times(&choice, q, day_s, a)) {
        return HEAT_NONE;
    }
    struct heat_maker *m = heat_begin(&a->heat, &choice);
    if (!m) {
        return HEAT_FAILED;
    }
    found = add_all(s, m, a, &seen);
    heat_end(m);
    if (found == HEAT_FOUND) {
        put_title(a, q);
        put_notes(a, &seen);
    }
    return found;
}
