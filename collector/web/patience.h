// SPDX-License-Identifier: Apache-2.0
// How long a connection may take until its question is there: whoever sends a byte now and then is
// not silent, and would keep a connection for days. The thread of the event base alone.
#pragma once

#include <event2/bufferevent.h>
#include <event2/http.h>

struct patience; // opaque

// NULL without memory.
struct patience *patience_new(struct event_base *base);
// A connection that evhttp is about to take: its question begins now. It has no descriptor yet.
void patience_begin(struct patience *p, struct bufferevent *bev);
// Its question is there; the next one begins with its first byte.
void patience_heard(struct patience *p, struct evhttp_request *req);
// Once a second: ends the connections that take longer than LIMIT_WEB_ASK_SECONDS.
void patience_end(struct patience *p);
// After the HTTP server. NULL is allowed.
void patience_free(struct patience *p);
