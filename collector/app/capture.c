#include "app/capture.h"

#include "codec/frame.h"
#include "model/message.h"

enum { FRAMES = 10000 }; // looked at: where both kinds of time are, every request has both

// The node's name out of a message's pid.
static struct slice node_of(struct slice message) {
    struct cursor c = cursor_of(message.data, message.len);
    term_tuple(&c);
    term_atom(&c);
    uint8_t tag = term_peek(&c);
    if (tag != TERM_NEW_PID && tag != TERM_PID) {
        return slice_of(NULL, 0);
    }
    struct term_pid pid = term_pid(&c);
    return c.failed ? slice_of(NULL, 0) : pid.node.text;
}

static void note_time(struct capture *out, const struct message *m, int64_t latest[2]) {
    if (m->clock == MESSAGE_UNTIMED) {
        return;
    }
    bool wall = m->clock == MESSAGE_WALL;
    if (!wall && !out->monotonic) {
        out->first = m->time;
    }
    out->monotonic |= !wall;
    out->wall |= wall;
    latest[wall] = m->time;
    if (out->monotonic && out->wall) {
        out->offset = latest[1] - latest[0];
    }
}

struct capture capture_probe(struct slice file) {
    struct capture out = {0};
    struct message_reader reader = {0};
    int64_t latest[2] = {0}; // monotonic, wall
    size_t at = 0;
    for (int frames = 0; frames < FRAMES && at < file.len && !(out.monotonic && out.wall); frames++) {
        struct frame frame;
        long size = frame_next(slice_of(file.data + at, file.len - at), &frame);
        if (size <= 0) {
            break;
        }
        at += (size_t)size;
        if (frame.kind == FRAME_OVERSIZED) {
            at = frame.size > file.len - at ? file.len : at + frame.size;
        }
        if (frame.kind != FRAME_TERM) {
            continue;
        }
        struct cursor c;
        uint32_t count = message_frame(frame.body, &c);
        for (uint32_t i = 0; i < count && !c.failed; i++) {
            const uint8_t *start = c.at;
            struct message m;
            if (!message_decode(&reader, &c, false, &m)) {
                break;
            }
            note_time(&out, &m, latest);
            if (out.node.len == 0) {
                out.node = node_of(slice_of(start, (size_t)(c.at - start)));
            }
        }
    }
    return out;
}
