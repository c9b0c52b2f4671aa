// SPDX-License-Identifier: Apache-2.0
// The cookie that Erlang nodes show each other.
#pragma once

#include "dist/error.h"

enum { COOKIE_BYTES = 256, COOKIE_WARNING_BYTES = 512 };

// Reads the cookie from a file, or from ~/.erlang.cookie when file is NULL. A file that others than
// its owner may write is refused: whoever can put a cookie there can have us talk to a node of
// theirs. One that others may only read, as mix leaves releases/COOKIE, is read: warning says so, a
// line without a newline, and is "" otherwise. False with *e.
bool cookie_read(const char *file, char out[COOKIE_BYTES], char warning[COOKIE_WARNING_BYTES],
                 struct dist_error *e);
