// SPDX-License-Identifier: Apache-2.0
#include "tool/report/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_amount.h"
#include "tool/text.h"

// the columns after the tiers: total, requests, errors
enum { CELL_BYTES = 160, GAP = 4, AFTER_TIERS = 3 };

static const char totals_label[] = "Totals across all calls:";

// Lines under the first row: what else is known of each tier.
enum detail { WAITING, RUN_QUEUE, COLLECTING, OFF_CPU, DETAILS };

static const char *const detail_labels[DETAILS] = {"", "    in the run queue",
                                                   "  garbage collection", "  off the CPU"};

// How much of the waiting that a report shows is measured; the label of it says so.
enum measured { NONE_MEASURED, PART_MEASURED, ALL_MEASURED };

static const char *const waiting_labels[] = {"  waiting, estimated", "  waiting, part measured",
                                             "  waiting, measured"};

// -- names ----------------------------------------------------------------------------------------

void report_clean(struct query_sums *sums) {
    for (uint32_t i = 0; i < sums->count; i++) {
        text_clean((char *)sums->rows[i].identity);
        text_clean((char *)sums->rows[i].tier);
    }
    for (uint32_t i = 0; i < sums->stale_count; i++) {
        text_clean((char *)sums->stale[i].tier);
    }
}

void report_clean_costs(struct costs *costs) {
    for (uint32_t i = 0; i < costs->count; i++) {
        text_clean((char *)costs->rows[i].tier);
    }
}

// -- cells ----------------------------------------------------------------------------------------

// Less than this share of a tier's time is not worth a mark of its own in the cell.
static const double negligible = 0.01;

// The two parts of a tier's time, in all that the report shows of it: which of them are worth
// showing.
struct parts {
    bool sync;
    bool async;
};

static struct parts parts_of(const struct query_row *row) {
    double all = (double)row->total_ns + (double)row->async_ns;
    struct parts p = {.async = row->async_calls > 0 && (double)row->async_ns >= negligible * all};
    p.sync =
        !p.async || (row->calls > row->async_calls && (double)row->total_ns >= negligible * all);
    return p;
}

// A tier's mean per request of the identity, its asynchronous part behind a '~'.
static void tier_cell(const struct query_row *row, const struct query_row *request,
                      char out[CELL_BYTES]) {
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
    snprintf(out, CELL_BYTES, "%s%s%s%s", sync, p.sync && p.async ? " " : "", p.async ? "~" : "",
             async);
}

static uint64_t detail_ns(const struct query_row *row, enum detail detail) {
    switch (detail) {
    case WAITING:
        return row->wait_ns;
    case RUN_QUEUE: // where it is known of all waiting
        return row->mailbox_ns + row->run_queue_ns == row->wait_ns ? row->run_queue_ns : 0;
    case COLLECTING:
        return row->gc_ns;
    case OFF_CPU:
    case DETAILS:
        break;
    }
    return row->off_cpu_ns;
}

// The same for a tier's waiting and so on; empty behind the tiers.
static void detail_cell(const struct report *r, uint32_t identity, uint32_t column,
                        enum detail detail, char out[CELL_BYTES]) {
    const struct query_row *request = report_cell(r, identity, r->tier_count);
    const struct query_row *row = column < r->tier_count ? report_cell(r, identity, column) : NULL;
    if (row && request && request->calls > 0 && detail_ns(row, detail) > 0) {
        text_duration((double)detail_ns(row, detail) / (double)request->calls, out);
    } else {
        snprintf(out, CELL_BYTES, "%s", column < r->tier_count ? "-" : "");
    }
}

static enum measured measured_of(const struct report *r) {
    uint64_t wait = 0, measured = 0;
    for (uint32_t i = 0; i < r->identity_count; i++) {
        for (uint32_t t = 0; t < r->tier_count; t++) {
            const struct query_row *row = report_cell(r, i, t);
            wait += row ? row->wait_ns : 0;
            measured += row ? row->measured_ns : 0;
        }
    }
    return measured == 0 ? NONE_MEASURED : measured < wait ? PART_MEASURED : ALL_MEASURED;
}

static const char *detail_label(const struct report *r, enum detail detail) {
    return detail == WAITING ? waiting_labels[measured_of(r)] : detail_labels[detail];
}

// Whether any tier of an identity has some.
static bool has_detail(const struct report *r, uint32_t identity, enum detail detail) {
    for (uint32_t t = 0; t < r->tier_count; t++) {
        const struct query_row *row = report_cell(r, identity, t);
        if (row && detail_ns(row, detail) > 0) {
            return true;
        }
    }
    return false;
}

