// SPDX-License-Identifier: Apache-2.0
#include "base/slab.h"

#include <sys/mman.h>
#include <unistd.h>

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

// Fewer for now: not when more are in use, and no one takes another one then.
static void fewer_for_now(void **state) {
    (void)state;
    struct slab s;
    uint32_t own = 0;
    slab_init(&s, 8, 10);
    for (int i = 0; i < 6; i++) {
        assert_int_not_equal(slab_take_own(&s, &own, false), SLAB_NONE);
    }
    assert_false(slab_limit(&s, 5));
    assert_true(slab_limit(&s, 6));
    assert_int_equal(slab_take(&s), SLAB_NONE);
    slab_give_own(&s, &own, 3);
    assert_int_equal(slab_take_own(&s, &own, true), SLAB_NONE); // it has its share
    assert_int_equal(slab_take(&s), 3);
    assert_int_equal(slab_take(&s), SLAB_NONE);
    assert_true(slab_limit(&s, SLAB_NONE));
    for (int i = 6; i < 10; i++) {
        assert_int_equal(slab_take(&s), i);
    }
    assert_int_equal(slab_take(&s), SLAB_NONE);
    slab_free(&s);
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

// Bytes of the slab's records that are in memory.
static size_t resident(const struct slab *s) {
    static unsigned char pages[64 << 10];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = 0;
    uintptr_t first = (uintptr_t)s->records / page * page;
    size_t bytes = (uintptr_t)s->records + s->size * s->cap - first;
    assert_true(bytes / page < sizeof pages);
    assert_int_equal(mincore((uint8_t *)s->records - ((uintptr_t)s->records - first), bytes, pages),
                     0);
    for (size_t i = 0; i <= (bytes - 1) / page; i++) {
        count += pages[i] & 1;
    }
    return count * page;
}

// After a burst its memory goes back, whatever is still in use among it; that stays, and the rest
// can be taken again.
static void a_burst_gives_memory_back(void **state) {
    (void)state;
    enum { N = 300000, EVERY = 997 };
    static bool out[N];
    struct slab s;
    slab_init(&s, 48, N);
    for (uint32_t i = 0; i < N; i++) {
        memset(slab_at(&s, slab_take(&s)), (int)(i % 251) + 1, 48);
    }
    slab_trim(&s);
    assert_true(resident(&s) >= N * 48ULL);
    for (uint32_t i = 0; i < N; i++) {
        if (i % EVERY != 0) {
            slab_give(&s, i);
        }
    }
    for (int second = 0; second < 10; second++) {
        slab_trim(&s);
    }
    assert_true(resident(&s) < N / EVERY * 2 * 4096); // a page or two for each that stays
    uint32_t used = s.used;
    for (uint32_t i = 0; i < N; i += EVERY) {
        const uint8_t *p = slab_at(&s, i);
        assert_true(p[0] == i % 251 + 1 && p[47] == i % 251 + 1);
        out[i] = true;
    }
    for (uint32_t i = used; i < N; i++) {
        uint32_t index = slab_take(&s);
        assert_true(index < N && !out[index]);
        out[index] = true;
        memset(slab_at(&s, index), 0xff, 48);
    }
    assert_int_equal(slab_take(&s), SLAB_NONE);
    assert_int_equal(s.used, N);
    slab_free(&s);
}

// A load that comes and goes by the second keeps what it has; a small slab always does.
static void a_steady_load_keeps_memory(void **state) {
    (void)state;
    enum { N = 200000 };
    struct slab s;
    slab_init(&s, 48, N);
    for (int second = 0; second < 20; second++) {
        for (uint32_t i = s.used; i < (second % 3 == 0 ? N : 10); i++) {
            slab_take(&s);
        }
        for (uint32_t i = s.used; second % 3 != 0 && i > 10; i--) {
            slab_give(&s, i - 1);
        }
        slab_trim(&s);
        assert_int_equal(s.colds, 0);
    }
    slab_free(&s);
}

// One who wants all has three quarters of a shared pool, and others find room.
static void nobody_takes_all_of_a_shared_slab(void **state) {
    (void)state;
    enum { CAP = 1000, USERS = 4 };
    struct slab s;
    uint32_t own[USERS] = {0};
    slab_init(&s, 8, CAP);
    while (slab_take_own(&s, &own[0], true) != SLAB_NONE) {
    }
    assert_int_equal(own[0], 750);
    while (slab_take_own(&s, &own[1], true) != SLAB_NONE) {
    }
    assert_int_equal(own[1], 188);
    assert_true(slab_take_own(&s, &own[2], true) != SLAB_NONE);
    slab_give_own(&s, &own[2], s.made - 1);
    assert_int_equal(own[2], 0);
    // What is given back goes to those who have less, until all have the same.
    for (int round = 0; round < 5000; round++) {
        for (int user = 0; user < USERS; user++) {
            if (own[user] > 0 && round % 2) {
                own[user]--; // of whichever record: only the counts matter
                s.used--;
                s.made--;
            }
        }
        for (int user = USERS - 1; user >= 0; user--) {
            slab_take_own(&s, &own[user], true);
            slab_take_own(&s, &own[user], true);
        }
    }
    for (int user = 0; user < USERS; user++) {
        assert_true(own[user] >= 215 && own[user] <= 245); // about 3/13
    }
    while (slab_take_own(&s, &own[0], false) != SLAB_NONE) { // who is alone may
    }
    assert_int_equal(s.used, CAP);
    slab_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_apart_and_stay),
        cmocka_unit_test(fewer_for_now),
        cmocka_unit_test(records_are_aligned_for_anything),
        cmocka_unit_test(random_takes_and_gives),
        cmocka_unit_test(without_memory),
        cmocka_unit_test(a_burst_gives_memory_back),
        cmocka_unit_test(a_steady_load_keeps_memory),
        cmocka_unit_test(nobody_takes_all_of_a_shared_slab),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
