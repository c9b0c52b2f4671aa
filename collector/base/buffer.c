// SPDX-License-Identifier: Apache-2.0
#include "base/buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct buffer buffer_make(size_t cap) {
    return (struct buffer){.cap = cap};
}

void buffer_free(struct buffer *b) {
    free(b->data);
    *b = buffer_make(b->cap);
}

void buffer_reset(struct buffer *b) {
    b->len = 0;
    b->failed = false;
}

uint8_t *buffer_reserve(struct buffer *b, size_t n) {
    if (n > b->cap - b->len) {
        b->failed = true;
        return NULL;
    }
    if (n > b->room - b->len) {
        size_t room = b->room < 256 ? 256 : b->room;
        while (room - b->len < n) {
            room = room > b->cap / 2 ? b->cap : room * 2;
        }
        uint8_t *data = realloc(b->data, room);
        if (!data) {
            b->failed = true;
            return NULL;
        }
        b->data = data;
        b->room = room;
    }
    return b->data + b->len;
}

void buffer_grow(struct buffer *b, size_t n) {
    b->len += n;
}

void buffer_consume(struct buffer *b, size_t n) {
    if (n > 0) {
        memmove(b->data, b->data + n, b->len - n);
        b->len -= n;
    }
}

bool buffer_append(struct buffer *b, const void *data, size_t n) {
    if (n == 0) {
        return true;
    }
    uint8_t *to = buffer_reserve(b, n);
    if (!to) {
        return false;
    }
    memcpy(to, data, n);
    buffer_grow(b, n);
    return true;
}

bool buffer_text(struct buffer *b, const char *text) {
    return buffer_append(b, text, strlen(text));
}

bool buffer_printf(struct buffer *b, const char *format, ...) {
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    uint8_t *to = n < 0 ? NULL : buffer_reserve(b, (size_t)n + 1);
    if (to) {
        vsnprintf((char *)to, (size_t)n + 1, format, again);
        buffer_grow(b, (size_t)n);
    }
    va_end(again);
    return to != NULL;
}
