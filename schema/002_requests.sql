-- kprof's database, version 2: waiting, garbage collection and scheduling per tier, positions in the tree, what tracing costs, single
-- requests that are kept whole, and a verdict on each bucket. Rows of version 1 stay; the new counters of theirs are 0: not measured.
--
-- The views keep the columns that they had, in place; new ones stand behind. Views of their own: path_stats, tier_costs,
-- slow_requests and slow_spans.

DROP VIEW tier_stats;
DROP VIEW ledger;

-- ns, between what the caller did last and the start of calls that came by a message or a spawn from another process: an upper
-- bound of the time in the mailbox and in the run queue
ALTER TABLE stat_rows ADD COLUMN wait_ns INTEGER NOT NULL DEFAULT 0;
-- ns, garbage collection while a call was the innermost one of its process; 0 unless traced
ALTER TABLE stat_rows ADD COLUMN gc_ns INTEGER NOT NULL DEFAULT 0;
-- ns, the same for being scheduled out
ALTER TABLE stat_rows ADD COLUMN off_cpu_ns INTEGER NOT NULL DEFAULT 0;

-- calls that were left without a return of their own
ALTER TABLE ledger_rows ADD COLUMN unwound_frames INTEGER NOT NULL DEFAULT 0;
-- return_to messages that could not be joined with certainty
ALTER TABLE ledger_rows ADD COLUMN ambiguous_returns INTEGER NOT NULL DEFAULT 0;
-- requests whose process had lost the token at their end
ALTER TABLE ledger_rows ADD COLUMN lost_tokens INTEGER NOT NULL DEFAULT 0;
-- code reloads that took tiers' patterns off for a moment
ALTER TABLE ledger_rows ADD COLUMN reloads INTEGER NOT NULL DEFAULT 0;

CREATE TABLE path_names (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE  -- tiers from the request down, joined with " > "; "_other": past the cap
) STRICT;

-- Times by position in the tree: as stat_rows, with a path in the tier's place, and without rows of the identity "_total".
CREATE TABLE path_rows (
    resolution_s INTEGER NOT NULL,  -- length of the bucket, seconds
    bucket_start INTEGER NOT NULL,  -- seconds since 1970 UTC, a multiple of resolution_s
    node_id      INTEGER NOT NULL REFERENCES node_names,
    identity_id  INTEGER NOT NULL REFERENCES identity_names,
    path_id      INTEGER NOT NULL REFERENCES path_names,
    calls        INTEGER NOT NULL,  -- calls at this position, recursive and async ones too
    errors       INTEGER NOT NULL,  -- calls that ended in an exception
    async_calls  INTEGER NOT NULL,  -- calls that ended after their request had ended
    total_ns     INTEGER NOT NULL,  -- ns, inclusive time of the calls that were not async
    self_ns      INTEGER NOT NULL,  -- ns, the same less what their child spans cover
    async_ns     INTEGER NOT NULL,  -- ns, inclusive time of the async calls
    wait_ns      INTEGER NOT NULL,  -- ns, as in stat_rows
    duration_ns  INTEGER NOT NULL,  -- ns, sum of the durations of all calls; mean = duration_ns / calls
    min_ns       INTEGER,           -- ns, shortest call; NULL without calls
    max_ns       INTEGER,           -- ns, longest call; NULL without calls
    PRIMARY KEY (resolution_s, bucket_start, node_id, identity_id, path_id)
) STRICT, WITHOUT ROWID;

-- What tracing a tier costs: all its messages, of complete requests or not.
CREATE TABLE cost_rows (
    resolution_s INTEGER NOT NULL,  -- length of the bucket, seconds
    bucket_start INTEGER NOT NULL,  -- seconds since 1970 UTC, a multiple of resolution_s
    node_id      INTEGER NOT NULL REFERENCES node_names,
    tier_id      INTEGER NOT NULL REFERENCES tier_names,
    messages     INTEGER NOT NULL,  -- trace messages of any kind that named its function
    bytes        INTEGER NOT NULL,  -- bytes of these, with their frames
    PRIMARY KEY (resolution_s, bucket_start, node_id, tier_id)
) STRICT, WITHOUT ROWID;

-- Requests that are kept whole: per bucket, node and identity a few for each reason, the slowest of them. An id is never given twice.
CREATE TABLE kept_requests (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    bucket_start INTEGER NOT NULL,  -- seconds since 1970 UTC, of the finest bucket in which the request ended
    node_id      INTEGER NOT NULL REFERENCES node_names,
    identity_id  INTEGER NOT NULL REFERENCES identity_names,
    reason       INTEGER NOT NULL,  -- 0: longer than the threshold, 1: ended in an exception, 2: among the slowest
    begin_ns     INTEGER NOT NULL,  -- ns since 1970 UTC
    duration_ns  INTEGER NOT NULL,  -- ns
    error        INTEGER NOT NULL,  -- 1: ended in an exception
    cut          INTEGER NOT NULL,  -- 1: it had more spans than the collector takes, and counts as incomplete
    spans        INTEGER NOT NULL,  -- that it had
    kept_spans   INTEGER NOT NULL   -- of them, the first by start
) STRICT;

