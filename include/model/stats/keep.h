// SPDX-License-Identifier: Apache-2.0
// Chooses the requests that are kept whole: of each node, identity and bucket up to LIMIT_KEPT_OVER
// that took longer than the threshold, LIMIT_KEPT_FAILED that failed, and LIMIT_KEPT_SLOWEST
// others; the slowest of each, and of equally slow ones the earliest. A request stands under the
// first of these reasons that applies, and under no other.
//
// A request is offered when it has closed, and taken when it is better than the worst that its
// bucket has so far. So one that is taken may be pushed out by a later one: the store does that.
// What is remembered takes 568 bytes for each node and identity that was seen, up to
// LIMIT_KEEP_RECORDS; what does not fit is taken without comparing.
#pragma once

#include "model/stats/account.h"

struct keep; // opaque; one thread

struct keep *keep_new(void); // NULL without memory
void keep_free(struct keep *k);
// It is one of so many that share the cap. Before it is used.
void keep_divide(struct keep *k, uint32_t keeps);
// Offers a request that is complete, or cut at the cap (result->cut). over_ns: the node's
// threshold, INT64_MAX for none. Puts it into the account's statistics, with its first
// LIMIT_KEPT_SPANS spans, when it is to be kept. Returns whether it was; not, too, when the
// statistics have no room for it.
bool keep_offer(struct keep *k, const struct account *a, const struct request_result *result,
                int64_t over_ns);
// Forgets what is remembered of a node, or of an identity of all nodes: it is gone, or the id is to
// be another's.
void keep_forget_node(struct keep *k, uint16_t node);
void keep_forget_identity(struct keep *k, uint16_t identity);
// Gives back memory that a burst took. Call once a second.
void keep_trim(struct keep *k);
