// SPDX-License-Identifier: Apache-2.0
#include "report/longest.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/message/message.h"
#include "report/flame/forms.h"
#include "report/flame/notes.h"

enum { NO_SPAN = UINT32_MAX };

// A process that works for the request.
struct line {
    struct timeline_place now;
    bool begun;
    uint32_t base;   // so many of its frames are those of the process that asked it
    uint32_t depth;  // frames that are open
    int64_t since;   // when its time was counted last
    uint32_t *spans; // of these frames
};

struct making {
    const struct profile *profile;
    struct line *lines;
    uint32_t *spans; // of all lines
    char (*pids)[MESSAGE_PID_BYTES];
    struct slow_span *all;
    uint32_t count, room;
    uint32_t line; // that moves
    bool failed;
};

// -- calls ----------------------------------------------------------------------------------------

// What has passed is its top call's.
static void settle(struct making *m, struct line *l, int64_t time) {
    int64_t ns = time - l->since;
    uint32_t top = l->depth > l->base ? l->spans[l->depth - 1] : NO_SPAN;
    if (top != NO_SPAN && ns > 0) {
        struct slow_span *s = &m->all[top];
        *(l->now.extra == WALK_OUT        ? &s->off_cpu_ns
          : l->now.extra == WALK_COLLECTS ? &s->gc_ns
                                          : &s->self_ns) += ns;
    }
    l->since = time;
}

static void opens(struct making *m, struct line *l, uint32_t frame, int64_t time) {
    const struct profile *p = m->profile;
    if (l->depth == STACK_DEEPEST ||
        !array_grow((void **)&m->all, &m->room, m->count, sizeof *m->all)) {
        m->failed = true;
        return;
    }
    m->all[m->count] =
        (struct slow_span){.start_ns = time,
                           .parent = l->depth > 0 ? l->spans[l->depth - 1] : NO_SPAN,
                           .name = names_text(&p->stacks.names, p->stacks.frames[frame].name),
                           .pid = m->pids[m->line],
                           .outcome = ""};
    l->spans[l->depth++] = m->count++;
}

static void closes(struct making *m, struct line *l, int64_t time) {
    if (l->depth > l->base) {
        struct slow_span *s = &m->all[l->spans[l->depth - 1]];
        s->duration_ns = time - s->start_ns;
    }
    l->depth -= l->depth > 0;
    l->base = l->depth < l->base ? l->depth : l->base;
}

static void moves(void *context, bool open, uint32_t frame, int64_t time) {
    struct making *m = context;
    struct line *l = &m->lines[m->line];
    if (m->failed || frame == WALK_OUT || frame == WALK_COLLECTS) {
        return;
    }
    if (open) {
        opens(m, l, frame, time);
    } else {
        closes(m, l, time);
    }
}

// -- processes ------------------------------------------------------------------------------------

// A process begins at the stack of the one that asked it: what lies there is that one's.
static void begin(struct making *m, struct line *l, uint32_t stack) {
    uint32_t asker = 0;
    l->begun = true;
    while (asker < m->profile->timeline.lines && m->lines[asker].now.stack != stack) {
        asker++;
    }
    if (stack != STACK_ROOT && asker < m->profile->timeline.lines) {
        const struct line *of = &m->lines[asker];
        l->now.stack = stack;
        l->base = l->depth = of->depth;
        memcpy(l->spans, of->spans, of->depth * sizeof *l->spans);
    }
}

static void take(struct making *m, const struct timeline_event *e) {
    struct timeline_walk walk = {m, moves};
    struct line *l = &m->lines[m->line];
    if (!l->begun && e) {
        begin(m, l, e->stack);
    }
    int64_t end = m->profile->timeline_ns, time = e && e->time < end ? e->time : end;
    settle(m, l, time);
    timeline_step(m->profile, &walk, &l->now, e);
}

// Where the request was cut, nobody knows what a process did from then on.
static void cut(struct making *m, struct line *l) {
    for (uint32_t i = l->base; i < l->depth; i++) {
        m->all[l->spans[i]].outcome = "open";
    }
    l->since = m->profile->timeline_ns;
}

