// SPDX-License-Identifier: Apache-2.0
// What the files that tell whose work a call is have of each other: lent_labels.c, work.c,
// hops.c, children.c, forgotten.c, senders.c, ahead.c, pieces.c and causes.c, each of which uses
// those before it.
#pragma once

#include "tracker.h"

enum {
    LOOKED_BACK = 64 // episodes of a process that are looked through
};

// Whether a process has begun a request itself.
static inline bool begun_by(const struct request *r, uint64_t pid) {
    return r->has_begin && r->begin_pid == pid;
}

// Nobody can tell which of two requests a call belongs to. Either may be SLAB_NONE.
static inline void requests_doubt(struct tracker *t, uint32_t one, uint32_t other) {
    if (one != SLAB_NONE) {
        request_hurt(request_at(t, one), REASON_CAUSE);
    }
    if (other != SLAB_NONE) {
        request_hurt(request_at(t, other), REASON_CAUSE);
    }
}

// The same if labels are seen to be lent beside them, by the time that they close.
static inline void requests_doubt_perhaps(struct tracker *t, uint32_t one, uint32_t other) {
    if (one != SLAB_NONE) {
        request_at(t, one)->perhaps = true;
    }
    if (other != SLAB_NONE) {
        request_at(t, other)->perhaps = true;
    }
}

// -- lent_labels.c --------------------------------------------------------------------------------

// What is known of a label that is lent; NULL: it is not. The pool's, good until the next one is
// lent.
struct lent *lent_find(const struct tracker *t, uint64_t label);
// Whether a label is known to be lent to a request.
bool has_borrowed(const struct tracker *t, uint32_t index, uint64_t label);
// A call came under a lent label, from a process of which nothing is known.
void lent_stranger(struct lent *lent, int64_t time);

// -- work.c ---------------------------------------------------------------------------------------

enum work_state {
    WORK_UNKNOWN, // nothing is known of the process at that time
    WORK_LAST,    // nothing was open in it; this is the last that was
    WORK_OPEN
};

struct work {
    enum work_state state;
    bool begun;       // the process has begun that request itself
    uint32_t request; // SLAB_NONE: it is closed
    uint64_t label;   // that the process showed
    // no message that it sent at this has a lower serial, as far as is known; 0: unknown
    uint64_t clock;
    uint64_t got; // serial of the message that brought this; 0: unknown
    // what it sent at this when it had got more than that has a higher serial; 0: unknown
    uint64_t sent;
    uint32_t before; // number of the episode before
};

// A request, or the one that it was joined to; SLAB_NONE when that is no longer there.
uint32_t work_settled(const struct tracker *t, uint32_t index, uint32_t generation);
// Of a number that an episode has; NULL for 0, and when it was forgotten.
const struct episode *episode_find(const struct tracker *t, uint32_t number);
// The latest episode that had begun by a time.
const struct episode *episode_at(const struct tracker *t, const struct process *p, int64_t time);
// Whether a process sent something before it began what it was at: with a lower serial than it has
// had since, or when what it had got last was older than the message that brought this.
bool sent_before(const struct brought *b, uint64_t clock, uint64_t got);
// Whether nobody can tell that: all that is known of its clock then came of a spawn, which may have
// raised it higher, and what it had got last may be just that.
bool sent_unclear(const struct brought *b, uint64_t clock, uint64_t got);
// The latest episode before a call in which its sender showed its label and may have sent what
// brought it.
const struct episode *episode_under(struct tracker *t, const struct brought *b);
// The request that a process has begun before what it does now, and that is not over; SLAB_NONE
// when there is none, or more than one. An entry is inside of what was begun before it.
uint32_t begun_here(const struct tracker *t, const struct process *p, int64_t now);
// Whether a process said at a time that it works for a request, and has begun none since then.
bool has_said(const struct tracker *t, const struct process *p, int64_t time);
// What a process was at, as far as its messages have come.
struct work work_at(struct tracker *t, uint64_t pid, int64_t time);
// Whether a process has made calls for a request, or was spawned for it; with `from` only calls
// that this one asked for.
bool worked_for(const struct tracker *t, uint32_t index, uint64_t pid, uint64_t from);

// -- children.c -----------------------------------------------------------------------------------

// A piece is joined to a request: what it spawned under another one's label are that one's
// children.
void children_move(struct tracker *t, const struct request *piece, uint32_t index);

// -- hops.c ---------------------------------------------------------------------------------------

// Whether the message that a process works at is known, by the token of a call, and its request for
// sure: *request, SLAB_NONE when that is closed.
bool hop_known(const struct tracker *t, const struct process *p, const struct tracker_call *call,
               uint32_t *request);

// -- forgotten.c ----------------------------------------------------------------------------------

// A call goes by its label to this request, from a process of which nothing is known: if that was
// forgotten lately it may have been at what it did last, and both are in doubt.
void forgotten_doubt(struct tracker *t, uint32_t index, uint64_t from, int64_t time);

// -- senders.c ------------------------------------------------------------------------------------

// The request that a call belongs to, by what its sender was at, opened if nobody has shown its
// label before; SLAB_NONE: to none that is still open.
uint32_t sender_request(struct tracker *t, const struct brought *b);

// -- ahead.c --------------------------------------------------------------------------------------

// A call goes by its label to this request, ahead of its sender's messages.
void ahead_note(struct tracker *t, uint32_t index, const struct brought *b);

// -- pieces.c -------------------------------------------------------------------------------------

// Opens a request for a call that waits for what its sender was at. SLAB_NONE at the cap.
uint32_t piece_open(struct tracker *t, const struct brought *b, struct process *sender);
