// SPDX-License-Identifier: Apache-2.0
#include "model/directory/paths.h"

#include "base/limits.h"
#include "unit.h"

static void positions(void **state) {
    (void)state;
    struct paths p;
    assert_true(paths_init(&p));
    uint32_t a = paths_below(&p, 0, PATH_ROOT, 1), b = paths_below(&p, 0, PATH_ROOT, 2);
    uint32_t ab = paths_below(&p, 0, a, 2), ba = paths_below(&p, 0, b, 1),
             aba = paths_below(&p, 0, ab, 1);
    const uint32_t ids[] = {a, b, ab, ba, aba};
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(ids[i], i + 1);
    }
    assert_int_equal(p.count, 5);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(paths_below(&p, 0, PATH_ROOT, 1), a);
        assert_int_equal(paths_below(&p, 0, PATH_ROOT, 2), b);
        assert_int_equal(paths_below(&p, 0, a, 2), ab);
        assert_int_equal(paths_below(&p, 0, b, 1), ba);
        assert_int_equal(paths_below(&p, 0, ab, 1), aba);
    }
    assert_int_equal(p.count, 5);
    assert_true(p.all[a].parent == PATH_ROOT && p.all[a].tier == 1 && p.all[a].depth == 1);
    assert_true(p.all[aba].parent == ab && p.all[aba].tier == 1 && p.all[aba].depth == 3);
    paths_free(&p);
}

// More parents than are remembered, with the same tier below each.
static void many_parents(void **state) {
    (void)state;
    struct paths p;
    assert_true(paths_init(&p));
    enum { MANY = 3000, TIER = MANY + 1 };
    for (int again = 0; again < 2; again++) {
        for (uint16_t tier = 1; tier <= MANY; tier++) {
            assert_int_equal(paths_below(&p, 0, PATH_ROOT, tier), tier);
        }
        for (uint32_t parent = 1; parent <= MANY; parent++) {
            assert_int_equal(paths_below(&p, 0, parent, TIER), MANY + parent);
        }
        // two that may stand at one place, in turns
        for (uint32_t parent = 1; parent <= MANY - 1024; parent++) {
            assert_int_equal(paths_below(&p, 0, parent + 1024, TIER), MANY + parent + 1024);
            assert_int_equal(paths_below(&p, 0, parent, TIER), MANY + parent);
        }
    }
    paths_free(&p);
}

static void direct_recursion_is_one_position(void **state) {
    (void)state;
    struct paths p;
    assert_true(paths_init(&p));
    uint32_t a = paths_below(&p, 0, PATH_ROOT, 1);
    assert_int_equal(paths_below(&p, 0, a, 1), a);
    uint32_t ab = paths_below(&p, 0, a, 2);
    assert_int_equal(paths_below(&p, 0, ab, 2), ab);
    uint32_t aba = paths_below(&p, 0, ab, 1);
    assert_true(aba != a && aba != ab);
    assert_int_equal(p.count, 3);
    paths_free(&p);
}

static void deep(void **state) {
    (void)state;
    struct paths p;
    assert_true(paths_init(&p));
    uint32_t at = PATH_ROOT;
    for (uint16_t depth = 1; depth <= LIMIT_PATH_DEPTH; depth++) {
        uint32_t below = paths_below(&p, 0, at, 1 + depth % 2);
        assert_true(below != at && below != PATH_OTHER);
        assert_int_equal(p.all[below].depth, depth);
        at = below;
    }
    for (uint16_t tier = 1; tier < 5; tier++) {
        assert_int_equal(paths_below(&p, 0, at, tier), at);
    }
    assert_int_equal(p.count, LIMIT_PATH_DEPTH);
    paths_free(&p);
}

static void the_cap(void **state) {
    (void)state;
    struct paths p;
    assert_true(paths_init(&p));
    uint32_t n = 0;
    for (uint16_t a = 1; n < LIMIT_PATHS; a++) {
        uint32_t parent = paths_below(&p, 0, PATH_ROOT, a);
        assert_int_equal(parent, ++n);
        for (uint16_t b = 1001; b < 1100 && n < LIMIT_PATHS; b++) {
            assert_int_equal(paths_below(&p, 0, parent, b), ++n);
        }
    }
    assert_int_equal(paths_below(&p, 0, PATH_ROOT, 999), PATH_OTHER);
    // all that lies below such a one
    assert_int_equal(paths_below(&p, 0, PATH_OTHER, 1), PATH_OTHER);
    assert_int_equal(paths_below(&p, 0, LIMIT_PATHS, 999), PATH_OTHER);
    assert_int_equal(p.count, LIMIT_PATHS);
    n = 0;
    for (uint16_t a = 1; n < LIMIT_PATHS; a++) { // known ones stay
        uint32_t parent = paths_below(&p, 0, PATH_ROOT, a);
        assert_int_equal(parent, ++n);
        for (uint16_t b = 1001; b < 1100 && n < LIMIT_PATHS; b++) {
            assert_int_equal(paths_below(&p, 0, parent, b), ++n);
        }
    }
    paths_free(&p);
}

