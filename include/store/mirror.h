// SPDX-License-Identifier: Apache-2.0
// A store whose rows are somewhere else, in an engine that many collectors send theirs to. Each
// question fetches the rows that it is about into a database in memory, added up as far as the
// question allows, and is then answered there as that of a file is: by the same statements, with
// the same numbers. What a question has fetched the next one forgets.
//
// Notes, profiles and refusals are nowhere but in files: a mirror has none.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/changes.h"
#include "store/query.h"

// Rows of one resolution, from `from` until `until`, both starts of buckets.
struct piece {
    uint32_t resolution_s;
    int64_t from_s, until_s;
};

// A resolution, and the first and the last bucket that it has.
struct extent {
    uint32_t resolution_s;
    int64_t first_s, last_s; // their starts
};

// Which requests that are kept whole.
enum mirror_requests {
    MIRROR_LONGEST, // the `most` longest
    MIRROR_SLOW,    // of each identity the `most` longest of those that query_slow_sums takes
    MIRROR_ONE,     // the one with `id`
    MIRROR_PARTS    // those that have a label in common with that
};

// What is asked for. Choices as in store/query.h; NULL: all.
struct mirror_ask {
    enum change_table table;
    const char *node, *identity, *tier;

    // of all tables but those of kept requests
    const struct piece *pieces;
    int piece_count;
    bool each_bucket;      // false: rows of a resolution together, under their first bucket
    bool counts;           // with histograms; else these are empty,
    const char *counts_of; // and so are those of other tiers

    // of kept requests, and of their spans
    enum mirror_requests requests;
    int64_t from_ns, until_ns; // their begins, since 1970 UTC
    bool failed;               // only those
    uint32_t most;
    int64_t id;

    int64_t deadline_ns; // monotonic; INT64_MAX: none
};

// Where rows come from. All are called by the thread that asks the store; false: `why`,
// STORE_ERROR_BYTES, says why.
struct mirror_source {
    void *arg;
    const char *name; // for messages
    // Every resolution that there is, finest first: at most so many.
    bool (*extents)(void *arg, int64_t deadline_ns, struct extent *out, int most, int *count,
                    char *why);
    // Gives each row to take, with the cells of its change_shape. Rows of statistics are of all
    // nodes asked for together: the name of their node means nothing. take: false ends it, and
    // fails.
    bool (*rows)(void *arg, const struct mirror_ask *ask,
                 bool (*take)(void *to, const struct change_cell *cells), void *to, char *why);
    // Each name of a node, or of a tier (in the order in which query_tiers has them).
    bool (*names)(void *arg, int64_t deadline_ns, bool tiers,
                  void (*each)(void *to, const char *name), void *to, char *why);
    // Each name of a cluster that collectors are of.
    bool (*clusters)(void *arg, int64_t deadline_ns, void (*each)(void *to, const char *name),
                     void *to, char *why);
    // From now on only rows of these clusters are asked for: a choice; NULL: of all that may be.
    // False without memory.
    bool (*choose)(void *arg, const char *clusters);
    void (*close)(void *arg);
};

// Opens it. The source is closed with the store, or here on failure: then *out is NULL, and error
// says why.
enum store_status store_open_mirror(const struct mirror_source *source, struct store **out,
                                    char error[STORE_ERROR_BYTES]);

// Calls each for every cluster that there is a choice of, in alphabetical order: for none of a
// file. False when the question failed.
bool query_clusters(struct store *s, void (*each)(void *arg, const char *name), void *arg);
// Whether it is a mirror: then notes and profiles are elsewhere.
bool store_is_mirror(const struct store *s);
// All questions from now on are of these clusters: a choice; NULL: of all. Nothing for a file.
// False without memory.
bool store_choose_clusters(struct store *s, const char *clusters);
