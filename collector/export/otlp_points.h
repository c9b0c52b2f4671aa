// SPDX-License-Identifier: Apache-2.0
// The requests of a bucket, node and identity as metrics of OTLP: their durations as an exponential
// histogram in seconds, and those that failed as a sum; of that bucket alone (delta).
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "model/stats/histogram.h"
#include "store/otlp.h"

enum { OTLP_POINTS = 2 }; // that one is

// Appends it as a message of its own, ExportMetricsServiceRequest: such messages one behind the
// other are one that has all of them. NULL, or why there is none: out is then as it was, and has
// failed where there was no memory.
const char *otlp_point_write(const struct otlp_point *p, uint32_t resolution_s,
                             struct histogram *scratch, struct buffer *out);
