// SPDX-License-Identifier: Apache-2.0
// Names of nodes.
#include "dist/name.h"

#include "unit.h"

static void reads(const char *text, const char *full, const char *alive, const char *host,
                  bool is_long) {
    struct dist_name name;
    assert_true(dist_name_parse(text, "here", &name));
    assert_string_equal(name.full, full);
    assert_string_equal(name.alive, alive);
    assert_string_equal(name.host, host);
    assert_int_equal(name.is_long, is_long);
}

static void names(void **state) {
    (void)state;
    reads("shop@vm", "shop@vm", "shop", "vm", false);
    reads("shop@127.0.0.1", "shop@127.0.0.1", "shop", "127.0.0.1", true);
    reads("my-app_1.2@a.example.com", "my-app_1.2@a.example.com", "my-app_1.2", "a.example.com",
          true);
    reads("shop", "shop@here", "shop", "here", false);
}

static void none(void **state) {
    static const char *const texts[] = {"",      "@",     "@vm",   "shop@", "a@b@c",
                                        "a b@c", "a@b c", "a@b\n", "a/b@c", "a\x1b[2J@c"};
    struct dist_name name;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (dist_name_parse(texts[i], "here", &name)) {
            fail_msg("%s is read as %s", texts[i], name.full);
        }
    }
}

static void long_ones(void **state) {
    char text[1024];
    struct dist_name name;
    (void)state;
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 0;
    assert_false(dist_name_parse(text, "here", &name));
    text[100] = '@';
    assert_false(dist_name_parse(text, "here", &name));
    text[NODE_NAME_BYTES] = 0;
    assert_false(dist_name_parse(text, "here", &name));
    text[NODE_NAME_BYTES - 1] = 0;
    assert_true(dist_name_parse(text, "here", &name));
    assert_string_equal(name.full, text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(none),
                                       cmocka_unit_test(long_ones)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
