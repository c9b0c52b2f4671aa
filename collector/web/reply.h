// SPDX-License-Identifier: Apache-2.0
// Replies: their heads, and bodies behind gzip where who asks takes that.
#pragma once

#include <event2/http.h>
#include <stdbool.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/embedded.h"

// Types of bodies.
#define REPLY_JSON "application/json"
#define REPLY_HTML "text/html; charset=utf-8"

struct reply {
    int status;
    const char *type;
    struct slice body; // copied
};

// Answers that are on their way to those who asked. libevent gives some of them back after the
// server is gone: it lives until the last one is.
struct outbox {
    size_t bytes, most;
    bool closed;
};

// For that many bytes at most; NULL without memory.
struct outbox *outbox_new(size_t most);
// Nothing is sent any more. NULL is allowed.
void outbox_close(struct outbox *outbox);

// Sends it; nobody keeps it.
void reply_send(struct evhttp_request *req, const struct reply *reply);
// Whether who asks takes gzip.
bool reply_takes_gzip(struct evhttp_request *req);
// Puts a body behind gzip, on any thread. False, and it is as it was, where that is not worth it or
// fails.
bool reply_gzip(struct buffer *body);
// Sends an answer of the API, and takes its memory, which comes back once it is on its way. Where
// too much is on its way already, as nobody reads it, it is refused (503) instead.
void reply_answer(struct evhttp_request *req, const char *type, struct buffer *body, bool gzipped,
                  struct outbox *outbox);
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
