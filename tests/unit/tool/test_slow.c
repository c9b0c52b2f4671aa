// SPDX-License-Identifier: Apache-2.0
// Files of report/ and tool/slow/: the text to the letter from structs, and
// the command on a database.
#include "tool_fixture.h"

#include "model/message/message.h"
#include "tool/slow/print.h"
#include "tool/text.h"

enum { MS = 1000000 };

static const struct profile_list no_profiles;

static const int64_t NOON_NS = 1763640000123456789;

// Names in memory of their own: they are cleaned in place.
static char texts[128][64];
static int text_count;

static const char *text(const char *content) {
    char *t = texts[text_count++ % 128];
    snprintf(t, sizeof texts[0], "%s", content);
    return t;
}

static struct slow_request request(int64_t id, int64_t duration_ns, uint32_t spans) {
    return (struct slow_request){.id = id,
                                 .node = text("shop@host"),
                                 .identity = text("order"),
                                 .reason = "over",
                                 .outcome = "ok",
                                 .started_ns = NOON_NS,
                                 .duration_ns = duration_ns,
                                 .spans = spans,
                                 .kept = spans};
}

static struct slow_span span(uint32_t parent, const char *name, const char *pid, int64_t start_ms,
                             int64_t ms) {
    return (struct slow_span){.start_ns = start_ms * MS,
                              .duration_ns = ms * MS,
                              .self_ns = ms * MS,
                              .parent = parent,
                              .name = text(name),
                              .pid = text(pid),
                              .outcome = "ok"};
}

static void expect(struct buffer *out, const char *expected) {
    assert_false(out->failed);
    buffer_append(out, "", 1);
    if (strcmp((char *)out->data, expected) != 0) {
        fail_msg("got\n%s\nexpected\n%s", (char *)out->data, expected);
    }
    buffer_free(out);
}

static struct buffer waterfall(struct slow_spans *s, uint32_t width, bool utf8, bool colour) {
    struct waterfall_style style = {.width = width, .utf8 = utf8, .colour = colour};
    struct buffer out = buffer_make(64 << 20);
    slow_clean_spans(s);
    slow_waterfall(s, &style, &out);
    return out;
}

// Line number n (0: the first) of a text, in a buffer that the next call uses again.
static const char *line_of(const struct buffer *out, int n) {
    static char line[4096];
    const char *at = (const char *)out->data, *end = at + out->len;
    for (; n > 0; n--) {
        at = memchr(at, '\n', (size_t)(end - at));
        assert_non_null(at);
        at++;
    }
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    assert_non_null(newline);
    assert_true((size_t)(newline - at) < sizeof line);
    memcpy(line, at, (size_t)(newline - at));
    line[newline - at] = 0;
    return line;
}

enum { FIRST_SPAN = 4 }; // the lines before: the request, why it was kept, none, headings

static int lines_of(const struct buffer *out) {
    int lines = 0;
    for (size_t i = 0; i < out->len; i++) {
        lines += out->data[i] == '\n';
    }
    return lines;
}

// -- the waterfall

static void shop(struct slow_spans *s) {
    static struct slow_span spans[5];
    spans[0] = span(UINT32_MAX, "http", "<0.100.0>", 0, 40);
    spans[1] = span(0, "pool", "<0.100.0>", 1, 20);
    spans[2] = span(1, "storage", "<0.55.0>", 8, 12);
    spans[3] = span(0, "render", "<0.100.0>", 30, 4);
    spans[4] = span(UINT32_MAX, "accounting", "<0.77.0>", 35, 15);
    spans[2].wait_ns = 5 * MS;
    spans[2].outcome = "error";
    spans[4].async = true;
    spans[4].self_ns = 0;
    *s = (struct slow_spans){.request = request(12, 40 * MS, 5), .spans = spans, .count = 5};
}

static void test_waterfall(void **state) {
    (void)state;
    struct slow_spans s;
    shop(&s);
    struct buffer out = waterfall(&s, 100, true, false);
    expect(
        &out,
        " Request 12, order: 40 ms, ok, at 2025-11-20T12:00:00.123456Z on shop@host\n"
        " Kept because it took longer than the threshold. 5 spans.\n"
        "\n"
        " offset                                  duration    self    wait  process    tier         outcome\n"
        "   0 ns  ████████████████████████│          40 ms   40 ms       -  <0.100.0>  http         ok\n"
        " 1.0 ms  ▐███████████▋           │          20 ms   20 ms       -  <0.100.0>    pool       ok\n"
        " 8.0 ms   ╌╌╌▕███████            │          12 ms   12 ms  5.0 ms  <0.55.0>       storage  error\n"
        "  30 ms                    ██▍   │         4.0 ms  4.0 ms       -  <0.100.0>    render     ok\n"
        "  35 ms                       █████████     15 ms       -       -  <0.77.0>   accounting   ok, "
        "async\n"
        "\n"
        " ╌ its caller waited for it to begin (estimated)   │ end of the request\n");
    s.request.reason = "failed";
    s.request.outcome = "error";
    out = waterfall(&s, 80, false, false);
    expect(&out,
           " Request 12, order: 40 ms, error, at 2025-11-20T12:00:00.123456Z on shop@host\n"
           " Kept because it failed. 5 spans.\n"
           "\n"
           " offset              duration    self    wait  process    tier         outcome\n"
           "   0 ns  ########|      40 ms   40 ms       -  <0.100.0>  http         ok\n"
           " 1.0 ms  #####   |      20 ms   20 ms       -  <0.100.0>    pool       ok\n"
           " 8.0 ms  -###    |      12 ms   12 ms  5.0 ms  <0.55.0>       storage  error\n"
           "  30 ms        # |     4.0 ms  4.0 ms       -  <0.100.0>    render     ok\n"
           "  35 ms         ###     15 ms       -       -  <0.77.0>   accounting   ok, async\n"
           "\n"
           " - its caller waited for it to begin (estimated)   | end of the request\n");
}

