// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "internal.h"

enum {
    WAL_BYTES = 64 << 20, // the WAL file is cut back to this after a burst
    // of the writer: a flush with 50,000 paths takes a third less than with SQLite's 2 MB
    CACHE_KB = 8000
};

__attribute__((format(printf, 3, 4))) static enum store_status
refuse(char error[STORE_ERROR_BYTES], enum store_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(error, STORE_ERROR_BYTES, format, args);
    va_end(args);
    return status;
}

// -- shared with the other files ------------------------------------------------------------------

bool store_fail(struct store *s, const char *what) {
    int code = sqlite3_errcode(s->db) & 0xff;
    s->spoilt = code == SQLITE_CONSTRAINT || code == SQLITE_MISMATCH || code == SQLITE_TOOBIG;
    snprintf(s->error, sizeof s->error, "%s: %s", what,
             code == SQLITE_INTERRUPT ? "it takes too long; ask for less" : sqlite3_errmsg(s->db));
    return false;
}

// Tells the ledger. False when that cannot be written either, unless its own row is the malformed
// one.
static bool enter_passed(struct store *s, const struct row_place *at) {
    const struct ledger_row row = {.bucket_start = at->bucket_start, .unwritten_rows = 1};
    int64_t node = store_node_id(s, at->node);
    bool ok = node != 0;
    for (int i = 0; i < at->count && ok; i++) {
        ok = store_add_ledger(s, at->resolutions[i], node, &row) || s->spoilt;
    }
    s->spoilt = false;
    return ok;
}

bool store_pass_over(struct store *s, const struct row_place *at, const char *what, ...) {
    char row[512];
    va_list args;
    if (!s->spoilt) {
        return false;
    }
    va_start(args, what);
    vsnprintf(row, sizeof row, what, args);
    va_end(args);
    s->spoilt = false;
    s->set_aside++;
    log_error("database: %s is not written (%s); the rest is. So far %llu such rows", row, s->error,
              (unsigned long long)s->set_aside);
    return enter_passed(s, at);
}

uint64_t store_set_aside(const struct store *s) {
    return s->set_aside;
}

const char *store_error(const struct store *s) {
    return s->error;
}

static bool ask_integer(sqlite3 *db, const char *sql, int64_t *value) {
    sqlite3_stmt *statement;
    bool found = false;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK) {
        found = sqlite3_step(statement) == SQLITE_ROW &&
                sqlite3_column_type(statement, 0) == SQLITE_INTEGER;
        *value = found ? sqlite3_column_int64(statement, 0) : 0;
    }
    sqlite3_finalize(statement);
    return found;
}

int64_t store_integer(struct store *s, const char *sql, int64_t otherwise) {
    int64_t value;
    return ask_integer(s->db, sql, &value) ? value : otherwise;
}

uint32_t store_next_resolution(struct store *s, const char *table, uint32_t resolution_s) {
    // A seek in the table's key, not a scan.
    char sql[128];
    snprintf(sql, sizeof sql, "SELECT min(resolution_s) FROM %s WHERE resolution_s > %u", table,
             resolution_s);
    int64_t next = store_integer(s, sql, 0);
    // whoever edits the file may enter anything
    return next > resolution_s && next <= UINT32_MAX ? (uint32_t)next : 0;
}

// -- what the file is, read without SQLite, which might change a file that is not ours ------------

uint32_t store_header_number(const uint8_t *header, enum store_header at) {
    struct cursor c = cursor_of(header + at, 4);
    return cursor_u32(&c);
}

bool store_header_is_ours(const uint8_t *header) {
    return memcmp(header, "SQLite format 3", 16) == 0 &&
           store_header_number(header, HEADER_APPLICATION_ID) == STORE_APPLICATION_ID;
}

// Whether a file of this version is for us; 0: there is nothing in it yet.
static enum store_status check_version(int64_t version, const char *path,
                                       char error[STORE_ERROR_BYTES]) {
    if (version > store_schema_version) {
        return refuse(
            error, STORE_NEWER,
            "%s was written by a newer kprof (schema %lld, this one knows %d), and was not "
            "touched: use the newer kprof, or name another file",
            path, (long long)version, store_schema_version);
    }
    if (version != 0 && version < store_first_version) {
        return refuse(
            error, STORE_OLDER,
            "%s was written by a kprof from before the first release (schema %lld, this one knows "
            "%d and later), and was not touched: read it with that kprof, or name another file "
            "and fill it from recordings with kprof replay",
            path, (long long)version, store_first_version);
    }
    return STORE_OK;
}

