// SPDX-License-Identifier: Apache-2.0
// What has changed in a database since an export has sent it. The writer marks each bucket and node
// whose rows it changes, within the transaction that changes them. An export reads marks and rows
// through a connection of its own, sends the rows whole, and has the writer take those marks away
// that have not changed since. So what was not acknowledged stays marked, whatever ends in between.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "store/store.h"

// -- the writer's side ----------------------------------------------------------------------------

// Begins to mark what changes, in this file and in any that is opened in its place later; a file
// that is not followed yet is marked whole, so that its history is sent too. False on failure:
// store_error says why.
bool store_follow(struct store *s);
// Ends it, and forgets all marks. False on failure.
bool store_unfollow(struct store *s);
// Whether the file is followed, by this --export or by an earlier one.
bool store_followed(struct store *s);

// A bucket and node whose rows have changed.
struct change {
    int64_t bucket_start;  // seconds since 1970 UTC
    uint32_t resolution_s; // 0: the requests of the bucket that are kept whole
    int64_t node_id;       // a row id of this file
    int64_t revision;      // of the last change
};

enum { CHANGE_REASON_BYTES = 300 };

// A row that the engine has refused.
struct change_refusal {
    struct change of;
    const char *table;
    int64_t key[2]; // as in struct change_place
    char reason[CHANGE_REASON_BYTES];
};

// What an export has done.
struct change_report {
    int64_t database_id; // of the file that the marks were read from
    const struct change *sent;
    uint32_t sent_count;
    uint32_t gone;                         // of them those whose rows were not there any more
    const struct change_refusal *refusals; // the first of them
    uint32_t refusal_count;
    uint64_t refused; // all of them
};

// Takes the marks away that have not changed since, and keeps the refusals, in one transaction. In
// another file than the marks are of nothing is done. False on failure: nothing was done, and
// store_error says why.
bool store_sent(struct store *s, const struct change_report *report);

// -- reading --------------------------------------------------------------------------------------

struct changes; // a connection for it; one thread at a time

// Opens the database. On an error NULL, and error says what to do. Give it back with changes_close.
struct changes *changes_open(const char *path, char error[STORE_ERROR_BYTES]);
void changes_close(struct changes *c);
// What went wrong last.
const char *changes_error(const struct changes *c);

// The database's number. False: it is not followed yet, or the question failed.
bool changes_database(struct changes *c, int64_t *database_id);

// What waits.
struct change_backlog {
    uint64_t marks;   // that are due
    int64_t oldest_s; // when the one that waits for longest became due; 0 without any
    uint64_t lost;    // marks whose rows were deleted before they were sent, since the beginning
    uint64_t refused; // rows refused since the beginning
};
bool changes_backlog(struct changes *c, int64_t now_s, struct change_backlog *out);

// In the place of a time: all marks are due.
#define CHANGES_ALL (INT64_MAX / 2)

// The marks that are due, the oldest buckets first: so many at most. The count, or -1 on failure.
int changes_due(struct changes *c, int64_t now_s, struct change *out, int most);

// Rows and marks of one moment are read between these two. Keep it short: meanwhile the log cannot
// be brought into the file.
bool changes_begin(struct changes *c);
void changes_end(struct changes *c);

// The tables that are sent, each with its columns: their order is that of the cells.
enum change_table {
    CHANGE_TIERS,
    CHANGE_PATHS,
    CHANGE_LEDGER,
    CHANGE_COSTS,
    CHANGE_REQUESTS,
    CHANGE_SPANS,
    CHANGE_TABLES
};

enum change_kind {
    CHANGE_TIME,     // number: seconds since 1970 UTC
    CHANGE_SMALL,    // number: 0 … UINT32_MAX
    CHANGE_NUMBER,   // number: 0 or more
    CHANGE_OPTIONAL, // the same, or null
    CHANGE_SIGNED,   // number
    CHANGE_REAL,     // real
    CHANGE_NAME,     // bytes: text of which there are few
    CHANGE_TEXT,     // bytes: any text
    CHANGE_COUNTS    // bytes: a histogram in its stored form
};

struct change_column {
    const char *name;
    enum change_kind kind;
    const char *sql; // this layer's
};

enum { CHANGE_COLUMNS = 48 }; // no table has more

struct change_shape {
    const char *name; // of the engine's table
    const struct change_column *columns;
    const char *order; // columns of its key, before collector and database_id
    int count;         // of columns
    bool kept;         // its marks have resolution_s 0
};
const struct change_shape *change_shape(enum change_table table);
// For how many days this file keeps rows of a resolution; 0: requests that are kept whole.
int change_days(uint32_t resolution_s);

struct change_cell {
    bool null;
    int64_t number;
    double real;
    struct slice bytes; // valid until the next row
};

// How far the rows of a change were read: the rest of the last row's key.
struct change_place {
    int64_t key[2];
};
#define CHANGE_START ((struct change_place){{INT64_MIN, INT64_MIN}})

enum change_read { CHANGE_ALL, CHANGE_MORE, CHANGE_FAILED };

// Gives the rows of a change in one of its tables to take, from a place on; *place goes on with
// each row taken. CHANGE_MORE: take has returned false, and has not taken that row.
enum change_read changes_read(struct changes *c, enum change_table table, const struct change *of,
                              struct change_place *place,
                              bool (*take)(void *to, const struct change_cell *cells,
                                           const struct change_place *at),
                              void *to);
