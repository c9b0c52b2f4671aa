// SPDX-License-Identifier: Apache-2.0
// The way of a command to a node, whether kprof traces that already or not: which collector it is,
// and kprof attach around the command where the node is not connected to it yet: a child that
// brings the shim in, with a collector of its own where none is wanted, and takes both out again.
#pragma once

#include "tool/nodes/nodes.h"
#include "tool/own.h"

enum { AROUND_ARGUMENTS = 128 };

struct around_options {
    const char *command; // for what is told
    const char *node;
    const char *db;     // of a collector of its own; NULL: reach tells of one that runs
    const char *listen; // where that one listens; NULL: kprof attach knows
    // what kprof attach is told besides; none: kprof is in the node already
    const char *arguments[AROUND_ARGUMENTS];
    uint32_t argument_count;
    bool reads;    // the database has to be known
    bool forgets;  // what a collector of its own writes is nobody's, unless a database is named
    char *scratch; // made by around_settle: the folder of such a database; NULL: none
    bool quiet;    // nothing but errors
};

// Takes an option that goes on to kprof attach; value NULL: it has none. EXIT_SUCCESS, or
// EXIT_USAGE and has told why.
int around_take(struct around_options *o, const char *name, const char *value);

// A collector before it is asked.
struct collector_seen {
    bool there;                      // it answers
    bool traced;                     // the node is connected to it
    char database[NODES_PATH_BYTES]; // that it writes, where this host has such a file; "": unknown
};

// Finds the collector: one that reach names, one that runs where the node is, or one of its own:
// o->db is set then. *db: the database that it writes; given: that the command line names, or NULL;
// it may lie in *seen. EXIT_SUCCESS, or another status and has told why.
int around_settle(struct around_options *o, const struct reach *reach, const char **db,
                  struct collector_seen *seen);

struct around {
    struct child attach;
    bool began; // it has traced
    struct own_secret secret;
    char at[REACH_AT_BYTES]; // HOST:PORT of the collector of its own
    const char *command;
    char *scratch;
};

#define AROUND_NONE ((struct around){.attach.said = -1, .secret.fd = -1})

// Starts it, waits until it traces, and has reach lead to its collector; what it tells until then
// is told. EXIT_SUCCESS, or another status and has told why. around_end in either case; *a must not
// be moved until then.
int around_begin(struct around *a, const struct around_options *o, struct reach *reach);
// Takes kprof out of the node, and has a collector of its own write what there is. EXIT_SUCCESS, or
// another status and has told why.
int around_end(struct around *a);
