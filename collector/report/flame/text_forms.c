// SPDX-License-Identifier: Apache-2.0
// The forms that are lines of text.
#include "report/flame/forms.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void flame_put_clean(struct buffer *out, const char *name, const char *bad, char instead) {
    for (const char *at = name; *at;) {
        size_t good = strcspn(at, bad);
        buffer_append(out, at, good);
        at += good;
        if (*at) {
            buffer_append(out, &instead, 1);
            at++;
        }
    }
}

// -- collapsed ------------------------------------------------------------------------------------

// flamegraph.pl and its like add up what stands behind the last space: whole numbers, times in µs.
static int64_t collapsed_value(const struct flame_drawing *d, int64_t self) {
    return flame_metric_is_time(d->weighed.metric) ? (self + 500) / 1000 : self;
}

void flame_collapsed(const struct flame_drawing *d, struct buffer *out) {
    const struct flame_tree *t = d->tree;
    uint32_t *path = malloc((t->deepest + 1) * sizeof *path);
    if (!path) {
        out->failed = true;
        return;
    }
    for (uint32_t i = 0; i < t->node_count; i++) {
        path[t->nodes[i].depth] = i;
        int64_t value = collapsed_value(d, t->nodes[i].weight.self);
        if (value == 0) {
            continue;
        }
        for (uint32_t depth = i == 0 ? 0 : 1; depth <= t->nodes[i].depth; depth++) {
            flame_put_clean(out, flame_frame_of(t, path[depth])->name, ";\n", ',');
            buffer_text(out, depth < t->nodes[i].depth ? ";" : "");
        }
        buffer_printf(out, " %" PRId64 "\n", value);
    }
    free(path);
}

// -- callgrind ------------------------------------------------------------------------------------

struct edge {
    uint32_t from, to; // frames
    uint64_t calls;
    int64_t total;
};

static int by_ends(const void *left, const void *right) {
    const struct edge *a = left, *b = right;
    return a->from != b->from ? (a->from < b->from ? -1 : 1) : (a->to > b->to) - (a->to < b->to);
}

// Whether the same call, of the same function by the same one, is open below a node: then its time
// is in that one's already.
static bool inside_itself(const struct flame_tree *t, uint32_t node) {
    uint32_t to = t->nodes[node].frame, from = t->nodes[t->nodes[node].parent].frame;
    for (uint32_t at = t->nodes[node].parent; at != 0; at = t->nodes[at].parent) {
        if (t->nodes[at].frame == to && t->nodes[t->nodes[at].parent].frame == from) {
            return true;
        }
    }
    return false;
}

// The calls of functions by functions, those of the same two added up; their number.
static uint32_t edges_of(const struct flame_tree *t, struct edge *edges) {
    for (uint32_t i = 1; i < t->node_count; i++) {
        const struct flame_node *n = &t->nodes[i];
        edges[i - 1] = (struct edge){t->nodes[n->parent].frame, n->frame, n->calls,
                                     inside_itself(t, i) ? 0 : n->weight.total};
    }
    qsort(edges, t->node_count - 1, sizeof *edges, by_ends);
    uint32_t count = 0;
    for (uint32_t i = 0; i + 1 < t->node_count; i++) {
        if (count > 0 && by_ends(&edges[count - 1], &edges[i]) == 0) {
            edges[count - 1].calls += edges[i].calls;
            edges[count - 1].total += edges[i].total;
        } else {
            edges[count++] = edges[i];
        }
    }
    return count;
}

// A function by its number, and at its first time by its name (valgrind's manual, Callgrind Format
// Specification).
static void put_function(struct buffer *out, const struct flame_tree *t, const char *key,
                         uint32_t frame, bool *named) {
    buffer_printf(out, "%s=(%" PRIu32 ")", key, frame + 1);
    if (!named[frame]) {
        named[frame] = true;
        buffer_text(out, " ");
        flame_put_clean(out, t->frames[frame].name, "\n", ' ');
    }
    buffer_text(out, "\n");
}

static void put_functions(const struct flame_drawing *d, const struct flame_function *functions,
                          const struct edge *edges, uint32_t count, bool *named,
                          struct buffer *out) {
    const struct flame_tree *t = d->tree;
    for (uint32_t i = 0, frame = 0; frame < t->frame_count; frame++) {
        put_function(out, t, "fn", frame, named);
        buffer_printf(out, "0 %" PRId64 "\n", functions[frame].weight.self);
        for (; i < count && edges[i].from == frame; i++) {
            put_function(out, t, "cfn", edges[i].to, named);
            buffer_printf(out, "calls=%" PRIu64 " 0\n0 %" PRId64 "\n",
                          edges[i].calls > 0 ? edges[i].calls : 1, edges[i].total);
        }
        buffer_text(out, "\n");
    }
}

void flame_callgrind(const struct flame_drawing *d, struct buffer *out) {
    const struct flame_tree *t = d->tree;
    struct edge *edges = malloc(t->node_count * sizeof *edges);
    struct flame_function *functions = flame_tree_functions(t);
    bool *named = calloc(t->frame_count, sizeof *named);
    if (edges && functions && named) {
        buffer_printf(out,
                      "# callgrind format\nversion: 1\ncreator: kprof-%s\npositions: line\n"
                      "events: %s_%s\nsummary: %" PRId64 "\n\nfl=???\n",
                      KPROF_VERSION, flame_metric_name(d->weighed.metric),
                      flame_metric_unit(d->weighed.metric), t->nodes[0].weight.total);
        put_functions(d, functions, edges, edges_of(t, edges), named, out);
    } else {
        out->failed = true;
    }
    free(named);
    free(functions);
    free(edges);
}
