// SPDX-License-Identifier: Apache-2.0
#include "model/profile/flame.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/profile/samples.h"

static const struct {
    const char *name, *unit;
} metrics[FLAME_METRICS] = {
    [FLAME_WALL] = {"wall", "ns"},
    [FLAME_SELF] = {"self", "ns"},
    [FLAME_WAITING] = {"waiting", "ns"},
    [FLAME_ASLEEP] = {"asleep", "ns"},
    [FLAME_GC] = {"gc", "ns"},
    [FLAME_CALLS] = {"calls", "calls"},
    [FLAME_SAMPLES] = {"samples", "samples"},
    [FLAME_ACTIVE] = {"active", "samples"},
    [FLAME_REDUCTIONS] = {"reductions", "reductions"},
    [FLAME_MEMORY] = {"memory", "bytes"},
    [FLAME_MEMORY_GROWTH] = {"memory_growth", "bytes"},
    [FLAME_MEMORY_RELEASE] = {"memory_release", "bytes"},
    [FLAME_QUEUE] = {"queue", "messages"},
    [FLAME_QUEUE_GROWTH] = {"queue_growth", "messages"},
    [FLAME_BINARY] = {"binary", "bytes"},
    [FLAME_BINARY_GROWTH] = {"binary_growth", "bytes"},
    [FLAME_BINARY_RELEASE] = {"binary_release", "bytes"},
};

const char *flame_metric_name(enum flame_metric metric) {
    return metrics[metric].name;
}

const char *flame_metric_unit(enum flame_metric metric) {
    return metrics[metric].unit;
}

bool flame_metric_parse(const char *name, enum flame_metric *metric) {
    for (enum flame_metric m = 0; m < FLAME_METRICS; m++) {
        if (strcmp(name, metrics[m].name) == 0) {
            *metric = m;
            return true;
        }
    }
    return false;
}

bool flame_metric_is_time(enum flame_metric metric) {
    return metric < FLAME_CALLS;
}

bool flame_metric_is_of(enum flame_metric metric, enum profile_kind kind) {
    return (kind == PROFILE_SAMPLES) == (metric >= FLAME_SAMPLES);
}

static const char *const groups[FLAME_GROUPS] = {[FLAME_UNGROUPED] = "none",
                                                 [FLAME_BY_IDENTITY] = "identity",
                                                 [FLAME_BY_PROCESS] = "process",
                                                 [FLAME_BY_STATUS] = "status",
                                                 [FLAME_BY_APPLICATION] = "application",
                                                 [FLAME_BY_MEMORY] = "memory",
                                                 [FLAME_BY_QUEUE] = "queue"};

const char *flame_group_name(enum flame_group group) {
    return groups[group];
}

bool flame_group_parse(const char *name, enum flame_group *group) {
    for (enum flame_group g = 0; g < FLAME_GROUPS; g++) {
        if (strcmp(name, groups[g]) == 0) {
            *group = g;
            return true;
        }
    }
    return false;
}

bool flame_tree_init(struct flame_tree *t) {
    *t = (struct flame_tree){0};
    if (!map_init(&t->by_frame) || !map_init(&t->by_node) ||
        !array_grow((void **)&t->frames, &t->frame_room, 0, sizeof *t->frames) ||
        !array_grow((void **)&t->nodes, &t->node_room, 0, sizeof *t->nodes)) {
        flame_tree_free(t);
        return false;
    }
    t->frames[0] = (struct flame_frame){"all", "", "", FRAME_GROUP};
    t->nodes[0] = (struct flame_node){0};
    t->frame_count = t->node_count = 1;
    return true;
}

void flame_tree_free(struct flame_tree *t) {
    free(t->frames);
    free(t->nodes);
    map_free(&t->by_frame);
    map_free(&t->by_node);
    *t = (struct flame_tree){0};
}

