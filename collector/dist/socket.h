// SPDX-License-Identifier: Apache-2.0
// Sockets with a deadline, a monotonic time in nanoseconds. Failures are told in errno; past the
// deadline it is ETIMEDOUT.
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Returns a connected socket, or -1. It does not block and is closed on exec.
int socket_connect(struct in_addr host, uint16_t port, int64_t deadline_ns);
// Writes all of it, whether the socket blocks or not.
bool socket_write(int fd, const void *data, size_t n, int64_t deadline_ns);
// Reads at most n bytes, at least one. 0: the other side has closed. -1: failed.
ssize_t socket_read(int fd, void *data, size_t n, int64_t deadline_ns);
