// SPDX-License-Identifier: Apache-2.0
#include "report/flame.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_time.h"
#include "model/profile/sample_weights.h"
#include "report/flame/find.h"
#include "report/flame/notes.h"
#include "report/flame/through.h"

// -- answering ------------------------------------------------------------------------------------

// The profiles to compare with: their numbers.
static enum flame_found find_before(struct store *s, const struct flame_question *q,
                                    struct flame_answer *a) {
    struct profile_filter of_range = {.from_s = q->before_from_s,
                                      .until_s = q->before_until_s,
                                      .node = a->profile.head.node,
                                      .most = FLAME_MOST_BEFORE};
    struct profile_list list;
    if (!query_profiles(s, &of_range, &list)) {
        return FLAME_UNREAD;
    }
    for (uint32_t i = 0; i < list.count; i++) {
        if (list.lines[i].id != a->id) {
            a->before_ids[a->before_count++] = list.lines[i].id;
        }
    }
    profile_list_free(&list);
    return a->before_count > 0 ? FLAME_FOUND : FLAME_NONE_BEFORE;
}

static enum flame_found read_before(struct store *s, const struct flame_question *q,
                                    struct flame_answer *a) {
    if (!q->before) {
        enum flame_found found = find_before(s, q, a);
        if (found != FLAME_FOUND) {
            return found;
        }
    }
    uint32_t count = q->before ? 1 : a->before_count;
    a->before = calloc(count, sizeof *a->before);
    a->before_count = a->before ? count : 0;
    for (uint32_t i = 0; i < a->before_count; i++) {
        char number[24];
        snprintf(number, sizeof number, "%" PRId64, a->before_ids[i]);
        enum flame_found found =
            flame_find(s, q->before ? q->before : number, &a->before_ids[i], &a->before[i]);
        if (found != FLAME_FOUND) {
            return found == FLAME_NONE ? FLAME_NONE_BEFORE : found;
        }
    }
    return a->before ? FLAME_FOUND : FLAME_NO_MEMORY;
}

// Has what is drawn, and what it is compared with, go through more than one profile.
static enum flame_found go_through(struct store *s, const struct flame_question *q,
                                   struct flame_answer *a) {
    enum flame_found found = FLAME_FOUND;
    bool other = (q->before_from_us | q->before_until_us) != 0;
    if (q->through) {
        found = flame_go_through(s, a->id, q->through, q->from_us, q->until_us, &a->last_id,
                                 &a->profile);
    }
    if (found == FLAME_FOUND && q->before_through && q->before) {
        found = flame_go_through(
            s, a->before_ids[0], q->before_through, other ? q->before_from_us : q->from_us,
            other ? q->before_until_us : q->until_us, &a->before_last_id, &a->before[0]);
    }
    return found;
}

static enum flame_found fits(const struct profile *p, const struct flame_question *q) {
    bool part = (q->from_us | q->until_us | q->before_from_us | q->before_until_us) != 0;
    if (!flame_metric_is_of(q->weighed.metric, p->head.kind)) {
        return FLAME_OTHER_KIND;
    }
    if (p->head.kind == PROFILE_FULL && q->weighed.group > FLAME_BY_PROCESS) {
        return FLAME_OTHER_GROUP;
    }
    return p->head.kind == PROFILE_FULL && part ? FLAME_NO_PARTS : FLAME_FOUND;
}

// Samples are weighed anew for each question: by its metric, group and part.
static enum flame_found weigh_samples(struct profile *p, const struct flame_question *q,
                                      enum flame_side side) {
    bool other = side == FLAME_BEFORE && (q->before_from_us | q->before_until_us) != 0;
    struct sample_choice choice = {.metric = q->weighed.metric,
                                   .group = q->weighed.group,
                                   .from_us = other ? q->before_from_us : q->from_us,
                                   .until_us = other ? q->before_until_us : q->until_us};
    enum flame_found found = fits(p, q);
    if (found == FLAME_FOUND && p->samples && !samples_weigh(p, &choice)) {
        found = FLAME_NO_MEMORY;
    }
    return found;
}

static enum flame_found weigh(struct flame_answer *a, const struct flame_question *q) {
    enum flame_found found = weigh_samples(&a->profile, q, FLAME_AFTER);
    for (uint32_t i = 0; found == FLAME_FOUND && i < a->before_count; i++) {
        found = weigh_samples(&a->before[i], q, FLAME_BEFORE);
    }
    if (found != FLAME_FOUND) {
        return found;
    }
    bool ok = flame_tree_init(&a->tree) &&
              flame_tree_add(&a->tree, &a->profile, &q->weighed, FLAME_AFTER);
    for (uint32_t i = 0; ok && i < a->before_count; i++) {
        ok = flame_tree_add(&a->tree, &a->before[i], &q->weighed, FLAME_BEFORE);
    }
    ok = ok && flame_tree_finish(&a->tree) && (a->functions = flame_tree_functions(&a->tree));
    return ok ? FLAME_FOUND : FLAME_NO_MEMORY;
}

