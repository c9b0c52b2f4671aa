// SPDX-License-Identifier: Apache-2.0
// A collector of a command's own: kprof-collector as a child, on a free port that only a secret
// made for the occasion opens, for as long as the command lasts. One thread.
#pragma once

#include <netinet/in.h>
#include <stdbool.h>

#include "tool/child.h"
#include "tool/reach.h"

#define OWN_DATABASE "kprof.db"

enum { OWN_PATH_BYTES = 32 };

// A secret in a file without a name, which this process and its children can read.
struct own_secret {
    int fd;                    // -1: none
    char file[OWN_PATH_BYTES]; // for --secret-file
};

bool own_secret_make(struct own_secret *s); // false: errno says why
void own_secret_end(struct own_secret *s);

struct own {
    struct child collector;
    struct own_secret secret;
    const char *db;
    bool fresh;              // there was no such database
    char at[REACH_AT_BYTES]; // HOST:PORT where it listens
};

struct own_options {
    const char *db;
    const char *listen;      // as kprof-collector's --listen
    const char *secret_file; // NULL: it makes one
};

// Before the first own_begin.
#define OWN_NONE ((struct own){.collector.said = -1, .secret.fd = -1})

// Starts it, and waits until it listens. False, with why: what it says itself, where it says
// something. own_end in either case.
bool own_begin(struct own *o, const struct own_options *options, char why[CHILD_LINE_BYTES]);
// Whether it still runs. False: with why. To be called every now and then.
bool own_runs(struct own *o, char why[CHILD_LINE_BYTES]);
// Has it write what there is, and end. With forget a database that was not there before is removed.
// False: it could not write everything; with why.
bool own_end(struct own *o, bool forget, char why[CHILD_LINE_BYTES]);

// The address of this host where the node at the other end of a connection reaches it: loopback
// when both ends are this host. True: they are.
bool own_address(struct in_addr here, struct in_addr there, char out[INET_ADDRSTRLEN]);
// The same of a connected socket. False also when that cannot be told.
bool own_address_of(int fd, char out[INET_ADDRSTRLEN]);
// Whether a node (name@host, or name) is on this host, as far as the name tells.
bool own_is_here(const char *node);
