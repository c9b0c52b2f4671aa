// SPDX-License-Identifier: Apache-2.0
// What the files of a full trace share.
//
//   full_trace.c      messages as events, in the order of their times
//   full_frames.c     a process's open calls: which one a call lies on, which a return_to ends
//   full_times.c      a process's time, and whose it is
//   full_requests.c   requests: begun, ended, and what became of them
//   full_names.c      what processes are called
//   full_costs.c      how long patterns stand, and requests take without them
#pragma once

#include "model/profile/full_trace.h"
#include "model/profile/reorder.h"

// A number of no process.
#define NO_PROCESS UINT32_MAX
// No frame is known.
#define NO_FRAME UINT32_MAX
// In place of the frame of a function that another full trace wants.
#define FRAME_ELSEWHERE (UINT32_MAX - 1)

// An open call; the first one of a process stands for its code that is not traced.
struct open_call {
    uint32_t function; // a hash of it (message.h), 0: the first
    uint32_t caller;
    uint32_t stack;
    uint32_t number;   // of the call in its process, so that another one in its place is noticed
    uint32_t repeats;  // calls of itself by itself, which are one stack
    uint32_t children; // processes that work for it
    bool elsewhere;    // it is another full trace's: on the stack of the call that it lies on
    bool doubted;      // it may have ended by a tail call before what lay on it has ended
};

// Time of a process since the last sign of what it works for, ns. It is the top call's once there
// is another sign of the same request.
struct unsettled {
    int64_t run, waiting, asleep, gc;
    int64_t under; // others have worked for it meanwhile, as far as is known: waiting, what is left
};

enum process_state { PROCESS_RUNS, PROCESS_OUT, PROCESS_COLLECTS };

struct full_process {
    uint64_t pid;
    struct full_request *request; // that it works for, NULL: none
    uint32_t next, previous;      // of that request; of a free place: the next one that is
    struct open_call *calls;      // depth of them, the first one is the lowest
    uint32_t depth, room;
    uint32_t numbers; // of calls, given so far
    int64_t since;    // its time is settled up to here
    struct unsettled unsettled;
    int64_t out_ns;    // of this time out, so far,
    int64_t out_under; // and of it what others have worked for it meanwhile, as far as is known
    bool waits;        // in it somebody has done something for it
    uint8_t state;     // enum process_state
    bool returned;     // its last message was a FULL_RETURN
    bool flagged;      // some of its messages were apart
    uint16_t named;    // its place among full_trace.named; PROFILE_NOBODY: none yet
    struct timeline_event shown; // the last of its on the line of time of its request
    // the call that it works for: of a process; NO_PROCESS: none
    uint32_t asker, asker_depth, asker_number;
};

enum full_phase { FULL_FREE, FULL_OPEN, FULL_ENDED };

struct full_request {
    uint64_t token;
    uint8_t phase; // enum full_phase
    bool by_entry; // it ends with the return of the first call of its root
    bool damaged;  // of its messages some were lost, or not taken
    bool told;     // its fate is known,
    bool complete; // and this
    uint16_t identity;
    int64_t since;           // when the window was opened that it began in
    int64_t began, duration; // of its fate
    uint32_t root;           // the process that it began in, NO_PROCESS: not known, or dead
    uint32_t first;          // of the processes that work for it
    int64_t ended;           // when
    uint64_t processes;
    uint32_t suspects;        // a bit for each
    struct weights weights;   // by stack and process: profile_key, of the place in named
    uint32_t of_processes;    // of them: those that tell a process
    struct timeline timeline; // its times are the node's
};

// When patterns stand; node time.
struct full_window {
    int64_t off_before; // when those of the window before were off
    int64_t asked, since;
    int64_t off;
    bool stands;
    bool any; // there has been one
};

// A process that has a name of its own; or all that have none and called the same first.
struct full_named {
    uint64_t pid;    // 0: many
    uint32_t first;  // frame of what it called first, NO_FRAME: nothing yet
    uint32_t name;   // of stacks.names, that its node has told; NAME_NONE: none
    uint16_t called; // of stacks.names, what it is called; PROFILE_NOBODY: not looked up
};
enum { FULL_NAMED = 2 * LIMIT_FULL_NAMED };

struct full_trace {
    struct full_trace_options options;
    int64_t since, until; // the window; INT64_MAX: it is open
    char only[LIMIT_NAME_BYTES + 4];
    struct profile profile;
    struct reorder held;
    struct map modules;                    // hashes of those whose functions are taken
    struct map frames;                     // hash of a message's function -> frame
    uint32_t waiting, asleep, gc, missing; // frames

