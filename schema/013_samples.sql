-- SPDX-License-Identifier: Apache-2.0
-- kprof's database, version 13: profiles of samples (kprof sample): looks at processes, second by second.
--
-- People and programs query the views profile_stacks and profile_sampled, whose names and columns are stable. Of a profile of samples
-- profile_stacks has the metrics "samples" and "reductions", of the whole run; kprof flame draws all metrics, of any stretch of it.
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

DROP VIEW profile_flame;
DROP VIEW profile_stacks;
-- One row per stack, metric and identity, depth first. Adding `self` over stacks gives the whole; adding `value` counts frames twice.
CREATE VIEW profile_stacks AS
SELECT s.profile_id             AS profile,
       s.stack                  AS stack,
       s.parent                 AS parent,
       s.level                  AS level,
       f.name                   AS name,          -- of the uppermost frame
       f.module                 AS module,
       f.application            AS application,
       CASE f.kind WHEN 0 THEN 'function' WHEN 1 THEN 'waiting' WHEN 2 THEN 'asleep' WHEN 3 THEN 'gc' WHEN 4 THEN 'cut'
                   ELSE 'group' END AS kind,
       i.name                   AS identity,
       CASE v.metric WHEN 0 THEN 'wall' WHEN 1 THEN 'calls' WHEN 2 THEN 'samples' ELSE 'reductions' END AS metric,
       v.value / (CASE v.metric WHEN 0 THEN 1000.0 ELSE 1 END) AS value,  -- µs, calls, samples or reductions
       v.self / (CASE v.metric WHEN 0 THEN 1000.0 ELSE 1 END) AS self
FROM profile_stack_rows AS s
JOIN profile_frame_rows AS f ON f.profile_id = s.profile_id AND f.frame = s.frame
JOIN profile_value_rows AS v ON v.profile_id = s.profile_id AND v.stack = s.stack
JOIN identity_names AS i ON i.id = v.identity_id;

-- The same as Grafana's flame graph takes it: SELECT level, label, value, self FROM profile_flame WHERE profile = 7 AND metric = 'wall'
CREATE VIEW profile_flame AS
SELECT profile, metric, level, name AS label, sum(value) AS value, sum(self) AS self
FROM profile_stacks
GROUP BY profile, metric, stack
ORDER BY profile, metric, stack;

CREATE VIEW profile_sampled AS
SELECT profile_id               AS profile,
       looks                    AS looks,
       unchanged                AS unchanged,
       unanswered               AS unanswered,
       held_us / 1000.0         AS held_ms,
       late_us / 1000.0         AS late_ms,
       cut                      AS cut,
       cost_us / 1000.0         AS cost_ms
FROM profile_sampled_rows;
