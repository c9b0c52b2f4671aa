// SPDX-License-Identifier: Apache-2.0
#include "model/stats/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/limits.h"
#include "model/directory/directory.h"

enum {
    LEDGER_ROWS = LIMIT_STAT_ROWS + LIMIT_NODES, // the last ones only for nodes that have none
    LATEST_ROWS = 512,
    LATEST_PATHS = 1024,
    // Rows of _other come on top of those of other identities, and those of _total, of which there
    // is one at most for each of these.
    OTHER_ROWS = LIMIT_STAT_ROWS / 2,
    TOTAL_ROWS = LIMIT_STAT_ROWS + OTHER_ROWS,
    KEEP_BYTES = 1 << 20, // of each kind of memory that an empty set keeps
    // path rows held back for the one of each node and bucket that takes what has no room
    REST_PATHS = 1000,
    // bytes that an empty set keeps for requests; there are that many only now and then
    KEPT_ROOM = 512 << 10
};

// What a node may have only its share of.
enum kind {
    KIND_OWN,
    KIND_OTHER,
    KIND_TOTAL,
    KIND_PATHS,
    KIND_REST_PATHS,
    KIND_COSTS,
    KIND_KEPT,
    KINDS
};

static const uint32_t caps[KINDS] = {
    [KIND_OWN] = LIMIT_STAT_ROWS,        [KIND_OTHER] = OTHER_ROWS,
    [KIND_TOTAL] = TOTAL_ROWS,           [KIND_PATHS] = LIMIT_PATH_ROWS - REST_PATHS,
    [KIND_REST_PATHS] = LIMIT_PATH_ROWS, [KIND_COSTS] = LIMIT_STAT_ROWS,
    [KIND_KEPT] = LIMIT_KEPT_BYTES};

struct stats {
    uint32_t sets;    // that share the caps
    bool shared;      // by nodes of which none may take what others need
    uint64_t numbers; // given by stats_number
    struct {
        uint32_t used;
        uint32_t own[LIMIT_NODES]; // of these
    } kinds[KINDS];
    struct histogram_budget histograms;
    struct histogram_budget histograms_of[LIMIT_NODES];
    struct map index;
    // the row that each place of latest_place was asked for last; NULL: none yet
    struct stat_row *latest[LATEST_ROWS];
    struct slab rows; // never freed one by one: row i is record i
    uint32_t count;
    struct map ledger_index;
    struct ledger_row *latest_ledgers[LIMIT_NODES]; // as latest, of each node
    struct ledger_row nowhere;
    struct slab ledgers; // as rows
    uint32_t ledger_count;
    struct map path_index;
    struct path_row *latest_paths[LATEST_PATHS]; // as latest
    struct slab paths;                           // as rows, and so are costs
    uint32_t path_count;
    struct map cost_index;
    struct slab costs;
    uint32_t cost_count;
    struct buffer kept; // struct kept_request
    struct buffer kept_spans;
    bool overflowed;
};

struct stats *stats_new(void) {
    struct stats *s = calloc(1, sizeof *s);
    if (!s) {
        return NULL;
    }
    s->sets = 1;
    slab_init(&s->rows, sizeof(struct stat_row), LIMIT_STAT_ROWS + OTHER_ROWS + TOTAL_ROWS);
    s->histograms.cap = LIMIT_HISTOGRAM_BYTES;
    for (uint32_t node = 0; node < LIMIT_NODES; node++) {
        s->histograms_of[node] = (struct histogram_budget){.cap = SIZE_MAX, .all = &s->histograms};
    }
    slab_init(&s->ledgers, sizeof(struct ledger_row), LEDGER_ROWS);
    slab_init(&s->paths, sizeof(struct path_row), LIMIT_PATH_ROWS);
    slab_init(&s->costs, sizeof(struct cost_row), LIMIT_STAT_ROWS);
    s->kept = buffer_make(LIMIT_KEPT_BYTES);
    s->kept_spans = buffer_make(LIMIT_KEPT_BYTES);
    if (!map_init(&s->index) || !map_init(&s->ledger_index) || !map_init(&s->path_index) ||
        !map_init(&s->cost_index)) {
        stats_free(s);
        return NULL;
    }
    return s;
}

void stats_share(struct stats *s) {
    s->shared = true;
}

