// SPDX-License-Identifier: Apache-2.0
// Headers for a receiver, as people write them into a file: lines of "Name: value". Pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/limits.h"

enum { HEADERS_WHY_BYTES = 300 };

struct otlp_headers {
    char *text; // with an end behind each line
    size_t len;
    const char *lines[LIMIT_OTLP_HEADERS + 1]; // NULL behind the last
};

// Reads a text. On false `why` says which line is none, without its value. Free it in both cases.
bool otlp_headers_read(const char *text, struct otlp_headers *out, char why[HEADERS_WHY_BYTES]);
// Wipes it.
void otlp_headers_free(struct otlp_headers *h);
