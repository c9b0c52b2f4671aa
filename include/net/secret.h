// SPDX-License-Identifier: Apache-2.0
// The shared secret of a collector and those who connect to it, read from a file.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/limits.h"

enum { SECRET_ERROR_BYTES = 512 };

struct secret {
    uint8_t bytes[LIMIT_SECRET_BYTES];
    size_t len;
};

// Reads a secret: the content of a file without the newlines at its end, LIMIT_SECRET_LEAST to
// LIMIT_SECRET_BYTES bytes. The file must be a regular one that is closed to others than its owner
// and group. On false `why` says in a line what is wrong and what to do. Blocks on the file system;
// any thread.
bool secret_read(const char *path, struct secret *out, char why[SECRET_ERROR_BYTES]);
// The same of a password that others have chosen, as text: 1 to LIMIT_EXPORT_PASSWORD_BYTES bytes,
// none of them a control byte. out is wiped by the caller (explicit_bzero), and untouched on false.
bool secret_read_password(const char *path, char out[LIMIT_EXPORT_PASSWORD_BYTES + 1],
                          char why[SECRET_ERROR_BYTES]);
// The same of headers for a receiver of OTLP: lines with no further control byte in them,
// LIMIT_OTLP_HEADERS_BYTES at most, with a zero behind them. What is in the lines is not looked at.
bool secret_read_headers(const char *path, char out[LIMIT_OTLP_HEADERS_BYTES + 1],
                         char why[SECRET_ERROR_BYTES]);
// Wipes it.
void secret_clear(struct secret *s);

static inline struct slice secret_slice(const struct secret *s) {
    return slice_of(s->bytes, s->len);
}
