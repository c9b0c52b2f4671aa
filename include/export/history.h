// SPDX-License-Identifier: Apache-2.0
// The history that collectors have exported to ClickHouse, as a store that can be asked as that of
// a file is (store/query*.h): all collectors together, or some.
//
// A kept request has a number here that is its own in its file, and that file's place among all
// that were exported, the first one first: of the first one numbers are the same as there.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

struct history_options {
    const char *url;      // clickhouse[s]://[user@]host[:port]/database
    const char *password; // NULL: none
    const char *ca;       // file of authorities; NULL: the system's
    const char *clusters; // choices (store/query.h); NULL: all
    const char *collectors;
};

// Opens it, and asks the engine once, so that mistakes are told at once. Texts are copied. On an
// error *out is NULL, and error says what to do; it never has the password in it. Questions may
// take as long as store_set_deadline says; one thread at a time.
enum store_status history_open(const struct history_options *options, struct store **out,
                               char error[STORE_ERROR_BYTES]);
// The same address for messages: host:port/database.
bool history_name(const char *url, char *out, size_t size);
