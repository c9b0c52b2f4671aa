// SPDX-License-Identifier: Apache-2.0
#include "model/profile/timeline.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/leb128.h"
#include "base/limits.h"

enum { STATES = TIMELINE_LEFT + 1 };

void timeline_free(struct timeline *t) {
    free(t->events);
    free(t->pids);
    *t = (struct timeline){0};
}

void timeline_clear(struct timeline *t) {
    if (t->room > ARRAY_FIRST_ROOM) {
        timeline_free(t);
    }
    t->count = t->lines = 0;
    t->cut = false;
}

uint16_t timeline_line(struct timeline *t, uint64_t pid) {
    if (t->lines == LIMIT_TIMELINE_LINES ||
        !array_grow((void **)&t->pids, &t->line_room, t->lines, sizeof *t->pids)) {
        t->cut = true;
        return UINT16_MAX;
    }
    t->pids[t->lines] = pid;
    return (uint16_t)t->lines++;
}

void timeline_add(struct timeline *t, const struct timeline_event *event, uint32_t cap) {
    if (t->cut) {
        return;
    }
    if (event->line == UINT16_MAX || t->count >= cap ||
        !array_grow((void **)&t->events, &t->room, t->count, sizeof *t->events)) {
        t->cut = true;
        return;
    }
    t->events[t->count++] = *event;
}

// -- the stored form ------------------------------------------------------------------------------

//   lines, for each its pid; cut; events, for each
//   time since the one before, line * STATES + state, stack

bool timeline_pack(const struct timeline *t, struct buffer *out) {
    int64_t before = 0;
    leb128_append(out, t->lines);
    for (uint32_t i = 0; i < t->lines; i++) {
        leb128_append(out, t->pids[i]);
    }
    leb128_append(out, t->cut);
    leb128_append(out, t->count);
    for (uint32_t i = 0; i < t->count; i++) {
        const struct timeline_event *e = &t->events[i];
        leb128_append(out, e->time > before ? (uint64_t)(e->time - before) : 0);
        leb128_append(out, (uint64_t)e->line * STATES + e->state);
        leb128_append(out, e->stack);
        before = e->time > before ? e->time : before;
    }
    return !out->failed;
}

static bool take_event(struct cursor *c, uint32_t stacks, int64_t *time, struct timeline *t) {
    uint64_t later = leb128_take(c), place = leb128_take(c), stack = leb128_take(c);
    if (c->failed || later > (uint64_t)(INT64_MAX - *time) || place / STATES >= t->lines ||
        stack >= stacks) {
        return false;
    }
    *time += (int64_t)later;
    struct timeline_event e = {*time, (uint32_t)stack, (uint16_t)(place / STATES),
                               (uint8_t)(place % STATES)};
    bool cut = t->cut;
    t->cut = false;
    timeline_add(t, &e, LIMIT_TIMELINE_EVENTS);
    bool added = !t->cut;
    t->cut = cut;
    return added;
}

bool timeline_unpack(struct slice bytes, uint32_t stacks, struct timeline *t) {
    struct cursor c = cursor_of(bytes.data, bytes.len);
    *t = (struct timeline){0};
    uint64_t lines = leb128_take(&c);
    for (uint64_t i = 0; i < lines && !c.failed; i++) {
        uint64_t pid = leb128_take(&c);
        if (timeline_line(t, pid) == UINT16_MAX) {
            return false;
        }
    }
    bool cut = leb128_take(&c) != 0;
    uint64_t count = leb128_take(&c);
    int64_t time = 0;
    t->cut = cut;
    for (uint64_t i = 0; i < count; i++) {
        if (!take_event(&c, stacks, &time, t)) {
            return false;
        }
    }
    return !c.failed && cursor_left(&c) == 0;
}
