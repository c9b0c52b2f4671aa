// SPDX-License-Identifier: Apache-2.0
// kprof flame --before: the table of what has changed, what is gone, and the picture's colours; and
// --by-process.
#include "profile_fixture.h"
#include "tool_fixture.h"

#include "store/keep_profile.h"

static struct profile profile;

static void begin(void) {
    assert_true(profile_init(&profile));
    profile.head = (struct profile_head){.node = "shop@host",
                                         .begin_ns = 1763640000000000000,
                                         .end_ns = 1763640002500000000,
                                         .settings = "{}"};
    profile.counts = (struct profile_counts){.requests = 1, .duration_ns = 1000000};
}

static void add(const char *process, const char *stack, int64_t ns) {
    fixture_process(&profile, "m", "create", process, stack, 1, ns);
}

static void keep(void) {
    int64_t id;
    struct store *s = fixture_open();
    assert_true(store_keep_profile(s, &profile, &id));
    store_close(s);
    profile_free(&profile);
}

// 1 ms, and twice as much of which other functions take other shares.
static void keep_both(void) {
    char name[32];
    begin();
    add("web", "a", 300000);
    add("web", "a;b", 400000);
    add("pool", "a;b;old", 200000);
    add("pool", "a;small", 100000);
    keep();
    begin();
    add("web", "a", 600000);
    add("web", "a;b", 200000);
    add("pool", "a;new", 1200000);
    for (int i = 0; i < 30; i++) { // more than there are lines
        sprintf(name, "a;tiny%02d", i);
        add("pool", name, 10);
    }
    keep();
}

static const char *picture(const char *arguments) {
    static char svg[1 << 20];
    char more[256];
    snprintf(more, sizeof more, "%s --out %s/x.svg", arguments, fixture_dir);
    assert_int_equal(tool_ask("flame", more), 0);
    snprintf(more, sizeof more, "%s/x.svg", fixture_dir);
    FILE *f = fopen(more, "r");
    assert_non_null(f);
    svg[fread(svg, 1, sizeof svg - 1, f)] = 0;
    fclose(f);
    return svg;
}

// The colour of a frame: its hue, -1 for grey.
static void expect_colour(const char *svg, const char *frame, int hue) {
    int is, saturation;
    char title[64];
    snprintf(title, sizeof title, "<title>%s\n", frame);
    const char *at = strstr(svg, title);
    assert_non_null(at);
    at = strstr(at, "fill=\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "fill=\"hsl(%d,%d%%", &is, &saturation), 2);
    assert_int_equal(saturation > 0 ? is : -1, hue);
}

static void compared(void **state) {
    (void)state;
    keep_both();
    const char *svg = picture("--profile 2 --before 1");
    // shares of the whole, so that both are as heavy
    expect_part("\nCompared with profile 1: red is more, blue is less");
    expect_part("\nGone: old (20.0 %), small (10.0 %)\n");
    expect_part("+59.99    0.00 %   59.99 %   new    new\n"
                "-30.00   40.00 %   10.00 %          b\n"
                "-20.00   20.00 %    0.00 %   gone   old\n"
                "-10.00   10.00 %    0.00 %   gone   small\n");
    uint32_t lines = 0;
    for (const char *at = strstr(output, "function, self"); at && *at; at++) {
        lines += *at == '\n';
    }
    assert_in_range(lines, 21, 22); // a heading, twenty functions, the file
    expect_colour(svg, "new", 4);
    expect_colour(svg, "b", 212);
    expect_colour(svg, "a", -1); // as much as before
    assert_non_null(strstr(svg, ">Gone: old (20.0 %), small (10.0 %)<"));
}

static void by_process(void **state) {
    (void)state;
    keep_both();
    assert_int_equal(tool_ask("flame", "--profile 1 --by-process --json"), 0);
    expect_json("$.stacks[1].name", "pool");
    expect_json("$.stacks[1].kind", "group");
    expect_json("$.stacks[1].value", "300");
    expect_json("$.stacks[6].name", "web");
    expect_json("$.stacks[6].value", "700");
    free(fixture_ask(fixture_db, "DELETE FROM profile_process_rows"));
    assert_int_equal(tool_ask("flame", "--profile 1 --by-process"), 0);
    expect_part("\nWhich processes ran is not known: an older version has kept this profile\n");
}

#define A_FILE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {A_FILE(compared), A_FILE(by_process)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
