// SPDX-License-Identifier: Apache-2.0
// Whose work a call is.
//
// Its label does not prove it: who waits for a pool's worker, a lock, or an answer that was worked
// out for somebody else goes on under the label of the one who gave it back, and so do all whom it
// asks from then on. But the token's From names the process that really asked. What decides, in
// this order:
//
//   - what the process says itself (kprof:with_token/2, set_current_label/1),
//   - the one request that the process has begun itself and not ended,
//   - the call that is open in it: what it calls from within is the same work, unless a message of
//     another request came in between,
//   - what its sender was at when it sent: its own request, its open call, its latest call under
//     that label. A sender that has worked for the label's request before may have sent this long
//     ago: then the token's serial tells whether it was before the sender began what it is at now,
//     or behind the answer that ended what it was at before.
//   - the label.
//
// Messages of different processes overtake each other. Where the label does not fit what is known
// of the sender, and the sender's own messages do not reach as far as the call yet, the call and
// what hangs on it wait in a request of their own, a piece, which is joined to the right one when
// they do, or DISORDER_NS later.
//
// A label that a process shows while it works for another request is lent. What comes under it from
// a process of which nothing is known may be of anybody who holds it: then they are all incomplete.
#include "tracker.h"

#include "base/hash.h"

enum {
    LOOKED_BACK = 64,     // episodes of a process that are looked through
    LOOKED_THROUGH = 4096 // records of a request
};

// -- labels that are lent -------------------------------------------------------------------------

static struct lent *lent_set(const struct tracker *t, uint64_t key) {
    return &t->pool->lent[(key >> 32) % (LIMIT_LENT_LABELS / CLOSED_WAYS) * CLOSED_WAYS];
}

static uint64_t lent_key(const struct tracker *t, uint64_t label) {
    return hash_mix(label ^ t->salt) | 1; // never 0
}

static struct lent *lent_find(const struct tracker *t, uint64_t label) {
    if (!t->lends) {
        return NULL;
    }
    uint64_t key = lent_key(t, label);
    struct lent *set = lent_set(t, key);
    for (int i = 0; i < CLOSED_WAYS; i++) {
        if (set[i].key == key) {
            return &set[i];
        }
    }
    return NULL;
}

static void lent_stranger(struct lent *lent, int64_t time) {
    lent->strangers[lent->count++ % LENT_STRANGERS] = time;
    lent->count = lent->count == 0 ? LENT_STRANGERS : lent->count; // it has gone round
}

// A label is lent from now on, to this request at least; the one that was first of those at its
// place makes room.
static void lend(struct tracker *t, uint64_t label, const struct request *to) {
    uint64_t key = lent_key(t, label);
    struct lent *set = lent_set(t, key);
    t->lends = true;
    if (lent_find(t, label)) {
        return;
    }
    for (int i = CLOSED_WAYS - 1; i > 0; i--) {
        set[i] = set[i - 1];
    }
    set[0] = (struct lent){.key = key};
    uint32_t known = request_find(t, label);
    if (known != MAP_NONE && request_at(t, known)->strangers) {
        int64_t last = to->has_end ? to->end : to->last, strange = request_at(t, known)->last;
        // some of them may have been that early
        lent_stranger(&set[0], strange < last ? strange : last);
    }
}

void cause_borrowed(struct tracker *t, uint32_t index, uint64_t label) {
    struct request *r = request_at(t, index);
    lend(t, label, r);
    if (!record_add(t, index,
                    &(struct live_span){
                        .start = (int64_t)label, .parent = SPAN_NONE, .tier = RECORD_LENT})) {
        request_hurt(r, REASON_ROOM);
        return;
    }
    r->borrowed = true;
}

// A call in a process goes to a request that is not its label's.
static void recredit(struct tracker *t, const struct process *p, uint32_t index, uint64_t label) {
    t->counts.recredited_calls++;
    if (p->label != label || p->work != index ||
        p->work_generation != request_at(t, index)->generation) {
        cause_borrowed(t, index, label); // else as in the call before
    }
}

struct borrower {
    const struct tracker *tracker;
    const struct request *request;
    bool doubtful;
};

static void doubt_borrowed(void *context, uint32_t i, const struct live_span *record) {
    (void)i;
    struct borrower *b = context;
    const struct lent *lent =
        record->tier == RECORD_LENT ? lent_find(b->tracker, (uint64_t)record->start) : NULL;
    uint32_t known = !lent ? 0 : lent->count < LENT_STRANGERS ? lent->count : LENT_STRANGERS;
    for (uint32_t k = 0; k < known; k++) {
        int64_t time = lent->strangers[k];
        // of more than are remembered one may have been before the oldest
        bool early = lent->count > LENT_STRANGERS || time >= b->request->begin;
        b->doubtful = b->doubtful || (time <= b->request->end && early);
    }
}

