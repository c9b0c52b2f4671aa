// SPDX-License-Identifier: Apache-2.0
// Trace messages without the values of the traced node: what functions returned, why exceptions
// were raised. For recordings, which shall hold what a replay needs and no more. Pure.
#pragma once

#include "base/buffer.h"
#include "model/message/message.h"

// Appends a frame's body as a replay needs it. [] stands for a returned value, but for the process
// that a spawn function returned, and for the reason of an exception; messages of no use here are
// {drop,[]}. What a match spec's message carries stays. The result is no longer than the body.
// False, and `out` is as it was or failed, when the body is no trace messages.
bool message_without_values(struct message_reader *reader, struct slice body, struct buffer *out);
