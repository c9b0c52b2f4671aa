// SPDX-License-Identifier: Apache-2.0
#include "app/rows.h"

#include "base/text_time.h"
#include "base/time_math.h"
#include "codec/control.h"
#include "codec/json.h"

#define ONE(...) 1,
#define NONE(...)
enum {
    ROWS_PER_MESSAGE = 200,
    KEYS = 5, // bucket_start, resolution_s, node, identity, tier
    // sums, mean, standard deviation, minimum, maximum, quantiles
    NUMBERS = sizeof(const char[]){STAT_WHOLE(ONE, ONE) STAT_SPLIT(ONE) 1, 1, 1, 1,
                                   STAT_QUANTILES(NONE, ONE)}
};
#undef ONE
#undef NONE

// A row as it goes out.
struct fields {
    char bucket_start[TEXT_TIME_BYTES];
    const char *node, *identity, *tier;
    int64_t resolution_s;
    struct number {
        const char *name;
        bool is_time; // else a count
        uint64_t count;
        double us;
    } numbers[NUMBERS];
};

static struct number time_of(const char *name, double ns) {
    return (struct number){.name = name, .is_time = true, .us = ns / 1e3};
}

static void put_numbers(struct number *to, const struct stat_row *row) {
#define PUT_COUNT(name) *to++ = (struct number){#name, .count = row->name};
#define PUT_TIME(name) *to++ = time_of(#name "_us", (double)row->name##_ns);
    STAT_WHOLE(PUT_COUNT, PUT_TIME)
    STAT_SPLIT(PUT_TIME)
#undef PUT_COUNT
#undef PUT_TIME
    *to++ = time_of("mean_us", row->calls > 0 ? (double)row->duration_ns / (double)row->calls : 0);
    *to++ = time_of("stddev_us", stat_stddev(row->calls, row->duration_ns, row->square_ns));
    *to++ = time_of("min_us", row->calls > 0 ? (double)row->min_ns : 0);
    *to++ = time_of("max_us", (double)row->max_ns);
#define NO_QUANTILE(name, q)
#define PUT_QUANTILE(name, q)                                                                      \
    *to++ = time_of(#name "_us", stat_quantile(&row->durations, q, row->min_ns, row->max_ns));
    STAT_QUANTILES(NO_QUANTILE, PUT_QUANTILE)
#undef NO_QUANTILE
#undef PUT_QUANTILE
}

static struct fields fields_of(const struct rows *r, const struct stat_row *row) {
    struct fields f = {
        .node = names_text(&r->names->nodes, row->key.node),
        .identity = names_text(&r->names->identities, row->key.identity),
        .tier = names_text(&r->names->tiers, row->key.tier),
        .resolution_s = r->bucket_s,
    };
    text_time_format(time_of_seconds(row->key.bucket_start), false, f.bucket_start);
    put_numbers(f.numbers, row);
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
        for (size_t k = 0; k < NUMBERS; k++) {
            const struct number *n = &f.numbers[k];
            n->is_time ? json_key_number(&j, n->name, n->us, 3)
                       : json_key_int(&j, n->name, (int64_t)n->count);
        }
        json_close(&j, '}');
        buffer_text(out, "\n");
    }
    return *from > first;
}

static void pack_row(struct control_writer *w, const struct fields *f) {
    control_map(w, KEYS + NUMBERS);
    control_text(w, FIELD_BUCKET_START, slice_text(f->bucket_start));
    control_int(w, FIELD_RESOLUTION_S, f->resolution_s);
    control_text(w, FIELD_NODE, slice_text(f->node));
    control_text(w, FIELD_IDENTITY, slice_text(f->identity));
    control_text(w, FIELD_TIER, slice_text(f->tier));
    for (size_t k = 0; k < NUMBERS; k++) {
        const struct number *n = &f->numbers[k];
        n->is_time ? control_number(w, n->name, n->us) : control_int(w, n->name, (int64_t)n->count);
    }
}

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
