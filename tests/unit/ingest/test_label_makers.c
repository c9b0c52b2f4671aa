// SPDX-License-Identifier: Apache-2.0
#include "ingest/label_makers.h"

#include "model/directory/directory.h"
#include "unit.h"

static uint64_t label(uint32_t start, uint32_t counter) {
    return (uint64_t)start << LABEL_COUNTER_BITS | counter;
}

static void tells_whose_a_label_is(void **state) {
    (void)state;
    static struct label_makers m;
    assert_true(label_makers_init(&m));
    label_makers_tell(&m, 0, 100);
    label_makers_tell(&m, 249, 200);
    assert_int_equal(label_makers_find(&m, label(100, 0)), 0);
    assert_int_equal(label_makers_find(&m, label(100, UINT32_MAX)), 0);
    assert_int_equal(label_makers_find(&m, label(200, 7)), 249);
    assert_int_equal(label_makers_find(&m, label(300, 7)), DIRECTORY_NONE);
    assert_int_equal(label_makers_find(&m, 100), DIRECTORY_NONE); // a small number is nobody's
    assert_int_equal(label_makers_find(&m, 0), DIRECTORY_NONE);
    assert_int_equal(label_makers_find(&m, UINT64_MAX), DIRECTORY_NONE);
    label_makers_free(&m);
}

// A node that starts a thousand traces takes no more room than eight.
static void remembers_the_last_few(void **state) {
    (void)state;
    static struct label_makers m;
    assert_true(label_makers_init(&m));
    for (uint32_t start = 1; start <= 1000; start++) {
        label_makers_tell(&m, 3, start);
        label_makers_tell(&m, 3, start); // told again when it connects again
    }
    for (uint32_t start = 1; start <= 1000; start++) {
        assert_int_equal(label_makers_find(&m, label(start, 1)),
                         start > 1000 - LABEL_STARTS ? 3 : DIRECTORY_NONE);
    }
    assert_int_equal(m.nodes.count, LABEL_STARTS);
    // another node draws a number that is remembered for node 3: the latest counts, also when node
    // 3 forgets its own
    label_makers_tell(&m, 4, 1000);
    for (uint32_t start = 2001; start <= 2000 + LABEL_STARTS; start++) {
        label_makers_tell(&m, 3, start);
    }
    assert_int_equal(label_makers_find(&m, label(1000, 1)), 4);
    label_makers_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_whose_a_label_is),
        cmocka_unit_test(remembers_the_last_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