void stats_divide(struct stats *s, uint32_t sets) {
    s->sets = sets;
    s->histograms.cap = LIMIT_HISTOGRAM_BYTES / sets;
}

static void free_histograms(struct stats *s) {
    for (uint32_t i = 0; i < s->rows.made; i++) {
        histogram_free(&((struct stat_row *)slab_at(&s->rows, i))->durations);
    }
}

void stats_free(struct stats *s) {
    if (!s) {
        return;
    }
    free_histograms(s);
    slab_free(&s->rows);
    slab_free(&s->ledgers);
    slab_free(&s->paths);
    slab_free(&s->costs);
    map_free(&s->index);
    map_free(&s->ledger_index);
    map_free(&s->path_index);
    map_free(&s->cost_index);
    buffer_free(&s->kept);
    buffer_free(&s->kept_spans);
    free(s);
}

static void empty_slab(struct slab *s) {
    if (s->made * s->size > KEEP_BYTES) {
        slab_free(s);
    }
}

static void empty(struct buffer *b) {
    if (b->room > KEPT_ROOM) {
        buffer_free(b);
    }
    buffer_reset(b);
}

void stats_reset(struct stats *s) {
    if (s->histograms.bytes > KEEP_BYTES || s->rows.made * s->rows.size > KEEP_BYTES) {
        free_histograms(s);
    }
    empty_slab(&s->rows);
    empty_slab(&s->ledgers);
    empty_slab(&s->paths);
    empty_slab(&s->costs);
    memset(s->kinds, 0, sizeof s->kinds);
    s->histograms.coarse = false;
    for (uint32_t node = 0; node < LIMIT_NODES; node++) {
        s->histograms_of[node].coarse = false;
    }
    memset(s->latest, 0, sizeof s->latest);
    map_clear(&s->index);
    memset(s->latest_ledgers, 0, sizeof s->latest_ledgers);
    map_clear(&s->ledger_index);
    memset(s->latest_paths, 0, sizeof s->latest_paths);
    map_clear(&s->path_index);
    map_clear(&s->cost_index);
    empty(&s->kept);
    empty(&s->kept_spans);
    s->count = 0;
    s->ledger_count = 0;
    s->path_count = 0;
    s->cost_count = 0;
    s->overflowed = false;
}

// Packs a key into 64 bits: 33 of the bucket's second, 8 of the node, 11 of the identity, 12 of the
// tier. The directory's limits are below these; a bucket outside 1970 … 2242 is not one that a
// clock shows.
static uint64_t packed(struct stat_key k) {
    return ((uint64_t)k.bucket_start & 0x1ffffffffULL) << 31 | (uint64_t)(k.node & 0xff) << 23 |
           (uint64_t)(k.identity & 0x7ff) << 12 | (k.tier & 0xfff);
}

_Static_assert(LIMIT_NODES <= 256 && LIMIT_IDENTITIES + IDENTITIES_FIXED <= 2048 &&
                   LIMIT_TIER_NAMES + 1 <= 4096,
               "keys fit packed()");

// Whether a node may have so many more of a kind.
static bool has_room(const struct stats *s, enum kind kind, uint16_t node, uint32_t more) {
    uint32_t left = caps[kind] / s->sets - s->kinds[kind].used;
    return more <= left && (!s->shared || s->kinds[kind].own[node] < (uint64_t)SLAB_SHARE * left);
}

static void count_kind(struct stats *s, enum kind kind, uint16_t node, uint32_t more) {
    s->kinds[kind].used += more;
    s->kinds[kind].own[node] += more;
}

static enum kind kind_of(uint16_t identity) {
    return identity == IDENTITY_TOTAL   ? KIND_TOTAL
           : identity == IDENTITY_OTHER ? KIND_OTHER
                                        : KIND_OWN;
}

// The memory of a row made before a reset serves again, unless another node is to answer for it.
static struct histogram histogram_for(struct stats *s, uint32_t i, uint16_t node) {
    struct histogram_budget *budget = s->shared ? &s->histograms_of[node] : &s->histograms;
    struct histogram h = {.budget = budget};
    if (i < s->rows.made) {
        h = ((struct stat_row *)slab_at(&s->rows, i))->durations;
        if (h.budget != budget) {
            histogram_free(&h);
            h.budget = budget;
        }
        histogram_reset(&h);
    }
    return h;
}

