// SPDX-License-Identifier: Apache-2.0
// A growable run of bytes with a cap, for text and messages that are built up. A failed append (cap
// or memory) leaves the buffer marked failed and its content as it was: check once at the end. One
// thread at a time; buffer_free gives the memory back.
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
    uint8_t *data; // len bytes are content; NULL while nothing was ever appended
    size_t len;
    size_t room; // bytes allocated
    size_t cap;  // bytes at most
    bool failed;
};

// An empty buffer of at most cap bytes. Allocates nothing yet.
struct buffer buffer_make(size_t cap);
void buffer_free(struct buffer *b);
// Forgets the content and the failure, keeps the memory.
void buffer_reset(struct buffer *b);
// Makes room for n more bytes and returns where they go, or NULL; buffer_grow(b, n) then says how
// many were written.
uint8_t *buffer_reserve(struct buffer *b, size_t n);
void buffer_grow(struct buffer *b, size_t n);
// Takes the first n bytes away.
void buffer_consume(struct buffer *b, size_t n);
bool buffer_append(struct buffer *b, const void *data, size_t n);
bool buffer_text(struct buffer *b, const char *text);
// Needs room for one byte more than it appends: the terminating zero that printf writes.
__attribute__((format(printf, 2, 3))) bool buffer_printf(struct buffer *b, const char *format, ...);
