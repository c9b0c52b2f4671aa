// SPDX-License-Identifier: Apache-2.0
// What the files behind model/requests/requests.h share: a tracker, and the small functions that
// all of them use. request_records.h has the records that it works with.
//
//   requests.c        a request's life: opened, named, ended, closed
//   request_spans.c   its spans and other records, and what they are worth in the end
//   request_pool.c    the memory of all nodes' requests, and the tokens closed lately
//   processes.c       processes and their stacks of open calls
//   joins.c           which call a return, a return_to or a death ends
//   entries.c         requests that begin with a call and end with its return
//   causes.c          whose work a call is, with the files of causes.h
//   waits.c           when messages were sent and taken
#pragma once

#include "base/map.h"
#include "model/directory/directory.h"
#include "model/message/message.h"
#include "model/message/tier_set.h"
#include "model/requests/requests.h"
#include "request_records.h"

enum { LATEST = 256, GAPS = 32, LOSSES = 1024, HOPS_DEEP = 16 };

struct list {
    uint32_t head, tail;
};

// What brought a call: a message of a process under a label, with its serial.
struct brought {
    uint64_t from;
    uint64_t label;
    uint64_t serial;
    uint64_t previous; // of the message that the process had got last
    int64_t time;      // of the call
};

// A call that went by its label to a request, ahead of its sender's messages.
struct ahead {
    struct brought brought;
    uint32_t request, generation;
};

// Answers of a map, each at the place that its key has: few processes and requests make most of the
// messages at a time.
struct latest {
    uint64_t key;
    uint32_t value;
};

// Nothing is known of a key: the one that stands at its place now has its place elsewhere.
static inline void latest_forget(struct latest all[LATEST], uint64_t key) {
    all[key % LATEST].key = key + 1;
}

// A stretch of time in which calls were not traced.
struct gap {
    int64_t from, until;
};

struct tracker {
    struct request_pool *pool;
    struct tracker_options options;
    struct map by_token;
    struct map by_pid;
    struct latest tokens[LATEST];    // what by_token said lately
    struct latest processes[LATEST]; // and by_pid
    struct list lists[PHASES];
    uint64_t salt; // tells its closed tokens from other nodes'
    int64_t now;
    int64_t swept;
    uint32_t losses; // their number; the tracker's first is 1
    // of the latest losses, by number: the latest time known when it was noticed
    int64_t lost_at[LOSSES];
    int64_t lost_until; // what was lost was before this
    bool markers;
    bool met;              // events.met was told
    bool lends;            // labels were seen to be lent,
    int64_t lent_at;       // and when they were last, with no loss that may have made it seem so
    bool blind;            // calls came whose returns have no values
    bool takes;            // messages that processes take are told,
    bool measures;         // and those that they send
    bool forgets;          // processes were forgotten, as there were so many
    struct gap gaps[GAPS]; // in the order of time; the first stands for all before it
    uint32_t gap_count;
    struct ahead ahead[LIMIT_CALLS_AHEAD]; // from the first on, round
    uint32_t ahead_first, ahead_count;
    uint8_t told[LIMIT_TIER_NAMES + 1]; // tiers of which never_returns was told
    struct {
        uint32_t requests, names, chunks, calls, costs, processes;
    } own; // records that it has of the pool
    struct request_counts counts;
};

// A record of the pool for a tracker, or SLAB_NONE at the cap or when it has more than its share;
// and back.
#define POOL_TAKE(t, kind) slab_take_own(&(t)->pool->kind, &(t)->own.kind, (t)->pool->shared)
#define POOL_GIVE(t, kind, index) slab_give_own(&(t)->pool->kind, &(t)->own.kind, index)

static const struct request_ref NO_REQUEST = {SPAN_NONE, 0};

static inline struct request *request_at(const struct tracker *t, uint32_t index) {
    return SLAB_AT(&t->pool->requests, struct request, index);
}

static inline struct call *call_at(const struct tracker *t, uint32_t index) {
    return SLAB_AT(&t->pool->calls, struct call, index);
}

static inline struct span_record *span_at(const struct tracker *t, uint32_t chunk, uint32_t span) {
    return &SLAB_AT(&t->pool->chunks, struct chunk, chunk)->spans[span % CHUNK_SPANS];
}

