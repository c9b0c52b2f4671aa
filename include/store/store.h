// SPDX-License-Identifier: Apache-2.0
// The database file: opening it, writing batches of statistics into it, and letting old rows go.
//
// One collector writes a file at a time, through one connection, which one thread uses at a time:
// it may be handed over (to the writer thread of store/writer.h), never shared. Readers open
// connections of their own, as many as they like, also in other processes while the collector
// writes.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/directory/directory.h"
#include "model/stats/stats.h"

enum store_status {
    STORE_OK,
    STORE_UNWRITABLE, // the file or its folder cannot be written, or the disk is full
    STORE_FOREIGN,    // the file is not a kprof database; it was not touched
    STORE_NEWER,      // the file is of a newer kprof; it was not touched
    // the file is of a kprof from before the first release, or for a reader of any older one; it
    // was not touched
    STORE_OLDER,
    STORE_IN_USE,  // another collector writes it
    STORE_MISSING, // store_open_reader: there is no such file, or it cannot be read
    STORE_FAILED   // anything else: damage, no memory
};

enum { STORE_ERROR_BYTES = 512 };

struct store; // opaque

// Opens the file for its one writer; makes it when it is not there (or empty), and brings an older
// schema up to date. Two locks keep a second collector out: the file's own flock, wherever the file
// is moved to, and that of a file beside it (FILE-lock, removed at the end), which stands for the
// path and for the log that SQLite has there. Both end with the process, however that dies. On
// success *out is the caller's, to be closed with store_close. Otherwise *out is NULL and error
// holds one line, without a newline, that names the file and says what to do.
//
// Within a process do not open a file for writing that is open there already: refusing it closes a
// descriptor of the file, and with it go the POSIX locks of the connection that stays.
enum store_status store_open(const char *path, struct store **out, char error[STORE_ERROR_BYTES]);

// Opens the file for queries only (store/query.h). Never writes to it, never checkpoints it.
enum store_status store_open_reader(const char *path, struct store **out,
                                    char error[STORE_ERROR_BYTES]);

// From a reader's connection: a question that still runs at this time (monotonic ns) fails, and
// store_error says so. INT64_MAX: never.
void store_set_deadline(struct store *s, int64_t monotonic_ns);

// Where the file is that a collector writes, and the log beside it (FILE-wal).
enum store_place {
    STORE_IN_PLACE,
    STORE_CLOSED,   // it was left, and nothing could be opened since
    STORE_MOVED,    // it stands elsewhere: nothing, or another file, is at its path
    STORE_REMOVED,  // it stands nowhere any more
    STORE_CUT,      // it is shorter than it was, or something else was written over its start
    STORE_WAL_GONE, // the log was removed or moved, and is whole
    STORE_WAL_CUT   // the log is shorter than what was written to it
};

// Looks, by the device and inode of what is at the path: some microseconds.
enum store_place store_look(struct store *s);
// Leaves what store_look says is out of place, with all that was written in it where that can be
// had, and opens what stands at the path now: another database, or a new one. Leaves nothing and
// only opens after STORE_CLOSED. On an error nothing is open, and store_error says what to do; call
// again later.
enum store_status store_reopen(struct store *s, enum store_place place);

// Rows that could not be written since the store was opened, each told in the log: what stands in
// the file for them is malformed, or the file does not take them. All others of their batches were
// written.
uint64_t store_set_aside(const struct store *s);

// Closes either kind. NULL is allowed.
void store_close(struct store *s);

// Adds a batch at every resolution: bucket_s, 1 min and 1 h, without those that are not a larger
// multiple of the one before; requests that are kept whole once, of which those past their caps go.
// One transaction: on false nothing was written, store_error says why, and the same batch may be
// written again later. The rows' bucket_start are multiples of bucket_s. Ids of the directory are
// remembered: use one directory with a store.
bool store_write(struct store *s, uint32_t bucket_s, const struct stats *batch,
                 const struct directory *names);
// The same of a batch in several sets.
bool store_write_sets(struct store *s, uint32_t bucket_s, const struct stats *const *sets,
                      uint32_t count, const struct directory *names);

// Deletes rows past their retention (store/retention.h) as seen from now_s (seconds since 1970
// UTC), so many of a table at a time that no call keeps the writer long. True when more are left:
// call again soon. What could not be deleted stays until the next call; store_error says why, and
// is "" when there is no such thing.
bool store_expire(struct store *s, int64_t now_s);

// The last failure of store_write or store_expire, for a log line. Valid until the next call.
const char *store_error(const struct store *s);
