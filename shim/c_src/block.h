// SPDX-License-Identifier: Apache-2.0
// Writes records as blocks, the format of include/model/message/native.h. Pure: what the VM's words
// mean is asked of the caller.
#pragma once

#include "record.h"

enum {
    BLOCK_BYTES = 65536, // at most, of a whole block
    BLOCK_ATOM = 1024,   // of an atom as encoded; 255 characters have 1023 at most
    // At most, of a record with all that it may have to name: two functions, two processes, one of
    // them perhaps of another node, the parts of its tail, and numbers of 10 bytes.
    BLOCK_RECORD = 2 * (2 + 2 * BLOCK_ATOM) + 12 + (11 + BLOCK_ATOM) +
                   (RECORD_LABEL_BYTES + RECORD_REST_BYTES) + 100,
    BLOCK_FUNCTIONS = 256,
    BLOCK_PROCESSES = 1024
};

// Asked about the words of records, from within block_add.
struct block_names {
    // Writes an atom as encoded in the external term format, at most BLOCK_ATOM bytes. Returns how
    // many, at least 2.
    size_t (*atom)(void *context, uint64_t word, uint8_t *out);
    // The id | serial << 32 of a pid of this node.
    uint64_t (*process)(void *context, uint64_t word);
    void *context;
};

struct block_function {
    uint64_t module;
    uint64_t function;
    uint32_t block; // that it is told in; of another one the place is free
    uint16_t number;
    uint8_t arity;
};

struct block_process {
    uint64_t word; // of one of another node: 0
    uint32_t block;
    uint16_t number;
    uint16_t at;   // of one of another node: where it is told,
    uint16_t size; // in so many bytes
};

// All zero at first. 88 KB.
struct block {
    struct block_names names;
    uint8_t *bytes; // BLOCK_BYTES of them, the caller's
    size_t used;
    uint32_t block; // its number
    uint32_t functions;
    uint32_t processes;
    uint64_t time;  // of the record before
    uint64_t label; // the number told last
    struct block_function function[2 * BLOCK_FUNCTIONS];
    struct block_process process[2 * BLOCK_PROCESSES];
};

// Begins a block. node: the traced node's name, an atom as encoded, of up to BLOCK_ATOM bytes.
// flags: the block's. time: to begin with.
void block_begin(struct block *b, const uint8_t *node, size_t node_size, uint8_t flags,
                 int64_t time);

// Adds a record. False: it might not fit, and the block is as it was. Into one that has just begun
// every record fits.
bool block_add(struct block *b, const union record *r);

// Ends the block. Returns its bytes, which is at most BLOCK_BYTES.
size_t block_end(struct block *b);
