// SPDX-License-Identifier: Apache-2.0
// Profiles in the database: written by the thread that owns the store's writing connection, read by
// others (query_profile.h).
#pragma once

#include "model/profile/profile.h"
#include "store/store.h"

// Writes a profile, all of it or nothing. *id is its number then, which no other profile will get.
// On false store_error says why, and the same profile may be written again later.
bool store_keep_profile(struct store *s, const struct profile *p, int64_t *id);