static void test_colours(void **state) {
    (void)state;
    struct slow_spans s;
    shop(&s);
    struct buffer out = waterfall(&s, 80, false, true);
    assert_string_equal(
        line_of(&out, 0),
        "\x1b[1m Request 12, order: 40 ms, ok, at 2025-11-20T12:00:00.123456Z on shop@host\x1b[0m");
    assert_string_equal(
        line_of(&out, FIRST_SPAN),
        "   0 ns  ########\x1b[2m| \x1b[0m     40 ms   40 ms       -  <0.100.0>  http         ok");
    assert_string_equal(
        line_of(&out, FIRST_SPAN + 2),
        " 8.0 ms  \x1b[2m-\x1b[0m\x1b[31m###    \x1b[0m\x1b[2m| \x1b[0m     12 ms   12 ms  "
        "5.0 ms  <0.55.0>       storage  \x1b[31merror\x1b[0m");
    buffer_free(&out);
}

// Where a bar begins and ends, to the eighth of a column: ten columns are 80 ns.
static void test_bars(void **state) {
    (void)state;
    static const struct {
        int64_t start, duration, wait;
        const char *bar;
    } cases[] = {{0, 80, 0, "██████████"},  {0, 1, 0, "▏         "},   {0, 2, 0, "▎         "},
                 {0, 3, 0, "▍         "},   {0, 4, 0, "▌         "},   {0, 5, 0, "▋         "},
                 {0, 6, 0, "▊         "},   {0, 7, 0, "▉         "},   {0, 8, 0, "█         "},
                 {0, 9, 0, "█▏        "},   {8, 8, 0, " █        "},   {10, 14, 0, " ██       "},
                 {11, 13, 0, " ▐█       "}, {14, 10, 0, " ▕█       "}, {79, 1, 0, "         ▕"},
                 {80, 0, 0, "         ▕"},  {40, 0, 0, "     ▏    "},  {40, 8, 16, "   ╌╌█    "},
                 {40, 8, 400, "╌╌╌╌╌█    "}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct slow_span one = span(UINT32_MAX, "http", "<0.1.0>", 0, 0);
        one.start_ns = cases[i].start;
        one.duration_ns = cases[i].duration;
        one.wait_ns = cases[i].wait;
        struct slow_spans s = {.request = request(1, 80, 1), .spans = &one, .count = 1};
        struct buffer out = waterfall(&s, 1, true, false);
        const char *line = strstr(line_of(&out, FIRST_SPAN), "ns  ");
        assert_non_null(line);
        if (strncmp(line + 4, cases[i].bar, strlen(cases[i].bar)) != 0) {
            fail_msg("bar %zu: got\n%s\nexpected\n%s", i, line + 4, cases[i].bar);
        }
        buffer_free(&out);
    }
}

// Children come under their parent, in order of start, however they lie among the others.
static void test_tree_order(void **state) {
    (void)state;
    static const struct {
        uint32_t parent;
        const char *line; // the tier column
    } spans[] = {{UINT32_MAX, "  0"}, {UINT32_MAX, "  5"}, {0, "    1"},   {1, "    6"},
                 {2, "      2"},      {0, "    3"},        {5, "      4"}, {1, "    7"}};
    struct slow_span list[8];
    for (int i = 0; i < 8; i++) {
        list[i] =
            span(spans[i].parent, spans[i].line + strspn(spans[i].line, " "), "<0.1.0>", i, 1);
    }
    struct slow_spans s = {.request = request(1, 10 * MS, 8), .spans = list, .count = 8};
    struct buffer out = waterfall(&s, 80, false, false);
    for (int i = 0; i < 8; i++) {
        char place[16];
        for (int k = 0; k < 8; k++) {
            if (atoi(spans[k].line) == i) {
                snprintf(place, sizeof place, "<0.1.0>%s ", spans[k].line);
            }
        }
        if (!strstr(line_of(&out, FIRST_SPAN + i), place)) {
            fail_msg("line %d lacks '%s':\n%.*s", i, place, (int)out.len, (char *)out.data);
        }
    }
    buffer_free(&out);
}

static void test_open_blind_gc_off_cpu(void **state) {
    (void)state;
    struct slow_span spans[] = {span(UINT32_MAX, "http", "<0.1.0>", 0, 10),
                                span(0, "db", "<0.1.0>", 2, 0), span(0, "cache", "<0.1.0>", 1, 1)};
    spans[0].gc_ns = 1200000;
    spans[0].outcome = "unknown";
    spans[1].outcome = "open";
    spans[1].duration_ns = spans[1].self_ns = 0;
    spans[2].off_cpu_ns = 900;
    struct slow_spans s = {.request = request(7, 10 * MS, 5), .spans = spans, .count = 3};
    s.request.reason = "slowest";
    s.request.kept = 3;
    s.request.cut = true;
    struct buffer out = waterfall(&s, 105, true, false);
    expect(
        &out,
        " Request 7, order: 10 ms, ok, at 2025-11-20T12:00:00.123456Z on shop@host\n"
        " Kept because it was among the slowest of its time. 5 spans.\n"
        "\n"
        " offset                                duration    self  wait      gc  off-cpu  process  "
        "tier     outcome\n"
        "   0 ns  ████████████████████████████     10 ms   10 ms     -  1.2 ms        -  <0.1.0>  "
        "http     unknown\n"
        " 2.0 ms       ░░░░░░░░░░░░░░░░░░░░░░░         -       -     -       -        -  <0.1.0>    "
        "db     open\n"
        " 1.0 ms    ▕██▋                          1.0 ms  1.0 ms     -       -   900 ns  <0.1.0>    "
        "cache  ok\n"
        "\n"
        " ░ no return seen   unknown: its tier has returns => none\n"
        "\n"
        " 3 of 5 spans were kept, the first by start.\n"
        "\n"
        " It had more spans than the collector takes: it counts as incomplete, and what was cut is "
        "not here.\n");
}

