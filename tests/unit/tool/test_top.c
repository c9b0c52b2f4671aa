// SPDX-License-Identifier: Apache-2.0
// What kprof top shows, from messages as the collector sends them, sound and hostile.
#include "tool/top/print.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

struct sent {
    const char *pid, *name, *function;
    int64_t reductions, memory, memory_change, queue, queue_change;
};

static const struct sent usual[] = {
    {"<0.1.0>", "busy", "m:f/0", 3000000000, 2500, 1000, 0, 0},
    {"<0.2.0>", "", "m:g/1", 20, -1, 0, 70000, 500},
    {"<0.3.0>", "evil\x1b[2J", "m:h/2", 10, 1000000, -6000, 3, -4},
};

static void put_process(struct control_writer *w, const struct sent *p) {
    bool memory = p->memory >= 0;
    control_map(w, memory ? 13 : 11);
    control_text(w, "pid", slice_text(p->pid));
    control_text(w, "name", slice_text(p->name));
    control_text(w, "initial_call", slice_text("m:init/1"));
    control_text(w, "application", slice_text("app"));
    control_text(w, "status", slice_text("waiting"));
    control_text(w, "function", slice_text(p->function));
    control_int(w, "reductions", p->reductions);
    control_int(w, "queue", p->queue);
    control_int(w, "queue_change", p->queue_change);
    control_int(w, "samples", 20);
    control_int(w, "unanswered", 0);
    if (memory) {
        control_int(w, "memory", p->memory);
        control_int(w, "memory_change", p->memory_change);
    }
}

// Hands a view of `count` processes and two functions over. Whether it was taken.
static bool give(struct top_rows *r, int64_t us, const struct sent *processes, uint32_t count,
                 int64_t total) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, "stacks_view", 5);
    control_int(&w, "duration_us", us);
    control_int(&w, "samples", 60);
    control_int(&w, "busy", 40);
    control_list(&w, "processes", count);
    for (uint32_t i = 0; i < count; i++) {
        put_process(&w, &processes[i]);
    }
    control_list(&w, "functions", 2);
    const char *const names[] = {"m:f/0", "m:above/3"};
    for (int i = 0; i < 2; i++) {
        control_map(&w, 3);
        control_text(&w, "name", slice_text(names[i]));
        control_int(&w, "self", i == 0 ? 30 : 1);
        control_int(&w, "total", i == 0 ? 30 : total);
    }
    assert_true(control_end(&w));
    struct control *message =
        control_decode(slice_of(b.data + CONTROL_HEADER, b.len - CONTROL_HEADER));
    assert_non_null(message);
    bool taken = top_rows_take(r, control_root(message));
    control_free(message);
    buffer_free(&b);
    return taken;
}

static struct top_rows *rows_of(const struct sent *processes, uint32_t count) {
    static struct top_rows r;
    r = (struct top_rows){0};
    assert_true(give(&r, 2000000, processes, count, 40));
    return &r;
}

static const char *drawn(const struct top_rows *r, const struct top_style *style, bool json) {
    static struct buffer out;
    buffer_free(&out);
    out = buffer_make(1 << 20);
    (json ? top_json : top_table)(r, style, &out);
    buffer_append(&out, "", 1);
    assert_false(out.failed);
    return (const char *)out.data;
}

static const struct top_style wide = {
    .node = "shop@host", .at = "now", .width = 120, .processes = 9, .functions = 9};

static void table(void **state) {
    (void)state;
    struct top_rows *r = rows_of(usual, 3);
    r->totals = (struct top_totals){.unanswered = 7, .held_ms = 30, .cost_us = 50000};
    r->before = (struct top_totals){.unanswered = 5, .cost_us = 10000};
    top_rows_sort(r, TOP_BY_REDUCTIONS, TOP_BY_SELF);
    assert_string_equal(
        drawn(r, &wide, false),
        " shop@host by reductions, 2 not answered, held back 30 ms, 60 looks in 2.0 s at 3 "
        "processes, costs 2.0 %\n"
        "    reds/s   memory    per s    queue    per s status     pid          process            "
        "function\n"
        "   1,500 M   2.5 KB   +500 B        0        0 waiting    <0.1.0>      busy               "
        "m:f/0\n"
        "        10        -        -   70,000     +250 waiting    <0.2.0>      m:init/1           "
        "m:g/1\n"
        "         5   1.0 MB  -3.0 KB        3       -2 waiting    <0.3.0>      evil?[2J           "
        "m:h/2\n"
        "      self     total function\n"
        "    75.0 %    75.0 % m:f/0\n"
        "     2.5 %   100.0 % m:above/3\n");
}

