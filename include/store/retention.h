// How long rows are kept, by their resolution. A row goes when its bucket lies this far back.
//
// A key's row takes about 500 bytes. With 500 keys (50 identities of 10 tiers), in the worst case of every
// key active all the time: 4.3 GB, 22 GB and 8.8 GB; real systems have a tenth of that, as most identities
// are rare.
#pragma once

// Buckets shorter than a minute: to look into what happened today or yesterday, second by second.
#define RETENTION_FINE_S (2LL * 86400)
// Shorter than an hour: to compare with the same time last week, and the last four of them.
#define RETENTION_MINUTES_S (30LL * 86400)
// The rest: to compare with the same season last year.
#define RETENTION_HOURS_S (2LL * 365 * 86400)

// Rows deleted in one transaction: a few milliseconds.
#define RETENTION_STEP_ROWS 2000
// Seconds between two looks for old rows.
#define RETENTION_PERIOD_S 60
