// SPDX-License-Identifier: Apache-2.0
// The live table of kprof attach, from messages as the collector sends them.
#include "tool/attach/view.h"

#include "base/limits.h"
#include "unit.h"

struct sent {
    const char *name;
    int64_t requests, errors;
    double mean_us, p99_us;
    int64_t incomplete, expired;
};

// Sends one second's rows through the codec into the view.
static void second(struct view *v, const struct sent *rows, uint32_t count, int64_t dropped) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, "rows", 6);
    control_text(&w, "node", slice_text("shop\x1b[2J@host"));
    control_text(&w, "state", slice_text("tracing"));
    control_number(&w, "seconds", 2);
    control_int(&w, "incomplete", 1);
    control_int(&w, "dropped_messages", dropped);
    control_list(&w, "identities", count);
    for (uint32_t i = 0; i < count; i++) {
        control_map(&w, 7);
        control_text(&w, "identity", slice_text(rows[i].name));
        control_int(&w, "requests", rows[i].requests);
        control_int(&w, "errors", rows[i].errors);
        control_number(&w, "mean_us", rows[i].mean_us);
        control_number(&w, "p99_us", rows[i].p99_us);
        control_int(&w, "incomplete", rows[i].incomplete);
        control_int(&w, "expired", rows[i].expired);
    }
    assert_true(control_end(&w));
    struct control *message =
        control_decode(slice_of(b.data + CONTROL_HEADER, b.len - CONTROL_HEADER));
    assert_non_null(message);
    assert_true(view_take(v, control_root(message)));
    control_free(message);
    buffer_free(&b);
}

static void drawn(const struct view *v, const struct view_style *style, const char *expected) {
    struct buffer out = buffer_make(1 << 20);
    view_table(v, style, &out);
    buffer_append(&out, "", 1);
    assert_false(out.failed);
    assert_string_equal((const char *)out.data, expected);
    buffer_free(&out);
}

static void draws(const struct view *v, uint32_t width, uint32_t height, const char *expected) {
    drawn(v, &(struct view_style){.width = width, .height = height}, expected);
}

