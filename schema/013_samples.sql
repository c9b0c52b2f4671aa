-- SPDX-License-Identifier: Apache-2.0
-- kprof's database, version 13: profiles of samples (kprof sample): looks at processes, second by second.
-- The identity of what worked for no request is "_none".

-- What a run of stack sampling came to, one row for each profile of samples.
CREATE TABLE profile_sampled_rows (
    profile_id    INTEGER PRIMARY KEY REFERENCES profile_rows,
    looks         INTEGER NOT NULL,  -- at processes, each with a stack
    unchanged     INTEGER NOT NULL,  -- looks at processes that had done nothing since the look before
    unanswered    INTEGER NOT NULL,  -- times that a process did not answer: it was in native code, or did not get to run
    held_us       INTEGER NOT NULL,  -- µs that the sampler held itself back, to keep to its budget
    late_us       INTEGER NOT NULL,  -- µs that the node had no time for the sampler
    cut           INTEGER NOT NULL,  -- stacks that lack their outermost frames, as they have more than 64
    cost_us       INTEGER NOT NULL   -- µs of processor time, as the sampler measured it
) STRICT;

-- The processes that were looked at.
CREATE TABLE profile_sampled_processes (
    profile_id    INTEGER NOT NULL REFERENCES profile_rows,
    process       INTEGER NOT NULL,  -- from 0 on
    pid           TEXT NOT NULL,     -- such as <0.123.0>
    name          TEXT NOT NULL,     -- registered, or its label; empty: it has none
    initial       TEXT NOT NULL,     -- the function that it began with; empty: not known
    application   TEXT NOT NULL,     -- empty: not known
    PRIMARY KEY (profile_id, process)
) STRICT, WITHOUT ROWID;

-- The looks, packed by the second: the form of include/codec/sample_records.h, by the numbers of the tables here.
CREATE TABLE profile_second_rows (
    profile_id    INTEGER NOT NULL REFERENCES profile_rows,
    second        INTEGER NOT NULL,  -- since the profile began
    records       BLOB NOT NULL,
    PRIMARY KEY (profile_id, second)
) STRICT;

CREATE TRIGGER profile_samples_deleted AFTER DELETE ON profile_rows BEGIN
    DELETE FROM profile_sampled_rows WHERE profile_id = old.id;
    DELETE FROM profile_sampled_processes WHERE profile_id = old.id;
    DELETE FROM profile_second_rows WHERE profile_id = old.id;
END;
