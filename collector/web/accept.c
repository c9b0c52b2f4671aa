// SPDX-License-Identifier: Apache-2.0
#include "web/accept.h"

#include <ctype.h>
#include <string.h>

enum { ALL = 1000 }; // of q, which has three decimals

// A type that is taken, with those of its parameters that matter here; each "" where it is missing.
struct range {
    struct slice type, version, proto, encoding;
    int q;
};

static struct slice trimmed(const char *from, const char *end) {
    while (from < end && isspace((unsigned char)*from)) {
        from++;
    }
    while (end > from && isspace((unsigned char)end[-1])) {
        end--;
    }
    return slice_of(from, (size_t)(end - from));
}

// What stands before the separator, or the end, without space around it; goes behind it.
static struct slice part(struct slice *rest, char separator) {
    const char *from = (const char *)rest->data;
    const char *mark = rest->len > 0 ? memchr(from, separator, rest->len) : NULL;
    size_t len = mark ? (size_t)(mark - from) : rest->len;
    size_t over = mark ? len + 1 : len;
    *rest = slice_of(from + over, rest->len - over);
    return trimmed(from, from + len);
}

static bool same(struct slice a, const char *text) {
    return a.len == strlen(text) && strncasecmp((const char *)a.data, text, a.len) == 0;
}

// 0 to 1, with three decimals at most; -1: it is none.
static int quality(struct slice text) {
    static const int worth[] = {1000, 0, 100, 10, 1}; // of each character, the point has none
    int q = 0;
    if (text.len == 0 || text.len > 5) {
        return -1;
    }
    for (size_t i = 0; i < text.len; i++) {
        bool fits = i == 1 ? text.data[i] == '.' : isdigit(text.data[i]);
        if (!fits) {
            return -1;
        }
        q += i == 1 ? 0 : (text.data[i] - '0') * worth[i];
    }
    return q <= ALL ? q : -1;
}

static struct slice unquoted(struct slice text) {
    bool quoted = text.len >= 2 && text.data[0] == '"' && text.data[text.len - 1] == '"';
    return quoted ? slice_of(text.data + 1, text.len - 2) : text;
}

static struct range range_of(struct slice text) {
    struct range r = {.type = part(&text, ';'), .q = ALL};
    while (text.len > 0) {
        struct slice value = part(&text, ';');
        struct slice name = part(&value, '=');
        value = unquoted(part(&value, 0));
        if (same(name, "q")) {
            r.q = quality(value);
        } else if (same(name, "version")) {
            r.version = value;
        } else if (same(name, "proto")) {
            r.proto = value;
        } else if (same(name, "encoding")) {
            r.encoding = value;
        }
    }
    return r;
}

// The form that a range names. False: none of ours.
static bool form_of(const struct range *r, enum meters_form *form) {
    bool any = r->version.len == 0;
    if (same(r->type, "application/vnd.google.protobuf")) {
        *form = METERS_PROTOBUF;
        return same(r->proto, "io.prometheus.client.MetricFamily") &&
               same(r->encoding, "delimited");
    }
    if (same(r->type, "application/openmetrics-text")) {
        *form = METERS_OPEN;
        return any || same(r->version, "1.0.0");
    }
    *form = METERS_PROMETHEUS;
    return same(r->type, "*/*") || same(r->type, "text/*") ||
           (same(r->type, "text/plain") && (any || same(r->version, "0.0.4")));
}

enum meters_form accept_form(const char *accept) {
    enum meters_form best = METERS_PROMETHEUS, form;
    struct slice rest = slice_text(accept ? accept : "");
    int most = 0;
    while (rest.len > 0) {
        struct range r = range_of(part(&rest, ','));
        if (r.q > most && form_of(&r, &form)) {
            most = r.q;
            best = form;
        }
    }
    return best;
}
