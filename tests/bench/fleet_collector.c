// SPDX-License-Identifier: Apache-2.0
// A simulated collector, for the simulated fleet (scenarios/77_fleet.sh) and the benchmark: it
// gathers a minute of made-up requests of its nodes, has the writer thread write them and the
// exporter send them, as kprof-collector does, and goes on to the next minute when a file says so.
// What it makes depends on its numbers alone, so that who was killed makes the same again, and that
// what all of them made can be counted without them.
//
//   fleet_collector run DB BEGIN [OPTION...]   one collector, until TERM; "at N" tells that N
//                                              minutes are written
//   fleet_collector truth FOLDER [OPTION...]   what --collectors of them have made: counted here,
//                                              with nothing of kprof's, into FOLDER/keys (node,
//                                              identity, tier), FOLDER/minutes (minute, tier) and
//                                              FOLDER/p99 (of the fourth tier, ns)
// BEGIN is in seconds since 1970, a whole hour. Exit status: 0 done, 1 not, 2 wrong usage.
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/limits.h"
#include "base/log.h"
#include "export/export.h"
#include "model/directory/directory.h"
#include "model/stats/stats.h"
#include "store/changes.h"
#include "store/internal.h"
#include "store/store.h"
#include "store/writer.h"

enum {
    MINUTE = 60,
    NODES_MOST = 200,
    IDENTITIES_MOST = 100,
    TIERS_MOST = 50,
    WATCHED_TIER = 3,     // whose 99th percentile is asked for
    PATH_IDENTITIES = 10, // one in so many has paths
    LONGEST_US = 100000,
    SETS = LIMIT_PIPELINES,
    NAME_BYTES = 64,
    POLL_MS = 10
};

static struct fleet {
    int collectors, nodes, identities, tiers, requests, minutes;
    int number; // of this collector
    const char *clock_file, *export_to, *password_file, *name;
} fleet = {
    .collectors = 1, .nodes = 50, .identities = 20, .tiers = 10, .requests = 12, .minutes = 120};

static volatile sig_atomic_t ending;

// -- what is made ---------------------------------------------------------------------------------

static uint64_t mixed(uint64_t a, uint64_t b) {
    uint64_t x = (a + 0x9e3779b97f4a7c15) * 0xc2b2ae3d27d4eb4f ^ b * 0x165667b19e3779f9;
    x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9;
    return x ^ x >> 29;
}

// The requests of an identity in a minute on a node, which is numbered through the whole fleet.
struct group {
    int node, identity, minute;
    uint64_t seed;
    int requests;
};

static struct group group_of(int node, int identity, int minute) {
    struct group g = {.node = node, .identity = identity, .minute = minute};
    g.seed = mixed(mixed((uint64_t)node, (uint64_t)identity), (uint64_t)minute);
    g.requests = fleet.requests + (int)(g.seed % 5) - 2;
    g.requests = g.requests < 1 ? 1 : g.requests;
    return g;
}

// How long one of them was in a tier, ns: mostly short, seldom long.
static uint64_t duration_of(const struct group *g, int request, int tier, bool *error) {
    uint64_t x = mixed(g->seed, (uint64_t)(request * TIERS_MOST + tier));
    uint64_t part = x % 1000;
    *error = (x >> 40) % 100 == 0;
    return 20000 + (uint64_t)tier * 5000 + part * part * part / 20 + (x >> 20) % 1000;
}

static int64_t minute_start(int64_t begin, int minute) {
    return begin + (int64_t)minute * MINUTE;
}

static void node_name(int node, char out[NAME_BYTES]) {
    snprintf(out, NAME_BYTES, "shop%04d@host%04d.example", node, node);
}

static void identity_name(int identity, char out[NAME_BYTES]) {
    snprintf(out, NAME_BYTES, "identity%02d", identity);
}

static void tier_name(int tier, char out[NAME_BYTES]) {
    snprintf(out, NAME_BYTES, "tier%02d", tier);
}

// -- a collector ----------------------------------------------------------------------------------

static struct directory names;
static uint16_t nodes[NODES_MOST], identities[IDENTITIES_MOST], tiers[TIERS_MOST];

static bool name_all(void) {
    char text[NAME_BYTES];
    if (!directory_init(&names)) {
        return false;
    }
    for (int i = 0; i < fleet.nodes; i++) {
        node_name(fleet.number * fleet.nodes + i, text);
        nodes[i] = directory_node(&names, slice_text(text));
    }
    for (int i = 0; i < fleet.identities; i++) {
        identity_name(i, text);
        identities[i] = directory_identity(&names, slice_text(text));
    }
    for (int i = 0; i < fleet.tiers; i++) {
        tier_name(i, text);
        tiers[i] = directory_tier(&names, slice_text(text));
    }
    return true;
}

