// SPDX-License-Identifier: Apache-2.0
// The name of an Erlang node, name@host. Pure.
#pragma once

#include <stdbool.h>

enum { NODE_NAME_BYTES = 256, NODE_PART_BYTES = 256 };

struct dist_name {
    char full[NODE_NAME_BYTES];
    char alive[NODE_PART_BYTES]; // before the @
    char host[NODE_PART_BYTES];  // after it
    bool is_long;                // the host has a dot: erl -name, not -sname
};

// Reads NAME@HOST; without @HOST the node is on this_host. False when it is none.
bool dist_name_parse(const char *text, const char *this_host, struct dist_name *out);
