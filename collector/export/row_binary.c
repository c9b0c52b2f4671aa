// SPDX-License-Identifier: Apache-2.0
#include "export/row_binary.h"

#include <endian.h>
#include <string.h>

#include "base/leb128.h"
#include "model/stats/histogram.h"

static void little(uint64_t value, size_t bytes, struct buffer *out) {
    uint64_t all = htole64(value);
    buffer_append(out, &all, bytes);
}

void row_binary_u64(uint64_t value, struct buffer *out) {
    little(value, sizeof value, out);
}

void row_binary_text(struct slice text, struct buffer *out) {
    leb128_append(out, text.len);
    buffer_append(out, text.data, text.len);
}

// Two arrays of the same length: the buckets that have a count, and their counts.
static const char *counts(struct slice stored, struct buffer *out) {
    uint16_t buckets[HISTOGRAM_BUCKETS];
    uint64_t numbers[HISTOGRAM_BUCKETS];
    int used = histogram_unpack(stored, buckets, numbers);
    if (used < 0) {
        return "its histogram is malformed";
    }
    for (int i = 0; i < used; i++) {
        buckets[i] = htole16(buckets[i]);
        numbers[i] = htole64(numbers[i]);
    }
    leb128_append(out, (uint64_t)used);
    buffer_append(out, buckets, (size_t)used * sizeof *buckets);
    leb128_append(out, (uint64_t)used);
    buffer_append(out, numbers, (size_t)used * sizeof *numbers);
    return NULL;
}

// Numbers that are 0 or more, wherever they were not edited.
static uint64_t natural(int64_t number) {
    return number < 0 ? 0 : (uint64_t)number;
}

const char *row_binary_cell(enum change_kind kind, const struct change_cell *cell,
                            struct buffer *out) {
    uint64_t bits;
    switch (kind) {
    case CHANGE_TIME:
        if (cell->number < 0 || cell->number > UINT32_MAX) {
            return "its time is none that ClickHouse has";
        }
        little((uint64_t)cell->number, sizeof(uint32_t), out);
        return NULL;
    case CHANGE_SMALL:
        little(cell->number > UINT32_MAX ? UINT32_MAX : natural(cell->number), sizeof(uint32_t),
               out);
        return NULL;
    case CHANGE_NUMBER:
        row_binary_u64(natural(cell->number), out);
        return NULL;
    case CHANGE_OPTIONAL:
        little(cell->null, 1, out);
        if (!cell->null) {
            row_binary_u64((uint64_t)cell->number, out);
        }
        return NULL;
    case CHANGE_SIGNED:
        row_binary_u64((uint64_t)cell->number, out);
        return NULL;
    case CHANGE_REAL:
        memcpy(&bits, &cell->real, sizeof bits);
        row_binary_u64(bits, out);
        return NULL;
    case CHANGE_NAME:
    case CHANGE_TEXT:
        row_binary_text(cell->bytes, out);
        return NULL;
    case CHANGE_COUNTS:
        return counts(cell->bytes, out);
    }
    return "it has a column of no known kind";
}
