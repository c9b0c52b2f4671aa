-- SPDX-License-Identifier: Apache-2.0
-- kprof's database, version 17: what kprof-collector --otlp has still to send. No views: the tables are not an interface.

-- One row where a database is followed by --otlp, from its first one until --otlp none. What has been sent is all up to a place; what is
-- behind that is sent next, the oldest first.
CREATE TABLE otlp_state (
    id             INTEGER PRIMARY KEY CHECK (id = 1),
    database_id    INTEGER NOT NULL,  -- chosen at random: spans of two databases are never taken for each other's
    request_id     INTEGER,           -- of kept_requests: those up to this one are sent as traces; NULL: none are
    bucket_start   INTEGER,           -- of stat_rows: the requests up to this bucket, node and identity are sent as metrics; NULL: none are
    node_id        INTEGER,
    identity_id    INTEGER,
    resolution_s   INTEGER NOT NULL,  -- of these rows, seconds
    refused_spans  INTEGER NOT NULL,  -- that the receiver has refused
    refused_points INTEGER NOT NULL,  -- data points of metrics, likewise
    lost_requests  INTEGER NOT NULL,  -- deleted for their age before they were sent
    lost_buckets   INTEGER NOT NULL,  -- of nodes, likewise
    late_requests  INTEGER NOT NULL   -- that were counted in buckets which had been sent: they are in no metric
) STRICT;

-- What the receiver refused, the last ones of it.
CREATE TABLE otlp_refusals (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    at_s   INTEGER NOT NULL,  -- seconds since 1970 UTC
    signal TEXT NOT NULL,     -- traces, metrics
    first  INTEGER NOT NULL,  -- among the kept requests from this id, or the buckets from this start,
    last   INTEGER NOT NULL,  -- to this one
    items  INTEGER NOT NULL,  -- spans, data points
    reason TEXT NOT NULL      -- in the receiver's words
) STRICT;
