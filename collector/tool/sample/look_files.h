// SPDX-License-Identifier: Apache-2.0
// The looks of a run of stack sampling as files of perf script's text (rotation.h), as the
// collector passes them on (stacks_looks). What it sends is checked as a file would be. One thread.
#pragma once

#include "codec/control.h"
#include "model/profile/flame.h"
#include "model/profile/sample_stream.h"
#include "tool/sample/rotation.h"

struct look_files {
    const char *command; // for errors
    enum flame_metric metric;
    struct rotation rotation;
    struct sample_stream stream;
    int64_t begin_ns, now_ns;
    struct buffer look; // as text
    bool begun;         // something has come
};

// Opens the folder. EXIT_SUCCESS, or EXIT_FAILURE and has told why; look_files_end in either case.
// The options must outlive it.
int look_files_begin(struct look_files *f, const struct rotation_options *o,
                     enum flame_metric metric);
// Writes what a message brings. False, and has told why: no more may be taken. now_ns: by a clock
// that does not jump.
bool look_files_take(struct look_files *f, struct control_map message, int64_t now_ns);
// All is on the disk. False, and has told why.
bool look_files_close(struct look_files *f);
// Tells on stdout what there is now. looks: that were made; lost: of them, that have not come.
void look_files_tell(const struct look_files *f, uint64_t looks, uint64_t lost);
void look_files_end(struct look_files *f);