static void failed_of_all(void **state) {
    static const struct {
        uint32_t requests, errors;
        const char *shown;
    } cases[] = {{30, 30, "100 %"},
                 {1000, 999, "100 %"},
                 {1000, 5, "0.5 %"},
                 {1000, 99, "9.9 %"},
                 {1000, 100, "10 %"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct view v = {0};
        const struct sent sent = {"_total", cases[i].requests, cases[i].errors, 400, 2000, 0, 0};
        second(&v, &sent, 1, 0);
        struct buffer out = buffer_make(1 << 20);
        view_table(&v, &(struct view_style){.width = 102, .height = 24}, &out);
        buffer_append(&out, "", 1);
        const char *total = strstr((const char *)out.data, " _total");
        assert_non_null(total);
        const char *end = strchr(total, '\n');
        assert_memory_equal(end - strlen(cases[i].shown) - 1, " ", 1);
        assert_memory_equal(end - strlen(cases[i].shown), cases[i].shown, strlen(cases[i].shown));
        buffer_free(&out);
        view_free(&v);
    }
}

static void gathers(void **state) {
    static const struct sent first[] = {{"_total", 30, 2, 400, 2000, 1, 0},
                                        {"read", 20, 0, 300, 900, 0, 0},
                                        {"write", 10, 2, 600, 2000, 0, 0},
                                        {"undefined", 0, 0, 0, 0, 1, 0}};
    static const struct sent then[] = {{"_total", 3, 3, 1000, 1000, 2, 3},
                                       {"write", 3, 3, 1000, 1000, 2, 3}};
    struct view v = {0};
    (void)state;
    second(&v, first, 4, 0);
    draws(
        &v, 102, 24,
        " identity                                   req/s     mean      p99  errors    lost  requests  failed\n"
        " read                                          10   300 µs   900 µs       0       0        20     0 %\n"
        " write                                        5.0   600 µs   2.0 ms       2       0        10    20 %\n"
        " undefined                                      0        -        -       0       1         0     0 %\n"
        " _total                                        15   400 µs   2.0 ms       2       1        30   6.7 %\n"
        " shop?[2J@host: tracing\n"
        " lost: requests incomplete 1, expired 0; messages dropped 0, unreadable 0\n");
    second(&v, then, 2, 7);
    draws(
        &v, 102, 24,
        " identity                                   req/s     mean      p99  errors    lost  requests  failed\n"
        " read                                           0        -        -       0       0        20     0 %\n"
        " write                                        1.5   1.0 ms   1.0 ms       5       5        13    38 %\n"
        " undefined                                      0        -        -       0       1         0     0 %\n"
        " _total                                       1.5   1.0 ms   1.0 ms       5       6        33    15 %\n"
        " shop?[2J@host: tracing\n"
        " lost: requests incomplete 2, expired 0; messages dropped 7, unreadable 0\n");
    // where there is little room: the busiest, and the first columns
    draws(&v, 80, 24,
          " identity             req/s     mean      p99  errors    lost  requests  failed\n"
          " read                     0        -        -       0       0        20     0 %\n"
          " write                  1.5   1.0 ms   1.0 ms       5       5        13    38 %\n"
          " undefined                0        -        -       0       1         0     0 %\n"
          " _total                 1.5   1.0 ms   1.0 ms       5       6        33    15 %\n"
          " shop?[2J@host: tracing\n"
          " lost: requests incomplete 2, expired 0; messages dropped 7, unreadable 0\n");
    draws(&v, 40, 6,
          " identity       req/s     mean      p99\n"
          " read               0        -        -\n"
          " … and 2 more\n"
          " _total           1.5   1.0 ms   1.0 ms\n"
          " shop?[2J@host: tracing\n"
          " lost: requests incomplete 2, expired …\n");
    view_free(&v);
}

static void colours(void **state) {
    static const struct sent rows[] = {{"_total", 30, 2, 400, 2000, 1, 0},
                                       {"read", 20, 0, 300, 900, 0, 0}};
    struct view v = {0};
    (void)state;
    second(&v, rows, 2, 0);
    drawn(
        &v, &(struct view_style){.width = 64, .height = 24, .colour = true},
        "\x1b[1m identity               req/s     mean      p99  errors    lost\n\x1b[0m"
        " read                      10   300 µs   900 µs       0       0\n"
        " _total                    15   400 µs   2.0 ms\x1b[31m       2\x1b[0m\x1b[33m       1\x1b[0m\n"
        " shop?[2J@host: tracing\n"
        "\x1b[33m lost: requests incomplete 1, expired 0; messages dropped 0, u…\x1b[0m\n");
    view_free(&v);
}

static void nothing_yet(void **state) {
    struct view v = {.hint = "are there any"};
    struct buffer b = buffer_make(4096);
    struct control_writer w = control_begin(&b, "rows", 2);
    control_text(&w, "node", slice_text("shop@host.example.org"));
    control_text(&w, "state", slice_text("paused"));
    assert_true(control_end(&w));
    struct control *message =
        control_decode(slice_of(b.data + CONTROL_HEADER, b.len - CONTROL_HEADER));
    (void)state;
    draws(&v, 80, 24, "");
    assert_true(view_take(&v, control_root(message)));
    draws(&v, 80, 24,
          " identity             req/s     mean      p99  errors    lost  requests  failed\n"
          " _total                   0        -        -       0       0         0     0 %\n"
          " shop@host: paused\n"
          " no request yet: are there any\n");
    control_free(message);
    buffer_free(&b);
    view_free(&v);
}

// Tiers are called, but nothing begins a request: the line says so, until there is one.
static void unmarked(void **state) {
    static const struct sent one[] = {{"_total", 1, 0, 400, 400, 0, 0}};
    struct view v = {.hint = "are there any"};
    struct buffer b = buffer_make(4096), out = buffer_make(1 << 16);
    struct control_writer w = control_begin(&b, "rows", 3);
    control_text(&w, "node", slice_text("shop@host"));
    control_text(&w, "state", slice_text("tracing"));
    control_int(&w, "unmarked_calls", 4120);
    assert_true(control_end(&w));
    struct control *message =
        control_decode(slice_of(b.data + CONTROL_HEADER, b.len - CONTROL_HEADER));
    (void)state;
    assert_true(view_take(&v, control_root(message)));
    draws(&v, 80, 24,
          " identity             req/s     mean      p99  errors    lost  requests  failed\n"
          " _total                   0        -        -       0       0         0     0 %\n"
          " shop@host: tracing\n"
          " armed; 4,120 calls, but nothing has begun a request:\n"
          "  give --entry, or mark requests (README, Your own node)\n");
    v.hint = NULL; // there is an entry
    view_table(&v, &(struct view_style){.width = 120, .height = 24}, &out);
    buffer_append(&out, "", 1);
    assert_non_null(strstr(
        (const char *)out.data,
        " armed; 4,120 calls, but nothing has begun a request: no call of the entry was seen\n"));
    buffer_reset(&out);
    view_json(control_root(message), "now", &out);
    buffer_append(&out, "", 1);
    assert_non_null(strstr((const char *)out.data, "\"unmarked_calls\":4120,"));
    second(&v, one, 1, 0);
    assert_int_equal(v.unmarked_calls, 0);
    control_free(message);
    buffer_free(&b);
    buffer_free(&out);
    view_free(&v);
}

// More identities than are kept, and no line too many or too wide, whatever the terminal.
static void many(void **state) {
    enum { EACH = LIMIT_IDENTITIES + 3 }; // as many as a collector may send
    static struct sent rows[EACH];
    static char names[EACH][160];
    struct view v = {0};
    (void)state;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < EACH; i++) {
            snprintf(names[i], sizeof names[i], "%d_%d_%0140d", round, i, i);
            rows[i] = (struct sent){names[i], i, 0, 1e9, 1e9, INT64_MAX / 2, 1};
        }
        second(&v, rows, EACH, 0);
    }
    assert_int_equal(v.count, VIEW_ROWS);
    for (uint32_t width = 1; width < 200; width += width < 60 ? 1 : 7) {
        for (uint32_t height = 1; height < 60; height += height < 8 ? 1 : 11) {
            struct buffer out = buffer_make(1 << 20);
            uint32_t lines = 0, longest = 0, line = 0;
            view_table(&v, &(struct view_style){.width = width, .height = height}, &out);
            for (size_t i = 0; i < out.len; i++) {
                line = out.data[i] == '\n' ? 0 : line + ((out.data[i] & 0xc0) != 0x80);
                longest = line > longest ? line : longest;
                lines += out.data[i] == '\n';
            }
            assert_in_range(lines, 1, height);
            assert_true(longest < (width > 1 ? width : 2));
            buffer_free(&out);
        }
    }
    view_free(&v);
}

static void no_memory(void **state) {
    struct view v = {0};
    (void)state;
    fail_alloc_at(0);
    bool taken = view_take(&v, (struct control_map){0});
    fail_alloc_at(-1);
    assert_false(taken);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(gathers),  cmocka_unit_test(failed_of_all),
                                       cmocka_unit_test(colours),  cmocka_unit_test(nothing_yet),
                                       cmocka_unit_test(unmarked), cmocka_unit_test(many),
                                       cmocka_unit_test(no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
