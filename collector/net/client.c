// SPDX-License-Identifier: Apache-2.0
#include "net/client.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/lookup.h"
#include "net/auth.h"

enum { MS_NS = 1000000 };

struct client {
    struct event_base *base;
    struct event *timer; // ends a wait
    struct bufferevent *bev;
    struct buffer frame; // the latest message: its texts lie here
    bool tls;
    bool connected;
    bool closed;
    struct client_error error; // why it is closed
    char version[64];          // of the collector
    struct sigaction pipe;     // what SIGPIPE did before
};

static void fail(struct client *c, enum client_fault fault, const char *why) {
    if (!c->closed) {
        c->closed = true;
        c->error.fault = fault;
        snprintf(c->error.text, sizeof c->error.text, "%s", why);
    }
}

// -- the loop -------------------------------------------------------------------------------------

static void on_timer(evutil_socket_t fd, short what, void *context) {
    (void)fd;
    (void)what;
    event_base_loopbreak(((struct client *)context)->base);
}

static void on_read(struct bufferevent *bev, void *context) {
    (void)bev;
    event_base_loopbreak(((struct client *)context)->base);
}

static void on_end(struct client *c, struct bufferevent *bev, short what) {
    int error = EVUTIL_SOCKET_ERROR();
    const char *tls = c->tls && (what & BEV_EVENT_ERROR) ? tls_error(bev) : NULL;
    char why[CLIENT_WHY_BYTES];
    if (c->tls && !c->connected &&
        ((what & BEV_EVENT_EOF) || tls == tls_cut || error == ECONNRESET)) {
        fail(c, CLIENT_REFUSED,
             "the collector closed the connection instead of speaking TLS; was it started with "
             "--tls-cert?");
    } else if (what & BEV_EVENT_EOF) {
        fail(c, CLIENT_ABSENT, "the collector closed the connection");
    } else {
        snprintf(why, sizeof why, "%s%s", tls ? "TLS: " : "",
                 tls ? tls : evutil_socket_error_to_string(error));
        fail(c, tls ? CLIENT_REFUSED : CLIENT_ABSENT, why);
    }
}

static void on_event(struct bufferevent *bev, short what, void *context) {
    struct client *c = context;
    if (what & BEV_EVENT_CONNECTED) {
        c->connected = true;
    } else if (what & (BEV_EVENT_ERROR | BEV_EVENT_EOF)) {
        on_end(c, bev, what);
    }
    event_base_loopbreak(c->base);
}

// Runs the loop until something happens, or until the deadline (of the monotonic clock). Returns
// false once that has passed.
static bool wait_until(struct client *c, int64_t deadline) {
    int64_t left = deadline - clock_monotonic();
    struct timeval most = {left / 1000000000, left % 1000000000 / 1000};
    if (left <= 0) {
        event_base_loop(c->base, EVLOOP_NONBLOCK);
        return false;
    }
    evtimer_add(c->timer, &most);
    event_base_dispatch(c->base);
    evtimer_del(c->timer);
    return true;
}

// -- connecting -----------------------------------------------------------------------------------

