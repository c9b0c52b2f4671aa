// SPDX-License-Identifier: Apache-2.0
// How long rows are kept, by their resolution. A row goes when its bucket lies this far back.
//
// A key's row takes about 500 bytes. With 500 keys (50 identities of 10 tiers), in the worst case
// of every key active all the time: 4.3 GB, 22 GB and 8.8 GB; real systems have a tenth of that, as
// most identities are rare. A path's row takes about 50 bytes.
#pragma once

// Buckets shorter than a minute: to look into what happened today or yesterday, second by second.
#define RETENTION_FINE_S (2LL * 86400)
// Shorter than an hour: to compare with the same time last week, and the last four of them.
#define RETENTION_MINUTES_S (30LL * 86400)
// The rest: to compare with the same season last year.
#define RETENTION_HOURS_S (2LL * 365 * 86400)

// Requests that are kept whole, from their begin: to look at what was slow last week. A request
// takes about 100 bytes, and each of its spans 45.
#define RETENTION_KEPT_S (7LL * 86400)
// Not more than this many, with not more spans together: 0.5 GB. The oldest go first.
#define RETENTION_KEPT_REQUESTS 100000
#define RETENTION_KEPT_SPANS 10000000

// Profiles, from their end: to compare with last week.
#define RETENTION_PROFILES_S (7LL * 86400)
// Rows of all profiles of a kind that somebody asked for, some 25 bytes each: 0.5 GB. The oldest go
// first, of the node that has most.
#define RETENTION_PROFILE_ROWS 20000000
#define RETENTION_ROW_BYTES 25
// Those of all that come by themselves, and so have a label: 1.5 GB, a day and a half of ten nodes
// whose stacks are sampled for ever. The oldest go first, of the node and label that have most: a
// sampler pushes out what is its own.
#define RETENTION_LABELLED_ROWS 60000000

// Notes, from when they are of (NOTE_KEPT_S): as long as the longest statistics. Not more than this
// many, some 100 bytes each; the oldest go first.
#define RETENTION_NOTES 10000

// Rows deleted in one transaction: a few milliseconds. A bucket is never left in part, however many
// rows it has.
#define RETENTION_STEP_ROWS 2000
// Kept requests and their spans likewise; as many as a second may bring, for there is a step a
// second at most.
#define RETENTION_STEP_SPANS 50000
// Seconds between two looks for old rows.
#define RETENTION_PERIOD_S 60
// A clock that is set days ahead makes everything old. Where it says this much more than the time
// that has passed since the last look, or at first than the newest data, nothing is deleted
#define RETENTION_AHEAD_S 86400LL
// for this many seconds, in which it can be put right.
#define RETENTION_DOUBT_S 3600
