// SPDX-License-Identifier: Apache-2.0
#include "export/row_read.h"

#include <string.h>

#include "base/leb128.h"
#include "base/limits.h"
#include "model/stats/histogram.h"

enum {
    ROW_BYTES = 2 * LIMIT_EXPORT_ROW_BYTES, // a row that is longer is none
    REST_BYTES = ROW_BYTES + (1 << 20),
    STORED_VERSION = 1 // of histograms (model/stats/histogram.h)
};

void row_reader_init(struct row_reader *r, const enum change_kind *kinds, int count,
                     bool (*take)(void *to, const struct change_cell *cells), void *to) {
    *r = (struct row_reader){.count = count,
                             .take = take,
                             .to = to,
                             .rest = buffer_make(REST_BYTES),
                             .counts = buffer_make(CHANGE_COLUMNS * HISTOGRAM_BYTES)};
    memcpy(r->kinds, kinds, (size_t)count * sizeof *kinds);
}

void row_reader_free(struct row_reader *r) {
    buffer_free(&r->rest);
    buffer_free(&r->counts);
}

static uint64_t little(struct cursor *c, size_t bytes) {
    const uint8_t *at = cursor_claim(c, bytes);
    uint64_t value = 0;
    for (size_t i = 0; at && i < bytes; i++) {
        value |= (uint64_t)at[i] << 8 * i;
    }
    return value;
}

static int64_t natural(uint64_t value) {
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

// A length that what is left may have; anything else fails the cursor.
static size_t length(struct cursor *c, size_t most, bool *malformed) {
    uint64_t n = leb128_take(c);
    if (!c->failed && n > most) {
        *malformed = true;
        cursor_fail(c);
    }
    return c->failed ? 0 : (size_t)n;
}

// Two arrays, of buckets and of their counts, as the stored form has them.
static void take_counts(struct row_reader *r, struct cursor *c, struct change_cell *cell) {
    static const uint8_t version = STORED_VERSION;
    size_t start = r->counts.len;
    size_t n = length(c, HISTOGRAM_BUCKETS, &r->malformed);
    const uint8_t *keys = cursor_claim(c, n * sizeof(uint16_t));
    size_t same = length(c, HISTOGRAM_BUCKETS, &r->malformed);
    struct cursor k = cursor_of(keys, keys ? n * sizeof(uint16_t) : 0);
    uint64_t before = 0;
    r->malformed = r->malformed || (!c->failed && same != n);
    buffer_append(&r->counts, &version, sizeof version);
    for (size_t i = 0; i < n && !c->failed && !r->malformed; i++) {
        uint64_t key = little(&k, sizeof(uint16_t)), count = little(c, sizeof(uint64_t));
        r->malformed = key >= HISTOGRAM_BUCKETS || (i > 0 && key <= before) || count > INT64_MAX;
        if (count > 0 && !r->malformed) {
            leb128_append(&r->counts, key - before);
            leb128_append(&r->counts, count);
            before = key;
        }
    }
    r->malformed = r->malformed || r->counts.failed;
    cell->number = (int64_t)start; // its place: the buffer may move
}

static void take_cell(struct row_reader *r, enum change_kind kind, struct cursor *c,
                      struct change_cell *cell) {
    uint64_t bits;
    *cell = (struct change_cell){0};
    switch (kind) {
    case CHANGE_TIME:
    case CHANGE_SMALL:
        cell->number = (int64_t)little(c, sizeof(uint32_t));
        break;
    case CHANGE_NUMBER:
        cell->number = natural(little(c, sizeof(uint64_t)));
        break;
    case CHANGE_OPTIONAL:
        bits = little(c, 1);
        r->malformed = r->malformed || bits > 1;
        cell->null = bits == 1;
        // as it was: what is no count, as a label, may have any bits
        cell->number = cell->null ? 0 : (int64_t)little(c, sizeof(uint64_t));
        break;
    case CHANGE_SIGNED:
        cell->number = (int64_t)little(c, sizeof(uint64_t));
        break;
    case CHANGE_REAL:
        bits = little(c, sizeof(uint64_t));
        memcpy(&cell->real, &bits, sizeof bits);
        break;
    case CHANGE_NAME:
    case CHANGE_TEXT: {
        size_t n = length(c, LIMIT_EXPORT_ROW_BYTES, &r->malformed);
        cell->bytes = slice_of(cursor_claim(c, n), n);
        break;
    }
    case CHANGE_COUNTS:
        take_counts(r, c, cell);
        break;
    }
}

// Takes a row off the front. False where there is no whole one.
static bool take_row(struct row_reader *r, struct cursor *c) {
    struct change_cell cells[CHANGE_COLUMNS];
    size_t ends[CHANGE_COLUMNS];
    struct cursor at = *c;
    buffer_reset(&r->counts);
    for (int i = 0; i < r->count && !at.failed && !r->malformed; i++) {
        take_cell(r, r->kinds[i], &at, &cells[i]);
        ends[i] = r->counts.len;
    }
    if (at.failed || r->malformed) {
        return false;
    }
    for (int i = 0; i < r->count; i++) {
        if (r->kinds[i] == CHANGE_COUNTS) {
            size_t start = (size_t)cells[i].number;
            cells[i].bytes = slice_of(r->counts.data + start, ends[i] - start);
        }
    }
    *c = at;
    r->stopped = !r->take(r->to, cells);
    return !r->stopped;
}

bool row_reader_feed(struct row_reader *r, struct slice bytes) {
    size_t done = 0;
    // in parts, so that what waits has a bound
    while (done < bytes.len && !r->stopped && !r->malformed) {
        size_t part =
            bytes.len - done < REST_BYTES - ROW_BYTES ? bytes.len - done : REST_BYTES - ROW_BYTES;
        if (!buffer_append(&r->rest, bytes.data + done, part)) {
            r->malformed = true;
            return false;
        }
        done += part;
        struct cursor c = cursor_of(r->rest.data, r->rest.len);
        while (cursor_left(&c) > 0 && take_row(r, &c)) {
        }
        buffer_consume(&r->rest, r->rest.len - cursor_left(&c));
        r->malformed = r->malformed || r->rest.len > ROW_BYTES;
    }
    return !r->stopped && !r->malformed;
}

bool row_reader_whole(const struct row_reader *r) {
    return !r->stopped && !r->malformed && r->rest.len == 0;
}
