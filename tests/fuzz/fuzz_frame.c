// SPDX-License-Identifier: Apache-2.0
// A stream of frames: read whole and piece by piece it gives the same frames, none of which leaves
// the bytes.
#include "base/limits.h"
#include "codec/frame.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t at = 0;
    for (;;) {
        struct frame f = {0};
        long n = frame_next(slice_of(data + at, size - at), &f);
        // with fewer bytes it is the same, partial, or bad for the same reason
        for (size_t less = 0; less < 8 && at + less < size; less++) {
            struct frame g = {0};
            long m = frame_next(slice_of(data + at, less), &g);
            MUST(m == FRAME_PARTIAL || m == n);
        }
        if (n <= 0) {
            MUST(n == FRAME_PARTIAL || n == FRAME_BAD);
            return 0;
        }
        MUST((size_t)n <= size - at);
        bool has_body = f.kind == FRAME_TERM || f.kind == FRAME_BLOCK;
        MUST(!has_body || (f.body.len == f.size && f.body.data + f.body.len == data + at + n));
        MUST(f.kind != FRAME_OVERSIZED || (n == FRAME_HEADER && f.size > LIMIT_FRAME_BYTES));
        if (has_body) {
            struct frame g = {0};
            MUST(frame_next(slice_of(data + at, (size_t)n - 1), &g) == FRAME_PARTIAL);
        }
        at += (size_t)n;
    }
}
