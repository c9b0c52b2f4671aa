// SPDX-License-Identifier: Apache-2.0
// Ctrl-C of a command that has something to finish first. One thread.
#pragma once

#include <stdbool.h>

// From now on Ctrl-C and TERM are only noted, and a second one ends this process; the terminal's
// keys (terminal.h) are as they were found then.
void stop_catch(void);
// Whether one of them came.
bool stop_wanted(void);
