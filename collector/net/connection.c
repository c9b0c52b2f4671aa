// SPDX-License-Identifier: Apache-2.0
#include "net/connection.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/limits.h"
#include "net/intake_stream.h"
#include "net/strangers.h"

// -- closing --------------------------------------------------------------------------------------

void connection_free(struct connection *c) {
    struct connections *all = c->all;
    if (c->previous) {
        c->previous->next = c->next;
    } else {
        all->newest = c->next;
    }
    if (c->next) {
        c->next->previous = c->previous;
    }
    all->count--;
    all->large -= c->large;
    if (c->first) {
        evutil_closesocket(event_get_fd(c->first));
        event_free(c->first);
    }
    if (c->taken) {
        intake_remove(c->taken);
    }
    if (c->bev) {
        bufferevent_free(c->bev);
    }
    free(c->auth);
    free(c);
}

void connection_close(struct connection *c) {
    c->owner->close(c);
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
        if (c->bev && c->all->tls) {
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
    if (c->state != STATE_CONTROL || c->large || whole <= LIMIT_CONTROL_SMALL + CONTROL_HEADER) {
        return true;
    }
    if (c->all->large == LIMIT_CONTROL_LARGE) {
        connection_refuse(c, "too many large messages at a time");
        return false;
    }
    c->all->large++;
    c->large = true;
    bufferevent_setwatermark(c->bev, EV_READ, 0, LIMIT_CONTROL_BYTES + CONTROL_HEADER);
    return true;
}

static void large_over(struct connection *c) {
    if (c->large) {
        c->large = false;
        c->all->large--;
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
        bool open = c->owner->message(c, frame, control_root(message));
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
        c->owner->bytes(c);
    }
}

static void on_event(struct bufferevent *bev, short what, void *context) {
    (void)bev;
    struct connection *c = context;
    if (!(what & BEV_EVENT_CONNECTED)) { // else TLS is agreed on
        c->owner->ended(c, what);
    }
}

// -- beginning ------------------------------------------------------------------------------------

struct connection *connection_new(struct connections *all, const struct connection_owner *owner,
                                  void *owned_by) {
    struct connection *c = calloc(1, sizeof *c);
    if (!c) {
        return NULL;
    }
    *c = (struct connection){.all = all,
                             .next = all->newest,
                             .owner = owner,
                             .owned_by = owned_by,
                             .since = clock_monotonic()};
    if (c->next) {
        c->next->previous = c;
    }
    all->newest = c;
    all->count++;
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

void connection_give(struct connection *c, enum state state, const struct connection_owner *owner,
                     void *owned_by) {
    c->state = state;
    c->owner = owner;
    c->owned_by = owned_by;
    free(c->auth);
    c->auth = NULL;
}
