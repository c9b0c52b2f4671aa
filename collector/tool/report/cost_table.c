// SPDX-License-Identifier: Apache-2.0
#include "tool/report/print.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text_amount.h"
#include "base/text_time.h"
#include "base/time_math.h"
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

static void percent(double share, char out[CELL_BYTES]) {
    if (share > 0 && share < 0.0005) {
        snprintf(out, CELL_BYTES, "<0.1 %%");
    } else {
        snprintf(out, CELL_BYTES, share < 0.0995 ? "%.1f %%" : "%.0f %%", 100 * share);
    }
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
        percent(numbers[column], out);
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
static void advise(struct buffer *out, const char *tier, const char *what) {
    buffer_text(out, " ");
    buffer_text(out, tier);
    buffer_text(out, what);
}

// What to do about a tier whose messages are large, and what that gives up.
static void advise_large(struct buffer *out, const struct cost *c, const struct cost_estimate *e) {
    char share[CELL_BYTES], size[TEXT_SIZE_BYTES], text[512];
    percent(e->bytes_share, share);
    snprintf(text, sizeof text, ": %s a call, %s of all bytes.\n",
             text_size(e->bytes_per_call, size), share);
    advise(out, c->tier, text);
    if (e->returns) {
        buffer_text(
            out,
            "   With #{returns => none} what it returns stays on the node. Its errors are lost by "
            "that: most calls that end\n"
            "   in an exception are counted like others. It had none in this time.\n");
    } else if (e->keep_returns) {
        buffer_printf(
            out,
            "   It had %" PRIu64
            " error%s: #{returns => none} would hide most of these. Have it return less, or "
            "sample\n"
            "   ({sample, {one_in, N}}), which traces only one request in N.\n",
            c->errors, text_plural(c->errors));
    } else {
        buffer_text(
            out,
            "   An identity function of nothing but patterns and guards leaves its arguments on "
            "the node.\n");
    }
}

static void advice(const struct report_cost *r, struct buffer *out) {
    char share[CELL_BYTES], time[TEXT_DURATION_BYTES], text[512];
    const char *before = "\n";
    for (uint32_t i = 0; i < r->costs->count; i++) {
        const struct cost *c = &r->costs->rows[i];
        const struct cost_estimate *e = &r->tiers[i];
        if (e->sample) {
            percent(e->of_time, share);
            text_duration((double)c->duration_ns / (double)c->calls, time);
            snprintf(
                text, sizeof text,
                ": tracing takes about %s of its %s.\n"
                "   Sample ({sample, {one_in, N}}), which traces only one request in N, or trace "
                "a function above it instead,\n"
                "   whose time includes this one's.\n",
                share, time);
            buffer_text(out, before);
            advise(out, c->tier, text);
            before = "";
        }
        if (e->returns || e->keep_returns || e->arguments) {
            buffer_text(out, before);
            advise_large(out, c, e);
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