// The same for a reader, which brings nothing up to date.
static enum store_status check_readable(int64_t version, const char *path,
                                        char error[STORE_ERROR_BYTES]) {
    if (version >= store_first_version && version < store_schema_version) {
        return refuse(error, STORE_OLDER,
                      "%s was written by an older kprof (schema %lld, this one reads %d): start "
                      "this one's kprof-collector with --db on it, which brings it up to date",
                      path, (long long)version, store_schema_version);
    }
    return check_version(version, path, error);
}

// Looks at the start of the file. The version may be newer in the WAL, and is asked for again.
static enum store_status inspect(int fd, const char *path, char error[STORE_ERROR_BYTES]) {
    struct stat st;
    uint8_t header[HEADER_BYTES];
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return refuse(error, STORE_FOREIGN, "%s is no regular file: name another database file",
                      path);
    }
    if (st.st_size == 0) {
        return STORE_OK;
    }
    if (pread(fd, header, sizeof header, 0) != (ssize_t)sizeof header ||
        !store_header_is_ours(header)) {
        return refuse(error, STORE_FOREIGN,
                      "%s is not a kprof database, and was not touched: name another file", path);
    }
    return check_version(store_header_number(header, HEADER_USER_VERSION), path, error);
}

static enum store_status not_locked(const char *path, int why, long holder,
                                    char error[STORE_ERROR_BYTES]) {
    char process[48] = "";
    if (why != EWOULDBLOCK) {
        return refuse(
            error, STORE_UNWRITABLE,
            "cannot lock %s (%s): name a file on a local disk, in a folder that may be written to",
            path, strerror(why));
    }
    if (holder > 0) {
        snprintf(process, sizeof process, ", process %ld,", holder);
    }
    return refuse(error, STORE_IN_USE,
                  "another kprof-collector%s writes %s: stop it, or name another file", process,
                  path);
}

// Opens the file, takes the writer's locks and looks at what it is. The descriptor, or -1 with
// *status set.
static int take(struct store *s, enum store_status *status, char error[STORE_ERROR_BYTES]) {
    const char *path = s->path;
    long holder = 0;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) { // nothing is made where another one writes
        if (s->lock_beside < 0 && (s->lock_beside = place_lock(s, &holder)) < 0 &&
            errno == EWOULDBLOCK) {
            *status = not_locked(path, errno, holder, error);
            return -1;
        }
        // SQLite makes the WAL and its index with the same mode
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    }
    if (fd < 0) {
        *status = refuse(
            error, STORE_UNWRITABLE,
            "cannot write %s (%s): name a file in a folder that exists and may be written to", path,
            strerror(errno));
        return -1;
    }
    *status = inspect(fd, path, error);
    if (*status == STORE_OK && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        *status = not_locked(path, errno, place_holder(fd), error);
    }
    if (*status == STORE_OK && s->lock_beside < 0 &&
        (s->lock_beside = place_lock(s, &holder)) < 0) {
        *status = not_locked(path, errno, holder, error);
    }
    if (*status != STORE_OK) {
        close(fd);
        return -1;
    }
    return fd;
}

// -- schema ---------------------------------------------------------------------------------------

