// SPDX-License-Identifier: Apache-2.0
// What kprof doctor has found. A finding is a line on something, and what to do about it.
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "tool/node.h"

enum doctor_level { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_PROBLEM, DOCTOR_LEVELS };

struct doctor {
    struct buffer text; // the findings as lines,
    struct buffer json; // and as the objects of a JSON list, separated by commas
    uint32_t found[DOCTOR_LEVELS];
    struct node_names names; // those that are looked at, so that lines have short ones
    struct node_row *rows;   // of those that the collector knows, on the heap; NULL: none
};

// What a finding is on.
struct doctor_about {
    const char *kind; // "node", "collector", "database"
    const char *name;
};

struct doctor doctor_make(void);
void doctor_free(struct doctor *d);
// Adds a finding. advice: what to do; NULL: nothing. What it says may come from elsewhere: it is
// cleaned.
__attribute__((format(printf, 5, 6))) void doctor_tell(struct doctor *d, enum doctor_level level,
                                                       const struct doctor_about *about,
                                                       const char *advice, const char *format, ...);