// The record of a call that has a request, which is alive.
static inline struct span_record *span_of(const struct tracker *t, const struct call *call) {
    return &SLAB_AT(&t->pool->chunks, struct chunk, call->chunk)->spans[call->place];
}

static inline bool alive(const struct tracker *t, uint32_t index, uint32_t generation) {
    // A given record keeps its fields but the first four bytes, until it is taken again with a new
    // generation.
    return index != SLAB_NONE && request_at(t, index)->generation == generation;
}

// A request is incomplete. The first reason stays.
static inline void request_hurt(struct request *r, enum incomplete_reason reason) {
    r->damage = r->damage == REASON_NONE ? (uint8_t)reason & 15 : r->damage;
}

static inline bool is_piece(const struct tracker *t, uint32_t index) {
    const struct request *r = request_at(t, index);
    return r->generation != 0 && (r->phase == PHASE_PIECE || r->phase == PHASE_JOINED);
}

// Whether two requests are one, as far as is known: a piece may become, or has become, part of its
// label's.
static inline bool same_request(const struct tracker *t, uint32_t a, uint32_t b) {
    return a == b || (a != SLAB_NONE && b != SLAB_NONE && (is_piece(t, a) || is_piece(t, b)) &&
                      request_at(t, a)->token == request_at(t, b)->token);
}

// Asks for memory that will be read soon.
static inline void prefetch(const void *bytes, size_t len) {
    for (size_t line = 0; line < len; line += 64) {
        __builtin_prefetch((const char *)bytes + line);
    }
    __builtin_prefetch((const char *)bytes + len - 1);
}

static inline void prefetch_chunk(const struct tracker *t, uint32_t chunk) {
    if (chunk != SLAB_NONE) {
        prefetch(SLAB_AT(&t->pool->chunks, struct chunk, chunk), sizeof(struct chunk));
    }
}

// -- request_pool.c -------------------------------------------------------------------------------

// Asks for the memory that the next three will look at.
void prefetch_closed(const struct tracker *t, uint64_t token);
void remember_closed(struct tracker *t, uint64_t token);
bool closed_lately(const struct tracker *t, uint64_t token);
// A token is used again: what comes under it is no longer stale.
void forget_closed(struct tracker *t, uint64_t token);

// -- causes.c -------------------------------------------------------------------------------------

// The request that a call belongs to, opened if need be; SLAB_NONE when it is stale or past a cap,
// which is counted.
uint32_t cause_find(struct tracker *t, struct process *p, const struct tracker_call *call,
                    uint16_t tier);
// A process that works for a request shows another one's label.
void cause_borrowed(struct tracker *t, uint32_t index, uint64_t label);
// A process has spawned a child for a request under another one's label, or perhaps so: the child
// works for the same one.
void cause_child(struct tracker *t, const struct process *p, uint32_t index,
                 const struct span_record *spawn);
// A request closes. These of its calls are told as stale, each once: what is still open when it is
// complete, as the return will be nobody's; and what came behind its end from processes of which
// nothing is known, which may be its asynchronous work, as which it counts too, or that of whoever
// was lent its label.
void cause_stale(struct tracker *t, uint32_t index, bool complete);
// Whether calls that other requests are known to have had a claim to may have been taken for this
// one's, or the other way round. Looks once more at calls that overtook the lending of its label:
// the other request of such a call is hurt here, too.
bool cause_doubtful(struct tracker *t, const struct request *r);
// A process has spawned another one for a request.
void hop_spawned(struct tracker *t, struct process *parent, uint64_t child, int64_t time,
                 uint32_t request);
// The messages that brought a call, the last one first, of which no other call has got what they
// waited.
struct hop_chain {
    uint32_t hops[HOPS_DEEP]; // their numbers
    uint32_t count;           // 0, too, when it is not known of all of them
    bool again;               // none has come since the call before
};
// Who has asked for a call of a request: its token's sender, or the one that this had asked by way
// of processes that made no calls for it.
uint64_t hop_asker(struct tracker *t, struct process *p, const struct tracker_call *call,
                   uint32_t request, struct hop_chain *chain);
