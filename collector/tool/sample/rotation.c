// SPDX-License-Identifier: Apache-2.0
#include "tool/sample/rotation.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text_time.h"
#include "tool/command.h"

struct rotation_file {
    char name[ROTATION_NAME_BYTES];
    dev_t device;
    ino_t inode;
};

// Text that waits at most, but for one piece; and so much is missing where a disk is full.
enum { WAITING_BYTES = 1 << 16 };

static bool fail(struct rotation *r, const char *what, const char *name, int error) {
    if (!r->failed) {
        command_fail(r->o->command, EXIT_FAILURE, "cannot %s %s%s%s: %s", what, r->o->folder,
                     name[0] ? "/" : "", name, strerror(error));
    }
    r->failed = true;
    return false;
}

int rotation_begin(struct rotation *r, const struct rotation_options *o) {
    *r = (struct rotation){.o = o, .folder = -1, .file = -1};
    r->text = buffer_make(WAITING_BYTES + ROTATION_PIECE_BYTES);
    r->files = calloc(o->keep, sizeof *r->files);
    if (!r->files) {
        return command_fail(o->command, EXIT_FAILURE, "no memory");
    }
    if (mkdir(o->folder, 0700) != 0 && errno != EEXIST) {
        fail(r, "make", "", errno);
        return EXIT_FAILURE;
    }
    r->folder = open(o->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->folder < 0 || faccessat(r->folder, ".", W_OK | X_OK, 0) != 0) {
        fail(r, "write to", "", errno);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

void rotation_of(struct rotation *r, const char *node, int64_t begin_ns) {
    snprintf(r->node, sizeof r->node, "%s", node[0] ? node : "node");
    for (char *c = r->node; *c; c++) { // a name of a file, and none that is hidden
        bool plain = isalnum((unsigned char)*c) || strchr("_@-", *c) || (*c == '.' && c != r->node);
        *c = plain ? *c : '_';
    }
    r->begin_ns = begin_ns;
}

// -- files ----------------------------------------------------------------------------------------

static struct rotation_file *file_at(const struct rotation *r, uint64_t n) {
    return &r->files[n % r->o->keep];
}

const char *rotation_newest(const struct rotation *r) {
    return r->made > 0 ? file_at(r, r->made - 1)->name : "";
}

// Writes what waits. What fits in part only is taken back: the file keeps whole pieces.
static bool write_text(struct rotation *r) {
    const uint8_t *at = r->text.data;
    for (size_t left = r->text.len; left > 0;) {
        ssize_t n = write(r->file, at, left);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            int error = n < 0 ? errno : ENOSPC;
            (void)!ftruncate(r->file, r->size);
            return fail(r, "write", rotation_newest(r), error);
        }
        at += n;
        left -= (size_t)n;
    }
    r->size += (int64_t)r->text.len;
    r->written += r->waiting;
    r->waiting = 0;
    buffer_reset(&r->text);
    return true;
}

static bool flush(struct rotation *r) {
    return write_text(r) &&
           (fdatasync(r->file) == 0 || fail(r, "write", rotation_newest(r), errno));
}

bool rotation_close(struct rotation *r) {
    bool ok = r->file < 0 || (!r->failed && flush(r));
    if (r->file >= 0 && close(r->file) != 0 && ok) {
        ok = fail(r, "write", rotation_newest(r), errno);
    }
    r->file = -1;
    return ok && !r->failed;
}

// Removes the oldest one, if it still is what was made; somebody else may have taken it away.
static bool remove_oldest(struct rotation *r) {
    const struct rotation_file *f = file_at(r, r->first);
    struct stat st;
    bool ours = fstatat(r->folder, f->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                st.st_dev == f->device && st.st_ino == f->inode;
    if (ours && unlinkat(r->folder, f->name, 0) != 0 && errno != ENOENT) {
        return fail(r, "remove", f->name, errno);
    }
    r->first++;
    return true;
}

// The time of a name has no colons: not every system takes these.
static void name_of(const struct rotation *r, int64_t part, char out[ROTATION_NAME_BYTES]) {
    char time[TEXT_TIME_BYTES];
    text_time_format(r->begin_ns + part * r->o->rotate_ns, false, time);
    for (char *c = time; *c; c++) {
        *c = *c == ':' ? '-' : *c;
    }
    snprintf(out, ROTATION_NAME_BYTES, "%s-%s.perf.txt", r->node, time);
}

static bool make_file(struct rotation *r, int64_t part, int64_t now_ns) {
    struct stat st;
    if (r->made - r->first == r->o->keep && !remove_oldest(r)) {
        return false;
    }
    struct rotation_file *f = file_at(r, r->made);
    name_of(r, part, f->name);
    r->file = openat(r->folder, f->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (r->file < 0 || fstat(r->file, &st) != 0) {
        return fail(r, "make", f->name, errno);
    }
    f->device = st.st_dev;
    f->inode = st.st_ino;
    r->made++;
    r->part = part;
    r->size = 0;
    r->flushed_ns = now_ns;
    return true;
}

// -- pieces ---------------------------------------------------------------------------------------

bool rotation_put(struct rotation *r, struct slice piece, int64_t at_ns, int64_t now_ns) {
    int64_t part = at_ns > r->begin_ns ? (at_ns - r->begin_ns) / r->o->rotate_ns : 0;
    if (r->file >= 0 && part != r->part && !rotation_close(r)) {
        return false;
    }
    if (r->failed || (r->file < 0 && !make_file(r, part, now_ns))) {
        return false;
    }
    if (!buffer_append(&r->text, piece.data, piece.len)) {
        return fail(r, "write", rotation_newest(r), ENOMEM);
    }
    r->waiting++;
    return r->text.len < WAITING_BYTES || write_text(r);
}

bool rotation_turn(struct rotation *r, int64_t now_ns) {
    if (r->file >= 0 && !r->failed && now_ns - r->flushed_ns >= r->o->flush_ns) {
        r->flushed_ns = now_ns;
        flush(r);
    }
    return !r->failed;
}

void rotation_end(struct rotation *r) {
    if (r->file >= 0) {
        close(r->file);
    }
    if (r->folder >= 0) {
        close(r->folder);
    }
    buffer_free(&r->text);
    free(r->files);
    *r = (struct rotation){.folder = -1, .file = -1};
}
