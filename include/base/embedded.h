// SPDX-License-Identifier: Apache-2.0
// A file that is inside of the program: kprof_embed of collector/web/page/bundle.cmake puts it
// there, as a constant of this type. Nothing of it is ever freed; any thread may read it.
#pragma once

#include <stddef.h>

struct embedded {
    const char *bytes; // and a zero behind them
    size_t len;
    const char *gzipped; // the same behind gzip; NULL: there was no gzip where it was built
    size_t gzipped_len;
    const char *sha256; // of the bytes, in base64: as a Content-Security-Policy names a script
};
