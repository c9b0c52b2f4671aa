// SPDX-License-Identifier: Apache-2.0
#include "export/pack.h"

#include <zlib.h>

enum {
    GZIP = 16 + MAX_WBITS,
    LEVEL = 1, // a third of the bytes already; more takes longer than it saves
    MEMORY = 8
};

bool pack_gzip(struct slice bytes, struct buffer *out) {
    z_stream zip = {0};
    if (deflateInit2(&zip, LEVEL, Z_DEFLATED, GZIP, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) {
        return false;
    }
    uLong most = deflateBound(&zip, bytes.len);
    zip.next_out = buffer_reserve(out, most);
    zip.avail_out = (uInt)most;
    zip.next_in = (Bytef *)bytes.data;
    zip.avail_in = (uInt)bytes.len;
    bool ok = zip.next_out && deflate(&zip, Z_FINISH) == Z_STREAM_END;
    if (ok) {
        buffer_grow(out, zip.total_out);
    }
    deflateEnd(&zip);
    return ok;
}
