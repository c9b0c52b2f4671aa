// SPDX-License-Identifier: Apache-2.0
#include "model/message/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "model/message/message_learned.h"
#include "model/message/message_note.h"

uint32_t message_frame(struct slice body, struct cursor *c) {
    *c = cursor_of(body.data, body.len);
    if (cursor_u8(c) != TERM_VERSION) {
        cursor_fail(c);
        return 0;
    }
    if (term_is_tuple(term_peek(c))) {
        return 1;
    }
    bool has_tail;
    struct slice bytes;
    uint32_t count = term_list(c, &has_tail, &bytes);
    if (!has_tail) {
        cursor_fail(c);
    }
    return c->failed ? 0 : count;
}

static inline uint64_t pid_number(struct term_pid pid) {
    return pid.id | (uint64_t)pid.serial << 32;
}

uint64_t message_process(struct slice node, uint64_t pid) {
    uint64_t h = node.len;
    for (size_t i = 0; i < node.len; i += 8) {
        uint64_t word = 0;
        for (size_t k = i; k < i + 8 && k < node.len; k++) {
            word = word << 8 | node.data[k];
        }
        h = hash_mix(h ^ word);
    }
    return hash_mix(h ^ pid);
}

// The number of a process that may live on another node than the traced one.
static uint64_t remote_number(struct term_pid pid, struct term_pid traced) {
    bool here = pid.creation == traced.creation && slice_equal(pid.node.text, traced.node.text);
    return here ? pid_number(pid) : message_process(pid.node.text, pid_number(pid));
}

// The process that a token came from.
static uint64_t read_from(struct cursor *c, struct term_pid traced) {
    uint8_t tag = term_peek(c);
    if (tag == TERM_NEW_PID || tag == TERM_PID) {
        return remote_number(term_pid(c), traced);
    }
    if (tag != TERM_PORT && tag != TERM_NEW_PORT && tag != TERM_V4_PORT) {
        cursor_fail(c); // no token after all
    }
    term_skip(c);
    return 0;
}

// Each spawn multiplies the parent's clock by 16: of one that has overflown, or may soon, no more
// is known than that it is high.
static uint64_t read_serial(struct cursor *c) {
    struct cursor serial = *c;
    term_skip(c);
    int64_t value = term_is_integer(term_peek(&serial)) ? term_integer(&serial) : 0;
    return serial.failed || value < 0 || value > MESSAGE_LAST_SERIAL ? MESSAGE_LAST_SERIAL
                                                                     : (uint64_t)value;
}

static void read_token(struct cursor *c, struct term_pid traced, struct message *m) {
    if (term_tuple(c) != 5 || !term_is_integer(term_peek(c))) {
        cursor_fail(c);
        return;
    }
    term_skip(c); // flags
    m->token = note_label(c);
    m->serial = read_serial(c);
    m->from = read_from(c, traced);
    m->previous = read_serial(c);
    m->has_token = !c->failed;
}

// Looks for the token in a match spec's message: it is the message, or an element of it. Other
// people's messages have it anywhere: {Token}, {tag, Token}, ….
static void find_token(struct cursor *c, struct term_pid traced, struct message *m) {
    enum { ELEMENTS = 8 };
    struct cursor start = *c;
    uint32_t arity = term_tuple(c);
    if (arity == 5) {
        read_token(&start, traced, m);
    }
    for (uint32_t i = 0; i < arity && i < ELEMENTS && !m->has_token && !c->failed; i++) {
        start = *c;
        term_skip(c);
        if (term_is_tuple(term_peek(&start))) {
            read_token(&start, traced, m);
            if (m->has_token && i == 0) {
                note_rest(&start, arity - 1, false, m);
            }
        }
    }
}

// Reads the match spec's message and moves behind it.
static void read_note(struct cursor *c, struct term_pid traced, struct message *m) {
    struct cursor note = *c;
    term_skip(c);
    note.end = c->at;
    if (!c->failed && term_is_tuple(term_peek(&note))) {
        find_token(&note, traced, m);
    }
}

