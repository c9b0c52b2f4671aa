// SPDX-License-Identifier: Apache-2.0
// A control frame: framing, the guard, msgpack-c behind it, and every getter.
#include "base/limits.h"
#include "codec/control.h"
#include "codec/msgpack_check.h"
#include "fuzz.h"

static void get_all(struct control_map m, int depth) {
    static const char *const keys[] = {"type", "role", "key", "at", "tiers", "rows", "x", ""};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct slice s;
        int64_t n;
        bool b;
        struct control_list l;
        volatile uint8_t sum = 0;
        if (control_get_text(m, keys[i], &s) || control_get_bytes(m, keys[i], &s)) {
            for (size_t k = 0; k < s.len; k++) {
                sum = (uint8_t)(sum + s.data[k]);
            }
        }
        control_get_int(m, keys[i], &n);
        control_get_bool(m, keys[i], &b);
        if (control_get_list(m, keys[i], &l)) {
            MUST(l.count <= LIMIT_CONTROL_ELEMENTS && depth < LIMIT_CONTROL_DEPTH);
            for (uint32_t k = 0; k <= l.count && k < 100; k++) {
                get_all(control_list_at(l, k), depth + 2);
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice payload = slice_of(data, size);
    long n = control_frame(slice_of(data, size), &payload);
    MUST(n == -1 || n == 0 ||
         (n > CONTROL_HEADER && (size_t)n <= size && payload.data + payload.len == data + n));
    struct control *c = control_decode(payload);
    MUST(!c || msgpack_check(payload));
    if (c) {
        get_all(control_root(c), 0);
        control_free(c);
    }
    return 0;
}
