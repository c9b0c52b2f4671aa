// SPDX-License-Identifier: Apache-2.0
// The connected tools: what they ask, what they watch, what they want of a node. The server's
// events for sessions of role "tool", see codec/control.h. Runs on the event loop's thread.
#pragma once

#include "app/flames.h"
#include "app/roster.h"
#include "app/shim_link.h"
#include "net/server.h"
#include "store/writer.h"

struct tool_links {
    struct pipeline *pipeline;
    struct shim_links *shims;
    struct roster *roster;
    struct writer *writer; // asked whether it can write; NULL: nothing is written
    const char *database;  // absolute path; NULL: not known
    struct flames *flames; // full traces
    struct tool_link *first;
    struct watch *watches; // the nodes that somebody watches
    int64_t last_id;       // of the questions to nodes
};

// The server's events, for these links.
struct server_events tool_link_events(struct tool_links *links);
// A second has passed: sends the rows of watched nodes, gives up on nodes that do not answer. now:
// ns of the monotonic clock.
void tool_link_second(struct tool_links *links, int64_t now);
// Has nodes' answers brought to the tool that wanted them, and keeps the nodes that somebody
// watches or waits for.
struct shim_steering tool_link_steering(struct tool_links *links);