static bool connect_to(struct client *c, const struct client_options *o,
                       const struct addrinfo *address, int64_t deadline) {
    if (c->bev) {
        bufferevent_free(c->bev);
    }
    c->closed = c->connected = false;
    c->bev = o->tls ? tls_connect(o->tls, c->base, o->tls_name ? o->tls_name : o->host)
                    : bufferevent_socket_new(c->base, -1, BEV_OPT_CLOSE_ON_FREE);
    if (!c->bev) {
        fail(c, CLIENT_TROUBLE, "out of memory");
        return false;
    }
    bufferevent_setcb(c->bev, on_read, NULL, on_event, c);
    bufferevent_setwatermark(c->bev, EV_READ, 0, LIMIT_CONTROL_BYTES + CONTROL_HEADER);
    bufferevent_enable(c->bev, EV_READ | EV_WRITE);
    if (bufferevent_socket_connect(c->bev, address->ai_addr, (int)address->ai_addrlen) != 0) {
        fail(c, CLIENT_ABSENT, evutil_socket_error_to_string(EVUTIL_SOCKET_ERROR()));
    }
    while (!c->connected && !c->closed) {
        if (!wait_until(c, deadline) && !c->connected) {
            fail(c, CLIENT_ABSENT, "no answer in time");
        }
    }
    if (c->connected) {
        setsockopt(bufferevent_getfd(c->bev), IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    }
    return c->connected;
}

static void set_port(struct sockaddr *address, uint16_t port) {
    if (address->sa_family == AF_INET6) {
        ((struct sockaddr_in6 *)address)->sin6_port = htons(port);
    } else {
        ((struct sockaddr_in *)address)->sin_port = htons(port);
    }
}

// The addresses of the host one after the other, until one answers.
static bool connect_any(struct client *c, const struct client_options *o, int64_t deadline) {
    struct addrinfo *found;
    int error = lookup(o->host, AF_UNSPEC, deadline, &found);
    if (error != 0) {
        fail(c, CLIENT_ABSENT, gai_strerror(error));
        return false;
    }
    bool connected = false;
    for (struct addrinfo *a = found; a && !connected; a = a->ai_next) {
        set_port(a->ai_addr, o->port);
        connected = connect_to(c, o, a, deadline);
    }
    freeaddrinfo(found);
    return connected;
}

static bool send_hello(struct client *c) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_HELLO, 3);
    control_text(&w, FIELD_ROLE, slice_text(CONTROL_ROLE_TOOL));
    control_int(&w, FIELD_PROTOCOL, CONTROL_PROTOCOL);
    control_text(&w, FIELD_VERSION, slice_text(KPROF_VERSION));
    bool sent = control_end(&w) && client_send(c, &b);
    buffer_free(&b);
    return sent;
}

// What it says next, to be freed, and whole in c->frame. NULL when that does not come, with the
// reason in c->error.
static struct control *next_word(struct client *c, int64_t deadline) {
    struct control *message = NULL;
    int64_t left = (deadline - clock_monotonic()) / MS_NS;
    if (client_next(c, left > 0 ? (int)left : 0, &message) == CLIENT_TIMEOUT) {
        fail(c, CLIENT_ABSENT, "it does not answer; is it a kprof-collector?");
    }
    return message;
}

// One step of the handshake: sends what is there, gives what comes back.
static struct slice exchange(struct client *c, struct buffer *out, int64_t deadline) {
    struct control *message = client_send(c, out) ? next_word(c, deadline) : NULL;
    bool came = message != NULL;
    control_free(message);
    buffer_reset(out);
    return slice_of(c->frame.data, came ? c->frame.len : 0);
}

static bool prove(struct client *c, const struct secret *secret, int64_t deadline) {
    struct auth a = {0};
    struct buffer out = buffer_make(LIMIT_CONTROL_BYTES);
    uint8_t nonce[AUTH_NONCE_BYTES];
    const char *why =
        getrandom(nonce, sizeof nonce, 0) == (ssize_t)sizeof nonce ? NULL : "no random bytes";
    a.tls = c->tls;
    if (c->tls && !tls_certificate(c->bev, a.certificate)) {
        why = "TLS without a certificate";
    }
    why = why ? why : auth_begin(&a, CONTROL_ROLE_TOOL, 0, nonce, &out);
    why = why ? why : auth_answer(&a, secret_slice(secret), exchange(c, &out, deadline), &out);
    why = why ? why : auth_confirm(&a, secret_slice(secret), exchange(c, &out, deadline));
    buffer_free(&out);
    if (why) {
        fail(c, CLIENT_REFUSED, why); // what it said itself comes first
    }
    return !why;
}

static bool greet(struct client *c, int64_t deadline) {
    struct slice type = {0}, version = {0};
    if (!send_hello(c)) {
        fail(c, CLIENT_TROUBLE, "out of memory");
        return false;
    }
    struct control *message = next_word(c, deadline);
    if (!message) {
        return false;
    }
    control_get_text(control_root(message), FIELD_TYPE, &type);
    bool welcome = slice_is(type, CONTROL_WELCOME);
    control_get_text(control_root(message), FIELD_VERSION, &version);
    snprintf(c->version, sizeof c->version, "%.*s", (int)(version.len < 64 ? version.len : 63),
             version.data ? (const char *)version.data : "");
    control_free(message);
    if (!welcome) {
        fail(c, CLIENT_ABSENT, "it is no kprof-collector, or one of another release");
    }
    return welcome;
}

