// SPDX-License-Identifier: Apache-2.0
#include "codec/frame.h"

#include "base/limits.h"
#include "captures.h"
#include "unit.h"

static void put_header(uint8_t *p, uint8_t op, uint32_t size) {
    p[0] = op;
    size = __builtin_bswap32(size);
    memcpy(p + 1, &size, 4);
}

// The frames of every capture are those that Erlang found, to the last byte.
static void the_captures(void **state) {
    (void)state;
    for (size_t i = 0; i < CAPTURES; i++) {
        char name[64], line[64];
        snprintf(name, sizeof name, "%s.cap", captures[i]);
        struct slice file = data_file(name), rest = file;
        snprintf(name, sizeof name, "%s.frames", captures[i]);
        struct slice expected = data_file(name);
        const char *at = (const char *)expected.data;
        struct frame frame = {0};
        while (rest.len > 0) {
            long n = frame_next(rest, &frame);
            assert_true(n > 0 && (size_t)n <= rest.len);
            assert_int_equal(frame.kind, FRAME_TERM);
            snprintf(line, sizeof line, "term %u ", frame.size);
            assert_memory_equal(at, line, strlen(line));
            at = strchr(at, '\n') + 1;
            assert_ptr_equal(frame.body.data, rest.data + FRAME_HEADER);
            assert_int_equal(frame.body.len, frame.size);
            rest = slice_of(rest.data + n, rest.len - (size_t)n);
        }
        assert_string_equal(at, "");
        free((void *)file.data);
        free((void *)expected.data);
    }
}

// Fed byte by byte, a stream gives the same frames, each exactly when its last byte is there.
static void byte_by_byte(void **state) {
    (void)state;
    struct slice file = data_file("otp25-kinds.cap");
    size_t start = 0, frames = 0;
    struct frame frame = {0};
    struct guarded g = guarded_make(8192);
    for (size_t have = 0; have <= file.len; have++) {
        struct slice s = guarded_copy(&g, file.data + start, have - start);
        long n = frame_next(s, &frame);
        if (n > 0) {
            assert_int_equal(n, have - start);
            start = have;
            frames++;
        } else {
            assert_int_equal(n, FRAME_PARTIAL);
        }
    }
    assert_int_equal(start, file.len);
    assert_int_equal(frames, 101);
    guarded_free(&g);
    free((void *)file.data);
}

static void kinds(void **state) {
    (void)state;
    struct guarded g = guarded_make(LIMIT_FRAME_BYTES + 64);
    uint8_t *bytes = calloc(1, LIMIT_FRAME_BYTES + 64);
    assert_non_null(bytes);
    struct frame f;

    put_header(bytes, 0, 0);
    assert_int_equal(frame_next(guarded_copy(&g, bytes, 5), &f), 5);
    assert_int_equal(f.kind, FRAME_EMPTY);
    assert_int_equal(f.body.len, 0);

    put_header(bytes, 1, 0xfffffffe); // any count: nothing follows
    assert_int_equal(frame_next(guarded_copy(&g, bytes, 5), &f), 5);
    assert_int_equal(f.kind, FRAME_DROPPED);
    assert_true(f.size == 0xfffffffe);
    assert_int_equal(f.body.len, 0);

    put_header(bytes, 1, 0);
    assert_int_equal(frame_next(guarded_copy(&g, bytes, 5), &f), 5);
    assert_int_equal(f.kind, FRAME_END);

    put_header(bytes, 0, LIMIT_FRAME_BYTES);
    assert_int_equal(frame_next(guarded_copy(&g, bytes, LIMIT_FRAME_BYTES + 4), &f), FRAME_PARTIAL);
    assert_int_equal(frame_next(guarded_copy(&g, bytes, LIMIT_FRAME_BYTES + 5), &f),
                     LIMIT_FRAME_BYTES + 5);
    assert_int_equal(f.kind, FRAME_TERM);
    assert_int_equal(f.body.len, LIMIT_FRAME_BYTES);

    put_header(bytes, 2, 0); // a block, though none that can be read
    assert_int_equal(frame_next(guarded_copy(&g, bytes, 5), &f), 5);
    assert_int_equal(f.kind, FRAME_BLOCK);
    assert_int_equal(f.body.len, 0);
    put_header(bytes, 2, LIMIT_FRAME_BYTES);
    assert_int_equal(frame_next(guarded_copy(&g, bytes, LIMIT_FRAME_BYTES + 4), &f), FRAME_PARTIAL);
    assert_int_equal(frame_next(guarded_copy(&g, bytes, LIMIT_FRAME_BYTES + 5), &f),
                     LIMIT_FRAME_BYTES + 5);
    assert_int_equal(f.kind, FRAME_BLOCK);
    assert_int_equal(f.body.len, LIMIT_FRAME_BYTES);

    for (uint8_t op = 0; op <= 2; op += 2) {
        put_header(bytes, op, LIMIT_FRAME_BYTES + 1);
        assert_int_equal(frame_next(guarded_copy(&g, bytes, 5), &f), FRAME_HEADER);
        assert_int_equal(f.kind, FRAME_OVERSIZED);
        assert_int_equal(f.size, LIMIT_FRAME_BYTES + 1);
        put_header(bytes, op, LIMIT_FRAME_CLAIM);
        assert_int_equal(frame_next(guarded_copy(&g, bytes, 5), &f), FRAME_HEADER);
        assert_int_equal(f.kind, FRAME_OVERSIZED);

        put_header(bytes, op, LIMIT_FRAME_CLAIM + 1);
        assert_int_equal(frame_next(guarded_copy(&g, bytes, 5), &f), FRAME_BAD);
        put_header(bytes, op, UINT32_MAX);
        assert_int_equal(frame_next(guarded_copy(&g, bytes, 5), &f), FRAME_BAD);
    }
    for (unsigned op = 3; op < 256; op++) { // a stranger is known by its first byte
        bytes[0] = (uint8_t)op;
        assert_int_equal(frame_next(guarded_copy(&g, bytes, 1), &f), FRAME_BAD);
        assert_int_equal(frame_next(guarded_copy(&g, bytes, 50), &f), FRAME_BAD);
    }
    free(bytes);
    guarded_free(&g);
}

