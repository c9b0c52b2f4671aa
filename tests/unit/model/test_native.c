// SPDX-License-Identifier: Apache-2.0
#include "model/message/native.h"

#include "base/hash.h"
#include "captures.h"
#include "model/message/message_note.h"
#include "native_bytes.h"
#include "trace_bytes.h"

static struct native_reader reader;
static struct native_writer writer;

static const uint8_t NODE[] = {TERM_SMALL_ATOM_UTF8, 3, 'n', '@', 'h'};
static const uint8_t OTHER_NODE[] = {TERM_ATOM, 0, 3, 'm', '@', 0xe4};
static const uint8_t QUERY[] = {
    TERM_SMALL_ATOM_UTF8, 2, 'd', 'b', TERM_SMALL_ATOM_UTF8, 5, 'q', 'u', 'e', 'r', 'y'};
static const uint8_t LATIN[] = {TERM_ATOM, 0, 1, 0xe4, TERM_ATOM, 0, 1, 'f'};
#define SLICE(bytes) slice_of(bytes, sizeof(bytes))

static const struct told_function query = {{QUERY, sizeof QUERY}, 2},
                                  latin = {{LATIN, sizeof LATIN}, 255};
static const struct told_process worker = {.number = 5 | 7ULL << 32},
                                 far = {{OTHER_NODE, sizeof OTHER_NODE}, 9};

static void open_block(unsigned flags, int64_t time) {
    buffer_reset(&out);
    native_open(&writer, &out, flags, SLICE(NODE), time);
}

static void tell(struct told t) {
    native_tell(&writer, &t);
}

// The block of the frame that was written.
static struct slice block(void) {
    native_size(&writer);
    assert_false(out.failed);
    return slice_of(out.data + FRAME_HEADER, out.len - FRAME_HEADER);
}

static struct slice closed(void) {
    native_put_u8(&writer, NATIVE_END);
    return block();
}

static struct message next_message(void) {
    struct message m;
    struct native_loss loss;
    memset(&m, 0xee, sizeof m);
    assert_int_equal(native_next(&reader, &m, &loss), NATIVE_IS_MESSAGE);
    return m;
}

static void is_over(void) {
    struct message m;
    struct native_loss loss;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(native_next(&reader, &m, &loss), NATIVE_IS_OVER);
    }
}

// What a block ends with: all before is read, and then it stays so.
static enum native_step ends_with(struct slice bytes) {
    struct message m;
    struct native_loss loss;
    enum native_step step = NATIVE_IS_MESSAGE;
    bool begun = native_begin(&reader, bytes);
    for (size_t i = 0; step == NATIVE_IS_MESSAGE || step == NATIVE_IS_LOSS; i++) {
        assert_true(i <= bytes.len);
        step = native_next(&reader, &m, &loss);
        assert_true(begun || step == NATIVE_IS_BAD);
    }
    assert_int_equal(native_next(&reader, &m, &loss), step);
    return step;
}

static const uint8_t some_rest[] = {TERM_SMALL_ATOM_UTF8, 1, 'a', TERM_NIL};
static const uint8_t some_label[] = {TERM_SMALL_ATOM_UTF8, 1, 'l'};