// Looks again at the calls that went by their label ahead of their senders' messages, and whose
// senders' messages have come by now.
void ahead_settle(struct tracker *t, int64_t now);
// A process has done what it does up to a time: pieces of before that are settled.
void pieces_settle(struct tracker *t, struct process *p, int64_t time);
// Settles those that wait for no more messages by now.
void pieces_settle_due(struct tracker *t, int64_t now);
// Forgets joined ones, when what closes by now has closed: until then they tell what senders were
// at.
void pieces_forget_due(struct tracker *t, int64_t now);
// The same request, or the one that a piece has been joined to.
struct request_ref piece_settled(const struct tracker *t, struct request_ref ref);
static inline struct request_ref piece_ref(const struct tracker *t, struct request_ref ref) {
    if (!alive(t, ref.index, ref.generation)) {
        return NO_REQUEST;
    }
    return request_at(t, ref.index)->phase == PHASE_JOINED ? piece_settled(t, ref) : ref;
}
// The lowest serial of what a process sends when it has got or sent one with this.
static inline uint64_t clock_next(uint64_t clock) {
    return clock + (clock > 0 && clock < MESSAGE_LAST_SERIAL);
}
// And when it has spawned a child: its clock is then the child's serial as a tagged word of the VM
// (OTP 25 to 29), where the send to the child and the child itself count one each.
enum { TAG_BITS = 4, TAG = 15 };
static inline uint64_t clock_spawned(uint64_t clock) {
    bool low = clock > 0 && clock < MESSAGE_LAST_SERIAL >> (TAG_BITS + 1);
    return low ? (clock + 2) << TAG_BITS | TAG : clock;
}
// Whether nobody can tell if a message was sent before or after its sender had a clock: both are as
// high as can be told.
static inline bool clock_unclear(uint64_t serial, uint64_t clock) {
    return serial == MESSAGE_LAST_SERIAL && clock == MESSAGE_LAST_SERIAL;
}
// Whether a clock looks like one that a spawn has left.
static inline bool clock_is_spawned(uint64_t clock) {
    return clock > TAG && (clock & TAG) == TAG;
}
// The place of a process's next episode, behind the others.
static inline struct episode *episode_new(struct tracker *t, struct process *p, uint32_t *before) {
    struct request_pool *pool = t->pool;
    pool->episode_count += pool->episode_count == UINT32_MAX ? 2 : 1; // 0 is none
    *before = p->episode;
    p->episode = pool->episode_count;
    return &pool->episodes[p->episode % LIMIT_EPISODES];
}

// -- forgotten.c ----------------------------------------------------------------------------------

// A process is forgotten, as there are so many.
void remember_forgotten(struct tracker *t, const struct process *p);

// -- requests.c -----------------------------------------------------------------------------------

// The request has its end, of which pid, time and error are looked at. Of several the earliest
// stays: they may have overtaken each other. But a death is one only as long as no marker comes.
void request_ends(struct tracker *t, uint32_t index, const struct tracker_end *end);
// The request of a token, or MAP_NONE.
static inline uint32_t request_find(struct tracker *t, uint64_t token) {
    struct latest *latest = &t->tokens[token % LATEST];
    if (latest->key != token) {
        *latest = (struct latest){token, map_get(&t->by_token, token)};
    }
    return latest->value;
}
// The request for a message under a token, a call of this tier or a marker's: known, or opened.
// SLAB_NONE when it is stale or past the cap.
uint32_t request_for(struct tracker *t, uint64_t token, int64_t time, uint16_t tier);
// A new one, in no list, and not found by its token. SLAB_NONE at the cap.
uint32_t request_new(struct tracker *t, uint64_t token, int64_t time);
// Puts it behind the others of a list, out of the one that it is in.
void request_list(struct tracker *t, uint32_t index, enum phase phase, int64_t deadline);
// Gives its memory back; whoever still names it finds nothing.
void request_forget(struct tracker *t, uint32_t index);
// A call of a tier under this token is stale.
void stale_count(struct tracker *t, uint16_t tier, uint64_t token);
// All calls of a request are stale.
void spans_stale(struct tracker *t, const struct request *r);
// The request of a token: known, or opened. SLAB_NONE past the cap.
uint32_t request_under(struct tracker *t, uint64_t token, int64_t time);
// A token is no longer that of the request that it was.
void request_leave_token(struct tracker *t, uint64_t token);
// A request has no room: it is counted here, and what comes of it later is stale and counts no
// second one.
void request_refuse(struct tracker *t, uint64_t token);

