// SPDX-License-Identifier: Apache-2.0
// Runs of stack sampling that the page asks for, as a tool would: those whose samples are kept as a
// profile, and looks at what a node does now, of which nothing is kept, and which end when nobody
// asks for them any more. A node has one run at a time: a look gives way to a run that is to be
// kept, and is of its samples then. Runs on the event loop's thread.
#pragma once

#include "app/tool_link.h"
#include "codec/json.h"
#include "web/order.h"

struct page_run;

struct page_runs {
    struct tool_links *tools;
    struct page_run *first; // the latest
    int64_t last_id;
};

// Does what was ordered and answers it, at once or in a tick. False: it is none of these orders.
bool page_runs_order(struct page_runs *runs, const struct order *order, struct web_order *from);
// Writes the key runs, those that are kept, into an open JSON object.
void page_runs_state(const struct page_runs *runs, struct json *j);
// Some ten times a second.
void page_runs_tick(struct page_runs *runs);
// Answers what is not answered yet, and ends all of them.
void page_runs_close(struct page_runs *runs);
