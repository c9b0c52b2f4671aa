// SPDX-License-Identifier: Apache-2.0
#include "model/message/native.h"

#include "base/leb128.h"
#include "codec/frame.h"
#include "model/message/message_note.h"

// The flags that a record of a kind may have.
static const uint8_t FLAGS[] = {[NATIVE_CALL] =
                                    NATIVE_TOKEN | NATIVE_CALLER | NATIVE_REST | NATIVE_TERM,
                                [NATIVE_RETURN] = NATIVE_SPAWNED,
                                [NATIVE_SENT] = NATIVE_TOKEN | NATIVE_TERM,
                                [NATIVE_TAKEN] = NATIVE_TOKEN | NATIVE_TERM,
                                [NATIVE_END] = 0};

// The kind of message that a record of a kind is.
static const uint8_t KINDS[] = {[NATIVE_CALL] = MESSAGE_CALL,
                                [NATIVE_RETURN] = MESSAGE_RETURN,
                                [NATIVE_EXCEPTION] = MESSAGE_EXCEPTION,
                                [NATIVE_RETURN_TO] = MESSAGE_RETURN_TO,
                                [NATIVE_GC_START] = MESSAGE_GC_START,
                                [NATIVE_GC_END] = MESSAGE_GC_END,
                                [NATIVE_OUT] = MESSAGE_OUT,
                                [NATIVE_IN] = MESSAGE_IN,
                                [NATIVE_EXITED] = MESSAGE_EXITED,
                                [NATIVE_SENT] = MESSAGE_SENT,
                                [NATIVE_TAKEN] = MESSAGE_TAKEN};

// A record of a message or a loss as it stands there. What its kind and flags say nothing of is 0.
struct record {
    uint8_t head; // kind and flags
    uint8_t elements;
    uint64_t time;     // the difference
    uint64_t process;  // the number of it
    uint64_t function; // likewise, of a return_to one more
    uint64_t label;    // the difference
    struct slice term; // that is the label
    uint64_t serial;
    uint64_t from;
    uint64_t previous;
    uint64_t caller;
    struct slice rest;
    uint64_t spawned;
    uint64_t messages;
    uint64_t until; // the difference
};

static inline enum native_kind kind_of(uint8_t head) {
    return (enum native_kind)(head & 0x0f);
}

// Sent, or taken.
static inline bool is_message(enum native_kind kind) {
    return kind == NATIVE_SENT || kind == NATIVE_TAKEN;
}

// -- reading --------------------------------------------------------------------------------------

// Apart, as few numbers come here. Unlike leb128_take it takes none that is over 64 bits.
__attribute__((noinline)) static uint64_t read_long_number(struct cursor *c) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = cursor_u8(c);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80 && (shift < 63 || byte <= 1)) {
            return value;
        }
    }
    cursor_fail(c); // over 64 bits
    return 0;
}

// Most have up to three bytes. Near the block's end, where fewer are left, they are read one by
// one.
__attribute__((always_inline)) static inline uint64_t read_number(struct cursor *c) {
    enum { SURE = 3, MORE = 0x80 };
    const uint8_t *p = c->at;
    if (cursor_left(c) < SURE) {
        return read_long_number(c);
    }
    uint64_t value = p[0];
    if (p[0] < MORE) {
        c->at += 1;
        return value;
    }
    value += ((uint64_t)p[1] << 7) - MORE;
    if (p[1] < MORE) {
        c->at += 2;
        return value;
    }
    value += ((uint64_t)p[2] << 14) - ((uint64_t)MORE << 7);
    if (p[2] < MORE) {
        c->at += 3;
        return value;
    }
    return read_long_number(c);
}

// The number that a signed one is, in two's complement.
static inline uint64_t signed_number(uint64_t told) {
    return told >> 1 ^ (0 - (told & 1));
}

// What stands behind its length.
static inline struct slice read_bytes(struct cursor *c, uint64_t len) {
    const uint8_t *at = cursor_claim(c, len);
    return slice_of(at, at ? len : 0);
}

static inline void read_token(struct cursor *c, struct record *rec) {
    uint64_t label = read_number(c);
    if (rec->head & NATIVE_TERM) {
        rec->term = read_bytes(c, label);
    } else {
        rec->label = label;
    }
    rec->serial = read_number(c);
    rec->from = read_number(c);
    rec->previous = read_number(c);
}

static inline void read_call(struct cursor *c, struct record *rec) {
    if (rec->head & NATIVE_TOKEN) {
        read_token(c, rec);
    } else if (rec->head & NATIVE_TERM) {
        cursor_fail(c);
    }
    if (rec->head & NATIVE_CALLER) {
        rec->caller = read_number(c);
    }
    if (rec->head & NATIVE_REST) {
        uint64_t len = read_number(c);
        rec->elements = cursor_u8(c);
        rec->rest = read_bytes(c, len);
    }
}

