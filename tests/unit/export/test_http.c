// SPDX-License-Identifier: Apache-2.0
// HTTP to an engine, and to what stands in its place: what is sent, and that answers without end,
// of the wrong kind or none at all are bounded and told.
#include "engine_fixture.h"

#include <time.h>

#include "base/limits.h"
#include "export/http.h"

static struct engine server;
static struct http *http;
static char seen[1 << 16];
static char seen_body[1 << 16];

static void start(engine_answer *answer, const char *password) {
    engine_start(&server, answer, NULL);
    const struct http_options o = {.target = &server.target, .password = password};
    http = http_new(&o);
    assert_non_null(http);
}

static void stop(void) {
    engine_stop(&server);
    http_free(http);
}

static bool ask(const char *sql, const char *body, struct answer *out, char *why) {
    const struct http_question q = {.sql = sql, .body = slice_text(body)};
    return http_ask(http, &q, out, why);
}

// -- a good one -----------------------------------------------------------------------------------

static void keep_request(void *arg, int fd, const struct engine_request *r) {
    (void)arg;
    snprintf(seen, sizeof seen, "%s", r->head);
    snprintf(seen_body, sizeof seen_body, "%.*s", (int)r->len, (const char *)r->body);
    engine_say(fd, 200, "1\n");
}

static void said(void **state) {
    (void)state;
    struct answer a;
    char why[CHANGE_REASON_BYTES];
    start(keep_request, "hush hush");
    assert_true(ask(NULL, "SELECT 1", &a, why));
    assert_int_equal(a.status, 200);
    assert_true(slice_is(a.body, "1\n"));
    assert_non_null(strstr(seen, "POST / HTTP/1.1\r\n"));
    assert_non_null(strstr(seen, "X-ClickHouse-User: user\r\n"));
    assert_non_null(strstr(seen, "X-ClickHouse-Key: hush hush\r\n"));
    assert_null(strcasestr(seen, "Expect:"));
    assert_null(strcasestr(seen, "Content-Encoding"));
    assert_string_equal(seen_body, "SELECT 1");
    // a statement beside the body, escaped; the password is a header, never in an address
    const struct http_question q = {
        .sql = "INSERT a&b ü", .setting = "x=1", .body = slice_text("rows"), .packed = true};
    assert_true(http_ask(http, &q, &a, why));
    assert_non_null(strstr(seen, "POST /?query=INSERT%20a%26b%20%C3%BC&x=1 HTTP/1.1\r\n"));
    assert_non_null(strstr(seen, "Content-Encoding: gzip\r\n"));
    assert_string_equal(seen_body, "rows");
    stop();
}

// To a receiver: its path, its type, and heads that others have chosen.
static void said_to_a_receiver(void **state) {
    (void)state;
    static const char *const heads[] = {"Authorization: Bearer hush", "X-Scope: a", NULL};
    struct answer a;
    char why[CHANGE_REASON_BYTES];
    engine_start(&server, keep_request, NULL);
    struct target target = {.host = "127.0.0.1", .port = server.target.port, .path = "a/b/"};
    const struct http_options o = {
        .target = &target, .type = "application/x-protobuf", .heads = heads};
    http = http_new(&o);
    assert_non_null(http);
    const struct http_question q = {.path = "v1/traces", .body = slice_text("x"), .packed = true};
    assert_true(http_ask(http, &q, &a, why));
    assert_non_null(strstr(seen, "POST /a/b/v1/traces HTTP/1.1\r\n"));
    assert_non_null(strstr(seen, "Content-Type: application/x-protobuf\r\n"));
    assert_non_null(strstr(seen, "Content-Encoding: gzip\r\n"));
    assert_non_null(strstr(seen, "Authorization: Bearer hush\r\n"));
    assert_non_null(strstr(seen, "X-Scope: a\r\n"));
    assert_null(strcasestr(seen, "ClickHouse"));
    assert_int_equal(a.retry_s, 0);
    stop();
}

static void say_retry(void *arg, int fd, const struct engine_request *r) {
    static const char text[] = "HTTP/1.1 503 Busy\r\nretry-after:17\r\n"
                               "Content-Length: 2\r\n\r\nno";
    (void)arg;
    (void)r;
    engine_write(fd, text, sizeof text - 1);
}

