#include "net/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "base/limits.h"
#include "base/log.h"

enum {
    KEY_BYTES = 16,
    SILENCE_SECONDS = 15,     // without a word from a shim, which sends its clock every second
    READ_BYTES = 256 * 1024,  // of a data connection in one go
    LOG_LINES_PER_SECOND = 5, // about strangers
    PEER_BYTES = 64
};

enum state { STATE_HELLO, STATE_CONTROL, STATE_DATA };

struct connection {
    struct server *server;
    struct connection *previous, *next;
    struct bufferevent *bev;
    struct session *session; // NULL in STATE_HELLO
    enum state state;
    time_t since; // when it was accepted
    char peer[PEER_BYTES];
};

struct session {
    struct server *server;
    struct session *previous, *next;
    struct connection *control;
    struct connection *data; // NULL while there is none
    void *user;
    int64_t id;
    uint8_t key[KEY_BYTES]; // proves that the data connection is the same shim's
    bool ready;
};

struct server {
    struct event_base *base;
    struct evconnlistener *listener;
    struct server_events events;
    struct connection *connections;
    struct session *sessions;
    uint32_t count; // connections
    int64_t next_session;
    time_t log_second;
    uint32_t log_lines;
};

// -- strangers ---------------------------------------------------------------------------------------------------------

// One line about a peer that was turned away; a flood of them does not fill the log.
static void log_refusal(struct server *s, const char *peer, const char *why) {
    time_t now = time(NULL);
    if (now != s->log_second) {
        if (s->log_lines > LOG_LINES_PER_SECOND) {
            log_warning("%u more connections refused", s->log_lines - LOG_LINES_PER_SECOND);
        }
        s->log_second = now;
        s->log_lines = 0;
    }
    if (s->log_lines++ < LOG_LINES_PER_SECOND) {
        log_warning("connection from %s refused: %s", peer, why);
    }
}

// What the first bytes of somebody who is no shim look like.
static const char *describe(struct slice bytes) {
    static const char *const http[] = {"GET ", "POST", "HEAD", "PUT ", "OPTI", "DELE", "PATC", "CONN"};
    for (size_t i = 0; i < sizeof http / sizeof *http; i++) {
        if (bytes.len >= 4 && memcmp(bytes.data, http[i], 4) == 0) {
            return "an HTTP request; this port speaks to kprof's shim only";
        }
    }
    if (bytes.len >= 2 && bytes.data[0] == 0x16 && bytes.data[1] == 0x03) {
        return "a TLS handshake; this port speaks plain TCP to kprof's shim only";
    }
    return "not the protocol of kprof's shim";
}

// -- closing -----------------------------------------------------------------------------------------------------------

static void connection_free(struct connection *c) {
    struct server *s = c->server;
    if (c->previous) {
        c->previous->next = c->next;
    } else {
        s->connections = c->next;
    }
    if (c->next) {
        c->next->previous = c->previous;
    }
    s->count--;
    bufferevent_free(c->bev);
    free(c);
}

static void data_close(struct session *s) {
    struct connection *data = s->data;
    if (data) {
        s->data = NULL;
        connection_free(data);
        s->server->events.data_end(s->user);
    }
}

static void session_close(struct session *s) {
    struct server *server = s->server;
    data_close(s);
    if (s->previous) {
        s->previous->next = s->next;
    } else {
        server->sessions = s->next;
    }
    if (s->next) {
        s->next->previous = s->previous;
    }
    connection_free(s->control);
    server->events.closed(s->user);
    free(s);
}

// Ends a connection, and what it carries.
static void connection_close(struct connection *c) {
    switch (c->state) {
    case STATE_HELLO:
        connection_free(c);
        break;
    case STATE_CONTROL:
        session_close(c->session);
        break;
    case STATE_DATA:
        data_close(c->session);
        break;
    }
}

static void refuse(struct connection *c, const char *why) {
    log_refusal(c->server, c->peer, why);
    connection_close(c);
}

// -- sending -----------------------------------------------------------------------------------------------------------

bool session_send(struct session *s, const struct buffer *messages) {
    struct evbuffer *output = bufferevent_get_output(s->control->bev);
    if (evbuffer_get_length(output) + messages->len > LIMIT_OUTPUT_BYTES) {
        return false;
    }
    return bufferevent_write(s->control->bev, messages->data, messages->len) == 0;
}

