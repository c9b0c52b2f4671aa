// SPDX-License-Identifier: Apache-2.0
#include "model/message/message_learned.h"

#include "base/hash.h"

enum {
    PID_NUMBERS = 12,      // id, serial and creation behind a pid's node
    LONGEST_LEAD = 3,      // bytes of an atom before its text
    BIG_TIME = 11,         // a time: tag, size 8, sign, digits
    NEAR_TIME = 1000000000 // ticks: how far apart two times of the fast way may be
};

static inline uint32_t load32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

static inline uint64_t load64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static inline uint64_t pid_number(const uint8_t *numbers) {
    uint64_t both = __builtin_bswap64(load64(numbers));
    return both >> 32 | both << 32;
}

// The value of a big integer of 8 bytes; false when p is none, or over 63 bits.
static inline bool big_value(const uint8_t *p, int64_t *value) {
    uint64_t digits = load64(p + 3);
    *value = p[2] ? (int64_t)(0 - digits) : (int64_t)digits;
    return p[0] == TERM_SMALL_BIG && p[1] == 8 && digits <= INT64_MAX;
}

// -- heads ----------------------------------------------------------------------------------------

// Bytes of "event, {Module, Function, Arity}" at p, if its atoms have `lead` bytes before their
// text, as all of a stream have; 0 when they go past `end` or are too many to keep. Only a length:
// that these are the bytes of a head is seen when they equal a known one.
static inline size_t head_bytes(const uint8_t *p, const uint8_t *end, size_t lead) {
    enum { TUPLE = 2, ARITY = 2, LEAST = 16 };
    size_t left = (size_t)(end - p);
    // the length's last byte stands before the text; longer atoms than 255 are none of these
    size_t at = lead + p[lead - 1] + TUPLE + lead;
    if (at > left) {
        return 0;
    }
    at += p[at - 1] + lead;
    if (at > left) {
        return 0;
    }
    size_t len = at + p[at - 1] + ARITY;
    return len <= left && len >= LEAST && len <= MESSAGE_HEAD_BYTES ? len : 0;
}

// The bytes before an atom's text; 0 for forms that no stream has.
static size_t atom_lead(uint8_t tag) {
    return tag == TERM_ATOM ? 3 : tag == TERM_SMALL_ATOM_UTF8 ? 2 : 0;
}

// Where a head is kept. It need not withstand attacks: whoever makes heads share a place only makes
// the slow way more frequent.
static inline struct message_head *head_place(struct message_reader *r, const uint8_t *p,
                                              size_t len) {
    // p[3] tells the events apart
    uint64_t h = ((load64(p + len - 16) + p[3]) * 0xd6e8feb86659fd93ULL ^ load64(p + len - 8)) *
                 0xe7037ed1a0b428dbULL;
    return &r->heads[(h >> 32) % MESSAGE_HEADS];
}

uint32_t message_target(struct slice name, uint32_t arity) {
    return (uint32_t)(hash_mix(hash_bytes(name) + arity) >> 32) | 1;
}

void message_learn_head(struct message_reader *r, const uint8_t *p, size_t len, struct message *m) {
    size_t lead = atom_lead(p[0]);
    if (m->arguments.len > 0 || lead == 0 || len < lead || head_bytes(p, p + len, lead) != len) {
        return;
    }
    r->atom_lead = (uint8_t)lead;
    struct message_head *h = head_place(r, p, len);
    *h = (struct message_head){
        .len = (uint8_t)len, .kind = (uint8_t)m->kind, .arity = (uint8_t)m->arity};
    memcpy(h->bytes, p, len);
    h->name_at = (uint8_t)(m->name.data - p);
    h->name_len = (uint8_t)m->name.len;
    h->module_at = (uint8_t)(m->module.text.data - p);
    h->module_len = (uint8_t)m->module.text.len;
    h->function_at = (uint8_t)(m->function.text.data - p);
    h->function_len = (uint8_t)m->function.text.len;
    h->latin1 = m->module.latin1;
    h->target = message_target(m->name, m->arity);
    m->target = h->target;
    m->head = h;
}

