// SPDX-License-Identifier: Apache-2.0
// Reads one flat JSON object (RFC 8259): texts, whole numbers, true, false and null, and nothing
// inside of each other, as questions of people have it. Pure: no allocation; in an object that has
// failed no further pair comes.
#pragma once

#include <stdint.h>

#include "base/bytes.h"

enum { JSON_OBJECT_KEY_BYTES = 32, JSON_OBJECT_TEXT_BYTES = 1024 };

enum json_kind { JSON_END, JSON_BAD, JSON_TEXT, JSON_WHOLE, JSON_BOOL, JSON_NULL };

struct json_object {
    struct cursor at;
    bool begun;
    // of the last pair
    char key[JSON_OBJECT_KEY_BYTES];
    char
        text[JSON_OBJECT_TEXT_BYTES]; // of JSON_TEXT: UTF-8 as far as what was read is, with a zero
    int64_t number;                   // of JSON_WHOLE; of JSON_BOOL 0 or 1
    const char *why;                  // of JSON_BAD: in words for people
};

// The object is all of the bytes, but for space around it. They have to live as long as it.
struct json_object json_object_of(struct slice bytes);
// The next pair. JSON_END when it has ended as it should, JSON_BAD when it is no such object, or
// has a key or a text that is too long or has a zero in it.
enum json_kind json_object_next(struct json_object *o);
