// SPDX-License-Identifier: Apache-2.0
#include "base/listen_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static bool is_address(const char *text) {
    struct in_addr in;
    struct in6_addr in6;
    return inet_pton(AF_INET, text, &in) == 1 || inet_pton(AF_INET6, text, &in6) == 1;
}

bool listen_address_loopback(const char *address) {
    struct in_addr in;
    struct in6_addr in6;
    return (inet_pton(AF_INET, address, &in) == 1 && (ntohl(in.s_addr) >> 24) == 127) ||
           (inet_pton(AF_INET6, address, &in6) == 1 && IN6_IS_ADDR_LOOPBACK(&in6));
}

bool listen_address_parse(const char *text, char address[LISTEN_ADDRESS_BYTES], uint16_t *port,
                          char why[LISTEN_WHY_BYTES]) {
    const char *colon = strrchr(text, ':');
    const char *digits = colon ? colon + 1 : text;
    char given[LISTEN_ADDRESS_BYTES], *end;
    errno = 0;
    long number = strtol(digits, &end, 10);
    if (end == digits || *end || errno || number < 0 || number > 65535 || *digits == '-' ||
        *digits == '+') {
        snprintf(why, LISTEN_WHY_BYTES, "want [ADDR:]PORT, as in 4711 or 127.0.0.1:4711");
        return false;
    }
    size_t len = colon ? (size_t)(colon - text) : 0;
    if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    if (len >= sizeof given) {
        snprintf(why, LISTEN_WHY_BYTES, "the address is too long");
        return false;
    }
    memcpy(given, text, len);
    given[len] = 0;
    const char *resolved = len == 0 || strcmp(given, "localhost") == 0 ? "127.0.0.1" : given;
    if (!is_address(resolved)) {
        snprintf(why, LISTEN_WHY_BYTES, "%s is not an IP address", resolved);
        return false;
    }
    strcpy(address, resolved);
    *port = (uint16_t)number;
    return true;
}

bool listen_address_of(int fd, char address[LISTEN_ADDRESS_BYTES], uint16_t *port) {
    struct sockaddr_storage storage = {0};
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    socklen_t len = sizeof storage;
    if (getsockname(fd, (struct sockaddr *)&storage, &len) != 0 ||
        (storage.ss_family != AF_INET && storage.ss_family != AF_INET6)) {
        return false;
    }
    memcpy(&in, &storage, sizeof in);
    memcpy(&in6, &storage, sizeof in6);
    bool four = storage.ss_family == AF_INET;
    const void *ip = four ? (const void *)&in.sin_addr : (const void *)&in6.sin6_addr;
    *port = ntohs(four ? in.sin_port : in6.sin6_port);
    return inet_ntop(storage.ss_family, ip, address, LISTEN_ADDRESS_BYTES);
}
