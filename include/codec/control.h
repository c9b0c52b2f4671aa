// SPDX-License-Identifier: Apache-2.0
// Reads and writes control messages: length:u32 big-endian, then one msgpack map with text keys, at
// most LIMIT_CONTROL_BYTES. Which messages there are, and their fields, stands in codec/protocol.h.
//
// Decoding allocates (msgpack-c's zone), behind msgpack_check. One thread at a time per object.
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "codec/json.h"
#include "codec/protocol.h"

enum { CONTROL_HEADER = 4 };

// -- reading --------------------------------------------------------------------------------------

struct control; // one decoded message, owns its memory

// A map inside a message; valid as long as the message.
struct control_map {
    const void *object;
};

// An array of maps inside a message.
struct control_list {
    const void *objects;
    uint32_t count;
};

// Finds the frame at the start of bytes: the bytes it takes with its header and *payload, 0 when
// more are needed, -1 when the claimed length is 0 or over the limit.
long control_frame(struct slice bytes, struct slice *payload);

// Decodes a payload. NULL when it is no acceptable msgpack map, or without memory.
struct control *control_decode(struct slice payload);
// Decodes a whole message, with its header. It lives no longer than the message.
struct control *control_decode_message(const struct buffer *message);
void control_free(struct control *c);
struct control_map control_root(const struct control *c);

// The value of a key, when it is there and of that type; else false, and *value stays.
bool control_get_text(struct control_map map, const char *key, struct slice *value);
bool control_get_bytes(struct control_map map, const char *key, struct slice *value);
bool control_get_int(struct control_map map, const char *key, int64_t *value);
bool control_get_bool(struct control_map map, const char *key, bool *value);
// Of an integer or a floating-point number.
bool control_get_number(struct control_map map, const char *key, double *value);
bool control_get_list(struct control_map map, const char *key, struct control_list *value);
// Member i of a list, as a map without keys when it is something else.
struct control_map control_list_at(struct control_list list, uint32_t i);

// Writes the pairs of a map into an open JSON object, without its type; bytes and what JSON does
// not know are null.
void control_json(struct control_map map, struct json *j);

// -- writing --------------------------------------------------------------------------------------

// Writes a message at the end of a buffer: control_begin, then `pairs` keys with their values, then
// control_end, which fills in the length. control_end returns false, and the buffer is as before
// control_begin, when it did not fit.
struct control_writer {
    struct buffer *out;
    size_t start;
};

struct control_writer control_begin(struct buffer *out, const char *type, uint32_t more_pairs);
bool control_end(struct control_writer *w);

void control_text(struct control_writer *w, const char *key, struct slice value);
void control_bytes(struct control_writer *w, const char *key, struct slice value);
void control_int(struct control_writer *w, const char *key, int64_t value);
void control_number(struct control_writer *w, const char *key, double value);
void control_bool(struct control_writer *w, const char *key, bool value);
// A list of `count` maps; each member is begun with control_map.
void control_list(struct control_writer *w, const char *key, uint32_t count);
void control_map(struct control_writer *w, uint32_t pairs);
