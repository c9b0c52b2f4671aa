// SPDX-License-Identifier: Apache-2.0
// What the page tells of the nodes as they are now, and what it orders of them. It asks as a tool
// does (tool_link.h): there is one way to steer a node, to begin a full trace and to keep a note.
// Runs on the event loop's thread.
#pragma once

#include "app/page_runs.h"
#include "app/tool_link.h"
#include "codec/json.h"
#include "web/order.h"

struct page_asked;

// A full trace that was asked for, and what was told of it last.
struct page_flame {
    int64_t id; // 0: none
    int64_t begun_s, requests, seconds;
    char node[ORDER_NAME_BYTES], identity[ORDER_NAME_BYTES];
    struct buffer told; // flaming or flamed, as it came; empty: nothing yet
    bool over;
};

struct page_control {
    struct tool_links *tools;
    struct page_asked *first;                   // that are not over
    struct page_flame flames[LIMIT_WEB_FLAMES]; // a ring, by their ids
    int64_t last_flame;                         // the id of the latest
    struct page_runs runs;
};

// Does what was ordered, and answers it (web_options.order).
void page_control_order(struct page_control *c, const struct order *order, struct web_order *from);
// Writes the keys nodes, flames and runs into an open JSON object (web_options.state).
void page_control_state(struct page_control *c, struct json *j);
// Some ten times a second.
void page_control_tick(struct page_control *c);
// Answers what is not answered yet, and ends what it has asked for. Before web_stop.
void page_control_close(struct page_control *c);
