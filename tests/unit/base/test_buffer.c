// SPDX-License-Identifier: Apache-2.0
#include "base/buffer.h"

#include "unit.h"

static void appends_and_reads_back(void **state) {
    (void)state;
    struct buffer b = buffer_make(1000);
    assert_true(buffer_text(&b, "abc"));
    assert_true(buffer_append(&b, "de", 2));
    assert_true(buffer_printf(&b, "%d%s", 42, "x"));
    assert_int_equal(b.len, 8);
    assert_memory_equal(b.data, "abcde42x", 8);
    assert_false(b.failed);
    buffer_free(&b);
    assert_null(b.data);
    assert_int_equal(b.cap, 1000);
    assert_true(buffer_text(&b, "again")); // a freed buffer is an empty one
    buffer_free(&b);
}

static void holds_exactly_its_cap(void **state) {
    (void)state;
    for (size_t cap = 0; cap < 700; cap += 7) {
        struct buffer b = buffer_make(cap);
        for (size_t i = 0; i < cap; i++) {
            assert_true(buffer_append(&b, "x", 1));
        }
        assert_int_equal(b.len, cap);
        assert_true(b.room <= cap || b.room <= 256);
        assert_false(b.failed);
        assert_false(buffer_append(&b, "x", 1));
        assert_true(b.failed);
        assert_int_equal(b.len, cap);
        buffer_reset(&b);
        assert_false(b.failed);
        assert_int_equal(b.len, 0);
        buffer_free(&b);
    }
}

static void one_large_append_up_to_the_cap(void **state) {
    (void)state;
    static uint8_t bytes[5000];
    for (size_t n = 0; n <= 5000; n += 499) {
        struct buffer b = buffer_make(4990);
        assert_int_equal(buffer_append(&b, bytes, n), n <= 4990);
        assert_int_equal(b.len, n <= 4990 ? n : 0);
        buffer_free(&b);
    }
}

static void printed_text_needs_one_byte_more(void **state) {
    (void)state;
    struct buffer b = buffer_make(6);
    assert_true(buffer_printf(&b, "%s", "12345"));
    assert_memory_equal(b.data, "12345", 5);
    assert_false(buffer_printf(&b, "%s", "6"));
    assert_true(b.failed);
    assert_int_equal(b.len, 5);
    assert_memory_equal(b.data, "12345", 5);
    buffer_free(&b);
}

static void huge_requests_do_not_wrap(void **state) {
    (void)state;
    struct buffer b = buffer_make(SIZE_MAX);
    assert_true(buffer_text(&b, "abc"));
    assert_false(buffer_append(&b, "x", SIZE_MAX - 1));
    assert_true(b.failed);
    assert_int_equal(b.len, 3);
    buffer_free(&b);
}

static void consume_takes_from_the_front(void **state) {
    (void)state;
    struct buffer b = buffer_make(100);
    buffer_consume(&b, 0); // nothing was ever appended
    buffer_text(&b, "hello world");
    buffer_consume(&b, 6);
    assert_int_equal(b.len, 5);
    assert_memory_equal(b.data, "world", 5);
    buffer_consume(&b, 5);
    assert_int_equal(b.len, 0);
    buffer_free(&b);
}

static void reserve_then_grow(void **state) {
    (void)state;
    struct buffer b = buffer_make(300);
    uint8_t *p = buffer_reserve(&b, 300);
    assert_non_null(p);
    memset(p, 'y', 300);
    assert_int_equal(b.len, 0);
    buffer_grow(&b, 10);
    assert_int_equal(b.len, 10);
    assert_int_equal(b.data[9], 'y');
    assert_null(buffer_reserve(&b, 291));
    assert_true(b.failed);
    buffer_free(&b);
}

static void without_memory_the_content_stays(void **state) {
    (void)state;
    static char bytes[1000];
    struct buffer b = buffer_make(10000);
    assert_true(buffer_text(&b, "keep"));
    fail_alloc_at(0);
    assert_false(buffer_append(&b, bytes, sizeof bytes));
    fail_alloc_at(-1);
    assert_true(b.failed);
    assert_int_equal(b.len, 4);
    assert_memory_equal(b.data, "keep", 4);
    buffer_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_and_reads_back),
        cmocka_unit_test(holds_exactly_its_cap),
        cmocka_unit_test(one_large_append_up_to_the_cap),
        cmocka_unit_test(printed_text_needs_one_byte_more),
        cmocka_unit_test(huge_requests_do_not_wrap),
        cmocka_unit_test(consume_takes_from_the_front),
        cmocka_unit_test(reserve_then_grow),
        cmocka_unit_test(without_memory_the_content_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
