// SPDX-License-Identifier: Apache-2.0
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "internal.h"

// -- closing --------------------------------------------------------------------------------------

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
    s->large -= c->large;
    if (c->first) {
        evutil_closesocket(event_get_fd(c->first));
        event_free(c->first);
    }
    if (c->bev) {
        bufferevent_free(c->bev);
    }
    free(c->auth);
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
    strangers_log(c->peer, why);
    connection_close(c);
}

void connection_bye(struct connection *c, const char *reason) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_BYE, 1);
    control_text(&w, FIELD_REASON, slice_text(reason));
    if (control_end(&w) && (!c->bev || evbuffer_get_length(bufferevent_get_output(c->bev)) == 0)) {
        if (c->bev && c->server->tls) {
            tls_write_now(c->bev, b.data, b.len);
        } else {
            (void)!send(c->bev ? bufferevent_getfd(c->bev) : event_get_fd(c->first), b.data, b.len,
                        MSG_DONTWAIT | MSG_NOSIGNAL);
        }
    }
    buffer_free(&b);
}

// -- reading --------------------------------------------------------------------------------------

// A message is on its way. Returns false when it is a large one too many, and the connection is
// closed.
static bool expect_large(struct connection *c, size_t whole) {
    struct server *s = c->server;
    if (c->state != STATE_CONTROL || c->large || whole <= LIMIT_CONTROL_SMALL + CONTROL_HEADER) {
        return true;
    }
    if (s->large == LIMIT_CONTROL_LARGE) {
        connection_refuse(c, "too many large messages at a time");
        return false;
    }
    s->large++;
    c->large = true;
    bufferevent_setwatermark(c->bev, EV_READ, 0, LIMIT_CONTROL_BYTES + CONTROL_HEADER);
    return true;
}

static void large_over(struct connection *c) {
    if (c->large) {
        c->large = false;
        c->server->large--;
        bufferevent_setwatermark(c->bev, EV_READ, 0, LIMIT_CONTROL_SMALL + CONTROL_HEADER);
    }
}

// Takes control messages off the input until there is no whole one. Returns false when the
// connection is closed, or has become a data connection.
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
            connection_refuse(c, c->state == STATE_HELLO
                                     ? strangers_describe(slice_of(header, peeked))
                                     : "a damaged control message");
            return false;
        }
        if (peeked < CONTROL_HEADER) {
            return true;
        }
        if (have < whole) {
            return expect_large(c, whole);
        }
        struct slice frame = slice_of(evbuffer_pullup(input, (ev_ssize_t)whole), whole);
        control_frame(frame, &payload);
        struct control *message = control_decode(payload);
        if (!message) {
            connection_refuse(c, c->state == STATE_HELLO
                                     ? strangers_describe(slice_of(header, peeked))
                                     : "a damaged control message");
            return false;
        }
        struct control_map root = control_root(message);
        bool open = true;
        if (c->state == STATE_HELLO) {
            open = newcomer_message(c, frame, root);
        } else {
            struct slice type = {0};
            control_get_text(root, FIELD_TYPE, &type);
            c->session->events->message(c->session->user, type, root);
        }
        control_free(message);
        if (!open) {
            return false;
        }
        evbuffer_drain(input, whole);
        large_over(c);
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

// A newcomer's connection has ended.
static void left(struct connection *c, short what) {
    const char *tls = c->server->tls && (what & BEV_EVENT_ERROR) ? tls_error(c->bev) : NULL;
    char why[128];
    if (tls) {
        snprintf(why, sizeof why, "TLS: %s", tls);
        connection_refuse(c, why);
    } else if (evbuffer_get_length(bufferevent_get_input(c->bev)) > 0) {
        connection_refuse(c, "closed in the middle of its first message");
    } else {
        connection_close(c);
    }
}

static void on_event(struct bufferevent *bev, short what, void *context) {
    (void)bev;
    struct connection *c = context;
    if (what & BEV_EVENT_CONNECTED) {
        return; // TLS is agreed on
    }
    if (c->state == STATE_HELLO) {
        left(c, what);
        return;
    }
    if (c->state == STATE_CONTROL && (what & BEV_EVENT_TIMEOUT)) {
        log_warning("%s at %s has been silent for %d s",
                    session_is_tool(c->session) ? "tool" : "shim", c->peer, SILENCE_SECONDS);
    }
    connection_close(c);
}

// -- beginning ------------------------------------------------------------------------------------

struct connection *connection_new(struct server *s) {
    struct connection *c = calloc(1, sizeof *c);
    if (!c) {
        return NULL;
    }
    *c = (struct connection){.server = s, .next = s->connections, .since = clock_monotonic()};
    if (c->next) {
        c->next->previous = c;
    }
    s->connections = c;
    s->count++;
    return c;
}

bool connection_talk(struct connection *c, struct bufferevent *bev) {
    if (!bev) {
        return false;
    }
    c->bev = bev;
    bufferevent_setcb(bev, on_read, NULL, on_event, c);
    bufferevent_setwatermark(bev, EV_READ, 0, LIMIT_HELLO_BYTES);
    bufferevent_enable(bev, EV_READ | EV_WRITE);
    return true;
}
