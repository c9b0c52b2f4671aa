// SPDX-License-Identifier: Apache-2.0
// What processes of a full trace are called: the shim is asked while they are there.
#pragma once

#include "app/flame_shim.h"
#include "codec/control.h"
#include "model/profile/full_trace.h"

// Asks the shim about some of those that have come since the last time; id: the full trace's.
void names_ask(struct full_trace *trace, const struct flame_shim *shim, int64_t id);
// Takes the shim's answer.
void names_take(struct full_trace *trace, struct control_map message);