// Reads what stands behind the head of a record. The cursor fails where it cannot be.
static inline void read_record(struct cursor *c, struct record *rec) {
    enum native_kind kind = kind_of(rec->head);
    rec->time = read_number(c);
    if (kind == NATIVE_LOST) {
        rec->messages = read_number(c);
        rec->until = read_number(c);
        return;
    }
    rec->process = read_number(c);
    if (kind <= NATIVE_RETURN_TO) {
        rec->function = read_number(c);
    }
    if (kind == NATIVE_CALL) {
        read_call(c, rec);
    } else if (is_message(kind) && (rec->head & NATIVE_TOKEN)) {
        read_token(c, rec);
    } else if (is_message(kind)) {
        cursor_fail(c);
    } else if (rec->head & NATIVE_SPAWNED) {
        rec->spawned = read_number(c);
    }
}

// Whether so many terms are all of the bytes.
static bool are_terms(struct slice bytes, uint8_t count) {
    struct cursor c = cursor_of(bytes.data, bytes.len);
    for (; count > 0 && !c.failed; count--) {
        term_skip(&c);
    }
    return !c.failed && cursor_left(&c) == 0;
}

// -- names ----------------------------------------------------------------------------------------

static void take_function(struct native_reader *r, struct cursor *c, const uint8_t *start) {
    if (r->functions == NATIVE_FUNCTIONS) {
        cursor_fail(c);
        return;
    }
    struct native_function *f = &r->function[r->functions++];
    uint8_t arity = cursor_u8(c);
    const uint8_t *name = c->at;
    f->module = term_atom(c);
    f->function = term_atom(c);
    f->name = slice_of(name, (size_t)(c->at - name));
    f->told = slice_of(start, (size_t)(c->at - start));
    f->head.arity = arity;
    f->head.target = message_target(f->name, arity);
    f->head.meant = false;
    f->head.meaning = NULL;
}

static void take_process(struct native_reader *r, struct cursor *c, const uint8_t *start,
                         bool remote) {
    if (r->processes == NATIVE_PROCESSES) {
        cursor_fail(c);
        return;
    }
    struct native_process *p = &r->process[r->processes++];
    struct slice node = remote ? term_atom(c).text : slice_of(NULL, 0);
    uint64_t number = read_number(c);
    p->pid = remote ? message_process(node, number) : number;
    p->told = slice_of(start, (size_t)(c->at - start));
}

// -- messages -------------------------------------------------------------------------------------

// The token of a record that has one. False: its label is no term.
static inline bool take_token(struct native_reader *r, const struct record *rec,
                              struct message *m) {
    if (rec->head & NATIVE_TERM) {
        if (!are_terms(rec->term, 1)) {
            return false;
        }
        struct cursor c = cursor_of(rec->term.data, rec->term.len);
        m->token = note_label(&c);
    } else {
        r->label += signed_number(rec->label);
        m->token = hash_mix(r->label);
    }
    m->has_token = true;
    m->from = rec->from > 0 ? r->process[rec->from - 1].pid : 0;
    m->full_serial = rec->serial;
    m->full_previous = rec->previous;
    m->serial = rec->serial < MESSAGE_LAST_SERIAL ? rec->serial : MESSAGE_LAST_SERIAL;
    m->previous = rec->previous < MESSAGE_LAST_SERIAL ? rec->previous : MESSAGE_LAST_SERIAL;
    return true;
}

// What a call tells besides. False: what stays a term in it is none.
static inline bool take_call(struct native_reader *r, const struct record *rec, struct message *m) {
    if ((rec->head & NATIVE_REST) && !are_terms(rec->rest, rec->elements)) {
        return false;
    }
    if (!(rec->head & NATIVE_TOKEN)) {
        return true;
    }
    if (!take_token(r, rec, m)) {
        return false;
    }
    if (rec->head & NATIVE_CALLER) {
        m->caller = rec->caller > 0 ? r->function[rec->caller - 1].head.target : TARGET_UNDEFINED;
    }
    if (rec->head & NATIVE_REST) {
        struct cursor c = cursor_of(rec->rest.data, rec->rest.len);
        note_rest(&c, rec->elements, rec->head & NATIVE_CALLER, m);
    } else {
        static const uint8_t undefined[] = {
            TERM_SMALL_ATOM_UTF8, 9, 'u', 'n', 'd', 'e', 'f', 'i', 'n', 'e', 'd'};
        m->note_kind = NOTE_IDENTITY;
        m->note = slice_of(undefined, sizeof undefined);
    }
    return true;
}

static inline void take_name(struct native_function *f, struct message *m) {
    m->name = f->name;
    m->module = f->module;
    m->function = f->function;
    m->arity = f->head.arity;
    m->target = f->head.target;
    m->head = &f->head;
}

