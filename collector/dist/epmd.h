// SPDX-License-Identifier: Apache-2.0
// epmd, which knows the ports of a host's Erlang nodes (erts: erl_dist_protocol, "EPMD Protocol").
// IPv4, as erl_interface is. Everything that it answers is hostile. Blocks until the deadline at
// most.
#pragma once

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

enum epmd_answer {
    EPMD_FOUND,
    EPMD_UNKNOWN,     // it knows no node of that name
    EPMD_UNREACHABLE, // errno says why
    EPMD_GARBAGE      // that is no epmd
};

enum { EPMD_NAMES_BYTES = 512 };

// Asks for the port of the node alive. deadline_ns is a monotonic time.
enum epmd_answer epmd_port(struct in_addr host, const char *alive, int64_t deadline_ns,
                           uint16_t *port);
// The names of the nodes that it knows, "a, b", cut where the room ends; "" when there are none or
// it does not answer.
void epmd_names(struct in_addr host, int64_t deadline_ns, char out[EPMD_NAMES_BYTES]);
// Where epmd listens: ERL_EPMD_PORT, or 4369.
uint16_t epmd_own_port(void);
