// SPDX-License-Identifier: Apache-2.0
// The terminal that standard output is, if it is one.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Its columns, up to 1000; 100 when there is no terminal, or it does not tell.
uint32_t terminal_width(void);
// Its lines, up to 1000; 24 when it does not tell.
uint32_t terminal_height(void);
// Whether there is a terminal that can do more than write one line below the other.
bool terminal_draws(void);
// Whether it may be coloured (no-color.org).
bool terminal_colour(void);
// Whether the user's locale says that characters beyond ASCII can be shown.
bool terminal_utf8(void);
