// SPDX-License-Identifier: Apache-2.0
#include "base/trace_parent.h"

#include "base/hex.h"

static const char digits[] = HEX_DIGITS;

bool trace_parent_read(struct slice bytes, struct trace_parent *out) {
    static const struct trace_parent none;
    *out = none;
    if (bytes.len != TRACE_PARENT_BYTES) {
        return false;
    }
    memcpy(out, bytes.data, sizeof *out);
    bool valid = memcmp(out->trace_id, none.trace_id, TRACE_ID_BYTES) != 0 &&
                 memcmp(out->span_id, none.span_id, SPAN_ID_BYTES) != 0;
    *out = valid ? *out : none;
    return valid;
}

static bool parse_id(struct slice text, uint8_t *out, size_t size) {
    if (text.len != 2 * size) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        const char *digit = memchr(digits, text.data[i], sizeof digits - 1);
        if (!digit) {
            return false;
        }
        out[i / 2] = (uint8_t)(out[i / 2] << 4 | (digit - digits));
    }
    return true;
}

bool trace_parent_parse(struct slice trace_id, struct slice span_id, uint8_t flags,
                        struct trace_parent *out) {
    struct trace_parent parent = {.flags = flags};
    bool read = parse_id(trace_id, parent.trace_id, TRACE_ID_BYTES) &&
                parse_id(span_id, parent.span_id, SPAN_ID_BYTES);
    return trace_parent_read(slice_of(&parent, read ? sizeof parent : 0), out);
}
