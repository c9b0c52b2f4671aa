// SPDX-License-Identifier: Apache-2.0
// Who may ask: the Host header, the token, and the cookie that stands for the token once somebody
// has logged in.
#pragma once

#include <event2/http.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { ACCESS_DIGEST_BYTES = 32 };

struct access_rules {
    bool loopback; // listens there: then Host must name it
    bool token;    // one is wanted: its digest
    uint8_t digest[ACCESS_DIGEST_BYTES];
};

// token: len 0 for none. It is not needed any more once this returns.
struct access_rules access_rules(bool loopback, struct slice token);
// Whether a request's Host header is one that belongs here.
bool access_host(const struct access_rules *rules, const struct evhttp_request *req);
// Whether it carries the token, as "Authorization: Bearer TOKEN" or as the cookie, or none is
// wanted.
bool access_known(const struct access_rules *rules, const struct evhttp_request *req);
// Whether a text is the token; in a time that does not depend on where they differ.
bool access_token(const struct access_rules *rules, struct slice text);
// What Set-Cookie says for who knows the token; secure: over TLS. Returns out.
enum { ACCESS_COOKIE_BYTES = 200 };
char *access_cookie(const struct access_rules *rules, bool secure, char out[ACCESS_COOKIE_BYTES]);