// One of each kind, and of each flag.
static void everything(void) {
    open_block(0, -1000);
    tell((struct told){.kind = NATIVE_CALL, .time = -900, .process = worker, .function = query});
    tell((struct told){.kind = NATIVE_CALL,
                       .flags = NATIVE_TOKEN,
                       .time = -950,
                       .process = worker,
                       .function = latin,
                       .label = 70000,
                       .serial = 300,
                       .from = &far,
                       .previous = 2});
    tell((struct told){.kind = NATIVE_CALL,
                       .flags = NATIVE_TOKEN | NATIVE_CALLER | NATIVE_REST | NATIVE_TERM,
                       .time = 1000000,
                       .process = worker,
                       .function = query,
                       .term = SLICE(some_label),
                       .from = &worker,
                       .caller = latin,
                       .elements = 1,
                       .rest = slice_of(some_rest, 3)});
    tell((struct told){.kind = NATIVE_CALL,
                       .flags = NATIVE_TOKEN | NATIVE_CALLER | NATIVE_REST,
                       .time = 1000000,
                       .process = worker,
                       .function = query,
                       .label = -3,
                       .elements = 2,
                       .rest = SLICE(some_rest)});
    tell((struct told){.kind = NATIVE_RETURN,
                       .flags = NATIVE_SPAWNED,
                       .time = 1000001,
                       .process = worker,
                       .function = query,
                       .spawned = {.number = 77}});
    tell((struct told){
        .kind = NATIVE_RETURN, .time = 1000002, .process = worker, .function = latin});
    tell((struct told){
        .kind = NATIVE_EXCEPTION, .time = 1000003, .process = worker, .function = query});
    tell((struct told){
        .kind = NATIVE_RETURN_TO, .time = 1000004, .process = worker, .function = query});
    tell((struct told){.kind = NATIVE_RETURN_TO, .time = 1000005, .process = worker});
    for (unsigned kind = NATIVE_GC_START; kind <= NATIVE_EXITED; kind++) {
        tell((struct told){.kind = kind, .time = 1000010 + kind, .process = {.number = kind}});
    }
    tell((struct told){.kind = NATIVE_TAKEN,
                       .flags = NATIVE_TOKEN,
                       .time = 1000030,
                       .process = worker,
                       .label = 70001,
                       .serial = 9,
                       .from = &far,
                       .previous = 8});
    tell((struct told){.kind = NATIVE_TAKEN,
                       .flags = NATIVE_TOKEN | NATIVE_TERM,
                       .time = 1000031,
                       .process = worker,
                       .term = SLICE(some_label)});
    tell((struct told){.kind = NATIVE_SENT,
                       .flags = NATIVE_TOKEN,
                       .time = 1000032,
                       .process = worker,
                       .label = 70001,
                       .serial = 10,
                       .from = &worker,
                       .previous = 9});
    tell((struct told){.kind = NATIVE_LOST, .time = 2000000, .messages = 1234, .until = 2500000});
}

static void is_call(const struct message *m, int64_t time, struct told_function f,
                    enum message_note note) {
    assert_int_equal(m->kind, MESSAGE_CALL);
    assert_int_equal(m->clock, MESSAGE_MONOTONIC);
    assert_int_equal(m->time, time);
    assert_true(m->pid == worker.number);
    assert_true(slice_equal(m->name, f.name));
    assert_int_equal(m->arity, f.arity);
    assert_int_equal(m->target, message_target(f.name, f.arity));
    assert_int_equal(m->note_kind, note);
    assert_int_equal(m->arguments.len, 0);
    assert_int_equal(m->entry, ENTRY_NONE);
}

static void every_kind(void **state) {
    (void)state;
    everything();
    assert_true(native_begin(&reader, closed()));
    assert_true(slice_is(reader.node.text, "n@h"));
    struct message m = next_message();
    is_call(&m, -900, query, NOTE_NONE);
    assert_false(m.has_token);
    assert_true(slice_is(m.module.text, "db") && slice_is(m.function.text, "query"));
    assert_false(m.module.latin1 || m.function.latin1);
    struct message_head *head = m.head;
    head->meant = true;
    m = next_message();
    is_call(&m, -950, latin, NOTE_IDENTITY);
    assert_true(m.module.latin1 && m.function.latin1);
    assert_true(m.has_token && m.token == hash_mix(70000));
    assert_true(m.serial == 300 && m.previous == 2);
    assert_true(m.from == message_process(slice_of("m@\xe4", 3), 9));
    struct cursor note = cursor_of(m.note.data, m.note.len);
    assert_true(slice_is(term_atom(&note).text, "undefined") && cursor_left(&note) == 0);
    assert_int_equal(m.caller, 0);
    assert_false(m.head->meant);
    m = next_message();
    is_call(&m, 1000000, query, NOTE_IDENTITY);
    assert_ptr_equal(m.head, head);
    assert_true(m.token == hash_bytes(slice_of("w\1l", 3)));
    assert_true(m.serial == 0 && m.previous == 0 && m.from == worker.number);
    assert_int_equal(m.caller, message_target(latin.name, 255));
    assert_true(slice_equal(m.note, slice_of("w\1a", 3)));
    m = next_message();
    is_call(&m, 1000000, query, NOTE_NONE); // two elements that are none of the shim's
    assert_true(m.has_token && m.token == hash_mix((uint64_t)-3) && m.from == 0);
    assert_int_equal(m.caller, TARGET_UNDEFINED);
    m = next_message();
    assert_true(m.kind == MESSAGE_RETURN && m.time == 1000001 && m.arity == 2);
    assert_true(m.note_kind == NOTE_PROCESS && m.spawned == 77 && m.note.len == 0);
    m = next_message();
    assert_true(m.kind == MESSAGE_RETURN && m.note_kind == NOTE_NONE && m.note.len == 0);
    assert_int_equal(m.target, message_target(latin.name, 255));
    m = next_message();
    assert_true(m.kind == MESSAGE_EXCEPTION && m.time == 1000003 && m.pid == worker.number);
    m = next_message();
    assert_true(m.kind == MESSAGE_RETURN_TO && m.target == message_target(query.name, 2));
    assert_true(!m.head && m.name.len == 0);
    m = next_message();
    assert_true(m.kind == MESSAGE_RETURN_TO && m.target == TARGET_UNDEFINED);
    static const enum message_kind states[] = {MESSAGE_GC_START, MESSAGE_GC_END, MESSAGE_OUT,
                                               MESSAGE_IN, MESSAGE_EXITED};
    for (unsigned i = 0; i < 5; i++) {
        m = next_message();
        assert_int_equal(m.kind, states[i]);
        assert_true(m.time == 1000010 + NATIVE_GC_START + i && m.pid == NATIVE_GC_START + i);
    }
    m = next_message();
    assert_true(m.kind == MESSAGE_TAKEN && m.time == 1000030 && m.pid == worker.number);
    assert_true(m.has_token && m.token == hash_mix(70001) && m.serial == 9 && m.previous == 8);
    assert_true(m.from == message_process(slice_of("m@\xe4", 3), 9));
    assert_true(!m.head && m.note_kind == NOTE_NONE && m.note.len == 0);
    m = next_message();
    assert_true(m.kind == MESSAGE_TAKEN && m.from == 0 && m.token == hash_bytes(SLICE(some_label)));
    m = next_message();
    assert_true(m.kind == MESSAGE_SENT && m.time == 1000032 && m.pid == worker.number);
    assert_true(m.from == worker.number && m.token == hash_mix(70001) && m.full_serial == 10);
    struct native_loss loss;
    assert_int_equal(native_next(&reader, &m, &loss), NATIVE_IS_LOSS);
    assert_true(loss.clock == MESSAGE_MONOTONIC && loss.messages == 1234);
    assert_true(loss.time == 2000000 && loss.until == 2500000);
    is_over();
    // the next block's functions mean nothing yet
    assert_true(native_begin(&reader, slice_of(out.data + FRAME_HEADER, out.len - FRAME_HEADER)));
    assert_false(next_message().head->meant);
}