// What is too deep to be indented tells its depth; what is too long for the line is cut.
static void test_deep_and_narrow(void **state) {
    (void)state;
    struct slow_span spans[40];
    for (uint32_t i = 0; i < 40; i++) {
        spans[i] = span(i - 1, "storage_of_the_whole_shop", "<0.100.0>", i, 80 - i);
    }
    struct slow_spans s = {.request = request(1, 80 * MS, 40), .spans = spans, .count = 40};
    struct buffer out = waterfall(&s, 140, false, false);
    assert_non_null(strstr(line_of(&out, FIRST_SPAN + 12),
                           "<0.100.0>                          storage_of_the_whole_shop"));
    assert_non_null(
        strstr(line_of(&out, FIRST_SPAN + 13),
               "<0.100.0>                          [13] storage_of_the_whole_shop  ok"));
    for (int i = FIRST_SPAN - 1; i < FIRST_SPAN + 40; i++) {
        assert_true(text_width(line_of(&out, i)) <= 140);
    }
    buffer_free(&out);
    out = waterfall(&s, 88, false, false);
    assert_non_null(
        strstr(line_of(&out, FIRST_SPAN + 39), "<0.100.0>              [39] storag…  ok"));
    for (int i = FIRST_SPAN - 1; i < FIRST_SPAN + 40; i++) {
        assert_true(text_width(line_of(&out, i)) <= 88);
    }
    buffer_free(&out);
}

// -- what no collector writes

static void test_hostile_names(void **state) {
    (void)state;
    struct slow_span one = span(UINT32_MAX, "a\x1b[2Jb\n\xc2\x9b", "<0.1\r.0>", 0, 1);
    struct slow_spans s = {.request = request(1, 1 * MS, 1), .spans = &one, .count = 1};
    s.request.identity = text("evil\x1b[31m");
    s.request.node = text("no\nde");
    struct buffer out = waterfall(&s, 80, false, false);
    assert_non_null(strstr(line_of(&out, 0), "evil?[31m: 1.0 ms"));
    assert_non_null(strstr(line_of(&out, 0), "no?de"));
    assert_non_null(strstr(line_of(&out, FIRST_SPAN), "<0.1?.0>  a?[2Jb??  ok"));
    assert_null(memchr(out.data, 27, out.len));
    buffer_free(&out);

    static char name[1002];
    for (int i = 0; i < 500; i++) {
        memcpy(name + 2 * i, "ö", 2);
    }
    one.name = name; // longer than a cell, cut in the middle of a character
    out = waterfall(&s, 80, true, false);
    assert_non_null(strstr(line_of(&out, FIRST_SPAN), "<0.1?.0>  ööööööööööööööööööööööö…  ok"));
    buffer_free(&out);
}

// Numbers of any size and parents of any kind: each span has its line, and nothing is read or
// written past its end (under the sanitizers).
static void test_hostile_numbers(void **state) {
    (void)state;
    static const int64_t values[] = {INT64_MIN, INT64_MIN + 1, -1000000,      -1,       0, 1,
                                     999,       40000000,      INT64_MAX - 1, INT64_MAX};
    static const char *const outcomes[] = {"ok", "error", "open", "unknown", ""};
    enum { VALUES = sizeof values / sizeof *values, SPANS = 50 };
    uint64_t seed = 5;
    for (int round = 0; round < 300; round++) {
        struct slow_span spans[SPANS];
        for (uint32_t i = 0; i < SPANS; i++) {
            int64_t n[6];
            for (int k = 0; k < 6; k++) {
                n[k] = values[random_u64(&seed) % VALUES];
            }
            static const uint32_t odd[] = {UINT32_MAX, UINT32_MAX - 1, SPANS, SPANS - 1, 0};
            uint32_t parent = random_u64(&seed) % 2 ? (uint32_t)(random_u64(&seed) % (SPANS + 2))
                                                    : odd[random_u64(&seed) % 5];
            spans[i] = (struct slow_span){n[0],
                                          n[1],
                                          n[2],
                                          n[3],
                                          n[4],
                                          n[5],
                                          parent,
                                          0,
                                          text("db"),
                                          text("<0.1.0>"),
                                          outcomes[random_u64(&seed) % 5],
                                          random_u64(&seed) % 2 ? text("w@h") : NULL,
                                          random_u64(&seed) % 2,
                                          0,
                                          n[5],
                                          n[4],
                                          random_u64(&seed) % 2};
        }
        struct slow_spans s = {.request = request(1, values[random_u64(&seed) % VALUES], SPANS),
                               .spans = spans,
                               .count = SPANS};
        s.request.started_ns = values[random_u64(&seed) % VALUES];
        struct buffer out =
            waterfall(&s, (uint32_t)(random_u64(&seed) % 200), round % 2, round % 3 == 0);
        assert_false(out.failed);
        assert_true(lines_of(&out) >= FIRST_SPAN + SPANS);
        assert_true(lines_of(&out) <= FIRST_SPAN + SPANS + 4);
        buffer_reset(&out);
        slow_spans_json(&s, &no_profiles, &out);
        assert_int_equal(lines_of(&out), 1);
        buffer_free(&out);
    }
}

static void test_parents_that_are_none(void **state) {
    (void)state;
    struct slow_span spans[] = {span(0, "own", "<0.1.0>", 0, 1), span(2, "later", "<0.1.0>", 0, 1),
                                span(99, "absent", "<0.1.0>", 0, 1),
                                span(2, "child", "<0.1.0>", 0, 1)};
    struct slow_spans s = {.request = request(1, 1 * MS, 4), .spans = spans, .count = 4};
    static const char *const expected[] = {"<0.1.0>  own ", "<0.1.0>  later ", "<0.1.0>  absent ",
                                           "<0.1.0>    child "};
    struct buffer out = waterfall(&s, 80, false, false);
    for (int i = 0; i < 4; i++) {
        if (!strstr(line_of(&out, FIRST_SPAN + i), expected[i])) {
            fail_msg("no '%s' in\n%s", expected[i], line_of(&out, FIRST_SPAN + i));
        }
    }
    buffer_reset(&out);
    slow_spans_json(&s, &no_profiles, &out);
    buffer_append(&out, "", 1);
    assert_non_null(strstr((char *)out.data, "\"span\":0,\"parent\":null"));
    assert_non_null(strstr((char *)out.data, "\"span\":1,\"parent\":null"));
    assert_non_null(strstr((char *)out.data, "\"span\":3,\"parent\":2"));
    buffer_free(&out);
}

