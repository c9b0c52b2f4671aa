// SPDX-License-Identifier: Apache-2.0
#include "tool/lines.h"

#include <stdbool.h>
#include <stdio.h>

#include "tool/text.h"

enum { LINE_COLUMNS = 118, INDENT = 2, SENTENCE_BYTES = 512 };

static bool fits(const struct lines *l, const char *text) {
    return l->column + 1 + text_width(text) <= LINE_COLUMNS;
}

static void next_line(struct lines *l) {
    if (l->column > INDENT) {
        buffer_text(l->out, "\n  ");
        l->column = INDENT;
    }
}

void lines_piece(struct lines *l, const char *text) {
    if (!fits(l, text)) {
        next_line(l);
    }
    buffer_text(l->out, " ");
    buffer_text(l->out, text);
    l->column += 1 + text_width(text);
}

// The length of the first word. What stands in braces is one.
static size_t word(const char *text) {
    size_t n = 0;
    for (int depth = 0; text[n] && (text[n] != ' ' || depth > 0); n++) {
        depth += (text[n] == '{') - (text[n] == '}');
    }
    return n;
}

void lines_sentence(struct lines *l, const char *text, const char *stop) {
    char whole[SENTENCE_BYTES];
    snprintf(whole, sizeof whole, "%s%s", text, stop);
    if (!fits(l, whole)) {
        next_line(l);
    }
    for (char *at = whole; *at;) {
        size_t n = word(at);
        bool last = at[n] == 0;
        at[n] = 0;
        lines_piece(l, at);
        at += n + !last;
    }
}
