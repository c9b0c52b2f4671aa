// SPDX-License-Identifier: Apache-2.0
// The records of all nodes' requests, and the pool that they are taken from: requests and their
// spans, processes and their open calls, what processes were at, labels that were lent.
#pragma once

#include "base/limits.h"
#include "base/slab.h"
#include "base/trace_parent.h"
#include "model/message/tier_set.h"
#include "model/requests/request_tree.h"

enum {
    CHUNK_SPANS = 7,
    CLOSED_WAYS = 8,
    LENT_STRANGERS = 4,
    FORGOTTEN_WAYS = 4,
    FORGOTTEN_SHIFT = 20
};

// Spans and spawns of a request, for each span what it lost to garbage collection and scheduling,
// a token, and a message that brought it; its parent, and what fills the last chunk.
enum { RECORDS = 4 * LIMIT_SPANS_PER_REQUEST + LIMIT_SPAWNS_PER_REQUEST + CHUNK_SPANS };

// Records among a request's spans that are none; they stand in the tier's place.
enum {
    RECORD_NONE = TIER_NONE - 7, // nothing: it fills a chunk
    // the span outside that asked for the request: its trace's id is in start and end, its own in
    // pid, its flags in from (trace_parent.h)
    RECORD_PARENT = TIER_NONE - 6,
    // a message that brought the span `parent` to its process, if only by way of others: sent at
    // start and taken at end, by a process that had run at pid, an int64_t (struct hop); the last
    // one first. Open: none has, since the span before there
    RECORD_WAIT = TIER_NONE - 5,
    // start is a token that a process showed while it worked for the request, and that is another
    // one's
    RECORD_LENT = TIER_NONE - 4,
    RECORD_TOKEN = TIER_NONE - 3, // start is one more token of the request
    // of the span `parent`: start is its garbage collection, end its time off the CPU
    RECORD_COSTS = TIER_NONE - 2,
    // pid spawned `from` (0: not known yet) at start, from within the span `parent`
    RECORD_SPAWN = TIER_NONE - 1
};
_Static_assert(LIMIT_TIER_NAMES < RECORD_NONE, "no tier has their numbers");

// A span while its request is open: 40 bytes.
struct span_record {
    int64_t start;
    int64_t end;
    uint64_t pid;
    uint64_t from;
    uint32_t parent; // record in its request, SPAN_NONE: none in its process
    uint16_t tier;
    bool open : 1;
    bool error : 1;
    bool blind : 1; // no return value: how it ended is not known unless error says so
};

// A RECORD_PARENT, and what it says.
static inline struct span_record record_of_parent(const struct trace_parent *parent) {
    struct span_record record = {.from = parent->flags, .parent = SPAN_NONE, .tier = RECORD_PARENT};
    memcpy(&record.start, parent->trace_id, sizeof record.start);
    memcpy(&record.end, parent->trace_id + sizeof record.start, sizeof record.end);
    memcpy(&record.pid, parent->span_id, sizeof record.pid);
    return record;
}

static inline struct trace_parent record_parent(const struct span_record *record) {
    struct trace_parent parent = {.flags = (uint8_t)record->from};
    memcpy(parent.trace_id, &record->start, sizeof record->start);
    memcpy(parent.trace_id + sizeof record->start, &record->end, sizeof record->end);
    memcpy(parent.span_id, &record->pid, sizeof record->pid);
    return parent;
}

struct chunk {
    uint32_t next; // SLAB_NONE: the last
    struct span_record spans[CHUNK_SPANS];
};

// State of a request, and the list that it is in, which is in the order of what the request waits
// for: to be looked at again (deadline), to expire (first, within a second or so), to be closed
// (deadline). A piece (pieces.c) waits for what its sender was at, and, once it has been joined to
// a request, for the time when nothing names it any more.
enum phase { PHASE_NEW, PHASE_OPEN, PHASE_CLOSING, PHASE_PIECE, PHASE_JOINED, PHASES };

