// SPDX-License-Identifier: Apache-2.0
#include "model/message/message.h"

#include <inttypes.h>

#include "base/buffer.h"
#include "base/hash.h"
#include "captures.h"
#include "codec/frame.h"
#include "trace_bytes.h"

// -- comparing ------------------------------------------------------------------------------------

static void same_slice(struct slice a, struct slice b) {
    assert_int_equal(a.len, b.len);
    if (a.len > 0) {
        assert_ptr_equal(a.data, b.data);
    }
}

// Names may lie in the frame or in what the reader learned.
static void same_text(struct slice a, struct slice b) {
    assert_true(slice_equal(a, b));
}

static void same_atom(struct term_atom a, struct term_atom b) {
    same_text(a.text, b.text);
    assert_int_equal(a.latin1, b.latin1);
}

static void same_message(const struct message *a, const struct message *b) {
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->clock, b->clock);
    assert_int_equal(a->note_kind, b->note_kind);
    assert_int_equal(a->entry, b->entry);
    assert_int_equal(a->time, b->time);
    assert_int_equal(a->pid, b->pid);
    same_text(a->name, b->name);
    same_atom(a->module, b->module);
    same_atom(a->function, b->function);
    assert_int_equal(a->arity, b->arity);
    same_slice(a->arguments, b->arguments);
    assert_int_equal(a->has_token, b->has_token);
    if (a->has_token) {
        assert_int_equal(a->token, b->token);
        assert_int_equal(a->from, b->from);
        assert_int_equal(a->serial, b->serial);
        assert_int_equal(a->previous, b->previous);
    }
    same_slice(a->note, b->note);
    assert_int_equal(a->caller, b->caller);
    assert_int_equal(a->target, b->target);
}

// Decodes a message that stands alone both ways: with what the stream taught, and as if it were the
// first. Both must find the same; returns that.
static bool both_ways(struct message_reader *learned, struct slice bytes, struct message *m) {
    struct message_reader fresh = {0};
    struct message slow;
    struct cursor fast_at = cursor_of(bytes.data, bytes.len), slow_at = fast_at;
    bool ok = message_decode(learned, &fast_at, true, m);
    assert_int_equal(ok, message_decode(&fresh, &slow_at, false, &slow));
    if (ok) {
        assert_ptr_equal(fast_at.at, bytes.data + bytes.len);
        assert_ptr_equal(slow_at.at, bytes.data + bytes.len);
        same_message(m, &slow);
    }
    return ok;
}

// -- the captures ---------------------------------------------------------------------------------

// A message as tests/data/messages.escript writes it. Labels and functions are told by the order of
// their first appearance.
struct seen {
    uint64_t what[64];
    unsigned count;
};

static unsigned number(struct seen *seen, uint64_t what) {
    unsigned i = 0;
    while (i < seen->count && seen->what[i] != what) {
        i++;
    }
    assert_true(i < 64);
    seen->what[i] = what;
    seen->count += i == seen->count;
    return i;
}

struct labels {
    struct seen tokens;
    struct seen targets;
};

