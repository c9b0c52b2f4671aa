-- SPDX-License-Identifier: Apache-2.0
-- kprof's database, version 16: what an export (kprof-collector --export) has still to send. No views: the tables are not an interface.

-- One row where a database is followed by an export, from its first --export until --export none.
CREATE TABLE export_state (
    id            INTEGER PRIMARY KEY CHECK (id = 1),
    database_id   INTEGER NOT NULL,  -- chosen at random: rows of two databases are never taken for each other's
    revision      INTEGER NOT NULL,  -- the last one given: each transaction that changes rows has a larger one. At least the milliseconds
                                     -- since 1970 then, so that it also grows where an older copy of the file takes its place
    lost          INTEGER NOT NULL,  -- marks whose rows were deleted for their age before they were sent
    refused       INTEGER NOT NULL   -- rows that the engine has refused
) STRICT;

-- A mark for each bucket and node whose rows have changed since they were sent, the oldest first. It goes when what it had of them has been
-- taken by the engine, unless its revision is another one by then.
CREATE TABLE export_marks (
    bucket_start  INTEGER NOT NULL,  -- seconds since 1970 UTC
    resolution_s  INTEGER NOT NULL,  -- length of the bucket, seconds; 0: not its statistics, but the requests that are kept whole
    node_id       INTEGER NOT NULL REFERENCES node_names,
    revision      INTEGER NOT NULL,  -- of the last change
    due_s         INTEGER NOT NULL,  -- seconds since 1970 UTC: when it is to be sent, as the bucket is over, or has changed long enough
    PRIMARY KEY (bucket_start, resolution_s, node_id)
) STRICT, WITHOUT ROWID;

-- The rows that the engine refused, the last ones of them.
CREATE TABLE export_refusals (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    at_s          INTEGER NOT NULL,  -- seconds since 1970 UTC
    table_name    TEXT NOT NULL,     -- of the engine
    bucket_start  INTEGER NOT NULL,  -- as in export_marks
    resolution_s  INTEGER NOT NULL,
    node_id       INTEGER NOT NULL,
    key_1         INTEGER NOT NULL,  -- the rest of the row's key here: identity_id and tier_id, for one
    key_2         INTEGER NOT NULL,
    reason        TEXT NOT NULL      -- in the engine's words
) STRICT;
