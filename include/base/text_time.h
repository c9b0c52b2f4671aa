// SPDX-License-Identifier: Apache-2.0
// Times as people write them, and lengths such as 30m. Now is an argument; local time is that of
// the environment (TZ).
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TEXT_TIME_BYTES = 40 };

// Writes "2026-11-20T10:00:00Z", with milliseconds when they are not zero and wanted. ns counts
// from 1970 UTC. Returns out.
char *text_time_format(int64_t ns, bool milliseconds, char out[TEXT_TIME_BYTES]);

// Reads a time: "2026-11-20T10:00:00Z" (UTC); "2026-11-20 10:00", "2026-11-20", "12:00" (today),
// "today", "yesterday", "yesterday 14:30" (local time; a day alone is its begin); "now"; or a
// length back from now such as "30m" or "90s". A T may stand for the space, and seconds may be
// there. Of a local time that comes twice, as summer time ends, the first. Returns false and leaves
// *ns when the text is none of these, and for a local time that is left out as summer time begins.
bool text_time_parse(const char *text, int64_t now_ns, int64_t *ns);

// Reads a length: a number with the unit ms, s, m, h or d, seconds when there is none. False when
// it is none, or negative, or longer than 100 years.
bool text_duration_parse(const char *text, int64_t *ns);

// The stretch of time that another one is compared with, as people say it: "before" (as long, right
// before it), "1h before" (so much earlier), "yesterday", "last week" (local time of the day). It
// has the length of from_ns..until_ns and ends at from_ns at the latest. Returns NULL, or why not:
// static text that goes on after the words asked for, such as "1h before".
const char *text_against_parse(const char *text, int64_t from_ns, int64_t until_ns,
                               int64_t *before_from_ns, int64_t *before_until_ns);
