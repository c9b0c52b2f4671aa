// A flush's rows in the forms that leave the collector: JSON lines for --stats-log, messages for a shim's stats_dumper. Both carry
// the increment since the flush before.
#pragma once

#include "base/buffer.h"
#include "model/directory.h"
#include "model/stats.h"

struct rows {
    const struct stats *stats;
    const struct directory *names;
    int64_t bucket_s;
};

// Appends every row as a line of JSON.
void rows_json(const struct rows *r, struct buffer *out);
// Appends stats messages with every row of a node, some hundred rows a message.
void rows_messages(const struct rows *r, uint16_t node, struct buffer *out);
