// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include "unit.h"

static void reads_big_endian(void **state) {
    (void)state;
    struct guarded g = guarded_make(16);
    struct slice s = guarded_copy(&g, "\x01\x82\x03\xf4\x05\x06\x07", 7);
    struct cursor c = cursor_of(s.data, s.len);
    assert_int_equal(cursor_u8(&c), 1);
    assert_int_equal(cursor_u16(&c), 0x8203);
    assert_int_equal(cursor_u32(&c), 0xf4050607u);
    assert_int_equal(cursor_left(&c), 0);
    assert_false(c.failed);
    assert_non_null(cursor_claim(&c, 0));
    assert_false(c.failed);
    guarded_free(&g);
}

// Every read of every size on every length too short fails, yields 0, and takes the rest with it.
static void fails_at_the_end_and_stays_failed(void **state) {
    (void)state;
    struct guarded g = guarded_make(16);
    for (size_t len = 0; len < 4; len++) {
        struct slice s = guarded_copy(&g, "\xff\xff\xff\xff", len);
        struct cursor c = cursor_of(s.data, s.len);
        assert_int_equal(cursor_u32(&c), 0);
        assert_true(c.failed);
        assert_int_equal(cursor_left(&c), 0);
        assert_int_equal(cursor_u8(&c), 0);
        assert_null(cursor_claim(&c, 1));
        cursor_claim(&c, 0); // nothing can be had at the end; the failure stays
        assert_true(c.failed);
        c = cursor_of(s.data, s.len);
        if (len < 2) {
            assert_int_equal(cursor_u16(&c), 0);
            assert_true(c.failed);
        }
        c = cursor_of(s.data, s.len);
        if (len < 1) {
            assert_int_equal(cursor_u8(&c), 0);
            assert_true(c.failed);
        }
    }
    guarded_free(&g);
}

static void huge_claims_do_not_wrap(void **state) {
    (void)state;
    struct cursor c = cursor_of("abc", 3);
    cursor_u8(&c);
    assert_null(cursor_claim(&c, SIZE_MAX));
    c = cursor_of("abc", 3);
    cursor_u8(&c);
    assert_null(cursor_claim(&c, SIZE_MAX - 1));
    c = cursor_of("abc", 3);
    assert_null(cursor_claim(&c, 4));
    c = cursor_of("abc", 3);
    assert_non_null(cursor_claim(&c, 3));
}

static void slices_compare(void **state) {
    (void)state;
    assert_true(slice_is(slice_of("abcd", 3), "abc"));
    assert_false(slice_is(slice_of("abcd", 4), "abc"));
    assert_false(slice_is(slice_of("abd", 3), "abc"));
    assert_true(slice_equal(slice_of(NULL, 0), slice_text("")));
    assert_false(slice_equal(slice_of("a\0b", 3), slice_of("a\0c", 3)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_big_endian),
        cmocka_unit_test(fails_at_the_end_and_stays_failed),
        cmocka_unit_test(huge_claims_do_not_wrap),
        cmocka_unit_test(slices_compare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