// A full trace's session of its own. Nothing of the block before is left.
static void apart(void **state) {
    (void)state;
    open_block(NATIVE_APART, 5);
    tell((struct told){.kind = NATIVE_IN, .time = 6, .process = worker});
    tell((struct told){.kind = NATIVE_LOST, .time = 7, .messages = 1, .until = 6});
    assert_true(native_begin(&reader, closed()));
    assert_int_equal(next_message().clock, MESSAGE_STRICT);
    struct message m;
    struct native_loss loss;
    assert_int_equal(native_next(&reader, &m, &loss), NATIVE_IS_LOSS);
    assert_int_equal(loss.clock, MESSAGE_STRICT);
    assert_int_equal(loss.until, 7); // never before its time
    is_over();
    open_block(0, 5);
    native_put_u8(&writer, NATIVE_IN);
    native_put_u8(&writer, 0);
    native_put_u8(&writer, 0); // the process is the other block's
    assert_int_equal(ends_with(closed()), NATIVE_IS_BAD);
    open_block(0, 5);
    assert_int_equal(ends_with(closed()), NATIVE_IS_OVER);
}

// -- beside terms ---------------------------------------------------------------------------------

// The process that a returned value names, as deliver.c finds it.
static uint64_t returned(const struct message *m) {
    struct cursor c = cursor_of(m->note.data, m->note.len);
    return term_is_tuple(term_peek(&c)) && term_tuple(&c) != 2 ? 0 : message_pid(&c);
}

struct blocks {
    struct slice left; // frames
    bool open;
};

static struct message next_of_blocks(struct blocks *b) {
    struct message m;
    struct native_loss loss;
    for (;;) {
        if (!b->open) {
            struct frame frame = {0};
            long size = frame_next(b->left, &frame);
            assert_true(size > 0);
            b->left = slice_of(b->left.data + size, b->left.len - (size_t)size);
            b->open = frame.kind == FRAME_BLOCK;
            assert_true(!b->open || native_begin(&reader, frame.body));
            continue;
        }
        enum native_step step = native_next(&reader, &m, &loss);
        if (step == NATIVE_IS_MESSAGE) {
            return m;
        }
        assert_int_equal(step, NATIVE_IS_OVER);
        b->open = false;
    }
}

