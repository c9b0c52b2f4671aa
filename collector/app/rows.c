// SPDX-License-Identifier: Apache-2.0
#include "app/rows.h"

#include "base/text_time.h"
#include "base/time_math.h"
#include "codec/control.h"
#include "codec/json.h"

enum { ROWS_PER_MESSAGE = 200, FIELDS = 23 };

// A row's numbers by name, in the order of the view tier_stats.
struct fields {
    char bucket_start[TEXT_TIME_BYTES];
    const char *node, *identity, *tier;
    int64_t resolution_s;
    struct {
        const char *name;
        uint64_t value;
    } counts[4];
    struct {
        const char *name;
        double value;
    } times[14];
};

static double quantile_us(const struct stat_row *row, double q) {
    return stat_quantile(&row->durations, q, row->min_ns, row->max_ns) / 1e3;
}

static struct fields fields_of(const struct rows *r, const struct stat_row *row) {
    double mean = row->calls > 0 ? (double)row->duration_ns / (double)row->calls : 0;
    struct fields f = {
        .node = names_text(&r->names->nodes, row->key.node),
        .identity = names_text(&r->names->identities, row->key.identity),
        .tier = names_text(&r->names->tiers, row->key.tier),
        .resolution_s = r->bucket_s,
        .counts = {{"requests", row->requests},
                   {"calls", row->calls},
                   {"errors", row->errors},
                   {"async_calls", row->async_calls}},
        .times = {{"total_us", (double)row->total_ns / 1e3},
                  {"self_us", (double)row->self_ns / 1e3},
                  {"async_us", (double)row->async_ns / 1e3},
                  {"mean_us", mean / 1e3},
                  {"stddev_us", stat_stddev(row->calls, row->duration_ns, row->square_ns) / 1e3},
                  {"min_us", row->calls > 0 ? (double)row->min_ns / 1e3 : 0},
                  {"max_us", (double)row->max_ns / 1e3},
                  {"p50_us", quantile_us(row, 0.5)},
                  {"p90_us", quantile_us(row, 0.9)},
                  {"p99_us", quantile_us(row, 0.99)},
                  {"p999_us", quantile_us(row, 0.999)},
                  {"wait_us", (double)row->wait_ns / 1e3},
                  {"gc_us", (double)row->gc_ns / 1e3},
                  {"off_cpu_us", (double)row->off_cpu_ns / 1e3}},
    };
    text_time_format(time_of_seconds(row->key.bucket_start), false, f.bucket_start);
    return f;
}

bool rows_json(const struct rows *r, uint32_t *from, struct buffer *out) {
    uint32_t first = *from;
    for (; *from < stats_rows(r->stats) && *from - first < ROWS_PER_MESSAGE; ++*from) {
        struct fields f = fields_of(r, stats_row_at(r->stats, *from));
        struct json j = json_make(out);
        json_open(&j, '{');
        json_key_text(&j, "bucket_start", f.bucket_start);
        json_key_int(&j, "resolution_s", f.resolution_s);
        json_key_text(&j, "node", f.node);
        json_key_text(&j, "identity", f.identity);
        json_key_text(&j, "tier", f.tier);
        for (size_t k = 0; k < sizeof f.counts / sizeof *f.counts; k++) {
            json_key_int(&j, f.counts[k].name, (int64_t)f.counts[k].value);
        }
        for (size_t k = 0; k < sizeof f.times / sizeof *f.times; k++) {
            json_key_number(&j, f.times[k].name, f.times[k].value, 3);
        }
        json_close(&j, '}');
        buffer_text(out, "\n");
    }
    return *from > first;
}

static void pack_row(struct control_writer *w, const struct fields *f) {
    control_map(w, FIELDS);
    control_text(w, FIELD_BUCKET_START, slice_text(f->bucket_start));
    control_int(w, FIELD_RESOLUTION_S, f->resolution_s);
    control_text(w, FIELD_NODE, slice_text(f->node));
    control_text(w, FIELD_IDENTITY, slice_text(f->identity));
    control_text(w, FIELD_TIER, slice_text(f->tier));
    for (size_t k = 0; k < sizeof f->counts / sizeof *f->counts; k++) {
        control_int(w, f->counts[k].name, (int64_t)f->counts[k].value);
    }
    for (size_t k = 0; k < sizeof f->times / sizeof *f->times; k++) {
        control_number(w, f->times[k].name, f->times[k].value);
    }
}

_Static_assert(FIELDS == 5 + 4 + 14, "as many as pack_row writes");

bool rows_messages(const struct rows *r, uint16_t node, struct buffer *out) {
    uint32_t total = stats_rows(r->stats);
    for (uint32_t i = 0; i < total;) {
        uint32_t first = i, count = 0;
        for (; i < total && count < ROWS_PER_MESSAGE; i++) {
            count += stats_row_at(r->stats, i)->key.node == node;
        }
        if (count == 0) {
            return true;
        }
        struct control_writer w = control_begin(out, CONTROL_STATS, 1);
        control_list(&w, FIELD_ROWS, count);
        for (uint32_t k = first; k < i; k++) {
            if (stats_row_at(r->stats, k)->key.node == node) {
                struct fields f = fields_of(r, stats_row_at(r->stats, k));
                pack_row(&w, &f);
            }
        }
        if (!control_end(&w)) {
            return false;
        }
    }
    return true;
}
