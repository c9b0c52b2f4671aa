// SPDX-License-Identifier: Apache-2.0
// A stream of frames of trace messages: what is read lies inside its frame, and what the reader
// learned from the messages before changes nothing of what it reads: a reader that knows nothing
// reads the same. Without the values of the node it still is the same to a replay, and what is left
// of values is a class and a pid.
#include "codec/frame.h"
#include "model/message/message_values.h"

#include "fuzz.h"

static void inside(struct slice part, struct slice body) {
    MUST(part.len == 0 || (part.data >= body.data && part.data + part.len <= body.data + body.len));
}

// A function's name may be one that the reader remembers.
static void inside_or_known(struct slice part, struct slice body,
                            const struct message_reader *reader) {
    const uint8_t *known = (const uint8_t *)reader;
    bool remembered = part.data >= known && part.data + part.len <= known + sizeof *reader;
    if (!remembered) {
        inside(part, body);
    }
}

static bool same_part(struct slice a, struct slice b) {
    return a.len == b.len && (a.len == 0 || a.data == b.data);
}

static void must_be_same(const struct message *a, const struct message *b) {
    MUST(a->kind == b->kind);
    if (a->kind == MESSAGE_OTHER) {
        return;
    }
    MUST(a->clock == b->clock && a->time == b->time && a->pid == b->pid);
    MUST(slice_equal(a->module.text, b->module.text) &&
         slice_equal(a->function.text, b->function.text));
    MUST(a->module.latin1 == b->module.latin1 && a->function.latin1 == b->function.latin1 &&
         a->arity == b->arity);
    if (a->kind == MESSAGE_CALL) {
        MUST(a->note_kind == b->note_kind && a->has_token == b->has_token &&
             same_part(a->arguments, b->arguments));
        MUST(!a->has_token || (a->token == b->token && a->from == b->from &&
                               a->serial == b->serial && a->previous == b->previous));
        MUST(a->note_kind == NOTE_NONE || same_part(a->note, b->note));
    }
}

static void must_be_alike(const struct message *m, const struct message *n) {
    // a class, or a pair of a pid with its node's name
    enum { MOST = 3 + 65535 + 3 + 65535 + 13 + 1 };
    MUST(m->kind == n->kind);
    if (m->kind == MESSAGE_OTHER) {
        return;
    }
    MUST(m->clock == n->clock && m->time == n->time && m->pid == n->pid && m->target == n->target &&
         m->arity == n->arity);
    MUST(slice_equal(m->name, n->name) && slice_equal(m->arguments, n->arguments));
    MUST(m->kind == MESSAGE_RETURN || m->kind == MESSAGE_EXCEPTION ? n->note.len <= MOST
                                                                   : slice_equal(m->note, n->note));
}

static void read_frame(struct message_reader *reader, struct message_reader *hasty,
                       struct slice body) {
    struct cursor c;
    uint32_t count = message_frame(body, &c);
    for (uint32_t i = 0; i < count; i++) {
        struct message_reader fresh = {0};
        struct message m = {0}, plain = {0}, quick = {0};
        struct cursor second = c, third = c;
        bool ok = message_decode(reader, &c, false, &m);
        MUST(ok == message_decode(&fresh, &second, false, &plain));
        // walking less may accept more, never less, and stays inside too
        bool quick_ok = message_decode(hasty, &third, count == 1, &quick);
        MUST(!ok || quick_ok || cursor_left(&c) > 0);
        if (quick_ok) {
            MUST(third.at >= body.data && third.at <= body.data + body.len);
            inside_or_known(quick.module.text, body, hasty);
            inside_or_known(quick.function.text, body, hasty);
            inside(quick.note, body);
            inside(quick.arguments, body);
        }
        if (ok && quick_ok && quick.kind == MESSAGE_CALL) {
            must_be_same(&m, &quick); // only what a call returned is not walked
        }
        if (!ok) {
            return;
        }
        MUST(c.at == second.at && c.at >= body.data && c.at <= body.data + body.len);
        must_be_same(&m, &plain);
        inside(m.module.text, body);
        inside(m.function.text, body);
        inside(m.arguments, body);
        inside(m.note, body);
        char pid[32];
        message_pid_text(m.pid, pid);
        MUST(memchr(pid, 0, sizeof pid));
        message_pid_text(m.from, pid);
        MUST(memchr(pid, 0, sizeof pid));
    }
}

// The next message, after what a reader has learned.
static bool next(struct cursor *c, struct message *m) {
    static struct message_reader reader;
    memset(&reader, 0, sizeof reader);
    return message_decode(&reader, c, false, m);
}

static void strip_frame(struct message_reader *reader, struct slice body) {
    static struct buffer out = {.cap = 1 << 20};
    struct cursor c, d;
    struct message m = {0}, n = {0};
    out.len = 0;
    out.failed = false;
    bool stripped = message_without_values(reader, body, &out);
    uint32_t count = message_frame(body, &c);
    uint32_t left = count;
    while (left > 0 && next(&c, &m)) {
        left--;
    }
    MUST(stripped == (count > 0 && left == 0) || out.failed);
    if (!stripped) {
        MUST(out.len == 0 || out.failed);
        return;
    }
    MUST(out.len <= body.len);
    MUST(message_frame(body, &c) == message_frame(slice_of(out.data, out.len), &d));
    for (; count > 0; count--) {
        MUST(next(&c, &m) && next(&d, &n));
        must_be_alike(&m, &n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct message_reader reader = {0}, hasty = {0}, recorder = {0};
    struct frame f;
    long n;
    for (size_t at = 0; (n = frame_next(slice_of(data + at, size - at), &f)) > 0; at += (size_t)n) {
        if (f.kind == FRAME_TERM) {
            read_frame(&reader, &hasty, f.body);
            strip_frame(&recorder, f.body);
        }
    }
    return 0;
}