// Compares all messages of a stream of terms with those of its blocks; returns their number.
static uint64_t compare(struct slice stream, struct slice blocks) {
    static struct message_reader terms;
    terms = (struct message_reader){0};
    struct blocks b = {.left = blocks};
    struct frame frame = {0};
    long size;
    uint64_t count = 0;
    for (size_t at = 0;
         (size = frame_next(slice_of(stream.data + at, stream.len - at), &frame)) > 0;
         at += (size_t)size) {
        struct cursor c;
        uint32_t left = frame.kind == FRAME_TERM ? message_frame(frame.body, &c) : 0;
        struct message m;
        for (; left > 0 && message_decode(&terms, &c, false, &m); left--) {
            if (m.kind == MESSAGE_OTHER ||
                (m.clock != MESSAGE_MONOTONIC && m.clock != MESSAGE_STRICT)) {
                continue;
            }
            struct message n = next_of_blocks(&b);
            assert_true(native_same(&m, &n));
            assert_true(m.kind == MESSAGE_RETURN_TO || m.kind > MESSAGE_RETURN_TO ||
                        n.target == message_target(m.name, m.arity));
            if (m.kind == MESSAGE_RETURN) {
                assert_true(returned(&m) == (n.note_kind == NOTE_PROCESS ? n.spawned : 0));
            }
            count++;
        }
    }
    return count;
}

static void the_captures(void **state) {
    (void)state;
    static const uint32_t most[] = {1, 3, 100000};
    uint64_t all = 0;
    for (size_t i = 0; i < CAPTURES; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.cap", captures[i]);
        struct slice file = data_file(name);
        for (size_t k = 0; k < sizeof most / sizeof *most; k++) {
            struct buffer blocks = buffer_make(64 << 20);
            uint64_t told = native_of_terms(file, most[k], &blocks);
            assert_false(blocks.failed);
            assert_int_equal(compare(file, slice_of(blocks.data, blocks.len)), told);
            assert_true(most[k] < 1000 || blocks.len < file.len / 2 || file.len < 20000);
            all += told;
            buffer_free(&blocks);
        }
        free((void *)file.data);
    }
    assert_true(all > 6000);
}

// A call with such elements behind its token, as a term and as a record: the message is the same.
// caller: how many bytes the first of them has, which is a caller and may be told by a flag; or 0.
static void same_note(struct slice behind, unsigned elements, size_t caller) {
    struct buffer terms = out;
    out = buffer_make(1 << 16);
    put_head(6, "trace_ts", 4);
    put_atom("call");
    put_function("db", "query", 2);
    put_tuple(elements + 1);
    put_token(70000, 5);
    buffer_append(&out, behind.data, behind.len);
    put_big(42);
    struct slice term = slice_of(out.data, out.len);
    struct cursor c = cursor_of(term.data, term.len);
    struct message_reader *fresh = calloc(1, sizeof *fresh);
    struct message m, n;
    assert_non_null(fresh);
    assert_true(message_decode(fresh, &c, false, &m));
    struct told_process from;
    struct told t;
    struct buffer blocks = buffer_make(1 << 16);
    assert_true(native_describe(term, &m, &from, &t));
    for (int way = 0; way < 2; way++) {
        if (way == 1) { // the caller by a flag, and what is left of the note
            if (caller == 0) {
                break;
            }
            t.flags |= NATIVE_CALLER;
            t.caller = function_at(cursor_of(t.rest.data, t.rest.len));
            t.rest = slice_of(t.rest.data + caller, t.rest.len - caller - 6); // without none
            t.elements -= 2;
        }
        buffer_reset(&blocks);
        native_open(&writer, &blocks, 0, SLICE(NODE), 40);
        native_tell(&writer, &t);
        native_close(&writer);
        assert_true(
            native_begin(&reader, slice_of(blocks.data + FRAME_HEADER, blocks.len - FRAME_HEADER)));
        n = next_message();
        assert_true(native_same(&m, &n));
        is_over();
    }
    buffer_free(&blocks);
    buffer_free(&out);
    free(fresh);
    out = terms;
}

static void notes(void **state) {
    (void)state;
    // a letter is an element, see below
    static const char *const all[] = {"",    "a",     "ka", "can", "ckan", "uan", "ea",
                                      "eka", "ecan",  "le", "lo",  "aa",   "aaa", "aaaa",
                                      "xan", "eckan", "l",  "e",   "k",    "ukan"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        buffer_reset(&out);
        size_t caller = 0;
        for (const char *w = all[i]; *w; w++) {
            switch (*w) {
            case 'c':
                put_function("shop", "handle", 3);
                break;
            case 'x':
                put_function("shop", "handle", 3);
                out.data[out.len - 2] = TERM_NIL; // no arity
                out.len--;
                break;
            default:
                put_atom(*w == 'u'   ? "undefined"
                         : *w == 'e' ? "entry"
                         : *w == 'l' ? "left_out"
                         : *w == 'o' ? "over"
                         : *w == 'k' ? "ask"
                         : *w == 'n' ? "none"
                                     : "create");
            }
            caller = w == all[i] && (*w == 'c' || *w == 'u') ? out.len : caller;
        }
        same_note(slice_of(out.data, out.len), (unsigned)strlen(all[i]), caller);
    }
}