bool cause_doubtful(const struct tracker *t, const struct request *r) {
    struct borrower b = {t, r, r->strangers && lent_find(t, r->token)};
    if (r->borrowed && !b.doubtful) {
        each_record(t, r, &b, doubt_borrowed);
    }
    return b.doubtful;
}

// -- what a process was at ------------------------------------------------------------------------

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

static uint32_t settled(const struct tracker *t, uint32_t index, uint32_t generation) {
    while (alive(t, index, generation) && request_at(t, index)->phase == PHASE_JOINED) {
        generation = request_at(t, index)->into_generation;
        index = request_at(t, index)->into;
    }
    return alive(t, index, generation) ? index : SLAB_NONE;
}

static const struct episode *episode_find(const struct tracker *t, uint32_t number) {
    bool there = number != 0 && t->pool->episode_count - number < LIMIT_EPISODES;
    return there ? &t->pool->episodes[number % LIMIT_EPISODES] : NULL;
}

// The latest episode that had begun by a time.
static const struct episode *episode_at(const struct tracker *t, const struct process *p,
                                        int64_t time) {
    const struct episode *e = episode_find(t, p->episode);
    for (int n = 0; e && e->start > time && n < LOOKED_BACK; n++) {
        e = episode_find(t, e->before);
    }
    return e && e->start <= time ? e : NULL;
}

// The latest episode before a time in which a process showed a label.
static const struct episode *episode_under(const struct tracker *t, const struct process *p,
                                           uint64_t label, int64_t time) {
    const struct episode *e = p ? episode_at(t, p, time) : NULL;
    for (int n = 0; e && e->label != label && n < LOOKED_BACK; n++) {
        e = episode_find(t, e->before);
    }
    return e && e->label == label ? e : NULL;
}

// The request that a process has begun before what it does now, and that is not over; SLAB_NONE
// when there is none, or more than one. An entry is inside of what was begun before it.
static uint32_t begun_here(const struct tracker *t, const struct process *p, int64_t now) {
    if (!alive(t, p->begun, p->begun_generation) || (p->begun_open > 1 && !in_entry(t, p))) {
        return SLAB_NONE;
    }
    const struct request *r = request_at(t, p->begun);
    return !r->has_end || now <= r->end ? p->begun : SLAB_NONE;
}

// The same as seen from another process: it may not have begun by that time.
static uint32_t begun_at(const struct tracker *t, const struct process *p, int64_t time) {
    uint32_t begun = begun_here(t, p, time);
    return begun != SLAB_NONE && request_at(t, begun)->begin <= time ? begun : SLAB_NONE;
}

// Whether an open call is of a request that the process had begun, and ended before it began its
// latest: its return was lost.
static bool left_open(const struct tracker *t, const struct process *p, const struct call *call) {
    const struct request *r = request_at(t, call->request);
    return call->request != p->begun && r->has_begin && r->has_end && r->begin_pid == p->pid;
}

// The innermost of a process's open calls that had begun by a time, SLAB_NONE: none.
static uint32_t open_call_at(const struct tracker *t, const struct process *p, int64_t time) {
    uint32_t i = p->top;
    for (; i != SLAB_NONE; i = call_at(t, i)->below) {
        const struct call *call = call_at(t, i);
        if (call->tier != RECORD_SPAWN && alive(t, call->request, call->generation) &&
            span_at(t, call->chunk, call->span)->start <= time && !left_open(t, p, call)) {
            break;
        }
    }
    return i;
}

// Whether a process said at a time that it works for a request, and has begun none since then.
static bool has_said(const struct tracker *t, const struct process *p, int64_t time) {
    if (p->said == 0 || time < p->said_at) {
        return false;
    }
    uint32_t begun = begun_here(t, p, time);
    return begun == SLAB_NONE || request_at(t, begun)->begin <= p->said_at;
}

static struct work work_at(struct tracker *t, uint64_t pid, int64_t time) {
    const struct process *p = process_find(t, pid);
    if (!p) {
        return (struct work){.state = WORK_UNKNOWN, .request = SLAB_NONE};
    }
    if (p->said != 0 && has_said(t, p, time) && (p->said_within || p->said == p->label)) {
        uint32_t known = request_find(t, p->said);
        return (struct work){.state = WORK_OPEN,
                             .begun = true,
                             .request = known == MAP_NONE ? SLAB_NONE : known,
                             .label = p->said,
                             .before = p->episode};
    }
    uint32_t begun = begun_at(t, p, time);
    if (begun != SLAB_NONE) {
        bool same = p->work == begun && p->work_generation == p->begun_generation;
        return (struct work){.state = WORK_OPEN,
                             .begun = true,
                             .request = begun,
                             .label = same ? p->label : request_at(t, begun)->token,
                             .clock = p->begun_clock,
                             .before = p->episode};
    }
    uint32_t open = open_call_at(t, p, time);
    if (open != SLAB_NONE) {
        uint32_t index = call_at(t, open)->request;
        bool latest = open == p->top && p->work == index;
        return (struct work){.state = WORK_OPEN,
                             .request = index,
                             .label = latest ? p->label : request_at(t, index)->token,
                             .clock = p->since_clock,
                             .got = p->got,
                             .sent = p->sent,
                             .before = p->episode};
    }
    const struct episode *e = episode_at(t, p, time);
    if (!e) {
        return (struct work){.state = WORK_UNKNOWN, .request = SLAB_NONE};
    }
    enum work_state state = time <= e->end ? WORK_OPEN : WORK_LAST;
    uint32_t index = settled(t, e->request, e->generation);
    bool own = index != SLAB_NONE && request_at(t, index)->has_begin &&
               request_at(t, index)->begin_pid == pid;
    return (struct work){.state = state,
                         .begun = own,
                         .request = index,
                         .label = e->label,
                         .clock = e->clock,
                         .before = e->before};
}

