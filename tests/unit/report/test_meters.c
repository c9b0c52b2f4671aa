// SPDX-License-Identifier: Apache-2.0
// What programs scrape: counters that only grow, whatever names come and go, in both forms.
#include "store_fixture.h"

#include <math.h>

#include "base/limits.h"
#include "meters.pb-c.h"
#include "report/meters.h"

enum { NOW = 1763640000 };
#define PAGE "http://localhost:4712"

// What is told, with a 0 behind it; valid until the next one.
static const struct buffer *told(const struct meters *m, const struct meters_question *q) {
    static struct buffer out;
    buffer_free(&out);
    out = buffer_make(64 << 20);
    struct meters *copy = meters_copy(m);
    assert_non_null(copy);
    meters_write(copy, q, &out);
    meters_free(copy);
    buffer_append(&out, "", 1);
    assert_false(out.failed);
    return &out;
}

static char *text_of(const struct meters *m, enum meters_form form, const struct slow_list *list) {
    struct meters_question q = {.form = form, .examples = list, .page = PAGE};
    return (char *)told(m, &q)->data;
}

static void expect(const char *text, const char *line) {
    if (!strstr(text, line)) {
        fail_msg("no \"%s\" in:\n%.6000s", line, text);
    }
}

static void take(struct meters *m, const char *identity, uint64_t ns, int64_t now_s) {
    struct stats *batch = stats_new();
    fixture_call(batch, NOW, identity, "_total", ns, false);
    struct stat_row *row = fixture_row(batch, NOW, "shop@host", identity, "_total");
    row->waiting_ns = 2000;
    row->measured_ns = 1500;
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
    expect(text, "kprof_waiting_seconds_total" OF_SEARCH "} 0.000004000\n");
    expect(text, "kprof_wait_measured_seconds_total" OF_SEARCH "} 0.000003000\n");
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
    expect(text, ",le=\"0.001048576\"} 1 # {slow=\"77\",url=\"" PAGE
                 "/?slow=77\"} 0.001000000 1763640000.001000000\n");
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
    meters_queue(m, (struct meter_queue){.rows = 12, .unwritten_s = 7});
    const char *text = text_of(m, METERS_PROMETHEUS, NULL);
    expect(text, "kprof_node_connected{node=\"shop@host\"} 1\n");
    expect(text, "kprof_node_sampling_ratio{node=\"shop@host\"} 0.250000\n");
    expect(text, "kprof_nodes_connected 1\n");
    expect(text, "kprof_rows_waiting 12\n");
    expect(text, "kprof_database_refused_seconds 7\n");
    assert_null(strstr(text, "kprof_export"));
    meters_queue(m, (struct meter_queue){.exported = {true, false, true, 60, 3, 1000, 2, 4}});
    text = text_of(m, METERS_PROMETHEUS, NULL);
    expect(text, "kprof_export_up 0\n");
    expect(text, "kprof_export_name_taken 1\n");
    expect(text, "kprof_export_behind_seconds 60\n");
    expect(text, "kprof_export_waiting 3\n");
    expect(text, "kprof_export_rows_total 1000\n");
    expect(text, "kprof_export_refused_rows_total 2\n");
    expect(text, "kprof_export_lost_buckets_total 4\n");
    assert_null(strstr(text, "kprof_otlp"));
    meters_queue(m, (struct meter_queue){.otlp = {.wanted = true,
                                                  .signals = {{true, true, 7, 3, 1000, 2, 4},
                                                              {true, false, 8, 5, 6, 9, 10}},
                                                  .late = 11}});
    text = text_of(m, METERS_PROMETHEUS, NULL);
    expect(text, "kprof_otlp_up{signal=\"traces\"} 1\n");
    expect(text, "kprof_otlp_up{signal=\"metrics\"} 0\n");
    expect(text, "kprof_otlp_behind_seconds{signal=\"traces\"} 7\n");
    expect(text, "kprof_otlp_waiting{signal=\"traces\"} 3\n");
    expect(text, "kprof_otlp_sent_total{signal=\"traces\"} 1000\n");
    expect(text, "kprof_otlp_refused_total{signal=\"metrics\"} 9\n");
    expect(text, "kprof_otlp_lost_total{signal=\"metrics\"} 10\n");
    expect(text, "kprof_otlp_late_requests_total 11\n");
    meters_queue(m, (struct meter_queue){.otlp = {.wanted = true, .signals = {{.wanted = true}}}});
    text = text_of(m, METERS_PROMETHEUS, NULL);
    expect(text, "kprof_otlp_up{signal=\"traces\"} 0\n");
    assert_null(strstr(text, "signal=\"metrics\"")); // which nobody wants sent
    meters_nodes(m, NULL, 0);
    expect(text_of(m, METERS_PROMETHEUS, NULL), "kprof_node_connected{node=\"shop@host\"} 0\n");
    meters_free(m);
}

