// SPDX-License-Identifier: Apache-2.0
// A server on loopback that tells what it sees, and peers of it, for tests of net/server.
#pragma once

#include "net/intake.h"
#include "net/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "unit.h"

// -- a server, and what it told -------------------------------------------------------------------

static struct event_base *base;
static struct server *server;
static struct intake *intake; // NULL: the event loop reads the data connections
static struct gate gate;      // behind which it tells what it reads

static struct {
    struct session *session; // the latest
    int hellos, messages, begins, ends, closed;
    uint32_t stream; // that the latest was of
    struct buffer data;
    uint32_t pieces; // of data with more behind them, since the last one without
    uint32_t most_pieces;
    char last_type[32];
    bool refuse, refuse_data, refuse_bytes;
} seen;

static inline void *on_hello(void *context, struct session *s, struct control_map hello,
                             const char **refusal) {
    assert_ptr_equal(context, &seen);
    struct slice node;
    assert_true(strncmp(session_peer(s), "127.0.0.1:", 10) == 0);
    if (seen.refuse || !control_get_text(hello, "node", &node)) {
        *refusal = "no thanks";
        return NULL;
    }
    seen.hellos++;
    seen.session = s;
    return s;
}

static inline void on_message(void *user, struct slice type, struct control_map message) {
    (void)message;
    seen.messages++;
    snprintf(seen.last_type, sizeof seen.last_type, "%.*s", (int)type.len,
             type.len > 0 ? (const char *)type.data : "");
    if (slice_is(type, "tiers")) {
        session_ready(user);
    }
}

static inline bool on_data_begin(void *user, uint32_t stream) {
    (void)user;
    seen.stream = stream;
    seen.begins++;
    return !seen.refuse_data;
}

static inline bool on_data(void *user, uint32_t stream, struct slice bytes, bool more) {
    seen.stream = stream;
    assert_true(intake || session_streams(user)); // which is not the thread's to ask
    buffer_append(&seen.data, bytes.data, bytes.len);
    seen.pieces = more ? seen.pieces + 1 : 0;
    seen.most_pieces = seen.pieces > seen.most_pieces ? seen.pieces : seen.most_pieces;
    return !seen.refuse_bytes;
}

static inline void on_data_end(void *user, uint32_t stream) {
    (void)user;
    seen.stream = stream;
    seen.ends++;
}

static inline void on_closed(void *user) {
    assert_false(session_streams(user));
    assert_true(
        session_send(user, &(struct buffer){.data = (uint8_t *)"late",
                                            .len = 4})); // the last requests are told to nobody
    seen.closed++;
    seen.session = NULL;
}

static inline struct intake *on_intake(void *user) {
    (void)user;
    return intake;
}

static const struct server_events events = {.context = &seen,
                                            .hello = on_hello,
                                            .message = on_message,
                                            .data_begin = on_data_begin,
                                            .data = on_data,
                                            .data_end = on_data_end,
                                            .intake = on_intake,
                                            .closed = on_closed};

static inline int setup(void **state) {
    (void)state;
    const char *why = NULL;
    memset(&seen, 0, sizeof seen);
    seen.data = buffer_make(64 << 20);
    log_set_level(LOG_ERROR);
    base = event_base_new();
    assert_non_null(base);
    server = server_new(base, &(struct server_options){.address = "127.0.0.1"}, &events, &why);
    assert_non_null(server);
    assert_true(server_port(server) > 0);
    return 0;
}

static inline void on_news(void *context) {
    assert_ptr_equal(context, &seen);
}

// The same, with a thread that reads the data connections.
static inline int setup_apart(void **state) {
    setup(state);
    gate_init(&gate);
    intake = intake_start(base, &gate, on_news, &seen);
    assert_non_null(intake);
    return 0;
}

static inline int teardown(void **state) {
    (void)state;
    server_free(server);
    intake_stop(intake);
    if (intake) {
        gate_destroy(&gate);
    }
    intake = NULL;
    event_base_free(base);
    buffer_free(&seen.data);
    return 0;
}

static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// Runs the loop for some ms.
static inline void turn(int ms) {
    for (double end = now() + ms / 1e3; now() < end;) {
        event_base_loop(base, EVLOOP_NONBLOCK);
        usleep(500);
    }
}

// A value that may be changed behind the gate.
#define BEHIND(expression)                                                                         \
    __extension__({                                                                                \
        intake ? gate_visit(&gate) : (void)0;                                                      \
        bool value_ = (expression);                                                                \
        intake ? gate_part(&gate) : (void)0;                                                       \
        value_;                                                                                    \
    })

// Runs the loop until something holds, limited for what hangs.
#define UNTIL(condition)                                                                           \
    do {                                                                                           \
        for (double end_ = now() + 100; !BEHIND(condition) && now() < end_;) {                     \
            event_base_loop(base, EVLOOP_NONBLOCK);                                                \
            usleep(200);                                                                           \
        }                                                                                          \
        assert_true(BEHIND(condition));                                                            \
    } while (0)