// Says why the connection is closed, right before that: what the kernel's buffer takes now is what arrives. In the middle of another
// message there is no place for it.
static void say_bye(struct connection *c, const char *reason) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, "bye", 1);
    control_text(&w, "reason", slice_text(reason));
    if (control_end(&w) && evbuffer_get_length(bufferevent_get_output(c->bev)) == 0) {
        (void)!send(bufferevent_getfd(c->bev), b.data, b.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    buffer_free(&b);
}

void server_ping(struct server *server) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, "ping", 0);
    if (control_end(&w)) {
        for (struct session *s = server->sessions; s; s = s->next) {
            session_send(s, &b);
        }
    }
    buffer_free(&b);
}

// -- hello -------------------------------------------------------------------------------------------------------------

static bool welcome(struct session *s) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, "welcome", 3);
    control_int(&w, "session", s->id);
    control_bytes(&w, "key", slice_of(s->key, KEY_BYTES));
    control_text(&w, "version", slice_text(KPROF_VERSION));
    bool sent = control_end(&w) && session_send(s, &b);
    buffer_free(&b);
    return sent;
}

// A shim's first message on its control connection. Returns false when the connection is closed.
static bool hello_control(struct connection *c, struct control_map hello) {
    struct server *server = c->server;
    const char *why = "out of memory";
    struct session *s = calloc(1, sizeof *s);
    if (!s || getrandom(s->key, KEY_BYTES, 0) != KEY_BYTES) {
        goto err0;
    }
    s->server = server;
    s->control = c;
    s->id = ++server->next_session;
    c->session = s; // session_peer works from here on
    s->user = server->events.hello(server->events.context, s, hello, &why);
    if (!s->user) {
        goto err0;
    }
    s->next = server->sessions;
    if (s->next) {
        s->next->previous = s;
    }
    server->sessions = s;
    c->state = STATE_CONTROL;
    bufferevent_setwatermark(c->bev, EV_READ, 0, LIMIT_CONTROL_BYTES + CONTROL_HEADER);
    bufferevent_set_timeouts(c->bev, &(struct timeval){SILENCE_SECONDS, 0}, &(struct timeval){SILENCE_SECONDS, 0});
    if (!welcome(s)) {
        session_close(s);
        return false;
    }
    return true;
err0:
    free(s);
    c->session = NULL;
    say_bye(c, why);
    log_refusal(server, c->peer, why);
    connection_free(c);
    return false;
}

// Compares without telling by its time where the difference lies.
static bool same_key(const uint8_t *a, struct slice b) {
    uint8_t difference = b.len != KEY_BYTES;
    for (size_t i = 0; i < KEY_BYTES && i < b.len; i++) {
        difference |= a[i] ^ b.data[i];
    }
    return difference == 0;
}

// The first message on a data connection. Returns false when the connection is closed.
static bool hello_data(struct connection *c, struct control_map hello) {
    int64_t id = 0;
    struct slice key = {0};
    control_get_int(hello, "session", &id);
    control_get_bytes(hello, "key", &key);
    for (struct session *s = c->server->sessions; s; s = s->next) {
        if (s->id != id || !same_key(s->key, key)) {
            continue;
        }
        data_close(s); // the shim opened a new trace port
        if (!s->server->events.data_begin(s->user)) {
            break;
        }
        s->data = c;
        c->session = s;
        c->state = STATE_DATA;
        bufferevent_set_timeouts(c->bev, NULL, NULL);
        bufferevent_setwatermark(c->bev, EV_READ, 0, READ_BYTES);
        bufferevent_set_max_single_read(c->bev, READ_BYTES);
        if (!s->ready) {
            bufferevent_disable(c->bev, EV_READ);
        }
        return true;
    }
    refuse(c, "a data connection without a session");
    return false;
}

static bool hello(struct connection *c, struct control_map message) {
    struct slice type = {0}, role = {0};
    int64_t protocol = 0;
    control_get_text(message, "type", &type);
    control_get_text(message, "role", &role);
    control_get_int(message, "protocol", &protocol);
    if (!slice_is(type, "hello")) {
        refuse(c, "the first message is no hello");
        return false;
    }
    if (protocol != CONTROL_PROTOCOL) {
        say_bye(c, "this collector speaks protocol 1: use the shim of the same release");
        refuse(c, "another version of the protocol");
        return false;
    }
    if (slice_is(role, "data")) {
        return hello_data(c, message);
    }
    return hello_control(c, message);
}

