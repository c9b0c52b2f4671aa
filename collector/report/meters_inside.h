// SPDX-License-Identifier: Apache-2.0
// What meters are made of, for the file that counts and the one that writes the text.
#pragma once

#include "base/map.h"
#include "report/meters.h"

// Buckets end at powers of two of a nanosecond, 131 µs to 8.6 s: there the buckets of the stored
// histograms end, too, so that nothing is rounded.
enum {
    METER_FIRST_POWER = 17,
    METER_LAST_POWER = 33,
    METER_BUCKETS = METER_LAST_POWER - METER_FIRST_POWER + 1
};

struct meter_names {
    char *node; // one piece of memory holds all three
    const char *identity, *tier;
};

struct meter_row {
    struct meter_names names;
    uint64_t hash; // of the names
    int64_t used_s;
    uint64_t requests, calls, errors;
    uint64_t self_ns, wait_ns, duration_ns;
    uint64_t buckets[METER_BUCKETS + 1]; // each its own; the last: longer ones
};

struct meter_node {
    char *name;
    bool known; // by the collector's roster
    bool connected, tracing;
    int64_t level_ppm;
    struct ledger_row ledger; // sums
};

struct meters {
    int64_t begun_s;
    struct meter_row *rows;
    uint32_t count, room;
    struct map index; // rows by hash; empty in a copy
    struct meter_node nodes[LIMIT_NODES];
    uint32_t node_count;
    uint64_t left_out; // calls that no row counts
    struct meter_queue queue;
};

// Series of a row, of a node, and of the rest.
#define METER_ONE(name) +1
enum {
    METER_ROW_SERIES = 4 + METER_BUCKETS + 3,
    METER_NODE_SERIES = 3 LEDGER_COLUMNS(METER_ONE),
    METER_OWN_SERIES = 8
};
#undef METER_ONE
