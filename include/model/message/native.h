// SPDX-License-Identifier: Apache-2.0
// Blocks: trace messages as the native tracer writes them (shim/c_src), many in one frame of op 2.
// What they say is the same as in the trace port's terms (message.h), in a fifth of the bytes. Each
// block can be read by itself.
//
//   A block is its head and records, to a record of kind NATIVE_END at its very end.
//   Head: version (1), a byte of flags, the traced node's name (an atom as encoded in the external
//   term format), the time to begin with (8 bytes, the lowest first).
//   A record is a byte, its kind and from bit 4 on its flags, and what the kind says. Numbers are
//   LEB128. Signed ones (*) have their sign in the lowest bit (0, -1, 1, -2, … as 0, 1, 2, 3, …).
//   Times are the node's ticks, told as the difference* to the record before; labels that are
//   integers likewise, to the label before, which is 0 at first. Functions and processes are
//   numbered from 0 on in the order in which they are told.
//
//   kind      flags                what it says
//   FUNCTION                       arity (1 byte), module, function (atoms as encoded)
//   PROCESS                        id | serial << 32, of a pid of the traced node
//   REMOTE                         node (an atom as encoded), id | serial << 32
//   CALL      TOKEN CALLER REST    time, process, function, then by the flags:
//             TERM                 TOKEN: label, serial, from (0: none; a process + 1), previous
//                                  CALLER: a function + 1, or 0: undefined
//                                  REST: length of its terms, elements (1 byte), so many terms as
//                                  encoded
//   RETURN    SPAWNED              time, process, function; SPAWNED: the process that it returned
//   EXCEPTION                      time, process, function
//   RETURN_TO                      time, process, a function + 1, or 0: undefined
//   GC_START, GC_END, OUT, IN, EXITED   time, process
//   SENT, TAKEN   TOKEN TERM       time, process, and the token as of a CALL: always
//   LOST                           time, number of messages, until when (a difference* to time):
//                                  so many are told as lost here, and any may be missing between
//                                  the two times
//   END
//
//   TERM: the label is no integer of 64 bits; its length and the term as encoded stand for it. REST
//   is what the match spec's message has behind the token, without Caller and none where the flag
//   CALLER tells these. Without REST that is the atom undefined; no elements: nothing. Without
//   TOKEN neither CALLER nor REST say anything.
//
// Pure, and never past the bytes given. One thread at a time per reader.
#pragma once

#include "base/buffer.h"
#include "model/message/message.h"

enum { NATIVE_VERSION = 1 };

// Flags of a block.
enum {
    NATIVE_APART = 1 // its messages are of a full trace's own trace session: MESSAGE_STRICT
};

enum native_kind {
    NATIVE_FUNCTION,
    NATIVE_PROCESS,
    NATIVE_REMOTE,
    NATIVE_CALL,
    NATIVE_RETURN,
    NATIVE_EXCEPTION,
    NATIVE_RETURN_TO,
    NATIVE_GC_START,
    NATIVE_GC_END,
    NATIVE_OUT,
    NATIVE_IN,
    NATIVE_EXITED,
    NATIVE_SENT,
    NATIVE_TAKEN,
    NATIVE_LOST,
    NATIVE_END
};

// Flags of a record.
enum {
    NATIVE_TOKEN = 0x10,
    NATIVE_CALLER = 0x20,
    NATIVE_REST = 0x40,
    NATIVE_TERM = 0x80,
    NATIVE_SPAWNED = 0x10
};

// No block names more; its writer begins another one.
enum { NATIVE_FUNCTIONS = 256, NATIVE_PROCESSES = 1024 };

enum native_step {
    NATIVE_IS_MESSAGE,
    NATIVE_IS_LOSS,
    NATIVE_IS_OVER, // all of the block was read
    NATIVE_IS_BAD   // this is no block, or damaged: its rest cannot be read
};

struct native_loss {
    enum message_clock clock;
    int64_t time;
    int64_t until; // not before time
    uint64_t messages;
};

// What the records of a block name.
struct native_function {
    struct message_head head; // of its messages; only target, arity, meant and meaning are set
    struct slice name;        // both atoms as encoded, one after the other
    struct term_atom module;
    struct term_atom function;
    struct slice told; // the record
};
struct native_process {
    uint64_t pid; // as message.pid and message.from have it
    struct slice told;
};

// Reads one block after another. Nothing of one reaches the next: native_begin sets all that
// counts. 78 KB; whoever has one allocates it where blocks come.
struct native_reader {
    struct cursor rest;    // of the block: the records still to be read
    struct slice head;     // up to the time
    struct term_atom node; // that is traced
    enum message_clock clock;
    uint64_t time;         // of the record before, ticks
    uint64_t label;        // the integer told last, 0 at first
    const uint8_t *record; // what was read last; NULL: no message or loss yet
    uint32_t functions;    // so many are told
    uint32_t processes;
    struct native_function function[NATIVE_FUNCTIONS];
    struct native_process process[NATIVE_PROCESSES];
};

// Begins to read a block, which stays the caller's and must stay where it is until the last of its
// messages was looked at. False: it is none, and nothing is to be read.
bool native_begin(struct native_reader *r, struct slice block);

// The next message, or loss, of the block. A message is what message_decode (message.h) would read
// of its term, but that the values returned and raised are not there: its slices point into the
// block, its head into the reader, up to the next native_begin. Neither is set otherwise. What is
// over or bad stays so.
enum native_step native_next(struct native_reader *r, struct message *message,
                             struct native_loss *loss);

// Appends what native_next read last, a message or a loss, as a frame (codec/frame.h) with a block
// of its own, of which the same is read. It is no longer than the whole block's frame, but by the
// end that a damaged one may lack. False: `out` has failed, or nothing was read yet.
bool native_alone(const struct native_reader *r, struct buffer *out);

// Bytes of the block that are still to be read.
static inline size_t native_left(const struct native_reader *r) {
    return cursor_left(&r->rest);
}
