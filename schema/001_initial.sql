-- kprof's database, version 1. Applied once, in one transaction; later versions are files of their own (002_….sql), never edits here.
--
-- People and programs query the views tier_stats and ledger, whose names and columns are stable. The tables below them are not
-- an interface. Times in the tables are nanoseconds, in the views microseconds.

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
    histogram    BLOB NOT NULL,     -- of the durations of all calls in ns, in the form of include/model/histogram.h
    PRIMARY KEY (resolution_s, bucket_start, node_id, identity_id, tier_id)
) STRICT, WITHOUT ROWID;

-- What was seen and what was lost, one row per resolution, bucket and node: whether the numbers above can be trusted.
CREATE TABLE ledger_rows (
    resolution_s        INTEGER NOT NULL,  -- length of the bucket, seconds
    bucket_start        INTEGER NOT NULL,  -- seconds since 1970 UTC
    node_id             INTEGER NOT NULL REFERENCES node_names,
    requests_complete   INTEGER NOT NULL,  -- requests that entered the statistics
    requests_incomplete INTEGER NOT NULL,  -- left out: messages were lost while they were open, or a return never came
    requests_expired    INTEGER NOT NULL,  -- left out: older than the request timeout
    requests_unsampled  INTEGER NOT NULL,  -- never traced: the sampler passed them over
    messages            INTEGER NOT NULL,  -- trace messages received
    bytes               INTEGER NOT NULL,  -- bytes received on the data stream
    dropped_messages    INTEGER NOT NULL,  -- messages that the trace port dropped, as it counted them
    orphan_returns      INTEGER NOT NULL,  -- returns whose call was never seen
    stale_calls         INTEGER NOT NULL,  -- calls of no open request: it was closed for good, never began, or the collector's caps were reached
    decode_errors       INTEGER NOT NULL,  -- frames that were no trace message, or too long
    paused_ms           INTEGER NOT NULL,  -- ms for which the guard had tracing switched off
    PRIMARY KEY (resolution_s, bucket_start, node_id)
) STRICT, WITHOUT ROWID;

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
       s.p999_ns / 1000.0       AS p999_us
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
       l.paused_ms              AS paused_ms      -- milliseconds
FROM ledger_rows AS l
JOIN node_names AS n ON n.id = l.node_id;
