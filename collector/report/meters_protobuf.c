// SPDX-License-Identifier: Apache-2.0
// Meters as Prometheus's protobuf: each family is a message behind its length. A message's bytes
// one behind the other are one message that has all that is in them: so a family is gathered metric
// by metric. Besides the classic buckets it has the histograms as native ones, which Prometheus
// takes instead where it is told to (--enable-feature=native-histograms).
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "meters.pb-c.h"
#include "report/meters.h"
#include "report/meters_inside.h"

enum {
    GAP = 2,         // so many empty buckets take less than a new span
    LABELS = 3,      // at most
    LENGTH_BYTES = 5 // of a family, as a varint, at most
};

struct writing {
    const struct meters_question *q;
    struct buffer *out;
    struct buffer family; // the one at hand
    enum meter_type type;
    // Scratch for one histogram.
    int64_t deltas[HISTOGRAM_BUCKETS];
    Meters__Span spans[HISTOGRAM_BUCKETS];
    Meters__Span *span_list[HISTOGRAM_BUCKETS];
    Meters__Label exemplar_labels[METER_BUCKETS + 1][EXEMPLAR_LABELS];
    Meters__Label *exemplar_lists[METER_BUCKETS + 1][EXEMPLAR_LABELS];
    struct meter_exemplar found[METER_BUCKETS + 1];
    Meters__Exemplar exemplars[METER_BUCKETS + 1];
    Meters__Time times[METER_BUCKETS + 1];
    Meters__Bucket buckets[METER_BUCKETS + 1];
    Meters__Bucket *bucket_list[METER_BUCKETS + 1];
};

// -- families -------------------------------------------------------------------------------------

static void put(struct writing *w, const Meters__Family *piece) {
    size_t len = meters__family__get_packed_size(piece);
    uint8_t *to = buffer_reserve(&w->family, len);
    if (to) {
        buffer_grow(&w->family, meters__family__pack(piece, to));
    }
}

static void put_metric(struct writing *w, const struct meter_label *labels, uint32_t count,
                       Meters__Metric *metric) {
    Meters__Label of[LABELS];
    Meters__Label *list[LABELS];
    Meters__Family piece = METERS__FAMILY__INIT;
    for (uint32_t i = 0; i < count; i++) {
        of[i] = (Meters__Label)METERS__LABEL__INIT;
        of[i].name = (char *)labels[i].name;
        of[i].value = (char *)labels[i].value;
        list[i] = &of[i];
    }
    metric->n_label = count;
    metric->label = list;
    piece.n_metric = 1;
    piece.metric = &metric;
    put(w, &piece);
}

