// SPDX-License-Identifier: Apache-2.0
// The tiers that requests went through, as a tree with times. Pure; one thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "store/query_paths.h"

// A position in the tree.
struct path_node {
    const char *tier;             // of the tree's texts
    uint32_t parent;              // an earlier node; UINT32_MAX: the request itself
    uint32_t depth;               // 0: below the request itself
    const struct path_sums *sums; // NULL: no call of it was counted, only of those below it
};

struct path_tree {
    struct path_node *nodes; // depth first; of those below the same one the one with the most time
                             // first
    uint32_t count;
    char *texts;
};

// Makes a tree of an answer, and borrows it. False without memory: free it too.
bool path_tree_make(struct path_tree *tree, const struct path_list *list);
void path_tree_free(struct path_tree *tree);

// One JSON object and a newline; described in collector/web/openapi.json. Check out->failed.
void path_tree_json(const struct path_tree *tree, const struct path_list *list, struct buffer *out);
