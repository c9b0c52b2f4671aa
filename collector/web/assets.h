// SPDX-License-Identifier: Apache-2.0
// The page's files and the description of the API, which are inside of the program.
#pragma once

#include <stdbool.h>

#include "base/embedded.h"

struct asset {
    const char *path; // that it is asked for by
    const char *type;
    const struct embedded *file;
    bool open; // to those who have not logged in, too
};

// NULL: there is none at that path.
const struct asset *assets_find(const char *path);
