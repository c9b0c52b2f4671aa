// SPDX-License-Identifier: Apache-2.0
// What the pipeline's files share: a node and its stream.
//
//   pipeline.c         nodes
//   takers.c           what their finished requests are told to
//   merge.c            several data connections of a node, as one stream
//   pipeline_stream.c  a node's stream: its frames, their messages' time, what is over
//   pipeline_ledger.c  what was seen and lost
//   pipeline_names.c   names given back
//   deliver.c          what a message means to the tracker
#pragma once

#include "base/limits.h"
#include "base/rate.h"
#include "codec/frame.h"
#include "ingest/identify.h"
#include "ingest/label_makers.h"
#include "ingest/pipeline.h"
#include "model/message/native.h"

// What the messages of a tier took since the last settling.
struct cost {
    uint64_t messages;
    uint64_t bytes;
    uint64_t calls;
    uint64_t stale_calls;
};

enum { NANOSECONDS = 1000000000 }; // per second

// What belongs together stands together: there are some hundred of these.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
struct pipeline_node {
    struct pipeline *pipeline;
    uint16_t id;
    void *user;
    struct tier_set tiers;
    uint32_t tier_count; // that it had last
    // what its tracker may name: its tiers, and those that it had while the stream was open
    bool tiers_had[LIMIT_TIER_NAMES + 1];
    struct tracker *tracker;
    struct identify identify;
    struct account account;
    int64_t ticks_per_second;
    bool synced;         // it has told its time since it connected:
    int64_t synced_node; // this one, at
    struct pipeline_now synced_at;

    // this stream and the one before, for the shim's word of how many messages it had
    struct stream_count {
        uint32_t labels; // 0: not told
        uint64_t begun;  // messages and dropped messages of all streams before it
        uint64_t came;   // of this one; of the latest not known yet
    } latest_stream, stream_before;
    uint32_t labels_to_come; // of a stream that has yet to begin here; 0: not told

    // the stream
    bool open;
    bool live;
    bool bad; // no trace stream any more: what still comes is passed over
    struct message_reader reader;
    struct buffer partial; // the start of a frame whose rest is still to come
    struct frame_place place;
    int64_t skipped;    // where the oversized frame begins that is passed over
    int64_t latest;     // node time of the latest message
    int64_t advanced;   // node time of the last tracker_advance
    int64_t advance_at; // and of the next, if messages tell the time
    int64_t rested;     // its tiers rested then for a moment; INT64_MIN: that is settled
    bool lost;          // messages were lost, and none has come since
    int64_t lost_until; // what was lost was before this, as far as that is known
    uint32_t gaps;      // data connections that lost some, and have brought none since
    bool fresh;         // bytes came since the last tick
    uint64_t ticked;    // messages when that was

    struct live *live_rows;                     // NULL: nobody watches
    struct full_trace *full[LIMIT_FULL_TRACES]; // full_count of them
    uint32_t full_count;
    bool full_apart; // they have a trace session of their own
    struct sampled {
        struct sample_labels *labels; // NULL: nobody looks at its processes
        int64_t begin;                // since then, node time
    } sampled[PIPELINE_LOOKERS];

    // calls for printing
    bool calls_wanted;
    struct rate calls_rate;
    int64_t slow_ns; // requests longer than this are told of
    struct rate slow_rate;

    // labels of requests that are over, and a tier that was called under each: what its shim was
    // told of in this second
    struct stale_label {
        uint64_t label;
        uint16_t tier;
    } stale[LIMIT_STALE_PER_SECOND];
    uint32_t stale_count;
    int64_t stale_second;

    // node time up to which the ledger knows of functions that were not traced
    int64_t untraced_until;

    struct cost costs[2 * LIMIT_TIERS]; // by function of tiers
    // by tier: the index of its function plus 1; 0: it is none of its tiers
    uint16_t cost_of[LIMIT_TIER_NAMES + 1];
    struct pipeline_totals settled; // as far as the ledger has it
    struct pipeline_totals totals;
};

// What pipelines share.
struct pipeline_names {
    struct directory directory;
    struct label_makers makers;
    uint32_t pipelines; // that may share it: each has so small a part of the collector's caps
    uint32_t joined;    // so far,
    struct pipeline *all[LIMIT_PIPELINES]; // these
};

struct pipeline {
    struct pipeline_options options;
    struct pipeline_names *names;
    struct directory *directory; // of names
    uint32_t user;               // of the directory
    struct gate gate;
    struct request_pool *pool;
    struct keep *keep;
    struct stats *stats;
    struct pipeline_node *nodes[LIMIT_NODES];
    struct native_reader *native;   // NULL: no block has come
    uint32_t spared[SPARED_USES];   // MB of the pool's, for what else
    size_t partial_bytes;           // that the nodes' begun frames take
    const struct stats *handed_out; // by pipeline_swap; NULL: none yet
    struct pipeline_now now;        // of the last tick
    int64_t trimmed;                // when memory was last looked at,
    int64_t names_settled;          // and names that nothing names; steady
};

