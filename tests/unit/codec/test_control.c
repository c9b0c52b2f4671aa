// SPDX-License-Identifier: Apache-2.0
#include "codec/control.h"

#include "base/limits.h"
#include "unit.h"

#define BYTES(text) text, sizeof(text) - 1

static struct control *decode(struct guarded *g, const void *bytes, size_t len) {
    return control_decode(guarded_copy(g, bytes, len));
}

// -- reading --------------------------------------------------------------------------------------

static void frames(void **state) {
    (void)state;
    struct guarded g = guarded_make(LIMIT_CONTROL_BYTES + 8);
    struct slice payload = {0};
    assert_int_equal(control_frame(guarded_copy(&g, BYTES("\0\0\0\3abc")), &payload), 7);
    assert_true(slice_is(payload, "abc"));
    assert_int_equal(control_frame(guarded_copy(&g, BYTES("\0\0\0\3abcd")), &payload), 7);
    for (size_t len = 0; len < 7; len++) {
        assert_int_equal(control_frame(guarded_copy(&g, "\0\0\0\3abc", len), &payload), 0);
    }
    assert_int_equal(control_frame(guarded_copy(&g, BYTES("\0\0\0\0abc")), &payload), -1);
    assert_int_equal(control_frame(guarded_copy(&g, BYTES("\0\x10\0\1")), &payload),
                     -1); // a byte over the limit
    assert_int_equal(control_frame(guarded_copy(&g, BYTES("\0\x10\0\0")), &payload), 0);
    assert_int_equal(control_frame(guarded_copy(&g, BYTES("\xff\xff\xff\xff")), &payload), -1);
    for (size_t len = 1; len < 4; len++) { // an HTTP client is told at its first byte
        assert_int_equal(control_frame(guarded_copy(&g, "GET ", len), &payload), -1);
    }
    uint8_t *bytes = calloc(1, LIMIT_CONTROL_BYTES + 4);
    memcpy(bytes, "\0\x10\0\0", 4);
    assert_int_equal(control_frame(guarded_copy(&g, bytes, LIMIT_CONTROL_BYTES + 3), &payload), 0);
    assert_int_equal(control_frame(guarded_copy(&g, bytes, LIMIT_CONTROL_BYTES + 4), &payload),
                     LIMIT_CONTROL_BYTES + 4);
    assert_int_equal(payload.len, LIMIT_CONTROL_BYTES);
    free(bytes);
    guarded_free(&g);
}

// Bytes as the specification writes them, not as our writer does.
static const char known[] =
    "\x89"            // a map of 9 pairs
    "\xa1t\xa5hello"  // text
    "\xa1s\xd9\x02hi" // text, the longer form
    "\xa1"
    "b\xc4\x03\x00\x01\x02"                      // bytes
    "\xa1n\xff"                                  // -1
    "\xa1u\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"  // the largest int64
    "\xa1y\xc3"                                  // true
    "\xa1l\x93\x81\xa1x\x05\x07\x80"             // a list: a map, a number, an empty map
    "\xa1z\xc0"                                  // nil
    "\xa1m\xd3\x80\x00\x00\x00\x00\x00\x00\x00"; // the smallest int64

static void known_bytes(void **state) {
    (void)state;
    struct guarded g = guarded_make(256);
    struct control *c = decode(&g, BYTES(known));
    assert_non_null(c);
    struct control_map m = control_root(c);
    struct slice s = {0};
    int64_t i = 0;
    bool b = false;
    struct control_list l;
    assert_true(control_get_text(m, "t", &s) && slice_is(s, "hello"));
    assert_true(control_get_text(m, "s", &s) && slice_is(s, "hi"));
    assert_true(control_get_bytes(m, "b", &s) && slice_equal(s, slice_of("\0\1\2", 3)));
    assert_true(control_get_int(m, "n", &i) && i == -1);
    assert_true(control_get_int(m, "u", &i) && i == INT64_MAX);
    assert_true(control_get_int(m, "m", &i) && i == INT64_MIN);
    assert_true(control_get_bool(m, "y", &b) && b);
    assert_true(control_get_list(m, "l", &l));
    assert_int_equal(l.count, 3);
    assert_true(control_get_int(control_list_at(l, 0), "x", &i) && i == 5);
    assert_false(control_get_int(control_list_at(l, 1), "x", &i)); // a number is a map without keys
    assert_false(control_get_int(control_list_at(l, 2), "x", &i));
    assert_false(control_get_int(control_list_at(l, 3), "x", &i)); // past the end
    assert_int_equal(i, 5);
    // another type or no such key: false, and the value stays
    s = slice_text("stays");
    assert_false(control_get_text(m, "n", &s));
    assert_false(control_get_text(m, "b", &s));
    assert_false(control_get_text(m, "z", &s));
    assert_false(control_get_text(m, "none", &s));
    assert_false(control_get_bytes(m, "t", &s));
    assert_true(slice_is(s, "stays"));
    assert_false(control_get_int(m, "t", &i));
    assert_false(control_get_int(m, "y", &i));
    assert_int_equal(i, 5);
    b = true;
    assert_false(control_get_bool(m, "n", &b));
    assert_false(control_get_bool(m, "z", &b));
    assert_true(b);
    assert_false(control_get_list(m, "t", &l));
    assert_int_equal(l.count, 3);
    control_free(c);
    control_free(NULL);
    guarded_free(&g);
}

