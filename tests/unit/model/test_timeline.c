// SPDX-License-Identifier: Apache-2.0
#include "model/profile/timeline.h"

#include "base/limits.h"
#include "unit.h"

static struct timeline made(void) {
    struct timeline t = {0};
    uint16_t a = timeline_line(&t, 1), b = timeline_line(&t, 1ULL << 40 | 77);
    const struct timeline_event events[] = {{0, 1, a, TIMELINE_RUNS},
                                            {1000, 2, a, TIMELINE_RUNS},
                                            {1000, 2, a, TIMELINE_OUT},
                                            {123456789012, 9, b, TIMELINE_RUNS},
                                            {123456789999, 0, b, TIMELINE_LEFT},
                                            {123456790000, 2, a, TIMELINE_COLLECTS}};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        timeline_add(&t, &events[i], 100);
    }
    return t;
}

static void there_and_back(void **state) {
    (void)state;
    struct timeline t = made(), u;
    struct buffer b = buffer_make(1000);
    assert_int_equal(t.count, 6);
    assert_true(timeline_pack(&t, &b));
    assert_true(timeline_unpack(slice_of(b.data, b.len), 10, &u));
    assert_int_equal(u.count, t.count);
    assert_int_equal(u.lines, t.lines);
    assert_memory_equal(u.pids, t.pids, t.lines * sizeof *t.pids);
    for (uint32_t i = 0; i < t.count; i++) {
        assert_int_equal(u.events[i].time, t.events[i].time);
        assert_int_equal(u.events[i].stack, t.events[i].stack);
        assert_int_equal(u.events[i].line, t.events[i].line);
        assert_int_equal(u.events[i].state, t.events[i].state);
    }
    assert_false(u.cut);
    timeline_free(&u);
    assert_false(timeline_unpack(slice_of(b.data, b.len), 9, &u)); // a stack too many
    timeline_free(&u);
    timeline_free(&t);
    buffer_free(&b);
}

// A long one gives its memory back when it is cleared: there are as many as requests.
static void cleared(void **state) {
    (void)state;
    struct timeline t = made();
    timeline_clear(&t);
    assert_int_equal(t.count + t.lines, 0);
    timeline_free(&t);
    t = made();
    for (uint32_t i = 0; i < LIMIT_TIMELINE_EVENTS; i++) {
        struct timeline_event e = {200000000000 + i, i, 0, TIMELINE_RUNS};
        timeline_add(&t, &e, LIMIT_TIMELINE_EVENTS);
    }
    assert_int_equal(t.count, LIMIT_TIMELINE_EVENTS);
    assert_true(t.cut);
    timeline_clear(&t);
    assert_int_equal(t.count + t.lines + t.room, 0);
    assert_false(t.cut);
    timeline_free(&t);
}

// Cut anywhere, or with something behind it, it is refused; nothing is read past its end.
static void damaged(void **state) {
    (void)state;
    struct timeline t = made(), u;
    struct buffer b = buffer_make(1000);
    struct guarded g = guarded_make(1000);
    assert_true(timeline_pack(&t, &b));
    for (size_t len = 0; len < b.len; len++) {
        assert_false(timeline_unpack(guarded_copy(&g, b.data, len), 10, &u));
        timeline_free(&u);
    }
    buffer_append(&b, "", 1);
    assert_false(timeline_unpack(guarded_copy(&g, b.data, b.len), 10, &u));
    timeline_free(&u);
    uint64_t random = 7;
    for (int i = 0; i < 20000; i++) {
        uint8_t bytes[64];
        size_t len = random_u64(&random) % sizeof bytes;
        for (size_t k = 0; k < len; k++) {
            bytes[k] = (uint8_t)(random_u64(&random) % (i % 2 ? 256 : 6));
        }
        timeline_unpack(guarded_copy(&g, bytes, len), 10, &u);
        timeline_free(&u);
    }
    guarded_free(&g);
    timeline_free(&t);
    buffer_free(&b);
}

static void caps(void **state) {
    (void)state;
    struct timeline t = {0};
    for (uint32_t i = 0; i < LIMIT_TIMELINE_LINES; i++) {
        assert_int_equal(timeline_line(&t, i), i);
    }
    assert_false(t.cut);
    assert_int_equal(timeline_line(&t, 1), UINT16_MAX);
    assert_true(t.cut);
    timeline_clear(&t);
    struct timeline_event e = {0};
    for (int i = 0; i < 6; i++) {
        timeline_add(&t, &e, 5);
    }
    assert_int_equal(t.count, 5);
    assert_true(t.cut);
    timeline_free(&t);
}

static void without_memory(void **state) {
    (void)state;
    struct timeline t = {0};
    fail_alloc_at(0);
    assert_int_equal(timeline_line(&t, 1), UINT16_MAX);
    fail_alloc_at(-1);
    timeline_clear(&t);
    struct timeline_event e = {.line = timeline_line(&t, 1)};
    fail_alloc_at(0);
    timeline_add(&t, &e, 5);
    fail_alloc_at(-1);
    assert_true(t.cut);
    timeline_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back), cmocka_unit_test(cleared),
                                       cmocka_unit_test(damaged), cmocka_unit_test(caps),
                                       cmocka_unit_test(without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