static void test_no_spans(void **state) {
    (void)state;
    struct slow_spans s = {.request = request(1, 0, 0)};
    struct buffer out = waterfall(&s, 80, true, false);
    expect(&out, " Request 1, order: 0 ns, ok, at 2025-11-20T12:00:00.123456Z on shop@host\n"
                 " Kept because it took longer than the threshold. 0 spans.\n");
}

static void test_no_memory(void **state) {
    (void)state;
    struct slow_spans s;
    shop(&s);
    struct buffer out = waterfall(&s, 80, true, false);
    buffer_free(&out);
    fail_alloc_at(-1);
    out = waterfall(&s, 80, true, false);
    long allocations = fail_alloc_count();
    assert_true(allocations > 4);
    buffer_free(&out);
    for (long n = 0; n < allocations; n++) {
        fail_alloc_at(n);
        out = waterfall(&s, 80, true, false);
        fail_alloc_at(-1);
        assert_true(out.failed);
        buffer_free(&out);
    }
}

// -- the list

static void test_list(void **state) {
    (void)state;
    struct slow_request requests[] = {request(12, 40 * MS, 5), request(3, 1200000, 20000)};
    requests[1].cut = true;
    requests[1].outcome = "error";
    requests[1].reason = "failed";
    requests[1].identity = text("größe\x1b");
    struct slow_list list = {.requests = requests, .count = 2};
    slow_clean_list(&list);
    struct buffer out = buffer_make(4096);
    slow_table(&list, &(struct source){.db = "kprof.db"}, true, &out);
    expect(
        &out,
        " id   started                       identity   duration   outcome   reason   spans\n"
        " 12   2025-11-20T12:00:00.123456Z   order         40 ms   ok        over     5\n"
        "  3   2025-11-20T12:00:00.123456Z   größe?       1.2 ms   error     failed   20000, cut\n"
        "\n"
        " 2 requests, the slowest first; --limit shows more. Cut: it had more spans than the collector "
        "takes.\n"
        " kprof slow ID --db kprof.db draws one.\n");
    requests[1].node = text("other@host");
    list.count = 1;
    out = buffer_make(4096);
    slow_table(&list, &(struct source){.db = "kprof.db"}, false, &out);
    assert_null(strstr(line_of(&out, 0), "node"));
    assert_string_equal(line_of(&out, 3), " 1 request, the slowest first.");
    buffer_reset(&out);
    list.count = 2;
    slow_table(&list, &(struct source){.db = "kprof.db"}, false, &out);
    assert_string_equal(line_of(&out, 0),
                        " id   started                       node         identity   duration   "
                        "outcome   reason   spans");
    assert_string_equal(line_of(&out, 1),
                        " 12   2025-11-20T12:00:00.123456Z   shop@host    order         40 ms   "
                        "ok        over     5");
    buffer_free(&out);
}

static void test_started(void **state) {
    (void)state;
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000000Z"},         {1999, "1970-01-01T00:00:00.000001Z"},
        {-1, "1969-12-31T23:59:59.999999Z"},        {-1000000001, "1969-12-31T23:59:58.999999Z"},
        {INT64_MAX, "2262-04-11T23:47:16.854775Z"}, {INT64_MIN, "1677-09-21T00:12:43.145224Z"}};
    char out[TEXT_TIME_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(slow_started(cases[i].ns, out), cases[i].text);
    }
}

static void test_list_json(void **state) {
    (void)state;
    struct slow_request one = request(12, 40 * MS + 1, 5);
    one.cut = true;
    one.kept = 2;
    struct slow_list list = {.requests = &one, .count = 1};
    struct buffer out = buffer_make(4096);
    slow_list_json(&list, &out);
    expect(
        &out,
        "{\"requests\":[{\"id\":12,\"node\":\"shop@host\",\"identity\":\"order\",\"started_at\":"
        "\"2025-11-20T12:00:00.123456Z\",\"duration_us\":40000.001,\"outcome\":\"ok\",\"reason\":\"over\","
        "\"complete\":false,\"spans\":5,\"kept_spans\":2,\"remote\":false,\"origin\":null,"
        "\"trace_id\":null,\"parent_span_id\":null}]}\n");
}

