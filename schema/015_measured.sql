-- SPDX-License-Identifier: Apache-2.0
-- kprof's database, version 15: waiting that is measured. The native tracer tells when a message is sent and when it is taken; what a call
-- waited is the time between, and no estimate. Where scheduling is traced it is known, too, what of that the process was in the run queue:
-- when it did not run as the message was sent, until it did. The rest was in its mailbox.

-- What is there was estimated, all of it.
ALTER TABLE stat_rows ADD COLUMN measured_ns INTEGER NOT NULL DEFAULT 0;  -- ns of wait_ns
ALTER TABLE stat_rows ADD COLUMN mailbox_ns INTEGER;      -- ns of measured_ns, where this and the next are known apart, which need not be
                                                          -- all of it; NULL: of nothing
ALTER TABLE stat_rows ADD COLUMN run_queue_ns INTEGER;    -- ns, likewise
ALTER TABLE path_rows ADD COLUMN measured_ns INTEGER NOT NULL DEFAULT 0;  -- ns, and so are the next two, as in stat_rows
ALTER TABLE path_rows ADD COLUMN mailbox_ns INTEGER;
ALTER TABLE path_rows ADD COLUMN run_queue_ns INTEGER;
ALTER TABLE kept_spans ADD COLUMN measured INTEGER NOT NULL DEFAULT 0;    -- 1: wait_ns is
ALTER TABLE kept_spans ADD COLUMN run_queue_ns INTEGER;   -- ns of wait_ns; NULL: not known
