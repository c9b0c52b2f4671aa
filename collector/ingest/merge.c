// SPDX-License-Identifier: Apache-2.0
#include "ingest/merge.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline_node.h"

// What a message of a list needs before its bytes to be a frame of its own: a list frame's own head
// has as much and a list's count.
enum { LISTED_HEAD = FRAME_HEADER + 1 };

// A block whose messages and losses are handed on one by one. It has left the stream's bytes, which
// move, and stays where it is.
struct block {
    struct native_reader reader;
    size_t size; // of all of this
    uint8_t bytes[];
};

struct stream {
    bool open;
    bool clean;               // the trace has ended in order
    bool ended;               // the last that it brought is the word that there is no more
    bool gap;                 // messages of it are lost since the last one that was handed on
    bool bad;                 // what it brings cannot be read any more
    bool idle;                // the last that it brought was an empty frame
    bool more;                // it has brought more, which was not read yet
    bool held_up;             // its gap is that it has brought nothing for too long
    int64_t told;             // when it last brought something, steady ns
    struct frame_place place; // of the first byte that waits
    struct buffer bytes;
    size_t used; // bytes at the start of them that are done with
    size_t head; // bytes of the frame that comes next; 0: not looked for yet, or not whole
    // of a frame with a list of messages: how many of them are to be handed on, each in a frame of
    // its own, and the bytes from the next one to the frame's end
    uint32_t listed;
    size_t list;
    struct block *block; // that is being handed on; NULL: none
    bool drop;           // it tells of dropped messages
    int64_t time;
};

struct merge {
    struct pipeline_node *node;
    int64_t (*take)(void *context, struct slice bytes);
    void *context;
    struct stream *streams[LIMIT_STREAMS];
    struct stream *through; // the only one, whose bytes go through as they come; or NULL
    uint32_t open;          // streams
    int64_t ticked;         // the last time, steady ns
    int64_t doubtful;       // until then an empty frame may have been long on its way, steady ns
    size_t room;            // of all streams' bytes and blocks
    struct buffer one;      // a message of a block, in a frame of its own
};

struct merge *merge_new(struct pipeline_node *n, int64_t (*take)(void *context, struct slice bytes),
                        void *context) {
    struct merge *m = calloc(1, sizeof *m);
    if (m) {
        *m = (struct merge){.node = n,
                            .ticked = n->pipeline->now.steady,
                            .take = take,
                            .context = context,
                            .one = buffer_make(LIMIT_FRAME_BYTES + FRAME_HEADER)};
    }
    return m;
}

// -- what waits -----------------------------------------------------------------------------------

static void note_room(struct merge *m, size_t before, size_t now) {
    m->room += now - before;
    m->node->pipeline->partial_bytes += now - before;
}

static void free_buffer(struct merge *m, struct buffer *b) {
    note_room(m, b->room, 0);
    buffer_free(b);
}

static void end_block(struct merge *m, struct stream *s) {
    if (s->block) {
        note_room(m, s->block->size, 0);
        free(s->block);
        s->block = NULL;
    }
}

static void forget_bytes(struct merge *m, struct stream *s) {
    free_buffer(m, &s->bytes);
    end_block(m, s);
    s->used = s->head = s->list = 0;
    s->listed = 0;
}

// What is left of much that waited, the start of a frame say, does not keep its memory.
static void give_back(struct merge *m, struct stream *s) {
    if (s->bytes.len == 0) {
        free_buffer(m, &s->bytes);
        s->used = 0;
    } else if (s->bytes.room > LIMIT_SURE_BYTES && s->bytes.len < s->bytes.room / 4) {
        struct buffer less = buffer_make(LIMIT_PARTIAL_BYTES);
        if (buffer_append(&less, s->bytes.data, s->bytes.len)) {
            note_room(m, s->bytes.room, less.room);
            buffer_free(&s->bytes);
            s->bytes = less;
        } else {
            buffer_free(&less);
        }
    }
}

