// SPDX-License-Identifier: Apache-2.0
// The records of stack sampling: what a shim sends of the processes that it looks at (stacks_taken
// in codec/protocol.h), and what is kept of it. shim/src/sampler/ writes the same form.
//
//   A record is its kind and what the kind says, numbers as LEB128. Frames, stacks and processes
//   are numbered from 0 on in the order in which they are told. Times are µs.
//
// Pure, and never past the bytes given. One thread at a time per object.
#pragma once

#include "base/buffer.h"
#include "base/bytes.h"

enum sample_kind {
    SAMPLE_FRAME = 1,  // module, function, arity
    SAMPLE_STACK,      // flags, frames: outermost first
    SAMPLE_PROCESS,    // pid, name, initial call, application: texts; all but the pid may be empty
    SAMPLE_TIME,       // since the time before
    SAMPLE_LOOK,       // process, status, stack, mask, values
    SAMPLE_UNCHANGED,  // process, status: its reductions stood still, so all is as at its last look
    SAMPLE_UNANSWERED, // process: it was asked, and did not answer in time
    SAMPLE_HELD,       // for so long the sampler held itself back, to keep to its budget
    SAMPLE_LATE,       // for so long the node had no time for it
    SAMPLE_GONE,       // process: it has ended
    SAMPLE_IDENTITY,   // process, identity: of the request that it works for from now on
    SAMPLE_FORGET,     // numbers begin anew
    // process, label: of the request whose token it holds from now on; 0: of none. Sent to who has
    // asked for labels (an older collector knows no such record); what is kept has identities
    SAMPLE_LABEL,
    SAMPLE_KINDS
};

enum sample_status {
    STATUS_RUNNING,
    STATUS_RUNNABLE,
    STATUS_WAITING,
    STATUS_COLLECTING,
    STATUS_EXITING,
    STATUS_SUSPENDED,
    STATUS_OTHER,
    SAMPLE_STATUSES
};

// Values of a look. Each bit of its mask brings one or more of them.
enum sample_value {
    VALUE_REDUCTIONS, // since the process's last look; its first has 0
    VALUE_QUEUE,      // messages
    VALUE_HEAP,       // bytes, and so are the others but VALUE_MINORS
    VALUE_STACK,
    VALUE_MEMORY,
    VALUE_MINORS, // collections since the process's last look that told them
    VALUE_OLD_HEAP,
    VALUE_BINARY,     // off the heap, held by what is new
    VALUE_OLD_BINARY, // and by what is old
    SAMPLE_VALUES
};
enum {
    MASK_REDUCTIONS = 1,
    MASK_QUEUE = 2,
    MASK_HEAP = 4, // heap, stack
    MASK_MEMORY = 8,
    MASK_COLLECTIONS = 16, // minors, old heap, both of binaries
    MASK_ALL = 31
};

enum { SAMPLE_STACK_CUT = 1 };      // a flag: frames are missing, the outermost ones
enum { SAMPLE_STACK_DEEPEST = 64 }; // frames: no node gives more

struct sample_record {
    uint8_t kind;   // enum sample_kind
    uint8_t status; // enum sample_status
    uint8_t mask;
    uint8_t flags;
    uint32_t process;
    uint32_t stack;  // of a look: the stack's number + 1; 0: as at the process's last look
    uint64_t number; // arity, or µs, or the label
    uint32_t frame_count;
    uint32_t frames[SAMPLE_STACK_DEEPEST];
    struct slice texts[4]; // module and function; pid, name, initial call, application; identity
    uint64_t values[SAMPLE_VALUES]; // those that the mask brings; others are 0
};

// Reads the next record. False at the end, and where the bytes are no record: the cursor is failed
// then. Whether its numbers are those of something that was told the caller has to look.
bool sample_record_read(struct cursor *c, struct sample_record *r);
// Appends a record. A buffer that cannot take all of it is failed.
void sample_record_write(struct buffer *out, const struct sample_record *r);