struct looked_for {
    uint64_t pid;
    uint64_t from; // 0: any
    bool found;
};

static void look(void *context, uint32_t i, const struct live_span *record) {
    struct looked_for *l = context;
    bool span = record->tier < RECORD_NONE && record->pid == l->pid &&
                (l->from == 0 || record->from == l->from);
    bool child = record->tier == RECORD_SPAWN && l->from == 0 &&
                 (record->from == l->pid || record->pid == l->pid);
    l->found = l->found || (i < LOOKED_THROUGH && (span || child));
}

// Whether a process has made calls for a request, or was spawned for it; with `from` only calls
// that this one asked for.
static bool worked_for(const struct tracker *t, uint32_t index, uint64_t pid, uint64_t from) {
    const struct request *r = request_at(t, index);
    struct looked_for l = {pid, from, from == 0 && r->has_begin && r->begin_pid == pid};
    if (!l.found) {
        each_record(t, r, &l, look);
    }
    return l.found;
}

struct strangers {
    struct tracker *tracker;
    uint32_t index;
};

static void tell_stranger(void *context, uint32_t i, const struct live_span *record) {
    (void)i;
    const struct strangers *s = context;
    bool late = record->tier < RECORD_NONE && record->parent == SPAN_NONE &&
                record->start > request_at(s->tracker, s->index)->end;
    if (late && record->from != record->pid && !process_find(s->tracker, record->from) &&
        !worked_for(s->tracker, s->index, record->from, 0)) {
        stale_count(s->tracker, record->tier, 0);
    }
}

void cause_strangers(struct tracker *t, uint32_t index) {
    const struct request *r = request_at(t, index);
    if (r->strangers && r->has_end) {
        each_record(t, r, &(struct strangers){t, index}, tell_stranger);
    }
}

// Nobody can tell which of two requests a call belongs to. Either may be SLAB_NONE.
static void hurt_both(struct tracker *t, uint32_t one, uint32_t other) {
    if (one != SLAB_NONE) {
        request_hurt(request_at(t, one), REASON_CAUSE);
    }
    if (other != SLAB_NONE) {
        request_hurt(request_at(t, other), REASON_CAUSE);
    }
}

// -- children -------------------------------------------------------------------------------------

// A child's calls that came before its spawn was told, under the label of another request than its,
// have gone to that one, or to none.
static void child_overtook(struct tracker *t, uint32_t index, uint64_t label, uint64_t child) {
    uint32_t known = request_find(t, label);
    uint32_t labelled = known == MAP_NONE ? SLAB_NONE : known;
    const struct process *c = process_find(t, child);
    bool unplaced = c && c->label == label && c->work == SLAB_NONE;
    if (unplaced || (labelled != SLAB_NONE && worked_for(t, labelled, child, 0))) {
        hurt_both(t, index, labelled);
    }
}

void cause_child(struct tracker *t, const struct process *p, uint32_t index,
                 const struct live_span *spawn) {
    uint64_t child = spawn->from, label = p->label;
    if (request_find(t, label) == index) {
        return;
    }
    if (!is_piece(t, index)) { // else it is known later whose that is
        child_overtook(t, index, label, child);
    }
    struct process *c = process_find(t, child);
    c = c ? c : process_new(t, child, spawn->start);
    if (!c) {
        request_hurt(request_at(t, index), REASON_ROOM);
        return;
    }
    if (c->top != SLAB_NONE || c->episode != 0) {
        return; // it has overtaken that
    }
    uint32_t before;
    *episode_new(t, c, &before) = (struct episode){.start = spawn->start,
                                                   .end = spawn->start,
                                                   .label = label,
                                                   .request = index,
                                                   .generation = request_at(t, index)->generation,
                                                   .from = p->pid};
    c->label = label;
    c->work = index;
    c->work_generation = request_at(t, index)->generation;
}

struct children {
    struct tracker *tracker;
    uint32_t index;
    uint64_t label;
};

