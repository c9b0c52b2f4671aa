// SPDX-License-Identifier: Apache-2.0
// The tools: what they ask, what they watch, what they want of a node. They are connected, and then
// speak through the server's events for sessions of role "tool" (codec/protocol.h); or they are a
// part of this program that speaks as they do. Runs on the event loop's thread.
#pragma once

#include "app/flames.h"
#include "app/roster.h"
#include "app/shim_link.h"
#include "export/export.h"
#include "net/server.h"
#include "store/writer.h"

struct tool_links {
    struct pipeline *pipeline; // or one of those that share its names
    struct shim_links *shims;
    struct roster *roster;
    struct writer *writer;     // asked whether it can write; NULL: nothing is written
    struct exporter *exporter; // asked how it stands; NULL: nothing is exported
    struct otlp *otlp;         // likewise
    const char *database;      // absolute path; NULL: not known
    struct flames *flames;     // full traces
    struct tool_link *first;
    struct watch *watches; // the nodes that somebody watches
    int64_t last_id;       // of the questions to nodes
};

// Who hears what a tool is told.
struct tool_ear {
    void *user;
    // A message, in the bytes of codec/control.h; not to be kept. False: it was left out. It must
    // not close the link.
    bool (*hear)(void *user, const struct buffer *message);
    const char *peer; // for the log; lives as long as the link
};

// A tool of this program. NULL without memory. Give it back with tool_link_close.
struct tool_link *tool_link_open(struct tool_links *links, const struct tool_ear *ear);
// It asks; what it is told may come before this returns, or later.
void tool_link_ask(struct tool_link *t, struct slice type, struct control_map message);
// It is gone: what it wanted of nodes is not told to it any more, and its full trace ends.
void tool_link_close(struct tool_link *t);

// The server's events, for these links.
struct server_events tool_link_events(struct tool_links *links);
// Some ten times a second: tells of notes that are written. now: ns of the monotonic clock.
void tool_link_tick(struct tool_links *links, int64_t now);
// A second has passed: sends the rows of watched nodes, gives up on nodes that do not answer. now:
// ns of the monotonic clock.
void tool_link_second(struct tool_links *links, int64_t now);
// Has nodes' answers brought to the tool that wanted them, and keeps the nodes that somebody
// watches or waits for.
struct shim_steering tool_link_steering(struct tool_links *links);