static void truncated_at_every_length(void **state) {
    (void)state;
    struct guarded g = guarded_make(256);
    for (size_t len = 0; len < sizeof known - 1; len++) {
        assert_null(decode(&g, known, len));
    }
    guarded_free(&g);
}

static void what_is_no_acceptable_map(void **state) {
    (void)state;
    struct guarded g = guarded_make(256);
    assert_null(decode(&g, BYTES("\xdd\x3d\x0a\xdd\x3d\x0a")));
    assert_null(decode(&g, BYTES("\x90")));
    assert_null(decode(&g, BYTES("\x01")));
    assert_null(decode(&g, BYTES("\xa1x")));
    assert_null(decode(&g, BYTES("\x80\x80")));
    assert_null(decode(&g, BYTES("\xc1")));
    struct control *c = decode(&g, BYTES("\x80"));
    assert_non_null(c);
    struct slice s;
    assert_false(control_get_text(control_root(c), "type", &s));
    control_free(c);
    // keys that are no text, numbers past int64, extension types: kept out of the way
    c = decode(&g, BYTES("\x84\x01\x02\xc0\xc0\xa1u\xcf\x80\0\0\0\0\0\0\0\xa1"
                         "e\xd4\x05\x06"));
    assert_non_null(c);
    int64_t i = 3;
    assert_false(control_get_int(control_root(c), "u", &i));
    assert_false(control_get_int(control_root(c), "e", &i));
    assert_int_equal(i, 3);
    control_free(c);
    guarded_free(&g);
}

static void without_memory(void **state) {
    (void)state;
    struct guarded g = guarded_make(256);
    fail_alloc_at(-1);
    control_free(decode(&g, BYTES(known)));
    long all = fail_alloc_count();
    assert_true(all >= 1);
    for (long fail = 0; fail < all; fail++) {
        fail_alloc_at(fail);
        struct control *c = decode(&g, BYTES(known));
        fail_alloc_at(-1);
        assert_null(c);
    }
    guarded_free(&g);
}

// -- writing --------------------------------------------------------------------------------------

static void writes_as_the_specification_says(void **state) {
    (void)state;
    struct buffer out = buffer_make(1000);
    buffer_text(&out, "before");
    struct control_writer w = control_begin(&out, "bye", 5);
    control_text(&w, "reason", slice_text("no"));
    control_int(&w, "i", -33);
    control_bool(&w, "b", false);
    control_number(&w, "d", 1.5);
    control_list(&w, "l", 1);
    control_map(&w, 1);
    control_bytes(&w, "x", slice_of("\0", 1));
    assert_true(control_end(&w));
    static const char expected[] = "before\0\0\0\x2f"
                                   "\x86\xa4type\xa3"
                                   "bye"
                                   "\xa6reason\xa2no"
                                   "\xa1i\xd0\xdf"
                                   "\xa1"
                                   "b\xc2"
                                   "\xa1"
                                   "d\xcb\x3f\xf8\0\0\0\0\0\0"
                                   "\xa1l\x91\x81\xa1x\xc4\x01\0";
    assert_int_equal(out.len, sizeof expected - 1);
    assert_memory_equal(out.data, expected, out.len);
    buffer_free(&out);
}

