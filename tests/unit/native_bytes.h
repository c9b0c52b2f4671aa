// SPDX-License-Identifier: Apache-2.0
// Blocks as a native tracer writes them, put together from descriptions of their records or from
// the terms that say the same. Knows the format by its description (model/message/native.h) alone.
#pragma once

#include <string.h>

#include "base/hash.h"
#include "codec/frame.h"
#include "model/message/native.h"

// node: an atom as encoded; empty: the process is one of the traced node's.
struct told_process {
    struct slice node;
    uint64_t number;
};

// name: both atoms as encoded; empty: it is no function but undefined, where that may be.
struct told_function {
    struct slice name;
    unsigned arity;
};

// A record of a message or a loss; what its kind and flags do not ask for is not looked at.
struct told {
    unsigned kind;
    unsigned flags;
    int64_t time;
    struct told_process process;
    struct told_function function;
    int64_t label;
    struct slice term; // with NATIVE_TERM: the label
    uint64_t serial;
    const struct told_process *from; // NULL: none
    uint64_t previous;
    struct told_function caller;
    unsigned elements;
    struct slice rest;
    struct told_process spawned;
    uint64_t messages;
    int64_t until;
};

struct native_writer {
    struct buffer *out;
    size_t at; // where its frame begins there
    uint64_t time;
    uint64_t label;
    uint32_t functions;
    uint32_t processes;
    struct told_function function[NATIVE_FUNCTIONS + 1];
    struct told_process process[NATIVE_PROCESSES + 1];
};

static inline void native_put_u8(struct native_writer *w, unsigned byte) {
    buffer_append(w->out, &(uint8_t){(uint8_t)byte}, 1);
}

static inline void native_put(struct native_writer *w, struct slice bytes) {
    buffer_append(w->out, bytes.data, bytes.len);
}

static inline void native_put_number(struct native_writer *w, uint64_t number) {
    while (number > 127) {
        native_put_u8(w, 128 + (unsigned)(number % 128));
        number /= 128;
    }
    native_put_u8(w, (unsigned)number);
}

static inline void native_put_signed(struct native_writer *w, int64_t number) {
    native_put_number(w, number < 0 ? 2 * (uint64_t)(-(number + 1)) + 1 : 2 * (uint64_t)number);
}

// Begins a block, in a frame; node: the atom as encoded.
static inline void native_open(struct native_writer *w, struct buffer *out, unsigned flags,
                               struct slice node, int64_t time) {
    static const uint8_t header[FRAME_HEADER] = {FRAME_OP_BLOCK};
    w->out = out;
    w->at = out->len;
    w->time = (uint64_t)time;
    w->label = 0;
    w->functions = w->processes = 0;
    native_put(w, slice_of(header, sizeof header));
    native_put_u8(w, NATIVE_VERSION);
    native_put_u8(w, flags);
    native_put(w, node);
    for (int i = 0; i < 8; i++) {
        native_put_u8(w, (unsigned)((uint64_t)time >> (8 * i) & 255));
    }
}

// Sets the size of its frame to what is there.
static inline void native_size(struct native_writer *w) {
    size_t size = w->out->len - w->at - FRAME_HEADER;
    for (int i = 0; i < 4; i++) {
        w->out->data[w->at + 4 - (size_t)i] = (uint8_t)(size >> (8 * i));
    }
}

static inline void native_close(struct native_writer *w) {
    native_put_u8(w, NATIVE_END);
    native_size(w);
}

static inline uint32_t native_function_number(struct native_writer *w, struct told_function f) {
    for (uint32_t i = 0; i < w->functions; i++) {
        if (slice_equal(w->function[i].name, f.name) && w->function[i].arity == f.arity) {
            return i;
        }
    }
    native_put_u8(w, NATIVE_FUNCTION);
    native_put_u8(w, f.arity);
    native_put(w, f.name);
    w->function[w->functions] = f;
    return w->functions++;
}

static inline uint32_t native_process_number(struct native_writer *w, struct told_process p) {
    for (uint32_t i = 0; i < w->processes; i++) {
        if (slice_equal(w->process[i].node, p.node) && w->process[i].number == p.number) {
            return i;
        }
    }
    native_put_u8(w, p.node.len > 0 ? NATIVE_REMOTE : NATIVE_PROCESS);
    native_put(w, p.node);
    native_put_number(w, p.number);
    w->process[w->processes] = p;
    return w->processes++;
}

