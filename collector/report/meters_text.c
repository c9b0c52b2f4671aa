// SPDX-License-Identifier: Apache-2.0
// Meters as the text of Prometheus or OpenMetrics.
#include <inttypes.h>
#include <string.h>

#include "report/meters.h"
#include "report/meters_inside.h"

struct text {
    struct buffer *out;
    const struct meters_question *q;
    const char *name; // of the family's lines, with end behind it
    const char *end;
};

static bool is_open(const struct text *t) {
    return t->q->form == METERS_OPEN;
}

// -- lines ----------------------------------------------------------------------------------------

// Names are hostile text: a backslash, a quote and a new line would end a label's value early.
static void label(struct text *t, const struct meter_label *l) {
    buffer_printf(t->out, "%s=\"", l->name);
    for (const char *c = l->value; *c; c++) {
        *c == '\\'   ? buffer_text(t->out, "\\\\")
        : *c == '"'  ? buffer_text(t->out, "\\\"")
        : *c == '\n' ? buffer_text(t->out, "\\n")
                     : buffer_append(t->out, c, 1);
    }
    buffer_text(t->out, "\"");
}

static void label_list(struct text *t, const struct meter_label *labels, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        buffer_text(t->out, i > 0 ? "," : "");
        label(t, &labels[i]);
    }
}

static void number(struct text *t, struct meter_value value) {
    uint64_t unit = 1;
    for (uint32_t i = 0; i < value.decimals; i++) {
        unit *= 10;
    }
    buffer_printf(t->out, "%" PRIu64, value.n / unit);
    if (value.decimals > 0) {
        buffer_printf(t->out, ".%0*" PRIu64, (int)value.decimals, value.n % unit);
    }
}

static void seconds(struct text *t, uint64_t ns) {
    number(t, (struct meter_value){ns, 9});
}

// Of a line: the family's name, an ending, labels.
static void head(struct text *t, const char *end, const struct meter_label *labels,
                 uint32_t count) {
    buffer_printf(t->out, "%s%s", t->name, end);
    if (count > 0) {
        buffer_text(t->out, "{");
        label_list(t, labels, count);
        buffer_text(t->out, "}");
    }
    buffer_text(t->out, " ");
}

// -- families -------------------------------------------------------------------------------------

// OpenMetrics names a counter without the _total of its lines.
static void family(void *to, const char *name, enum meter_type type, const char *help) {
    static const char *const types[] = {"counter", "gauge", "histogram"};
    struct text *t = to;
    t->name = name;
    t->end = type == METER_COUNTER ? "_total" : "";
    const char *end = is_open(t) ? "" : t->end;
    buffer_printf(t->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, end, help, name, end,
                  types[type]);
}

static void value(void *to, const struct meter_label *labels, uint32_t count,
                  struct meter_value value) {
    struct text *t = to;
    head(t, t->end, labels, count);
    number(t, value);
    buffer_text(t->out, "\n");
}

static void exemplar(struct text *t, const struct meter_row *row, uint32_t bucket) {
    struct meter_exemplar e;
    if (is_open(t) && meter_exemplar(t->q, row, bucket, &e)) {
        buffer_text(t->out, " # {");
        label_list(t, e.labels, e.count);
        buffer_text(t->out, "} ");
        seconds(t, e.duration_ns);
        buffer_text(t->out, " ");
        seconds(t, e.end_ns);
    }
}

static void histogram(void *to, const struct meter_label *labels, uint32_t count,
                      const struct meter_row *row) {
    struct text *t = to;
    uint64_t calls = 0;
    for (uint32_t i = 0; i <= METER_BUCKETS; i++) {
        calls += row->buckets[i];
        buffer_printf(t->out, "%s_bucket{", t->name);
        label_list(t, labels, count);
        buffer_text(t->out, ",le=\"");
        i < METER_BUCKETS ? seconds(t, meter_bucket_end(i)) : (void)buffer_text(t->out, "+Inf");
        buffer_printf(t->out, "\"} %" PRIu64, calls);
        exemplar(t, row, i);
        buffer_text(t->out, "\n");
    }
    head(t, "_sum", labels, count);
    seconds(t, row->duration_ns);
    buffer_text(t->out, "\n");
    head(t, "_count", labels, count);
    buffer_printf(t->out, "%" PRIu64 "\n", calls);
}

void meters_text(const struct meters *m, const struct meters_question *q, struct buffer *out) {
    struct text t = {.out = out, .q = q};
    meters_tell(m, &(struct meters_form_writer){family, value, histogram, &t});
    if (is_open(&t)) {
        buffer_text(out, "# EOF\n");
    }
}
