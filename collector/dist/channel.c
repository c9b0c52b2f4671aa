// SPDX-License-Identifier: Apache-2.0
#include "dist/channel.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "codec/term.h"
#include "dist/socket.h"

enum {
    PASS_THROUGH = 112, // leads a message without a header for atoms
    OP_SEND = 2,        // {2, _, To}
    OP_REG_SEND = 6,    // {6, From, _, Name}
    OP_SEND_TT = 12,    // {12, _, To, Token}
    OP_SEND_SENDER = 22,
    OP_SEND_SENDER_TT = 23,
    LENGTH = 4, // bytes before each packet
    CHUNK = 65536,
    MS = 1000000
};

struct channel channel_make(int fd, ei_cnode *self, const char *node) {
    return (struct channel){
        .fd = fd, .self = self, .node = node, .in = buffer_make(LENGTH + CHANNEL_BYTES + CHUNK)};
}

void channel_close(struct channel *c) {
    if (c->fd >= 0) {
        ei_close_connection(c->fd);
        c->fd = -1;
    }
    buffer_free(&c->in);
    c->used = 0;
}

// -- sending --------------------------------------------------------------------------------------

static bool encode_atom(ei_x_buff *x, const char *text) {
    return ei_x_encode_atom_len_as(x, text, (int)strlen(text), ERLANG_UTF8, ERLANG_UTF8) == 0;
}

// {6, From, '', rex} and {From, {call, Module, Function, Arguments, user}}
static bool encode_call(ei_x_buff *x, const erlang_pid *from, const char *module,
                        const char *function, const ei_x_buff *arguments) {
    static const char head[LENGTH + 1] = {0, 0, 0, 0, PASS_THROUGH};
    bool good = ei_x_append_buf(x, head, sizeof head) == 0 && ei_x_encode_version(x) == 0 &&
                ei_x_encode_tuple_header(x, 4) == 0 && ei_x_encode_long(x, OP_REG_SEND) == 0 &&
                ei_x_encode_pid(x, from) == 0 && encode_atom(x, "") && encode_atom(x, "rex");
    good = good && ei_x_encode_version(x) == 0 && ei_x_encode_tuple_header(x, 2) == 0 &&
           ei_x_encode_pid(x, from) == 0;
    good = good && ei_x_encode_tuple_header(x, 5) == 0 && encode_atom(x, "call") &&
           encode_atom(x, module) && encode_atom(x, function) && ei_x_append(x, arguments) == 0 &&
           encode_atom(x, "user");
    if (!good || x->index > CHANNEL_BYTES) {
        return false;
    }
    uint32_t length = __builtin_bswap32((uint32_t)x->index - LENGTH);
    memcpy(x->buff, &length, LENGTH);
    return true;
}

// -- receiving ------------------------------------------------------------------------------------

// Takes a packet out of what has been read: true and its bytes. False and *need, how many bytes
// more it takes, at least.
static bool take_packet(struct channel *c, struct slice *packet, size_t *need) {
    struct cursor left = cursor_of(c->in.data + c->used, c->in.len - c->used);
    if (cursor_left(&left) < LENGTH) {
        *need = LENGTH - cursor_left(&left);
        return false;
    }
    size_t length = cursor_u32(&left);
    if (length > cursor_left(&left)) {
        *need = length - cursor_left(&left);
        return false;
    }
    *packet = slice_of(left.at, length);
    c->used += LENGTH + length;
    return true;
}

// Forgets what is done with and reads what there is, once.
static bool read_more(struct channel *c, size_t need, int64_t deadline_ns) {
    buffer_consume(&c->in, c->used);
    c->used = 0;
    if (need > CHANNEL_BYTES) {
        errno = EMSGSIZE;
        return false;
    }
    size_t room = need > CHUNK ? need : CHUNK;
    uint8_t *to = buffer_reserve(&c->in, room);
    if (!to) {
        errno = ENOMEM;
        return false;
    }
    ssize_t n = socket_read(c->fd, to, room, deadline_ns);
    if (n == 0) {
        errno = ECONNRESET;
    }
    buffer_grow(&c->in, n > 0 ? (size_t)n : 0);
    return n > 0;
}

// Who a message is for, and what it says. False when it is for no process of ours, or no message.
static bool parse_message(struct slice packet, struct term_pid *to, struct slice *said) {
    struct cursor c = cursor_of(packet.data, packet.len);
    if (cursor_u8(&c) != PASS_THROUGH || cursor_u8(&c) != TERM_VERSION) {
        return false;
    }
    struct slice control = term_take(&c);
    struct cursor in = cursor_of(control.data, control.len);
    uint32_t arity = c.failed ? 0 : term_tuple(&in);
    int64_t op = arity >= 3 ? term_integer(&in) : 0;
    if (op != OP_SEND && op != OP_SEND_TT && op != OP_SEND_SENDER && op != OP_SEND_SENDER_TT) {
        return false;
    }
    term_skip(&in);
    *to = term_pid(&in);
    if (in.failed || cursor_u8(&c) != TERM_VERSION) {
        return false;
    }
    *said = term_take(&c);
    return !c.failed && cursor_left(&c) == 0;
}

