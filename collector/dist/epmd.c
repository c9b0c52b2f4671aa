// SPDX-License-Identifier: Apache-2.0
#include "dist/epmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "dist/socket.h"

enum { NAMES_REQ = 110, PORT_PLEASE2_REQ = 122, PORT2_RESP = 119, EPMD_PORT = 4369 };

uint16_t epmd_own_port(void) {
    const char *text = getenv("ERL_EPMD_PORT");
    long port = text ? strtol(text, NULL, 10) : 0;
    return port > 0 && port <= UINT16_MAX ? (uint16_t)port : EPMD_PORT;
}

// Sends one request (at most 1 KB) and returns the answer's length, -1 with errno. epmd closes
// after an answer.
static ssize_t ask(struct in_addr host, const void *request, size_t len, int64_t deadline_ns,
                   uint8_t *answer, size_t room) {
    uint8_t packet[1024];
    size_t n = 0;
    ssize_t got = -1;
    int fd = socket_connect(host, epmd_own_port(), deadline_ns);
    if (fd < 0) {
        return -1;
    }
    packet[0] = (uint8_t)(len >> 8);
    packet[1] = (uint8_t)len;
    memcpy(packet + 2, request, len);
    if (socket_write(fd, packet, 2 + len, deadline_ns)) {
        do {
            got = socket_read(fd, answer + n, room - n, deadline_ns);
            n += got > 0 ? (size_t)got : 0;
        } while (got > 0 && n < room);
    }
    int why = errno;
    close(fd);
    errno = why;
    return n > 0 || got == 0 ? (ssize_t)n : -1;
}

enum epmd_answer epmd_port(struct in_addr host, const char *alive, int64_t deadline_ns,
                           uint16_t *port) {
    char request[1 + 255];
    uint8_t answer[1024];
    size_t len = strlen(alive);
    request[0] = PORT_PLEASE2_REQ;
    memcpy(request + 1, alive, len < 255 ? len : 255);
    ssize_t n = ask(host, request, 1 + (len < 255 ? len : 255), deadline_ns, answer, sizeof answer);
    if (n < 0) {
        return EPMD_UNREACHABLE;
    }
    struct cursor c = cursor_of(answer, (size_t)n);
    uint8_t kind = cursor_u8(&c);
    uint8_t refused = cursor_u8(&c);
    if (c.failed || kind != PORT2_RESP) {
        return EPMD_GARBAGE;
    }
    if (refused) {
        return EPMD_UNKNOWN;
    }
    *port = cursor_u16(&c);
    return c.failed || *port == 0 ? EPMD_GARBAGE : EPMD_FOUND;
}

// Lines "name NAME at port N", behind epmd's own port.
void epmd_names(struct in_addr host, int64_t deadline_ns, char out[EPMD_NAMES_BYTES]) {
    static const char request[1] = {NAMES_REQ};
    uint8_t answer[8192];
    size_t used = 0;
    ssize_t n = ask(host, request, sizeof request, deadline_ns, answer, sizeof answer - 1);
    out[0] = 0;
    if (n < 4) {
        return;
    }
    answer[n] = 0;
    char *next, *line = strtok_r((char *)answer + 4, "\n", &next);
    for (; line; line = strtok_r(NULL, "\n", &next)) {
        char name[256];
        if (sscanf(line, "name %255s at port", name) == 1 &&
            used + strlen(name) + 3 < EPMD_NAMES_BYTES) {
            used += (size_t)sprintf(out + used, "%s%s", used ? ", " : "", name);
        }
    }
}
