// SPDX-License-Identifier: Apache-2.0
// Samples as a shim tells them, taken, walked and weighed. The figures are worked out by hand.
#include "model/profile/sample_taker.h"
#include "model/profile/sample_weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "unit.h"

struct told {
    struct buffer bytes;
    struct profile profile;
    struct sample_taker *taker;
};

static void put(struct told *t, struct sample_record r) {
    sample_record_write(&t->bytes, &r);
}

static bool taken(struct told *t) {
    bool ok = sample_taker_take(t->taker, slice_of(t->bytes.data, t->bytes.len));
    buffer_reset(&t->bytes);
    return ok;
}

static void frame(struct told *t, const char *module, const char *function, uint32_t arity) {
    put(t, (struct sample_record){.kind = SAMPLE_FRAME,
                                  .texts = {slice_text(module), slice_text(function)},
                                  .number = arity});
}

static void process(struct told *t, const char *pid, const char *name, const char *application) {
    put(t, (struct sample_record){.kind = SAMPLE_PROCESS,
                                  .texts = {slice_text(pid), slice_text(name),
                                            slice_text("proc_lib:init_p/5"),
                                            slice_text(application)}});
}

static void at(struct told *t, uint64_t us) {
    put(t, (struct sample_record){.kind = SAMPLE_TIME, .number = us});
}

