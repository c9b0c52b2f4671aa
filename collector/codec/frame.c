// SPDX-License-Identifier: Apache-2.0
#include "codec/frame.h"

bool frame_feed(const struct frame_reader *reader, struct slice bytes) {
    struct buffer *partial = reader->partial;
    int64_t used;
    while (partial->len > 0 && bytes.len > 0) {
        size_t missing = frame_missing(slice_of(partial->data, partial->len));
        size_t piece = missing < bytes.len ? missing : bytes.len;
        if (!reader->keep(reader->context, slice_of(bytes.data, piece))) {
            return false;
        }
        bytes = slice_of(bytes.data + piece, bytes.len - piece);
        if (partial->len == 0) {
            break; // it was given up
        }
        used = reader->take(reader->context, slice_of(partial->data, partial->len));
        if (used < 0) {
            return false;
        }
        buffer_consume(partial, (size_t)used);
    }
    if (bytes.len == 0) {
        return true;
    }
    used = reader->take(reader->context, bytes);
    return used >= 0 &&
           ((size_t)used == bytes.len ||
            reader->keep(reader->context, slice_of(bytes.data + used, bytes.len - (size_t)used)));
}
