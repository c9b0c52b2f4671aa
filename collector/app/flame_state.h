// SPDX-License-Identifier: Apache-2.0
// What the files of full traces share.
//
//   flames.c        asked for, begun, stopped; what shims say of it
//   flame_steps.c   what happens as time passes, until its profile is kept
//   flame_tell.c    messages: to who has asked, and to the shim
#pragma once

#include "app/flame_missed.h"
#include "app/flame_names.h"
#include "app/flames.h"

enum {
    SECOND_NS = 1000000000,
    START_SECONDS =
        30, // until a shim, whose node may have no time, has set its patterns, or taken them off
    REASON_BYTES = 32,
    TEXT_BYTES = 400
};

enum flame_state {
    WAITS,    // for others to be over
    LEARNS,   // which processes requests go through
    ASKED,    // the shim has not answered yet
    RUNS,     // it traces
    PAUSES,   // it was told to stop for now
    RESTS,    // it does not trace, and will again
    STOPPING, // it was told to stop
    CLOSING,  // it has stopped, and fates may come still
    WRITES,   // the profile waits for the writer, or is with it
    OVER
};

struct flame_job {
    struct flame_job *next;
    struct flame_asker asker;
    struct flame_shim shim;   // its link is NULL when it is gone
    struct full_trace *trace; // NULL until it takes messages
    enum flame_state state;
    int64_t id;
    int64_t since;    // of the state, monotonic ns
    int64_t learned;  // when the first request had come, ns after that; 0: none has
    int64_t started;  // when it began to run, ns since 1970; 0: it does not yet
    int64_t asked;    // when the shim was asked to set patterns, the node's time
    int64_t shut;     // what ended later was not traced to its end, the node's time
    int64_t deadline; // monotonic ns; 0: the shim has not been asked to begin
    int64_t requests; // wanted
    int64_t seconds;
    int64_t label; // of the one request that is wanted, which is about to begin; 0: any
    bool all_modules;
    char *applications[LIMIT_FULL_NAMES], *modules[LIMIT_FULL_NAMES];
    uint32_t application_count, module_count;
    char only[LIMIT_NAME_BYTES + 4]; // "": any
    char name[LIMIT_NAME_BYTES + 4];
    int64_t functions, processes; // as the shim tells
    bool new_processes;           // those that are made are traced, too
    bool scheduling, gc;          // are traced
    bool enough;                  // requests had ended when the window was closed
    bool handed;                  // to the writer
    struct flame_missed missed;
    char reason[REASON_BYTES];
    char text[TEXT_BYTES];
};

// -- flame_steps.c --------------------------------------------------------------------------------

void flame_enter(struct flame_job *f, enum flame_state state);
// What it has to wait for, in words for people; NULL: nothing.
const char *flame_awaits(const struct flames *flames, const struct flame_job *f);
// Why it ends, and in words for people. The first reason stays.
void flame_set_reason(struct flame_job *f, const char *reason, const char *text);
// STOPPING, or PAUSES: the shim is told. It tells what was still traced to its end.
void flame_stop_shim(struct flame_job *f, enum flame_state state);
// It is over; profile: its number, 0: there is none.
void flame_over(struct flame_job *f, int64_t profile);
// The shim traces no more: fates may come still, or, where it had not begun, it is over.
void flame_traces_no_more(struct flame_job *f);
// Gives its trace back; the node's messages go to it no longer.
void flame_drop_trace(struct flame_job *f);
void flame_forget(struct flame_job *f);

// -- flame_tell.c ---------------------------------------------------------------------------------

// Tells who has asked that it is over. profile: as above.
void flame_tell_end(struct flame_job *f, int64_t profile);
// How far it is; awaits: what it waits for, or NULL.
void flame_tell(struct flame_job *f, const char *awaits);
// Tells the shim what to trace, for longer than it will: it is told when to stop. begin: false: it
// only looks whether there are such modules. False when that is too long for a message.
bool flame_ask_shim(struct flame_job *f, bool begin);
// Tells it to stop.
void flame_tell_stop(const struct flame_job *f);
