// SPDX-License-Identifier: Apache-2.0
#include "report/meters.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/limits.h"
#include "report/meters_inside.h"

enum { IDLE_S = 3600 }; // after so long without a call a row may make room for another

struct meters *meters_new(int64_t now_s) {
    struct meters *m = calloc(1, sizeof *m);
    if (m && !map_init(&m->index)) {
        free(m);
        return NULL;
    }
    if (m) {
        m->begun_s = now_s;
    }
    return m;
}

void meters_free(struct meters *m) {
    if (!m) {
        return;
    }
    for (uint32_t i = 0; i < m->count; i++) {
        free(m->rows[i].names.node);
        histogram_free(&m->rows[i].durations);
    }
    for (uint32_t i = 0; i < m->node_count; i++) {
        free(m->nodes[i].name);
    }
    map_free(&m->index);
    free(m->rows);
    free(m);
}

// -- rows -----------------------------------------------------------------------------------------

static bool names_copy(struct meter_names *to, const char *node, const char *identity,
                       const char *tier) {
    size_t a = strlen(node) + 1, b = strlen(identity) + 1, c = strlen(tier) + 1;
    to->node = malloc(a + b + c);
    if (!to->node) {
        return false;
    }
    memcpy(to->node, node, a);
    memcpy(to->node + a, identity, b);
    memcpy(to->node + a + b, tier, c);
    to->identity = to->node + a;
    to->tier = to->node + a + b;
    return true;
}

static uint64_t names_hash(const char *node, const char *identity, const char *tier) {
    uint64_t h = hash_mix(hash_bytes(slice_text(node)));
    h = hash_mix(h ^ hash_bytes(slice_text(identity)));
    return hash_mix(h ^ hash_bytes(slice_text(tier)));
}

static uint32_t rows_most(const struct meters *m) {
    return (LIMIT_METRIC_SERIES - METER_OWN_SERIES - m->node_count * METER_NODE_SERIES) /
           METER_ROW_SERIES;
}

// Forgets a row. What its counters said is no longer told, nor counted elsewhere.
static void drop(struct meters *m, uint32_t i) {
    struct meter_row *last = &m->rows[m->count - 1];
    map_remove(&m->index, m->rows[i].hash, i);
    free(m->rows[i].names.node);
    histogram_free(&m->rows[i].durations);
    if (&m->rows[i] != last) {
        map_set(&m->index, last->hash, i);
        m->rows[i] = *last;
    }
    m->count--;
}

static void drop_idle(struct meters *m, int64_t now_s) {
    for (uint32_t i = m->count; i-- > 0;) {
        if (now_s - m->rows[i].used_s > IDLE_S) {
            drop(m, i);
        }
    }
}

// The row of names, made when it is new; NULL where it finds no room.
static struct meter_row *row_of(struct meters *m, const char *node, const char *identity,
                                const char *tier) {
    uint64_t hash = names_hash(node, identity, tier);
    uint32_t i = map_get(&m->index, hash);
    if (i != MAP_NONE) {
        const struct meter_names *n = &m->rows[i].names;
        bool same = strcmp(n->node, node) == 0 && strcmp(n->identity, identity) == 0 &&
                    strcmp(n->tier, tier) == 0;
        return same ? &m->rows[i] : NULL;
    }
    struct meter_row row = {.hash = hash};
    if (m->count >= rows_most(m) ||
        !array_grow((void **)&m->rows, &m->room, m->count, sizeof *m->rows) ||
        !names_copy(&row.names, node, identity, tier)) {
        return NULL;
    }
    if (!map_set(&m->index, hash, m->count)) {
        free(row.names.node);
        return NULL;
    }
    m->rows[m->count] = row;
    return &m->rows[m->count++];
}

// A bucket i of the histogram ends at 2^((i + 1) / 32) ns; several together at a power of two, too.
static void add_durations(struct meter_row *row, const struct histogram *h) {
    for (uint32_t i = 0; i < h->len; i++) {
        uint32_t power = ((h->first + i) << h->coarse >> HISTOGRAM_SCALE) + 1; // ends there at most
        uint32_t bucket = power <= METER_FIRST_POWER  ? 0
                          : power <= METER_LAST_POWER ? power - METER_FIRST_POWER
                                                      : METER_BUCKETS;
        row->buckets[bucket] += h->counts[i];
        row->calls += h->counts[i];
    }
}

