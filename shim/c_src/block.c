// SPDX-License-Identifier: Apache-2.0
#include "block.h"

// Kinds of records that name.
enum { NAME_FUNCTION, NAME_PROCESS, NAME_REMOTE };
enum { VERSION = 1, END = 15 };

// -- bytes ----------------------------------------------------------------------------------------
// None of these looks at the room: block_add has seen that there is enough.

static void put(struct block *b, uint8_t byte) {
    b->bytes[b->used++] = byte;
}

static void put_number(struct block *b, uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
        put(b, (uint8_t)(value | 0x80));
    }
    put(b, (uint8_t)value);
}

// A signed number in two's complement.
static void put_signed(struct block *b, uint64_t value) {
    put_number(b, value << 1 ^ (0 - (value >> 63)));
}

static void put_bytes(struct block *b, const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        put(b, bytes[i]);
    }
}

// -- names ----------------------------------------------------------------------------------------

// The place in a table of 2^bits at which to begin to look.
static size_t place_of(uint64_t key, unsigned bits) {
    return (size_t)((key ^ key >> 29) * 0x9e3779b97f4a7c15 >> (64 - bits));
}

static uint64_t function_number(struct block *b, uint64_t module, uint64_t function,
                                uint8_t arity) {
    enum { BITS = 9 };
    _Static_assert(1 << BITS == 2 * BLOCK_FUNCTIONS, "places");
    size_t i = place_of(module * 31 + function + ((uint64_t)arity << 40), BITS);
    struct block_function *f = &b->function[i];
    while (f->block == b->block &&
           (f->function != function || f->module != module || f->arity != arity)) {
        i = (i + 1) & (2 * BLOCK_FUNCTIONS - 1);
        f = &b->function[i];
    }
    if (f->block != b->block) {
        *f = (struct block_function){module, function, b->block, (uint16_t)b->functions++, arity};
        put(b, NAME_FUNCTION);
        put(b, arity);
        b->used += b->names.atom(b->names.context, module, b->bytes + b->used);
        b->used += b->names.atom(b->names.context, function, b->bytes + b->used);
    }
    return f->number;
}

static uint64_t process_number(struct block *b, uint64_t word) {
    enum { BITS = 11 };
    _Static_assert(1 << BITS == 2 * BLOCK_PROCESSES, "places");
    size_t i = place_of(word, BITS);
    struct block_process *p = &b->process[i];
    while (p->block == b->block && p->word != word) {
        i = (i + 1) & (2 * BLOCK_PROCESSES - 1);
        p = &b->process[i];
    }
    if (p->block != b->block) {
        *p = (struct block_process){word, b->block, (uint16_t)b->processes++, 0, 0};
        put(b, NAME_PROCESS);
        put_number(b, b->names.process(b->names.context, word));
    }
    return p->number;
}

static bool same(const uint8_t *a, const uint8_t *b, size_t size) {
    size_t i = 0;
    while (i < size && a[i] == b[i]) {
        i++;
    }
    return i == size;
}

static uint64_t number_at(const uint8_t *bytes) {
    return (uint64_t)bytes[0] << 24 | (uint64_t)bytes[1] << 16 | (uint64_t)bytes[2] << 8 | bytes[3];
}

// Bytes of the atom at the start of so many; 0 when there is no whole one.
static size_t atom_size(const uint8_t *bytes, size_t size) {
    enum { ATOM = 100, SMALL_ATOM = 115, ATOM_UTF8 = 118, SMALL_ATOM_UTF8 = 119 };
    size_t atom = 0;
    if (size >= 3 && (bytes[0] == ATOM || bytes[0] == ATOM_UTF8)) {
        atom = 3 + ((size_t)bytes[1] << 8 | bytes[2]);
    } else if (size >= 2 && (bytes[0] == SMALL_ATOM || bytes[0] == SMALL_ATOM_UTF8)) {
        atom = 2 + (size_t)bytes[1];
    }
    return atom <= size && atom <= BLOCK_ATOM ? atom : 0;
}

// The number of a process of another node, a pid as encoded, and 1; 0 when it is none. It is told
// at the block's end first, and stays if the block does not have the same already.
static uint64_t remote_number(struct block *b, const uint8_t *pid, size_t size) {
    enum { NEW_PID = 88, NUMBERS = 12 };
    size_t atom = size > 0 && pid[0] == NEW_PID ? atom_size(pid + 1, size - 1) : 0;
    if (atom == 0 || size != 1 + atom + NUMBERS) {
        return 0;
    }
    const uint8_t *numbers = pid + 1 + atom;
    size_t at = b->used;
    put(b, NAME_REMOTE);
    put_bytes(b, pid + 1, atom);
    put_number(b, number_at(numbers) | number_at(numbers + 4) << 32);
    size_t told = b->used - at;
    size_t i = place_of(number_at(numbers) * 31 + number_at(numbers + 4), 11);
    struct block_process *p = &b->process[i];
    while (p->block == b->block &&
           (p->word != 0 || p->size != told || !same(b->bytes + p->at, b->bytes + at, told))) {
        i = (i + 1) & (2 * BLOCK_PROCESSES - 1);
        p = &b->process[i];
    }
    if (p->block == b->block) {
        b->used = at;
    } else {
        *p = (struct block_process){0, b->block, (uint16_t)b->processes++, (uint16_t)at,
                                    (uint16_t)told};
    }
    return (uint64_t)p->number + 1;
}

