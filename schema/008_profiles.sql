-- SPDX-License-Identifier: Apache-2.0
-- kprof's database, version 8: profiles, which are drawn as flame graphs.

-- One row per profile. An id is never given twice.
CREATE TABLE profile_rows (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    kind          INTEGER NOT NULL,  -- 0: a full trace of requests, 1: samples
    name          TEXT NOT NULL,     -- what it was asked for by, or a label; may be empty
    node_id       INTEGER NOT NULL REFERENCES node_names,
    begin_ns      INTEGER NOT NULL,  -- ns since 1970 UTC
    end_ns        INTEGER NOT NULL,  -- ns since 1970 UTC
    settings      TEXT NOT NULL,     -- JSON: what was asked for
    requests      INTEGER NOT NULL,  -- that the stacks are of
    incomplete    INTEGER NOT NULL,  -- requests left out: messages were lost, or their joins unclear
    others        INTEGER NOT NULL,  -- requests left out: they had another identity than the one asked for
    unseen        INTEGER NOT NULL,  -- requests left out: no function of them was traced
    refused       INTEGER NOT NULL,  -- requests left out: too many at a time
    processes     INTEGER NOT NULL,  -- that worked for the requests, each counted once a request
    messages      INTEGER NOT NULL,  -- trace messages of the requests
    losses        INTEGER NOT NULL,  -- times that messages were lost
    duration_ns   INTEGER NOT NULL,  -- ns, of the requests from begin to end
    parallel_ns   INTEGER NOT NULL,  -- ns that processes worked besides, while others of the same request did
    missing_ns    INTEGER NOT NULL,  -- ns of duration_ns that no process is known to have worked or waited
    cut           INTEGER NOT NULL,  -- 1: some stacks found no room, and count as the ones below
    longest_ns    INTEGER NOT NULL,  -- ns, of the longest of the requests; 0: it is not kept
    longest       BLOB,              -- it on a line of time, in the form of include/model/profile/timeline.h
    rows          INTEGER NOT NULL   -- of the tables below
) STRICT;
CREATE INDEX profile_rows_by_end ON profile_rows (end_ns);

-- The frames of a profile: functions, and what processes did instead of running.
CREATE TABLE profile_frame_rows (
    profile_id    INTEGER NOT NULL REFERENCES profile_rows,
    frame         INTEGER NOT NULL,
    kind          INTEGER NOT NULL,  -- 0: function, 1: waiting, 2: asleep, 3: garbage collection, 4: cut, 5: a group
    name          TEXT NOT NULL,     -- as it is shown
    module        TEXT NOT NULL,     -- of a function, as Erlang names it; else empty
    application   TEXT NOT NULL,     -- that the module is of; empty: not known
    PRIMARY KEY (profile_id, frame)
) STRICT, WITHOUT ROWID;

-- Its stacks: a frame above another stack. They are numbered depth first, 0 is the root.
CREATE TABLE profile_stack_rows (
    profile_id    INTEGER NOT NULL REFERENCES profile_rows,
    stack         INTEGER NOT NULL,
    parent        INTEGER NOT NULL,  -- a smaller number; the root has itself
    level         INTEGER NOT NULL,  -- frames above the root
    frame         INTEGER NOT NULL,
    PRIMARY KEY (profile_id, stack)
) STRICT, WITHOUT ROWID;

-- What they weigh, by the identity of the requests.
CREATE TABLE profile_value_rows (
    profile_id    INTEGER NOT NULL REFERENCES profile_rows,
    metric        INTEGER NOT NULL,  -- 0: wall time, ns; 1: calls
    identity_id   INTEGER NOT NULL REFERENCES identity_names,
    stack         INTEGER NOT NULL,
    value         INTEGER NOT NULL,  -- of the stack and all above it
    self          INTEGER NOT NULL,  -- of the stack itself
    PRIMARY KEY (profile_id, metric, identity_id, stack)
) STRICT, WITHOUT ROWID;

-- What belongs to a profile goes with it, whoever deletes it.
CREATE TRIGGER profile_rows_deleted AFTER DELETE ON profile_rows BEGIN
    DELETE FROM profile_frame_rows WHERE profile_id = old.id;
    DELETE FROM profile_stack_rows WHERE profile_id = old.id;
    DELETE FROM profile_value_rows WHERE profile_id = old.id;
END;
