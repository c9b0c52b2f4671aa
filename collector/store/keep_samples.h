// SPDX-License-Identifier: Apache-2.0
// The looks of a profile of samples, as a part of keeping it (keep_profile.h).
#pragma once

#include "model/profile/profile.h"
#include "store/store.h"

// Writes them within the transaction that is open. stacks: the number in the file of each of the
// profile's stacks. Adds the rows to *rows. On false store_error says why.
bool store_keep_samples(struct store *s, const struct profile *p, int64_t id,
                        const uint32_t *stacks, int64_t *rows);
