-- SPDX-License-Identifier: Apache-2.0
-- kprof's database, version 12: in which processes the stacks of a profile ran.
--
-- People and programs query the view profile_processes, whose names and columns are stable.

-- Names of processes: registered names, or the functions that they began with. Many may share one.
CREATE TABLE profile_process_names (
    profile_id    INTEGER NOT NULL REFERENCES profile_rows,
    process       INTEGER NOT NULL,  -- from 0 on
    name          TEXT NOT NULL,
    PRIMARY KEY (profile_id, process)
) STRICT, WITHOUT ROWID;

-- What is theirs of profile_value_rows.self, of both metrics. The rest is of processes that are not known; profiles that an older version
-- has kept have no rows here.
CREATE TABLE profile_process_rows (
    profile_id    INTEGER NOT NULL REFERENCES profile_rows,
    stack         INTEGER NOT NULL,
    identity_id   INTEGER NOT NULL REFERENCES identity_names,
    process       INTEGER NOT NULL,
    ns            INTEGER NOT NULL,  -- wall time of the stack itself
    calls         INTEGER NOT NULL,
    PRIMARY KEY (profile_id, stack, identity_id, process)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER profile_processes_deleted AFTER DELETE ON profile_rows BEGIN
    DELETE FROM profile_process_names WHERE profile_id = old.id;
    DELETE FROM profile_process_rows WHERE profile_id = old.id;
END;

-- One row per stack, identity and process that weighs something itself. Adding self_us over all of them gives the whole, less what is of
-- processes that are not known.
CREATE VIEW profile_processes AS
SELECT r.profile_id             AS profile,
       p.name                   AS process,
       i.name                   AS identity,
       r.stack                  AS stack,         -- of profile_stacks
       f.name                   AS name,          -- of its uppermost frame
       CASE f.kind WHEN 0 THEN 'function' WHEN 1 THEN 'waiting' WHEN 2 THEN 'asleep' WHEN 3 THEN 'gc' WHEN 4 THEN 'cut'
                   ELSE 'group' END AS kind,
       r.ns / 1000.0            AS self_us,       -- µs
       r.calls                  AS calls
FROM profile_process_rows AS r
JOIN profile_process_names AS p ON p.profile_id = r.profile_id AND p.process = r.process
JOIN profile_stack_rows AS s ON s.profile_id = r.profile_id AND s.stack = r.stack
JOIN profile_frame_rows AS f ON f.profile_id = s.profile_id AND f.frame = s.frame
JOIN identity_names AS i ON i.id = r.identity_id;
