// SPDX-License-Identifier: Apache-2.0
// From trace bytes to statistics: the way of every message, live and in a replay.
//
//   bytes → frames → messages → (tier set) → tracker → account → stats
//
// A pipeline knows nodes by name until it is told to forget them; a node that comes back under its
// name is the same node. One thread at a time. Several pipelines, each on a thread of its own,
// share nothing but names, so that their statistics go into one database: a node is one pipeline's.
//
// Where a thread feeds a pipeline (pipeline_feed, and what calls it: merge.h) while another one,
// the main thread, does all the rest, the first works behind the pipeline's gate, and the main
// thread visits before it calls anything else here that has to do with the pipeline or a node of
// it, but their names and ids, the directory and pipeline_stats_new. What is said of pipelines that
// share names visits the others itself.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/gate.h"
#include "model/directory/directory.h"
#include "model/message/message.h"
#include "model/message/tier_set.h"
#include "model/profile/full_trace.h"
#include "model/profile/sample_labels.h"
#include "model/stats/account.h"
#include "model/stats/live.h"

struct pipeline;
struct pipeline_node;

// Names of nodes, identities, tiers and paths, and which node has made a label: for so many
// pipelines, 1 to LIMIT_PIPELINES, each of which has that part of the collector's caps (limits.h)
// of what they do not share. All are made before one of them runs, and freed before the names are.
// NULL without memory.
struct pipeline_names;
struct pipeline_names *pipeline_names_new(uint32_t pipelines);
void pipeline_names_free(struct pipeline_names *names);

// A finished request, for those who look at single ones.
struct pipeline_calls {
    const struct request_result *result;
    const struct directory *directory;
    int64_t offset; // makes the node's time nanoseconds since 1970 UTC
};

struct pipeline_options {
    struct pipeline_names *names; // NULL: its own
    int64_t bucket_s;
    int64_t timeout_ns; // of requests
    bool shared;        // by nodes that come and go: none may take what others need
    // What a live collector does when asked to; all may be NULL in a replay. user is the node's,
    // see pipeline_set_user. The shim shall say whose identity the call of a function is; arguments
    // is the term of their list, without the leading 131. Answer with pipeline_answer.
    void (*identify)(void *user, uint32_t id, const struct traced_function *function,
                     struct slice arguments);
    // The shim shall take this function's pattern off.
    void (*disarm)(void *user, const struct traced_function *function);
    // Calls of this tier come under a label of the node whose request is over: who makes them shall
    // be traced no longer. LIMIT_STALE_PER_SECOND at most.
    void (*stale)(void *user, const char *tier, uint64_t label);
    // A complete request of a node that wants them (pipeline_want_calls).
    void (*calls)(void *user, const struct pipeline_calls *calls);
    // A complete request that took longer than pipeline_set_slow allows; LIMIT_SLOW_PER_SECOND at
    // most.
    void (*slow)(void *user, const struct pipeline_calls *calls);
};

// NULL without memory, or when as many have these names as may.
struct pipeline *pipeline_new(const struct pipeline_options *options);
void pipeline_free(struct pipeline *p);
struct directory *pipeline_directory(struct pipeline *p);
// Those that share its names, itself too: how many there are, and each of them by its number.
uint32_t pipeline_siblings(const struct pipeline *p);
struct pipeline *pipeline_sibling(const struct pipeline *p, uint32_t number);
// Between the thread that feeds it and the main thread. Nothing happens where it has its names for
// itself: there is one thread then.
struct gate *pipeline_gate(struct pipeline *p);
void pipeline_visit(struct pipeline *p);
void pipeline_part(struct pipeline *p);
// The same of all that share its names.
void pipeline_visit_all(const struct pipeline *p);
void pipeline_part_all(const struct pipeline *p);