// -- protobuf -------------------------------------------------------------------------------------

// A family by its name. Sets *series to how many series all of them have.
static Meters__Family *family_of(const struct meters *m, const char *name,
                                 const struct slow_list *list, size_t *series) {
    struct meters_question q = {.form = METERS_PROTOBUF, .examples = list, .page = PAGE};
    const struct buffer *out = told(m, &q);
    Meters__Family *found = NULL;
    *series = 0;
    for (size_t at = 0; at < out->len - 1;) {
        size_t len = 0;
        for (int shift = 0;; shift += 7) {
            len |= (size_t)(out->data[at] & 0x7f) << shift;
            if (!(out->data[at++] & 0x80)) {
                break;
            }
        }
        assert_true(len <= out->len - 1 - at);
        Meters__Family *family = meters__family__unpack(NULL, len, out->data + at);
        assert_non_null(family);
        for (size_t i = 0; i < family->n_metric; i++) {
            Meters__Histogram *h = family->metric[i]->histogram;
            *series += h ? h->n_bucket + 2 : 1;
        }
        at += len;
        if (strcmp(family->name, name) == 0) {
            assert_null(found);
            found = family;
        } else {
            meters__family__free_unpacked(family, NULL);
        }
    }
    assert_non_null(found);
    return found;
}

enum { NATIVE = 4096, MIDDLE = NATIVE / 2 };

// The counts of a native histogram's buckets, that of bucket 0 in the middle.
static void native_counts(const Meters__Histogram *h, uint64_t counts[NATIVE]) {
    int64_t count = 0;
    int32_t at = 0;
    size_t delta = 0;
    memset(counts, 0, NATIVE * sizeof *counts);
    for (size_t i = 0; i < h->n_positive_span; i++) {
        at += h->positive_span[i]->offset;
        assert_true(i == 0 || h->positive_span[i]->offset > 2); // less is not worth a span
        for (uint32_t k = 0; k < h->positive_span[i]->length; k++, at++) {
            count += h->positive_delta[delta++];
            assert_true(count >= 0 && at > -MIDDLE && at < MIDDLE);
            counts[MIDDLE + at] = (uint64_t)count;
        }
    }
    assert_int_equal(delta, h->n_positive_delta);
}

// Each duration is in the bucket of its length, which ends 0.6 % too early at most, or a bucket's
// width, 2.2 %, too late.
static void test_native(void **state) {
    (void)state;
    static uint64_t counts[NATIVE];
    struct meters *m = meters_new(NOW);
    struct stats *batch = stats_new();
    uint64_t ns = 0, sum = 0, n = 0;
    for (; ns < 20000000000; ns = ns + ns / 7 + 1, n++) {
        fixture_call(batch, NOW, "search", "_total", ns, false);
        sum += ns;
    }
    meters_take(m, batch, &fixture_names, NOW);
    stats_free(batch);
    size_t series;
    Meters__Family *family = family_of(m, "kprof_call_duration_seconds", NULL, &series);
    assert_int_equal(family->type, METERS__TYPE__HISTOGRAM);
    assert_int_equal(family->n_metric, 1);
    const Meters__Histogram *h = family->metric[0]->histogram;
    assert_int_equal(h->sample_count, n);
    assert_true(fabs(h->sample_sum - (double)sum / 1e9) < 1e-6);
    assert_int_equal(h->schema, 5);
    assert_int_equal(h->zero_count, 2); // 0 and 1 ns
    assert_true(h->zero_threshold == 1e-9);
    native_counts(h, counts);
    for (ns = 0; ns < 20000000000; ns = ns + ns / 7 + 1) {
        int bucket = (int)histogram_bucket(ns) + 1 - 957;
        if (ns > 1) {
            double end = exp2(bucket / 32.0), s = (double)ns / 1e9;
            assert_true(s <= end * 1.0062 && s > end * 0.9784);
            assert_true(counts[MIDDLE + bucket]-- > 0);
        }
    }
    for (int i = 0; i < NATIVE; i++) {
        assert_int_equal(counts[i], 0);
    }
    // the classic ones beside
    assert_int_equal(h->bucket[h->n_bucket - 1]->cumulative_count, n);
    assert_true(isinf(h->bucket[h->n_bucket - 1]->upper_bound));
    meters__family__free_unpacked(family, NULL);
    meters_free(m);
}