// A node may have its share of new paths; those that others have already cost nothing.
static void a_share_for_each_node(void **state) {
    (void)state;
    enum { HOG = 7, OTHER = 8 };
    struct paths p;
    assert_true(paths_init(&p));
    p.shared = true;
    uint32_t known = paths_below(&p, HOG, PATH_ROOT, 1);
    for (uint16_t tier = 2; tier < LIMIT_PATHS; tier++) {
        paths_below(&p, HOG, PATH_ROOT, tier);
    }
    assert_int_equal(paths_count(&p), LIMIT_PATHS / 4 * 3);
    assert_true(p.refused);
    assert_int_equal(paths_below(&p, HOG, known, 5), PATH_OTHER);
    for (uint16_t tier = 0; tier < 1800; tier++) {
        assert_true(paths_below(&p, OTHER, known, 20000 + tier) != PATH_OTHER);
    }
    assert_int_equal(p.own[OTHER], 1800);
    paths_disown(&p, HOG);
    assert_int_equal(p.own[HOG], 0);
    assert_int_equal(paths_below(&p, HOG, PATH_ROOT, 2), 2);
    paths_free(&p);
}

// What is not in use is given back, and its id is another path's then; what lies above one in use
// stays.
static void given_back(void **state) {
    (void)state;
    enum { NODE = 7 };
    static bool used[LIMIT_PATHS + 1];
    struct paths p;
    assert_true(paths_init(&p));
    p.shared = true;
    uint32_t a = paths_below(&p, NODE, PATH_ROOT, 1), ab = paths_below(&p, NODE, a, 2),
             abc = paths_below(&p, NODE, ab, 3);
    for (uint32_t round = 0; round < 50; round++) {
        uint16_t tier = (uint16_t)(100 + round);
        for (uint32_t i = 0; i < 1000; i++) {
            uint32_t id =
                paths_below(&p, NODE, i % 2 ? abc : PATH_ROOT, (uint16_t)(100 + round * 1000 + i));
            assert_true(id != PATH_OTHER && id != a && id != ab && id != abc);
        }
        assert_int_equal(paths_count(&p), 1003);
        uint32_t other = paths_below(&p, NODE, abc, tier), generation = p.all[other].generation;
        memset(used, 0, sizeof used);
        used[abc] = true;
        paths_forget(&p, 0, used);
        assert_int_equal(paths_count(&p), 3);
        assert_int_equal(p.own[NODE], 3);
        assert_true(used[a] && used[ab] && !used[other]);
        assert_int_equal(paths_below(&p, NODE, PATH_ROOT, 1), a);
        assert_int_equal(paths_below(&p, NODE, ab, 3), abc);
        assert_int_not_equal(p.all[other].generation, generation);
    }
    assert_int_equal(p.count, 1004);
    paths_free(&p);
}

static void without_memory(void **state) {
    (void)state;
    struct paths p;
    fail_alloc_at(-1);
    assert_true(paths_init(&p));
    long all = fail_alloc_count();
    paths_free(&p);
    for (long fail = 0; fail < all; fail++) {
        fail_alloc_at(fail);
        assert_false(paths_init(&p));
        fail_alloc_at(-1);
        assert_null(p.all);
    }
    // when the index cannot grow the path is one of the others, and gets its number later
    assert_true(paths_init(&p));
    uint32_t others = 0;
    for (uint16_t tier = 1; tier < 1000; tier++) {
        fail_alloc_at(0);
        uint32_t id = paths_below(&p, 0, PATH_ROOT, tier);
        fail_alloc_at(-1);
        others += id == PATH_OTHER;
        assert_int_equal(paths_below(&p, 0, PATH_ROOT, tier), tier);
    }
    assert_in_range(others, 3, 8);
    paths_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions),
        cmocka_unit_test(many_parents),
        cmocka_unit_test(direct_recursion_is_one_position),
        cmocka_unit_test(deep),
        cmocka_unit_test(the_cap),
        cmocka_unit_test(a_share_for_each_node),
        cmocka_unit_test(given_back),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
