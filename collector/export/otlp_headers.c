// SPDX-License-Identifier: Apache-2.0
#include "export/otlp_headers.h"

#include <ctype.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// Those that say how a request is sent.
static bool is_ours(const char *line, size_t name) {
    static const char *const all[] = {"Connection",     "Content-Encoding",
                                      "Content-Length", "Content-Type",
                                      "Expect",         "Host",
                                      "Keep-Alive",     "TE",
                                      "Trailer",        "Transfer-Encoding",
                                      "Upgrade"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strlen(all[i]) == name && strncasecmp(line, all[i], name) == 0) {
            return true;
        }
    }
    return false;
}

// NULL, or what is wrong with a line.
static const char *wrong_with(const char *line) {
    size_t name = 0;
    while (isalnum((unsigned char)line[name]) ||
           (line[name] && strchr("-_.!#$%&'*+^`|~", line[name]))) {
        name++;
    }
    if (name == 0 || line[name] != ':') {
        return "no \"Name: value\"";
    }
    if (is_ours(line, name)) {
        return "a header that kprof sets itself";
    }
    const char *value = line + name + 1;
    value += strspn(value, " ");
    if (!*value) {
        return "a header without a value";
    }
    for (; *value; value++) {
        if (iscntrl((unsigned char)*value)) {
            return "a header with a control byte";
        }
    }
    return NULL;
}

bool otlp_headers_read(const char *text, struct otlp_headers *out, char why[HEADERS_WHY_BYTES]) {
    *out = (struct otlp_headers){.text = strdup(text), .len = strlen(text)};
    int count = 0, number = 0;
    if (!out->text) {
        snprintf(why, HEADERS_WHY_BYTES, "out of memory");
        return false;
    }
    for (char *at = out->text, *end; at; at = end ? end + 1 : NULL) {
        end = strchr(at, '\n');
        if (end) {
            *end = 0;
        }
        size_t len = strlen(at);
        if (len > 0 && at[len - 1] == '\r') {
            at[len - 1] = 0;
        }
        number++;
        const char *wrong = !*at                          ? NULL
                            : count == LIMIT_OTLP_HEADERS ? "one header too many"
                                                          : wrong_with(at);
        if (wrong) {
            snprintf(why, HEADERS_WHY_BYTES, "line %d is %s", number, wrong);
            return false;
        }
        if (*at) {
            out->lines[count++] = at;
        }
    }
    if (count == 0) {
        snprintf(why, HEADERS_WHY_BYTES, "there is no header in it");
    }
    return count > 0;
}

void otlp_headers_free(struct otlp_headers *h) {
    if (h->text) {
        OPENSSL_cleanse(h->text, h->len);
        free(h->text);
    }
    *h = (struct otlp_headers){0};
}
