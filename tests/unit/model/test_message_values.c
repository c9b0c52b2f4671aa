// SPDX-License-Identifier: Apache-2.0
#include "model/message/message_values.h"

#include "captures.h"
#include "codec/frame.h"
#include "trace_bytes.h"

static struct buffer stripped;

static int setup(void **state) {
    stripped = buffer_make(1 << 20);
    return bytes_setup(state);
}

static int teardown(void **state) {
    buffer_free(&stripped);
    return bytes_teardown(state);
}

// The messages of a body, without what a reader has learned.
static uint32_t decode(struct slice body, struct message *m, uint32_t most) {
    struct message_reader reader = {0};
    struct cursor c;
    uint32_t count = message_frame(body, &c);
    assert_in_range(count, 0, most);
    for (uint32_t i = 0; i < count; i++) {
        if (!message_decode(&reader, &c, false, &m[i])) {
            return 0;
        }
        m[i].head = NULL;
    }
    return count;
}

static bool spawned(const struct message *m) {
    return slice_is(m->module.text, "erlang") && m->function.text.len >= 5 &&
           memcmp(m->function.text.data, "spawn", 5) == 0;
}

// The process that a spawn function returned, alone or with a monitor.
static uint64_t first_pid(struct slice value) {
    struct cursor c = cursor_of(value.data, value.len);
    if (term_is_tuple(term_peek(&c))) {
        assert_int_equal(term_tuple(&c), 2);
    }
    return message_pid(&c);
}

// All that a replay reads is as it was, and values are gone.
static void same_without_values(const struct message *m, const struct message *n) {
    assert_int_equal(m->kind, n->kind);
    if (m->kind == MESSAGE_OTHER) {
        return;
    }
    assert_int_equal(m->clock, n->clock);
    assert_int_equal(m->time, n->time);
    assert_int_equal(m->pid, n->pid);
    assert_int_equal(m->arity, n->arity);
    assert_int_equal(m->target, n->target);
    assert_int_equal(m->caller, n->caller);
    assert_int_equal(m->entry, n->entry);
    assert_int_equal(m->has_token, n->has_token);
    assert_int_equal(m->token, n->token);
    assert_int_equal(m->from, n->from);
    assert_int_equal(m->note_kind, n->note_kind);
    assert_true(slice_equal(m->name, n->name) && slice_equal(m->arguments, n->arguments));
    if (m->kind == MESSAGE_CALL) {
        assert_true(slice_equal(m->note, n->note));
    } else if (m->kind == MESSAGE_RETURN && !spawned(m)) {
        assert_int_equal(n->note.len, 1);
        assert_int_equal(n->note.data[0], TERM_NIL);
    } else if (m->kind == MESSAGE_RETURN) {
        assert_true(first_pid(m->note) > 0);
        assert_int_equal(first_pid(m->note), first_pid(n->note));
    } else if (m->kind == MESSAGE_EXCEPTION) {
        assert_int_equal(n->note.data[n->note.len - 1], TERM_NIL);
        assert_memory_equal(m->note.data, n->note.data, n->note.len - 1); // {Class,
    }
}

static void the_captures(void **state) {
    (void)state;
    enum { MOST = 64 };
    static struct message before[MOST], after[MOST];
    static struct message_reader reader;
    unsigned returns = 0, exceptions = 0, spawns = 0;
    for (int i = 0; i < CAPTURES; i++) {
        char name[64];
        struct frame f = {0};
        snprintf(name, sizeof name, "%s.cap", captures[i]);
        struct slice file = data_file(name);
        reader = (struct message_reader){0};
        for (size_t at = 0; at < file.len; at += FRAME_HEADER + f.body.len) {
            assert_true(frame_next(slice_of(file.data + at, file.len - at), &f) > 0);
            if (f.kind != FRAME_TERM) {
                continue;
            }
            uint32_t count = decode(f.body, before, MOST);
            buffer_reset(&stripped);
            assert_int_equal(message_without_values(&reader, f.body, &stripped), count > 0);
            assert_in_range(stripped.len, 0, f.body.len);
            assert_int_equal(
                count > 0 ? decode(slice_of(stripped.data, stripped.len), after, MOST) : 0, count);
            for (uint32_t k = 0; k < count; k++) {
                same_without_values(&before[k], &after[k]);
                returns += before[k].kind == MESSAGE_RETURN;
                spawns += before[k].kind == MESSAGE_RETURN && spawned(&before[k]);
                exceptions += before[k].kind == MESSAGE_EXCEPTION;
            }
        }
        free((void *)file.data);
    }
    assert_true(returns > 100 && exceptions > 5 && spawns > 0);
}

