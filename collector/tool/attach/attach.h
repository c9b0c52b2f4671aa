// SPDX-License-Identifier: Apache-2.0
// kprof attach, in parts: its command line, and the node that is attached to. One thread.
#pragma once

#include "base/buffer.h"
#include "dist/cookie.h"
#include "dist/shim.h"
#include "tool/reach.h"

enum { ATTACH_FILES = 4 };

struct attach_options {
    struct dist_name node;
    const char *cookie_file;
    char cookie[COOKIE_BYTES];
    const char *db;     // of a collector of its own; NULL: none, or see either
    const char *listen; // where that listens; NULL: where the node reaches this host
    bool either;        // nothing is said of a collector: the default one, or one of its own.
                        // A configuration that names one takes this back
    struct reach reach; // prepared
    struct shim_options trace; // points into the rest
    struct shim_tier tiers[SHIM_TIERS];
    struct shim_entry entries[SHIM_ENTRIES];
    const char *presets[SHIM_PRESETS];
    struct mfa identity;
    const char *config_name;
    struct buffer files[ATTACH_FILES]; // the texts of the configuration and of TLS's files
    int64_t for_ns;                    // 0: until a signal comes
    bool no_tiers;                     // nothing is traced
    bool json;
};

// Reads the command line. EXIT_SUCCESS, or another status and has told why. attach_options_free in
// either case. o must not be moved.
int attach_options_read(int argc, char **argv, struct attach_options *o);
// Has the node, and this command, reach the collector that o->reach tells of: anew, once that has
// changed. EXIT_SUCCESS, or another status and has told why.
int attach_options_reach(struct attach_options *o);
void attach_options_free(struct attach_options *o);

// After command_options: whether one node is left, and nothing else. EXIT_SUCCESS, or EXIT_USAGE
// and has told why.
int attach_one_node(int argc, char **argv);
// Reads NODE and the cookie for the command `command`. EXIT_SUCCESS, or another status and has told
// why. warning says what is wrong with the cookie's file all the same, or is ""; NULL: that is told
// on stderr.
int attach_read_node(const char *command, const char *node, const char *cookie_file,
                     struct dist_name *name, char cookie[COOKIE_BYTES], char *warning);
// Adds the value of a --preset, which must stay, to presets. EXIT_SUCCESS, or EXIT_USAGE and has
// told why.
int attach_take_preset(const char *command, const char *text, const char **presets,
                       uint32_t *count);
// Our own name in the distribution, one for each process.
const char *attach_own_name(void);

enum { ATTACH_CONNECT_MS = 7000 };