static void test_protobuf(void **state) {
    (void)state;
    struct slow_request slow = {.id = 77,
                                .node = "shop@host",
                                .identity = "a\"} 1\\",
                                .started_ns = NOW * 1000000000LL,
                                .duration_ns = 1000000};
    struct slow_list list = {.requests = &slow, .count = 1};
    struct meters *m = meters_new(NOW);
    size_t series, others;
    take(m, "a\"} 1\\", 1000000, NOW);
    Meters__Family *family = family_of(m, "kprof_requests_total", &list, &series);
    assert_int_equal(family->type, METERS__TYPE__COUNTER);
    assert_true(family->metric[0]->counter->value == 1);
    assert_string_equal(family->metric[0]->label[1]->value, "a\"} 1\\");
    meters__family__free_unpacked(family, NULL);
    family = family_of(m, "kprof_ledger_paused_seconds_total", &list, &others);
    assert_true(family->metric[0]->counter->value == 1.5);
    assert_int_equal(others, series);
    meters__family__free_unpacked(family, NULL);
    family = family_of(m, "kprof_call_duration_seconds", &list, &series);
    Meters__Histogram *h = family->metric[0]->histogram;
    int found = 0;
    for (size_t i = 0; i < h->n_bucket; i++) {
        const Meters__Exemplar *e = h->bucket[i]->exemplar;
        if (e) {
            found++;
            assert_true(h->bucket[i]->upper_bound == 0.001048576);
            assert_string_equal(e->label[0]->value, "77");
            assert_string_equal(e->label[1]->value, PAGE "/?slow=77");
            assert_true(e->value == 0.001 && e->timestamp->seconds == NOW);
            assert_int_equal(e->timestamp->nanos, 1000000);
        }
    }
    assert_int_equal(found, 1);
    meters__family__free_unpacked(family, NULL);
    meters_free(m);
}

// An exemplar has 128 characters at most.
static void test_long_page(void **state) {
    (void)state;
    struct meters *m = meters_new(NOW);
    struct slow_request slow = {.id = INT64_MAX,
                                .node = "shop@host",
                                .identity = "search",
                                .started_ns = NOW * 1000000000LL,
                                .duration_ns = 1000000};
    struct slow_list list = {.requests = &slow, .count = 1};
    struct meters_question q = {.form = METERS_OPEN, .examples = &list, .page = ""};
    take(m, "search", 1000000, NOW);
    expect((char *)told(m, &q)->data, " # {slow=\"9223372036854775807\"} ");
    enum { ROOM = 128 - 4 - 19 - 3 - 7 - 19 }; // slow, digits, url, /?slow=, digits
    memset(q.page, 'a', ROOM + 1);
    expect((char *)told(m, &q)->data, " # {slow=\"9223372036854775807\"} ");
    q.page[ROOM] = 0;
    expect((char *)told(m, &q)->data, " # {slow=\"9223372036854775807\",url=\"aaaa");
    meters_free(m);
}

static uint32_t lines_of(const char *text) {
    uint32_t lines = 0;
    for (const char *at = text; *at; at = strchr(at, '\n') + 1) {
        lines += *at != '#';
    }
    return lines;
}

// The calls that the histograms count, and those that no row counts.
static void counts_of(const char *text, uint64_t *counted, uint64_t *left_out) {
    *counted = 0;
    for (const char *at = text; (at = strstr(at, "_seconds_count{")); at++) {
        *counted += strtoull(strchr(at, '}') + 1, NULL, 10);
    }
    const char *line = strstr(text, "\nkprof_left_out_calls_total ");
    assert_non_null(line);
    *left_out = strtoull(strchr(line, ' '), NULL, 10);
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
    uint64_t counted, left_out;
    counts_of(text, &counted, &left_out);
    assert_int_equal(counted + left_out, MANY);
    size_t series;
    meters__family__free_unpacked(family_of(m, "kprof_requests_total", NULL, &series), NULL);
    assert_int_equal(series, lines);
    text = text_of(m, METERS_PROMETHEUS, NULL);
    take(m, "late", 1000, NOW + 7200);
    text = text_of(m, METERS_PROMETHEUS, NULL);
    expect(text, "identity=\"late\"");
    assert_null(strstr(text, "identity=\"identity1\""));
    meters_free(m);
}

// The nodes' own series and the collector's are among them: rows make room for these.
static void test_cap_of_nodes(void **state) {
    (void)state;
    enum { MANY = 900 };
    struct meters *m = meters_new(NOW);
    static char names[LIMIT_NODES][16];
    struct meter_state nodes[LIMIT_NODES];
    char name[32];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "identity%d", i);
        take(m, name, 1000, NOW);
    }
    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        snprintf(names[i], sizeof names[i], "n%u@host", i);
        nodes[i] = (struct meter_state){names[i], true, true, 1000000};
    }
    meters_nodes(m, nodes, LIMIT_NODES);
    const char *text = text_of(m, METERS_PROMETHEUS, NULL);
    assert_true(lines_of(text) <= LIMIT_METRIC_SERIES);
    assert_true(lines_of(text) > LIMIT_METRIC_SERIES - 30);
    uint64_t counted, left_out;
    counts_of(text, &counted, &left_out);
    assert_int_equal(counted + left_out, MANY);
    meters_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_counts, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_open, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_hostile_names, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_nodes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_native, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_protobuf, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_long_page, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_cap, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_cap_of_nodes, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
