// SPDX-License-Identifier: Apache-2.0
// Passes the records of a shim on to somebody who may be too slow for them. What he gets is a run's
// records, too: where some were lost, the next ones begin with the time that went by since, and
// with a SAMPLE_FORGET, from which on they tell of everything anew. Until the shim sends one,
// nothing is passed on. Who uses this asks the shim for it.
//
// Pure. One thread at a time.
#pragma once

#include "codec/sample_records.h"

// All zero at first.
struct sample_relay {
    bool behind;   // something was lost, and numbers have not begun anew since
    uint64_t us;   // that went by since then
    uint64_t lost; // looks
};

// Takes the next records, and appends to out what is to be passed on: all of them, some, or
// nothing. False when they are no records, or out has no room: no more may be taken.
bool sample_relay_take(struct sample_relay *r, struct slice records, struct buffer *out);
// What was to be passed on was not: it is lost.
void sample_relay_lose(struct sample_relay *r, struct slice passed);

// What records tell.
struct sample_sum {
    uint64_t us, looks;    // the time that they cover, and looks, also those without an answer
    const uint8_t *forget; // where a SAMPLE_FORGET stands: they are summed up to there; NULL: to
                           // the end
};
// Sums up records, to the first SAMPLE_FORGET if wanted. False when they are none.
bool sample_sum(struct slice records, bool to_forget, struct sample_sum *sum);