// The frame of a kind and a name; UINT32_MAX without memory.
static uint32_t frame_at(struct flame_tree *t, const struct flame_frame *frame) {
    uint64_t key = hash_bytes(slice_text(frame->name)) + frame->kind;
    uint32_t at = map_get(&t->by_frame, key);
    if (at != MAP_NONE) {
        return at;
    }
    at = t->frame_count;
    if (!array_grow((void **)&t->frames, &t->frame_room, at, sizeof *t->frames) ||
        !map_set(&t->by_frame, key, at)) {
        return UINT32_MAX;
    }
    t->frames[at] = *frame;
    t->frame_count++;
    return at;
}

// The node of a frame above another one; UINT32_MAX without memory.
static uint32_t node_above(struct flame_tree *t, uint32_t node, uint32_t frame) {
    uint64_t key = (uint64_t)node << 32 | frame;
    uint32_t at =
        node == UINT32_MAX || frame == UINT32_MAX ? UINT32_MAX : map_get(&t->by_node, key);
    if (node == UINT32_MAX || frame == UINT32_MAX || at != MAP_NONE) {
        return at;
    }
    at = t->node_count;
    if (!array_grow((void **)&t->nodes, &t->node_room, at, sizeof *t->nodes) ||
        !map_set(&t->by_node, key, at)) {
        return UINT32_MAX;
    }
    t->nodes[at] =
        (struct flame_node){.frame = frame, .parent = node, .depth = t->nodes[node].depth + 1};
    t->deepest = t->nodes[at].depth > t->deepest ? t->nodes[at].depth : t->deepest;
    t->node_count++;
    return at;
}

// -- adding ---------------------------------------------------------------------------------------

// Whether a weight is drawn, on which stack, and as what.
static bool is_drawn(const struct profile *p, const struct weight *w, const struct flame_options *o,
                     uint32_t *stack, int64_t *value) {
    static const enum stack_frame_kind of_kind[FLAME_CALLS] = {
        [FLAME_WAITING] = FRAME_WAITING, [FLAME_ASLEEP] = FRAME_ASLEEP, [FLAME_GC] = FRAME_GC};
    *stack = profile_key_stack(w->key);
    *value = w->ns;
    enum stack_frame_kind kind = stacks_frame_of(&p->stacks, *stack)->kind;
    switch (o->metric) {
    case FLAME_CALLS:
        *value = (int64_t)w->calls;
        return w->calls > 0;
    case FLAME_WALL:
        return !(o->no_asleep && kind == FRAME_ASLEEP);
    case FLAME_SELF:
        return kind == FRAME_FUNCTION || kind == FRAME_CUT || kind == FRAME_GROUP;
    case FLAME_WAITING:
    case FLAME_ASLEEP:
    case FLAME_GC:
        if (kind != of_kind[o->metric]) {
            return false;
        }
        *stack = p->stacks.all[*stack].parent; // it is the only thing that is drawn
        return true;
    default: // of samples
        if (o->every && p->samples && p->samples->values) {
            *value =
                p->samples
                    ->values[(w - p->weights.all) * SAMPLE_METRICS + o->metric - FLAME_SAMPLES];
        }
        return o->every || *value > 0;
    }
}

struct adding {
    struct flame_tree *tree;
    const struct profile *profile;
    uint32_t *frames; // of the profile's: the tree's, plus 1; 0: not looked up yet
    uint32_t *path;
};

static uint32_t frame_in_tree(const struct adding *a, uint32_t frame) {
    const struct stacks *s = &a->profile->stacks;
    if (a->frames[frame] == 0) {
        const struct stack_frame *f = &s->frames[frame];
        a->frames[frame] =
            1 +
            frame_at(a->tree, &(struct flame_frame){
                                  names_text(&s->names, f->name),
                                  f->module == NAME_NONE ? "" : names_text(&s->names, f->module),
                                  profile_application(a->profile, f->module), f->kind});
    }
    return a->frames[frame] - 1;
}

static uint32_t group_node(const struct adding *a, uint64_t key, enum flame_group group) {
    uint16_t of = group == FLAME_UNGROUPED     ? PROFILE_NOBODY
                  : group == FLAME_BY_IDENTITY ? profile_key_identity(key)
                                               : profile_key_process(key);
    if (of == PROFILE_NOBODY) {
        return 0;
    }
    const char *name = names_text(&a->profile->stacks.names, of);
    return node_above(a->tree, 0,
                      frame_at(a->tree, &(struct flame_frame){name, "", "", FRAME_GROUP}));
}

