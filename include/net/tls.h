// SPDX-License-Identifier: Apache-2.0
// TLS 1.2 and newer for connections, on OpenSSL through libevent's bufferevents. There is no way to
// do without verification: a client always verifies the collector's certificate and name; a
// collector verifies its clients' when it is given authorities.
//
// A context is read-only once made, and may be used for any number of connections; one thread.
#pragma once

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct tls;

enum { TLS_ERROR_BYTES = 512 };

struct tls_files {
    // chain of certificates, PEM, the own one first; NULL: none (a collector must have one)
    const char *cert;
    const char *key; // of it, PEM, not encrypted, closed to others than its owner and group
    // authorities that the other side's certificate must come from; NULL: a collector asks for
    // none, a client takes the system's
    const char *ca;
};

// A context for the listening side. NULL with `why`: a line that names the file and says what is
// wrong.
struct tls *tls_server(const struct tls_files *files, char why[TLS_ERROR_BYTES]);
// A context for the connecting side. Likewise.
struct tls *tls_client(const struct tls_files *files, char why[TLS_ERROR_BYTES]);
// The same as tls_client, of what such files hold; empty: none. It is not needed any more once this
// returns.
struct tls_pem {
    struct slice cert, key, ca;
};
struct tls *tls_client_pem(const struct tls_pem *pem, char why[TLS_ERROR_BYTES]);
void tls_free(struct tls *t);

// A bufferevent on a socket that was accepted; it owns the socket. NULL without memory: the socket
// is still the caller's.
struct bufferevent *tls_accept(const struct tls *t, struct event_base *base, evutil_socket_t fd);
// A bufferevent that shall be connected (bufferevent_socket_connect), to somebody whose certificate
// is for `name`: a host name or an IP address. BEV_EVENT_CONNECTED comes when the handshake is done
// and the certificate was found good. NULL without memory.
struct bufferevent *tls_connect(const struct tls *t, struct event_base *base, const char *name);

enum { TLS_CERTIFICATE_BYTES = 32 };

// SHA-256 of the listening side's certificate, as this side of a connection knows it once the
// handshake is done. False when there is none.
bool tls_certificate(struct bufferevent *bev, uint8_t out[TLS_CERTIFICATE_BYTES]);

// Writes without waiting and without the bufferevent's buffer, which must be empty, once the
// handshake is done. For last words.
void tls_write_now(struct bufferevent *bev, const void *data, size_t len);
// What tls_error returns where the other side has closed the connection in the middle.
extern const char tls_cut[];
// Why a bufferevent's TLS failed, after BEV_EVENT_ERROR: static text, NULL when it did not.
const char *tls_error(struct bufferevent *bev);
