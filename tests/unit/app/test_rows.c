// SPDX-License-Identifier: Apache-2.0
#include "app/rows.h"

#include "base/limits.h"
#include "base/text_time.h"
#include "codec/control.h"
#include "unit.h"

static struct directory names;
static struct stats *stats;

static int setup(void **state) {
    (void)state;
    stats = stats_new();
    return stats && directory_init(&names) ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    stats_free(stats);
    directory_free(&names);
    return 0;
}

static struct stat_row *row(int64_t bucket, const char *node, const char *identity,
                            const char *tier) {
    return stats_row(stats, (struct stat_key){bucket, directory_node(&names, slice_text(node)),
                                              directory_identity(&names, slice_text(identity)),
                                              directory_tier(&names, slice_text(tier))});
}

static void json(void **state) {
    (void)state;
    struct rows rows = {stats, &names, 10};
    struct buffer b = buffer_make(1 << 20);
    uint32_t from = 0;
    assert_false(rows_json(&rows, &from, &b));
    assert_int_equal(b.len, 0);
    struct stat_row *r = row(1795000000, "shop@host", "cre\"ate", "db");
    stats_count(r, 2000000);
    stats_count(r, 4000000);
    r->requests = 1;
    r->errors = 1;
    r->total_ns = 4000000;
    r->self_ns = 1500000;
    r->async_ns = 2000000;
    r->async_calls = 1;
    r->wait_ns = 6500;
    r->gc_ns = 250;
    r->off_cpu_ns = 750;
    r->waiting_ns = 5500;
    row(1795000010, "shop@host", "undefined", "none"); // made, and nothing counted
    assert_true(rows_json(&rows, &from, &b));
    assert_false(rows_json(&rows, &from, &b));
    buffer_append(&b, "", 1);
    assert_string_equal(
        (char *)b.data,
        "{\"bucket_start\":\"2026-11-18T11:06:40Z\",\"resolution_s\":10,\"node\":\"shop@host\",\"identity\":\"cre\\\"ate\","
        "\"tier\":\"db\",\"requests\":1,\"calls\":2,\"errors\":1,\"async_calls\":1,\"total_us\":4000,\"self_us\":1500,"
        "\"async_us\":2000,\"wait_us\":6.5,\"gc_us\":0.25,\"off_cpu_us\":0.75,\"waiting_us\":5.5,\"parallel_us\":0,\"mean_us\":3000,\"stddev_us\":1000,"
        "\"min_us\":2000,\"max_us\":4000,\"p50_us\":2000,\"p90_us\":3973.214,\"p99_us\":3973.214,"
        "\"p999_us\":3973.214}\n"
        "{\"bucket_start\":\"2026-11-18T11:06:50Z\",\"resolution_s\":10,\"node\":\"shop@host\",\"identity\":\"undefined\","
        "\"tier\":\"none\",\"requests\":0,\"calls\":0,\"errors\":0,\"async_calls\":0,\"total_us\":0,\"self_us\":0,"
        "\"async_us\":0,\"wait_us\":0,\"gc_us\":0,\"off_cpu_us\":0,\"waiting_us\":0,\"parallel_us\":0,\"mean_us\":0,\"stddev_us\":0,\"min_us\":0,"
        "\"max_us\":0,\"p50_us\":0,\"p90_us\":0,\"p99_us\":0,\"p999_us\":0}\n");
    buffer_free(&b);
}

// Every row of the node and none of another, some hundred a message, each message acceptable.
static void messages(void **state) {
    (void)state;
    enum { ROWS = 1001 };
    struct rows rows = {stats, &names, 10};
    struct buffer b = buffer_make(64 << 20);
    char longest[LIMIT_NAME_BYTES + 1];
    memset(longest, 'x', LIMIT_NAME_BYTES);
    longest[LIMIT_NAME_BYTES] = 0;
    for (int i = 0; i < ROWS; i++) {
        stats_count(row(1000 + 10 * i, "shop@host", longest, "db"), (uint64_t)i + 1);
        if (i % 3 == 0) {
            stats_count(row(1000 + 10 * i, "other@host", longest, "db"), 7);
        }
    }
    rows_messages(&rows, directory_node(&names, slice_text("nobody@host")), &b);
    assert_int_equal(b.len, 0);
    assert_true(rows_messages(&rows, directory_node(&names, slice_text("shop@host")), &b));
    // As lines they come in pieces, none twice.
    struct buffer lines = buffer_make(1 << 20);
    uint32_t from = 0, pieces = 0, rest = 0;
    for (; rows_json(&rows, &from, &lines); buffer_reset(&lines), pieces++) {
        for (size_t i = 0; i < lines.len; i++) {
            rest += lines.data[i] == '\n';
        }
        assert_int_equal(rest, from);
    }
    assert_true(pieces > 1 && from == stats_rows(stats));
    buffer_free(&lines);
    int next = 0;
    for (size_t at = 0; at < b.len;) {
        struct slice payload;
        long size = control_frame(slice_of(b.data + at, b.len - at), &payload);
        assert_true(size > 0);
        struct control *c = control_decode(payload);
        struct slice text;
        struct control_list list;
        assert_non_null(c);
        assert_true(control_get_text(control_root(c), "type", &text) && slice_is(text, "stats"));
        assert_true(control_get_list(control_root(c), "rows", &list) && list.count > 0);
        for (uint32_t i = 0; i < list.count; i++, next++) {
            struct control_map map = control_list_at(list, i);
            char start[TEXT_TIME_BYTES];
            int64_t number;
            text_time_format((1000 + 10 * next) * 1000000000LL, false, start);
            assert_true(control_get_text(map, "bucket_start", &text) && slice_is(text, start));
            assert_true(control_get_text(map, "node", &text) && slice_is(text, "shop@host"));
            assert_true(control_get_text(map, "identity", &text) && slice_is(text, longest));
            assert_true(control_get_int(map, "calls", &number) && number == 1);
            assert_true(control_get_int(map, "resolution_s", &number) && number == 10);
        }
        control_free(c);
        at += (size_t)size;
    }
    assert_int_equal(next, ROWS);
    buffer_free(&b);
    // what does not fit leaves whole messages
    b = buffer_make(150000);
    assert_false(rows_messages(&rows, directory_node(&names, slice_text("shop@host")), &b));
    struct slice payload;
    assert_true(b.len > 0 && !b.failed);
    for (size_t at = 0; at < b.len;) {
        long size = control_frame(slice_of(b.data + at, b.len - at), &payload);
        assert_true(size > 0);
        at += (size_t)size;
    }
    buffer_free(&b);
}

#define UNIT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {UNIT(json), UNIT(messages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
