// SPDX-License-Identifier: Apache-2.0
// Makes a large database: one that has filled its retention, in about a minute.
//
// usage: bench_database FILE [DAYS]
// FILE must not be there yet. It ends now and goes DAYS back (default: the whole retention, two
// years), with buckets of an hour; of the last 30 days also of a minute, of the last two also of
// 10 s. Two nodes, 15 identities, 8 tiers. Of the identities about a tenth has requests in 10 s, a
// sixth in a minute and a third in an hour. Whatever DAYS is, the newest rows are alike. It goes
// through store_write, as a collector's rows do. Exit status: 0 made, 1 not.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "model/directory/directory.h"
#include "model/stats/stats.h"
#include "store/retention.h"
#include "store/store.h"

enum {
    NODES = 2,
    IDENTITIES = 15,
    TIERS = 8,
    VARIANTS = 4,
    HOUR = 3600,
    DAY = 86400,
    SLOW_SPANS = TIERS
};
enum kind { TENS, MINUTES, HOURS, KINDS };
static const uint32_t lengths[KINDS] = {10, 60, HOUR};
// Requests in a bucket with any: as many as a histogram of that length usually tells apart.
static const int requests[KINDS] = {40, 200, 2000};

// What an identity's requests of a bucket add: they are made once, and counted many times.
struct calls {
    struct stat_row of[TIERS + 1]; // the last: the whole request
};
static struct calls made[KINDS][IDENTITIES][VARIANTS];
static struct directory names;
static uint16_t nodes[NODES], identities[IDENTITIES], tiers[TIERS + 1];

// The same numbers each time, whatever DAYS is.
static uint64_t mixed(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t x = a * 0x9e3779b97f4a7c15 ^ b * 0xc2b2ae3d27d4eb4f ^ c * 0x165667b19e3779f9;
    x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9;
    return x ^ x >> 29;
}

static double uniform(uint64_t seed, uint64_t n) {
    return ((double)(mixed(seed, n, 7) >> 11) + 0.5) / 9007199254740992.0;
}

static double lognormal(double median, double sigma, uint64_t seed, uint64_t n) {
    double normal =
        sqrt(-2 * log(uniform(seed, 2 * n))) * cos(6.283185307 * uniform(seed, 2 * n + 1));
    return median * exp(sigma * normal);
}

static void make_calls(enum kind kind, int identity, int variant) {
    struct calls *c = &made[kind][identity][variant];
    uint64_t seed = mixed((uint64_t)kind, (uint64_t)identity, (uint64_t)variant);
    for (int t = 0; t <= TIERS; t++) {
        c->of[t] = (struct stat_row){.min_ns = UINT64_MAX};
    }
    for (int r = 0; r < requests[kind]; r++) {
        double whole = lognormal(200e3 * (identity + 1), 0.5, seed, (uint64_t)(r * 16 + TIERS));
        for (int t = 0; t < TIERS; t++) {
            double ns =
                lognormal(100e3 * (identity + 1) * (t + 1), 0.5, seed, (uint64_t)(r * 16 + t));
            c->of[t].wait_ns += (uint64_t)(ns / 20);
            c->of[t].total_ns += (uint64_t)ns;
            stats_count(&c->of[t], (uint64_t)ns);
            whole += (double)(uint64_t)ns;
        }
        c->of[TIERS].total_ns += (uint64_t)whole;
        c->of[TIERS].self_ns += (uint64_t)whole;
        stats_count(&c->of[TIERS], (uint64_t)whole);
    }
    for (int t = 0; t <= TIERS; t++) {
        c->of[t].requests = c->of[t].calls;
        c->of[t].errors = t == 0 || t == TIERS ? (uint64_t)variant : 0;
        c->of[t].self_ns = t < TIERS ? c->of[t].total_ns : 0;
    }
}

