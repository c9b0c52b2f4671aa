// SPDX-License-Identifier: Apache-2.0
// Finds the parents of a request's spans across processes, and how long spans waited for their
// process. request_tree.h tells the rules.
#pragma once

#include "model/requests/request_tree.h"

struct span_parents; // scratch memory, reused

struct span_parents *span_parents_new(void); // NULL without memory
void span_parents_free(struct span_parents *p);
struct spawn *span_parents_spawns(struct span_parents *p); // scratch for LIMIT_SPAWNS_PER_REQUEST

// Sets parent, brought and wait, as an estimate, of the spans, which are in order of start with the
// parents that their stacks tell and no waits. The spawns' parents are places in that order too.
void span_parents_find(struct span_parents *p, struct span *spans,
                       const struct tree_request *request);
