// SPDX-License-Identifier: Apache-2.0
#include "model/stats/histogram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/slab.h"

enum { STEPS = 1 << HISTOGRAM_SCALE, VERSION = 1, ROOM_STEP = 64 };

uint32_t histogram_bucket(uint64_t ns) {
    // boundary[i] = ceil(2^(63 + i/32)), exact: compared with the value shifted so that its highest
    // bit is bit 63. A table, because exp2l rounds to 64 bits and so puts some borders one too low.
    static const uint64_t boundary[STEPS] = {
        0x8000000000000000, 0x82cd8698ac2ba1d8, 0x85aac367cc487b15, 0x88980e8092da8528,
        0x8b95c1e3ea8bd6e7, 0x8ea4398b45cd53c1, 0x91c3d373ab11c337, 0x94f4efa8fef70962,
        0x9837f0518db8a970, 0x9b8d39b9d54e5539, 0x9ef5326091a111ae, 0xa27043030c496819,
        0xa5fed6a9b15138eb, 0xa9a15ab4ea7c0ef9, 0xad583eea42a14ac7, 0xb123f581d2ac2590,
        0xb504f333f9de6485, 0xb8fbaf4762fb9eea, 0xbd08a39f580c36bf, 0xc12c4cca66709457,
        0xc5672a115506dade, 0xc9b9bd866e2f27a3, 0xce248c151f8480e4, 0xd2a81d91f12ae45b,
        0xd744fccad69d6af5, 0xdbfbb797daf23756, 0xe0ccdeec2a94e112, 0xe5b906e77c8348a9,
        0xeac0c6e7dd24392f, 0xefe4b99bdcdaf5cc, 0xf5257d152486cc2d, 0xfa83b2db722a033b,
    };
    // The last boundary at or below each 64th of the way from 2^63 to 2^64; in no such stretch lies
    // more than one more.
    static const uint8_t guess[64] = {
        0,  0,  1,  2,  2,  3,  4,  4,  5,  6,  6,  7,  7,  8,  9,  9,  10, 10, 11, 12, 12, 13,
        13, 14, 14, 15, 15, 16, 16, 17, 17, 18, 18, 19, 19, 20, 20, 21, 21, 21, 22, 22, 23, 23,
        24, 24, 25, 25, 25, 26, 26, 27, 27, 27, 28, 28, 29, 29, 29, 30, 30, 30, 31, 31,
    };
    if (ns <= 1) {
        return 0;
    }
    int high = 63 - __builtin_clzll(ns);
    uint64_t v = ns << (63 - high);
    uint32_t low = guess[v >> 57 & 63];
    low += low + 1 < STEPS && v >= boundary[low + 1];
    uint32_t bucket = (uint32_t)high * STEPS + low;
    // only the powers of two are exactly on a border, and belong to the bucket below
    return v == 1ULL << 63 ? bucket - 1 : bucket;
}

double histogram_middle(uint32_t bucket) {
    return exp2((bucket + 0.5) / STEPS);
}

// Bytes of so many counts that a budget knows of.
static size_t budgeted(uint32_t room) {
    return (room > HISTOGRAM_LEAST ? room - HISTOGRAM_LEAST : 0) * sizeof(uint64_t);
}

void histogram_free(struct histogram *h) {
    struct histogram_budget *budget = h->budget;
    for (struct histogram_budget *b = budget; b; b = b->all) {
        b->bytes -= budgeted(h->room);
    }
    free(h->counts);
    *h = (struct histogram){.budget = budget};
}

void histogram_reset(struct histogram *h) {
    h->len = 0;
    h->coarse = 0;
}

// Whether so many bytes more are within the budget.
static bool affords(const struct histogram_budget *b, size_t bytes) {
    if (b && b->all) {
        size_t left = b->all->cap > b->all->bytes ? b->all->cap - b->all->bytes : 0;
        return b->bytes + bytes <= b->cap && bytes <= left && b->bytes < SLAB_SHARE * left;
    }
    return !b || b->bytes + bytes <= b->cap;
}

// Takes two buckets together each.
static void coarsen(struct histogram *h) {
    uint32_t first = h->first / 2, end = (h->first + h->len + 1) / 2;
    for (uint32_t i = h->len > 0 ? first : end; i < end; i++) {
        uint64_t low = 2 * i < h->first ? 0 : h->counts[2 * i - h->first];
        h->counts[i - first] =
            low + (2 * i + 1 >= h->first + h->len ? 0 : h->counts[2 * i + 1 - h->first]);
    }
    h->first = first;
    h->len = h->len > 0 ? end - first : 0;
    h->coarse++;
    h->budget->coarse = true;
}