static void take_all(struct making *m) {
    const struct timeline *t = &m->profile->timeline;
    for (uint32_t i = 0; i < t->lines; i++) {
        m->lines[i].spans = m->spans + (size_t)i * STACK_DEEPEST;
        message_pid_text(t->pids[i], m->pids[i]);
    }
    for (uint32_t i = 0; i < t->count && !m->failed; i++) {
        m->line = t->events[i].line;
        take(m, &t->events[i]);
    }
    for (uint32_t i = 0; i < t->lines && !m->failed; i++) {
        m->line = i;
        if (t->cut) {
            cut(m, &m->lines[i]);
        }
        take(m, NULL);
    }
}

// -- those that matter ----------------------------------------------------------------------------

static int64_t own(const struct slow_span *s) {
    return s->self_ns + s->gc_ns + s->off_cpu_ns;
}

struct ranked {
    int64_t ns;
    uint32_t span;
};

static int by_own(const void *left, const void *right) {
    const struct ranked *a = left, *b = right;
    return a->ns != b->ns ? (a->ns > b->ns ? -1 : 1) : (a->span > b->span) - (a->span < b->span);
}

// Leaves `most` of the calls. place: for each its new number, or that of the nearest below.
static bool leave_most(struct making *m, uint32_t most) {
    struct ranked *ranked = malloc(m->count * sizeof *ranked);
    uint32_t *place = malloc(m->count * sizeof *place);
    bool *stays = calloc(m->count, sizeof *stays);
    bool ok = ranked && place && stays;
    uint32_t left = 0;
    for (uint32_t i = 0; ok && i < m->count; i++) {
        ranked[i] = (struct ranked){i == 0 ? INT64_MAX : own(&m->all[i]), i};
    }
    if (ok) {
        qsort(ranked, m->count, sizeof *ranked, by_own);
    }
    for (uint32_t i = 0; ok && i < most; i++) {
        stays[ranked[i].span] = true;
    }
    for (uint32_t i = 0; ok && i < m->count; i++) {
        uint32_t below = m->all[i].parent == NO_SPAN ? NO_SPAN : place[m->all[i].parent];
        place[i] = below;
        if (stays[i]) {
            place[i] = left;
            m->all[left] = m->all[i];
            m->all[left++].parent = below;
        }
    }
    m->count = ok ? left : m->count;
    free(ranked);
    free(place);
    free(stays);
    return ok;
}

static int64_t all_own(const struct making *m) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        sum += own(&m->all[i]);
    }
    return sum;
}

// -- the request ----------------------------------------------------------------------------------

bool longest_calls(const struct profile *p, uint32_t most, struct longest *out) {
    const struct timeline *t = &p->timeline;
    const char *identity = t->count > 0 ? names_text(&p->stacks.names, p->timeline_identity) : "";
    struct making m = {.profile = p,
                       .lines = calloc(t->lines + 1, sizeof *m.lines),
                       .spans = malloc((size_t)(t->lines + 1) * STACK_DEEPEST * sizeof *m.spans),
                       .pids = calloc(t->lines + 1, sizeof *m.pids)};
    *out = (struct longest){0};
    m.failed = !m.lines || !m.spans || !m.pids;
    if (!m.failed) {
        take_all(&m);
    }
    out->own_ns = all_own(&m);
    out->asleep_in_self = p->head.asleep_in_self;
    out->gc_in_self = p->head.gc_in_self;
    notes_in_self(&p->head, true, out->in_self);
    uint32_t count = m.count;
    bool ok = !m.failed && (count <= most || leave_most(&m, most));
    out->here_ns = all_own(&m);
    out->spans = (struct slow_spans){.request = {.node = p->head.node,
                                                 .identity = identity,
                                                 .reason = "",
                                                 .outcome = "",
                                                 .cut = t->cut,
                                                 .duration_ns = p->timeline_ns,
                                                 .spans = count,
                                                 .kept = m.count},
                                     .spans = m.all,
                                     .count = m.count,
                                     .texts = m.pids};
    free(m.lines);
    free(m.spans);
    return ok;
}

void longest_free(struct longest *longest) {
    free(longest->spans.spans);
    free(longest->spans.texts);
    *longest = (struct longest){0};
}
