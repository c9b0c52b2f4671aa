// SPDX-License-Identifier: Apache-2.0
// Text that stands above the cursor of a terminal and is drawn anew in its place. The terminal
// stays as it is: however this process ends, there is nothing to be put right.
#pragma once

#include "base/buffer.h"

// Appends to `out` what takes a shown text away from a terminal as it is now: the cursor stands
// where the text began. `shown` is empty then.
void redraw_hide(struct buffer *shown, struct buffer *out);
