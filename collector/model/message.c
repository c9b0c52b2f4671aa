#include "model/message.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/hash.h"

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

static inline bool atom_is(struct term_atom atom, const char *text, size_t len) {
    return atom.text.len == len && memcmp(atom.text.data, text, len) == 0;
}

#define ATOM_IS(atom, literal) atom_is(atom, literal, sizeof(literal) - 1)

static inline uint64_t pid_number(struct term_pid pid) {
    return pid.id | (uint64_t)pid.serial << 32;
}

// The number of a process that may live on another node than the traced one.
static uint64_t remote_number(struct term_pid pid, struct term_pid traced) {
    if (pid.creation == traced.creation && slice_equal(pid.node.text, traced.node.text)) {
        return pid_number(pid);
    }
    return hash_mix(pid_number(pid)) ^ hash_bytes(pid.node.text) ^ pid.creation;
}

static void read_token(struct cursor *c, struct term_pid traced, struct message *m) {
    if (term_tuple(c) != 5) {
        cursor_fail(c);
        return;
    }
    term_skip(c); // flags
    if (term_is_integer(term_peek(c))) {
        struct cursor label = *c;
        int64_t value = term_integer(c);
        if (!c->failed) {
            m->token = hash_mix((uint64_t)value);
        } else { // a number of more than 63 bits
            *c = label;
            m->token = hash_bytes(term_take(c));
        }
    } else {
        m->token = hash_bytes(term_take(c));
    }
    term_skip(c); // serial: see trace-port facts, it says nothing
    uint8_t tag = term_peek(c);
    if (tag == TERM_NEW_PID || tag == TERM_PID) {
        m->from = remote_number(term_pid(c), traced);
    } else {
        term_skip(c); // a port
    }
    term_skip(c); // last count
    m->has_token = !c->failed;
}

// Reads the match spec's message. What is not of our making is passed over.
static void read_note(struct cursor *c, struct term_pid traced, struct message *m) {
    struct cursor note = *c;
    term_skip(c);
    if (!term_is_tuple(term_peek(&note))) {
        return;
    }
    struct cursor token = note;
    uint32_t arity = term_tuple(&note);
    if (arity == 5) {
        read_token(&token, traced, m);
        return;
    }
    if ((arity != 2 && arity != 3) || !term_is_tuple(term_peek(&note))) {
        return;
    }
    read_token(&note, traced, m);
    if (!m->has_token) {
        return;
    }
    if (arity == 2) {
        m->note = term_take(&note);
        m->note_kind = NOTE_IDENTITY;
    } else if (term_is_atom(term_peek(&note)) && ATOM_IS(term_atom(&note), "ask")) {
        m->note = term_take(&note);
        m->note_kind = NOTE_ARGUMENTS;
    }
}

static void read_function(struct cursor *c, struct message *m) {
    if (term_tuple(c) != 3) {
        cursor_fail(c);
        return;
    }
    m->module = term_atom(c);
    m->function = term_atom(c);
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
        m->clock = MESSAGE_MONOTONIC;
    } else if (arity == 3) { // {MegaSeconds, Seconds, MicroSeconds}
        uint64_t mega = (uint64_t)term_integer(c);
        uint64_t seconds = (uint64_t)term_integer(c);
        uint64_t micro = (uint64_t)term_integer(c);
        if (mega > 100000 || seconds > 1000000 || micro > 1000000) {
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

bool message_decode(struct cursor *c, struct message *m) {
    *m = (struct message){.kind = MESSAGE_OTHER};
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
    struct term_pid pid = term_pid(c);
    m->pid = pid_number(pid);
    if (!term_is_atom(term_peek(c))) {
        cursor_fail(c);
        return false;
    }
    struct term_atom what = term_atom(c);
    uint32_t left = arity - 3; // elements behind `what`
    uint32_t last = timed ? 1 : 0;
    if (ATOM_IS(what, "call") && left >= 1 + last) {
        m->kind = MESSAGE_CALL;
        read_function(c, m);
        left--;
        if (left > last) {
            read_note(c, pid, m);
            left--;
        }
    } else if (ATOM_IS(what, "return_from") && left >= 2 + last) {
        m->kind = MESSAGE_RETURN;
        read_function(c, m);
        term_skip(c);
        left -= 2;
    } else if (ATOM_IS(what, "exception_from") && left >= 2 + last) {
        m->kind = MESSAGE_EXCEPTION;
        read_function(c, m);
        term_skip(c);
        left -= 2;
    } else {
        return skip_rest(c, left);
    }
    if (timed && left > 0) {
        read_time(c, m);
        left--;
    }
    return skip_rest(c, left);
}

void message_pid_text(uint64_t pid, char *out) {
    snprintf(out, 32, "<0.%" PRIu32 ".%" PRIu32 ">", (uint32_t)pid, (uint32_t)(pid >> 32));
}
