// The database file: opening it, writing batches of statistics into it, and letting old rows go.
//
// One collector writes a file at a time, through one connection, which one thread uses at a time: it may be
// handed over (to the writer thread of store/writer.h), never shared. Readers open connections of their own,
// as many as they like, also in other processes while the collector writes.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/directory.h"
#include "model/stats.h"

enum store_status {
    STORE_OK,
    STORE_UNWRITABLE, // the file or its folder cannot be written, or the disk is full
    STORE_FOREIGN,    // the file is not a kprof database; it was not touched
    STORE_NEWER,      // the file is of a newer kprof; it was not touched
    STORE_IN_USE,     // another collector writes it
    STORE_MISSING,    // store_open_reader: there is no such file, or it cannot be read
    STORE_FAILED      // anything else: damage, no memory
};

enum { STORE_ERROR_BYTES = 512 };

struct store; // opaque

// Opens the file for its one writer; makes it when it is not there (or empty), and brings an older schema up
// to date. The lock that keeps a second collector out is the file's flock: it leaves nothing behind and ends
// with the process, however that dies. On success *out is the caller's, to be closed with store_close.
// Otherwise *out is NULL and error holds one line, without a newline, that names the file and says what to
// do.
//
// Within a process do not open a file for writing that is open there already: refusing it closes a descriptor
// of the file, and with it go the POSIX locks of the connection that stays.
enum store_status store_open(const char *path, struct store **out, char error[STORE_ERROR_BYTES]);

// Opens the file for queries only (store/query.h). Never writes to it, never checkpoints it. A file of an older schema, which only
// a writer migrates, is read as it is: what was not measured then is 0, or not there.
enum store_status store_open_reader(const char *path, struct store **out, char error[STORE_ERROR_BYTES]);

// Closes either kind. NULL is allowed.
void store_close(struct store *s);

// Adds a batch at every resolution: bucket_s, 1 min and 1 h, without those that are not a larger multiple of
// the one before; requests that are kept whole once, of which those past their caps go. One transaction: on
// false nothing was written, store_error says why, and the same batch may be written again later. The rows'
// bucket_start are multiples of bucket_s. Ids of the directory are remembered: use one directory with a store.
bool store_write(struct store *s, uint32_t bucket_s, const struct stats *batch,
                 const struct directory *names);

// Deletes rows past their retention (store/retention.h) as seen from now_s (seconds since 1970 UTC), so many of a
// table at a time that no call keeps the writer long. True when more are left: call again soon. What could not be deleted
// stays until the next call; store_error says why, and is "" when there is no such thing.
bool store_expire(struct store *s, int64_t now_s);

// The last failure of store_write or store_expire, for a log line. Valid until the next call.
const char *store_error(const struct store *s);
