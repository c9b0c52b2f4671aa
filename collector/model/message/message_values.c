// SPDX-License-Identifier: Apache-2.0
#include "model/message/message_values.h"

static const uint8_t EMPTY[] = {TERM_NIL};
static const uint8_t USELESS[] = {TERM_SMALL_TUPLE, 2, TERM_SMALL_ATOM_UTF8, 4, 'd', 'r', 'o', 'p',
                                  TERM_NIL};

static void add(struct buffer *out, struct slice bytes) {
    buffer_append(out, bytes.data, bytes.len);
}

static struct slice between(const uint8_t *from, const uint8_t *to) {
    return slice_of(from, (size_t)(to - from));
}

// Whether a function of the VM made the process that it returned: the one thing that a replay reads
// of returned values.
static bool spawns(const struct message *m) {
    struct slice name = m->function.text;
    return slice_is(m->module.text, "erlang") && name.len >= 5 &&
           memcmp(name.data, "spawn", 5) == 0;
}

// What stays of a returned value: a pid, and of a pair the pid in front, if it is a spawn
// function's.
static void add_returned(struct buffer *out, const struct message *m) {
    struct cursor c = cursor_of(m->note.data, m->note.len);
    bool pair = term_is_tuple(term_peek(&c)) && term_tuple(&c) == 2;
    struct slice pid = between(m->note.data, c.at);
    uint8_t tag = term_peek(&c);
    if (!spawns(m) || (tag != TERM_NEW_PID && tag != TERM_PID)) {
        add(out, slice_of(EMPTY, sizeof EMPTY));
        return;
    }
    term_skip(&c);
    pid.len = (size_t)(c.at - pid.data);
    add(out, pid);
    if (pair) {
        add(out, slice_of(EMPTY, sizeof EMPTY));
    }
}

// What stays of {Class, Reason}: the class.
static void add_raised(struct buffer *out, const struct message *m) {
    struct cursor c = cursor_of(m->note.data, m->note.len);
    if (term_is_tuple(term_peek(&c)) && term_tuple(&c) == 2 && term_is_atom(term_peek(&c))) {
        term_skip(&c);
        add(out, between(m->note.data, c.at));
    }
    add(out, slice_of(EMPTY, sizeof EMPTY));
}

// Appends the message between those two places.
static void add_message(struct buffer *out, const struct message *m, const uint8_t *from,
                        const uint8_t *to) {
    if (m->kind == MESSAGE_OTHER) {
        add(out, slice_of(USELESS, sizeof USELESS));
    } else if (m->kind != MESSAGE_RETURN && m->kind != MESSAGE_EXCEPTION) {
        add(out, between(from, to));
    } else {
        add(out, between(from, m->note.data));
        if (m->kind == MESSAGE_RETURN) {
            add_returned(out, m);
        } else {
            add_raised(out, m);
        }
        add(out, between(m->note.data + m->note.len, to));
    }
}

bool message_without_values(struct message_reader *reader, struct slice body, struct buffer *out) {
    size_t before = out->len;
    struct cursor c;
    struct message m;
    uint32_t count = message_frame(body, &c);
    add(out, between(body.data, c.at)); // 131, and a list's head
    for (uint32_t i = 0; i < count && !out->failed; i++) {
        const uint8_t *from = c.at;
        if (!message_decode(reader, &c, false, &m)) {
            break;
        }
        add_message(out, &m, from, c.at);
    }
    if (count == 0 || c.failed) {
        out->len = before;
        return false;
    }
    if (body.data[1] == TERM_LIST && cursor_left(&c) > 0) {
        add(out, slice_of(EMPTY, sizeof EMPTY)); // its end
    }
    return !out->failed;
}
