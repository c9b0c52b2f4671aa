// SPDX-License-Identifier: Apache-2.0
// Requests of one node, rebuilt from the calls and returns of its processes.
//
// Every process has a stack of open calls; a return pops to its match. A call belongs to the
// request of its token. A request opens with the first call seen under a token and closes GRACE_NS
// after its end; then its spans go to `finished` and are forgotten. Times are the node's, in
// nanoseconds, and arguments: the model has no clock of its own.
//
// A request's begin and end are the shim's markers, of several ends the earliest that comes within
// the grace time; or the call of an entry function under a token made for it, and its return. A
// stream without markers (a raw capture) has requests that begin with the first call under a fresh
// token, or with the call of the entry tier, and end when that call returns.
//
// What a node does under a label of another node is a part of that node's request, and has neither
// begin nor end: it goes from its first call to the return of its last, and is over when nothing of
// it was open or came for GRACE_NS. Later calls are another part. Parts that are not whole are told
// to nobody; their calls are counted as stale.
//
// One thread at a time, for all trackers that share a pool.
#pragma once

#include "base/trace_parent.h"
#include "model/requests/request_tree.h"

// Memory for the open requests of all nodes, capped by limits.h.
struct request_pool;

struct request_pool *request_pool_new(void); // NULL without memory
void request_pool_free(struct request_pool *p);
// requests open or in their grace time, of all nodes
uint32_t request_pool_open(const struct request_pool *p);
// It is one of so many pools that share the caps. Before it is used.
void request_pool_divide(struct request_pool *p, uint32_t pools);
// From now on no node may take all of it: each has at most SLAB_SHARE times what is free
// (base/slab.h).
void request_pool_share(struct request_pool *p);
// From now on so many of LIMIT_MB_REQUESTS stay free for something else. False, and nothing has
// changed, when more than the rest is in use.
bool request_pool_spare(struct request_pool *p, uint32_t mb);
// Gives back what a burst took and is needed no more. Call once a second.
void request_pool_trim(struct request_pool *p);

enum request_fate {
    REQUEST_COMPLETE, // may enter the statistics
    // messages were lost while it was open, or a return never came, or it was cut at a cap
    REQUEST_INCOMPLETE,
    REQUEST_EXPIRED // had no end within the request timeout
};

// Why a request is incomplete: the first that applies.
enum incomplete_reason {
    REASON_NONE,  // it is not
    REASON_LOSS,  // messages were lost while it was open
    REASON_TOKEN, // it lost its token on the way
    // whose work a call was cannot be told: a pool's worker, a lock, an answer that several waited
    // for
    REASON_CAUSE,
    REASON_RETURN, // a return never came or could not be joined
    REASON_GAP,    // a function was not traced for a while, as after a code reload
    REASON_LARGE,  // it had more spans or spawns than the collector takes
    REASON_ROOM,   // no memory, or a cap of limits.h
    REASON_END,    // the trace began or ended while it was open
    INCOMPLETE_REASONS
};

struct request_result {
    enum request_fate fate;
    uint8_t reason;    // enum incomplete_reason; REASON_NONE unless incomplete
    uint16_t identity; // directory id
    bool error;        // ended in an exception
    // incomplete only because it had more than LIMIT_SPANS_PER_REQUEST spans, or too many spawns
    bool cut;
    // of complete and cut requests; of others the time of the first and last message seen
    int64_t begin;
    int64_t end;
    struct tree_times times;  // of complete and cut requests
    const struct span *spans; // of complete and cut requests, as request_tree_build leaves them
    uint32_t count;
    uint32_t calls;             // spans that it had; more than count when it was cut
    bool remote;                // a part of a request of another node,
    uint16_t maker;             // of this one, by directory id
    uint64_t label;             // in a stream of our shim: of the token; else 0
    struct trace_parent parent; // the span outside that asked for it, as far as it is known
};

// Names a request while it is in work; stale refs are noticed.
struct request_ref {
    uint32_t index;
    uint32_t generation;
};

struct request_events {
    void *context;
    // A request has closed. The result and its spans are valid during the call.
    void (*finished)(void *context, const struct request_result *result);
    // The node that has made a label, when that is another one than this stream's; else
    // DIRECTORY_NONE. May be NULL: labels say nothing.
    uint16_t (*maker)(void *context, uint64_t label);
    // The directory id of a name given by tracker_name_begun, of a request that closes with no
    // other one. Not asked without such names.
    uint16_t (*identity)(void *context, struct slice name);
    // Calls of a tier pile up in a process and never return; told once per tier until
    // tracker_reset.
    void (*never_returns)(void *context, uint16_t tier);
    // A call of this tier has been counted in stale_calls. `over`, in a stream of our shim: its
    // label, when that is of a request that has been closed, so that nothing under it counts ever
    // again; else 0. Not told of calls past the cap of a request's spans. May be NULL.
    void (*stale)(void *context, uint16_t tier, uint64_t over);
    // A marker or a helper begins requests inside of an entry's: they are the same. Told once; may
    // be NULL.
    void (*met)(void *context);
};

