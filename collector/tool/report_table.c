#include "tool/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_time.h"
#include "tool/text.h"

enum { CELL_BYTES = 160, GAP = 4, AFTER_TIERS = 3 }; // the columns after the tiers: total, requests, errors

static const char totals_label[] = "Totals across all calls:";

// -- cells
// -----------------------------------------------------------------------------------------------------------------

// Less than this share of a tier's time is not worth a mark of its own in the cell.
static const double negligible = 0.01;

// The two parts of a tier's time, in all that the report shows of it: which of them are worth showing.
struct parts {
    bool sync;
    bool async;
};

static struct parts parts_of(const struct query_row *row) {
    double all = (double)row->total_ns + (double)row->async_ns;
    struct parts p = {.async = row->async_calls > 0 && (double)row->async_ns >= negligible * all};
    p.sync = !p.async || (row->calls > row->async_calls && (double)row->total_ns >= negligible * all);
    return p;
}

// A tier's mean per request of the identity, its asynchronous part behind a '~'.
static void tier_cell(const struct query_row *row, const struct query_row *request, char out[CELL_BYTES]) {
    char sync[TEXT_DURATION_BYTES] = "", async[TEXT_DURATION_BYTES] = "";
    if (!row || !request || request->calls == 0) {
        snprintf(out, CELL_BYTES, "-");
        return;
    }
    struct parts p = parts_of(row);
    if (p.sync) {
        text_duration((double)row->total_ns / (double)request->calls, sync);
    }
    if (p.async) {
        text_duration((double)row->async_ns / (double)request->calls, async);
    }
    snprintf(out, CELL_BYTES, "%s%s%s%s", sync, p.sync && p.async ? " " : "", p.async ? "~" : "", async);
}

// The text of any cell; column tier_count and on are the total, requests, errors.
static void cell(const struct report *r, uint32_t identity, uint32_t column, char out[CELL_BYTES]) {
    const struct query_row *request = report_cell(r, identity, r->tier_count);
    if (column < r->tier_count) {
        tier_cell(report_cell(r, identity, column), request, out);
    } else if (!request) {
        snprintf(out, CELL_BYTES, "-");
    } else if (column == r->tier_count) {
        text_duration(request->calls ? (double)request->duration_ns / (double)request->calls : 0, out);
    } else {
        snprintf(out, CELL_BYTES, "%llu",
                 (unsigned long long)(column == r->tier_count + 1 ? request->calls : request->errors));
    }
}

// Whether all calls of a tier, as far as the report shows them, were asynchronous.
static bool async_only(const struct report *r, uint32_t tier) {
    for (uint32_t i = 0; i < r->identity_count; i++) {
        const struct query_row *row = report_cell(r, i, tier);
        if (row && row->calls > row->async_calls) {
            return false;
        }
    }
    return true;
}

static void heading(const struct report *r, uint32_t column, char out[CELL_BYTES]) {
    static const char *const after[AFTER_TIERS] = {"total", "requests", "errors"};
    if (column < r->tier_count) {
        snprintf(out, CELL_BYTES, "%s%s", async_only(r, column) ? "~" : "", r->tiers[column]);
    } else {
        snprintf(out, CELL_BYTES, "%s", after[column - r->tier_count]);
    }
}

static const char *label(const char *identity) {
    return strcmp(identity, "_total") == 0 ? totals_label : identity;
}

// -- table
// -----------------------------------------------------------------------------------------------------------------

static void widen(size_t *width, const char *text) {
    size_t w = text_width(text);
    *width = w > *width ? w : *width;
}

// How wide each column has to be; widths[0] is the names', the others follow.
static size_t *measure(const struct report *r, uint32_t columns) {
    size_t *widths = calloc(columns + 1, sizeof *widths);
    char text[CELL_BYTES];
    for (uint32_t i = 0; widths && i < r->identity_count; i++) {
        widen(&widths[0], label(r->identities[i]));
    }
    for (uint32_t c = 0; widths && c < columns; c++) {
        heading(r, c, text);
        widen(&widths[c + 1], text);
        for (uint32_t i = 0; i < r->identity_count; i++) {
            cell(r, i, c, text);
            widen(&widths[c + 1], text);
        }
    }
    return widths;
}