static void child_moves(void *context, uint32_t i, const struct live_span *record) {
    (void)i;
    const struct children *c = context;
    if (record->tier == RECORD_SPAWN && record->from != 0) {
        child_overtook(c->tracker, c->index, c->label, record->from);
    }
}

// -- the decision ---------------------------------------------------------------------------------

// What brought a call: a message of a process under a label, with its serial.
struct brought {
    uint64_t from;
    uint64_t label;
    uint64_t serial;
    uint64_t previous; // of the message that the process had got last
    int64_t time;      // of the call
};

// A call from a process of which nothing tells what it was at.
static uint32_t of_stranger(struct tracker *t, const struct brought *b, uint32_t labelled) {
    struct lent *lent = lent_find(t, b->label);
    if (lent) {
        lent_stranger(lent, b->time);
    }
    if (labelled != SLAB_NONE) {
        request_at(t, labelled)->strangers = true;
    }
    return labelled;
}

// The call of an entry that is open in a process, or NULL.
static const struct live_span *entry_call(const struct tracker *t, const struct process *p) {
    if (!in_entry(t, p)) {
        return NULL;
    }
    uint32_t i = p->top, root = request_at(t, p->begun)->root;
    while (i != SLAB_NONE && (call_at(t, i)->request != p->begun || call_at(t, i)->span != root)) {
        i = call_at(t, i)->below;
    }
    return i == SLAB_NONE ? NULL : span_at(t, call_at(t, i)->chunk, call_at(t, i)->span);
}

// Whether a sender had answered for what it did before the work that it is at when it sent this.
// The process that had asked for that has begun another request since then: with the answer, and so
// with a serial from behind it.
static bool answered(struct tracker *t, const struct brought *b, const struct episode *before) {
    const struct process *client =
        before && before->from != b->from ? process_find(t, before->from) : NULL;
    const struct live_span *entry = client ? entry_call(t, client) : NULL;
    return entry && entry->from == b->from && entry->start >= before->end &&
           client->begun_clock > before->clock && b->serial >= client->begun_clock;
}

// The latest episode, of this one and those before it, that a process was at when it sent what has
// this serial; NULL: none that is known.
static const struct episode *episode_sent(const struct tracker *t, const struct brought *b,
                                          const struct episode *e) {
    for (int n = 0; e && b->serial < e->clock && n < LOOKED_BACK; n++) {
        e = episode_find(t, e->before);
    }
    return e && b->serial >= e->clock ? e : NULL;
}

// The sender sent this before it began what it is at. What it was at then has a lower serial. Where
// it is not known to have worked for the label's request it was at that, if it had begun it itself.
static uint32_t of_sender_before(struct tracker *t, const struct brought *b, uint32_t labelled,
                                 bool own, const struct episode *e) {
    e = episode_sent(t, b, e);
    uint32_t index = e ? settled(t, e->request, e->generation) : SLAB_NONE;
    bool begun = e && (e->own || (index != SLAB_NONE && request_at(t, index)->has_begin &&
                                  request_at(t, index)->begin_pid == b->from));
    if (begun && !own) {
        return index;
    }
    if ((begun || !own) && index != labelled && lent_find(t, b->label)) {
        hurt_both(t, index, labelled);
    }
    return own ? labelled : of_stranger(t, b, labelled);
}

// The sender was at `open`, which the label does not say.
static uint32_t of_sender_at_work(struct tracker *t, const struct brought *b, uint32_t labelled,
                                  bool own, const struct work *open) {
    bool highest = b->serial == MESSAGE_LAST_SERIAL && open->clock == MESSAGE_LAST_SERIAL;
    bool told = b->serial > 0 && open->clock > 0 && !highest;
    // an answer to what it sent at this would have a higher serial
    bool early = told && b->previous > 0 && b->previous <= open->clock;
    // and what it sent at this before any answer had come is known, and had a higher one
    early = early || (told && b->serial < open->sent && b->previous != open->got);
    if (early || (told && b->serial < open->clock)) {
        return of_sender_before(t, b, labelled, own, episode_find(t, open->before));
    }
    bool lent = lent_find(t, b->label);
    if (!told && !lent && (own || !open->begun)) {
        return labelled;
    }
    // its serials may have been beyond those of the message that brought this: then it may have got
    // another one before
    if (told && !own && !open->begun && open->got > 0 && clock_next(open->got) < open->clock) {
        hurt_both(t, labelled, open->request);
    }
    if (!own || (told && open->begun)) {
        return open->request;
    }
    if (told && lent && b->previous > 0 && answered(t, b, episode_find(t, open->before))) {
        return open->request;
    }
    // a server may have sent it before, with a higher serial than its own calls tell
    hurt_both(t, labelled, open->request);
    return open->request;
}