static void put_title(struct flame_answer *a, const struct flame_question *q) {
    const struct profile_head *h = &a->profile.head;
    char started[TEXT_TIME_BYTES];
    snprintf(a->title, sizeof a->title, "%s%s%s of %s, %s",
             q->weighed.only ? q->weighed.only : h->name, q->weighed.only || h->name[0] ? ": " : "",
             flame_metric_name(q->weighed.metric), h->node,
             text_time_format(h->begin_ns, false, started));
}

static void put_before_name(struct flame_answer *a, const struct flame_question *q) {
    if (a->before_last_id > 0) {
        snprintf(a->before_name, sizeof a->before_name, "profiles %" PRId64 " to %" PRId64,
                 a->before_ids[0], a->before_last_id);
    } else if (a->before_count == 1 && (q->before_from_us | q->before_until_us) != 0) {
        char part[NOTES_PART_BYTES];
        snprintf(a->before_name, sizeof a->before_name, "profile %" PRId64 ", %s", a->before_ids[0],
                 notes_part(q->before_from_us, q->before_until_us, part));
    } else if (a->before_count == 1) {
        snprintf(a->before_name, sizeof a->before_name, "profile %" PRId64, a->before_ids[0]);
    } else {
        snprintf(a->before_name, sizeof a->before_name, "%" PRIu32 " profiles", a->before_count);
    }
}

enum flame_found flame_ask(struct store *s, const struct flame_question *asked,
                           struct flame_answer *a) {
    struct flame_question usual = *asked, *question = &usual;
    *a = (struct flame_answer){0};
    enum flame_found found = flame_find(s, question->profile, &a->id, &a->profile);
    if (a->profile.samples && question->weighed.metric == FLAME_WALL) {
        question->weighed.metric = FLAME_SAMPLES; // what is usual of a kind
    }
    bool compared = question->before || question->before_until_s != 0;
    if (found == FLAME_FOUND && compared) {
        found = read_before(s, question, a);
    }
    found = found == FLAME_FOUND ? go_through(s, question, a) : found;
    found = found == FLAME_FOUND ? weigh(a, question) : found;
    if (found == FLAME_FOUND && question->seen && a->profile.samples &&
        !processes_seen_take(&a->profile, question->from_us, question->until_us, &a->seen)) {
        found = FLAME_NO_MEMORY;
    }
    if (found == FLAME_FOUND) {
        put_title(a, question);
        put_before_name(a, question);
        notes_put(a, question);
        a->drawing = (struct flame_drawing){.tree = &a->tree,
                                            .weighed = question->weighed,
                                            .from_us = question->from_us,
                                            .until_us = question->until_us,
                                            .title = a->title,
                                            .notes = a->note_lines,
                                            .started_ns = a->profile.head.begin_ns,
                                            .profile = &a->profile,
                                            .id = a->id,
                                            .last_id = a->last_id,
                                            .compared = compared,
                                            .before = a->before,
                                            .before_count = a->before_count,
                                            .before_name = a->before_name};
    }
    return found;
}

void flame_answer_free(struct flame_answer *a) {
    free(a->functions);
    flame_tree_free(&a->tree);
    profile_free(&a->profile);
    for (uint32_t i = 0; i < a->before_count; i++) {
        profile_free(&a->before[i]);
    }
    free(a->before);
    *a = (struct flame_answer){0};
}

// -- the table of functions -----------------------------------------------------------------------

double flame_scale(const struct flame_answer *a) {
    const struct flame_node *root = a->tree.nodes;
    return a->drawing.compared && root->before.total > 0
               ? (double)root->weight.total / (double)root->before.total
               : 1;
}

struct ranked {
    uint32_t frame;
    double worth;
    const char *name;
};

static int by_worth(const void *left, const void *right) {
    const struct ranked *a = left, *b = right;
    return a->worth != b->worth ? (a->worth > b->worth ? -1 : 1) : strcmp(a->name, b->name);
}

uint32_t *flame_ranked(const struct flame_answer *a, uint32_t *count) {
    struct ranked *all = malloc(a->tree.frame_count * sizeof *all);
    uint32_t *frames = malloc(a->tree.frame_count * sizeof *frames);
    *count = 0;
    for (uint32_t i = 0; all && frames && i < a->tree.frame_count; i++) {
        const struct flame_function *f = &a->functions[i];
        double before = a->drawing.compared ? (double)f->before.self * flame_scale(a) : 0;
        double worth = fabs((double)f->weight.self - before);
        if (worth > 0) {
            all[(*count)++] = (struct ranked){i, worth, a->tree.frames[i].name};
        }
    }
    if (all && frames) {
        qsort(all, *count, sizeof *all, by_worth);
        for (uint32_t i = 0; i < *count; i++) {
            frames[i] = all[i].frame;
        }
    } else {
        free(frames);
        frames = NULL;
    }
    free(all);
    return frames;
}
