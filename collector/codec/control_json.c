// SPDX-License-Identifier: Apache-2.0
// A control message as JSON.
#include <msgpack.h>

#include "codec/control.h"

static void put_value(struct json *j, const msgpack_object *o);

static void put_text(struct json *j, const msgpack_object *o) {
    char text[4096]; // longer ones are cut; ours are names and lines
    size_t len = o->via.str.size < sizeof text ? o->via.str.size : sizeof text - 1;
    memcpy(text, o->via.str.ptr, len);
    text[len] = 0;
    json_text(j, text);
}

static void put_pairs(struct json *j, const msgpack_object *map) {
    for (uint32_t i = 0; i < map->via.map.size; i++) {
        const msgpack_object_kv *kv = &map->via.map.ptr[i];
        struct slice key = slice_of(kv->key.via.str.ptr, kv->key.via.str.size);
        char name[64];
        if (kv->key.type != MSGPACK_OBJECT_STR || key.len >= sizeof name ||
            slice_is(key, FIELD_TYPE)) {
            continue;
        }
        memcpy(name, key.data, key.len);
        name[key.len] = 0;
        json_key(j, name);
        put_value(j, &kv->val);
    }
}

static void put_list(struct json *j, const msgpack_object *list) {
    json_open(j, '[');
    for (uint32_t i = 0; i < list->via.array.size; i++) {
        put_value(j, &list->via.array.ptr[i]);
    }
    json_close(j, ']');
}

// No deeper than LIMIT_CONTROL_DEPTH.
static void put_value(struct json *j, const msgpack_object *o) {
    switch (o->type) {
    case MSGPACK_OBJECT_STR:
        put_text(j, o);
        break;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        json_int(j, o->via.i64);
        break;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        json_number(j, o->via.f64, 3);
        break;
    case MSGPACK_OBJECT_BOOLEAN:
        json_bool(j, o->via.boolean);
        break;
    case MSGPACK_OBJECT_ARRAY:
        put_list(j, o);
        break;
    case MSGPACK_OBJECT_MAP:
        json_open(j, '{');
        put_pairs(j, o);
        json_close(j, '}');
        break;
    default:
        json_null(j);
    }
}

void control_json(struct control_map map, struct json *j) {
    const msgpack_object *o = map.object;
    if (o && o->type == MSGPACK_OBJECT_MAP) {
        put_pairs(j, o);
    }
}
