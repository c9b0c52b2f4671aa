// SPDX-License-Identifier: Apache-2.0
// The file with the nodes' cookie: what is read of it, whose it may be, and what is said of it.
#include "dist/cookie.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

static char path[64], cookie[COOKIE_BYTES], warning[COOKIE_WARNING_BYTES];
static struct dist_error e;

static int setup(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/kprof-cookie.XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 || close(fd) != 0;
}

static int teardown(void **state) {
    (void)state;
    return unlink(path);
}

static bool reads(const char *text, mode_t mode) {
    assert_int_equal(chmod(path, 0600), 0);
    int fd = open(path, O_WRONLY | O_TRUNC);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    assert_int_equal(chmod(path, mode), 0);
    return cookie_read(path, cookie, warning, &e);
}

static void words(void **state) {
    (void)state;
    assert_true(reads("secret", 0400));
    assert_string_equal(cookie, "secret");
    assert_true(reads("secret\r\n\n", 0600));
    assert_string_equal(cookie, "secret");
    assert_string_equal(warning, "");
    static const char *const none[] = {"", "\n", "two words", "tab\tbed", "caf\xc3\x07"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_false(reads(none[i], 0600));
        assert_int_equal(e.status, DIST_COOKIE);
    }
}

static void modes(void **state) {
    static const mode_t readable[] = {0644, 0640, 0604, 0444, 0755},
                        writable[] = {0666, 0620, 0602, 0664, 0777};
    (void)state;
    for (size_t i = 0; i < sizeof readable / sizeof *readable; i++) {
        char mode[16];
        snprintf(mode, sizeof mode, "(mode %03o)", (unsigned)readable[i]);
        assert_true(reads("secret", readable[i]));
        assert_string_equal(cookie, "secret");
        assert_non_null(strstr(warning, "can be read by others than its owner"));
        assert_non_null(strstr(warning, mode));
    }
    for (size_t i = 0; i < sizeof writable / sizeof *writable; i++) {
        assert_false(reads("secret", writable[i]));
        assert_int_equal(e.status, DIST_COOKIE);
        assert_non_null(strstr(e.text, "can be written by others than its owner"));
    }
    assert_true(reads("secret", 0600));
    assert_string_equal(warning, ""); // nothing is left of the one before
    assert_false(cookie_read("/tmp", cookie, warning, &e));
    assert_non_null(strstr(e.text, "is no file"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(words), cmocka_unit_test(modes)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