struct request {
    uint64_t token;
    int64_t first; // time of its earliest message
    int64_t last;  // and of its latest
    int64_t begin; // of a piece: time of its first call
    union {
        int64_t end;
        uint64_t serial; // of a piece: of the token that its first call showed
    };
    int64_t deadline; // when new: is looked at again; when closing: is closed
    union {
        uint64_t begin_pid;
        uint64_t sender; // of a piece: the process that its token came from
    };
    union {
        uint64_t root_pid; // whose call or marker ended it
        uint64_t heard;    // of a piece: `previous` of its first call
    };
    uint32_t generation;
    // the tracker's when the request opened: those since then may have been of its messages
    uint32_t losses;
    uint32_t previous, next;
    uint32_t first_chunk, last_chunk;
    uint32_t count;  // records
    uint32_t spans;  // of them spans
    uint32_t open;   // of these without a return
    uint32_t spawns; // records of spawns
    uint32_t beyond; // calls past the cap of spans
    union {
        uint32_t tokens;          // records of tokens
        uint32_t into_generation; // of a joined piece: of `into`
    };
    union {
        uint32_t name;         // of pool->names: what its begin calls it, SLAB_NONE: nothing
        uint32_t next_waiting; // of a piece: the next one of the same sender, SLAB_NONE: none
    };
    union {
        uint32_t into; // of a joined piece: its request
        // without markers: the record of the span that is the request, SPAN_NONE: none yet; of
        // by_entry: the entry's
        uint32_t root;
    };
    uint16_t identity;
    uint8_t phase : 4, asked : 4;
    uint8_t answers_due;
    uint8_t named_place; // of the call that named it by an answer
    bool has_begin : 1, has_end : 1;
    bool died : 1;          // its end is the death of the process that began it
    bool ends_here : 1;     // and the death of that process is its end in any case
    bool by_entry : 1;      // began with a call, and ends with its return, in begin_pid
    bool met : 1;           // a marker or helper began inside of that call: it names the request,
    bool failed_inside : 1; // and said that it failed
    bool sending : 1;       // its helper has told the outcome, and the end is still to come
    // its process had calls of it open at the end mark: the last one's return is the end
    bool stretches : 1;
    bool error : 1;
    bool remote : 1;    // a part of another node's; known when it is closed
    bool cut : 1;       // a span or a spawn was one too many
    bool borrowed : 1;  // it has records of lent labels
    bool strangers : 1; // calls came under its label from processes of which nothing was known
    bool unasked : 1;   // and from such ones that nobody was known to have asked
    // and ahead of their senders' messages, when no label was known to be lent yet
    bool unsure : 1;
    bool perhaps : 1;   // nobody could tell its calls from others' if labels are lent
    bool asked_for : 1; // it has a RECORD_PARENT
    // enum incomplete_reason: the first thing that happened to it, REASON_NONE: nothing
    uint8_t damage : 4;
};

_Static_assert(sizeof(struct request) == 128, "two cache lines");

struct begun_name {
    uint32_t len;
    char text[LIMIT_NAME_BYTES + 4]; // room for the character that the cut falls into
};

// An open call: 48 bytes. A process's calls are a list from the top of its stack down.
struct call {
    uint32_t below; // the call below it in its process, SLAB_NONE: none
    uint32_t request;
    uint32_t generation;
    uint32_t span;  // record in the request
    uint32_t chunk; // that holds it,
    uint16_t place; // and where in that
    uint16_t depth; // calls below it
    uint32_t losses;
    uint32_t function; // a hash of its function, and of
    uint32_t caller;   // the one that it returns to; 0: its return comes with a value
    uint32_t blind;    // calls from here down whose returns come without one
    uint32_t costs;    // record of pool->costs, SLAB_NONE: none
    uint16_t requests; // how many times the request changes from here down to the last loss
    uint16_t tier;     // or RECORD_SPAWN
};

_Static_assert(LIMIT_CALL_DEPTH <= UINT16_MAX, "fits call.depth");

// Time that a call lost while it was the innermost of its process, ns.
struct call_costs {
    uint64_t gc;
    uint64_t off_cpu;
};

enum last_event {
    LAST_OTHER,
    LAST_RETURN,   // behind which a return_to of its own may come
    LAST_EXCEPTION // likewise
};

struct process {
    uint64_t pid;
    int64_t last;
    int64_t gc_since;  // INT64_MIN: not collecting
    int64_t off_since; // INT64_MIN: not off
    uint32_t top;
    uint32_t begun; // the request that it began last,
    uint32_t begun_generation;
    uint32_t guessed; // and the one of which a return_to has ended a call by a guess
    uint32_t guessed_generation;
    uint32_t returned; // the request of the call that last_event was about
    // requests begun here that end here at the latest, and whose end was not told here
    uint32_t web_open;
    uint32_t begun_open; // requests begun here that have no end yet
    uint32_t work;       // the request of its latest call, SLAB_NONE: none
    uint32_t work_generation;
    // pieces that wait for what it does next: list by next_waiting, SLAB_NONE: none
    uint32_t waiting;
    uint32_t episode; // number of its latest, 0: none
    // the token of the request that it says itself it works for, 0: it says nothing,
    uint64_t said;
    int64_t said_at;      // when it said so
    uint64_t label;       // the token that its latest call showed
    uint64_t clock;       // the highest serial of its tokens, and of what it is known to have sent
    uint64_t begun_clock; // the lowest serial that its messages have since it began `begun`,
    uint64_t since_clock; // and since the first of its open calls began; 0: not known
    // serial of the message that brought the first of its open calls; 0: its token was its own
    uint64_t got;
    // the highest serial of what it is known to have sent there before it got another message; 0:
    // of nothing
    uint64_t sent;
    uint32_t hop; // number of its latest, 0: none; and of its latest rest
    uint32_t rest;
    uint32_t hop_called; // of the one at which it made its latest call that looked for one
    // Who has asked it something by one of its latest messages, a bit for each: of those messages,
    // `taken`, and of LOOKED_BACK before them.
    uint32_t askers[2];
    uint8_t taken;
    uint8_t last_event;   // enum last_event
    bool sure : 1;        // nothing else can be the request of its latest call
    bool said_within : 1; // it says so whatever its calls show
    bool after_entry : 1; // its latest episode is that of an entry's call, which it has made
};

