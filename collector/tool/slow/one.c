// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include "base/text_amount.h"
#include "base/time_math.h"
#include "tool/slow/print.h"

static bool is(const char *text, const char *what) {
    return strcmp(text, what) == 0;
}

// What belongs to the request on another node. Its offset rests on both nodes' clocks.
static void part_line(const struct slow_part *part, int64_t began, struct buffer *out) {
    char duration[TEXT_DURATION_BYTES], offset[TEXT_DURATION_BYTES];
    int64_t later = time_sub(part->started_ns, began);
    buffer_printf(out, part->remote ? " Its part on " : " The request itself on ");
    buffer_text(out, part->node);
    buffer_printf(out, ": %s, begun %s %s, kprof slow %" PRId64 "\n",
                  text_duration((double)part->duration_ns, duration),
                  text_duration(later < 0 ? -(double)later : (double)later, offset),
                  later < 0 ? "earlier" : "later", part->id);
}

static void header(const struct slow_spans *of, const struct waterfall_style *style,
                   struct buffer *out) {
    const struct slow_request *r = &of->request;
    char duration[TEXT_DURATION_BYTES], started[TEXT_TIME_BYTES];
    waterfall_title(style, true, out);
    buffer_printf(out, " Request %" PRId64 ", ", r->id);
    buffer_text(out, r->identity); // of any length
    buffer_printf(out, ": %s, %s, at %s on ", text_duration((double)r->duration_ns, duration),
                  r->outcome, slow_started(r->started_ns, started));
    buffer_text(out, r->node);
    waterfall_title(style, false, out);
    buffer_printf(out, "\n Kept because %s. %" PRIu32 " span%s.\n",
                  is(r->reason, "over")     ? "it took longer than the threshold"
                  : is(r->reason, "failed") ? "it failed"
                                            : "it was among the slowest of its time",
                  r->spans, text_plural(r->spans));
    if (r->origin) {
        buffer_text(out, " Remote: a part of a request of ");
        buffer_text(out, r->origin);
        buffer_text(out, ".\n");
    }
    if (r->trace_id) {
        buffer_text(out, " Asked for in trace ");
        buffer_text(out, r->trace_id);
        buffer_text(out, " by span ");
        buffer_text(out, r->parent_span_id ? r->parent_span_id : "?");
        buffer_text(out, ".\n");
    }
    for (uint32_t i = 0; i < of->part_count; i++) {
        part_line(&of->parts[i], r->started_ns, out);
    }
}

// What is not in it.
static void left_out(const struct slow_request *r, struct buffer *out) {
    if (r->kept < r->spans) {
        buffer_printf(out, "\n %" PRIu32 " of %" PRIu32 " spans were kept, the first by start.\n",
                      r->kept, r->spans);
    }
    if (r->cut) {
        buffer_text(
            out,
            "\n"
            " It had more spans than the collector takes: it counts as incomplete, and what was "
            "cut is not here.\n");
    }
}

void slow_waterfall(const struct slow_spans *spans, const struct waterfall_style *style,
                    struct buffer *out) {
    header(spans, style, out);
    waterfall_draw(spans, WATERFALL_TIERS, style, out);
    left_out(&spans->request, out);
}