// The node of a stack above another node.
static uint32_t node_of(const struct adding *a, uint32_t node, uint32_t stack) {
    const struct stack *all = a->profile->stacks.all;
    uint32_t depth = 0;
    for (; stack != STACK_ROOT; stack = all[stack].parent) {
        a->path[depth++] = all[stack].frame;
    }
    while (depth > 0) {
        node = node_above(a->tree, node, frame_in_tree(a, a->path[--depth]));
    }
    return node;
}

static bool add_weights(const struct adding *a, const struct flame_options *o,
                        enum flame_side side) {
    const struct profile *p = a->profile;
    uint32_t only = o->only ? names_find(&p->stacks.names, slice_text(o->only)) : NAME_NONE;
    if (o->only && only == NAME_NONE) {
        return true; // nothing of it
    }
    for (uint32_t i = 0; i < p->weights.count; i++) {
        const struct weight *w = &p->weights.all[i];
        uint32_t stack;
        int64_t value;
        uint16_t identity = profile_key_identity(w->key);
        if ((o->only && identity != only) || !is_drawn(p, w, o, &stack, &value)) {
            continue;
        }
        uint32_t node = node_of(a, group_node(a, w->key, o->group), stack);
        if (node == UINT32_MAX) {
            return false;
        }
        struct flame_node *n = &a->tree->nodes[node];
        (side == FLAME_AFTER ? &n->weight : &n->before)->self += value;
        *(side == FLAME_AFTER ? &n->calls : &n->calls_before) += w->calls;
    }
    return true;
}

// Nodes above others as the finished tree has them.
static bool find_nodes(struct flame_tree *t) {
    map_free(&t->by_node);
    bool ok = map_init(&t->by_node);
    for (uint32_t i = 1; ok && i < t->node_count; i++) {
        ok = map_set(&t->by_node, (uint64_t)t->nodes[i].parent << 32 | t->nodes[i].frame, i);
    }
    return ok;
}

bool flame_tree_places(struct flame_tree *t, const struct profile *p, const struct flame_options *o,
                       uint32_t *nodes) {
    struct adding a = {t, p, calloc(p->stacks.frame_count, sizeof *a.frames),
                       malloc(STACK_DEEPEST * sizeof *a.path)};
    uint32_t only = o->only ? names_find(&p->stacks.names, slice_text(o->only)) : NAME_NONE;
    bool ok = a.frames && a.path && find_nodes(t);
    for (uint32_t i = 0; ok && i < p->weights.count; i++) {
        uint64_t key = p->weights.all[i].key;
        bool drawn = !o->only || profile_key_identity(key) == only;
        nodes[i] =
            drawn ? node_of(&a, group_node(&a, key, o->group), profile_key_stack(key)) : UINT32_MAX;
        ok = !drawn || nodes[i] != UINT32_MAX;
    }
    free(a.frames);
    free(a.path);
    return ok;
}

bool flame_tree_add(struct flame_tree *t, const struct profile *p,
                    const struct flame_options *options, enum flame_side side) {
    struct adding a = {t, p, calloc(p->stacks.frame_count, sizeof *a.frames),
                       malloc(STACK_DEEPEST * sizeof *a.path)};
    bool ok = a.frames && a.path && add_weights(&a, options, side);
    free(a.frames);
    free(a.path);
    return ok;
}

// -- order ----------------------------------------------------------------------------------------

static int by_name(const void *left, const void *right, void *frames) {
    const struct flame_frame *a = (const struct flame_frame *)frames + *(const uint32_t *)left;
    const struct flame_frame *b = (const struct flame_frame *)frames + *(const uint32_t *)right;
    return a->kind != b->kind ? a->kind - b->kind : strcmp(a->name, b->name);
}

struct placed {
    uint32_t parent;
    uint32_t rank; // of its frame
    uint32_t node;
};

