// SPDX-License-Identifier: Apache-2.0
// params.c: what a question asks for.
#include "unit.h"

#include "store/query.h"
#include "web/params.h"

enum { NOW = 1763640000 };

static void accepts(const char *query, struct params *out) {
    char why[PARAMS_WHY_BYTES];
    if (!params_parse(query, NOW, out, why)) {
        fail_msg("%s: %s", query, why);
    }
}

static void refuses(const char *query, const char *expected) {
    char why[PARAMS_WHY_BYTES] = "";
    struct params p;
    if (params_parse(query, NOW, &p, why) || !strstr(why, expected)) {
        fail_msg("%s: \"%s\", expected \"%s\"", query, why, expected);
    }
}

static void test_defaults(void **state) {
    (void)state;
    struct params p;
    const char *const none[] = {NULL, ""};
    for (int i = 0; i < 2; i++) {
        accepts(none[i], &p);
        assert_int_equal(p.from_s, NOW - 3600);
        assert_int_equal(p.until_s, NOW);
        assert_false(p.bounded);
        assert_string_equal(p.node, "");
        assert_int_equal(p.most, 50);
    }
}

static void test_what_is_told(void **state) {
    (void)state;
    struct params p;
    accepts("last=60&node=shop%40host&identity=GET%20%2Ftimer&most=7&failed=1&points=100", &p);
    assert_int_equal(p.from_s, NOW - 60);
    assert_true(p.bounded);
    assert_string_equal(p.node, "shop@host");
    assert_string_equal(p.identity, "GET /timer");
    assert_int_equal(p.most, 7);
    assert_int_equal(p.points, 100);
    assert_true(p.failed);
    accepts("node=a&identity=x&node=b%20c&identity=", &p);
    assert_string_equal(p.node, "a" QUERY_OR "b c");
    assert_string_equal(p.identity, "x");
    accepts("from=5&until=10", &p);
    assert_int_equal(p.from_s, 5);
    assert_int_equal(p.until_s, 10);
    accepts("until=100", &p); // the hour before it, but not before time began
    assert_int_equal(p.from_s, 0);
}

static void test_what_is_refused(void **state) {
    (void)state;
    char longest[PARAMS_TEXT_BYTES + 16] = "node=";
    struct params p;
    refuses("from=x", "from: want a whole number");
    refuses("from=", "from: want a whole number");
    refuses("from=-1", "from: want a whole number");
    refuses("until=99999999999999999999", "until: want a whole number");
    refuses("from=10&until=10", "from must be before until");
    refuses("last=0", "last: want");
    refuses("last=60&from=1", "either last, or from and until");
    refuses("last=1&last=2", "last stands twice");
    refuses("identity=a&identity=_total", "identity: _total is all of them");
    accepts("identity=_total_&identity=a_total&identity=_tota", &p);
    accepts("identity=_total", &p);
    refuses("node=a%1Fb", "node: a name with the byte 31");
    refuses("nodes=a", "nodes: nothing of that name");
    refuses("most=1001", "most: want a whole number from 1 to 1000");
    refuses("failed=2", "failed: want");
    refuses("node", "cannot be read");
    char many[32 * PARAMS_NAMES] = "identity=0";
    for (int i = 1; i < PARAMS_NAMES; i++) {
        snprintf(many + strlen(many), sizeof many - strlen(many), "&identity=%d", i);
    }
    accepts(many, &p);
    strcat(many, "&identity=x");
    refuses(many, "identity: at most 16 of them");
    memset(longest + 5, 'a', PARAMS_TEXT_BYTES);
    refuses(longest, "node: at most");
}

// What is asked of a profile.
static void test_of_a_profile(void **state) {
    (void)state;
    struct params p;
    accepts("", &p);
    assert_false(p.metric_told);
    assert_int_equal(p.group, FLAME_UNGROUPED);
    accepts("metric=memory_growth&group=status&part_from=1500&part_until=86400000", &p);
    assert_true(p.metric_told);
    assert_int_equal(p.metric, FLAME_MEMORY_GROWTH);
    assert_int_equal(p.group, FLAME_BY_STATUS);
    assert_int_equal(p.part.from, 1500);
    assert_int_equal(p.part.until, 86400000);
    assert_int_equal(p.other.until, 0);
    accepts("before=1&before_part_from=10&before_part_until=20&part_from=7", &p);
    assert_int_equal(p.part.from, 7);
    assert_int_equal(p.part.until, 0);
    assert_int_equal(p.other.from, 10);
    assert_int_equal(p.other.until, 20);
    refuses("metric=cpu", "metric: want one of wall self");
    refuses("metric=cpu", " binary_release");
    refuses("metric=", "metric: want one of");
    refuses("group=who",
            "group: want one of none identity process status application memory queue");
    refuses("metric=queue&metric=queue", "metric stands twice");
    refuses("part_from=-1", "part_from: want a whole number from 0 to 86400000");
    refuses("part_until=0", "part_until: want a whole number from 1");
    refuses("part_until=86400001", "part_until: want");
    refuses("part_from=1.5", "part_from: want");
    refuses("part_from=20&part_until=20", "part_from must be before part_until");
    refuses("before_part_from=3&before_part_until=2", "before_part_from must be before");
    accepts("through=7&before=3&before_through=5", &p);
    assert_string_equal(p.through, "7");
    assert_string_equal(p.before_through, "5");
    refuses("before_through=5", "before_through goes on from before");
    refuses("through=7&through=8", "through stands twice");
}

static void test_what_is_compared_with(void **state) {
    (void)state;
    struct params p;
    accepts("last=600", &p);
    assert_int_equal(p.before_from_s, NOW - 1200);
    assert_int_equal(p.before_until_s, NOW - 600);
    accepts("last=600&against=1h%20before&tier=db", &p);
    assert_int_equal(p.before_from_s, NOW - 600 - 3600);
    assert_int_equal(p.before_until_s, NOW - 3600);
    assert_string_equal(p.tier, "db");
    accepts("from=1000&until=2000&before_from=3000&before_until=3500", &p);
    assert_int_equal(p.before_from_s, 3000);
    assert_int_equal(p.before_until_s, 3500);
    accepts("from=253402300798&until=253402300799", &p); // the end of times
    refuses("against=tomorrow", "against: tomorrow is none of");
    refuses("last=7200&against=1h+before", "share a part");
    refuses("before_from=1", "either against, or");
    refuses("before_from=1&before_until=2&against=before", "either against, or");
    refuses("before_from=2&before_until=2", "before_from must be before");
    refuses("before_until=x", "before_until: want");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_what_is_told),
        cmocka_unit_test(test_of_a_profile), cmocka_unit_test(test_what_is_compared_with),
        cmocka_unit_test(test_what_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
