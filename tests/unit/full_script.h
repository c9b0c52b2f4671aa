// SPDX-License-Identifier: Apache-2.0
// Scripts of messages to a full trace. Times are µs.
#pragma once

#include "model/message/message_learned.h"
#include "model/profile/full_trace.h"

enum { US = 1000 };

static struct full_trace *trace;

static inline uint32_t target(const char *function) {
    return message_target(slice_text(function), 0);
}

// caller: NULL, the return comes with a value.
static inline void call_of(uint64_t token, uint64_t pid, uint64_t from, int64_t us,
                           const char *function, const char *caller, enum full_role role) {
    struct message m = {.kind = MESSAGE_CALL,
                        .pid = pid,
                        .has_token = true,
                        .token = token,
                        .from = from,
                        .name = slice_text(function),
                        .module.text = slice_text("m"),
                        .function.text = slice_text(function),
                        .caller = caller ? target(caller) : 0};
    full_trace_message(trace, &m, us * US, role);
}

static inline void return_to(uint64_t pid, int64_t us, const char *function) {
    struct message m = {.kind = MESSAGE_RETURN_TO, .pid = pid, .target = target(function)};
    full_trace_message(trace, &m, us * US, FULL_PLAIN);
}

static inline void state(uint64_t pid, int64_t us, enum message_kind kind) {
    struct message m = {.kind = kind, .pid = pid};
    full_trace_message(trace, &m, us * US, FULL_PLAIN);
}

static inline void fate_of(uint64_t token, bool complete, int64_t begin_us, int64_t us,
                           const char *identity) {
    full_trace_advance(trace, INT64_MAX);
    struct full_fate fate = {.token = token,
                             .complete = complete,
                             .identity = slice_text(identity),
                             .begin = begin_us * US,
                             .duration = us * US};
    full_trace_fate(trace, &fate);
}