static int by_parent(const void *left, const void *right) {
    const struct placed *a = left, *b = right;
    return a->parent != b->parent ? (a->parent < b->parent ? -1 : 1)
                                  : (a->rank > b->rank) - (a->rank < b->rank);
}

// The places of nodes, each parent's children in their order behind one another.
static bool place_nodes(const struct flame_tree *t, struct placed *places) {
    uint32_t *order = malloc(t->frame_count * sizeof *order);
    uint32_t *rank = malloc(t->frame_count * sizeof *rank);
    if (order && rank) {
        for (uint32_t i = 0; i < t->frame_count; i++) {
            order[i] = i;
        }
        qsort_r(order, t->frame_count, sizeof *order, by_name, t->frames);
        for (uint32_t i = 0; i < t->frame_count; i++) {
            rank[order[i]] = i;
        }
        for (uint32_t i = 1; i < t->node_count; i++) {
            places[i - 1] = (struct placed){t->nodes[i].parent, rank[t->nodes[i].frame], i};
        }
        qsort(places, t->node_count - 1, sizeof *places, by_parent);
    }
    free(order);
    free(rank);
    return order && rank;
}

// Copies the nodes depth first. next: for each node, the place of its next child.
static void copy_in_order(const struct flame_tree *t, const struct placed *places, uint32_t *next,
                          uint32_t *moved, struct flame_node *to) {
    uint32_t children = t->node_count - 1, count = 0, at = 0;
    for (uint32_t i = children; i > 0; i--) {
        next[places[i - 1].parent] = i - 1;
    }
    to[count++] = t->nodes[0];
    moved[0] = 0;
    for (;;) {
        uint32_t place = next[at];
        if (place < children && places[place].parent == at) {
            next[at]++;
            at = places[place].node;
            moved[at] = count;
            to[count] = t->nodes[at];
            to[count++].parent = moved[places[place].parent];
            continue;
        }
        to[moved[at]].end = count;
        if (at == 0) {
            return;
        }
        at = t->nodes[at].parent;
    }
}

bool flame_tree_finish(struct flame_tree *t) {
    struct placed *places = malloc(t->node_count * sizeof *places);
    uint32_t *next = malloc(t->node_count * sizeof *next);
    uint32_t *moved = malloc(t->node_count * sizeof *moved);
    struct flame_node *nodes = malloc(t->node_count * sizeof *nodes);
    bool ok = places && next && moved && nodes && place_nodes(t, places);
    if (ok) {
        memset(next, 0xff, t->node_count * sizeof *next); // no children
        copy_in_order(t, places, next, moved, nodes);
        for (uint32_t i = t->node_count; i > 0; i--) {
            struct flame_node *n = &nodes[i - 1];
            n->weight.total += n->weight.self;
            n->before.total += n->before.self;
            if (i > 1) {
                nodes[n->parent].weight.total += n->weight.total;
                nodes[n->parent].before.total += n->before.total;
            }
        }
        free(t->nodes);
        t->nodes = nodes;
        t->node_room = t->node_count;
    } else {
        free(nodes);
    }
    free(places);
    free(next);
    free(moved);
    return ok;
}

// -- functions ------------------------------------------------------------------------------------

struct flame_function *flame_tree_functions(const struct flame_tree *t) {
    struct flame_function *all = calloc(t->frame_count, sizeof *all);
    // for each frame, the node behind which it is counted anew
    uint32_t *until = calloc(t->frame_count, sizeof *until);
    for (uint32_t i = 0; all && until && i < t->node_count; i++) {
        const struct flame_node *n = &t->nodes[i];
        struct flame_function *f = &all[n->frame];
        f->frame = n->frame;
        f->weight.self += n->weight.self;
        f->before.self += n->before.self;
        if (i >= until[n->frame]) {
            f->weight.total += n->weight.total;
            f->before.total += n->before.total;
            until[n->frame] = n->end;
        }
    }
    if (!until) {
        free(all);
        all = NULL;
    }
    free(until);
    return all;
}
