// SPDX-License-Identifier: Apache-2.0
// A block of the native tracer's: what is read of it lies inside, it ends, and each message or loss
// says the same in a block of its own, which is no longer, but by its end.
#include "model/message/native.h"

#include "../unit/native_bytes.h"
#include "fuzz.h"

static struct native_reader reader, other;

static void inside(struct slice part, struct slice block) {
    MUST(part.len == 0 ||
         (part.data >= block.data && part.data + part.len <= block.data + block.len));
}

static void check_message(const struct message *m, struct slice block) {
    static const char undefined[] = "w\tundefined";
    inside(m->name, block);
    inside(m->module.text, block);
    inside(m->function.text, block);
    if (!slice_is(m->note, undefined)) { // which no record brings
        inside(m->note, block);
    }
    MUST(m->kind != MESSAGE_OTHER && m->arguments.len == 0 && m->arity <= 255);
    MUST((m->head != NULL) == (m->kind < MESSAGE_RETURN_TO));
    MUST(!m->head || (!m->head->meant && m->head->target == m->target && m->target % 2 == 1));
    MUST(m->serial <= MESSAGE_LAST_SERIAL && m->previous <= MESSAGE_LAST_SERIAL);
}

// What was read last, alone. m: NULL: it was a loss.
static void check_alone(const struct message *m, const struct native_loss *loss,
                        struct slice block) {
    static struct buffer out = {.cap = LIMIT_FRAME_BYTES + FRAME_HEADER};
    struct message n;
    struct native_loss lost;
    struct frame frame;
    buffer_reset(&out);
    MUST(native_alone(&reader, &out));
    MUST(frame_next(slice_of(out.data, out.len), &frame) == (long)out.len);
    MUST(frame.kind == FRAME_BLOCK && frame.body.len <= block.len + 1);
    MUST(native_begin(&other, frame.body));
    MUST(native_next(&other, &n, &lost) == (m ? NATIVE_IS_MESSAGE : NATIVE_IS_LOSS));
    if (m) {
        MUST(native_same(m, &n) && m->note_kind == n.note_kind && m->spawned == n.spawned &&
             m->target == n.target);
    } else {
        MUST(loss->clock == lost.clock && loss->time == lost.time && loss->until == lost.until &&
             loss->messages == lost.messages && loss->until >= loss->time);
    }
    MUST(native_next(&other, &n, &lost) == NATIVE_IS_OVER);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice block = slice_of(data, size);
    struct message m;
    struct native_loss loss;
    enum native_step step;
    bool begun = native_begin(&reader, block);
    size_t left = native_left(&reader);
    while ((step = native_next(&reader, &m, &loss)) == NATIVE_IS_MESSAGE ||
           step == NATIVE_IS_LOSS) {
        MUST(begun && native_left(&reader) < left);
        left = native_left(&reader);
        if (step == NATIVE_IS_MESSAGE) {
            check_message(&m, block);
        }
        check_alone(step == NATIVE_IS_MESSAGE ? &m : NULL, &loss, block);
    }
    MUST(begun || step == NATIVE_IS_BAD);
    MUST(step == NATIVE_IS_BAD || data[size - 1] == NATIVE_END);
    MUST(native_next(&reader, &m, &loss) == step);
    return 0;
}