-- The best of a bucket stand first: what is past the cap lies at the end.
CREATE INDEX kept_requests_by_bucket
    ON kept_requests (bucket_start, node_id, identity_id, reason, duration_ns DESC, begin_ns);
CREATE INDEX kept_requests_by_begin ON kept_requests (begin_ns, kept_spans);

CREATE TABLE kept_spans (
    request_id  INTEGER NOT NULL REFERENCES kept_requests,
    span        INTEGER NOT NULL,  -- 0, 1, 2 … in order of start
    parent      INTEGER,           -- the span above, a smaller number; NULL: the request itself
    pid         TEXT NOT NULL,     -- the process, as its node prints it: <0.123.0>
    tier_id     INTEGER NOT NULL REFERENCES tier_names,
    start_ns    INTEGER NOT NULL,  -- ns from the request's begin
    duration_ns INTEGER NOT NULL,  -- ns; 0 when open
    self_ns     INTEGER NOT NULL,  -- ns, the same less what child spans cover; 0 when async or open
    wait_ns     INTEGER NOT NULL,  -- ns, see stat_rows
    gc_ns       INTEGER NOT NULL,  -- ns, see stat_rows
    off_cpu_ns  INTEGER NOT NULL,  -- ns, see stat_rows
    async       INTEGER NOT NULL,  -- 1: ended after its request
    outcome     INTEGER NOT NULL,  -- 0: returned, 1: ended by an exception, 2: no return was seen, 3: how it ended is not known
    PRIMARY KEY (request_id, span)
) STRICT, WITHOUT ROWID;

-- Spans go with their request, whoever deletes it.
CREATE TRIGGER kept_requests_deleted AFTER DELETE ON kept_requests BEGIN
    DELETE FROM kept_spans WHERE request_id = old.id;
END;

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
       s.off_cpu_ns / 1000.0    AS off_cpu_us
FROM stat_rows AS s
JOIN node_names AS n ON n.id = s.node_id
JOIN identity_names AS i ON i.id = s.identity_id
JOIN tier_names AS t ON t.id = s.tier_id;

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
       l.paused_ms              AS paused_ms,     -- milliseconds
       l.unwound_frames         AS unwound_frames,
       l.ambiguous_returns      AS ambiguous_returns,
       l.lost_tokens            AS lost_tokens,
       l.reloads                AS reloads,
       -- Whether the bucket can be trusted. Paused: tracing was off for a part of it. Lossy: something was lost or did not come out,
       -- and requests are missing. Late calls, lost tokens and reloads make none of these: their requests are incomplete anyway.
       CASE WHEN l.paused_ms > 0 THEN 'paused'
            WHEN l.requests_incomplete > 0 OR l.requests_expired > 0 OR l.dropped_messages > 0 OR l.orphan_returns > 0
                 OR l.decode_errors > 0 OR l.unwound_frames > 0 OR l.ambiguous_returns > 0 THEN 'lossy'
            ELSE 'ok' END       AS verdict
FROM ledger_rows AS l
JOIN node_names AS n ON n.id = l.node_id;

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
       p.max_ns / 1000.0        AS max_us
FROM (SELECT r.resolution_s, r.bucket_start, r.node_id, i.name AS identity, r.path_id, r.calls, r.errors, r.async_calls,
             r.total_ns, r.self_ns, r.async_ns, r.wait_ns, r.duration_ns, r.min_ns, r.max_ns
      FROM path_rows AS r
      JOIN identity_names AS i ON i.id = r.identity_id AND i.name <> '_total'
      UNION ALL
      SELECT resolution_s, bucket_start, node_id, '_total', path_id, sum(calls), sum(errors), sum(async_calls),
             sum(total_ns), sum(self_ns), sum(async_ns), sum(wait_ns), sum(duration_ns), min(min_ns), max(max_ns)
      FROM path_rows
      GROUP BY resolution_s, bucket_start, node_id, path_id) AS p
JOIN node_names AS n ON n.id = p.node_id
JOIN path_names AS x ON x.id = p.path_id;

CREATE VIEW tier_costs AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', c.bucket_start, 'unixepoch') AS bucket_start,  -- ISO 8601, UTC
       c.resolution_s           AS resolution_s,  -- seconds
       n.name                   AS node,
       t.name                   AS tier,
       c.messages               AS messages,
       c.bytes                  AS bytes
FROM cost_rows AS c
JOIN node_names AS n ON n.id = c.node_id
JOIN tier_names AS t ON t.id = c.tier_id;

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
       r.kept_spans             AS kept_spans     -- of them, in slow_spans
FROM kept_requests AS r
JOIN node_names AS n ON n.id = r.node_id
JOIN identity_names AS i ON i.id = r.identity_id;

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
       CASE s.outcome WHEN 0 THEN 'ok' WHEN 1 THEN 'error' WHEN 2 THEN 'open' ELSE 'unknown' END AS outcome
FROM kept_spans AS s
JOIN tier_names AS t ON t.id = s.tier_id;
