// SPDX-License-Identifier: Apache-2.0
// What the targets of the whole collector share: what a node sends, made of the input's bytes.
#pragma once

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "codec/control.h"
#include "codec/frame.h"
#include "codec/term.h"
#include "fuzz.h"
#include "model/requests/requests.h"
#include "model/stats/stats.h"

enum { FUZZ_NODES = 2, FUZZ_RUNS = 60 };

// A run has nodes of its own, so that it begins as if it were the first. Making a pipeline takes
// longer than most runs: this many share one.
static inline const char *fuzz_name(unsigned run, unsigned node) {
    static char names[3][24];
    snprintf(names[node], sizeof names[node], "%c%u@host", 'a' + node, run);
    return names[node];
}

struct fuzz_input {
    const uint8_t *data;
    size_t left;
};

static inline uint8_t fuzz_u8(struct fuzz_input *in) {
    if (in->left == 0) {
        return 0;
    }
    in->left--;
    return *in->data++;
}

static inline struct slice fuzz_bytes(struct fuzz_input *in, size_t most) {
    size_t len = fuzz_u8(in);
    len = len < in->left ? len : in->left;
    len = len < most ? len : most;
    struct slice bytes = slice_of(in->data, len);
    in->data += len;
    in->left -= len;
    return bytes;
}

// A number: one that hurts, a small one, a time near now, or any.
static inline int64_t fuzz_number(struct fuzz_input *in, int64_t now) {
    static const int64_t sore[] = {
        0,         1, -1, INT64_MAX, INT64_MIN, UINT32_MAX, TRACKER_FARTHEST, -TRACKER_FARTHEST,
        1000000000};
    uint8_t what = fuzz_u8(in);
    int64_t any = 0;
    if (what < sizeof sore / sizeof *sore) {
        return sore[what];
    }
    if (what < 64) {
        return fuzz_u8(in);
    }
    if (what < 240) {
        // -64 … 191 ms, or -6.4 … 19.1 s
        return now + ((int64_t)fuzz_u8(in) - 64) * (what < 200 ? 1000000 : 100000000);
    }
    for (int i = 0; i < 8; i++) {
        any = (int64_t)((uint64_t)any << 8 | fuzz_u8(in));
    }
    return any;
}

// -- trace messages -------------------------------------------------------------------------------

static inline void put(struct buffer *b, const void *bytes, size_t len) {
    buffer_append(b, bytes, len);
}

static inline void put_u8(struct buffer *b, unsigned v) {
    put(b, &(uint8_t){(uint8_t)v}, 1);
}

static inline void put_u32(struct buffer *b, uint32_t v) {
    v = __builtin_bswap32(v);
    put(b, &v, 4);
}

static inline void put_tuple(struct buffer *b, unsigned n) {
    put_u8(b, TERM_SMALL_TUPLE);
    put_u8(b, n);
}

static inline void put_atom(struct buffer *b, const char *text) {
    put_u8(b, TERM_SMALL_ATOM_UTF8);
    put_u8(b, (unsigned)strlen(text));
    put(b, text, strlen(text));
}

static inline void put_big(struct buffer *b, int64_t v) {
    uint64_t size = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    put_u8(b, TERM_SMALL_BIG);
    put_u8(b, 8);
    put_u8(b, v < 0);
    put(b, &size, 8);
}

static inline void put_pid(struct buffer *b, uint32_t id) {
    put_u8(b, TERM_NEW_PID);
    put_atom(b, "n@h");
    put_u32(b, id);
    put_u32(b, 0);
    put_u32(b, 5);
}

static inline void put_function(struct buffer *b, const char *m, const char *f, unsigned arity) {
    put_tuple(b, 3);
    put_atom(b, m);
    put_atom(b, f);
    put_u8(b, TERM_SMALL_INTEGER);
    put_u8(b, arity);
}

static const struct {
    const char *module, *function;
    unsigned arity;
} FUZZ_FUNCTIONS[] = {{"db", "query", 2},
                      {"http", "handle", 1},
                      {"pool", "with", 1},
                      {"kprof_mark", "request_begin", 1},
                      {"kprof_mark", "web_begin", 1},
                      {"kprof_mark", "trace_parent", 1},
                      {"kprof_mark", "request_end", 1},
                      {"kprof_mark", "says", 1},
                      {"erlang", "spawn", 3},
                      {"x", "unknown", 0}};
