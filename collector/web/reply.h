// SPDX-License-Identifier: Apache-2.0
// Replies: their heads, and bodies behind gzip where who asks takes that.
#pragma once

#include <event2/http.h>
#include <stdbool.h>

#include "base/bytes.h"

// Types of bodies.
extern const char reply_json_type[];
extern const char reply_html_type[];

struct reply {
    int status;
    const char *type;
    struct slice body; // copied
    struct slice
        gzipped;      // the same behind gzip, which is not copied and lives on; len 0: made here
    const char *etag; // of the body; NULL: it is not to be kept
};

// Sends it. Where who asks has the same body already (ETag), says that alone.
void reply_send(struct evhttp_request *req, const struct reply *reply);
// An error as JSON, {"error": why}.
void reply_error(struct evhttp_request *req, int status, const char *why);
// What every reply's head says: nothing of others' is loaded, nobody guesses types or frames it.
void reply_headers(struct evhttp_request *req);
