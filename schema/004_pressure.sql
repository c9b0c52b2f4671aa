-- kprof's database, version 4: what the guard in a node did about overload.

DROP VIEW ledger;

ALTER TABLE ledger_rows ADD COLUMN trips      INTEGER NOT NULL DEFAULT 0;  -- of the breaker, each followed by a pause
ALTER TABLE ledger_rows ADD COLUMN lowered_ms INTEGER NOT NULL DEFAULT 0;  -- ms for which requests were traced, but fewer than asked for

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
       l.trips                  AS trips,
       l.lowered_ms             AS lowered_ms,    -- milliseconds
       -- Whether the bucket can be trusted. Paused: tracing was off for a part of it. Lossy: something was lost or did not come out,
       -- and requests are missing. Late calls, lost tokens and reloads make none of these: their requests are incomplete anyway. Nor does
       -- a trip, whose pause tells by itself, or lowered sampling, which leaves requests_unsampled out by chance.
       CASE WHEN l.paused_ms > 0 THEN 'paused'
            WHEN l.requests_incomplete > 0 OR l.requests_expired > 0 OR l.dropped_messages > 0 OR l.orphan_returns > 0
                 OR l.decode_errors > 0 OR l.unwound_frames > 0 OR l.ambiguous_returns > 0 THEN 'lossy'
            ELSE 'ok' END       AS verdict
FROM ledger_rows AS l
JOIN node_names AS n ON n.id = l.node_id;
