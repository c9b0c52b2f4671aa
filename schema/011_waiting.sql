-- SPDX-License-Identifier: Apache-2.0
-- kprof's database, version 11: waiting as a time of its own. What a caller waits until its callee begins is nobody's self time any more.
--
-- People and programs query the views tier_stats, path_stats, slow_requests and slow_spans, whose names and columns are stable.
--
-- Each moment of a request is self time of a tier's call, or waiting (once, whoever waits), or uncovered: in no tier. So of every identity
--     sum of self_us of its tiers + sum of their waiting_us + self_us of "_total" (uncovered) - parallel_us of "_total" = total_us of "_total"
-- where parallel is what counts more than once, as it ran at the same time. Calls that end after their request (async) cover nothing, and
-- nobody waits for them. When a wait begins is told in include/model/requests/request_tree.h.

-- In rows that an older version has begun they are NULL: there the waiting is within self_ns of who waits, and async calls covered their
-- callers.
ALTER TABLE stat_rows ADD COLUMN waiting_ns INTEGER;      -- ns that requests waited for calls of the tier to begin, each moment once; of
                                                          -- "_total": for calls of any tier
ALTER TABLE stat_rows ADD COLUMN parallel_ns INTEGER;     -- ns, of "_total" alone, else 0: what counts more than once
ALTER TABLE path_rows ADD COLUMN waiting_ns INTEGER;      -- ns, as in stat_rows
ALTER TABLE kept_spans ADD COLUMN waiting_ns INTEGER;     -- ns, of this call; 0 when async or open
ALTER TABLE kept_requests ADD COLUMN uncovered_ns INTEGER;  -- ns of no call, nor waiting
ALTER TABLE kept_requests ADD COLUMN parallel_ns INTEGER;   -- ns that count more than once

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
       CASE t.name WHEN '_total' THEN s.parallel_ns / 1000.0 END AS parallel_us  -- of "_total" alone
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
       p.waiting_ns / 1000.0    AS waiting_us     -- until calls at this position began, each moment once; NULL: not told apart then
FROM (SELECT r.resolution_s, r.bucket_start, r.node_id, i.name AS identity, r.path_id, r.calls, r.errors, r.async_calls,
             r.total_ns, r.self_ns, r.async_ns, r.wait_ns, r.duration_ns, r.min_ns, r.max_ns, r.waiting_ns
      FROM path_rows AS r
      JOIN identity_names AS i ON i.id = r.identity_id AND i.name <> '_total'
      UNION ALL
      SELECT resolution_s, bucket_start, node_id, '_total', path_id, sum(calls), sum(errors), sum(async_calls),
             sum(total_ns), sum(self_ns), sum(async_ns), sum(wait_ns), sum(duration_ns), min(min_ns), max(max_ns),
             CASE count(*) WHEN count(waiting_ns) THEN sum(waiting_ns) END
      FROM path_rows
      WHERE identity_id IS NOT (SELECT id FROM identity_names WHERE name = '_remote')
      GROUP BY resolution_s, bucket_start, node_id, path_id) AS p
JOIN node_names AS n ON n.id = p.node_id
JOIN path_names AS x ON x.id = p.path_id;

DROP VIEW slow_requests;
CREATE VIEW slow_requests AS
SELECT r.id                     AS id,
       n.name                   AS node,
       i.name                   AS identity,
       strftime('%Y-%m-%dT%H:%M:%S', r.begin_ns / 1000000000, 'unixepoch')
           || printf('.%06dZ', r.begin_ns / 1000 % 1000000) AS started_at,  -- ISO 8601, UTC, microseconds
       r.duration_ns / 1000.0   AS duration_us,   -- µs
       CASE r.error WHEN 0 THEN 'ok' ELSE 'error' END AS outcome,
       CASE r.reason WHEN 0 THEN 'over' WHEN 1 THEN 'failed' ELSE 'slowest' END AS reason,
       r.cut = 0                AS complete,      -- 0: it had more spans than the collector takes
       r.spans                  AS spans,         -- that it had
       r.kept_spans             AS kept_spans,    -- of them, in slow_spans
       r.maker_id IS NOT NULL   AS remote,        -- 1: a part of a request of another node,
       m.name                   AS origin,        -- of this one; NULL: it is its own node's
       r.label                  AS label,         -- the same for all parts of one request; NULL: not known
       r.uncovered_ns / 1000.0  AS uncovered_us,  -- µs of no tier, nor waiting; NULL: not known, and so is the next
       r.parallel_ns / 1000.0   AS parallel_us    -- µs that count more than once, see tier_stats
FROM kept_requests AS r
JOIN node_names AS n ON n.id = r.node_id
JOIN identity_names AS i ON i.id = r.identity_id
LEFT JOIN node_names AS m ON m.id = r.maker_id;

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
       s.waiting_ns / 1000.0    AS waiting_us     -- µs until it began, each moment of the request once; NULL: not known
FROM kept_spans AS s
JOIN kept_requests AS r ON r.id = s.request_id
JOIN tier_names AS t ON t.id = s.tier_id;
