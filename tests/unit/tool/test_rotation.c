// SPDX-License-Identifier: Apache-2.0
// A text without end in files: which there are, when, what is in them, and that nobody else's are
// touched.
#include "tool/sample/rotation.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exit_status.h"
#include "unit.h"

static const int64_t S = 1000000000;
// 2026-11-25T21:08:00.25Z
static const int64_t BEGIN = INT64_C(1795640880) * 1000000000 + 250000000;

static char folder[64];

static int setup(void **state) {
    (void)state;
    strcpy(folder, "/tmp/kprof_test_XXXXXX");
    assert_non_null(mkdtemp(folder));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static struct rotation_options usual(void) {
    return (struct rotation_options){
        .command = "test", .folder = folder, .rotate_ns = 60 * S, .flush_ns = 15 * S, .keep = 3};
}

static int names_only(const struct dirent *e) {
    return e->d_name[0] != '.';
}

// All files of the folder: "name=content name=content".
static const char *files(void) {
    static char out[4000];
    struct dirent **names;
    int count = scandir(folder, &names, names_only, alphasort);
    size_t len = 0;
    out[0] = 0;
    for (int i = 0; i < count; i++) {
        char path[400], content[100] = "";
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        FILE *f = fopen(path, "r");
        content[f ? fread(content, 1, sizeof content - 1, f) : 0] = 0;
        fclose(f);
        len += (size_t)snprintf(out + len, sizeof out - len, "%s%s=%s", i > 0 ? " " : "",
                                names[i]->d_name, content);
        free(names[i]);
    }
    free(names);
    return out;
}

static void write_file(const char *name, const char *text) {
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static bool put(struct rotation *r, const char *text, int64_t at_ns, int64_t now_ns) {
    return rotation_put(r, slice_text(text), at_ns, now_ns);
}

static void rotates(void **state) {
    (void)state;
    const struct rotation_options o = usual();
    struct rotation r;
    struct stat st;
    char path[400];
    write_file("stranger.perf.txt", "s");
    write_file("shop@host-2026-11-25T21-07-00Z.perf.txt", "of a run before");
    assert_int_equal(rotation_begin(&r, &o), EXIT_SUCCESS);
    assert_string_equal(rotation_newest(&r), "");
    rotation_of(&r, "shop@host", BEGIN);
    assert_true(put(&r, "a", BEGIN, 0));
    assert_true(put(&r, "b", BEGIN + 60 * S - 1, 0));
    assert_true(put(&r, "c", BEGIN + 60 * S, 0));
    assert_string_equal(rotation_newest(&r), "shop@host-2026-11-25T21-09-00Z.perf.txt");
    assert_true(put(&r, "d", BEGIN + 200 * S, 0)); // a part of which there is nothing has no file
    assert_true(rotation_close(&r));
    assert_string_equal(files(), "shop@host-2026-11-25T21-07-00Z.perf.txt=of a run before "
                                 "shop@host-2026-11-25T21-08-00Z.perf.txt=ab "
                                 "shop@host-2026-11-25T21-09-00Z.perf.txt=c "
                                 "shop@host-2026-11-25T21-11-00Z.perf.txt=d stranger.perf.txt=s");
    assert_true(r.written == 4 && r.made == 3 && r.first == 0);
    snprintf(path, sizeof path, "%s/%s", folder, rotation_newest(&r));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    rotation_end(&r);
}

static void keeps_the_newest(void **state) {
    (void)state;
    const struct rotation_options o = usual();
    struct rotation r;
    char path[400];
    write_file("n-2026-11-25T21-00-00Z.perf.txt", "older, and a stranger's");
    assert_int_equal(rotation_begin(&r, &o), EXIT_SUCCESS);
    rotation_of(&r, "n", BEGIN);
    for (int i = 0; i < 4; i++) {
        char text[2] = {(char)('a' + i), 0};
        assert_true(put(&r, text, BEGIN + i * 60 * S, 0));
    }
    assert_int_equal(r.first, 1);
    // somebody takes the oldest away, and another file has its name now
    snprintf(path, sizeof path, "%s/n-2026-11-25T21-09-00Z.perf.txt", folder);
    assert_int_equal(rename(path, "/dev/null/x"), -1);
    char away[420];
    snprintf(away, sizeof away, "%s/taken", folder);
    assert_int_equal(rename(path, away), 0);
    write_file("n-2026-11-25T21-09-00Z.perf.txt", "another");
    assert_true(put(&r, "e", BEGIN + 240 * S, 0));
    // and the next one is gone
    snprintf(path, sizeof path, "%s/n-2026-11-25T21-10-00Z.perf.txt", folder);
    assert_int_equal(unlink(path), 0);
    assert_true(put(&r, "f", BEGIN + 300 * S, 0));
    assert_true(put(&r, "g", BEGIN + 360 * S, 0));
    assert_true(rotation_close(&r));
    assert_string_equal(files(), "n-2026-11-25T21-00-00Z.perf.txt=older, and a stranger's "
                                 "n-2026-11-25T21-09-00Z.perf.txt=another "
                                 "n-2026-11-25T21-12-00Z.perf.txt=e "
                                 "n-2026-11-25T21-13-00Z.perf.txt=f "
                                 "n-2026-11-25T21-14-00Z.perf.txt=g taken=b");
    rotation_end(&r);
}

static void flushes(void **state) {
    (void)state;
    const struct rotation_options o = usual();
    struct rotation r;
    assert_int_equal(rotation_begin(&r, &o), EXIT_SUCCESS);
    assert_true(rotation_turn(&r, 0));
    rotation_of(&r, "n", BEGIN);
    assert_true(put(&r, "a", BEGIN, 100 * S));
    assert_true(rotation_turn(&r, 115 * S - 1));
    assert_string_equal(files(), "n-2026-11-25T21-08-00Z.perf.txt=");
    assert_true(rotation_turn(&r, 115 * S));
    assert_string_equal(files(), "n-2026-11-25T21-08-00Z.perf.txt=a");
    assert_true(put(&r, "b", BEGIN, 116 * S));
    assert_true(rotation_turn(&r, 129 * S));
    assert_string_equal(files(), "n-2026-11-25T21-08-00Z.perf.txt=a");
    assert_true(rotation_turn(&r, 130 * S));
    assert_string_equal(files(), "n-2026-11-25T21-08-00Z.perf.txt=ab");
    rotation_end(&r);
}

// What fits in part is no part of the file, and what is there stays.
static void no_room(void **state) {
    (void)state;
    const struct rotation_options o = usual();
    struct rotation r;
    struct rlimit was, little = {10000, RLIM_INFINITY};
    struct stat st;
    static char piece[3000];
    char path[400];
    memset(piece, 'x', sizeof piece - 1);
    assert_int_equal(rotation_begin(&r, &o), EXIT_SUCCESS);
    rotation_of(&r, "n", BEGIN);
    assert_true(put(&r, piece, BEGIN, 0) && put(&r, piece, BEGIN, 0));
    assert_true(rotation_turn(&r, 15 * S));
    assert_true(put(&r, piece, BEGIN, 15 * S) && put(&r, piece, BEGIN, 15 * S));
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &was);
    little.rlim_max = was.rlim_max;
    setrlimit(RLIMIT_FSIZE, &little);
    bool written = rotation_turn(&r, 30 * S);
    setrlimit(RLIMIT_FSIZE, &was);
    assert_false(written);
    assert_false(put(&r, piece, BEGIN + 60 * S, 30 * S)); // it stays failed, and tells it once
    assert_false(rotation_turn(&r, 60 * S));
    assert_false(rotation_close(&r));
    assert_true(r.written == 2 && r.made == 1);
    snprintf(path, sizeof path, "%s/%s", folder, rotation_newest(&r));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 2 * (sizeof piece - 1));
    rotation_end(&r);
}

