// SPDX-License-Identifier: Apache-2.0
// The processes that a full trace was not followed into: the trace suspects some, its shim knows
// which of them had no flag, and what they are called. It gives these one, so that what comes next
// is followed.
#pragma once

#include "app/flame_shim.h"
#include "codec/control.h"
#include "model/profile/full_trace.h"

enum { MISSED_NAME_BYTES = 128 };

// All zero: nothing is known. Places are those of full_trace_suspects.
struct flame_missed {
    struct {
        bool missed;
        char name[MISSED_NAME_BYTES + 4];
    } of[LIMIT_FULL_SUSPECTS];
    uint32_t asked; // so many of them the shim was asked about
};

// Asks the shim about those that have come since the last time; id: the full trace's.
void missed_ask(struct flame_missed *m, const struct full_trace *trace,
                const struct flame_shim *shim, int64_t id);
// Takes the shim's answer.
void missed_take(struct flame_missed *m, const struct full_trace *trace,
                 struct control_map message);
// Their pids, room of them at most; returns how many.
uint32_t missed_pids(const struct flame_missed *m, const struct full_trace *trace, uint64_t *pids,
                     uint32_t room);
// The same in the profile.
void missed_keep(const struct flame_missed *m, struct full_trace *trace);
// Puts the list of those into a message: missed [{pid, name, requests}]. trace: NULL: none.
void missed_put(const struct flame_missed *m, const struct full_trace *trace,
                struct control_writer *w);
