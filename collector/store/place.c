// SPDX-License-Identifier: Apache-2.0
// Whether the database still stands where it was opened: files get moved, removed and cut by people
// while a collector writes them. SQLite goes on with the files that it has open, and would write
// into what nobody sees, or mix a log into a file that it is not of.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "internal.h"

enum { WAL_HEADER = 32, WAL_FRAME_HEADER = 24 };
static const uint32_t WAL_MAGIC = 0x377f0682; // with the last bit set or not

static char *beside(const char *path, const char *suffix, char out[STORE_PATH_BYTES]) {
    stpcpy(stpcpy(out, path), suffix); // store_open leaves room for the suffix
    return out;
}

static bool same_file(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

// -- locks ----------------------------------------------------------------------------------------

// The process that has the lock on the file, by one look at what the kernel lists; 0 if it is not
// there.
static long listed_holder(ino_t file) {
    char line[256];
    long holder = 0;
    FILE *locks = fopen("/proc/locks", "re");
    while (locks && holder == 0 && fgets(line, sizeof line, locks)) {
        long pid;
        uintmax_t inode;
        // "1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF"; the devices of some file systems are
        //                      not those that stat tells
        // NOLINTNEXTLINE(cert-err34-c): the kernel wrote the numbers
        if (sscanf(line, "%*d: FLOCK %*s WRITE %ld %*x:%*x:%ju", &pid, &inode) == 2 &&
            inode == file) {
            holder = pid;
        }
    }
    if (locks) {
        fclose(locks);
    }
    return holder;
}

// The kernel hands its list out in pieces and counts on where it was. Where locks before that went
// meanwhile, some are left out: of 5,500 looks beside two processes that did nothing but lock, 37.
long place_holder(int fd) {
    enum { LOOKS = 8 };
    struct stat st;
    long holder = 0;
    for (int i = 0; i < LOOKS && holder == 0 && fstat(fd, &st) == 0; i++) {
        holder = listed_holder(st.st_ino);
    }
    return holder;
}

int place_lock(const struct store *s, long *holder) {
    char path[STORE_PATH_BYTES];
    struct stat there, ours;
    *holder = 0;
    for (;;) {
        int fd = open(beside(s->path, "-lock", path), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0) {
            return -1;
        }
        if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
            int error = errno;
            *holder = place_holder(fd);
            close(fd);
            errno = error;
            return -1;
        }
        if (fstat(fd, &ours) == 0 && stat(path, &there) == 0 && same_file(&ours, &there)) {
            return fd;
        }
        close(fd); // whoever had it before has removed it meanwhile
    }
}

void place_unlock(struct store *s) {
    char path[STORE_PATH_BYTES];
    struct stat there, ours;
    if (s->lock_beside >= 0) {
        beside(s->path, "-lock", path);
        if (fstat(s->lock_beside, &ours) == 0 && stat(path, &there) == 0 &&
            same_file(&ours, &there)) {
            unlink(path);
        }
        close(s->lock_beside);
        s->lock_beside = -1;
    }
}

// -- the file itself ------------------------------------------------------------------------------

// Whether somebody has cut the file or written over its start. It gets shorter by VACUUM, too: then
// its header tells fewer pages. And while another process copies the log into it, it may have fewer
// than the header tells: then it does not get shorter.
static bool is_cut(struct store *s, const struct stat *st) {
    uint8_t header[HEADER_BYTES];
    if (pread(s->lock, header, sizeof header, 0) < (ssize_t)sizeof header) {
        return st->st_size < (off_t)sizeof header;
    }
    bool shorter = st->st_size < s->file_bytes;
    if (!store_header_is_ours(header) ||
        (shorter && st->st_size < store_header_number(header, HEADER_PAGES) * s->page_bytes)) {
        return true;
    }
    s->file_bytes = st->st_size;
    return false;
}

// -- the write-ahead log --------------------------------------------------------------------------

