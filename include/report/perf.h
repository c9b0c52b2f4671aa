// SPDX-License-Identifier: Apache-2.0
// A look at a process as perf script prints a sample, for FlameScope and its like.
#pragma once

#include "base/buffer.h"
#include "model/profile/sample_weights.h"

// Appends the look that the walk stands at, where it weighs something by the metric, which is its
// event, and what it weighs the period. Before it stands what was seen of the process:
// "metric_erlang_memory: 2688, 0". False: there is nothing to write. begin_ns: of the profile,
// since 1970 UTC.
bool perf_look(const struct sample_walk *w, enum flame_metric metric, int64_t begin_ns,
               struct buffer *out);
