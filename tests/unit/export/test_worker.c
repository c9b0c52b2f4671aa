// SPDX-License-Identifier: Apache-2.0
// How fast a backlog is sent.
#include "unit.h"

#include "base/limits.h"
#include "export/worker.h"

static const int64_t SECOND = 1000000000, MILLISECOND = 1000000;
enum { ROWS = 50000 };

// Sends batches, each of which takes `ms`, until `most_ms` are over. Rows a second.
static int64_t rate(int64_t ms, int64_t most_ms) {
    struct pace p = {0};
    int64_t began = 5 * SECOND, now = began, rows = 0;
    while (now - began < most_ms * MILLISECOND) {
        now += ms * MILLISECOND;
        rows += ROWS;
        int64_t rest = pace_rest(&p, ROWS, now);
        now += rest > 0 ? rest : 0;
    }
    return rows * SECOND / (now - began);
}

static void no_faster_than_allowed(void **state) {
    (void)state;
    enum { MINUTE_MS = 60000, CATCH_UP = LIMIT_EXPORT_CATCH_UP_MS };
    int64_t allowed = LIMIT_EXPORT_ROWS_PER_SECOND;
    // at the begin as if nothing had been sent for that long
    assert_in_range(rate(1, MINUTE_MS), allowed, allowed + allowed * CATCH_UP / MINUTE_MS + 1);
    assert_in_range(rate(99, MINUTE_MS), allowed, allowed + allowed * CATCH_UP / MINUTE_MS + 1);
}

static void what_takes_longer_waits_for_nothing(void **state) {
    (void)state;
    assert_int_equal(rate(200, 60000), ROWS * 5);
}

// Batches of 20 and of 180 ms in turn, of which the rate allows one each 100 ms.
static void a_slow_batch_is_caught_up_on(void **state) {
    (void)state;
    struct pace p = {0};
    int64_t now = 5 * SECOND, rested = 0;
    pace_rest(&p, LIMIT_EXPORT_ROWS_PER_SECOND, now); // the credit of the begin is used up
    for (int i = 0; i < 100; i++) {
        now += (i % 2 ? 20 : 180) * MILLISECOND;
        int64_t rest = pace_rest(&p, LIMIT_EXPORT_ROWS_PER_SECOND / 10, now);
        rest = rest > 0 ? rest : 0;
        now += rest;
        rested += rest;
    }
    assert_int_equal(rested, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_faster_than_allowed),
                                       cmocka_unit_test(what_takes_longer_waits_for_nothing),
                                       cmocka_unit_test(a_slow_batch_is_caught_up_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
