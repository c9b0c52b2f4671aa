// SPDX-License-Identifier: Apache-2.0
// The longest request of a profile as calls, in the form of a request that was kept whole, so that
// both are drawn alike. One thread at a time.
#pragma once

#include "model/profile/profile.h"
#include "report/flame.h"
#include "store/query_slow.h"

// What a call's process did at it: self_ns it ran, gc_ns it collected garbage, off_cpu_ns it was
// scheduled out. Of calls nobody knows how they ended: the outcome is "", or "open" of those that
// were open where the timeline was cut.
struct longest {
    // request: node, identity ("": not known), duration; spans: the calls that it had, kept: those
    // that are here; cut: what came later is not known. Names are the profile's
    struct slow_spans spans;
    int64_t own_ns;                  // of all calls, in whatever process
    int64_t here_ns;                 // of those that are here
    bool asleep_in_self, gc_in_self; // that was not traced; nobody knows off_cpu_ns, and gc_ns
    char in_self[FLAME_NOTE_BYTES];  // the same in words; "": neither
};

// Makes it of the calls, `most` at most: the first, and those at which most time passed that was no
// other call's. A call lies below the nearest one under it that is here. False without memory.
// Where the profile keeps no request there is no call. Give it back with longest_free, also after
// false.
bool longest_calls(const struct profile *p, uint32_t most, struct longest *out);
void longest_free(struct longest *longest);

// The request and its calls as a JSON object and a newline, described in kprof flame --help; id:
// the profile's. Check out->failed.
void longest_json(const struct longest *longest, int64_t id, struct buffer *out);