// The text of any cell; column tier_count and on are the total, requests, errors.
static void cell(const struct report *r, enum report_of of, uint32_t identity, uint32_t column,
                 char out[CELL_BYTES]) {
    const struct query_row *request = report_cell(r, identity, r->tier_count);
    if (column < r->tier_count && of == REPORT_WAIT) {
        detail_cell(r, identity, column, WAITING, out);
    } else if (column < r->tier_count) {
        tier_cell(report_cell(r, identity, column), request, out);
    } else if (!request) {
        snprintf(out, CELL_BYTES, "-");
    } else if (column == r->tier_count) {
        text_duration(request->calls ? (double)request->duration_ns / (double)request->calls : 0,
                      out);
    } else {
        snprintf(
            out, CELL_BYTES, "%llu",
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

// -- table ----------------------------------------------------------------------------------------

static void widen(size_t *width, const char *text) {
    size_t w = text_width(text);
    *width = w > *width ? w : *width;
}

// How wide each column has to be; widths[0] is the names', the others follow.
static size_t *measure(const struct report *r, enum report_of of, uint32_t columns) {
    size_t *widths = calloc(columns + 1, sizeof *widths);
    char text[CELL_BYTES];
    for (uint32_t i = 0; widths && i < r->identity_count; i++) {
        widen(&widths[0], label(r->identities[i]));
    }
    for (uint32_t c = 0; widths && c < columns; c++) {
        heading(r, c, text);
        widen(&widths[c + 1], text);
        for (uint32_t i = 0; i < r->identity_count; i++) {
            cell(r, of, i, c, text);
            widen(&widths[c + 1], text);
        }
    }
    for (enum detail d = 0; widths && of == REPORT_TIME && r->identity_count > 0 && d < DETAILS;
         d++) {
        if (has_detail(r, 0, d)) {
            widen(&widths[0], detail_label(r, d));
        }
        for (uint32_t c = 0; c < columns; c++) {
            detail_cell(r, 0, c, d, text);
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

// The rows of an identity: its numbers, and under the first one what else there is.
static void rows(const struct report *r, enum report_of of, uint32_t identity, const size_t *widths,
                 uint32_t columns, struct buffer *out) {
    char text[CELL_BYTES];
    buffer_text(out, " ");
    text_pad_right(out, label(r->identities[identity]), widths[0]);
    for (uint32_t c = 0; c < columns; c++) {
        cell(r, of, identity, c, text);
        text_pad_left(out, text, GAP + widths[c + 1]);
    }
    buffer_text(out, "\n");
    for (enum detail d = 0; of == REPORT_TIME && identity == 0 && d < DETAILS; d++) {
        if (!has_detail(r, identity, d)) {
            continue;
        }
        buffer_text(out, " ");
        text_pad_right(out, detail_label(r, d), widths[0]);
        for (uint32_t c = 0; c < r->tier_count; c++) {
            detail_cell(r, identity, c, d, text);
            text_pad_left(out, text, GAP + widths[c + 1]);
        }
        buffer_text(out, "\n");
    }
}

// Whether a '~' stands anywhere.
static bool any_async(const struct report *r) {
    for (uint32_t i = 0; i < r->identity_count; i++) {
        for (uint32_t t = 0; t < r->tier_count; t++) {
            const struct query_row *row = report_cell(r, i, t);
            if (row && parts_of(row).async) {
                return true;
            }
        }
    }
    return false;
}

static bool any_remote(const struct report *r) {
    for (uint32_t i = 0; i < r->identity_count; i++) {
        if (strcmp(r->identities[i], "_remote") == 0) {
            return true;
        }
    }
    return false;
}

static void legend_of_waiting(enum measured measured, struct buffer *out) {
    static const char *const texts[] = {
        [NONE_MEASURED] =
            " Waiting, estimated: before a tier's call begins in another process, about its time "
            "in mailbox and run queue, from the\n"
            " last that the caller is known to have done. It is no part of the tier's time.",
        [PART_MEASURED] =
            " Waiting: measured, where that could be, from when a message was sent until the "
            "process of the tier's call took it;\n"
            " else estimated, from the last that the caller is known to have done. It is no part "
            "of the tier's time.",
        [ALL_MEASURED] =
            " Waiting, measured: from when a message was sent until the process of the tier's "
            "call took it: in its mailbox and in\n"
            " the run queue. It is no part of the tier's time."};
    buffer_text(out, texts[measured]);
}

static void legend(const struct report *r, enum report_of of, struct buffer *out) {
    bool waiting = r->identity_count > 0 && has_detail(r, 0, WAITING);
    bool parts =
        r->identity_count > 0 && (has_detail(r, 0, COLLECTING) || has_detail(r, 0, OFF_CPU));
    buffer_text(
        out,
        of == REPORT_WAIT
            ? "\n"
              " Mean waiting per request before the calls of each tier; total: of the requests' "
              "time.\n"
            : "\n Means per request.");
    if (any_async(r)) {
        buffer_text(
            out, " ~ asynchronous: calls that ended after their request, not part of its total.\n");
    } else {
        buffer_text(out, of == REPORT_TIME ? "\n" : "");
    }
    if (of == REPORT_WAIT || waiting) {
        legend_of_waiting(measured_of(r), out);
        buffer_text(out, of == REPORT_WAIT ? "\n" : " --wait shows it for each identity.\n");
    }
    if (of == REPORT_TIME && parts) {
        buffer_text(out,
                    " Garbage collection, off the CPU: while a call of the tier was its process' "
                    "innermost; part of its time.\n");
    }
    if (any_remote(r)) {
        buffer_text(out, " _remote: parts of other nodes' requests, not in the totals.\n");
    }
}

void report_table(const struct report *r, enum report_of of, struct buffer *out) {
    uint32_t columns = r->tier_count + AFTER_TIERS;
    char text[CELL_BYTES];
    size_t *widths = measure(r, of, columns);
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
        rows(r, of, i, widths, columns, out);
        if (i == 0 && strcmp(r->identities[0], "_total") == 0) {
            rule(out, widths, columns);
        }
    }
    legend(r, of, out);
    report_ledger(r, out);
    free(widths);
}
