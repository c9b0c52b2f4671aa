// SPDX-License-Identifier: Apache-2.0
#include "net/session.h"

#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/random.h>

#include "base/limits.h"
#include "base/log.h"
#include "net/intake_stream.h"
#include "net/sessions.h"
#include "net/strangers.h"

enum {
    READ_BYTES = 256 * 1024, // of a data connection in one go
    // without a word from a shim, which sends its clock every second, or a tool, which answers
    // pings
    SILENCE_SECONDS = 15,
    // without a byte on a data connection whose session has lost its control connection
    LAST_SECONDS = 2
};

static const char DAMAGED[] = "the trace stream is damaged";

// Ends a data connection of a session, if there is one of that number.
static void end_data(struct session *s, uint32_t stream) {
    struct connection *data = s->data[stream];
    if (data) {
        s->data[stream] = NULL;
        s->streams--;
        s->all->more_streams -= s->streams > 0;
        connection_free(data);
        s->events->data_end(s->user, stream);
    }
}

static void end_all_data(struct session *s) {
    for (uint32_t i = 0; i < LIMIT_STREAMS; i++) {
        end_data(s, i);
    }
}

void session_close(struct session *s) {
    struct sessions *all = s->all;
    end_all_data(s);
    if (s->previous) {
        s->previous->next = s->next;
    } else {
        all->newest = s->next;
    }
    if (s->next) {
        s->next->previous = s->previous;
    }
    all->tool_count -= session_is_tool(s);
    connection_free(s->control);
    s->control = NULL; // what the end of its stream has to be told finds nobody
    s->events->closed(s->user);
    free(s);
}

bool session_is_tool(const struct session *s) {
    return s->events == &s->all->tools;
}

void session_dismiss(struct session *s, const char *reason) {
    connection_bye(s->control, reason);
    session_close(s);
}

static size_t waiting(const struct session *s) {
    return s->control ? evbuffer_get_length(bufferevent_get_output(s->control->bev)) : 0;
}

// Whether so many bytes may wait for it: always few, and more as long as all sessions together
// leave some for others.
static bool may_wait(const struct session *s, size_t len) {
    size_t all = 0;
    if (len > LIMIT_SURE_BYTES) {
        for (const struct session *other = s->all->newest; other; other = other->next) {
            all += other != s && waiting(other) > LIMIT_SURE_BYTES ? waiting(other) : 0;
        }
    }
    size_t left = all < LIMIT_OUTPUT_ALL_BYTES ? LIMIT_OUTPUT_ALL_BYTES - all : 0;
    return len <= LIMIT_SURE_BYTES || (len <= LIMIT_OUTPUT_BYTES && len <= left / 4 * 3);
}

bool session_send(struct session *s, const struct buffer *messages) {
    if (!s->control || s->leaves) {
        return true;
    }
    if (!may_wait(s, waiting(s) + messages->len)) {
        return false;
    }
    return bufferevent_write(s->control->bev, messages->data, messages->len) == 0;
}

// -- what its connections tell --------------------------------------------------------------------

static bool control_message(struct connection *c, struct slice frame, struct control_map message) {
    (void)frame;
    struct session *s = c->owned_by;
    struct slice type = {0};
    control_get_text(message, FIELD_TYPE, &type);
    s->events->message(s->user, type, message);
    return true;
}

bool session_leaves(const struct session *s) {
    return s->leaves;
}

// The shim has closed its control connection, and need not wait: all that it said is here. What it
// had sent on others before is still read: they may be a long way behind.
static void leave(struct session *s) {
    s->leaves = true;
    bufferevent_disable(s->control->bev, EV_READ | EV_WRITE);
    shutdown(bufferevent_getfd(s->control->bev), SHUT_WR);
    for (uint32_t i = 0; i < LIMIT_STREAMS; i++) {
        if (s->data[i]) {
            bufferevent_set_timeouts(s->data[i]->bev, &(struct timeval){LAST_SECONDS, 0}, NULL);
        }
    }
}

// A data connection is over, and with the last one a session that leaves.
static void over(struct connection *c) {
    struct session *s = c->owned_by;
    end_data(s, c->stream);
    if (s->leaves && s->streams == 0) {
        session_close(s);
    }
}

