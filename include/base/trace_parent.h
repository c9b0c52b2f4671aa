// SPDX-License-Identifier: Apache-2.0
// The span of somebody's trace that has asked for a request, as W3C Trace Context tells it in the
// header `traceparent`. It comes from strangers: only trace_parent_read and trace_parent_parse make
// one.
//
//   0                16           24      25
//   | id of the trace | of the span | flags |
#pragma once

#include "base/bytes.h"

enum { TRACE_ID_BYTES = 16, SPAN_ID_BYTES = 8, TRACE_PARENT_BYTES = 25 };

// Nothing has asked for a request where all of it is 0: no id is.
struct trace_parent {
    uint8_t trace_id[TRACE_ID_BYTES];
    uint8_t span_id[SPAN_ID_BYTES];
    uint8_t flags; // bit 0: who asked keeps the trace (sampled), bit 1: its id was made at random
};
_Static_assert(sizeof(struct trace_parent) == TRACE_PARENT_BYTES, "bytes as they are drawn");

// Reads one. False, and *out is all 0: these bytes are none.
bool trace_parent_read(struct slice bytes, struct trace_parent *out);

// The same of ids in hexadecimal digits, in lower case, as the standard has them.
bool trace_parent_parse(struct slice trace_id, struct slice span_id, uint8_t flags,
                        struct trace_parent *out);

static inline bool trace_parent_known(const struct trace_parent *p) {
    static const uint8_t none[TRACE_ID_BYTES];
    return memcmp(p->trace_id, none, TRACE_ID_BYTES) != 0;
}
