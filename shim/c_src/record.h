// SPDX-License-Identifier: Apache-2.0
// A trace event as the rings hold it: note.c writes it, block.c reads it. Atoms and pids of this
// node are the VM's own words for them, which stay true as long as it runs.
#pragma once

#include "ring.h"

// The values of kinds and flags are those of the blocks (include/model/message/native.h).
enum record_kind {
    RECORD_CALL = 3,
    RECORD_RETURN,
    RECORD_EXCEPTION,
    RECORD_RETURN_TO,
    RECORD_GC_START,
    RECORD_GC_END,
    RECORD_OUT,
    RECORD_IN,
    RECORD_EXITED,
    RECORD_SENT,
    RECORD_TAKEN,
    RECORD_LOST // made by drain.c
};

enum {
    RECORD_TOKEN = 0x10,
    RECORD_CALLER = 0x20,
    RECORD_REST = 0x40,
    RECORD_TERM = 0x80,
    RECORD_SPAWNED = 0x10
};

enum {
    RECORD_LABEL_BYTES = 1000, // of a label that is a term; who has a longer one has no token
    RECORD_FROM_BYTES = 1040,  // of a pid of another node: its name has 1023 at most
    RECORD_REST_BYTES = 2048,  // of what a match spec's message has besides
    RECORD_TAIL_WORDS = 512,
    RECORD_WORDS = 12 + RECORD_TAIL_WORDS // at most
};

struct record_fields {
    // bits 0..7 kind and flags, 8..15 arity, 16..23 arity of the caller, 24..31 elements of the
    // rest, 32..47 words in the ring (ring.h), 48..63 the trace's generation
    uint64_t head;
    int64_t time; // ns
    union {
        uint64_t process;
        uint64_t messages; // RECORD_LOST
    };
    union {
        uint64_t module; // of a return_to: 0, undefined
        int64_t until;   // RECORD_LOST
    };
    uint64_t function; // what has no function, ends before the module
    union {
        uint64_t caller_module; // 0: undefined
        uint64_t spawned;       // what is no call, ends here or before
    };
    uint64_t caller_function;
    uint64_t label;
    uint64_t serial;
    uint64_t from; // 0: none, or a pid of another node, which is in the tail
    uint64_t previous;
    // bytes in the tail, 16 bits each, the lowest first: the label as a term, the pid, the rest.
    // Each as encoded in the external term format, without its leading 131.
    uint64_t lengths;
    uint64_t tail[RECORD_TAIL_WORDS];
};

union record {
    struct record_fields of;
    uint64_t words[RECORD_WORDS];
};

// Words of a record whose fields end before one.
#define RECORD_END(field) (offsetof(struct record_fields, field) / sizeof(uint64_t))

static inline uint8_t record_byte(const union record *r, unsigned byte) {
    return (uint8_t)(r->of.head >> (8 * byte));
}
enum { RECORD_KIND, RECORD_ARITY, RECORD_CALLER_ARITY, RECORD_ELEMENTS };

// Bytes of one of the parts of the tail: 0 the label, 1 the pid, 2 the rest.
static inline size_t record_length(const union record *r, unsigned part) {
    return r->of.lengths >> (16 * part) & 0xffff;
}
