// SPDX-License-Identifier: Apache-2.0
// What a collector has counted since it began, for programs that scrape it: per node, identity and
// tier what the statistics add up, per node the ledger and its state. Every counter only grows, and
// begins anew with the process, whatever the database keeps. What has been idle for longest makes
// room. One thread at a time; a copy may be read by another thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "model/directory/directory.h"
#include "model/stats/stats.h"
#include "store/query_slow.h"

struct meters; // opaque

// NULL without memory. now_s: seconds since 1970 UTC, when the process began.
struct meters *meters_new(int64_t now_s);
void meters_free(struct meters *m);

// Adds a batch of statistics, each batch once. Rows of the identity "_total" are left out: scrapers
// add up themselves.
void meters_take(struct meters *m, const struct stats *batch, const struct directory *names,
                 int64_t now_s);

// A node as it is now.
struct meter_state {
    const char *node;
    bool connected;
    bool tracing;
    int64_t level_ppm; // what the guard lets through of the sampling asked for; 0: not known
};

// How its export stands: as in export/export.h.
struct meter_export {
    bool wanted; // false: there is none, and nothing is told
    bool sending;
    bool twin;
    int64_t behind_s;
    uint64_t marks, rows, refused, lost;
};

// How its OTLP stands: as in export/otlp.h, traces and metrics.
enum { METER_SIGNALS = 2 };
struct meter_otlp {
    bool wanted; // false: there is none, and nothing is told
    struct meter_otlp_signal {
        bool wanted;
        bool sending;
        int64_t behind_s;
        uint64_t waiting, sent, refused, lost;
    } signals[METER_SIGNALS];
    uint64_t late;
};

// What the collector itself waits for.
struct meter_queue {
    uint32_t rows;       // of statistics, that the next flush writes
    int64_t unwritten_s; // for how long the database has refused to be written
    struct meter_export exported;
    struct meter_otlp otlp;
};

// Tells how the nodes are: all of them, of which count are known.
void meters_nodes(struct meters *m, const struct meter_state *nodes, uint32_t count);
void meters_queue(struct meters *m, struct meter_queue queue);

// A copy for meters_write alone; NULL without memory.
struct meters *meters_copy(const struct meters *m);

enum meters_form {
    METERS_PROMETHEUS, // text/plain; version=0.0.4
    METERS_OPEN,       // application/openmetrics-text; version=1.0.0
    METERS_PROTOBUF    // Prometheus's protobuf, each family behind its length: the only one with
                       // native histograms
};

enum { METERS_PAGE_BYTES = 80 };

struct meters_question {
    enum meters_form form;
    // Requests that were kept, which buckets name as exemplars, but not in METERS_PROMETHEUS; NULL:
    // none.
    const struct slow_list *examples;
    // Where the page is, "http://localhost:4712", for links to these; "": nobody knows. Its bytes
    // are none that a label or an address would have to escape.
    char page[METERS_PAGE_BYTES];
};

// Writes them, LIMIT_METRIC_SERIES series at most; a native histogram is none of its own. Check
// out->failed.
void meters_write(const struct meters *m, const struct meters_question *q, struct buffer *out);
// The form as the head of an answer names it.
const char *meters_type(enum meters_form form);
