// SPDX-License-Identifier: Apache-2.0
#include "web/access.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/listen_address.h"
#include "web/web.h"

static const char cookie_name[] = "kprof=";
enum { HEX_BYTES = 2 * ACCESS_DIGEST_BYTES };

static void digest_of(struct slice text, uint8_t out[ACCESS_DIGEST_BYTES]) {
    EVP_Digest(text.data, text.len, out, NULL, EVP_sha256(), NULL);
}

// The cookie says that somebody knew the token, not what it is: the digest of its digest.
static void cookie_value(const struct access_rules *rules, char out[HEX_BYTES + 1]) {
    uint8_t twice[ACCESS_DIGEST_BYTES];
    digest_of(slice_of(rules->digest, sizeof rules->digest), twice);
    hex_text(twice, ACCESS_DIGEST_BYTES, out);
}

bool web_may_listen(const char *address, bool token, bool tls, bool plain,
                    char why[WEB_ERROR_BYTES]) {
    if (listen_address_loopback(address) || (token && (tls || plain))) {
        return true;
    }
    snprintf(why, WEB_ERROR_BYTES, "%s",
             token ? "without --tls-cert and --tls-key the token can be read on the way; with a "
                     "proxy in front that speaks TLS, add --http-plain"
                   : "other machines can connect there, so --http-token-file FILE is required; "
                     "make one with: (umask 077; openssl rand -hex 32 >FILE)");
    return false;
}

struct access_rules access_rules(bool loopback, struct slice token) {
    struct access_rules rules = {.loopback = loopback, .token = token.len > 0};
    if (rules.token) {
        digest_of(token, rules.digest);
    }
    return rules;
}

// A host as in "localhost", "127.0.0.1" or "[::1]", without the port.
static bool is_loopback(const char *host, size_t len) {
    char text[64];
    if (len > 0 && host[0] == '[') {
        host++;
        len = len >= 2 && host[len - 2] == ']' ? len - 2 : 0;
    }
    if (len == 0 || len >= sizeof text) {
        return false;
    }
    memcpy(text, host, len);
    text[len] = 0;
    return strcasecmp(text, "localhost") == 0 || listen_address_loopback(text);
}

bool access_host(const struct access_rules *rules, const struct evhttp_request *req) {
    const char *host =
        evhttp_find_header(evhttp_request_get_input_headers((struct evhttp_request *)req), "Host");
    if (!rules->loopback) {
        return true; // who asks must know the token, which a browser sends to nobody else
    }
    if (!host) {
        return false;
    }
    const char *bracket = strchr(host, ']');
    const char *colon = strchr(bracket ? bracket : host, ':');
    return is_loopback(host, colon ? (size_t)(colon - host) : strlen(host));
}

bool access_token(const struct access_rules *rules, struct slice text) {
    uint8_t digest[ACCESS_DIGEST_BYTES];
    digest_of(text, digest);
    return rules->token && CRYPTO_memcmp(digest, rules->digest, sizeof digest) == 0;
}

static bool has_cookie(const struct access_rules *rules, const char *cookies) {
    char wanted[HEX_BYTES + 1];
    cookie_value(rules, wanted);
    bool found = false;
    for (const char *at = cookies; at && (at = strstr(at, cookie_name)); at++) {
        const char *value = at + sizeof cookie_name - 1;
        bool starts = at == cookies || at[-1] == ' ' || at[-1] == ';';
        size_t len = strcspn(value, "; ");
        found = found || (starts && len == HEX_BYTES && CRYPTO_memcmp(value, wanted, len) == 0);
    }
    return found;
}

bool access_known(const struct access_rules *rules, const struct evhttp_request *req) {
    struct evkeyvalq *headers = evhttp_request_get_input_headers((struct evhttp_request *)req);
    const char *bearer = evhttp_find_header(headers, "Authorization");
    if (!rules->token) {
        return true;
    }
    if (bearer && strncasecmp(bearer, "Bearer ", 7) == 0 &&
        access_token(rules, slice_text(bearer + 7))) {
        return true;
    }
    return has_cookie(rules, evhttp_find_header(headers, "Cookie"));
}

char *access_cookie(const struct access_rules *rules, bool secure, char out[ACCESS_COOKIE_BYTES]) {
    char value[HEX_BYTES + 1];
    cookie_value(rules, value);
    snprintf(out, ACCESS_COOKIE_BYTES, "%s%s; Path=/; HttpOnly; SameSite=Strict%s", cookie_name,
             value, secure ? "; Secure" : "");
    return out;
}