enum { FUZZ_TIERS = 3, FUZZ_PARENT = 5, FUZZ_ALL_FUNCTIONS = 10 };

// A frame of the trace port: mostly a message that could be one.
static inline void fuzz_frame(struct buffer *b, struct fuzz_input *in, int64_t now) {
    static const char *const notes[] = {"ok", "error",  "create",   "undefined", "token_lost",
                                        "",   "within", "from_now", "no_more"};
    enum { NOTES = 9 };
    static const char *const kinds[] = {
        "call", "call", "call", "return_from",    "return_from",  "exception_from",
        "exit", "in",   "out",  "gc_minor_start", "gc_minor_end", "return_to"};
    uint8_t what = fuzz_u8(in), who = fuzz_u8(in), how = fuzz_u8(in);
    if (what >= 252) { // dropped messages, an oversized frame, any bytes
        struct slice any = fuzz_bytes(in, 64);
        put_u8(b, what == 252 ? 1 : what == 253 ? 0 : what);
        put_u32(b, what == 253 ? 0x00ffffff : who);
        put(b, any.data, any.len);
        return;
    }
    size_t at = b->len;
    const char *kind = kinds[what % 12];
    unsigned f = how % FUZZ_ALL_FUNCTIONS;
    bool call = what % 12 < 3, exits = what % 12 > 5;
    put_u8(b, 0);
    put_u32(b, 0);
    put_u8(b, TERM_VERSION);
    put_tuple(b, exits ? 5 : 6);
    put_atom(b, "trace_ts");
    put_pid(b, 1 + who % 6);
    put_atom(b, kind);
    put_function(b, FUZZ_FUNCTIONS[f].module, FUZZ_FUNCTIONS[f].function, FUZZ_FUNCTIONS[f].arity);
    if (call) {
        put_tuple(b, 2);
        put_tuple(b, 5); // the token
        put_u8(b, TERM_SMALL_INTEGER);
        put_u8(b, 18);
        put_u8(b, TERM_INTEGER);
        put_u32(b, 1 + who / 6 % 6u + (how & 128u ? 0x10000 : 0));
        put_u8(b, TERM_SMALL_INTEGER);
        put_u8(b, 3);
        put_pid(b, 1 + how / 8 % 6u);
        put_u8(b, TERM_SMALL_INTEGER);
        put_u8(b, 0);
    }
    if (call && f == FUZZ_PARENT && how < 240) {
        struct slice any = fuzz_bytes(in, TRACE_PARENT_BYTES);
        put_u8(b, TERM_BINARY);
        put_u32(b, (uint32_t)any.len);
        put(b, any.data, any.len);
    } else if (!exits) {
        put_atom(b, notes[what / 12 % NOTES]);
    }
    put_big(b, fuzz_number(in, now));
    uint32_t size = __builtin_bswap32((uint32_t)(b->len - at - 5));
    if (!b->failed) {
        memcpy(b->data + at + 1, &size, 4);
    }
}

// A frame with a list of so many of them.
static inline void fuzz_list(struct buffer *b, struct fuzz_input *in, int64_t now, uint32_t count) {
    enum { HEAD = 6 }; // of each of them, which in a list is not there
    size_t at = b->len;
    put_u8(b, 0);
    put_u32(b, 0);
    put_u8(b, TERM_VERSION);
    put_u8(b, TERM_LIST);
    put_u32(b, count);
    for (uint32_t i = 0; i < count; i++) {
        size_t from = b->len;
        fuzz_frame(b, in, now);
        if (b->len - from > HEAD) {
            memmove(b->data + from, b->data + from + HEAD, b->len - from - HEAD);
            b->len -= HEAD;
        }
    }
    put_u8(b, TERM_NIL);
    uint32_t size = __builtin_bswap32((uint32_t)(b->len - at - FRAME_HEADER));
    memcpy(b->data + at + 1, &size, sizeof size);
}

// -- control messages -----------------------------------------------------------------------------

