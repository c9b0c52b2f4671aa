// SPDX-License-Identifier: Apache-2.0
// Connections that have not yet said who they are: how many there may be, the secret, the hello.
// Everything on the event loop's thread.
#pragma once

#include <sys/socket.h>

#include "base/limits.h"
#include "net/connection.h"
#include "net/sessions.h"

struct newcomers {
    struct connections *connections; // newcomers are those in STATE_HELLO
    struct sessions *sessions;       // where they go
    struct handshakes {
        uint64_t address;
        uint32_t count;
    } handshakes[LIMIT_HANDSHAKE_ADDRESSES]; // of TLS begun in this second
    uint32_t handshake_addresses;
};

// Takes over a socket that was accepted, if there is room.
void newcomer_accept(struct newcomers *n, evutil_socket_t fd, const struct sockaddr *address);
// Every second: refuses those who take too long, goes on with those who had to wait, and counts
// handshakes anew.
void newcomer_sweep(struct newcomers *n);
// Has one go, the oldest of those who crowd; if there is one.
void newcomer_drop(struct newcomers *n);
