// The live table of kprof attach, from messages as the collector sends them.
#include "tool/attach_live.h"

#include "base/limits.h"
#include "unit.h"

struct sent {
    const char *name;
    int64_t requests, errors;
    double mean_us, p99_us;
};

// Sends one second's rows through the codec into the view.
static void second(struct live_view *v, const struct sent *rows, uint32_t count, int64_t dropped) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, "rows", 6);
    control_text(&w, "node", slice_text("shop\x1b[2J@host"));
    control_text(&w, "state", slice_text("tracing"));
    control_number(&w, "seconds", 2);
    control_int(&w, "incomplete", 1);
    control_int(&w, "dropped_messages", dropped);
    control_list(&w, "identities", count);
    for (uint32_t i = 0; i < count; i++) {
        control_map(&w, 5);
        control_text(&w, "identity", slice_text(rows[i].name));
        control_int(&w, "requests", rows[i].requests);
        control_int(&w, "errors", rows[i].errors);
        control_number(&w, "mean_us", rows[i].mean_us);
        control_number(&w, "p99_us", rows[i].p99_us);
    }
    assert_true(control_end(&w));
    struct control *message = control_decode(slice_of(b.data + CONTROL_HEADER, b.len - CONTROL_HEADER));
    assert_non_null(message);
    assert_true(live_take(v, control_root(message)));
    control_free(message);
    buffer_free(&b);
}

static void draws(const struct live_view *v, uint32_t width, uint32_t height, const char *expected) {
    struct buffer out = buffer_make(1 << 20);
    live_table(v, width, height, &out);
    buffer_append(&out, "", 1);
    assert_false(out.failed);
    assert_string_equal((const char *)out.data, expected);
    buffer_free(&out);
}

static void gathers(void **state) {
    static const struct sent first[] = {{"_total", 30, 2, 400, 2000}, {"read", 20, 0, 300, 900}, {"write", 10, 2, 600, 2000}};
    static const struct sent then[] = {{"_total", 3, 3, 1000, 1000}, {"write", 3, 3, 1000, 1000}};
    struct live_view v = {0};
    (void)state;
    second(&v, first, 3, 0);
    draws(&v, 102, 24,
          " identity                                     req/s      mean       p99    errors            requests\n"
          " read                                            10    300 µs    900 µs         0       0 %        20\n"
          " write                                          5.0    600 µs    2.0 ms         2      20 %        10\n"
          " _total                                          15    400 µs    2.0 ms         2     6.7 %        30\n"
          " shop?[2J@host: tracing\n"
          " lost: requests incomplete 1, expired 0; messages dropped 0, unreadable 0\n");
    second(&v, then, 2, 7);
    draws(&v, 102, 24,
          " identity                                     req/s      mean       p99    errors            requests\n"
          " read                                             0         -         -         0       0 %        20\n"
          " write                                          1.5    1.0 ms    1.0 ms         5      38 %        13\n"
          " _total                                         1.5    1.0 ms    1.0 ms         5      15 %        33\n"
          " shop?[2J@host: tracing\n"
          " lost: requests incomplete 2, expired 0; messages dropped 7, unreadable 0\n");
    // where there is little room: the busiest, and the first columns
    draws(&v, 40, 6,
          " identity               req/s      mean\n"
          " read                       0         -\n"
          " … and 1 more\n"
          " _total                   1.5    1.0 ms\n"
          " shop?[2J@host: tracing\n"
          " lost: requests incomplete 2, expired …\n");
    live_view_free(&v);
}

static void nothing_yet(void **state) {
    struct live_view v = {0};
    (void)state;
    second(&v, NULL, 0, 0);
    draws(&v, 102, 24,
          " identity                                     req/s      mean       p99    errors            requests\n"
          " _total                                           0         -         -         0       0 %         0\n"
          " shop?[2J@host: tracing\n"
          " lost: requests incomplete 1, expired 0; messages dropped 0, unreadable 0\n");
    live_view_free(&v);
}

// More identities than are kept, and no line too many or too wide, whatever the terminal.
static void many(void **state) {
    enum { EACH = 600 };
    static struct sent rows[EACH];
    static char names[EACH][160];
    struct live_view v = {0};
    (void)state;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < EACH; i++) {
            snprintf(names[i], sizeof names[i], "%d_%d_%0140d", round, i, i);
            rows[i] = (struct sent){names[i], i, 0, 1, 1};
        }
        second(&v, rows, EACH, 0);
    }
    assert_int_equal(v.count, LIVE_ROWS);
    for (uint32_t width = 40; width < 200; width += 7) {
        for (uint32_t height = 5; height < 60; height += 11) {
            struct buffer out = buffer_make(1 << 20);
            uint32_t lines = 0, longest = 0, line = 0;
            live_table(&v, width, height, &out);
            for (size_t i = 0; i < out.len; i++) {
                line = out.data[i] == '\n' ? 0 : line + ((out.data[i] & 0xc0) != 0x80);
                longest = line > longest ? line : longest;
                lines += out.data[i] == '\n';
            }
            assert_in_range(lines, 1, height);
            assert_in_range(longest, 1, width - 1);
            buffer_free(&out);
        }
    }
    live_view_free(&v);
}

static void no_memory(void **state) {
    struct live_view v = {0};
    (void)state;
    fail_alloc_at(0);
    bool taken = live_take(&v, (struct control_map){0});
    fail_alloc_at(-1);
    assert_false(taken);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(gathers), cmocka_unit_test(nothing_yet), cmocka_unit_test(many),
                                       cmocka_unit_test(no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
