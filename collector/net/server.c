// SPDX-License-Identifier: Apache-2.0
#include "net/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/listen_address.h"
#include "base/log.h"
#include "base/open_files.h"
#include "net/internal.h"
#include "net/strangers.h"

void server_ping(struct server *server) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_PING, 0);
    if (control_end(&w)) {
        for (struct session *s = server->sessions.newest; s; s = s->next) {
            session_send(s, &b);
        }
    }
    buffer_free(&b);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
                      int len, void *context) {
    (void)listener;
    (void)len;
    struct server *s = context;
    newcomer_accept(&s->newcomers, fd, address);
}

// Out of file descriptors, for one. The listener would report it in a loop: it rests for up to a
// second.
static void on_accept_error(struct evconnlistener *listener, void *context) {
    struct server *s = context;
    strangers_log("a new peer", evutil_socket_error_to_string(EVUTIL_SOCKET_ERROR()));
    newcomer_drop(&s->newcomers);
    s->deaf = evconnlistener_disable(listener) == 0;
}

// As many connections as this process may have files for. It takes more of them where it may.
static uint32_t most_connections(void) {
    const uint64_t wanted = LIMIT_CONNECTIONS + LIMIT_OTHER_FILES;
    uint64_t files = open_files_allow(wanted);
    if (files == 0 || files >= wanted) {
        return LIMIT_CONNECTIONS;
    }
    uint32_t most =
        (uint32_t)(files > 2 * LIMIT_OTHER_FILES ? files - LIMIT_OTHER_FILES : files / 4);
    log_warning(
        "this process may have %u open files: no more than %u connections are taken (ulimit -n %u)",
        (unsigned)files, most, (unsigned)wanted);
    return most;
}

// Frees a server that has no connections and no listener.
static void server_drop(struct server *s) {
    if (s->second) {
        event_free(s->second);
    }
    secret_clear(&s->sessions.secret);
    free(s);
}

static void on_second(evutil_socket_t fd, short what, void *context) {
    (void)fd;
    (void)what;
    struct server *s = context;
    newcomer_sweep(&s->newcomers);
    for (struct session *one = s->sessions.newest, *next; one; one = next) {
        next = one->next;
        session_second(one);
    }
    if (s->deaf) {
        s->deaf = evconnlistener_enable(s->listener) != 0;
    }
}

void server_set_keys(struct server *s, const struct secret *secret, const struct tls *tls) {
    s->connections.tls = tls;
    secret_clear(&s->sessions.secret);
    if (secret) {
        s->sessions.secret = *secret;
    }
}

// A server without its listener.
static struct server *server_make(struct event_base *base, const struct server_options *options,
                                  const struct server_events *events, const char **why) {
    struct server *s = calloc(1, sizeof *s);
    if (!s) {
        *why = "out of memory";
        return NULL;
    }
    s->connections = (struct connections){.base = base, .most = most_connections()};
    s->sessions.shims = *events;
    s->newcomers.connections = &s->connections;
    s->newcomers.sessions = &s->sessions;
    server_set_keys(s, options->secret, options->tls);
    s->second = event_new(base, -1, EV_PERSIST, on_second, s);
    if (!s->second || event_add(s->second, &(struct timeval){1, 0}) != 0) {
        *why = "out of memory";
        server_drop(s);
        return NULL;
    }
    return s;
}

// Frees it, with the reason in errno, when it could not get a listener.
static struct server *server_listening(struct server *s, const char **why) {
    if (!s->listener) {
        *why = strerror(errno);
        server_drop(s);
        return NULL;
    }
    evconnlistener_set_error_cb(s->listener, on_accept_error);
    return s;
}

struct server *server_new(struct event_base *base, const struct server_options *options,
                          const struct server_events *events, const char **why) {
    struct sockaddr_storage storage = {0};
    struct sockaddr_in *in = (void *)&storage;
    struct sockaddr_in6 *in6 = (void *)&storage;
    int len = sizeof *in;
    if (inet_pton(AF_INET, options->address, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        in->sin_port = htons(options->port);
    } else if (inet_pton(AF_INET6, options->address, &in6->sin6_addr) == 1) {
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(options->port);
        len = sizeof *in6;
    } else {
        *why = "not an IP address";
        return NULL;
    }
    struct server *s = server_make(base, options, events, why);
    if (!s) {
        return NULL;
    }
    s->listener = evconnlistener_new_bind(
        base, on_accept, s, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE, 128,
        (struct sockaddr *)&storage, len);
    return server_listening(s, why);
}

struct server *server_new_on(struct event_base *base, int fd, const struct server_options *options,
                             const struct server_events *events, const char **why) {
    struct server *s = server_make(base, options, events, why);
    if (!s) {
        return NULL;
    }
    // 0: it listens already
    s->listener = evconnlistener_new(base, on_accept, s, LEV_OPT_CLOSE_ON_FREE, 0, fd);
    return server_listening(s, why);
}

void server_take_tools(struct server *s, const struct server_events *events) {
    s->sessions.tools = *events;
}

void server_free(struct server *s) {
    if (!s) {
        return;
    }
    evconnlistener_free(s->listener);
    // The analyzer does not see that the head of a list has nothing before it, and that what is
    // freed is no longer in it. NOLINTBEGIN(clang-analyzer-unix.Malloc)
    while (s->sessions.newest) {
        connection_bye(s->sessions.newest->control, "the collector is shutting down");
        session_close(s->sessions.newest);
    }
    while (s->connections.newest) {
        connection_free(s->connections.newest); // the others went with their sessions
    }
    // NOLINTEND(clang-analyzer-unix.Malloc)
    server_drop(s);
}

uint16_t server_port(const struct server *s) {
    char address[LISTEN_ADDRESS_BYTES];
    uint16_t port = 0;
    listen_address_of(evconnlistener_get_fd(s->listener), address, &port);
    return port;
}