// The sender was at nothing. What it was at long ago tells nothing.
static uint32_t of_idle_sender(struct tracker *t, const struct brought *b, uint32_t labelled,
                               bool own) {
    const struct episode *e = episode_sent(t, b, episode_at(t, process_find(t, b->from), b->time));
    uint32_t last = e ? settled(t, e->request, e->generation) : SLAB_NONE;
    bool told = e && e->clock > 0;
    if (own) {
        if (told && last != SLAB_NONE && last != labelled && lent_find(t, b->label)) {
            // it was not yet at the one when it did the other under this label
            hurt_both(t, labelled, last);
        }
        return labelled;
    }
    if (last == SLAB_NONE || !e->own) {
        return of_stranger(t, b, labelled);
    }
    if (!told && last != labelled) {
        hurt_both(t, labelled, last); // it has begun that itself, and sent this before, perhaps
    }
    return last;
}

// The request that a process was at under a label. Of several that have been this label's own it is
// the latest.
static uint32_t latest_under(const struct tracker *t, uint64_t label, uint32_t index,
                             uint32_t labelled) {
    bool own = index == SLAB_NONE ||
               (request_at(t, index)->token == label && request_at(t, index)->phase != PHASE_PIECE);
    return own ? labelled : index;
}

// The request that a call belongs to, by what its sender was at; SLAB_NONE: to none that is still
// open.
static uint32_t decide(struct tracker *t, const struct brought *b) {
    uint32_t known = request_find(t, b->label);
    uint32_t labelled = known == MAP_NONE ? SLAB_NONE : known;
    struct work w = work_at(t, b->from, b->time);
    if (w.state == WORK_UNKNOWN) {
        return labelled != SLAB_NONE && worked_for(t, labelled, b->from, 0)
                   ? labelled
                   : of_stranger(t, b, labelled);
    }
    const struct episode *early = w.label == b->label && b->serial < w.clock
                                      ? episode_sent(t, b, episode_find(t, w.before))
                                      : NULL;
    if (early && early->label == b->label) { // sent before that, under the same label
        return latest_under(t, b->label, settled(t, early->request, early->generation), labelled);
    }
    if (w.request != SLAB_NONE && w.request == labelled) {
        return labelled;
    }
    if (w.label == b->label) {
        return latest_under(t, b->label, w.request, labelled); // it was at that under this label
    }
    // what it did under this label before, perhaps in a piece
    const struct episode *under = episode_under(t, process_find(t, b->from), b->label, b->time);
    uint32_t before = labelled;
    if (under) {
        before = latest_under(t, b->label, settled(t, under->request, under->generation), labelled);
    }
    bool own = under || (before != SLAB_NONE && worked_for(t, before, b->from, 0));
    if (w.state == WORK_OPEN) {
        return of_sender_at_work(t, b, before, own, &w);
    }
    return of_idle_sender(t, b, own ? before : labelled, own);
}

// -- pieces ---------------------------------------------------------------------------------------

// Opens a request for a call that waits for what its sender was at. SLAB_NONE at the cap.
static uint32_t piece_open(struct tracker *t, const struct brought *b, struct process *sender) {
    uint32_t index = request_new(t, b->label, b->time);
    if (index == SLAB_NONE) {
        return SLAB_NONE;
    }
    struct request *r = request_at(t, index);
    r->sender = b->from;
    r->serial = b->serial;
    r->heard = b->previous;
    r->begin = b->time;
    r->next_waiting = SLAB_NONE;
    request_list(t, index, PHASE_PIECE, b->time + DISORDER_NS);
    uint32_t *link = sender ? &sender->waiting : NULL;
    while (link && *link != SLAB_NONE) {
        link = &request_at(t, *link)->next_waiting;
    }
    if (link) {
        *link = index;
    }
    return index;
}

// What a process remembers as a piece's, its open calls above all, is the other request's now,
// where the records have got other numbers.
static void process_move(struct tracker *t, uint64_t pid, uint32_t piece, uint32_t index,
                         uint32_t by) {
    struct process *p = process_find(t, pid);
    if (!p) {
        return;
    }
    uint32_t was = request_at(t, piece)->generation, is = request_at(t, index)->generation;
    if (p->guessed == piece && p->guessed_generation == was) {
        p->guessed = index;
        p->guessed_generation = is;
    }
    if (p->work == piece && p->work_generation == was) {
        p->work = index;
        p->work_generation = is;
    }
    p->returned = p->returned == piece ? index : p->returned;
    for (uint32_t i = p->top; i != SLAB_NONE; i = call_at(t, i)->below) {
        struct call *call = call_at(t, i);
        if (call->request == piece && call->generation == was) {
            call->request = index;
            call->generation = is;
            call->span += by;
        }
    }
}

struct moving {
    struct tracker *tracker;
    uint32_t piece, index, by;
    uint64_t moved; // the process that was told last
};

