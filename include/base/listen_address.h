// SPDX-License-Identifier: Apache-2.0
// Where a program listens: as people write it, and as a socket has it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LISTEN_ADDRESS_BYTES = 64, LISTEN_WHY_BYTES = 200 };

// Reads "[ADDR:]PORT", with an IPv6 address in brackets; without ADDR, and for localhost, it is
// 127.0.0.1. On false why says in some words what is wrong with it.
bool listen_address_parse(const char *text, char address[LISTEN_ADDRESS_BYTES], uint16_t *port,
                          char why[LISTEN_WHY_BYTES]);
// Whether only this machine can reach an IP address.
bool listen_address_loopback(const char *address);
// Where a socket listens. False, and nothing is written, where that is no address of IP.
bool listen_address_of(int fd, char address[LISTEN_ADDRESS_BYTES], uint16_t *port);
