// SPDX-License-Identifier: Apache-2.0
// What the files of connected tools share.
//
//   tool_link.c    tools come, ask and go; full traces, runs of sampling and notes that they want
//   tool_nodes.c   what nodes there are
//   tool_watch.c   nodes that are watched: their rows, every second
//   tool_steer.c   orders to nodes, and the nodes' answers
#pragma once

#include "app/tool_link.h"

// A node that tools watch; gone with the last of them.
struct watch {
    struct watch *next;
    struct roster_node *node;
    struct live *rows;
    struct pipeline_totals before; // at the last sending
    int64_t since;                 // then, on the monotonic clock
};

struct tool_link {
    struct tool_links *links;
    struct tool_link *previous, *next;
    struct tool_ear ear;
    bool output_full;            // something was left out for it; told once
    struct watch *watch;         // NULL: none
    struct roster_node *steered; // the node that has not answered yet, NULL: none
    int64_t steer_id;            // names that question
    bool lists;                  // which changes nothing
    int64_t deadline;            // for the answer, on the monotonic clock
    int64_t ticket;              // of a note that is not written yet, 0: none
    struct note note;
    int64_t note_deadline; // likewise
};

// Sends what control_end accepts, and frees the buffer. What the tool does not read is left out.
void tool_send(struct tool_link *t, struct buffer *b, struct control_writer *w);
// Answers that something cannot be done, and why.
void tool_refuse(struct tool_link *t, const char *text);
// The node that a message names; NULL and the tool is told.
struct roster_node *tool_named_node(struct tool_link *t, struct control_map message);
// The connected shim of a node, or NULL.
struct shim_link *tool_shim_of(const struct tool_links *links, const struct roster_node *node);

// Tells all nodes, one message each, and then how many there are.
void tool_nodes(struct tool_link *t);

// Watches the node that a message names, and the one before no more.
void tool_watch(struct tool_link *t, struct control_map message);
void tool_watch_stop(struct tool_link *t);
// Sends the rows of watched nodes. now: ns of the monotonic clock.
void tool_watch_second(struct tool_links *links, int64_t now);

// Hands an order on to the node that a message names.
void tool_steer(struct tool_link *t, struct control_map message);
// A node has answered one: the tool that gave it is told. context: the tool_links.
void tool_steered(void *context, const struct shim_link *shim, struct control_map answer);
// Gives up on nodes that do not answer. now: ns of the monotonic clock.
void tool_steer_second(struct tool_links *links, int64_t now);
