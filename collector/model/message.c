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

// The process that a token came from; mostly one of the traced node, which begins like the pids before it.
static uint64_t read_from(const struct message_reader *r, struct cursor *c, struct term_pid traced) {
    enum { NUMBERS = 12 };
    size_t len = r->prefix_len - r->pid_at;
    if (r->prefix_len > 0 && cursor_left(c) >= len + NUMBERS && memcmp(c->at, r->prefix + r->pid_at, len) == 0) {
        c->at += len;
        uint64_t number = cursor_u32(c);
        number |= (uint64_t)cursor_u32(c) << 32;
        if (cursor_u32(c) == traced.creation) {
            return number;
        }
        c->at -= len + NUMBERS;
    }
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

static uint64_t read_label(struct cursor *c) {
    struct cursor label = *c;
    if (term_is_integer(term_peek(c))) {
        int64_t value = term_integer(c);
        if (!c->failed) {
            return hash_mix((uint64_t)value);
        }
        *c = label; // a number of more than 64 bits
    }
    return hash_bytes(term_take(c));
}

static void read_token(const struct message_reader *r, struct cursor *c, struct term_pid traced, struct message *m) {
    if (term_tuple(c) != 5) {
        cursor_fail(c);
        return;
    }
    if (!term_is_integer(term_peek(c))) {
        cursor_fail(c);
        return;
    }
    term_skip(c); // flags
    m->token = read_label(c);
    term_skip(c); // serial: it says nothing, each spawn multiplies it
    m->from = read_from(r, c, traced);
    term_skip(c); // last count
    m->has_token = !c->failed;
}

// Reads what stands behind the token in a message of the shim: {Token, Identity} or {Token, ask, Args}.
static void read_rest(struct cursor *c, uint32_t elements, struct message *m) {
    if (elements == 2 && term_is_atom(term_peek(c)) && ATOM_IS(term_atom(c), "ask")) {
        m->note_kind = NOTE_ARGUMENTS;
        m->note = term_take(c);
    } else if (elements == 1) {
        m->note_kind = NOTE_IDENTITY;
        m->note = term_take(c);
    }
}

// Looks for the token in a match spec's message: it is the message, or an element of it. Other people's messages have it
// anywhere: {Token}, {tag, Token}, ….
static void find_token(const struct message_reader *r, struct cursor *c, struct term_pid traced, struct message *m) {
    enum { ELEMENTS = 8 };
    struct cursor start = *c;
    uint32_t arity = term_tuple(c);
    if (arity == 5) {
        read_token(r, &start, traced, m);
    }
    for (uint32_t i = 0; i < arity && i < ELEMENTS && !m->has_token && !c->failed; i++) {
        if (!term_is_tuple(term_peek(c))) {
            term_skip(c);
            continue;
        }
        start = *c;
        read_token(r, c, traced, m);
        if (!m->has_token) {
            *c = start;
            term_skip(c);
        } else if (i == 0) {
            read_rest(c, arity - 1, m);
        }
    }
}

// Reads the match spec's message and moves behind it.
static void read_note(const struct message_reader *r, struct cursor *c, struct term_pid traced, struct message *m) {
    struct cursor note = *c;
    if (term_is_tuple(term_peek(c))) {
        find_token(r, &note, traced, m);
    }
    if (m->note_kind != NOTE_NONE && !note.failed) {
        *c = note; // a message of the shim's was read to its end
    } else {
        m->note_kind = NOTE_NONE;
        term_skip(c);
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
        m->clock = MESSAGE_MONOTONIC;
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

enum {
    BIG_TIME = 11,                 // bytes: tag, size 8, sign, digits
    NEAR_TIME = 1000000000         // ticks: how far apart two times of the fast way may be
};

// The value that a call returned, and the time behind it, without walking the value. A stream's times have one form; its bytes at
// the very end, holding nearly the time of the message before, are no coincidence.
static bool read_time_at_end(struct message_reader *r, struct cursor *c, struct message *m) {
    if (!r->big_time || cursor_left(c) <= BIG_TIME) {
        return false;
    }
    struct cursor end = cursor_of(c->end - BIG_TIME, BIG_TIME);
    if (end.at[0] != TERM_SMALL_BIG || end.at[1] != 8) {
        return false;
    }
    int64_t time = term_integer(&end);
    if (end.failed || (uint64_t)time - (uint64_t)r->time + NEAR_TIME > 2 * (uint64_t)NEAR_TIME) {
        return false;
    }
    m->time = time;
    m->clock = MESSAGE_MONOTONIC;
    r->time = time;
    c->at = c->end;
    return true;
}

static void learn_time(struct message_reader *r, const uint8_t *encoded, const struct message *m) {
    r->big_time = encoded[0] == TERM_SMALL_BIG && encoded[1] == 8;
    r->time = m->time;
}

// The elements behind the pid.
static bool read_event(struct message_reader *r, struct cursor *c, bool last, struct term_pid pid, bool timed,
                       uint32_t left, struct message *m) {
    if (!term_is_atom(term_peek(c))) {
        cursor_fail(c);
        return false;
    }
    struct term_atom what = term_atom(c);
    uint32_t times = timed ? 1 : 0;
    left--;
    if (ATOM_IS(what, "call") && left >= 1 + times) {
        m->kind = MESSAGE_CALL;
        read_function(c, m);
        left--;
        if (left > times) {
            read_note(r, c, pid, m);
            left--;
        }
    } else if ((ATOM_IS(what, "return_from") || ATOM_IS(what, "exception_from")) && left >= 2 + times) {
        m->kind = what.text.data[0] == 'r' ? MESSAGE_RETURN : MESSAGE_EXCEPTION;
        read_function(c, m);
        if (last && timed && left == 3 && !c->failed && read_time_at_end(r, c, m)) {
            return true;
        }
        term_skip(c);
        left -= 2;
    } else {
        return skip_rest(c, left);
    }
    skip_rest(c, left - times); // what more flags add, such as the scheduler's number
    if (timed) {
        const uint8_t *encoded = c->at;
        read_time(c, m);
        if (!c->failed) {
            learn_time(r, encoded, m);
        }
    }
    return !c->failed;
}

// Takes the start of a message that begins like the ones before it.
static bool read_known_start(const struct message_reader *r, struct cursor *c, struct term_pid *pid) {
    enum { NUMBERS = 12 };
    if (r->prefix_len == 0 || cursor_left(c) < r->prefix_len + NUMBERS || memcmp(c->at, r->prefix, r->prefix_len) != 0) {
        return false;
    }
    struct cursor ahead = cursor_of(c->at + r->prefix_len, NUMBERS);
    pid->id = cursor_u32(&ahead);
    pid->serial = cursor_u32(&ahead);
    pid->creation = cursor_u32(&ahead);
    if (pid->creation != r->creation) {
        return false;
    }
    c->at = ahead.at;
    return true;
}

// Remembers how this message began; start is its tuple's tag, at its pid's. What cannot be remembered makes forget: the start known
// is always that of the message being read, so that the node in it is the traced one (read_from).
static void learn_start(struct message_reader *r, const uint8_t *start, const uint8_t *at, struct term_pid pid) {
    size_t len = (size_t)(pid.node.text.data + pid.node.text.len - start);
    r->prefix_len = 0;
    if (len <= sizeof r->prefix) {
        memcpy(r->prefix, start, len);
        r->prefix_len = len;
        r->pid_at = (size_t)(at - start);
        r->node_at = (size_t)(pid.node.text.data - start);
        r->latin1 = pid.node.latin1;
        r->creation = pid.creation;
        r->arity = start[1];
    }
}

bool message_decode(struct message_reader *r, struct cursor *c, bool last, struct message *m) {
    memset(m, 0, sizeof *m);
    const uint8_t *start = c->at;
    struct term_pid pid;
    if (read_known_start(r, c, &pid)) {
        pid.node = (struct term_atom){slice_of(start + r->node_at, r->prefix_len - r->node_at), r->latin1};
        m->pid = pid_number(pid);
        return read_event(r, c, last, pid, true, r->arity - 2, m);
    }
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
    pid = term_pid(c);
    m->pid = pid_number(pid);
    if (timed && who == TERM_NEW_PID && start[0] == TERM_SMALL_TUPLE && !c->failed) {
        learn_start(r, start, at, pid);
    } else {
        r->prefix_len = 0;
    }
    return read_event(r, c, last, pid, timed, arity - 2, m);
}

void message_pid_text(uint64_t pid, char *out) {
    snprintf(out, 32, "<0.%" PRIu32 ".%" PRIu32 ">", (uint32_t)pid, (uint32_t)(pid >> 32));
}
