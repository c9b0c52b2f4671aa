// SPDX-License-Identifier: Apache-2.0
// The looks of a run of stack sampling, gone through as they come, for a run that may take for
// ever: what its shim has named is kept until the shim numbers anew, and nothing of the looks.
// Takes the records of a shim (codec/sample_records.h), also through sample_relay.h. One thread at
// a time.
#pragma once

#include "model/profile/sample_taker.h"
#include "model/profile/sample_walk.h"

struct sample_stream {
    struct profile profile; // its stacks and processes
    struct sample_taker *taker;
    struct sample_walk walk;
    uint64_t us;    // time of the records taken so far, in µs from the run's begin
    uint64_t looks; // that were gone through, also those without an answer
    uint64_t lost;  // looks for which there was no room
    bool full;      // stacks lack what found no room
};

// False without memory; sample_stream_end in either case.
bool sample_stream_begin(struct sample_stream *s);
void sample_stream_end(struct sample_stream *s);

// Who sees the looks.
struct sample_eye {
    void *user;
    // A record that tells of a process, or of the sampler, as sample_walk_next has it. from_us: the
    // walk's time counts from there, and that from the run's begin. False: enough.
    bool (*see)(void *user, const struct sample_walk *walk, uint64_t from_us);
};

enum stream_status { STREAM_TAKEN, STREAM_ENOUGH, STREAM_DAMAGED, STREAM_NO_MEMORY };

// Takes some records. Unless it is STREAM_TAKEN, no more may be taken. Damaged: they are none, name
// what was never told, or tell more time than a life has.
enum stream_status sample_stream_take(struct sample_stream *s, struct slice records,
                                      const struct sample_eye *eye);
