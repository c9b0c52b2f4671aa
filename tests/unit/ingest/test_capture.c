// SPDX-License-Identifier: Apache-2.0
#include "ingest/capture.h"

#include "native_bytes.h"
#include "trace_bytes.h"

static struct capture probe(void) {
    return capture_probe(slice_of(out.data, out.len));
}

static void monotonic(uint32_t pid, int64_t time) {
    size_t at = frame_begin();
    put_call(pid, 1, pid, time);
    frame_end(at);
}

// Calendar time, µs since 1970.
static void wall(uint32_t pid, int64_t us) {
    size_t at = frame_begin();
    put_return_head(pid);
    put_atom("ok");
    put_tuple(3);
    put_integer((int32_t)(us / 1000000000000));
    put_integer((int32_t)(us / 1000000 % 1000000));
    put_integer((int32_t)(us % 1000000));
    frame_end(at);
}

static void the_captures(void **state) {
    (void)state;
    static const struct {
        const char *name, *node;
        bool monotonic, wall;
    } files[] = {{"otp25-basic.cap", "nonode@nohost", true, true},
                 {"otp25-entry.cap", "nonode@nohost", true, false},
                 {"otp25-meta.cap", "nonode@nohost", true, true},
                 {"otp27-calls.cap", "cap27@vm", true, false}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct slice file = data_file(files[i].name);
        struct capture c = capture_probe(file);
        assert_true(slice_is(c.node, files[i].node));
        assert_int_equal(c.monotonic, files[i].monotonic);
        assert_int_equal(c.wall, files[i].wall);
        free((void *)file.data);
    }
}

static void clocks(void **state) {
    (void)state;
    const int64_t base = 1795000000000000000;
    assert_false(probe().monotonic || probe().wall);
    assert_int_equal(probe().node.len, 0);
    monotonic(1, -500);
    monotonic(1, 700);
    assert_true(probe().monotonic && !probe().wall);
    assert_int_equal(probe().first, -500);
    assert_true(slice_is(probe().node, "n@h"));
    // both clocks in one process, one event between two of the other kind: the offset is between
    wall(1, base / 1000 + 10);
    monotonic(1, 30000);
    wall(1, base / 1000 + 50);
    assert_true(probe().monotonic && probe().wall);
    assert_true(probe().offset >= base - 20000 && probe().offset <= base + 20000);
    assert_int_equal(probe().first, -500);
}

// Damage and the end of the file end the look; nothing behind is read.
static void damaged(void **state) {
    (void)state;
    struct guarded g = guarded_make(4096);
    monotonic(1, 5);
    wall(2, 1795000000000000);
    put_u8(0);
    put_u32(0);
    frame_dropped(4);
    size_t at = frame_begin();
    put_atom("nonsense");
    frame_end(at);
    monotonic(1, 6);
    for (size_t len = 0; len <= out.len; len++) {
        struct capture c = capture_probe(guarded_copy(&g, out.data, len));
        assert_true(!c.monotonic || c.first == 5);
    }
    for (size_t i = 0; i < out.len; i++) {
        for (unsigned byte = 0; byte < 256; byte += 5) {
            struct slice copy = guarded_copy(&g, out.data, out.len);
            ((uint8_t *)copy.data)[i] = (uint8_t)byte;
            capture_probe(copy);
        }
    }
    guarded_free(&g);
}

// Times that no sum can hold do not overflow.
static void hostile_times(void **state) {
    (void)state;
    static const int64_t times[] = {INT64_MIN, INT64_MAX, 0};
    for (int i = 0; i < 3; i++) {
        monotonic(1, times[i]);
        wall(1, 8999999999000000);
        monotonic(1, times[(i + 1) % 3]);
        struct capture c = probe();
        assert_true(c.offset > -5000000000000000000 && c.first > -5000000000000000000 &&
                    c.first < 5000000000000000000);
    }
}

// Blocks tell the same as the terms that they are made of.
static void blocks(void **state) {
    (void)state;
    static const char *const files[] = {"otp25-basic.cap", "otp25-entry.cap", "otp27-calls.cap"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct slice file = data_file(files[i]);
        struct capture terms = capture_probe(file);
        assert_true(native_of_terms(file, 50, &out) > 0);
        struct capture c = probe();
        assert_true(slice_equal(c.node, terms.node));
        assert_true(c.monotonic && !c.wall);
        assert_int_equal(c.first, terms.first);
        buffer_reset(&out);
        free((void *)file.data);
    }
    // what comes behind the damage in one is not looked at
    monotonic(1, 5);
    monotonic(1, 6);
    struct buffer damaged_block = buffer_make(1 << 16);
    native_of_terms(slice_of(out.data, out.len), 9, &damaged_block);
    for (size_t len = FRAME_HEADER; len < damaged_block.len; len++) {
        uint8_t *bytes = malloc(len);
        memcpy(bytes, damaged_block.data, len);
        bytes[3] = (uint8_t)((len - FRAME_HEADER) >> 8);
        bytes[4] = (uint8_t)(len - FRAME_HEADER);
        struct capture c = capture_probe(slice_of(bytes, len));
        assert_true(!c.monotonic || (c.first == 5 && slice_is(c.node, "n@h")));
        free(bytes);
    }
    buffer_free(&damaged_block);
}

#define UNIT(f) cmocka_unit_test_setup_teardown(f, bytes_setup, bytes_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {UNIT(the_captures), UNIT(clocks), UNIT(damaged),
                                       UNIT(hostile_times), UNIT(blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
