// SPDX-License-Identifier: Apache-2.0
// Several profiles that a sampler has made one after the other, as one.
#pragma once

#include "report/flame.h"

// Puts the profiles of a node and a label from *p, which is the one of that number, to the one of
// the number `through` into *p, as far as they lie between these times since its begin (until_us 0:
// to the last one's end). *last: the last one's number. Else *p is as it was, and to be freed.
enum flame_found flame_go_through(struct store *s, int64_t first, const char *through,
                                  uint64_t from_us, uint64_t until_us, int64_t *last,
                                  struct profile *p);
