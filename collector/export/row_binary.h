// SPDX-License-Identifier: Apache-2.0
// Rows in ClickHouse's RowBinary: values one after another without names, little-endian. Pure.
#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "store/changes.h"

// Appends a cell, as the column's type has it (table_type). NULL; or why there is no such value in
// the engine, and then what was appended is no row. A buffer that cannot take it is failed.
const char *row_binary_cell(enum change_kind kind, const struct change_cell *cell,
                            struct buffer *out);
void row_binary_u64(uint64_t value, struct buffer *out);
// Text, its length first.
void row_binary_text(struct slice text, struct buffer *out);
