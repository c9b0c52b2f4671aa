// SPDX-License-Identifier: Apache-2.0
// What a question of the API asks for: the part of its address behind the "?", checked. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "model/profile/flame.h"

enum { PARAMS_WHY_BYTES = 200, PARAMS_TEXT_BYTES = 2 * LIMIT_NAME_BYTES };
// Names that one question may choose, and their length together.
enum { PARAMS_NAMES = 16, PARAMS_CHOICE_BYTES = PARAMS_NAMES * PARAMS_TEXT_BYTES };

// ms since a profile's begin. until 0: to its end.
struct params_part {
    uint32_t from, until;
};

struct params {
    int64_t from_s, until_s; // seconds since 1970 UTC; an hour until now unless told otherwise
    bool bounded;            // whether any time was told
    bool open;               // until is now
    char node[PARAMS_CHOICE_BYTES];     // a choice (store/query.h); "": all
    char identity[PARAMS_CHOICE_BYTES]; // likewise
    char cluster[PARAMS_CHOICE_BYTES];  // likewise, of collectors (store/mirror.h)
    char tier[PARAMS_TEXT_BYTES];       // "": all
    char label[PARAMS_TEXT_BYTES];      // of profiles; "always" unless told
    char before[PARAMS_TEXT_BYTES];     // a profile to compare with; "": none
    char through[PARAMS_TEXT_BYTES];    // the last one of several profiles that are one; "": none
    char before_through[PARAMS_TEXT_BYTES]; // and of those to compare with
    int64_t before_from_s;                  // the stretch to compare with: as long, right before
    int64_t before_until_s;                 // from_s, unless told otherwise
    uint32_t most;                          // rows of a list
    uint32_t points;                        // of a chart
    bool failed;                            // only those that failed
    bool metric_told;                       // of a profile: what it is weighed by,
    enum flame_metric metric;
    enum flame_group group;   // what its lowest frames are,
    struct params_part part;  // and which part of it is asked for;
    struct params_part other; // of what it is compared with, which has the same one unless told
};

// Reads the query of an address, without its "?"; NULL is the same as "". Names that may stand
// once: from, until (seconds since 1970 UTC), last (seconds until now), tier, label, before, most,
// points, failed; what is compared with, before_from and before_until, or against (words of
// text_against_parse); and of profiles metric, group, through, before_through, part_from,
// part_until, before_part_from and before_part_until. Up to PARAMS_NAMES times: node, identity,
// cluster. On false why says in a line what is wrong.
bool params_parse(const char *query, int64_t now_s, struct params *out, char why[PARAMS_WHY_BYTES]);