// Whether all that a record names by a number was told.
static inline bool is_told(const struct native_reader *r, const struct record *rec) {
    enum native_kind kind = kind_of(rec->head);
    bool told = rec->process < r->processes && rec->from <= r->processes &&
                rec->caller <= r->functions && rec->spawned < r->processes;
    return told && (kind > NATIVE_RETURN_TO    ? true
                    : kind == NATIVE_RETURN_TO ? rec->function <= r->functions
                                               : rec->function < r->functions);
}

static inline bool take_message(struct native_reader *r, const struct record *rec,
                                struct message *m) {
    enum native_kind kind = kind_of(rec->head);
    if (!is_told(r, rec)) {
        return false;
    }
    *m = (struct message){.kind = KINDS[kind],
                          .clock = r->clock,
                          .time = (int64_t)r->time,
                          .pid = r->process[rec->process].pid};
    if (kind == NATIVE_RETURN_TO) {
        m->target =
            rec->function > 0 ? r->function[rec->function - 1].head.target : TARGET_UNDEFINED;
    } else if (kind < NATIVE_RETURN_TO) {
        take_name(&r->function[rec->function], m);
    }
    if (rec->head == (NATIVE_RETURN | NATIVE_SPAWNED)) {
        m->note_kind = NOTE_PROCESS;
        m->spawned = r->process[rec->spawned].pid;
    }
    return kind == NATIVE_CALL ? take_call(r, rec, m)
           : is_message(kind)  ? take_token(r, rec, m)
                               : true;
}

static void take_loss(const struct native_reader *r, const struct record *rec,
                      struct native_loss *loss) {
    int64_t time = (int64_t)r->time;
    int64_t until = (int64_t)(r->time + signed_number(rec->until));
    *loss = (struct native_loss){.clock = r->clock,
                                 .time = time,
                                 .until = until > time ? until : time,
                                 .messages = rec->messages};
}

// -- blocks ---------------------------------------------------------------------------------------

bool native_begin(struct native_reader *r, struct slice block) {
    struct cursor c = cursor_of(block.data, block.len);
    uint8_t version = cursor_u8(&c);
    uint8_t flags = cursor_u8(&c);
    r->node = term_atom(&c);
    r->head = slice_of(block.data, (size_t)(c.at - block.data));
    const uint8_t *time = cursor_claim(&c, sizeof r->time);
    r->time = 0;
    for (size_t i = sizeof r->time; time && i-- > 0;) {
        r->time = r->time << 8 | time[i];
    }
    if (version != NATIVE_VERSION || (flags & ~NATIVE_APART) != 0) {
        cursor_fail(&c);
    }
    r->clock = flags & NATIVE_APART ? MESSAGE_STRICT : MESSAGE_MONOTONIC;
    r->label = 0;
    r->functions = r->processes = 0;
    r->record = NULL;
    r->rest = c;
    return !c.failed;
}

static enum native_step bad(struct native_reader *r) {
    r->record = NULL;
    cursor_fail(&r->rest);
    return NATIVE_IS_BAD;
}

enum native_step native_next(struct native_reader *r, struct message *m, struct native_loss *loss) {
    struct cursor c = r->rest;
    for (;;) {
        const uint8_t *start = c.at;
        uint8_t head = cursor_u8(&c);
        enum native_kind kind = kind_of(head);
        if (c.failed || (head & 0xf0 & ~FLAGS[kind]) != 0) {
            return bad(r);
        }
        switch (kind) {
        case NATIVE_FUNCTION:
            take_function(r, &c, start);
            continue;
        case NATIVE_PROCESS:
        case NATIVE_REMOTE:
            take_process(r, &c, start, kind == NATIVE_REMOTE);
            continue;
        case NATIVE_CALL:
        case NATIVE_RETURN:
        case NATIVE_EXCEPTION:
        case NATIVE_RETURN_TO:
        case NATIVE_GC_START:
        case NATIVE_GC_END:
        case NATIVE_OUT:
        case NATIVE_IN:
        case NATIVE_EXITED:
        case NATIVE_SENT:
        case NATIVE_TAKEN:
        case NATIVE_LOST:
            break;
        case NATIVE_END:
            if (cursor_left(&c) > 0) {
                return bad(r);
            }
            r->record = NULL;
            r->rest.at = start; // to be found there again
            return NATIVE_IS_OVER;
        default:
            return bad(r);
        }
        struct record rec = {.head = head};
        read_record(&c, &rec);
        r->time += signed_number(rec.time);
        if (c.failed || (kind != NATIVE_LOST && !take_message(r, &rec, m))) {
            return bad(r);
        }
        r->rest = c;
        r->record = start;
        if (kind == NATIVE_LOST) {
            take_loss(r, &rec, loss);
            return NATIVE_IS_LOSS;
        }
        return NATIVE_IS_MESSAGE;
    }
}

