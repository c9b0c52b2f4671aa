// SPDX-License-Identifier: Apache-2.0
// Requests that were kept whole, for people and for programs. Text out, nothing else: the queries
// are made by kprof slow. All of these take what the store answered, cleaned by the functions
// below.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/text_time.h"
#include "store/query_slow.h"

// How a waterfall is drawn.
struct slow_style {
    uint32_t width; // columns of a line; where names need more, lines are longer
    bool utf8;      // bars of block characters; otherwise of '#'
    bool colour;    // with the terminal's colours
};

// Overwrite, in place, what could steer a terminal.
void slow_clean_list(struct slow_list *list);
void slow_clean_spans(struct slow_spans *spans);

// When a request began, as the view slow_requests tells it: 2026-11-20T10:00:00.123456Z. Returns
// out.
char *slow_started(int64_t ns, char out[TEXT_TIME_BYTES]);

// The list: a line a request and how to see one of them. limited: there may be more than these.
// Check out->failed.
void slow_table(const struct slow_list *list, const char *db, bool limited, struct buffer *out);
// One request: a line on it, then a line a span in tree order, children under their parent by
// start. Spans whose parent is none of those before them stand at the top. Check out->failed.
void slow_waterfall(const struct slow_spans *spans, const struct slow_style *style,
                    struct buffer *out);

// Puts what other nodes did for a request among its own spans: done[i] is what of->parts[i] was,
// without spans where that is not known, and must stay as long. What a process of another node
// asked for stands below its call; a part stands where its own node's clock says that it began, but
// within that call. Where nothing is known of that process it stands within the request, below the
// call of the request's own node that was open then. False without memory: nothing has changed.
bool slow_join(struct slow_spans *of, const struct slow_spans *done);

// One JSON object and a newline each; described in `kprof slow --help`.
void slow_list_json(const struct slow_list *list, struct buffer *out);
void slow_spans_json(const struct slow_spans *spans, struct buffer *out);
