// SPDX-License-Identifier: Apache-2.0
// Heat maps of samples: in which cell each look counts, and what tells idleness, a node that was
// too busy and a sampler that held itself back from each other. Figures are worked out by hand.
#include "model/profile/heat.h"

#include <inttypes.h>

#include "sample_script.h"

enum { MS = 1000, SECOND = 1000000 };

// A map of a profile, as a letter for each cell, columns apart by "|": s seen, i idle, l late, h
// held, - nothing, n no profile.
static const char *states(const struct heat *h) {
    static char out[4000];
    size_t len = 0;
    for (uint32_t i = 0; i < h->columns * h->rows; i++) {
        len += i > 0 && i % h->rows == 0 ? (size_t)sprintf(out + len, "|") : 0;
        out[len++] = "silh-n"[heat_state_of(&h->cells[i])];
    }
    out[len] = 0;
    return out;
}

// The values of all cells that are not 0, as "cell:value".
static const char *values(const struct heat *h) {
    static char out[4000];
    size_t len = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < h->columns * h->rows; i++) {
        if (h->cells[i].value != 0) {
            len +=
                (size_t)sprintf(out + len, "%s%u:%" PRId64, len ? " " : "", i, h->cells[i].value);
        }
    }
    return out;
}

static struct heat made(struct told *t, struct heat_choice choice) {
    struct heat h;
    choice.columns = choice.columns ? choice.columns : 100;
    choice.rows = choice.rows ? choice.rows : 10;
    assert_true(taken(t));
    assert_int_equal(heat_make(&h, &t->profile, &choice), HEAT_MADE);
    return h;
}

// A process that works and one that sleeps, each looked at in each tenth of 0.3 s; then 0.3 s in
// which the node had no time, 0.2 s in which the sampler held itself back, and a sleep.
static void gaps(struct told *t) {
    begin(t);
    look(t, 0, STATUS_RUNNING, 1, 0, 0); // the first looks: nobody knows what had run before
    look(t, 1, STATUS_WAITING, 3, 0, 0);
    for (int i = 0; i < 2; i++) {
        at(t, 100 * MS);
        look(t, 0, STATUS_RUNNING, 1, 40, 0);
        unchanged(t, 1);
    }
    at(t, 400 * MS); // 0.6 s
    late(t, 300 * MS);
    at(t, 200 * MS); // 0.8 s
    held(t, 200 * MS);
    unchanged(t, 0);
    at(t, 500 * MS); // 1.3 s
    unanswered(t, 0);
}

static void told_apart(void **state) {
    (void)state;
    struct told t;
    gaps(&t);
    struct heat h = made(&t, (struct heat_choice){.metric = FLAME_ACTIVE});
    assert_int_equal(h.columns, 2);
    assert_int_equal(h.column_us, SECOND);
    assert_string_equal(states(&h), "isslllhhi-|---s------");
    assert_string_equal(values(&h), "1:1 2:1 13:1");
    assert_int_equal(h.of_state[HEAT_SEEN], 3);
    assert_int_equal(h.of_state[HEAT_IDLE], 2);
    assert_int_equal(h.of_state[HEAT_LATE], 3);
    assert_int_equal(h.of_state[HEAT_HELD], 2);
    assert_int_equal(h.of_state[HEAT_NOTHING], 10);
    assert_int_equal(h.cells[1].looks, 2);
    assert_int_equal(h.cells[13].unanswered, 1);
    assert_int_equal(h.cells[4].late_us, 100 * MS);
    assert_int_equal(h.cells[6].held_us, 100 * MS);
    assert_int_equal(h.highest, 1);
    heat_free(&h);
    end(&t);
}

// By samples each look counts, whatever the process did; by reductions what it did.
static void by_metrics(void **state) {
    (void)state;
    struct told t;
    gaps(&t);
    struct heat h = made(&t, (struct heat_choice){.metric = FLAME_SAMPLES});
    assert_string_equal(values(&h), "0:2 1:2 2:2 8:1 13:1");
    assert_int_equal(h.highest, 2);
    heat_free(&h);
    h = made(&t, (struct heat_choice){.metric = FLAME_REDUCTIONS});
    assert_string_equal(values(&h), "1:40 2:40");
    assert_string_equal(states(&h), "isslllhhi-|---i------");
    heat_free(&h);
    end(&t);
}