static bool run(sqlite3 *db, const char *sql) {
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

// No view is there while steps run: a step could not drop or rename a column that one names, and
// SQLite parses the whole schema again for each column that is added, views most of all.
bool store_migrate(sqlite3 *db, int64_t version, const struct migration *list, int count,
                   const struct views *views) {
    if (count == 0 || list[count - 1].version <= version) {
        return true;
    }
    bool ok = run(db, "BEGIN IMMEDIATE") && run(db, views->drop);
    for (int i = 0; ok && i < count; i++) {
        ok = list[i].version <= version || run(db, list[i].sql);
    }
    char mark[96];
    snprintf(mark, sizeof mark, "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
             STORE_APPLICATION_ID, list[count - 1].version);
    return ok && run(db, views->make) && run(db, mark);
}

static enum store_status status_of(sqlite3 *db) {
    switch (sqlite3_errcode(db) & 0xff) {
    case SQLITE_FULL:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_IOERR:
        return STORE_UNWRITABLE;
    default:
        return STORE_FAILED;
    }
}

static enum store_status failed(sqlite3 *db, const char *path, char error[STORE_ERROR_BYTES]) {
    enum store_status status = status_of(db);
    return refuse(
        error, status,
        status == STORE_UNWRITABLE
            ? "cannot write %s (%s): make room, or name a file in a folder that may be written to"
            : "cannot use %s (%s): move it away, or name another file",
        path, sqlite3_errmsg(db));
}

static enum store_status set_up(sqlite3 *db, const char *path, char error[STORE_ERROR_BYTES]) {
    int64_t version;
    sqlite3_busy_timeout(db, STORE_BUSY_MS);
    if (!ask_integer(db, "PRAGMA user_version", &version)) {
        return failed(db, path, error);
    }
    enum store_status status = check_version(version, path, error);
    if (status != STORE_OK) {
        // only the WAL said so: leave that as it is, too
        sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        return status;
    }
    char limits[96];
    snprintf(limits, sizeof limits, "PRAGMA journal_size_limit = %d; PRAGMA cache_size = -%d",
             WAL_BYTES, CACHE_KB);
    // The schema comes before WAL, so that the application id is in the file itself from its first
    // page on. NORMAL: a power failure may take the last flushes, never the database.
    if (!store_migrate(db, version, store_migrations, store_migration_count, &store_views) ||
        !run(db, "PRAGMA journal_mode = WAL") || !run(db, "PRAGMA synchronous = NORMAL") ||
        !run(db, limits)) {
        return failed(db, path, error);
    }
    return STORE_OK;
}

// -- opening and closing --------------------------------------------------------------------------

// Opens what stands at the path, or makes it. On an error nothing is open.
static enum store_status connect_writer(struct store *s, char error[STORE_ERROR_BYTES]) {
    enum store_status status;
    s->lock = take(s, &status, error);
    if (s->lock < 0) {
        return status;
    }
    if (sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK) {
        status = failed(s->db, s->path, error);
    } else {
        status = set_up(s->db, s->path, error);
    }
    if (status != STORE_OK) {
        store_disconnect(s);
        return status;
    }
    place_watch(s);
    return STORE_OK;
}

enum store_status store_open(const char *path, struct store **out, char error[STORE_ERROR_BYTES]) {
    *out = NULL;
    struct store *s = calloc(1, sizeof *s);
    if (!s) {
        return refuse(error, STORE_FAILED, "no memory to open %s", path);
    }
    s->blob = buffer_make(HISTOGRAM_BYTES);
    s->lock = s->lock_beside = -1;
    enum store_status status;
    if (snprintf(s->path, sizeof s->path, "%s", path) >= (int)(sizeof s->path - sizeof "-lock")) {
        status = refuse(error, STORE_UNWRITABLE, "the database's path is too long");
    } else {
        status = connect_writer(s, error);
    }
    if (status != STORE_OK) {
        store_close(s);
        return status;
    }
    *out = s;
    return STORE_OK;
}

enum store_status store_reopen(struct store *s, enum store_place place) {
    char error[STORE_ERROR_BYTES];
    if (s->db) {
        store_leave(s, place);
    }
    enum store_status status = connect_writer(s, error);
    if (status != STORE_OK) {
        snprintf(s->error, sizeof s->error, "%.*s", (int)sizeof s->error - 1, error);
    }
    return status;
}

// A database in WAL mode that nobody writes, in a folder that this user may not write: SQLite can
// read it only when told that nobody will change it. Without a WAL file all that was ever written
// is in the file itself.
static int open_immutable(const char *path, sqlite3 **db) {
    char wal[4096];
    char *uri = malloc(3 * strlen(path) + sizeof "file:?immutable=1");
    if (!uri || snprintf(wal, sizeof wal, "%s-wal", path) >= (int)sizeof wal ||
        access(wal, F_OK) == 0) {
        free(uri);
        return SQLITE_CANTOPEN;
    }
    char *to = uri + sprintf(uri, "file:");
    for (const char *c = path; *c; c++) {
        to += sprintf(to, *c == '%' || *c == '?' || *c == '#' ? "%%%02x" : "%c", (unsigned char)*c);
    }
    sprintf(to, "?immutable=1");
    int rc = sqlite3_open_v2(uri, db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
                             NULL);
    free(uri);
    return rc;
}

static enum store_status check_reader(struct store *s, const char *path,
                                      char error[STORE_ERROR_BYTES]) {
    int64_t id, version;
    sqlite3_busy_timeout(s->db, STORE_BUSY_MS);
    bool asked = ask_integer(s->db, "PRAGMA application_id", &id) &&
                 ask_integer(s->db, "PRAGMA user_version", &version);
    int rc = asked ? SQLITE_OK : sqlite3_errcode(s->db) & 0xff;
    if (rc == SQLITE_CANTOPEN || rc == SQLITE_READONLY) {
        sqlite3_close(s->db);
        s->db = NULL;
        int opened = open_immutable(path, &s->db);
        if (!s->db) {
            return refuse(
                error, STORE_MISSING,
                "cannot read %s, which was left open: run this as a user who may write to its "
                "folder",
                path);
        }
        asked = opened == SQLITE_OK && ask_integer(s->db, "PRAGMA application_id", &id) &&
                ask_integer(s->db, "PRAGMA user_version", &version);
    }
    if (asked && id == STORE_APPLICATION_ID && version > 0) {
        return check_readable(version, path, error);
    }
    if (asked || sqlite3_errcode(s->db) == SQLITE_NOTADB) {
        return refuse(error, STORE_FOREIGN,
                      "%s is not a kprof database: name another file with --db", path);
    }
    return refuse(error, STORE_MISSING, "cannot read %s (%s)", path, sqlite3_errmsg(s->db));
}

enum store_status store_open_reader(const char *path, struct store **out,
                                    char error[STORE_ERROR_BYTES]) {
    enum store_status status;
    *out = NULL;
    if (access(path, R_OK) != 0) {
        return refuse(error, STORE_MISSING,
                      "cannot read %s (%s): name the file that kprof-collector writes with --db",
                      path, strerror(errno));
    }
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        return refuse(error, STORE_FOREIGN,
                      "%s is a folder: name the file in it that kprof-collector writes with --db",
                      path);
    }
    struct store *s = calloc(1, sizeof *s);
    if (!s) {
        return refuse(error, STORE_FAILED, "no memory to open %s", path);
    }
    s->lock = s->lock_beside = -1;
    if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK) {
        status = refuse(error, STORE_MISSING, "cannot read %s (%s)", path, sqlite3_errmsg(s->db));
    } else {
        // Two connections that checkpoint can corrupt a WAL file before SQLite 3.51.3: only the
        // writer does.
        sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        status = check_reader(s, path, error);
    }
    if (status != STORE_OK) {
        store_close(s);
        return status;
    }
    *out = s;
    return STORE_OK;
}