// Counted since the last tracker_take_counts.
struct request_counts {
    uint64_t orphan_returns; // returns whose call was not seen
    // calls under a token whose request is closed, or that never had a begin, and those that go on
    // when it is closed; and of those behind a request's end that count as its asynchronous ones
    // the calls that a process asked for of which nothing is known
    uint64_t stale_calls;
    uint64_t refused_calls;    // calls past a cap of limits.h: their requests are incomplete
    uint64_t refused_requests; // begins past one: incomplete requests of which nothing else is told
    // calls that had to return and did not before the one below them: their requests are incomplete
    uint64_t unwound_frames;
    // return_to messages that could be joined in more than one way, likewise
    uint64_t ambiguous_returns;
    uint64_t lost_tokens;      // requests that had lost their token at their end, likewise
    uint64_t recredited_calls; // calls that causes gave to another request than their label's
};

struct tracker_options {
    int64_t timeout_ns; // age at which an open request expires
    // requests begin and end with markers; else that is found out from the stream
    bool markers;
    // tier that opens a request in a stream without markers, or TIER_NONE for any
    uint16_t entry;
    struct request_events events;
};

// Times that the model can do sums with: this many ns from 0 at most, 126 years.
#define TRACKER_FARTHEST 4000000000000000000LL

struct tracker; // one node's requests

// NULL without memory. The pool must outlive it.
struct tracker *tracker_new(struct request_pool *pool, const struct tracker_options *options);
void tracker_free(struct tracker *t);

// One call as the stream tells it.
struct tracker_call {
    uint64_t pid;
    uint64_t token;
    uint64_t from;
    uint64_t serial;   // of the token, and
    uint64_t previous; // the last that its sender had got (message.h); 0: not known
    // both as long as they are, where it is a native tracer that tells: these are only compared
    uint64_t full_serial;
    uint64_t full_previous;
    int64_t time;
    uint16_t tier;     // ignored by tracker_begin and tracker_spawn
    uint32_t function; // a hash of the function called and, where its return comes without a value,
    uint32_t caller;   // of the one it returns to (message.h); 0: its return has a value
};

// A call of a tier. Returns its request, {SPAN_NONE, 0} when it has none (stale or refused).
struct request_ref tracker_call(struct tracker *t, const struct tracker_call *call);
// A call of a tier under no token: nobody's, but it has a return.
void tracker_pass(struct tracker *t, uint64_t pid, uint16_t tier, int64_t time);
// The return of the latest open call of a tier in a process, or its end by an exception.
void tracker_return(struct tracker *t, uint64_t pid, uint16_t tier, bool error, int64_t time);
// Control has gone back to a function (its hash) from calls whose returns come without a value, and
// perhaps from others. Returns the tier of the call that this ended, TIER_NONE when none.
uint16_t tracker_return_to(struct tracker *t, uint64_t pid, uint32_t function, int64_t time);
// A call of a spawn function; and its return with the new process, which then hangs below the span
// that spawned it.
void tracker_spawn(struct tracker *t, const struct tracker_call *call);
void tracker_spawned(struct tracker *t, uint64_t pid, uint64_t child);
// A process is dead: what it had open is over. The request that it had begun last and that its last
// event there, an exception, left without an end has ended here in an error, unless an end marker
// comes within the grace time; so have all of tracker_web_begin, whatever its last event was.
void tracker_exited(struct tracker *t, uint64_t pid, int64_t time);

enum tracker_pause { PAUSE_GC, PAUSE_OFF_CPU };
// A process stops running its calls, or goes on with them. Changes nothing but the spans' gc and
// off_cpu.
void tracker_pause(struct tracker *t, uint64_t pid, enum tracker_pause kind, bool begins,
                   int64_t time);

// A process takes a message with such a token out of its mailbox; tier, function and caller are
// ignored. Where each one is told, what they bring is known also through processes that make no
// calls.
void tracker_taken(struct tracker *t, const struct tracker_call *call);
// A process, which is both pid and from, sends one. Where that is told before the taking, of the
// same token, from and serial, what the calls waited that it brings is measured.
void tracker_sent(struct tracker *t, const struct tracker_call *call);

// From now on none is told any more, until the next one is: calls go by the other rules.
void tracker_takes_nothing(struct tracker *t);

// A call of a tier that is an entry, under a token that its process got for it. It begins a
// request, which ends with its return. Inside of such a call, in the same process, it is a call
// like others, and what comes under its token belongs to the request of the outer one. What the
// process calls under a request's token behind the return is stale.
struct request_ref tracker_enter(struct tracker *t, const struct tracker_call *call);
// A connection becomes a websocket under the token of an entry's request: where that is still open
// in this process, it ends here, and the calls that it has open there.
void tracker_upgraded(struct tracker *t, const struct tracker_call *call);
// A call has taken the token off its process, which was no longer needed, or is missed now: one of
// an entry that the sampler left out, or of a tier under the label of a request that is over.
void tracker_left_out(struct tracker *t, uint64_t pid);

