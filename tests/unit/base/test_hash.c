// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include "unit.h"

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void expect_all_different(uint64_t *hashes, size_t n) {
    qsort(hashes, n, sizeof *hashes, by_value);
    for (size_t i = 1; i < n; i++) {
        assert_true(hashes[i] != hashes[i - 1]);
    }
}

// Every length up to 100 on a guard page, zeros and ones: nothing is read past the end, and every
// length counts.
static void lengths_and_borders(void **state) {
    (void)state;
    struct guarded g = guarded_make(128);
    uint8_t bytes[100];
    uint64_t hashes[200];
    for (size_t len = 0; len < 100; len++) {
        memset(bytes, 0, sizeof bytes);
        hashes[len] = hash_bytes(guarded_copy(&g, bytes, len));
        memset(bytes, 0xff, sizeof bytes);
        hashes[100 + len] = hash_bytes(guarded_copy(&g, bytes, len));
    }
    assert_true(hashes[0] == hashes[100]); // both empty
    hashes[100] = ~hashes[0];
    expect_all_different(hashes, 200);
    guarded_free(&g);
}

static void every_bit_counts(void **state) {
    (void)state;
    uint64_t hashes[64 * 8 + 1];
    uint8_t bytes[64];
    for (size_t len = 1; len <= sizeof bytes; len++) {
        memset(bytes, 'x', sizeof bytes);
        size_t n = 0;
        hashes[n++] = hash_bytes(slice_of(bytes, len));
        for (size_t bit = 0; bit < len * 8; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            hashes[n++] = hash_bytes(slice_of(bytes, len));
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        expect_all_different(hashes, n);
    }
}

static void mix_is_one_to_one_and_spreads(void **state) {
    (void)state;
    static uint64_t hashes[100000];
    static uint32_t homes[1024];
    for (uint64_t i = 0; i < 100000; i++) {
        hashes[i] = hash_mix(i << 20);
        homes[hashes[i] & 1023]++;
    }
    for (size_t i = 0; i < 1024; i++) {
        assert_in_range(homes[i], 40, 180); // about 98 each
    }
    expect_all_different(hashes, 100000);
}

// Last: it changes the seed.
static void the_seed_changes_hashes(void **state) {
    (void)state;
    uint64_t before = hash_bytes(slice_text("name"));
    assert_true(before == hash_bytes(slice_text("name")));
    hash_seed();
    uint64_t after = hash_bytes(slice_text("name"));
    assert_true(after != before);
    assert_true(after == hash_bytes(slice_text("name")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_and_borders),
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(mix_is_one_to_one_and_spreads),
        cmocka_unit_test(the_seed_changes_hashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
