-- SPDX-License-Identifier: Apache-2.0
-- kprof's database, version 7: every table, whole. It is applied once, in one transaction. Later versions are files of their own
-- (008_….sql), never edits here. Files of versions 1 to 6, from before the first release, are refused.
--
-- People and programs query the views (views.sql); the tables are not an interface. Times in the tables are nanoseconds.

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