// Labels that are no integers of 64 bits, and one that is: as message_decode has them.
static void labels(void **state) {
    (void)state;
    static const uint8_t wide[] = {TERM_SMALL_BIG, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    static const uint8_t pair[] = {TERM_SMALL_TUPLE, 2, TERM_SMALL_INTEGER, 1, TERM_NIL};
    static const uint8_t plain[] = {TERM_SMALL_INTEGER, 5};
    const struct slice terms[] = {SLICE(wide), SLICE(pair), SLICE(plain)};
    const uint64_t tokens[] = {hash_bytes(SLICE(wide)), hash_bytes(SLICE(pair)), hash_mix(5)};
    for (int i = 0; i < 3; i++) {
        open_block(0, 0);
        struct told t = {.kind = NATIVE_CALL,
                         .flags = NATIVE_TOKEN,
                         .process = worker,
                         .function = query,
                         .label = INT64_MIN};
        tell(t);
        t.flags = NATIVE_TOKEN | NATIVE_TERM;
        t.term = terms[i];
        tell(t);
        t.flags = NATIVE_TOKEN; // the difference is to the integer before
        t.label = INT64_MAX;
        tell(t);
        assert_true(native_begin(&reader, closed()));
        assert_true(next_message().token == hash_mix((uint64_t)INT64_MIN));
        assert_true(next_message().token == tokens[i]);
        assert_true(next_message().token == hash_mix((uint64_t)INT64_MAX));
        is_over();
    }
}

// Without a token neither the caller nor the rest says anything, as of a term.
static void no_token(void **state) {
    (void)state;
    open_block(0, 0);
    tell((struct told){.kind = NATIVE_CALL,
                       .flags = NATIVE_CALLER | NATIVE_REST,
                       .process = worker,
                       .function = query,
                       .caller = latin,
                       .elements = 1,
                       .rest = slice_of("j", 1)});
    assert_true(native_begin(&reader, closed()));
    struct message m = next_message();
    assert_true(!m.has_token && m.caller == 0 && m.note_kind == NOTE_NONE);
    is_over();
}

// Who has called is told once: of three elements more none is it.
static void caller_told_once(void **state) {
    (void)state;
    put_function("shop", "handle", 3);
    put_atom("a");
    put_atom("none");
    struct buffer elements = out;
    out = buffer_make(1 << 16);
    open_block(0, 0);
    tell((struct told){.kind = NATIVE_CALL,
                       .flags = NATIVE_TOKEN | NATIVE_CALLER | NATIVE_REST,
                       .process = worker,
                       .function = query,
                       .caller = latin,
                       .elements = 3,
                       .rest = slice_of(elements.data, elements.len)});
    assert_true(native_begin(&reader, closed()));
    struct message m = next_message();
    assert_int_equal(m.caller, message_target(latin.name, 255));
    assert_int_equal(m.note_kind, NOTE_NONE);
    is_over();
    buffer_free(&elements);
}

// -- numbers --------------------------------------------------------------------------------------

static void far_numbers(void **state) {
    (void)state;
    static const int64_t times[] = {INT64_MIN, INT64_MAX, 0, -1, INT64_MIN, 1, INT64_MAX};
    open_block(0, INT64_MAX);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        tell((struct told){.kind = NATIVE_CALL,
                           .flags = NATIVE_TOKEN,
                           .time = times[i],
                           .process = {.number = UINT64_MAX - i},
                           .function = query,
                           .label = times[i],
                           .serial = i == 0 ? UINT64_MAX : MESSAGE_LAST_SERIAL - 1,
                           .previous = i == 0 ? MESSAGE_LAST_SERIAL : 1});
    }
    tell((struct told){.kind = NATIVE_LOST,
                       .time = INT64_MAX,
                       .until = INT64_MIN, // it wraps
                       .messages = UINT64_MAX});
    assert_true(native_begin(&reader, closed()));
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        struct message m = next_message();
        assert_true(m.time == times[i] && m.token == hash_mix((uint64_t)times[i]));
        assert_true(m.pid == UINT64_MAX - i);
        assert_true(m.serial == MESSAGE_LAST_SERIAL - (i > 0));
        assert_true(m.previous == (i == 0 ? MESSAGE_LAST_SERIAL : 1));
    }
    struct message m;
    struct native_loss loss;
    assert_int_equal(native_next(&reader, &m, &loss), NATIVE_IS_LOSS);
    assert_true(loss.until == INT64_MAX && loss.messages == UINT64_MAX);
    // a number in ten bytes; more bits than 64, or more bytes, are none
    static const struct {
        unsigned last;
        int bytes;
        enum native_step end;
    } long_ones[] = {{1, 10, NATIVE_IS_OVER},
                     {2, 10, NATIVE_IS_BAD},
                     {0, 11, NATIVE_IS_BAD},
                     {0, 10, NATIVE_IS_OVER}};
    for (size_t i = 0; i < sizeof long_ones / sizeof *long_ones; i++) {
        open_block(0, 0);
        native_put_u8(&writer, NATIVE_PROCESS);
        for (int k = 1; k < long_ones[i].bytes; k++) {
            native_put_u8(&writer, 0x80);
        }
        native_put_u8(&writer, long_ones[i].last);
        assert_int_equal(ends_with(closed()), long_ones[i].end);
    }
}

