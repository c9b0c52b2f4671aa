// SPDX-License-Identifier: Apache-2.0
// Arrays that grow as they are filled. They are given back with free().
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { ARRAY_FIRST_ROOM = 16 };

// The room that comes after a room.
static inline uint32_t array_next_room(uint32_t room) {
    return room == 0 ? ARRAY_FIRST_ROOM : 2 * room;
}

// Makes room for one more behind `count` records of `size` bytes: the room doubles when it is used
// up. False without memory, and nothing has changed.
static inline bool array_grow(void **records, uint32_t *room, uint32_t count, size_t size) {
    if (count < *room) {
        return true;
    }
    uint32_t more = array_next_room(*room);
    void *grown = realloc(*records, more * size);
    if (grown) {
        *records = grown;
        *room = more;
    }
    return grown != NULL;
}
