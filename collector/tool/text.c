// SPDX-License-Identifier: Apache-2.0
#include "tool/text.h"

#include <locale.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

// The libc's tables of characters, whatever the user's locale is.
static locale_t utf8(void) {
    static locale_t locale;
    if (!locale) {
        locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    }
    return locale;
}

// Reads the character at *at and steps over it; L'\0' at the end, -1 (one byte stepped over) when
// it is none that may be shown.
static wint_t next(const char **at) {
    mbstate_t state = {0};
    wchar_t c;
    size_t n = mbrtowc(&c, *at, strlen(*at), &state);
    if (**at == 0) {
        return 0;
    }
    if (n == 0 || n > 4) {
        *at += 1;
        return WEOF;
    }
    *at += n;
    // Direction marks and separators count as printable in the libc's tables.
    bool steering = (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
                    (c >= 0x2066 && c <= 0x2069) || c == 0x061c || c == 0xfeff;
    return steering || !iswprint((wint_t)c) ? WEOF : (wint_t)c;
}

void text_clean(char *text) {
    locale_t before = uselocale(utf8());
    char *to = text;
    for (const char *at = text; *at;) {
        const char *from = at;
        if (next(&at) == WEOF) {
            *to++ = '?';
        } else {
            memmove(to, from, (size_t)(at - from));
            to += at - from;
        }
    }
    *to = 0;
    uselocale(before);
}

bool text_take(struct control_map message, const char *key, char *out, size_t room) {
    struct slice text = slice_text("");
    bool there = control_get_text(message, key, &text);
    size_t n = text.len < room ? text.len : room - 1;
    memcpy(out, text.data, n);
    out[n] = 0;
    text_clean(out);
    return there;
}

size_t text_width(const char *text) {
    locale_t before = uselocale(utf8());
    size_t width = 0;
    wint_t c;
    while ((c = next(&text)) != 0) {
        int columns = c == WEOF ? 1 : wcwidth((wchar_t)c);
        width += columns > 0 ? (size_t)columns : 0;
    }
    uselocale(before);
    return width;
}

static void spaces(struct buffer *out, const char *text, size_t width) {
    for (size_t w = text_width(text); w < width; w++) {
        buffer_text(out, " ");
    }
}

void text_pad_left(struct buffer *out, const char *text, size_t width) {
    spaces(out, text, width);
    buffer_text(out, text);
}

void text_pad_right(struct buffer *out, const char *text, size_t width) {
    buffer_text(out, text);
    spaces(out, text, width);
}

void text_fit(struct buffer *out, const char *text, size_t width) {
    if (text_width(text) <= width) {
        text_pad_right(out, text, width);
        return;
    }
    locale_t before = uselocale(utf8());
    const char *at = text;
    size_t used = 0;
    while (width > 0) {
        const char *from = at;
        wint_t c = next(&at);
        int columns = c == WEOF ? 1 : wcwidth((wchar_t)c);
        size_t wide = columns > 0 ? (size_t)columns : 0;
        if (used + wide > width - 1) { // one column is the mark's
            break;
        }
        buffer_append(out, from, (size_t)(at - from));
        used += wide;
    }
    uselocale(before);
    buffer_text(out, width > 0 ? "…" : "");
    for (; used + 1 < width; used++) {
        buffer_text(out, " ");
    }
}
