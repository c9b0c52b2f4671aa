// SPDX-License-Identifier: Apache-2.0
// Another program of this package that runs for as long as this one needs it. What it says on
// stderr is kept in a file without a name; it is told to end (TERM) when this process dies, however
// it dies. Ctrl-C does not reach it: who started it ends it. One thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { CHILD_LINE_BYTES = 512 };

struct child {
    pid_t pid;    // 0: none
    int status;   // once it is gone: its exit status, or 128 and the signal that killed it
    int said;     // descriptor of the file that holds what it says; -1: none
    size_t taken; // bytes of it that were looked at
};

// Starts a program of the folder that this one is in. argv ends with NULL; argv[0] is its name
// there. keep: a descriptor that it gets, too; -1: none. False: errno says why. child_end in either
// case.
bool child_start(struct child *c, const char *const *argv, int keep);
// Waits for a line that has this text, ms at most, and copies it. False when none comes, the
// program ends or a signal is caught meanwhile: then *line is the last that it said, or "".
bool child_line(struct child *c, const char *text, int ms, char line[CHILD_LINE_BYTES]);
// Whether it has ended.
bool child_gone(struct child *c);
// The last line that it said, or "".
void child_last_line(struct child *c, char line[CHILD_LINE_BYTES]);
// To be called every now and then: forgets what it has said, once that is much.
void child_forget(struct child *c);
// Has it end with TERM, and waits for that, ms at most; then it is killed. Returns c->status.
int child_stop(struct child *c, int ms);
// The same, and forgets what it has said.
int child_end(struct child *c, int ms);
