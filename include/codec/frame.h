// SPDX-License-Identifier: Apache-2.0
// Frames of a trace stream: op:u8, size:u32 big-endian, then for op 0 `size` bytes of one external
// term, for op 1 nothing, size being the number of dropped messages (trace_ip_drv.c,
// trace_file_drv.c). An empty frame of op 0 is what the guard's gauge leaves in the stream. Op 2 is
// the native tracer's: `size` bytes of a block of messages (model/message/native.h). Pure.
#pragma once

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/limits.h"

enum frame_kind {
    FRAME_TERM,    // body is one external term, with its leading 131
    FRAME_BLOCK,   // body is a block
    FRAME_DROPPED, // size messages were dropped here
    FRAME_EMPTY,   // a heartbeat
    FRAME_END,     // all is there that its connection was to bring
    // a term or block of size bytes, over LIMIT_FRAME_BYTES: its bytes follow and are the caller's
    // to skip
    FRAME_OVERSIZED
};

struct frame {
    enum frame_kind kind;
    uint32_t size;
    struct slice body; // into the caller's bytes
};

enum {
    FRAME_HEADER = 5,
    FRAME_PARTIAL = 0,
    FRAME_BAD = -1,
    FRAME_OP_DROPPED = 1,
    FRAME_OP_BLOCK = 2
};

// Reads the frame at the start of bytes. Returns the bytes used (for FRAME_OVERSIZED the header's
// only), FRAME_PARTIAL when more are needed, FRAME_BAD when this is no trace stream: another op, or
// a claim over LIMIT_FRAME_CLAIM.
static inline long frame_next(struct slice bytes, struct frame *frame) {
    if (bytes.len < FRAME_HEADER) {
        return bytes.len > 0 && bytes.data[0] > FRAME_OP_BLOCK ? FRAME_BAD : FRAME_PARTIAL;
    }
    struct cursor c = cursor_of(bytes.data, bytes.len);
    uint8_t op = cursor_u8(&c);
    uint32_t size = cursor_u32(&c);
    *frame = (struct frame){.size = size};
    if (op != 0 && op != FRAME_OP_BLOCK) {
        frame->kind = size == 0 ? FRAME_END : FRAME_DROPPED;
        return op == FRAME_OP_DROPPED ? FRAME_HEADER : FRAME_BAD;
    }
    if (size > LIMIT_FRAME_BYTES) {
        frame->kind = FRAME_OVERSIZED;
        return size <= LIMIT_FRAME_CLAIM ? FRAME_HEADER : FRAME_BAD;
    }
    const uint8_t *body = cursor_claim(&c, size);
    if (!body) {
        return FRAME_PARTIAL;
    }
    frame->kind = op == FRAME_OP_BLOCK ? FRAME_BLOCK : size == 0 ? FRAME_EMPTY : FRAME_TERM;
    frame->body = slice_of(body, size);
    return (long)FRAME_HEADER + (long)size;
}

// Bytes that a frame still lacks of which only the start is there: of its header, or behind that of
// its body.
static inline size_t frame_missing(struct slice begun) {
    if (begun.len < FRAME_HEADER) {
        return FRAME_HEADER - begun.len;
    }
    struct cursor size = cursor_of(begun.data + 1, FRAME_HEADER - 1);
    return FRAME_HEADER + (size_t)cursor_u32(&size) - begun.len;
}

// How far a stream is read.
struct frame_place {
    int64_t offset;    // in the stream, of the next byte to be looked at
    uint64_t skipping; // bytes of an oversized frame still to pass over
};

// Passes over what is to be skipped at the start of so many bytes. Returns how many that are.
static inline size_t frame_skip(struct frame_place *place, size_t bytes) {
    size_t skip = bytes < place->skipping ? bytes : (size_t)place->skipping;
    place->skipping -= skip;
    place->offset += (int64_t)skip;
    return skip;
}

// Reads the frames at the start of bytes, each one to `each` while the place is still at its begin;
// that may set what is to be skipped behind it. Returns how many bytes they were, -1 when a frame
// is none. Inlined with `each`, as every message of every node comes through here.
static inline __attribute__((always_inline)) int64_t
frame_each(struct frame_place *place, struct slice bytes,
           void (*each)(void *context, const struct frame *frame), void *context) {
    size_t used = 0;
    for (;;) {
        if (place->skipping > 0) {
            used += frame_skip(place, bytes.len - used);
        }
        struct frame frame;
        long size = frame_next(slice_of(bytes.data + used, bytes.len - used), &frame);
        if (size == FRAME_PARTIAL) {
            return (int64_t)used;
        }
        if (size == FRAME_BAD) {
            return -1;
        }
        each(context, &frame);
        used += (size_t)size;
        place->offset += size;
    }
}

// Who reads a stream that comes in pieces of any size.
struct frame_reader {
    struct buffer *partial; // the start of a frame whose rest is still to come
    // Takes the frames at the start of bytes. Returns how many bytes they were, -1 when a frame is
    // none.
    int64_t (*take)(void *context, struct slice bytes);
    // Appends bytes to `partial`, or leaves that empty: the frame is given up. False: the stream is
    // over.
    bool (*keep)(void *context, struct slice bytes);
    void *context;
};

// The next piece of a stream. A frame begun in earlier ones is completed in `partial`, as far as it
// needs; the rest is read in place. False when it is no trace stream, or is over; how far it was
// then is the reader's to know.
bool frame_feed(const struct frame_reader *reader, struct slice bytes);
