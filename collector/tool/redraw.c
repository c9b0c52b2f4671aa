// SPDX-License-Identifier: Apache-2.0
#include "tool/redraw.h"

#include "tool/terminal.h"
#include "tool/text.h"

// Lines that a terminal of this width makes of a text that was drawn in a wider one: they wrap what
// is too long for them.
static uint32_t wrapped(const struct buffer *text, uint32_t width) {
    char line[4096];
    uint32_t lines = 0;
    size_t len = 0;
    bool steering = false; // within ESC [ … m
    for (size_t i = 0; i < text->len; i++) {
        char c = (char)text->data[i];
        if (c == '\n') {
            line[len] = 0;
            size_t across = text_width(line);
            lines += across > width ? (uint32_t)((across + width - 1) / width) : 1;
            len = 0;
        } else if (c == '\x1b') {
            steering = true;
        } else if (steering) {
            steering = c != 'm';
        } else if (len < sizeof line - 1) {
            line[len++] = c;
        }
    }
    return lines;
}

void redraw_hide(struct buffer *shown, struct buffer *out) {
    uint32_t lines = shown->len > 0 ? wrapped(shown, terminal_width()) : 0;
    if (lines >= terminal_height()) {
        buffer_text(out,
                    "\x1b[2J\x1b[H"); // it is all that can be seen, and its begin has scrolled away
    } else if (lines > 0) {
        // line by line: what is cleared from its first line on some terminals move into their
        // scrollback
        buffer_printf(out, "\r\x1b[%uA", lines);
        for (uint32_t i = 0; i < lines; i++) {
            buffer_text(out, "\x1b[K\n");
        }
        buffer_printf(out, "\x1b[J\x1b[%uA", lines);
    }
    buffer_reset(shown);
}
