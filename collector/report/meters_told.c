// SPDX-License-Identifier: Apache-2.0
// What meters tell, whatever the form: the families, what each is called, and what is in it.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/meters.h"
#include "report/meters_inside.h"

// Characters that OpenMetrics allows an exemplar's labels in all, names and values.
enum { EXEMPLAR_CHARACTERS = 128 };

static struct meter_value whole(uint64_t n) {
    return (struct meter_value){n, 0};
}

static struct meter_value seconds(uint64_t ns) {
    return (struct meter_value){ns, 9};
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
    {"kprof_waiting_seconds",
     "Time that requests waited until calls of the tier began, each moment of a request once.",
     offsetof(struct meter_row, waiting_ns), true},
    {"kprof_wait_seconds",
     "The same added up call by call, also where calls wait side by side or nobody waits for them.",
     offsetof(struct meter_row, wait_ns), true},
    {"kprof_wait_measured_seconds",
     "How much of kprof_wait_seconds is measured; else it is estimated.",
     offsetof(struct meter_row, measured_ns), true},
};

_Static_assert(sizeof row_families / sizeof *row_families + METER_BUCKETS + 3 == METER_ROW_SERIES,
               "LIMIT_METRIC_SERIES counts every family");

enum { ROW_LABELS = 3 };

static void labels_of(const struct meter_names *names, struct meter_label out[ROW_LABELS]) {
    out[0] = (struct meter_label){"node", names->node};
    out[1] = (struct meter_label){"identity", names->identity};
    out[2] = (struct meter_label){"tier", names->tier};
}

static void tell_rows(const struct meters *m, const struct meters_form_writer *w) {
    struct meter_label labels[ROW_LABELS];
    for (size_t f = 0; f < sizeof row_families / sizeof *row_families; f++) {
        const struct row_family *family = &row_families[f];
        w->family(w->to, family->name, METER_COUNTER, family->help);
        for (uint32_t i = 0; i < m->count; i++) {
            uint64_t n = *(const uint64_t *)((const char *)&m->rows[i] + family->field);
            labels_of(&m->rows[i].names, labels);
            w->value(w->to, labels, ROW_LABELS, family->time ? seconds(n) : whole(n));
        }
    }
    w->family(w->to, "kprof_call_duration_seconds", METER_HISTOGRAM,
              "Durations of the tier's calls; of the tier _total, of requests.");
    for (uint32_t i = 0; i < m->count; i++) {
        labels_of(&m->rows[i].names, labels);
        w->histogram(w->to, labels, ROW_LABELS, &m->rows[i]);
    }
}

uint64_t meter_bucket_end(uint32_t bucket) {
    return bucket < METER_BUCKETS ? 1ull << (METER_FIRST_POWER + bucket) : 0;
}

static size_t label_characters(const struct meter_label *label) {
    return strlen(label->name) + strlen(label->value);
}

static void exemplar_of(const struct slow_request *r, const char *page,
                        struct meter_exemplar *out) {
    out->duration_ns = (uint64_t)r->duration_ns;
    out->end_ns = (uint64_t)r->started_ns + (uint64_t)r->duration_ns;
    snprintf(out->id, sizeof out->id, "%" PRId64, r->id);
    snprintf(out->url, sizeof out->url, "%s/?slow=%" PRId64, page, r->id);
    out->labels[0] = (struct meter_label){"slow", out->id};
    out->labels[1] = (struct meter_label){"url", out->url};
    bool fits = label_characters(&out->labels[0]) + label_characters(&out->labels[1]) <=
                EXEMPLAR_CHARACTERS;
    out->count = *page && fits ? 2 : 1;
}

bool meter_exemplar(const struct meters_question *q, const struct meter_row *row, uint32_t bucket,
                    struct meter_exemplar *out) {
    uint64_t end = meter_bucket_end(bucket);
    uint64_t after = bucket > 0 ? meter_bucket_end(bucket - 1) : 0;
    if (!q->examples || row->buckets[bucket] == 0 || strcmp(row->names.tier, "_total") != 0) {
        return false;
    }
    for (uint32_t i = 0; i < q->examples->count; i++) {
        const struct slow_request *r = &q->examples->requests[i];
        uint64_t ns = (uint64_t)r->duration_ns;
        if (ns > after && (end == 0 || ns <= end) && !r->cut &&
            strcmp(r->node, row->names.node) == 0 &&
            strcmp(r->identity, row->names.identity) == 0) {
            exemplar_of(r, q->page, out);
            return true;
        }
    }
    return false;
}

