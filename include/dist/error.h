// SPDX-License-Identifier: Apache-2.0
// Why something could not be done in or with a node. One thread at a time, no memory of its own.
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

// The numbers are exit statuses of kprof attach and detach, and those of
// scripts/start_kprof_node.sh.
enum dist_status {
    DIST_OK = 0,
    DIST_OTHER = 1,
    DIST_DOWN = 3,   // the node cannot be reached, or is gone
    DIST_COOKIE = 4, // it has another cookie
    DIST_OTP = 5,    // its release is too old
    DIST_CONFIG = 6, // what is to be traced is not as it must be
    DIST_LOAD = 7,   // it does not take the shim's modules
    DIST_TRACE = 8,  // no collector, or no trace port
    DIST_BUSY = 9    // somebody else traces it
};

struct dist_error {
    enum dist_status status;
    // one line without a newline; may hold what the node sent: clean it before a terminal sees it
    char text[1024];
};

// Sets *e. What does not fit is cut. No argument may be part of *e.
__attribute__((format(printf, 3, 4))) static inline void
dist_error_set(struct dist_error *e, enum dist_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    e->status = status;
}

// The same; is false, which the compiler sees.
#define dist_fail(e, ...) (dist_error_set(e, __VA_ARGS__), false)