// A look on the edge of two cells is in the later one, and a gap that ends there in the earlier
// one; of gaps that overlap a cell has no more than its length.
static void edges(void **state) {
    (void)state;
    struct told t;
    begin(&t);
    at(&t, SECOND - 1);
    look(&t, 0, STATUS_RUNNING, 1, 1, 0);
    at(&t, 1);
    look(&t, 0, STATUS_RUNNING, 1, 1, 0);
    at(&t, SECOND); // 2 s
    late(&t, 150 * MS);
    late(&t, 150 * MS);
    held(&t, 50 * MS);
    struct heat h = made(&t, (struct heat_choice){.metric = FLAME_REDUCTIONS});
    assert_string_equal(values(&h), "9:1 10:1");
    assert_string_equal(states(&h), "---------s|s-------ll|----------");
    assert_int_equal(h.cells[18].late_us, 100 * MS);
    assert_int_equal(h.cells[19].late_us, 100 * MS); // twice as much was told
    assert_int_equal(h.cells[19].held_us, 50 * MS);
    assert_int_equal(h.cells[20].late_us, 0);
    heat_free(&h);
    end(&t);
}

// A gap over columns, of which the map begins and ends in the middle.
static void of_a_stretch(void **state) {
    (void)state;
    struct told t;
    begin(&t);
    look(&t, 0, STATUS_RUNNING, 1, 1, 0);
    at(&t, 1500 * MS);
    look(&t, 0, STATUS_RUNNING, 1, 7, 0);
    at(&t, 4000 * MS); // 5.5 s
    late(&t, 3900 * MS);
    look(&t, 0, STATUS_RUNNING, 1, 9, 0);
    struct heat h =
        made(&t, (struct heat_choice){
                     .metric = FLAME_REDUCTIONS, .from_us = 2100 * MS, .until_us = 3900 * MS});
    assert_int_equal(h.from_us, 2 * SECOND); // whole seconds
    assert_string_equal(states(&h), "llllllllll|llllllllll");
    assert_int_equal(heat_cell_begin(&h, 13), 3300 * MS);
    heat_free(&h);
    h = made(&t,
             (struct heat_choice){.metric = FLAME_REDUCTIONS, .from_us = 5 * SECOND, .rows = 4});
    assert_string_equal(states(&h), "lls-");
    assert_string_equal(values(&h), "2:9");
    heat_free(&h);
    struct heat_choice outside = {.metric = FLAME_REDUCTIONS, .columns = 9, .rows = 10};
    outside.from_us = 6 * SECOND;
    assert_int_equal(heat_make(&h, &t.profile, &outside), HEAT_OUTSIDE);
    heat_free(&h);
    outside.from_us = outside.until_us = 2 * SECOND;
    assert_int_equal(heat_make(&h, &t.profile, &outside), HEAT_OUTSIDE);
    heat_free(&h);
    end(&t);
}

// What they have together, at its highest; who has ended, or was not looked at for 5 s, has none.
static void levels(void **state) {
    (void)state;
    struct told t;
    begin(&t);
    look(&t, 0, STATUS_RUNNING, 1, 0, 1000);
    look(&t, 1, STATUS_WAITING, 3, 0, 300);
    at(&t, 100 * MS);
    unchanged(&t, 1);
    look(&t, 0, STATUS_RUNNING, 1, 5, 400);
    at(&t, 100 * MS);
    put(&t, (struct sample_record){.kind = SAMPLE_GONE, .process = 0});
    unchanged(&t, 1);
    at(&t, 7000 * MS);
    look(&t, 0, STATUS_RUNNING, 1, 5, 0); // memory is as it was
    struct heat h = made(&t, (struct heat_choice){.metric = FLAME_MEMORY});
    assert_string_equal(values(&h), "0:1300 1:1300 2:300 72:400");
    assert_int_equal(h.lowest, 300);
    assert_int_equal(heat_level(&h, &h.cells[0], 12), 11);
    assert_int_equal(heat_level(&h, &h.cells[2], 12), 0);
    heat_free(&h);
    end(&t);
}

// A day has as many columns as are asked for, at most, each look counts in it, and the columns are
// whole.
static void long_runs(void **state) {
    (void)state;
    struct told t;
    begin(&t);
    for (int i = 0; i < 24 * 60; i++) {
        look(&t, 0, STATUS_RUNNING, 1, 1, 0);
        at(&t, 60 * SECOND - (i == 0));
    }
    assert_true(taken(&t));
    t.profile.head.end_ns = INT64_C(86400) * 1000000000;
    static const uint32_t columns[] = {1, 7, 24, 100, 360, 2000},
                          seconds[] = {86400, 86400, 3600, 1200, 300, 60};
    for (int i = 0; i < 6; i++) {
        struct heat h = made(
            &t, (struct heat_choice){.metric = FLAME_SAMPLES, .columns = columns[i], .rows = 50});
        assert_int_equal(h.column_us, (uint64_t)seconds[i] * SECOND);
        assert_int_equal(h.columns, 86400 / seconds[i]);
        uint64_t looks = 0;
        for (uint32_t cell = 0; cell < h.columns * h.rows; cell++) {
            looks += h.cells[cell].looks;
        }
        assert_int_equal(looks, 24 * 60);
        heat_free(&h);
    }
    end(&t);
}

