// SPDX-License-Identifier: Apache-2.0
// What is sent to a receiver of OTLP at once: items, which are kept requests or data points, out of
// the database, each a message of its own; and how far it was sent. One thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/limits.h"
#include "export/http.h"
#include "export/otlp_spans.h"
#include "export/parts.h"
#include "model/stats/histogram.h"
#include "store/otlp.h"

struct otlp_item {
    uint32_t end;   // of its bytes in the batch's
    uint32_t count; // spans, data points
    struct otlp_place place;
};

// An item that cannot be sent, as there is no message for it.
struct otlp_unsendable {
    uint32_t before; // it stands in front of this item
    uint32_t count;
    struct otlp_place place;
    char reason[CHANGE_REASON_BYTES];
};

struct otlp_batch {
    enum otlp_signal signal;
    int64_t database_id;
    uint32_t resolution_s;
    struct buffer bytes; // of all items, one after the other
    struct otlp_item *items;
    uint32_t count, room;
    struct otlp_unsendable *unsendable;
    uint32_t unsendable_count, unsendable_room;
    struct otlp_place place; // behind all of them, when they are sent
    bool moved;              // that is another one than before
    bool full;               // there was more than fits
    int64_t request_id;      // of the request that is being written; scratch, and so are
    struct otlp_trace trace;
    struct histogram histogram;

    // as it is sent
    struct http *http;
    struct buffer packed;
    uint64_t sent;    // items' spans or data points that the receiver has taken, in all batches
    uint32_t retry_s; // for so long it wants not to be asked
    uint64_t refused; // of this batch, and
    struct otlp_refusal refusals[LIMIT_EXPORT_BATCH_REFUSALS]; // the first of them
    uint32_t refusal_count;
    char why[CHANGE_REASON_BYTES]; // what went wrong last
    char
        notice[CHANGE_REASON_BYTES]; // what the receiver has said of what it has taken; "": nothing
};

// http lives until it has another one.
void otlp_batch_init(struct otlp_batch *b, enum otlp_signal signal, struct http *http);
void otlp_batch_free(struct otlp_batch *b);

// Empties it, and takes up what is due in a database. False on failure: why, and it is empty. A
// database that is not followed has nothing.
bool otlp_batch_read(struct otlp_batch *b, struct store *s, const struct otlp_state *state,
                     const struct otlp_time *time);

// Sends it. What is certain afterwards, all of it or a part, is in *report, which is valid until
// the next call: nothing, when its database_id is 0. False when not all of it is: why.
bool otlp_batch_send(struct otlp_batch *b, struct otlp_report *report);
// Asks the receiver with nothing in it, whether it is there.
bool otlp_batch_knock(struct otlp_batch *b);
