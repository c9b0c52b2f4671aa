// SPDX-License-Identifier: Apache-2.0
// Trace messages as a node would send them, put together by hand at the end of `out`.
#pragma once

#include "unit.h"

#include "base/buffer.h"
#include "codec/term.h"

static struct buffer out; // what was put; the test frees it

// Of cmocka, for tests that need nothing besides.
static inline int bytes_setup(void **state) {
    (void)state;
    out = buffer_make(1 << 20);
    return 0;
}

static inline int bytes_teardown(void **state) {
    (void)state;
    buffer_free(&out);
    return 0;
}

static inline void put_u8(unsigned v) {
    buffer_append(&out, &(uint8_t){(uint8_t)v}, 1);
}

static inline void put_u32(uint32_t v) {
    v = __builtin_bswap32(v);
    buffer_append(&out, &v, 4);
}

static inline void put_tuple(unsigned n) {
    put_u8(TERM_SMALL_TUPLE);
    put_u8(n);
}

static inline void put_atom(const char *text) {
    put_u8(TERM_SMALL_ATOM_UTF8);
    put_u8((unsigned)strlen(text));
    buffer_text(&out, text);
}

static inline void put_small(unsigned v) {
    put_u8(TERM_SMALL_INTEGER);
    put_u8(v);
}

static inline void put_integer(int32_t v) {
    put_u8(TERM_INTEGER);
    put_u32((uint32_t)v);
}

static inline void put_big(int64_t v) {
    uint64_t size = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    put_u8(TERM_SMALL_BIG);
    put_u8(8);
    put_u8(v < 0);
    buffer_append(&out, &size, 8);
}

static inline void put_pid(const char *node, uint32_t id, uint32_t serial, uint32_t creation) {
    put_u8(TERM_NEW_PID);
    put_atom(node);
    put_u32(id);
    put_u32(serial);
    put_u32(creation);
}

static inline void put_old_pid(const char *node, uint32_t id, uint32_t serial, uint8_t creation) {
    put_u8(TERM_PID);
    put_atom(node);
    put_u32(id);
    put_u32(serial);
    put_u8(creation);
}

static inline void put_head(unsigned arity, const char *tag, uint32_t pid) {
    put_tuple(arity);
    put_atom(tag);
    put_pid("n@h", pid, 0, 5);
}

static inline void put_function(const char *m, const char *f, unsigned arity) {
    put_tuple(3);
    put_atom(m);
    put_atom(f);
    put_small(arity);
}

// What labels start with, above 32 bits of counter; 0: they are small.
static uint32_t labels_start;

static inline void put_token(uint32_t label, uint32_t from) {
    put_tuple(5);
    put_small(18);
    if (labels_start != 0) {
        put_big((int64_t)labels_start << 32 | label);
    } else {
        put_integer((int32_t)label);
    }
    put_small(3);
    put_pid("n@h", from, 0, 5);
    put_small(0);
}

static inline void put_call(uint32_t pid, uint32_t label, uint32_t from, int64_t time) {
    put_head(6, "trace_ts", pid);
    put_atom("call");
    put_function("db", "query", 2);
    put_tuple(2);
    put_token(label, from);
    put_atom("create");
    put_big(time);
}

// A return from that function; what it returned and the time are still to come.
static inline void put_return_head(uint32_t pid) {
    put_head(6, "trace_ts", pid);
    put_atom("return_from");
    put_function("db", "query", 2);
}

// A frame around what is put until frame_end.
static inline size_t frame_begin(void) {
    put_u8(0);
    put_u32(0);
    put_u8(TERM_VERSION);
    return out.len - 6;
}

static inline void frame_end(size_t at) {
    uint32_t size = __builtin_bswap32((uint32_t)(out.len - at - 5));
    assert_false(out.failed);
    memcpy(out.data + at + 1, &size, 4);
}

// A call of a function of one argument, in a frame; what its match spec tells of it is a note.
static inline void frame_call(const char *module, const char *function, uint32_t pid,
                              uint32_t label, const char *note, int64_t time) {
    size_t at = frame_begin();
    put_head(6, "trace_ts", pid);
    put_atom("call");
    put_function(module, function, 1);
    put_tuple(2);
    put_token(label, pid);
    put_atom(note);
    put_big(time);
    frame_end(at);
}

// The same of a marker: "request_begin", "request_end" …
static inline void frame_mark(const char *what, uint32_t pid, uint32_t label, const char *note,
                              int64_t time) {
    frame_call("kprof_mark", what, pid, label, note, time);
}

static inline void frame_dropped(uint32_t count) {
    put_u8(1);
    put_u32(count);
}