// A stretch of time for which a process was at one request: from the first of its open calls, or
// its begin marker, to its end.
struct episode {
    int64_t start, end;
    uint64_t label; // that it showed last
    uint64_t clock; // as process.since_clock
    uint64_t got;   // as process.got
    uint32_t request, generation;
    uint64_t from;   // the process that asked for it; 0: it has begun that request itself
    uint32_t before; // number of the episode of this process before it, 0: none
    // the process has begun that request itself: it is that of an entry's call, or ended by a mark
    bool own;
};

// A message that a process has taken (hops.c), or its spawn.
struct hop {
    int64_t time;
    uint64_t label;
    uint64_t got;                 // its serial
    uint64_t from;                // who has sent it; of a spawn the parent
    uint64_t sent;                // the lowest serial known of what was sent at it, 0: none
    int64_t sent_at;              // when the message was sent, INT64_MIN: not known. When its
    int64_t in_at;                // process ran for the first time since then, likewise
    uint32_t request, generation; // that the process is at from then on; SLAB_NONE: not known
    uint32_t before;              // number of the hop of this process before it, 0: none
    uint32_t cause;               // of the sender's at which it was sent, 0: none
    uint32_t losses;              // the tracker's then
    bool sure : 1;                // nothing else can be the request
    bool same : 1;                // that is the message's
    bool spawned : 1;             // that brought its process into the world
    bool spawns : 1;              // its process has spawned another one at the hop before
    bool told : 1;                // a call has got what it waited
};

// A message that was sent, and not taken yet.
struct send {
    uint64_t key; // 0: none
    int64_t time; // INT64_MIN: not known
};

// A stretch of time for which a process did not run.
struct rest {
    int64_t from, to;
    uint32_t before; // number of the rest of this process before it, 0: none
    uint32_t losses; // the tracker's then
};

// A label that a process has shown while it worked for another request.
struct lent {
    uint64_t key;
    // times of the latest calls under it from processes of which nothing was known
    int64_t strangers[LENT_STRANGERS];
    uint32_t count; // of such calls
};

// A process that was forgotten as there were so many.
struct forgotten {
    uint64_t key;
    uint32_t episode; // number of its latest, 0: none
    uint32_t at;      // when, FORGOTTEN_SHIFT bits less than ns
};

struct request_pool {
    struct slab requests;
    struct slab names;
    struct slab chunks;
    struct slab calls;
    struct slab costs;
    struct slab processes;
    struct request_tree *tree;
    uint32_t *places; // scratch of request_spans.c: record -> place of the span
    // Tokens closed lately, of all nodes: sets of CLOSED_WAYS keys, the latest first; 0 is none. A
    // set has the size of a cache line.
    uint64_t *closed;
    struct episode *episodes; // of all nodes: LIMIT_EPISODES, each at the place that its number has
    struct hop *hops;         // of all nodes: LIMIT_HOPS, each at the place that its number has
    struct rest *rests;       // likewise: LIMIT_RESTS
    struct send *sends;       // of all nodes: LIMIT_SENDS, in sets as those of `closed`
    struct lent *lent;        // of all nodes: LIMIT_LENT_LABELS, in sets as those of `closed`
    uint32_t episode_count;   // the number of the latest
    uint32_t hop_count;       // likewise
    uint32_t rest_count;      // likewise
    struct forgotten *forgotten; // of all nodes: LIMIT_FORGOTTEN_PROCESSES, in sets as well
    uint32_t overlooked; // episode_count when one of them made room that had an episode still there
    uint32_t nodes_made;
    uint32_t generation;
    bool shared; // no node may take all of it
};
