-- kprof's database, version 6: why requests are incomplete, for how long and why nothing was traced, and calls whose request is over, of
-- which many mean that work was done under another request's token. Rows of older versions stay: their new counters are 0, "calls" is NULL.

DROP VIEW ledger;
DROP VIEW tier_costs;
DROP VIEW tier_stats;
DROP VIEW path_stats;

-- Incomplete requests, each under the one reason that applies first: together they are requests_incomplete.
ALTER TABLE ledger_rows ADD COLUMN incomplete_loss   INTEGER NOT NULL DEFAULT 0;  -- messages were lost while they were open
ALTER TABLE ledger_rows ADD COLUMN incomplete_token  INTEGER NOT NULL DEFAULT 0;  -- they lost their token on the way
ALTER TABLE ledger_rows ADD COLUMN incomplete_cause  INTEGER NOT NULL DEFAULT 0;  -- whose work a call was cannot be told (a pool, a lock, a cache)
ALTER TABLE ledger_rows ADD COLUMN incomplete_return INTEGER NOT NULL DEFAULT 0;  -- a return never came, or could not be joined
ALTER TABLE ledger_rows ADD COLUMN incomplete_reload INTEGER NOT NULL DEFAULT 0;  -- a function was not traced for a while
ALTER TABLE ledger_rows ADD COLUMN incomplete_large  INTEGER NOT NULL DEFAULT 0;  -- they had more calls than the collector takes
ALTER TABLE ledger_rows ADD COLUMN incomplete_room   INTEGER NOT NULL DEFAULT 0;  -- there was no memory for them, or a cap was reached
ALTER TABLE ledger_rows ADD COLUMN incomplete_end    INTEGER NOT NULL DEFAULT 0;  -- the trace began or ended while they were open
-- calls of tiers under a token, of complete requests or not, the stale ones too; NULL: not counted
ALTER TABLE ledger_rows ADD COLUMN calls             INTEGER;
-- calls that were given to another request than their token's, as that one had asked for them
ALTER TABLE ledger_rows ADD COLUMN recredited_calls  INTEGER NOT NULL DEFAULT 0;
-- calls of tiers without return values, in complete requests, of which nobody can tell whether they ended by an exception
ALTER TABLE ledger_rows ADD COLUMN unknown_outcomes  INTEGER NOT NULL DEFAULT 0;
-- ms for which nothing was traced: paused_ms, because somebody asked for that; before version 6 it holds the next two as well
ALTER TABLE ledger_rows ADD COLUMN tripped_ms        INTEGER NOT NULL DEFAULT 0;  -- because the guard had taken everything off
ALTER TABLE ledger_rows ADD COLUMN away_ms           INTEGER NOT NULL DEFAULT 0;  -- because no collector was there
-- ms for which functions were not traced that should have been, as after a code reload; several at a time count once
ALTER TABLE ledger_rows ADD COLUMN untraced_ms       INTEGER NOT NULL DEFAULT 0;
-- calls of tiers that were counted while nothing had begun a request: there is no entry, and nothing marks requests
ALTER TABLE ledger_rows ADD COLUMN unmarked_calls    INTEGER NOT NULL DEFAULT 0;
-- times that a row of tier_stats was added to for whose histogram the collector had no room: its quantiles may be off by more than 1.1 %
ALTER TABLE ledger_rows ADD COLUMN coarse_rows       INTEGER NOT NULL DEFAULT 0;
-- times that a row of these statistics, or a kept request, could not be written, as what stands in the file for it is malformed
ALTER TABLE ledger_rows ADD COLUMN unwritten_rows    INTEGER NOT NULL DEFAULT 0;

-- calls of the tier under a token, of complete requests or not, and of them those that are in the ledger's stale_calls
ALTER TABLE cost_rows ADD COLUMN calls       INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cost_rows ADD COLUMN stale_calls INTEGER NOT NULL DEFAULT 0;