// -- markers.c ------------------------------------------------------------------------------------

// A request begins, which is not inside of another one.
struct request_ref request_begins(struct tracker *t, const struct tracker_call *call);
// A process is dead: the request that it began last ends if that crashed, and those of
// tracker_web_begin in any case.
void request_died(struct tracker *t, const struct process *p, bool crashed, int64_t time);

// -- calls.c --------------------------------------------------------------------------------------

// Takes a call of a tier or a spawn. Returns its request.
struct request_ref take_call(struct tracker *t, const struct tracker_call *call, uint16_t tier);

// -- entries.c ------------------------------------------------------------------------------------

// Whether a process is inside a call that began a request: whatever token it shows, it works for
// that one.
static inline bool in_entry(const struct tracker *t, const struct process *p) {
    return alive(t, p->begun, p->begun_generation) && request_at(t, p->begun)->by_entry &&
           !request_at(t, p->begun)->has_end;
}
// An entry whose return has no value is called by `caller` in a process that is in_entry. Where the
// call that is open was made by the same function, an exception has left it, of which no word came:
// it and what is above it end. False where it may be a call within it.
bool entry_left(struct tracker *t, struct process *p, uint32_t caller, int64_t time);
// A begin marker in a process that is in_entry: it is the same request, and names it.
struct request_ref entry_met(struct tracker *t, struct process *p, const struct tracker_call *call);
// Whether a token is one that an entry made in a node of ours: a marker under it is none of another
// request.
bool entry_made(const struct tracker *t, uint64_t token);
// A request has had no end within the timeout: tells of an entry that is a loop.
void entry_expired(struct tracker *t, uint32_t index);
// A request closes: its further tokens are nobody's.
void entry_tokens_free(struct tracker *t, uint32_t index);

// -- waits.c --------------------------------------------------------------------------------------

// When a message that is taken was sent, INT64_MIN: not known. Once for each.
int64_t send_taken(struct tracker *t, const struct tracker_call *call);
// A process has not run between two times; from: INT64_MIN, not known.
void rest_note(struct tracker *t, struct process *p, int64_t from, int64_t to);
// When a process, which runs now, ran for the first time from `time` on; INT64_MIN: not known.
int64_t rest_over(const struct tracker *t, const struct process *p, int64_t time);
// Records what the call waited that the messages brought.
void waits_add(struct tracker *t, uint32_t index, const struct call *call,
               const struct hop_chain *chain);

// -- joins.c --------------------------------------------------------------------------------------

// What a process has open of a request is over, and nobody's from now on: its returns mean nothing.
void calls_cut(struct tracker *t, const struct process *p, uint32_t request, int64_t time);

// -- request_spans.c ------------------------------------------------------------------------------

// Adds a span for a call that was pushed. False at a cap.
bool span_add(struct tracker *t, uint32_t index, struct call *call,
              const struct tracker_call *what);
// Calls each for every record.
void each_record(const struct tracker *t, const struct request *r, void *context,
                 void (*each)(void *context, uint32_t i, const struct span_record *record));
// Gives a request room for more records. False at the cap.
bool chunk_add(struct tracker *t, struct request *r);
// Adds a record. False at a cap.
static inline bool record_add(struct tracker *t, uint32_t index, const struct span_record *record) {
    struct request *r = request_at(t, index);
    uint32_t place = r->count % CHUNK_SPANS;
    if (place == 0 && !chunk_add(t, r)) {
        return false;
    }
    SLAB_AT(&t->pool->chunks, struct chunk, r->last_chunk)->spans[place] = *record;
    r->count++;
    return true;
}
void spans_free(struct tracker *t, struct request *r);
// Works out a request's tree and what it is worth. Sets result's fate, begin, end, error, and spans
// where it has some.
void request_judge(struct tracker *t, struct request *r, enum request_fate fate,
                   struct request_result *result);

// -- processes.c ----------------------------------------------------------------------------------

