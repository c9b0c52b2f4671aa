// SPDX-License-Identifier: Apache-2.0
// The API's answers: a table of addresses, each with what works it out of the database. They run on
// the reader's threads.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "report/meters.h"
#include "store/store.h"
#include "web/params.h"

struct answer {
    struct params params;
    int64_t id;                   // of what is asked for, where the address names one
    struct meters *meters;        // a copy of what was counted; NULL: nothing counts
    struct meters_question asked; // how they are told
    int64_t unwritten_s;          // as in struct web_options
    struct buffer out;            // on an error nothing
    const char *type;             // of out; NULL: JSON
    int status;                   // of HTTP
    const char *why;              // of an error: static, or in store_error
};

struct address {
    const char *path; // "/api/v1/slow", or "/api/v1/slow/" with an id behind it
    // Works it out into out and status; on an error sets status and why.
    void (*work)(struct store *store, struct answer *a);
};

// What an address asks for, and the id that it names. NULL: nothing.
const struct address *address_find(const char *path, int64_t *id);
