-- SPDX-License-Identifier: Apache-2.0
-- kprof's database, version 18: which span of somebody's trace has asked for a web request, as its header traceparent (W3C Trace Context)
-- told.
--
-- People and programs query the view slow_requests, whose name and columns are stable.

-- As the header has them, in lower case: the trace's id (32 digits), the span's (16). NULL: none is known.
ALTER TABLE kept_requests ADD COLUMN trace_id TEXT;
ALTER TABLE kept_requests ADD COLUMN parent_span_id TEXT;
ALTER TABLE kept_requests ADD COLUMN trace_flags INTEGER;  -- bit 0: who asked keeps the trace, bit 1: its id was made at random

-- A part on another node finds the request that it is of, and its trace.
CREATE INDEX kept_requests_by_label ON kept_requests (label, node_id) WHERE trace_id IS NOT NULL;

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
       r.parallel_ns / 1000.0   AS parallel_us,   -- µs that count more than once, see tier_stats
       r.trace_id               AS trace_id,      -- of the trace that asked for it, in hex; NULL: not known,
       r.parent_span_id         AS parent_span_id -- and so is this: of the span in that
FROM kept_requests AS r
JOIN node_names AS n ON n.id = r.node_id
JOIN identity_names AS i ON i.id = r.identity_id
LEFT JOIN node_names AS m ON m.id = r.maker_id;
