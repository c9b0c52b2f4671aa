// SPDX-License-Identifier: Apache-2.0
// Sends batches to an engine: sets its tables up, inserts, finds the rows that it refuses.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "export/batch.h"
#include "export/http.h"
#include "export/parts.h"
#include "export/statements.h"

struct sender {
    struct http *http;
    const char *database;  // the engine's; lives as long as this
    bool near;             // it is on this machine: to pack the rows would take longer
    uint32_t major, minor; // of its version; 0: not known
    struct buffer sql;
    struct buffer packed;
    uint64_t rows;                 // that it has taken
    char why[CHANGE_REASON_BYTES]; // what went wrong last
};

void sender_init(struct sender *s, struct http *http, const char *database);
void sender_free(struct sender *s); // not the http

// Asks for the version, and makes the tables that are not there.
bool sender_set_up(struct sender *s);
// Tells that a collector is there. *twin_s: when another one of its name was, seconds since 1970
// UTC by the engine's clock; 0: there was none.
bool sender_beat(struct sender *s, const struct statement_self *self, int64_t *twin_s);
// Has an engine without TTL drop partitions that are past their time. The count, or -1.
int sender_drop_old(struct sender *s);

// Missing: the tables are not there any more.
enum sent sender_send(struct sender *s, struct batch *b);