void merge_free(struct merge *m) {
    for (uint32_t i = 0; m && i < LIMIT_STREAMS; i++) {
        if (m->streams[i]) {
            forget_bytes(m, m->streams[i]);
            free(m->streams[i]);
        }
    }
    if (m) {
        free_buffer(m, &m->one);
        stream_gaps(m->node, 0);
    }
    free(m);
}

// Whether there is so much more room, as far as other nodes find some, too.
static bool has_room(const struct merge *m, size_t more) {
    const struct pipeline *p = m->node->pipeline;
    size_t others = p->partial_bytes - m->room;
    size_t most = LIMIT_PARTIAL_BYTES / p->names->pipelines;
    size_t left = others < most ? most - others : 0, want = m->room + more;
    return want <= LIMIT_SURE_BYTES || want <= left / 4 * 3;
}

// Whether so many more bytes may wait: a buffer may double as it grows.
static bool may_wait(const struct merge *m, size_t more) {
    return has_room(m, 2 * more);
}

static void set_gap(struct merge *m, struct stream *s, bool gap) {
    if (s->gap != gap) {
        s->gap = gap;
        stream_gaps(m->node, gap ? m->node->gaps + 1 : m->node->gaps - 1);
    }
}

static struct slice waiting(const struct stream *s) {
    return s->bytes.len > 0 ? slice_of(s->bytes.data + s->used, s->bytes.len - s->used)
                            : slice_of(NULL, 0);
}

static void drop(struct stream *s, size_t bytes) {
    s->used += bytes;
    s->place.offset += (int64_t)bytes;
}

// Nothing more of a stream can be read.
static void lose_rest(struct merge *m, struct stream *s) {
    stream_unreadable(m->node, 0);
    set_gap(m, s, true);
    forget_bytes(m, s);
    s->bad = true;
}

// A frame with messages: one, which is handed on as it is, or a list.
static void find_messages(struct merge *m, struct stream *s, struct slice body, size_t size) {
    struct cursor c;
    uint32_t count = message_frame(body, &c);
    bool is_list = !c.failed && !term_is_tuple(body.data[1]);
    if (!is_list) {
        s->head = size;
        if (count == 1) { // what has no time has that of the one before
            stream_time(m->node, &c, true, &s->time);
        }
        return;
    }
    s->listed = count;
    s->list = (size_t)(c.end - c.at);
    drop(s, size - s->list);
    if (count == 0) {
        drop(s, s->list);
        s->list = 0;
    }
}

// The next message of a list. Behind one that cannot be read nobody finds the others.
static void find_listed(struct merge *m, struct stream *s) {
    struct cursor c = cursor_of(waiting(s).data, s->list);
    if (stream_time(m->node, &c, false, &s->time)) {
        s->head = s->list - (size_t)(c.end - c.at);
        s->drop = false;
        return;
    }
    stream_unreadable(m->node, s->listed);
    set_gap(m, s, true);
    drop(s, s->list);
    s->listed = 0;
    s->list = 0;
}

// Begins to hand on what a frame's block holds. Without room for that the frame is handed on as it
// is, in the place of the message before: what is in it is out of order then.
static void begin_block(struct merge *m, struct stream *s, struct slice body, size_t frame) {
    // the block, and its largest message in a buffer
    size_t size = sizeof *s->block + body.len;
    s->block = has_room(m, size + 2 * frame) ? malloc(size) : NULL;
    if (!s->block) {
        stream_lose(m->node);
        s->head = frame;
        return;
    }
    note_room(m, 0, size);
    s->block->size = size;
    if (body.len > 0) {
        memcpy(s->block->bytes, body.data, body.len);
    }
    native_begin(&s->block->reader, slice_of(s->block->bytes, body.len));
    drop(s, frame);
}

