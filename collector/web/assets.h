// SPDX-License-Identifier: Apache-2.0
// The page's files, which are inside of the program.
#pragma once

#include <stddef.h>

struct asset {
    const char *path; // that it is asked for by
    const char *type;
    const char *etag; // of its content, in quotes
    const char *bytes;
    size_t len;
    const char *gzipped; // the same behind gzip; NULL: there is none
    size_t gzipped_len;
};

// NULL: there is none at that path. "/login" is always there. Of the thread that serves alone.
const struct asset *assets_find(const char *path);