static void retry_after(void **state) {
    (void)state;
    struct answer a;
    char why[CHANGE_REASON_BYTES];
    start(say_retry, NULL);
    assert_true(ask(NULL, "x", &a, why));
    assert_int_equal(a.status, 503);
    assert_int_equal(a.retry_s, 17);
    stop();
}

static void say_exception(void *arg, int fd, const struct engine_request *r) {
    static const char text[] = "HTTP/1.1 400 Bad\r\nx-clickhouse-exception-code: 469\r\n"
                               "Content-Length: 2\r\n\r\nno";
    (void)arg;
    (void)r;
    engine_write(fd, text, sizeof text - 1);
}

static void exceptions(void **state) {
    (void)state;
    struct answer a;
    char why[CHANGE_REASON_BYTES];
    start(say_exception, NULL);
    assert_true(ask(NULL, "SELECT 1", &a, why));
    assert_int_equal(a.status, 400);
    assert_int_equal(a.exception, 469);
    stop();
}

// -- bad ones -------------------------------------------------------------------------------------

static void write_forever(int fd, const char *start, const char *again) {
    engine_write(fd, start, strlen(start));
    size_t len = strlen(again);
    for (int i = 0; i < 1 << 20; i++) {
        ssize_t n = write(fd, again, len);
        if (n <= 0) {
            return;
        }
    }
    fail_msg("it takes whatever comes");
}

static void endless_body(void *arg, int fd, const struct engine_request *r) {
    (void)arg;
    (void)r;
    char block[4001];
    memset(block, 'x', 4000);
    block[4000] = 0;
    write_forever(fd, "HTTP/1.1 500 No\r\n\r\nCode: 33, ", block);
}

static void endless_head(void *arg, int fd, const struct engine_request *r) {
    (void)arg;
    (void)r;
    write_forever(fd, "HTTP/1.1 200 OK\r\n",
                  "X-Word: 0123456789012345678901234567890123456789\r\n");
}

static void endless_hundreds(void *arg, int fd, const struct engine_request *r) {
    (void)arg;
    (void)r;
    write_forever(fd, "", "HTTP/1.1 100 Continue\r\n\r\n");
}

static void bodies_are_cut(void **state) {
    (void)state;
    struct answer a;
    char why[CHANGE_REASON_BYTES], reason[CHANGE_REASON_BYTES];
    start(endless_body, NULL);
    assert_true(ask(NULL, "SELECT 1", &a, why));
    assert_true(a.cut);
    assert_int_equal(a.body.len, LIMIT_EXPORT_ANSWER_BYTES);
    assert_int_equal(answer_to_order(&a, reason), ANSWER_REFUSED);
    stop();
}

static void heads_are_bounded(void **state) {
    (void)state;
    engine_answer *const all[] = {endless_head, endless_hundreds};
    for (int i = 0; i < 2; i++) {
        struct answer a;
        char why[CHANGE_REASON_BYTES] = "";
        start(all[i], NULL);
        assert_false(ask(NULL, "SELECT 1", &a, why));
        assert_string_equal(why, "the head of its answer has no end");
        stop();
    }
}

// The end of a chunked body may have headers of its own.
static void endless_trailers(void *arg, int fd, const struct engine_request *r) {
    (void)arg;
    (void)r;
    write_forever(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n",
                  "X-Word: 0123456789012345678901234567890123456789\r\n");
}

static void endless_line(void *arg, int fd, const struct engine_request *r) {
    (void)arg;
    (void)r;
    write_forever(fd, "HTTP/1.1 200 OK\r\nX-Word: ", "0123456789012345678901234567890123456789");
}

static void endless_chunk_head(void *arg, int fd, const struct engine_request *r) {
    (void)arg;
    (void)r;
    write_forever(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2",
                  "00000000000000000000000000000000");
}

static void lines_are_bounded(void **state) {
    (void)state;
    engine_answer *const all[] = {endless_trailers, endless_line, endless_chunk_head};
    for (int i = 0; i < 3; i++) {
        struct answer a;
        char why[CHANGE_REASON_BYTES] = "";
        start(all[i], NULL);
        assert_false(ask(NULL, "SELECT 1", &a, why));
        assert_true(strlen(why) > 3);
        stop();
    }
}