static void record_move(void *context, uint32_t i, const struct live_span *record) {
    (void)i;
    struct moving *m = context;
    if ((record->tier < RECORD_NONE || record->tier == RECORD_SPAWN) && record->pid != m->moved) {
        m->moved = record->pid;
        process_move(m->tracker, record->pid, m->piece, m->index, m->by);
    }
}

// Records that are moved by some places: their parents are, too.
static void parents_move(struct tracker *t, const struct request *r, uint32_t by) {
    uint32_t chunk = r->first_chunk;
    for (uint32_t i = 0; i < r->count; i++) {
        struct live_span *record = span_at(t, chunk, i);
        record->parent = record->parent == SPAN_NONE ? SPAN_NONE : record->parent + by;
        chunk = i % CHUNK_SPANS == CHUNK_SPANS - 1
                    ? SLAB_AT(&t->pool->chunks, struct chunk, chunk)->next
                    : chunk;
    }
}

// Hangs a piece's chunks behind a request's. False when there is no room for them.
static bool chunks_join(struct tracker *t, uint32_t at, uint32_t index) {
    struct request *piece = request_at(t, at), *r = request_at(t, index);
    struct live_span filler = {.parent = SPAN_NONE, .tier = RECORD_NONE};
    if (r->spans + piece->spans > LIMIT_SPANS_PER_REQUEST ||
        r->spawns + piece->spawns > LIMIT_SPAWNS_PER_REQUEST ||
        r->count + piece->count + CHUNK_SPANS > RECORDS) {
        return false;
    }
    while (r->count % CHUNK_SPANS != 0 && record_add(t, index, &filler)) {
    }
    parents_move(t, piece, r->count);
    struct moving moving = {t, at, index, r->count, 0};
    each_record(t, piece, &moving, record_move);
    if (r->last_chunk == SLAB_NONE) {
        r->first_chunk = piece->first_chunk;
    } else {
        SLAB_AT(&t->pool->chunks, struct chunk, r->last_chunk)->next = piece->first_chunk;
    }
    r->last_chunk = piece->last_chunk;
    r->count += piece->count;
    r->spans += piece->spans;
    r->open += piece->open;
    r->spawns += piece->spawns;
    return true;
}

// A piece is a part of a request from now on. What was told of it as a request of its own holds for
// that one.
static void piece_join(struct tracker *t, uint32_t at, uint32_t index) {
    struct request *piece = request_at(t, at), *r = request_at(t, index);
    if (piece->token != r->token && request_find(t, piece->token) != index) {
        t->counts.recredited_calls += piece->spans;
        cause_borrowed(t, index, piece->token);
        each_record(t, piece, &(struct children){t, index, piece->token}, child_moves);
    }
    if (piece->count > 0 && !chunks_join(t, at, index)) {
        r->cut = true;
        r->beyond += piece->spans;
        spans_free(t, piece);
    }
    r->beyond += piece->beyond;
    r->cut = r->cut || piece->cut;
    r->first = piece->first < r->first ? piece->first : r->first;
    r->last = piece->last > r->last ? piece->last : r->last;
    r->losses = (int32_t)(r->losses - piece->losses) > 0 ? piece->losses : r->losses;
    request_hurt(r, piece->damage);
    if (r->identity == IDENTITY_UNDEFINED) {
        r->identity = piece->identity;
        r->named_place = piece->named_place;
    }
    r->answers_due = (uint8_t)(r->answers_due + piece->answers_due);
    piece->first_chunk = piece->last_chunk = SLAB_NONE;
    piece->count = 0;
    piece->into = index;
    piece->into_generation = r->generation;
    request_list(t, at, PHASE_JOINED,
                 t->now > piece->last ? t->now + GRACE_NS : piece->last + GRACE_NS);
}

// It is decided where a piece belongs.
static void piece_settle(struct tracker *t, uint32_t at) {
    struct request *piece = request_at(t, at);
    struct brought b = {piece->sender, piece->token, piece->serial, piece->heard, piece->begin};
    uint32_t index = decide(t, &b);
    if (index == SLAB_NONE && request_find(t, b.label) == MAP_NONE && !closed_lately(t, b.label)) {
        index = request_for(t, b.label, b.time, TIER_NONE); // nobody has shown the label before
    }
    if (index == SLAB_NONE || index == at) {
        spans_stale(t, piece);
        request_forget(t, at);
    } else {
        piece_join(t, at, index);
    }
}

void pieces_settle(struct tracker *t, struct process *p, int64_t time) {
    uint32_t *link = &p->waiting;
    while (*link != SLAB_NONE) {
        uint32_t at = *link;
        struct request *piece = request_at(t, at);
        if (piece->begin < time) {
            *link = piece->next_waiting;
            piece_settle(t, at);
        } else {
            link = &piece->next_waiting;
        }
    }
}

