// SPDX-License-Identifier: Apache-2.0
// A connection to a running Erlang node, as a hidden node that listens nowhere and that epmd does
// not know. IPv4.
#pragma once

#include "dist/channel.h"
#include "dist/name.h"

struct dist_node {
    struct dist_name name;      // as the node calls itself, once it is connected
    char self[NODE_NAME_BYTES]; // our own name
    int otp;                    // its release
    ei_cnode cnode;
    struct channel channel;
};

// Connects within timeout_ms, asks for the node's release and its own name. False with *e, which
// says what to do. own_alive is our name without host. The node stays connected until
// dist_node_disconnect, or until a call says DIST_DOWN; it must not be moved meanwhile.
bool dist_node_connect(struct dist_node *n, const struct dist_name *name, const char *own_alive,
                       const char *cookie, int timeout_ms, struct dist_error *e);
void dist_node_disconnect(struct dist_node *n);