static void write_line(const struct message *m, struct labels *labels, char *line, size_t size) {
    static const char *const kinds[] = {"other",    "call",   "return", "exception", "return_to",
                                        "gc_start", "gc_end", "out",    "in",        "exited"};
    static const char *const notes[] = {"-", "identity", "arguments"};
    char time[32] = "-", token[16] = "-", from[40] = "-", pid[40], caller[16] = "-";
    if (m->kind == MESSAGE_OTHER) {
        snprintf(line, size, "other");
        return;
    }
    snprintf(pid, sizeof pid, "%u.%u", (unsigned)m->pid, (unsigned)(m->pid >> 32));
    if (m->clock != MESSAGE_UNTIMED) {
        snprintf(time, sizeof time, "%c%" PRId64, m->clock == MESSAGE_WALL ? 'w' : 'm', m->time);
    }
    if (m->kind > MESSAGE_EXCEPTION) {
        int len = snprintf(line, size, "%s %s %s", kinds[m->kind], pid, time);
        if (m->kind == MESSAGE_RETURN_TO) {
            snprintf(line + len, size - (size_t)len, " %u", number(&labels->targets, m->target));
        }
        return;
    }
    if (m->has_token) {
        snprintf(token, sizeof token, "%u", number(&labels->tokens, m->token));
        snprintf(from, sizeof from, "%u.%u", (unsigned)m->from, (unsigned)(m->from >> 32));
    }
    if (m->caller != 0) {
        snprintf(caller, sizeof caller, "%u", number(&labels->targets, m->caller));
    }
    snprintf(line, size, "%s %s %.*s %.*s %u %s %s %s %s %s", kinds[m->kind], pid,
             (int)m->module.text.len, m->module.text.data, (int)m->function.text.len,
             m->function.text.data, m->arity, time, token, from,
             m->kind == MESSAGE_CALL ? notes[m->note_kind] : "-", caller);
}

// Every message is what Erlang's own decoder finds, on the fast way and on the slow one.
static void the_captures(void **state) {
    (void)state;
    for (size_t i = 0; i < CAPTURES; i++) {
        char name[64], line[512];
        snprintf(name, sizeof name, "%s.cap", captures[i]);
        struct slice file = data_file(name), rest = file;
        snprintf(name, sizeof name, "%s.messages", captures[i]);
        struct slice expected = data_file(name);
        const char *at = (const char *)expected.data;
        struct message_reader reader = {0};
        struct labels labels = {0};
        struct frame frame = {0};
        for (long n; rest.len > 0; rest = slice_of(rest.data + n, rest.len - (size_t)n)) {
            n = frame_next(rest, &frame);
            struct cursor c;
            struct message m;
            assert_int_equal(message_frame(frame.body, &c), 1);
            assert_true(both_ways(&reader, slice_of(c.at, cursor_left(&c)), &m));
            write_line(&m, &labels, line, sizeof line);
            const char *end = strchr(at, '\n');
            if (strlen(line) != (size_t)(end - at) || memcmp(line, at, strlen(line)) != 0) {
                fail_msg("%s\n  decoded  %s\n  expected %.*s", captures[i], line, (int)(end - at),
                         at);
            }
            at = end + 1;
        }
        assert_string_equal(at, "");
        free((void *)file.data);
        free((void *)expected.data);
    }
}

// Cut off anywhere, a message is none, and nothing behind the cut is read; neither by a fresh
// reader nor by one that knows the stream.
static void truncated(void **state) {
    (void)state;
    struct guarded g = guarded_make(1 << 17);
    for (size_t i = 0; i < CAPTURES; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.cap", captures[i]);
        struct slice file = data_file(name), rest = file;
        struct message_reader learned = {0};
        struct frame frame = {0};
        int messages = 0;
        for (long n; rest.len > 0 && messages < 150;
             rest = slice_of(rest.data + n, rest.len - (size_t)n), messages++) {
            n = frame_next(rest, &frame);
            size_t step = frame.body.len > 2000 ? 97 : 1;
            for (size_t len = 0; len < frame.body.len; len += step) {
                struct message_reader readers[2] = {learned, learned};
                readers[0] = (struct message_reader){0};
                for (int way = 0; way < 2; way++) {
                    struct cursor c;
                    struct message m;
                    uint32_t count = message_frame(guarded_copy(&g, frame.body.data, len), &c);
                    assert_false(count == 1 && message_decode(&readers[way], &c, way == 1, &m));
                }
            }
            struct cursor c;
            struct message m;
            assert_int_equal(message_frame(guarded_copy(&g, frame.body.data, frame.body.len), &c),
                             1);
            assert_true(message_decode(&learned, &c, true, &m));
        }
        free((void *)file.data);
    }
    guarded_free(&g);
}

