// SPDX-License-Identifier: Apache-2.0
#include "model/stats/live.h"

#include "model/directory/directory.h"
#include "unit.h"

static void add(struct live *l, uint16_t identity, int64_t duration, bool error) {
    struct request_result r = {.fate = REQUEST_COMPLETE,
                               .identity = identity,
                               .begin = -5,
                               .end = duration - 5,
                               .error = error};
    live_add(l, &r);
}

static void lose(struct live *l, uint16_t identity, enum request_fate fate) {
    struct request_result r = {
        .fate = fate, .identity = identity, .begin = 5, .end = 3, .error = true};
    live_add(l, &r);
}

static void rows(void **state) {
    (void)state;
    struct live *l = live_new();
    assert_non_null(l);
    assert_int_equal(live_count(l), 0);
    for (int round = 0; round < 2; round++) { // a reset forgets everything
        add(l, 7, 1000, false);
        add(l, 5, 2000, true);
        add(l, 7, 4000, true);
        lose(l, 7, REQUEST_INCOMPLETE);
        lose(l, 9, REQUEST_EXPIRED);
        live_refused(l, 0);
        assert_int_equal(live_count(l), 4);
        live_refused(l, 3);
        const struct {
            uint16_t identity;
            uint64_t requests, errors, duration_ns, incomplete, expired;
        } wanted[] = {{IDENTITY_TOTAL, 3, 2, 7000, 4, 1},
                      {7, 2, 1, 5000, 1, 0},
                      {5, 1, 1, 2000, 0, 0},
                      {9, 0, 0, 0, 0, 1},
                      {IDENTITY_UNDEFINED, 0, 0, 0, 3, 0}};
        assert_int_equal(live_count(l), 5);
        for (uint32_t i = 0; i < 5; i++) {
            const struct live_row *row = live_at(l, i);
            assert_int_equal(row->identity, wanted[i].identity);
            assert_int_equal(row->requests, wanted[i].requests);
            assert_int_equal(row->errors, wanted[i].errors);
            assert_int_equal(row->duration_ns, wanted[i].duration_ns);
            assert_int_equal(histogram_count(&row->durations), wanted[i].requests);
            assert_int_equal(row->incomplete, wanted[i].incomplete);
            assert_int_equal(row->expired, wanted[i].expired);
        }
        double p99 = histogram_quantile(&live_at(l, 0)->durations, 0.99);
        assert_true(p99 > 3900 && p99 < 4100);
        live_reset(l);
        assert_int_equal(live_count(l), 0);
    }
    live_free(l);
    live_free(NULL);
}

// As many identities as a directory hands out, and none that it does not.
static void all_identities(void **state) {
    (void)state;
    struct live *l = live_new();
    struct directory d;
    uint16_t last = 0;
    char name[16];
    assert_true(directory_init(&d));
    for (uint32_t i = 0; i < LIMIT_IDENTITIES; i++) {
        snprintf(name, sizeof name, "%u", i);
        last = directory_identity(&d, slice_text(name));
        assert_int_not_equal(last, IDENTITY_OTHER);
    }
    directory_free(&d);
    for (uint16_t i = 1; i <= last; i++) {
        add(l, i, 100, false);
    }
    add(l, (uint16_t)(last + 1), 100, false);
    add(l, DIRECTORY_NONE, 100, false);
    assert_int_equal(live_count(l), last + 1);
    assert_int_equal(live_at(l, 0)->requests, last + 2);
    assert_int_equal(live_at(l, last)->identity, last);
    live_free(l);
}

static void without_memory(void **state) {
    (void)state;
    fail_alloc_at(0);
    assert_null(live_new());
    fail_alloc_at(-1);
    struct live *l = live_new();
    for (int at = 0; at < 3; at++) {
        fail_alloc_at(at);
        add(l, 5, 100, false);
        fail_alloc_at(-1);
    }
    add(l, 5, 100, false);
    assert_true(live_count(l) >= 1 && live_count(l) <= 2);
    assert_true(live_at(l, 0)->requests >= 1 && live_at(l, 0)->requests <= 4);
    live_free(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),
        cmocka_unit_test(all_identities),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