// -- peers ----------------------------------------------------------------------------------------

static inline int peer(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(server_port(server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static inline void put(int fd, const void *data, size_t n) {
    size_t at = 0;
    for (double end = now() + 10; at < n && now() < end;) {
        ssize_t sent = send(fd, (const uint8_t *)data + at, n - at, MSG_NOSIGNAL);
        at += sent > 0 ? (size_t)sent : 0;
        event_base_loop(base, EVLOOP_NONBLOCK);
    }
    assert_int_equal(at, n);
}

static inline bool is_closed(int fd) {
    char byte;
    ssize_t got = recv(fd, &byte, 1, MSG_PEEK);
    return got == 0 || (got < 0 && errno != EAGAIN);
}

struct hello {
    const char *role;
    int64_t protocol, session;
    struct slice key;
    const char *node;
    int64_t stream; // 0: it does not tell
};

// Sends a hello, and in the same piece what `more` says.
static inline void say_hello_and(int fd, const struct hello *h, const char *more) {
    struct buffer b = buffer_make(1 << 20);
    struct control_writer w = control_begin(&b, "hello", 4u + (h->node != NULL) + (h->stream != 0));
    control_text(&w, "role", slice_text(h->role));
    control_int(&w, "protocol", h->protocol);
    control_int(&w, "session", h->session);
    control_bytes(&w, "key", h->key);
    if (h->node) {
        control_text(&w, "node", slice_text(h->node));
    }
    if (h->stream != 0) {
        control_int(&w, "stream", h->stream);
    }
    assert_true(control_end(&w));
    buffer_text(&b, more);
    put(fd, b.data, b.len);
    buffer_free(&b);
}

static inline void say_hello(int fd, const struct hello *h) {
    say_hello_and(fd, h, "");
}

static inline void say(int fd, const char *type) {
    struct buffer b = buffer_make(1 << 20);
    struct control_writer w = control_begin(&b, type, 0);
    assert_true(control_end(&w));
    put(fd, b.data, b.len);
    buffer_free(&b);
}

// The next frame that a peer gets, whole, valid until the next one. Empty when the connection ends.
static inline struct slice hear_frame(int fd) {
    static uint8_t bytes[(1 << 20) + 4];
    size_t have = 0, want = 4;
    for (double end = now() + 10; now() < end;) {
        event_base_loop(base, EVLOOP_NONBLOCK);
        ssize_t got = recv(fd, bytes + have, want - have, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN)) {
            break;
        }
        have += got > 0 ? (size_t)got : 0;
        if (have >= 4) {
            struct cursor c = cursor_of(bytes, 4);
            want = 4 + cursor_u32(&c);
        }
        if (have == want && have > 4) {
            return slice_of(bytes, have);
        }
    }
    return slice_of(bytes, 0);
}

// The next message that a peer gets; control_free it. NULL when the connection ends.
static inline struct control *hear(int fd) {
    struct slice frame = hear_frame(fd);
    return frame.len > 0 ? control_decode(slice_of(frame.data + 4, frame.len - 4)) : NULL;
}

static inline bool hears(int fd, const char *type, const char *reason) {
    struct control *c = hear(fd);
    struct slice got = {0}, why = {0};
    if (!c) {
        return false;
    }
    control_get_text(control_root(c), "type", &got);
    control_get_text(control_root(c), "reason", &why);
    bool ok = slice_is(got, type) && (!reason || slice_is(why, reason));
    control_free(c);
    return ok;
}

struct shim {
    int control, data;
    int64_t session;
    uint8_t key[16];
};

// Says hello and takes the welcome.
static inline void welcomed(struct shim *s) {
    say_hello(s->control, &(struct hello){"control", 1, 0, slice_text(""), "n@h", 0});
    struct control *c = hear(s->control);
    struct slice type = {0}, key = {0};
    assert_non_null(c);
    control_get_text(control_root(c), "type", &type);
    assert_true(slice_is(type, "welcome"));
    assert_true(control_get_int(control_root(c), "session", &s->session));
    assert_true(control_get_bytes(control_root(c), "key", &key) && key.len == 16);
    memcpy(s->key, key.data, 16);
    control_free(c);
}

static inline struct shim shim(void) {
    struct shim s = {.control = peer(), .data = -1};
    welcomed(&s);
    return s;
}

// A data connection of a number.
static inline int more_data(const struct shim *s, int64_t stream) {
    int fd = peer();
    say_hello(fd, &(struct hello){"data", 1, s->session, slice_of(s->key, 16), NULL, stream});
    return fd;
}

static inline int data_peer(const struct shim *s) {
    return more_data(s, 0);
}

static inline unsigned closed_of(const int *fds, unsigned n) {
    unsigned closed = 0;
    for (unsigned i = 0; i < n; i++) {
        closed += is_closed(fds[i]);
    }
    return closed;
}
