-- SPDX-License-Identifier: Apache-2.0
-- kprof's database, version 10: notes of what people did, such as "deployed 1.4".

-- One row per note. An id is never given twice.
CREATE TABLE note_rows (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ns         INTEGER NOT NULL,            -- ns since 1970 UTC: when it was so
    node_id       INTEGER REFERENCES node_names,  -- that it is of; NULL: of all of them
    text          TEXT NOT NULL
) STRICT;
CREATE INDEX note_rows_by_time ON note_rows (at_ns);
