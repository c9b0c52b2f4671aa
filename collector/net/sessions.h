// SPDX-License-Identifier: Apache-2.0
// The sessions of a server, and what they are made of; net/session.h has what can be done with one.
// Everything on the event loop's thread.
#pragma once

#include "base/limits.h"
#include "net/connection.h"
#include "net/secret.h"
#include "net/session.h"

enum { KEY_BYTES = 16 };

struct session {
    struct sessions *all;
    const struct server_events *events; // of shims, or of tools
    struct session *previous, *next;
    struct connection *control;
    struct connection *data[LIMIT_STREAMS]; // NULL: there is none of this number
    uint32_t streams;                       // that there are
    void *user;
    int64_t id;
    uint8_t key[KEY_BYTES];           // tells that the data connection is the same shim's
    uint8_t auth_key[AUTH_KEY_BYTES]; // proves it, when there is a secret
    bool ready;
    bool leaves; // its control connection has ended, and what its others bring is still read
};

struct sessions {
    struct server_events shims;
    struct server_events tools; // hello is NULL: none are taken
    struct secret secret;       // len 0: none is demanded
    struct session *newest;     // then the older ones
    uint32_t tool_count;
    uint32_t more_streams; // data connections besides one a session
    int64_t last_id;
};

// NULL when there is none of this id.
struct session *session_find(const struct sessions *all, int64_t id);
// A newcomer's hello of role "control", "tool" or "data": it belongs to a session from here on. All
// return false when the connection is closed.
bool session_hello(struct sessions *all, struct connection *c, struct control_map hello);
bool session_hello_tool(struct sessions *all, struct connection *c, struct control_map hello);
bool session_hello_data(struct sessions *all, struct connection *c, struct control_map hello);
// Whether it is a tool's.
bool session_is_tool(const struct session *s);
// Ends a session and its connections.
void session_close(struct session *s);
// A second has passed: one that leaves may be over.
void session_second(struct session *s);
