// SPDX-License-Identifier: Apache-2.0
// One connected shim, as the collector sees it: its messages to the pipeline, its node's wishes,
// its recording. Runs on the event loop's thread, which visits the node's pipeline; but what its
// data connections bring comes on the pipeline's own thread, where it has one, and so do the
// pipeline's callbacks. What these have for the shim waits until the event loop's thread sends it.
#pragma once

#include "app/flame_shim.h"
#include "app/roster.h"
#include "base/buffer.h"
#include "base/log.h"
#include "ingest/merge.h"
#include "ingest/pipeline.h"
#include "ingest/recording.h"
#include "net/intake.h"
#include "net/server.h"
#include "store/writer.h"

struct shim_link;
struct flames;

// Who else has to do with nodes.
struct shim_steering {
    void *context;
    // A node's answer to what it was steered to.
    void (*steered)(void *context, const struct shim_link *shim, struct control_map answer);
    // Marks the nodes, by directory id, that must not be forgotten.
    void (*mark)(const void *context, bool nodes[LIMIT_NODES]);
};

struct shim_link {
    struct shim_links *links;
    struct shim_link *previous, *next; // all links of a collector
    struct pipeline_node *node;
    struct roster_node *seen;
    struct session *session;
    struct recording *recording; // NULL: none
    struct merge *merge;         // of its data connections; NULL unless it streams
    uint16_t node_id;
    struct shim_ingest *ingest;
    bool fed_apart;     // its node's pipeline takes in what its thread has read
    struct buffer said; // for the shim, meanwhile
    bool said_full;     // some of that had no room
    bool stats_wanted;
    bool slow_wanted;         // slow requests are to be sent to it
    struct triggers_p99 *p99; // of tiers, that are to be sent to it; NULL: of none
    // the shim said that its trace ended in order, so that the stream's end loses nothing
    bool stopped_cleanly;
    bool streaming;              // a stream of the node is open in the pipeline
    struct pipeline_total total; // told of a stream that still comes; labels 0: of none
    bool output_full;            // something was left out for it; told once
    int64_t heard;               // when its shim last said something, on the monotonic clock
};

// A pipeline, and how it is fed.
struct shim_ingest {
    struct shim_links *links;
    struct pipeline *pipeline;
    struct intake *intake; // the thread that feeds it; NULL: the event loop's does
    // behind its gate: what it has for shims, bytes, and whether it has told so
    size_t said;
    bool has_said;
};

struct shim_links {
    struct shim_ingest ingests[LIMIT_PIPELINES];
    uint32_t ingest_count; // at least one
    struct roster *roster; // told what happens
    struct shim_steering steering;
    struct flames *flames;         // full traces
    struct writer *writer;         // of notes; NULL: none are made
    struct recording_place record; // dir NULL: none
    int64_t slow_ns;               // of nodes that do not say themselves when a request is slow
    struct shim_link *first;
    bool shutting_down; // streams end because we end
};

// The server's events, for these links.
struct server_events shim_link_events(struct shim_links *links);
// Logs what a node does and says. One that never stops fills no disk, and leaves room for others.
__attribute__((format(printf, 3, 4))) void
shim_link_tell(const struct shim_link *link, enum log_level level, const char *format, ...);
// Time has passed, for the pipelines and the shims.
void shim_links_tick(struct shim_links *links, struct pipeline_now now);
// Sends what the thread of a struct shim_ingest has for shims; and forgets what it has for one.
void shim_links_say(void *ingest);
void shim_link_unsay(struct shim_link *link);
// Ends the stream that is open in the pipeline, and its recording.
void shim_link_end_stream(struct shim_link *link);
// Compares what the shim has told of a stream with what came of it, once nothing more can come.
void shim_link_settle(struct shim_link *link);

// -- shim_messages.c ------------------------------------------------------------------------------

// The shim says something.
void shim_link_message(struct shim_link *link, struct slice type, struct control_map message);

// -- shim_wishes.c --------------------------------------------------------------------------------

// The pipeline's callbacks; their user is a shim_link.
void shim_link_identify(void *user, uint32_t id, const struct traced_function *function,
                        struct slice arguments);
void shim_link_disarm(void *user, const struct traced_function *function);
void shim_link_stale(void *user, const char *tier, uint64_t label);
void shim_link_calls(void *user, const struct pipeline_calls *calls);
void shim_link_slow(void *user, const struct pipeline_calls *calls);
// Sends messages, or leaves them out when too much waits for the shim already.
void shim_link_send(struct shim_link *link, const struct buffer *messages);
// The same for a full trace.
struct flame_shim shim_link_of_flame(struct shim_link *link);
// Some had to be left out: tells so, once.
void shim_link_left_out(struct shim_link *link);
