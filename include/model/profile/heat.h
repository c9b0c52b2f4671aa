// SPDX-License-Identifier: Apache-2.0
// A heat map: the samples of a profile by time, a column for each second or some of them, cut into
// rows. It tells when nothing was seen as there was nothing to see, and when the sampler did not
// look. One thread at a time.
#pragma once

#include "model/profile/sample_weights.h"

struct heat_cell {
    // What its looks weigh by the metric. Of memory, queues and binaries: what the processes that
    // were looked at had together, at its highest.
    int64_t value;
    uint32_t looks;      // at processes
    uint32_t unanswered; // of these
    uint64_t late_us;    // of it the node had no time for the sampler,
    uint64_t held_us;    // or that held itself back, to keep to its budget
    bool no_profile;     // of several profiles: none is of its time
};

// What a cell is.
enum heat_state {
    HEAT_SEEN,       // looks, and they weigh something
    HEAT_IDLE,       // looks, which weigh nothing
    HEAT_LATE,       // no looks: the node had no time for the sampler
    HEAT_HELD,       // no looks: it held itself back
    HEAT_NOTHING,    // no looks, as none was due, or the run had not begun or was over
    HEAT_NO_PROFILE, // of several profiles: none is of that time
    HEAT_STATES
};

struct heat {
    enum flame_metric metric;
    uint64_t from_us;   // of the first column, from the profile's begin; whole columns
    uint64_t column_us; // whole seconds
    uint32_t columns, rows;
    struct heat_cell *cells;        // a column behind the other, each from its begin on
    uint64_t length_us;             // of the profile
    int64_t lowest, highest;        // value of what is HEAT_SEEN; 0: nothing is
    uint64_t of_state[HEAT_STATES]; // cells
};

struct heat_choice {
    enum flame_metric metric;   // one of samples
    uint64_t from_us, until_us; // widened to whole columns; until 0: to the end
    uint32_t columns;           // at most, LIMIT_HEAT_COLUMNS; seconds are put together for that
    uint32_t rows;              // LIMIT_HEAT_ROWS at most; a divisor of 1,000,000
};

enum heat_made {
    HEAT_MADE,
    HEAT_OUTSIDE,  // the stretch is empty, or begins behind the profile's end
    HEAT_NO_MEMORY // or the records are damaged
};

// Makes one of a profile that has samples. heat_free in either case.
enum heat_made heat_make(struct heat *h, const struct profile *p, const struct heat_choice *choice);
void heat_free(struct heat *h);

// One of several profiles, none of which need be in memory when the next one is: its columns lie
// from h->from_us on as choice->from_us and until_us say, from a time that is theirs together.
struct heat_maker; // opaque
// NULL, and h is empty: the stretch is empty, or there is no memory.
struct heat_maker *heat_begin(struct heat *h, const struct heat_choice *choice);
// Adds a profile that has samples, and that begins so long after that time; what of it is before is
// left out. False without memory, and where its records are damaged: only the end may follow.
bool heat_add(struct heat_maker *m, const struct profile *p, int64_t begin_us);
// They are all added; h is finished. heat_free(h) stays to be called.
void heat_end(struct heat_maker *m);
// How long a cell is; when it begins, from the profile's begin.
uint64_t heat_cell_us(const struct heat *h);
uint64_t heat_cell_begin(const struct heat *h, uint32_t cell);
enum heat_state heat_state_of(const struct heat_cell *cell);
// How hot a cell is that is HEAT_SEEN: from 0 up to levels - 1, by the square root of its value, so
// that a few very hot ones leave the others apart.
uint32_t heat_level(const struct heat *h, const struct heat_cell *cell, uint32_t levels);