static void truncated_headers(void **state) {
    (void)state;
    struct guarded g = guarded_make(16);
    struct frame f;
    for (uint8_t op = 0; op < 3; op++) {
        uint8_t bytes[5];
        put_header(bytes, op, 7);
        for (size_t len = 0; len < 5; len++) {
            assert_int_equal(frame_next(guarded_copy(&g, bytes, len), &f), FRAME_PARTIAL);
        }
    }
    guarded_free(&g);
}

// What came out of a stream.
struct sink {
    struct buffer partial;
    struct frame_place place;
    size_t frames;
    int64_t last_at; // where the last one began
    bool skips;      // passes over as many bytes as the frame before tells of dropped messages
    size_t room;     // more is not kept: the frame is given up, as its reader says
    bool over;       // likewise, but the stream ends there
};

static void take_one(void *context, const struct frame *frame) {
    struct sink *s = context;
    s->frames++;
    s->last_at = s->place.offset;
    s->place.skipping = s->skips && frame->kind == FRAME_DROPPED ? frame->size : 0;
}

static int64_t take(void *context, struct slice bytes) {
    struct sink *s = context;
    return frame_each(&s->place, bytes, take_one, s);
}

static bool keep(void *context, struct slice bytes) {
    struct sink *s = context;
    if (s->partial.len + bytes.len > s->room) {
        buffer_reset(&s->partial);
        return !s->over;
    }
    return buffer_append(&s->partial, bytes.data, bytes.len);
}

// A stream in pieces of any size is the same stream. What its reader does not keep is not asked for
// again; what is none ends it.
static void pieces(void **state) {
    (void)state;
    struct slice file = data_file("otp25-kinds.cap");
    for (size_t size = 1; size < 3000; size += size < 300 ? 1 : 97) {
        struct sink s = {.partial = buffer_make(LIMIT_FRAME_BYTES), .room = SIZE_MAX};
        struct frame_reader reader = {&s.partial, take, keep, &s};
        for (size_t at = 0; at < file.len; at += size) {
            assert_true(frame_feed(
                &reader, slice_of(file.data + at, file.len - at < size ? file.len - at : size)));
        }
        assert_int_equal(s.frames, 101);
        assert_int_equal(s.place.offset, file.len);
        assert_int_equal(s.partial.len, 0);
        buffer_free(&s.partial);
    }
    for (int over = 0; over < 2; over++) {
        uint8_t bytes[20] = {0};
        struct sink s = {.partial = buffer_make(LIMIT_FRAME_BYTES), .room = 7, .over = over};
        struct frame_reader reader = {&s.partial, take, keep, &s};
        put_header(bytes, 0, 10);
        assert_true(frame_feed(&reader, slice_of(bytes, 7)));
        assert_int_equal(frame_feed(&reader, slice_of(bytes + 7, 1)), !over);
        assert_int_equal(s.frames, 0);
        put_header(bytes, 3, 0);
        assert_false(frame_feed(&reader, slice_of(bytes, 5)));
        buffer_free(&s.partial);
    }
    free((void *)file.data);
}

// What is to be skipped behind a frame is, however it comes, and the place is that of each frame.
static void skipped(void **state) {
    (void)state;
    uint8_t bytes[64] = {0};
    put_header(bytes, 0, 0);
    put_header(bytes + 5, 1, 20); // 20 bytes of no frame follow
    memset(bytes + 10, 0xff, 20);
    put_header(bytes + 30, 0, 0);
    for (size_t size = 1; size <= 35; size++) {
        struct sink s = {
            .partial = buffer_make(LIMIT_FRAME_BYTES), .room = SIZE_MAX, .skips = true};
        struct frame_reader reader = {&s.partial, take, keep, &s};
        for (size_t at = 0; at < 35; at += size) {
            assert_true(frame_feed(&reader, slice_of(bytes + at, 35 - at < size ? 35 - at : size)));
        }
        assert_int_equal(s.frames, 3);
        assert_int_equal(s.last_at, 30);
        assert_int_equal(s.place.offset, 35);
        assert_int_equal(s.place.skipping, 0);
        buffer_free(&s.partial);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_captures), cmocka_unit_test(byte_by_byte),
        cmocka_unit_test(kinds),        cmocka_unit_test(truncated_headers),
        cmocka_unit_test(pieces),       cmocka_unit_test(skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
