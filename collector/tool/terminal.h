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

// Has the keys of the terminal that standard input is come one by one, and not be shown, until
// terminal_keys_end, which may be called from a signal's handler, and in any case. False: it is no
// terminal, or we are not in its foreground.
bool terminal_keys_begin(void);
void terminal_keys_end(void);
// The next key that was pressed; 0: none was.
char terminal_key(void);
