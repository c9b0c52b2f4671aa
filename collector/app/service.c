// SPDX-License-Identifier: Apache-2.0
#include "app/service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST_FD = 3 }; // sd_listen_fds(3): SD_LISTEN_FDS_START

// The whole variable as a number of at least 1; 0 when it is none.
static int64_t number_of(const char *variable) {
    const char *text = getenv(variable);
    if (!text || *text < '0' || *text > '9') {
        return 0;
    }
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    return errno == 0 && *end == 0 ? n : 0;
}

bool service_activated(void) {
    return number_of("LISTEN_FDS") > 0 && number_of("LISTEN_PID") == getpid();
}

static int option_of(int fd, int name) {
    int value = -1;
    socklen_t len = sizeof value;
    return getsockopt(fd, SOL_SOCKET, name, &value, &len) == 0 ? value : -1;
}

int service_socket(char address[LISTEN_ADDRESS_BYTES], uint16_t *port, const char **why) {
    bool one = service_activated() && number_of("LISTEN_FDS") == 1;
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDNAMES");
    if (!one) {
        *why =
            "more than one socket was handed over; the .socket unit wants a single ListenStream=";
        return -1;
    }
    if (option_of(FIRST_FD, SO_TYPE) != SOCK_STREAM || option_of(FIRST_FD, SO_ACCEPTCONN) != 1) {
        *why = "what was handed over is no listening stream socket; the .socket unit wants "
               "ListenStream= and Accept=no";
        return -1;
    }
    if (!listen_address_of(FIRST_FD, address, port)) {
        *why =
            "the socket that was handed over is not of TCP; shims connect to an address and a port";
        return -1;
    }
    int flags = fcntl(FIRST_FD, F_GETFL);
    if (flags < 0 || fcntl(FIRST_FD, F_SETFL, flags | O_NONBLOCK) != 0 ||
        fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC) != 0) {
        *why = strerror(errno);
        return -1;
    }
    return FIRST_FD;
}

void service_notify(const char *state) {
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;
    // a path, or '@' for a name in the abstract namespace; anything else is of a kind that is not
    // known here
    if (len < 2 || len >= sizeof to.sun_path || (*path != '/' && *path != '@')) {
        return;
    }
    memcpy(to.sun_path, path, len);
    if (*path == '@') {
        to.sun_path[0] = 0;
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return;
    }
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    (void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&to, size);
    close(fd);
}

int64_t service_watchdog_us(void) {
    int64_t us = number_of("WATCHDOG_USEC");
    bool ours = !getenv("WATCHDOG_PID") || number_of("WATCHDOG_PID") == getpid();
    return ours && us > 1 ? us / 2 : 0;
}
