-- SPDX-License-Identifier: Apache-2.0
-- kprof's database, version 15: waiting that is measured. The native tracer tells when a message is sent and when it is taken; what a call
-- waited is the time between, and no estimate. Where scheduling is traced it is known, too, what of that the process was in the run queue:
-- when it did not run as the message was sent, until it did. The rest was in its mailbox.
--
-- People and programs query the views tier_stats, path_stats and slow_spans, whose names and columns are stable.

-- What is there was estimated, all of it.
ALTER TABLE stat_rows ADD COLUMN measured_ns INTEGER NOT NULL DEFAULT 0;  -- ns of wait_ns
ALTER TABLE stat_rows ADD COLUMN mailbox_ns INTEGER;      -- ns of measured_ns, where this and the next are known apart, which need not be
                                                          -- all of it; NULL: of nothing
ALTER TABLE stat_rows ADD COLUMN run_queue_ns INTEGER;    -- ns, likewise
ALTER TABLE path_rows ADD COLUMN measured_ns INTEGER NOT NULL DEFAULT 0;  -- ns, and so are the next two, as in stat_rows
ALTER TABLE path_rows ADD COLUMN mailbox_ns INTEGER;
ALTER TABLE path_rows ADD COLUMN run_queue_ns INTEGER;
ALTER TABLE kept_spans ADD COLUMN measured INTEGER NOT NULL DEFAULT 0;    -- 1: wait_ns is
ALTER TABLE kept_spans ADD COLUMN run_queue_ns INTEGER;   -- ns of wait_ns; NULL: not known

DROP VIEW tier_stats;
CREATE VIEW tier_stats AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', s.bucket_start, 'unixepoch') AS bucket_start,  -- ISO 8601, UTC
       s.resolution_s           AS resolution_s,  -- seconds
       n.name                   AS node,
       i.name                   AS identity,
       t.name                   AS tier,
       s.requests               AS requests,
       s.calls                  AS calls,
       s.errors                 AS errors,
       s.async_calls            AS async_calls,
       s.total_ns / 1000.0      AS total_us,      -- µs, and so is all that follows
       s.self_ns / 1000.0       AS self_us,
       s.async_ns / 1000.0      AS async_us,
       s.duration_ns / 1000.0 / s.calls AS mean_us,  -- NULL without calls
       s.stddev_ns / 1000.0     AS stddev_us,
       s.min_ns / 1000.0        AS min_us,
       s.max_ns / 1000.0        AS max_us,
       s.p25_ns / 1000.0        AS p25_us,
       s.p50_ns / 1000.0        AS p50_us,
       s.p75_ns / 1000.0        AS p75_us,
       s.p90_ns / 1000.0        AS p90_us,
       s.p95_ns / 1000.0        AS p95_us,
       s.p99_ns / 1000.0        AS p99_us,
       s.p999_ns / 1000.0       AS p999_us,
       s.wait_ns / 1000.0       AS wait_us,
       s.gc_ns / 1000.0         AS gc_us,
       s.off_cpu_ns / 1000.0    AS off_cpu_us,
       s.calls - s.async_calls  AS sync_calls,    -- calls that ended before their request
       s.duration_ns / 1000.0   AS duration_us,   -- of all calls: duration_us / calls is their mean
       (s.duration_ns - s.async_ns) / 1000.0 AS sync_us,  -- of them: sync_us / sync_calls is their mean, async_us / async_calls the others'
       s.waiting_ns / 1000.0    AS waiting_us,    -- until calls of the tier began, each moment once; NULL: not told apart then
       CASE t.name WHEN '_total' THEN s.parallel_ns / 1000.0 END AS parallel_us,  -- of "_total" alone
       s.measured_ns / 1000.0   AS measured_us,   -- of wait_us what is measured; the rest is estimated
       s.mailbox_ns / 1000.0    AS mailbox_us,    -- of measured_us in mailboxes, and
       s.run_queue_ns / 1000.0  AS run_queue_us   -- in run queues, where the two are known apart; NULL: of nothing
FROM stat_rows AS s
JOIN node_names AS n ON n.id = s.node_id
JOIN identity_names AS i ON i.id = s.identity_id
JOIN tier_names AS t ON t.id = s.tier_id;