static bool make_room(struct histogram *h, uint32_t room) {
    uint64_t *counts = realloc(h->counts, room * sizeof *counts);
    if (!counts) {
        return false;
    }
    for (struct histogram_budget *b = h->budget; b; b = b->all) {
        b->bytes += budgeted(room) - budgeted(h->room);
    }
    h->counts = counts;
    h->room = room;
    return true;
}

// Widens the window so that it spans first … last, which are buckets of scale 5; it may become
// coarser.
static bool span(struct histogram *h, uint32_t first, uint32_t last) {
    uint32_t from, len;
    for (;;) {
        uint32_t until = last >> h->coarse;
        from = first >> h->coarse;
        if (h->len > 0) {
            from = from < h->first ? from : h->first;
            until = until >= h->first + h->len ? until : h->first + h->len - 1;
        }
        len = until - from + 1;
        uint32_t room = (len + ROOM_STEP - 1) / ROOM_STEP * ROOM_STEP;
        if (len <= h->room) {
            break;
        }
        if (room <= HISTOGRAM_LEAST || affords(h->budget, budgeted(room) - budgeted(h->room))) {
            if (!make_room(h, room)) {
                return false;
            }
            break;
        }
        coarsen(h);
    }
    uint32_t shift = h->len > 0 ? h->first - from : 0;
    if (shift > 0) {
        memmove(h->counts + shift, h->counts, h->len * sizeof *h->counts);
        memset(h->counts, 0, shift * sizeof *h->counts);
    }
    memset(h->counts + shift + h->len, 0, (len - shift - h->len) * sizeof *h->counts);
    h->first = from;
    h->len = len;
    return true;
}

static inline bool covers(const struct histogram *h, uint32_t bucket) {
    return bucket >= h->first && bucket - h->first < h->len;
}

// histogram_add outside of the window. Apart, so that the rest needs no stack frame.
__attribute__((noinline)) static bool add_outside(struct histogram *h, uint32_t bucket) {
    if (!span(h, bucket, bucket)) {
        return false;
    }
    h->counts[(bucket >> h->coarse) - h->first]++;
    return true;
}

bool histogram_add(struct histogram *h, uint64_t ns) {
    uint32_t bucket = histogram_bucket(ns);
    if (!covers(h, bucket >> h->coarse)) {
        return add_outside(h, bucket);
    }
    h->counts[(bucket >> h->coarse) - h->first]++;
    return true;
}

// The bucket at scale 5 in the middle of what count i stands for.
static inline uint32_t middle_of(const struct histogram *h, uint32_t i) {
    return ((h->first + i) << h->coarse) + (1U << h->coarse >> 1);
}

bool histogram_merge(struct histogram *h, const struct histogram *from) {
    if (from->len == 0) {
        return true;
    }
    if (!span(h, middle_of(from, 0), middle_of(from, from->len - 1))) {
        return false;
    }
    for (uint32_t i = 0; i < from->len; i++) {
        h->counts[(middle_of(from, i) >> h->coarse) - h->first] += from->counts[i];
    }
    return true;
}

uint64_t histogram_count(const struct histogram *h) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < h->len; i++) {
        n += h->counts[i];
    }
    return n;
}

double histogram_quantile(const struct histogram *h, double q) {
    uint64_t n = histogram_count(h);
    if (n == 0) {
        return 0;
    }
    // the smallest value with at least the share q of all values at or below it (nearest rank)
    uint64_t rank = !(q > 0) ? 1 : q >= 1 ? n : (uint64_t)ceil(q * (double)n);
    rank = rank < 1 ? 1 : rank > n ? n : rank;
    for (uint32_t i = 0; i < h->len; i++) {
        if (h->counts[i] >= rank) {
            return exp2((h->first + i + 0.5) * (double)(1U << h->coarse) / STEPS);
        }
        rank -= h->counts[i];
    }
    return 0; // not reached: the ranks end with the counts
}

// -- stored form ----------------------------------------------------------------------------------

static size_t leb128_put(uint8_t *p, uint64_t value) {
    size_t n = 0;
    do {
        p[n++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value > 0);
    return n;
}

static uint64_t leb128_get(struct cursor *c) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
        uint8_t byte = cursor_u8(c);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            return value;
        }
    }
    cursor_fail(c); // 2^63 values and more were never counted
    return 0;
}

