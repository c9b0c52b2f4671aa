// SPDX-License-Identifier: Apache-2.0
// What stack sampling has seen of the processes of a node: looks at them, each with a stack and
// values, packed, a second after the other. They belong to a profile (profile.h), which has their
// stacks and names. sample_taker.h takes them from a shim, sample_walk.h goes through them one by
// one, sample_weights.h makes them into the profile's weights.
//
// Times are µs from the run's begin. One thread at a time.
#pragma once

#include "codec/mfa.h"
#include "codec/sample_records.h"
#include "model/message/message.h"

// A process that was looked at. Names are of the profile's stacks.names, NAME_NONE: empty.
struct sampled_process {
    char pid[MESSAGE_PID_BYTES];
    uint32_t name; // registered, or its label
    uint32_t initial;
    uint32_t application;
};

// Where a second's records begin. The first thing that they tell is the time since the second
// began.
struct sample_second {
    uint32_t second;
    uint32_t at; // in records
};

struct sample_counts {
    uint64_t looks;      // with a stack
    uint64_t unchanged;  // at processes that had done nothing
    uint64_t unanswered; // processes did not answer in time
    uint64_t held_us;    // the sampler held itself back
    uint64_t late_us;    // the node had no time for it
    uint64_t cut;        // stacks that lack their outermost frames
    uint64_t cost_us;    // of processor time, as the sampler measured it
};

// What a look holds at most: sums of all looks fit 63 bits.
#define SAMPLE_MOST_VALUE (INT64_C(1) << 40)

struct samples {
    struct buffer records; // codec/sample_records.h; stacks and processes by the profile's numbers
    struct sample_second *seconds;
    struct sampled_process *processes;
    uint32_t second_count, second_room, process_count, process_room;
    struct sample_counts counts;
    int64_t
        *values; // of the profile's weights, as samples_weigh has left them: SAMPLE_METRICS each
    uint32_t value_room;
    bool full; // there was no room for more
};

// NULL without memory.
struct samples *samples_new(void);
void samples_free(struct samples *s);
// Bytes that they take, but for the values of weights.
size_t samples_bytes(const struct samples *s);
// Another process; its number, or UINT32_MAX when there are LIMIT_SAMPLE_PROCESSES.
uint32_t samples_process(struct samples *s, const struct sampled_process *process);
// Keeps and counts a record of that time, which is not before the one told last, *told_us; that
// becomes it. Where it finds no room, besides so many bytes, full is set.
void samples_keep(struct samples *s, const struct sample_record *r, uint64_t us, uint64_t *told_us,
                  size_t besides);
// The records of a second, later than those before. False without room.
bool samples_second(struct samples *s, uint32_t second, struct slice records);

// Copies records with other numbers of their stacks: for each of `count` stacks its own. False when
// they name another one, or are none, or out has failed.
bool samples_renumber(struct slice records, const uint32_t *stacks, uint32_t count,
                      struct buffer *out);

// The function of a frame's record. False: it is none.
bool samples_frame(const struct sample_record *r, struct mfa *mfa);
// A status (enum sample_status) in words.
const char *samples_status(uint8_t status);