static void test_spans_json(void **state) {
    (void)state;
    struct slow_span spans[] = {span(UINT32_MAX, "http", "<0.1.0>", 0, 40),
                                span(0, "db", "<0.2.0>", 1, 3)};
    spans[1].self_ns = 1500;
    spans[1].waiting_ns = -1; // of a row that an older version has written
    spans[1].wait_ns = 2500;
    spans[1].measured = true;
    spans[1].run_queue_ns = 500;
    spans[1].gc_ns = 3500;
    spans[1].off_cpu_ns = 4500;
    spans[1].async = true;
    spans[1].outcome = "error";
    struct slow_spans s = {.request = request(12, 40 * MS, 2), .spans = spans, .count = 2};
    struct buffer out = buffer_make(4096);
    struct profile_line line = {.id = 7, .head.end_ns = NOON_NS, .counts.requests = 20};
    struct profile_list profiles = {&line, 1};
    slow_spans_json(&s, &profiles, &out);
    expect(
        &out,
        "{\"request\":{\"id\":12,\"node\":\"shop@host\",\"identity\":\"order\",\"started_at\":"
        "\"2025-11-20T12:00:00.123456Z\",\"duration_us\":40000,\"outcome\":\"ok\",\"reason\":\"over\","
        "\"complete\":true,\"spans\":2,\"kept_spans\":2,\"remote\":false,\"origin\":null,"
        "\"trace_id\":null,\"parent_span_id\":null},\"spans\":["
        "{\"span\":0,\"parent\":null,\"node\":\"shop@host\",\"pid\":\"<0.1.0>\",\"name\":\"http\",\"start_us\":0,\"duration_us\":"
        "40000,"
        "\"self_us\":40000,\"wait_us\":0,\"waiting_us\":0,\"measured\":false,\"mailbox_us\":null,\"run_queue_us\":null,\"gc_us\":0,\"off_cpu_us\":0,\"async\":false,\"outcome\":\"ok\"},"
        "{\"span\":1,\"parent\":0,\"node\":\"shop@host\",\"pid\":\"<0.2.0>\",\"name\":\"db\",\"start_us\":1000,\"duration_us\":3000,"
        "\"self_us\":1.5,\"wait_us\":2.5,\"waiting_us\":null,\"measured\":true,\"mailbox_us\":2,\"run_queue_us\":0.5,\"gc_us\":3.5,\"off_cpu_us\":4.5,\"async\":true,\"outcome\":"
        "\"error\"}"
        "],\"parts\":[],\"profiles\":[{\"id\":7,\"ended_at\":\"2025-11-20T12:00:00.123456Z\","
        "\"requests\":20}]}\n");
}

// Of which trace it is, as somebody may have written it into the file.
static void test_asked_for(void **state) {
    (void)state;
    struct slow_spans s = {.request = request(12, 3 * MS, 0)};
    s.request.trace_id = text("0af7651916cd43dd8448eb211c80319c");
    s.request.parent_span_id = text("b7\x1b");
    struct buffer out = waterfall(&s, 100, false, false);
    buffer_append(&out, "", 1);
    assert_non_null(strstr(
        (char *)out.data, "\n Asked for in trace 0af7651916cd43dd8448eb211c80319c by span b7?.\n"));
    buffer_free(&out);
    out = buffer_make(4096);
    slow_spans_json(&s, &no_profiles, &out);
    buffer_append(&out, "", 1);
    assert_non_null(strstr((char *)out.data,
                           "\"origin\":null,\"trace_id\":\"0af7651916cd43dd8448eb211c80319c\","
                           "\"parent_span_id\":\"b7?\"}"));
    buffer_free(&out);
}

// A request of two nodes, seen from both.
static void test_parts(void **state) {
    (void)state;
    struct slow_span one = span(UINT32_MAX, "db", "<0.1.0>", 0, 3);
    struct slow_part parts[] = {{7, text("shop@host"), NOON_NS - 2 * MS, 40 * MS, false},
                                {9, text("w\x1b@host"), NOON_NS + MS, 5 * MS, true}};
    struct slow_spans s = {.request = request(12, 3 * MS, 1),
                           .spans = &one,
                           .count = 1,
                           .parts = parts,
                           .part_count = 2};
    s.request.origin = text("shop@host");
    struct buffer out = waterfall(&s, 100, false, false);
    buffer_append(&out, "", 1);
    assert_non_null(
        strstr((char *)out.data,
               "\n Remote: a part of a request of shop@host.\n"
               " The request itself on shop@host: 40 ms, begun 2.0 ms earlier, kprof slow 7\n"
               " Its part on w?@host: 5.0 ms, begun 1.0 ms later, kprof slow 9\n"));
    buffer_free(&out);
    out = buffer_make(4096);
    slow_spans_json(&s, &no_profiles, &out);
    buffer_append(&out, "", 1);
    assert_non_null(strstr((char *)out.data, "\"remote\":true,\"origin\":\"shop@host\","));
    assert_non_null(strstr(
        (char *)out.data,
        "\"parts\":[{\"id\":7,\"node\":\"shop@host\",\"started_at\":\"2025-11-20T12:00:00.121456Z\","
        "\"duration_us\":40000,\"remote\":false},{\"id\":9,"));
    buffer_free(&out);
}

// Parts stand among the request's own calls: where their clock says, but within the request, and
// below the call that was open.
static void test_joined(void **state) {
    (void)state;
    struct slow_span *own = calloc(3, sizeof *own);
    own[0] = span(UINT32_MAX, "http", "<0.1.0>", 0, 10);
    own[1] = span(0, "ask", "<0.1.0>", 1, 5);
    own[2] = span(0, "page", "<0.1.0>", 7, 2);
    struct slow_span asked[] = {span(UINT32_MAX, "serve", "<0.8.0>", 0, 4),
                                span(0, "db", "<0.8.0>", 1, 2)};
    struct slow_span early = span(UINT32_MAX, "early", "<0.9.0>", 0, 1),
                     late = span(UINT32_MAX, "late", "<0.9.0>", 0, 3);
    struct slow_part parts[] = {{3, text("far@host"), NOON_NS - 50 * MS, MS, true},
                                {4, text("db@w2.example.org"), NOON_NS + 2 * MS, 4 * MS, true},
                                {5, text("gone@host"), NOON_NS + 3 * MS, MS, true},
                                {6, text("far@host"), NOON_NS + 50 * MS, 3 * MS, true}};
    struct slow_spans done[] = {{.spans = &early, .count = 1},
                                {.spans = asked, .count = 2},
                                {.count = 0},
                                {.spans = &late, .count = 1}};
    struct slow_spans s = {.request = request(12, 10 * MS, 3),
                           .spans = own,
                           .count = 3,
                           .parts = parts,
                           .part_count = 4};
    fail_alloc_at(1);
    bool joined = slow_join(&s, done);
    fail_alloc_at(-1);
    assert_false(joined);
    assert_int_equal(s.count, 3);
    assert_true(slow_join(&s, done));
    struct buffer out = waterfall(&s, 96, true, false);
    expect(
        &out,
        " Request 12, order: 10 ms, ok, at 2025-11-20T12:00:00.123456Z on shop@host\n"
        " Kept because it took longer than the threshold. 3 spans.\n"
        " Its part on far@host: 1.0 ms, begun 50 ms earlier, kprof slow 3\n"
        " Its part on db@w2.example.org: 4.0 ms, begun 2.0 ms later, kprof slow 4\n"
        " Its part on gone@host: 1.0 ms, begun 3.0 ms later, kprof slow 5\n"
        " Its part on far@host: 3.0 ms, begun 50 ms later, kprof slow 6\n"
        "\n"
        "  offset                            duration    self  wait  process           tier       outcome\n"
        "    0 ns  ████████████████████████     10 ms  8.0 ms     -  <0.1.0>           http       ok\n"
        "   ~0 ns  ██▍                         1.0 ms  1.0 ms     -  <0.9.0> far@host    early    ok\n"
        "  1.0 ms    ▐███████████▍             5.0 ms  1.0 ms     -  <0.1.0>             ask      ok\n"
        " ~2.0 ms      ▕█████████▍             4.0 ms  4.0 ms     -  <0.8.0> db@w2         serve  ok\n"
        " ~3.0 ms         █████                2.0 ms  2.0 ms     -  <0.8.0> db@w2           db   ok\n"
        "  7.0 ms                  ▕████▋      2.0 ms  2.0 ms     -  <0.1.0>             page     ok\n"
        " ~7.0 ms                  ▕███████    3.0 ms  3.0 ms     -  <0.9.0> far@host    late     ok\n"
        "\n"
        " ~ on another node: timed by that node's clock, and drawn within the call above it, whose self time is less by it here, but not in statistics\n");
    free(s.spans);
}

