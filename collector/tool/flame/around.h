// SPDX-License-Identifier: Apache-2.0
// What a full trace needs around it, and is not there: a collector of its own, on a port of
// loopback that only its secret opens, and kprof in the node. Both are programs of this package,
// and end with this one.
#pragma once

#include "tool/child.h"
#include "tool/reach.h"

enum { AROUND_ARGUMENTS = 128, AROUND_AT_BYTES = 64 };

struct around_options {
    const char *db;   // of the collector of its own; NULL: none is wanted, reach says where one is
    const char *node; // that kprof is brought into
    // what kprof attach is told besides; no arguments: it is there already
    const char *arguments[AROUND_ARGUMENTS];
    uint32_t argument_count;
};

struct around {
    struct child collector, attach;
    char at[AROUND_AT_BYTES]; // HOST:PORT of the collector of its own
    char secret_file[AROUND_AT_BYTES];
    int secret; // descriptor of a file without a name; -1: none
};

// Starts what is needed, and has reach lead to the collector of its own. EXIT_SUCCESS, or another
// status and has told why. around_end in either case. It must not be moved.
int around_begin(struct around *a, const struct around_options *o, struct reach *reach);
// Takes kprof out of the node, and has the collector write what is there.
void around_end(struct around *a);
