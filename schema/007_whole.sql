-- SPDX-License-Identifier: Apache-2.0
-- kprof's database, version 7: every table and view, whole. It is applied once, in one transaction. Later versions are files of their own
-- (008_….sql), never edits here. Files of versions 1 to 6, from before the first release, are refused.
--
-- People and programs query the views, whose names and columns are stable: tier_stats, path_stats, tier_costs, ledger, slow_requests and
-- slow_spans. The tables below them are not an interface. Times in the tables are nanoseconds, in the views microseconds.

-- Names are stored once; rows hold their ids. The ids mean nothing outside this file.
CREATE TABLE node_names (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE  -- as Erlang names it: shop@host
) STRICT;

CREATE TABLE identity_names (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE  -- "_total": all identities together; "undefined": nothing named the request; "_other": past the cap
) STRICT;

CREATE TABLE tier_names (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE  -- "_total": the whole request, from its begin to its end
) STRICT;

CREATE TABLE path_names (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE  -- tiers from the request down, joined with " > "; "_other": past the cap
) STRICT;

-- One row per resolution, bucket, node, identity and tier. Every request stands here at each resolution, under its own identity
-- and again under "_total": never add over resolutions or identities. Only complete requests are counted, in the bucket in
-- which they ended. A request is one call of the tier "_total", an error when it ended in an exception.
CREATE TABLE stat_rows (
    resolution_s INTEGER NOT NULL,  -- length of the bucket, seconds
    bucket_start INTEGER NOT NULL,  -- seconds since 1970 UTC, a multiple of resolution_s
    node_id      INTEGER NOT NULL REFERENCES node_names,
    identity_id  INTEGER NOT NULL REFERENCES identity_names,
    tier_id      INTEGER NOT NULL REFERENCES tier_names,
    requests     INTEGER NOT NULL,  -- requests that called the tier at least once
    calls        INTEGER NOT NULL,  -- calls of the tier, recursive and async ones too
    errors       INTEGER NOT NULL,  -- calls that ended in an exception
    async_calls  INTEGER NOT NULL,  -- calls that ended after their request had ended
    total_ns     INTEGER NOT NULL,  -- ns, inclusive time of the outermost calls that were not async
    self_ns      INTEGER NOT NULL,  -- ns, the same less what their child spans cover, in whatever process these ran
    async_ns     INTEGER NOT NULL,  -- ns, inclusive time of the async calls
    duration_ns  INTEGER NOT NULL,  -- ns, sum of the durations of all calls; mean = duration_ns / calls
    square_ns    REAL NOT NULL,     -- ns², sum of their squares
    wait_ns      INTEGER NOT NULL,  -- ns, between what the caller did last and the start of calls that came by a message or a spawn from
                                    -- another process: an upper bound of the time in the mailbox and in the run queue
    gc_ns        INTEGER NOT NULL,  -- ns, garbage collection while a call was the innermost one of its process; 0 unless traced
    off_cpu_ns   INTEGER NOT NULL,  -- ns, the same for being scheduled out
    min_ns       INTEGER,           -- ns, shortest call; NULL without calls
    max_ns       INTEGER,           -- ns, longest call; NULL without calls
    stddev_ns    REAL,              -- ns, standard deviation of the durations of all calls; NULL without calls
    p25_ns       REAL,              -- ns, quantiles of the durations of all calls, within 1.1 % and
    p50_ns       REAL,              -- between min_ns and max_ns; NULL without calls. Stored, so that
    p75_ns       REAL,              -- the views work in any sqlite3 shell
    p90_ns       REAL,
    p95_ns       REAL,
    p99_ns       REAL,
    p999_ns      REAL,
    histogram    BLOB NOT NULL,     -- of the durations of all calls in ns, in the form of include/model/stats/histogram.h
    PRIMARY KEY (resolution_s, bucket_start, node_id, identity_id, tier_id)
) STRICT, WITHOUT ROWID;

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
    calls        INTEGER NOT NULL,  -- calls of the tier under a token, of complete requests or not,
    stale_calls  INTEGER NOT NULL,  -- and of them those that are in the ledger's stale_calls
    PRIMARY KEY (resolution_s, bucket_start, node_id, tier_id)
) STRICT, WITHOUT ROWID;