static uint64_t process_of(const char *node, uint32_t pid) {
    return message_process(slice_text(node), pid);
}

static const struct slow_span *call_of(const struct slow_spans *s, const char *name) {
    for (uint32_t i = 0; i < s->count; i++) {
        if (strcmp(s->spans[i].name, name) == 0) {
            return &s->spans[i];
        }
    }
    fail_msg("no call %s", name);
    return NULL;
}

// The name of the call that one of a name hangs below.
static const char *above(const struct slow_spans *s, const char *name) {
    const struct slow_span *call = call_of(s, name);
    assert_true(call->parent == UINT32_MAX || call->parent < call - s->spans);
    return call->parent == UINT32_MAX ? "" : s->spans[call->parent].name;
}

// What tells its caller hangs there, through any number of nodes whose clocks differ, and an answer
// is no new work.
static void test_joined_by_callers(void **state) {
    (void)state;
    struct slow_span *own = calloc(3, sizeof *own);
    own[0] = span(UINT32_MAX, "http", "<0.1.0>", 0, 20);
    own[1] = span(0, "ask", "<0.1.0>", 1, 12);
    own[2] =
        span(0, "other", "<0.2.0>", 2, 10); // open, too, and begun later, but in another process
    struct slow_span b[] = {span(UINT32_MAX, "serve", "<0.8.0>", 0, 6),
                            span(0, "db", "<0.8.0>", 1, 5),
                            span(UINT32_MAX, "after", "<0.8.0>", 7, 1)};
    struct slow_span c[] = {span(UINT32_MAX, "deep", "<0.9.0>", 0, 2),
                            span(0, "deeper", "<0.9.0>", 1, 1)};
    struct slow_span d[] = {span(UINT32_MAX, "beside", "<0.9.0>", 0, 2)};
    struct slow_span e[] = {span(UINT32_MAX, "guess", "<0.9.0>", 0, 1)};
    b[0].caller = process_of("shop@host", 1);
    b[2].caller = process_of("far@host", 9); // with c's answer
    c[0].caller = process_of("b@host", 8);
    d[0].caller = process_of("shop@host", 1);
    e[0].caller = process_of("nobody@host", 1);
    struct slow_part parts[] = {{3, "far@host", NOON_NS - 50 * MS, 2 * MS,
                                 true}, // its clock is behind, and its caller comes after it
                                {4, "b@host", NOON_NS + 2 * MS, 8 * MS, true},
                                {5, "d@host", NOON_NS + 4 * MS, 2 * MS, true},
                                {6, "e@host", NOON_NS + 3 * MS, MS, true}};
    const struct slow_spans done[] = {{.spans = c, .count = 2},
                                      {.spans = b, .count = 3},
                                      {.spans = d, .count = 1},
                                      {.spans = e, .count = 1}};
    struct slow_spans s = {.request = request(12, 20 * MS, 3),
                           .spans = own,
                           .count = 3,
                           .parts = parts,
                           .part_count = 4};
    assert_true(slow_join(&s, done));
    assert_int_equal(s.count, 10);
    assert_string_equal(above(&s, "serve"), "ask");
    assert_string_equal(above(&s, "db"), "serve");
    assert_string_equal(above(&s, "deep"), "serve");
    assert_int_equal(call_of(&s, "deep")->start_ns, 2 * MS);
    assert_string_equal(above(&s, "deeper"), "deep");
    assert_int_equal(call_of(&s, "deeper")->start_ns, 3 * MS);
    assert_string_equal(above(&s, "after"), "ask");
    assert_string_equal(above(&s, "beside"), "ask");
    assert_string_equal(above(&s, "guess"), "other");
    free(s.spans);
}

