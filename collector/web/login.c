// SPDX-License-Identifier: Apache-2.0
#include "web/login.h"

#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "web/reply.h"

enum { TARGET_BYTES = 2048, LOCATION_BYTES = 3 * TARGET_BYTES + 32 };

// Whether a text is a path of this server and nothing that a browser takes for another one's:
// "//host" and "/\host" are such. Browsers also leave out control characters wherever they stand.
static bool is_ours(const char *target) {
    if (target[0] != '/' || target[1] == '/' || strlen(target) >= TARGET_BYTES ||
        strncmp(target, "/login", 6) == 0) {
        return false;
    }
    for (const char *c = target; *c; c++) {
        if (*c <= ' ' || *c > '~' || *c == '\\') {
            return false;
        }
    }
    return true;
}

// Where the form leads to, of the part of its address behind the "?".
static void target_of(struct evhttp_request *req, char out[TARGET_BYTES]) {
    struct evkeyvalq fields;
    const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req));
    snprintf(out, TARGET_BYTES, "/");
    if (query && *query && evhttp_parse_query_str(query, &fields) == 0) {
        const char *to = evhttp_find_header(&fields, "to");
        if (to && is_ours(to)) {
            snprintf(out, TARGET_BYTES, "%s", to);
        }
        evhttp_clear_headers(&fields);
    }
}

static void lead(struct evhttp_request *req, const char *location) {
    evhttp_add_header(evhttp_request_get_output_headers(req), "Location", location);
    reply_send(req, &(struct reply){.status = 303, .type = REPLY_HTML});
}

// To the form, from where it leads to the target.
static void lead_to_form(struct evhttp_request *req, const char *query, const char *target) {
    char location[LOCATION_BYTES];
    char *encoded = strcmp(target, "/") == 0 ? NULL : evhttp_uriencode(target, -1, 0);
    bool more = encoded || *query;
    snprintf(location, sizeof location, "/login%s%s%s%s%s", more ? "?" : "", query,
             encoded && *query ? "&" : "", encoded ? "to=" : "", encoded ? encoded : "");
    free(encoded);
    lead(req, location);
}

void login_ask(struct evhttp_request *req) {
    char target[TARGET_BYTES];
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
    const char *path = evhttp_uri_get_path(uri), *query = evhttp_uri_get_query(uri);
    int len = snprintf(target, sizeof target, "%s%s%s", path && *path ? path : "/",
                       query ? "?" : "", query ? query : "");
    lead_to_form(req, "", len < TARGET_BYTES && is_ours(target) ? target : "/");
}

// Only the page's own form: SameSite=Strict and form-action keep others' away, and who logs
// somebody else in gains nothing.
void login_take(const struct access_rules *rules, bool secure, struct evhttp_request *req) {
    struct evbuffer *in = evhttp_request_get_input_buffer(req);
    char body[LIMIT_WEB_BODY_BYTES + 1], cookie[ACCESS_COOKIE_BYTES], target[TARGET_BYTES];
    struct evkeyvalq fields;
    ev_ssize_t len = evbuffer_copyout(in, body, sizeof body - 1);
    body[len < 0 ? 0 : len] = 0;
    if (len <= 0 || evhttp_parse_query_str(body, &fields) != 0) {
        reply_error(req, 400, "want token=… as a form sends it");
        return;
    }
    const char *token = evhttp_find_header(&fields, "token");
    bool known = token && access_token(rules, slice_text(token));
    evhttp_clear_headers(&fields);
    target_of(req, target);
    if (known) {
        evhttp_add_header(evhttp_request_get_output_headers(req), "Set-Cookie",
                          access_cookie(rules, secure, cookie));
        lead(req, target);
    } else {
        lead_to_form(req, "wrong=1", target);
    }
}
