// SPDX-License-Identifier: Apache-2.0
// Connections that were accepted: each splits its control messages, hands on what comes to whom it
// belongs to, and ends. It does not know who that is: a newcomer first, then a session. Everything
// on the event loop's thread.
#pragma once

#include <event2/bufferevent.h>

#include "codec/control.h"
#include "net/auth.h"
#include "net/tls.h"

enum { PEER_BYTES = 64 };

enum state { STATE_HELLO, STATE_CONTROL, STATE_DATA };

struct connection;

// Whom a connection belongs to, told what happens to it.
struct connection_owner {
    // In STATE_HELLO and STATE_CONTROL: a message, whole (with its length) and decoded. Returns
    // false when the connection is closed.
    bool (*message)(struct connection *c, struct slice frame, struct control_map message);
    // In STATE_DATA: there is something in its input.
    void (*bytes)(struct connection *c);
    // It is over, for what libevent tells (BEV_EVENT_): closes it.
    void (*ended)(struct connection *c, short what);
    // Ends it, and what it carries.
    void (*close)(struct connection *c);
};

// All of a server.
struct connections {
    struct event_base *base;
    const struct tls *tls;     // NULL: plain TCP
    struct connection *newest; // then the older ones
    uint32_t count;
    uint32_t most;  // at most so many
    uint32_t large; // messages over LIMIT_CONTROL_SMALL that are on their way
};

struct connection {
    struct connections *all;
    struct connection *previous, *next;
    struct bufferevent *bev; // NULL before the first byte, when it should be one of TLS,
    struct event *first;     // which waits for it; else NULL
    enum state state;
    const struct connection_owner *owner; // with the state
    void *owned_by;                       // struct newcomers in STATE_HELLO, then struct session
    struct auth *auth;           // the handshake, in STATE_HELLO and once it has begun; else NULL
    uint32_t stream;             // in STATE_DATA: its number among those of its session
    struct intake_stream *taken; // by a thread that reads it; NULL: it is read here
    uint64_t turns;              // of that, when last looked at, and
    uint32_t quiet;              // how often in a row there were no more since then
    bool large;                  // a message is on its way that is one of all->large
    int64_t since;               // when it was accepted, monotonic ns
    uint64_t address;            // where from, as far as newcomers are counted together
    char peer[PEER_BYTES];
};

// A newcomer, that has no socket yet. NULL without memory.
struct connection *connection_new(struct connections *all, const struct connection_owner *owner,
                                  void *owned_by);
// Gives it a bufferevent, which it owns. False, and has none, when that is NULL.
bool connection_talk(struct connection *c, struct bufferevent *bev);
// Hands it to another owner, with another state. What proved who it is is needed no more.
void connection_give(struct connection *c, enum state state, const struct connection_owner *owner,
                     void *owned_by);
// Ends a connection, and what it carries.
void connection_close(struct connection *c);
// The same, and logs why.
void connection_refuse(struct connection *c, const char *why);
// Takes it out of the list and frees it, without a word to its owner.
void connection_free(struct connection *c);
// Says why the connection is closed, right before that: what the kernel's buffer takes now is what
// arrives. In the middle of another message there is no place for it.
void connection_bye(struct connection *c, const char *reason);
