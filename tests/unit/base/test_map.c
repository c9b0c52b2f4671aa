// SPDX-License-Identifier: Apache-2.0
#include "base/map.h"

#include "base/hash.h"
#include "unit.h"

enum { KEYS = 4000 };

// The reference model: what the map must hold for each key of a small universe.
struct model {
    uint64_t keys[KEYS];
    uint32_t values[KEYS]; // MAP_NONE: not there
    uint32_t count;
};

static void agree(const struct map *m, const struct model *model) {
    assert_int_equal(m->count, model->count);
    for (uint32_t i = 0; i < KEYS; i++) {
        assert_int_equal(map_get(m, model->keys[i]), model->values[i]);
    }
}

static void random_operations(struct model *model, uint64_t seed, int steps) {
    struct map m;
    assert_true(map_init(&m));
    for (int step = 0; step < steps; step++) {
        // phases of mostly setting and mostly removing, so that long runs form and are taken apart
        bool filling = step / 3000 % 2 == 0;
        uint32_t i = (uint32_t)(random_u64(&seed) % KEYS);
        if (random_u64(&seed) % 4 < (filling ? 3u : 1u)) {
            uint32_t value = (uint32_t)random_u64(&seed) & 0x7fffffff;
            assert_true(map_set(&m, model->keys[i], value));
            model->count += model->values[i] == MAP_NONE;
            model->values[i] = value;
        } else {
            uint32_t value = model->values[i];
            assert_false(map_remove(&m, model->keys[i], value ^ 1)); // another value stays
            assert_int_equal(map_remove(&m, model->keys[i], value), value != MAP_NONE);
            model->count -= model->values[i] != MAP_NONE;
            model->values[i] = MAP_NONE;
        }
        if (step % 1000 == 0) {
            agree(&m, model);
        }
    }
    agree(&m, model);
    map_clear(&m);
    assert_int_equal(m.count, 0);
    for (uint32_t i = 0; i < KEYS; i++) {
        assert_int_equal(map_get(&m, model->keys[i]), MAP_NONE);
    }
    assert_true(map_set(&m, 7, 8));
    assert_int_equal(map_get(&m, 7), 8);
    map_free(&m);
}

static void behaves_as_a_map(void **state) {
    (void)state;
    static struct model model;
    model.count = 0;
    for (uint32_t i = 0; i < KEYS; i++) {
        model.keys[i] = i; // 0 is a key too
        model.values[i] = MAP_NONE;
    }
    random_operations(&model, 1, 100000);
}

// Keys that all have their home in a few slots at the end of a table of 64: runs that wrap around.
static void runs_that_wrap_around(void **state) {
    (void)state;
    uint64_t keys[40];
    uint32_t n = 0;
    for (uint64_t k = 0; n < 40; k++) {
        if (((uint32_t)hash_mix(k) & 63) >= 60 || ((uint32_t)hash_mix(k) & 63) <= 1) {
            keys[n++] = k;
        }
    }
    for (uint64_t seed = 1; seed < 300; seed++) {
        uint64_t r = seed;
        struct map m;
        assert_true(map_init(&m));
        bool there[40] = {false};
        for (int step = 0; step < 200; step++) {
            uint32_t i = (uint32_t)(random_u64(&r) % 40);
            if (there[i]) {
                assert_true(map_remove(&m, keys[i], i));
            } else {
                assert_true(map_set(&m, keys[i], i));
            }
            there[i] = !there[i];
            for (uint32_t j = 0; j < 40; j++) {
                assert_int_equal(map_get(&m, keys[j]), there[j] ? j : MAP_NONE);
            }
        }
        assert_int_equal(m.mask, 63); // it never grew: the runs did wrap
        map_free(&m);
    }
}

static void a_large_map_gives_memory_back(void **state) {
    (void)state;
    struct map m;
    assert_true(map_init(&m));
    for (uint64_t k = 0; k < 100000; k++) {
        assert_true(map_set(&m, k << 32, (uint32_t)k));
    }
    for (uint64_t k = 0; k < 100000; k++) {
        assert_int_equal(map_get(&m, k << 32), k);
    }
    assert_true(m.mask > 100000);
    // without memory for a smaller table it is cleared all the same
    fail_alloc_at(0);
    map_clear(&m);
    fail_alloc_at(-1);
    assert_int_equal(m.count, 0);
    assert_int_equal(map_get(&m, 5ULL << 32), MAP_NONE);
    map_clear(&m);
    assert_true(m.mask < 4096);
    assert_int_equal(map_get(&m, 5ULL << 32), MAP_NONE);
    map_free(&m);
}

static void without_memory_it_stays_as_it_was(void **state) {
    (void)state;
    struct map m;
    fail_alloc_at(0);
    assert_false(map_init(&m));
    fail_alloc_at(-1);
    assert_true(map_init(&m));
    fail_alloc_at(0);
    uint64_t k = 0;
    while (map_set(&m, k, (uint32_t)k)) {
        k++;
    }
    assert_int_equal(k, 48); // 3/4 of 64
    assert_int_equal(m.count, 48);
    assert_true(map_set(&m, 3, 99)); // a known key needs none
    assert_int_equal(map_get(&m, k), MAP_NONE);
    fail_alloc_at(-1);
    assert_true(map_set(&m, k, 1));
    for (uint64_t i = 0; i < k; i++) {
        assert_int_equal(map_get(&m, i), i == 3 ? 99 : i);
    }
    map_free(&m);
}

// Taken out one by one it keeps its slots until it is fitted, which loses nothing.
static void fits_what_is_left(void **state) {
    (void)state;
    enum { N = 100000, LEFT = 10 };
    struct map m;
    assert_true(map_init(&m));
    for (uint64_t k = 0; k < N; k++) {
        assert_true(map_set(&m, k, (uint32_t)k));
    }
    uint32_t large = m.mask;
    map_fit(&m);
    assert_int_equal(m.mask, large);
    for (uint64_t k = LEFT; k < N; k++) {
        assert_true(map_remove(&m, k, (uint32_t)k));
    }
    assert_int_equal(m.mask, large);
    fail_alloc_at(0);
    map_fit(&m);
    fail_alloc_at(-1);
    assert_int_equal(m.mask, large);
    map_fit(&m);
    assert_true(m.mask < 5000);
    for (uint64_t k = 0; k < 2 * LEFT; k++) {
        assert_int_equal(map_get(&m, k), k < LEFT ? k : MAP_NONE);
    }
    assert_int_equal(m.count, LEFT);
    map_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(behaves_as_a_map),
        cmocka_unit_test(runs_that_wrap_around),
        cmocka_unit_test(a_large_map_gives_memory_back),
        cmocka_unit_test(without_memory_it_stays_as_it_was),
        cmocka_unit_test(fits_what_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