// Whether nothing has come on a connection that a thread reads for LAST_SECONDS; asked every
// second.
static bool was_silent(struct connection *c) {
    uint64_t turns = intake_turns(c->taken);
    c->quiet = turns == c->turns ? c->quiet + 1 : 0;
    c->turns = turns;
    return c->quiet > LAST_SECONDS;
}

void session_second(struct session *s) {
    for (uint32_t i = 0; s->leaves && i < LIMIT_STREAMS; i++) {
        struct connection *c = s->data[i];
        if (c && c->taken && was_silent(c)) {
            bool last = s->streams == 1;
            over(c);
            if (last) {
                return;
            }
        }
    }
}

static void control_close(struct connection *c) {
    session_close(c->owned_by);
}

static void control_ended(struct connection *c, short what) {
    struct session *s = c->owned_by;
    if (what & BEV_EVENT_TIMEOUT) {
        log_warning("%s at %s has been silent for %d s", session_is_tool(s) ? "tool" : "shim",
                    c->peer, SILENCE_SECONDS);
    }
    if (!(what & BEV_EVENT_TIMEOUT) && s->ready && s->streams > 0) {
        leave(s);
    } else {
        session_close(s);
    }
}

static const struct connection_owner control_owner = {
    .message = control_message, .ended = control_ended, .close = control_close};

static void data_over(void *connection, bool damaged) {
    struct connection *c = connection;
    if (damaged) {
        connection_refuse(c, DAMAGED);
    } else {
        over(c);
    }
}

// Has a thread read a data connection from here on. The bufferevent only keeps what is the
// connection's then.
static void give_away(struct connection *c, struct intake *in) {
    const struct session *s = c->owned_by;
    bufferevent_disable(c->bev, EV_READ | EV_WRITE);
    c->taken = intake_add(
        in, bufferevent_getfd(c->bev), c->all->tls ? bufferevent_openssl_get_ssl(c->bev) : NULL,
        &(struct intake_events){s->events->data, s->user, c->stream, data_over, c});
    if (!c->taken) {
        connection_refuse(c, "out of memory");
    }
}

// Whether more has come on a connection than what its bufferevent has read.
static bool has_more(const struct connection *c) {
    int unread = 0;
    return (c->all->tls && SSL_has_pending(bufferevent_openssl_get_ssl(c->bev))) ||
           ioctl(bufferevent_getfd(c->bev), FIONREAD, &unread) != 0 || unread > 0;
}

// Hands on what a data connection has brought, once that may be read.
static void read_data(struct connection *c) {
    const struct session *s = c->owned_by;
    struct intake *in = s->events->intake ? s->events->intake(s->user) : NULL;
    struct evbuffer *input = bufferevent_get_input(c->bev);
    struct evbuffer_iovec extent;
    if (!s->ready) {
        return;
    }
    intake_visit(in);
    bool good = true, unread = has_more(c);
    while (good && evbuffer_peek(input, -1, NULL, &extent, 1) > 0 && extent.iov_len > 0) {
        bool more = unread || evbuffer_get_length(input) > extent.iov_len;
        good = s->events->data(s->user, c->stream, slice_of(extent.iov_base, extent.iov_len), more);
        evbuffer_drain(input, extent.iov_len);
    }
    intake_part(in);
    if (!good) {
        connection_refuse(c, DAMAGED);
    } else if (in && !c->taken) {
        give_away(c, in);
    }
}

static void data_bytes(struct connection *c) {
    read_data(c);
}

static void data_close(struct connection *c) {
    over(c);
}

static void data_ended(struct connection *c, short what) {
    (void)what;
    over(c);
}

static const struct connection_owner data_owner = {
    .bytes = data_bytes, .ended = data_ended, .close = data_close};

// -- hello ----------------------------------------------------------------------------------------

static bool welcome(struct session *s) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_WELCOME, 3);
    control_int(&w, FIELD_SESSION, s->id);
    control_bytes(&w, FIELD_KEY, slice_of(s->key, KEY_BYTES));
    control_text(&w, FIELD_VERSION, slice_text(KPROF_VERSION));
    bool sent = control_end(&w) && session_send(s, &b);
    buffer_free(&b);
    return sent;
}

struct session *session_find(const struct sessions *all, int64_t id) {
    struct session *s = all->newest;
    while (s && s->id != id) {
        s = s->next;
    }
    return s;
}