// A call's self time is without what other nodes do for it, each moment once, and no less than its
// own node knows of what runs meanwhile.
static void test_joined_self_times(void **state) {
    (void)state;
    struct slow_span *own = calloc(3, sizeof *own);
    own[0] = span(UINT32_MAX, "ask", "<0.1.0>", 0, 20);
    own[1] = span(0, "beside", "<0.2.0>", 4, 6);
    own[2] = span(0, "alone", "<0.2.0>", 18, 1);
    own[0].self_ns = 13 * MS; // as its own node has it: without the 7 ms below
    struct slow_span b = span(UINT32_MAX, "first", "<0.8.0>", 0, 6),
                     c[] = {span(UINT32_MAX, "second", "<0.9.0>", 0, 6),
                            span(0, "within", "<0.9.0>", 1, 5)};
    b.caller = c[0].caller = process_of("shop@host", 1);
    c[0].self_ns = MS;
    struct slow_part parts[] = {{3, "b@host", NOON_NS + 1 * MS, 6 * MS, true},
                                {4, "c@host", NOON_NS + 8 * MS, 6 * MS, true}};
    const struct slow_spans done[] = {{.spans = &b, .count = 1}, {.spans = c, .count = 2}};
    struct slow_spans s = {.request = request(12, 20 * MS, 3),
                           .spans = own,
                           .count = 3,
                           .parts = parts,
                           .part_count = 2};
    assert_true(slow_join(&s, done));
    assert_string_equal(above(&s, "first"), "ask");
    assert_string_equal(above(&s, "second"), "ask");
    // covered are 1 to 14 and 18 to 19
    assert_int_equal(call_of(&s, "ask")->self_ns, 6 * MS);
    assert_int_equal(call_of(&s, "beside")->self_ns, 6 * MS);
    assert_int_equal(call_of(&s, "second")->self_ns, 1 * MS);
    free(s.spans);
}

static struct slow_span hostile_span(uint64_t *seed, uint32_t i) {
    static const char *const pids[] = {"<0.1.0>", "<0.2.0>", "<0.3.0>", "<0.3.0", ""};
    static const char *const nodes[] = {"shop@host", "b@host", "c@host"};
    static const int64_t times[] = {INT64_MIN, -5, 0, 1, 2, 3, 7, 20, INT64_MAX};
    uint64_t x = random_u64(seed);
    bool child = (x >> 16 & 1) && i > 0, called = x >> 24 & 3;
    return (struct slow_span){
        .start_ns = times[x % 9],
        .duration_ns = times[(x >> 4) % 9],
        .name = "db",
        .pid = pids[(x >> 8) % 5],
        .outcome = x >> 12 & 3 ? "ok" : "open",
        .parent = child ? (uint32_t)((x >> 20) % i) : UINT32_MAX,
        .caller = called ? process_of(nodes[(x >> 26) % 3], 1 + (uint32_t)(x >> 32) % 3) : 0};
}

// Callers, processes and times of any kind: each call stays, in the order of time (under the
// sanitizers).
static void test_hostile_joins(void **state) {
    (void)state;
    static const char *const nodes[] = {"shop@host", "b@host", "c@host"};
    static const int64_t times[] = {INT64_MIN, -5, 0, 1, 2, 3, 7, 20, INT64_MAX};
    enum { PARTS = 12, SPANS = 6 };
    uint64_t seed = 11;
    for (int round = 0; round < 2000; round++) {
        struct slow_span spans[PARTS][SPANS];
        struct slow_spans done[PARTS];
        struct slow_part parts[PARTS];
        struct slow_spans s = {.request = request(1, times[random_u64(&seed) % 9], SPANS),
                               .count = SPANS,
                               .parts = parts,
                               .part_count = PARTS};
        uint32_t count = SPANS;
        s.request.started_ns = times[random_u64(&seed) % 9];
        s.spans = calloc(SPANS, sizeof *s.spans);
        for (uint32_t i = 0; i < SPANS; i++) {
            s.spans[i] = hostile_span(&seed, i);
        }
        for (int p = 0; p < PARTS; p++) {
            uint64_t x = random_u64(&seed);
            for (uint32_t i = 0; i < SPANS; i++) {
                spans[p][i] = hostile_span(&seed, i);
            }
            parts[p] =
                (struct slow_part){p, nodes[x % 3], times[(x >> 4) % 9], times[(x >> 8) % 9], true};
            done[p] = (struct slow_spans){.spans = spans[p], .count = x >> 12 & 7 ? SPANS : 0};
            count += done[p].count;
        }
        assert_true(slow_join(&s, done));
        assert_int_equal(s.count, count);
        for (uint32_t i = 1; i < s.count; i++) {
            assert_true(s.spans[i - 1].start_ns <= s.spans[i].start_ns);
        }
        free(s.spans);
    }
}

// -- the command

static int slow(const char *arguments) {
    return tool_ask("slow", arguments);
}

enum { NOON = 1763640000 };

static void fill(void) {
    struct stats *batch = stats_new();
    struct kept_request order = fixture_request(NOON, "order", KEPT_OVER, 40 * MS, 3);
    struct kept_request search = fixture_request(NOON + 60, "search", KEPT_FAILED, 50 * MS, 1);
    search.error = true;
    fixture_keep(batch, &order);
    fixture_keep(batch, &search);
    fixture_write(batch);
}

static void test_command_list(void **state) {
    (void)state;
    char hint[200];
    fill();
    assert_int_equal(slow(""), 0);
    expect_part(
        " id   started                       identity   duration   outcome   reason   spans\n"
        "  2   2025-11-20T12:01:00.000000Z   search        50 ms   error     failed   1\n"
        "  1   2025-11-20T12:00:00.000000Z   order         40 ms   ok        over     3\n"
        "\n 2 requests, the slowest first.\n");
    snprintf(hint, sizeof hint, " kprof slow ID --db %s draws one.\n", fixture_db);
    expect_part(hint);
    assert_int_equal(slow("--limit 1"), 0);
    expect_part(" 1 request, the slowest first; --limit shows more.");
    expect_no_part("order");
    assert_int_equal(slow("--limit 2"), 0);
    expect_part(" 2 requests, the slowest first.\n");
    assert_int_equal(slow("--failed"), 0);
    expect_no_part("order");
    assert_int_equal(slow("--identity order --node shop@host"), 0);
    expect_no_part("search");
    assert_int_equal(slow("--until 2025-11-20T12:00:01Z"), 0);
    expect_no_part("search");
    assert_int_equal(slow("--since 2025-11-20T12:00:01Z --json"), 0);
    expect_part("{\"requests\":[{\"id\":2,");
    expect_no_part("order");
    assert_int_equal(slow("--node other@host"), 1);
    expect_line("keeps no request of that kind");
    assert_int_equal(slow("--node other@host --json"), 1);
    expect_part("{\"requests\":[]}\n");
}

