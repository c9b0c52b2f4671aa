// SPDX-License-Identifier: Apache-2.0
// Profiles of samples joined into one. The figures are worked out by hand.
#include "model/profile/sample_join.h"
#include "sample_script.h"

static struct told joined;
static struct sample_join *join;

static void begin_join(void) {
    joined = (struct told){0};
    assert_true(profile_init(&joined.profile));
    joined.profile.head.kind = PROFILE_SAMPLES;
    join = sample_join_new(&joined.profile);
    assert_non_null(join);
}

static void end_join(void) {
    sample_join_free(join);
    profile_free(&joined.profile);
}

static void add(struct told *t, uint64_t at_us, uint64_t from_us, uint64_t until_us) {
    assert_true(sample_join_add(join, &t->profile, at_us, from_us, until_us));
}

static const char *by(enum flame_metric metric) {
    return weighed(&joined, (struct sample_choice){.metric = metric});
}

// As if it had been one run: what changed between the two counts, too.
static void one_behind_the_other(void **state) {
    (void)state;
    struct told first, second;
    usual(&first);
    usual(&second);
    begin_join();
    add(&first, 0, 0, 0);
    add(&second, 10000000, 0, 0);
    const struct samples *s = joined.profile.samples;
    assert_int_equal(s->process_count, 2);
    assert_int_equal(s->counts.looks, 8);
    assert_int_equal(s->counts.unchanged, 2);
    assert_int_equal(s->counts.unanswered, 2);
    assert_false(s->full);
    assert_int_equal(sample_join_us(join), 12500000);
    assert_string_equal(by(FLAME_SAMPLES),
                        "1 M.h/2 4/4, 1 m:f/1 2/2, 2 m:g/0 4/4, 1 did not answer 2/2");
    assert_string_equal(by(FLAME_REDUCTIONS), "1 m:f/1 0/0, 2 m:g/0 1500/4");
    assert_string_equal(by(FLAME_MEMORY_GROWTH), "1 m:f/1 0/0, 2 m:g/0 8000/2");
    assert_string_equal(by(FLAME_MEMORY_RELEASE), "1 m:f/1 1000/1, 2 m:g/0 6000/2");
    assert_string_equal(weighed(&joined, (struct sample_choice){.metric = FLAME_SAMPLES,
                                                                .from_us = 10000000,
                                                                .until_us = 11000000}),
                        "1 M.h/2 1/1, 1 m:f/1 1/1");
    end_join();
    end(&first);
    end(&second);
}

// The first look of a part names the stack that was told before it, also one that found nothing.
static void parts(void **state) {
    (void)state;
    struct told first, second;
    usual(&first);
    usual(&second);
    begin_join();
    add(&first, 0, 2000000, 0);
    add(&second, 10000000, 0, 1500000);
    assert_string_equal(by(FLAME_SAMPLES),
                        "1 M.h/2 2/2, 1 m:f/1 1/1, 2 m:g/0 2/2, 1 did not answer 1/1");
    end_join();
    begin_join();
    add(&second, 0, 1000000, 2500000);
    assert_string_equal(by(FLAME_SAMPLES), "1 M.h/2 1/1, 1 m:f/1 0/0, 2 m:g/0 1/1");
    assert_string_equal(by(FLAME_ACTIVE), "1 m:f/1 0/0, 2 m:g/0 1/1");
    end_join();
    end(&first);
    end(&second);
}

// For whom a process works may have been told before the part. A process of the same pid that is
// called otherwise is another one: the node was started anew.
static void whose(void **state) {
    (void)state;
    struct told first, second;
    begin(&first);
    put(&first, (struct sample_record){
                    .kind = SAMPLE_IDENTITY, .process = 0, .texts = {slice_text("buy")}});
    look(&first, 0, STATUS_RUNNING, 1, 0, 0);
    at(&first, 1000000);
    look(&first, 0, STATUS_RUNNING, 2, 9, 0);
    assert_true(taken(&first));
    begin(&second);
    process(&second, "<0.100.0>", "c", "other");
    look(&second, 0, STATUS_RUNNING, 1, 0, 0);
    assert_true(taken(&second));
    begin_join();
    add(&first, 0, 500000, 0);
    assert_string_equal(weighed(&joined, (struct sample_choice){.metric = FLAME_SAMPLES,
                                                                .group = FLAME_BY_IDENTITY}),
                        "1 buy 0/0, 2 m:f/1 0/0, 3 m:g/0 1/1");
    add(&second, 5000000, 0, 0);
    assert_int_equal(joined.profile.samples->process_count, 2);
    assert_string_equal(weighed(&joined, (struct sample_choice){.metric = FLAME_SAMPLES,
                                                                .group = FLAME_BY_IDENTITY}),
                        "1 _none 0/0, 2 m:f/1 1/1, 1 buy 0/0, 2 m:f/1 0/0, 3 m:g/0 1/1");
    assert_string_equal(weighed(&joined, (struct sample_choice){.metric = FLAME_SAMPLES,
                                                                .group = FLAME_BY_APPLICATION}),
                        "1 app 0/0, 2 m:f/1 0/0, 3 m:g/0 1/1, 1 other 0/0, 2 m:f/1 1/1");
    end_join();
    end(&first);
    end(&second);
}

// What is more than one profile takes is left out, and told.
static void full(void **state) {
    (void)state;
    struct told t;
    begin(&t);
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 20000; k++) {
            look(&t, 0, STATUS_RUNNING, 1, 9, 0);
        }
        at(&t, 1000000);
        assert_true(taken(&t));
    }
    begin_join();
    uint64_t all = t.profile.samples->counts.looks;
    uint32_t times = (uint32_t)(LIMIT_SAMPLE_BYTES / t.profile.samples->records.len) + 1;
    for (uint32_t i = 0; i < times; i++) {
        assert_false(joined.profile.samples->full);
        add(&t, i * UINT64_C(30000000), 0, 0);
    }
    const struct samples *s = joined.profile.samples;
    assert_true(s->full);
    assert_true(s->records.len <= LIMIT_SAMPLE_BYTES);
    assert_in_range(s->counts.looks, (times - 1) * all, times * all - 1);
    assert_in_range(sample_join_us(join), (times - 1) * UINT64_C(30000000),
                    (times - 1) * UINT64_C(30000000) + 20000000);
    assert_true(samples_weigh(&joined.profile, &(struct sample_choice){.metric = FLAME_SAMPLES}));
    end_join();
    end(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_behind_the_other),
        cmocka_unit_test(parts),
        cmocka_unit_test(whose),
        cmocka_unit_test(full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
