// SPDX-License-Identifier: Apache-2.0
// Samples as a shim tells them, taken, walked and weighed. The figures are worked out by hand.
#include "sample_script.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void metrics(void **state) {
    (void)state;
    struct told t;
    usual(&t);
    assert_string_equal(weighed(&t, (struct sample_choice){.metric = FLAME_SAMPLES}),
                        "1 M.h/2 2/2, 1 m:f/1 1/1, 2 m:g/0 2/2, 1 did not answer 1/1");
    assert_string_equal(weighed(&t, (struct sample_choice){.metric = FLAME_ACTIVE}),
                        "1 m:f/1 0/0, 2 m:g/0 2/2, 1 did not answer 1/1");
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

// -- whose work it was ----------------------------------------------------------------------------

static void label(struct told *t, uint32_t of, uint64_t label) {
    put(t, (struct sample_record){.kind = SAMPLE_LABEL, .process = of, .number = label});
}

static void over(struct told *t, uint64_t label, const char *identity, int64_t end_us) {
    const struct sample_request r = {label, slice_text(identity), end_us};
    assert_true(taken(t));
    sample_labels_over(sample_taker_labels(t->taker), &r);
}

// The request of label 10 goes on when the run is over, and has a name by then.
static bool goes_on(void *user, struct sample_request *r) {
    r->identity = slice_text(user);
    return r->label == 10;
}

static const char *by_identity(struct told *t) {
    char name[] = "open";
    assert_true(taken(t));
    assert_true(sample_labels_settle(sample_taker_labels(t->taker), goes_on, name));
    return weighed(t, (struct sample_choice){.metric = FLAME_SAMPLES, .group = FLAME_BY_IDENTITY});
}

static void identities(void **state) {
    (void)state;
    struct told t;
    begin(&t);
    label(&t, 0, UINT64_C(1) << 57); // of a request that ends after two looks
    look(&t, 0, STATUS_RUNNING, 1, 0, 0);
    look(&t, 1, STATUS_WAITING, 3, 0, 0); // without a word of a token
    at(&t, 1000000);
    look(&t, 0, STATUS_RUNNING, 1, 1, 0);
    over(&t, UINT64_C(1) << 57, "read", 1500000);
    at(&t, 500000);
    unchanged(&t, 0); // it was over by then
    label(&t, 0, 8);  // of nothing that is ever known
    look(&t, 0, STATUS_RUNNING, 1, 1, 0);
    over(&t, 9, "write", INT64_MAX); // told before a look has seen it
    label(&t, 0, 9);
    look(&t, 0, STATUS_RUNNING, 1, 1, 0);
    unanswered(&t, 0);
    over(&t, 11, "", 2000000); // over without a name
    label(&t, 0, 11);
    look(&t, 0, STATUS_RUNNING, 1, 1, 0);
    label(&t, 0, 10);
    label(&t, 1, 10); // two processes work for it
    at(&t, 1000000);
    look(&t, 0, STATUS_RUNNING, 1, 1, 0);
    unchanged(&t, 1);
    label(&t, 0, 0);
    look(&t, 0, STATUS_RUNNING, 1, 1, 0);
    assert_string_equal(by_identity(&t),
                        "1 _ended 0/0, 2 m:f/1 1/1, 1 _none 0/0, 2 M.h/2 1/1, 2 m:f/1 1/1, "
                        "1 _not_known 0/0, 2 m:f/1 2/2, 1 open 0/0, 2 M.h/2 1/1, 2 m:f/1 1/1, "
                        "1 read 0/0, 2 m:f/1 2/2, 1 write 0/0, 2 m:f/1 1/1, 2 did not answer 1/1");
    end(&t);
}

// More labels than there is room for: what is beyond is not known, whatever is told later.
static void many_labels(void **state) {
    (void)state;
    struct told t;
    begin(&t);
    for (uint64_t i = 1; i <= LIMIT_SAMPLE_OPEN + 1; i++) {
        label(&t, 0, i << 32);
        look(&t, 0, STATUS_RUNNING, 1, 1, 0);
    }
    over(&t, UINT64_C(1) << 32, "read", INT64_MAX);
    over(&t, (LIMIT_SAMPLE_OPEN + UINT64_C(1)) << 32, "read", INT64_MAX);
    assert_string_equal(by_identity(&t),
                        "1 _not_known 0/0, 2 m:f/1 12000/12000, 1 read 0/0, 2 m:f/1 1/1");
    end(&t);
}

// Names that do not fit beside the looks: then none is known.
static void long_names(void **state) {
    (void)state;
    struct told t;
    char name[LIMIT_NAME_BYTES + 1];
    memset(name, 'n', LIMIT_NAME_BYTES);
    name[LIMIT_NAME_BYTES] = 0;
    begin(&t);
    over(&t, 1, name, INT64_MAX);
    name[0] = 'o';
    over(&t, 2, name, INT64_MAX);
    while (!t.profile.samples->full) {
        for (int i = 0; i < 20000; i++) {
            label(&t, 0, 1 + (uint64_t)i % 2);
            look(&t, 0, STATUS_RUNNING, 1, 0, 0);
        }
        assert_true(taken(&t));
    }
    char want[100];
    uint64_t looks = t.profile.samples->counts.looks;
    snprintf(want, sizeof want, "1 _not_known 0/0, 2 m:f/1 %" PRIu64 "/%" PRIu64, looks, looks);
    assert_string_equal(by_identity(&t), want);
    end(&t);
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
        cmocka_unit_test(metrics),    cmocka_unit_test(grouped),    cmocka_unit_test(of_a_stretch),
        cmocka_unit_test(told_anew),  cmocka_unit_test(damaged),    cmocka_unit_test(any_bytes),
        cmocka_unit_test(full),       cmocka_unit_test(identities), cmocka_unit_test(many_labels),
        cmocka_unit_test(long_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
