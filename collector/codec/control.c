// SPDX-License-Identifier: Apache-2.0
#include "codec/control.h"

#include <msgpack.h>
#include <stdlib.h>

#include "base/limits.h"
#include "codec/msgpack_check.h"

struct control {
    msgpack_unpacked unpacked;
};

long control_frame(struct slice bytes, struct slice *payload) {
    struct cursor c = cursor_of(bytes.data, bytes.len);
    if (bytes.len < CONTROL_HEADER) {
        // the first byte of an acceptable length is 0: tell strangers early
        return bytes.len > 0 && bytes.data[0] != 0 ? -1 : 0;
    }
    uint32_t len = cursor_u32(&c);
    if (len == 0 || len > LIMIT_CONTROL_BYTES) {
        return -1;
    }
    const uint8_t *body = cursor_claim(&c, len);
    if (!body) {
        return 0;
    }
    *payload = slice_of(body, len);
    return (long)CONTROL_HEADER + (long)len;
}

struct control *control_decode(struct slice payload) {
    if (!msgpack_check(payload)) {
        return NULL;
    }
    struct control *c = malloc(sizeof *c);
    if (!c) {
        return NULL;
    }
    msgpack_unpacked_init(&c->unpacked);
    size_t used = 0;
    if (msgpack_unpack_next(&c->unpacked, (const char *)payload.data, payload.len, &used) !=
            MSGPACK_UNPACK_SUCCESS ||
        c->unpacked.data.type != MSGPACK_OBJECT_MAP) {
        control_free(c);
        return NULL;
    }
    return c;
}

struct control *control_decode_message(const struct buffer *message) {
    struct slice payload;
    long size = control_frame(slice_of(message->data, message->len), &payload);
    return size > 0 ? control_decode(payload) : NULL;
}

void control_free(struct control *c) {
    if (c) {
        msgpack_unpacked_destroy(&c->unpacked);
        free(c);
    }
}

struct control_map control_root(const struct control *c) {
    return (struct control_map){&c->unpacked.data};
}

static const msgpack_object *value_of(struct control_map map, const char *key) {
    const msgpack_object *o = map.object;
    if (!o || o->type != MSGPACK_OBJECT_MAP) {
        return NULL;
    }
    for (uint32_t i = 0; i < o->via.map.size; i++) {
        const msgpack_object_kv *kv = &o->via.map.ptr[i];
        if (kv->key.type == MSGPACK_OBJECT_STR &&
            slice_is(slice_of(kv->key.via.str.ptr, kv->key.via.str.size), key)) {
            return &kv->val;
        }
    }
    return NULL;
}

bool control_get_text(struct control_map map, const char *key, struct slice *value) {
    const msgpack_object *o = value_of(map, key);
    if (!o || o->type != MSGPACK_OBJECT_STR) {
        return false;
    }
    *value = slice_of(o->via.str.ptr, o->via.str.size);
    return true;
}

bool control_get_bytes(struct control_map map, const char *key, struct slice *value) {
    const msgpack_object *o = value_of(map, key);
    if (!o || o->type != MSGPACK_OBJECT_BIN) {
        return false;
    }
    *value = slice_of(o->via.bin.ptr, o->via.bin.size);
    return true;
}

bool control_get_int(struct control_map map, const char *key, int64_t *value) {
    const msgpack_object *o = value_of(map, key);
    if (o && o->type == MSGPACK_OBJECT_POSITIVE_INTEGER && o->via.u64 <= INT64_MAX) {
        *value = (int64_t)o->via.u64;
        return true;
    }
    if (o && o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER) {
        *value = o->via.i64;
        return true;
    }
    return false;
}

bool control_get_bool(struct control_map map, const char *key, bool *value) {
    const msgpack_object *o = value_of(map, key);
    if (!o || o->type != MSGPACK_OBJECT_BOOLEAN) {
        return false;
    }
    *value = o->via.boolean;
    return true;
}

bool control_get_number(struct control_map map, const char *key, double *value) {
    const msgpack_object *o = value_of(map, key);
    int64_t whole;
    if (control_get_int(map, key, &whole)) {
        *value = (double)whole;
        return true;
    }
    if (!o || (o->type != MSGPACK_OBJECT_FLOAT64 && o->type != MSGPACK_OBJECT_FLOAT32)) {
        return false;
    }
    *value = o->via.f64;
    return true;
}

bool control_get_list(struct control_map map, const char *key, struct control_list *value) {
    const msgpack_object *o = value_of(map, key);
    if (!o || o->type != MSGPACK_OBJECT_ARRAY) {
        return false;
    }
    *value = (struct control_list){o->via.array.ptr, o->via.array.size};
    return true;
}

struct control_map control_list_at(struct control_list list, uint32_t i) {
    const msgpack_object *objects = list.objects;
    return (struct control_map){i < list.count ? &objects[i] : NULL};
}

// -- writing --------------------------------------------------------------------------------------

static int write_to_buffer(void *out, const char *data, size_t len) {
    return buffer_append(out, data, len) ? 0 : -1;
}

// The packer is two pointers: made anew for each value rather than exposed in the header.
static msgpack_packer packer(struct control_writer *w) {
    msgpack_packer pk;
    msgpack_packer_init(&pk, w->out, write_to_buffer);
    return pk;
}

static msgpack_packer pack_key(struct control_writer *w, const char *key) {
    msgpack_packer pk = packer(w);
    msgpack_pack_str_with_body(&pk, key, strlen(key));
    return pk;
}

struct control_writer control_begin(struct buffer *out, const char *type, uint32_t more_pairs) {
    struct control_writer w = {out, out->len};
    buffer_append(out, "\0\0\0\0", CONTROL_HEADER);
    control_map(&w, more_pairs + 1);
    control_text(&w, "type", slice_text(type));
    return w;
}

bool control_end(struct control_writer *w) {
    size_t len = w->out->len - w->start;
    if (w->out->failed || len - CONTROL_HEADER > LIMIT_CONTROL_BYTES) {
        w->out->len = w->start;
        w->out->failed = false;
        return false;
    }
    uint32_t be = __builtin_bswap32((uint32_t)(len - CONTROL_HEADER));
    memcpy(w->out->data + w->start, &be, CONTROL_HEADER);
    return true;
}

void control_text(struct control_writer *w, const char *key, struct slice value) {
    msgpack_packer pk = pack_key(w, key);
    msgpack_pack_str_with_body(&pk, value.data, value.len);
}

void control_bytes(struct control_writer *w, const char *key, struct slice value) {
    msgpack_packer pk = pack_key(w, key);
    msgpack_pack_bin_with_body(&pk, value.data, value.len);
}

void control_int(struct control_writer *w, const char *key, int64_t value) {
    msgpack_packer pk = pack_key(w, key);
    msgpack_pack_int64(&pk, value);
}

void control_number(struct control_writer *w, const char *key, double value) {
    msgpack_packer pk = pack_key(w, key);
    msgpack_pack_double(&pk, value);
}

void control_bool(struct control_writer *w, const char *key, bool value) {
    msgpack_packer pk = pack_key(w, key);
    value ? msgpack_pack_true(&pk) : msgpack_pack_false(&pk);
}

void control_list(struct control_writer *w, const char *key, uint32_t count) {
    msgpack_packer pk = pack_key(w, key);
    msgpack_pack_array(&pk, count);
}

void control_map(struct control_writer *w, uint32_t pairs) {
    msgpack_packer pk = packer(w);
    msgpack_pack_map(&pk, pairs);
}