// The markers. Begin returns its request likewise. Inside of a call that began a request, in the
// same process, a marker's request is the same one: the marker names it, whatever it was called
// before, its outcome counts, and the call's return is still the end. Under an entry's token
// elsewhere a begin is that of no request.
struct request_ref tracker_begin(struct tracker *t, const struct tracker_call *call);
// The same of a request that ends in the process that begins it, at the latest when that is dead.
struct request_ref tracker_web_begin(struct tracker *t, const struct tracker_call *call);
// A span of somebody's trace has asked for the request of the call's token. The first one stays. It
// takes the place of a span; where there is no room, the request is incomplete. Where there is no
// such request it says nothing.
void tracker_asked_for(struct tracker *t, const struct tracker_call *call,
                       const struct trace_parent *parent);
// What a process says itself goes before everything else, but for a request that it begins later.
enum tracker_word {
    // it works for the request of the call's token, until a message brings it another one's
    SAYS_FROM_NOW,
    SAYS_WITHIN, // the same whatever messages bring, until it says otherwise
    SAYS_NO_MORE
};
void tracker_says(struct tracker *t, const struct tracker_call *call, enum tracker_word word);
struct tracker_end {
    uint64_t token;
    uint64_t pid;
    int64_t time;
    bool error;
    bool token_lost; // the process had not had the token all the time: calls may be missing
    uint64_t serial; // of the token; 0: not known
    uint64_t shown;  // the token of another request that it had in the end; 0: its own
    // of a web server, perhaps from inside of calls: what its process has open of the request then
    // belongs to it
    bool by_helper;
    // no end yet: the outcome of a response that is being sent. The next end mark, or the process's
    // death, is the end
    bool sending;
};
void tracker_end(struct tracker *t, const struct tracker_end *end);

// Whether a request still needs an identity; a ref to a closed request does not.
bool tracker_unnamed(const struct tracker *t, struct request_ref ref);
// The request of a token, for calls that are no spans; {SPAN_NONE, 0} when there is none.
struct request_ref tracker_find(const struct tracker *t, uint64_t token);
// What is known by now of the request of a token: its identity, and its end, INT64_MAX: it goes on.
// False: no identity, or no such request is open.
bool tracker_known(const struct tracker *t, uint64_t token, uint16_t *identity, int64_t *end);
// Names a request. The first name stays.
void tracker_name(struct tracker *t, struct request_ref ref, uint16_t identity);
// What its begin calls a request, which nothing else may come to name. It is kept as a text
// (LIMIT_NAME_BYTES and a character, the rest is cut): strangers may have chosen it, and what
// nobody is called in the end shall take no place in the directory.
void tracker_name_begun(struct tracker *t, struct request_ref ref, struct slice name);
// The same as tracker_name from its end: an answer that is still to come goes before.
void tracker_name_late(struct tracker *t, struct request_ref ref, uint16_t identity);
// A question about a request's identity was put; returns its place in the order of calls (0 …), or
// -1 at LIMIT_ASKS_PER_REQUEST. The request waits for answers, GRACE_ASK_NS longer at most.
int tracker_asked(struct tracker *t, struct request_ref ref);
// The answer to question `place`: a directory id, or DIRECTORY_NONE for none. The earliest call
// that names it wins.
void tracker_answered(struct tracker *t, struct request_ref ref, int place, uint16_t identity);

// Messages were lost here, where the latest time of any message before is known, or INT64_MIN.
// Every request now open on the node is incomplete; one that has ended, with nothing of it open,
// more than DISORDER_NS before that time is not: what was lost of it was asynchronous at most.
void tracker_lost(struct tracker *t, int64_t latest);
// Nothing was traced for a moment up to that time: the same of requests that began before it.
void tracker_rested(struct tracker *t, int64_t time);
// What was lost may have been as late as this time: requests are incomplete too that begin no
// later. (Messages of different processes overtake each other.)
void tracker_lost_until(struct tracker *t, int64_t time);
// Calls made in this time (from and until included) may not have been traced: requests that were
// open in it are incomplete. Such times come in their order; of many the earlier ones count as one.
void tracker_gap(struct tracker *t, int64_t from, int64_t until);
// The stream ended: closes every request, those without an end as incomplete, and forgets the
// processes.
void tracker_reset(struct tracker *t);
// Time passes: closes what is over its grace time or its age. now is the latest time known of the
// node.
void tracker_advance(struct tracker *t, int64_t now);
// The counts since the last call.
struct request_counts tracker_take_counts(struct tracker *t);
// The processes that have made calls lately: room of them at most, their number.
uint32_t tracker_processes(const struct tracker *t, uint64_t *pids, uint32_t room);
// As request_pool_trim.
void tracker_trim(struct tracker *t);
// Marks the identities of its open requests, by directory id.
void tracker_mark(const struct tracker *t, bool *identities);
