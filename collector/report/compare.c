// SPDX-License-Identifier: Apache-2.0
#include "report/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const double compare_quantiles[COMPARE_QUANTILES] = {0.5, 0.9, 0.99, 0.999};

// Standard deviations past which a change is by chance in 1 % of cases, to either side.
static const double enough = 2.576;
enum { LEAST_CALLS = 30, LEAST_OF_EACH = 5 };

static bool is_total(const char *name) {
    return strcmp(name, "_total") == 0;
}

static double calls_of(const struct query_row *row) {
    return row ? (double)row->calls : 0;
}

// -- is it more than chance -----------------------------------------------------------------------

static double mean_of(const struct query_row *row) {
    return calls_of(row) > 0 ? (double)row->duration_ns / calls_of(row) : 0;
}

// The variance of the mean of a row's durations.
static double mean_variance(const struct query_row *row) {
    double deviation = query_stddev(row); // of all calls, not of a sample of them
    return deviation * deviation / (calls_of(row) - 1);
}

static struct compare_number compare_means(const struct query_row *a, const struct query_row *b) {
    struct compare_number n = {mean_of(a), mean_of(b), false};
    if (calls_of(a) >= LEAST_CALLS && calls_of(b) >= LEAST_CALLS) {
        n.sure = fabs(n.after - n.before) > enough * sqrt(mean_variance(a) + mean_variance(b));
    }
    return n;
}

// Between which values a quantile of what the calls are a sample of lies: those of the ranks that
// the binomial distribution leaves. False where it leaves all.
static bool bounds(const struct query_row *row, double q, double *low, double *high) {
    double n = calls_of(row);
    double off = n > 0 ? enough * sqrt(q * (1 - q) / n) : 1;
    if (q - off <= 0 || q + off >= 1) {
        return false;
    }
    *low = query_quantile(row, q - off);
    *high = query_quantile(row, q + off);
    return true;
}

static struct compare_number compare_quantile(const struct query_row *a, const struct query_row *b,
                                              double q) {
    struct compare_number n = {a ? query_quantile(a, q) : 0, b ? query_quantile(b, q) : 0, false};
    double low[2], high[2];
    if (bounds(a, q, &low[0], &high[0]) && bounds(b, q, &low[1], &high[1])) {
        n.sure = high[0] < low[1] || high[1] < low[0];
    }
    return n;
}

static struct compare_number compare_errors(const struct query_row *a, const struct query_row *b) {
    double calls[2] = {calls_of(a), calls_of(b)};
    double errors[2] = {a ? (double)a->errors : 0, b ? (double)b->errors : 0};
    double all = calls[0] + calls[1], failed = errors[0] + errors[1];
    struct compare_number n = {calls[0] > 0 ? errors[0] / calls[0] : 0,
                               calls[1] > 0 ? errors[1] / calls[1] : 0, false};
    if (calls[0] > 0 && calls[1] > 0 && failed >= LEAST_OF_EACH && all - failed >= LEAST_OF_EACH) {
        double share = failed / all;
        n.sure = fabs(n.after - n.before) >
                 enough * sqrt(share * (1 - share) * (1 / calls[0] + 1 / calls[1]));
    }
    return n;
}

static double per_second(const struct query_row *row, const struct query_sums *sums) {
    double s = (double)sums->last_s - (double)sums->first_s;
    return s > 0 ? calls_of(row) / s : 0;
}

// -- where it comes from --------------------------------------------------------------------------

static int by_change(const void *a, const void *b) {
    const struct compare_part *x = a, *y = b;
    double dx = fabs(x->after_ns - x->before_ns), dy = fabs(y->after_ns - y->before_ns);
    return dx != dy ? (dx < dy ? 1 : -1) : (int)x->kind - (int)y->kind;
}

static void add_part(struct compare_row *whole, struct compare_part part) {
    whole->parts[whole->part_count++] = part;
}

static double per(uint64_t ns, double requests) {
    return (double)ns / requests;
}

static enum compare_split split_of(const struct query_row *a, const struct query_row *b) {
    uint64_t calls = (a ? a->calls : 0) + (b ? b->calls : 0);
    uint64_t unsplit = (a ? a->unsplit : 0) + (b ? b->unsplit : 0);
    return unsplit == 0 ? COMPARE_APART : unsplit == calls ? COMPARE_IN_SELF : COMPARE_MIXED;
}

// The parts of an identity's requests; its rows stand side by side, `whole` is that of "_total".
static bool explain(struct compare_row *whole, const struct compare_row *rows, uint32_t count) {
    static const struct query_row none;
    double before = calls_of(whole->before), after = calls_of(whole->after);
    if (before == 0 || after == 0 || whole->split == COMPARE_MIXED) {
        return true;
    }
    whole->parts = calloc(2 * (size_t)count + 2, sizeof *whole->parts);
    if (!whole->parts) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct query_row *a = rows[i].before ? rows[i].before : &none;
        const struct query_row *b = rows[i].after ? rows[i].after : &none;
        bool total = is_total(rows[i].tier);
        add_part(whole, (struct compare_part){total ? COMPARE_UNCOVERED : COMPARE_SELF,
                                              total ? NULL : rows[i].tier, per(a->self_ns, before),
                                              per(b->self_ns, after)});
        if (!total && whole->split == COMPARE_APART) {
            add_part(whole,
                     (struct compare_part){COMPARE_WAITING, rows[i].tier,
                                           per(a->waiting_ns, before), per(b->waiting_ns, after)});
        }
    }
    struct compare_part rest = {COMPARE_PARALLEL, NULL, whole->mean_ns.before,
                                whole->mean_ns.after};
    for (uint32_t i = 0; i < whole->part_count; i++) {
        rest.before_ns -= whole->parts[i].before_ns;
        rest.after_ns -= whole->parts[i].after_ns;
    }
    add_part(whole, rest);
    qsort(whole->parts, whole->part_count, sizeof *whole->parts, by_change);
    return true;
}

