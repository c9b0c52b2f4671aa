// SPDX-License-Identifier: Apache-2.0
#include "model/profile/flame.h"

#include "profile_fixture.h"
#include "unit.h"

// Adds a weight of a stack, "a;b;c", of an identity's.
static void add(struct profile *p, const char *identity, const char *stack, uint64_t calls,
                int64_t ns) {
    fixture_weight(p, "mod", identity, stack, calls, ns);
}

static void fill(struct profile *p) {
    assert_true(profile_init(p));
    add(p, "create", "b", 1, 3);
    add(p, "create", "a", 1, 10);
    add(p, "create", "a;c", 2, 5);
    add(p, "create", "a;c;a", 1, 4);
    add(p, "create", "a;c;waiting", 0, 7);
    add(p, "read", "a;c", 1, 100);
    add(p, "read", "a;c;asleep", 0, 50);
}

// "name total self" of each node, a space for each depth.
static const char *drawn(const struct flame_tree *t, bool before) {
    static char text[2048];
    char *to = text;
    for (uint32_t i = 0; i < t->node_count; i++) {
        const struct flame_node *n = &t->nodes[i];
        const struct flame_weight *w = before ? &n->before : &n->weight;
        to += sprintf(to, "%*s%s %d %d\n", (int)n->depth, "", t->frames[n->frame].name,
                      (int)w->total, (int)w->self);
        assert_true(n->end > i && n->end <= t->node_count);
        assert_true(i == 0 || (n->parent < i && t->nodes[n->parent].end >= n->end &&
                               n->depth == t->nodes[n->parent].depth + 1));
    }
    return text;
}

static void check(const struct profile *p, struct flame_options options, const char *expected) {
    struct flame_tree t;
    assert_true(flame_tree_init(&t));
    assert_true(flame_tree_add(&t, p, &options, FLAME_AFTER));
    assert_true(flame_tree_finish(&t));
    assert_string_equal(drawn(&t, false), expected);
    flame_tree_free(&t);
}

static void metrics(void **state) {
    (void)state;
    struct profile p;
    fill(&p);
    check(&p, (struct flame_options){.metric = FLAME_WALL},
          "all 179 0\n a 176 10\n  c 166 105\n   a 4 4\n   waiting 7 7\n   asleep 50 50\n b 3 3\n");
    check(&p, (struct flame_options){.metric = FLAME_WALL, .no_asleep = true},
          "all 129 0\n a 126 10\n  c 116 105\n   a 4 4\n   waiting 7 7\n b 3 3\n");
    check(&p, (struct flame_options){.metric = FLAME_SELF},
          "all 122 0\n a 119 10\n  c 109 105\n   a 4 4\n b 3 3\n");
    check(&p, (struct flame_options){.metric = FLAME_WAITING}, "all 7 0\n a 7 0\n  c 7 7\n");
    check(&p, (struct flame_options){.metric = FLAME_ASLEEP}, "all 50 0\n a 50 0\n  c 50 50\n");
    check(&p, (struct flame_options){.metric = FLAME_GC}, "all 0 0\n");
    check(&p, (struct flame_options){.metric = FLAME_CALLS},
          "all 6 0\n a 5 1\n  c 4 3\n   a 1 1\n b 1 1\n");
    profile_free(&p);
}

static void identities(void **state) {
    (void)state;
    struct profile p;
    fill(&p);
    check(&p, (struct flame_options){.only = "create"},
          "all 29 0\n a 26 10\n  c 16 5\n   a 4 4\n   waiting 7 7\n b 3 3\n");
    check(&p, (struct flame_options){.only = "nobody"}, "all 0 0\n");
    check(&p, (struct flame_options){.group = FLAME_BY_IDENTITY, .metric = FLAME_CALLS},
          "all 6 0\n create 5 0\n  a 4 1\n   c 3 2\n    a 1 1\n  b 1 1\n read 1 0\n  a 1 0\n"
          "   c 1 1\n");
    profile_free(&p);
}

static void processes(void **state) {
    (void)state;
    struct profile p;
    assert_true(profile_init(&p));
    fixture_process(&p, "m", "create", "pool", "a;b", 1, 10);
    fixture_process(&p, "m", "read", "pool", "a;b", 2, 20);
    fixture_process(&p, "m", "read", "writer", "a;b", 4, 30);
    fixture_process(&p, "m", "read", NULL, "a;b", 8, 5);
    check(&p, (struct flame_options){.group = FLAME_BY_PROCESS},
          "all 65 0\n a 5 0\n  b 5 5\n pool 30 0\n  a 30 0\n   b 30 30\n writer 30 0\n"
          "  a 30 0\n   b 30 30\n");
    check(&p, (struct flame_options){.only = "read"}, "all 55 0\n a 55 0\n  b 55 55\n");
    profile_free(&p);
}

static void names_of_metrics(void **state) {
    (void)state;
    for (enum flame_metric m = 0; m < FLAME_METRICS; m++) {
        enum flame_metric parsed;
        assert_true(flame_metric_parse(flame_metric_name(m), &parsed));
        assert_int_equal(parsed, m);
        assert_int_equal(flame_metric_is_time(m), strcmp(flame_metric_unit(m), "ns") == 0);
        assert_true(flame_metric_is_of(m, m < FLAME_SAMPLES ? PROFILE_FULL : PROFILE_SAMPLES));
    }
    enum flame_metric none;
    assert_false(flame_metric_parse("weight", &none));
}

