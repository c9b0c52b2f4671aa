// SPDX-License-Identifier: Apache-2.0
// Profiles that are in a database, drawn: files, and a table of functions or a waterfall.
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
    uint32_t most;  // functions in the table, or calls of the waterfall; 0: as usual
    uint32_t width; // of the waterfall; 0: the terminal's
    bool waterfall; // of the longest request, instead of the table
    bool json;      // instead of either
};

// Draws. An exit status; what is wrong has been told on stderr.
int draw_profile(const struct draw_options *o);
// Draws one that was just kept; without a database it tells how that is done. Likewise.
int draw_kept(struct draw_options *o, int64_t profile);
