// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_amount.h"
#include "base/text_time.h"
#include "base/time_math.h"
#include "report/trust.h"
#include "tool/diff/print.h"
#include "tool/text.h"

enum { CHANGE_BYTES = 48, PARTS = 5 };

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

static void name_of(const struct compare_part *p, struct buffer *out) {
    switch (p->kind) {
    case COMPARE_SELF:
        buffer_text(out, p->tier);
        break;
    case COMPARE_WAITING:
        buffer_printf(out, "waiting before %s", p->tier);
        break;
    case COMPARE_UNCOVERED:
        buffer_text(out, "what no tier covers");
        break;
    case COMPARE_PARALLEL:
        buffer_text(out, "work in parallel");
    }
}

// Multiples of a grid as text, "+8.2" for 82 of 0.1.
static void signed_digits(struct buffer *out, int64_t n, int decimals) {
    double value = fabs((double)n) / (decimals > 0 ? 10 : 1);
    buffer_printf(out, "%s%.*f", n < 0 ? "-" : "+", decimals, value);
}

bool diff_parts(const struct compare_row *row, struct buffer *out) {
    const char *unit;
    int decimals;
    uint32_t told = 0, others = 0;
    int64_t rest = 0, *parts = calloc(row->part_count + 1, sizeof *parts);
    double change = fabs(row->mean_ns.after - row->mean_ns.before);
    double digit = text_duration_digit(change, &unit, &decimals);
    if (!parts) {
        out->failed = true;
        return false;
    }
    int64_t whole = compare_rounded(row, digit, parts);
    for (uint32_t i = 0; i < row->part_count; i++) {
        if (parts[i] == 0) {
            continue;
        }
        if (told == PARTS) {
            others++;
            rest += parts[i];
            continue;
        }
        if (told++ == 0) {
            buffer_text(out, " ");
            signed_digits(out, whole, decimals);
            buffer_printf(out, " %s:", unit);
        }
        buffer_text(out, told == 1 ? " " : ", ");
        signed_digits(out, parts[i], decimals);
        buffer_text(out, " ");
        name_of(&row->parts[i], out);
    }
    if (others > 0) {
        buffer_text(out, ", ");
        signed_digits(out, rest, decimals);
        buffer_printf(out, " in %u other%s", others, text_plural(others));
    }
    free(parts);
    return told > 0;
}

static void explain(struct buffer *out, const struct compare_row *row) {
    if (row->split == COMPARE_MIXED) {
        buffer_text(out,
                    "  where it comes from is not known: the rows of one time have waiting within "
                    "self time, those of the other apart\n");
        return;
    }
    size_t before = out->len;
    buffer_text(out, "  that is ");
    if (!diff_parts(row, out)) {
        out->len = before;
        return;
    }
    buffer_text(out, row->split == COMPARE_IN_SELF
                         ? "; waiting is within the self time of who waits, in rows so old\n"
                         : "\n");
}

void diff_slow(const struct compare *slow, const char *tier, struct buffer *out) {
    bool whole = strcmp(tier, "_total") == 0;
    const char *title = "\nWhat makes slow ones slow:\n";
    for (uint32_t i = 0; i < slow->count; i++) {
        const struct compare_row *row = &slow->rows[i];
        size_t before = out->len;
        buffer_text(out, title);
        buffer_printf(out, "  %s: %llu kept", row->identity,
                      (unsigned long long)row->after->requests);
        buffer_text(out, whole ? "" : " that called ");
        buffer_text(out, whole ? "" : tier);
        buffer_text(out, whole ? ", against the mean" : ", its part against its mean");
        if (row->part_count > 0 && diff_parts(row, out)) {
            buffer_text(out, "\n");
            title = "";
        } else {
            out->len = before;
        }
    }
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

static void block(struct buffer *out, const struct diff_shown *d, const struct compare_row *row) {
    static const char *const quantiles[COMPARE_QUANTILES] = {"p50", "p90", "p99", "p99.9"};
    char before[TEXT_GROUPED_BYTES], after[TEXT_GROUPED_BYTES];
    bool all = strcmp(row->identity, "_total") == 0, whole = diff_whole(row);
    buffer_printf(
        out, "\n%s%s%s: %s %s -> %s\n", all ? "all together" : row->identity, whole ? "" : ", ",
        whole ? "" : row->tier, text_grouped(row->before ? row->before->calls : 0, before),
        whole ? "requests" : "calls", text_grouped(row->after ? row->after->calls : 0, after));
    if (!row->before || !row->after) {
        return;
    }
    number(out, "mean", &row->mean_ns);
    if (whole) {
        explain(out, row);
    }
    for (int q = 0; q < COMPARE_QUANTILES; q++) {
        if (d->percentiles || q % 2 == 0) {
            number(out, quantiles[q], &row->quantiles_ns[q]);
        }
    }
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

void diff_table(const struct diff_shown *d, struct buffer *out) {
    stretch(out, "before", d->before);
    stretch(out, "after", d->after);
    for (uint32_t i = 0; i < d->compare->count; i++) {
        if (strcmp(d->compare->rows[i].tier, d->tier) == 0) {
            block(out, d, &d->compare->rows[i]);
        }
    }
    diff_slow(d->slow, d->tier, out);
    buffer_text(
        out, "\nmore than chance: at 1 %; means by Welch's t, percentiles by their order "
             "statistics, errors by two proportions.\nBoth times are rounded to the buckets that "
             "are kept; parts are rounded so that they add up to the change.\n");
}
