// SPDX-License-Identifier: Apache-2.0
// For which requests processes worked at the looks of a run of stack sampling. A shim tells the
// label of the token that a process holds; what that request is called is known later, most times
// when it is over. Until then the looks stand behind a number of the label (SAMPLE_LABEL), and
// sample_labels_settle puts identities in its place.
//
// A process holds a token until its next message comes: looks from the end of its request on are of
// SAMPLE_ENDED. Those under a label of which nothing is known are of SAMPLE_NOT_KNOWN. Where a pool
// or a lock lends a token, it is the token that counts.
//
// Times are µs from the run's begin. One thread at a time.
#pragma once

#include "model/profile/profile.h"

#define SAMPLE_ENDED "_ended"
#define SAMPLE_NOT_KNOWN "_not_known"
// Bytes that a label's record takes at most beyond its own when nothing is known of the request.
enum { SAMPLE_LABEL_MORE = 12 };

struct sample_labels; // opaque

// What is known of a request.
struct sample_request {
    uint64_t label;
    struct slice identity; // empty: it has none
    int64_t end_us;        // INT64_MAX: it goes on, or nobody knows
};

// Of a profile, which has samples; it must outlive them. NULL without memory.
struct sample_labels *sample_labels_new(struct profile *p);
// Bytes that they take.
size_t sample_labels_bytes(const struct sample_labels *l);
void sample_labels_free(struct sample_labels *l);
// Whether nearly all numbers are given out.
bool sample_labels_full(const struct sample_labels *l);
// The number under which a label's looks are kept, the same for each of its processes. Where there
// is no room for another one: that of what is not known.
uint32_t sample_labels_number(struct sample_labels *l, uint64_t label);
// A request is over. It may be told before a look has seen its label, if not long before.
void sample_labels_over(struct sample_labels *l, const struct sample_request *request);
// The run is over: the records of the profile tell identities from now on, and no labels. find
// tells what is known of a request of which nothing was told, false: nothing. False without memory
// or room; the records are then as they were.
bool sample_labels_settle(struct sample_labels *l,
                          bool (*find)(void *user, struct sample_request *request), void *user);
