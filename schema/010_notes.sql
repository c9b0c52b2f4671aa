-- SPDX-License-Identifier: Apache-2.0
-- kprof's database, version 10: notes of what people did, such as "deployed 1.4".
--
-- People and programs query the view notes, whose names and columns are stable.

-- One row per note. An id is never given twice.
CREATE TABLE note_rows (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ns         INTEGER NOT NULL,            -- ns since 1970 UTC: when it was so
    node_id       INTEGER REFERENCES node_names,  -- that it is of; NULL: of all of them
    text          TEXT NOT NULL
) STRICT;
CREATE INDEX note_rows_by_time ON note_rows (at_ns);

CREATE VIEW notes AS
SELECT r.id                     AS id,
       strftime('%Y-%m-%dT%H:%M:%SZ', r.at_ns / 1000000000, 'unixepoch') AS at,  -- ISO 8601, UTC
       n.name                   AS node,       -- that it is of; NULL: of all of them
       r.text                   AS text
FROM note_rows AS r
LEFT JOIN node_names AS n ON n.id = r.node_id;
