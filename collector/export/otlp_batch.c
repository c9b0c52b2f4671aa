// SPDX-License-Identifier: Apache-2.0
#include "export/otlp_batch.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "export/otlp_answer.h"
#include "export/otlp_points.h"
#include "export/pack.h"

enum {
    // the batch's bytes, and one item that is as long as it may be
    BYTES = LIMIT_OTLP_BATCH_BYTES + LIMIT_OTLP_ITEM_BYTES,
    KEEP_BYTES = 2 * LIMIT_OTLP_BATCH_BYTES // of its memory, for the next one
};

void otlp_batch_init(struct otlp_batch *b, enum otlp_signal signal, struct http *http) {
    *b = (struct otlp_batch){.signal = signal,
                             .http = http,
                             .bytes = buffer_make(BYTES),
                             .packed = buffer_make(BYTES + KEEP_BYTES)};
    otlp_trace_init(&b->trace);
}

void otlp_batch_free(struct otlp_batch *b) {
    buffer_free(&b->bytes);
    buffer_free(&b->packed);
    free(b->items);
    free(b->unsendable);
    otlp_trace_free(&b->trace);
    histogram_free(&b->histogram);
}

static void empty_buffer(struct buffer *b) {
    if (b->room > KEEP_BYTES) {
        size_t cap = b->cap;
        buffer_free(b);
        *b = buffer_make(cap);
    }
    buffer_reset(b);
}

static void empty(struct otlp_batch *b) {
    empty_buffer(&b->bytes);
    empty_buffer(&b->packed);
    empty_buffer(&b->trace.scope);
    b->count = b->unsendable_count = b->refusal_count = 0;
    b->refused = 0;
    b->moved = b->full = false;
    b->notice[0] = 0;
}

static bool fail(struct otlp_batch *b, const char *why) {
    snprintf(b->why, sizeof b->why, "%s", why);
    return false;
}

// -- reading --------------------------------------------------------------------------------------

static bool has_room(struct otlp_batch *b) {
    return b->bytes.len < LIMIT_OTLP_BATCH_BYTES && b->count < LIMIT_OTLP_BATCH_ITEMS &&
           b->unsendable_count < LIMIT_EXPORT_BATCH_REFUSALS &&
           array_grow((void **)&b->items, &b->room, b->count, sizeof *b->items) &&
           array_grow((void **)&b->unsendable, &b->unsendable_room, b->unsendable_count,
                      sizeof *b->unsendable);
}

// An item was written behind the others, or there is none for it: why. Whether there was memory.
static bool took(struct otlp_batch *b, size_t start, uint32_t count, struct otlp_place place,
                 const char *why) {
    if (why) {
        bool memory = b->bytes.failed;
        b->bytes.len = start;
        b->bytes.failed = false;
        if (memory && b->count > 0) { // what is there is sent, and then there is room
            return false;
        }
        struct otlp_unsendable *u = &b->unsendable[b->unsendable_count++];
        *u = (struct otlp_unsendable){b->count, count, place, ""};
        snprintf(u->reason, sizeof u->reason, "%s", why);
    } else {
        b->items[b->count++] = (struct otlp_item){(uint32_t)b->bytes.len, count, place};
    }
    b->place = place;
    b->moved = true;
    return true;
}

static bool begin_request(void *to, const struct otlp_request *r) {
    struct otlp_batch *b = to;
    if (!has_room(b)) {
        return false;
    }
    otlp_trace_begin(&b->trace, b->database_id, r);
    b->request_id = r->id;
    return true;
}

static void put_span(void *to, const struct otlp_span *span) {
    otlp_trace_span(&((struct otlp_batch *)to)->trace, span);
}

static bool end_request(void *to) {
    struct otlp_batch *b = to;
    size_t start = b->bytes.len;
    struct otlp_place place = b->place;
    place.request_id = b->request_id;
    bool written = otlp_trace_end(&b->trace, &b->bytes);
    return took(b, start, b->trace.spans, place, written ? NULL : "it is too long");
}

static bool take_point(void *to, const struct otlp_point *p) {
    struct otlp_batch *b = to;
    size_t start = b->bytes.len;
    struct otlp_place place = {b->place.request_id, p->bucket_start, p->node_id, p->identity_id};
    if (!has_room(b)) {
        return false;
    }
    const char *why = otlp_point_write(p, b->resolution_s, &b->histogram, &b->bytes);
    return took(b, start, OTLP_POINTS, place, why);
}

static enum otlp_read read_points(struct otlp_batch *b, struct store *s,
                                  const struct otlp_state *state, const struct otlp_time *time) {
    struct otlp_place behind;
    enum otlp_read read = otlp_points(s, state, time, take_point, b, &behind);
    if (read == OTLP_ALL) {
        b->moved = b->moved || behind.bucket_start > state->place.bucket_start;
        b->place = behind;
    }
    return read;
}

