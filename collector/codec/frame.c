#include "codec/frame.h"

#include "base/limits.h"

enum { OP_TERM = 0, OP_DROPPED = 1 };

long frame_next(struct slice bytes, struct frame *frame) {
    if (bytes.len > 0 && bytes.data[0] > OP_DROPPED) {
        return FRAME_BAD;
    }
    if (bytes.len < FRAME_HEADER) {
        return FRAME_PARTIAL;
    }
    struct cursor c = cursor_of(bytes.data, bytes.len);
    uint8_t op = cursor_u8(&c);
    uint32_t size = cursor_u32(&c);
    *frame = (struct frame){.size = size};
    if (op == OP_DROPPED) {
        frame->kind = FRAME_DROPPED;
        return FRAME_HEADER;
    }
    if (size > LIMIT_FRAME_CLAIM) {
        return FRAME_BAD;
    }
    if (size > LIMIT_FRAME_BYTES) {
        frame->kind = FRAME_OVERSIZED;
        return FRAME_HEADER;
    }
    const uint8_t *body = cursor_claim(&c, size);
    if (!body) {
        return FRAME_PARTIAL;
    }
    frame->kind = size == 0 ? FRAME_EMPTY : FRAME_TERM;
    frame->body = slice_of(body, size);
    return (long)FRAME_HEADER + (long)size;
}
