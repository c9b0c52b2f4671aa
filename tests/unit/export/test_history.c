// SPDX-License-Identifier: Apache-2.0
// The history read back from engines that answer without end, in the middle of a row, nothing of
// the kind, or not at all: each is told, and nothing of it is taken for an answer.
#include "engine_fixture.h"

#include "base/buffer.h"
#include "export/history.h"
#include "store/query.h"
#include "store/query_slow.h"

// What it answers to each question: files first, as those are asked for first.
struct script {
    struct slice files;
    struct slice rest; // to all others
    int status;        // of these
    bool endless;      // again and again
    bool without_end;  // the connection ends instead of the body
};

static struct engine server;
static struct script script;

static void answer_body(int fd, int status, struct slice body, size_t told) {
    char head[200];
    snprintf(head, sizeof head,
             "HTTP/1.1 %d Words\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", status, told);
    engine_write(fd, head, strlen(head));
    engine_write(fd, (const char *)body.data, body.len);
}

static void play(void *arg, int fd, const struct engine_request *r) {
    const struct script *s = arg;
    struct slice asked = slice_of(r->body, r->len);
    if (memmem(asked.data, asked.len, "collectors", strlen("collectors"))) {
        answer_body(fd, 200, s->files, s->files.len);
    } else if (s->endless) {
        static const char head[] = "HTTP/1.1 200 OK\r\n\r\n";
        engine_write(fd, head, strlen(head));
        for (int i = 0; i < 1 << 20; i++) {
            if (write(fd, s->rest.data, s->rest.len) <= 0) {
                return;
            }
        }
        fail_msg("it takes whatever comes");
    } else {
        answer_body(fd, s->status, s->rest, s->rest.len + (s->without_end ? 100 : 0));
    }
}

// One collector, "one", with the file 7.
#define ONE_FILE "\3one\7\0\0\0\0\0\0\0"
#define BYTES(text) slice_of(text, sizeof(text) - 1)

static struct store *open_it(void) {
    char url[100], error[STORE_ERROR_BYTES];
    struct store *s;
    snprintf(url, sizeof url, "clickhouse://127.0.0.1:%u/kprof", server.target.port);
    if (history_open(&(struct history_options){.url = url}, &s, error) != STORE_OK) {
        fail_msg("%s", error);
    }
    return s;
}

// What is said of a table that is asked for then.
static void expect(struct script with, const char *why) {
    struct query_sums sums;
    const struct query q = {.from_s = INT64_MIN, .until_s = INT64_MAX};
    script = with;
    engine_start(&server, play, &script);
    struct store *s = open_it();
    assert_false(query_sums(s, &q, &sums));
    if (!strstr(store_error(s), why)) {
        fail_msg("'%s' lacks '%s'", store_error(s), why);
    }
    assert_int_equal(sums.count, 0);
    query_sums_free(&sums);
    store_close(s);
    engine_stop(&server);
}

static void not_opened(const char *url, struct slice files, const char *why) {
    char error[STORE_ERROR_BYTES], at[100];
    struct store *s;
    script = (struct script){.files = files};
    engine_start(&server, play, &script);
    snprintf(at, sizeof at, "clickhouse://127.0.0.1:%u/kprof", server.target.port);
    assert_int_not_equal(history_open(&(struct history_options){.url = url ? url : at}, &s, error),
                         STORE_OK);
    assert_null(s);
    if (!strstr(error, why)) {
        fail_msg("'%s' lacks '%s'", error, why);
    }
    engine_stop(&server);
}

static void told_at_once(void **state) {
    (void)state;
    not_opened("clickhouse://127.0.0.1:1/kprof", BYTES(""), "127.0.0.1:1/kprof: ");
    not_opened("clickhouse://192.0.2.1", BYTES(""), "");
    not_opened(NULL, BYTES("\3on"), "ends in the middle of a row");
    not_opened(NULL, BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "what ClickHouse does not");
}

static void errors(void **state) {
    (void)state;
    const struct slice one = BYTES(ONE_FILE);
    expect((struct script){one, BYTES("Code: 60, e.displayText() = no such table"), 404, 0, 0},
           "has no history of kprof");
    expect((struct script){one, BYTES("Code: 241, too little memory"), 500, 0, 0},
           "too little memory");
    expect((struct script){one, BYTES("go away"), 302, 0, 0}, "HTTP status 302");
    // a resolution of 10 s, and half of another one
    expect((struct script){one, BYTES("\x0a\0\0\0\x01\0\0\0\x02\0\0\0\x3c\0"), 200, 0, 0},
           "ends in the middle of a row");
    expect((struct script){one, BYTES("\x0a\0\0\0\x01\0\0\0\x02\0\0\0"), 200, 0, 1}, "127.0.0.1:");
}

// Each answer to all questions is the same row of extents without end.
static void endless(void **state) {
    (void)state;
    static uint8_t many[12 * 4096];
    expect((struct script){BYTES(ONE_FILE), slice_of(many, sizeof many), 200, 1, 0},
           "too large: ask for a shorter time");
}

// A number of a kept request whose file was never exported.
static void no_such_file(void **state) {
    (void)state;
    struct slow_spans spans;
    bool found = true;
    script = (struct script){.files = BYTES(ONE_FILE), .rest = BYTES(""), .status = 200};
    engine_start(&server, play, &script);
    struct store *s = open_it();
    assert_true(query_slow_spans(s, INT64_C(5) << 40 | 1, &found, &spans));
    assert_false(found);
    slow_spans_free(&spans);
    store_close(s);
    engine_stop(&server);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(told_at_once), cmocka_unit_test(errors),
                                       cmocka_unit_test(endless), cmocka_unit_test(no_such_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