static void full_tables(void **state) {
    (void)state;
    for (unsigned more = 0; more < 2; more++) {
        open_block(0, 0);
        for (unsigned i = 0; i < NATIVE_FUNCTIONS + more; i++) {
            native_put_u8(&writer, NATIVE_FUNCTION);
            native_put_u8(&writer, i & 255);
            native_put(&writer, query.name);
        }
        assert_int_equal(ends_with(closed()), more ? NATIVE_IS_BAD : NATIVE_IS_OVER);
        open_block(0, 0);
        for (unsigned i = 0; i < NATIVE_PROCESSES + more; i++) {
            native_put_u8(&writer, NATIVE_PROCESS);
            native_put_number(&writer, i);
        }
        tell((struct told){.kind = NATIVE_OUT, .process = {.number = 123456}});
        struct slice whole = closed();
        assert_int_equal(ends_with(whole), NATIVE_IS_BAD); // that one is one too many, too
    }
    open_block(0, 0);
    for (unsigned i = 0; i < NATIVE_PROCESSES; i++) {
        tell((struct told){.kind = NATIVE_OUT, .process = {.number = i}});
    }
    assert_true(native_begin(&reader, closed()));
    for (unsigned i = 0; i < NATIVE_PROCESSES; i++) {
        assert_true(next_message().pid == i);
    }
    is_over();
}

// -- what is bad ----------------------------------------------------------------------------------

// The whole block so far, then these bytes and the end.
static void bad_record(const void *bytes, size_t len) {
    open_block(0, 0);
    tell((struct told){.kind = NATIVE_RETURN, .process = worker, .function = query});
    native_put(&writer, slice_of(bytes, len));
    assert_int_equal(ends_with(closed()), NATIVE_IS_BAD);
}