// What is counted of a tier; NULL when it is none of the node's.
static inline struct cost *pipeline_node_cost(struct pipeline_node *n, uint16_t tier) {
    uint32_t of = tier <= LIMIT_TIER_NAMES ? n->cost_of[tier] : 0;
    return of > 0 ? &n->costs[of - 1] : NULL;
}

// -- a node's clock and counts --------------------------------------------------------------------

// Whether a time lies between -most and most.
static inline bool pipeline_within(int64_t time, int64_t most) {
    return (uint64_t)time + (uint64_t)most - 1 < 2 * (uint64_t)most - 1;
}

// A time of the node's in ns, as far as the tracker takes it.
static inline int64_t pipeline_node_ns(const struct pipeline_node *n, int64_t ticks) {
    if (n->ticks_per_second == NANOSECONDS && pipeline_within(ticks, TRACKER_FARTHEST)) {
        return ticks;
    }
    __extension__ __int128 ns = ticks;
    ns = ns * NANOSECONDS / n->ticks_per_second;
    return ns > TRACKER_FARTHEST    ? TRACKER_FARTHEST
           : ns < -TRACKER_FARTHEST ? -TRACKER_FARTHEST
                                    : (int64_t)ns;
}

// The node's time now: by its own word if it gave one, else as if its clock and ours were the same.
// Whoever sets our clock does not move it.
static inline int64_t pipeline_node_now(const struct pipeline_node *n) {
    const struct pipeline_now *now = &n->pipeline->now;
    return n->synced ? n->synced_node + (now->steady - n->synced_at.steady)
                     : now->wall - n->account.offset;
}

// All messages that have come, and those known to be lost.
static inline uint64_t pipeline_node_seen(const struct pipeline_node *n) {
    return n->totals.messages + n->totals.dropped;
}

// -- pipeline.c -----------------------------------------------------------------------------------

void pipeline_node_free(struct pipeline_node *n);
// The node's tiers are those that are named.
void pipeline_node_has_tiers(struct pipeline_node *n);
// What the tracker of the node's stream tells, and asks.
struct request_events pipeline_events(struct pipeline_node *n, bool live);

// -- takers.c -------------------------------------------------------------------------------------

// A request of a node (struct pipeline_node *) has finished.
void takers_take(void *node, const struct request_result *result);

// -- pipeline_stream.c ----------------------------------------------------------------------------

// Forgets the start of a frame.
void partial_free(struct pipeline_node *n);
// Messages were lost here.
void stream_lose(struct pipeline_node *n);
// So many data connections have lost messages, and brought none since: as long as that is so, more
// may be lost.
void stream_gaps(struct pipeline_node *n, uint32_t gaps);
// A frame that cannot be read will not be handed on; messages: how many it counts for.
void stream_unreadable(struct pipeline_node *n, uint32_t messages);
// Reads the message at the cursor (message_decode), and no more of it than its time, the node's.
// Without one *time stays as it is. False: it is no message.
bool stream_time(struct pipeline_node *n, struct cursor *c, bool last, int64_t *time);
// The same of a time that a block tells.
void stream_native_time(struct pipeline_node *n, enum message_clock clock, int64_t ticks,
                        int64_t *time);

// -- pipeline_ledger.c ----------------------------------------------------------------------------

// Enters what was counted since the last time into the ledger's bucket of the stream's time.
void ledger_settle(struct pipeline_node *n);
// Enters what the tiers' messages took into the same bucket.
void ledger_settle_costs(struct pipeline_node *n);

// -- pipeline_names.c -----------------------------------------------------------------------------

// Time has passed. Where identities, tiers or paths were refused, or soon will be, those that
// nothing names any more are given back.
void names_settle(struct pipeline *p);

// -- deliver.c ------------------------------------------------------------------------------------

// The directory id of an identity's text; IDENTITY_UNDEFINED for what no request may be called.
uint16_t deliver_identity(struct pipeline_node *n, struct slice text);
// Hands a message to the node's full traces; time: the node's, in ns.
void deliver_full(const struct pipeline_node *n, const struct message *m, int64_t time,
                  enum full_role role);
// Hands a message of a known function to the tracker and to the full traces; time: as above.
void deliver_call(struct pipeline_node *n, const struct traced_function *f, const struct message *m,
                  int64_t time);
void deliver_return(struct pipeline_node *n, const struct traced_function *f,
                    const struct message *m, int64_t time);
// The same for one that names no function of ours. Returns the tier whose call it ended, or
// TIER_NONE.
uint16_t deliver_state(struct pipeline_node *n, const struct message *m, int64_t time);