static inline struct message_head *head_find(struct message_reader *r, const uint8_t *p,
                                             const uint8_t *end) {
    size_t len = head_bytes(p, end, r->atom_lead);
    if (len == 0) {
        return NULL;
    }
    struct message_head *h = head_place(r, p, len);
    return h->len == len && bytes_equal(h->bytes, p, len) ? h : NULL;
}

// -- tokens ---------------------------------------------------------------------------------------

// Bytes of an integer of at most 64 bits at p, 0 when it is something else. BIG_TIME bytes are
// there.
static inline size_t number_bytes(const uint8_t *p) {
    return p[0] == TERM_SMALL_INTEGER            ? 2
           : p[0] == TERM_INTEGER                ? 5
           : p[0] == TERM_SMALL_BIG && p[1] <= 8 ? 3u + p[1]
                                                 : 0;
}

__attribute__((noinline)) static size_t read_big_serial(const uint8_t *p, uint64_t *serial) {
    size_t bytes = number_bytes(p);
    uint64_t value = 0;
    for (uint8_t i = bytes > 0 ? p[1] : 0; i > 0; i--) {
        value = value << 8 | p[2 + i];
    }
    *serial = p[2] != 0 || value > MESSAGE_LAST_SERIAL ? MESSAGE_LAST_SERIAL : value;
    return bytes;
}

// Reads a serial at p as message.c does, and returns its bytes; 0 when it is something else.
// BIG_TIME bytes are there.
static inline size_t read_serial(const uint8_t *p, uint64_t *serial) {
    if (p[0] == TERM_SMALL_INTEGER) {
        *serial = p[1];
        return 2;
    }
    if (p[0] == TERM_INTEGER) {
        int32_t value = (int32_t)__builtin_bswap32(load32(p + 1));
        *serial = value >= 0 ? (uint64_t)value : MESSAGE_LAST_SERIAL;
        return 5;
    }
    return read_big_serial(p, serial);
}

// A token whose label is a number and whose From is a process of the traced node, in what ends at
// `end`; behind that are the BIG_TIME bytes of the time, so that a number may be looked at wherever
// it begins. Returns the token's end, or NULL.
static inline const uint8_t *read_token(const struct message_reader *r, const uint8_t *p,
                                        const uint8_t *end, struct message *m) {
    enum { TUPLE = 2 };
    size_t pid = r->prefix_len - r->pid_at;
    int64_t label;
    if (p >= end || p[0] != TERM_SMALL_TUPLE || p[1] != 5) {
        return NULL;
    }
    size_t flags = number_bytes(p + TUPLE);
    p += TUPLE + flags;
    if (flags == 0 || p >= end) {
        return NULL;
    }
    size_t size = number_bytes(p);
    if (p[0] == TERM_SMALL_INTEGER) {
        label = p[1];
    } else if (p[0] == TERM_INTEGER) {
        label = (int32_t)__builtin_bswap32(load32(p + 1));
    } else if (!big_value(p, &label)) {
        return NULL;
    }
    p += size;
    size_t serial = p < end ? read_serial(p, &m->serial) : 0;
    p += serial;
    if (serial == 0 || p >= end || (size_t)(end - p) <= pid + PID_NUMBERS ||
        !bytes_equal(p, r->prefix + r->pid_at, pid) || load32(p + pid + 8) != r->creation) {
        return NULL;
    }
    m->token = hash_mix((uint64_t)label);
    m->from = pid_number(p + pid);
    p += pid + PID_NUMBERS;
    size_t previous = read_serial(p, &m->previous);
    return previous > 0 ? p + previous : NULL;
}

