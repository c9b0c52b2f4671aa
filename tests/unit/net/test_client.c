// SPDX-License-Identifier: Apache-2.0
// The tool's end of the listener, and what the server does with tools: a server in a process of its
// own, as in life.
#include "net/client.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "net/server.h"
#include "unit.h"

// -- the server's process: tools hear back what they say ------------------------------------------

static struct event_base *base;

static void *on_hello(void *context, struct session *s, struct control_map hello,
                      const char **refusal) {
    (void)context;
    (void)hello;
    (void)refusal;
    return s;
}

static void say(struct session *s, const char *type, size_t bytes) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES + 64);
    uint8_t *content = calloc(1, bytes + 1);
    struct control_writer w = control_begin(&b, type, 1);
    control_bytes(&w, "content", slice_of(content, bytes));
    control_end(&w);
    session_send(s, &b);
    free(content);
    buffer_free(&b);
}

static void on_message(void *user, struct slice type, struct control_map message) {
    (void)message;
    char text[64];
    static bool ponged;
    snprintf(text, sizeof text, "%.*s", (int)type.len, (const char *)type.data);
    if (slice_is(type, "end")) {
        event_base_loopbreak(base);
    } else if (slice_is(type, "pong")) {
        ponged = true;
    } else if (slice_is(type, "ponged?")) {
        say(user, ponged ? "yes" : "no", 0);
    } else {
        say(user, text, slice_is(type, "large") ? 1000000 : 0);
    }
}

static void on_closed(void *user) {
    (void)user;
}

static void on_ping(evutil_socket_t fd, short what, void *context) {
    (void)fd;
    (void)what;
    server_ping(context);
}

static pid_t child;
static uint16_t port;

// Starts the server; tools are taken or not.
static void start_server(bool tools, const struct secret *secret) {
    int ports[2];
    assert_int_equal(pipe(ports), 0);
    child = fork();
    if (child == 0) {
        const struct server_events events = {
            .hello = on_hello, .message = on_message, .closed = on_closed};
        const char *why;
        log_set_level(LOG_ERROR);
        base = event_base_new();
        struct server *s =
            server_new(base, &(struct server_options){.address = "127.0.0.1", .secret = secret},
                       &events, &why);
        struct event *ping = event_new(base, -1, EV_PERSIST, on_ping, s);
        event_add(ping, &(struct timeval){0, 20000});
        if (tools) {
            server_take_tools(s, &events);
        }
        port = server_port(s);
        _exit(write(ports[1], &port, sizeof port) != sizeof port || event_base_dispatch(base) < 0 ||
              (server_free(s), false));
    }
    assert_int_equal(read(ports[0], &port, sizeof port), sizeof port);
    close(ports[0]);
    close(ports[1]);
}

static int setup(void **state) {
    (void)state;
    start_server(true, NULL);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    int status;
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    return 0;
}

// -- the client -----------------------------------------------------------------------------------

static struct client_error error;

static struct client *open_to(const char *host, uint16_t to, int timeout_ms) {
    return client_open(&(struct client_options){.host = host, .port = to, .timeout_ms = timeout_ms},
                       &error);
}

static void expect_error(enum client_fault fault, const char *text) {
    assert_string_equal(error.text, text);
    assert_int_equal(error.fault, fault);
}

static struct client *connected(void) {
    struct client *c = open_to("localhost", port, 50000);
    if (!c) {
        fail_msg("not connected: %s", error.text);
    }
    return c;
}

static void ask(struct client *c, const char *type) {
    struct buffer b = buffer_make(4096);
    struct control_writer w = control_begin(&b, type, 0);
    assert_true(control_end(&w));
    assert_true(client_send(c, &b));
    buffer_free(&b);
}

static bool next_is(struct client *c, const char *type) {
    struct control *message;
    struct slice got = {0};
    assert_int_equal(client_next(c, 50000, &message), CLIENT_MESSAGE);
    control_get_text(control_root(message), "type", &got);
    bool is = slice_is(got, type);
    control_free(message);
    return is;
}

static void hears(struct client *c, const char *type) {
    assert_true(next_is(c, type));
}

static void talks(void **state) {
    (void)state;
    struct client *c = connected();
    struct control *message;
    ask(c, "one");
    ask(c, "large");
    ask(c, "two");
    hears(c, "one");
    hears(c, "large");
    hears(c, "two");
    // nothing comes but pings, which are not the caller's; the server may be late with one
    bool ponged = false;
    for (int tries = 0; tries < 100 && !ponged; tries++) {
        assert_int_equal(client_next(c, 100, &message), CLIENT_TIMEOUT);
        assert_null(message);
        assert_int_equal(client_next(c, 0, &message), CLIENT_TIMEOUT);
        ask(c, "ponged?");
        ponged = next_is(c, "yes");
    }
    assert_true(ponged);
    ask(c, "end");
    enum client_status status;
    while ((status = client_next(c, 50000, &message)) == CLIENT_MESSAGE) {
        control_free(message);
    }
    assert_int_equal(status, CLIENT_CLOSED);
    assert_string_equal(client_why(c), "it said: the collector is shutting down");
    assert_false(client_send(c, &(struct buffer){.data = (uint8_t *)"x", .len = 1}));
    client_close(c);
}

