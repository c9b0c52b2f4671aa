// SPDX-License-Identifier: Apache-2.0
// Enters finished requests into the statistics. Pure but for the rows it makes.
#pragma once

#include "model/directory/paths.h"
#include "model/requests/requests.h"
#include "model/stats/stats.h"

struct account {
    struct stats *stats;
    int64_t bucket_s; // length of a bucket, seconds
    uint16_t node;    // whose requests these are
    int64_t offset;   // what makes the node's time nanoseconds since 1970 UTC
    // where the positions of spans get their numbers; NULL: times by position are not kept
    struct paths *paths;
};

// The start of the bucket that a node's time falls into.
int64_t account_bucket(const struct account *a, int64_t time);
// Counts a request in the ledger, and when it is complete in the statistics of its identity and of
// _total, and its spans by position in the tree under its identity. A part of another node's
// request counts under "_remote" alone. Takes 80 KB of stack.
void account_request(const struct account *a, const struct request_result *result);
