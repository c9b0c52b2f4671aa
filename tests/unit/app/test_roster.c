// SPDX-License-Identifier: Apache-2.0
// What is remembered of a node: its states, and its changes of sampling.
#include "app/roster.h"
#include "unit.h"

#define SECOND 1000000000LL

// 2026-01-01T00:00:00Z, and so many seconds.
static int64_t at(int64_t seconds) {
    return (1767225600 + seconds) * SECOND;
}

static struct roster roster;
static struct roster_node *n;

static int setup(void **state) {
    (void)state;
    n = roster_join(&roster, 0, NULL, at(0));
    return n ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    roster_free(&roster);
    return 0;
}

// The event before so many others.
static const struct roster_event *event(uint64_t back) {
    assert_true(back < n->happened);
    return &n->events[(n->happened - 1 - back) % LIMIT_NODE_EVENTS];
}

static void expect_event(uint64_t back, int64_t seconds, const char *text) {
    assert_string_equal(event(back)->text, text);
    assert_int_equal(event(back)->at, at(seconds));
}

static void told(const char *state, int64_t one_in, int64_t level_ppm, const char *text,
                 int64_t seconds) {
    struct roster_sampling s = {.one_in = one_in, .level_ppm = level_ppm};
    roster_told(n, state, &s, slice_text(text), at(seconds));
    assert_string_equal(n->state, state);
    assert_int_equal(n->sampling.level_ppm, level_ppm);
}

static void level(int64_t ppm, const char *text, int64_t seconds) {
    told("tracing", 1, ppm, text, seconds);
}

// An hour of changes, and all that was before is still there.
static void levels_are_one(void **state) {
    (void)state;
    told("tracing", 1, 1000000, "", 1);
    level(15625, "samples one request in 64", 2);
    expect_event(0, 2, "samples one request in 64");
    level(125000, "samples one request in 8", 7);
    expect_event(0, 2,
                 "the guard has changed the level 2 times until 2026-01-01T00:00:07Z, from 100 % "
                 "to 12.5 %, 1.56 % at the least: samples one request in 8");
    for (int i = 0; i < 720; i++) {
        level(i % 2 ? 500000 : 7813, i % 2 ? "samples one request in 2" : "samples one in 128",
              10 + 5 * i);
    }
    expect_event(0, 2,
                 "the guard has changed the level 722 times until 2026-01-01T01:00:05Z, from 100 % "
                 "to 50 %, 0.781 % at the least: samples one request in 2");
    level(5000, "samples one request in 200", 3700);
    expect_event(0, 2,
                 "the guard has changed the level 723 times until 2026-01-01T01:01:40Z, from 100 % "
                 "to 0.5 %: samples one request in 200");
    expect_event(1, 1, "tracing");
    expect_event(2, 0, "connected");
    assert_int_equal(n->happened, 3);
}

// What is new besides the level, or comes between, stands by itself.
static void others_are_not(void **state) {
    (void)state;
    level(1000000, "samples every request", 1); // its first word of its sampling, in another state
    level(500000, "samples one request in 2", 2);
    roster_event(n, at(3), "the trigger q: profile 1");
    level(250000, "samples one request in 4", 4);
    expect_event(0, 4, "samples one request in 4");
    told("tracing", 10, 200000, "samples one request in 50", 5); // a tool wanted that
    expect_event(0, 5, "samples one request in 50");
    told("tracing", 10, 500000, "samples one request in 20", 6);
    expect_event(0, 6, "samples one request in 20");
    told("tracing", 10, 500000, "something else", 7);
    expect_event(0, 7, "something else");
    told("tripped", 10, 31250, "tripped for 1 s, then one request in 320", 8);
    expect_event(0, 8, "tripped for 1 s, then one request in 320");
    expect_event(1, 8, "tripped");
    told("tripped", 10, 15625, "samples one request in 640", 8);
    expect_event(0, 8, "samples one request in 640");
    told("tracing", 10, 31250, "", 9);
    expect_event(0, 9, "tracing");
    told("tracing", 10, 62500, "samples one request in 160", 10);
    told("tracing", 10, 125000, "samples one request in 80", 11);
    expect_event(0, 10,
                 "the guard has changed the level 2 times until 2026-01-01T00:00:11Z, from 3.12 % "
                 "to 12.5 %: samples one request in 80");
    expect_event(1, 9, "tracing");
    struct roster_sampling tripped = {.one_in = 10, .level_ppm = 1000, .trips = 1};
    roster_told(n, "tracing", &tripped, slice_text("samples one request in 10000"), at(12));
    expect_event(0, 12, "samples one request in 10000");
    roster_leave(n, at(13));
    assert_ptr_equal(roster_join(&roster, 0, NULL, at(14)), n);
    told("idle", 1, 1000, "samples one request in 1000", 15); // no level is known before it
    told("idle", 1, 2000, "samples one request in 500", 16);
    expect_event(0, 16, "samples one request in 500");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(levels_are_one, setup, teardown),
        cmocka_unit_test_setup_teardown(others_are_not, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