static inline void native_put_rest(struct native_writer *w, const struct told *t, uint64_t from,
                                   uint64_t caller) {
    if (t->flags & NATIVE_TERM) {
        native_put_number(w, t->term.len);
        native_put(w, t->term);
    } else if (t->flags & NATIVE_TOKEN) {
        native_put_signed(w, (int64_t)((uint64_t)t->label - w->label));
        w->label = (uint64_t)t->label;
    }
    if (t->flags & NATIVE_TOKEN) {
        native_put_number(w, t->serial);
        native_put_number(w, from);
        native_put_number(w, t->previous);
    }
    if (t->flags & NATIVE_CALLER) {
        native_put_number(w, caller);
    }
    if (t->flags & NATIVE_REST) {
        native_put_number(w, t->rest.len);
        native_put_u8(w, t->elements);
        native_put(w, t->rest);
    }
}

// Adds a record, and what it names before it.
static inline void native_tell(struct native_writer *w, const struct told *t) {
    bool call = t->kind == NATIVE_CALL || t->kind == NATIVE_SENT || t->kind == NATIVE_TAKEN,
         lost = t->kind == NATIVE_LOST;
    bool spawned = t->kind == NATIVE_RETURN && (t->flags & NATIVE_SPAWNED);
    uint64_t process = lost ? 0 : native_process_number(w, t->process);
    uint64_t function = 0, caller = 0, from = 0, child = 0;
    if (t->kind < NATIVE_RETURN_TO) {
        function = native_function_number(w, t->function);
    } else if (t->kind == NATIVE_RETURN_TO && t->function.name.len > 0) {
        function = native_function_number(w, t->function) + 1;
    }
    if (call && (t->flags & NATIVE_TOKEN) && t->from) {
        from = native_process_number(w, *t->from) + 1;
    }
    if (call && (t->flags & NATIVE_CALLER) && t->caller.name.len > 0) {
        caller = native_function_number(w, t->caller) + 1;
    }
    if (spawned) {
        child = native_process_number(w, t->spawned);
    }
    native_put_u8(w, t->kind | t->flags);
    native_put_signed(w, (int64_t)((uint64_t)t->time - w->time));
    w->time = (uint64_t)t->time;
    if (lost) {
        native_put_number(w, t->messages);
        native_put_signed(w, (int64_t)((uint64_t)t->until - (uint64_t)t->time));
        return;
    }
    native_put_number(w, process);
    if (t->kind <= NATIVE_RETURN_TO) {
        native_put_number(w, function);
    }
    if (call) {
        native_put_rest(w, t, from, caller);
    } else if (spawned) {
        native_put_number(w, child);
    }
}

// -- from terms -----------------------------------------------------------------------------------

// The function at the cursor: {Module, Function, Arity or Arguments}, or what is none.
static inline struct told_function function_at(struct cursor c) {
    struct told_function f = {0};
    if (!term_is_tuple(term_peek(&c)) || term_tuple(&c) != 3) {
        return f;
    }
    const uint8_t *name = c.at;
    term_atom(&c);
    term_atom(&c);
    f.name = slice_of(name, (size_t)(c.at - name));
    if (term_is_integer(term_peek(&c))) {
        f.arity = (unsigned)term_integer(&c);
    } else {
        bool has_tail;
        struct slice bytes;
        f.arity = term_list(&c, &has_tail, &bytes);
    }
    return f;
}

// The pid's node at the cursor, as encoded.
static inline struct slice node_at(struct cursor c) {
    cursor_u8(&c);
    const uint8_t *node = c.at;
    term_atom(&c);
    return slice_of(node, (size_t)(c.at - node));
}

// Describes a message that message_decode has read of a term. False: no block has such messages.
// from: room for its process.
static inline bool native_describe(struct slice term, const struct message *m,
                                   struct told_process *from, struct told *t) {
    static const uint8_t kinds[] = {[MESSAGE_CALL] = NATIVE_CALL,
                                    [MESSAGE_RETURN] = NATIVE_RETURN,
                                    [MESSAGE_EXCEPTION] = NATIVE_EXCEPTION,
                                    [MESSAGE_RETURN_TO] = NATIVE_RETURN_TO,
                                    [MESSAGE_GC_START] = NATIVE_GC_START,
                                    [MESSAGE_GC_END] = NATIVE_GC_END,
                                    [MESSAGE_OUT] = NATIVE_OUT,
                                    [MESSAGE_IN] = NATIVE_IN,
                                    [MESSAGE_EXITED] = NATIVE_EXITED};
    if (m->kind == MESSAGE_OTHER || (m->clock != MESSAGE_MONOTONIC && m->clock != MESSAGE_STRICT)) {
        return false;
    }
    struct cursor c = cursor_of(term.data, term.len);
    uint32_t elements = term_tuple(&c);
    for (int i = 0; i < 3; i++) { // trace_ts, the pid, the event
        term_skip(&c);
    }
    *t = (struct told){.kind = kinds[m->kind], .time = m->time, .process = {.number = m->pid}};
    if (m->kind <= MESSAGE_RETURN_TO) {
        t->function = function_at(c);
    }
    if (m->kind == MESSAGE_RETURN) {
        struct cursor value = cursor_of(m->note.data, m->note.len);
        if (term_is_tuple(term_peek(&value)) && term_tuple(&value) != 2) {
            return true;
        }
        t->spawned.number = message_pid(&value);
        t->flags = t->spawned.number != 0 ? NATIVE_SPAWNED : 0;
    }
    if (m->kind == MESSAGE_CALL && m->has_token && elements > 5) {
        *from = (struct told_process){.number = m->from};
        t->from = m->from != 0 ? from : NULL;
        t->flags = NATIVE_TOKEN | NATIVE_REST;
        t->label = (int64_t)hash_unmix(m->token);
        t->serial = m->serial;
        t->previous = m->previous;
        term_skip(&c); // the function; the match spec's message follows
        uint32_t parts = term_tuple(&c);
        if (term_is_tuple(term_peek(&c))) { // the token comes first in it
            term_skip(&c);
            const uint8_t *rest = c.at;
            for (t->elements = 0; t->elements + 1 < parts; t->elements++) {
                term_skip(&c);
            }
            t->rest = slice_of(rest, (size_t)(c.at - rest));
        }
    }
    return true;
}