void pieces_settle_due(struct tracker *t, int64_t now) {
    const struct list *l = &t->lists[PHASE_PIECE];
    while (l->head != SLAB_NONE && request_at(t, l->head)->deadline <= now) {
        struct request *piece = request_at(t, l->head);
        struct process *sender = process_find(t, piece->sender);
        int64_t begin = piece->begin;
        uint32_t head = l->head;
        if (sender) {
            pieces_settle(t, sender, begin == INT64_MAX ? begin : begin + 1);
        }
        if (l->head == head) { // it is in no sender's list
            piece_settle(t, head);
        }
    }
    l = &t->lists[PHASE_JOINED];
    while (l->head != SLAB_NONE && request_at(t, l->head)->deadline <= now) {
        request_forget(t, l->head);
    }
}

struct request_ref piece_settled(const struct tracker *t, struct request_ref ref) {
    uint32_t index = settled(t, ref.index, ref.generation);
    return index == SLAB_NONE ? NO_REQUEST
                              : (struct request_ref){index, request_at(t, index)->generation};
}

// -- calls ----------------------------------------------------------------------------------------

// Whether the label says what the sender, as far as its messages have come, is at.
static bool label_fits(struct tracker *t, struct process *p, const struct tracker_call *call,
                       uint32_t index) {
    struct request *r = request_at(t, index);
    struct process *from = call->from == call->pid ? p : process_find(t, call->from);
    if (!from) {
        r->strangers = true;
        return !t->lends || !lent_find(t, call->token);
    }
    if (from == p && p->work == SLAB_NONE) {
        return !t->lends || !lent_find(t, call->token); // it has done nothing else yet
    }
    if (from->said != 0 && has_said(t, from, call->time)) {
        return from->said == call->token;
    }
    if (from->begun_open > 0 && alive(t, from->begun, from->begun_generation) &&
        !request_at(t, from->begun)->has_end) {
        return from->begun_open > 1 ? r->begin_pid == call->from && !r->has_end
                                    : from->begun == index;
    }
    const struct call *top = from->top == SLAB_NONE || from == p ? NULL : call_at(t, from->top);
    // a spawn that raised stays until the process's next call
    if (top && top->tier != RECORD_SPAWN) {
        bool fits = top->request == index && top->generation == r->generation;
        if (fits && call->serial > from->clock) { // it has sent this
            from->clock = call->serial;
            from->sent = call->previous == from->got && from->got > 0 ? call->serial : from->sent;
        }
        return fits;
    }
    bool latest = from->work == index && from->work_generation == r->generation;
    return (latest && from->label == call->token) ||
           (!t->lends && (latest || r->begin_pid == call->from));
}

// The request of a call whose label does not fit, or is new. Apart from what is done for nearly
// every call, which stays small.
__attribute__((noinline)) static uint32_t sent_by_another(struct tracker *t, struct process *p,
                                                          const struct tracker_call *call,
                                                          uint16_t tier) {
    uint32_t index = request_find(t, call->token);
    struct process *sender = process_find(t, call->from);
    bool at_own = sender && begun_here(t, sender, call->time) != SLAB_NONE;
    // a new label: of a request that it opens, or whose begin is still to come and which is lent
    // already
    bool later = sender && sender != p &&
                 (at_own ? sender->begun_clock == 0 || call->serial >= sender->begun_clock
                         : sender->top != SLAB_NONE);
    if (index == MAP_NONE && !later && !lent_find(t, call->token) &&
        !closed_lately(t, call->token)) {
        index = request_for(t, call->token, call->time, tier);
        if (!sender && index != SLAB_NONE) {
            request_at(t, index)->strangers = true;
        }
        return index;
    }
    struct brought b = {call->from, call->token, call->serial, call->previous, call->time};
    bool hints = sender && (sender->begun != SLAB_NONE || sender->said != 0 ||
                            sender->label == call->token || call->serial > sender->clock);
    // else the label stands in any case; and where returns come without values, waiting would make
    // their joins unclear
    hints = hints && (!t->blind || t->lends || (at_own && call->serial > sender->clock));
    if (!hints && !lent_find(t, call->token)) {
        return request_for(t, call->token, call->time, tier);
    }
    if (!sender || sender->last < call->time) {
        index = piece_open(t, &b, sender);
        t->counts.refused_calls += index == SLAB_NONE;
        return index;
    }
    index = decide(t, &b);
    if (index == SLAB_NONE) {
        stale_count(t, tier, call->token);
    } else if (request_at(t, index)->token != call->token &&
               request_find(t, call->token) != index) {
        recredit(t, p, index, call->token);
    }
    return index;
}

// The request of a call of which nothing in its own process tells.
static uint32_t sent_by(struct tracker *t, struct process *p, const struct tracker_call *call,
                        uint16_t tier) {
    uint32_t index = request_find(t, call->token);
    return index != MAP_NONE && label_fits(t, p, call, index) ? index
                                                              : sent_by_another(t, p, call, tier);
}