struct client *client_open(const struct client_options *options, struct client_error *error) {
    int64_t deadline = clock_monotonic() + (int64_t)options->timeout_ms * MS_NS;
    struct client *c = calloc(1, sizeof *c);
    *error = (struct client_error){CLIENT_TROUBLE, "out of memory"};
    if (!c) {
        return NULL;
    }
    // a connection that is gone is told by an error, as everything else
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, &c->pipe);
    c->tls = options->tls != NULL;
    c->frame = buffer_make(LIMIT_CONTROL_BYTES + CONTROL_HEADER);
    c->base = event_base_new();
    c->timer = c->base ? evtimer_new(c->base, on_timer, c) : NULL;
    if (!c->timer) {
        client_close(c);
        return NULL;
    }
    if (!connect_any(c, options, deadline) ||
        (options->secret && !prove(c, options->secret, deadline)) || !greet(c, deadline)) {
        *error = c->error;
        client_close(c);
        return NULL;
    }
    return c;
}

void client_close(struct client *c) {
    if (!c) {
        return;
    }
    if (c->bev) {
        bufferevent_free(c->bev);
    }
    if (c->timer) {
        event_free(c->timer);
    }
    if (c->base) {
        event_base_free(c->base);
    }
    buffer_free(&c->frame);
    sigaction(SIGPIPE, &c->pipe, NULL);
    free(c);
}

// -- messages -------------------------------------------------------------------------------------

bool client_send(struct client *c, const struct buffer *messages) {
    return !c->closed && bufferevent_write(c->bev, messages->data, messages->len) == 0;
}

static void answer_ping(struct client *c) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_PONG, 0);
    if (control_end(&w)) {
        client_send(c, &b);
    }
    buffer_free(&b);
}

// Takes the next message off what has come. NULL when there is none, or what came is none: then the
// connection is over.
static struct control *take_message(struct client *c) {
    struct evbuffer *input = bufferevent_get_input(c->bev);
    size_t have = evbuffer_get_length(input);
    uint8_t header[CONTROL_HEADER];
    struct slice payload;
    size_t peeked = (size_t)evbuffer_copyout(input, header, sizeof header);
    struct cursor claim = cursor_of(header, peeked);
    size_t whole = CONTROL_HEADER + (size_t)cursor_u32(&claim);
    if (control_frame(slice_of(header, peeked), &payload) < 0) {
        fail(c, CLIENT_ABSENT, "it does not speak kprof's protocol");
        return NULL;
    }
    if (peeked < CONTROL_HEADER || have < whole) {
        return NULL;
    }
    buffer_reset(&c->frame);
    uint8_t *at = buffer_reserve(&c->frame, whole);
    if (!at) {
        fail(c, CLIENT_TROUBLE, "out of memory");
        return NULL;
    }
    buffer_grow(&c->frame, (size_t)evbuffer_remove(input, at, whole));
    control_frame(slice_of(c->frame.data, whole), &payload);
    struct control *message = control_decode(payload);
    if (!message) {
        fail(c, CLIENT_ABSENT, "it does not speak kprof's protocol");
    }
    return message;
}

// The collector's own reason outlives what the socket says afterwards.
static void take_bye(struct client *c, struct control_map bye) {
    struct slice reason = slice_text("no reason given");
    char text[CLIENT_WHY_BYTES];
    control_get_text(bye, FIELD_REASON, &reason);
    snprintf(text, sizeof text, "it said: %.*s", (int)(reason.len < 200 ? reason.len : 200),
             (const char *)reason.data);
    c->closed = false;
    fail(c, CLIENT_REFUSED, text);
}

// The next message that is for the caller.
static struct control *next_message(struct client *c) {
    struct control *message;
    while ((message = take_message(c))) {
        struct slice type = {0};
        control_get_text(control_root(message), FIELD_TYPE, &type);
        if (slice_is(type, CONTROL_BYE)) {
            take_bye(c, control_root(message));
        } else if (slice_is(type, CONTROL_PING)) {
            answer_ping(c);
        } else {
            return message;
        }
        control_free(message);
    }
    return NULL;
}

enum client_status client_next(struct client *c, int timeout_ms, struct control **message) {
    int64_t deadline = clock_monotonic() + (int64_t)timeout_ms * MS_NS;
    for (bool more = true;; more = wait_until(c, deadline)) {
        *message = next_message(c);
        if (*message) {
            return CLIENT_MESSAGE;
        }
        if (c->closed) {
            return CLIENT_CLOSED;
        }
        if (!more) {
            return CLIENT_TIMEOUT;
        }
    }
}

const char *client_why(const struct client *c) {
    return c->error.text;
}

const char *client_version(const struct client *c) {
    return c->version;
}
