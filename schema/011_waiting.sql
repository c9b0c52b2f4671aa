-- SPDX-License-Identifier: Apache-2.0
-- kprof's database, version 11: waiting as a time of its own. What a caller waits until its callee begins is nobody's self time any more.
-- What the times of a request add up to stands in views.sql.

-- In rows that an older version has begun they are NULL: there the waiting is within self_ns of who waits, and async calls covered their
-- callers.
ALTER TABLE stat_rows ADD COLUMN waiting_ns INTEGER;      -- ns that requests waited for calls of the tier to begin, each moment once; of
                                                          -- "_total": for calls of any tier
ALTER TABLE stat_rows ADD COLUMN parallel_ns INTEGER;     -- ns, of "_total" alone, else 0: what counts more than once
ALTER TABLE path_rows ADD COLUMN waiting_ns INTEGER;      -- ns, as in stat_rows
ALTER TABLE kept_spans ADD COLUMN waiting_ns INTEGER;     -- ns, of this call; 0 when async or open
ALTER TABLE kept_requests ADD COLUMN uncovered_ns INTEGER;  -- ns of no call, nor waiting
ALTER TABLE kept_requests ADD COLUMN parallel_ns INTEGER;   -- ns that count more than once
