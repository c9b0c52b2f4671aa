// SPDX-License-Identifier: Apache-2.0
#include "tool_fixture.h"

#include "tool/command.h"
#include "tool/node.h"

static void meant(void **state) {
    (void)state;
    const struct {
        const char *full, *text;
        bool is;
    } cases[] = {{"shop@web1.example.org", "shop@web1.example.org", true},
                 {"shop@web1.example.org", "shop@web1", true},
                 {"shop@web1.example.org", "shop@web1.example", true},
                 {"shop@web1.example.org", "shop", true},
                 {"shop@web1.example.org", "shop@web", false},
                 {"shop@web1.example.org", "sho", false},
                 {"shop@web1.example.org", "shop@", false},
                 {"shop@web1.example.org", "", false},
                 {"shop@web1.example.org", "shop@web1.example.org.", false},
                 {"shop@web1", "shop@web1.example.org", false},
                 {"shop.a@web1", "shop", false},
                 {"shop.a@web1", "shop.a", true},
                 {"shop", "shop", true},
                 {"shop@web1.example.org", "web1", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (node_meant(cases[i].full, cases[i].text) != cases[i].is) {
            fail_msg("%s as %s", cases[i].full, cases[i].text);
        }
    }
}

static void short_names(void **state) {
    (void)state;
    const char *const cases[][2] = {{"shop@web1.example.org", "shop@web1"},
                                    {"shop@web1", "shop@web1"},
                                    {"shop@10.0.0.7", "shop@10.0.0.7"},
                                    {"shop.a@web1.b", "shop.a@web1"},
                                    {"nohost.x", "nohost.x"},
                                    {"", ""},
                                    {"shop@", "shop@"}};
    char out[NODE_TEXT_BYTES], huge[400];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(node_short(cases[i][0], out), cases[i][1]);
    }
    memset(huge, 'n', sizeof huge);
    huge[sizeof huge - 1] = 0;
    assert_int_equal(strlen(node_short(huge, out)), NODE_TEXT_BYTES - 1);
}

static void shown_names(void **state) {
    (void)state;
    struct node_names names = {0};
    const char *const all[] = {"shop@web1.example.org", "shop@web2.example.org",
                               "db@web1.example.org",   "db@web1.example.com",
                               "shop@web1.example.org", "db@web1.example.net",
                               "shop@10.0.0.7"};
    const char *const shown[] = {"shop@web1",           "shop@web2", "db@web1.example.org",
                                 "db@web1.example.com", "shop@web1", "db@web1.example.net",
                                 "shop@10.0.0.7"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        node_names_add(&names, all[i]);
    }
    assert_int_equal(names.count, 6);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_string_equal(node_names_shown(&names, all[i]), shown[i]);
    }
    assert_string_equal(node_names_shown(&names, "other@web1.example.org"),
                        "other@web1.example.org");
    // of more than can be known those that come later are whole
    static char many[LIMIT_NODES + 2][32];
    names.count = 0;
    for (uint32_t i = 0; i < LIMIT_NODES + 2; i++) {
        snprintf(many[i], sizeof many[i], "n%u@h.example.org", i);
        node_names_add(&names, many[i]);
    }
    assert_string_equal(node_names_shown(&names, many[LIMIT_NODES - 1]), "n249@h");
    assert_string_equal(node_names_shown(&names, many[LIMIT_NODES]), "n250@h.example.org");
}

static void fill(void) {
    static const char *const nodes[] = {"shop@web1.example.org", "shop@web2.example.org",
                                        "db@web1.example.org", "db@web1.example.com", "cache@web1"};
    struct stats *batch = stats_new();
    for (uint32_t i = 0; i < 5; i++) {
        struct kept_request r = fixture_request(1763640000, "order", KEPT_OVER, 1000000 + i, 1);
        r.node = directory_node(&fixture_names, slice_text(nodes[i]));
        fixture_keep(batch, &r);
    }
    fixture_write(batch);
}

static void expect_found(const char *text, const char *expected) {
    char found[NODE_TEXT_BYTES];
    const char *node;
    struct store *s = fixture_reader();
    assert_int_equal(node_find("slow", s, text, found, &node), EXIT_SUCCESS);
    assert_string_equal(node, expected);
    store_close(s);
}

static void finds(void **state) {
    (void)state;
    fill();
    expect_found("shop@web1", "shop@web1.example.org");
    expect_found("shop@web2.example.org", "shop@web2.example.org");
    expect_found("db@web1.example.com", "db@web1.example.com");
    expect_found("cache", "cache@web1");
    expect_found("none", "none");
    assert_int_equal(tool_ask("slow", "--node shop"), EXIT_USAGE);
    expect_line(
        "kprof slow: --node shop matches 2 nodes: shop@web1.example.org, shop@web2.example.org");
    assert_int_equal(tool_ask("report", "--node db@web1 --json"), EXIT_USAGE);
    expect_line(
        "kprof report: --node db@web1 matches 2 nodes: db@web1.example.com, db@web1.example.org");
    assert_int_equal(tool_ask("report", "--node db@web1 --cost"), EXIT_USAGE);
    assert_int_equal(tool_ask("slow", "--node cache"), 0);
    expect_no_part("shop");
    assert_int_equal(tool_ask("slow", "--node shop@web2 --json"), 0);
    expect_json("$.requests[0].node", "shop@web2.example.org"); // whole in JSON
}

// Hosts are short where that still tells the nodes from each other.
static void shown_short(void **state) {
    (void)state;
    fill();
    assert_int_equal(tool_ask("slow", ""), 0);
    expect_part(" db@web1.example.com ");
    free(fixture_ask(
        fixture_db,
        "DELETE FROM kept_requests WHERE node_id = (SELECT id FROM node_names WHERE name LIKE '%.com')"));
    assert_int_equal(tool_ask("slow", ""), 0);
    expect_part(" db@web1 ");
    expect_part(" shop@web2 ");
    expect_no_part("example");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meant),
        cmocka_unit_test(short_names),
        cmocka_unit_test(shown_names),
        cmocka_unit_test_setup_teardown(finds, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(shown_short, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
