// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text_amount.h"
#include "base/text_time.h"
#include "base/time_math.h"
#include "report/trust.h"
#include "tool/diff/print.h"
#include "tool/text.h"

enum { CHANGE_BYTES = 48, PARTS = 5 };
static const double small_part = 0.02; // of the change: such parts are not told

bool diff_whole(const struct compare_row *row) {
    return strcmp(row->tier, "_total") == 0;
}

double diff_share(const struct compare_number *n) {
    return n->before > 0 ? (n->after - n->before) / n->before : 0;
}

static char *change(double ns, char out[CHANGE_BYTES]) {
    char text[TEXT_DURATION_BYTES];
    snprintf(out, CHANGE_BYTES, "%s%s", ns < 0 ? "-" : "+", text_duration(fabs(ns), text));
    return out;
}

static void line(struct buffer *out, const char *name, const char *before, const char *after) {
    buffer_printf(out, "  %-6s ", name);
    text_pad_left(out, before, 9);
    buffer_text(out, " -> ");
    text_pad_right(out, after, 9);
}

static void number(struct buffer *out, const char *name, const struct compare_number *n) {
    char before[TEXT_DURATION_BYTES], after[TEXT_DURATION_BYTES], by[CHANGE_BYTES];
    line(out, name, text_duration(n->before, before), text_duration(n->after, after));
    text_pad_left(out, change(n->after - n->before, by), 11);
    buffer_printf(out, " %+8.1f %%%s\n", 100 * diff_share(n), n->sure ? "  more than chance" : "");
}

static const char *name_of(const struct compare_part *p) {
    switch (p->kind) {
    case COMPARE_SELF:
        return p->tier;
    case COMPARE_UNCOVERED:
        return "what no tier covers";
    default:
        return "work in parallel";
    }
}

// "  that is +6.1 ms db, +1.7 ms render": the parts add up to the change of the mean.
static void explain(struct buffer *out, const struct compare_row *row) {
    double whole = fabs(row->mean_ns.after - row->mean_ns.before);
    bool first = true;
    for (uint32_t i = 0; i < row->part_count && i < PARTS; i++) {
        const struct compare_part *p = &row->parts[i];
        double by = p->after_ns - p->before_ns;
        char text[CHANGE_BYTES];
        if (fabs(by) < small_part * whole || by == 0) {
            break;
        }
        buffer_printf(out, "%s%s %s", first ? "  that is  " : ", ", change(by, text), name_of(p));
        first = false;
    }
    buffer_text(out, first ? "" : "\n");
}

static void errors(struct buffer *out, const struct compare_row *row) {
    char before[TEXT_PERCENT_BYTES], after[TEXT_PERCENT_BYTES];
    if (row->errors.before > 0 || row->errors.after > 0) {
        line(out, "errors", text_percent(row->errors.before, before),
             text_percent(row->errors.after, after));
        text_pad_left(out, row->errors.sure ? "more than chance" : "", row->errors.sure ? 40 : 0);
        buffer_text(out, "\n");
    }
}

static void block(struct buffer *out, const struct compare_row *row) {
    char before[TEXT_GROUPED_BYTES], after[TEXT_GROUPED_BYTES];
    bool all = strcmp(row->identity, "_total") == 0;
    buffer_printf(out, "\n%s: %s requests -> %s\n", all ? "all together" : row->identity,
                  text_grouped(row->before ? row->before->calls : 0, before),
                  text_grouped(row->after ? row->after->calls : 0, after));
    if (!row->before || !row->after) {
        return;
    }
    number(out, "mean", &row->mean_ns);
    explain(out, row);
    number(out, "p50", &row->quantiles_ns[0]);
    number(out, "p99", &row->quantiles_ns[2]);
    errors(out, row);
}

static void stretch(struct buffer *out, const char *name, const struct query_sums *sums) {
    char from[TEXT_TIME_BYTES], until[TEXT_TIME_BYTES];
    const char *verdict = trust_verdict(sums);
    buffer_printf(out, "%-6s  %s to %s", name,
                  text_time_format(time_of_seconds(sums->first_s), false, from),
                  text_time_format(time_of_seconds(sums->last_s), false, until));
    if (strcmp(verdict, "ok") != 0) {
        buffer_printf(out, "  %s: kprof report with --since and --until says why", verdict);
    }
    buffer_text(out, "\n");
}

void diff_table(const struct compare *c, const struct query_sums *before,
                const struct query_sums *after, struct buffer *out) {
    stretch(out, "before", before);
    stretch(out, "after", after);
    for (uint32_t i = 0; i < c->count; i++) {
        if (diff_whole(&c->rows[i])) {
            block(out, &c->rows[i]);
        }
    }
    buffer_text(out, "\nmore than chance: at 1 %; means by Welch's t, percentiles by their order "
                     "statistics, errors by two proportions.\n");
}
