// SPDX-License-Identifier: Apache-2.0
// The handshake: two frames of a client to a collector, and two of a collector to a client. Nobody
// gets through without the secret.
#include "codec/control.h"
#include "fuzz.h"
#include "net/auth.h"

static const uint8_t NONCE[AUTH_NONCE_BYTES] = "a nonce", SECRET[] = "nobody can guess this secret";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice rest = slice_of(data, size), payload, key = slice_of(SECRET, sizeof SECRET),
                 frames[2];
    for (int i = 0; i < 2; i++) { // the second is what follows the first, or all when that is none
        long n = control_frame(rest, &payload);
        frames[i] = slice_of(rest.data, n > 0 ? (size_t)n : rest.len);
        rest = n > 0 ? slice_of(rest.data + n, rest.len - (size_t)n) : rest;
    }
    struct buffer out = buffer_make(1 << 16);
    struct auth collector = {0}, client = {0};
    if (!auth_challenge(&collector, frames[0], NONCE, &out)) {
        MUST(collector.count == 2 && collector.len == frames[0].len + out.len && collector.role[0]);
    }
    MUST(auth_check(&collector, key, frames[1], &out) && collector.count < 4);
    buffer_reset(&out);
    MUST(!auth_begin(&client, "control", 0, NONCE, &out));
    if (!auth_answer(&client, key, frames[0], &out)) {
        MUST(client.count == 3 && client.len == frames[0].len + out.len);
    }
    MUST(auth_confirm(&client, key, frames[1]) && client.count < 4);
    buffer_free(&out);
    return 0;
}
