#include "model/stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

enum { LEDGER_ROWS = 4096, LATEST_ROWS = 512 };

struct stats {
    struct map index;
    struct stat_row *latest[LATEST_ROWS]; // the row that each place of latest_place was asked for last; NULL: none yet
    struct slab rows; // never freed one by one: row i is record i
    uint32_t count;
    struct ledger_row *ledgers;
    uint32_t ledger_count;
    uint32_t ledger_room;
};

struct stats *stats_new(void) {
    struct stats *s = calloc(1, sizeof *s);
    if (!s) {
        return NULL;
    }
    slab_init(&s->rows, sizeof(struct stat_row), LIMIT_STAT_ROWS);
    s->ledger_room = 16;
    s->ledgers = calloc(s->ledger_room, sizeof *s->ledgers);
    if (!s->ledgers || !map_init(&s->index)) {
        free(s->ledgers);
        free(s);
        return NULL;
    }
    return s;
}

void stats_free(struct stats *s) {
    if (!s) {
        return;
    }
    for (uint32_t i = 0; i < s->rows.made; i++) {
        histogram_free(&((struct stat_row *)slab_at(&s->rows, i))->durations);
    }
    slab_free(&s->rows);
    map_free(&s->index);
    free(s->ledgers);
    free(s);
}

void stats_reset(struct stats *s) {
    memset(s->latest, 0, sizeof s->latest);
    map_clear(&s->index);
    s->count = 0;
    s->ledger_count = 0;
}

// Packs a key into 64 bits: 33 of the bucket's second, 8 of the node, 11 of the identity, 12 of the tier. The directory's
// limits are below these; a bucket outside 1970 … 2242 is not one that a clock shows.
static uint64_t packed(struct stat_key k) {
    return ((uint64_t)k.bucket_start & 0x1ffffffffULL) << 31 | (uint64_t)(k.node & 0xff) << 23 |
           (uint64_t)(k.identity & 0x7ff) << 12 | (k.tier & 0xfff);
}

_Static_assert(LIMIT_NODES <= 256 && LIMIT_IDENTITIES + 3 <= 2048 && LIMIT_TIER_NAMES + 1 <= 4096, "keys fit packed()");

// Finds the row in the index, or makes it.
static struct stat_row *row_find(struct stats *s, struct stat_key key) {
    uint64_t k = packed(key);
    uint32_t i = map_get(&s->index, k);
    if (i != MAP_NONE) {
        return slab_at(&s->rows, i);
    }
    struct histogram durations = {0};
    i = s->count;
    if (i < s->rows.made) { // made before a reset: its histogram's memory serves again
        durations = ((struct stat_row *)slab_at(&s->rows, i))->durations;
        histogram_reset(&durations);
    } else if (slab_take(&s->rows) == SLAB_NONE) {
        return NULL;
    }
    struct stat_row *row = slab_at(&s->rows, i);
    *row = (struct stat_row){.key = key, .min_ns = UINT64_MAX, .durations = durations};
    if (!map_set(&s->index, k, i)) {
        return NULL;
    }
    s->count++;
    return row;
}

struct stat_row *stats_row(struct stats *s, struct stat_key key) {
    // Few identities and tiers make most of the calls: a look at the row used last where this one would be is cheaper than the index.
    struct stat_row **latest = &s->latest[(key.identity * 37u + key.tier * 5u + key.node) % LATEST_ROWS];
    struct stat_row *row = *latest;
    if (row && row->key.bucket_start == key.bucket_start && row->key.node == key.node &&
        row->key.identity == key.identity && row->key.tier == key.tier) {
        return row;
    }
    row = row_find(s, key);
    *latest = row;
    return row;
}

void stats_count(struct stat_row *row, uint64_t ns) {
    stats_count_at(row, ns, histogram_bucket(ns));
}

void stats_count_at(struct stat_row *row, uint64_t ns, uint32_t bucket) {
    row->calls++;
    row->duration_ns += ns;
    row->square_ns += (double)ns * (double)ns;
    row->min_ns = ns < row->min_ns ? ns : row->min_ns;
    row->max_ns = ns > row->max_ns ? ns : row->max_ns;
    histogram_add_at(&row->durations, bucket);
}

struct ledger_row *stats_ledger(struct stats *s, int64_t bucket_start, uint16_t node) {
    // The last made is nearly always the one: buckets come one after the other, with few nodes.
    for (uint32_t i = s->ledger_count; i-- > 0;) {
        if (s->ledgers[i].bucket_start == bucket_start && s->ledgers[i].node == node) {
            return &s->ledgers[i];
        }
    }
    if (s->ledger_count == s->ledger_room && s->ledger_room < LEDGER_ROWS) {
        uint32_t room = s->ledger_room > 0 ? 2 * s->ledger_room : 16;
        struct ledger_row *more = realloc(s->ledgers, room * sizeof *more);
        if (more) {
            s->ledgers = more;
            s->ledger_room = room;
        }
    }
    if (s->ledger_count == s->ledger_room) {
        return &s->ledgers[s->ledger_count - 1];
    }
    s->ledgers[s->ledger_count] = (struct ledger_row){.bucket_start = bucket_start, .node = node};
    return &s->ledgers[s->ledger_count++];
}

uint32_t stats_rows(const struct stats *s) {
    return s->count;
}

const struct stat_row *stats_row_at(const struct stats *s, uint32_t i) {
    return slab_at(&s->rows, i);
}

uint32_t stats_ledgers(const struct stats *s) {
    return s->ledger_count;
}

const struct ledger_row *stats_ledger_at(const struct stats *s, uint32_t i) {
    return &s->ledgers[i];
}
