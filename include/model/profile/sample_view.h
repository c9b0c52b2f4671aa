// SPDX-License-Identifier: Apache-2.0
// What a run of stack sampling sees as it goes, for views that are drawn anew: which processes were
// looked at since the last time, what they did, and the functions that were on their stacks. Takes
// the records of a shim (codec/sample_records.h), keeps what the shim has named and the last values
// of each process, and nothing of what is over: it takes as much after a day as after a minute.
// One thread at a time.
#pragma once

#include "base/limits.h"
#include "codec/sample_records.h"
#include "model/message/message.h"

enum { VIEW_TEXT_BYTES = LIMIT_NAME_BYTES + 4 };

// Values of a process that it last told.
struct view_values {
    int64_t queue;  // messages
    int64_t memory; // bytes; -1: it was never told, as of a process with a long queue
};

struct view_process {
    char pid[MESSAGE_PID_BYTES];
    char name[VIEW_TEXT_BYTES]; // registered, or its label; "" none, and so are these
    char initial[VIEW_TEXT_BYTES];
    char application[VIEW_TEXT_BYTES];
    const char *function; // the innermost of its stack; "": none is known
    uint8_t status;       // enum sample_status, as of its last look
    bool gone;            // it has ended
    uint32_t stack;       // in the shim's numbers, + 1; 0: none
    struct view_values now,
        before; // before: as of the time before; the first ones of a new process
    // since the time before:
    uint32_t looks, unchanged, unanswered;
    int64_t reductions;
};

// A function on the stacks of processes that were running, or ready to. A look counts once,
// however often it stands there.
struct view_function {
    const char *name;
    uint32_t self; // looks in which it was the innermost
    uint32_t total;
};

enum {
    VIEW_PROCESSES = 500, // what a person can look at, and a control message has room for
    VIEW_FUNCTIONS = 100  // by self, and as many others by total
};

// Which processes are shown, where there are more.
enum view_by { VIEW_BY_REDUCTIONS, VIEW_BY_MEMORY, VIEW_BY_QUEUE };

// The time since the one before. Valid until the next call of this header.
struct view {
    uint64_t us;                                   // how long that is
    struct view_process processes[VIEW_PROCESSES]; // that were looked at, or ended; the highest
    uint32_t process_count;                        // first
    struct view_function functions[2 * VIEW_FUNCTIONS]; // the highest self first
    uint32_t function_count;
    uint32_t looks; // unchanged ones included
    uint32_t busy;  // looks at processes that were running, or ready to: functions are of these
};

struct sample_view; // opaque

// NULL without memory.
struct sample_view *sample_view_new(void);
void sample_view_free(struct sample_view *v);
// Bytes that it takes.
size_t sample_view_bytes(const struct sample_view *v);
// Takes some records. False when they are none, name what was never told, or are more than may be
// told (limits.h): no more may be taken.
bool sample_view_take(struct sample_view *v, struct slice records);
// What there is since the last call; the next one begins here. NULL: no time has passed, and it
// goes on.
const struct view *sample_view_next(struct sample_view *v, enum view_by by);
