// SPDX-License-Identifier: Apache-2.0
#include "codec/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct json json_make(struct buffer *out) {
    return (struct json){.out = out};
}

static void value_begins(struct json *j) {
    if (j->comma) {
        buffer_text(j->out, ",");
    }
    j->comma = true;
}

void json_open(struct json *j, char bracket) {
    value_begins(j);
    buffer_append(j->out, &bracket, 1);
    j->comma = false;
}

void json_close(struct json *j, char bracket) {
    buffer_append(j->out, &bracket, 1);
    j->comma = true;
}

// Bytes of the UTF-8 sequence at s, 0 when there is none.
static size_t sequence(const unsigned char *s) {
    size_t n = s[0] < 0x80                   ? 1
               : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
               : (s[0] & 0xf0) == 0xe0       ? 3
               : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                             : 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0; // the terminating zero ends here too
        }
    }
    bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool outside = (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f);
    return overlong || outside ? 0 : n;
}

void json_text(struct json *j, const char *text) {
    value_begins(j);
    buffer_text(j->out, "\"");
    // a name in a file that somebody has edited may have megabytes: past the buffer's end they do
    // not count
    for (const unsigned char *s = (const unsigned char *)text; *s && !j->out->failed;) {
        size_t n = sequence(s);
        if (*s == '"' || *s == '\\') {
            buffer_printf(j->out, "\\%c", *s);
        } else if (*s < ' ') {
            buffer_printf(j->out, "\\u%04x", *s);
        } else if (n == 0) {
            buffer_text(j->out, "\\ufffd");
        } else {
            buffer_append(j->out, s, n);
        }
        s += n ? n : 1;
    }
    buffer_text(j->out, "\"");
}

void json_key(struct json *j, const char *key) {
    json_text(j, key);
    buffer_text(j->out, ":");
    j->comma = false;
}

void json_int(struct json *j, int64_t value) {
    value_begins(j);
    buffer_printf(j->out, "%" PRId64, value);
}

void json_number(struct json *j, double value, int decimals) {
    if (!isfinite(value)) {
        json_null(j);
        return;
    }
    char digits[400];
    int n = snprintf(digits, sizeof digits, "%.*f", decimals, value);
    if (decimals > 0) {
        while (digits[n - 1] == '0') {
            n--;
        }
        if (digits[n - 1] == '.') {
            n--;
        }
    }
    value_begins(j);
    buffer_append(j->out, digits, (size_t)n);
}

void json_bool(struct json *j, bool value) {
    value_begins(j);
    buffer_text(j->out, value ? "true" : "false");
}

void json_null(struct json *j) {
    value_begins(j);
    buffer_text(j->out, "null");
}

void json_key_text(struct json *j, const char *key, const char *text) {
    json_key(j, key);
    json_text(j, text);
}

void json_key_int(struct json *j, const char *key, int64_t value) {
    json_key(j, key);
    json_int(j, value);
}

void json_key_number(struct json *j, const char *key, double value, int decimals) {
    json_key(j, key);
    json_number(j, value, decimals);
}
