// SPDX-License-Identifier: Apache-2.0
#include "base/names.h"

#include "base/limits.h"
#include "unit.h"

static const char *cleaned(struct names *n, const void *text, size_t len) {
    uint32_t id = names_intern(n, slice_of(text, len));
    assert_true(id != NAME_NONE);
    return names_text(n, id);
}

static void a_text_has_one_id(void **state) {
    (void)state;
    struct names n;
    assert_true(names_init(&n, 100));
    uint32_t a = names_intern(&n, slice_text("create"));
    uint32_t b = names_intern(&n, slice_text("delete"));
    assert_int_equal(a, 0);
    assert_int_equal(b, 1);
    assert_int_equal(names_intern(&n, slice_text("create")), a);
    assert_int_equal(names_intern(&n, slice_of(NULL, 0)), 2); // the empty text is a text
    assert_int_equal(names_intern(&n, slice_text("")), 2);
    assert_string_equal(names_text(&n, a), "create");
    assert_string_equal(names_text(&n, 2), "");
    names_free(&n);
}

static void what_is_no_printable_utf8_becomes_a_question_mark(void **state) {
    (void)state;
    static const struct {
        const char *in;
        size_t len;
        const char *out;
    } cases[] = {
        {"a\nb\x7f\x01", 5, "a?b??"},
        {"a\0b", 3, "a?b"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9,
         "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},    // 2, 3 and 4 bytes
        {"\xc3", 1, "?"},                            // cut
        {"\xe2\x82", 2, "??"},                       // cut
        {"\xf0\x9f\x98", 3, "???"},                  // cut
        {"\x80x", 2, "?x"},                          // no lead
        {"\xc0\xaf", 2, "??"},                       // overlong
        {"\xc1\xbf", 2, "??"},                       // overlong
        {"\xe0\x9f\xbf", 3, "???"},                  // overlong
        {"\xf0\x8f\xbf\xbf", 4, "????"},             // overlong
        {"\xed\xa0\x80", 3, "???"},                  // a surrogate
        {"\xed\x9f\xbf", 3, "\xed\x9f\xbf"},         // the last before them
        {"\xf4\x8f\xbf\xbf", 4, "\xf4\x8f\xbf\xbf"}, // U+10FFFF
        {"\xf4\x90\x80\x80", 4, "????"},             // past it
        {"\xf5\x80\x80\x80", 4, "????"},
        {"\xff", 1, "?"},
        {"\xc2\x9b", 2, "??"}, // a control character that steers terminals
        {"\xc2\xa0", 2, "\xc2\xa0"},
        {"\xc3(", 2, "?("}, // the character behind is kept
    };
    struct guarded g = guarded_make(16);
    struct names n;
    assert_true(names_init(&n, 100));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct slice s = guarded_copy(&g, cases[i].in, cases[i].len);
        assert_string_equal(cleaned(&n, s.data, s.len), cases[i].out);
        // found again, whatever it was cleaned from
        assert_int_equal(names_intern(&n, s), names_intern(&n, slice_text(cases[i].out)));
    }
    names_free(&n);
    guarded_free(&g);
}

static void long_texts_are_cut_at_a_character(void **state) {
    (void)state;
    char text[LIMIT_NAME_BYTES + 40];
    struct names n;
    assert_true(names_init(&n, 1000));
    // a character of 2 to 4 bytes at every place around the limit
    static const char *const characters[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (size_t k = 0; k < 3; k++) {
        size_t wide = strlen(characters[k]);
        for (size_t at = LIMIT_NAME_BYTES - 6; at <= LIMIT_NAME_BYTES + 1; at++) {
            memset(text, 'a', sizeof text);
            memcpy(text + at, characters[k], wide);
            const char *out = cleaned(&n, text, sizeof text);
            size_t expected =
                at + wide <= LIMIT_NAME_BYTES || at >= LIMIT_NAME_BYTES ? LIMIT_NAME_BYTES : at;
            assert_int_equal(strlen(out), expected);
            assert_memory_equal(out, text, expected);
        }
    }
    memset(text, 'b', sizeof text);
    assert_int_equal(names_intern(&n, slice_of(text, LIMIT_NAME_BYTES)),
                     names_intern(&n, slice_of(text, LIMIT_NAME_BYTES + 1)));
    names_free(&n);
}

static void the_cap(void **state) {
    (void)state;
    struct names n;
    assert_true(names_init(&n, 2));
    assert_int_equal(names_intern(&n, slice_text("a")), 0);
    assert_int_equal(names_intern(&n, slice_text("b")), 1);
    assert_int_equal(names_intern(&n, slice_text("c")), NAME_NONE);
    assert_int_equal(names_intern(&n, slice_text("b")), 1);
    names_free(&n);
}

static void texts_stay_where_they_are(void **state) {
    (void)state;
    struct names n;
    assert_true(names_init(&n, 5000));
    names_intern(&n, slice_text("first"));
    const char *first = names_text(&n, 0);
    char text[16];
    for (uint32_t i = 1; i < 5000; i++) {
        int len = snprintf(text, sizeof text, "name %u", i);
        assert_int_equal(names_intern(&n, slice_of(text, (size_t)len)), i);
    }
    for (uint32_t i = 1; i < 5000; i++) {
        snprintf(text, sizeof text, "name %u", i);
        assert_string_equal(names_text(&n, i), text);
        assert_int_equal(names_intern(&n, slice_text(text)), i);
    }
    assert_ptr_equal(first, names_text(&n, 0));
    names_free(&n);
}

static void without_memory(void **state) {
    (void)state;
    struct names n;
    for (long fail = 0; fail < 2; fail++) {
        fail_alloc_at(fail);
        assert_false(names_init(&n, 100));
        fail_alloc_at(-1);
    }
    assert_true(names_init(&n, 100));
    char text[8];
    for (uint32_t i = 0; i < 48; i++) { // up to where the map grows
        snprintf(text, sizeof text, "%u", i);
        assert_int_equal(names_intern(&n, slice_text(text)), i);
    }
    for (long fail = 0; fail < 2; fail++) { // the copy, the map
        fail_alloc_at(fail);
        assert_int_equal(names_intern(&n, slice_text("new")), NAME_NONE);
        assert_int_equal(names_intern(&n, slice_text("7")), 7); // a known one needs none
        fail_alloc_at(-1);
    }
    assert_int_equal(names_intern(&n, slice_text("new")), 48);
    assert_string_equal(names_text(&n, 48), "new");
    names_free(&n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_has_one_id),
        cmocka_unit_test(what_is_no_printable_utf8_becomes_a_question_mark),
        cmocka_unit_test(long_texts_are_cut_at_a_character),
        cmocka_unit_test(the_cap),
        cmocka_unit_test(texts_stay_where_they_are),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
