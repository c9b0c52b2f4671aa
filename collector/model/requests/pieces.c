// SPDX-License-Identifier: Apache-2.0
// Pieces: calls, and what hangs on them, that wait in a request of their own until it is known what
// their sender was at.
#include "causes.h"

uint32_t piece_open(struct tracker *t, const struct brought *b, struct process *sender) {
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

static void record_move(void *context, uint32_t i, const struct span_record *record) {
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
        struct span_record *record = span_at(t, chunk, i);
        record->parent = record->parent == SPAN_NONE ? SPAN_NONE : record->parent + by;
        chunk = i % CHUNK_SPANS == CHUNK_SPANS - 1
                    ? SLAB_AT(&t->pool->chunks, struct chunk, chunk)->next
                    : chunk;
    }
}

// Hangs a piece's chunks behind a request's. False when there is no room for them.
static bool chunks_join(struct tracker *t, uint32_t at, uint32_t index) {
    struct request *piece = request_at(t, at), *r = request_at(t, index);
    struct span_record filler = {.parent = SPAN_NONE, .tier = RECORD_NONE};
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
        children_move(t, piece, index);
    }
    if (piece->count > 0 && !chunks_join(t, at, index)) {
        r->cut = true;
        r->beyond += piece->spans;
        spans_free(t, piece);
    }
    r->beyond += piece->beyond;
    r->borrowed = r->borrowed || piece->borrowed;
    r->perhaps = r->perhaps || piece->perhaps;
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
    uint32_t index = sender_request(t, &b);
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
}

void pieces_forget_due(struct tracker *t, int64_t now) {
    const struct list *l = &t->lists[PHASE_JOINED];
    while (l->head != SLAB_NONE && request_at(t, l->head)->deadline <= now) {
        request_forget(t, l->head);
    }
}

struct request_ref piece_settled(const struct tracker *t, struct request_ref ref) {
    uint32_t index = work_settled(t, ref.index, ref.generation);
    return index == SLAB_NONE ? NO_REQUEST
                              : (struct request_ref){index, request_at(t, index)->generation};
}