-- What was seen and what was lost, one row per resolution, bucket and node: whether the numbers above can be trusted.
CREATE TABLE ledger_rows (
    resolution_s        INTEGER NOT NULL,  -- length of the bucket, seconds
    bucket_start        INTEGER NOT NULL,  -- seconds since 1970 UTC
    node_id             INTEGER NOT NULL REFERENCES node_names,
    requests_complete   INTEGER NOT NULL,  -- requests that entered the statistics
    requests_incomplete INTEGER NOT NULL,  -- left out; why, the columns incomplete_… tell, each request under the one reason that applies
                                           -- first
    requests_expired    INTEGER NOT NULL,  -- left out: older than the request timeout
    requests_unsampled  INTEGER NOT NULL,  -- never traced: the sampler passed them over
    messages            INTEGER NOT NULL,  -- trace messages received
    bytes               INTEGER NOT NULL,  -- bytes received on the data stream
    dropped_messages    INTEGER NOT NULL,  -- messages that the trace port dropped, as it counted them
    orphan_returns      INTEGER NOT NULL,  -- returns whose call was never seen
    stale_calls         INTEGER NOT NULL,  -- calls of no open request: it was closed for good, while they ran or before, never began, or
                                           -- the collector's caps were reached
    decode_errors       INTEGER NOT NULL,  -- frames that were no trace message, or too long
    paused_ms           INTEGER NOT NULL,  -- ms for which nothing was traced because somebody asked for that
    unwound_frames      INTEGER NOT NULL,  -- calls that were left without a return of their own
    ambiguous_returns   INTEGER NOT NULL,  -- return_to messages that could not be joined with certainty
    lost_tokens         INTEGER NOT NULL,  -- requests whose process had lost the token at their end
    reloads             INTEGER NOT NULL,  -- code reloads that took tiers' patterns off for a moment
    trips               INTEGER NOT NULL,  -- of the breaker: for a pause after each, everything was taken off
    lowered_ms          INTEGER NOT NULL,  -- ms for which requests were traced, but fewer than asked for
    incomplete_loss     INTEGER NOT NULL,  -- messages were lost while they were open
    incomplete_token    INTEGER NOT NULL,  -- they lost their token on the way
    incomplete_cause    INTEGER NOT NULL,  -- whose work a call was cannot be told (a pool, a lock, a cache)
    incomplete_return   INTEGER NOT NULL,  -- a return never came, or could not be joined
    incomplete_reload   INTEGER NOT NULL,  -- a function was not traced for a while
    incomplete_large    INTEGER NOT NULL,  -- they had more calls than the collector takes
    incomplete_room     INTEGER NOT NULL,  -- there was no memory for them, or a cap was reached
    incomplete_end      INTEGER NOT NULL,  -- the trace began or ended while they were open
    calls               INTEGER NOT NULL,  -- calls of tiers under a token, of complete requests or not, the stale ones too
    recredited_calls    INTEGER NOT NULL,  -- calls that were given to another request than their token's, as that one had asked for them
    unknown_outcomes    INTEGER NOT NULL,  -- calls of tiers without return values, in complete requests, of which nobody can tell whether
                                           -- they ended by an exception
    tripped_ms          INTEGER NOT NULL,  -- ms for which nothing was traced because the guard had taken everything off
    away_ms             INTEGER NOT NULL,  -- ms for which nothing was traced because no collector was there
    untraced_ms         INTEGER NOT NULL,  -- ms for which functions were not traced that should have been, as after a code reload; several
                                           -- at a time count once
    unmarked_calls      INTEGER NOT NULL,  -- calls of tiers that were counted while nothing had begun a request: there is no entry, and
                                           -- nothing marks requests
    coarse_rows         INTEGER NOT NULL,  -- times that a row of tier_stats was added to for whose histogram the collector had no room: its
                                           -- quantiles may be off by more than 1.1 %
    unwritten_rows      INTEGER NOT NULL,  -- times that a row of these statistics, or a kept request, could not be written, as what stands
                                           -- in the file for it is malformed
    PRIMARY KEY (resolution_s, bucket_start, node_id)
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
    kept_spans   INTEGER NOT NULL,  -- of them, the first by start
    maker_id     INTEGER REFERENCES node_names, -- the node that has made the label; NULL: the request's own node
    label        INTEGER            -- what the parts of a request on several nodes have in common, a number without further meaning;
                                    -- NULL: not known
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
    caller      INTEGER,           -- the process that its token came from, of another node; NULL: none, or not known. Programs that
                                   -- know how processes are numbered (message_process in include/model/message/message.h) put the parts of a
                                   -- request together by it, as kprof slow does
    PRIMARY KEY (request_id, span)
) STRICT, WITHOUT ROWID;

-- Spans go with their request, whoever deletes it.
CREATE TRIGGER kept_requests_deleted AFTER DELETE ON kept_requests BEGIN
    DELETE FROM kept_spans WHERE request_id = old.id;
END;

-- Durations that can be divided by counts. total_us is what a request spends in a tier: calls inside of calls of the same tier and async
-- ones are no part of it, but of calls, so that total_us / calls is no mean of anything. wait_us / calls is the mean waiting of all calls.
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
       (s.duration_ns - s.async_ns) / 1000.0 AS sync_us  -- of them: sync_us / sync_calls is their mean, async_us / async_calls the others'
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
       (p.duration_ns - p.async_ns) / 1000.0 AS sync_us  -- of them: sync_us / sync_calls is their mean, async_us / async_calls the others'
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
       r.label                  AS label          -- the same for all parts of one request; NULL: not known
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
       r.maker_id IS NOT NULL   AS remote         -- 1: called for a request of another node
FROM kept_spans AS s
JOIN kept_requests AS r ON r.id = s.request_id
JOIN tier_names AS t ON t.id = s.tier_id;