// The next message or loss of a block, if there is one.
static void find_in_block(struct merge *m, struct stream *s) {
    struct native_reader *r = &s->block->reader;
    struct message message;
    struct native_loss loss;
    size_t left = native_left(r);
    switch (native_next(r, &message, &loss)) {
    case NATIVE_IS_MESSAGE:
        stream_native_time(m->node, message.clock, message.time, &s->time);
        s->head = left - native_left(r);
        return;
    case NATIVE_IS_LOSS:
        stream_native_time(m->node, loss.clock, loss.time, &s->time);
        s->head = left - native_left(r);
        return;
    case NATIVE_IS_OVER:
        break;
    case NATIVE_IS_BAD:
        stream_unreadable(m->node, 1);
        set_gap(m, s, true);
        break;
    }
    end_block(m, s);
}

// Finds the next frame of a stream that is handed on, and its time. False when none is there,
// whole.
static bool find_head(struct merge *m, struct stream *s) {
    while (s->head == 0) {
        if (s->listed > 0) {
            find_listed(m, s);
            continue;
        }
        if (s->block) {
            find_in_block(m, s);
            continue;
        }
        struct frame frame;
        s->used += frame_skip(&s->place, waiting(s).len);
        long size = frame_next(waiting(s), &frame);
        if (size == FRAME_BAD) {
            lose_rest(m, s);
        }
        if (size <= 0) {
            s->idle = s->idle && waiting(s).len == 0; // the start of a frame: more is on its way
            return false;
        }
        s->idle = frame.kind == FRAME_EMPTY || frame.kind == FRAME_END;
        s->ended = frame.kind == FRAME_END;
        if (s->idle) {
            drop(s, (size_t)size);
            set_gap(m, s, s->gap && !s->held_up);
            s->held_up = false;
        } else if (frame.kind == FRAME_OVERSIZED) {
            stream_unreadable(m->node, 1);
            s->place.skipping = frame.size;
            drop(s, (size_t)size);
        } else if (frame.kind == FRAME_DROPPED) {
            s->head = (size_t)size;
            s->drop = true;
        } else {
            s->drop = false;
            if (frame.kind == FRAME_BLOCK) {
                begin_block(m, s, frame.body, (size_t)size);
            } else {
                find_messages(m, s, frame.body, (size_t)size);
            }
        }
    }
    return true;
}

// Whether nothing of a stream is on its way.
static bool is_idle(const struct merge *m, const struct stream *s) {
    return s->idle && !s->more && m->node->pipeline->now.steady >= m->doubtful;
}

// Whether a stream of which nothing waits may still bring what belongs before that time. One that
// has been quiet for too long holds up nobody, but may lack anything from then on.
static bool holds(struct merge *m, struct stream *s, int64_t time) {
    int64_t quiet = m->node->pipeline->now.steady - s->told;
    if (s->open && !s->gap && quiet >= MERGE_SILENT_NS) {
        set_gap(m, s, true);
        s->held_up = true;
    }
    bool up_to_date = is_idle(m, s) && quiet < MERGE_HOLD_NS;
    return s->open && !s->bad && !s->held_up &&
           (!up_to_date || time > pipeline_node_now(m->node) - MERGE_HOLD_NS);
}

// The message of a list that is next, as a frame of its own, whose head is written over what is
// done with: at least the list's own head.
static struct slice listed_frame(struct stream *s) {
    uint8_t *at = s->bytes.data + s->used - LISTED_HEAD;
    uint32_t size = (uint32_t)s->head + 1;
    const uint8_t head[LISTED_HEAD] = {0,
                                       (uint8_t)(size >> 24),
                                       (uint8_t)(size >> 16),
                                       (uint8_t)(size >> 8),
                                       (uint8_t)size,
                                       TERM_VERSION};
    memcpy(at, head, sizeof head);
    return slice_of(at, LISTED_HEAD + s->head);
}

// Hands on what was found in a block.
static void hand_on_one(struct merge *m, struct stream *s) {
    size_t before = m->one.room;
    set_gap(m, s, false);
    s->held_up = false;
    s->head = 0;
    buffer_reset(&m->one);
    bool made = native_alone(&s->block->reader, &m->one);
    note_room(m, before, m->one.room);
    if (made) {
        m->take(m->context, slice_of(m->one.data, m->one.len));
    } else {
        stream_unreadable(m->node, 1);
        set_gap(m, s, true);
    }
}

