// SPDX-License-Identifier: Apache-2.0
#include "report/flame/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "report/heat.h"

// Pairs of a cell and a stack at most: more would not fit.
enum { MOST_ENTRIES = 400000 };

// What a weight of the profile is in a cell.
struct entry {
    uint32_t cell, weight;
    int64_t values[SAMPLE_METRICS];
};

struct parts {
    uint64_t from_us, cell_us;
    uint32_t cells;
    struct map places; // of entries, by cell and weight
    struct entry *entries;
    uint32_t count, room;
    bool failed;
};

static void each(void *user, uint64_t us, uint32_t weight, const int64_t *values) {
    struct parts *p = user;
    uint64_t cell = us >= p->from_us ? (us - p->from_us) / p->cell_us : p->cells;
    if (p->failed || cell >= p->cells) {
        return;
    }
    uint64_t key = cell << 32 | weight;
    uint32_t at = map_get(&p->places, key);
    if (at == MAP_NONE) {
        at = p->count;
        p->failed = at == MOST_ENTRIES ||
                    !array_grow((void **)&p->entries, &p->room, at, sizeof *p->entries) ||
                    !map_set(&p->places, key, at);
        if (p->failed) {
            return;
        }
        p->entries[p->count++] = (struct entry){.cell = (uint32_t)cell, .weight = weight};
    }
    for (int i = 0; i < SAMPLE_METRICS; i++) {
        p->entries[at].values[i] += values[i];
    }
}

// A list for each cell: node, value, node, value, …
static void put_metric(struct json *j, const struct parts *p, const uint32_t *nodes,
                       enum flame_metric metric) {
    uint32_t at = 0;
    json_key(j, flame_metric_name(metric));
    json_open(j, '[');
    for (uint32_t cell = 0; cell < p->cells; cell++) {
        json_open(j, '[');
        for (; at < p->count && p->entries[at].cell == cell; at++) {
            const struct entry *e = &p->entries[at];
            int64_t value = e->values[metric - FLAME_SAMPLES];
            if (value != 0 && nodes[e->weight] != UINT32_MAX) {
                json_int(j, nodes[e->weight]);
                json_int(j, value);
            }
        }
        json_close(j, ']');
    }
    json_close(j, ']');
}

static bool weighs(const struct parts *p, enum flame_metric metric) {
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->entries[i].values[metric - FLAME_SAMPLES] != 0) {
            return true;
        }
    }
    return false;
}

static bool put(const struct parts *p, const uint32_t *nodes, struct buffer *out) {
    struct buffer data = buffer_make(PARTS_BYTES);
    struct json j = json_make(&data);
    json_open(&j, '{');
    json_key_number(&j, "from_ms", (double)p->from_us / 1000, 3);
    json_key_number(&j, "cell_ms", (double)p->cell_us / 1000, 3);
    json_key(&j, "metrics");
    json_open(&j, '{');
    for (enum flame_metric m = FLAME_SAMPLES; m < FLAME_METRICS; m++) {
        if (!samples_is_level(m) && weighs(p, m)) {
            put_metric(&j, p, nodes, m);
        }
    }
    json_close(&j, '}');
    json_close(&j, '}');
    bool fits = !data.failed;
    if (fits) {
        buffer_append(out, data.data, data.len);
    }
    buffer_free(&data);
    return fits;
}

static bool take(const struct flame_drawing *d, struct parts *p) {
    struct sample_choice choice = {.metric = d->weighed.metric,
                                   .group = d->weighed.group,
                                   .from_us = d->from_us,
                                   .until_us = d->until_us,
                                   .each = each,
                                   .user = p};
    return map_init(&p->places) && samples_weigh(d->profile, &choice) && !p->failed;
}

// Looks come in the order of time, and so do the cells of entries.
static bool put_by(const struct flame_drawing *d, struct flame_tree *t, const struct heat *h,
                   uint32_t cells, struct buffer *out) {
    struct flame_options whole = {
        .metric = FLAME_SAMPLES, .group = d->weighed.group, .only = d->weighed.only, .every = true};
    struct parts p = {
        .from_us = h->from_us, .cell_us = h->columns * h->column_us / cells, .cells = cells};
    bool ok = take(d, &p);
    uint32_t *nodes = malloc((d->profile->weights.count + 1) * sizeof *nodes);
    ok = ok && nodes && flame_tree_places(t, d->profile, &whole, nodes) && put(&p, nodes, out);
    free(nodes);
    free(p.entries);
    map_free(&p.places);
    return ok;
}

static bool grow_tree(const struct flame_drawing *d, struct flame_tree *t) {
    struct flame_options whole = {
        .metric = FLAME_SAMPLES, .group = d->weighed.group, .only = d->weighed.only, .every = true};
    return flame_tree_init(t) && flame_tree_add(t, d->profile, &whole, FLAME_AFTER) &&
           flame_tree_finish(t);
}

bool parts_put(const struct flame_drawing *d, struct buffer *out) {
    struct heat_choice choice = {FLAME_ACTIVE, d->from_us, d->until_us, HEAT_FILE_COLUMNS,
                                 HEAT_PICTURE_ROWS};
    struct heat h = {0};
    struct flame_tree t = {0};
    bool ok = heat_make(&h, d->profile, &choice) == HEAT_MADE && grow_tree(d, &t);
    ok = ok && (put_by(d, &t, &h, h.columns * h.rows, out) || put_by(d, &t, &h, h.columns, out));
    flame_tree_free(&t);
    heat_free(&h);
    return ok;
}