DROP VIEW path_stats;
CREATE VIEW path_stats AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', p.bucket_start, 'unixepoch') AS bucket_start,  -- ISO 8601, UTC
       p.resolution_s           AS resolution_s,  -- seconds
       n.name                   AS node,
       p.identity               AS identity,
       x.name                   AS path,          -- tiers from the request down: handle > db
       p.calls                  AS calls,
       p.errors                 AS errors,
       p.async_calls            AS async_calls,
       p.total_ns / 1000.0      AS total_us,      -- µs, and so is all that follows
       p.self_ns / 1000.0       AS self_us,
       p.async_ns / 1000.0      AS async_us,
       p.wait_ns / 1000.0       AS wait_us,
       p.duration_ns / 1000.0 / p.calls AS mean_us,  -- NULL without calls
       p.min_ns / 1000.0        AS min_us,
       p.max_ns / 1000.0        AS max_us,
       p.calls - p.async_calls  AS sync_calls,    -- calls that ended before their request
       p.duration_ns / 1000.0   AS duration_us,   -- of all calls: duration_us / calls is their mean
       (p.duration_ns - p.async_ns) / 1000.0 AS sync_us,  -- of them: sync_us / sync_calls is their mean, async_us / async_calls the others'
       p.waiting_ns / 1000.0    AS waiting_us,    -- until calls at this position began, each moment once; NULL: not told apart then
       p.measured_ns / 1000.0   AS measured_us,   -- of wait_us what is measured; the rest is estimated
       p.mailbox_ns / 1000.0    AS mailbox_us,    -- of measured_us in mailboxes, and
       p.run_queue_ns / 1000.0  AS run_queue_us   -- in run queues, where the two are known apart; NULL: of nothing
FROM (SELECT r.resolution_s, r.bucket_start, r.node_id, i.name AS identity, r.path_id, r.calls, r.errors, r.async_calls,
             r.total_ns, r.self_ns, r.async_ns, r.wait_ns, r.duration_ns, r.min_ns, r.max_ns, r.waiting_ns,
             r.measured_ns, r.mailbox_ns, r.run_queue_ns
      FROM path_rows AS r
      JOIN identity_names AS i ON i.id = r.identity_id AND i.name <> '_total'
      UNION ALL
      SELECT resolution_s, bucket_start, node_id, '_total', path_id, sum(calls), sum(errors), sum(async_calls),
             sum(total_ns), sum(self_ns), sum(async_ns), sum(wait_ns), sum(duration_ns), min(min_ns), max(max_ns),
             CASE count(*) WHEN count(waiting_ns) THEN sum(waiting_ns) END,
             sum(measured_ns), sum(mailbox_ns), sum(run_queue_ns)
      FROM path_rows
      WHERE identity_id IS NOT (SELECT id FROM identity_names WHERE name = '_remote')
      GROUP BY resolution_s, bucket_start, node_id, path_id) AS p
JOIN node_names AS n ON n.id = p.node_id
JOIN path_names AS x ON x.id = p.path_id;

DROP VIEW slow_spans;
CREATE VIEW slow_spans AS
SELECT s.request_id             AS request_id,    -- of slow_requests
       s.span                   AS span,          -- 0, 1, 2 … in order of start
       s.parent                 AS parent,        -- NULL: the request itself
       s.pid                    AS pid,
       t.name                   AS name,          -- of the tier
       s.start_ns / 1000.0      AS start_us,      -- µs from the request's begin
       s.duration_ns / 1000.0   AS duration_us,   -- µs, 0 when open
       s.self_ns / 1000.0       AS self_us,       -- µs, and so are the next three
       s.wait_ns / 1000.0       AS wait_us,
       s.gc_ns / 1000.0         AS gc_us,
       s.off_cpu_ns / 1000.0    AS off_cpu_us,
       s.async                  AS async,         -- 1: ended after its request
       CASE s.outcome WHEN 0 THEN 'ok' WHEN 1 THEN 'error' WHEN 2 THEN 'open' ELSE 'unknown' END AS outcome,
       r.maker_id IS NOT NULL   AS remote,        -- 1: called for a request of another node
       s.waiting_ns / 1000.0    AS waiting_us,    -- µs of it, each moment of the request once; NULL: not known
       s.measured               AS measured,      -- 1: wait_us is measured, 0: estimated
       (s.wait_ns - s.run_queue_ns) / 1000.0 AS mailbox_us,  -- of wait_us in mailboxes, and
       s.run_queue_ns / 1000.0  AS run_queue_us   -- in run queues, where the two are known apart; else NULL
FROM kept_spans AS s
JOIN kept_requests AS r ON r.id = s.request_id
JOIN tier_names AS t ON t.id = s.tier_id;
