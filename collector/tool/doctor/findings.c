// SPDX-License-Identifier: Apache-2.0
#include "tool/doctor/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "codec/json.h"
#include "tool/text.h"

enum { OUTPUT_BYTES = 4 << 20 };

static const char *const levels[] = {"ok", "warning", "problem"};

struct doctor doctor_make(void) {
    return (struct doctor){.text = buffer_make(OUTPUT_BYTES), .json = buffer_make(OUTPUT_BYTES)};
}

void doctor_free(struct doctor *d) {
    buffer_free(&d->text);
    buffer_free(&d->json);
    free(d->rows);
}

void doctor_tell(struct doctor *d, enum doctor_level level, const struct doctor_about *about,
                 const char *advice, const char *format, ...) {
    char text[1024], whole[256], brief[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(whole, sizeof whole, "%s %s", about->kind, about->name);
    snprintf(brief, sizeof brief, "%s %s", about->kind, node_names_shown(&d->names, about->name));
    text_clean(text);
    text_clean(whole);
    text_clean(brief);
    d->found[level]++;
    buffer_printf(&d->text, " %-9s%s: %s\n", levels[level], brief, text);
    if (advice) {
        buffer_printf(&d->text, "          -> %s\n", advice);
    }
    if (d->json.len > 0) {
        buffer_text(&d->json, ",");
    }
    struct json j = json_make(&d->json);
    json_open(&j, '{');
    json_key_text(&j, "level", levels[level]);
    json_key_text(&j, "about", whole);
    json_key_text(&j, "text", text);
    json_key(&j, "advice");
    advice ? json_text(&j, advice) : json_null(&j);
    json_close(&j, '}');
}