// Two processes; a works in m:f/1 and below it in m:g/0, b sleeps in m:h/2.
static void begin(struct told *t) {
    *t = (struct told){.bytes = buffer_make(1 << 20)};
    assert_true(profile_init(&t->profile));
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

static void look(struct told *t, uint32_t of, uint8_t status, uint32_t stack, uint64_t reductions,
                 uint64_t memory) {
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

static void unchanged(struct told *t, uint32_t of) {
    put(t,
        (struct sample_record){.kind = SAMPLE_UNCHANGED, .process = of, .status = STATUS_WAITING});
}

static void end(struct told *t) {
    sample_taker_free(t->taker);
    profile_free(&t->profile);
    buffer_free(&t->bytes);
}

// Three seconds: a grows from 1000 to 5000 bytes and back to 2000, b stays as it is.
static void usual(struct told *t) {
    begin(t);
    look(t, 0, STATUS_RUNNING, 1, 0, 1000);
    look(t, 1, STATUS_WAITING, 3, 0, 300);
    at(t, 1000000);
    look(t, 0, STATUS_RUNNABLE, 2, 700, 5000);
    unchanged(t, 1);
    at(t, 1500000);
    look(t, 0, STATUS_RUNNING, 0, 50, 2000);
    put(t, (struct sample_record){.kind = SAMPLE_UNANSWERED, .process = 1});
    assert_true(taken(t));
}

// The weights as "group/stack value calls", in the order of the tree.
static const char *weighed(struct told *t, struct sample_choice choice) {
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

static void metrics(void **state) {
    (void)state;
    struct told t;
    usual(&t);
    assert_string_equal(weighed(&t, (struct sample_choice){.metric = FLAME_SAMPLES}),
                        "1 M.h/2 2/2, 1 m:f/1 1/1, 2 m:g/0 2/2, 1 did not answer 1/1");
    assert_string_equal(weighed(&t, (struct sample_choice){.metric = FLAME_REDUCTIONS}),
                        "1 m:f/1 0/0, 2 m:g/0 750/2");
    // (1000 + 5000 + 2000) / 3 of a, 300 of b
    assert_string_equal(weighed(&t, (struct sample_choice){.metric = FLAME_MEMORY}),
                        "1 M.h/2 300/2, 1 m:f/1 333/1, 2 m:g/0 2333/2");
    assert_string_equal(weighed(&t, (struct sample_choice){.metric = FLAME_MEMORY_GROWTH}),
                        "1 m:f/1 0/0, 2 m:g/0 4000/1");
    assert_string_equal(weighed(&t, (struct sample_choice){.metric = FLAME_MEMORY_RELEASE}),
                        "1 m:f/1 0/0, 2 m:g/0 3000/1");
    assert_string_equal(weighed(&t, (struct sample_choice){.metric = FLAME_BINARY}), "");
    end(&t);
}

static void grouped(void **state) {
    (void)state;
    struct told t;
    usual(&t);
    assert_string_equal(
        weighed(&t, (struct sample_choice){.metric = FLAME_SAMPLES, .group = FLAME_BY_PROCESS}),
        "1 a 0/0, 2 m:f/1 1/1, 3 m:g/0 2/2, 1 proc_lib:init_p/5 0/0, 2 M.h/2 2/2, "
        "2 did not answer 1/1");
    assert_string_equal(
        weighed(&t, (struct sample_choice){.metric = FLAME_SAMPLES, .group = FLAME_BY_STATUS}),
        "1 did not answer 0/0, 2 did not answer 1/1, 1 runnable 0/0, 2 m:f/1 0/0, 3 m:g/0 1/1, "
        "1 running 0/0, 2 m:f/1 1/1, 3 m:g/0 1/1, 1 waiting 0/0, 2 M.h/2 2/2");
    assert_string_equal(
        weighed(&t, (struct sample_choice){.metric = FLAME_QUEUE, .group = FLAME_BY_QUEUE}),
        "1 queue 10-99 0/0, 2 m:f/1 6/1, 3 m:g/0 14/2");
    end(&t);
}

// From 1 s to 2.5 s: the last look is at 2.5 s, and not in it. Changes are those since looks
// before.
static void of_a_stretch(void **state) {
    (void)state;
    struct told t;
    usual(&t);
    assert_string_equal(weighed(&t, (struct sample_choice){.metric = FLAME_SAMPLES,
                                                           .from_us = 1000000,
                                                           .until_us = 2500000}),
                        "1 M.h/2 1/1, 1 m:f/1 0/0, 2 m:g/0 1/1");
    assert_string_equal(weighed(&t, (struct sample_choice){.metric = FLAME_MEMORY_GROWTH,
                                                           .from_us = 1000000,
                                                           .until_us = 2500000}),
                        "1 m:f/1 0/0, 2 m:g/0 4000/1");
    end(&t);
}

// Numbers begin anew: the process is the same one.
static void told_anew(void **state) {
    (void)state;
    struct told t;
    usual(&t);
    put(&t, (struct sample_record){.kind = SAMPLE_FORGET});
    frame(&t, "m", "h", 0);
    put(&t, (struct sample_record){.kind = SAMPLE_STACK, .frame_count = 1, .frames = {0}});
    process(&t, "<0.101.0>", "", "");
    look(&t, 0, STATUS_WAITING, 1, 9, 0);
    assert_true(taken(&t));
    assert_int_equal(t.profile.samples->process_count, 2);
    look(&t, 1, STATUS_WAITING, 1, 9, 0);
    assert_false(taken(&t)); // that one is not told yet
    end(&t);
}

static void damaged(void **state) {
    (void)state;
    static const struct sample_record wrong[] = {
        {.kind = SAMPLE_LOOK, .process = 2},
        {.kind = SAMPLE_LOOK, .process = 0, .stack = 4},
        {.kind = SAMPLE_STACK, .frame_count = 1, .frames = {3}},
        {.kind = SAMPLE_UNCHANGED, .process = 7},
        {.kind = SAMPLE_TIME, .number = UINT64_MAX},
        {.kind = SAMPLE_KINDS}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct told t;
        usual(&t);
        put(&t, wrong[i]);
        assert_false(taken(&t));
        end(&t);
    }
}

// Whatever bytes come, and wherever they are cut: what was taken can be walked and weighed.
static void any_bytes(void **state) {
    (void)state;
    srand(1);
    for (int round = 0; round < 300; round++) {
        struct told t;
        begin(&t);
        for (int i = 0; i < 50; i++) {
            look(&t, (uint32_t)rand() % 2, (uint8_t)(rand() % 9), (uint32_t)rand() % 4,
                 (uint64_t)rand(), (uint64_t)rand() << (rand() % 33));
            at(&t, (uint64_t)(rand() % 300000));
        }
        for (int i = round % 5; i > 0; i--) {
            t.bytes.data[(size_t)rand() % t.bytes.len] = (uint8_t)rand();
        }
        t.bytes.len -= (size_t)(rand() % 9);
        taken(&t);
        for (enum flame_metric m = FLAME_SAMPLES; m < FLAME_METRICS; m++) {
            weighed(&t, (struct sample_choice){.metric = m, .group = FLAME_BY_MEMORY});
        }
        end(&t);
    }
}

// A flood fills its own room, and says so.
static void full(void **state) {
    (void)state;
    struct told t;
    usual(&t);
    for (int i = 0; i < 60 && !t.profile.samples->full; i++) {
        for (int j = 0; j < 40000; j++) {
            look(&t, 0, STATUS_RUNNING, 1, UINT64_MAX, UINT64_MAX);
        }
        assert_true(taken(&t));
    }
    assert_true(t.profile.samples->full);
    assert_true(t.profile.samples->records.len <= LIMIT_SAMPLE_BYTES);
    assert_true(samples_weigh(&t.profile, &(struct sample_choice){.metric = FLAME_MEMORY}));
    end(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics),   cmocka_unit_test(grouped), cmocka_unit_test(of_a_stretch),
        cmocka_unit_test(told_anew), cmocka_unit_test(damaged), cmocka_unit_test(any_bytes),
        cmocka_unit_test(full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