// A head and a body of so many bytes.
static size_t head_bytes, body_bytes;
static void exact(void *arg, int fd, const struct engine_request *r) {
    (void)arg;
    (void)r;
    size_t room = head_bytes + body_bytes + 1;
    char *text = malloc(room);
    size_t n =
        (size_t)snprintf(text, room, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n", body_bytes);
    for (size_t left; (left = head_bytes - n - 2) > 0;) { // as lines of a thousand bytes
        size_t line = left < 2000 ? left : 1000;
        memset(text + n, 'x', line);
        memcpy(text + n, "X: ", 3);
        memcpy(text + n + line - 2, "\r\n", 2);
        n += line;
    }
    memcpy(text + n, "\r\n", 2);
    memset(text + head_bytes, 'b', body_bytes);
    engine_write(fd, text, head_bytes + body_bytes);
    free(text);
}

// Up to its bound an answer is whole, and one byte more is too much.
static void bounds_are_exact(void **state) {
    (void)state;
    struct answer a;
    char why[CHANGE_REASON_BYTES] = "";
    start(exact, NULL);
    head_bytes = LIMIT_EXPORT_HEAD_BYTES;
    body_bytes = LIMIT_EXPORT_ANSWER_BYTES;
    assert_true(ask(NULL, "SELECT 1", &a, why));
    assert_false(a.cut);
    assert_int_equal(a.body.len, LIMIT_EXPORT_ANSWER_BYTES);
    body_bytes++;
    assert_true(ask(NULL, "SELECT 1", &a, why));
    assert_true(a.cut);
    assert_int_equal(a.body.len, LIMIT_EXPORT_ANSWER_BYTES);
    head_bytes++;
    assert_false(ask(NULL, "SELECT 1", &a, why));
    assert_string_equal(why, "the head of its answer has no end");
    stop();
}

static void redirect(void *arg, int fd, const struct engine_request *r) {
    char text[200];
    (void)arg;
    (void)r;
    snprintf(text, sizeof text,
             "HTTP/1.1 302 There\r\nLocation: http://127.0.0.1:%u/other\r\n"
             "Content-Length: 0\r\n\r\n",
             server.target.port);
    engine_write(fd, text, strlen(text));
}

static void redirects_are_not_followed(void **state) {
    (void)state;
    struct answer a;
    char why[CHANGE_REASON_BYTES], reason[CHANGE_REASON_BYTES];
    start(redirect, "hush");
    assert_true(ask(NULL, "SELECT 1", &a, why));
    assert_int_equal(a.status, 302);
    assert_int_equal(server.requests, 1);
    assert_int_equal(answer_to_order(&a, reason), ANSWER_LATER);
    stop();
}

static void nothing(void *arg, int fd, const struct engine_request *r) {
    (void)arg;
    (void)fd;
    (void)r;
}

static void noise(void *arg, int fd, const struct engine_request *r) {
    (void)arg;
    (void)r;
    engine_write(fd, "\0\1\2\3 220 mail\r\n", 15);
}

static void half(void *arg, int fd, const struct engine_request *r) {
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";
    (void)arg;
    (void)r;
    engine_write(fd, text, sizeof text - 1);
}

static void no_answer_at_all(void **state) {
    (void)state;
    engine_answer *const all[] = {nothing, noise, half};
    for (int i = 0; i < 3; i++) {
        struct answer a;
        char why[CHANGE_REASON_BYTES] = "";
        start(all[i], NULL);
        assert_false(ask(NULL, "SELECT 1", &a, why));
        assert_true(strlen(why) > 3);
        stop();
    }
}

// -- slow ones ------------------------------------------------------------------------------------

enum { ANSWER_MS = 400 };

static void start_hasty(engine_answer *answer) {
    engine_start(&server, answer, NULL);
    const struct http_options o = {.target = &server.target, .answer_ms = ANSWER_MS};
    http = http_new(&o);
    assert_non_null(http);
}

// A byte now and then: there is always some progress, and no end.
static void drip(int fd, const char *start) {
    engine_write(fd, start, strlen(start));
    for (int i = 0; i < 10000 && write(fd, "x", 1) == 1; i++) {
        usleep(10000);
    }
}

static void drip_head(void *arg, int fd, const struct engine_request *r) {
    (void)arg;
    (void)r;
    drip(fd, "HTTP/1.1 200 OK\r\nX-Word: ");
}

static void drip_body(void *arg, int fd, const struct engine_request *r) {
    (void)arg;
    (void)r;
    drip(fd, "HTTP/1.1 200 OK\r\n\r\n");
}

static void silence(void *arg, int fd, const struct engine_request *r) {
    char byte;
    (void)arg;
    (void)r;
    while (read(fd, &byte, 1) > 0) {
    }
}

static void slow_answers_end(void **state) {
    (void)state;
    engine_answer *const all[] = {drip_head, drip_body, silence};
    for (int i = 0; i < 3; i++) {
        struct answer a;
        char why[CHANGE_REASON_BYTES] = "";
        time_t began = time(NULL);
        start_hasty(all[i]);
        assert_false(ask(NULL, "SELECT 1", &a, why));
        assert_non_null(strstr(why, "timed out"));
        assert_true(time(NULL) - began < LIMIT_EXPORT_ANSWER_SECONDS / 2);
        http_free(http); // closes the connection that the server waits for
        engine_stop(&server);
    }
}

// Nobody takes what is sent: more than the sockets' buffers have room for.
static void nobody_reads(void **state) {
    (void)state;
    enum { BODY = 64 << 20 };
    struct answer a;
    char why[CHANGE_REASON_BYTES] = "";
    char *body = calloc(1, BODY);
    int deaf = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof at;
    assert_int_equal(bind(deaf, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(deaf, 5), 0);
    assert_int_equal(getsockname(deaf, (struct sockaddr *)&at, &len), 0);
    struct target target = {.host = "127.0.0.1", .database = "kprof", .port = ntohs(at.sin_port)};
    const struct http_options o = {.target = &target, .answer_ms = ANSWER_MS};
    http = http_new(&o);
    const struct http_question q = {.sql = "INSERT", .body = slice_of(body, BODY)};
    time_t began = time(NULL);
    assert_false(http_ask(http, &q, &a, why));
    assert_non_null(strstr(why, "timed out"));
    assert_true(time(NULL) - began < LIMIT_EXPORT_ANSWER_SECONDS / 2);
    http_free(http);
    close(deaf);
    free(body);
}

// What the environment says of proxies must not see what is sent.
static void no_proxy(void **state) {
    (void)state;
    struct answer a;
    char why[CHANGE_REASON_BYTES];
    setenv("http_proxy", "http://127.0.0.1:1/", 1);
    start(keep_request, NULL);
    assert_true(ask(NULL, "SELECT 1", &a, why));
    unsetenv("http_proxy");
    stop();
}

// -- stopping -------------------------------------------------------------------------------------

static atomic_bool waits;

static void wait_long(void *arg, int fd, const struct engine_request *r) {
    char byte;
    (void)arg;
    (void)r;
    waits = true;
    while (read(fd, &byte, 1) > 0) { // until the other side has enough
    }
}

static void *stop_soon(void *arg) {
    (void)arg;
    while (!waits) {
        usleep(1000);
    }
    http_stop(http);
    return NULL;
}

static void stopped_from_outside(void **state) {
    (void)state;
    struct answer a;
    pthread_t thread;
    char why[CHANGE_REASON_BYTES] = "";
    start(wait_long, NULL);
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, NULL), 0);
    time_t began = time(NULL);
    assert_false(ask(NULL, "SELECT 1", &a, why));
    assert_string_equal(why, "stopped");
    assert_true(time(NULL) - began < LIMIT_EXPORT_ANSWER_SECONDS / 2);
    assert_false(ask(NULL, "SELECT 1", &a, why));
    pthread_join(thread, NULL);
    http_free(http); // closes the connection that the server waits for
    engine_stop(&server);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(said),
        cmocka_unit_test(said_to_a_receiver),
        cmocka_unit_test(retry_after),
        cmocka_unit_test(exceptions),
        cmocka_unit_test(bodies_are_cut),
        cmocka_unit_test(heads_are_bounded),
        cmocka_unit_test(lines_are_bounded),
        cmocka_unit_test(bounds_are_exact),
        cmocka_unit_test(redirects_are_not_followed),
        cmocka_unit_test(no_answer_at_all),
        cmocka_unit_test(slow_answers_end),
        cmocka_unit_test(nobody_reads),
        cmocka_unit_test(no_proxy),
        cmocka_unit_test(stopped_from_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
