// The terminal that standard output is, if it is one.
#pragma once

#include <stdint.h>

// Its columns, from 40 to 1000; 100 when there is no terminal.
uint32_t terminal_width(void);
// Its lines, from 5 to 1000; 24 when it does not tell.
uint32_t terminal_height(void);
