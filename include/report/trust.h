// SPDX-License-Identifier: Apache-2.0
// Whether the numbers of an answer can be trusted, and which requests they lack.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/query.h"

// "ok", "unclear", "lossy" or "paused": the same rule as in the view ledger.
const char *trust_verdict(const struct query_sums *sums);
// How much of what happened is in the numbers: "nothing lost", "no request lost", "unclear" or
// "lost".
const char *trust_completeness(const struct query_sums *sums);
// Whether so many calls came under tokens of requests that were over that work must have been done
// under others' tokens.
bool trust_stale(const struct query_sums *sums);
// Whether so many long requests are missing that the true times are higher than those told.
bool trust_biased(const struct query_sums *sums);

// All requests that began and were not left out by sampling. No integer: an edited database may
// tell of more than one holds.
double trust_requests(const struct ledger_row *l);
// Of these, those of which the statistics know nothing for reasons that hit the long ones more: the
// longer one takes, the more can happen to it.
uint64_t trust_long_missing(const struct ledger_row *l);
// Whether tiers were called, but nothing has begun a request.
bool trust_unmarked(const struct ledger_row *l);
// What is said then: "4,120 calls, but nothing has begun a request". Returns out.
enum { TRUST_UNMARKED_BYTES = 160 };
char *trust_unmarked_text(uint64_t calls, char out[TRUST_UNMARKED_BYTES]);
// And what to do about it.
#define TRUST_UNMARKED_ADVICE "give --entry, or mark requests (README, Your own node)"
