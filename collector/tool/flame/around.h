// SPDX-License-Identifier: Apache-2.0
// kprof attach, around a full trace of a node that kprof does not trace yet: a child that brings
// the shim in, with a collector of its own where none is wanted, and takes both out again.
#pragma once

#include "tool/own.h"

enum { AROUND_ARGUMENTS = 128 };

struct around_options {
    const char *node;
    const char *db;     // of a collector of its own; NULL: reach tells of one that runs
    const char *listen; // where that one listens; NULL: kprof attach knows
    // what kprof attach is told besides; none: kprof is in the node already
    const char *arguments[AROUND_ARGUMENTS];
    uint32_t argument_count;
    bool quiet; // nothing but errors
};

struct around {
    struct child attach;
    bool began; // it has traced
    struct own_secret secret;
    char at[REACH_AT_BYTES]; // HOST:PORT of the collector of its own
};

#define AROUND_NONE ((struct around){.attach.said = -1, .secret.fd = -1})

// Starts it, waits until it traces, and has reach lead to its collector; what it tells until then
// is told. EXIT_SUCCESS, or another status and has told why. around_end in either case; *a must not
// be moved until then.
int around_begin(struct around *a, const struct around_options *o, struct reach *reach);
// Takes kprof out of the node, and has a collector of its own write what there is. EXIT_SUCCESS, or
// another status and has told why.
int around_end(struct around *a);