static void read_function(struct cursor *c, struct message *m) {
    if (term_tuple(c) != 3) {
        cursor_fail(c);
        return;
    }
    const uint8_t *name = c->at;
    m->module = term_atom(c);
    m->function = term_atom(c);
    m->name = slice_of(name, (size_t)(c->at - name));
    if (term_is_integer(term_peek(c))) {
        int64_t arity = term_integer(c);
        m->arity = arity >= 0 && arity <= 255 ? (uint32_t)arity : UINT32_MAX;
        return;
    }
    struct cursor list = *c;
    bool has_tail;
    struct slice bytes;
    m->arity = term_list(&list, &has_tail, &bytes);
    m->arguments = term_take(c);
}

static void read_time(struct cursor *c, struct message *m) {
    if (term_is_integer(term_peek(c))) {
        m->time = term_integer(c);
        m->clock = MESSAGE_MONOTONIC;
        return;
    }
    uint32_t arity = term_tuple(c);
    if (arity == 2) { // strict_monotonic_timestamp: {Monotonic, Unique}
        m->time = term_integer(c);
        term_skip(c);
        m->clock = MESSAGE_STRICT;
    } else if (arity == 3) { // {MegaSeconds, Seconds, MicroSeconds}
        uint64_t mega = (uint64_t)term_integer(c);
        uint64_t seconds = (uint64_t)term_integer(c);
        uint64_t micro = (uint64_t)term_integer(c);
        if (mega > 9000 || seconds > 1000000 || micro > 1000000) { // 64 bits of ns end in 2262
            cursor_fail(c);
            return;
        }
        m->time = (int64_t)(((mega * 1000000 + seconds) * 1000000 + micro) * 1000);
        m->clock = MESSAGE_WALL;
    } else {
        cursor_fail(c);
    }
}

// Passes over the elements of a message that are of no use.
static bool skip_rest(struct cursor *c, uint32_t elements) {
    for (; elements > 0 && !c->failed; elements--) {
        term_skip(c);
    }
    return !c->failed;
}

// The elements of messages of one detail that are no calls, behind their event.
static bool read_state(struct cursor *c, struct term_atom what, bool timed, uint32_t left,
                       struct message *m) {
    uint32_t times = timed ? 1 : 0;
    bool gc = what.text.len > 3 && memcmp(what.text.data, "gc_", 3) == 0;
    if (left != 1 + times) {
        return skip_rest(c, left);
    }
    if (ATOM_IS(what, "return_to")) {
        struct cursor target = *c;
        m->kind = MESSAGE_RETURN_TO;
        m->target = note_target(&target);
    } else if (gc && (ATOM_IS(what, "gc_minor_start") || ATOM_IS(what, "gc_major_start"))) {
        m->kind = MESSAGE_GC_START;
    } else if (gc && (ATOM_IS(what, "gc_minor_end") || ATOM_IS(what, "gc_major_end"))) {
        m->kind = MESSAGE_GC_END;
    } else if (ATOM_IS(what, "in")) {
        m->kind = MESSAGE_IN;
    } else if (ATOM_IS(what, "out")) {
        m->kind = MESSAGE_OUT;
    } else if (ATOM_IS(what, "out_exited")) {
        m->kind = MESSAGE_EXITED;
    } else {
        return skip_rest(c, left);
    }
    term_skip(c);
    if (timed && !c->failed) {
        read_time(c, m);
    }
    return !c->failed;
}

