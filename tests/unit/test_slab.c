#include "base/slab.h"

#include "unit.h"

static void records_are_apart_and_stay(void **state) {
    (void)state;
    enum { N = 5000 };
    for (size_t size = 1; size < 40; size += 3) {
        struct slab s;
        slab_init(&s, size, N);
        for (uint32_t i = 0; i < N; i++) {
            uint32_t index = slab_take(&s);
            assert_int_equal(index, i);
            memset(slab_at(&s, index), (int)(i & 0xff), size);
        }
        assert_int_equal(slab_take(&s), SLAB_NONE); // the cap
        assert_int_equal(s.used, N);
        for (uint32_t i = 0; i < N; i++) {
            const uint8_t *p = slab_at(&s, i);
            for (size_t j = 0; j < size; j++) {
                assert_int_equal(p[j], i & 0xff);
            }
        }
        slab_free(&s);
        assert_int_equal(s.used, 0);
    }
}

static void records_are_aligned_for_anything(void **state) {
    (void)state;
    struct slab s;
    slab_init(&s, 20, 10);
    for (int i = 0; i < 10; i++) {
        assert_int_equal((uintptr_t)slab_at(&s, slab_take(&s)) % 8, 0);
    }
    slab_free(&s);
}

// Takes and gives at random against a list of what is out: no index is handed out twice.
static void random_takes_and_gives(void **state) {
    (void)state;
    enum { CAP = 3000 };
    static bool out[CAP];
    static uint32_t list[CAP];
    uint32_t n = 0;
    uint64_t seed = 42;
    struct slab s;
    slab_init(&s, 16, CAP);
    for (int step = 0; step < 200000; step++) {
        if (random_u64(&seed) % 100 < (step / 20000 % 2 ? 40u : 60u)) {
            uint32_t index = slab_take(&s);
            if (n == CAP) {
                assert_int_equal(index, SLAB_NONE);
                continue;
            }
            assert_true(index < CAP);
            assert_false(out[index]);
            out[index] = true;
            list[n++] = index;
            memcpy(slab_at(&s, index), &index, sizeof index);
        } else if (n > 0) {
            uint32_t i = (uint32_t)(random_u64(&seed) % n);
            uint32_t index = list[i], content;
            memcpy(&content, slab_at(&s, index), sizeof content);
            assert_int_equal(content, index);
            slab_give(&s, index);
            out[index] = false;
            list[i] = list[--n];
        }
        assert_int_equal(s.used, n);
    }
    slab_free(&s);
}

static void without_memory(void **state) {
    (void)state;
    struct slab s;
    slab_init(&s, 8, 5000);
    fail_alloc_at(0);
    assert_int_equal(slab_take(&s), SLAB_NONE);
    fail_alloc_at(-1);
    assert_int_equal(s.used, 0);
    assert_int_equal(slab_take(&s), 0);
    fail_alloc_at(0);
    for (uint32_t i = 1; i < 5000; i++) { // needs no more
        assert_int_equal(slab_take(&s), i);
    }
    fail_alloc_at(-1);
    slab_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_apart_and_stay),
        cmocka_unit_test(records_are_aligned_for_anything),
        cmocka_unit_test(random_takes_and_gives),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
