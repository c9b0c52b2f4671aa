// SPDX-License-Identifier: Apache-2.0
// The collector as a service of a supervisor such as systemd: a listening socket that was opened
// for it, and word of how it is.
//
// Two small protocols, both declared stable by systemd and spoken by other supervisors too:
// sd_listen_fds(3) is three environment variables and inherited descriptors from 3 on, sd_notify(3)
// one datagram of text. Written by hand: libsystemd would bring liblzma, libzstd, liblz4, libgcrypt
// and libcap into the process for the sake of a getenv and a sendto. All of it from the main
// thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/listen_address.h"

// Whether sockets were handed over to this very process.
bool service_activated(void);

// The listening TCP socket that was handed over, non-blocking and closed on exec; the environment
// that told of it is cleared. `address` gets its IP address as text, *port its port. -1 with *why
// (static text) when there is not exactly one, or it is something else.
int service_socket(char address[LISTEN_ADDRESS_BYTES], uint16_t *port, const char **why);

// Tells the supervisor, as "READY=1\nSTATUS=…". Does nothing without one; never blocks, and its
// failure is no error of ours.
void service_notify(const char *state);

// How often "WATCHDOG=1" is due, in microseconds: half the time that the supervisor waits. 0: it
// does not wait for that.
int64_t service_watchdog_us(void);