// -- per node -------------------------------------------------------------------------------------

// Columns of the ledger that end in _ms are told in seconds.
static void tell_column(const struct meters *m, const struct meters_form_writer *w,
                        const char *column, size_t field) {
    size_t len = strlen(column);
    bool ms = len > 3 && strcmp(column + len - 3, "_ms") == 0;
    char name[96], help[160];
    snprintf(name, sizeof name, "kprof_ledger_%.*s%s", (int)(ms ? len - 3 : len), column,
             ms ? "_seconds" : "");
    snprintf(help, sizeof help, "The column %s of the view ledger%s.", column,
             ms ? ", in seconds" : "");
    w->family(w->to, name, METER_COUNTER, help);
    for (uint32_t i = 0; i < m->node_count; i++) {
        const struct meter_node *node = &m->nodes[i];
        uint64_t n = *(const uint64_t *)((const char *)&node->ledger + field);
        w->value(w->to, &(struct meter_label){"node", node->name}, 1,
                 (struct meter_value){n, ms ? 3 : 0});
    }
}

static struct meter_value connected_of(const struct meter_node *node) {
    return whole(node->connected);
}

static struct meter_value tracing_of(const struct meter_node *node) {
    return whole(node->tracing);
}

static struct meter_value level_of(const struct meter_node *node) {
    return (struct meter_value){(uint64_t)(node->level_ppm > 0 ? node->level_ppm : 0), 6};
}

static void tell_state(const struct meters *m, const struct meters_form_writer *w, const char *name,
                       const char *help, struct meter_value of(const struct meter_node *node)) {
    w->family(w->to, name, METER_GAUGE, help);
    for (uint32_t i = 0; i < m->node_count; i++) {
        w->value(w->to, &(struct meter_label){"node", m->nodes[i].name}, 1, of(&m->nodes[i]));
    }
}

static void tell_nodes(const struct meters *m, const struct meters_form_writer *w) {
    tell_state(m, w, "kprof_node_connected", "1: the node is connected.", connected_of);
    tell_state(m, w, "kprof_node_tracing", "1: the node is traced.", tracing_of);
    tell_state(m, w, "kprof_node_sampling_ratio",
               "What the guard lets through of the sampling that was asked for.", level_of);
#define TELL_COLUMN(column) tell_column(m, w, #column, offsetof(struct ledger_row, column));
    LEDGER_COLUMNS(TELL_COLUMN)
#undef TELL_COLUMN
}

// -- the collector itself -------------------------------------------------------------------------

static void tell_number(const struct meters_form_writer *w, const char *name, const char *help,
                        int64_t value) {
    w->family(w->to, name, METER_GAUGE, help);
    w->value(w->to, NULL, 0, whole(value > 0 ? (uint64_t)value : 0));
}

static void tell_counter(const struct meters_form_writer *w, const char *name, const char *help,
                         uint64_t value) {
    w->family(w->to, name, METER_COUNTER, help);
    w->value(w->to, NULL, 0, whole(value));
}

static void tell_export(const struct meter_export *e, const struct meters_form_writer *w) {
    if (!e->wanted) {
        return;
    }
    tell_number(w, "kprof_export_up", "1: the engine has taken what it was last given.",
                e->sending);
    tell_number(w, "kprof_export_name_taken", "1: another collector exports under the same name.",
                e->twin);
    tell_number(w, "kprof_export_behind_seconds",
                "For how long the oldest change waits to be exported; 0: none does.", e->behind_s);
    tell_number(w, "kprof_export_waiting", "Buckets of nodes that wait to be exported.",
                e->marks < INT64_MAX ? (int64_t)e->marks : INT64_MAX);
    tell_counter(w, "kprof_export_rows", "Rows that the engine has taken.", e->rows);
    tell_counter(w, "kprof_export_refused_rows",
                 "Rows that the engine has refused, since the database was first exported.",
                 e->refused);
    tell_counter(w, "kprof_export_lost_buckets",
                 "Buckets of nodes that were deleted for their age before they were exported, "
                 "since the database was first exported.",
                 e->lost);
}

// -- OTLP -----------------------------------------------------------------------------------------

static uint64_t up_of(const struct meter_otlp_signal *s) {
    return s->sending;
}

