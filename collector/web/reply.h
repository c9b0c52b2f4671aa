// SPDX-License-Identifier: Apache-2.0
// Replies: their heads, and bodies behind gzip where who asks takes that.
#pragma once

#include <event2/http.h>
#include <stdbool.h>

#include "base/bytes.h"
#include "base/embedded.h"

// Types of bodies.
#define REPLY_JSON "application/json"
#define REPLY_HTML "text/html; charset=utf-8"

struct reply {
    int status;
    const char *type;
    struct slice body; // copied
    struct slice
        gzipped;      // the same behind gzip, which is not copied and lives on; len 0: made here
    const char *etag; // of the body; NULL: it is not to be kept
};

// Sends it; nobody keeps it.
void reply_send(struct evhttp_request *req, const struct reply *reply);
// Sends a file that is inside of the program. Where who asks has the same already (ETag), says that
// alone.
void reply_file(struct evhttp_request *req, const char *type, const struct embedded *file);
// An error as JSON, {"error": why}.
void reply_error(struct evhttp_request *req, int status, const char *why);
// What every reply's head says: nothing of others' is loaded, nobody guesses types or frames it.
void reply_headers(struct evhttp_request *req);
// From the callback of a connection that closes, for a request of it that was not answered to its
// end: who asked may have left, and then nobody else gives the request back.
void reply_abandon(struct evhttp_request *req);