static void nobody_there(void **state) {
    (void)state;
    assert_null(open_to("127.0.0.1", 1, 1000));
    expect_error(CLIENT_ABSENT, "Connection refused");
    assert_null(open_to("no.such.host.invalid", port, 1000));
    assert_true(error.fault == CLIENT_ABSENT && strlen(error.text) > 5);
    client_close(NULL);
}

// Somebody who says these bytes to whoever connects, and nothing more.
static uint16_t stranger(const char *bytes, size_t len) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t room = sizeof in;
    assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(fd, 5), 0);
    getsockname(fd, (struct sockaddr *)&in, &room);
    if (fork() == 0) {
        int peer = accept(fd, NULL, NULL);
        ssize_t sent = len > 0 ? write(peer, bytes, len) : 0;
        sleep(sent >= 0 ? 5 : 0); // longer than the client waits
        _exit(0);
    }
    close(fd);
    return ntohs(in.sin_port);
}

static void strangers(void **state) {
    (void)state;
    const struct {
        const char *bytes;
        size_t len;
        const char *why;
        int timeout_ms; // of those that answer longer than a busy machine needs for it
    } cases[] = {
        {"HTTP/1.1 400 Bad Request\r\n\r\n", 28, "it does not speak kprof's protocol", 50000},
        {"\0\0\0\1\xc1", 5, "it does not speak kprof's protocol", 50000},
        {"\0\0\0\x0c\x81\xa4type\xa5hello", 17,
         "it is no kprof-collector, or one of another release", 50000},
        {"\0\0", 2, "it does not answer; is it a kprof-collector?", 400},
        {"", 0, "it does not answer; is it a kprof-collector?", 400}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        assert_null(
            open_to("127.0.0.1", stranger(cases[i].bytes, cases[i].len), cases[i].timeout_ms));
        clock_gettime(CLOCK_MONOTONIC, &after);
        expect_error(CLIENT_ABSENT, cases[i].why);
        assert_true(after.tv_sec - before.tv_sec <= 4);
    }
}

static void without_memory(void **state) {
    (void)state;
    fail_alloc_at(0);
    assert_null(open_to("127.0.0.1", port, 1000));
    fail_alloc_at(-1);
    expect_error(CLIENT_TROUBLE, "out of memory");
}

// -- what the server allows them ------------------------------------------------------------------

static void tools_cap(void **state) {
    (void)state;
    struct client *all[LIMIT_TOOLS];
    for (int i = 0; i < LIMIT_TOOLS; i++) {
        all[i] = connected();
    }
    assert_null(open_to("127.0.0.1", port, 20000));
    expect_error(CLIENT_REFUSED, "it said: too many tools are connected");
    client_close(all[3]);
    for (int tries = 0; tries < 100 && !(all[3] = open_to("127.0.0.1", port, 20000)); tries++) {
        usleep(10000);
    }
    assert_non_null(all[3]);
    for (int i = 0; i < LIMIT_TOOLS; i++) {
        ask(all[i], "alive");
        hears(all[i], "alive");
        client_close(all[i]);
    }
}

static void no_tools(void **state) {
    (void)state;
    start_server(false, NULL);
    assert_null(open_to("127.0.0.1", port, 20000));
    expect_error(CLIENT_REFUSED, "it said: no tools are taken here");
}

// With a secret both sides prove it; each mistake is told in words that help.
static void secrets(void **state) {
    (void)state;
    static const struct secret right = {"0123456789abcdef", 16}, wrong = {"0123456789abcdee", 16};
    start_server(true, &right);
    struct client_options o = {
        .host = "127.0.0.1", .port = port, .timeout_ms = 50000, .secret = &right};
    struct client *c = client_open(&o, &error);
    assert_non_null(c);
    ask(c, "alive");
    hears(c, "alive");
    client_close(c);
    o.secret = &wrong;
    assert_null(client_open(&o, &error));
    expect_error(CLIENT_REFUSED, "it said: wrong secret");
    o.secret = NULL;
    assert_null(client_open(&o, &error));
    expect_error(
        CLIENT_REFUSED,
        "it said: this collector demands its secret: start with --secret-file (start_trace: {secret_file, File})");
    // somebody who has no secret, and one who does not answer
    o.secret = &right;
    o.port = stranger("\0\0\0\x0e\x81\xa4type\xa7welcome", 18);
    assert_null(client_open(&o, &error));
    expect_error(CLIENT_REFUSED, "the collector asks for no proof of the secret");
    o.timeout_ms = 400;
    o.port = stranger("", 0);
    assert_null(client_open(&o, &error));
    expect_error(CLIENT_ABSENT, "it does not answer; is it a kprof-collector?");
}

#define UNIT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    signal(SIGPIPE, SIG_DFL);
    const struct CMUnitTest tests[] = {
        UNIT(talks),
        UNIT(nobody_there),
        UNIT(strangers),
        UNIT(without_memory),
        UNIT(tools_cap),
        cmocka_unit_test_teardown(no_tools, teardown),
        cmocka_unit_test_teardown(secrets, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
