// SPDX-License-Identifier: Apache-2.0
#include "export/otlp_points.h"

#include "base/time_math.h"
#include "export/otlp_attributes.h"

enum { METRICS = 2 };

static double seconds(int64_t ns) {
    return (double)ns / 1e9;
}

static void put_times(const struct otlp_point *p, uint32_t resolution_s, uint64_t *start,
                      uint64_t *end) {
    *start = attributes_time(time_of_seconds(p->bucket_start));
    *end = attributes_time(time_of_seconds(time_add(p->bucket_start, resolution_s)));
}

// Only the lowest stored bucket holds no more than 1 ns: it is the one of zero.
static void put_counts(const struct histogram *h, Otlp__HistogramPoint *out,
                       Otlp__Buckets *buckets) {
    uint32_t first = h->first > 0 ? h->first : 1; // of those that are told
    while (first < h->first + h->len && h->counts[first - h->first] == 0) {
        first++;
    }
    out->scale = HISTOGRAM_SCALE;
    out->zero_threshold = 1e-9;
    out->zero_count = h->len > 0 && h->first == 0 ? h->counts[0] : 0;
    uint32_t len = h->first + h->len > first ? h->first + h->len - first : 0;
    *buckets = (Otlp__Buckets)OTLP__BUCKETS__INIT;
    if (len > 0) {
        buckets->offset = (int32_t)first - HISTOGRAM_SECOND;
        buckets->bucket_counts = h->counts + (first - h->first);
        buckets->n_bucket_counts = len;
        out->positive = buckets;
    }
}

static bool put(struct buffer *out, const Otlp__MetricsRequest *request) {
    uint8_t *to = buffer_reserve(out, otlp__metrics_request__get_packed_size(request));
    if (to) {
        buffer_grow(out, otlp__metrics_request__pack(request, to));
    }
    return to;
}

// What is put together for one.
struct piece {
    struct attributes of_node, of_point;
    Otlp__HistogramPoint durations, *durations_list;
    Otlp__Buckets buckets;
    Otlp__ExponentialHistogram histogram;
    Otlp__Number errors, *errors_list;
    Otlp__Sum sum;
    Otlp__Metric metrics[METRICS], *metric_list[METRICS];
};

static Otlp__Metric *begin_metric(struct piece *w, int which, const char *name,
                                  const char *description, const char *unit) {
    Otlp__Metric *m = &w->metrics[which];
    *m = (Otlp__Metric)OTLP__METRIC__INIT;
    m->name = (char *)name;
    m->description = (char *)description;
    m->unit = (char *)unit;
    w->metric_list[which] = m;
    return m;
}

static void put_durations(struct piece *w, const struct otlp_point *p, uint32_t resolution_s,
                          const struct histogram *h) {
    Otlp__HistogramPoint *d = w->durations_list = &w->durations;
    *d = (Otlp__HistogramPoint)OTLP__HISTOGRAM_POINT__INIT;
    d->attributes = w->of_point.list;
    d->n_attributes = w->of_point.count;
    put_times(p, resolution_s, &d->start_time_unix_nano, &d->time_unix_nano);
    d->count = (uint64_t)p->calls;
    d->has_sum_case = OTLP__HISTOGRAM_POINT__HAS_SUM_SUM;
    d->sum = seconds(p->duration_ns);
    if (p->min_ns.known && p->max_ns.known) {
        d->has_min_case = OTLP__HISTOGRAM_POINT__HAS_MIN_MIN;
        d->min = seconds(p->min_ns.value);
        d->has_max_case = OTLP__HISTOGRAM_POINT__HAS_MAX_MAX;
        d->max = seconds(p->max_ns.value);
    }
    put_counts(h, d, &w->buckets);
    w->histogram = (Otlp__ExponentialHistogram)OTLP__EXPONENTIAL_HISTOGRAM__INIT;
    w->histogram.data_points = &w->durations_list;
    w->histogram.n_data_points = 1;
    w->histogram.aggregation_temporality = OTLP__TEMPORALITY__TEMPORALITY_DELTA;
    Otlp__Metric *m =
        begin_metric(w, 0, "kprof.request.duration", "Durations of complete requests.", "s");
    m->data_case = OTLP__METRIC__DATA_EXPONENTIAL_HISTOGRAM;
    m->exponential_histogram = &w->histogram;
}

static void put_errors(struct piece *w, const struct otlp_point *p, uint32_t resolution_s) {
    Otlp__Number *e = w->errors_list = &w->errors;
    *e = (Otlp__Number)OTLP__NUMBER__INIT;
    e->attributes = w->of_point.list;
    e->n_attributes = w->of_point.count;
    put_times(p, resolution_s, &e->start_time_unix_nano, &e->time_unix_nano);
    e->value_case = OTLP__NUMBER__VALUE_AS_INT;
    e->as_int = p->errors;
    w->sum = (Otlp__Sum)OTLP__SUM__INIT;
    w->sum.data_points = &w->errors_list;
    w->sum.n_data_points = 1;
    w->sum.aggregation_temporality = OTLP__TEMPORALITY__TEMPORALITY_DELTA;
    w->sum.is_monotonic = true;
    Otlp__Metric *m = begin_metric(w, 1, "kprof.request.errors",
                                   "Complete requests that ended in an exception.", "{request}");
    m->data_case = OTLP__METRIC__DATA_SUM;
    m->sum = &w->sum;
}

// The durations, in h, and the errors.
static bool write_both(const struct otlp_point *p, uint32_t resolution_s, const struct histogram *h,
                       struct buffer *out) {
    struct piece w;
    Otlp__ScopeMetrics scope_metrics = OTLP__SCOPE_METRICS__INIT, *scope_list = &scope_metrics;
    Otlp__Scope scope;
    Otlp__Resource resource = OTLP__RESOURCE__INIT;
    Otlp__ResourceMetrics of = OTLP__RESOURCE_METRICS__INIT, *list = &of;
    Otlp__MetricsRequest request = OTLP__METRICS_REQUEST__INIT;
    w.of_node.count = w.of_point.count = 0;
    attribute_text(&w.of_point, "kprof.identity", p->identity);
    put_durations(&w, p, resolution_s, h);
    put_errors(&w, p, resolution_s);
    attributes_scope(&scope);
    scope_metrics.scope = &scope;
    scope_metrics.metrics = w.metric_list;
    scope_metrics.n_metrics = METRICS;
    attributes_of_node(&w.of_node, p->node);
    resource.attributes = w.of_node.list;
    resource.n_attributes = w.of_node.count;
    of.resource = &resource;
    of.scope_metrics = &scope_list;
    of.n_scope_metrics = 1;
    request.resource_metrics = &list;
    request.n_resource_metrics = 1;
    return put(out, &request);
}

const char *otlp_point_write(const struct otlp_point *p, uint32_t resolution_s,
                             struct histogram *scratch, struct buffer *out) {
    histogram_reset(scratch);
    if (!histogram_valid(p->histogram)) {
        return "its histogram is malformed";
    }
    if (!histogram_read(scratch, p->histogram)) {
        out->failed = true;
        return "there is no memory for it";
    }
    if (p->calls < 0 || p->errors < 0 || histogram_count(scratch) != (uint64_t)p->calls) {
        return "its counts do not add up";
    }
    return write_both(p, resolution_s, scratch, out) ? NULL : "there is no memory for it";
}
