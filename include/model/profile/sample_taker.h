// SPDX-License-Identifier: Apache-2.0
// Takes the records that a shim sends for a run of stack sampling: its numbers become the
// profile's. One thread at a time.
#pragma once

#include "model/profile/profile.h"
#include "model/profile/sample_labels.h"
#include "model/profile/samples.h"

struct sample_taker; // opaque

// Takes for a profile, which gets samples; it must outlive the taker. NULL without memory.
struct sample_taker *sample_taker_new(struct profile *p);
void sample_taker_free(struct sample_taker *t);
// Bytes that it takes, without its profile.
size_t sample_taker_bytes(const struct sample_taker *t);
// Takes some records. False when they are none, or name what was never told: no more may be taken.
bool sample_taker_take(struct sample_taker *t, struct slice records);
// The time that the records have come to, µs from the begin of those that it has taken.
uint64_t sample_taker_us(const struct sample_taker *t);
// Forgets the looks that were taken, and has times begin at 0 again: frames, stacks and processes
// stay. Returns the time that has passed, in µs.
uint64_t sample_taker_clear(struct sample_taker *t);
// The labels of what it takes: to be told of requests, and to be settled when all is taken.
struct sample_labels *sample_taker_labels(struct sample_taker *t);