static void much(void **state) {
    (void)state;
    const struct rotation_options o = usual();
    struct rotation r;
    static char piece[100000];
    memset(piece, 'x', sizeof piece - 1);
    assert_int_equal(rotation_begin(&r, &o), EXIT_SUCCESS);
    rotation_of(&r, "n", BEGIN);
    for (int i = 0; i < 100; i++) {
        assert_true(put(&r, piece, BEGIN, 0));
        assert_in_range(r.text.len, 0, sizeof piece + (1 << 16));
    }
    assert_true(rotation_close(&r));
    assert_true(r.size == 100 * (int64_t)(sizeof piece - 1) && r.written == 100);
    rotation_end(&r);
}

static void refused(void **state) {
    (void)state;
    struct rotation_options o = usual();
    struct rotation r;
    char path[400];
    // a file that is there is nobody's to be written to
    write_file("n-2026-11-25T21-08-00Z.perf.txt", "a stranger's");
    assert_int_equal(rotation_begin(&r, &o), EXIT_SUCCESS);
    rotation_of(&r, "n", BEGIN);
    assert_false(put(&r, "a", BEGIN, 0));
    assert_false(rotation_close(&r));
    rotation_end(&r);
    assert_string_equal(files(), "n-2026-11-25T21-08-00Z.perf.txt=a stranger's");
    // a link is followed nowhere
    snprintf(path, sizeof path, "%s/n-2026-11-25T21-09-00Z.perf.txt", folder);
    assert_int_equal(symlink("/tmp/kprof_test_nowhere", path), 0);
    assert_int_equal(rotation_begin(&r, &o), EXIT_SUCCESS);
    rotation_of(&r, "n", BEGIN + 60 * S);
    assert_false(put(&r, "a", BEGIN + 60 * S, 0));
    rotation_end(&r);
    assert_int_equal(access("/tmp/kprof_test_nowhere", F_OK), -1);
    // no folder
    snprintf(path, sizeof path, "%s/a/b", folder);
    o.folder = path;
    assert_int_equal(rotation_begin(&r, &o), EXIT_FAILURE);
    rotation_end(&r);
    snprintf(path, sizeof path, "%s/n-2026-11-25T21-08-00Z.perf.txt", folder);
    assert_int_equal(rotation_begin(&r, &o), EXIT_FAILURE);
    rotation_end(&r);
    // one that can be made is
    snprintf(path, sizeof path, "%s/new", folder);
    assert_int_equal(rotation_begin(&r, &o), EXIT_SUCCESS);
    rotation_end(&r);
    assert_int_equal(access(path, W_OK), 0);
}

