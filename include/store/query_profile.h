// SPDX-License-Identifier: Apache-2.0
// Questions about profiles. For connections of store_open_reader; one thread at a time; each is one
// short read transaction.
#pragma once

#include "model/profile/profile.h"
#include "store/query.h"

struct profile_filter {
    int64_t from_s, until_s; // as in struct query; by the profiles' end
    const char *node;        // NULL: any; a choice of them (query.h)
    const char *identity;    // some of whose requests it is of, NULL: any
    const char *label;       // NULL: any
    uint32_t most;           // this many at most, the latest
    bool in_part;            // also those that were made in part of that time, by begin and end
};

struct profile_line {
    int64_t id;
    struct profile_head head;
    struct profile_counts counts;
    bool cut;
    int64_t rows;                  // in the database
    int64_t looks;                 // of samples: at processes, and at those that had not changed
    struct profile_missed *missed; // processes that it was not followed into
    uint32_t missed_count;
};

struct profile_list {
    struct profile_line *lines; // the latest first
    uint32_t count;
};

// On false there is no answer and store_error says why. Give answers back with the free functions,
// also after false.
bool query_profiles(struct store *s, const struct profile_filter *filter, struct profile_list *out);
void profile_list_free(struct profile_list *list);

// One profile, as it was kept. *found tells whether there is such a one. profile_free(out), also
// after false.
bool query_profile(struct store *s, int64_t id, bool *found, struct profile *out);
// The number of the latest profile of a name; 0: there is none.
bool query_profile_named(struct store *s, const char *name, int64_t *id);