// Any byte changed: no crash, and both ways agree unless the change is in the value, which the fast
// one does not walk.
static void damaged(void **state) {
    (void)state;
    struct guarded g = guarded_make(1 << 17);
    struct slice file = data_file("otp25-basic.cap"), rest = file;
    struct frame frame = {0};
    uint8_t copy[4096];
    for (long n; rest.len > 0; rest = slice_of(rest.data + n, rest.len - (size_t)n)) {
        n = frame_next(rest, &frame);
        assert_true(frame.body.len <= sizeof copy);
        for (size_t at = 0; at < frame.body.len; at++) {
            for (unsigned byte = 0; byte < 256; byte++) {
                memcpy(copy, frame.body.data, frame.body.len);
                copy[at] = (uint8_t)byte;
                struct message_reader fresh = {0};
                struct cursor c;
                struct message m;
                uint32_t count = message_frame(guarded_copy(&g, copy, frame.body.len), &c);
                if (count == 1 && message_decode(&fresh, &c, false, &m)) {
                    assert_true(c.at <= c.end);
                }
            }
        }
    }
    guarded_free(&g);
    free((void *)file.data);
}

// -- made by hand ---------------------------------------------------------------------------------

// Decodes what was put, both ways, and empties it.
static bool decode(struct message_reader *reader, struct message *m) {
    static uint8_t kept[70000];
    assert_false(out.failed);
    assert_true(out.len <= sizeof kept);
    memcpy(kept, out.data, out.len);
    size_t len = out.len;
    buffer_reset(&out);
    return both_ways(reader, slice_of(kept, len), m);
}

static void calls(void **state) {
    (void)state;
    struct message_reader r = {0};
    struct message m, other;
    put_call(100, 7, 99, -576460751000000000);
    assert_true(decode(&r, &m));
    assert_int_equal(m.kind, MESSAGE_CALL);
    assert_int_equal(m.clock, MESSAGE_MONOTONIC);
    assert_int_equal(m.time, -576460751000000000);
    assert_int_equal(m.pid, 100);
    assert_int_equal(m.from, 99);
    assert_true(m.has_token && slice_is(m.module.text, "db") &&
                slice_is(m.function.text, "query") && m.arity == 2);
    assert_int_equal(m.note_kind, NOTE_IDENTITY);
    put_call(101, 7, 99, 5);
    assert_true(decode(&r, &other));
    assert_int_equal(other.token, m.token);
    put_call(101, 8, 99, 5);
    assert_true(decode(&r, &other));
    assert_true(other.token != m.token);
    // asked about
    put_head(6, "trace_ts", 1);
    put_atom("call");
    put_function("db", "query", 2);
    put_tuple(3);
    put_token(7, 1);
    put_atom("ask");
    put_u8(TERM_STRING);
    put_u8(0);
    put_u8(2);
    put_u8(1);
    put_u8(2);
    put_big(9);
    assert_true(decode(&r, &m));
    assert_int_equal(m.note_kind, NOTE_ARGUMENTS);
    assert_int_equal(m.note.len, 5);
    assert_int_equal(m.time, 9);
    // arguments instead of an arity: a proper list, a string, none
    for (unsigned n = 0; n < 3; n++) {
        put_head(5, "trace_ts", 1);
        put_atom("call");
        put_tuple(3);
        put_atom("db");
        put_atom("query");
        if (n == 0) {
            put_u8(TERM_NIL);
        } else if (n == 1) {
            put_u8(TERM_STRING);
            put_u8(0);
            put_u8(1);
            put_u8(65);
        } else {
            put_u8(TERM_LIST);
            put_u32(2);
            put_atom("x");
            put_big(9);
            put_u8(TERM_NIL);
        }
        put_small(9);
        assert_true(decode(&r, &m));
        assert_int_equal(m.arity, n);
        assert_int_equal(m.arguments.len > 0, true);
        assert_int_equal(m.has_token, false);
        assert_int_equal(m.time, 9);
    }
}