// A node's name becomes no path, and no hidden file.
static void names(void **state) {
    (void)state;
    const struct rotation_options o = usual();
    struct rotation r;
    const char *const nodes[] = {"../../x", ".x", "a b\n\x1b[2J", ""};
    char long_name[400];
    memset(long_name, 'l', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(rotation_begin(&r, &o), EXIT_SUCCESS);
        rotation_of(&r, i < 4 ? nodes[i] : long_name, BEGIN);
        assert_true(put(&r, "t", BEGIN, 0));
        assert_true(rotation_close(&r));
        if (i == 4) {
            assert_int_equal(strlen(rotation_newest(&r)),
                             ROTATION_NODE_BYTES - 1 + strlen("-2026-11-25T21-08-00Z.perf.txt"));
            assert_int_equal(unlinkat(r.folder, rotation_newest(&r), 0), 0);
        }
        rotation_end(&r);
    }
    assert_string_equal(files(), "_._.._x-2026-11-25T21-08-00Z.perf.txt=t "
                                 "_x-2026-11-25T21-08-00Z.perf.txt=t "
                                 "a_b___2J-2026-11-25T21-08-00Z.perf.txt=t "
                                 "node-2026-11-25T21-08-00Z.perf.txt=t");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rotates, setup, teardown),
        cmocka_unit_test_setup_teardown(keeps_the_newest, setup, teardown),
        cmocka_unit_test_setup_teardown(flushes, setup, teardown),
        cmocka_unit_test_setup_teardown(no_room, setup, teardown),
        cmocka_unit_test_setup_teardown(much, setup, teardown),
        cmocka_unit_test_setup_teardown(refused, setup, teardown),
        cmocka_unit_test_setup_teardown(names, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
