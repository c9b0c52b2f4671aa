// SPDX-License-Identifier: Apache-2.0
// Which node has made a label. A shim's labels are a number of 26 bits, drawn anew for each trace
// and told to the collector, above a counter of 32. So a label that comes in another node's stream
// says whose request that node works for. Pipelines on several threads may share them.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/map.h"

enum {
    LABEL_COUNTER_BITS = 32,
    // traces of a node that are remembered: its labels live on in processes that hold them
    LABEL_STARTS = 8
};

struct label_makers {
    pthread_mutex_t mutex; // taken when
    bool threads;          // several threads share them
    struct map nodes;      // what labels start with -> node
    uint32_t starts[LIMIT_NODES][LABEL_STARTS];
    uint8_t next[LIMIT_NODES]; // place of the next one
};

// Returns false without memory.
bool label_makers_init(struct label_makers *m);
void label_makers_free(struct label_makers *m);
// A node's labels start with this number from now on (above the counter's bits, not 0).
void label_makers_tell(struct label_makers *m, uint16_t node, uint32_t start);
// A node is gone for good: its id may be another's.
void label_makers_forget(struct label_makers *m, uint16_t node);
// The node that made a label, by directory id; DIRECTORY_NONE when none that is known did.
uint16_t label_makers_find(struct label_makers *m, uint64_t label);