// Where the token came from: a process of the node, of another node, of the node's life before, a
// port.
static void origins(void **state) {
    (void)state;
    uint64_t from[5], other_again;
    struct message_reader r = {0};
    struct message m;
    for (int round = 0; round < 2; round++) { // the second time with a start that is known
        for (int i = 0; i < 6; i++) {
            put_head(6, "trace_ts", 100);
            put_atom("call");
            put_function("db", "query", 2);
            put_tuple(5);
            put_small(18);
            put_small(1);
            put_small(3);
            switch (i) {
            case 0:
                put_pid("n@h", 77, 2, 5);
                break;
            case 1:
            case 5:
                put_pid("m@h", 77, 2, 5);
                break;
            case 2:
                put_pid("n@h", 77, 2, 6);
                break;
            case 3:
                put_old_pid("n@h", 77, 2, 5);
                break;
            case 4:
                put_u8(TERM_V4_PORT);
                put_atom("n@h");
                put_u32(0);
                put_u32(77);
                put_u32(5);
                break;
            }
            put_small(0);
            put_big(1000 + i);
            assert_true(decode(&r, &m));
            assert_true(m.has_token);
            if (i < 5) {
                from[i] = m.from;
            } else {
                other_again = m.from;
            }
        }
        assert_int_equal(from[0], 77 | (uint64_t)2 << 32);
        assert_int_equal(from[3], from[0]);
        assert_int_equal(from[4], 0);
        assert_true(from[1] != from[0] && from[2] != from[0] && from[1] != from[2]);
        assert_int_equal(other_again, from[1]);
        assert_int_equal(from[1], message_process(slice_text("m@h"),
                                                  from[0])); // as that node's own messages have it
        assert_int_equal(from[2], message_process(slice_text("n@h"), from[0]));
    }
}

// Processes of other nodes have numbers that are stored: they must never change.
static void process_numbers(void **state) {
    (void)state;
    char text[32];
    uint64_t pid;
    message_pid_text(123 | (uint64_t)4 << 32, text);
    assert_string_equal(text, "<0.123.4>");
    assert_true(message_pid_parse(text, &pid));
    assert_int_equal(pid, 123 | (uint64_t)4 << 32);
    assert_true(message_pid_parse("<0.4294967295.4294967295>", &pid));
    assert_int_equal(pid, UINT64_MAX);
    static const char *const none[] = {
        "",        "<0.1>", "<0.1.2", "<0.1.2>x", "<0.4294967296.0>", "<0.99999999999999999999.0>",
        "<1.1.2>", "0.1.2", "<0..>"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_false(message_pid_parse(none[i], &pid));
        assert_int_equal(pid, 0);
    }
    assert_true(message_process(slice_text("shop@host"), 123) == 0xd3ae5edfdc504640ULL);
    assert_true(message_process(slice_text("shop@host1"), 123) !=
                message_process(slice_text("shop@host2"), 123));
    assert_true(message_process(slice_text("shop@host1"), 123) !=
                message_process(slice_text("shop@host1"), 124));
}

// Labels are equal when their terms are; a number also when it is written otherwise.
static void label_terms(void **state) {
    (void)state;
    enum { N = 7 };
    uint64_t token[N];
    struct message_reader r = {0};
    struct message m;
    for (int i = 0; i < N; i++) {
        put_head(6, "trace_ts", 100);
        put_atom("call");
        put_function("db", "query", 2);
        put_tuple(5);
        put_small(18);
        switch (i) {
        case 0:
            put_small(5);
            break;
        case 1:
            put_integer(5);
            break;
        case 2:
            put_big(5);
            break;
        case 3:
            put_atom("five");
            break;
        case 4:
            put_pid("n@h", 5, 0, 5); // {self}
            break;
        case 5: // of more than 64 bits
            put_u8(TERM_SMALL_BIG);
            put_u8(9);
            put_u8(0);
            buffer_append(&out, "\5\0\0\0\0\0\0\0\1", 9);
            break;
        case 6:
            put_big(-5);
            break;
        }
        put_small(3);
        put_pid("n@h", 100, 0, 5);
        put_small(0);
        put_big(1000 + i);
        assert_true(decode(&r, &m));
        token[i] = m.token;
    }
    assert_true(token[0] == token[1] && token[1] == token[2]);
    for (int i = 2; i < N; i++) {
        for (int k = i + 1; k < N; k++) {
            assert_true(token[i] != token[k]);
        }
    }
}

