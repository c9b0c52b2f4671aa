// SPDX-License-Identifier: Apache-2.0
// Finds a profile by what people call it.
#pragma once

#include "report/flame.h"

// Reads a profile by its number or its name: FLAME_FOUND, FLAME_NONE or FLAME_UNREAD.
// profile_free(out) in each case.
enum flame_found flame_find(struct store *s, const char *what, int64_t *id, struct profile *out);
