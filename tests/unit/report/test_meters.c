// SPDX-License-Identifier: Apache-2.0
// What programs scrape: counters that only grow, whatever names come and go, in both forms.
#include "store_fixture.h"

#include "base/limits.h"
#include "report/meters.h"

enum { NOW = 1763640000 };

static char *text_of(const struct meters *m, enum meters_form form, const struct slow_list *list) {
    static struct buffer out;
    buffer_free(&out);
    out = buffer_make(64 << 20);
    struct meters *copy = meters_copy(m);
    assert_non_null(copy);
    meters_text(copy, form, list, &out);
    meters_free(copy);
    buffer_append(&out, "", 1);
    assert_false(out.failed);
    return (char *)out.data;
}

static void expect(const char *text, const char *line) {
    if (!strstr(text, line)) {
        fail_msg("no \"%s\" in:\n%.6000s", line, text);
    }
}

static void take(struct meters *m, const char *identity, uint64_t ns, int64_t now_s) {
    struct stats *batch = stats_new();
    fixture_call(batch, NOW, identity, "_total", ns, false);
    fixture_ledger(batch, NOW)->paused_ms = 1500;
    fixture_ledger(batch, NOW)->dropped_messages = 3;
    meters_take(m, batch, &fixture_names, now_s);
    stats_free(batch);
}

#define OF_SEARCH "{node=\"shop@host\",identity=\"search\",tier=\"_total\""

static void test_counts(void **state) {
    (void)state;
    struct meters *m = meters_new(NOW);
    take(m, "search", 1 << 20, NOW);           // just in the bucket that ends there
    take(m, "search", (1 << 20) + 40000, NOW); // the next one
    const char *text = text_of(m, METERS_PROMETHEUS, NULL);
    expect(text, "kprof_requests_total" OF_SEARCH "} 2\n");
    expect(text, "kprof_call_duration_seconds_bucket" OF_SEARCH ",le=\"0.000524288\"} 0\n");
    expect(text, "kprof_call_duration_seconds_bucket" OF_SEARCH ",le=\"0.001048576\"} 1\n");
    expect(text, "kprof_call_duration_seconds_bucket" OF_SEARCH ",le=\"0.002097152\"} 2\n");
    expect(text, "kprof_call_duration_seconds_bucket" OF_SEARCH ",le=\"+Inf\"} 2\n");
    expect(text, "kprof_call_duration_seconds_sum" OF_SEARCH "} 0.002137152\n");
    expect(text, "kprof_call_duration_seconds_count" OF_SEARCH "} 2\n");
    expect(text, "kprof_ledger_paused_seconds_total{node=\"shop@host\"} 3.000\n");
    expect(text, "kprof_ledger_dropped_messages_total{node=\"shop@host\"} 6\n");
    expect(text, "# TYPE kprof_requests_total counter\n");
    assert_null(strstr(text, "# EOF"));
    meters_free(m);
}

static void test_open(void **state) {
    (void)state;
    struct meters *m = meters_new(NOW);
    struct slow_request slow = {.id = 77,
                                .node = "shop@host",
                                .identity = "search",
                                .started_ns = NOW * 1000000000LL,
                                .duration_ns = 1000000};
    struct slow_list list = {.requests = &slow, .count = 1};
    take(m, "search", 1000000, NOW);
    const char *text = text_of(m, METERS_OPEN, &list);
    expect(text, "# TYPE kprof_requests counter\n");
    expect(text, ",le=\"0.001048576\"} 1 # {slow=\"77\"} 0.001000000 1763640000.001000000\n");
    assert_string_equal(text + strlen(text) - 6, "# EOF\n");
    slow.cut = true; // it is not among those that were counted
    assert_null(strstr(text_of(m, METERS_OPEN, &list), "slow=\"77\""));
    meters_free(m);
}

static void test_hostile_names(void **state) {
    (void)state;
    struct meters *m = meters_new(NOW);
    take(m, "a\"} 1\\", 1000, NOW);
    expect(text_of(m, METERS_PROMETHEUS, NULL), "identity=\"a\\\"} 1\\\\\",tier");
    meters_free(m);
}

static void test_nodes(void **state) {
    (void)state;
    struct meters *m = meters_new(NOW);
    meters_nodes(m, &(struct meter_state){"shop@host", true, true, 250000}, 1);
    meters_queue(m, (struct meter_queue){12, 7});
    const char *text = text_of(m, METERS_PROMETHEUS, NULL);
    expect(text, "kprof_node_connected{node=\"shop@host\"} 1\n");
    expect(text, "kprof_node_sampling_ratio{node=\"shop@host\"} 0.25\n");
    expect(text, "kprof_nodes_connected 1\n");
    expect(text, "kprof_rows_waiting 12\n");
    expect(text, "kprof_database_refused_seconds 7\n");
    meters_nodes(m, NULL, 0);
    expect(text_of(m, METERS_PROMETHEUS, NULL), "kprof_node_connected{node=\"shop@host\"} 0\n");
    meters_free(m);
}

static uint32_t lines_of(const char *text) {
    uint32_t lines = 0;
    for (const char *at = text; *at; at = strchr(at, '\n') + 1) {
        lines += *at != '#';
    }
    return lines;
}

// Past the cap no series is added, and what has none is counted; idle ones make room.
static void test_cap(void **state) {
    (void)state;
    enum { MANY = 900 };
    struct meters *m = meters_new(NOW);
    char name[32];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "identity%d", i);
        take(m, name, 1000, NOW);
    }
    const char *text = text_of(m, METERS_PROMETHEUS, NULL);
    uint32_t lines = lines_of(text);
    assert_true(lines <= LIMIT_METRIC_SERIES);
    assert_true(lines > LIMIT_METRIC_SERIES - 30);
    assert_null(strstr(text, "kprof_left_out_calls_total 0\n"));
    assert_null(strstr(text, "identity899"));
    take(m, "late", 1000, NOW + 7200);
    text = text_of(m, METERS_PROMETHEUS, NULL);
    expect(text, "identity=\"late\"");
    assert_null(strstr(text, "identity=\"identity1\""));
    meters_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_counts, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_open, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_hostile_names, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_nodes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_cap, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