#define BAD(...) bad_record((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void bad_records(void **state) {
    (void)state;
    static const uint8_t flags[16] = {[NATIVE_CALL] = 0xf0, [NATIVE_RETURN] = NATIVE_SPAWNED};
    for (unsigned kind = NATIVE_CALL; kind <= NATIVE_LOST; kind++) {
        for (unsigned flag = 0x10; flag < 0x100; flag <<= 1) {
            if (!(flags[kind] & flag) && kind != NATIVE_SENT &&
                kind != NATIVE_TAKEN) { // else it is good
                open_block(0, 0);
                tell((struct told){.kind = kind, .process = worker, .function = query});
                assert_int_equal(ends_with(closed()), NATIVE_IS_OVER);
                open_block(0, 0);
                tell((struct told){
                    .kind = kind, .flags = flag, .process = worker, .function = query});
                assert_int_equal(ends_with(closed()), NATIVE_IS_BAD);
            }
        }
    }
    BAD(NATIVE_PROCESS | 0x10, 0);
    BAD(NATIVE_FUNCTION | 0x20, 0, TERM_SMALL_ATOM_UTF8, 0, TERM_SMALL_ATOM_UTF8, 0);
    BAD(NATIVE_REMOTE | 0x40, TERM_SMALL_ATOM_UTF8, 0, 0);
    open_block(0, 0);
    native_put_u8(&writer, NATIVE_END | 0x80);
    assert_int_equal(ends_with(block()), NATIVE_IS_BAD);
    BAD(NATIVE_TAKEN, 0, 0); // without a token
    BAD(NATIVE_SENT, 0, 0);
    BAD(NATIVE_SENT | NATIVE_TOKEN | NATIVE_CALLER, 0, 0, 0, 0, 0, 0, 0);
    BAD(NATIVE_TAKEN | NATIVE_TOKEN, 0, 0, 0, 0, 2, 0);
    BAD(NATIVE_TAKEN | NATIVE_TOKEN, 0, 0, 0, 0, 0);
    BAD(NATIVE_TAKEN | NATIVE_TOKEN | NATIVE_REST, 0, 0, 0, 0, 0, 0, 0, 0);
    BAD(NATIVE_TAKEN | NATIVE_TOKEN | NATIVE_TERM, 0, 0, 1, 1, 0, 0, 0);
    BAD(NATIVE_IN, 0, 1); // processes and functions that were not told
    BAD(NATIVE_RETURN, 0, 0, 1);
    BAD(NATIVE_EXCEPTION, 0, 1, 0);
    BAD(NATIVE_RETURN_TO, 0, 0, 2);
    BAD(NATIVE_CALL, 0, 0, 0x80, 0x80, 0x04);
    BAD(NATIVE_RETURN | NATIVE_SPAWNED, 0, 0, 0, 1);
    BAD(NATIVE_CALL | NATIVE_TOKEN, 0, 0, 0, 0, 0, 2, 0);
    BAD(NATIVE_CALL | NATIVE_TOKEN | NATIVE_CALLER, 0, 0, 0, 0, 0, 0, 0, 2);
    BAD(NATIVE_CALL | NATIVE_TERM, 0, 0, 0); // of no token
    BAD(NATIVE_CALL | NATIVE_TOKEN | NATIVE_TERM, 0, 0, 0, 2, TERM_NIL, TERM_NIL, 0, 0, 0);
    BAD(NATIVE_CALL | NATIVE_TOKEN | NATIVE_TERM, 0, 0, 0, 0, 0, 0, 0);
    BAD(NATIVE_CALL | NATIVE_TOKEN | NATIVE_TERM, 0, 0, 0, 1, 1, 0, 0, 0);
    BAD(NATIVE_CALL | NATIVE_REST, 0, 0, 0, 1, 2, TERM_NIL);
    BAD(NATIVE_CALL | NATIVE_REST, 0, 0, 0, 2, 1, TERM_NIL, TERM_NIL);
    BAD(NATIVE_CALL | NATIVE_REST, 0, 0, 0, 1, 0, TERM_NIL);
    BAD(NATIVE_CALL | NATIVE_REST, 0, 0, 0, 1, 1, 1);
    BAD(NATIVE_CALL | NATIVE_REST, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1,
        1, TERM_NIL);
    BAD(NATIVE_FUNCTION, 0, TERM_NIL, TERM_NIL);
    BAD(NATIVE_FUNCTION, 0, TERM_SMALL_ATOM_UTF8, 1, 'a', TERM_SMALL_INTEGER, 1);
    BAD(NATIVE_REMOTE, TERM_SMALL_INTEGER, 1, 1);
    BAD(NATIVE_END); // before the block's end
}

static void bad_heads(void **state) {
    (void)state;
    for (unsigned version = 0; version < 256; version++) {
        open_block(0, 0);
        out.data[FRAME_HEADER] = (uint8_t)version;
        assert_int_equal(ends_with(closed()),
                         version == NATIVE_VERSION ? NATIVE_IS_OVER : NATIVE_IS_BAD);
        open_block(version, 0);
        assert_int_equal(ends_with(closed()), version <= 1 ? NATIVE_IS_OVER : NATIVE_IS_BAD);
        open_block(0, 0);
        out.data[FRAME_HEADER + 2] = (uint8_t)version; // the tag of the node's name
        assert_true(ends_with(closed()) == NATIVE_IS_BAD || version == TERM_SMALL_ATOM_UTF8 ||
                    version == TERM_SMALL_ATOM);
    }
    assert_int_equal(ends_with(slice_of(NULL, 0)), NATIVE_IS_BAD);
}

// -- alone, and damaged ---------------------------------------------------------------------------

// Whatever the reader has read last gives the same when it is alone, in no more bytes.
static void same_alone(const struct message *m, const struct native_loss *loss, size_t most) {
    static struct native_reader other;
    struct buffer frame = buffer_make(1 << 20);
    struct message n;
    struct native_loss lost;
    struct frame f = {0};
    assert_true(native_alone(&reader, &frame));
    assert_int_equal(frame_next(slice_of(frame.data, frame.len), &f), frame.len);
    assert_int_equal(f.kind, FRAME_BLOCK);
    assert_true(f.body.len <= most + 1); // the end, which may be what the block lacks
    assert_true(native_begin(&other, f.body));
    assert_int_equal(native_next(&other, &n, &lost), m ? NATIVE_IS_MESSAGE : NATIVE_IS_LOSS);
    if (m) {
        assert_true(native_same(m, &n));
        assert_true(m->note_kind == n.note_kind && m->spawned == n.spawned);
    } else {
        assert_true(loss->clock == lost.clock && loss->time == lost.time &&
                    loss->until == lost.until && loss->messages == lost.messages);
    }
    assert_int_equal(native_next(&other, &n, &lost), NATIVE_IS_OVER);
    buffer_free(&frame);
}

