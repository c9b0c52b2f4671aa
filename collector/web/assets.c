// SPDX-License-Identifier: Apache-2.0
#include "web/assets.h"

#include <stdio.h>
#include <string.h>

#include "base/embedded.h"
#include "web/reply.h"

static const char login[] =
    "<!doctype html><html lang=en><meta charset=utf-8><title>kprof: log in</title>"
    "<form method=post action=/login><label>Token <input type=password name=token autofocus "
    "autocomplete=current-password></label> <button>Log in</button></form>\n";

// Their texts are made while kprof is built: page/bundle.cmake.
extern const struct embedded page_document, page_script, page_style;

static const struct asset login_asset = {
    "/login", "text/html; charset=utf-8", "\"1\"", login, sizeof login - 1, NULL, 0};

static const struct file {
    const char *path, *type;
    const struct embedded *content;
} files[] = {
    {"/", "text/html; charset=utf-8", &page_document},
    {"/page.js", "text/javascript; charset=utf-8", &page_script},
    {"/page.css", "text/css; charset=utf-8", &page_style},
};
enum { FILES = sizeof files / sizeof *files };

const struct asset *assets_find(const char *path) {
    static struct asset assets[FILES];
    static char etags[FILES][64];
    if (strcmp(path, login_asset.path) == 0) {
        return &login_asset;
    }
    for (size_t i = 0; i < FILES; i++) {
        const struct embedded *content = files[i].content;
        if (strcmp(path, files[i].path) == 0) {
            snprintf(etags[i], sizeof etags[i], "\"%s\"", content->sha256);
            assets[i] = (struct asset){files[i].path,       files[i].type, etags[i],
                                       content->bytes,      content->len,  content->gzipped,
                                       content->gzipped_len};
            return &assets[i];
        }
    }
    return NULL;
}
