// SPDX-License-Identifier: Apache-2.0
// What samples tell of single processes: where each is, what it does, how its queue and memory go.
// For questions such as why a mailbox is long. One thread at a time.
#pragma once

#include "codec/json.h"
#include "model/profile/samples.h"

struct profile;

enum { SEEN_PROCESSES = 20 };

// A value as it went: the first, the last and the highest that were told, and when.
struct seen_value {
    bool known;
    int64_t first, last, most;
    uint64_t first_us, last_us;
};

struct process_seen {
    const char *pid, *name, *initial, *application; // the profile's; "": it has none
    uint64_t looks;                                 // that were answered, unchanged ones included
    uint64_t unanswered;
    uint64_t statuses[SAMPLE_STATUSES]; // of looks
    uint64_t first_us, last_us;         // of looks, since the profile's begin
    int64_t reductions;                 // between these
    struct seen_value queue, memory;    // messages; bytes
    uint32_t stack;                     // that it was in most often
    uint64_t stack_looks;               // and in how many of the looks
    bool ended;
};

struct processes_seen {
    struct process_seen of[SEEN_PROCESSES];
    uint32_t count;
    uint32_t more; // that there are
};

// Of the first processes of a profile of samples, in a stretch of it (until_us 0: to its end), in
// the order in which they were told. False without memory, and where the samples are damaged.
bool processes_seen_take(const struct profile *p, uint64_t from_us, uint64_t until_us,
                         struct processes_seen *out);
// How much a value changes a second; 0 where it was told once.
double seen_per_second(const struct seen_value *v);
// Reductions a second; 0 where it was looked at once.
double seen_reductions_per_second(const struct process_seen *s);
// A list of objects, one for each: described in kprof sample --help.
void processes_seen_json(const struct profile *p, const struct processes_seen *seen,
                         struct json *j);