// -- one alone ------------------------------------------------------------------------------------

// What of the block's functions, or processes, a block of one message has, in its own order.
struct names {
    uint64_t numbers[2]; // in the block
    uint32_t count;
};

static void put_u8(struct buffer *out, uint8_t byte) {
    buffer_append(out, &byte, 1);
}

static void put_slice(struct buffer *out, struct slice bytes) {
    buffer_append(out, bytes.data, bytes.len);
}

// Tells a name, unless it was, and returns its new number.
static uint64_t tell_name(struct names *names, uint64_t number, struct slice told,
                          struct buffer *out) {
    uint32_t i = 0;
    while (i < names->count && names->numbers[i] != number) {
        i++;
    }
    if (i == names->count) {
        names->numbers[names->count++] = number;
        put_slice(out, told);
    }
    return i;
}

// Tells what a record names, and has it name that by its new numbers.
static void tell_names(const struct native_reader *r, struct record *rec, struct buffer *out) {
    enum native_kind kind = kind_of(rec->head);
    struct names functions = {0}, processes = {0};
    if (kind == NATIVE_LOST) {
        return;
    }
    rec->process = tell_name(&processes, rec->process, r->process[rec->process].told, out);
    if (kind < NATIVE_RETURN_TO) {
        rec->function = tell_name(&functions, rec->function, r->function[rec->function].told, out);
    } else if (rec->function > 0) {
        uint64_t target = rec->function - 1;
        rec->function = tell_name(&functions, target, r->function[target].told, out) + 1;
    }
    if (rec->from > 0) {
        uint64_t from = rec->from - 1;
        rec->from = tell_name(&processes, from, r->process[from].told, out) + 1;
    }
    if (rec->caller > 0) {
        uint64_t caller = rec->caller - 1;
        rec->caller = tell_name(&functions, caller, r->function[caller].told, out) + 1;
    }
    if (rec->head == (NATIVE_RETURN | NATIVE_SPAWNED)) {
        rec->spawned = tell_name(&processes, rec->spawned, r->process[rec->spawned].told, out);
    }
}

static void put_call(const struct record *rec, uint64_t label, struct buffer *out) {
    if (rec->head & NATIVE_TERM) {
        leb128_append(out, rec->term.len);
        put_slice(out, rec->term);
    } else if (rec->head & NATIVE_TOKEN) {
        leb128_append(out, label << 1 ^ (0 - (label >> 63)));
    }
    if (rec->head & NATIVE_TOKEN) {
        leb128_append(out, rec->serial);
        leb128_append(out, rec->from);
        leb128_append(out, rec->previous);
    }
    if (rec->head & NATIVE_CALLER) {
        leb128_append(out, rec->caller);
    }
    if (rec->head & NATIVE_REST) {
        leb128_append(out, rec->rest.len);
        put_u8(out, rec->elements);
        put_slice(out, rec->rest);
    }
}

static void put_record(const struct record *rec, uint64_t label, struct buffer *out) {
    enum native_kind kind = kind_of(rec->head);
    put_u8(out, rec->head);
    leb128_append(out, 0); // the block begins with its time
    if (kind == NATIVE_LOST) {
        leb128_append(out, rec->messages);
        leb128_append(out, rec->until);
        return;
    }
    leb128_append(out, rec->process);
    if (kind <= NATIVE_RETURN_TO) {
        leb128_append(out, rec->function);
    }
    if (kind == NATIVE_CALL || is_message(kind)) {
        put_call(rec, label, out);
    } else if (rec->head & NATIVE_SPAWNED) {
        leb128_append(out, rec->spawned);
    }
}

bool native_alone(const struct native_reader *r, struct buffer *out) {
    static const uint8_t header[FRAME_HEADER] = {FRAME_OP_BLOCK};
    if (!r->record) {
        return false;
    }
    struct cursor c = cursor_of(r->record, (size_t)(r->rest.at - r->record));
    struct record rec = {.head = cursor_u8(&c)};
    read_record(&c, &rec);
    size_t start = out->len;
    put_slice(out, slice_of(header, sizeof header));
    put_slice(out, r->head);
    for (unsigned shift = 0; shift < 64; shift += 8) {
        put_u8(out, (uint8_t)(r->time >> shift));
    }
    tell_names(r, &rec, out);
    put_record(&rec, r->label, out);
    put_u8(out, NATIVE_END);
    if (!out->failed) {
        size_t size = out->len - start - FRAME_HEADER;
        for (size_t i = 1; i < FRAME_HEADER; i++) {
            out->data[start + i] = (uint8_t)(size >> (8 * (FRAME_HEADER - 1 - i)));
        }
    }
    return !out->failed;
}
