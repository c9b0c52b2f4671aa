-- SPDX-License-Identifier: Apache-2.0
-- The views of kprof's database, which people and programs query. Their names and columns are stable; the tables below them are not an
-- interface. Times in the tables are nanoseconds, in the views microseconds.
--
-- All views are made again when a database comes to a new version. So a change here needs a new numbered file, even one with only a
-- comment: else databases that are there never get it. A view that is taken out here is dropped by such a file.

-- Durations that can be divided by counts. total_us is what a request spends in a tier: calls inside of calls of the same tier and async
-- ones are no part of it, but of calls, so that total_us / calls is no mean of anything. wait_us / calls is the mean waiting of all calls.
--
-- Each moment of a request is self time of a tier's call, or waiting (once, whoever waits), or uncovered: in no tier. So of every identity
--     sum of self_us of its tiers + sum of their waiting_us + self_us of "_total" (uncovered) - parallel_us of "_total" = total_us of "_total"
-- where parallel is what counts more than once, as it ran at the same time. Calls that end after their request (async) cover nothing, and
-- nobody waits for them. When a wait begins is told in include/model/requests/request_tree.h.
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
       -- requests or rows are missing. Unclear: nothing else is wrong, but of some requests it cannot be told whose work their calls were,
       -- or more than a thousandth of the calls were made under the token of a request that is over: processes work under others' tokens,
       -- so that some calls may be missing where they belong. Reloads, lost tokens and trips make none of these by themselves: what they damage is
       -- incomplete, or paused. Nor does lowered sampling, which leaves requests_unsampled out by chance.
       CASE WHEN l.paused_ms > 0 OR l.tripped_ms > 0 OR l.away_ms > 0 THEN 'paused'
            WHEN l.requests_incomplete > l.incomplete_cause OR l.requests_expired > 0 OR l.dropped_messages > 0 OR l.orphan_returns > 0
                 OR l.decode_errors > 0 OR l.unwound_frames > 0 OR l.ambiguous_returns > 0 OR l.unwritten_rows > 0 THEN 'lossy'
            WHEN l.incomplete_cause > 0 OR l.stale_calls * 1000 > l.calls THEN 'unclear'
            ELSE 'ok' END       AS verdict
FROM ledger_rows AS l
JOIN node_names AS n ON n.id = l.node_id;

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
       r.parallel_ns / 1000.0   AS parallel_us,   -- µs that count more than once, see tier_stats
       r.trace_id               AS trace_id,      -- of the trace that asked for it, in hex; NULL: not known,
       r.parent_span_id         AS parent_span_id -- and so is this: of the span in that
FROM kept_requests AS r
JOIN node_names AS n ON n.id = r.node_id
JOIN identity_names AS i ON i.id = r.identity_id
LEFT JOIN node_names AS m ON m.id = r.maker_id;

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

CREATE VIEW profiles AS
SELECT p.id                     AS id,
       CASE p.kind WHEN 0 THEN 'full' ELSE 'samples' END AS kind,
       p.name                   AS name,
       n.name                   AS node,
       strftime('%Y-%m-%dT%H:%M:%SZ', p.begin_ns / 1000000000, 'unixepoch') AS started_at,  -- ISO 8601, UTC
       (p.end_ns - p.begin_ns) / 1000000 AS duration_ms,  -- ms, for which it was made
       p.settings               AS settings,      -- JSON
       p.requests               AS requests,
       p.incomplete             AS incomplete,
       p.others                 AS others,
       p.unseen                 AS unseen,
       p.refused                AS refused,
       p.processes              AS processes,
       p.messages               AS messages,
       p.losses                 AS losses,
       p.duration_ns / 1000.0   AS requests_us,   -- µs, of the requests from begin to end, and so are the next two
       p.parallel_ns / 1000.0   AS parallel_us,
       p.missing_ns / 1000.0    AS missing_us,
       p.cut                    AS cut,
       p.otp                    AS otp,             -- the node's release; empty: not known
       p.asleep_in_self         AS asleep_in_self,  -- 1: that time was not traced, and is in self
       p.gc_in_self             AS gc_in_self,
       p.functions              AS functions,       -- that had patterns; 0: not known, and so are the next ones
       p.bytes                  AS bytes,           -- of the messages
       p.stood_ns / 1000000     AS patterns_ms,     -- ms for which patterns stood
       CASE p.tiers_rested WHEN 1 THEN p.stood_ns / 1000000 ELSE 0 END AS paused_ms  -- ms of these without a trace of the tiers
FROM profile_rows AS p
JOIN node_names AS n ON n.id = p.node_id;

-- One row per stack, metric and identity, depth first. Adding `self` over stacks gives the whole; adding `value` counts frames twice.
-- Of a profile of samples it has the metrics "samples" and "reductions", of the whole run; kprof flame draws all metrics, of any stretch.
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

-- One row per profile and identity of its requests: what being traced fully made them take longer.
CREATE VIEW profile_requests AS
SELECT r.profile_id             AS profile,
       i.name                   AS identity,
       r.requests               AS requests,
       r.duration_ns / 1000.0 / r.requests AS mean_us,              -- µs
       r.others                 AS others,                          -- requests that only the tiers traced
       r.others_ns / 1000.0 / nullif(r.others, 0) AS others_mean_us  -- µs; NULL: there was none
FROM profile_request_rows AS r
JOIN identity_names AS i ON i.id = r.identity_id;

-- One row per profile and process that it was not followed into.
CREATE VIEW profile_missed AS
SELECT profile_id AS profile, pid, name, requests
FROM profile_missed_rows
ORDER BY profile_id, place;

CREATE VIEW notes AS
SELECT r.id                     AS id,
       strftime('%Y-%m-%dT%H:%M:%SZ', r.at_ns / 1000000000, 'unixepoch') AS at,  -- ISO 8601, UTC
       n.name                   AS node,       -- that it is of; NULL: of all of them
       r.text                   AS text
FROM note_rows AS r
LEFT JOIN node_names AS n ON n.id = r.node_id;

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
