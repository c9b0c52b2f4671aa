// SPDX-License-Identifier: Apache-2.0
// What the files of stack sampling share.
//
//   stack_runs.c        asked for, begun, stopped; what shims say of it; what time brings
//   stack_run_room.c    the memory that all of them share
//   stack_run_tell.c    messages: to who has asked, and to the shim
#pragma once

#include "app/stack_runs.h"
#include "model/profile/sample_relay.h"
#include "model/profile/sample_taker.h"
#include "model/profile/sample_view.h"

enum {
    SECOND_NS = 1000000000,
    ANSWER_SECONDS = 10, // until a shim has begun, or ended, or has told its names anew
    ANEW_SECONDS = 5,    // between two times that it is asked to tell all anew: that costs its node
    REASON_BYTES = 32,
    TEXT_BYTES = 400
};

enum run_state {
    ASKED, // the shim has not answered yet
    RUNS,
    STOPPING, // it was told to stop
    CLOSED,   // the profile waits for others to be written
    WRITES,   // and for the writer, or is with it
    OVER
};

// The numbers that a shim tells, as they go on to the tool.
enum { COST = 5, PROCESSES = 6, NUMBERS };
extern const char *const stack_run_numbers[NUMBERS];

struct stack_run {
    struct stack_run *next;
    struct stack_asker asker;
    struct flame_shim shim; // its link is NULL when it is gone
    struct profile profile;
    struct sample_taker *taker; // NULL: nothing is kept
    struct sample_view *view;   // shown to who has asked as it goes; NULL: it is not
    enum view_by view_by;
    int64_t view_s, view_in; // how often, and seconds until the next one
    bool passed_on;          // nothing is kept, but passed on as it is
    struct sample_relay relay;
    int64_t anew_at; // monotonic ns: not asked for before then
    enum run_state state;
    int64_t id;
    int64_t since;   // of the state, monotonic ns
    int64_t started; // ns since 1970; 0: it has not
    int64_t told[NUMBERS];
    int64_t slice_s;     // it goes on in another profile after so long, for ever; 0: it ends
    int64_t asked_anew;  // when the shim was told to tell its names anew, 0: it was not
    int64_t cost_before; // as told when the profile began
    bool handed;         // to the writer
    size_t bytes;        // that it takes, all in all
    bool follows;        // it is told of the node's requests,
    int64_t begin;       // since this time of the node's
    char reason[REASON_BYTES];
    char text[TEXT_BYTES];
};

// Whether one that stands for ever counts as the node's, or one that was asked for.
static inline bool stands(const struct stack_run *r) {
    return r->slice_s > 0;
}

// -- stack_run_room.c -----------------------------------------------------------------------------

// What a run takes has changed, or may have.
void stack_run_measure(struct stack_runs *runs, struct stack_run *r);
// Whether it may take more: as if it took one for every `eighths` of eight bytes.
bool stack_run_has_room(const struct stack_runs *runs, const struct stack_run *r, uint32_t eighths);
// Has room for all runs, in the place of open requests, before they need it. False when the first
// one finds none, as there are too many of these.
bool stack_runs_provide(struct stack_runs *runs);

// -- stack_run_tell.c -----------------------------------------------------------------------------

// Tells who has asked how far it is.
void stack_run_tell_state(const struct stack_run *r);
// And what was seen since the last time; nothing where no time has passed.
void stack_run_tell_view(struct stack_run *r);
// And that it is over; profile: its number, 0: there is none.
void stack_run_tell_end(const struct stack_run *r, int64_t profile);
// Tells the shim; type: CONTROL_STACKS_STOP or CONTROL_STACKS_ANEW.
void stack_run_tell_shim(const struct stack_run *r, const char *type);
// Passes on to who has asked what the shim has taken. Who does not read in time loses looks, which
// are counted. False: they are none.
bool stack_run_pass_on(struct stack_run *r, struct slice taken);
// Asks the shim what a tool, or the shim itself, has asked. False when it is too long for a
// message.
bool stack_run_ask_shim(const struct stack_run *r, struct control_map message);
// What was asked for, as a JSON object of the profile.
void stack_run_put_settings(struct profile_head *head, struct control_map message, int64_t slice_s);
