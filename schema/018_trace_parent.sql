-- SPDX-License-Identifier: Apache-2.0
-- kprof's database, version 18: which span of somebody's trace has asked for a web request, as its header traceparent (W3C Trace Context)
-- told.

-- As the header has them, in lower case: the trace's id (32 digits), the span's (16). NULL: none is known.
ALTER TABLE kept_requests ADD COLUMN trace_id TEXT;
ALTER TABLE kept_requests ADD COLUMN parent_span_id TEXT;
ALTER TABLE kept_requests ADD COLUMN trace_flags INTEGER;  -- bit 0: who asked keeps the trace, bit 1: its id was made at random

-- A part on another node finds the request that it is of, and its trace.
CREATE INDEX kept_requests_by_label ON kept_requests (label, node_id) WHERE trace_id IS NOT NULL;
