// SPDX-License-Identifier: Apache-2.0
// The longest request of a profile: its timeline as frames that open and close, and Chrome's trace
// events (Trace Event Format: duration events) made of that.
#include "report/flame/forms.h"

#include <stdlib.h>

#include "codec/json.h"
#include "model/message/message.h"

const char *timeline_frame_name(const struct profile *p, uint32_t frame) {
    return frame == WALK_OUT        ? "scheduled out"
           : frame == WALK_COLLECTS ? "garbage collection"
                                    : names_text(&p->stacks.names, p->stacks.frames[frame].name);
}

// The stack that two have in common.
static uint32_t common(const struct stack *all, uint32_t a, uint32_t b) {
    while (a != b) {
        uint32_t *deeper = all[a].depth >= all[b].depth ? &a : &b;
        *deeper = all[*deeper].parent;
    }
    return a;
}

static void move(const struct profile *p, const struct timeline_walk *walk, uint32_t *path,
                 struct timeline_place *now, struct timeline_place next, int64_t time) {
    const struct stack *all = p->stacks.all;
    uint32_t shared = common(all, now->stack, next.stack), depth = 0;
    if (now->extra != 0 && (now->extra != next.extra || now->stack != next.stack)) {
        walk->frame(walk->context, false, now->extra, time);
        now->extra = 0;
    }
    for (uint32_t s = now->stack; s != shared; s = all[s].parent) {
        walk->frame(walk->context, false, all[s].frame, time);
    }
    for (uint32_t s = next.stack; s != shared; s = all[s].parent) {
        path[depth++] = all[s].frame;
    }
    while (depth > 0) {
        walk->frame(walk->context, true, path[--depth], time);
    }
    if (next.extra != 0 && now->extra == 0) {
        walk->frame(walk->context, true, next.extra, time);
    }
    *now = next;
}

void timeline_step(const struct profile *p, const struct timeline_walk *walk,
                   struct timeline_place *now, const struct timeline_event *event) {
    uint32_t path[STACK_DEEPEST];
    struct timeline_place next = {STACK_ROOT, 0};
    int64_t time = event && event->time < p->timeline_ns ? event->time : p->timeline_ns;
    if (event && event->state != TIMELINE_LEFT) {
        next.stack = event->stack;
        next.extra = event->state == TIMELINE_OUT        ? WALK_OUT
                     : event->state == TIMELINE_COLLECTS ? WALK_COLLECTS
                                                         : 0;
    }
    move(p, walk, path, now, next, time);
}

void timeline_walk(const struct profile *p, uint16_t line, const struct timeline_walk *walk) {
    struct timeline_place now = {STACK_ROOT, 0};
    for (uint32_t i = 0; i < p->timeline.count; i++) {
        if (p->timeline.events[i].line == line) {
            timeline_step(p, walk, &now, &p->timeline.events[i]);
        }
    }
    timeline_step(p, walk, &now, NULL);
}

// -- Chrome ---------------------------------------------------------------------------------------

struct chrome {
    struct json json;
    const struct profile *profile;
    uint16_t line;
};

static void put_event(struct chrome *c, const char *phase, const char *name, int64_t ns) {
    json_open(&c->json, '{');
    json_key_text(&c->json, "ph", phase);
    json_key_text(&c->json, "name", name);
    json_key_int(&c->json, "pid", 1);
    json_key_int(&c->json, "tid", c->line + 1);
    json_key_number(&c->json, "ts", (double)ns / 1000, 3);
}

static void put_frame(void *context, bool opens, uint32_t frame, int64_t time) {
    struct chrome *c = context;
    put_event(c, opens ? "B" : "E", timeline_frame_name(c->profile, frame), time);
    json_close(&c->json, '}');
}

// A row for each process, called as it is.
static void put_row(struct chrome *c) {
    char pid[MESSAGE_PID_BYTES];
    message_pid_text(c->profile->timeline.pids[c->line], pid);
    put_event(c, "M", "thread_name", 0);
    json_key(&c->json, "args");
    json_open(&c->json, '{');
    json_key_text(&c->json, "name", pid);
    json_close(&c->json, '}');
    json_close(&c->json, '}');
}

void flame_chrome(const struct flame_drawing *d, struct buffer *out) {
    struct chrome c = {.json = json_make(out), .profile = d->profile};
    struct timeline_walk walk = {&c, put_frame};
    json_open(&c.json, '{');
    json_key_text(&c.json, "displayTimeUnit", "ns");
    json_key(&c.json, "traceEvents");
    json_open(&c.json, '[');
    for (uint32_t line = 0; d->profile && line < d->profile->timeline.lines; line++) {
        c.line = (uint16_t)line;
        put_row(&c);
        timeline_walk(d->profile, c.line, &walk);
    }
    json_close(&c.json, ']');
    json_close(&c.json, '}');
    buffer_text(out, "\n");
}