static bool add_calls(struct stats *batch, int64_t bucket, int node, int identity,
                      const struct calls *c) {
    for (int t = 0; t <= TIERS; t++) {
        const struct stat_row *from = &c->of[t];
        struct stat_row *row = stats_row(
            batch, (struct stat_key){bucket, nodes[node], identities[identity], tiers[t]});
        if (!row || !histogram_merge(&row->durations, &from->durations)) {
            return false;
        }
#define ADD_COUNT(name) row->name += from->name;
#define ADD_TIME(name) row->name##_ns += from->name##_ns;
        STAT_SUMS(ADD_COUNT, ADD_TIME)
#undef ADD_COUNT
#undef ADD_TIME
        row->duration_ns += from->duration_ns;
        row->square_ns += from->square_ns;
        row->min_ns = from->min_ns < row->min_ns ? from->min_ns : row->min_ns;
        row->max_ns = from->max_ns > row->max_ns ? from->max_ns : row->max_ns;
    }
    return true;
}

// Its tiers, one after another, below the first.
static bool add_paths(struct stats *batch, int64_t bucket, int node, int identity,
                      const struct calls *c) {
    uint32_t above = PATH_ROOT;
    for (int t = 0; t < TIERS; t++) {
        uint32_t path = paths_below(&names.paths, nodes[node], above, tiers[t]);
        struct path_row *row = stats_path(batch, bucket, nodes[node], identities[identity], path);
        if (!row) {
            return false;
        }
        row->calls += c->of[t].calls;
        row->errors += c->of[t].errors;
        row->total_ns += c->of[t].total_ns;
        row->self_ns += c->of[t].self_ns;
        row->wait_ns += c->of[t].wait_ns;
        row->waiting_ns += c->of[t].waiting_ns;
        row->duration_ns += c->of[t].duration_ns;
        row->min_ns = c->of[t].min_ns < row->min_ns ? c->of[t].min_ns : row->min_ns;
        row->max_ns = c->of[t].max_ns > row->max_ns ? c->of[t].max_ns : row->max_ns;
        above = t == 0 ? path : above;
    }
    return true;
}

static bool add_slow(struct stats *batch, int64_t bucket, int node, int identity) {
    struct kept_span spans[SLOW_SPANS];
    int64_t at = 1000, each = 1000000 * (identity + 1);
    for (int t = 0; t < SLOW_SPANS; t++) {
        int64_t ns = each * (t == identity % TIERS ? 20 : 1);
        spans[t] = (struct kept_span){.start = at,
                                      .duration = ns,
                                      .self = ns,
                                      .wait = 1000,
                                      .pid = 100 + (uint64_t)t % 3,
                                      .parent = UINT32_MAX,
                                      .tier = tiers[t]};
        at += ns + 1000;
    }
    struct kept_request request = {.bucket_start = bucket,
                                   .node = nodes[node],
                                   .identity = identities[identity],
                                   .reason = KEPT_SLOWEST,
                                   .begin = bucket * 1000000000,
                                   .duration = at,
                                   .spans = SLOW_SPANS,
                                   .count = SLOW_SPANS};
    return stats_keep(batch, &request, spans);
}

// Whether an identity has requests at that time, seen in buckets of a kind: where it has some in 10
// s it has some in their minute and their hour.
static bool active(enum kind kind, int64_t t, int node, int identity) {
    static const double of_longer[KINDS] = {0.6, 0.5, 0.333};
    for (enum kind k = kind; k < KINDS; k++) {
        uint64_t who = (uint64_t)(node * IDENTITIES + identity);
        if (uniform(mixed(who, k, 3), (uint64_t)(t / lengths[k])) > of_longer[k]) {
            return false;
        }
    }
    return true;
}