// Serials that are as high as can be told, or have gone round, are all the same one; by the slow
// way and by the fast one.
static void serials(void **state) {
    (void)state;
    const struct {
        int64_t written;
        uint64_t read;
    } cases[] = {{0, 0},
                 {5, 5},
                 {70000, 70000},
                 {MESSAGE_LAST_SERIAL - 1, MESSAGE_LAST_SERIAL - 1},
                 {MESSAGE_LAST_SERIAL, MESSAGE_LAST_SERIAL},
                 {MESSAGE_LAST_SERIAL + 1, MESSAGE_LAST_SERIAL},
                 {1LL << 58, MESSAGE_LAST_SERIAL},
                 {-1, MESSAGE_LAST_SERIAL},
                 {-(1LL << 58), MESSAGE_LAST_SERIAL}};
    for (unsigned i = 0; i < 4 * (sizeof cases / sizeof *cases); i++) {
        static struct message_reader r;
        struct message m;
        int64_t written = cases[i / 4].written;
        // what it has learned makes the next ones fast
        r = i % 4 == 0 ? (struct message_reader){0} : r;
        put_head(6, "trace_ts", 100);
        put_atom("call");
        put_function("db", "query", 2);
        put_tuple(5);
        put_small(18);
        put_integer(7);
        for (int of_previous = 0; of_previous < 2; of_previous++) {
            if (i % 2 == 0 && written == (int32_t)written) {
                put_integer((int32_t)written);
            } else {
                put_big(written);
            }
            if (!of_previous) {
                put_pid("n@h", 100, 0, 5);
            }
        }
        put_big(1000 + i);
        assert_true(decode(&r, &m));
        assert_int_equal(m.serial, cases[i / 4].read);
        assert_int_equal(m.previous, cases[i / 4].read);
    }
}