static void test_command_one(void **state) {
    (void)state;
    char line[200];
    fill();
    assert_int_equal(slow("1"), 0);
    expect_part(" Request 1, order: 40 ms, ok, at 2025-11-20T12:00:00.000000Z on shop@host\n");
    expect_part("    http  ok\n");
    expect_part("\n  10 ns  ##########");
    assert_null(strchr(output, 27)); // no terminal, no colours
    assert_int_equal(strcspn(strstr(output, " offset"), "\n"), 100);
    assert_int_equal(slow("1 --width 120"), 0);
    assert_int_equal(strcspn(strstr(output, " offset"), "\n"), 120);
    snprintf(line, sizeof line, "slow 1 --db %s", fixture_db);
    assert_int_equal(tool_run("LC_ALL=C.UTF-8 NO_COLOR=1", line), 0);
    expect_part("█");
    assert_int_equal(slow("--json 1"), 0);
    expect_part("{\"request\":{\"id\":1,");
    assert_int_equal(slow("99"), 1);
    expect_line("keeps no request 99; kprof slow without an ID lists those there are");
}

// A collector lets go of kept requests at any time, also of a part between the two looks at it and
// its request.
static void test_part_gone(void **state) {
    (void)state;
    struct stats *batch = stats_new();
    struct kept_request order = fixture_request(NOON, "order", KEPT_OVER, 40 * MS, 3),
                        part = fixture_request(NOON, "_remote", KEPT_OVER, 4 * MS, 1);
    order.label = part.label = 77;
    part.remote = true;
    part.maker = part.node;
    part.node = directory_node(&fixture_names, slice_text("w@host"));
    fixture_keep(batch, &order);
    fixture_keep(batch, &part);
    fixture_write(batch);
    assert_int_equal(slow("1"), 0);
    expect_part("~0 ns");
    // without its identity's name the part is there in the list of parts only
    free(fixture_ask(fixture_db, "UPDATE kept_requests SET identity_id = 999 WHERE id = 2"));
    assert_int_equal(slow("1"), 0);
    expect_part(" Its part on w@host: 4.0 ms");
    expect_no_part("~");
}

static void test_command_line(void **state) {
    (void)state;
    static const struct {
        const char *arguments;
        const char *says;
    } cases[] = {{"1 2", "unexpected argument '2'"},
                 {"x", "'x' is no ID"},
                 {"0", "'0' is no ID"},
                 {"99999999999999999999", "is no ID"},
                 {"--limit 0", "--limit 0 is no number from 1 to 100000"},
                 {"--limit -1", "--limit -1 is no number"},
                 {"--width 9999 1", "--width 9999 is no number from 1 to 1000"},
                 {"--width 80", "say its ID"},
                 {"1 --failed", "--failed chooses from the list"},
                 {"--since tomorrow", "--since tomorrow is no time"},
                 {"--since 10m --until 20m", "--since is not before --until"},
                 {"--limit", "--limit needs a value"},
                 {"--frobnicate", "kprof slow: unknown option --frobnicate"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(slow(cases[i].arguments), 2);
        expect_line(cases[i].says);
    }
    assert_int_equal(tool_run("", "slow"), 2);
    expect_line("Say --db FILE");
    assert_int_equal(slow("--help"), 0);
    expect_part("--failed ");
    assert_int_equal(slow(""), 1);
    expect_line("No such file");
    store_close(fixture_open());
    assert_int_equal(slow(""), 1);
    expect_line("keeps no request yet");
}

// On a terminal: its width, and colours unless NO_COLOR is set. script gives the tool one.
static void test_terminal(void **state) {
    (void)state;
    char command[512];
    if (system("command -v script >/dev/null 2>&1") != 0) {
        skip();
    }
    fill();
    static const struct {
        const char *set;
        bool colours;
    } cases[] = {{"TERM=xterm", true},
                 {"TERM=xterm NO_COLOR=", true},
                 {"TERM=xterm NO_COLOR=1", false},
                 {"TERM=dumb", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(
            command, sizeof command,
            "env -u NO_COLOR LC_ALL=C %s script -qec 'stty cols 130; %s slow 2 --db %s' /dev/null </dev/null",
            cases[i].set, KPROF_TOOL, fixture_db);
        FILE *p = popen(command, "r");
        assert_non_null(p);
        size_t n = fread(output, 1, sizeof output - 1, p);
        output[n] = 0;
        assert_int_equal(pclose(p), 0);
        assert_int_equal(strchr(output, 27) != NULL, cases[i].colours);
        assert_int_equal(strcspn(strstr(output, " offset"), "\r\n"), 130);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define SLOW_TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
        cmocka_unit_test(test_waterfall),
        cmocka_unit_test(test_colours),
        cmocka_unit_test(test_bars),
        cmocka_unit_test(test_tree_order),
        cmocka_unit_test(test_open_blind_gc_off_cpu),
        cmocka_unit_test(test_deep_and_narrow),
        cmocka_unit_test(test_hostile_names),
        cmocka_unit_test(test_hostile_numbers),
        cmocka_unit_test(test_parents_that_are_none),
        cmocka_unit_test(test_no_spans),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_started),
        cmocka_unit_test(test_list_json),
        cmocka_unit_test(test_spans_json),
        cmocka_unit_test(test_asked_for),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_joined),
        cmocka_unit_test(test_joined_by_callers),
        cmocka_unit_test(test_joined_self_times),
        cmocka_unit_test(test_hostile_joins),
        SLOW_TEST(test_command_list),
        SLOW_TEST(test_command_one),
        SLOW_TEST(test_part_gone),
        SLOW_TEST(test_command_line),
        SLOW_TEST(test_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