// Finds the row in the index, or makes it.
static struct stat_row *row_find(struct stats *s, struct stat_key key) {
    uint64_t k = packed(key);
    enum kind kind = kind_of(key.identity);
    uint32_t i = map_get(&s->index, k);
    if (i != MAP_NONE) {
        return slab_at(&s->rows, i);
    }
    i = s->count;
    if (kind != KIND_TOTAL && !has_room(s, kind, key.node, 1)) {
        s->overflowed = true;
        return NULL;
    }
    struct histogram durations = histogram_for(s, i, key.node);
    if (i == s->rows.made && slab_take(&s->rows) == SLAB_NONE) {
        return NULL;
    }
    struct stat_row *row = slab_at(&s->rows, i);
    *row = (struct stat_row){.key = key, .min_ns = UINT64_MAX, .durations = durations};
    if (!map_set(&s->index, k, i)) {
        return NULL;
    }
    count_kind(s, kind, key.node, 1);
    s->count++;
    return row;
}

// Apart from the short way that nearly every call takes, so that this needs no stack frame.
__attribute__((noinline)) static struct stat_row *row_missed(struct stats *s, struct stat_key key,
                                                             struct stat_row **latest) {
    return *latest = row_find(s, key);
}

struct stat_row *stats_row(struct stats *s, struct stat_key key) {
    // Few identities and tiers make most of the calls: a look at the row used last where this one
    // would be is cheaper than the index.
    struct stat_row **latest =
        &s->latest[(key.identity * 37u + key.tier * 5u + key.node) % LATEST_ROWS];
    struct stat_row *row = *latest;
    if (row && row->key.bucket_start == key.bucket_start && row->key.node == key.node &&
        row->key.identity == key.identity && row->key.tier == key.tier) {
        return row;
    }
    return row_missed(s, key, latest);
}

uint64_t stats_number(struct stats *s) {
    return ++s->numbers;
}

void stats_count(struct stat_row *row, uint64_t ns) {
    row->calls++;
    row->duration_ns += ns;
    row->square_ns += (double)ns * (double)ns;
    row->min_ns = ns < row->min_ns ? ns : row->min_ns;
    row->max_ns = ns > row->max_ns ? ns : row->max_ns;
    histogram_add(&row->durations, ns);
}

double stat_stddev(uint64_t calls, uint64_t duration_ns, double square_ns) {
    if (calls == 0) {
        return 0;
    }
    double mean = (double)duration_ns / (double)calls;
    double variance = square_ns / (double)calls - mean * mean;
    return variance > 0 ? sqrt(variance) : 0;
}

double stat_quantile(const struct histogram *durations, double q, uint64_t min_ns,
                     uint64_t max_ns) {
    double ns = histogram_quantile(durations, q);
    ns = ns < (double)min_ns ? (double)min_ns : ns;
    return ns > (double)max_ns ? (double)max_ns : ns;
}

static void add_row(struct stat_row *to, const struct stat_row *row) {
#define ADD_COUNT(name) to->name += row->name;
#define ADD_TIME(name) ADD_COUNT(name##_ns)
    STAT_SUMS(ADD_COUNT, ADD_TIME)
#undef ADD_COUNT
#undef ADD_TIME
    to->duration_ns += row->duration_ns;
    to->square_ns += row->square_ns;
    to->min_ns = row->min_ns < to->min_ns ? row->min_ns : to->min_ns;
    to->max_ns = row->max_ns > to->max_ns ? row->max_ns : to->max_ns;
    histogram_merge(&to->durations, &row->durations);
}

void stats_add_totals(struct stats *s) {
    uint32_t count = s->count;
    for (uint32_t i = 0; i < count; i++) {
        const struct stat_row *row = slab_at(&s->rows, i);
        if (row->key.identity == IDENTITY_REMOTE) {
            continue;
        }
        struct stat_row *total =
            stats_row(s, (struct stat_key){row->key.bucket_start, row->key.node, IDENTITY_TOTAL,
                                           row->key.tier});
        if (total) {
            add_row(total, row);
        }
    }
    for (uint32_t i = 0; i < s->count; i++) {
        const struct stat_row *row = slab_at(&s->rows, i);
        if (row->durations.coarse > 0) {
            stats_ledger(s, row->key.bucket_start, row->key.node)->coarse_rows++;
        }
    }
}

