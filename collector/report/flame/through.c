// SPDX-License-Identifier: Apache-2.0
#include "report/flame/through.h"

#include <string.h>

#include "model/profile/sample_join.h"
#include "report/flame/find.h"

static const int64_t SECOND_NS = 1000000000;
// Of one label; they are read one by one. A day, which is as much as is joined, has 24 as a rule.
enum { MOST = 1500 };

struct going {
    struct store *store;
    struct sample_join *join;
    const struct profile *first, *last;
    int64_t first_id, last_id;
    uint64_t from_us, until_us;
};

static uint64_t begin_us(const struct going *g, const struct profile_head *h) {
    int64_t ns = h->begin_ns - g->first->head.begin_ns;
    return ns > 0 ? (uint64_t)ns / 1000 : 0;
}

// Adds what of a profile lies within the range.
static enum flame_found add(const struct going *g, const struct profile *p) {
    uint64_t at = begin_us(g, &p->head);
    if (!p->samples || (g->until_us > 0 && at >= g->until_us)) {
        return FLAME_FOUND;
    }
    uint64_t from = g->from_us > at ? g->from_us - at : 0,
             until = g->until_us > 0 ? g->until_us - at : 0;
    return sample_join_add(g->join, p, at, from, until) ? FLAME_FOUND : FLAME_NO_MEMORY;
}

static enum flame_found add_other(const struct going *g, int64_t id) {
    struct profile p;
    bool there = false;
    enum flame_found found = query_profile(g->store, id, &there, &p) ? FLAME_FOUND : FLAME_UNREAD;
    if (found == FLAME_FOUND && there) { // else it was deleted meanwhile
        found = add(g, &p);
    }
    profile_free(&p);
    return found;
}

// The oldest first; the list has the newest first.
static enum flame_found add_all(const struct going *g, const struct profile_list *list) {
    enum flame_found found = add(g, g->first);
    // the latest are listed: where there are more, those right behind the first one are not
    for (uint32_t i = list->count < MOST ? list->count : 0; found == FLAME_FOUND && i > 0; i--) {
        const struct profile_line *l = &list->lines[i - 1];
        bool behind = l->id != g->first_id && l->head.begin_ns >= g->first->head.begin_ns &&
                      l->head.kind == PROFILE_SAMPLES;
        found = !behind ? FLAME_FOUND : l->id == g->last_id ? add(g, g->last) : add_other(g, l->id);
    }
    return found;
}

static enum flame_found join_all(struct going *g, struct profile *joined) {
    const struct profile_head *h = &g->first->head, *last = &g->last->head;
    struct profile_filter filter = {.from_s = h->begin_ns / SECOND_NS,
                                    .until_s = last->end_ns / SECOND_NS + 1,
                                    .node = h->node,
                                    .label = h->label,
                                    .most = MOST,
                                    .in_part = true};
    struct profile_list list = {0};
    enum flame_found found = FLAME_NO_MEMORY;
    g->join = profile_init(joined) ? sample_join_new(joined) : NULL;
    if (g->join) {
        found = query_profiles(g->store, &filter, &list) ? add_all(g, &list) : FLAME_UNREAD;
        joined->samples->full = joined->samples->full || list.count == MOST;
    }
    joined->head = *h;
    joined->head.end_ns = last->end_ns;
    if (found == FLAME_FOUND && joined->samples->full) { // what it has no room for is not its time
        joined->head.end_ns = h->begin_ns + (int64_t)sample_join_us(g->join) * 1000;
    }
    profile_list_free(&list);
    sample_join_free(g->join);
    return found;
}

static bool is_behind(const struct profile_head *last, const struct profile_head *first) {
    return last->begin_ns >= first->begin_ns && strcmp(last->node, first->node) == 0 &&
           strcmp(last->label, first->label) == 0 && last->kind == PROFILE_SAMPLES;
}

enum flame_found flame_go_through(struct store *s, int64_t first, const char *through,
                                  uint64_t from_us, uint64_t until_us, int64_t *last,
                                  struct profile *p) {
    struct profile end = {0}, joined;
    if (!p->samples) {
        return FLAME_NO_PARTS;
    }
    enum flame_found found = flame_find(s, through, last, &end);
    if (found == FLAME_NONE || (found == FLAME_FOUND && !is_behind(&end.head, &p->head))) {
        found = FLAME_NOT_THROUGH;
    }
    if (found == FLAME_FOUND) {
        struct going g = {s, NULL, p, &end, first, *last, from_us, until_us};
        found = join_all(&g, &joined);
        profile_free(found == FLAME_FOUND ? p : &joined);
        *p = found == FLAME_FOUND ? joined : *p;
    }
    profile_free(&end);
    return found;
}
