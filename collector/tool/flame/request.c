// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>

#include "base/text_amount.h"
#include "tool/flame/print.h"
#include "tool/text.h"

static void put_clean(struct buffer *out, const char *name) {
    char text[FLAME_NOTE_BYTES];
    snprintf(text, sizeof text, "%s", name);
    text_clean(text);
    buffer_text(out, text);
}

static void header(const struct slow_request *r, int64_t id, const struct waterfall_style *style,
                   struct buffer *out) {
    char duration[TEXT_DURATION_BYTES];
    waterfall_title(style, true, out);
    buffer_printf(out, " The longest request of profile %" PRId64 "%s", id,
                  r->identity[0] ? ", " : "");
    put_clean(out, r->identity);
    buffer_printf(out, ": %s on ", text_duration((double)r->duration_ns, duration));
    put_clean(out, r->node);
    waterfall_title(style, false, out);
    buffer_printf(out, "\n %" PRIu32 " call%s.\n", r->spans, text_plural(r->spans));
}

// What is not in it, or not told apart.
static void left_out(const struct longest *l, struct buffer *out) {
    const struct slow_request *r = &l->spans.request;
    if (r->kept < r->spans) {
        buffer_printf(out,
                      "\n %" PRIu32 " of %" PRIu32 " calls are drawn, those at which most time "
                      "passed: %.1f %% of all; --limit draws more.\n",
                      r->kept, r->spans,
                      l->own_ns > 0 ? 100 * (double)l->here_ns / (double)l->own_ns : 100);
    }
    if (l->in_self[0]) {
        buffer_text(out, "\n ");
        put_clean(out, l->in_self);
        buffer_text(out, ".\n");
    }
    if (r->cut) {
        buffer_text(out, "\n It was more than there was room for: what came later is not known.\n");
    }
}

void flame_request(const struct longest *longest, int64_t id, const struct waterfall_style *style,
                   struct buffer *out) {
    header(&longest->spans.request, id, style, out);
    waterfall_draw(&longest->spans, WATERFALL_FUNCTIONS, style, out);
    left_out(longest, out);
}
