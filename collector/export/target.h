// SPDX-License-Identifier: Apache-2.0
// Where an export goes: clickhouse[s]://[user@]host[:port]/database, or, for OTLP,
// http[s]://host[:port][/path], read and checked. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    TARGET_WHY_BYTES = 300,
    TARGET_HOST_BYTES = 254,
    TARGET_WORD_BYTES = 65,
    TARGET_PATH_BYTES = 202
};

struct target {
    bool tls;
    char user[TARGET_WORD_BYTES]; // empty: the engine's own default
    char host[TARGET_HOST_BYTES]; // a name or an address, IPv6 without brackets
    uint16_t port;
    char database[TARGET_WORD_BYTES]; // of ClickHouse
    char path[TARGET_PATH_BYTES]; // of OTLP: empty, or with a / at its end and none at its start
};

// Reads it. On false `why` says in some words what is wrong with it; nothing of a password is in
// there.
bool target_parse(const char *url, struct target *out, char why[TARGET_WHY_BYTES]);
// The same of a receiver of OTLP.
bool target_parse_otlp(const char *url, struct target *out, char why[TARGET_WHY_BYTES]);
// Whether a database may be called so.
bool target_database_valid(const char *name);
// Whether only this machine can read what is sent there.
bool target_loopback(const struct target *t);
// The same address without a user, for logs: host:port/database or host:port/path. out:
// TARGET_TEXT_BYTES.
enum { TARGET_TEXT_BYTES = TARGET_HOST_BYTES + TARGET_PATH_BYTES + 16 };
const char *target_text(const struct target *t, char out[TARGET_TEXT_BYTES]);