// The family at hand goes out, behind its length.
static void end_family(struct writing *w) {
    uint8_t length[LENGTH_BYTES];
    size_t n = 0;
    for (size_t left = w->family.len; n == 0 || left > 0; left >>= 7) {
        length[n++] = (uint8_t)((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
    }
    if (w->family.len > 0) {
        buffer_append(w->out, length, n);
        buffer_append(w->out, w->family.data, w->family.len);
    }
    w->out->failed = w->out->failed || w->family.failed;
    buffer_reset(&w->family);
}

static void family(void *to, const char *name, enum meter_type type, const char *help) {
    static const Meters__Type types[] = {METERS__TYPE__COUNTER, METERS__TYPE__GAUGE,
                                         METERS__TYPE__HISTOGRAM};
    struct writing *w = to;
    Meters__Family head = METERS__FAMILY__INIT;
    char whole_name[128];
    end_family(w);
    snprintf(whole_name, sizeof whole_name, "%s%s", name, type == METER_COUNTER ? "_total" : "");
    head.name = whole_name;
    head.help = (char *)help;
    head.type = types[type];
    w->type = type;
    put(w, &head);
}

static void value(void *to, const struct meter_label *labels, uint32_t count,
                  struct meter_value value) {
    struct writing *w = to;
    Meters__Metric metric = METERS__METRIC__INIT;
    Meters__Number number = METERS__NUMBER__INIT;
    number.value = (double)value.n / pow(10, value.decimals);
    if (w->type == METER_COUNTER) {
        metric.counter = &number;
    } else {
        metric.gauge = &number;
    }
    put_metric(w, labels, count, &metric);
}

// -- histograms -----------------------------------------------------------------------------------

static double seconds(uint64_t ns) {
    return (double)ns / 1e9;
}

static Meters__Exemplar *exemplar_of(struct writing *w, const struct meter_row *row,
                                     uint32_t bucket) {
    struct meter_exemplar *e = &w->found[bucket];
    Meters__Exemplar *out = &w->exemplars[bucket];
    if (!meter_exemplar(w->q, row, bucket, e)) {
        return NULL;
    }
    *out = (Meters__Exemplar)METERS__EXEMPLAR__INIT;
    for (uint32_t i = 0; i < e->count; i++) {
        Meters__Label *label = &w->exemplar_labels[bucket][i];
        *label = (Meters__Label)METERS__LABEL__INIT;
        label->name = (char *)e->labels[i].name;
        label->value = (char *)e->labels[i].value;
        w->exemplar_lists[bucket][i] = label;
    }
    out->n_label = e->count;
    out->label = w->exemplar_lists[bucket];
    out->value = seconds(e->duration_ns);
    w->times[bucket] = (Meters__Time)METERS__TIME__INIT;
    w->times[bucket].seconds = (int64_t)(e->end_ns / 1000000000);
    w->times[bucket].nanos = (int32_t)(e->end_ns % 1000000000);
    out->timestamp = &w->times[bucket];
    return out;
}

static void add_classic(struct writing *w, const struct meter_row *row, Meters__Histogram *h) {
    uint64_t calls = 0;
    for (uint32_t i = 0; i <= METER_BUCKETS; i++) {
        Meters__Bucket *bucket = &w->buckets[i];
        *bucket = (Meters__Bucket)METERS__BUCKET__INIT;
        calls += row->buckets[i];
        bucket->cumulative_count = calls;
        bucket->upper_bound = i < METER_BUCKETS ? seconds(meter_bucket_end(i)) : INFINITY;
        bucket->exemplar = exemplar_of(w, row, i);
        w->bucket_list[i] = bucket;
    }
    h->n_bucket = METER_BUCKETS + 1;
    h->bucket = w->bucket_list;
}

// Begins a span at a bucket; at is where the one before ended.
static void begin_span(struct writing *w, Meters__Histogram *h, int32_t at, int32_t bucket) {
    Meters__Span *span = &w->spans[h->n_positive_span];
    *span = (Meters__Span)METERS__SPAN__INIT;
    span->offset = bucket - at;
    w->span_list[h->n_positive_span++] = span;
}

// Only the lowest stored bucket holds no more than 1 ns.
static void add_native(struct writing *w, const struct histogram *of, Meters__Histogram *h) {
    int32_t at = 0; // the bucket behind the last one that is listed
    int64_t before = 0;
    h->schema = HISTOGRAM_SCALE;
    h->zero_threshold = 1e-9;
    for (uint32_t i = 0; i < of->len; i++) {
        int32_t bucket = (int32_t)(of->first + i + 1) - HISTOGRAM_SECOND;
        if (of->first + i == 0) {
            h->zero_count = of->counts[i];
        } else if (of->counts[i] > 0) {
            if (h->n_positive_span == 0 || bucket - at > GAP) {
                begin_span(w, h, at, bucket);
                at = bucket;
            }
            for (; at <= bucket; at++) {
                int64_t count = at == bucket ? (int64_t)of->counts[i] : 0;
                w->deltas[h->n_positive_delta++] = count - before;
                w->spans[h->n_positive_span - 1].length++;
                before = count;
            }
        }
    }
    h->positive_span = w->span_list;
    h->positive_delta = w->deltas;
}

static void histogram(void *to, const struct meter_label *labels, uint32_t count,
                      const struct meter_row *row) {
    struct writing *w = to;
    Meters__Metric metric = METERS__METRIC__INIT;
    Meters__Histogram h = METERS__HISTOGRAM__INIT;
    h.sample_count = row->calls;
    h.sample_sum = seconds(row->duration_ns);
    add_classic(w, row, &h);
    add_native(w, &row->durations, &h);
    metric.histogram = &h;
    put_metric(w, labels, count, &metric);
}

void meters_protobuf(const struct meters *m, const struct meters_question *q, struct buffer *out) {
    struct writing *w = calloc(1, sizeof *w);
    if (!w) {
        out->failed = true;
        return;
    }
    w->q = q;
    w->out = out;
    w->family = buffer_make(out->cap);
    meters_tell(m, &(struct meters_form_writer){family, value, histogram, w});
    end_family(w);
    buffer_free(&w->family);
    free(w);
}
