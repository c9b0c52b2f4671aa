// SPDX-License-Identifier: Apache-2.0
// Addresses of hosts, waited for no longer than the caller can: without an answer of any DNS server
// the resolver takes ten seconds or more.
#pragma once

#include <netdb.h>
#include <stdint.h>

// Looks up a host's addresses for TCP of a family, AF_UNSPEC for all; deadline_ns: of
// clock_monotonic. 0 and *found, for freeaddrinfo, or an error for gai_strerror: EAI_AGAIN also
// when the deadline has passed. What takes longer goes on in a thread of its own, and the next call
// for the same host and family takes up its result. One thread at a time.
int lookup(const char *host, int family, int64_t deadline_ns, struct addrinfo **found);