static void two_profiles(void **state) {
    (void)state;
    struct profile before, after;
    fill(&before);
    assert_true(profile_init(&after));
    add(&after, "create", "new", 1, 1); // so that numbers of frames are other ones
    add(&after, "create", "a;c", 4, 20);
    struct flame_tree t;
    struct flame_options options = {.metric = FLAME_CALLS};
    assert_true(flame_tree_init(&t));
    assert_true(flame_tree_add(&t, &after, &options, FLAME_AFTER));
    assert_true(flame_tree_add(&t, &before, &options, FLAME_BEFORE));
    assert_true(flame_tree_finish(&t));
    assert_string_equal(drawn(&t, false), "all 5 0\n a 4 0\n  c 4 4\n   a 0 0\n b 0 0\n new 1 1\n");
    assert_string_equal(drawn(&t, true), "all 6 0\n a 5 1\n  c 4 3\n   a 1 1\n b 1 1\n new 0 0\n");
    flame_tree_free(&t);
    profile_free(&before);
    profile_free(&after);
}

// A function that stands above itself is counted once in its total.
static void functions(void **state) {
    (void)state;
    struct profile p;
    struct flame_tree t;
    struct flame_options options = {.metric = FLAME_WALL};
    fill(&p);
    assert_true(flame_tree_init(&t));
    assert_true(flame_tree_add(&t, &p, &options, FLAME_AFTER));
    assert_true(flame_tree_finish(&t));
    struct flame_function *all = flame_tree_functions(&t);
    assert_non_null(all);
    for (uint32_t i = 0; i < t.frame_count; i++) {
        const char *name = t.frames[i].name;
        assert_int_equal(all[i].frame, i);
        if (strcmp(name, "a") == 0) {
            assert_int_equal(all[i].weight.total, 176);
            assert_int_equal(all[i].weight.self, 14);
        } else if (strcmp(name, "c") == 0) {
            assert_int_equal(all[i].weight.total, 166);
            assert_int_equal(all[i].weight.self, 105);
            assert_string_equal(t.frames[i].module, "mod");
        }
    }
    free(all);
    flame_tree_free(&t);
    profile_free(&p);
}

// Deep and wide, up to the caps; all that was added is in the tree.
static void large(void **state) {
    (void)state;
    struct profile p;
    assert_true(profile_init(&p));
    uint64_t random = 3;
    int64_t sum = 0;
    for (uint32_t i = 0; i < 200000; i++) {
        uint32_t at = STACK_ROOT;
        uint64_t r = random_u64(&random);
        uint32_t depth = i % 1000 == 0 ? 2 * LIMIT_PROFILE_DEPTH : (uint32_t)(r % 12);
        for (uint32_t d = 0; d < depth; d++) {
            char name[32];
            sprintf(name, "f%d", (int)(random_u64(&random) % 20));
            at = stacks_push(&p.stacks, at, fixture_frame(&p, "mod", name));
        }
        profile_add(&p, profile_key(at, (uint16_t)(r >> 32 & 3), PROFILE_NOBODY), 1, 1 + i % 7);
        sum += 1 + i % 7;
    }
    assert_true(p.stacks.full);
    assert_int_equal(p.stacks.stack_count, LIMIT_PROFILE_STACKS);
    struct flame_tree t;
    assert_true(flame_tree_init(&t));
    struct flame_options options = {.metric = FLAME_WALL};
    assert_true(flame_tree_add(&t, &p, &options, FLAME_AFTER));
    assert_true(flame_tree_finish(&t));
    assert_int_equal(t.nodes[0].weight.total, sum);
    assert_true(t.deepest <= LIMIT_PROFILE_DEPTH + 1);
    for (uint32_t i = 1; i < t.node_count; i++) {
        const struct flame_node *n = &t.nodes[i], *above = n + 1;
        int64_t total = n->weight.self;
        for (uint32_t child = i + 1; child < n->end; child = t.nodes[child].end) {
            total += t.nodes[child].weight.total;
        }
        assert_int_equal(total, n->weight.total);
        assert_true(n->end == i + 1 || above->parent == i);
    }
    flame_tree_free(&t);
    profile_free(&p);
}

static void without_memory(void **state) {
    (void)state;
    struct profile p;
    fill(&p);
    struct flame_options options = {.group = FLAME_BY_IDENTITY};
    long all = -1;
    for (long fail = -1; fail < all || fail == -1; fail++) {
        struct flame_tree t;
        fail_alloc_at(fail);
        bool ok = flame_tree_init(&t) && flame_tree_add(&t, &p, &options, FLAME_AFTER) &&
                  flame_tree_finish(&t);
        struct flame_function *functions = ok ? flame_tree_functions(&t) : NULL;
        all = fail == -1 ? fail_alloc_count() : all;
        assert_int_equal(functions != NULL, fail == -1);
        free(functions);
        fail_alloc_at(-1);
        flame_tree_free(&t);
    }
    assert_in_range(all, 8, 100);
    profile_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics),      cmocka_unit_test(identities),
        cmocka_unit_test(processes),    cmocka_unit_test(names_of_metrics),
        cmocka_unit_test(two_profiles), cmocka_unit_test(functions),
        cmocka_unit_test(large),        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
