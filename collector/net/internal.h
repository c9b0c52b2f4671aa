// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share: connections, sessions, and who may call what. Everything on
// the event loop's thread.
#pragma once

#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <sys/socket.h>

#include "base/limits.h"
#include "net/auth.h"
#include "net/server.h"

enum {
    KEY_BYTES = 16,
    PEER_BYTES = 64,
    // without a word from a shim, which sends its clock every second, or a tool, which answers
    // pings
    SILENCE_SECONDS = 15
};

enum state { STATE_HELLO, STATE_CONTROL, STATE_DATA };

struct connection {
    struct server *server;
    struct connection *previous, *next;
    struct bufferevent *bev; // NULL before the first byte, when it should be one of TLS,
    struct event *first;     // which waits for it; else NULL
    struct session *session; // NULL in STATE_HELLO
    struct auth *auth;       // the handshake, in STATE_HELLO and once it has begun; else NULL
    enum state state;
    bool large;       // a message is on its way that is one of server->large
    int64_t since;    // when it was accepted, monotonic ns
    uint64_t address; // where from, as far as newcomers are counted together
    char peer[PEER_BYTES];
};

struct session {
    struct server *server;
    const struct server_events *events; // of shims, or of tools
    struct session *previous, *next;
    struct connection *control;
    struct connection *data; // NULL while there is none
    void *user;
    int64_t id;
    uint8_t key[KEY_BYTES];           // tells that the data connection is the same shim's
    uint8_t auth_key[AUTH_KEY_BYTES]; // proves it, when there is a secret
    bool ready;
};

struct server {
    struct event_base *base;
    struct evconnlistener *listener;
    struct event *second; // a timer: newcomers that take too long
    struct server_events events;
    struct server_events tool_events; // hello is NULL: no tools
    struct secret secret;             // len 0: none is demanded
    const struct tls *tls;            // NULL: plain TCP
    struct connection *connections;   // newest first
    struct session *sessions;
    uint32_t count; // connections,
    uint32_t most;  // at most
    uint32_t tools; // sessions of these
    uint32_t large; // large messages that are on their way
    int64_t next_session;
    bool deaf; // the listener is off until the next second
    struct handshakes {
        uint64_t address;
        uint32_t count;
    } handshakes[LIMIT_HANDSHAKE_ADDRESSES]; // of TLS begun in this second
    uint32_t handshake_addresses;
};

// -- strangers.c ----------------------------------------------------------------------------------

// One line about a peer that was turned away; a flood of them does not fill the log (base/log.h).
void strangers_log(const char *peer, const char *why);
// What the first bytes of somebody who is no shim look like, as a reason to refuse.
const char *strangers_describe(struct slice bytes);

// -- connection.c ---------------------------------------------------------------------------------

// A newcomer, that has no socket yet. NULL without memory.
struct connection *connection_new(struct server *s);
// Gives it a bufferevent, which it owns. False, and has none, when that is NULL.
bool connection_talk(struct connection *c, struct bufferevent *bev);
// Ends a connection, and what it carries.
void connection_close(struct connection *c);
// The same, and logs why.
void connection_refuse(struct connection *c, const char *why);
// Takes it out of its server's list and frees it, without a word to its session.
void connection_free(struct connection *c);
// Says why the connection is closed, right before that: what the kernel's buffer takes now is what
// arrives. In the middle of another message there is no place for it.
void connection_bye(struct connection *c, const char *reason);

// -- newcomer.c -----------------------------------------------------------------------------------

// Takes over a socket that was accepted, if there is room.
void newcomer_accept(struct server *s, evutil_socket_t fd, const struct sockaddr *address);
// A message of somebody who has not said who it is, whole (with its length) and decoded. Returns
// false when the connection is closed.
bool newcomer_message(struct connection *c, struct slice frame, struct control_map message);
// Every second: refuses those who take too long, and goes on with those who had to wait.
void newcomer_sweep(struct server *s);
// Has one go, the oldest of those who crowd; if there is one.
void newcomer_drop(struct server *s);

// -- session.c ------------------------------------------------------------------------------------

// NULL when there is none of this id.
struct session *session_find(struct server *s, int64_t id);
// A hello of role "control", "tool" or "data". All return false when the connection is closed.
bool session_hello(struct connection *c, struct control_map hello);
bool session_hello_tool(struct connection *c, struct control_map hello);
bool session_hello_data(struct connection *c, struct control_map hello);
// Hands on what the data connection, which is there, has brought, once that may be read.
void session_read(struct session *s);
// Ends the data connection of a session, if there is one.
void session_end_data(struct session *s);
// Whether it is a tool's.
bool session_is_tool(const struct session *s);
// Ends a session and its connections.
void session_close(struct session *s);
