// SPDX-License-Identifier: Apache-2.0
// What meters are made of, for the files that count, that say what is told, and that write it.
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
    uint64_t self_ns, wait_ns, measured_ns, waiting_ns, duration_ns;
    uint64_t buckets[METER_BUCKETS + 1]; // each its own; the last: longer ones
    // The same calls, as finely as they are stored. It never becomes coarser: a scraper would take
    // counts that change their buckets for calls.
    struct histogram durations;
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
    METER_ROW_SERIES = 6 + METER_BUCKETS + 3,
    METER_NODE_SERIES = 3 LEDGER_COLUMNS(METER_ONE),
    METER_OWN_SERIES = 8
};
#undef METER_ONE

// -- what is told, whatever the form --------------------------------------------------------------

enum meter_type { METER_COUNTER, METER_GAUGE, METER_HISTOGRAM };

struct meter_label {
    const char *name, *value; // value: hostile text
};

// n / 10^decimals
struct meter_value {
    uint64_t n;
    uint32_t decimals;
};

// A form. It is told of each family, and then of all that is in it.
struct meters_form_writer {
    // name: without the _total of a counter's lines.
    void (*family)(void *to, const char *name, enum meter_type type, const char *help);
    void (*value)(void *to, const struct meter_label *labels, uint32_t count,
                  struct meter_value value);
    void (*histogram)(void *to, const struct meter_label *labels, uint32_t count,
                      const struct meter_row *row);
    void *to;
};

void meters_tell(const struct meters *m, const struct meters_form_writer *writer);

// The end of a row's bucket in ns; 0: there is none.
uint64_t meter_bucket_end(uint32_t bucket);

// An exemplar's labels.
enum { EXEMPLAR_LABELS = 2 };
struct meter_exemplar {
    struct meter_label labels[EXEMPLAR_LABELS];
    uint32_t count;
    uint64_t duration_ns, end_ns; // when it ended, since 1970 UTC
    char id[24];
    char url[METERS_PAGE_BYTES + 32];
};
// A whole request of the row that lies in the bucket, the slowest. False: none is kept.
bool meter_exemplar(const struct meters_question *q, const struct meter_row *row, uint32_t bucket,
                    struct meter_exemplar *out);

void meters_text(const struct meters *m, const struct meters_question *q, struct buffer *out);
void meters_protobuf(const struct meters *m, const struct meters_question *q, struct buffer *out);
