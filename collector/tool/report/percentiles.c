// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/text_amount.h"
#include "tool/report/print.h"
#include "tool/text.h"

enum { CELL_BYTES = 40, GAP = 4, COLUMNS = 8, TIMES = 6 };
static const char *const headings[COLUMNS] = {"mean",  "p50", "p90",   "p99",
                                              "p99.9", "max", "calls", "errors"};

static const char *label(const char *identity) {
    return strcmp(identity, "_total") == 0 ? "All together" : identity;
}

static void cell(const struct query_row *row, int column, char out[CELL_BYTES]) {
    if (column >= TIMES) {
        text_grouped(column == TIMES ? row->calls : row->errors, out);
        return;
    }
    const double times[TIMES] = {row->calls ? (double)row->duration_ns / (double)row->calls : 0,
                                 query_quantile(row, 0.5),
                                 query_quantile(row, 0.9),
                                 query_quantile(row, 0.99),
                                 query_quantile(row, 0.999),
                                 (double)row->max_ns};
    text_duration(times[column], out);
}

// The row of an identity and the tier; NULL: it never called it.
static const struct query_row *row_of(const struct report *r, uint32_t identity, const char *tier) {
    for (uint32_t t = 0; t <= r->tier_count; t++) {
        const struct query_row *row = report_cell(r, identity, t);
        if (row && strcmp(row->tier, tier) == 0) {
            return row;
        }
    }
    return NULL;
}

static void line(const struct report *r, uint32_t identity, const char *tier, const size_t *widths,
                 struct buffer *out) {
    char text[CELL_BYTES];
    const struct query_row *row = row_of(r, identity, tier);
    if (!row) {
        return;
    }
    buffer_text(out, " ");
    text_pad_right(out, label(r->identities[identity]), widths[0]);
    for (int c = 0; c < COLUMNS; c++) {
        cell(row, c, text);
        text_pad_left(out, text, GAP + widths[c + 1]);
    }
    buffer_text(out, "\n");
}

static void measure(const struct report *r, const char *tier, size_t *widths) {
    char text[CELL_BYTES];
    for (uint32_t i = 0; i < r->identity_count; i++) {
        const struct query_row *row = row_of(r, i, tier);
        size_t name = row ? text_width(label(r->identities[i])) : 0;
        widths[0] = name > widths[0] ? name : widths[0];
        for (int c = 0; row && c < COLUMNS; c++) {
            cell(row, c, text);
            size_t width = text_width(text);
            widths[c + 1] = width > widths[c + 1] ? width : widths[c + 1];
        }
    }
}

void report_percentiles(const struct report *r, const char *tier, struct buffer *out) {
    bool requests = strcmp(tier, "_total") == 0;
    size_t widths[COLUMNS + 1] = {0};
    for (int c = 0; c < COLUMNS; c++) {
        widths[c + 1] = strlen(headings[c]);
    }
    widths[TIMES + 1] = requests ? strlen("requests") : widths[TIMES + 1];
    measure(r, tier, widths);
    text_pad_right(out, requests ? "" : " calls of", widths[0] + 1);
    for (int c = 0; c < COLUMNS; c++) {
        text_pad_left(out, requests && c == TIMES ? "requests" : headings[c], GAP + widths[c + 1]);
    }
    if (!requests) {
        buffer_printf(out, "\n  %s", tier);
    }
    buffer_text(out, "\n");
    for (uint32_t i = 0; i < r->identity_count; i++) {
        line(r, i, tier, widths, out);
    }
    buffer_text(out,
                "\n Percentiles are within 1.1 %, of whole buckets: the time below is rounded to "
                "these.\n");
    report_ledger(r, out);
}
