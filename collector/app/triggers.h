// SPDX-License-Identifier: Apache-2.0
// Triggers, which the shims have: what tools want of them on its way to a shim, its answer on the
// way back, and the 99th percentiles of tiers that triggers are about. Runs on the event loop's
// thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "app/rows.h"
#include "codec/control.h"

// Whether a command of steer is about triggers.
bool triggers_is_command(struct slice command);

// Writes a tool's steer of such a command as the shim gets it. False when it does not fit.
bool triggers_pack_order(struct control_map message, int64_t id, struct buffer *out);

// Whether a shim's answer has the list of its triggers; writes it on.
bool triggers_has(struct control_map answer);
void triggers_put(struct control_writer *w, struct control_map answer);

// The tiers whose 99th percentile a shim's triggers want to know.
struct triggers_p99;

// Takes a shim's message p99 in place of the one before; NULL: none are wanted, or there is no
// memory.
struct triggers_p99 *triggers_want(struct triggers_p99 *before, struct control_map message);
// NULL is fine.
void triggers_p99_free(struct triggers_p99 *p);
// Writes what a flush has of them, of this node; nothing where no call of any of them ended.
void triggers_pack_p99(const struct triggers_p99 *p, const struct rows *rows, uint16_t node,
                       struct buffer *out);
