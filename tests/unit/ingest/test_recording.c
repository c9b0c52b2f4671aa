// SPDX-License-Identifier: Apache-2.0
#include "ingest/recording.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "captures.h"
#include "codec/frame.h"
#include "ingest/pipeline.h"
#include "native_bytes.h"
#include "trace_bytes.h"

static char dir[] = "/tmp/kprof-recording.XXXXXX";
static const int64_t NOW = 1763820000123456789;

static int make_dir(void **state) {
    strcpy(dir + sizeof dir - 7, "XXXXXX");
    assert_non_null(mkdtemp(dir));
    return bytes_setup(state);
}

static void path_of(const char *name, char path[4096]) {
    snprintf(path, 4096, "%s/%s", dir, name);
}

static int remove_dir(void **state) {
    DIR *d = opendir(dir);
    struct dirent *e;
    char path[4096];
    while ((e = readdir(d))) {
        path_of(e->d_name, path);
        unlink(path);
    }
    closedir(d);
    assert_int_equal(rmdir(dir), 0);
    return bytes_teardown(state);
}

// The one recording there is; free(result.data).
static struct slice recorded(const char *name) {
    char path[4096];
    path_of(name, path);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    uint8_t *data = malloc(1 << 22);
    size_t len = fread(data, 1, 1 << 22, f);
    fclose(f);
    assert_int_equal(unlink(path), 0);
    return slice_of(data, len);
}

static const char NAME[] = "n@h-2025-11-22T14:00:00Z-7.cap";

// Records bytes in pieces of that many.
static struct slice record(struct slice bytes, size_t piece, bool values) {
    struct recording_place place = {dir, values};
    struct recording *r = recording_start(&place, "n@h", 7, NOW);
    assert_non_null(r);
    for (size_t at = 0; at < bytes.len; at += piece) {
        recording_add(r,
                      slice_of(bytes.data + at, piece < bytes.len - at ? piece : bytes.len - at));
    }
    recording_end(r);
    return recorded(NAME);
}

// What a replay counts of bytes.
struct replayed {
    struct pipeline_totals totals;
    bool bad, cut;
};

static struct replayed replay(struct slice bytes) {
    struct pipeline_options options = {.bucket_s = 10, .timeout_ns = 30000000000};
    struct pipeline_stream stream = {.entry = TIER_NONE};
    struct pipeline *p = pipeline_new(&options);
    struct pipeline_node *n = pipeline_node(p, slice_text("n@h"));
    struct tier_set set;
    assert_true(tier_set_init(&set));
    tier_set_add(&set, slice_text("db"), slice_text("query"), 2,
                 directory_tier(pipeline_directory(p), slice_text("db")));
    tier_set_add(&set, slice_text("b1"), slice_text("f"), 1,
                 directory_tier(pipeline_directory(p), slice_text("f")));
    pipeline_set_tiers(n, set);
    assert_true(pipeline_begin(n, &stream));
    struct replayed r = {.bad = pipeline_feed(n, bytes) >= 0};
    int64_t at;
    r.cut = pipeline_end(n, false, &at);
    r.totals = pipeline_totals(n);
    pipeline_free(p);
    return r;
}

static void expect_same(struct slice bytes, struct slice kept) {
    struct replayed a = replay(bytes), b = replay(kept);
    assert_int_equal(a.bad, b.bad);
    assert_int_equal(a.cut, b.cut);
    assert_int_equal(a.totals.messages, b.totals.messages);
    assert_int_equal(a.totals.dropped, b.totals.dropped);
    assert_int_equal(a.totals.decode_errors, b.totals.decode_errors);
    assert_int_equal(a.totals.orphan_returns, b.totals.orphan_returns);
    assert_int_equal(a.totals.stale_calls, b.totals.stale_calls);
    assert_int_equal(a.totals.complete, b.totals.complete);
    assert_int_equal(a.totals.incomplete, b.totals.incomplete);
    assert_int_equal(a.totals.untimed, b.totals.untimed);
}