static struct stat_row *row_of(struct stats *set, int64_t at, int node, int identity,
                               uint16_t tier) {
    struct stat_row *row =
        stats_row(set, (struct stat_key){at, nodes[node], identities[identity], tier});
    if (!row) {
        fprintf(stderr, "no memory, or a cap was reached\n");
        exit(EXIT_FAILURE);
    }
    return row;
}

static void count(struct stat_row *row, uint64_t ns, bool error) {
    row->requests++;
    row->errors += error;
    row->total_ns += ns;
    row->self_ns += ns;
    stats_count(row, ns);
}

// A tier's calls once more, by their place in the tree.
static void add_path(struct stats *set, const struct stat_row *row, int node, int tier) {
    uint32_t path = paths_below(&names.paths, nodes[node], PATH_ROOT, tiers[tier]);
    struct path_row *p =
        stats_path(set, row->key.bucket_start, nodes[node], row->key.identity, path);
    if (p) {
        p->calls += row->calls;
        p->errors += row->errors;
        p->total_ns += row->total_ns;
        p->self_ns += row->self_ns;
        p->duration_ns += row->duration_ns;
        p->min_ns = row->min_ns < p->min_ns ? row->min_ns : p->min_ns;
        p->max_ns = row->max_ns > p->max_ns ? row->max_ns : p->max_ns;
    }
}

// An identity's requests of a minute on a node. How many there were.
static uint64_t add_group(struct stats *set, int64_t at, int node, const struct group *g) {
    uint64_t whole[256] = {0};
    bool error;
    for (int t = 0; t < fleet.tiers; t++) {
        struct stat_row *row = row_of(set, at, node, g->identity, tiers[t]);
        for (int r = 0; r < g->requests; r++) {
            uint64_t ns = duration_of(g, r, t, &error);
            whole[r] += ns;
            count(row, ns, error);
        }
        if (g->identity % PATH_IDENTITIES == 0) {
            add_path(set, row, node, t);
        }
    }
    struct stat_row *row = row_of(set, at, node, g->identity, TIER_TOTAL);
    for (int r = 0; r < g->requests; r++) {
        count(row, whole[r], false);
    }
    return (uint64_t)g->requests;
}

static void add_node(struct stats *set, int64_t at, int minute, int node) {
    uint64_t requests = 0;
    for (int i = 0; i < fleet.identities; i++) {
        struct group g = group_of(fleet.number * fleet.nodes + node, i, minute);
        requests += add_group(set, at, node, &g);
    }
    struct ledger_row *ledger = stats_ledger(set, at, nodes[node]);
    ledger->requests_complete += requests;
    ledger->calls += requests * (uint64_t)fleet.tiers;
    for (int t = 0; t < fleet.tiers; t++) {
        struct cost_row *cost = stats_cost(set, at, nodes[node], tiers[t]);
        if (cost) {
            cost->calls += requests;
            cost->messages += 2 * requests;
        }
    }
}

// Into several sets, as a collector with --threads does: a minute is more than fits into one.
static bool gather(struct stats **sets, int64_t begin, int minute) {
    bool fits = true;
    for (int s = 0; s < SETS; s++) {
        stats_reset(sets[s]);
        for (int n = s; n < fleet.nodes; n += SETS) {
            add_node(sets[s], minute_start(begin, minute), minute, n);
        }
        stats_add_totals(sets[s]);
        fits = fits && !stats_overflowed(sets[s]) && !stats_coarse(sets[s]);
    }
    return fits;
}

// How many minutes the file has: it alone survives a kill.
static int minutes_written(struct store *s, int64_t begin) {
    int64_t last = store_integer(
        s, "SELECT max(bucket_start) FROM ledger_rows WHERE resolution_s = 60", INT64_MIN);
    return last < begin ? 0 : (int)((last - begin) / MINUTE) + 1;
}

// How far the fleet's time is; without a clock all of it is over.
static int clock_minute(void) {
    char text[16] = "";
    if (!fleet.clock_file) {
        return fleet.minutes;
    }
    int fd = open(fleet.clock_file, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) {
        close(fd);
    }
    return n > 0 ? atoi(text) : 0;
}

// One transaction for a minute of all nodes: a kill leaves all of it, or nothing.
static bool submit(struct writer *w, struct stats **sets, int64_t begin, int minute) {
    if (!gather(sets, begin, minute) ||
        !writer_submit_sets(w, (const struct stats *const *)sets, SETS, &names)) {
        fprintf(stderr, "minute %d does not fit\n", minute);
        return false;
    }
    return writer_wait(w);
}

