// SPDX-License-Identifier: Apache-2.0
// A text without end in files of a folder: a new file every so often, of which the newest stay.
// Times of the text are an argument, and so is the time of now.
//
//   NODE-2026-11-25T21-08-00Z.perf.txt   the second in which its time begins: names sort by time
//
// No file but its own is ever written to or removed: one that is there is never opened, and one
// that is to be removed must still be the one that was made. Whatever happens, files hold whole
// pieces of text. One thread.
#pragma once

#include <sys/types.h>

#include "base/buffer.h"
#include "base/bytes.h"

struct rotation_options {
    const char *command; // for errors
    const char *folder;
    int64_t rotate_ns, flush_ns;
    uint32_t keep; // files
};

enum { ROTATION_PIECE_BYTES = 1 << 20 }; // of one piece at most
enum { ROTATION_NODE_BYTES = 160, ROTATION_NAME_BYTES = ROTATION_NODE_BYTES + 64 };

struct rotation {
    const struct rotation_options *o;
    char node[ROTATION_NODE_BYTES];
    int64_t begin_ns;            // of the text, since 1970 UTC
    int folder, file;            // open ones; -1: none
    int64_t part;                // of the file: it has the text of part * rotate_ns on
    struct buffer text;          // whole pieces that are not in the file yet
    int64_t size;                // of the whole pieces in it
    uint64_t waiting, written;   // pieces: in the text; in files
    int64_t flushed_ns;          // by the clock of now
    uint64_t made;               // files
    struct rotation_file *files; // the last `keep` of them, the n-th at n % keep
    uint64_t first;              // that was not removed
    bool failed;                 // told; nothing more can be written
};

// Opens the folder, which is made where it is missing. EXIT_SUCCESS, or EXIT_FAILURE and has told
// why; rotation_end in either case. The options must outlive it.
int rotation_begin(struct rotation *r, const struct rotation_options *o);
// Whose text it is, and when that begins: before the first piece.
void rotation_of(struct rotation *r, const char *node, int64_t begin_ns);
// Appends a piece of text of this time, in ns since 1970 UTC, not before that of the piece before.
// False: it has failed, and told why.
bool rotation_put(struct rotation *r, struct slice piece, int64_t at_ns, int64_t now_ns);
// Brings to the disk what has waited for long enough. False: likewise.
bool rotation_turn(struct rotation *r, int64_t now_ns);
// Brings all to the disk and closes the file; rotation_end is still to come. False: likewise.
bool rotation_close(struct rotation *r);
void rotation_end(struct rotation *r);
// The name of the file that was made last; "": none was.
const char *rotation_newest(const struct rotation *r);