// Writes the body that is put, and expects what was put behind `expected`.
static void strip(size_t body_end) {
    static struct message_reader reader;
    buffer_reset(&stripped);
    assert_true(message_without_values(&reader, slice_of(out.data, body_end), &stripped));
    assert_int_equal(stripped.len, out.len - body_end);
    assert_memory_equal(stripped.data, out.data + body_end, stripped.len);
    buffer_reset(&out);
}

static void put_spawned(const char *module, const char *function, bool pair) {
    put_u8(TERM_VERSION);
    put_head(6, "trace_ts", 1);
    put_atom("return_from");
    put_function(module, function, 4);
    if (pair) {
        put_tuple(2);
    }
    put_pid("n@h", 2, 0, 5);
}

static void values(void **state) {
    (void)state;
    size_t end;
    // a list of a return and a link, of which only the place matters
    for (int i = 0; i < 2; i++) {
        put_u8(TERM_VERSION);
        put_u8(TERM_LIST);
        put_u32(2);
        put_return_head(1);
        if (i == 0) {
            put_tuple(2);
            put_atom("secret");
            put_small(42);
        } else {
            put_u8(TERM_NIL);
        }
        put_big(-7);
        if (i == 0) {
            put_head(5, "trace_ts", 1);
            put_atom("exit");
            put_atom("secret");
            put_big(-6);
        } else {
            put_tuple(2);
            put_atom("drop");
            put_u8(TERM_NIL);
        }
        put_u8(TERM_NIL);
        end = i == 0 ? out.len : end;
    }
    strip(end);
    // a process and its monitor, of a spawn function only
    static const char *const modules[] = {"erlang", "other"};
    for (int i = 0; i < 2; i++) {
        put_spawned(modules[i], "spawn_opt", true);
        put_atom("monitor");
        put_big(-5);
        end = out.len;
        if (i == 0) {
            put_spawned(modules[i], "spawn_opt", true);
        } else {
            put_u8(TERM_VERSION);
            put_head(6, "trace_ts", 1);
            put_atom("return_from");
            put_function(modules[i], "spawn_opt", 4);
        }
        put_u8(TERM_NIL);
        put_big(-5);
        strip(end);
    }
    // an exception: its class stays
    for (int i = 0; i < 2; i++) {
        put_u8(TERM_VERSION);
        put_head(6, "trace_ts", 1);
        put_atom("exception_from");
        put_function("db", "query", 2);
        put_tuple(2);
        put_atom("error");
        if (i == 0) {
            put_tuple(1);
            put_atom("badmatch");
            end = 0;
        } else {
            put_u8(TERM_NIL);
        }
        put_big(-4);
        end = i == 0 ? out.len : end;
    }
    strip(end);
}

static void what_is_none(void **state) {
    (void)state;
    static struct message_reader reader;
    struct guarded g = guarded_make(4096);
    put_u8(TERM_VERSION);
    put_return_head(1);
    put_tuple(2);
    put_atom("secret");
    put_integer(100000);
    put_big(-7);
    for (size_t len = 0; len < out.len; len++) {
        buffer_append(&stripped, "before", 6);
        assert_false(message_without_values(&reader, guarded_copy(&g, out.data, len), &stripped));
        assert_int_equal(stripped.len, 6);
        buffer_reset(&stripped);
    }
    // no memory: told, too
    buffer_free(&stripped);
    stripped = buffer_make(20);
    assert_false(message_without_values(&reader, slice_of(out.data, out.len), &stripped));
    guarded_free(&g);
}

int main(void) {
#define UNIT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {UNIT(the_captures), UNIT(values), UNIT(what_is_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