// Returned values are whatever the application returns, also what looks like the end of a message.
static void returned_values(void **state) {
    (void)state;
    static const int64_t steps[] = {0,  1,           999999999,   1000000000,   1000000001,
                                    -5, -1000000000, -1000000001, 5000000000000};
    struct message_reader r = {0};
    struct message m;
    int64_t time = -576460751000000000;
    for (unsigned i = 0; i < 9 * 8; i++) {
        int64_t before = time;
        time += steps[i % 9];
        put_return_head(100);
        switch (i / 9) {
        case 0:
            put_atom("ok");
            break;
        case 1:
            put_big(before);
            break;
        case 2: // a binary that ends as a message does
            put_u8(TERM_BINARY);
            put_u32(11);
            put_big(before);
            break;
        case 3:
            put_tuple(2);
            put_big(before + 1);
            put_big(before);
            break;
        case 4:
            put_u8(TERM_NIL);
            break;
        case 5: // longer than what is looked at
            put_u8(TERM_BINARY);
            put_u32(60000);
            for (int k = 0; k < 6000; k++) {
                buffer_append(&out, "\x6e\x08\x01\0\0\0\0\0\0\0", 10);
            }
            break;
        case 6:
            put_u8(TERM_STRING);
            put_u8(0);
            put_u8(12);
            put_u8(0);
            put_big(before);
            break;
        case 7:
            put_u8(TERM_LIST);
            put_u32(1);
            put_big(before);
            put_big(before); // an improper tail
            break;
        }
        put_big(time);
        assert_true(decode(&r, &m));
        assert_int_equal(m.kind, MESSAGE_RETURN);
        assert_int_equal(m.time, time);
        assert_int_equal(m.clock, MESSAGE_MONOTONIC);
    }
    // the same values before times of another form, in the same stream
    for (unsigned i = 0; i < 12; i++) {
        put_return_head(100);
        put_u8(TERM_BINARY);
        put_u32(11);
        put_big(time);
        switch (i % 3) {
        case 0:
            put_tuple(3);
            put_integer(1795);
            put_integer(175210);
            put_integer(242794);
            break;
        case 1: // the same with short numbers
            put_tuple(3);
            put_integer(1795);
            put_small(17);
            put_small(0);
            break;
        case 2:
            put_tuple(2);
            put_big(time + 5);
            put_small(1);
            break;
        }
        assert_true(decode(&r, &m));
        assert_int_equal(m.clock, i % 3 == 2 ? MESSAGE_STRICT : MESSAGE_WALL);
        assert_int_equal(m.time, i % 3 == 0   ? 1795175210242794000
                                 : i % 3 == 1 ? 1795000017000000000
                                              : time + 5);
    }
    // exceptions
    put_head(6, "trace_ts", 100);
    put_atom("exception_from");
    put_function("db", "query", 2);
    put_tuple(2);
    put_atom("error");
    put_big(time);
    put_big(time + 1);
    assert_true(decode(&r, &m));
    assert_int_equal(m.kind, MESSAGE_EXCEPTION);
    assert_int_equal(m.time, time + 1);
}

static void hostile_times(void **state) {
    (void)state;
    static const int64_t times[] = {INT64_MIN, INT64_MAX, 0, -1, INT64_MIN + 1, 1};
    struct message_reader r = {0};
    struct message m;
    for (int i = 0; i < 36; i++) {
        for (int k = 0; k < 2; k++) {
            put_return_head(100);
            put_atom("ok");
            put_big(k == 0 ? times[i / 6] : times[i % 6]);
            assert_true(decode(&r, &m));
            assert_int_equal(m.time, k == 0 ? times[i / 6] : times[i % 6]);
        }
    }
    // times of the calendar past what 64 bits of ns hold, negative ones, too many of a part
    static const int64_t bad[][3] = {{9001, 0, 0}, {100000, 0, 0},  {-1, 0, 0}, {0, 1000001, 0},
                                     {0, -1, 0},   {0, 0, 1000001}, {0, 0, -1}};
    for (int i = 0; i < 7; i++) {
        put_return_head(100);
        put_atom("ok");
        put_tuple(3);
        for (int k = 0; k < 3; k++) {
            put_integer((int32_t)bad[i][k]);
        }
        assert_false(decode(&r, &m));
    }
    put_return_head(100);
    put_atom("ok");
    put_tuple(3);
    put_integer(9000);
    put_integer(999999);
    put_integer(999999);
    assert_true(decode(&r, &m));
    assert_int_equal(m.time, 9000999999999999000);
    put_return_head(100);
    put_atom("ok");
    put_atom("late"); // no time
    assert_false(decode(&r, &m));
}

