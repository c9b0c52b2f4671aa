// SPDX-License-Identifier: Apache-2.0
// A full trace of a node's requests, through the collector that it is connected to.
#pragma once

#include "base/limits.h"
#include "tool/reach.h"

struct full_trace_options {
    struct reach reach;
    const char *node;
    int64_t requests, seconds;
    const char *only; // NULL: any identity
    const char *applications[LIMIT_FULL_NAMES], *modules[LIMIT_FULL_NAMES];
    uint32_t application_count, module_count;
    bool all_modules;
    bool quiet; // nothing but errors
    bool drawn; // what is kept is drawn then, with all that is to be said of it
};

// Asks, shows how far it is, and waits for the end; Ctrl-C ends it early, and keeps what there is.
// *profile: its number; 0: there is none, and why has been told. An exit status.
int full_trace_make(const struct full_trace_options *o, int64_t *profile);
