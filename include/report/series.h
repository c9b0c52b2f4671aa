// SPDX-License-Identifier: Apache-2.0
// The statistics of an identity as they went, for charts: as JSON. One thread at a time.
#pragma once

#include "base/buffer.h"
#include "store/notes.h"
#include "store/query_profile.h"
#include "store/query_series.h"

// A step that people find on a clock, for so many points at most in a time: 1, 2, 5, 10 … seconds,
// minutes, hours.
int64_t series_step(int64_t from_s, int64_t until_s, uint32_t most);

// One JSON object and a newline. profiles, notes: those of that time, for marks. Arrays of the same
// length hold a value for each step, null where nothing was told:
//   start_s, step_s, resolution_s   seconds
//   requests, errors                counts
//   mean_us … max_us                of the requests' durations
//   uncovered_us, waiting_us,       of the mean request: what no tier covers, what is waiting, and
//   parallel_us                     what counts more than once in these and the tiers' self times;
//                                   the last two null where that was not told apart
//   tiers                           each: name, and of the mean request self_us, wait_us, async_us,
//                                   waiting_us
//   verdicts                        ok, unclear, lossy, paused
//   heat                            scale, and for each step [first bucket, counts …] of durations:
//                                   bucket i has those over 2^(i / scale) ns
//   marks                           what happened: at_s, kind, amount; of a note also node and
//                                   text; of a profile, which ended then, of, from_s, node, text
//                                   and label
// Check out->failed.
void series_json(const struct series *series, const struct profile_list *profiles,
                 const struct note_list *notes, struct buffer *out);
