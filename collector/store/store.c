#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

enum {
    HEADER_BYTES = 100,
    HEADER_USER_VERSION = 60,
    HEADER_APPLICATION_ID = 68,
    BUSY_MS = 5000,
    WAL_BYTES = 64 << 20, // the WAL file is cut back to this after a burst
    CACHE_KB = 8000       // of the writer: a flush with 50,000 paths takes a third less than with SQLite's 2 MB
};

__attribute__((format(printf, 3, 4))) static enum store_status
refuse(char error[STORE_ERROR_BYTES], enum store_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(error, STORE_ERROR_BYTES, format, args);
    va_end(args);
    return status;
}

// -- shared with the other files
// -------------------------------------------------------------------------------------

bool store_fail(struct store *s, const char *what) {
    snprintf(s->error, sizeof s->error, "%s: %s", what, sqlite3_errmsg(s->db));
    return false;
}

const char *store_error(const struct store *s) {
    return s->error;
}

static bool ask_integer(sqlite3 *db, const char *sql, int64_t *value) {
    sqlite3_stmt *statement;
    bool found = false;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK) {
        found = sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_type(statement, 0) == SQLITE_INTEGER;
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
    snprintf(sql, sizeof sql, "SELECT min(resolution_s) FROM %s WHERE resolution_s > %u", table, resolution_s);
    return (uint32_t)store_integer(s, sql, 0);
}

// -- what the file is, read without SQLite, which might change a file that is not ours
// -----------------------------------

static uint32_t header_number(const uint8_t *header, size_t at) {
    struct cursor c = cursor_of(header + at, 4);
    return cursor_u32(&c);
}

// Looks at the start of the file. The application id is certain: it is written with the first table. The
// version may be newer in the WAL, and is asked for again.
static enum store_status inspect(int fd, const char *path, char error[STORE_ERROR_BYTES]) {
    struct stat st;
    uint8_t header[HEADER_BYTES];
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return refuse(error, STORE_FOREIGN, "%s is no regular file: name another database file", path);
    }
    if (st.st_size == 0) {
        return STORE_OK;
    }
    if (pread(fd, header, sizeof header, 0) != (ssize_t)sizeof header ||
        memcmp(header, "SQLite format 3", 16) != 0 ||
        header_number(header, HEADER_APPLICATION_ID) != STORE_APPLICATION_ID) {
        return refuse(error, STORE_FOREIGN,
                      "%s is not a kprof database, and was not touched: name another file", path);
    }
    uint32_t version = header_number(header, HEADER_USER_VERSION);
    if (version > (uint32_t)store_schema_version) {
        return refuse(error, STORE_NEWER,
                      "%s was written by a newer kprof (schema %u, this one knows %d), and was not touched: "
                      "use the newer kprof, or name another file",
                      path, version, store_schema_version);
    }
    return STORE_OK;
}

// Opens the file, takes the writer's lock and looks at what it is. The descriptor, or -1 with *status set.
static int take(const char *path, enum store_status *status, char error[STORE_ERROR_BYTES]) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        *status = refuse(error, STORE_UNWRITABLE,
                         "cannot write %s (%s): name a file in a folder that exists and may be written to",
                         path, strerror(errno));
        return -1;
    }
    *status = inspect(fd, path, error);
    if (*status == STORE_OK && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        *status = errno == EWOULDBLOCK
                      ? refuse(error, STORE_IN_USE,
                               "another kprof-collector writes %s: stop it, or name another file", path)
                      : refuse(error, STORE_UNWRITABLE, "cannot lock %s (%s): name a file on a local disk",
                               path, strerror(errno));
    }
    if (*status != STORE_OK) {
        close(fd);
        return -1;
    }
    return fd;
}

// -- schema
// ----------------------------------------------------------------------------------------------------------

