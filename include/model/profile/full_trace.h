// SPDX-License-Identifier: Apache-2.0
// A full trace: every function that chosen requests of a node run, made into the weights of stacks.
//
// It takes the calls and returns of all functions in the processes that the requests go through.
// Return values do not travel: a call tells its caller, and a return_to where control goes. Only
// calls of tiers tell no caller, and have returns of their own.
//
//   - A call whose caller is an open call of its process lies on that one. What lay above has ended
//     by a tail call, or by an exception that was caught.
//   - A call whose caller is not traced (a function of OTP's) lies on the latest open call.
//   - A process that begins to work for a request lies on the open call of the process that its
//     token came from.
//
// Time is given to one stack at a time in each process: to the function on top while it runs, to
// waiting, asleep and garbage collection on top of it while it does not. While a process is
// scheduled out, and another one works for it, the time is that one's. A request's weights
// therefore add up to its duration, plus what ran in parallel. What a process does between the last
// message of a request and one of another (it idles) counts nowhere.
//
// Which requests are complete, and what they are called, is the tracker's word (requests.h), which
// comes later. Times are the node's, ns. One thread at a time.
#pragma once

#include "model/message/message.h"
#include "model/profile/profile.h"

struct full_trace; // opaque

struct full_trace_options {
    int64_t since;     // node time from which on functions are traced
    uint32_t requests; // how many are wanted
    uint64_t token;    // only this one (message.h); 0: any
    const char *only;  // of this identity, copied; NULL: of any
    bool scheduling;   // scheduling is traced: else waiting is told by messages alone, and what a
                       // process sleeps is its function's own time
};

// NULL without memory.
struct full_trace *full_trace_new(const struct full_trace_options *options);
void full_trace_free(struct full_trace *f);

// What a call is besides.
enum full_role {
    FULL_PLAIN,
    FULL_IS_ENTRY, // it begins a request, which ends with its return
    FULL_IS_BEGIN, // a marker: its process begins a request,
    FULL_IS_END    // or ends it
};

// Functions that have patterns for a full trace are taken of this module. Others may be wanted by
// another full trace of the node: they are no frames, and their time is their callers'.
void full_trace_module(struct full_trace *f, struct slice module);
// A message of a flagged process, with its time. Calls under no token and messages of no use do
// nothing.
void full_trace_message(struct full_trace *f, const struct message *m, int64_t time,
                        enum full_role role);
// So many bytes has each message that is given from now on.
void full_trace_size(struct full_trace *f, size_t bytes);
// Messages were lost here. What is open is incomplete.
void full_trace_lost(struct full_trace *f);
// No message of before this time is on its way any more.
void full_trace_advance(struct full_trace *f, int64_t time);

// Functions are traced no longer after `until`, and again from `since` on; node time. Requests are
// taken that lie whole within such a window, of which the first is open from the start. Others of
// which something was traced are counted (profile_counts.partly).
void full_trace_shut(struct full_trace *f, int64_t until);
void full_trace_open(struct full_trace *f, int64_t since);
// No more messages come, and at the end no more fates: requests that are open still are counted.
void full_trace_close(struct full_trace *f);
// When patterns stand and no longer, which need not be when requests are taken; node time. asked:
// when the node was asked to set them.
void full_trace_stands(struct full_trace *f, int64_t asked, int64_t since);
void full_trace_off(struct full_trace *f, int64_t at);
// Whether there is a request that has begun and not ended.
bool full_trace_busy(const struct full_trace *f);
// Whether as many requests have ended as are wanted, and some more, as some may turn out to be
// incomplete. Their fates come later: functions need not be traced meanwhile. Where an identity is
// wanted it is never so, as only fates tell that. Where one token is wanted, its request is enough.
bool full_trace_enough(const struct full_trace *f);
// Whether there is a request that has ended and whose fate is not known.
bool full_trace_awaits_fates(const struct full_trace *f);

// What became of a request.
struct full_fate {
    uint64_t token;
    bool complete;
    struct slice identity;
    int64_t begin;    // node time
    int64_t duration; // ns
};
void full_trace_fate(struct full_trace *f, const struct full_fate *fate);

// Requests that were not taken, as they have another identity than the one asked for.
enum { FULL_OTHERS = 8 }; // identities that are told, the first that come
struct full_other {
    char identity[LIMIT_NAME_BYTES + 4];
    uint64_t requests;
};
// Returns them, and how many they are. They are the trace's.
const struct full_other *full_trace_others(const struct full_trace *f, uint32_t *count);

// A process that may not have been followed into: it has sent a request's token on, or called a
// tier, and nothing else is known of it. Only its node knows whether it had a flag.
struct full_suspect {
    uint64_t pid;
    uint64_t requests; // of the profile's: those that it worked for so
};
// Returns them, in the order in which they came, and how many they are. They are the trace's.
const struct full_suspect *full_trace_suspects(const struct full_trace *f, uint32_t *count);

// Processes that have worked for requests, and whose names only their node knows. Puts the pids of
// those into pids that have come since the last time, room of them at most; returns how many. There
// are LIMIT_FULL_NAMED in all.
uint32_t full_trace_unnamed(struct full_trace *f, uint64_t *pids, uint32_t room);
// What its node calls one of them. In requests that were taken before it is called by the function
// that it called first, as it is where this is not told.
void full_trace_named(struct full_trace *f, uint64_t pid, struct slice name);

// Whether as many requests as wanted are there.
bool full_trace_done(const struct full_trace *f);
// Whether a function of the modules that are taken was called in a request of the profile. If none
// was, all that it has is what the tiers tell.
bool full_trace_reached(const struct full_trace *f);
// What there is so far. Requests whose fate is not known are not in it. It stays the trace's, and
// is valid until full_trace_free.
struct profile *full_trace_profile(struct full_trace *f);
