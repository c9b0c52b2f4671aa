// SPDX-License-Identifier: Apache-2.0
#include "codec/msgpack_check.h"

#include "base/limits.h"
#include "unit.h"

static struct guarded g;

static bool accepts(const void *bytes, size_t len) {
    return msgpack_check(guarded_copy(&g, bytes, len));
}

#define BYTES(text) text, sizeof(text) - 1

// One value of every format of the specification, the smallest and some more: header, then the
// bytes that must follow.
static const struct {
    const char *header;
    size_t header_len;
    size_t body;
} formats[] = {
    {BYTES("\x00"), 0},
    {BYTES("\x7f"), 0},
    {BYTES("\x80"), 0},
    {BYTES("\x90"), 0},
    {BYTES("\xa0"), 0},
    {BYTES("\xa5"), 5},
    {BYTES("\xbf"), 31},
    {BYTES("\xc0"), 0},
    {BYTES("\xc2"), 0},
    {BYTES("\xc3"), 0},
    {BYTES("\xc4\x00"), 0},
    {BYTES("\xc4\xff"), 255},
    {BYTES("\xc5\x01\x00"), 256},
    {BYTES("\xc6\x00\x01\x00\x00"), 65536},
    {BYTES("\xc7\x00"), 1},
    {BYTES("\xc7\xff"), 256},
    {BYTES("\xc8\x01\x00"), 257},
    {BYTES("\xc9\x00\x00\x00\x02"), 3},
    {BYTES("\xca"), 4},
    {BYTES("\xcb"), 8},
    {BYTES("\xcc"), 1},
    {BYTES("\xcd"), 2},
    {BYTES("\xce"), 4},
    {BYTES("\xcf"), 8},
    {BYTES("\xd0"), 1},
    {BYTES("\xd1"), 2},
    {BYTES("\xd2"), 4},
    {BYTES("\xd3"), 8},
    {BYTES("\xd4"), 2},
    {BYTES("\xd5"), 3},
    {BYTES("\xd6"), 5},
    {BYTES("\xd7"), 9},
    {BYTES("\xd8"), 17},
    {BYTES("\xd9\x03"), 3},
    {BYTES("\xda\x00\x03"), 3},
    {BYTES("\xdb\x00\x00\x00\x03"), 3},
    {BYTES("\xdc\x00\x02"), 2}, // the body's zeros are two numbers
    {BYTES("\xdd\x00\x00\x00\x02"), 2},
    {BYTES("\xde\x00\x02"), 4},
    {BYTES("\xdf\x00\x00\x00\x02"), 4},
    {BYTES("\x8f"), 30},
    {BYTES("\x9f"), 15},
    {BYTES("\xe0"), 0},
    {BYTES("\xff"), 0},
};

static void every_format_exactly(void **state) {
    (void)state;
    static uint8_t bytes[70000];
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        size_t len = formats[i].header_len + formats[i].body;
        memset(bytes, 0, len + 1);
        memcpy(bytes, formats[i].header, formats[i].header_len);
        assert_true(accepts(bytes, len));
        assert_false(accepts(bytes, len + 1)); // something behind it
        for (size_t cut = 0; cut < len; cut += cut < 300 ? 1 : 777) {
            assert_false(accepts(bytes, cut));
        }
        assert_false(accepts(bytes, len - 1));
    }
    memset(bytes, 0, 20);
    bytes[0] = 0xc1; // never used
    for (size_t len = 1; len < 20; len++) {
        assert_false(accepts(bytes, len));
    }
}

static void headers_that_claim_what_is_not_there(void **state) {
    (void)state;
    assert_false(accepts(BYTES("\xdd\x3d\x0a\xdd\x3d\x0a"))); // asks the library for 34 GB
    assert_false(accepts(BYTES("\xdf\xff\xff\xff\xff")));
    assert_false(accepts(BYTES("\xdf\x80\x00\x00\x00\x00\x00")));
    assert_false(accepts(BYTES("\xdb\xff\xff\xff\xff")));
    assert_false(accepts(BYTES("\xc9\xff\xff\xff\xff\x00")));
    assert_false(accepts(BYTES("\xc6\xff\xff\xff\xff")));
}

static void depth(void **state) {
    (void)state;
    uint8_t bytes[64];
    memset(bytes, 0x91, sizeof bytes); // arrays of one
    for (size_t deep = 1; deep < 40; deep++) {
        bytes[deep] = 0xc0;
        assert_int_equal(accepts(bytes, deep + 1), deep <= LIMIT_CONTROL_DEPTH);
        bytes[deep] = 0x91;
    }
}

// A value after deep nesting is counted at its own depth again.
static void depth_goes_back(void **state) {
    (void)state;
    assert_true(accepts(BYTES("\x93\x91\x91\x91\xc0\x91\x91\x91\x91\xc0\xc0")));
    assert_false(accepts(BYTES("\x93\x91\x91\x91\xc0\x91\x91\x91\x91\xc0")));
    assert_false(accepts(BYTES("\x93\x91\x91\x91\xc0\x91\x91\x91\x91\xc0\xc0\xc0")));
    assert_true(accepts(BYTES("\x92\x90\x80")));
}

static void elements(void **state) {
    (void)state;
    static uint8_t bytes[3 + 2 * LIMIT_CONTROL_ELEMENTS];
    for (uint32_t n = LIMIT_CONTROL_ELEMENTS - 1; n <= LIMIT_CONTROL_ELEMENTS + 1; n++) {
        bytes[0] = 0xdc;
        bytes[1] = (uint8_t)(n >> 8);
        bytes[2] = (uint8_t)n;
        assert_int_equal(accepts(bytes, 3 + n), n <= LIMIT_CONTROL_ELEMENTS);
    }
    // a pair counts as two, and all arrays and maps count together
    for (uint32_t n = LIMIT_CONTROL_ELEMENTS / 2 - 1; n <= LIMIT_CONTROL_ELEMENTS / 2 + 1; n++) {
        bytes[0] = 0xde;
        bytes[1] = (uint8_t)(n >> 8);
        bytes[2] = (uint8_t)n;
        assert_int_equal(accepts(bytes, 3 + 2 * n), n <= LIMIT_CONTROL_ELEMENTS / 2);
    }
    uint32_t n = LIMIT_CONTROL_ELEMENTS / 2;
    bytes[0] = 0xdc;
    bytes[1] = (uint8_t)(n >> 8);
    bytes[2] = (uint8_t)n;
    memset(bytes + 3, 0, 2 * n); // n arrays of one number
    for (uint32_t i = 0; i < n; i++) {
        bytes[3 + 2 * i] = 0x91;
    }
    assert_true(accepts(bytes, 3 + 2 * n));
    bytes[3] = 0x92;
    memmove(bytes + 5, bytes + 4, 2 * n - 1);
    assert_false(accepts(bytes, 4 + 2 * n));
}

static void any_bytes(void **state) {
    (void)state;
    uint64_t seed = 5;
    uint8_t bytes[64];
    for (int i = 0; i < 200000; i++) {
        size_t len = random_u64(&seed) % sizeof bytes;
        for (size_t k = 0; k < len; k += 8) {
            uint64_t r = random_u64(&seed);
            memcpy(bytes + k, &r, 8);
        }
        accepts(bytes, len); // the guard page watches
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_exactly),
        cmocka_unit_test(headers_that_claim_what_is_not_there),
        cmocka_unit_test(depth),
        cmocka_unit_test(depth_goes_back),
        cmocka_unit_test(elements),
        cmocka_unit_test(any_bytes),
    };
    g = guarded_make(70000);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    guarded_free(&g);
    return failed;
}
