#include <arpa/inet.h>
#include <event2/buffer.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/log.h"
#include "internal.h"

// -- closing -----------------------------------------------------------------------------------------------------------

void connection_free(struct connection *c) {
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

void connection_close(struct connection *c) {
    switch (c->state) {
    case STATE_HELLO:
        connection_free(c);
        break;
    case STATE_CONTROL:
        session_close(c->session);
        break;
    case STATE_DATA:
        session_end_data(c->session);
        break;
    }
}

void connection_refuse(struct connection *c, const char *why) {
    strangers_log(c->server, c->peer, why);
    connection_close(c);
}

void connection_bye(struct connection *c, const char *reason) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, "bye", 1);
    control_text(&w, "reason", slice_text(reason));
    if (control_end(&w) && evbuffer_get_length(bufferevent_get_output(c->bev)) == 0) {
        (void)!send(bufferevent_getfd(c->bev), b.data, b.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    buffer_free(&b);
}

// -- reading -----------------------------------------------------------------------------------------------------------

static bool hello(struct connection *c, struct control_map message) {
    struct slice type = {0}, role = {0};
    int64_t protocol = 0;
    control_get_text(message, "type", &type);
    control_get_text(message, "role", &role);
    control_get_int(message, "protocol", &protocol);
    if (!slice_is(type, "hello")) {
        connection_refuse(c, "the first message is no hello");
        return false;
    }
    if (protocol != CONTROL_PROTOCOL) {
        connection_bye(c, "this collector speaks protocol 1: use the shim of the same release");
        connection_refuse(c, "another version of the protocol");
        return false;
    }
    if (slice_is(role, "data")) {
        return session_hello_data(c, message);
    }
    return session_hello(c, message);
}

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
            connection_refuse(c, c->state == STATE_HELLO ? strangers_describe(slice_of(header, peeked)) : "a damaged control message");
            return false;
        }
        if (peeked < CONTROL_HEADER) {
            return true;
        }
        if (have < whole) {
            // The read timeout starts anew with every byte: who trickles is stopped here.
            if (c->state == STATE_HELLO && time(NULL) - c->since > LIMIT_HELLO_SECONDS) {
                connection_refuse(c, "no whole message in time");
                return false;
            }
            return true;
        }
        control_frame(slice_of(evbuffer_pullup(input, (ev_ssize_t)whole), whole), &payload);
        struct control *message = control_decode(payload);
        if (!message) {
            connection_refuse(c, c->state == STATE_HELLO ? strangers_describe(slice_of(header, peeked)) : "a damaged control message");
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

static void on_read(struct bufferevent *bev, void *context) {
    (void)bev;
    struct connection *c = context;
    if (c->state != STATE_DATA && !read_messages(c)) {
        return;
    }
    if (c->state == STATE_DATA) {
        session_read(c->session);
    }
}

static void on_event(struct bufferevent *bev, short what, void *context) {
    struct connection *c = context;
    if (c->state == STATE_HELLO) {
        if (what & BEV_EVENT_TIMEOUT) {
            connection_refuse(c, "no whole message in time");
        } else if (evbuffer_get_length(bufferevent_get_input(bev)) > 0) {
            connection_refuse(c, "closed in the middle of its first message");
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

// -- accepting ---------------------------------------------------------------------------------------------------------

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

void connection_accept(struct server *s, evutil_socket_t fd, const struct sockaddr *address) {
    char peer[PEER_BYTES];
    peer_name(address, peer);
    if (s->count >= LIMIT_CONNECTIONS) {
        strangers_log(s, peer, "too many connections");
        evutil_closesocket(fd);
        return;
    }
    struct connection *c = calloc(1, sizeof *c);
    struct bufferevent *bev = c ? bufferevent_socket_new(s->base, fd, BEV_OPT_CLOSE_ON_FREE) : NULL;
    if (!bev) {
        free(c);
        evutil_closesocket(fd);
        strangers_log(s, peer, "out of memory");
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
