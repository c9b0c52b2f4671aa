// SPDX-License-Identifier: Apache-2.0
// kprof trigger list: the triggers of a node, as its shim tells them.
#pragma once

#include "codec/control.h"

// Lines of text, a heading first. Returns out; check out->failed.
void trigger_table(struct control_list triggers, struct buffer *out);