bool otlp_batch_read(struct otlp_batch *b, struct store *s, const struct otlp_state *state,
                     const struct otlp_time *time) {
    const struct otlp_taker taker = {begin_request, put_span, end_request, b};
    empty(b);
    if (!state->follows[b->signal]) {
        return true;
    }
    b->database_id = state->database_id;
    b->resolution_s = state->resolution_s;
    b->place = state->place;
    enum otlp_read read = b->signal == OTLP_TRACES ? otlp_requests(s, state, time, &taker)
                                                   : read_points(b, s, state, time);
    b->full = read == OTLP_MORE;
    if (read == OTLP_FAILED) {
        empty(b);
        snprintf(b->why, sizeof b->why, "%.*s", (int)sizeof b->why - 1, store_error(s));
        return false;
    }
    if (b->full && b->count + b->unsendable_count == 0) {
        return fail(b, "there is no memory to read what is to be sent");
    }
    return true;
}

// -- refusals -------------------------------------------------------------------------------------

static int64_t key_of(const struct otlp_batch *b, const struct otlp_place *place) {
    return b->signal == OTLP_TRACES ? place->request_id : place->bucket_start;
}

static void note(struct otlp_batch *b, const struct otlp_place *first,
                 const struct otlp_place *last, uint64_t items, const char *reason) {
    b->refused += items;
    if (b->refusal_count < LIMIT_EXPORT_BATCH_REFUSALS) {
        struct otlp_refusal *r = &b->refusals[b->refusal_count++];
        *r = (struct otlp_refusal){key_of(b, first), key_of(b, last), items, ""};
        snprintf(r->reason, sizeof r->reason, "%s", reason);
    }
}

static void refuse(void *context, uint32_t item, const char *reason) {
    struct otlp_batch *b = context;
    const struct otlp_item *i = &b->items[item];
    note(b, &i->place, &i->place, i->count, reason);
}

// -- sending --------------------------------------------------------------------------------------

static enum answer_meaning ask(struct otlp_batch *b, struct slice bytes,
                               struct otlp_partial *partial) {
    struct answer answer;
    buffer_reset(&b->packed);
    b->retry_s = 0;
    if (!pack_gzip(bytes, &b->packed)) {
        fail(b, "no memory to pack what is to be sent");
        return ANSWER_LATER;
    }
    const struct http_question q = {.path = b->signal == OTLP_TRACES ? "v1/traces" : "v1/metrics",
                                    .body = slice_of(b->packed.data, b->packed.len),
                                    .packed = true};
    if (!http_ask(b->http, &q, &answer, b->why)) {
        return ANSWER_LATER;
    }
    b->retry_s = answer.retry_s;
    return otlp_answer(&answer, partial, b->why);
}

static enum answer_meaning insert(void *context, uint32_t from, uint32_t until) {
    struct otlp_batch *b = context;
    struct otlp_partial partial;
    uint32_t start = from > 0 ? b->items[from - 1].end : 0;
    enum answer_meaning meaning =
        ask(b, slice_of(b->bytes.data + start, b->items[until - 1].end - start), &partial);
    if (meaning == ANSWER_DONE) {
        uint64_t count = 0;
        for (uint32_t i = from; i < until; i++) {
            count += b->items[i].count;
        }
        // whatever it says, it was not given more
        uint64_t rejected = partial.rejected < count ? partial.rejected : count;
        b->sent += count - rejected;
        if (rejected > 0) {
            note(b, &b->items[from].place, &b->items[until - 1].place, rejected,
                 partial.message[0] ? partial.message : "the receiver does not say why");
        } else if (partial.message[0]) {
            snprintf(b->notice, sizeof b->notice, "%s", partial.message);
        }
    }
    return meaning;
}

// What cannot be sent in front of what is certain is certain, too.
static void note_unsendable(struct otlp_batch *b, uint32_t done) {
    for (uint32_t i = 0; i < b->unsendable_count && b->unsendable[i].before <= done; i++) {
        const struct otlp_unsendable *u = &b->unsendable[i];
        note(b, &u->place, &u->place, u->count, u->reason);
    }
}

bool otlp_batch_send(struct otlp_batch *b, struct otlp_report *report) {
    struct parts p = {.insert = insert, .refuse = refuse, .context = b, .why = b->why};
    bool all = b->count == 0 || parts_send(&p, b->count) == SENT_ALL;
    uint32_t done = all ? b->count : p.done;
    *report = (struct otlp_report){.signal = b->signal, .refusals = b->refusals};
    if (all || done > 0) {
        if (all || done == b->count) {
            report->place = b->place;
        } else {
            report->place = b->items[done - 1].place;
        }
        note_unsendable(b, done);
        report->database_id = b->moved ? b->database_id : 0;
        report->refusal_count = b->refusal_count;
        report->refused = b->refused;
    }
    return all;
}

bool otlp_batch_knock(struct otlp_batch *b) {
    struct otlp_partial partial;
    enum answer_meaning meaning = ask(b, slice_of("", 0), &partial);
    // one that does not take nothing is there, too
    return meaning == ANSWER_DONE || meaning == ANSWER_REFUSED;
}