static void add_row(struct meters *m, const struct stat_row *from, const struct directory *names,
                    int64_t now_s) {
    struct meter_row *row = row_of(m, names_text(&names->nodes, from->key.node),
                                   names_text(&names->identities, from->key.identity),
                                   names_text(&names->tiers, from->key.tier));
    if (!row || !histogram_merge(&row->durations, &from->durations)) {
        m->left_out += from->calls;
        return;
    }
    row->used_s = now_s;
    row->requests += from->requests;
    row->errors += from->errors;
    row->self_ns += from->self_ns;
    row->wait_ns += from->wait_ns;
    row->measured_ns += from->measured_ns;
    row->waiting_ns += from->waiting_ns;
    row->duration_ns += from->duration_ns;
    add_durations(row, &from->durations);
}

// -- nodes ----------------------------------------------------------------------------------------

// Of two that are not known any more the first one goes.
static struct meter_node *room_for_node(struct meters *m) {
    if (m->node_count < LIMIT_NODES) {
        return &m->nodes[m->node_count++];
    }
    for (uint32_t i = 0; i < m->node_count; i++) {
        if (!m->nodes[i].known) {
            free(m->nodes[i].name);
            return &m->nodes[i];
        }
    }
    return NULL;
}

static struct meter_node *node_of(struct meters *m, const char *name) {
    for (uint32_t i = 0; i < m->node_count; i++) {
        if (strcmp(m->nodes[i].name, name) == 0) {
            return &m->nodes[i];
        }
    }
    char *copy = strdup(name);
    struct meter_node *node = copy ? room_for_node(m) : NULL;
    if (!node) {
        free(copy);
        return NULL;
    }
    *node = (struct meter_node){.name = copy};
    while (m->count > rows_most(m)) {
        m->left_out += m->rows[m->count - 1].calls;
        drop(m, m->count - 1);
    }
    return node;
}

void meters_take(struct meters *m, const struct stats *batch, const struct directory *names,
                 int64_t now_s) {
    if (m->count >= rows_most(m)) {
        drop_idle(m, now_s);
    }
    for (uint32_t i = 0; i < stats_ledgers(batch); i++) {
        const struct ledger_row *l = stats_ledger_at(batch, i);
        struct meter_node *node = node_of(m, names_text(&names->nodes, l->node));
        if (node) {
#define ADD_COLUMN(column) node->ledger.column += l->column;
            LEDGER_COLUMNS(ADD_COLUMN)
#undef ADD_COLUMN
        }
    }
    for (uint32_t i = 0; i < stats_rows(batch); i++) {
        const struct stat_row *row = stats_row_at(batch, i);
        if (row->key.identity != IDENTITY_TOTAL) {
            add_row(m, row, names, now_s);
        }
    }
}

void meters_nodes(struct meters *m, const struct meter_state *nodes, uint32_t count) {
    for (uint32_t i = 0; i < m->node_count; i++) {
        m->nodes[i].known = m->nodes[i].connected = m->nodes[i].tracing = false;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct meter_node *node = node_of(m, nodes[i].node);
        if (node) {
            node->known = true;
            node->connected = nodes[i].connected;
            node->tracing = nodes[i].tracing;
            node->level_ppm = nodes[i].level_ppm;
        }
    }
}

void meters_queue(struct meters *m, struct meter_queue queue) {
    m->queue = queue;
}

// -- copies ---------------------------------------------------------------------------------------

static bool copy_rows(struct meters *to, const struct meters *from) {
    to->rows = calloc(from->count ? from->count : 1, sizeof *to->rows);
    for (; to->rows && to->count < from->count; to->count++) {
        const struct meter_row *row = &from->rows[to->count];
        to->rows[to->count] = *row;
        to->rows[to->count].names.node = NULL;
        to->rows[to->count].durations = (struct histogram){0};
        if (!names_copy(&to->rows[to->count].names, row->names.node, row->names.identity,
                        row->names.tier)) {
            return false;
        }
        if (!histogram_merge(&to->rows[to->count].durations, &row->durations)) {
            free(to->rows[to->count].names.node);
            return false;
        }
    }
    return to->rows;
}

static bool copy_nodes(struct meters *to, const struct meters *from) {
    for (; to->node_count < from->node_count; to->node_count++) {
        to->nodes[to->node_count] = from->nodes[to->node_count];
        to->nodes[to->node_count].name = strdup(from->nodes[to->node_count].name);
        if (!to->nodes[to->node_count].name) {
            return false;
        }
    }
    return true;
}

struct meters *meters_copy(const struct meters *m) {
    struct meters *copy = meters_new(m->begun_s);
    if (!copy) {
        return NULL;
    }
    copy->left_out = m->left_out;
    copy->queue = m->queue;
    if (!copy_rows(copy, m) || !copy_nodes(copy, m)) {
        meters_free(copy);
        return NULL;
    }
    return copy;
}