// -- reading -----------------------------------------------------------------------------------------------------------

// Takes control messages off the input until there is no whole one. Returns false when the connection is closed, or has become
// a data connection.
static bool read_messages(struct connection *c) {
    struct evbuffer *input = bufferevent_get_input(c->bev);
    for (;;) {
        size_t have = evbuffer_get_length(input);
        uint8_t header[CONTROL_HEADER];
        size_t peeked = (size_t)evbuffer_copyout(input, header, sizeof header);
        struct slice payload;
        // The header alone tells whether the claim is acceptable, before anything is kept for it.
        long size = control_frame(slice_of(header, peeked), &payload);
        struct cursor claim = cursor_of(header, peeked);
        size_t whole = CONTROL_HEADER + (size_t)cursor_u32(&claim);
        if (size < 0 || (c->state == STATE_HELLO && whole > LIMIT_HELLO_BYTES)) {
            refuse(c, c->state == STATE_HELLO ? describe(slice_of(header, peeked)) : "a damaged control message");
            return false;
        }
        if (peeked < CONTROL_HEADER) {
            return true;
        }
        if (have < whole) {
            // The read timeout starts anew with every byte: who trickles is stopped here.
            if (c->state == STATE_HELLO && time(NULL) - c->since > LIMIT_HELLO_SECONDS) {
                refuse(c, "no whole message in time");
                return false;
            }
            return true;
        }
        control_frame(slice_of(evbuffer_pullup(input, (ev_ssize_t)whole), whole), &payload);
        struct control *message = control_decode(payload);
        if (!message) {
            refuse(c, c->state == STATE_HELLO ? describe(slice_of(header, peeked)) : "a damaged control message");
            return false;
        }
        struct control_map root = control_root(message);
        bool open = true;
        if (c->state == STATE_HELLO) {
            open = hello(c, root);
        } else {
            struct slice type = {0};
            control_get_text(root, "type", &type);
            c->server->events.message(c->session->user, type, root);
        }
        control_free(message);
        if (!open) {
            return false;
        }
        evbuffer_drain(input, whole);
        if (c->state == STATE_DATA) {
            return true;
        }
    }
}

static void read_data(struct connection *c) {
    struct evbuffer *input = bufferevent_get_input(c->bev);
    struct session *s = c->session;
    struct evbuffer_iovec extent;
    while (s->ready && evbuffer_peek(input, -1, NULL, &extent, 1) > 0 && extent.iov_len > 0) {
        if (!s->server->events.data(s->user, slice_of(extent.iov_base, extent.iov_len))) {
            refuse(c, "the trace stream is damaged");
            return;
        }
        evbuffer_drain(input, extent.iov_len);
    }
}

static void on_read(struct bufferevent *bev, void *context) {
    (void)bev;
    struct connection *c = context;
    if (c->state != STATE_DATA && !read_messages(c)) {
        return;
    }
    if (c->state == STATE_DATA) {
        read_data(c);
    }
}

static void on_event(struct bufferevent *bev, short what, void *context) {
    struct connection *c = context;
    if (c->state == STATE_HELLO) {
        if (what & BEV_EVENT_TIMEOUT) {
            refuse(c, "no whole message in time");
        } else if (evbuffer_get_length(bufferevent_get_input(bev)) > 0) {
            refuse(c, "closed in the middle of its first message");
        } else {
            connection_close(c);
        }
        return;
    }
    if (c->state == STATE_CONTROL && (what & BEV_EVENT_TIMEOUT)) {
        log_warning("shim at %s has been silent for %d s", c->peer, SILENCE_SECONDS);
    }
    connection_close(c);
}

void session_ready(struct session *s) {
    s->ready = true;
    if (s->data) {
        bufferevent_enable(s->data->bev, EV_READ);
        read_data(s->data);
    }
}

// -- listening ---------------------------------------------------------------------------------------------------------