// SQLite asks every so many steps of its machine: some 10 µs, where names are not megabytes long.
enum { DEADLINE_STEPS = 1000 };

static int is_over(void *context) {
    return clock_monotonic() >= ((struct store *)context)->deadline_ns;
}

void store_set_deadline(struct store *s, int64_t monotonic_ns) {
    s->deadline_ns = monotonic_ns;
    sqlite3_progress_handler(s->db, monotonic_ns == INT64_MAX ? 0 : DEADLINE_STEPS, is_over, s);
}

void store_disconnect(struct store *s) {
    for (int i = 0; i < STATEMENTS; i++) {
        sqlite3_finalize(s->statements[i]);
        s->statements[i] = NULL;
    }
    sqlite3_close(s->db);
    s->db = NULL;
    s->directory = NULL; // ids of names are another file's
    if (s->lock >= 0) {
        // after the connection: closing a descriptor of the file drops the POSIX locks of all
        // others
        close(s->lock);
        s->lock = -1;
    }
}

void store_close(struct store *s) {
    if (!s) {
        return;
    }
    // of a reader nothing is watched
    enum store_place place = s->lock_beside >= 0 ? store_look(s) : STORE_CLOSED;
    if (place != STORE_CLOSED && place != STORE_IN_PLACE) {
        store_leave(s, place);
    }
    mirror_free(s->mirror); // its statements are of the connection
    store_disconnect(s);
    place_unlock(s);
    histogram_free(&s->merged);
    map_free(&s->marked);
    buffer_free(&s->blob);
    free(s);
}