// What a hostile node tells takes no more time or room, and nothing is outside.
static void hostile(void **state) {
    (void)state;
    struct told t;
    begin(&t);
    for (int i = 0; i < 10000; i++) {
        late(&t, UINT64_MAX);
        held(&t, UINT64_MAX - (uint64_t)i);
        look(&t, 0, STATUS_RUNNING, 1, UINT64_MAX, UINT64_MAX);
    }
    at(&t, UINT64_C(86399) * SECOND);
    late(&t, UINT64_MAX);
    assert_true(taken(&t));
    t.profile.head.begin_ns = INT64_MIN;
    t.profile.head.end_ns = INT64_MAX;
    for (enum flame_metric m = FLAME_SAMPLES; m < FLAME_METRICS; m++) {
        struct heat h =
            made(&t, (struct heat_choice){
                         .metric = m, .columns = LIMIT_HEAT_COLUMNS, .rows = LIMIT_HEAT_ROWS});
        assert_true(h.highest >= 0 && h.columns <= LIMIT_HEAT_COLUMNS);
        assert_int_equal(h.cells[5].late_us, heat_cell_us(&h));
        heat_free(&h);
    }
    end(&t);
}

static void no_memory(void **state) {
    (void)state;
    struct told t;
    gaps(&t);
    assert_true(taken(&t));
    struct heat_choice choice = {.metric = FLAME_MEMORY, .columns = 9, .rows = 10};
    struct heat h = {0};
    long failed = 0;
    for (enum heat_made got = HEAT_NO_MEMORY; got != HEAT_MADE; failed++) {
        fail_alloc_once(failed);
        got = heat_make(&h, &t.profile, &choice);
        fail_alloc_at(-1);
        assert_int_not_equal(got, HEAT_OUTSIDE);
        heat_free(&h);
    }
    // the maker, cells, levels, covers, the walk; none
    assert_int_equal(failed, 1 + 1 + 1 + 6 + 1 + 1);
    end(&t);
}

// Two profiles of a day: where neither is, nothing is kept; what is before the map is left out.
static void of_several(void **state) {
    (void)state;
    struct told first, second;
    struct heat h;
    struct heat_choice choice = {.metric = FLAME_REDUCTIONS,
                                 .from_us = 2 * SECOND,
                                 .until_us = 9 * SECOND,
                                 .columns = 100,
                                 .rows = 2};
    begin(&first); // from 1 s on, for 1.4 s
    first.profile.head.end_ns = first.profile.head.begin_ns + INT64_C(1400000000);
    look(&first, 0, STATUS_RUNNING, 1, 1, 0);
    at(&first, 1200 * MS);
    look(&first, 0, STATUS_RUNNING, 1, 5, 0);
    begin(&second); // from 6.5 s on, for 2 s
    second.profile.head.end_ns = second.profile.head.begin_ns + INT64_C(2000000000);
    look(&second, 0, STATUS_RUNNING, 1, 1, 0);
    at(&second, 600 * MS);
    look(&second, 0, STATUS_RUNNING, 1, 7, 0);
    at(&second, 900 * MS);
    held(&second, 400 * MS);
    assert_true(taken(&first) && taken(&second));
    struct heat_maker *m = heat_begin(&h, &choice);
    assert_non_null(m);
    assert_true(heat_add(m, &first.profile, SECOND));
    assert_true(heat_add(m, &second.profile, 6500 * MS));
    heat_end(m);
    assert_int_equal(h.columns, 7);
    assert_string_equal(states(&h), "sn|nn|nn|nn|ns|sh|-n");
    assert_string_equal(values(&h), "0:5 9:1 10:7");
    assert_int_equal(h.of_state[HEAT_NO_PROFILE], 9);
    assert_int_equal(h.highest, 7);
    heat_free(&h);
    choice.until_us = 2 * SECOND;
    assert_null(heat_begin(&h, &choice));
    end(&first);
    end(&second);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(told_apart),   cmocka_unit_test(by_metrics), cmocka_unit_test(edges),
        cmocka_unit_test(of_a_stretch), cmocka_unit_test(levels),     cmocka_unit_test(long_runs),
        cmocka_unit_test(of_several),   cmocka_unit_test(hostile),    cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