static void hand_on(struct merge *m, struct stream *s) {
    if (s->block) {
        hand_on_one(m, s);
        return;
    }
    struct slice frame = s->listed > 0 ? listed_frame(s) : slice_of(waiting(s).data, s->head);
    set_gap(m, s, s->drop);
    s->held_up = false;
    m->take(m->context, frame);
    drop(s, s->head);
    if (s->listed > 0) {
        s->list -= s->head;
        s->listed--;
        if (s->listed == 0) { // the list's tail
            drop(s, s->list);
            s->list = 0;
        }
    }
    s->head = 0;
}

// All that a stream has brought has been handed on, but the start of a frame. Where it has ended,
// that is lost, and while others go on, what it does not bring is lost too.
static void end_stream(struct merge *m, struct stream *s) {
    if (!s->open && (s->bytes.len > s->used || s->place.skipping > 0)) {
        stream_unreadable(m->node, 1);
        forget_bytes(m, s);
        s->place.skipping = 0;
    }
    if (!s->open && !s->clean && !s->ended && m->open > 0) {
        set_gap(m, s, true);
    }
}

// The stream whose message comes next. NULL when none is there, or when it has to wait for another
// stream's; in_order: false: it does not wait.
static struct stream *next_stream(struct merge *m, bool in_order) {
    struct stream *first = NULL;
    bool empty[LIMIT_STREAMS] = {false};
    for (uint32_t i = 0; i < LIMIT_STREAMS; i++) {
        struct stream *s = m->streams[i];
        if (s && find_head(m, s)) {
            first = !first || s->time < first->time ? s : first;
        } else if (s) {
            empty[i] = true;
            end_stream(m, s);
        }
    }
    for (uint32_t i = 0; first && in_order && i < LIMIT_STREAMS; i++) {
        first = empty[i] && holds(m, m->streams[i], first->time) ? NULL : first;
    }
    return first;
}

// Hands on what need not wait any more.
static void release(struct merge *m, bool in_order) {
    struct stream *s = m->through ? NULL : next_stream(m, in_order);
    while (s) {
        hand_on(m, s);
        s = next_stream(m, in_order);
    }
    for (uint32_t i = 0; i < LIMIT_STREAMS; i++) {
        s = m->streams[i];
        size_t kept = s && s->listed > 0 ? LISTED_HEAD : 0;
        if (s && s->used > kept) {
            buffer_consume(&s->bytes, s->used - kept);
            s->used = kept;
        }
        if (s) {
            give_back(m, s);
        }
    }
    free_buffer(m, &m->one);
}

// -- the one whose bytes go through ---------------------------------------------------------------

// Whether the pipeline is in the middle of a frame.
static bool within_frame(const struct merge *m) {
    return m->node->partial.len > 0 || m->node->place.skipping > 0;
}

// So many bytes of the frame in whose middle the pipeline is are still to come, as far as it is
// known.
static size_t frame_rest(const struct merge *m) {
    const struct pipeline_node *n = m->node;
    return n->place.skipping > 0 ? (size_t)n->place.skipping
                                 : frame_missing(slice_of(n->partial.data, n->partial.len));
}

// Nothing goes through any more. The rest of a begun frame does not come: in its place is what no
// reader understands, so it is counted as lost, also in a recording.
static void cut_through(struct merge *m) {
    uint8_t none[1024];
    while (within_frame(m) && !m->node->bad) {
        size_t rest = frame_rest(m);
        // a size must stay one that a frame may have
        memset(none, m->node->partial.len < FRAME_HEADER ? 0 : UINT8_MAX, sizeof none);
        m->take(m->context, slice_of(none, rest < sizeof none ? rest : sizeof none));
    }
    m->through = NULL;
}

