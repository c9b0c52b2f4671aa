// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/meters.h"
#include "report/meters_inside.h"

struct text {
    struct buffer *out;
    const struct meters *m;
    const struct slow_list *examples;
    bool open; // METERS_OPEN
};

// -- lines ----------------------------------------------------------------------------------------

// Names are hostile text: a backslash, a quote and a new line would end a label's value early.
static void label(struct text *t, const char *name, const char *value) {
    buffer_printf(t->out, "%s=\"", name);
    for (const char *c = value; *c; c++) {
        *c == '\\'   ? buffer_text(t->out, "\\\\")
        : *c == '"'  ? buffer_text(t->out, "\\\"")
        : *c == '\n' ? buffer_text(t->out, "\\n")
                     : buffer_append(t->out, c, 1);
    }
    buffer_text(t->out, "\"");
}

// What the lines of a family are called. OpenMetrics names a counter without the _total of its
// lines.
static void family(struct text *t, const char *name, const char *type, const char *help) {
    const char *end = strcmp(type, "counter") == 0 && !t->open ? "_total" : "";
    buffer_printf(t->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, end, help, name, end, type);
}

static void seconds(struct text *t, uint64_t ns) {
    buffer_printf(t->out, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
}

static void row_labels(struct text *t, const struct meter_names *names) {
    label(t, "node", names->node);
    buffer_text(t->out, ",");
    label(t, "identity", names->identity);
    buffer_text(t->out, ",");
    label(t, "tier", names->tier);
}

// -- per node, identity and tier ------------------------------------------------------------------

static const struct row_family {
    const char *name, *help;
    size_t field;
    bool time;
} row_families[] = {
    {"kprof_requests", "Requests that called the tier; the tier _total is the whole request.",
     offsetof(struct meter_row, requests), false},
    {"kprof_errors", "Calls of the tier that ended in an exception.",
     offsetof(struct meter_row, errors), false},
    {"kprof_self_seconds",
     "Time of requests in the tier itself, without the calls below; of _total, in no tier.",
     offsetof(struct meter_row, self_ns), true},
    {"kprof_wait_seconds", "Time between the asking and the start of calls in other processes.",
     offsetof(struct meter_row, wait_ns), true},
};

static void row_counters(struct text *t, const struct row_family *f) {
    family(t, f->name, "counter", f->help);
    for (uint32_t i = 0; i < t->m->count; i++) {
        const struct meter_row *row = &t->m->rows[i];
        uint64_t value = *(const uint64_t *)((const char *)row + f->field);
        buffer_printf(t->out, "%s_total{", f->name);
        row_labels(t, &row->names);
        buffer_text(t->out, "} ");
        f->time ? seconds(t, value) : buffer_printf(t->out, "%" PRIu64, value);
        buffer_text(t->out, "\n");
    }
}

// The end of a bucket in ns; 0: there is none.
static uint64_t bucket_end(uint32_t bucket) {
    return bucket < METER_BUCKETS ? 1ull << (METER_FIRST_POWER + bucket) : 0;
}

// A whole request of the row that lies in the bucket, the slowest.
static const struct slow_request *example_of(const struct text *t, const struct meter_names *names,
                                             uint32_t bucket) {
    uint64_t end = bucket_end(bucket);
    uint64_t after = bucket > 0 ? bucket_end(bucket - 1) : 0;
    for (uint32_t i = 0; t->examples && t->open && i < t->examples->count; i++) {
        const struct slow_request *r = &t->examples->requests[i];
        uint64_t ns = (uint64_t)r->duration_ns;
        if (ns > after && (end == 0 || ns <= end) && !r->cut && strcmp(r->node, names->node) == 0 &&
            strcmp(r->identity, names->identity) == 0) {
            return r;
        }
    }
    return NULL;
}

static void exemplar(struct text *t, const struct slow_request *r) {
    uint64_t end = (uint64_t)r->started_ns + (uint64_t)r->duration_ns;
    buffer_printf(t->out, " # {slow=\"%" PRId64 "\"} ", r->id);
    seconds(t, (uint64_t)r->duration_ns);
    buffer_text(t->out, " ");
    seconds(t, end);
}

static void row_buckets(struct text *t, const struct meter_row *row) {
    static const char name[] = "kprof_call_duration_seconds";
    bool whole = strcmp(row->names.tier, "_total") == 0;
    uint64_t count = 0;
    for (uint32_t i = 0; i <= METER_BUCKETS; i++) {
        count += row->buckets[i];
        buffer_printf(t->out, "%s_bucket{", name);
        row_labels(t, &row->names);
        buffer_text(t->out, ",le=\"");
        i < METER_BUCKETS ? seconds(t, bucket_end(i)) : (void)buffer_text(t->out, "+Inf");
        buffer_printf(t->out, "\"} %" PRIu64, count);
        const struct slow_request *example =
            whole && row->buckets[i] > 0 ? example_of(t, &row->names, i) : NULL;
        if (example) {
            exemplar(t, example);
        }
        buffer_text(t->out, "\n");
    }
    buffer_printf(t->out, "%s_sum{", name);
    row_labels(t, &row->names);
    buffer_text(t->out, "} ");
    seconds(t, row->duration_ns);
    buffer_printf(t->out, "\n%s_count{", name);
    row_labels(t, &row->names);
    buffer_printf(t->out, "} %" PRIu64 "\n", count);
}

// -- per node -------------------------------------------------------------------------------------

// Columns of the ledger that end in _ms are told in seconds.
static void ledger_column(struct text *t, const char *column, size_t field) {
    size_t len = strlen(column);
    bool ms = len > 3 && strcmp(column + len - 3, "_ms") == 0;
    char name[96], help[160];
    snprintf(name, sizeof name, "kprof_ledger_%.*s%s", (int)(ms ? len - 3 : len), column,
             ms ? "_seconds" : "");
    snprintf(help, sizeof help, "The column %s of the view ledger%s.", column,
             ms ? ", in seconds" : "");
    family(t, name, "counter", help);
    for (uint32_t i = 0; i < t->m->node_count; i++) {
        const struct meter_node *node = &t->m->nodes[i];
        uint64_t value = *(const uint64_t *)((const char *)&node->ledger + field);
        buffer_printf(t->out, "%s_total{", name);
        label(t, "node", node->name);
        buffer_text(t->out, "} ");
        ms ? buffer_printf(t->out, "%" PRIu64 ".%03" PRIu64, value / 1000, value % 1000)
           : buffer_printf(t->out, "%" PRIu64, value);
        buffer_text(t->out, "\n");
    }
}

static double connected_of(const struct meter_node *node) {
    return node->connected;
}

static double tracing_of(const struct meter_node *node) {
    return node->tracing;
}

static double level_of(const struct meter_node *node) {
    return (double)node->level_ppm / 1e6;
}

static void node_gauge(struct text *t, const char *name, const char *help,
                       double value(const struct meter_node *node)) {
    family(t, name, "gauge", help);
    for (uint32_t i = 0; i < t->m->node_count; i++) {
        buffer_printf(t->out, "%s{", name);
        label(t, "node", t->m->nodes[i].name);
        buffer_printf(t->out, "} %.6g\n", value(&t->m->nodes[i]));
    }
}

// -- the collector itself -------------------------------------------------------------------------

static void number(struct text *t, const char *name, const char *help, int64_t value) {
    family(t, name, "gauge", help);
    buffer_printf(t->out, "%s %" PRId64 "\n", name, value);
}

static void own(struct text *t) {
    const struct meters *m = t->m;
    uint32_t connected = 0;
    for (uint32_t i = 0; i < m->node_count; i++) {
        connected += m->nodes[i].connected;
    }
    family(t, "kprof_build_info", "gauge", "The version of the collector.");
    buffer_text(t->out, "kprof_build_info{version=\"" KPROF_VERSION "\"} 1\n");
    number(t, "process_start_time_seconds",
           "When the collector began, since 1970 UTC; all counters began then.", m->begun_s);
    number(t, "kprof_nodes_connected", "Nodes that are connected.", connected);
    number(t, "kprof_rows_waiting", "Rows of statistics that the next flush writes.",
           m->queue.rows);
    number(t, "kprof_database_refused_seconds",
           "For how long the database has refused to be written; 0: it can be.",
           m->queue.unwritten_s);
    family(t, "kprof_left_out_calls", "counter",
           "Calls of nodes, identities and tiers that have no series here: there are too many.");
    buffer_printf(t->out, "kprof_left_out_calls_total %" PRIu64 "\n", m->left_out);
}

void meters_text(const struct meters *m, enum meters_form form, const struct slow_list *examples,
                 struct buffer *out) {
    struct text t = {.out = out, .m = m, .examples = examples, .open = form == METERS_OPEN};
    own(&t);
    node_gauge(&t, "kprof_node_connected", "1: the node is connected.", connected_of);
    node_gauge(&t, "kprof_node_tracing", "1: the node is traced.", tracing_of);
    node_gauge(&t, "kprof_node_sampling_ratio",
               "What the guard lets through of the sampling that was asked for.", level_of);
#define WRITE_COLUMN(column) ledger_column(&t, #column, offsetof(struct ledger_row, column));
    LEDGER_COLUMNS(WRITE_COLUMN)
#undef WRITE_COLUMN
    for (size_t i = 0; i < sizeof row_families / sizeof *row_families; i++) {
        row_counters(&t, &row_families[i]);
    }
    family(&t, "kprof_call_duration_seconds", "histogram",
           "Durations of the tier's calls; of the tier _total, of requests.");
    for (uint32_t i = 0; i < m->count; i++) {
        row_buckets(&t, &m->rows[i]);
    }
    if (t.open) {
        buffer_text(out, "# EOF\n");
    }
}