// Streams of all kinds of messages in any order: what one teaches never harms the next.
static void any_order(void **state) {
    (void)state;
    static const char *const nodes[] = {"n@h", "m@h", "n@i", "nnn@hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh"};
    uint64_t random = 1;
    struct message m;
    for (int stream = 0; stream < 300; stream++) {
        struct message_reader r = {0};
        int64_t time = -576460751000000000;
        for (int i = 0; i < 60; i++) {
            uint64_t x = random_u64(&random);
            bool timed = x % 8 != 0, ret = x >> 3 & 1, note = x >> 4 & 1, old = (x >> 5 & 15) == 0;
            const char *node = nodes[(x >> 9) % 16 < 13 ? 0 : (x >> 9) % 16 - 12];
            const char *whence = nodes[(x >> 13) % 8 < 6 ? 0 : (x >> 13) % 8 - 5];
            uint32_t creation = (x >> 17) % 16 == 0 ? 6 : 5,
                     from_creation = (x >> 21) % 8 == 0 ? 6 : 5;
            uint32_t id = (uint32_t)(x >> 25) % 50;
            unsigned form = (x >> 32) % 10;
            put_u8((x >> 36) % 16 == 0 ? TERM_LARGE_TUPLE : TERM_SMALL_TUPLE);
            unsigned arity = (ret ? 5u : note ? 5u : 4u) + timed;
            if (out.data[0] == TERM_LARGE_TUPLE) {
                put_u32(arity);
            } else {
                put_u8(arity);
            }
            put_atom(timed ? "trace_ts" : "trace");
            if (old) {
                put_old_pid(node, id, 1, (uint8_t)creation);
            } else {
                put_pid(node, id, 1, creation);
            }
            put_atom(ret ? "return_from" : "call");
            put_function("db", "query", 2);
            time += (int64_t)((x >> 40) % 3000000000) - 1000000;
            if (ret) {
                put_big(time);
            } else if (note) {
                put_tuple(5);
                put_small(18);
                put_small(1);
                put_small(3);
                put_pid(whence, id, 1, from_creation);
                put_small(0);
            }
            if (timed && form < 7) {
                put_big(time);
            } else if (timed && form == 7) {
                put_integer((int32_t)time);
            } else if (timed) {
                put_tuple(3);
                put_integer(1795);
                put_integer(175210);
                put_small((unsigned)i);
            }
            assert_true(decode(&r, &m));
            assert_int_equal(m.pid, id | (uint64_t)1 << 32);
            if (m.has_token) {
                bool local = node == whence && creation == from_creation;
                assert_int_equal(m.from == m.pid, local);
            }
        }
    }
}

// -- frames of lists, and what is no message ------------------------------------------------------

static void lists(void **state) {
    (void)state;
    struct message_reader r = {0};
    struct cursor c;
    struct message m;
    put_u8(TERM_VERSION);
    put_u8(TERM_LIST);
    put_u32(3);
    put_call(1, 1, 1, 10);
    put_return_head(1);
    put_atom("ok");
    put_big(11);
    put_call(2, 2, 1, 12);
    put_u8(TERM_NIL);
    assert_int_equal(message_frame(slice_of(out.data, out.len), &c), 3);
    const int64_t times[] = {10, 11, 12};
    for (int i = 0; i < 3; i++) {
        assert_true(message_decode(&r, &c, false, &m));
        assert_int_equal(m.time, times[i]);
    }
    assert_int_equal(cursor_left(&c), 1);
    // neither a message nor a list of them
    static const struct {
        size_t len;
        const char *bytes;
    } none[] = {{0, ""},          {1, "\x83"},          {1, "\x82"},
                {2, "\x83\x6a"},  {5, "\x83\x6b\0\1a"}, {3, "\x83\x61\1"},
                {3, "\x82\x68\0"}};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(message_frame(slice_of(none[i].bytes, none[i].len), &c), 0);
        assert_true(c.failed);
    }
}

