// The cookie that Erlang nodes show each other.
#pragma once

#include "dist/error.h"

enum { COOKIE_BYTES = 256 };

// Reads the cookie from a file, or from ~/.erlang.cookie when file is NULL. A file that others than its owner
// may read is refused, as Erlang does. False with *e.
bool cookie_read(const char *file, char out[COOKIE_BYTES], struct dist_error *e);