// The node of a name, known or new; NULL at LIMIT_NODES, without memory, or when another pipeline
// that shares names has it.
struct pipeline_node *pipeline_node(struct pipeline *p, struct slice name);
uint16_t pipeline_node_id(const struct pipeline_node *n); // in the directory
struct pipeline *pipeline_of(const struct pipeline_node *n);
// Marks the nodes, by id, of all pipelines that share names, that have a user or a stream, or that
// statistics name which were gathered since the swap before the last: what pipeline_swap gave out
// last counts as long as it is not reset.
void pipeline_used_nodes(const struct pipeline *p, bool used[LIMIT_NODES]);
// Tiers' names are about to come: where few more could be had, those that nothing names any more
// are given back, by all pipelines that share names.
void pipeline_make_room(const struct pipeline *p);
// Forgets a node that is not used, by no pipeline that shares names, and gives its name and id
// back.
void pipeline_forget(struct pipeline *p, uint16_t id);
const char *pipeline_node_name(const struct pipeline_node *n);
// What the callbacks get for this node; NULL: no callbacks, and it keeps little memory until it
// comes back.
void pipeline_set_user(struct pipeline_node *n, void *user);
void pipeline_want_calls(struct pipeline_node *n, bool wanted);
// Where its requests are counted besides, for who watches the node; NULL: nowhere. Stays the
// caller's.
void pipeline_set_live(struct pipeline_node *n, struct live *live);
// A full trace of its requests has begun: from now on all messages of its stream go to it, too, and
// what became of requests. Stays the caller's. A node has LIMIT_FULL_TRACES at most.
void pipeline_add_full(struct pipeline_node *n, struct full_trace *full);
// It is over.
void pipeline_remove_full(struct pipeline_node *n, const struct full_trace *full);
// What is open of them is incomplete.
void pipeline_full_lost(struct pipeline_node *n);
// Its processes are looked at, for PIPELINE_LOOKERS profiles at most: one that was asked for, one
// of a run that stands, and the next one of that. From now on what its requests are called is told
// to these labels, with times since the node's time `begin`, ns. They stay the caller's.
enum { PIPELINE_LOOKERS = 3 };
void pipeline_add_sampled(struct pipeline_node *n, struct sample_labels *labels, int64_t begin);
// That is over.
void pipeline_remove_sampled(struct pipeline_node *n, const struct sample_labels *labels);
// What is known by now of a request that may go on, by its label; false: nothing.
bool pipeline_find_request(const struct pipeline_node *n, int64_t begin,
                           struct sample_request *request);
// What takes memory in the place of open requests.
enum pipeline_spared { SPARED_TRACES, SPARED_SAMPLES, SPARED_USES };
// From now on so many of LIMIT_MB_REQUESTS are for that, and so many fewer requests may be open, of
// all nodes, in each of the pipelines that share names its part. False, and nothing has changed,
// when there are more.
bool pipeline_spare(const struct pipeline *p, enum pipeline_spared use, uint32_t mb);
// The processes that its requests go through, as far as they have called tiers lately: room of them
// at most, their number.
uint32_t pipeline_processes(const struct pipeline_node *n, uint64_t *pids, uint32_t room);
// Node time in ns of a time in its ticks.
int64_t pipeline_ns(const struct pipeline_node *n, int64_t ticks);
// Node time at the last tick, as far as the node has told it.
int64_t pipeline_node_time(const struct pipeline_node *n);
// Whether the fates of all requests are told that ended by that node time. They are, too, where the
// node brings no messages at the moment.
bool pipeline_settled(const struct pipeline_node *n, int64_t time);
// Its tiers rested for a moment up to that node time: what was open then may have lost its end.
void pipeline_rested(struct pipeline_node *n, int64_t time);
// From which duration on its requests are slow; at first none is.
void pipeline_set_slow(struct pipeline_node *n, int64_t slow_ns);
// The tiers it traces. Takes the set's content; what was traced before is forgotten.
void pipeline_set_tiers(struct pipeline_node *n, struct tier_set tiers);
// What the labels of its running trace start with, see label_makers.h. The word of a live stream
// comes on another connection than the stream, and may be there first: it is the open stream's if
// that has none, else the next one's.
void pipeline_set_labels(struct pipeline_node *n, uint32_t start);
// How its monotonic time reads: ticks per second (> 0), and the ticks to add to get time since 1970
// UTC.
void pipeline_set_clock(struct pipeline_node *n, int64_t ticks_per_second, int64_t offset_ticks);

// The same of a node that is traced already: somebody has set its clock.
void pipeline_set_offset(struct pipeline_node *n, int64_t offset_ticks);

// A moment by the collector's two clocks, ns.
struct pipeline_now {
    int64_t wall;   // since 1970 UTC; may be set
    int64_t steady; // of a clock that only goes on
};

// The node said that its monotonic time is at_ticks now. Until it does, after pipeline_set_clock,
// the two wall clocks count as equal and a live stream's time goes on by its messages alone.
void pipeline_sync(struct pipeline_node *n, int64_t at_ticks, struct pipeline_now now);

