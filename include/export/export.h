// SPDX-License-Identifier: Apache-2.0
// The export: a thread that sends what a database has, and what changes in it, to ClickHouse. It
// follows the database through a connection of its own (store/changes.h), never the flush. What was
// acknowledged the writer thread notes down; so what was not is sent again, after whatever. A row
// that is sent twice, or changed later, counts once in the engine: that keeps the one with the
// largest revision.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "store/writer.h"

enum { EXPORT_WHY_BYTES = 300, EXPORT_NAME_BYTES = 201 };

struct export_options {
    const char *url;      // clickhouse[s]://[user@]host[:port]/database
    const char *password; // NULL: none
    const char *ca;       // file of authorities; NULL: the system's
    const char *name;     // of this collector, in all rows; EXPORT_NAME_BYTES with its end at most
    const char *cluster;  // that this collector's nodes are of, bounded likewise; NULL: none
    const char *database; // path of the file that the writer writes
};

// Whether the options go together. On false `why` says what is wrong and what to do; it never has
// the password in it.
bool export_check(const char *url, bool password, char why[EXPORT_WHY_BYTES]);
// Whether a collector may be called so: printable text.
bool export_name_valid(const char *name);

// Whether a database of the engine may be called so: 1 to 64 letters, digits or _, no digit first.
bool export_database_valid(const char *name);

struct exporter; // opaque

// Starts the thread. The options' texts are copied; the writer must outlive the exporter. NULL, and
// `why`, on failure. An engine that is not there is none: that is told in the status and the log.
struct exporter *exporter_start(const struct export_options *options, struct writer *writer,
                                char why[EXPORT_WHY_BYTES]);
// Ends it and frees it. Where the engine takes rows, what is there is sent first, for
// LIMIT_EXPORT_END_SECONDS at most; what is not sent stays marked. NULL is allowed.
void exporter_stop(struct exporter *e);

// Has it send another password from now on, at once where the engine takes nothing, and read the
// file of authorities again. Any thread. NULL: none. False without memory: nothing has changed.
bool exporter_renew(struct exporter *e, const char *password);

// How it stands.
struct export_status {
    bool sending;     // the engine has taken what it was last given
    bool twin;        // another collector exports under the same name
    int64_t behind_s; // for how long the oldest change waits that is due; 0: none does
    uint64_t marks;   // buckets of nodes with changes that are due
    uint64_t rows;    // taken by the engine, since the collector began
    uint64_t refused; // rows that the engine refused, since the first export of this database
    uint64_t lost;    // buckets of nodes that were deleted for their age before they were sent
    char to[EXPORT_WHY_BYTES];  // host:port/database
    char why[EXPORT_WHY_BYTES]; // the last thing that went wrong; "" while sending
};
// Any thread.
void exporter_status(struct exporter *e, struct export_status *out);

// Appends the statements that make the engine's tables in a database, each with a ; behind it. old:
// for ClickHouse before 20, without LowCardinality and TTL. Check out->failed.
void export_schema(const char *database, bool old, struct buffer *out);