static void rule(struct buffer *out, const size_t *widths, uint32_t columns) {
    size_t width = widths[0];
    for (uint32_t c = 0; c < columns; c++) {
        width += GAP + widths[c + 1];
    }
    buffer_text(out, " ");
    while (width-- > 0) {
        buffer_text(out, "-");
    }
    buffer_text(out, "\n");
}

void report_table(const struct report *r, struct buffer *out) {
    uint32_t columns = r->tier_count + AFTER_TIERS;
    char text[CELL_BYTES];
    bool async = false;
    size_t *widths = measure(r, columns);
    if (!widths) {
        out->failed = true;
        return;
    }
    text_pad_right(out, " ", widths[0] + 1);
    for (uint32_t c = 0; c < columns; c++) {
        heading(r, c, text);
        text_pad_left(out, text, GAP + widths[c + 1]);
    }
    buffer_text(out, "\n");
    rule(out, widths, columns);
    for (uint32_t i = 0; i < r->identity_count; i++) {
        buffer_text(out, " ");
        text_pad_right(out, label(r->identities[i]), widths[0]);
        for (uint32_t c = 0; c < columns; c++) {
            cell(r, i, c, text);
            async = async || (c < r->tier_count && strchr(text, '~'));
            text_pad_left(out, text, GAP + widths[c + 1]);
        }
        buffer_text(out, "\n");
        if (i == 0 && strcmp(r->identities[0], "_total") == 0) {
            rule(out, widths, columns);
        }
    }
    buffer_text(out, "\n Means per request.");
    buffer_text(out, async ? " ~ asynchronous: calls that ended after their request, not part of its total.\n"
                           : "\n");
    report_ledger(r, out);
    free(widths);
}

// -- ledger
// ----------------------------------------------------------------------------------------------------------------

// Appends "3 dropped messages" to the list of losses, unless it is none.
static void loss(struct buffer *out, uint64_t n, const char *one, const char *many, bool *any) {
    if (n > 0) {
        buffer_printf(out, "%s%llu %s", *any ? ", " : "; lost: ", (unsigned long long)n, n == 1 ? one : many);
        *any = true;
    }
}

void report_ledger(const struct report *r, struct buffer *out) {
    const struct ledger_row *l = &r->sums->ledger;
    const struct query_row *requests = r->identity_count > 0 ? report_cell(r, 0, r->tier_count) : NULL;
    uint64_t count = requests ? requests->calls : 0;
    char from[TEXT_TIME_BYTES], until[TEXT_TIME_BYTES], paused[TEXT_DURATION_BYTES];
    bool any = false;
    buffer_printf(out, " %llu complete request%s", (unsigned long long)count, count == 1 ? "" : "s");
    loss(out, l->requests_incomplete, "incomplete request", "incomplete requests", &any);
    loss(out, l->requests_expired, "expired", "expired", &any);
    loss(out, l->requests_unsampled, "unsampled", "unsampled", &any);
    loss(out, l->dropped_messages, "dropped message", "dropped messages", &any);
    loss(out, l->orphan_returns, "orphan return", "orphan returns", &any);
    loss(out, l->stale_calls, "stale call", "stale calls", &any);
    loss(out, l->decode_errors, "decode error", "decode errors", &any);
    if (l->paused_ms > 0) {
        buffer_printf(out, "%spaused for %s",
                      any ? ", " : "; lost: ", text_duration((double)l->paused_ms * 1e6, paused));
        any = true;
    }
    buffer_printf(out, "%s; %s to %s, buckets of %u s\n", any ? "" : "; nothing lost",
                  text_time_format(r->sums->first_s * 1000000000, false, from),
                  text_time_format(r->sums->last_s * 1000000000, false, until), r->sums->resolution_s);
}
