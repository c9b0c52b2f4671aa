// SPDX-License-Identifier: Apache-2.0
// A flush's rows in the forms that leave the collector: JSON lines for --stats-log, messages for a
// shim's stats_dumper. Both carry the increment since the flush before.
#pragma once

#include "base/buffer.h"
#include "model/directory/directory.h"
#include "model/stats/stats.h"

struct rows {
    const struct stats *stats;
    const struct directory *names;
    int64_t bucket_s;
};

// Appends rows as lines of JSON, some hundred from row *from on, which then is the next one. False
// when there was none left.
bool rows_json(const struct rows *r, uint32_t *from, struct buffer *out);
// Appends stats messages with every row of a node, some hundred rows a message. False when there
// was no room for all; those that had are whole.
bool rows_messages(const struct rows *r, uint16_t node, struct buffer *out);
