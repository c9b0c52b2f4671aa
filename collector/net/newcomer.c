// SPDX-License-Identifier: Apache-2.0
#include "net/newcomer.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/limits.h"
#include "net/strangers.h"

static bool turn_away(struct connection *c, const char *told, const char *why) {
    connection_bye(c, told);
    connection_refuse(c, why);
    return false;
}

// -- accepting ------------------------------------------------------------------------------------

static void peer_name(const struct sockaddr *address, char *out) {
    char host[INET6_ADDRSTRLEN] = "?";
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)address;
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        snprintf(out, PEER_BYTES, "%s:%u", host, ntohs(in->sin_port));
    } else {
        const struct sockaddr_in6 *in6 = (const void *)address;
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        snprintf(out, PEER_BYTES, "[%s]:%u", host, ntohs(in6->sin6_port));
    }
}

// What newcomers are counted by: the address, or the network of 2^64 addresses that one owner of
// IPv6 has.
static uint64_t address_of(const struct sockaddr *address) {
    uint64_t prefix = 0;
    uint32_t four;
    if (address->sa_family == AF_INET) {
        return ((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr;
    }
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(six)) {
        memcpy(&four, six->s6_addr + 12, sizeof four);
        return four;
    }
    memcpy(&prefix, six->s6_addr, sizeof prefix);
    return prefix;
}

// How many newcomers are from an address, and the oldest of them: of those who have said nothing
// yet, if there are such.
static uint32_t newcomers_of(const struct connections *all, uint64_t address,
                             struct connection **oldest) {
    uint32_t count = 0;
    for (struct connection *c = all->newest; c; c = c->next) {
        if (c->state == STATE_HELLO && c->address == address &&
            (count++ == 0 || !c->auth || (*oldest)->auth)) {
            *oldest = c;
        }
    }
    return count;
}

// The oldest newcomer of the address that has the most of them; NULL when there is none.
static struct connection *crowding(const struct connections *all) {
    struct connection *oldest = NULL, *of = NULL;
    uint32_t most = 0;
    for (struct connection *c = all->newest; c; c = c->next) {
        uint32_t count = c->state == STATE_HELLO ? newcomers_of(all, c->address, &of) : 0;
        if (count > most) {
            most = count;
            oldest = of;
        }
    }
    return oldest;
}

void newcomer_drop(struct newcomers *n) {
    struct connection *oldest = crowding(n->connections);
    if (oldest) {
        connection_refuse(oldest, "too many newcomers");
    }
}

// Has a newcomer go when there are too many: of a flood from one address one of its own, not one
// from elsewhere.
static void make_room(struct newcomers *n, uint64_t address) {
    const struct connections *all = n->connections;
    struct connection *oldest = NULL;
    uint32_t count = 0;
    for (struct connection *c = all->newest; c; c = c->next) {
        count += c->state == STATE_HELLO;
    }
    if (newcomers_of(all, address, &oldest) >= LIMIT_NEWCOMERS_PER_ADDRESS) {
        connection_refuse(oldest, "too many newcomers from its address");
    } else if (count >= LIMIT_NEWCOMERS || all->count >= all->most) {
        newcomer_drop(n);
    }
}

// Counts a handshake. False when its address has begun too many in this second.
static bool may_begin(struct newcomers *n, uint64_t address) {
    uint32_t i = 0;
    while (i < n->handshake_addresses && n->handshakes[i].address != address) {
        i++;
    }
    if (i == LIMIT_HANDSHAKE_ADDRESSES) {
        return true;
    }
    if (i == n->handshake_addresses) {
        n->handshakes[n->handshake_addresses++] = (struct handshakes){.address = address};
    }
    return n->handshakes[i].count++ < LIMIT_HANDSHAKES_PER_ADDRESS;
}

// The first byte is there, on a port of TLS. Only now, and only if it is one of TLS, there is
// something to be kept for it; who speaks kprof's protocol without can be told.
static void on_first(evutil_socket_t fd, short what, void *context) {
    (void)what;
    struct connection *c = context;
    uint8_t first[64];
    ssize_t got = recv(fd, first, sizeof first, MSG_PEEK | MSG_DONTWAIT);
    if (got <= 0) {
        connection_close(c);
    } else if (first[0] == 0x16) { // a record of TLS with a handshake in it
        if (!may_begin(c->owned_by, c->address)) {
            return; // the sweep goes on with it
        }
        event_free(c->first);
        c->first = NULL;
        if (!connection_talk(c, tls_accept(c->all->tls, c->all->base, fd))) {
            evutil_closesocket(fd);
            connection_refuse(c, "out of memory");
        }
    } else if (first[0] == 0) { // the length of a control message
        turn_away(
            c,
            "this collector speaks TLS: start with --tls-ca (start_trace: {tls, #{cacertfile => "
            "File}})",
            "it speaks without TLS: start it with --tls-ca");
    } else {
        connection_refuse(c, strangers_describe(slice_of(first, (size_t)got)));
    }
}

static bool wait_first(struct connection *c, evutil_socket_t fd) {
    c->first = event_new(c->all->base, fd, EV_READ, on_first, c);
    if (c->first && event_add(c->first, NULL) != 0) {
        event_free(c->first);
        c->first = NULL;
    }
    return c->first != NULL;
}

// -- the handshake --------------------------------------------------------------------------------

static const char *challenge(struct connection *c, struct slice frame, struct buffer *out) {
    uint8_t nonce[AUTH_NONCE_BYTES];
    c->auth = calloc(1, sizeof *c->auth);
    if (!c->auth || getrandom(nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce) {
        return "out of memory";
    }
    c->auth->tls = c->all->tls != NULL;
    if (c->auth->tls && !tls_certificate(c->bev, c->auth->certificate)) {
        return "no certificate";
    }
    return auth_challenge(c->auth, frame, nonce, out);
}

static const char *check(struct connection *c, struct slice frame, struct buffer *out) {
    const struct newcomers *n = c->owned_by;
    if (strcmp(c->auth->role, CONTROL_ROLE_DATA) != 0) {
        return auth_check(c->auth, secret_slice(&n->sessions->secret), frame, out);
    }
    struct session *of = session_find(n->sessions, c->auth->session);
    return of ? auth_check(c->auth, slice_of(of->auth_key, AUTH_KEY_BYTES), frame, out)
              : "a data connection without a session";
}

static bool handshake(struct connection *c, struct slice frame) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    const char *why = c->auth ? check(c, frame, &b) : challenge(c, frame, &b);
    if (!why && bufferevent_write(c->bev, b.data, b.len) != 0) {
        why = "out of memory";
    }
    buffer_free(&b);
    return why ? turn_away(c, why, why) : true;
}

// -- hello ----------------------------------------------------------------------------------------

static bool hello(struct connection *c, struct control_map message) {
    struct slice role = {0};
    int64_t protocol = 0;
    control_get_text(message, FIELD_ROLE, &role);
    control_get_int(message, FIELD_PROTOCOL, &protocol);
    if (protocol != CONTROL_PROTOCOL) {
        return turn_away(c, "this collector speaks protocol 1: use the shim of the same release",
                         "another version of the protocol");
    }
    if (c->auth && !slice_is(role, c->auth->role)) {
        connection_refuse(c, "a hello of another role than it proved");
        return false;
    }
    struct sessions *sessions = ((struct newcomers *)c->owned_by)->sessions;
    if (slice_is(role, CONTROL_ROLE_DATA)) {
        return session_hello_data(sessions, c, message);
    }
    if (slice_is(role, CONTROL_ROLE_TOOL)) {
        return session_hello_tool(sessions, c, message);
    }
    return session_hello(sessions, c, message);
}

static bool newcomer_message(struct connection *c, struct slice frame, struct control_map message) {
    const struct newcomers *n = c->owned_by;
    struct slice type = {0};
    bool proven = c->auth && c->auth->count == 4, demanded = n->sessions->secret.len > 0;
    control_get_text(message, FIELD_TYPE, &type);
    if (demanded && !proven && !slice_is(type, CONTROL_HELLO)) {
        return handshake(c, frame);
    }
    if (demanded && !proven) {
        return turn_away(
            c,
            "this collector demands its secret: start with --secret-file (start_trace: "
            "{secret_file, File})",
            "no secret");
    }
    if (slice_is(type, CONTROL_AUTH)) {
        return turn_away(
            c, "this collector has no secret: start it with --secret-file, or connect without one",
            "it has a secret, this collector has none");
    }
    if (!slice_is(type, CONTROL_HELLO)) {
        connection_refuse(c, "the first message is no hello");
        return false;
    }
    return hello(c, message);
}

static void newcomer_ended(struct connection *c, short what) {
    const char *tls = c->all->tls && (what & BEV_EVENT_ERROR) ? tls_error(c->bev) : NULL;
    char why[128];
    if (tls) {
        snprintf(why, sizeof why, "TLS: %s", tls);
        connection_refuse(c, why);
    } else if (evbuffer_get_length(bufferevent_get_input(c->bev)) > 0) {
        connection_refuse(c, "closed in the middle of its first message");
    } else {
        connection_close(c);
    }
}

static const struct connection_owner newcomer = {
    .message = newcomer_message, .ended = newcomer_ended, .close = connection_free};

// -- coming ---------------------------------------------------------------------------------------

void newcomer_accept(struct newcomers *n, evutil_socket_t fd, const struct sockaddr *address) {
    struct connections *all = n->connections;
    char peer[PEER_BYTES];
    peer_name(address, peer);
    make_room(n, address_of(address));
    if (all->count >= all->most) {
        strangers_log(peer, "too many connections");
        evutil_closesocket(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    struct connection *c = connection_new(all, &newcomer, n);
    if (!c) {
        evutil_closesocket(fd);
        strangers_log(peer, "out of memory");
        return;
    }
    c->address = address_of(address);
    memcpy(c->peer, peer, sizeof peer);
    if (!(all->tls
              ? wait_first(c, fd)
              : connection_talk(c, bufferevent_socket_new(all->base, fd, BEV_OPT_CLOSE_ON_FREE)))) {
        evutil_closesocket(fd);
        connection_refuse(c, "out of memory");
    }
}

void newcomer_sweep(struct newcomers *n) {
    int64_t since = clock_monotonic() - LIMIT_HELLO_SECONDS * 1000000000LL;
    n->handshake_addresses = 0;
    for (struct connection *c = n->connections->newest, *next; c; c = next) {
        next = c->next;
        if (c->state == STATE_HELLO && c->since <= since) {
            connection_refuse(c, "no complete message in time");
        } else if (c->first && !event_pending(c->first, EV_READ, NULL)) {
            event_add(c->first, NULL);
        }
    }
}
