// SPDX-License-Identifier: Apache-2.0
#include "ingest/capture.h"

#include "codec/frame.h"
#include "model/message/native.h"
#include "model/requests/requests.h"

enum { FRAMES = 2000 }; // looked at, at most

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

// What the messages of both kinds of time say about how the clocks go together: within a process
// time only goes on.
struct clocks {
    uint64_t pid; // of the message before
    enum message_clock clock;
    int64_t time;
    int64_t least, most; // the offset is between these
};

struct probe {
    struct capture out;
    struct clocks clocks;
    struct message_reader reader;
    struct native_reader native;
};

static void note_time(struct capture *out, struct clocks *k, const struct message *m) {
    if (m->clock == MESSAGE_UNTIMED || m->time > TRACKER_FARTHEST || m->time < -TRACKER_FARTHEST) {
        return;
    }
    bool wall = m->clock == MESSAGE_WALL;
    if (!wall && !out->monotonic) {
        out->first = m->time;
    }
    out->monotonic |= !wall;
    out->wall |= wall;
    if (k->pid == m->pid && k->clock != MESSAGE_UNTIMED && k->clock != m->clock) {
        if (wall) {
            k->most = m->time - k->time < k->most ? m->time - k->time : k->most;
        } else {
            k->least = k->time - m->time > k->least ? k->time - m->time : k->least;
        }
    }
    k->pid = m->pid;
    k->clock = m->clock;
    k->time = m->time;
}

static void probe_term(struct probe *p, struct slice body) {
    struct cursor c;
    uint32_t count = message_frame(body, &c);
    for (uint32_t i = 0; i < count && !c.failed; i++) {
        const uint8_t *start = c.at;
        struct message m;
        if (!message_decode(&p->reader, &c, false, &m)) {
            break;
        }
        note_time(&p->out, &p->clocks, &m);
        if (p->out.node.len == 0) {
            p->out.node = node_of(slice_of(start, (size_t)(c.at - start)));
        }
    }
}

static void probe_block(struct probe *p, struct slice body) {
    struct message m;
    struct native_loss loss;
    enum native_step step = native_begin(&p->native, body) ? NATIVE_IS_LOSS : NATIVE_IS_BAD;
    while (step == NATIVE_IS_MESSAGE || step == NATIVE_IS_LOSS) {
        step = native_next(&p->native, &m, &loss);
        if (step == NATIVE_IS_MESSAGE) {
            note_time(&p->out, &p->clocks, &m);
            p->out.node = p->out.node.len == 0 ? p->native.node.text : p->out.node;
        }
    }
}

struct capture capture_probe(struct slice file) {
    struct probe p = {.clocks = {.least = INT64_MIN, .most = INT64_MAX}};
    size_t at = 0;
    for (int frames = 0; frames < FRAMES && at < file.len; frames++) {
        struct frame frame;
        long size = frame_next(slice_of(file.data + at, file.len - at), &frame);
        if (size <= 0) {
            break;
        }
        at += (size_t)size;
        if (frame.kind == FRAME_OVERSIZED) {
            at = frame.size > file.len - at ? file.len : at + frame.size;
        } else if (frame.kind == FRAME_TERM) {
            probe_term(&p, frame.body);
        } else if (frame.kind == FRAME_BLOCK) {
            probe_block(&p, frame.body);
        }
    }
    if (p.clocks.least != INT64_MIN) {
        p.out.offset = p.clocks.least;
    } else if (p.clocks.most != INT64_MAX) {
        p.out.offset = p.clocks.most;
    }
    return p.out;
}