static void orders(void **state) {
    (void)state;
    struct top_rows *r = rows_of(usual, 3);
    top_rows_sort(r, TOP_BY_QUEUE, TOP_BY_TOTAL);
    assert_string_equal(r->processes[0].pid, "<0.2.0>");
    assert_string_equal(r->processes[1].pid, "<0.3.0>");
    assert_string_equal(r->functions[0].name, "m:above/3");
    top_rows_sort(r, TOP_BY_MEMORY, TOP_BY_SELF);
    assert_string_equal(r->processes[0].pid, "<0.3.0>");
    assert_string_equal(r->processes[2].pid, "<0.2.0>"); // not known
    assert_string_equal(r->functions[0].name, "m:f/0");
}

static void narrow(void **state) {
    (void)state;
    struct top_rows *r = rows_of(usual, 3);
    for (uint32_t width = 1; width < 130; width++) {
        struct top_style style = wide;
        style.width = width;
        style.keys = true;
        const char *at = drawn(r, &style, false);
        for (const char *end; *at; at = end + 1) {
            end = strchr(at, '\n');
            assert_non_null(end);
            assert_true(width < 60 || (uint32_t)(end - at) < width + 6); // … takes three bytes
        }
    }
}

static void json(void **state) {
    (void)state;
    const char *text = drawn(rows_of(usual + 1, 1), &wide, true);
    assert_string_equal(
        text,
        "{\"at\":\"now\",\"node\":\"shop@host\",\"seconds\":2,\"by\":\"reductions\",\"samples\":60,"
        "\"busy\":40,\"unanswered\":0,\"held_ms\":0,\"late_ms\":0,\"cost_us\":0,\"processes\":[{"
        "\"pid\":\"<0.2.0>\",\"name\":\"\",\"initial_call\":\"m:init/1\",\"application\":\"app\","
        "\"status\":\"waiting\",\"function\":\"m:g/1\",\"reductions\":20,\"memory\":null,"
        "\"memory_change\":null,\"queue\":70000,\"queue_change\":500,\"samples\":20,"
        "\"unanswered\":0}],\"functions\":[{\"name\":\"m:f/0\",\"self\":30,\"total\":30},{"
        "\"name\":\"m:above/3\",\"self\":1,\"total\":40}]}\n");
}

static void hostile(void **state) {
    (void)state;
    static struct top_rows r;
    static struct sent many[TOP_PROCESSES + 1];
    struct sent one = usual[0];
    assert_false(give(&r, 0, usual, 3, 40));
    assert_false(give(&r, -1, usual, 3, 40));
    assert_false(give(&r, INT64_MAX, usual, 3, 40));
    assert_false(give(&r, 1000, usual, 3, -1));
    one.pid = "";
    assert_false(give(&r, 1000, &one, 1, 40));
    one = usual[0];
    one.reductions = INT64_MIN;
    assert_false(give(&r, 1000, &one, 1, 40));
    one = usual[0];
    one.queue_change = INT64_MIN;
    assert_false(give(&r, 1000, &one, 1, 40));
    for (size_t i = 0; i <= TOP_PROCESSES; i++) {
        many[i] = usual[0];
    }
    assert_true(give(&r, 1, many, TOP_PROCESSES, 40));
    drawn(&r, &wide, false);
    assert_false(give(&r, 1000, many, TOP_PROCESSES + 1, 40));

    // a message without any of it
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, "stacks_view", 1);
    control_text(&w, "duration_us", slice_text("soon"));
    assert_true(control_end(&w));
    struct control *message =
        control_decode(slice_of(b.data + CONTROL_HEADER, b.len - CONTROL_HEADER));
    assert_false(top_rows_take(&r, control_root(message)));
    top_rows_totals(&r, control_root(message));
    control_free(message);
    buffer_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table), cmocka_unit_test(orders),  cmocka_unit_test(narrow),
        cmocka_unit_test(json),  cmocka_unit_test(hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