static bool run(sqlite3 *db, const char *sql) {
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

// Brings the schema from its version to ours, each step in a transaction of its own.
static bool migrate(sqlite3 *db, int64_t version) {
    for (int64_t v = version; v < store_schema_version; v++) {
        char mark[96];
        snprintf(mark, sizeof mark, "PRAGMA application_id = %d; PRAGMA user_version = %lld; COMMIT",
                 STORE_APPLICATION_ID, (long long)v + 1);
        if (!run(db, "BEGIN IMMEDIATE") || !run(db, store_migrations[v].sql) || !run(db, mark)) {
            return false; // closing the connection rolls back
        }
    }
    return true;
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
    return refuse(error, status,
                  status == STORE_UNWRITABLE
                      ? "cannot write %s (%s): make room, or name a file in a folder that may be written to"
                      : "cannot use %s (%s): move it away, or name another file",
                  path, sqlite3_errmsg(db));
}

static enum store_status check_version(sqlite3 *db, int64_t version, const char *path,
                                       char error[STORE_ERROR_BYTES]) {
    if (version <= store_schema_version) {
        return STORE_OK;
    }
    // only the WAL said so: leave that as it is, too
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return refuse(error, STORE_NEWER,
                  "%s was written by a newer kprof (schema %lld, this one knows %d): use the newer one", path,
                  (long long)version, store_schema_version);
}

static enum store_status set_up(sqlite3 *db, const char *path, char error[STORE_ERROR_BYTES]) {
    int64_t version;
    sqlite3_busy_timeout(db, BUSY_MS);
    if (!ask_integer(db, "PRAGMA user_version", &version)) {
        return failed(db, path, error);
    }
    enum store_status status = check_version(db, version, path, error);
    if (status != STORE_OK) {
        return status;
    }
    char limits[96];
    snprintf(limits, sizeof limits, "PRAGMA journal_size_limit = %d; PRAGMA cache_size = -%d", WAL_BYTES, CACHE_KB);
    // The schema comes before WAL, so that the application id is in the file itself from its first page on.
    // NORMAL: a power failure may take the last flushes, never the database.
    if (!migrate(db, version) || !run(db, "PRAGMA journal_mode = WAL") ||
        !run(db, "PRAGMA synchronous = NORMAL") || !run(db, limits)) {
        return failed(db, path, error);
    }
    return STORE_OK;
}

// -- opening and closing
// ---------------------------------------------------------------------------------------------

enum store_status store_open(const char *path, struct store **out, char error[STORE_ERROR_BYTES]) {
    enum store_status status;
    *out = NULL;
    struct store *s = calloc(1, sizeof *s);
    if (!s) {
        return refuse(error, STORE_FAILED, "no memory to open %s", path);
    }
    s->blob = buffer_make(HISTOGRAM_BYTES);
    s->lock = take(path, &status, error);
    if (s->lock < 0) {
        free(s);
        return status;
    }
    if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
        status = failed(s->db, path, error);
    } else {
        status = set_up(s->db, path, error);
    }
    if (status != STORE_OK) {
        store_close(s);
        return status;
    }
    *out = s;
    return STORE_OK;
}

// A database in WAL mode that nobody writes, in a folder that this user may not write: SQLite can read it
// only when told that nobody will change it. Without a WAL file all that was ever written is in the file
// itself.
static int open_immutable(const char *path, sqlite3 **db) {
    char wal[4096];
    char *uri = malloc(3 * strlen(path) + sizeof "file:?immutable=1");
    if (!uri || snprintf(wal, sizeof wal, "%s-wal", path) >= (int)sizeof wal || access(wal, F_OK) == 0) {
        free(uri);
        return SQLITE_CANTOPEN;
    }
    char *to = uri + sprintf(uri, "file:");
    for (const char *c = path; *c; c++) {
        to += sprintf(to, *c == '%' || *c == '?' || *c == '#' ? "%%%02x" : "%c", (unsigned char)*c);
    }
    sprintf(to, "?immutable=1");
    int rc = sqlite3_open_v2(uri, db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
    free(uri);
    return rc;
}

static enum store_status check_reader(struct store *s, const char *path, char error[STORE_ERROR_BYTES]) {
    int64_t id, version;
    sqlite3_busy_timeout(s->db, BUSY_MS);
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
                "cannot read %s, which was left open: run this as a user who may write to its folder", path);
        }
        asked = opened == SQLITE_OK && ask_integer(s->db, "PRAGMA application_id", &id) &&
                ask_integer(s->db, "PRAGMA user_version", &version);
    }
    if (asked && id == STORE_APPLICATION_ID && version > 0) {
        enum store_status status = check_version(s->db, version, path, error);
        if (status == STORE_OK && !store_read_older(s->db, version)) {
            return refuse(error, STORE_FAILED, "cannot read %s, of an older kprof (%s): write it once with kprof-collector --db",
                          path, sqlite3_errmsg(s->db));
        }
        return status;
    }
    if (asked || sqlite3_errcode(s->db) == SQLITE_NOTADB) {
        return refuse(error, STORE_FOREIGN, "%s is not a kprof database: name another file with --db", path);
    }
    return refuse(error, STORE_MISSING, "cannot read %s (%s)", path, sqlite3_errmsg(s->db));
}

enum store_status store_open_reader(const char *path, struct store **out, char error[STORE_ERROR_BYTES]) {
    enum store_status status;
    *out = NULL;
    if (access(path, R_OK) != 0) {
        return refuse(error, STORE_MISSING,
                      "cannot read %s (%s): name the file that kprof-collector writes with --db", path,
                      strerror(errno));
    }
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        return refuse(error, STORE_FOREIGN, "%s is a folder: name the file in it that kprof-collector writes with --db", path);
    }
    struct store *s = calloc(1, sizeof *s);
    if (!s) {
        return refuse(error, STORE_FAILED, "no memory to open %s", path);
    }
    s->lock = -1;
    if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
        status = refuse(error, STORE_MISSING, "cannot read %s (%s)", path, sqlite3_errmsg(s->db));
    } else {
        // Two connections that checkpoint can corrupt a WAL file before SQLite 3.51.3: only the writer does.
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

void store_close(struct store *s) {
    if (!s) {
        return;
    }
    for (int i = 0; i < STATEMENTS; i++) {
        sqlite3_finalize(s->statements[i]);
    }
    sqlite3_close(s->db);
    if (s->lock >= 0) {
        close(s->lock); // after the connection: closing a descriptor of the file drops the POSIX locks of all
                        // others
    }
    histogram_free(&s->merged);
    buffer_free(&s->blob);
    free(s);
}
