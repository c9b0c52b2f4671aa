// SPDX-License-Identifier: Apache-2.0
// What stack sampling has seen of the processes of a node: looks at them, each with a stack and
// values, packed, a second after the other. They are made into the weights of a profile by a metric
// and a group, of all of it or of a stretch; or walked through one by one.
//
// Times are µs from the run's begin. One thread at a time.
#pragma once

#include "codec/sample_records.h"
#include "model/profile/flame.h"

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
    bool full; // there was no room for more
};

// NULL without memory.
struct samples *samples_new(void);
void samples_free(struct samples *s);
// Another process; its number, or UINT32_MAX when there are LIMIT_SAMPLE_PROCESSES.
uint32_t samples_process(struct samples *s, const struct sampled_process *process);
// The records of a second, later than those before. False without room.
bool samples_second(struct samples *s, uint32_t second, struct slice records);

// Copies records with other numbers of their stacks: for each of `count` stacks its own. False when
// they name another one, or are none, or out has failed.
bool samples_renumber(struct slice records, const uint32_t *stacks, uint32_t count,
                      struct buffer *out);

// -- taking what a shim sends ---------------------------------------------------------------------

struct sample_taker; // opaque

// Takes for a profile, which gets samples; it must outlive the taker. NULL without memory.
struct sample_taker *sample_taker_new(struct profile *p);
void sample_taker_free(struct sample_taker *t);
// Takes some records. False when they are none, or name what was never told: no more may be taken.
bool sample_taker_take(struct sample_taker *t, struct slice records);

// -- walking --------------------------------------------------------------------------------------

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
void sample_walk_end(struct sample_walk *w);

// -- weighing -------------------------------------------------------------------------------------

struct sample_choice {
    enum flame_metric metric; // one of samples
    enum flame_group group;
    uint64_t from_us, until_us; // until 0: to the end
    bool kept; // as it is kept: no metric and no group, all looks, ns are their reductions
};

// Makes the weights of a profile anew: ns is what the metric weighs, calls how many looks; and what
// it is grouped by stands where full traces have the process. False without memory, or where the
// records are damaged.
bool samples_weigh(struct profile *p, const struct sample_choice *choice);
// What a value of a look is by a metric; false: the look tells nothing of it.
bool samples_value(const struct sample_walk *w, enum flame_metric metric, int64_t *value);