// A process does something: what waited for that goes on.
static inline void process_acts(struct tracker *t, struct process *p, int64_t time) {
    if (p->waiting != SLAB_NONE) {
        pieces_settle(t, p, time);
    }
    p->last = time > p->last ? time : p->last;
}
// A call is over, and with it, when it is the last one open in its process, what that was at. The
// span is the call's; NULL: of nothing.
static inline void episode_end(struct tracker *t, struct process *p, const struct call *call,
                               const struct span_record *span, int64_t time) {
    if (call->below == SLAB_NONE && span) {
        const struct request *r = request_at(t, call->request);
        uint32_t before;
        struct episode *e = episode_new(t, p, &before);
        p->clock = p->sent > p->clock ? p->sent : p->clock;
        p->after_entry = r->by_entry && r->begin_pid == p->pid;
        *e = (struct episode){.start = span->start,
                              .end = time,
                              .label = p->label,
                              .clock = p->since_clock,
                              .got = p->got,
                              .from = span->from,
                              .request = call->request,
                              .generation = call->generation,
                              .before = before,
                              .own = p->after_entry};
    }
}
// process_find for a process that was not looked for lately.
struct process *process_look_up(struct tracker *t, uint64_t pid);
// A process that has made calls, or NULL. Each message asks for some: the compiler, which sees many
// callers, would make it a function.
__attribute__((always_inline)) static inline struct process *process_find(struct tracker *t,
                                                                          uint64_t pid) {
    const struct latest *latest = &t->processes[pid % LATEST];
    return latest->key == pid ? SLAB_AT(&t->pool->processes, struct process, latest->value)
                              : process_look_up(t, pid);
}

// A new one, which does something; NULL at the cap.
struct process *process_new(struct tracker *t, uint64_t pid, int64_t time);
// That of a pid, which does something, made when it is new; NULL at the cap.
static inline struct process *process_for(struct tracker *t, uint64_t pid, int64_t time) {
    struct process *p = process_find(t, pid);
    if (!p) {
        return process_new(t, pid, time);
    }
    process_acts(t, p, time);
    return p;
}
void process_forget(struct tracker *t, struct process *p);
// The same for want of room: what it has sent may still come (causes.h).
void process_leave(struct tracker *t, struct process *p);
// It is dead, with nothing open. Calls that it asked for may still come: what it was at is known as
// long as that of idle ones.
void process_dies(struct tracker *t, struct process *p);
// Hands what a call lost in costs to its request, as a record of its own: few calls have any, and a
// span has no room for it.
void settle_costs(struct tracker *t, const struct call *call);
// Takes the top off.
static inline void pop(struct tracker *t, struct process *p) {
    uint32_t top = p->top;
    const struct call *call = call_at(t, top);
    if (call->costs != SLAB_NONE) {
        settle_costs(t, call);
    }
    p->top = call->below;
    POOL_GIVE(t, calls, top);
}

// The process calls: takes off calls whose request is closed and whose returns may have been lost
// or need not come, which would stay for ever, and a spawn that has not returned: it raised, or its
// return was lost.
void pop_lost(struct tracker *t, struct process *p);
// Calls have piled up in a process, from this one down: the tier that most of them are of never
// returns.
void tell_never_returns(struct tracker *t, const struct call *top);
// Puts a call onto its process's stack. NULL at a cap.
static inline struct call *push(struct tracker *t, struct process *p, uint16_t tier) {
    const struct call *below = p->top == SLAB_NONE ? NULL : call_at(t, p->top);
    if (below && below->depth >= LIMIT_CALL_DEPTH) {
        tell_never_returns(t, below);
        return NULL;
    }
    uint32_t index = POOL_TAKE(t, calls);
    if (index == SLAB_NONE) {
        return NULL;
    }
    struct call *call = call_at(t, index);
    *call = (struct call){.below = p->top,
                          .request = SLAB_NONE,
                          .losses = t->losses,
                          .depth = below ? (uint16_t)(below->depth + 1) : 0,
                          .blind = below ? below->blind : 0,
                          .costs = SLAB_NONE,
                          .requests = below && below->losses == t->losses ? below->requests : 0,
                          .tier = tier};
    p->top = index;
    p->last_event = LAST_OTHER;
    return call;
}
// Forgets processes that did nothing for the request timeout and wait for nothing but closed
// requests; or all.
void processes_sweep(struct tracker *t, bool all);