CREATE VIEW ledger AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', l.bucket_start, 'unixepoch') AS bucket_start,  -- ISO 8601, UTC
       l.resolution_s           AS resolution_s,  -- seconds
       n.name                   AS node,
       l.requests_complete      AS requests_complete,
       l.requests_incomplete    AS requests_incomplete,
       l.requests_expired       AS requests_expired,
       l.requests_unsampled     AS requests_unsampled,
       l.messages               AS messages,
       l.bytes                  AS bytes,
       l.dropped_messages       AS dropped_messages,
       l.orphan_returns         AS orphan_returns,
       l.stale_calls            AS stale_calls,
       l.decode_errors          AS decode_errors,
       l.paused_ms              AS paused_ms,     -- milliseconds, asked for
       l.unwound_frames         AS unwound_frames,
       l.ambiguous_returns      AS ambiguous_returns,
       l.lost_tokens            AS lost_tokens,
       l.reloads                AS reloads,
       l.trips                  AS trips,
       l.lowered_ms             AS lowered_ms,    -- milliseconds
       l.incomplete_loss        AS incomplete_loss,
       l.incomplete_token       AS incomplete_token,
       l.incomplete_cause       AS incomplete_cause,
       l.incomplete_return      AS incomplete_return,
       l.incomplete_reload      AS incomplete_reload,
       l.incomplete_large       AS incomplete_large,
       l.incomplete_room        AS incomplete_room,
       l.incomplete_end         AS incomplete_end,
       l.calls                  AS calls,
       l.recredited_calls       AS recredited_calls,
       l.unknown_outcomes       AS unknown_outcomes,
       l.tripped_ms             AS tripped_ms,    -- milliseconds
       l.away_ms                AS away_ms,       -- milliseconds
       l.untraced_ms            AS untraced_ms,   -- milliseconds
       l.unmarked_calls         AS unmarked_calls,
       l.coarse_rows            AS coarse_rows,
       l.unwritten_rows         AS unwritten_rows,
       -- Whether the bucket can be trusted. Paused: tracing was off for a part of it. Lossy: something was lost or did not come out, and
       -- requests or rows are missing. Unclear: nothing else is wrong, but of some requests it cannot be told whose work their calls were, or more
       -- than a thousandth of the calls were made under the token of a request that is over: processes work under others' tokens, so that
       -- some calls may be missing where they belong. Reloads, lost tokens and trips make none of these by themselves: what they damage is
       -- incomplete, or paused. Nor does lowered sampling, which leaves requests_unsampled out by chance.
       CASE WHEN l.paused_ms > 0 OR l.tripped_ms > 0 OR l.away_ms > 0 THEN 'paused'
            WHEN l.requests_incomplete > l.incomplete_cause OR l.requests_expired > 0 OR l.dropped_messages > 0 OR l.orphan_returns > 0
                 OR l.decode_errors > 0 OR l.unwound_frames > 0 OR l.ambiguous_returns > 0 OR l.unwritten_rows > 0 THEN 'lossy'
            WHEN l.incomplete_cause > 0 OR l.stale_calls * 1000 > l.calls THEN 'unclear'
            ELSE 'ok' END       AS verdict
FROM ledger_rows AS l
JOIN node_names AS n ON n.id = l.node_id;

CREATE VIEW tier_costs AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', c.bucket_start, 'unixepoch') AS bucket_start,  -- ISO 8601, UTC
       c.resolution_s           AS resolution_s,  -- seconds
       n.name                   AS node,
       t.name                   AS tier,
       c.messages               AS messages,
       c.bytes                  AS bytes,
       c.calls                  AS calls,         -- under a token, of complete requests or not
       c.stale_calls            AS stale_calls    -- of them those whose request was over, or never began
FROM cost_rows AS c
JOIN node_names AS n ON n.id = c.node_id
JOIN tier_names AS t ON t.id = c.tier_id;

-- Durations that can be divided by counts. total_us is what a request spends in a tier: calls inside of calls of the same tier and async ones
-- are no part of it, but of calls, so that total_us / calls is no mean of anything. wait_us / calls is the mean waiting of all calls.
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
       (s.duration_ns - s.async_ns) / 1000.0 AS sync_us    -- of the sync calls: sync_us / sync_calls is theirs, async_us / async_calls the others'
FROM stat_rows AS s
JOIN node_names AS n ON n.id = s.node_id
JOIN identity_names AS i ON i.id = s.identity_id
JOIN tier_names AS t ON t.id = s.tier_id;

-- The rows of the identity "_total" are made here, by adding the others up.
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
       (p.duration_ns - p.async_ns) / 1000.0 AS sync_us    -- of the sync calls: sync_us / sync_calls is theirs, async_us / async_calls the others'
FROM (SELECT r.resolution_s, r.bucket_start, r.node_id, i.name AS identity, r.path_id, r.calls, r.errors, r.async_calls,
             r.total_ns, r.self_ns, r.async_ns, r.wait_ns, r.duration_ns, r.min_ns, r.max_ns
      FROM path_rows AS r
      JOIN identity_names AS i ON i.id = r.identity_id AND i.name <> '_total'
      UNION ALL
      SELECT resolution_s, bucket_start, node_id, '_total', path_id, sum(calls), sum(errors), sum(async_calls),
             sum(total_ns), sum(self_ns), sum(async_ns), sum(wait_ns), sum(duration_ns), min(min_ns), max(max_ns)
      FROM path_rows
      WHERE identity_id IS NOT (SELECT id FROM identity_names WHERE name = '_remote')
      GROUP BY resolution_s, bucket_start, node_id, path_id) AS p
JOIN node_names AS n ON n.id = p.node_id
JOIN path_names AS x ON x.id = p.path_id;
