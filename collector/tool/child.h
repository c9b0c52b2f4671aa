// SPDX-License-Identifier: Apache-2.0
// Another program that runs for as long as this one needs it: what it says on stderr is kept in a
// file without a name, and it is told to end when this process dies. One thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { CHILD_LINE_BYTES = 512 };

struct child {
    pid_t pid;    // 0: none
    int said;     // descriptor of the file that holds what it says
    size_t taken; // bytes of it that were looked at
};

// Starts a program of the folder that this one is in. argv ends with NULL; argv[0] is its name
// there. keep: a descriptor that it gets, too; -1: none. False: errno says why.
bool child_start(struct child *c, const char *const *argv, int keep);
// Waits for a line that has this text, ms at most, and copies it. False when none comes or the
// program ends: then *line is the last that it said, or "".
bool child_line(struct child *c, const char *text, int ms, char line[CHILD_LINE_BYTES]);
// Whether it has ended.
bool child_gone(struct child *c);
// Has it end with a signal, and waits for that, ms at most; then it is killed.
void child_end(struct child *c, int signal, int ms);