// SQLite has no lock on this file that closing a descriptor of it could take away.
static enum store_place look_at_wal(struct store *s) {
    char path[STORE_PATH_BYTES];
    uint8_t header[WAL_HEADER] = {0};
    struct stat st;
    int fd = open(beside(s->file, "-wal", path), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return s->wal_pages > 0 && errno == ENOENT ? STORE_WAL_GONE : STORE_IN_PLACE;
    }
    enum store_place place = STORE_IN_PLACE;
    if (fstat(fd, &st) != 0) {
        place = STORE_IN_PLACE;
    } else if (s->has_wal && !same_file(&st, &s->wal)) {
        place = STORE_WAL_GONE;
    } else if (s->wal_pages > 0) {
        struct cursor c = cursor_of(header, sizeof header);
        ssize_t got = pread(fd, header, sizeof header, 0);
        bool cut = st.st_size < WAL_HEADER + s->wal_pages * (s->page_bytes + WAL_FRAME_HEADER) ||
                   (got >= 0 && (cursor_u32(&c) | 1) != (WAL_MAGIC | 1));
        place = cut ? STORE_WAL_CUT : STORE_IN_PLACE;
        s->wal = st;
        s->has_wal = true;
    }
    close(fd);
    return place;
}

// Pages of the log from which on they are copied into the file after a commit, as SQLite would do;
// and how long that waits for those who read what was before. As long as one of them does, nothing
// of the log's start may be written over: readers that relieve each other without a pause would
// have it grow for ever. Whoever begins to read meanwhile holds up nothing.
static const struct log_step {
    int pages, wait_ms;
} log_steps[] = {{16000, STORE_BUSY_MS}, {4000, 200}, {1000, 0}};

// After each commit: how many pages the log holds now.
static int on_commit(void *context, sqlite3 *db, const char *name, int pages) {
    struct store *s = context;
    const struct log_step *step = log_steps, *end = step + sizeof log_steps / sizeof *log_steps;
    s->wal_pages = pages;
    while (step < end && pages < step->pages) {
        step++;
    }
    // of a log that was cut nothing may be copied
    if (step < end && look_at_wal(s) == STORE_IN_PLACE) {
        sqlite3_busy_timeout(db, step->wait_ms);
        sqlite3_wal_checkpoint_v2(
            db, name, step->wait_ms > 0 ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE,
            NULL, NULL);
        sqlite3_busy_timeout(db, STORE_BUSY_MS);
    }
    return SQLITE_OK;
}

void place_watch(struct store *s) {
    struct stat st;
    const char *file =
        sqlite3_db_filename(s->db, "main"); // behind symbolic links, where SQLite has the log
    snprintf(s->file, sizeof s->file, "%s",
             file && strlen(file) < sizeof s->file - sizeof "-lock" ? file : s->path);
    s->file_bytes = fstat(s->lock, &st) == 0 ? st.st_size : 0;
    s->wal_pages = 0;
    s->has_wal = false;
    s->page_bytes = store_integer(s, "PRAGMA page_size", 0);
    sqlite3_wal_hook(s->db, on_commit, s);
}

enum store_place store_look(struct store *s) {
    struct stat ours, there;
    if (!s->db) {
        return STORE_CLOSED;
    }
    if (fstat(s->lock, &ours) != 0) {
        return STORE_IN_PLACE;
    }
    if (stat(s->path, &there) != 0) {
        // what cannot be looked at for another reason (a folder that may not be read any more) may
        // well be there
        return errno == ENOENT || errno == ENOTDIR
                   ? (ours.st_nlink == 0 ? STORE_REMOVED : STORE_MOVED)
                   : STORE_IN_PLACE;
    }
    if (!same_file(&ours, &there)) {
        return ours.st_nlink == 0 ? STORE_REMOVED : STORE_MOVED;
    }
    return is_cut(s, &ours) ? STORE_CUT : look_at_wal(s);
}

// Whether a file beside the database is the one that this was.
static bool is_still(const struct store *s, const char *suffix, const struct stat *before) {
    char path[STORE_PATH_BYTES];
    struct stat st;
    return stat(beside(s->file, suffix, path), &st) == 0 && same_file(&st, before);
}

void store_leave(struct store *s, enum store_place place) {
    char path[STORE_PATH_BYTES];
    struct stat index;
    bool ours = s->has_wal && is_still(s, "-wal", &s->wal),
         indexed = stat(beside(s->file, "-shm", path), &index) == 0;
    if (place == STORE_WAL_CUT || place == STORE_CUT) {
        // Pages of the log, or those that they belong to, are no more. None of them may get into
        // the file.
        sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    } else {
        // What is in the log goes into the file that it is of, wherever that is, and not into
        // another one that stands at the path.
        sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    }
    store_disconnect(s);
    if (ours && is_still(s, "-wal", &s->wal)) {
        unlink(beside(s->file, "-wal", path));
    }
    if (ours && indexed && is_still(s, "-shm", &index)) { // the log's index
        unlink(beside(s->file, "-shm", path));
    }
}
