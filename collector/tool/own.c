// SPDX-License-Identifier: Apache-2.0
#include "tool/own.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exit_status.h"
#include "base/hex.h"

enum { START_MS = 15000, END_MS = 15000, SECRET_BYTES = 24 };

// -- its secret -----------------------------------------------------------------------------------

bool own_secret_make(struct own_secret *s) {
    uint8_t bytes[SECRET_BYTES];
    char text[2 * SECRET_BYTES + 1];
    s->fd = memfd_create("secret", MFD_CLOEXEC);
    if (s->fd < 0 || fchmod(s->fd, 0600) != 0 ||
        getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        return false;
    }
    hex_text(bytes, sizeof bytes, text);
    snprintf(s->file, sizeof s->file, "/proc/self/fd/%d", s->fd);
    bool good = write(s->fd, text, sizeof text - 1) == (ssize_t)sizeof text - 1;
    explicit_bzero(bytes, sizeof bytes);
    explicit_bzero(text, sizeof text);
    return good;
}

void own_secret_end(struct own_secret *s) {
    if (s->fd >= 0) {
        close(s->fd);
    }
    s->fd = -1;
}

// -- the collector --------------------------------------------------------------------------------

// Why it has ended, or does not listen: what its last line says, without its time and level.
static void put_why(struct own *o, char why[CHILD_LINE_BYTES]) {
    char line[CHILD_LINE_BYTES];
    child_last_line(&o->collector, line);
    const char *error = strstr(line, " error ");
    const char *text = error ? error + strlen(" error ") : line;
    if (o->collector.status > 128) {
        snprintf(why, CHILD_LINE_BYTES, "it was killed");
    } else {
        snprintf(why, CHILD_LINE_BYTES, "%s", *text ? text : "it gives no reason");
    }
}

bool own_begin(struct own *o, const struct own_options *options, char why[CHILD_LINE_BYTES]) {
    static const char listening[] = " listening on ";
    char line[CHILD_LINE_BYTES];
    const char *secret_file = options->secret_file;
    *o = OWN_NONE;
    o->db = options->db;
    o->fresh = access(o->db, F_OK) != 0;
    if (!secret_file && !own_secret_make(&o->secret)) {
        snprintf(why, CHILD_LINE_BYTES, "cannot make a secret: %s", strerror(errno));
        return false;
    }
    secret_file = secret_file ? secret_file : o->secret.file;
    const char *argv[] = {
        "kprof-collector", "--listen", options->listen, "--db", o->db, "--secret-file",
        secret_file,       NULL};
    if (!child_start(&o->collector, argv, o->secret.fd)) {
        snprintf(why, CHILD_LINE_BYTES, "cannot start kprof-collector: %s", strerror(errno));
        return false;
    }
    if (!child_line(&o->collector, listening, START_MS, line)) {
        put_why(o, why);
        return false;
    }
    const char *at = strstr(line, listening) + strlen(listening);
    snprintf(o->at, sizeof o->at, "%.*s", (int)strcspn(at, ","), at);
    return true;
}

bool own_runs(struct own *o, char why[CHILD_LINE_BYTES]) {
    if (!child_gone(&o->collector)) {
        child_forget(&o->collector);
        return true;
    }
    put_why(o, why);
    return false;
}

bool own_end(struct own *o, bool forget, char why[CHILD_LINE_BYTES]) {
    bool ran = o->collector.pid > 0;
    int status = child_stop(&o->collector, END_MS);
    put_why(o, why);
    child_end(&o->collector, 0);
    own_secret_end(&o->secret);
    if (forget && o->fresh && status != EXIT_DATABASE && status != EXIT_FOREIGN) { // it was ours
        unlink(o->db); // what lay beside it has removed
    }
    return !ran || status == 0;
}

// -- where it is reached --------------------------------------------------------------------------

bool own_address(struct in_addr here, struct in_addr there, char out[INET_ADDRSTRLEN]) {
    static const uint32_t LOOPBACK = 127;
    bool same = here.s_addr == there.s_addr || ntohl(there.s_addr) >> 24 == LOOPBACK;
    struct in_addr at = same ? (struct in_addr){htonl(INADDR_LOOPBACK)} : here;
    inet_ntop(AF_INET, &at, out, INET_ADDRSTRLEN);
    return same;
}

bool own_address_of(int fd, char out[INET_ADDRSTRLEN]) {
    struct sockaddr_in here = {0}, there = {0};
    socklen_t n = sizeof here, m = sizeof there;
    if (getsockname(fd, (struct sockaddr *)&here, &n) != 0 ||
        getpeername(fd, (struct sockaddr *)&there, &m) != 0) {
        snprintf(out, INET_ADDRSTRLEN, "127.0.0.1");
        return false;
    }
    return own_address(here.sin_addr, there.sin_addr, out);
}

bool own_is_here(const char *node) {
    const char *host = strchr(node, '@');
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM}, *found = NULL;
    char ignored[INET_ADDRSTRLEN];
    if (!host || getaddrinfo(host + 1, "4369", &hints, &found) != 0) {
        return !host;
    }
    // connecting it sends nothing, and finds the address that packets there would have
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool here = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
                own_address_of(fd, ignored);
    if (fd >= 0) {
        close(fd);
    }
    freeaddrinfo(found);
    return here;
}