struct native_made {
    struct native_writer writer;
    struct message_reader reader;
    struct buffer *out;
    uint32_t most;  // messages of a block
    uint32_t count; // of the open block, 0: none is open
    enum message_clock clock;
    uint64_t told; // messages in all
};

static inline void native_made_close(struct native_made *made) {
    if (made->count > 0) {
        native_close(&made->writer);
    }
    made->count = 0;
}

static inline void native_made_frame(struct native_made *made, struct slice body) {
    struct cursor c;
    uint32_t count = message_frame(body, &c);
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *start = c.at;
        struct message m;
        struct told t = {0};
        struct told_process from;
        if (!message_decode(&made->reader, &c, false, &m)) {
            return;
        }
        struct slice term = slice_of(start, (size_t)(c.at - start));
        if (!native_describe(term, &m, &from, &t)) {
            continue;
        }
        if (made->count == made->most || made->clock != m.clock ||
            made->writer.functions + 2 > NATIVE_FUNCTIONS ||
            made->writer.processes + 2 > NATIVE_PROCESSES) {
            native_made_close(made);
        }
        if (made->count++ == 0) {
            struct cursor pid = cursor_of(term.data, term.len);
            term_tuple(&pid);
            term_skip(&pid);
            made->clock = m.clock;
            native_open(&made->writer, made->out, m.clock == MESSAGE_STRICT ? NATIVE_APART : 0,
                        node_at(pid), m.time);
        }
        // what it names is copied out of the stream, which stays
        native_tell(&made->writer, &t);
        made->told++;
    }
}

// Appends a stream of terms as a stream of blocks of so many messages at most; other frames stay.
// Returns the number of messages; those that no block can have are left out.
static inline uint64_t native_of_terms(struct slice stream, uint32_t most, struct buffer *out) {
    static struct native_made made;
    made = (struct native_made){.out = out, .most = most};
    struct frame frame = {0};
    long size;
    for (size_t at = 0;
         at < stream.len &&
         (size = frame_next(slice_of(stream.data + at, stream.len - at), &frame)) > 0;
         at += (size_t)size) {
        if (frame.kind == FRAME_TERM) {
            native_made_frame(&made, frame.body);
        } else if (frame.kind != FRAME_OVERSIZED) {
            native_made_close(&made);
            buffer_append(out, stream.data + at, (size_t)size);
        }
    }
    native_made_close(&made);
    return made.told;
}

// -- comparing ------------------------------------------------------------------------------------

// Whether two messages say the same, but for the values that functions have returned and raised.
static inline bool native_same(const struct message *a, const struct message *b) {
    bool call = a->kind == MESSAGE_CALL || a->kind == MESSAGE_SENT || a->kind == MESSAGE_TAKEN;
    if (a->kind != b->kind || a->clock != b->clock || a->time != b->time || a->pid != b->pid ||
        a->arity != b->arity || !slice_equal(a->name, b->name) ||
        !slice_equal(a->module.text, b->module.text) ||
        !slice_equal(a->function.text, b->function.text) || a->module.latin1 != b->module.latin1 ||
        a->function.latin1 != b->function.latin1) {
        return false;
    }
    if (!call) {
        return a->kind != MESSAGE_RETURN_TO || a->target == b->target;
    }
    if (a->has_token != b->has_token || a->note_kind != b->note_kind || a->entry != b->entry ||
        a->caller != b->caller) {
        return false;
    }
    return (!a->has_token || (a->token == b->token && a->from == b->from &&
                              a->serial == b->serial && a->previous == b->previous)) &&
           (a->note_kind == NOTE_NONE || slice_equal(a->note, b->note));
}
