// SPDX-License-Identifier: Apache-2.0
// Profiles that are in a database, drawn: files and a table of functions.
#pragma once

#include "report/flame.h"

enum { DRAW_FILES = 16 };

struct draw_options {
    const char *db;
    struct flame_question question;
    struct {
        const char *name;
        enum flame_format format;
    } files[DRAW_FILES];
    uint32_t file_count;
    uint32_t most; // functions in the table
    bool json;     // instead of the table
};

// Draws. An exit status; what is wrong has been told on stderr.
int draw_profile(const struct draw_options *o);
