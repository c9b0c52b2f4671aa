// SPDX-License-Identifier: Apache-2.0
#include "net/secret.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Reads at most n bytes. Returns how many there are, or -1 with errno.
static ssize_t read_all(int fd, uint8_t *to, size_t n) {
    size_t have = 0;
    while (have < n) {
        ssize_t got = read(fd, to + have, n - have);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return got < 0 ? -1 : (ssize_t)have;
        }
        have += (size_t)got;
    }
    return (ssize_t)have;
}

// What a file is to hold.
struct wanted {
    const char *what; // in words
    size_t least, most;
    const char *make, *empty; // how to make one, behind what is wrong
    const char *controls;     // control bytes that may be in it; NULL: all of them
};
static const struct wanted a_secret = {"secret",
                                       LIMIT_SECRET_LEAST,
                                       LIMIT_SECRET_BYTES,
                                       "; make one with: openssl rand -hex 32",
                                       "; make a secret with: openssl rand -hex 32",
                                       NULL};
static const struct wanted a_password = {"password", 1, LIMIT_EXPORT_PASSWORD_BYTES, "", "", ""};
static const struct wanted headers = {"headers file", 1, LIMIT_OTLP_HEADERS_BYTES, "", "", "\r\n"};
enum { MOST_BYTES = LIMIT_OTLP_HEADERS_BYTES };
_Static_assert(LIMIT_SECRET_BYTES <= MOST_BYTES && LIMIT_EXPORT_PASSWORD_BYTES <= MOST_BYTES,
               "nothing is longer");

static bool has_controls(const uint8_t *bytes, size_t len, const char *but) {
    for (size_t i = 0; i < len; i++) {
        if (iscntrl(bytes[i]) && (bytes[i] == 0 || !strchr(but, bytes[i]))) {
            return true;
        }
    }
    return false;
}

// to has room for w->most bytes.
static bool take(int fd, const char *path, const struct wanted *w, uint8_t *to, size_t *to_len,
                 char *why) {
    uint8_t bytes[MOST_BYTES + 3]; // and a newline, and one byte to see that it is too long
    struct stat st;
    bool good = false;
    ssize_t len = -1;
    if (fstat(fd, &st) != 0) {
        snprintf(why, SECRET_ERROR_BYTES, "%s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        snprintf(why, SECRET_ERROR_BYTES, "%s: not a file", path);
    } else if (st.st_mode & S_IRWXO) {
        snprintf(why, SECRET_ERROR_BYTES,
                 "%s: mode %03o opens the %s to everybody on this machine; chmod 600 it", path,
                 (unsigned)st.st_mode & 0777, w->what);
    } else if ((len = read_all(fd, bytes, sizeof bytes)) < 0) {
        snprintf(why, SECRET_ERROR_BYTES, "%s: %s", path, strerror(errno));
    } else {
        while (len > 0 && (bytes[len - 1] == '\n' || bytes[len - 1] == '\r')) {
            len--;
        }
        bool fits = (size_t)len >= w->least && (size_t)len <= w->most;
        good = fits && !(w->controls && has_controls(bytes, (size_t)len, w->controls));
        if (len == 0) {
            snprintf(why, SECRET_ERROR_BYTES, "%s: the file is empty%s", path, w->empty);
        } else if (!fits) {
            snprintf(why, SECRET_ERROR_BYTES, "%s: a %s has %zu to %zu bytes, this one %s%s", path,
                     w->what, w->least, w->most, (size_t)len < w->least ? "fewer" : "more",
                     w->make);
        } else if (!good) {
            snprintf(why, SECRET_ERROR_BYTES, "%s: a %s has no control bytes", path, w->what);
        } else {
            memcpy(to, bytes, (size_t)len);
            *to_len = (size_t)len;
        }
    }
    OPENSSL_cleanse(bytes, sizeof bytes);
    return good;
}

static bool read_file(const char *path, const struct wanted *w, uint8_t *to, size_t *len,
                      char *why) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a fifo must not make us wait
    if (fd < 0) {
        snprintf(why, SECRET_ERROR_BYTES, "%s: %s", path, strerror(errno));
        return false;
    }
    bool good = take(fd, path, w, to, len, why);
    close(fd);
    return good;
}

bool secret_read(const char *path, struct secret *out, char why[SECRET_ERROR_BYTES]) {
    return read_file(path, &a_secret, out->bytes, &out->len, why);
}

bool secret_read_password(const char *path, char out[LIMIT_EXPORT_PASSWORD_BYTES + 1],
                          char why[SECRET_ERROR_BYTES]) {
    size_t len;
    bool good = read_file(path, &a_password, (uint8_t *)out, &len, why);
    if (good) {
        out[len] = 0;
    }
    return good;
}

bool secret_read_headers(const char *path, char out[LIMIT_OTLP_HEADERS_BYTES + 1],
                         char why[SECRET_ERROR_BYTES]) {
    size_t len = 0;
    bool good = read_file(path, &headers, (uint8_t *)out, &len, why);
    out[len] = 0;
    return good;
}

void secret_clear(struct secret *s) {
    OPENSSL_cleanse(s, sizeof *s);
}
