// SPDX-License-Identifier: Apache-2.0
#include "dist/cookie.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool owners(int fd, const char *file, char warning[COOKIE_WARNING_BYTES],
                   struct dist_error *e) {
    struct stat s;
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode)) {
        return dist_fail(e, DIST_COOKIE, "the cookie file %s is no file", file);
    }
    if (s.st_mode & (S_IWGRP | S_IWOTH)) {
        return dist_fail(
            e, DIST_COOKIE,
            "the cookie file %s can be written by others than its owner (mode %03o): chmod 400 it",
            file, s.st_mode & 0777);
    }
    if (s.st_mode & (S_IRWXG | S_IRWXO)) {
        snprintf(
            warning, COOKIE_WARNING_BYTES,
            "the cookie file %.300s can be read by others than its owner (mode %03o): chmod 400 it",
            file, s.st_mode & 0777);
    }
    return true;
}

// One word, whatever newline an editor left behind it.
static bool read_word(int fd, const char *file, char out[COOKIE_BYTES], struct dist_error *e) {
    ssize_t n = read(fd, out, COOKIE_BYTES);
    if (n < 0) {
        return dist_fail(e, DIST_COOKIE, "cannot read the cookie file %s: %s", file,
                         strerror(errno));
    }
    while (n > 0 && (out[n - 1] == '\n' || out[n - 1] == '\r')) {
        n--;
    }
    if (n == 0 || n >= COOKIE_BYTES) {
        return dist_fail(e, DIST_COOKIE, "the cookie file %s %s", file,
                         n == 0 ? "is empty" : "is too long for a cookie");
    }
    out[n] = 0;
    for (const char *p = out; p < out + n; p++) {
        if (*p <= ' ' || *p == 127) {
            return dist_fail(e, DIST_COOKIE, "the cookie file %s holds more than one word of ASCII",
                             file);
        }
    }
    return true;
}

bool cookie_read(const char *file, char out[COOKIE_BYTES], char warning[COOKIE_WARNING_BYTES],
                 struct dist_error *e) {
    char own[PATH_MAX];
    warning[0] = 0;
    if (!file) {
        const char *home = getenv("HOME");
        snprintf(own, sizeof own, "%s/.erlang.cookie", home ? home : "");
        file = own;
    }
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return dist_fail(e, DIST_COOKIE, "cannot read the cookie file %s: %s%s", file,
                         strerror(errno), file == own ? "; --cookie-file names another one" : "");
    }
    bool good = owners(fd, file, warning, e) && read_word(fd, file, out, e);
    close(fd);
    return good;
}