// Record `count` of a pool whose records are never given back; NULL at its cap.
static void *record(struct slab *slab, uint32_t count) {
    return count < slab->made || slab_take(slab) != SLAB_NONE ? slab_at(slab, count) : NULL;
}

static struct ledger_row *ledger_find(struct stats *s, int64_t bucket_start, uint16_t node) {
    uint64_t key = packed((struct stat_key){bucket_start, node, 0, 0});
    uint32_t i = map_get(&s->ledger_index, key);
    if (i != MAP_NONE) {
        return slab_at(&s->ledgers, i);
    }
    uint32_t most = LIMIT_STAT_ROWS / s->sets;
    uint32_t room = s->latest_ledgers[node] ? most : most + LIMIT_NODES;
    struct ledger_row *row = s->ledger_count < room ? record(&s->ledgers, s->ledger_count) : NULL;
    if (!row || !map_set(&s->ledger_index, key, s->ledger_count)) {
        s->overflowed = true;
        return s->latest_ledgers[node] ? s->latest_ledgers[node] : &s->nowhere;
    }
    *row = (struct ledger_row){.bucket_start = bucket_start, .node = node};
    s->ledger_count++;
    return s->latest_ledgers[node] = row;
}

struct ledger_row *stats_ledger(struct stats *s, int64_t bucket_start, uint16_t node) {
    struct ledger_row *latest = s->latest_ledgers[node];
    return latest && latest->bucket_start == bucket_start ? latest
                                                          : ledger_find(s, bucket_start, node);
}

// Packs a path row's key into 64 bits: 31 of the bucket's second (two buckets 68 years apart are
// never in one set), 8 of the node, 11 of the identity, 14 of the path.
static uint64_t packed_path(int64_t bucket_start, uint16_t node, uint16_t identity, uint32_t path) {
    return ((uint64_t)bucket_start & 0x7fffffff) << 33 | (uint64_t)node << 25 |
           (uint64_t)identity << 14 | (path & 0x3fff);
}

_Static_assert(LIMIT_PATHS < 0x3fff, "paths and PATH_OTHER fit packed_path()");

static struct path_row *path_find(struct stats *s, int64_t bucket_start, uint16_t node,
                                  uint16_t identity, uint32_t path) {
    uint64_t key = packed_path(bucket_start, node, identity, path);
    uint32_t i = map_get(&s->path_index, key);
    if (i != MAP_NONE) {
        return slab_at(&s->paths, i);
    }
    bool rest = path == PATH_OTHER && identity == IDENTITY_OTHER;
    bool room = has_room(s, rest ? KIND_REST_PATHS : KIND_PATHS, node, 1);
    struct path_row *row = room ? record(&s->paths, s->path_count) : NULL;
    if (!row || !map_set(&s->path_index, key, s->path_count)) {
        s->overflowed = true;
        return NULL;
    }
    *row = (struct path_row){.bucket_start = bucket_start,
                             .node = node,
                             .identity = identity,
                             .path = path,
                             .min_ns = UINT64_MAX};
    if (!rest) {
        count_kind(s, KIND_PATHS, node, 1);
    }
    s->kinds[KIND_REST_PATHS].used++; // of all
    s->kinds[KIND_REST_PATHS].own[node] += rest;
    s->path_count++;
    return row;
}

// As row_missed.
__attribute__((noinline)) static struct path_row *path_missed(struct stats *s, int64_t bucket_start,
                                                              uint16_t node, uint16_t identity,
                                                              uint32_t path,
                                                              struct path_row **latest) {
    return *latest = path_find(s, bucket_start, node, identity, path);
}

struct path_row *stats_path(struct stats *s, int64_t bucket_start, uint16_t node, uint16_t identity,
                            uint32_t path) {
    struct path_row **latest = &s->latest_paths[(identity * 37u + path + node * 5u) % LATEST_PATHS];
    struct path_row *row = *latest;
    if (row && row->path == path && row->identity == identity && row->node == node &&
        row->bucket_start == bucket_start) {
        return row;
    }
    return path_missed(s, bucket_start, node, identity, path, latest);
}

