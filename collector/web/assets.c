// SPDX-License-Identifier: Apache-2.0
#include "web/assets.h"

#include <stddef.h>
#include <string.h>

#include "web/reply.h"

extern const struct embedded openapi, page_document, page_login, page_script, page_style;

static const struct asset assets[] = {
    {"/page.js", "text/javascript; charset=utf-8", &page_script, false},
    {"/page.css", "text/css; charset=utf-8", &page_style, true},
    {"/login", REPLY_HTML, &page_login, true},
    {"/api/v1/openapi.json", REPLY_JSON, &openapi, true},
    {"/", REPLY_HTML, &page_document, false},
};

const struct asset *assets_find(const char *path) {
    for (size_t i = 0; i < sizeof assets / sizeof *assets; i++) {
        if (strcmp(path, assets[i].path) == 0) {
            return &assets[i];
        }
    }
    return NULL;
}
