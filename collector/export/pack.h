// SPDX-License-Identifier: Apache-2.0
// Packs what is sent, with gzip.
#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "base/bytes.h"

// Into an empty buffer. False without memory, or where it does not fit.
bool pack_gzip(struct slice bytes, struct buffer *out);
