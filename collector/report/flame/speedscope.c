// SPDX-License-Identifier: Apache-2.0
// speedscope's own form (https://www.speedscope.app/file-format-schema.json): frames that all
// profiles share, and a profile for each metric.
#include "report/flame/forms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/json.h"
#include "model/message/message.h"

struct metric_part {
    const char *name;
    const char *unit;
    int64_t (*value)(const struct flame_tree *t, uint32_t node);
};

static int64_t all_of(const struct flame_tree *t, uint32_t node) {
    return t->nodes[node].weight.self;
}

static int64_t running(const struct flame_tree *t, uint32_t node) {
    return flame_runs(flame_frame_of(t, node)) ? t->nodes[node].weight.self : 0;
}

static int64_t waiting(const struct flame_tree *t, uint32_t node) {
    return flame_frame_of(t, node)->kind == FRAME_WAITING ? t->nodes[node].weight.self : 0;
}

static int64_t calls(const struct flame_tree *t, uint32_t node) {
    return (int64_t)t->nodes[node].calls;
}

// The frames of the tree, behind them those of the longest request's timeline.
static void put_frames(struct json *j, const struct flame_tree *t, const struct profile *p) {
    json_key(j, "frames");
    json_open(j, '[');
    for (uint32_t i = 0; i < t->frame_count; i++) {
        json_open(j, '{');
        json_key_text(j, "name", t->frames[i].name);
        if (t->frames[i].module[0]) {
            json_key_text(j, "file", t->frames[i].module);
        }
        json_close(j, '}');
    }
    for (uint32_t i = 0; p && i < p->stacks.frame_count + 2; i++) {
        json_open(j, '{');
        json_key_text(j, "name",
                      timeline_frame_name(p, i < p->stacks.frame_count    ? i
                                             : i == p->stacks.frame_count ? WALK_OUT
                                                                          : WALK_COLLECTS));
        json_close(j, '}');
    }
    json_close(j, ']');
}

struct evented {
    struct json *json;
    const struct flame_tree *tree;
    const struct profile *profile;
};

static void put_event(void *context, bool opens, uint32_t frame, int64_t time) {
    const struct evented *e = context;
    uint32_t count = e->profile->stacks.frame_count;
    uint32_t at = frame == WALK_OUT ? count : frame == WALK_COLLECTS ? count + 1 : frame;
    json_open(e->json, '{');
    json_key_text(e->json, "type", opens ? "O" : "C");
    json_key_int(e->json, "frame", e->tree->frame_count + at);
    json_key_int(e->json, "at", time);
    json_close(e->json, '}');
}

// The longest request in one of its processes.
static void put_evented(struct json *j, const struct flame_drawing *d, uint16_t line) {
    struct evented e = {j, d->tree, d->profile};
    struct timeline_walk walk = {&e, put_event};
    char name[96], pid[MESSAGE_PID_BYTES];
    message_pid_text(d->profile->timeline.pids[line], pid);
    snprintf(name, sizeof name, "longest request, %u: %s", line + 1u, pid);
    json_open(j, '{');
    json_key_text(j, "type", "evented");
    json_key_text(j, "name", name);
    json_key_text(j, "unit", "nanoseconds");
    json_key_int(j, "startValue", 0);
    json_key_int(j, "endValue", d->profile->timeline_ns);
    json_key(j, "events");
    json_open(j, '[');
    timeline_walk(d->profile, line, &walk);
    json_close(j, ']');
    json_close(j, '}');
}

static void put_stack(struct json *j, const struct flame_tree *t, const uint32_t *path,
                      uint32_t depth) {
    json_open(j, '[');
    for (uint32_t i = depth == 0 ? 0 : 1; i <= depth; i++) {
        json_int(j, t->nodes[path[i]].frame);
    }
    json_close(j, ']');
}

static void put_profile(struct json *j, const struct flame_tree *t, const struct metric_part *part,
                        uint32_t *path) {
    int64_t sum = 0;
    json_open(j, '{');
    json_key_text(j, "type", "sampled");
    json_key_text(j, "name", part->name);
    json_key_text(j, "unit", part->unit);
    json_key(j, "samples");
    json_open(j, '[');
    for (uint32_t i = 0; i < t->node_count; i++) {
        path[t->nodes[i].depth] = i;
        if (part->value(t, i) > 0) {
            put_stack(j, t, path, t->nodes[i].depth);
            sum += part->value(t, i);
        }
    }
    json_close(j, ']');
    json_key(j, "weights");
    json_open(j, '[');
    for (uint32_t i = 0; i < t->node_count; i++) {
        if (part->value(t, i) > 0) {
            json_int(j, part->value(t, i));
        }
    }
    json_close(j, ']');
    json_key_int(j, "startValue", 0);
    json_key_int(j, "endValue", sum);
    json_close(j, '}');
}

static const char *speedscope_unit(enum flame_metric metric) {
    bool bytes = strcmp(flame_metric_unit(metric), "bytes") == 0;
    return flame_metric_is_time(metric) ? "nanoseconds" : bytes ? "bytes" : "none";
}

void flame_speedscope(const struct flame_drawing *d, struct buffer *out) {
    static const struct metric_part of_wall[] = {{"wall", "nanoseconds", all_of},
                                                 {"self", "nanoseconds", running},
                                                 {"waiting", "nanoseconds", waiting},
                                                 {"calls", "none", calls}};
    struct metric_part own = {flame_metric_name(d->weighed.metric),
                              speedscope_unit(d->weighed.metric), all_of};
    bool wall = d->weighed.metric == FLAME_WALL;
    uint32_t *path = malloc((d->tree->deepest + 1) * sizeof *path);
    if (!path) {
        out->failed = true;
        return;
    }
    struct json j = json_make(out);
    json_open(&j, '{');
    json_key_text(&j, "$schema", "https://www.speedscope.app/file-format-schema.json");
    json_key_text(&j, "name", d->title);
    json_key_text(&j, "exporter", "kprof " KPROF_VERSION);
    json_key_int(&j, "activeProfileIndex", 0);
    json_key(&j, "shared");
    json_open(&j, '{');
    put_frames(&j, d->tree, d->profile);
    json_close(&j, '}');
    json_key(&j, "profiles");
    json_open(&j, '[');
    for (size_t i = 0; i < (wall ? sizeof of_wall / sizeof *of_wall : 1); i++) {
        put_profile(&j, d->tree, wall ? &of_wall[i] : &own, path);
    }
    for (uint32_t line = 0; d->profile && line < d->profile->timeline.lines; line++) {
        put_evented(&j, d, (uint16_t)line);
    }
    json_close(&j, ']');
    json_close(&j, '}');
    buffer_text(out, "\n");
    free(path);
}
