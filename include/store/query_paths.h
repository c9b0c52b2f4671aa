// SPDX-License-Identifier: Apache-2.0
// Where the calls of requests stand in the tree of tiers, summed over a stretch of time. For
// connections of store_open_reader; one thread at a time.
#pragma once

#include "store/query.h"

// Units as in path_rows of schema/.
struct path_sums {
    const char *path; // tiers from the request down, joined with " > "; lives as long as the answer
    uint64_t calls, errors, async_calls;
    uint64_t total_ns, self_ns, async_ns, wait_ns, waiting_ns, duration_ns;
    // of wait_ns (model/stats/stats.h); mailbox_ns and run_queue_ns both 0: known of nothing
    uint64_t measured_ns, mailbox_ns, run_queue_ns;
    uint64_t min_ns, max_ns; // 0 without calls
    bool unsplit; // rows of an older version are among them: waiting_ns is in self_ns of who waits
};

struct path_list {
    struct path_sums *rows; // in no order
    uint32_t count;
    uint64_t requests;     // complete ones of the time
    uint32_t resolution_s; // as in struct query_sums
    int64_t first_s;       // the time that they cover; 0 and 0: there are no requests
    int64_t last_s;
};

// Sums over the rows of the time that query_sums would take. Without an identity it is all of them
// together, without parts of other nodes' requests. On false there is no answer and store_error
// says why. Give the answer back with path_list_free, also after false.
bool query_paths(struct store *s, const struct query *q, struct path_list *out);
void path_list_free(struct path_list *list);
