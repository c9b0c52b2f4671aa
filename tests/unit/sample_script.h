// SPDX-License-Identifier: Apache-2.0
// What a shim tells of a run of stack sampling, written as a test says it, and taken into a
// profile.
#pragma once

#include <inttypes.h>
#include <stdio.h>

#include "base/limits.h"
#include "model/profile/sample_taker.h"
#include "model/profile/sample_weights.h"
#include "unit.h"

struct told {
    struct buffer bytes;
    struct profile profile;
    struct sample_taker *taker;
};

static inline void put(struct told *t, struct sample_record r) {
    sample_record_write(&t->bytes, &r);
}

static inline bool taken(struct told *t) {
    bool ok = sample_taker_take(t->taker, slice_of(t->bytes.data, t->bytes.len));
    buffer_reset(&t->bytes);
    return ok;
}

static inline void frame(struct told *t, const char *module, const char *function, uint32_t arity) {
    put(t, (struct sample_record){.kind = SAMPLE_FRAME,
                                  .texts = {slice_text(module), slice_text(function)},
                                  .number = arity});
}

static inline void process(struct told *t, const char *pid, const char *name,
                           const char *application) {
    put(t, (struct sample_record){.kind = SAMPLE_PROCESS,
                                  .texts = {slice_text(pid), slice_text(name),
                                            slice_text("proc_lib:init_p/5"),
                                            slice_text(application)}});
}

// So many µs later.
static inline void at(struct told *t, uint64_t us) {
    put(t, (struct sample_record){.kind = SAMPLE_TIME, .number = us});
}

// Two processes; a works in m:f/1 and below it in m:g/0, b sleeps in m:h/2.
static inline void begin(struct told *t) {
    *t = (struct told){.bytes = buffer_make(1 << 20)};
    assert_true(profile_init(&t->profile));
    t->profile.head = (struct profile_head){.kind = PROFILE_SAMPLES};
    t->taker = sample_taker_new(&t->profile);
    assert_non_null(t->taker);
    frame(t, "m", "f", 1);
    frame(t, "m", "g", 0);
    frame(t, "Elixir.M", "h", 2);
    put(t, (struct sample_record){.kind = SAMPLE_STACK, .frame_count = 1, .frames = {0}});
    put(t, (struct sample_record){.kind = SAMPLE_STACK, .frame_count = 2, .frames = {0, 1}});
    put(t, (struct sample_record){.kind = SAMPLE_STACK, .frame_count = 1, .frames = {2}});
    process(t, "<0.100.0>", "a", "app");
    process(t, "<0.101.0>", "", "");
}

static inline void look(struct told *t, uint32_t of, uint8_t status, uint32_t stack,
                        uint64_t reductions, uint64_t memory) {
    struct sample_record r = {.kind = SAMPLE_LOOK,
                              .process = of,
                              .status = status,
                              .stack = stack,
                              .mask = MASK_REDUCTIONS | MASK_QUEUE | (memory ? MASK_MEMORY : 0)};
    r.values[VALUE_REDUCTIONS] = reductions;
    r.values[VALUE_QUEUE] = of == 0 ? 20 : 0;
    r.values[VALUE_MEMORY] = memory;
    put(t, r);
}

static inline void unchanged(struct told *t, uint32_t of) {
    put(t,
        (struct sample_record){.kind = SAMPLE_UNCHANGED, .process = of, .status = STATUS_WAITING});
}

static inline void unanswered(struct told *t, uint32_t of) {
    put(t, (struct sample_record){.kind = SAMPLE_UNANSWERED, .process = of});
}

// It looked less often, or not at all, for so many µs up to now.
static inline void held(struct told *t, uint64_t us) {
    put(t, (struct sample_record){.kind = SAMPLE_HELD, .number = us});
}

static inline void late(struct told *t, uint64_t us) {
    put(t, (struct sample_record){.kind = SAMPLE_LATE, .number = us});
}

static inline void end(struct told *t) {
    sample_taker_free(t->taker);
    profile_free(&t->profile);
    buffer_free(&t->bytes);
}

// Three seconds: a grows from 1000 to 5000 bytes and back to 2000, b stays as it is.
static inline void usual(struct told *t) {
    begin(t);
    look(t, 0, STATUS_RUNNING, 1, 0, 1000);
    look(t, 1, STATUS_WAITING, 3, 0, 300);
    at(t, 1000000);
    look(t, 0, STATUS_RUNNABLE, 2, 700, 5000);
    unchanged(t, 1);
    at(t, 1500000);
    look(t, 0, STATUS_RUNNING, 0, 50, 2000);
    unanswered(t, 1);
    assert_true(taken(t));
}

// The weights as "group/stack value calls", in the order of the tree.
static inline const char *weighed(struct told *t, struct sample_choice choice) {
    static char out[2000];
    struct flame_tree tree;
    struct flame_options options = {.metric = choice.metric, .group = choice.group};
    size_t len = 0;
    assert_true(samples_weigh(&t->profile, &choice));
    assert_true(flame_tree_init(&tree));
    assert_true(flame_tree_add(&tree, &t->profile, &options, FLAME_AFTER));
    assert_true(flame_tree_finish(&tree));
    out[0] = 0;
    for (uint32_t i = 1; i < tree.node_count; i++) {
        const struct flame_node *n = &tree.nodes[i];
        len += (size_t)snprintf(out + len, sizeof out - len, "%s%u %s %" PRId64 "/%" PRIu64,
                                len ? ", " : "", n->depth, tree.frames[n->frame].name,
                                n->weight.self, n->calls);
    }
    flame_tree_free(&tree);
    return out;
}