static uint64_t behind_of(const struct meter_otlp_signal *s) {
    return s->behind_s > 0 ? (uint64_t)s->behind_s : 0;
}

static uint64_t waiting_of(const struct meter_otlp_signal *s) {
    return s->waiting;
}

static uint64_t sent_of(const struct meter_otlp_signal *s) {
    return s->sent;
}

static uint64_t refused_of(const struct meter_otlp_signal *s) {
    return s->refused;
}

static uint64_t lost_of(const struct meter_otlp_signal *s) {
    return s->lost;
}

static void tell_otlp(const struct meter_otlp *o, const struct meters_form_writer *w) {
    static const char *const names[METER_SIGNALS] = {"traces", "metrics"};
    static const struct {
        const char *name, *help;
        uint64_t (*of)(const struct meter_otlp_signal *s);
        enum meter_type type;
    } families[] = {
        {"kprof_otlp_up", "1: the receiver has taken what it was last given.", up_of, METER_GAUGE},
        {"kprof_otlp_behind_seconds",
         "For how long the oldest request or bucket waits to be sent; 0: none does.", behind_of,
         METER_GAUGE},
        {"kprof_otlp_waiting", "Kept requests, or buckets of nodes, that wait to be sent.",
         waiting_of, METER_GAUGE},
        {"kprof_otlp_sent", "Spans, or data points, that the receiver has taken.", sent_of,
         METER_COUNTER},
        {"kprof_otlp_refused",
         "Spans, or data points, that the receiver has refused, since the database was first sent.",
         refused_of, METER_COUNTER},
        {"kprof_otlp_lost",
         "Kept requests, or buckets of nodes, that were deleted for their age before they were "
         "sent, since the database was first sent.",
         lost_of, METER_COUNTER}};
    for (size_t f = 0; o->wanted && f < sizeof families / sizeof *families; f++) {
        w->family(w->to, families[f].name, families[f].type, families[f].help);
        for (int i = 0; i < METER_SIGNALS; i++) {
            if (o->signals[i].wanted) {
                w->value(w->to, &(struct meter_label){"signal", names[i]}, 1,
                         whole(families[f].of(&o->signals[i])));
            }
        }
    }
    if (o->wanted) {
        tell_counter(w, "kprof_otlp_late_requests",
                     "Requests that are in no metric, as they came after theirs was sent, since "
                     "the database was first sent.",
                     o->late);
    }
}

static void tell_own(const struct meters *m, const struct meters_form_writer *w) {
    uint32_t connected = 0;
    for (uint32_t i = 0; i < m->node_count; i++) {
        connected += m->nodes[i].connected;
    }
    w->family(w->to, "kprof_build_info", METER_GAUGE, "The version of the collector.");
    w->value(w->to, &(struct meter_label){"version", KPROF_VERSION}, 1, whole(1));
    tell_number(w, "process_start_time_seconds",
                "When the collector began, since 1970 UTC; all counters began then.", m->begun_s);
    tell_number(w, "kprof_nodes_connected", "Nodes that are connected.", connected);
    tell_number(w, "kprof_rows_waiting", "Rows of statistics that the next flush writes.",
                m->queue.rows);
    tell_number(w, "kprof_database_refused_seconds",
                "For how long the database has refused to be written; 0: it can be.",
                m->queue.unwritten_s);
    tell_export(&m->queue.exported, w);
    tell_otlp(&m->queue.otlp, w);
    w->family(w->to, "kprof_left_out_calls", METER_COUNTER,
              "Calls of nodes, identities and tiers that have no series here: there are too many.");
    w->value(w->to, NULL, 0, whole(m->left_out));
}

void meters_tell(const struct meters *m, const struct meters_form_writer *writer) {
    tell_own(m, writer);
    tell_nodes(m, writer);
    tell_rows(m, writer);
}

void meters_write(const struct meters *m, const struct meters_question *q, struct buffer *out) {
    q->form == METERS_PROTOBUF ? meters_protobuf(m, q, out) : meters_text(m, q, out);
}

const char *meters_type(enum meters_form form) {
    static const char protobuf[] = "application/vnd.google.protobuf; "
                                   "proto=io.prometheus.client.MetricFamily; encoding=delimited";
    static const char *const types[] = {
        [METERS_PROMETHEUS] = "text/plain; version=0.0.4; charset=utf-8",
        [METERS_OPEN] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
        [METERS_PROTOBUF] = protobuf};
    return types[form];
}
