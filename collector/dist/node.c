// SPDX-License-Identifier: Apache-2.0
#include "dist/node.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lookup.h"
#include "codec/term.h"
#include "dist/epmd.h"

enum { OLDEST_OTP = 25, CALL_MS = 10000, MS = 1000000 };

static bool resolve(const char *host, int64_t deadline_ns, struct in_addr *out,
                    struct dist_error *e) {
    struct addrinfo *found;
    int why = lookup(host, AF_INET, deadline_ns, &found);
    if (why == EAI_AGAIN) {
        return dist_fail(e, DIST_DOWN, "host %s: %s", host, gai_strerror(why));
    }
    if (why != 0) {
        return dist_fail(e, DIST_DOWN,
                         "there is no host %s (%s); NODE is name@host, as node() says in it", host,
                         gai_strerror(why));
    }
    *out = ((const struct sockaddr_in *)found->ai_addr)->sin_addr;
    freeaddrinfo(found);
    return true;
}

static bool find_port(const struct dist_name *name, struct in_addr host, int64_t deadline_ns,
                      uint16_t *port, struct dist_error *e) {
    char names[EPMD_NAMES_BYTES];
    switch (epmd_port(host, name->alive, deadline_ns, port)) {
    case EPMD_FOUND:
        return true;
    case EPMD_UNKNOWN:
        epmd_names(host, deadline_ns, names);
        return dist_fail(e, DIST_DOWN, "%s is not up: epmd on %s knows %s%s", name->full,
                         name->host, *names ? "only " : "no node", names);
    case EPMD_UNREACHABLE:
        return dist_fail(
            e, DIST_DOWN,
            "%s is not up: no epmd on %s, port %u (%s); each named node starts one, but a "
            "firewall may "
            "hide it",
            name->full, name->host, epmd_own_port(), strerror(errno));
    case EPMD_GARBAGE:
        break;
    }
    return dist_fail(e, DIST_DOWN, "%s: what listens on %s, port %u, is not epmd", name->full,
                     name->host, epmd_own_port());
}

// Our host's part: nobody connects to us, so that any that looks like the node's kind of name will
// do.
static void name_self(struct dist_node *n, const char *own_alive, char host[NODE_PART_BYTES]) {
    if (gethostname(host, NODE_PART_BYTES) != 0) {
        strcpy(host, "localhost");
    }
    host[NODE_PART_BYTES - 1] = 0;
    if (!n->name.is_long) {
        host[strcspn(host, ".")] = 0;
    } else if (!strchr(host, '.')) {
        strcpy(host, "127.0.0.1");
    }
    snprintf(n->self, sizeof n->self, "%.100s@%.150s", own_alive, host);
}

// The handshake tells a wrong cookie by closing the connection.
static bool handshake(struct dist_node *n, const char *own_alive, const char *cookie,
                      struct in_addr host, uint16_t port, int64_t deadline_ns,
                      struct dist_error *e) {
    char own_host[NODE_PART_BYTES];
    unsigned creation;
    char alive[128];
    name_self(n, own_alive, own_host);
    snprintf(alive, sizeof alive, "%.100s", own_alive);
    if (getrandom(&creation, sizeof creation, 0) != sizeof creation) {
        creation = (unsigned)clock_wall();
    }
    if (ei_connect_xinit(&n->cnode, own_host, alive, n->self, &host, cookie, creation | 4) != 0) {
        return dist_fail(e, DIST_OTHER, "cannot make a node of this process");
    }
    int64_t left = (deadline_ns - clock_monotonic()) / MS;
    int fd = ei_xconnect_host_port_tmo(&n->cnode, &host, port, (unsigned)(left > 1 ? left : 1));
    if (fd >= 0) {
        n->channel = channel_make(fd, &n->cnode, n->name.full);
        return true;
    }
    if (erl_errno == ETIMEDOUT) {
        return dist_fail(e, DIST_DOWN, "%s does not answer", n->name.full);
    }
    return fd == ERL_CONNECT_FAIL
               ? dist_fail(e, DIST_DOWN, "%s is not up: nobody listens on its port %u",
                           n->name.full, port)
               : dist_fail(
                     e, DIST_COOKIE,
                     "%s refused the connection: the cookie is wrong; --cookie-file names a file "
                     "with the right one",
                     n->name.full);
}

// -- what it is -----------------------------------------------------------------------------------

// Calls a function without arguments, or with one atom, and gives its answer as text.
static bool ask_text(struct dist_node *n, const char *function, const char *atom, char *out,
                     size_t room, struct dist_error *e) {
    struct slice result;
    ei_x_buff arguments;
    bool good = ei_x_new(&arguments) == 0;
    if (!good) {
        return dist_fail(e, DIST_OTHER, "no memory");
    }
    if (atom) {
        good =
            ei_x_encode_list_header(&arguments, 1) == 0 && ei_x_encode_atom(&arguments, atom) == 0;
    }
    good =
        (good && ei_x_encode_empty_list(&arguments) == 0) || dist_fail(e, DIST_OTHER, "no memory");
    good = good && channel_call(&n->channel, "erlang", function, &arguments, CALL_MS, &result, e);
    ei_x_free(&arguments);
    if (good) {
        out[term_text(result, out, room - 1)] = 0;
    }
    return good;
}

// Names with and without dots lead to the same node: it is known under the one that it has itself.
static bool learn(struct dist_node *n, struct dist_error *e) {
    char release[16], name[NODE_NAME_BYTES];
    if (!ask_text(n, "system_info", "otp_release", release, sizeof release, e) ||
        !ask_text(n, "node", NULL, name, sizeof name, e)) {
        return false;
    }
    n->otp = (int)strtol(release, NULL, 10);
    if (n->otp < OLDEST_OTP) { // before 17 releases were named R16B
        return dist_fail(e, DIST_OTP, "%s runs OTP %s, kprof needs %d or newer", n->name.full,
                         release, OLDEST_OTP);
    }
    if (!dist_name_parse(name, "", &n->name)) {
        return dist_fail(e, DIST_OTHER, "%s does not tell its name", n->name.full);
    }
    return true;
}

bool dist_node_connect(struct dist_node *n, const struct dist_name *name, const char *own_alive,
                       const char *cookie, int timeout_ms, struct dist_error *e) {
    int64_t deadline = clock_monotonic() + (int64_t)timeout_ms * MS;
    struct in_addr host;
    uint16_t port;
    *n = (struct dist_node){.name = *name, .channel.fd = -1};
    if (ei_init() != 0) {
        return dist_fail(e, DIST_OTHER, "erl_interface does not start");
    }
    if (!resolve(name->host, deadline, &host, e) || !find_port(name, host, deadline, &port, e) ||
        !handshake(n, own_alive, cookie, host, port, deadline, e)) {
        return false;
    }
    if (!learn(n, e)) {
        dist_node_disconnect(n);
        return false;
    }
    return true;
}

void dist_node_disconnect(struct dist_node *n) {
    channel_close(&n->channel);
}