// The elements behind the pid. Learns from those that message_learned can read next time.
static bool read_event(struct message_reader *r, struct cursor *c, struct term_pid pid, bool timed,
                       uint32_t left, struct message *m) {
    const uint8_t *head = c->at;
    if (!term_is_atom(term_peek(c))) {
        cursor_fail(c);
        return false;
    }
    struct term_atom what = term_atom(c);
    uint32_t times = timed ? 1 : 0;
    left--;
    if (ATOM_IS(what, "call") && left >= 1 + times) {
        m->kind = MESSAGE_CALL;
    } else if (ATOM_IS(what, "return_from") && left >= 2 + times) {
        m->kind = MESSAGE_RETURN;
    } else if (ATOM_IS(what, "exception_from") && left >= 2 + times) {
        m->kind = MESSAGE_EXCEPTION;
    } else {
        return read_state(c, what, timed, left, m);
    }
    read_function(c, m);
    left--;
    if (!c->failed) {
        message_learn_head(r, head, (size_t)(c->at - head), m);
    }
    if (m->kind != MESSAGE_CALL) {
        m->note = term_take(c);
        left--;
    } else if (left > times) {
        read_note(c, pid, m);
        left--;
    }
    skip_rest(c, left - times); // what more flags add, such as the scheduler's number
    if (timed && !c->failed) {
        const uint8_t *time = c->at;
        read_time(c, m);
        message_learn_time(r, slice_of(time, (size_t)(c->at - time)), m);
    }
    return !c->failed;
}

// Out of line, so that the fast way is a part of the loop that decodes.
__attribute__((noinline)) static bool read_any(struct message_reader *r, struct cursor *c,
                                               struct message *m) {
    memset(m, 0, sizeof *m);
    const uint8_t *start = c->at;
    uint32_t arity = term_tuple(c);
    if (arity < 2 || !term_is_atom(term_peek(c))) {
        cursor_fail(c);
        return false;
    }
    struct term_atom tag = term_atom(c);
    bool timed = ATOM_IS(tag, "trace_ts");
    if (!timed && !ATOM_IS(tag, "trace")) {
        if (!ATOM_IS(tag, "seq_trace") && !ATOM_IS(tag, "drop")) {
            cursor_fail(c);
            return false;
        }
        return skip_rest(c, arity - 1);
    }
    uint8_t who = term_peek(c);
    if (arity < 4 || (who != TERM_NEW_PID && who != TERM_PID)) {
        return skip_rest(c, arity - 1); // about a port
    }
    const uint8_t *at = c->at;
    struct term_pid pid = term_pid(c);
    m->pid = pid_number(pid);
    if (timed && arity == 6 && !c->failed) {
        message_learn_start(r, start, at, pid);
    }
    return read_event(r, c, pid, timed, arity - 2, m);
}

bool message_decode(struct message_reader *r, struct cursor *c, bool last, struct message *m) {
    return (last && message_learned(r, c, m)) || read_any(r, c, m);
}

void message_pid_text(uint64_t pid, char out[MESSAGE_PID_BYTES]) {
    snprintf(out, MESSAGE_PID_BYTES, "<0.%" PRIu32 ".%" PRIu32 ">", (uint32_t)pid,
             (uint32_t)(pid >> 32));
}

// Reads a number of 32 bits at *at and steps over it.
static bool parse_number(const char **at, uint32_t *n) {
    uint64_t value = 0;
    const char *start = *at;
    for (; **at >= '0' && **at <= '9' && value <= UINT32_MAX; (*at)++) {
        value = 10 * value + (uint64_t)(**at - '0');
    }
    *n = (uint32_t)value;
    return *at > start && value <= UINT32_MAX;
}

bool message_pid_parse(const char *text, uint64_t *pid) {
    static const char head[] = "<0.";
    const char *at = text + sizeof head - 1;
    uint32_t id = 0, serial = 0;
    bool good = strncmp(text, head, sizeof head - 1) == 0 && parse_number(&at, &id) &&
                *at++ == '.' && parse_number(&at, &serial) && strcmp(at, ">") == 0;
    *pid = good ? id | (uint64_t)serial << 32 : 0;
    return good;
}

uint64_t message_pid(struct cursor *c) {
    uint8_t tag = term_peek(c);
    if (tag != TERM_NEW_PID && tag != TERM_PID) {
        return 0;
    }
    struct term_pid pid = term_pid(c);
    return c->failed ? 0 : pid_number(pid);
}