// Reads as much as can be; all slices lie in the block, or in none.
static enum native_step read_all(struct slice bytes) {
    struct message m = {0};
    struct native_loss loss;
    enum native_step step;
    native_begin(&reader, bytes);
    while ((step = native_next(&reader, &m, &loss)) == NATIVE_IS_MESSAGE ||
           step == NATIVE_IS_LOSS) {
        bool message = step == NATIVE_IS_MESSAGE;
        const struct slice parts[] = {m.name, m.module.text, m.function.text, m.note};
        for (size_t i = 0; message && i < sizeof parts / sizeof *parts; i++) {
            bool inside = parts[i].data >= bytes.data &&
                          parts[i].data + parts[i].len <= bytes.data + bytes.len;
            assert_true(parts[i].len == 0 || inside || (i == 3 && parts[i].len == 11));
        }
        same_alone(message ? &m : NULL, &loss, bytes.len);
    }
    return step;
}

static void alone(void **state) {
    (void)state;
    everything();
    struct slice whole = closed();
    assert_int_equal(read_all(whole), NATIVE_IS_OVER);
    struct buffer none = buffer_make(1 << 10), little = buffer_make(20);
    assert_false(native_alone(&reader, &none)); // it is over
    native_begin(&reader, whole);
    assert_false(native_alone(&reader, &none)); // nothing was read yet
    next_message();
    assert_false(native_alone(&reader, &little));
    assert_true(little.failed);
    assert_true(buffer_append(&none, "before", 6) && native_alone(&reader, &none));
    assert_memory_equal(none.data, "before", 6);
    buffer_free(&none);
    buffer_free(&little);
    // names that come late in the block, of many
    open_block(NATIVE_APART, 1);
    for (unsigned i = 0; i < 1000; i++) {
        struct told_process from = {{OTHER_NODE, sizeof OTHER_NODE}, i};
        tell((struct told){.kind = NATIVE_CALL,
                           .flags = NATIVE_TOKEN | (i % 2 ? NATIVE_CALLER : 0),
                           .time = i,
                           .process = {.number = i % 500},
                           .function = {query.name, i % 200},
                           .label = (int64_t)i << 40,
                           .from = i % 3 ? &from : NULL,
                           .caller = {query.name, (i + i % 5) % 200}});
        i += i % 3 ? 1 : 0;
    }
    assert_int_equal(read_all(closed()), NATIVE_IS_OVER);
}

static void prefixes(void **state) {
    (void)state;
    struct guarded g = guarded_make(1 << 16);
    everything();
    struct slice whole = closed();
    assert_int_equal(read_all(guarded_copy(&g, whole.data, whole.len)), NATIVE_IS_OVER);
    for (size_t len = 0; len < whole.len; len++) {
        assert_int_equal(read_all(guarded_copy(&g, whole.data, len)), NATIVE_IS_BAD);
    }
    native_put_u8(&writer, NATIVE_END); // nothing comes behind the end
    whole = block();
    assert_int_equal(read_all(guarded_copy(&g, whole.data, whole.len)), NATIVE_IS_BAD);
    guarded_free(&g);
}

static void changed_bytes(void **state) {
    (void)state;
    struct guarded g = guarded_make(1 << 16);
    everything();
    struct slice whole = closed();
    unsigned bad = 0;
    for (size_t i = 0; i < whole.len; i++) {
        for (unsigned change = 1; change < 256; change++) {
            struct slice copy = guarded_copy(&g, whole.data, whole.len);
            ((uint8_t *)copy.data)[i] ^= (uint8_t)change;
            bad += read_all(copy) == NATIVE_IS_BAD;
        }
    }
    assert_true(bad > whole.len * 100);
    guarded_free(&g);
}

#define UNIT(f) cmocka_unit_test_setup_teardown(f, bytes_setup, bytes_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        UNIT(every_kind),  UNIT(apart),        UNIT(the_captures),     UNIT(notes),
        UNIT(labels),      UNIT(no_token),     UNIT(caller_told_once), UNIT(far_numbers),
        UNIT(full_tables), UNIT(bad_records),  UNIT(bad_heads),        UNIT(alone),
        UNIT(prefixes),    UNIT(changed_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
