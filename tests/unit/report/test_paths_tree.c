// SPDX-License-Identifier: Apache-2.0
// query_paths.c and paths.c: the tree of tiers, summed over a stretch of time.
#include "store_fixture.h"

#include "report/paths.h"

enum { NOON = 1763640000 };

static struct path_list list;
static struct path_tree tree;

static void ask(int64_t from_s, int64_t until_s, const char *node, const char *identity) {
    struct query q = {.from_s = from_s, .until_s = until_s, .node = node, .identity = identity};
    struct store *s = fixture_reader();
    assert_true(query_paths(s, &q, &list));
    assert_true(path_tree_make(&tree, &list));
    store_close(s);
}

static void give_back(void) {
    path_tree_free(&tree);
    path_list_free(&list);
}

static void write_some(void) {
    struct stats *batch = stats_new();
    uint32_t http = fixture_path("http"), db = fixture_path("http/db");
    for (int i = 0; i < 2; i++) {
        int64_t at = NOON + 7200 * i;
        fixture_call(batch, at, "buy", "_total", 9000, false);
        fixture_call(batch, at, "_total", "_total", 9000, false);
        fixture_path_call(batch, at, "buy", http, 8000);
        fixture_path_call(batch, at, "buy", fixture_path("http/render"), 1000);
        fixture_path_call(batch, at, "buy", db, 3000)->wait_ns = 500;
        fixture_path_call(batch, at, "buy", db, 4000)->errors = 1;
        fixture_path_call(batch, at, "look", http, 100);
        fixture_path_call(batch, at, "_remote", fixture_path("served"), 100);
    }
    // no call of what is above it was counted
    fixture_path_call(batch, NOON, "look", fixture_path("cache/disk"), 50000);
    fixture_write(batch);
}

static void expect_tree(const char *text) {
    char got[512] = "";
    for (uint32_t i = 0; i < tree.count; i++) {
        const struct path_node *node = &tree.nodes[i];
        sprintf(got + strlen(got), "%*s%s %llu\n", (int)node->depth, "", node->tier,
                node->sums ? (unsigned long long)node->sums->calls : 0);
        assert_true(node->parent == UINT32_MAX ||
                    (node->parent < i && tree.nodes[node->parent].depth + 1 == node->depth));
    }
    assert_string_equal(got, text);
}

static void test_a_tree_of_an_identity(void **state) {
    (void)state;
    write_some();
    ask(NOON, NOON + 7210, NULL, "buy");
    expect_tree("http 2\n db 4\n render 2\n");
    assert_int_equal(list.requests, 2);
    assert_int_equal(tree.nodes[1].sums->total_ns, 14000);
    assert_int_equal(tree.nodes[1].sums->wait_ns, 1000);
    assert_int_equal(tree.nodes[1].sums->errors, 2);
    assert_int_equal(tree.nodes[1].sums->min_ns, 3000);
    assert_int_equal(tree.nodes[1].sums->max_ns, 4000);
    struct buffer out = buffer_make(1 << 16);
    path_tree_json(&tree, &list, &out);
    buffer_append(&out, "", 1);
    assert_non_null(
        strstr((char *)out.data, "\"requests\":2,\"paths\":[{\"tier\":\"http\",\"parent\":null"));
    assert_non_null(
        strstr((char *)out.data, "{\"tier\":\"db\",\"parent\":0,\"depth\":1,\"calls\":4"));
    assert_non_null(strstr((char *)out.data, "\"mean_us\":3.5"));
    assert_non_null(strstr((char *)out.data, "\"wait_per_request_us\":0.5"));
    buffer_free(&out);
    give_back();
    ask(NOON + 7200, NOON + 7210, "shop@host", "buy"); // the second alone
    expect_tree("http 1\n db 2\n render 1\n");
    give_back();
}

// Of all identities; what stands above a path is there, too.
static void test_all_identities(void **state) {
    (void)state;
    write_some();
    ask(NOON, NOON + 7210, NULL, NULL);
    expect_tree("cache 0\n disk 1\nhttp 4\n db 4\n render 2\n");
    assert_null(tree.nodes[0].sums);
    give_back();
    ask(NOON, NOON + 7210, NULL, "_total");
    expect_tree("cache 0\n disk 1\nhttp 4\n db 4\n render 2\n");
    give_back();
    ask(NOON, NOON + 7210, NULL, "_remote");
    expect_tree("served 2\n");
    give_back();
}

static void test_nothing_there(void **state) {
    (void)state;
    write_some();
    ask(NOON, NOON + 10, NULL, "none");
    expect_tree("");
    struct buffer out = buffer_make(1 << 16);
    path_tree_json(&tree, &list, &out);
    buffer_append(&out, "", 1);
    assert_non_null(strstr((char *)out.data, "{\"from\":null,\"until\":null"));
    buffer_free(&out);
    give_back();
}

static void test_no_memory(void **state) {
    (void)state;
    write_some();
    ask(NOON, NOON + 10, NULL, NULL);
    path_tree_free(&tree);
    for (long n = 0; n < 4; n++) {
        fail_alloc_at(n);
        assert_false(path_tree_make(&tree, &list));
        fail_alloc_at(-1);
        path_tree_free(&tree);
    }
    assert_true(path_tree_make(&tree, &list));
    give_back();
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TREE_TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
        TREE_TEST(test_a_tree_of_an_identity),
        TREE_TEST(test_all_identities),
        TREE_TEST(test_nothing_there),
        TREE_TEST(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
