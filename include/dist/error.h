// SPDX-License-Identifier: Apache-2.0
// Why something could not be done in or with a node. One thread at a time, no memory of its own.
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/exit_status.h"

// Exit statuses of kprof attach and detach.
enum dist_status {
    DIST_OK = EXIT_SUCCESS,
    DIST_OTHER = EXIT_FAILURE,
    DIST_DOWN = EXIT_NODE_DOWN,
    DIST_COOKIE = EXIT_NODE_COOKIE,
    DIST_OTP = EXIT_NODE_OTP,
    DIST_CONFIG = EXIT_CONFIG,
    DIST_LOAD = EXIT_NODE_LOAD,
    DIST_TRACE = EXIT_TRACE,
    DIST_BUSY = EXIT_NODE_BUSY
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
