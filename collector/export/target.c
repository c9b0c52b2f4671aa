// SPDX-License-Identifier: Apache-2.0
#include "export/target.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/listen_address.h"

static const char PLAIN[] = "clickhouse://", TLS[] = "clickhouses://";
static const char HTTP[] = "http://", HTTPS[] = "https://";
enum { PORT_PLAIN = 8123, PORT_TLS = 8443, PORT_OTLP = 4318, PORT_DIGITS = 5 };

static bool refuse(char *why, const char *text) {
    snprintf(why, TARGET_WHY_BYTES, "%s", text);
    return false;
}

static bool starts_with(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

// Copies n bytes that are all letters, digits or one of `others`; false: some are not, or there are
// too few or too many.
static bool take_word(const char *from, size_t n, const char *others, char *out, size_t room) {
    if (n == 0 || n >= room) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)from[i]) && !strchr(others, from[i])) {
            return false;
        }
    }
    memcpy(out, from, n);
    out[n] = 0;
    return true;
}

static bool take_port(const char *from, size_t n, uint16_t *port) {
    char digits[PORT_DIGITS + 1];
    if (!take_word(from, n, "", digits, sizeof digits) || digits[strspn(digits, "0123456789")]) {
        return false;
    }
    long number = strtol(digits, NULL, 10);
    *port = (uint16_t)number;
    return number > 0 && number <= UINT16_MAX;
}

// host, host:port, [IPv6] or [IPv6]:port.
static bool take_host(const char *from, size_t n, struct target *out) {
    const char *end = from + n;
    const char *after = memchr(from, ':', n);
    if (*from == '[') {
        after = memchr(from, ']', n);
        if (!after ||
            !take_word(from + 1, (size_t)(after - from - 1), ":.", out->host, sizeof out->host)) {
            return false;
        }
        after++;
    } else {
        after = after ? after : end;
        if (!take_word(from, (size_t)(after - from), ".-", out->host, sizeof out->host)) {
            return false;
        }
    }
    return after == end ||
           (*after == ':' && take_port(after + 1, (size_t)(end - after - 1), &out->port));
}

static bool take_database(const char *from, char out[TARGET_WORD_BYTES]) {
    return !isdigit((unsigned char)*from) &&
           take_word(from, strlen(from), "_", out, TARGET_WORD_BYTES);
}

bool target_database_valid(const char *name) {
    char taken[TARGET_WORD_BYTES];
    return take_database(name, taken);
}

bool target_parse(const char *url, struct target *out, char why[TARGET_WHY_BYTES]) {
    bool tls = starts_with(url, TLS);
    *out = (struct target){.tls = tls, .port = tls ? PORT_TLS : PORT_PLAIN};
    if (!tls && !starts_with(url, PLAIN)) {
        return refuse(why,
                      "want clickhouse://[USER@]HOST[:PORT]/DATABASE, or clickhouses:// for TLS");
    }
    const char *at = url + (tls ? sizeof TLS : sizeof PLAIN) - 1;
    const char *slash = strchr(at, '/');
    size_t len = slash ? (size_t)(slash - at) : strlen(at);
    const char *host = memchr(at, '@', len);
    if (host && memchr(at, ':', (size_t)(host - at))) {
        return refuse(why, "a password in the address is open to everybody on this machine; put it "
                           "into a file, for --export-password-file or --from-password-file");
    }
    if (host && !take_word(at, (size_t)(host - at), "_.-", out->user, sizeof out->user)) {
        return refuse(why, "the user is 1 to 64 letters, digits or one of _.-");
    }
    host = host ? host + 1 : at;
    if (host == at + len || !take_host(host, len - (size_t)(host - at), out)) {
        return refuse(why, "that is no host with a port from 1 to 65535");
    }
    if (!slash || !take_database(slash + 1, out->database)) {
        return refuse(why, "the database behind the host is 1 to 64 letters, digits or _, a letter "
                           "or _ first");
    }
    return true;
}

// The path that the receiver's own words stand below: without the / around it.
static bool take_path(const char *from, char out[TARGET_PATH_BYTES]) {
    size_t n = strlen(from);
    while (n > 0 && from[n - 1] == '/') {
        n--;
    }
    if (n == 0) {
        return true;
    }
    if (!take_word(from, n, "/-_.~", out, TARGET_PATH_BYTES - 1)) {
        return false;
    }
    memcpy(out + n, "/", 2);
    return true;
}

bool target_parse_otlp(const char *url, struct target *out, char why[TARGET_WHY_BYTES]) {
    bool tls = starts_with(url, HTTPS);
    *out = (struct target){.tls = tls, .port = PORT_OTLP};
    if (!tls && !starts_with(url, HTTP)) {
        return refuse(why, "want http://HOST[:PORT][/PATH], or https:// for TLS");
    }
    const char *at = url + (tls ? sizeof HTTPS : sizeof HTTP) - 1;
    const char *slash = strchr(at, '/');
    size_t len = slash ? (size_t)(slash - at) : strlen(at);
    if (memchr(at, '@', len)) {
        return refuse(why, "a user or a password in the address is open to everybody on this "
                           "machine; put an Authorization header into a file, for "
                           "--otlp-headers-file");
    }
    if (len == 0 || !take_host(at, len, out)) {
        return refuse(why, "that is no host with a port from 1 to 65535");
    }
    if (slash && !take_path(slash + 1, out->path)) {
        return refuse(why, "the path behind the host is at most 200 letters, digits or one of "
                           "/-_.~; /v1/traces and /v1/metrics are put behind it");
    }
    return true;
}

bool target_loopback(const struct target *t) {
    return strcmp(t->host, "localhost") == 0 || listen_address_loopback(t->host);
}

const char *target_text(const struct target *t, char out[TARGET_TEXT_BYTES]) {
    bool brackets = strchr(t->host, ':');
    snprintf(out, TARGET_TEXT_BYTES, "%s%s%s:%u/%s", brackets ? "[" : "", t->host,
             brackets ? "]" : "", t->port, t->database[0] ? t->database : t->path);
    return out;
}