// The identity in a call's note up to end. Returns its end, or NULL. Apart, so that the rest needs
// no memory on the stack.
__attribute__((noinline)) static const uint8_t *read_identity(const uint8_t *p, const uint8_t *end,
                                                              struct message *m) {
    struct cursor c = cursor_of(p, (size_t)(end - p));
    m->note = term_take(&c);
    m->note_kind = NOTE_IDENTITY;
    return c.failed ? NULL : c.at;
}

// A call's note up to end: Token, {Token} or {Token, Identity}.
static inline bool read_note(const struct message_reader *r, const uint8_t *p, const uint8_t *end,
                             struct message *m) {
    bool wrapped = end - p > 2 && p[0] == TERM_SMALL_TUPLE && (p[1] == 1 || p[1] == 2);
    uint8_t elements = wrapped ? p[1] : 1;
    p = read_token(r, wrapped ? p + 2 : p, end, m);
    if (!p) {
        return false;
    }
    m->has_token = true;
    m->note_kind = NOTE_NONE;
    if (elements == 2 && p < end) {
        p = read_identity(p, end, m);
    }
    return p == end;
}

// -- messages -------------------------------------------------------------------------------------

bool message_learned(struct message_reader *r, struct cursor *c, struct message *m) {
    const uint8_t *p = c->at;
    const uint8_t *time = c->end - BIG_TIME;
    size_t start = r->known;
    if (start == 0 || cursor_left(c) < start + BIG_TIME + LONGEST_LEAD ||
        !bytes_equal(p, r->prefix, r->prefix_len) || load32(p + start - 4) != r->creation ||
        !big_value(time, &m->time) ||
        (uint64_t)m->time - (uint64_t)r->time + NEAR_TIME > 2 * (uint64_t)NEAR_TIME) {
        return false;
    }
    struct message_head *h = head_find(r, p + start, time);
    if (!h) {
        return false;
    }
    m->kind = h->kind;
    m->clock = MESSAGE_MONOTONIC;
    m->note_kind = NOTE_NONE;
    m->entry = ENTRY_NONE;
    m->has_token = false;
    m->pid = pid_number(p + start - PID_NUMBERS);
    if (!h->meant) {
        m->name = slice_of(h->bytes + h->name_at, h->name_len);
        m->module = (struct term_atom){slice_of(h->bytes + h->module_at, h->module_len), h->latin1};
        m->function =
            (struct term_atom){slice_of(h->bytes + h->function_at, h->function_len), h->latin1};
    }
    m->arity = h->arity;
    m->target = h->target;
    m->caller = 0;
    m->arguments = slice_of(NULL, 0);
    m->head = h;
    p += start + h->len;
    if (h->kind != MESSAGE_CALL) {
        m->note = slice_of(p, (size_t)(time - p));
    } else {
        m->note = slice_of(p, 0);
        if (!read_note(r, p, time, m)) {
            return false;
        }
    }
    r->time = m->time;
    c->at = c->end;
    return true;
}

void message_learn_start(struct message_reader *r, const uint8_t *start, const uint8_t *at,
                         struct term_pid pid) {
    const uint8_t *end = pid.node.text.data + pid.node.text.len;
    size_t len = (size_t)(end - start);
    r->prefix_len = r->known = 0;
    if (at[0] == TERM_NEW_PID && start[0] == TERM_SMALL_TUPLE && len <= MESSAGE_PREFIX_BYTES) {
        memcpy(r->prefix, start, len);
        r->prefix_len = len;
        r->pid_at = (size_t)(at - start);
        r->creation = load32(end + PID_NUMBERS - 4);
    }
}

void message_learn_time(struct message_reader *r, struct slice encoded, const struct message *m) {
    r->big_time = encoded.len == BIG_TIME && encoded.data[0] == TERM_SMALL_BIG &&
                  m->clock == MESSAGE_MONOTONIC;
    r->time = m->time;
    r->known =
        r->prefix_len > 0 && r->atom_lead > 0 && r->big_time ? r->prefix_len + PID_NUMBERS : 0;
}
