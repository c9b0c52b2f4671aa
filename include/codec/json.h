// SPDX-License-Identifier: Apache-2.0
// A JSON writer (RFC 8259) onto a buffer. Commas and escapes are its business; that keys and values
// alternate is the caller's. Bytes that are not UTF-8 become U+FFFD. Numbers that JSON cannot say
// (NaN, infinities) become null.
#pragma once

#include <stdint.h>

#include "base/buffer.h"

struct json {
    struct buffer *out; // check out->failed at the end
    bool comma;         // a value stands before the next one
};

struct json json_make(struct buffer *out);
void json_open(struct json *j, char bracket);  // '{' or '['
void json_close(struct json *j, char bracket); // '}' or ']'
void json_key(struct json *j, const char *key);
void json_text(struct json *j, const char *text);
void json_int(struct json *j, int64_t value);
// At most decimals digits behind the point, without trailing zeros.
void json_number(struct json *j, double value, int decimals);
void json_bool(struct json *j, bool value);
void json_null(struct json *j);

// key and value in one call
void json_key_text(struct json *j, const char *key, const char *text);
void json_key_int(struct json *j, const char *key, int64_t value);
void json_key_number(struct json *j, const char *key, double value, int decimals);