static bool go_on(struct writer *w, int64_t begin, int minute) {
    const struct timespec rest = {.tv_nsec = POLL_MS * 1000000L};
    struct stats *sets[SETS];
    bool ok = true;
    for (int s = 0; s < SETS; s++) {
        sets[s] = stats_new();
        ok = ok && sets[s];
    }
    printf("at %d\n", minute);
    while (ok && !ending && (fleet.clock_file || minute < fleet.minutes)) {
        while (ok && !ending && minute < clock_minute()) {
            ok = submit(w, sets, begin, minute);
            minute += ok;
            printf("at %d\n", minute);
        }
        nanosleep(&rest, NULL);
    }
    for (int s = 0; s < SETS; s++) {
        stats_free(sets[s]);
    }
    return ok;
}

static bool read_password(char *out, size_t room) {
    FILE *file = fopen(fleet.password_file, "r");
    bool ok = file && fgets(out, (int)room, file);
    if (file) {
        fclose(file);
    }
    out[strcspn(out, "\n")] = 0;
    return ok;
}

static struct exporter *start_export(const char *db, struct writer *w) {
    char why[EXPORT_WHY_BYTES] = "no password", password[256] = "";
    const struct export_options options = {.url = fleet.export_to,
                                           .password = fleet.password_file ? password : NULL,
                                           .name = fleet.name,
                                           .database = db};
    if (fleet.password_file && !read_password(password, sizeof password)) {
        fprintf(stderr, "%s: %s\n", fleet.password_file, why);
        return NULL;
    }
    struct exporter *e = exporter_start(&options, w, why);
    if (!e) {
        fprintf(stderr, "%s\n", why);
    }
    return e;
}