// Whether a process that calls under another label than it had does so from within the call that is
// open: what answers a message that it sent there has a higher serial than its token had. Else it
// has taken the next message.
static bool answered_inside(const struct tracker *t, const struct process *p,
                            const struct tracker_call *call, uint16_t tier) {
    // the same tier again is a loop
    return call->serial > p->clock && call_at(t, p->top)->tier != tier;
}

// Whether who has sent the answer is known to have worked for the label's request, and not for the
// one that the open call is of: then it may be the next message, too.
static bool sent_for_another(struct tracker *t, const struct tracker_call *call, uint32_t inside) {
    uint32_t known = request_find(t, call->token);
    return call->from != call->pid && known != MAP_NONE && known != inside &&
           worked_for(t, known, call->from, 0) && !worked_for(t, inside, call->from, call->pid);
}

void tracker_says(struct tracker *t, const struct tracker_call *call, enum tracker_word word) {
    struct process *p = process_for(t, call->pid, call->time);
    if (p) {
        p->clock = call->serial > p->clock ? call->serial : p->clock;
        p->said = word == SAYS_NO_MORE ? 0 : call->token;
        p->said_at = call->time;
        p->said_within = word == SAYS_WITHIN;
        p->label = call->token;
        p->last_event = LAST_RETURN;
        p->returned = p->top == SLAB_NONE ? SLAB_NONE : call_at(t, p->top)->request;
    }
}

// The request that a process says it works for; SLAB_NONE when it is over, which is counted.
static uint32_t of_word(struct tracker *t, struct process *p, const struct tracker_call *call,
                        uint16_t tier) {
    uint32_t said = request_for(t, p->said, call->time, tier);
    if (said != SLAB_NONE && call->token != p->said && request_find(t, call->token) != said) {
        recredit(t, p, said, call->token);
    }
    return said;
}

static uint32_t of_process(struct tracker *t, struct process *p, const struct tracker_call *call,
                           uint16_t tier) {
    if (p->said != 0 && !p->said_within && p->said != call->token) {
        p->said = 0; // a message has brought another one
    }
    if (p->said != 0 && has_said(t, p, call->time)) {
        return of_word(t, p, call, tier);
    }
    uint32_t begun = p->begun == SLAB_NONE ? SLAB_NONE : begun_here(t, p, call->time);
    const struct call *top = p->top == SLAB_NONE ? NULL : call_at(t, p->top);
    if (begun != SLAB_NONE) {
        if (top && top->request != begun && same_request(t, top->request, begun) &&
            alive(t, top->request, top->generation)) {
            // a piece that is to be joined to it, and this call with the one below it
            return top->request;
        }
        if (call->token != request_at(t, begun)->token && request_find(t, call->token) != begun) {
            recredit(t, p, begun, call->token);
        }
        return begun;
    }
    const struct episode *last = top || !p->after_entry ? NULL : episode_find(t, p->episode);
    if (last && last->label == call->token) {
        // its entry has returned, and left it with that label
        uint32_t index = settled(t, last->request, last->generation);
        if (index == SLAB_NONE) {
            stale_count(t, tier, call->token);
        }
        return index;
    }
    if (top && alive(t, top->request, top->generation)) {
        uint32_t inside = top->request;
        if (request_at(t, inside)->token == call->token ||
            (p->label == call->token && p->work == inside)) {
            return inside;
        }
        if (!t->markers && request_find(t, call->token) == MAP_NONE &&
            !closed_lately(t, call->token)) {
            return request_for(t, call->token, call->time, tier);
        }
        // what has no return value may have been left in silence, by an exception: then it is over
        if (top->caller == 0 && answered_inside(t, p, call, tier)) {
            if (!sent_for_another(t, call, inside)) {
                recredit(t, p, inside, call->token);
                return inside;
            }
            uint32_t index = sent_by(t, p, call, tier);
            if (index != inside && lent_find(t, call->token)) {
                hurt_both(t, inside, index);
            }
            return index;
        }
    }
    return sent_by(t, p, call, tier);
}

uint32_t cause_find(struct tracker *t, struct process *p, const struct tracker_call *call,
                    uint16_t tier) {
    t->blind |= call->caller != 0;
    uint32_t index = of_process(t, p, call, tier);
    p->clock = call->serial > p->clock ? call->serial : p->clock;
    if (p->top == SLAB_NONE) {
        // it has sent nothing since it got this, or sent the last
        p->since_clock = clock_next(p->clock);
        p->got = call->from != call->pid ? call->serial : 0;
        p->sent = 0;
    }
    p->label = call->token;
    p->work = index;
    if (index != SLAB_NONE) {
        struct request *r = request_at(t, index);
        p->work_generation = r->generation;
        r->first = call->time < r->first ? call->time : r->first;
        r->last = call->time > r->last ? call->time : r->last;
    }
    return index;
}
