// SPDX-License-Identifier: Apache-2.0
// What stacks weigh: calls and time by a key, which its owner makes (a stack, and whose it is). One
// thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"

struct weight {
    uint64_t key;
    uint64_t calls;
    int64_t ns;
};

struct weights {
    struct map index;
    struct weight *all;
    uint32_t count;
    uint32_t room; // allocated
};

// Returns false without memory.
bool weights_init(struct weights *w);
void weights_free(struct weights *w);
// Forgets all, and keeps the memory of some.
void weights_clear(struct weights *w);

// The weight of a key, new ones 0; NULL at `cap` weights or without memory. Valid until the next
// call.
struct weight *weights_at(struct weights *w, uint64_t key, uint32_t cap);
// The same of a key that tells a process; *count: how many such there are, of this table and
// others. A new one needs room among LIMIT_PROCESS_WEIGHTS.
struct weight *weights_of_process(struct weights *w, uint64_t key, uint32_t *count);