// The end is that of kprof-collector: what is written is sent, then the writer ends.
static int run(const char *db, int64_t begin) {
    char error[STORE_ERROR_BYTES];
    struct store *s;
    struct exporter *exporter = NULL;
    const struct writer_options options = {.bucket_s = MINUTE};
    if (!name_all() || store_open(db, &s, error) != STORE_OK) {
        fprintf(stderr, "%s\n", error);
        return EXIT_FAILURE;
    }
    int minute = minutes_written(s, begin); // before the writer has the connection
    struct writer *w = store_follow(s) ? writer_start(s, &options) : NULL;
    bool ok =
        w && (!fleet.export_to || (exporter = start_export(db, w))) && go_on(w, begin, minute);
    exporter_stop(exporter);
    ok = writer_stop(w) && ok;
    store_close(s);
    directory_free(&names);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// -- the truth ------------------------------------------------------------------------------------

struct sums {
    uint64_t requests, calls, errors, total_ns, min_ns, max_ns;
};

static void add(struct sums *s, uint64_t ns, bool error) {
    s->requests++;
    s->calls++;
    s->errors += error;
    s->total_ns += ns;
    s->min_ns = s->min_ns == 0 || ns < s->min_ns ? ns : s->min_ns;
    s->max_ns = ns > s->max_ns ? ns : s->max_ns;
}

static void print_sums(FILE *file, const struct sums *s) {
    fprintf(file,
            "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
            s->requests, s->calls, s->errors, s->total_ns, s->min_ns, s->max_ns);
}

// All that is counted, of one node at a time by key, of all by minute.
static struct {
    struct sums keys[IDENTITIES_MOST + 1][TIERS_MOST + 1]; // the last ones: _total
    struct sums *minutes;                                  // of each minute fleet.tiers + 1
    uint64_t watched[LONGEST_US + 1];                      // calls, by us
} truth;

static void add_true(int identity, int tier, int minute, uint64_t ns, bool error) {
    add(&truth.keys[identity][tier], ns, error);
    add(&truth.keys[fleet.identities][tier], ns, error);
    add(&truth.minutes[minute * (fleet.tiers + 1) + tier], ns, error);
    if (tier == WATCHED_TIER) {
        truth.watched[ns / 1000 < LONGEST_US ? ns / 1000 : LONGEST_US]++;
    }
}

static void add_true_node(int node) {
    bool error;
    for (int i = 0; i < fleet.identities; i++) {
        for (int m = 0; m < fleet.minutes; m++) {
            struct group g = group_of(node, i, m);
            for (int r = 0; r < g.requests; r++) {
                uint64_t whole = 0;
                for (int t = 0; t < fleet.tiers; t++) {
                    uint64_t ns = duration_of(&g, r, t, &error);
                    whole += ns;
                    add_true(i, t, m, ns, error);
                }
                add_true(i, fleet.tiers, m, whole, false);
            }
        }
    }
}

static void print_keys(FILE *file, int node) {
    char name[NAME_BYTES], identity[NAME_BYTES] = "_total", tier[NAME_BYTES] = "_total";
    node_name(node, name);
    for (int i = 0; i <= fleet.identities; i++) {
        for (int t = 0; t <= fleet.tiers; t++) {
            if (i < fleet.identities) {
                identity_name(i, identity);
            }
            if (t < fleet.tiers) {
                tier_name(t, tier);
            }
            fprintf(file, "%s\t%s\t%s", name, i < fleet.identities ? identity : "_total",
                    t < fleet.tiers ? tier : "_total");
            print_sums(file, &truth.keys[i][t]);
        }
    }
}

static void print_minutes(FILE *file) {
    char tier[NAME_BYTES];
    for (int m = 0; m < fleet.minutes; m++) {
        for (int t = 0; t <= fleet.tiers; t++) {
            tier_name(t, tier);
            fprintf(file, "%d\t%s", m, t < fleet.tiers ? tier : "_total");
            print_sums(file, &truth.minutes[m * (fleet.tiers + 1) + t]);
        }
    }
}

static void print_p99(FILE *file) {
    uint64_t all = 0, sum = 0;
    int us = 0;
    for (int i = 0; i <= LONGEST_US; i++) {
        all += truth.watched[i];
    }
    while (us < LONGEST_US && (sum += truth.watched[us]) < (all * 99 + 99) / 100) {
        us++;
    }
    fprintf(file, "%d\n", us * 1000 + 500);
}

static FILE *open_file(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    return file;
}

static int tell_truth(const char *folder) {
    FILE *keys = open_file(folder, "keys"), *minutes = open_file(folder, "minutes");
    FILE *p99 = open_file(folder, "p99");
    truth.minutes =
        calloc((size_t)fleet.minutes * (size_t)(fleet.tiers + 1), sizeof *truth.minutes);
    for (int n = 0; truth.minutes && n < fleet.collectors * fleet.nodes; n++) {
        memset(truth.keys, 0, sizeof truth.keys);
        add_true_node(n);
        print_keys(keys, n);
    }
    bool ok = truth.minutes;
    if (ok) {
        print_minutes(minutes);
        print_p99(p99);
    }
    free(truth.minutes);
    ok = fclose(keys) == 0 && ok;
    ok = fclose(minutes) == 0 && ok;
    return fclose(p99) == 0 && ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// -- the command line -----------------------------------------------------------------------------

static const struct option options[] = {{"collectors", required_argument, NULL, 'c'},
                                        {"nodes", required_argument, NULL, 'n'},
                                        {"identities", required_argument, NULL, 'i'},
                                        {"tiers", required_argument, NULL, 't'},
                                        {"requests", required_argument, NULL, 'r'},
                                        {"minutes", required_argument, NULL, 'm'},
                                        {"number", required_argument, NULL, 'N'},
                                        {"clock", required_argument, NULL, 'C'},
                                        {"export", required_argument, NULL, 'e'},
                                        {"export-password-file", required_argument, NULL, 'p'},
                                        {"export-as", required_argument, NULL, 'a'},
                                        {0}};

static bool take_option(int letter) {
    const struct {
        int letter, least, most;
        int *to;
    } numbers[] = {{'c', 1, 1000, &fleet.collectors},
                   {'n', 1, NODES_MOST, &fleet.nodes},
                   {'i', 1, IDENTITIES_MOST, &fleet.identities},
                   {'t', WATCHED_TIER + 1, TIERS_MOST, &fleet.tiers},
                   {'r', 1, 200, &fleet.requests}, // of add_group's
                   {'m', 1, 1000000, &fleet.minutes},
                   {'N', 0, 999, &fleet.number}};
    const struct {
        int letter;
        const char **to;
    } texts[] = {{'C', &fleet.clock_file},
                 {'e', &fleet.export_to},
                 {'p', &fleet.password_file},
                 {'a', &fleet.name}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].letter == letter) {
            *numbers[i].to = atoi(optarg);
            return *numbers[i].to >= numbers[i].least && *numbers[i].to <= numbers[i].most;
        }
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i].letter == letter) {
            *texts[i].to = optarg;
            return true;
        }
    }
    return false;
}

static void on_term(int number) {
    (void)number;
    ending = 1;
}

int main(int argc, char **argv) {
    bool ok = true;
    for (int letter; ok && (letter = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        ok = take_option(letter);
    }
    argc -= optind;
    argv += optind;
    if (ok && argc == 2 && strcmp(argv[0], "truth") == 0) {
        return tell_truth(argv[1]);
    }
    if (!ok || argc != 3 || strcmp(argv[0], "run") != 0 || (fleet.export_to && !fleet.name)) {
        fprintf(stderr, "usage: fleet_collector run DB BEGIN | truth FOLDER [OPTION...]; "
                        "tests/bench/fleet_collector.c tells more\n");
        return 2;
    }
    signal(SIGTERM, on_term);
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    hash_seed();
    log_start();
    return run(argv[1], strtoll(argv[2], NULL, 10));
}