static void file_is_its_owners(void **state) {
    (void)state;
    struct recording_place place = {dir, false};
    char path[4096];
    struct stat st;
    mode_t before = umask(0);
    struct recording *r = recording_start(&place, "n@h", 7, NOW);
    umask(before);
    assert_non_null(r);
    path_of(NAME, path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    recording_end(r);
}

// Streams that a node opens within one second have a file each.
static void one_second(void **state) {
    (void)state;
    struct recording_place place = {dir, true};
    struct recording *r[3];
    static const char *const names[] = {NAME, "n@h-2025-11-22T14:00:00Z-7.2.cap",
                                        "n@h-2025-11-22T14:00:00Z-7.3.cap"};
    for (int i = 0; i < 3; i++) {
        r[i] = recording_start(&place, "n@h", 7, NOW + i);
        assert_non_null(r[i]);
        recording_add(r[i], slice_text(names[i]));
    }
    for (int i = 0; i < 3; i++) {
        recording_end(r[i]);
        struct slice kept = recorded(names[i]);
        assert_true(slice_is(kept, names[i]));
        free((void *)kept.data);
    }
    recording_end(NULL);
    place.dir = "/nowhere";
    assert_null(recording_start(&place, "n@h", 7, NOW));
}

static void captures_replay_the_same(void **state) {
    (void)state;
    static const size_t pieces[] = {1, 7, 1000, 1 << 20};
    for (int i = 0; i < CAPTURES; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.cap", captures[i]);
        struct slice file = data_file(name);
        struct slice whole = record(file, 1000, true);
        assert_true(slice_equal(whole, file));
        free((void *)whole.data);
        struct slice first = {0};
        for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
            struct slice kept = record(file, pieces[k], false);
            assert_true(kept.len <= file.len);
            expect_same(file, kept);
            assert_true(k == 0 || slice_equal(kept, first));
            free((void *)first.data);
            first = kept;
        }
        free((void *)first.data);
        free((void *)file.data);
    }
}

static void put_secret(void) {
    put_u8(109); // BINARY_EXT
    put_u32(6);
    buffer_text(&out, "SECRET");
}

static void no_secret(struct slice kept) {
    assert_null(memmem(kept.data, kept.len, "SECRET", 6));
}

static void put_requests(void) {
    for (unsigned i = 1; i <= 2; i++) {
        size_t at = frame_begin();
        put_call(i, i, i, 1000 * i);
        frame_end(at);
        at = frame_begin();
        put_return_head(i);
        put_secret();
        put_big(1000 * i + 500);
        frame_end(at);
    }
}

// Whatever is wrong with a stream, what is kept says so, too, and holds no value.
static void damaged(void **state) {
    (void)state;
    put_requests();
    frame_dropped(17);
    put_u8(0);
    put_u32(0);
    size_t at = frame_begin(); // no trace message
    put_secret();
    frame_end(at);
    at = frame_begin(); // one that ends in the middle of its value
    put_return_head(1);
    put_secret();
    out.len -= 2;
    frame_end(at);
    put_requests();
    struct slice kept = record(slice_of(out.data, out.len), 11, false);
    no_secret(kept);
    expect_same(slice_of(out.data, out.len), kept);
    free((void *)kept.data);
    // cut off at every byte
    size_t len = out.len;
    for (size_t end = 0; end <= len; end++) {
        kept = record(slice_of(out.data, end), 64, false);
        no_secret(kept);
        expect_same(slice_of(out.data, end), kept);
        free((void *)kept.data);
    }
    // bytes that begin no frame, and what comes behind them
    put_u8(77);
    put_secret();
    put_requests();
    kept = record(slice_of(out.data, out.len), 50, false);
    no_secret(kept);
    expect_same(slice_of(out.data, out.len), kept);
    free((void *)kept.data);
}