static inline void fuzz_hello(struct buffer *b, struct fuzz_input *in, const char *role,
                              const char *node) {
    uint8_t how = fuzz_u8(in);
    struct control_writer w = control_begin(b, "hello", 6);
    control_text(&w, "role", slice_text(role));
    control_int(&w, "protocol", how == 255 ? 2 : 1);
    control_text(&w, "node", slice_text(how == 254 ? "" : node));
    control_text(&w, "otp", slice_text("27"));
    control_int(&w, "ticks_per_second", how < 200 ? 1000000000 : fuzz_number(in, 0));
    control_int(&w, "time_offset",
                how < 200 ? clock_wall() - clock_monotonic() : fuzz_number(in, 0));
    control_end(&w);
}

static inline void fuzz_tiers(struct control_writer *w, struct fuzz_input *in) {
    uint8_t how = fuzz_u8(in);
    uint32_t count = how % 5;
    control_bool(w, "calls", how & 16);
    control_bool(w, "stats", how & 32);
    control_bool(w, "slow", how & 64);
    control_int(w, "slow_threshold_us", how & 128 ? fuzz_number(in, 0) : 1000);
    control_list(w, "tiers", count);
    for (uint32_t i = 0; i < count; i++) {
        static const char *const names[] = {"db", "http", "pool", "_total"};
        control_map(w, 4);
        control_text(w, "name", slice_text(names[i]));
        control_text(w, "m", slice_text(FUZZ_FUNCTIONS[i].module));
        control_text(w, "f", slice_text(FUZZ_FUNCTIONS[i].function));
        control_int(w, "a", FUZZ_FUNCTIONS[i].arity);
    }
}

// Maybe more than there may be.
static inline void fuzz_triggers(struct control_writer *w, struct fuzz_input *in) {
    uint32_t count = fuzz_u8(in) % (2 * LIMIT_TRIGGERS);
    control_list(w, "triggers", count);
    for (uint32_t i = 0; i < count; i++) {
        control_map(w, 3);
        control_text(w, "name", fuzz_bytes(in, 255));
        control_number(w, "value", (double)fuzz_number(in, 1));
        control_int(w, "again_ms", fuzz_number(in, 1));
    }
}

static inline void fuzz_p99(struct control_writer *w, struct fuzz_input *in) {
    uint32_t count = fuzz_u8(in) % (2 * LIMIT_TRIGGERS);
    control_list(w, "tiers", count);
    for (uint32_t i = 0; i < count; i++) {
        control_map(w, 1);
        control_text(w, "tier", fuzz_bytes(in, 255));
    }
}

