-- SPDX-License-Identifier: Apache-2.0
-- kprof's database, version 12: in which processes the stacks of a profile ran.

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