static void peer_name(const struct sockaddr *address, char *out) {
    char host[INET6_ADDRSTRLEN] = "?";
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)address;
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        snprintf(out, PEER_BYTES, "%s:%u", host, ntohs(in->sin_port));
    } else {
        const struct sockaddr_in6 *in6 = (const void *)address;
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        snprintf(out, PEER_BYTES, "[%s]:%u", host, ntohs(in6->sin6_port));
    }
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address, int len,
                      void *context) {
    (void)listener;
    (void)len;
    struct server *s = context;
    char peer[PEER_BYTES];
    peer_name(address, peer);
    if (s->count >= LIMIT_CONNECTIONS) {
        log_refusal(s, peer, "too many connections");
        evutil_closesocket(fd);
        return;
    }
    struct connection *c = calloc(1, sizeof *c);
    struct bufferevent *bev = c ? bufferevent_socket_new(s->base, fd, BEV_OPT_CLOSE_ON_FREE) : NULL;
    if (!bev) {
        free(c);
        evutil_closesocket(fd);
        log_refusal(s, peer, "out of memory");
        return;
    }
    *c = (struct connection){.server = s, .bev = bev, .next = s->connections, .since = time(NULL)};
    memcpy(c->peer, peer, sizeof peer);
    if (c->next) {
        c->next->previous = c;
    }
    s->connections = c;
    s->count++;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    bufferevent_setcb(bev, on_read, NULL, on_event, c);
    bufferevent_setwatermark(bev, EV_READ, 0, LIMIT_HELLO_BYTES);
    bufferevent_set_timeouts(bev, &(struct timeval){LIMIT_HELLO_SECONDS, 0}, NULL);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
}

// Out of file descriptors, for one: the listener would report it in a loop.
static void on_accept_error(struct evconnlistener *listener, void *context) {
    (void)listener;
    struct server *s = context;
    log_refusal(s, "a new peer", evutil_socket_error_to_string(EVUTIL_SOCKET_ERROR()));
}

struct server *server_new(struct event_base *base, const char *address, uint16_t port,
                          const struct server_events *events, const char **why) {
    struct sockaddr_storage storage = {0};
    struct sockaddr_in *in = (void *)&storage;
    struct sockaddr_in6 *in6 = (void *)&storage;
    int len = sizeof *in;
    if (inet_pton(AF_INET, address, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
    } else if (inet_pton(AF_INET6, address, &in6->sin6_addr) == 1) {
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(port);
        len = sizeof *in6;
    } else {
        *why = "not an IP address";
        return NULL;
    }
    struct server *s = calloc(1, sizeof *s);
    if (!s) {
        *why = "out of memory";
        return NULL;
    }
    s->base = base;
    s->events = *events;
    s->listener = evconnlistener_new_bind(base, on_accept, s,
                                          LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE, 128,
                                          (struct sockaddr *)&storage, len);
    if (!s->listener) {
        *why = strerror(errno);
        free(s);
        return NULL;
    }
    evconnlistener_set_error_cb(s->listener, on_accept_error);
    return s;
}

void server_free(struct server *s) {
    if (!s) {
        return;
    }
    evconnlistener_free(s->listener);
    // The analyzer does not see that the head of a list has nothing before it, and that what is freed is no longer in it.
    // NOLINTBEGIN(clang-analyzer-unix.Malloc)
    while (s->sessions) {
        say_bye(s->sessions->control, "the collector is shutting down");
        session_close(s->sessions);
    }
    while (s->connections) {
        connection_free(s->connections); // the others went with their sessions
    }
    // NOLINTEND(clang-analyzer-unix.Malloc)
    free(s);
}

uint16_t server_port(const struct server *s) {
    struct sockaddr_storage storage = {0};
    socklen_t len = sizeof storage;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    if (getsockname(evconnlistener_get_fd(s->listener), (struct sockaddr *)&storage, &len) != 0) {
        return 0;
    }
    memcpy(&in, &storage, sizeof in);
    memcpy(&in6, &storage, sizeof in6);
    return ntohs(storage.ss_family == AF_INET ? in.sin_port : in6.sin6_port);
}

const char *session_peer(const struct session *s) {
    return s->control->peer;
}

int64_t session_id(const struct session *s) {
    return s->id;
}

bool session_streams(const struct session *s) {
    return s->data != NULL;
}
