// SPDX-License-Identifier: Apache-2.0
// Which nodes there are and have been since the collector began, what each does, and what happened
// to it lately: what `kprof nodes` shows. What was counted stands in the pipeline. Runs on the
// event loop's thread; times are ns since 1970 UTC.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/rate.h"
#include "ingest/pipeline.h"

enum { ROSTER_TEXT = 200, ROSTER_WORD = 64, ROSTER_RATE_SECONDS = 10 };

struct roster_event {
    int64_t at;
    char text[ROSTER_TEXT];
};

// How a node samples: what its user asked for, and what the guard lets through of it.
struct roster_sampling {
    int64_t one_in;     // 0: none of the three is known
    int64_t per_second; // 0: no such bound
    int64_t level_ppm;  // 1000000: as asked
    int64_t trips;      // of the breaker, since the trace was started
};

// Changes of the level with nothing else between them: one event.
struct roster_levels {
    uint64_t event;              // happened, as that event stood; else it is not the last one
    uint64_t changes;            // in it
    int64_t from_ppm, least_ppm; // the level before the first of them, and the lowest since
};

struct roster_node {
    struct pipeline_node *node;
    bool connected;
    int64_t since; // when it connected, or was lost
    char peer[ROSTER_WORD];
    char otp[ROSTER_WORD];
    char version[ROSTER_WORD]; // of the shim
    int64_t os_pid;
    int64_t creation;         // of the node: another one, another emulator; 0: not known
    int64_t restarted_s;      // when a note of that was made last
    char state[ROSTER_WORD];  // idle, tracing, tripped (by the guard), paused (by a tool), gone
    char tracer[ROSTER_WORD]; // of its latest trace: port or native; "": none yet
    struct roster_sampling sampling;
    struct rate_budget lines; // in the log, of what it does and its shim says
    uint64_t unmarked; // calls of tiers, while nothing begins a request; 0 as soon as something has
    struct roster_event events[LIMIT_NODE_EVENTS]; // a ring
    // events so far; the latest is events[(happened - 1) % LIMIT_NODE_EVENTS]
    uint64_t happened;
    struct roster_levels levels;
    // at the end of each of the last seconds, a ring
    struct roster_counts {
        uint64_t requests, messages, bytes;
    } counts[ROSTER_RATE_SECONDS + 1];
    uint64_t seconds;
};

struct roster {
    struct roster_node *nodes[LIMIT_NODES]; // by the directory's id; NULL: never seen
};

void roster_free(struct roster *r);
// A node has connected. NULL without memory. Valid until roster_free.
struct roster_node *roster_join(struct roster *r, uint16_t id, struct pipeline_node *node,
                                int64_t now);
// The node that has been gone for longest among those whose id is not in `used`; NULL when there is
// none.
struct roster_node *roster_oldest(const struct roster *r, const bool used[LIMIT_NODES]);
// Forgets a node that is gone.
void roster_forget(struct roster *r, struct roster_node *n);
void roster_leave(struct roster_node *n, int64_t now);
// The node's state; told as an event when it is another one.
void roster_state(struct roster_node *n, const char *state, int64_t now);
// Something happened. The text is cut, and cleaned of what is no printable UTF-8.
__attribute__((format(printf, 3, 4))) void roster_event(struct roster_node *n, int64_t now,
                                                        const char *format, ...);
// What a node says of itself: its state, how it samples, and why; an empty text is no event. Where
// nothing is new but the level, which the guard changes every few seconds under load, it is one
// event with such changes right before it: its time is the first one's, its text counts them, says
// until when and ends with the last one's.
void roster_told(struct roster_node *n, const char *state, const struct roster_sampling *sampling,
                 struct slice text, int64_t now);
// A second has passed.
void roster_second(struct roster *r);
// Requests that finished, messages and their bytes, per second, over the last ten seconds or since
// the node is known.
struct roster_rates {
    double requests, messages, bytes;
};
struct roster_rates roster_rates(const struct roster_node *n);
// The node of that name, or NULL.
struct roster_node *roster_find(const struct roster *r, struct slice name);