// The only stream is one of several now: what it brings goes through to the end of a begun frame.
static struct slice finish_frame(struct merge *m, struct slice bytes) {
    while (bytes.len > 0 && within_frame(m)) {
        size_t rest = frame_rest(m), len = bytes.len < rest ? bytes.len : rest;
        m->take(m->context, slice_of(bytes.data, len));
        m->through->place.offset += (int64_t)len;
        bytes = slice_of(bytes.data + len, bytes.len - len);
    }
    if (!within_frame(m)) {
        m->through = NULL;
    }
    return bytes;
}

// -- what happens ---------------------------------------------------------------------------------

// Whether no other stream has been here; s: NULL: none at all.
static bool alone(const struct merge *m, const struct stream *s) {
    for (uint32_t i = 0; i < LIMIT_STREAMS; i++) {
        if (m->streams[i] && m->streams[i] != s) {
            return false;
        }
    }
    return true;
}

bool merge_open(struct merge *m, uint32_t number) {
    struct stream *s = m->streams[number];
    if (m->through && (!m->through->open || !within_frame(m))) {
        cut_through(m);
    }
    if (!s) {
        bool only = alone(m, NULL);
        s = calloc(1, sizeof *s);
        if (!s) {
            return false;
        }
        s->bytes = buffer_make(LIMIT_PARTIAL_BYTES);
        s->time = INT64_MIN;
        m->streams[number] = s;
        m->through = only ? s : m->through;
    } else { // it was lost, and is back
        release(m, false);
    }
    m->open++;
    s->open = true;
    s->idle = s->more = s->clean = s->ended = s->bad = false;
    s->told = m->node->pipeline->now.steady;
    return true;
}

// Keeps what a stream brought. Where there is no room for it, nothing waits for other streams any
// more. False when there is none even so.
static bool keep(struct merge *m, struct stream *s, struct slice bytes) {
    if (!may_wait(m, bytes.len)) {
        if (m->through) {
            cut_through(m);
        }
        stream_lose(m->node);
        release(m, false);
    }
    size_t before = s->bytes.room;
    bool kept = may_wait(m, bytes.len) && buffer_append(&s->bytes, bytes.data, bytes.len);
    note_room(m, before, s->bytes.room);
    return kept;
}

// Where nothing of any stream is on its way, the node's time goes on without messages: an empty
// frame tells so.
static void tell_idle(struct merge *m) {
    static const uint8_t empty[FRAME_HEADER];
    for (uint32_t i = 0; i < LIMIT_STREAMS; i++) {
        const struct stream *s = m->streams[i];
        if (s && (s->bytes.len > 0 || s->block || (s->open && !is_idle(m, s) && !s->gap))) {
            return;
        }
    }
    m->take(m->context, slice_of(empty, sizeof empty));
}

int64_t merge_feed(struct merge *m, uint32_t number, struct slice bytes, bool more) {
    struct stream *s = m->streams[number];
    s->more = more;
    s->told = m->node->pipeline->now.steady;
    if (m->through == s && alone(m, s)) {
        s->place.offset += (int64_t)bytes.len;
        return m->take(m->context, bytes);
    }
    if (m->through == s) {
        bytes = finish_frame(m, bytes);
    }
    if (!s->bad && !keep(m, s, bytes)) {
        lose_rest(m, s);
    }
    release(m, true);
    if (is_idle(m, s) && !m->through) {
        tell_idle(m);
    }
    return s->bad ? s->place.offset : -1;
}

void merge_close(struct merge *m, uint32_t number, bool clean) {
    struct stream *s = m->streams[number];
    s->open = false;
    s->clean = clean;
    m->open--;
    if (m->through == s && !alone(m, s)) {
        cut_through(m);
    }
    release(m, true);
}

void merge_tick(struct merge *m) {
    int64_t now = m->node->pipeline->now.steady;
    m->doubtful = now - m->ticked < MERGE_STILL_NS ? m->doubtful : now + MERGE_SILENT_NS;
    m->ticked = now;
    release(m, true);
}

void merge_end(struct merge *m) {
    release(m, false);
}
