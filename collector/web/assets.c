// SPDX-License-Identifier: Apache-2.0
#include "web/assets.h"

#include <string.h>

#include "web/reply.h"

static const char login[] =
    "<!doctype html><html lang=en><meta charset=utf-8><title>kprof: log in</title>"
    "<form method=post action=/login><label>Token <input type=password name=token autofocus "
    "autocomplete=current-password></label> <button>Log in</button></form>\n";

static const struct asset files[] = {
    {"/login", "text/html; charset=utf-8", "\"1\"", login, sizeof login - 1, NULL, 0},
};

const struct asset *assets_find(const char *path) {
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (strcmp(path, files[i].path) == 0) {
            return &files[i];
        }
    }
    return NULL;
}