bool histogram_write(const struct histogram *h, struct buffer *out) {
    uint8_t bytes[24] = {VERSION};
    buffer_append(out, bytes, 1);
    uint32_t before = 0;
    for (uint32_t i = 0; i < h->len; i++) {
        if (h->counts[i] > 0) {
            size_t n = leb128_put(bytes, middle_of(h, i) - before);
            n += leb128_put(bytes + n, h->counts[i]);
            buffer_append(out, bytes, n);
            before = middle_of(h, i);
        }
    }
    return !out->failed;
}

// Goes through the stored form: the first and last bucket that it has, both HISTOGRAM_BUCKETS when
// none. Returns false when it is malformed.
static bool walk(struct slice bytes, uint64_t *first, uint64_t *last) {
    struct cursor c = cursor_of(bytes.data, bytes.len);
    uint64_t bucket = 0;
    *first = *last = HISTOGRAM_BUCKETS;
    if (cursor_u8(&c) != VERSION) {
        return false;
    }
    while (cursor_left(&c) > 0) {
        uint64_t distance = leb128_get(&c);
        uint64_t count = leb128_get(&c);
        if (c.failed || count == 0 || distance >= HISTOGRAM_BUCKETS - bucket ||
            (distance == 0 && *first < HISTOGRAM_BUCKETS)) {
            return false;
        }
        bucket += distance;
        *first = bucket < *first ? bucket : *first;
        *last = bucket;
    }
    return true;
}

bool histogram_valid(struct slice bytes) {
    uint64_t first, last;
    return walk(bytes, &first, &last);
}

// One byte is what most numbers have, and two are what most others have.
static inline uint64_t leb128_next(struct cursor *c) {
    const uint8_t *at = c->at;
    if (at < c->end && at[0] < 0x80) {
        c->at = at + 1;
        return at[0];
    }
    if (c->end - at >= 2 && at[1] < 0x80) {
        c->at = at + 2;
        return (uint64_t)(at[0] & 0x7f) | (uint64_t)at[1] << 7;
    }
    return leb128_get(c);
}

int histogram_unpack(struct slice bytes, uint16_t buckets[HISTOGRAM_BUCKETS],
                     uint64_t counts[HISTOGRAM_BUCKETS]) {
    struct cursor c = cursor_of(bytes.data, bytes.len);
    uint64_t bucket = 0;
    int n = 0;
    if (cursor_u8(&c) != VERSION) {
        return -1;
    }
    while (cursor_left(&c) > 0) {
        uint64_t distance = leb128_next(&c);
        uint64_t count = leb128_next(&c);
        if (c.failed || count == 0 || distance >= HISTOGRAM_BUCKETS - bucket ||
            (distance == 0 && n > 0)) {
            return -1;
        }
        bucket += distance;
        buckets[n] = (uint16_t)bucket;
        counts[n++] = count;
    }
    return n;
}

// Adds the stored counts so many times, as far as they are well formed and within the window.
// Returns how many bytes that were.
static size_t add_stored(struct histogram *h, struct slice bytes, uint64_t times) {
    struct cursor c = cursor_of(bytes.data, bytes.len);
    uint64_t *const counts = h->counts;
    const uint32_t coarse = h->coarse, base = h->first, len = h->len;
    uint64_t bucket = 0;
    if (cursor_u8(&c) != VERSION) {
        return 0;
    }
    const uint8_t *done = c.at;
    for (bool first = true; c.at < c.end; first = false) {
        uint64_t distance = leb128_next(&c);
        uint64_t count = leb128_next(&c);
        uint64_t next = bucket + distance;
        uint64_t at = (next >> coarse) - base; // before the window it is past its end, too
        if (c.failed || count == 0 || distance >= HISTOGRAM_BUCKETS - bucket ||
            (distance == 0 && !first) || at >= len) {
            break;
        }
        bucket = next;
        counts[at] += times * count;
        done = c.at;
    }
    return (size_t)(done - bytes.data);
}

bool histogram_read(struct histogram *h, struct slice bytes) {
    // Most of those that are added up fit into the window of those before. What does not is taken
    // back, the window widened, and all of it added.
    size_t done = add_stored(h, bytes, 1);
    if (bytes.len > 0 && done == bytes.len) {
        return true;
    }
    uint64_t first, last;
    add_stored(h, slice_of(bytes.data, done), UINT64_MAX);
    if (!walk(bytes, &first, &last) ||
        (first < HISTOGRAM_BUCKETS && !span(h, (uint32_t)first, (uint32_t)last))) {
        return false;
    }
    add_stored(h, bytes, 1);
    return true;
}
