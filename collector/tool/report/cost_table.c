// SPDX-License-Identifier: Apache-2.0
#include "tool/report/print.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text_amount.h"
#include "base/text_time.h"
#include "base/time_math.h"
#include "tool/lines.h"
#include "tool/text.h"

enum { CELL_BYTES = 160, GAP = 3 };

enum column { TIER, MESSAGES, BYTES, BYTES_CALL, BYTES_SHARE, TIME, TIME_CALL, OF_TIME, COLUMNS };

static const char *const headings[COLUMNS] = {
    "tier",      "messages",         "bytes",      "bytes a call", "of all bytes",
    "est. time", "est. time a call", "of its time"};

// A line of the table: a tier, or one of the sums.
struct line {
    const char *name;
    const struct cost *row;
    const struct cost_estimate *of;
};

// Line i: the tiers, then what is none, then all.
static struct line line_at(const struct report_cost *r, uint32_t i) {
    if (i < r->costs->count) {
        return (struct line){r->costs->rows[i].tier, &r->costs->rows[i], &r->tiers[i]};
    }
    return i == r->costs->count ? (struct line){"(none)", &r->other_row, &r->other}
                                : (struct line){"all, per request", &r->all_row, &r->all};
}

static void cell(const struct line *l, enum column column, char out[CELL_BYTES]) {
    const double numbers[COLUMNS] = {0,
                                     0,
                                     (double)l->row->bytes,
                                     l->of->bytes_per_call,
                                     l->of->bytes_share,
                                     l->of->ns,
                                     l->of->per_call_ns,
                                     l->of->of_time};
    if (column == TIER) {
        snprintf(out, CELL_BYTES, "%s", l->name);
        text_clean(out); // it may end in the middle of a character
    } else if (column == MESSAGES) {
        snprintf(out, CELL_BYTES, "%" PRIu64, l->row->messages);
    } else if (numbers[column] < 0) {
        snprintf(out, CELL_BYTES, "-");
    } else if (column == BYTES || column == BYTES_CALL) {
        text_size(numbers[column], out);
    } else if (column == TIME || column == TIME_CALL) {
        text_duration(numbers[column], out);
    } else {
        text_percent(numbers[column], out);
    }
}

static void row(struct buffer *out, const char cells[COLUMNS][CELL_BYTES], const size_t *widths) {
    buffer_text(out, " ");
    text_pad_right(out, cells[TIER], widths[TIER]);
    for (int c = TIER + 1; c < COLUMNS; c++) {
        text_pad_left(out, cells[c], GAP + widths[c]);
    }
    buffer_text(out, "\n");
}

static void rule(struct buffer *out, const size_t *widths) {
    size_t width = widths[TIER];
    for (int c = TIER + 1; c < COLUMNS; c++) {
        width += GAP + widths[c];
    }
    buffer_text(out, " ");
    while (width-- > 0) {
        buffer_text(out, "-");
    }
    buffer_text(out, "\n");
}

// Names are of any length: not through a format.
static void advice(const struct report_cost *r, struct buffer *out) {
    struct cost_finding findings[COST_FINDINGS];
    const char *before = "\n";
    for (uint32_t i = 0; i < r->costs->count; i++) {
        uint32_t n = report_cost_findings(r, i, findings);
        for (uint32_t k = 0; k < n; k++) {
            struct lines l = {.out = out, .column = 2};
            buffer_text(out, before);
            buffer_text(out, " ");
            buffer_text(out, r->costs->rows[i].tier);
            buffer_printf(out, ": %s.\n  ", findings[k].text);
            lines_sentence(&l, findings[k].advice, "");
            buffer_text(out, "\n");
            before = "";
        }
    }
}

void report_cost_table(const struct report_cost *r, struct buffer *out) {
    char cells[COLUMNS][CELL_BYTES];
    char from[TEXT_TIME_BYTES], until[TEXT_TIME_BYTES];
    size_t widths[COLUMNS];
    uint32_t lines = r->costs->count + 2;
    for (int c = 0; c < COLUMNS; c++) {
        snprintf(cells[c], CELL_BYTES, "%s", headings[c]);
        widths[c] = text_width(headings[c]);
        for (uint32_t i = 0; i < lines; i++) {
            char text[CELL_BYTES];
            struct line l = line_at(r, i);
            cell(&l, c, text);
            size_t wide = text_width(text);
            widths[c] = wide > widths[c] ? wide : widths[c];
        }
    }
    row(out, cells, widths);
    rule(out, widths);
    for (uint32_t i = 0; i < lines; i++) {
        struct line l = line_at(r, i);
        for (int c = 0; c < COLUMNS; c++) {
            cell(&l, c, cells[c]);
        }
        if (i + 1 == lines) {
            rule(out, widths);
        }
        row(out, cells, widths);
    }
    buffer_printf(
        out,
        "\n"
        " Time: estimated, in the traced node: %.0f ns a message, and %.0f ns for each of its "
        "bytes over %.0f.\n"
        " (none): begins and ends of requests, spawns, and whatever else names no tier.\n"
        " %s to %s, buckets of %u s\n",
        cost_message_ns, cost_byte_ns, cost_ordinary_bytes,
        text_time_format(time_of_seconds(r->costs->first_s), false, from),
        text_time_format(time_of_seconds(r->costs->last_s), false, until), r->costs->resolution_s);
    advice(r, out);
}
