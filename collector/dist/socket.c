// SPDX-License-Identifier: Apache-2.0
#include "dist/socket.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

// Waits until the socket is ready. Signals do not end it: who caught one looks when the deadline is
// over.
static bool ready(int fd, short events, int64_t deadline_ns) {
    for (;;) {
        int64_t left = deadline_ns - clock_monotonic();
        struct pollfd p = {.fd = fd, .events = events};
        int n = left > 0 ? poll(&p, 1, (int)(left / 1000000) + 1) : 0;
        if (n > 0) {
            return true;
        }
        if (n == 0) {
            errno = ETIMEDOUT;
            return false;
        }
        if (errno != EINTR) {
            return false;
        }
    }
}

static bool again(void) {
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

int socket_connect(struct in_addr host, uint16_t port, int64_t deadline_ns) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = host};
    int failed = 0;
    socklen_t size = sizeof failed;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) != 0) {
        failed = errno;
        if (failed == EINPROGRESS) {
            failed = ready(fd, POLLOUT, deadline_ns) ? 0 : errno;
        }
        if (failed == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size) != 0) {
            failed = errno;
        }
    }
    if (failed != 0) {
        close(fd);
        errno = failed;
        return -1;
    }
    return fd;
}

bool socket_write(int fd, const void *data, size_t n, int64_t deadline_ns) {
    const uint8_t *at = data;
    while (n > 0) {
        ssize_t sent = send(fd, at, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) {
            at += sent;
            n -= (size_t)sent;
        } else if (!again() || !ready(fd, POLLOUT, deadline_ns)) {
            return false;
        }
    }
    return true;
}

ssize_t socket_read(int fd, void *data, size_t n, int64_t deadline_ns) {
    for (;;) {
        ssize_t got = recv(fd, data, n, MSG_DONTWAIT);
        if (got >= 0) {
            return got;
        }
        if (!again() || !ready(fd, POLLIN, deadline_ns)) {
            return -1;
        }
    }
}
