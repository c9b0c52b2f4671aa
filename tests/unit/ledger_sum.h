// SPDX-License-Identifier: Apache-2.0
// The ledger of all buckets of a pipeline, as one row.
#pragma once

#include "unit.h"

#include "ingest/pipeline.h"

static inline struct ledger_row ledger_sum(const struct pipeline *p) {
    const struct stats *s = pipeline_stats(p);
    struct ledger_row sum = {0};
    for (uint32_t i = 0; i < stats_ledgers(s); i++) {
        const struct ledger_row *r = stats_ledger_at(s, i);
#define ADD_COUNT(column) sum.column += r->column;
        LEDGER_COLUMNS(ADD_COUNT)
#undef ADD_COUNT
        // Each incomplete request has one reason.
        assert_int_equal(r->requests_incomplete, r->incomplete_loss + r->incomplete_token +
                                                     r->incomplete_cause + r->incomplete_return +
                                                     r->incomplete_reload + r->incomplete_large +
                                                     r->incomplete_room + r->incomplete_end);
    }
    return sum;
}