struct pipeline_stream {
    bool live;      // the clock runs on without messages, and times far from now are no times
    bool markers;   // begin and end come as markers
    uint16_t entry; // without them: the tier that opens a request, or TIER_NONE
};

// Calls that the node made in between (its monotonic time in ticks) may not have been traced: code
// was reloaded, or somebody took the trace flags off.
void pipeline_gap(struct pipeline_node *n, int64_t from_ticks, int64_t until_ticks, bool reload);

// Since a time between these, messages that the node's processes take are told to somebody else.
void pipeline_messages_gap(struct pipeline_node *n, int64_t from_ticks, int64_t until_ticks);

// The shim's word of a stream of which nothing more comes: how many messages its trace port gave in
// all, dropped ones included. Those that did not come are lost: they enter the ledger as dropped,
// and what is open of that stream is incomplete. Of a stream that is not one of the last two here
// (the collector began anew) they are the `unsent` ones, which never left the node. Returns how
// many were lost.
struct pipeline_total {
    uint32_t labels; // which stream, by what the labels of its trace start with; not 0
    uint64_t messages;
    uint64_t unsent;
};
uint64_t pipeline_total(struct pipeline_node *n, const struct pipeline_total *total);
// What the labels of the latest stream start with; 0: not told.
uint32_t pipeline_labels(const struct pipeline_node *n);

// A stream of trace-port bytes of the node begins. One at a time: a stream still open is ended as
// lost.
bool pipeline_begin(struct pipeline_node *n, const struct pipeline_stream *stream);
// More bytes of it. Returns -1, or when the bytes are no trace stream the offset in the stream of
// the frame that is none: the rest is lost then.
int64_t pipeline_feed(struct pipeline_node *n, struct slice bytes);
// The stream ended; clean when nothing was cut off. Requests that wait for more are closed. Returns
// whether bytes of a cut frame were left over, and their offset.
bool pipeline_end(struct pipeline_node *n, bool clean, int64_t *cut_at);

// An answer to identify; identity is NULL for none.
void pipeline_answer(struct pipeline_node *n, uint32_t id, const struct slice *identity);

// Time passes. Call several times a second while streams are live.
void pipeline_tick(struct pipeline *p, struct pipeline_now now);
// An empty set for pipeline_swap; NULL without memory.
struct stats *pipeline_stats_new(const struct pipeline *p);
// Hands the statistics out and goes on with `empty`. They must not be freed before the pipeline.
struct stats *pipeline_swap(struct pipeline *p, struct stats *empty);
// What is gathered so far.
const struct stats *pipeline_stats(const struct pipeline *p);

// What a shim counted itself.
struct pipeline_counts {
    uint64_t unsampled;
    uint64_t paused_ms;  // nothing was traced, as somebody asked for that,
    uint64_t tripped_ms; // as its breaker had tripped,
    uint64_t away_ms;    // or as no collector was there
    uint64_t trips;
    uint64_t lowered_ms;
    uint64_t unmarked_calls; // of tiers, while nothing had begun a request
};
// For how long nothing was traced.
static inline uint64_t pipeline_off_ms(const struct pipeline_counts *counts) {
    return counts->paused_ms + counts->tripped_ms + counts->away_ms;
}
// Adds to it.
void pipeline_count(struct pipeline_node *n, const struct pipeline_counts *counts);

// All that went through a node, for summaries.
struct pipeline_totals {
    uint64_t messages;
    uint64_t bytes;
    uint64_t dropped;
    uint64_t decode_errors;
    uint64_t orphan_returns;
    uint64_t calls;       // of tiers, under a token
    uint64_t stale_calls; // of them; and those past a cap of limits.h
    uint64_t complete, incomplete, expired;
    uint64_t reasons[INCOMPLETE_REASONS]; // incomplete ones, by reason
    uint64_t tokenless_calls;             // calls of tiers under no token
    uint64_t returns;                     // of tiers, by an exception too, and return_to messages
    struct pipeline_counts shim;
    uint64_t untimed; // calls without a timestamp: of no use, counted as decode errors too
    // offset in the stream of the first frame that could not be decoded, or -1
    int64_t first_error;
};
// By how much the node's clock was ahead of ours when it last told its time, ns, less the message's
// delay. False: it has not.
bool pipeline_clock_offset(const struct pipeline_node *n, int64_t *ahead);
// How many tiers it traces.
uint32_t pipeline_tiers(const struct pipeline_node *n);
struct pipeline_totals pipeline_totals(const struct pipeline_node *n);
