// SPDX-License-Identifier: Apache-2.0
// Text on a terminal: names that come from elsewhere, shown without control characters and padded
// to columns.
#pragma once

#include <stddef.h>

#include "base/buffer.h"
#include "codec/control.h"

// Overwrites what could steer a terminal (control characters, also those above 127, direction
// marks) and bytes that are no UTF-8 with '?', in place; the text never grows.
void text_clean(char *text);

// Takes a text of a message, cleaned and cut to the room; out is "" and false where there is none.
bool text_take(struct control_map message, const char *key, char *out, size_t room);

// Columns that a cleaned text takes on a terminal.
size_t text_width(const char *text);

// Appends a text padded with spaces to width columns, on its left or on its right.
void text_pad_left(struct buffer *out, const char *text, size_t width);
void text_pad_right(struct buffer *out, const char *text, size_t width);
// Appends a text in exactly width columns: padded on its right, or cut and ended with "…".
void text_fit(struct buffer *out, const char *text, size_t width);
