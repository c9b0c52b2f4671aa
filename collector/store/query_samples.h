// SPDX-License-Identifier: Apache-2.0
// The looks of a profile of samples, as a part of reading it (query_profile.h).
#pragma once

#include "model/profile/profile.h"
#include "store/store.h"

// Reads them into a profile whose stacks are read. stacks: for each of the file's `count` the
// profile's. On false store_error says why; what stands in the file may be anything.
bool query_samples(struct store *s, int64_t id, const uint32_t *stacks, uint32_t count,
                   struct profile *out);
