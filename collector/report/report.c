// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_total(const char *name) {
    return strcmp(name, "_total") == 0;
}

// A name with what it is ordered by.
struct ranked {
    const char *name;
    double first;
    double second;
};

static int by_rank(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    if (x->first != y->first) {
        return x->first < y->first ? 1 : -1;
    }
    if (x->second != y->second) {
        return x->second < y->second ? 1 : -1;
    }
    return strcmp(x->name, y->name);
}

// Adds to the rank of a name, which is new or known.
static void rank(struct ranked *list, uint32_t *count, const char *name, double first,
                 double second) {
    uint32_t i = 0;
    while (i < *count && strcmp(list[i].name, name) != 0) {
        i++;
    }
    if (i == *count) {
        list[(*count)++] = (struct ranked){.name = name};
    }
    list[i].first += first;
    list[i].second += second;
}

static double mean(const struct query_row *row) {
    return row->calls ? (double)row->duration_ns / (double)row->calls : 0;
}

// Identities by the mean of their whole requests, tiers by their time. The rows of "_total" are the
// sums of the others, so that counting both changes no order.
static void rank_all(const struct query_sums *sums, struct ranked *identities, uint32_t *n,
                     struct ranked *tiers, uint32_t *m) {
    for (uint32_t i = 0; i < sums->count; i++) {
        const struct query_row *row = &sums->rows[i];
        bool request = is_total(row->tier);
        rank(identities, n, row->identity,
             is_total(row->identity) ? HUGE_VAL
             : request               ? mean(row)
                                     : 0,
             0);
        if (!request) {
            rank(tiers, m, row->tier, (double)row->total_ns, (double)row->async_ns);
        }
    }
    qsort(identities, *n, sizeof *identities, by_rank);
    qsort(tiers, *m, sizeof *tiers, by_rank);
}

static uint32_t place(const char *const *names, uint32_t count, const char *name) {
    uint32_t i = 0;
    while (i < count && strcmp(names[i], name) != 0) {
        i++;
    }
    return i;
}

static const char **names_of(const struct ranked *list, uint32_t count) {
    const char **names = calloc(count + 1, sizeof *names);
    for (uint32_t i = 0; names && i < count; i++) {
        names[i] = list[i].name;
    }
    return names;
}

bool report_make(struct report *r, const struct query_sums *sums) {
    *r = (struct report){.sums = sums};
    struct ranked *identities = calloc(sums->count + 1, sizeof *identities);
    struct ranked *tiers = calloc(sums->count + 1, sizeof *tiers);
    bool ok = identities && tiers;
    if (ok) {
        uint32_t identity_count = 0, tier_count = 0;
        rank_all(sums, identities, &identity_count, tiers, &tier_count);
        r->identity_count = identity_count;
        r->tier_count = tier_count;
        r->identities = names_of(identities, r->identity_count);
        r->tiers = names_of(tiers, r->tier_count);
        r->cells = calloc((size_t)r->identity_count * (r->tier_count + 1) + 1,
                          sizeof(const struct query_row *));
        ok = r->identities && r->tiers && r->cells;
    }
    for (uint32_t i = 0; ok && i < sums->count; i++) {
        const struct query_row *row = &sums->rows[i];
        uint32_t at = place(r->identities, r->identity_count, row->identity);
        r->cells[at * (r->tier_count + 1) + place(r->tiers, r->tier_count, row->tier)] = row;
    }
    free(identities);
    free(tiers);
    if (!ok) {
        report_free(r);
    }
    return ok;
}

void report_free(struct report *r) {
    free(r->identities);
    free(r->tiers);
    free(r->cells);
    *r = (struct report){0};
}

const struct query_row *report_cell(const struct report *r, uint32_t identity, uint32_t tier) {
    return r->cells[identity * (r->tier_count + 1) + tier];
}