// What a shim says behind its hello.
static inline void fuzz_message(struct buffer *b, struct fuzz_input *in, int64_t now) {
    static const char *const reasons[] = {"stopped",    "tripped", "paused",
                                          "time_limit", "reload",  "?"};
    enum {
        CLOCK,
        REPLY,
        TIERS,
        STARTED,
        STOPPED,
        TOTAL,
        GAP,
        NOTE,
        STATE,
        STEERED,
        FLAME,
        FULL_STARTED,
        FULL_STOPPED,
        P99,
        FULL_SHUT,
        TYPES
    };
    static const char *const types[TYPES] = {"clock",         "identify_reply",
                                             "tiers",         "trace_started",
                                             "trace_stopped", "trace_total",
                                             "gap",           "note",
                                             "state",         "steered",
                                             "flame",         "full_started",
                                             "full_stopped",  "p99",
                                             "full_shut"};
    static const uint32_t pairs[TYPES] = {6, 2, 5, 1, 2, 3, 4, 3, 6, 4, 5, 6, 4, 1, 2};
    unsigned type = fuzz_u8(in) % TYPES;
    struct control_writer w = control_begin(b, types[type], pairs[type]);
    switch (type) {
    case CLOCK:
        control_int(&w, "at", fuzz_number(in, now));
        control_int(&w, "time_offset", fuzz_number(in, clock_wall() - now));
        control_int(&w, "unsampled", fuzz_number(in, 1));
        control_int(&w, "off_ms", fuzz_number(in, 1));
        control_int(&w, "trips", fuzz_number(in, 1));
        control_int(&w, "lowered_ms", fuzz_number(in, 1));
        break;
    case REPLY:
        control_int(&w, "id", fuzz_number(in, 1));
        control_text(&w, "identity", fuzz_bytes(in, 130));
        break;
    case TIERS:
        fuzz_tiers(&w, in);
        break;
    case STARTED:
        control_int(&w, "labels", fuzz_u8(in));
        break;
    case STOPPED:
        control_text(&w, "reason", slice_text(reasons[fuzz_u8(in) % 6]));
        control_text(&w, "text", fuzz_bytes(in, 255));
        break;
    case NOTE:
        control_text(&w, "level", slice_text(reasons[fuzz_u8(in) % 6]));
        control_text(&w, "text", fuzz_bytes(in, 255));
        control_bool(&w, "history", fuzz_u8(in) & 1);
        break;
    case TOTAL:
        control_int(&w, "labels", fuzz_u8(in));
        control_int(&w, "messages", fuzz_number(in, 10));
        control_int(&w, "unsent", fuzz_number(in, 1));
        break;
    case GAP:
        control_int(&w, "from", fuzz_number(in, now));
        control_int(&w, "until", fuzz_number(in, now));
        control_text(&w, "text", fuzz_bytes(in, 255));
        control_text(&w, "reason", slice_text(reasons[fuzz_u8(in) % 6]));
        break;
    case STATE:
        control_text(&w, "state", fuzz_bytes(in, 100));
        control_text(&w, "text", fuzz_bytes(in, 255));
        control_int(&w, "one_in", fuzz_number(in, 1));
        control_int(&w, "per_second", fuzz_number(in, 1));
        control_int(&w, "level_ppm", fuzz_number(in, 1));
        control_int(&w, "trips", fuzz_number(in, 1));
        break;
    case STEERED:
        control_int(&w, "id", fuzz_number(in, 1));
        control_bool(&w, "ok", fuzz_u8(in) & 1);
        control_text(&w, "text", fuzz_bytes(in, 255));
        fuzz_triggers(&w, in);
        break;
    case FLAME:
        control_int(&w, "requests", fuzz_number(in, 1));
        control_int(&w, "seconds", fuzz_number(in, 1));
        control_int(&w, "label", fuzz_u8(in) % 4);
        control_bool(&w, "scheduling", fuzz_u8(in) & 1);
        control_text(&w, "only", fuzz_bytes(in, 20));
        break;
    case FULL_STARTED:
        control_int(&w, "id", fuzz_u8(in) % 8);
        control_int(&w, "at", fuzz_number(in, now));
        control_int(&w, "functions", fuzz_number(in, 1));
        control_bool(&w, "scheduling", fuzz_u8(in) & 1);
        control_bool(&w, "new_processes", fuzz_u8(in) & 1);
        control_list(&w, "modules", 1);
        control_map(&w, 2);
        control_text(&w, "name", fuzz_bytes(in, 255));
        control_text(&w, "application", fuzz_bytes(in, 255));
        break;
    case FULL_SHUT:
        control_int(&w, "id", fuzz_u8(in) % 8);
        control_int(&w, "at", fuzz_number(in, now));
        break;
    case FULL_STOPPED:
        control_int(&w, "id", fuzz_u8(in) % 8);
        control_int(&w, "at", fuzz_number(in, now));
        control_text(&w, "reason", fuzz_bytes(in, 20));
        control_text(&w, "text", fuzz_bytes(in, 255));
        break;
    case P99:
        fuzz_p99(&w, in);
        break;
    }
    control_end(&w);
}

// -- what must hold of statistics -----------------------------------------------------------------

// Adds the complete requests of a set's ledgers to *complete.
static inline void fuzz_check_stats(const struct stats *s, uint64_t *complete) {
    for (uint32_t i = 0; i < stats_ledgers(s); i++) {
        *complete += stats_ledger_at(s, i)->requests_complete;
    }
    for (uint32_t i = 0; i < stats_rows(s); i++) {
        const struct stat_row *r = stats_row_at(s, i);
        MUST(histogram_count(&r->durations) == r->calls && r->errors <= r->calls &&
             r->async_calls <= r->calls);
        MUST(r->calls == 0 || r->min_ns <= r->max_ns);
    }
}