// Makes a session of a connection's first message, for who gets `events`.
static bool begin(struct sessions *all, struct connection *c, struct control_map hello,
                  const struct server_events *events) {
    const char *why = "out of memory";
    struct session *s = calloc(1, sizeof *s);
    if (!s || getrandom(s->key, KEY_BYTES, 0) != KEY_BYTES ||
        (c->auth && !auth_session_key(c->auth, secret_slice(&all->secret), s->auth_key))) {
        goto err0;
    }
    s->all = all;
    s->events = events;
    s->control = c; // session_peer works from here on
    s->id = ++all->last_id;
    s->user = events->hello(events->context, s, hello, &why);
    if (!s->user) {
        goto err0;
    }
    s->next = all->newest;
    if (s->next) {
        s->next->previous = s;
    }
    all->newest = s;
    all->tool_count += session_is_tool(s);
    connection_give(c, STATE_CONTROL, &control_owner, s);
    bufferevent_setwatermark(c->bev, EV_READ, 0, LIMIT_CONTROL_SMALL + CONTROL_HEADER);
    bufferevent_set_timeouts(c->bev, &(struct timeval){SILENCE_SECONDS, 0},
                             &(struct timeval){SILENCE_SECONDS, 0});
    if (!welcome(s)) {
        session_close(s);
        return false;
    }
    return true;
err0:
    free(s);
    connection_bye(c, why);
    strangers_log(c->peer, why);
    connection_free(c);
    return false;
}

bool session_hello(struct sessions *all, struct connection *c, struct control_map hello) {
    return begin(all, c, hello, &all->shims);
}

bool session_hello_tool(struct sessions *all, struct connection *c, struct control_map hello) {
    if (!all->tools.hello || all->tool_count >= LIMIT_TOOLS) {
        connection_bye(c, all->tools.hello ? "too many tools are connected"
                                           : "no tools are taken here");
        connection_refuse(c, "one tool too many");
        return false;
    }
    return begin(all, c, hello, &all->tools);
}

bool session_hello_data(struct sessions *all, struct connection *c, struct control_map hello) {
    int64_t id = 0, stream = 0;
    struct slice key = {0};
    control_get_int(hello, FIELD_SESSION, &id);
    control_get_int(hello, FIELD_STREAM, &stream);
    control_get_bytes(hello, FIELD_KEY, &key);
    struct session *s = session_find(all, id);
    if (!s || session_is_tool(s) || s->leaves || key.len != KEY_BYTES ||
        CRYPTO_memcmp(s->key, key.data, KEY_BYTES) != 0 || (c->auth && c->auth->session != id)) {
        connection_refuse(c, "a data connection without a session");
        return false;
    }
    if (stream == 0) { // the shim has begun a new trace
        end_all_data(s);
    }
    if (stream < 0 || stream >= LIMIT_STREAMS || s->data[stream] ||
        (s->streams > 0 && s->all->more_streams >= LIMIT_MORE_STREAMS)) {
        connection_refuse(c, "one data connection too many");
        return false;
    }
    if (!s->events->data_begin(s->user, (uint32_t)stream)) {
        connection_refuse(c, "its data connection was not taken");
        return false;
    }
    s->all->more_streams += s->streams > 0;
    s->streams++;
    s->data[stream] = c;
    c->stream = (uint32_t)stream;
    connection_give(c, STATE_DATA, &data_owner, s);
    bufferevent_set_timeouts(c->bev, NULL, NULL);
    bufferevent_setwatermark(c->bev, EV_READ, 0, READ_BYTES);
    bufferevent_set_max_single_read(c->bev, READ_BYTES);
    if (!s->ready) {
        bufferevent_disable(c->bev, EV_READ);
    }
    return true;
}

void session_ready(struct session *s) {
    s->ready = true;
    for (uint32_t i = 0; i < LIMIT_STREAMS; i++) {
        if (s->data[i]) {
            bufferevent_enable(s->data[i]->bev, EV_READ);
            read_data(s->data[i]);
        }
    }
}

const char *session_peer(const struct session *s) {
    return s->control->peer;
}

int64_t session_id(const struct session *s) {
    return s->id;
}

bool session_streams(const struct session *s) {
    return s->streams > 0;
}