static void others(void **state) {
    (void)state;
    struct message_reader r = {0};
    struct message m;
    put_tuple(2); // {seq_trace, x}
    put_atom("seq_trace");
    put_atom("x");
    assert_true(decode(&r, &m));
    assert_int_equal(m.kind, MESSAGE_OTHER);
    put_tuple(2);
    put_atom("drop");
    put_small(5);
    assert_true(decode(&r, &m));
    put_tuple(4); // about a port
    put_atom("trace");
    put_u8(TERM_V4_PORT);
    put_atom("n@h");
    put_u32(0);
    put_u32(7);
    put_u32(5);
    put_atom("open");
    put_small(1);
    assert_true(decode(&r, &m));
    put_head(5, "trace_ts", 1); // of no use
    put_atom("link");
    put_function("db", "query", 2);
    put_big(5);
    assert_true(decode(&r, &m));
    assert_int_equal(m.kind, MESSAGE_OTHER);
    put_tuple(1);
    put_atom("trace");
    assert_false(decode(&r, &m));
    put_tuple(2);
    put_atom("trice");
    put_small(1);
    assert_false(decode(&r, &m));
    put_small(5);
    assert_false(decode(&r, &m));
    // too few elements for what they say they are
    put_head(4, "trace_ts", 1);
    put_atom("call");
    put_big(5);
    assert_true(decode(&r, &m));
    assert_int_equal(m.kind, MESSAGE_OTHER);
    // a function that is none
    put_head(5, "trace_ts", 1);
    put_atom("call");
    put_tuple(2);
    put_atom("db");
    put_atom("query");
    put_big(5);
    assert_false(decode(&r, &m));
    // an impossible arity
    put_head(5, "trace_ts", 1);
    put_atom("call");
    put_tuple(3);
    put_atom("db");
    put_atom("query");
    put_integer(-1);
    put_big(5);
    assert_true(decode(&r, &m));
    assert_int_equal(m.arity, UINT32_MAX);
}

static void pid_text(void **state) {
    (void)state;
    char text[32];
    message_pid_text(123 | (uint64_t)4 << 32, text);
    assert_string_equal(text, "<0.123.4>");
    message_pid_text(UINT64_MAX, text);
    assert_string_equal(text, "<0.4294967295.4294967295>");
}

#define UNIT(f) cmocka_unit_test_setup_teardown(f, bytes_setup, bytes_teardown)

// Calls of entry functions, and identities that look like their words.
static void entries(void **state) {
    (void)state;
    static const struct {
        const char *words[3];
        enum message_entry entry;
        enum message_note note;
    } cases[] = {{{"entry", "create"}, ENTRY_BEGINS, NOTE_IDENTITY},
                 {{"entry", "ask", "x"}, ENTRY_BEGINS, NOTE_ARGUMENTS},
                 {{"left_out", "entry"}, ENTRY_LEFT_OUT, NOTE_NONE},
                 {{"left_out", "over"}, ENTRY_LEFT_OUT, NOTE_NONE},
                 {{"entry"}, ENTRY_NONE, NOTE_IDENTITY},
                 {{"left_out"}, ENTRY_NONE, NOTE_IDENTITY},
                 {{"entry", "entry"}, ENTRY_BEGINS, NOTE_IDENTITY},
                 {{"ask", "entry"}, ENTRY_NONE, NOTE_ARGUMENTS}};
    struct message_reader r = {0};
    struct message m;
    for (int round = 0; round < 2; round++) { // learned the second time
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            unsigned words = 0;
            while (words < 3 && cases[i].words[words]) {
                words++;
            }
            put_head(6, "trace_ts", 1);
            put_atom("call");
            put_function("db", "query", 2);
            put_tuple(words + 1);
            put_token(7, 1);
            for (unsigned w = 0; w < words; w++) {
                put_atom(cases[i].words[w]);
            }
            put_big(9);
            assert_true(decode(&r, &m));
            assert_true(m.has_token);
            assert_int_equal(m.entry, cases[i].entry);
            assert_int_equal(m.note_kind, cases[i].note);
        }
        put_call(1, 7, 1, 9);
        assert_true(decode(&r, &m));
        assert_int_equal(m.entry, ENTRY_NONE);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        UNIT(the_captures),  UNIT(truncated),   UNIT(damaged),         UNIT(calls),
        UNIT(origins),       UNIT(label_terms), UNIT(serials),         UNIT(returned_values),
        UNIT(hostile_times), UNIT(any_order),   UNIT(lists),           UNIT(others),
        UNIT(pid_text),      UNIT(entries),     UNIT(process_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
