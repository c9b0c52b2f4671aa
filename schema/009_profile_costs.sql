-- SPDX-License-Identifier: Apache-2.0
-- kprof's database, version 9: what a profile has cost, what its times lack, and where it was not followed.

-- Of profiles that version 8 has kept, 0 and NULL: not known.
ALTER TABLE profile_rows ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;           -- of `messages`
ALTER TABLE profile_rows ADD COLUMN functions INTEGER NOT NULL DEFAULT 0;       -- that had patterns
ALTER TABLE profile_rows ADD COLUMN stood_ns INTEGER NOT NULL DEFAULT 0;        -- ns for which they had them
ALTER TABLE profile_rows ADD COLUMN tiers_rested INTEGER NOT NULL DEFAULT 0;    -- 1: the tiers were not traced meanwhile (before OTP 27)
ALTER TABLE profile_rows ADD COLUMN otp TEXT NOT NULL DEFAULT '';               -- the node's release; empty: not known
ALTER TABLE profile_rows ADD COLUMN asleep_in_self INTEGER NOT NULL DEFAULT 0;  -- 1: that time was not traced, and is in self
ALTER TABLE profile_rows ADD COLUMN gc_in_self INTEGER NOT NULL DEFAULT 0;      -- likewise
ALTER TABLE profile_rows ADD COLUMN longest_identity TEXT;                      -- of the request in `longest`

-- Where scheduling is not traced, garbage collection is not either.
UPDATE profile_rows SET asleep_in_self = 1, gc_in_self = 1
WHERE CASE WHEN json_valid(settings) THEN json_extract(settings, '$.scheduling') END = 0;
UPDATE profile_rows
SET functions = max(0, CAST(CASE WHEN json_valid(settings) THEN coalesce(json_extract(settings, '$.functions'), 0) END AS INTEGER))
WHERE json_valid(settings);

-- The identities of its requests, and how long those took that only the tiers traced, before it and between its windows.
CREATE TABLE profile_request_rows (
    profile_id    INTEGER NOT NULL REFERENCES profile_rows,
    identity_id   INTEGER NOT NULL REFERENCES identity_names,
    requests      INTEGER NOT NULL,  -- traced fully
    duration_ns   INTEGER NOT NULL,  -- ns, of these from begin to end
    others        INTEGER NOT NULL,  -- that only the tiers traced
    others_ns     INTEGER NOT NULL,  -- ns, of these
    PRIMARY KEY (profile_id, identity_id)
) STRICT, WITHOUT ROWID;

-- Processes that it was not followed into: requests went through them, and they had no flag yet.
CREATE TABLE profile_missed_rows (
    profile_id    INTEGER NOT NULL REFERENCES profile_rows,
    place         INTEGER NOT NULL,  -- in the order in which they came
    pid           TEXT NOT NULL,     -- such as <0.123.0>
    name          TEXT NOT NULL,     -- its registered name, or the function that it began with; empty: it was gone
    requests      INTEGER NOT NULL,  -- of the profile's, that went through it
    PRIMARY KEY (profile_id, place)
) STRICT, WITHOUT ROWID;

DROP TRIGGER profile_rows_deleted;
CREATE TRIGGER profile_rows_deleted AFTER DELETE ON profile_rows BEGIN
    DELETE FROM profile_frame_rows WHERE profile_id = old.id;
    DELETE FROM profile_stack_rows WHERE profile_id = old.id;
    DELETE FROM profile_value_rows WHERE profile_id = old.id;
    DELETE FROM profile_request_rows WHERE profile_id = old.id;
    DELETE FROM profile_missed_rows WHERE profile_id = old.id;
END;
