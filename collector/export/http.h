// SPDX-License-Identifier: Apache-2.0
// HTTP(S) to an engine or a receiver, through libcurl: no redirects, no proxies, answers with
// bounds on their size and time. One thread asks; another may stop it.
#pragma once

#include <stdbool.h>

#include "base/bytes.h"
#include "export/answer.h"
#include "export/target.h"

struct http; // opaque

struct http_options {
    const struct target *target;
    const char *password; // NULL: none; goes as a header
    const char *ca;       // file of authorities; NULL: the system's
    const char *type;     // Content-Type of what is sent; NULL: bytes
    // further heads, such as "Authorization: Bearer x", NULL behind the last; NULL: none
    const char *const *heads;
    long answer_ms; // until an answer is whole; 0: LIMIT_EXPORT_ANSWER_SECONDS
};

// NULL on failure: no memory. The options are copied.
struct http *http_new(const struct http_options *options);
void http_free(struct http *h); // NULL is allowed

struct http_question {
    const char *path;    // below the target's; NULL: the target itself
    const char *sql;     // NULL: it is the body
    const char *setting; // "name=value" for the engine; NULL: none
    struct slice body;
    bool packed; // the body is of gzip
    // Takes a body of success as it comes, `most` bytes of it: then the answer has none. False ends
    // it. NULL: the answer has its first LIMIT_EXPORT_ANSWER_BYTES.
    bool (*take)(void *to, struct slice bytes);
    void *to;
    size_t most;
    int64_t deadline_ns; // monotonic; 0: LIMIT_EXPORT_ANSWER_SECONDS from now
};

// Asks, and waits for the answer, which is valid until the next call. False when there was none, or
// not a whole one: `why`, CHANGE_REASON_BYTES, says why.
bool http_ask(struct http *h, const struct http_question *q, struct answer *out, char *why);

// From another thread: what is asked now, and from now on, fails at once.
void http_stop(struct http *h);
bool http_stopped(const struct http *h);
