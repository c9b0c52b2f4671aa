// SPDX-License-Identifier: Apache-2.0
// The other end of the collector's listener, for tools: one connection of role "tool", on which
// messages go both ways (codec/control.h). Everything blocks, each call for a stated time at most.
// Answers the collector's pings by itself while it waits. One thread at a time; an object has an
// event loop of its own and shares nothing.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "codec/control.h"
#include "net/secret.h"
#include "net/tls.h"

struct client;

enum client_status {
    CLIENT_MESSAGE, // there is one
    CLIENT_TIMEOUT, // none in that time; the connection stands
    CLIENT_CLOSED   // the connection is gone, client_why says why
};

enum { CLIENT_WHY_BYTES = 256 };

// What kind of reason it is that client_open has failed for.
enum client_fault {
    CLIENT_TROUBLE, // of our own, such as memory
    CLIENT_ABSENT,  // no collector answers at that address: another one may
    // there is somebody who does not take us, or is not to be trusted: the text says how to do
    // better
    CLIENT_REFUSED
};

struct client_error {
    enum client_fault fault;
    char text[CLIENT_WHY_BYTES]; // may be a stranger's words: clean it before it is shown
};

struct client_options {
    const char *host; // name or address
    uint16_t port;
    int timeout_ms;              // for all of client_open
    const struct secret *secret; // NULL: none. Only needed until client_open returns
    const struct tls *tls;       // tls_client's; must outlive the client. NULL: plain TCP
    const char *tls_name;        // what the collector's certificate must be for; NULL: the host
};

// Connects, proves the secret (net/auth.h) and is welcomed. NULL and the reason in *error. SIGPIPE
// is ignored until client_close.
struct client *client_open(const struct client_options *options, struct client_error *error);
void client_close(struct client *c);

// Hands over a message that control_end accepted, or several. False when the connection is gone.
bool client_send(struct client *c, const struct buffer *messages);
// Waits for the next message and puts it into *message, to be freed with control_free before the
// next call: its texts last no longer. Who wants to notice signals waits in short pieces.
enum client_status client_next(struct client *c, int timeout_ms, struct control **message);
// The collector's version, as it says; clean it before it is shown. Until client_close.
const char *client_version(const struct client *c);
// Why the connection is gone: the collector's own words, or what went wrong. Until client_close.
const char *client_why(const struct client *c);