static bool add_node(struct stats *batch, enum kind kind, int64_t t, int node) {
    struct ledger_row *ledger = stats_ledger(batch, t, nodes[node]);
    for (int i = 0; i < IDENTITIES; i++) {
        if (!active(kind, t, node, i)) {
            continue;
        }
        const struct calls *c =
            &made[kind][i][mixed((uint64_t)t, (uint64_t)node, (uint64_t)i) % VARIANTS];
        uint64_t n = c->of[TIERS].calls;
        ledger->requests_complete += n;
        ledger->calls += n * TIERS;
        ledger->messages += n * (TIERS * 2 + 2);
        ledger->bytes += n * (TIERS * 2 + 2) * 190;
        if (!add_calls(batch, t, node, i, c) ||
            (kind == TENS && !add_paths(batch, t, node, i, c)) ||
            (kind == TENS && t % HOUR == 0 && !add_slow(batch, t, node, i))) {
            return false;
        }
    }
    for (int tier = 0; tier < TIERS; tier++) {
        struct cost_row *cost = stats_cost(batch, t, nodes[node], tiers[tier]);
        if (!cost) {
            return false;
        }
        cost->calls += ledger->calls / TIERS;
        cost->messages += 2 * cost->calls;
        cost->bytes += 380 * cost->calls;
    }
    return true;
}

// Writes the time from `from`, a whole hour, until `until` in buckets of a kind. A batch has no
// room for more than half an hour of the finest.
static bool write_all(struct store *s, struct stats *batch, enum kind kind, int64_t from,
                      int64_t until) {
    int64_t step = lengths[kind] < HOUR / 2 ? HOUR / 2 : lengths[kind];
    for (int64_t at = from; at < until; at += step) {
        stats_reset(batch);
        for (int64_t t = at; t < at + step && t < until; t += lengths[kind]) {
            for (int node = 0; node < NODES; node++) {
                if (!add_node(batch, kind, t, node)) {
                    fprintf(stderr, "no memory, or a cap was reached\n");
                    return false;
                }
            }
        }
        stats_add_totals(batch);
        if (!store_write(s, lengths[kind], batch, &names)) {
            fprintf(stderr, "%s\n", store_error(s));
            return false;
        }
    }
    return true;
}

static bool name_all(void) {
    char text[32];
    if (!directory_init(&names)) {
        return false;
    }
    for (int i = 0; i < NODES; i++) {
        snprintf(text, sizeof text, "shop%d@host", i + 1);
        nodes[i] = directory_node(&names, slice_text(text));
    }
    for (int i = 0; i < IDENTITIES; i++) {
        snprintf(text, sizeof text, "identity%02d", i + 1);
        identities[i] = directory_identity(&names, slice_text(text));
    }
    for (int i = 0; i < TIERS; i++) {
        snprintf(text, sizeof text, "tier%d", i + 1);
        tiers[i] = directory_tier(&names, slice_text(text));
    }
    tiers[TIERS] = TIER_TOTAL;
    return true;
}

int main(int argc, char **argv) {
    struct store *s;
    struct stats *batch = stats_new();
    char error[STORE_ERROR_BYTES];
    int64_t days = argc == 3 ? strtoll(argv[2], NULL, 10) : RETENTION_HOURS_S / DAY;
    if (argc < 2 || argc > 3 || days < 1 || days > RETENTION_HOURS_S / DAY ||
        access(argv[1], F_OK) == 0) {
        fprintf(stderr, "usage: bench_database FILE [DAYS], a file that is not there yet\n");
        return EXIT_FAILURE;
    }
    if (!batch || !name_all() || store_open(argv[1], &s, error) != STORE_OK) {
        fprintf(stderr, "%s\n", batch ? error : "no memory");
        return EXIT_FAILURE;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        for (int i = 0; i < IDENTITIES * VARIANTS; i++) {
            make_calls((enum kind)kind, i / VARIANTS, i % VARIANTS);
        }
    }
    int64_t now = time(NULL), end = now / HOUR * HOUR, start = end - days * DAY;
    int64_t minutes = end - (days * DAY < RETENTION_MINUTES_S ? days * DAY : RETENTION_MINUTES_S);
    int64_t tens = end - (days * DAY < RETENTION_FINE_S ? days * DAY : RETENTION_FINE_S);
    bool ok = write_all(s, batch, HOURS, start, minutes) &&
              write_all(s, batch, MINUTES, minutes, tens) &&
              write_all(s, batch, TENS, tens, now / lengths[TENS] * lengths[TENS]);
    store_close(s);
    stats_free(batch);
    directory_free(&names);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