// Rounds each part down, then those up that are missed most, as many as are needed.
int64_t compare_rounded(const struct compare_row *row, double grid_ns, int64_t *out) {
    int64_t whole = llround((row->mean_ns.after - row->mean_ns.before) / grid_ns), sum = 0;
    for (uint32_t i = 0; i < row->part_count; i++) {
        out[i] = (int64_t)floor((row->parts[i].after_ns - row->parts[i].before_ns) / grid_ns);
        sum += out[i];
    }
    for (; row->part_count > 0 && sum != whole; sum += sum < whole ? 1 : -1) {
        uint32_t most = 0;
        double missed = -HUGE_VAL, sign = sum < whole ? 1 : -1;
        for (uint32_t i = 0; i < row->part_count; i++) {
            const struct compare_part *p = &row->parts[i];
            double off = sign * ((p->after_ns - p->before_ns) / grid_ns - (double)out[i]);
            most = off > missed ? i : most;
            missed = off > missed ? off : missed;
        }
        out[most] += sum < whole ? 1 : -1;
    }
    return whole;
}

// -- rows -----------------------------------------------------------------------------------------

static int by_name(const void *a, const void *b) {
    const struct compare_row *x = a, *y = b;
    int order = strcmp(x->identity, y->identity);
    return order != 0 ? order : strcmp(x->tier, y->tier);
}

// Puts the rows of one side behind the others.
static void put(struct compare *c, const struct query_sums *sums, bool after) {
    for (uint32_t i = 0; i < sums->count; i++) {
        const struct query_row *row = &sums->rows[i];
        c->rows[c->count++] = (struct compare_row){.identity = row->identity,
                                                   .tier = row->tier,
                                                   .before = after ? NULL : row,
                                                   .after = after ? row : NULL};
    }
}

// Makes one row of two that have the same names and stand side by side.
static void join(struct compare *c) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        if (n > 0 && by_name(&c->rows[n - 1], &c->rows[i]) == 0) {
            struct compare_row *row = &c->rows[n - 1];
            row->before = row->before ? row->before : c->rows[i].before;
            row->after = row->after ? row->after : c->rows[i].after;
        } else {
            c->rows[n++] = c->rows[i];
        }
    }
    c->count = n;
}

bool compare_make(struct compare *c, const struct query_sums *before,
                  const struct query_sums *after) {
    *c =
        (struct compare){.rows = calloc((size_t)before->count + after->count + 1, sizeof *c->rows)};
    if (!c->rows) {
        return false;
    }
    put(c, before, false);
    put(c, after, true);
    qsort(c->rows, c->count, sizeof *c->rows, by_name);
    join(c);
    bool ok = true;
    uint32_t first = 0; // of the identity
    for (uint32_t i = 0; i < c->count; i++) {
        struct compare_row *row = &c->rows[i];
        row->mean_ns = compare_means(row->before, row->after);
        row->errors = compare_errors(row->before, row->after);
        row->split = split_of(row->before, row->after);
        row->per_s = (struct compare_number){per_second(row->before, before),
                                             per_second(row->after, after), false};
        for (int q = 0; q < COMPARE_QUANTILES; q++) {
            row->quantiles_ns[q] = compare_quantile(row->before, row->after, compare_quantiles[q]);
        }
    }
    for (uint32_t i = 0; ok && i < c->count; i++) {
        first = strcmp(c->rows[first].identity, c->rows[i].identity) == 0 ? first : i;
        if (is_total(c->rows[i].tier)) {
            uint32_t end = i;
            while (end < c->count && strcmp(c->rows[end].identity, c->rows[i].identity) == 0) {
                end++;
            }
            ok = explain(&c->rows[i], &c->rows[first], end - first);
        }
    }
    return ok;
}

// Makes the row of a tier that of the tier's own part in the requests that called it.
static bool own_part(struct compare_row *row) {
    const struct query_row *a = row->before, *b = row->after;
    if (a->requests == 0 || b->requests == 0 || row->split == COMPARE_MIXED) {
        return true; // no parts
    }
    double before = (double)a->requests, after = (double)b->requests;
    struct compare_part self = {COMPARE_SELF, row->tier, (double)a->self_ns / before,
                                (double)b->self_ns / after};
    struct compare_part wait = {COMPARE_WAITING, row->tier, (double)a->waiting_ns / before,
                                (double)b->waiting_ns / after};
    row->parts = calloc(2, sizeof *row->parts);
    if (!row->parts) {
        return false;
    }
    row->mean_ns.before = self.before_ns + wait.before_ns;
    row->mean_ns.after = self.after_ns + wait.after_ns;
    add_part(row, self);
    add_part(row, wait);
    qsort(row->parts, row->part_count, sizeof *row->parts, by_change);
    return true;
}

bool compare_slow(struct compare *c, const struct query_sums *all, const struct query_sums *slow,
                  const char *tier) {
    bool ok = compare_make(c, all, slow);
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->count; i++) { // of which some were kept
        struct compare_row *row = &c->rows[i];
        bool taken = ok && row->before && row->after && strcmp(row->tier, tier) == 0;
        row->mean_ns.sure = false;
        ok = ok && (!taken || is_total(tier) || own_part(row));
        if (taken && (is_total(tier) || row->part_count > 0)) {
            c->rows[n++] = *row;
        } else {
            free(row->parts);
        }
    }
    c->count = n;
    return ok;
}

void compare_free(struct compare *c) {
    for (uint32_t i = 0; i < c->count; i++) {
        free(c->rows[i].parts);
    }
    free(c->rows);
    *c = (struct compare){0};
}
