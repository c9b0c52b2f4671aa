// SPDX-License-Identifier: Apache-2.0
#include "tool/suggest/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/json.h"
#include "tool/text.h"

enum { TEXT_BYTES = 16384 };

// What the node has said, without what could steer a terminal. Returns out.
static char *clean(struct slice s, char out[TEXT_BYTES]) {
    snprintf(out, TEXT_BYTES, "%.*s", (int)(s.len < TEXT_BYTES ? s.len : TEXT_BYTES - 1),
             s.len > 0 ? (const char *)s.data : "");
    text_clean(out);
    return out;
}

// As one word of a shell.
static void put_word(struct buffer *out, const char *text) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "_-./:=@,%+";
    bool quoted = strchr(text, '\'') != NULL;
    if (*text && text[strspn(text, plain)] == 0) {
        buffer_text(out, text);
    } else if (!quoted || strpbrk(text, "\"$`\\!")) {
        buffer_text(out, "'");
        for (const char *at = text; *at;) {
            size_t n = strcspn(at, "'");
            buffer_append(out, at, n);
            at += n;
            if (*at) {
                buffer_text(out, "'\\''");
                at++;
            }
        }
        buffer_text(out, "'");
    } else { // easier to read
        buffer_printf(out, "\"%s\"", text);
    }
}

static void put_command(struct buffer *out, const struct shim_suggestions *s,
                        const struct suggest_about *about, const char *between) {
    char text[TEXT_BYTES];
    buffer_text(out, "kprof attach ");
    put_word(out, clean(slice_text(about->node), text));
    if (about->cookie_file) {
        buffer_text(out, " --cookie-file ");
        put_word(out, clean(slice_text(about->cookie_file), text));
    }
    for (uint32_t i = 0; i < s->count; i++) {
        buffer_printf(out, "%s--%s ", between, clean(s->of[i].option, text));
        put_word(out, clean(s->of[i].value, text));
    }
}

// The value as a title; an identity function is too long for one.
static void put_reason(struct buffer *out, const struct shim_suggested *one) {
    char option[TEXT_BYTES], value[TEXT_BYTES], reason[TEXT_BYTES];
    clean(one->option, option);
    bool is_long = strcmp(option, "identity") == 0;
    buffer_printf(out, "#   --%s%s%s\n#       %s\n", option, is_long ? "" : " ",
                  is_long ? "" : clean(one->value, value), clean(one->reason, reason));
}

void suggest_print_notes(struct buffer *out, const struct shim_suggestions *s) {
    char text[TEXT_BYTES];
    for (uint32_t i = 0; i < s->note_count; i++) {
        buffer_printf(out, "# Note: %s\n", clean(s->notes[i], text));
    }
}

void suggest_print_text(struct buffer *out, const struct shim_suggestions *s,
                        const struct suggest_about *about) {
    char text[TEXT_BYTES];
    buffer_printf(out, "# What to trace in %s, and why:\n#\n",
                  clean(slice_text(about->node), text));
    for (uint32_t i = 0; i < s->count; i++) {
        put_reason(out, &s->of[i]);
    }
    suggest_print_notes(out, s);
    buffer_text(out, "\n");
    put_command(out, s, about, " \\\n  ");
    buffer_text(out, "\n");
}

void suggest_print_json(struct buffer *out, const struct shim_suggestions *s,
                        const struct suggest_about *about) {
    char text[TEXT_BYTES];
    struct buffer command = buffer_make(TEXT_BYTES * SHIM_SUGGESTED);
    put_command(&command, s, about, " ");
    buffer_append(&command, "", 1);
    struct json j = json_make(out);
    json_open(&j, '{');
    json_key_text(&j, "node", about->node);
    json_key_text(&j, "command", command.failed ? "" : (const char *)command.data);
    json_key(&j, "options");
    json_open(&j, '[');
    for (uint32_t i = 0; i < s->count; i++) {
        json_open(&j, '{');
        json_key_text(&j, "option", clean(s->of[i].option, text));
        json_key_text(&j, "value", clean(s->of[i].value, text));
        json_key_text(&j, "reason", clean(s->of[i].reason, text));
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_key(&j, "notes");
    json_open(&j, '[');
    for (uint32_t i = 0; i < s->note_count; i++) {
        json_text(&j, clean(s->notes[i], text));
    }
    json_close(&j, ']');
    json_close(&j, '}');
    buffer_text(out, "\n");
    buffer_free(&command);
}
