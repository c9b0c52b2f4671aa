// SPDX-License-Identifier: Apache-2.0
#include "net/secret.h"

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

static bool take(int fd, const char *path, struct secret *out, char *why) {
    uint8_t bytes[LIMIT_SECRET_BYTES + 3]; // and a newline, and one byte to see that it is too long
    struct stat st;
    bool good = false;
    ssize_t len = -1;
    if (fstat(fd, &st) != 0) {
        snprintf(why, SECRET_ERROR_BYTES, "%s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        snprintf(why, SECRET_ERROR_BYTES, "%s: not a file", path);
    } else if (st.st_mode & S_IRWXO) {
        snprintf(why, SECRET_ERROR_BYTES,
                 "%s: mode %03o opens the secret to everybody on this machine; chmod 600 it", path,
                 (unsigned)st.st_mode & 0777);
    } else if ((len = read_all(fd, bytes, sizeof bytes)) < 0) {
        snprintf(why, SECRET_ERROR_BYTES, "%s: %s", path, strerror(errno));
    } else {
        while (len > 0 && (bytes[len - 1] == '\n' || bytes[len - 1] == '\r')) {
            len--;
        }
        good = len >= LIMIT_SECRET_LEAST && len <= LIMIT_SECRET_BYTES;
        if (len == 0) {
            snprintf(why, SECRET_ERROR_BYTES,
                     "%s: the file is empty; make a secret with: openssl rand -hex 32", path);
        } else if (!good) {
            snprintf(
                why, SECRET_ERROR_BYTES,
                "%s: a secret has %d to %d bytes, this one %s; make one with: openssl rand -hex 32",
                path, LIMIT_SECRET_LEAST, LIMIT_SECRET_BYTES,
                len < LIMIT_SECRET_LEAST ? "fewer" : "more");
        } else {
            memcpy(out->bytes, bytes, (size_t)len);
            out->len = (size_t)len;
        }
    }
    OPENSSL_cleanse(bytes, sizeof bytes);
    return good;
}

bool secret_read(const char *path, struct secret *out, char why[SECRET_ERROR_BYTES]) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a fifo must not make us wait
    if (fd < 0) {
        snprintf(why, SECRET_ERROR_BYTES, "%s: %s", path, strerror(errno));
        return false;
    }
    bool good = take(fd, path, out, why);
    close(fd);
    return good;
}

void secret_clear(struct secret *s) {
    OPENSSL_cleanse(s, sizeof *s);
}
