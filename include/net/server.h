// SPDX-License-Identifier: Apache-2.0
// The collector's listening side: takes connections, tells shims from strangers, joins a shim's two
// connections into a session (net/session.h), and hands messages and trace bytes on. With a secret,
// every peer first proves that it knows it, and is proven that we do (net/auth.h). The protocol's
// messages are in codec/control.h. Everything runs on the thread of the event loop; nothing blocks.
// All that a peer can do is capped (limits.h); whoever breaks the protocol is closed and logged, as
// far as the log takes it (base/log.h).
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/secret.h"
#include "net/session.h"
#include "net/tls.h"

struct server;

struct server_options {
    const char *address;         // IPv4 or IPv6
    uint16_t port;               // 0: any
    const struct secret *secret; // copied; NULL: nobody has to prove anything
    const struct tls *tls;       // must outlive the server; NULL: plain TCP
};

// Listens. NULL with *why (static or errno text) when that cannot be had.
struct server *server_new(struct event_base *base, const struct server_options *options,
                          const struct server_events *events, const char **why);
// The same on a TCP socket that listens already, and does not block; address and port do not count.
// It is the server's from here on; the caller's again when NULL is returned.
struct server *server_new_on(struct event_base *base, int fd, const struct server_options *options,
                             const struct server_events *events, const char **why);
// Takes tools from now on, LIMIT_TOOLS of them at a time. Until then they are refused.
void server_take_tools(struct server *s, const struct server_events *events);
// Says bye to every shim and tool, closes everything. Events closed and data_end are still told.
void server_free(struct server *s);
// The port it listens on, for port 0.
uint16_t server_port(const struct server *s);
// Other keys than those that it began with, for connections to come; those that are there keep
// theirs. Secret and TLS as in server_options, and each is there exactly if it was from the start.
void server_set_keys(struct server *s, const struct secret *secret, const struct tls *tls);
// Pings every shim and tool.
void server_ping(struct server *s);
