// SPDX-License-Identifier: Apache-2.0
// The page: an HTTP server (libevent's evhttp) that serves the page's files and, as JSON, what the
// report layer works out of a database. Reading runs on threads of its own (report/reader.h).
//
// Everything that comes is hostile until checked: heads, bodies, connections and times are capped
// (base/limits.h), only GET is answered but for the login and for orders where they are allowed,
// and on loopback the Host header must name loopback, so that no page of somebody else's can read
// what is here through a browser.
#pragma once

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "store/store.h"
#include "web/order.h"

struct web; // opaque
struct meters;
struct json;

enum { WEB_ERROR_BYTES = 512 };

struct web_options {
    const char *address; // to listen on, an IP address
    uint16_t port;       // 0: any
    const char *db;      // path of the database; lives as long as the server
    // Where there is no such path (NULL): what is read instead (report/reader.h).
    enum store_status (*open)(const void *from, struct store **out, char error[STORE_ERROR_BYTES]);
    const void *from;
    struct slice token; // who asks must know it; len 0: nobody has to. Lives as long as the server
    // makes a connection speak TLS; NULL: plain. arg is its.
    struct bufferevent *(*secure)(struct event_base *base, evutil_socket_t fd, void *arg);
    // A copy of what the collector has counted, for /metrics, which the server frees; without
    // memory NULL. NULL: nothing counts, as where a database alone is served.
    struct meters *(*meters)(void *arg);
    // For how many seconds the database has refused to be written; NULL: nobody here writes.
    int64_t (*unwritten_s)(void *arg);
    // What is known of the nodes now and of what was ordered, for /api/v1/state: a JSON object,
    // whose key "control" is the server's. On the server's thread. NULL: where a database alone is
    // served.
    void (*state)(void *arg, struct json *j);
    // The runs of stack sampling that go on now, for /api/v1/sampling: values of a JSON list. As
    // state is.
    void (*sampling)(void *arg, struct json *j);
    // Does what somebody wants, and answers it (web/order.h). It needs a token. NULL: nothing can
    // be ordered.
    void (*order)(void *arg, const struct order *order, struct web_order *from);
    // Likewise, of ORDER_TRIGGERS alone, which needs no token where the page needs none. NULL:
    // where a database alone is served.
    void (*look)(void *arg, const struct order *order, struct web_order *from);
    void *arg;
};

// Whether the page may listen on an address: elsewhere than on loopback it wants a token, and TLS
// unless `plain` says that a proxy in front speaks it. On false why says in a line what is missing.
bool web_may_listen(const char *address, bool token, bool tls, bool plain,
                    char why[WEB_ERROR_BYTES]);

// Starts it on the loop of base. NULL, and why says so in a line, where the port cannot be had or
// memory is out.
struct web *web_start(struct event_base *base, const struct web_options *options,
                      char why[WEB_ERROR_BYTES]);
uint16_t web_port(const struct web *web);
// Ends it with all connections. NULL is allowed.
void web_stop(struct web *web);
