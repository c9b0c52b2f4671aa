// Chooses the requests that are kept whole: of each node, identity and bucket the LIMIT_KEPT_SLOWEST slowest, up to
// LIMIT_KEPT_FAILED that failed (the slowest of them) and up to LIMIT_KEPT_OVER over the threshold (the slowest of them). A request is offered when it has closed
// and taken when it is better than the worst that its bucket has; so one that is taken may be pushed out by a later one, which
// the store does.
#pragma once

#include "model/account.h"

struct keep; // opaque; one thread

struct keep *keep_new(void); // NULL without memory
void keep_free(struct keep *k);
// Offers a request that is complete, or cut at the cap (result->cut). over_ns: the node's threshold; INT64_MAX: none. Puts it into the account's statistics when
// it is to be kept. Returns whether it was.
bool keep_offer(struct keep *k, const struct account *a, const struct request_result *result, int64_t over_ns);
