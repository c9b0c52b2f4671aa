-- SPDX-License-Identifier: Apache-2.0
-- kprof's database, version 14: labels of profiles. Those that come by themselves have one, and room of their own, so that they push out
-- none that somebody asked for. One without a name is called by its label.

ALTER TABLE profile_rows ADD COLUMN label TEXT NOT NULL DEFAULT '';  -- empty: somebody asked for it
