// SPDX-License-Identifier: Apache-2.0
#include "net/secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

static char path[64];

static int setup(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/kprof-secret.XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    return unlink(path);
}

static bool reads(const void *bytes, size_t n, mode_t mode, struct secret *out, char *why) {
    int fd = open(path, O_WRONLY | O_TRUNC);
    assert_true(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    close(fd);
    assert_int_equal(chmod(path, mode), 0);
    return secret_read(path, out, why);
}

static void good(void **state) {
    (void)state;
    struct secret s;
    char why[SECRET_ERROR_BYTES];
    static const mode_t modes[] = {0600, 0400, 0640, 0440};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_true(reads("0123456789abcdef", 16, modes[i] | 0200, &s, why));
        assert_true(slice_is(secret_slice(&s), "0123456789abcdef"));
    }
    assert_true(
        reads("0123456789 abcdef\r\n\n", 20, 0600, &s, why)); // newlines at the end do not count
    assert_true(slice_is(secret_slice(&s), "0123456789 abcdef"));
    assert_true(reads("0123\0\xff\n6789abcde ", 16, 0600, &s, why)); // all other bytes do
    assert_true(slice_equal(secret_slice(&s), slice_of("0123\0\xff\n6789abcde ", 16)));
    uint8_t most[LIMIT_SECRET_BYTES + 2];
    memset(most, 'x', sizeof most);
    most[LIMIT_SECRET_BYTES] = most[LIMIT_SECRET_BYTES + 1] = '\n';
    assert_true(reads(most, sizeof most, 0600, &s, why));
    assert_int_equal(s.len, LIMIT_SECRET_BYTES);
    secret_clear(&s);
    assert_int_equal(s.len, 0);
    assert_int_equal(s.bytes[0], 0);
}

static void bad(void **state) {
    (void)state;
    uint8_t many[LIMIT_SECRET_BYTES + 10];
    memset(many, 'x', sizeof many);
    const struct {
        const void *bytes;
        size_t n;
        mode_t mode;
        const char *why;
    } cases[] = {
        {"", 0, 0600, ": the file is empty; make a secret with: openssl rand -hex 32"},
        {"\n\r\n", 3, 0600, ": the file is empty; make a secret with: openssl rand -hex 32"},
        {"0123456789abcde\n", 16, 0600,
         ": a secret has 16 to 1024 bytes, this one fewer; make one with: openssl rand -hex 32"},
        {many, LIMIT_SECRET_BYTES + 1, 0600,
         ": a secret has 16 to 1024 bytes, this one more; make one with: openssl rand -hex 32"},
        {many, sizeof many, 0600,
         ": a secret has 16 to 1024 bytes, this one more; make one with: openssl rand -hex 32"},
        {"0123456789abcdef", 16, 0644,
         ": mode 644 opens the secret to everybody on this machine; chmod 600 it"},
        {"0123456789abcdef", 16, 0602,
         ": mode 602 opens the secret to everybody on this machine; chmod 600 it"},
        {"0123456789abcdef", 16, 0601,
         ": mode 601 opens the secret to everybody on this machine; chmod 600 it"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct secret s = {.len = 99};
        char why[SECRET_ERROR_BYTES], expected[SECRET_ERROR_BYTES];
        snprintf(expected, sizeof expected, "%s%s", path, cases[i].why);
        assert_false(reads(cases[i].bytes, cases[i].n, cases[i].mode | 0200, &s, why));
        assert_string_equal(why, expected);
        assert_int_equal(s.len, 99); // untouched
        assert_null(strstr(why, "01234"));
    }
}

static void passwords(void **state) {
    (void)state;
    struct secret s;
    char why[SECRET_ERROR_BYTES], bytes[LIMIT_EXPORT_PASSWORD_BYTES + 1];
    char password[LIMIT_EXPORT_PASSWORD_BYTES + 1];
    assert_false(reads("short\n", 6, 0600, &s, why)); // which a secret may not be
    assert_true(secret_read_password(path, password, why));
    assert_string_equal(password, "short");
    memset(bytes, 'x', sizeof bytes);
    reads(bytes, sizeof bytes - 1, 0600, &s, why);
    assert_true(secret_read_password(path, password, why));
    assert_int_equal(strlen(password), LIMIT_EXPORT_PASSWORD_BYTES);
    reads(bytes, sizeof bytes, 0600, &s, why);
    assert_false(secret_read_password(path, password, why));
    assert_non_null(strstr(why, ": a password has 1 to 256 bytes, this one more"));
    reads("ab\r\nX-Word: c", 14, 0600, &s, why); // it goes into a header
    assert_false(secret_read_password(path, password, why));
    assert_non_null(strstr(why, ": a password has no control bytes"));
    reads("\n", 1, 0600, &s, why);
    assert_false(secret_read_password(path, password, why));
    assert_non_null(strstr(why, ": the file is empty"));
    reads("short", 5, 0644, &s, why);
    assert_false(secret_read_password(path, password, why));
    assert_non_null(strstr(why, "opens the password to everybody"));
}

static void headers(void **state) {
    (void)state;
    struct secret s;
    char why[SECRET_ERROR_BYTES], text[LIMIT_OTLP_HEADERS_BYTES + 1];
    static char bytes[LIMIT_OTLP_HEADERS_BYTES + 2];
    reads("A: b\r\nC: d\n\n", 12, 0600, &s, why);
    assert_true(secret_read_headers(path, text, why));
    assert_string_equal(text, "A: b\r\nC: d");
    memset(bytes, 'x', sizeof bytes);
    reads(bytes, LIMIT_OTLP_HEADERS_BYTES, 0600, &s, why);
    assert_true(secret_read_headers(path, text, why));
    assert_int_equal(strlen(text), LIMIT_OTLP_HEADERS_BYTES);
    reads(bytes, LIMIT_OTLP_HEADERS_BYTES + 1, 0600, &s, why);
    assert_false(secret_read_headers(path, text, why));
    assert_string_equal(text, "");
    assert_non_null(strstr(why, ": a headers file has 1 to 8192 bytes, this one more"));
    static const char *const bad[] = {"A: b\tc", "A: b\0c", "A: \033cd"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        reads(bad[i], 6, 0600, &s, why);
        assert_false(secret_read_headers(path, text, why));
        assert_non_null(strstr(why, ": a headers file has no control bytes"));
    }
    reads("A: b", 4, 0604, &s, why);
    assert_false(secret_read_headers(path, text, why));
    assert_non_null(strstr(why, "mode 604 opens the headers file to everybody"));
}

static void no_file(void **state) {
    (void)state;
    struct secret s;
    char why[SECRET_ERROR_BYTES];
    assert_false(secret_read("/nowhere/secret", &s, why));
    assert_string_equal(why, "/nowhere/secret: No such file or directory");
    assert_false(secret_read("/tmp", &s, why));
    assert_string_equal(why, "/tmp: not a file");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0); // does not wait for a writer
    assert_false(secret_read(path, &s, why));
    assert_non_null(strstr(why, "not a file"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(good, setup, teardown),
                                       cmocka_unit_test_setup_teardown(bad, setup, teardown),
                                       cmocka_unit_test_setup_teardown(passwords, setup, teardown),
                                       cmocka_unit_test_setup_teardown(headers, setup, teardown),
                                       cmocka_unit_test_setup_teardown(no_file, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