struct cost_row *stats_cost(struct stats *s, int64_t bucket_start, uint16_t node, uint16_t tier) {
    uint64_t key = packed((struct stat_key){bucket_start, node, 0, tier});
    uint32_t i = map_get(&s->cost_index, key);
    if (i != MAP_NONE) {
        return slab_at(&s->costs, i);
    }
    struct cost_row *row =
        has_room(s, KIND_COSTS, node, 1) ? record(&s->costs, s->cost_count) : NULL;
    if (!row || !map_set(&s->cost_index, key, s->cost_count)) {
        s->overflowed = true;
        return NULL;
    }
    *row = (struct cost_row){.bucket_start = bucket_start, .node = node, .tier = tier};
    count_kind(s, KIND_COSTS, node, 1);
    s->cost_count++;
    return row;
}

bool stats_keep(struct stats *s, const struct kept_request *request,
                const struct kept_span *spans) {
    size_t bytes = request->count * sizeof *spans;
    uint32_t all = (uint32_t)(bytes + sizeof *request);
    // Room for the request first, so that no spans are left behind when there is none.
    if (!has_room(s, KIND_KEPT, request->node, all) || !buffer_reserve(&s->kept, sizeof *request)) {
        s->overflowed = true;
        return false;
    }
    struct kept_request kept = *request;
    kept.first = (uint32_t)(s->kept_spans.len / sizeof *spans);
    if (!buffer_append(&s->kept_spans, spans, bytes) ||
        !buffer_append(&s->kept, &kept, sizeof kept)) {
        return false;
    }
    count_kind(s, KIND_KEPT, request->node, all);
    return true;
}

void stats_mark(const struct stats *s, struct directory_used *used) {
    for (uint32_t i = 0; i < s->count; i++) {
        const struct stat_row *row = slab_at(&s->rows, i);
        used->nodes[row->key.node] = used->identities[row->key.identity] =
            used->tiers[row->key.tier] = true;
    }
    for (uint32_t i = 0; i < s->ledger_count; i++) {
        used->nodes[((const struct ledger_row *)slab_at(&s->ledgers, i))->node] = true;
    }
    for (uint32_t i = 0; i < s->path_count; i++) {
        const struct path_row *row = slab_at(&s->paths, i);
        used->nodes[row->node] = used->identities[row->identity] = true;
        if (row->path != PATH_OTHER) {
            used->paths[row->path] = true;
        }
    }
    for (uint32_t i = 0; i < s->cost_count; i++) {
        const struct cost_row *row = slab_at(&s->costs, i);
        used->nodes[row->node] = used->tiers[row->tier] = true;
    }
    for (uint32_t i = 0; i < stats_kept(s); i++) {
        const struct kept_request *kept = stats_kept_at(s, i);
        const struct kept_span *spans = stats_kept_spans(s, i);
        used->nodes[kept->node] = used->identities[kept->identity] = true;
        if (kept->remote) {
            used->nodes[kept->maker] = true;
        }
        for (uint32_t k = 0; k < kept->count; k++) {
            used->tiers[spans[k].tier] = true;
        }
    }
}

bool stats_empty(const struct stats *s) {
    return s->count == 0 && s->ledger_count == 0 && s->path_count == 0 && s->cost_count == 0 &&
           s->kept.len == 0;
}

bool stats_overflowed(const struct stats *s) {
    return s->overflowed;
}

bool stats_coarse(const struct stats *s) {
    bool coarse = s->histograms.coarse;
    for (uint32_t node = 0; node < LIMIT_NODES; node++) {
        coarse = coarse || s->histograms_of[node].coarse;
    }
    return coarse;
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
    return slab_at(&s->ledgers, i);
}

uint32_t stats_paths(const struct stats *s) {
    return s->path_count;
}

const struct path_row *stats_path_at(const struct stats *s, uint32_t i) {
    return slab_at(&s->paths, i);
}

uint32_t stats_costs(const struct stats *s) {
    return s->cost_count;
}

const struct cost_row *stats_cost_at(const struct stats *s, uint32_t i) {
    return slab_at(&s->costs, i);
}

uint32_t stats_kept(const struct stats *s) {
    return (uint32_t)(s->kept.len / sizeof(struct kept_request));
}

const struct kept_request *stats_kept_at(const struct stats *s, uint32_t i) {
    return (const struct kept_request *)(const void *)s->kept.data + i;
}

const struct kept_span *stats_kept_spans(const struct stats *s, uint32_t i) {
    const struct kept_request *kept = stats_kept_at(s, i);
    return kept->count > 0
               ? (const struct kept_span *)(const void *)s->kept_spans.data + kept->first
               : NULL;
}
