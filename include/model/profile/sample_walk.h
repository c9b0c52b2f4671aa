// SPDX-License-Identifier: Apache-2.0
// Goes through the samples of a profile, one record after the other, and tells what is known of
// each process then. One thread at a time.
#pragma once

#include "model/profile/profile.h"
#include "model/profile/samples.h"

// A process, as of the record just walked past.
struct sample_state {
    uint32_t stack;    // STACK_ROOT: none is known
    uint32_t known;    // bits of enum sample_value: which values are
    uint16_t identity; // a name of the profile's; PROFILE_NOBODY: none
    int64_t values[SAMPLE_VALUES];
};

struct sample_walk {
    const struct profile *profile;
    struct sample_state *states; // of each process
    uint32_t state_count;
    struct cursor at;
    uint32_t second; // the next one
    uint64_t us;
    struct sample_record record;
    int64_t changes[SAMPLE_VALUES]; // of a look: since that process's last one that told it
    bool damaged;                   // the records are none
};

// Begins before the first record. False without memory; sample_walk_end in either case.
bool sample_walk_begin(struct sample_walk *w, const struct profile *p);
// On to the next record that tells of a process, or of the sampler. False behind the last one, and
// where the records are damaged.
bool sample_walk_next(struct sample_walk *w);
// The profile's records have begun anew (sample_taker_clear), with times from 0 on: before the
// first of them, with what is known of each process. False without memory.
bool sample_walk_again(struct sample_walk *w);
void sample_walk_end(struct sample_walk *w);