    struct full_request requests[LIMIT_FULL_REQUESTS];
    // -> index of an open or ended one; LIMIT_FULL_REQUESTS: it is forgotten
    struct map by_token;
    uint64_t forgotten[LIMIT_FULL_CLOSED]; // tokens, a ring
    uint32_t forgotten_count;
    struct full_other others[FULL_OTHERS];
    uint32_t other_count;
    struct full_suspect suspects[LIMIT_FULL_SUSPECTS];
    uint32_t suspect_count;
    struct full_named named[FULL_NAMED];
    uint16_t named_count, named_pids;         // and of these that have a pid
    uint16_t named_told;                      // whose names were asked for
    uint16_t called[LIMIT_PROFILE_PROCESSES]; // names that processes have, of stacks.names
    uint32_t called_count;
    bool apart; // messages of a trace session of its own have come
    struct full_window window;
    size_t size;                    // of the message that comes
    uint32_t weights, of_processes; // of all requests
    uint32_t events;                // of all their timelines
    struct full_process *processes; // process_made of them were ever used
    struct map by_pid;              // -> index
    uint32_t process_made, process_room, process_free;
    uint32_t open_calls; // of all processes: their room
};

static inline struct full_process *process_at(const struct full_trace *f, uint32_t i) {
    return &f->processes[i];
}

static inline struct open_call *top_call(const struct full_process *p) {
    return &p->calls[p->depth - 1];
}

// -- full_frames.c --------------------------------------------------------------------------------

// A call of a process that works for a request, on what it has open.
void frames_call(struct full_trace *f, struct full_process *p, const struct full_event *e);
// The latest open call of a function has returned, or has ended by an exception.
void frames_return(struct full_trace *f, struct full_process *p, uint32_t function);
// Control has gone back to a function.
void frames_return_to(struct full_trace *f, struct full_process *p, uint32_t function);
// Puts the first call there, of the stack that all others of the process lie on. False without
// room.
bool frames_open(struct full_trace *f, struct full_process *p, uint32_t stack);

// -- full_times.c ---------------------------------------------------------------------------------

// Time has passed for a process: it is unsettled.
void times_pass(struct full_trace *f, struct full_process *p, int64_t time);
// What is unsettled is the top call's.
void times_settle(struct full_trace *f, struct full_process *p);
// Or nobody's.
void times_drop(struct full_process *p);
// A process begins to work for the top call of another one.
void times_asked(struct full_trace *f, struct full_process *asker, int64_t time);
// It is scheduled out or in, collects garbage or goes on; its time has been passed.
void times_change(struct full_process *p, enum full_event_kind kind);

// -- full_requests.c ------------------------------------------------------------------------------

// The request of a token that is open or has ended; NULL: none is known, or it is forgotten.
struct full_request *full_request_of(struct full_trace *f, uint64_t token);
// The same, or a new one; NULL without room, or when it is forgotten.
struct full_request *full_request_open(struct full_trace *f, uint64_t token);
// The weight of a stack of a process that works for a request; NULL without room: the request is
// damaged then.
struct weight *full_request_weight(struct full_trace *f, const struct full_process *p,
                                   uint32_t stack);
// It is over: who works for it does so no longer.
void full_request_ends(struct full_trace *f, struct full_request *r, int64_t time);
// A process begins to work for a request, asked by another one (NO_PROCESS: it is the request's
// own, or not known). False without room: the request is damaged.
bool full_request_joined(struct full_trace *f, uint32_t process, struct full_request *r,
                         uint32_t asker, int64_t time);
// And does so no longer.
void full_request_left(struct full_trace *f, struct full_process *p);
// A process that may not be followed works for a request.
void full_request_suspects(struct full_trace *f, struct full_request *r, uint64_t pid);
// Something has happened to a process: its request's timeline shows what it is at now.
void full_request_show(struct full_trace *f, struct full_process *p, int64_t time);

// -- full_names.c ---------------------------------------------------------------------------------

// A process works for a request: it gets a name. frame: what it calls, NO_FRAME: it does not yet.
void names_know(struct full_trace *f, struct full_process *p, uint32_t frame);
// What a process of that place is called, a name of stacks.names; PROFILE_NOBODY: nothing.
uint16_t names_called(struct full_trace *f, uint16_t place);

// -- full_costs.c ---------------------------------------------------------------------------------

// A request is in the profile.
void costs_traced(struct full_trace *f, const struct full_request *r);
// One that may be in it is over.
void costs_fate(struct full_trace *f, const struct full_fate *fate);
