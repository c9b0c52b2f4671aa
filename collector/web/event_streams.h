// SPDX-License-Identifier: Apache-2.0
// Event streams (server-sent events): each browser that shows the page keeps one open, and is told
// when something was written to the database.
#pragma once

#include <event2/event.h>
#include <event2/http.h>

struct event_streams; // opaque

// Looks at the file of the database, and at its log, once a second while somebody listens. NULL
// without memory. db lives as long.
struct event_streams *event_streams_start(struct event_base *base, const char *db);
// Answers with a stream that stays open.
void event_streams_open(struct event_streams *all, struct evhttp_request *req);
// Before the HTTP server goes: forgets all streams. NULL is allowed.
void event_streams_stop(struct event_streams *all);
