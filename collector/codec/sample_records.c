// SPDX-License-Identifier: Apache-2.0
#include "codec/sample_records.h"

#include "base/leb128.h"

static const struct {
    uint8_t bit, first, count;
} groups[] = {{MASK_REDUCTIONS, VALUE_REDUCTIONS, 1},
              {MASK_QUEUE, VALUE_QUEUE, 1},
              {MASK_HEAP, VALUE_HEAP, 2},
              {MASK_MEMORY, VALUE_MEMORY, 1},
              {MASK_COLLECTIONS, VALUE_MINORS, 4}};
enum { GROUPS = sizeof groups / sizeof *groups };

// -- reading --------------------------------------------------------------------------------------

static uint32_t take_number(struct cursor *c) {
    uint64_t number = leb128_take(c);
    if (number >= UINT32_MAX) { // none of ours is so large
        cursor_fail(c);
        return 0;
    }
    return (uint32_t)number;
}

static struct slice take_text(struct cursor *c) {
    size_t len = take_number(c);
    const uint8_t *at = cursor_claim(c, len);
    return slice_of(at, at ? len : 0);
}

static void take_frames(struct cursor *c, struct sample_record *r) {
    r->flags = cursor_u8(c);
    r->frame_count = take_number(c);
    if (r->frame_count > SAMPLE_STACK_DEEPEST) {
        cursor_fail(c);
        r->frame_count = 0;
    }
    for (uint32_t i = 0; i < r->frame_count; i++) {
        r->frames[i] = take_number(c);
    }
}

static void take_status(struct cursor *c, struct sample_record *r) {
    r->process = take_number(c);
    r->status = cursor_u8(c);
    r->status = r->status < SAMPLE_STATUSES ? r->status : STATUS_OTHER;
}

static void take_look(struct cursor *c, struct sample_record *r) {
    take_status(c, r);
    r->stack = take_number(c);
    r->mask = cursor_u8(c);
    if (r->mask & ~MASK_ALL) { // how long would the rest be?
        cursor_fail(c);
    }
    for (uint32_t g = 0; g < GROUPS; g++) {
        for (uint32_t i = 0; r->mask & groups[g].bit && i < groups[g].count; i++) {
            r->values[groups[g].first + i] = leb128_take(c);
        }
    }
}

bool sample_record_read(struct cursor *c, struct sample_record *r) {
    if (cursor_left(c) == 0) {
        return false;
    }
    // frames and texts that a kind does not have are never looked at
    r->kind = cursor_u8(c);
    r->status = r->mask = r->flags = 0;
    r->process = r->stack = r->frame_count = 0;
    r->number = 0;
    memset(r->values, 0, sizeof r->values);
    switch (r->kind) {
    case SAMPLE_FRAME:
        r->texts[0] = take_text(c);
        r->texts[1] = take_text(c);
        r->number = leb128_take(c);
        break;
    case SAMPLE_STACK:
        take_frames(c, r);
        break;
    case SAMPLE_PROCESS:
        for (int i = 0; i < 4; i++) {
            r->texts[i] = take_text(c);
        }
        break;
    case SAMPLE_TIME:
    case SAMPLE_HELD:
    case SAMPLE_LATE:
        r->number = leb128_take(c);
        break;
    case SAMPLE_LOOK:
        take_look(c, r);
        break;
    case SAMPLE_UNCHANGED:
        take_status(c, r);
        break;
    case SAMPLE_UNANSWERED:
    case SAMPLE_GONE:
        r->process = take_number(c);
        break;
    case SAMPLE_IDENTITY:
        r->process = take_number(c);
        r->texts[0] = take_text(c);
        break;
    case SAMPLE_LABEL:
        r->process = take_number(c);
        r->number = leb128_take(c);
        break;
    case SAMPLE_FORGET:
        break;
    default:
        cursor_fail(c);
    }
    return !c->failed;
}

// -- writing --------------------------------------------------------------------------------------

static void put_text(struct buffer *out, struct slice text) {
    leb128_append(out, text.len);
    if (text.len > 0) {
        buffer_append(out, text.data, text.len);
    }
}

static void put_byte(struct buffer *out, uint8_t byte) {
    buffer_append(out, &byte, 1);
}

static void put_frames(struct buffer *out, const struct sample_record *r) {
    put_byte(out, r->flags);
    leb128_append(out, r->frame_count);
    for (uint32_t i = 0; i < r->frame_count; i++) {
        leb128_append(out, r->frames[i]);
    }
}

static void put_look(struct buffer *out, const struct sample_record *r) {
    put_byte(out, r->status);
    leb128_append(out, r->stack);
    put_byte(out, r->mask);
    for (uint32_t g = 0; g < GROUPS; g++) {
        for (uint32_t i = 0; r->mask & groups[g].bit && i < groups[g].count; i++) {
            leb128_append(out, r->values[groups[g].first + i]);
        }
    }
}

void sample_record_write(struct buffer *out, const struct sample_record *r) {
    put_byte(out, r->kind);
    switch (r->kind) {
    case SAMPLE_FRAME:
        put_text(out, r->texts[0]);
        put_text(out, r->texts[1]);
        leb128_append(out, r->number);
        break;
    case SAMPLE_STACK:
        put_frames(out, r);
        break;
    case SAMPLE_PROCESS:
        for (int i = 0; i < 4; i++) {
            put_text(out, r->texts[i]);
        }
        break;
    case SAMPLE_TIME:
    case SAMPLE_HELD:
    case SAMPLE_LATE:
        leb128_append(out, r->number);
        break;
    case SAMPLE_LOOK:
        leb128_append(out, r->process);
        put_look(out, r);
        break;
    case SAMPLE_UNCHANGED:
        leb128_append(out, r->process);
        put_byte(out, r->status);
        break;
    case SAMPLE_UNANSWERED:
    case SAMPLE_GONE:
        leb128_append(out, r->process);
        break;
    case SAMPLE_IDENTITY:
        leb128_append(out, r->process);
        put_text(out, r->texts[0]);
        break;
    case SAMPLE_LABEL:
        leb128_append(out, r->process);
        leb128_append(out, r->number);
        break;
    default:
        break;
    }
}
