// SPDX-License-Identifier: Apache-2.0
// A kept request as spans of OTLP: the request itself, and a span for each call below it.
//
// Its ids come out of what the request is, so that it has the same ones whenever it is sent, and
// the parts of a request on several nodes are one trace, whoever sends them: the trace's id is that
// of the node whose request it is and of its label, and so is the id of the request's own span,
// below which parts stand. Without a label they come out of the database's number and the request's
// row. Where a span of somebody's trace has asked for the request, that is its parent, and its
// trace is that one; so it is of parts of which that is known.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "store/otlp.h"

// One request while it is written. Make it with otlp_trace_init.
struct otlp_trace {
    uint8_t trace_id[TRACE_ID_BYTES];
    uint8_t root_id[SPAN_ID_BYTES]; // of the request's span
    uint32_t flags;                 // of the spans below it; 0: nothing is known
    int64_t begin_ns;
    char node[256];
    struct buffer scope; // its ScopeSpans so far
    uint32_t spans;      // in there
};

void otlp_trace_init(struct otlp_trace *t);
void otlp_trace_free(struct otlp_trace *t);
void otlp_trace_begin(struct otlp_trace *t, int64_t database_id, const struct otlp_request *r);
void otlp_trace_span(struct otlp_trace *t, const struct otlp_span *span);
// Appends the request as a message of its own, ExportTraceServiceRequest: such messages one behind
// the other are one that has all of them. False: it is too long, or there is no memory.
bool otlp_trace_end(struct otlp_trace *t, struct buffer *out);