static void oversized(void **state) {
    (void)state;
    buffer_free(&out);
    out = buffer_make(16 << 20);
    put_requests();
    put_u8(0);
    put_u32(LIMIT_FRAME_BYTES + 1);
    for (size_t i = 0; i < (LIMIT_FRAME_BYTES + 1) / 8; i++) {
        buffer_text(&out, "SECRET..");
    }
    put_u8('!');
    size_t inside = out.len - 10;
    put_requests();
    struct slice kept = record(slice_of(out.data, out.len), 100000, false);
    no_secret(kept);
    expect_same(slice_of(out.data, out.len), kept);
    assert_true(kept.len < 2000);
    free((void *)kept.data);
    kept = record(slice_of(out.data, inside), 100000, false); // ends in it
    no_secret(kept);
    assert_true(replay(kept).cut);
    free((void *)kept.data);
}

// Blocks are kept as they are, whatever pieces they come in; one that cannot be read is not.
static void blocks(void **state) {
    (void)state;
    static const size_t pieces[] = {1, 7, 1000, 1 << 20};
    static const char *const files[] = {"otp25-basic.cap", "otp27-calls.cap"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct slice file = data_file(files[i]);
        assert_true(native_of_terms(file, 100, &out) > 0);
        struct slice blocks = slice_of(out.data, out.len);
        for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
            struct slice kept = record(blocks, pieces[k], false);
            assert_true(slice_equal(kept, blocks));
            free((void *)kept.data);
        }
        struct replayed r = replay(blocks);
        assert_true(r.totals.messages > 0 && r.totals.decode_errors == 0);
        buffer_reset(&out);
        free((void *)file.data);
    }
    // bytes of no record would be kept with it
    put_requests();
    struct buffer bytes = buffer_make(1 << 16);
    native_of_terms(slice_of(out.data, out.len), 1000, &bytes);
    size_t block = bytes.len;
    buffer_text(&bytes, "SECRET");
    bytes.data[3] = (uint8_t)((bytes.len - FRAME_HEADER) >> 8);
    bytes.data[4] = (uint8_t)(bytes.len - FRAME_HEADER);
    native_of_terms(slice_of(out.data, out.len), 1000, &bytes);
    struct slice kept = record(slice_of(bytes.data, bytes.len), 11, false);
    no_secret(kept);
    assert_int_equal(kept.len, FRAME_HEADER + 2 + block);
    struct replayed live = replay(slice_of(bytes.data, bytes.len)), again = replay(kept);
    assert_true(live.totals.decode_errors == 1 && again.totals.decode_errors == 1);
    assert_true(!live.bad && !again.bad);
    free((void *)kept.data);
    // cut off at every byte
    for (size_t end = 0; end <= block; end++) {
        kept = record(slice_of(bytes.data, end), 64, false);
        no_secret(kept);
        expect_same(slice_of(bytes.data, end), kept);
        free((void *)kept.data);
    }
    buffer_free(&bytes);
}

// Without memory to look at them, too.
static void blocks_without_memory(void **state) {
    (void)state;
    put_requests();
    struct buffer bytes = buffer_make(1 << 16);
    native_of_terms(slice_of(out.data, out.len), 1000, &bytes);
    struct recording_place place = {dir, false};
    struct recording *r = recording_start(&place, "n@h", 7, NOW);
    assert_non_null(r);
    fail_alloc_at(0);
    recording_add(r, slice_of(bytes.data, bytes.len));
    fail_alloc_at(-1);
    recording_add(r, slice_of(bytes.data, bytes.len));
    recording_end(r);
    struct slice kept = recorded(NAME);
    assert_int_equal(kept.len, FRAME_HEADER + 2 + bytes.len);
    assert_int_equal(replay(kept).totals.decode_errors, 1);
    free((void *)kept.data);
    buffer_free(&bytes);
}

int main(void) {
    log_set_level(LOG_ERROR);
#define UNIT(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)
    const struct CMUnitTest tests[] = {
        UNIT(file_is_its_owners), UNIT(one_second), UNIT(captures_replay_the_same), UNIT(damaged),
        UNIT(oversized),          UNIT(blocks),     UNIT(blocks_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