// -- records --------------------------------------------------------------------------------------

// What a record names, by its numbers.
struct named {
    uint64_t process;
    uint64_t function;
    uint64_t caller;
    uint64_t from;
    uint64_t spawned;
};

static bool is_message(uint8_t kind) {
    return kind == RECORD_SENT || kind == RECORD_TAKEN;
}

// Tells what a record names, as far as that is new.
static struct named name(struct block *b, const union record *r, uint8_t kind, uint8_t flags) {
    struct named n = {.process = process_number(b, r->of.process)};
    if (kind <= RECORD_RETURN_TO && r->of.module != 0) {
        n.function = function_number(b, r->of.module, r->of.function, record_byte(r, RECORD_ARITY));
        n.function += kind == RECORD_RETURN_TO;
    }
    if (kind == RECORD_RETURN && (flags & RECORD_SPAWNED)) {
        n.spawned = process_number(b, r->of.spawned);
    }
    if (kind == RECORD_CALL && (flags & RECORD_CALLER) && r->of.caller_module != 0) {
        n.caller = function_number(b, r->of.caller_module, r->of.caller_function,
                                   record_byte(r, RECORD_CALLER_ARITY)) +
                   1;
    }
    if (flags & RECORD_TOKEN && (kind == RECORD_CALL || is_message(kind))) {
        const uint8_t *tail = (const uint8_t *)r->of.tail;
        n.from = r->of.from != 0
                     ? process_number(b, r->of.from) + 1
                     : remote_number(b, tail + record_length(r, 0), record_length(r, 1));
    }
    return n;
}

static void put_token(struct block *b, const union record *r, uint8_t flags, uint64_t from) {
    if (flags & RECORD_TERM) {
        put_number(b, record_length(r, 0));
        put_bytes(b, (const uint8_t *)r->of.tail, record_length(r, 0));
    } else {
        put_signed(b, r->of.label - b->label);
        b->label = r->of.label;
    }
    put_number(b, r->of.serial);
    put_number(b, from);
    put_number(b, r->of.previous);
}

static void put_call(struct block *b, const union record *r, uint8_t flags, struct named n) {
    if (flags & RECORD_TOKEN) {
        put_token(b, r, flags, n.from);
    }
    if (flags & RECORD_CALLER) {
        put_number(b, n.caller);
    }
    if (flags & RECORD_REST) {
        const uint8_t *tail = (const uint8_t *)r->of.tail;
        put_number(b, record_length(r, 2));
        put(b, record_byte(r, RECORD_ELEMENTS));
        put_bytes(b, tail + record_length(r, 0) + record_length(r, 1), record_length(r, 2));
    }
}

static void put_time(struct block *b, int64_t time) {
    put_signed(b, (uint64_t)time - b->time);
    b->time = (uint64_t)time;
}

bool block_add(struct block *b, const union record *r) {
    if (BLOCK_BYTES - b->used < BLOCK_RECORD + 1 || b->functions + 2 > BLOCK_FUNCTIONS ||
        b->processes + 2 > BLOCK_PROCESSES) {
        return false;
    }
    uint8_t head = record_byte(r, RECORD_KIND), kind = head & 0x0f, flags = head & 0xf0;
    if (kind == RECORD_LOST) {
        put(b, head);
        put_time(b, r->of.time);
        put_number(b, r->of.messages);
        put_signed(b, (uint64_t)r->of.until - (uint64_t)r->of.time);
        return true;
    }
    struct named n = name(b, r, kind, flags);
    put(b, head);
    put_time(b, r->of.time);
    put_number(b, n.process);
    if (kind <= RECORD_RETURN_TO) {
        put_number(b, n.function);
    }
    if (kind == RECORD_CALL) {
        put_call(b, r, flags, n);
    } else if (is_message(kind)) {
        put_token(b, r, flags, n.from);
    } else if (kind == RECORD_RETURN && (flags & RECORD_SPAWNED)) {
        put_number(b, n.spawned);
    }
    return true;
}

void block_begin(struct block *b, const uint8_t *node, size_t node_size, uint8_t flags,
                 int64_t time) {
    b->block++; // what the tables have is of others; 2^32 blocks are 200 TB
    b->used = 0;
    b->functions = b->processes = 0;
    b->label = 0;
    b->time = (uint64_t)time;
    put(b, VERSION);
    put(b, flags);
    put_bytes(b, node, node_size);
    for (unsigned shift = 0; shift < 64; shift += 8) {
        put(b, (uint8_t)(b->time >> shift));
    }
}

size_t block_end(struct block *b) {
    put(b, END);
    return b->used;
}
