// SPDX-License-Identifier: Apache-2.0
// Text for people: durations, and names that come from the database, shown without control
// characters and padded to columns.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum { TEXT_DURATION_BYTES = 32, TEXT_SIZE_BYTES = 32 };

// "340 ns", "1.2 ms", "50 ms", "3.1 s": two or three digits; from 1000 s on whole seconds. Returns
// out.
char *text_duration(double ns, char out[TEXT_DURATION_BYTES]);

// "340 B", "1.2 KB", "50 MB": in thousands, two or three digits. Returns out.
char *text_size(double bytes, char out[TEXT_SIZE_BYTES]);

// "s" behind a noun, or nothing when there is one of it.
const char *text_plural(uint64_t count);

// What is said when tiers are called, but nothing begins a request: how many calls there were, and
// what to do about it.
enum { TEXT_UNMARKED_BYTES = 160 };
#define TEXT_UNMARKED_ADVICE "give --entry, or mark requests (README, Your own node)"
// "4,120 calls, but nothing has begun a request". Returns out.
char *text_unmarked(uint64_t calls, char out[TEXT_UNMARKED_BYTES]);

// Overwrites what could steer a terminal (control characters, also those above 127, direction
// marks) and bytes that are no UTF-8 with '?', in place; the text never grows.
void text_clean(char *text);

// Columns that a cleaned text takes on a terminal.
size_t text_width(const char *text);

// Appends a text padded with spaces to width columns, on its left or on its right.
void text_pad_left(struct buffer *out, const char *text, size_t width);
void text_pad_right(struct buffer *out, const char *text, size_t width);
// Appends a text in exactly width columns: padded on its right, or cut and ended with "…".
void text_fit(struct buffer *out, const char *text, size_t width);