// The next message that is no tick; ticks are answered.
static bool next_packet(struct channel *c, struct slice *packet, int64_t deadline_ns) {
    static const uint8_t tick[LENGTH];
    size_t need;
    for (;;) {
        while (!take_packet(c, packet, &need)) {
            if (!read_more(c, need, deadline_ns)) {
                return false;
            }
        }
        if (packet->len > 0) {
            return true;
        }
        if (!socket_write(c->fd, tick, sizeof tick, deadline_ns)) {
            return false;
        }
    }
}

static bool lost(struct channel *c, struct dist_error *e) {
    int why = errno;
    channel_close(c);
    return dist_fail(e, DIST_DOWN, "%s is gone (%s)", c->node,
                     why == ETIMEDOUT    ? "no answer in time"
                     : why == EMSGSIZE   ? "its message is too long"
                     : why == ECONNRESET ? "it closed the connection"
                                         : strerror(why));
}

// Of {'EXIT', {Reason, Stack}} the reason only: a stack may show arguments, secrets among them.
static struct slice reason_of(struct slice why) {
    struct cursor c = cursor_of(why.data, why.len);
    if (!term_is_tuple(term_peek(&c)) || term_tuple(&c) != 2 || !term_is_atom(term_peek(&c)) ||
        !slice_is(term_atom(&c).text, "EXIT") || !term_is_tuple(term_peek(&c)) ||
        term_tuple(&c) != 2) {
        return why;
    }
    return term_take(&c);
}

// {rex, Result}; Result may be {badrpc, Why}.
static bool parse_answer(struct slice said, struct slice *result, bool *failed) {
    struct cursor c = cursor_of(said.data, said.len);
    if (term_tuple(&c) != 2 || !slice_is(term_atom(&c).text, "rex")) {
        return false;
    }
    *result = term_take(&c);
    struct cursor in = cursor_of(result->data, result->len);
    *failed = term_is_tuple(term_peek(&in)) && term_tuple(&in) == 2 &&
              term_is_atom(term_peek(&in)) && slice_is(term_atom(&in).text, "badrpc");
    if (*failed) {
        *result = reason_of(term_take(&in));
    }
    return !c.failed;
}

// -- calls ----------------------------------------------------------------------------------------

static bool send_call(struct channel *c, const erlang_pid *from, const char *module,
                      const char *function, const ei_x_buff *arguments, int64_t deadline_ns) {
    ei_x_buff x;
    errno = ENOMEM;
    if (ei_x_new(&x) != 0) {
        return false;
    }
    bool good = encode_call(&x, from, module, function, arguments) &&
                socket_write(c->fd, x.buff, (size_t)x.index, deadline_ns);
    explicit_bzero(x.buff, (size_t)x.index); // it may hold a secret
    ei_x_free(&x);
    return good;
}

static bool receive_answer(struct channel *c, const erlang_pid *from, int64_t deadline_ns,
                           struct slice *result, bool *failed) {
    struct slice packet, said;
    struct term_pid to;
    do {
        if (!next_packet(c, &packet, deadline_ns)) {
            return false;
        }
    } while (!parse_message(packet, &to, &said) || to.id != from->num ||
             to.serial != from->serial || !parse_answer(said, result, failed));
    return true;
}

bool channel_call(struct channel *c, const char *module, const char *function,
                  const ei_x_buff *arguments, int timeout_ms, struct slice *result,
                  struct dist_error *e) {
    int64_t deadline = clock_monotonic() + (int64_t)timeout_ms * MS;
    erlang_pid from;
    bool failed = false;
    errno = ENOTCONN;
    if (c->fd < 0 || ei_make_pid(c->self, &from) != 0 ||
        !send_call(c, &from, module, function, arguments, deadline) ||
        !receive_answer(c, &from, deadline, result, &failed)) {
        return lost(c, e);
    }
    if (failed) {
        char why[512];
        size_t n = term_text(*result, why, sizeof why - 1);
        why[n] = 0;
        return dist_fail(e, DIST_OTHER, "%s: %s:%s failed: %s", c->node, module, function, why);
    }
    return true;
}

bool channel_serve(struct channel *c) {
    struct slice packet;
    while (c->fd >= 0 && next_packet(c, &packet, 0)) {
    }
    if (c->fd >= 0 && errno == ETIMEDOUT) { // nothing more for now
        return true;
    }
    channel_close(c);
    return false;
}
