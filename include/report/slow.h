// SPDX-License-Identifier: Apache-2.0
// Requests that were kept whole, with what other nodes did for them, and as JSON. One thread at a
// time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/text_time.h"
#include "store/query_profile.h"
#include "store/query_slow.h"

// Profiles of requests of the same identity that are named, the latest.
enum { SLOW_PROFILES = 3 };

// A request, what other nodes did for it among its own spans.
struct slow_whole {
    struct slow_spans spans;
    struct slow_spans *parts;     // of spans.part_count: where the other nodes' texts lie
    struct profile_list profiles; // of its node and identity: the code that such requests run
};

enum slow_read { SLOW_FOUND, SLOW_NONE, SLOW_UNREAD, SLOW_NO_MEMORY };

// Reads a request by its id. SLOW_NONE: there is none, or no more; SLOW_UNREAD: store_error says
// why. Give the answer back with slow_whole_free, whatever came of it.
enum slow_read slow_read(struct store *store, int64_t id, struct slow_whole *out);
void slow_whole_free(struct slow_whole *whole);

// When a request began, as the view slow_requests tells it: 2026-11-20T10:00:00.123456Z. Returns
// out.
char *slow_started(int64_t ns, char out[TEXT_TIME_BYTES]);

// Puts what other nodes did for a request among its own spans: done[i] is what of->parts[i] was,
// without spans where that is not known, and must stay as long. What a process of another node
// asked for stands below its call; a part stands where its own node's clock says that it began, but
// within that call. Where nothing is known of that process it stands within the request, below the
// call of the request's own node that was open then. What stands below a call is not its self time,
// also where its own node knew nothing of it. False without memory: nothing has changed.
bool slow_join(struct slow_spans *of, const struct slow_spans *done);

// One JSON object and a newline each; described in `kprof slow --help`. Check out->failed.
void slow_list_json(const struct slow_list *list, struct buffer *out);
// profiles: of struct slow_whole.
void slow_spans_json(const struct slow_spans *spans, const struct profile_list *profiles,
                     struct buffer *out);