static void round_trip(void **state) {
    (void)state;
    struct guarded g = guarded_make(4096);
    struct buffer out = buffer_make(100000);
    static const int64_t numbers[] = {
        0,     1,         -1,         127,       128,       -32,  -33,  255,    256,   65535,
        65536, INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN, -128, -129, -32768, -32769};
    enum { N = sizeof numbers / sizeof *numbers };
    char text[300];
    memset(text, 't', sizeof text);
    for (size_t len = 0; len <= sizeof text; len += 15) {
        buffer_reset(&out);
        struct control_writer w = control_begin(&out, "test", 3);
        control_text(&w, "text", slice_of(text, len));
        control_bytes(&w, "bytes", slice_of(text, len));
        control_list(&w, "numbers", N);
        for (int i = 0; i < N; i++) {
            control_map(&w, 1);
            control_int(&w, "n", numbers[i]);
        }
        assert_true(control_end(&w));
        struct slice payload, s;
        assert_int_equal(control_frame(slice_of(out.data, out.len), &payload), out.len);
        struct control *c = decode(&g, payload.data, payload.len);
        assert_non_null(c);
        assert_true(control_get_text(control_root(c), "type", &s) && slice_is(s, "test"));
        assert_true(control_get_text(control_root(c), "text", &s) &&
                    slice_equal(s, slice_of(text, len)));
        assert_true(control_get_bytes(control_root(c), "bytes", &s) &&
                    slice_equal(s, slice_of(text, len)));
        struct control_list l;
        assert_true(control_get_list(control_root(c), "numbers", &l));
        assert_int_equal(l.count, N);
        for (uint32_t i = 0; i < N; i++) {
            int64_t n;
            assert_true(control_get_int(control_list_at(l, i), "n", &n));
            assert_int_equal(n, numbers[i]);
        }
        control_free(c);
        for (size_t cut = 0; cut < payload.len; cut++) {
            assert_null(decode(&g, payload.data, cut));
        }
    }
    buffer_free(&out);
    guarded_free(&g);
}

static void over_the_limit_nothing_is_written(void **state) {
    (void)state;
    // the buffer's cap
    for (size_t cap = 3; cap < 60; cap++) {
        struct buffer out = buffer_make(cap);
        buffer_text(&out, "abc");
        struct control_writer w = control_begin(&out, "note", 1);
        control_text(&w, "text", slice_text("twenty characters ..."));
        bool fits = control_end(&w);
        assert_int_equal(fits, cap >= 3 + 4 + 1 + 5 + 5 + 5 + 22);
        if (!fits) {
            assert_int_equal(out.len, 3);
            assert_false(out.failed);
        }
        assert_memory_equal(out.data, "abc", 3);
        buffer_free(&out);
    }
    // the protocol's
    uint8_t *bytes = calloc(1, LIMIT_CONTROL_BYTES);
    struct buffer out = buffer_make(4 * (size_t)LIMIT_CONTROL_BYTES);
    size_t overhead = 1 + 5 + 2 + 2 + 5; // map, "type", "t", "b", bin 32
    for (size_t over = 0; over < 2; over++) {
        struct control_writer w = control_begin(&out, "t", 1);
        control_bytes(&w, "b", slice_of(bytes, LIMIT_CONTROL_BYTES - overhead + over));
        assert_int_equal(control_end(&w), over == 0);
        assert_int_equal(out.len, LIMIT_CONTROL_BYTES + 4);
    }
    free(bytes);
    buffer_free(&out);
}

// Messages that follow one another in one buffer, without memory at any moment: what was whole
// stays whole.
static void writing_without_memory(void **state) {
    (void)state;
    char text[600];
    memset(text, 'x', sizeof text);
    for (long fail = 0; fail < 6; fail++) {
        struct buffer out = buffer_make(100000);
        fail_alloc_once(fail);
        size_t whole = 0;
        for (int i = 0; i < 20; i++) {
            size_t before = out.len;
            struct control_writer w = control_begin(&out, "note", 1);
            control_text(&w, "text", slice_of(text, sizeof text));
            if (control_end(&w)) {
                whole++;
            } else {
                assert_int_equal(out.len, before);
            }
        }
        fail_alloc_at(-1);
        struct slice rest = slice_of(out.data, out.len), payload;
        for (size_t i = 0; i < whole; i++) {
            long n = control_frame(rest, &payload);
            assert_true(n > 600);
            rest = slice_of(rest.data + n, rest.len - (size_t)n);
        }
        assert_int_equal(rest.len, 0);
        assert_true(whole >= 19);
        buffer_free(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames),
        cmocka_unit_test(known_bytes),
        cmocka_unit_test(truncated_at_every_length),
        cmocka_unit_test(what_is_no_acceptable_map),
        cmocka_unit_test(without_memory),
        cmocka_unit_test(writes_as_the_specification_says),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(over_the_limit_nothing_is_written),
        cmocka_unit_test(writing_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
