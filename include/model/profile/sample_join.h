// SPDX-License-Identifier: Apache-2.0
// Looks of several profiles of one node, made one after the other, as one profile: as if it had
// been one run. One thread at a time.
#pragma once

#include "model/profile/profile.h"

struct sample_join; // opaque

// Joins into a profile that profile_init has left, which gets samples; it must outlive the join.
// NULL without memory.
struct sample_join *sample_join_new(struct profile *into);
void sample_join_free(struct sample_join *j);
// Adds the looks of a profile of samples from from_us until until_us of its own time, 0: to its
// end. at_us: its begin in the time of what is joined. Profiles come in the order of time. False
// without memory, or where its records are damaged. What finds no room is left out, from then on
// all: into->samples->full is set. What it cost to take them is not added up.
bool sample_join_add(struct sample_join *j, const struct profile *p, uint64_t at_us,
                     uint64_t from_us, uint64_t until_us);
// The time of the last record that found room.
uint64_t sample_join_us(const struct sample_join *j);
