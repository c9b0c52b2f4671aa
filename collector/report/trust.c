// SPDX-License-Identifier: Apache-2.0
#include "report/trust.h"

#include <stdio.h>
#include <string.h>

#include "base/text_amount.h"

const char *trust_verdict(const struct query_sums *sums) {
    const struct ledger_row *l = &sums->ledger;
    if (l->paused_ms > 0 || l->tripped_ms > 0 || l->away_ms > 0) {
        return "paused";
    }
    if (l->requests_incomplete > l->incomplete_cause || l->requests_expired > 0 ||
        l->dropped_messages > 0 || l->orphan_returns > 0 || l->decode_errors > 0 ||
        l->unwound_frames > 0 || l->ambiguous_returns > 0 || l->unwritten_rows > 0) {
        return "lossy";
    }
    return trust_stale(sums) || l->incomplete_cause > 0 ? "unclear" : "ok";
}

const char *trust_completeness(const struct query_sums *sums) {
    const struct ledger_row *l = &sums->ledger;
    const char *verdict = trust_verdict(sums);
    if (strcmp(verdict, "ok") != 0) {
        return strcmp(verdict, "unclear") == 0 ? "unclear" : "lost";
    }
    return l->stale_calls > 0 || l->untraced_ms > 0 || l->lost_tokens > 0 ? "no request lost"
                                                                          : "nothing lost";
}

bool trust_stale(const struct query_sums *sums) {
    return sums->ledger.stale_calls > sums->ledger.calls / 1000;
}

double trust_requests(const struct ledger_row *l) {
    return (double)l->requests_complete + (double)l->requests_incomplete +
           (double)l->requests_expired;
}

uint64_t trust_long_missing(const struct ledger_row *l) {
    uint64_t for_room =
        l->incomplete_room < l->requests_incomplete ? l->incomplete_room : l->requests_incomplete;
    return l->requests_incomplete - for_room + l->requests_expired;
}

bool trust_biased(const struct query_sums *sums) {
    static const double much = 0.01; // what makes a 99th percentile another one
    const struct ledger_row *l = &sums->ledger;
    return l->requests_complete > 0 && (double)trust_long_missing(l) > much * trust_requests(l);
}

bool trust_unmarked(const struct ledger_row *l) {
    return l->unmarked_calls > 0 && trust_requests(l) + (double)l->requests_unsampled == 0;
}

char *trust_unmarked_text(uint64_t calls, char out[TRUST_UNMARKED_BYTES]) {
    char count[TEXT_GROUPED_BYTES];
    snprintf(out, TRUST_UNMARKED_BYTES, "%s call%s, but nothing has begun a request",
             text_grouped(calls, count), text_plural(calls));
    return out;
}
