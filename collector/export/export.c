// SPDX-License-Identifier: Apache-2.0
#include "export/export.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/names.h"
#include "base/text_amount.h"
#include "export/batch.h"
#include "export/http.h"
#include "export/send.h"
#include "export/sending.h"
#include "export/statements.h"
#include "export/target.h"
#include "export/worker.h"

static const int64_t SECOND = 1000000000;
enum {
    BEAT_S = 60,   // between two signs of life
    DROP_S = 3600, // between two looks for old partitions
    COUNT_S = 5,   // between two counts of what waits
    LATE_S = 60,   // what waits for so long the log tells of
    PATH_BYTES = 4096
};

struct exporter {
    struct target target;
    char to[TARGET_TEXT_BYTES];
    char name[EXPORT_NAME_BYTES], cluster[EXPORT_NAME_BYTES];
    char database[PATH_BYTES];
    char ca[PATH_BYTES]; // "": the system's
    struct writer *writer;
    struct worker worker;
    struct http *http;           // the thread asks through it; others may stop it
    struct export_status status; // the worker's mutex protects both

    // the thread's own
    struct sender sender; // its own while it sends: see sending
    struct sending sending;
    struct batch batches[2];
    struct batch *batch;           // that is sent, or was sent last
    const struct batch *before;    // where the next one goes on; NULL: it begins anew
    struct batch *ahead;           // read already, to be sent next; NULL: none
    size_t most;                   // bytes of the next one
    char why[CHANGE_REASON_BYTES]; // what went wrong last
    struct change_backlog backlog;
    uint64_t instance; // of this process
    int64_t began_s;   // when it began
    bool ready;        // the tables are there
    bool told;         // that they are, in the log
    bool ending;       // all that is there is sent, due or not
    struct tries tries;
    struct pace pace;
    bool seen;                // twin_s is what it was when this process began
    int64_t twin_s;           // when another one of our name was there last
    int64_t twin_at;          // when that was found to be a later time
    int64_t beat_at, drop_at; // monotonic seconds
    int64_t count_at;
};

static int64_t monotonic_s(void) {
    return clock_monotonic() / SECOND;
}

static int64_t wall_s(void) {
    return clock_wall() / SECOND;
}

// -- the status -----------------------------------------------------------------------------------

static void set_status(struct exporter *e) {
    const struct change_backlog *b = &e->backlog;
    int64_t now = wall_s();
    pthread_mutex_lock(&e->worker.mutex);
    struct export_status *s = &e->status;
    s->sending = e->ready && !e->tries.failing;
    s->twin = e->twin_at > 0 && monotonic_s() - e->twin_at < 3 * BEAT_S;
    s->behind_s = b->marks > 0 && now > b->oldest_s ? now - b->oldest_s : 0;
    s->marks = b->marks;
    s->rows = e->sender.rows;
    s->refused = b->refused;
    s->lost = b->lost;
    snprintf(s->why, sizeof s->why, "%s", e->tries.failing ? e->why : "");
    pthread_mutex_unlock(&e->worker.mutex);
}

void exporter_status(struct exporter *e, struct export_status *out) {
    pthread_mutex_lock(&e->worker.mutex);
    *out = e->status;
    pthread_mutex_unlock(&e->worker.mutex);
}

// One line a minute of what is not as it should be.
static void complain(struct exporter *e) {
    struct export_status s;
    exporter_status(e, &s);
    if ((s.sending && !s.twin && s.behind_s < LATE_S) ||
        !tries_may_tell(&e->tries, monotonic_s(), !s.sending)) {
        return;
    }
    if (!s.sending) {
        log_warning("export: %s takes nothing (%s). It is tried again; unsent: %llu bucket%s, the "
                    "oldest for %lld s",
                    e->to, s.why, (unsigned long long)s.marks, text_plural(s.marks),
                    (long long)s.behind_s);
    } else if (s.twin) {
        log_error("export: another collector exports to %s under the name %s. Their rows are not "
                  "mixed up, but cannot be told apart by it: give one of them another --export-as",
                  e->to, e->name);
    } else {
        log_info("export: behind; unsent to %s: %llu bucket%s, the oldest for %lld s", e->to,
                 (unsigned long long)s.marks, text_plural(s.marks), (long long)s.behind_s);
    }
}

// -- the thread -----------------------------------------------------------------------------------

// Goes on with the password that it was given since.
static void take_renewed(struct exporter *e) {
    if (worker_take_renewed(&e->worker, &e->http)) {
        e->sender.http = e->http;
        e->tries.pause_s = 0;
    }
}

static bool fail(struct exporter *e, const char *why) {
    snprintf(e->why, sizeof e->why, "%.*s", (int)sizeof e->why - 1, why);
    return false;
}

static struct changes *open_changes(struct exporter *e) {
    char error[STORE_ERROR_BYTES];
    struct changes *c = changes_open(e->database, error);
    if (!c) {
        fail(e, error);
    }
    return c;
}

static void count_backlog(struct exporter *e) {
    struct changes *c = monotonic_s() >= e->count_at ? open_changes(e) : NULL;
    if (c) {
        changes_backlog(c, wall_s(), &e->backlog);
        changes_close(c);
        e->count_at = monotonic_s() + COUNT_S;
    }
}

// Tells that we are there, and whether another one of our name is: one that was seen since this
// process began, as who was there before it may have been ourselves.
static bool beat(struct exporter *e) {
    const struct statement_self self = {.database = e->target.database,
                                        .collector = e->name,
                                        .database_id = (uint64_t)e->batch->database_id,
                                        .instance = e->instance,
                                        .cluster = e->cluster,
                                        .began_s = e->began_s};
    int64_t twin_s = 0;
    if (monotonic_s() < e->beat_at || self.database_id == 0) { // nothing was ever to be sent
        return true;
    }
    if (!sender_beat(&e->sender, &self, &twin_s)) {
        return fail(e, e->sender.why);
    }
    if (e->seen && twin_s > e->twin_s) {
        e->twin_at = monotonic_s();
    }
    e->seen = true;
    e->twin_s = twin_s;
    e->beat_at = monotonic_s() + BEAT_S;
    return true;
}

static void drop_old(struct exporter *e) {
    if (monotonic_s() < e->drop_at) {
        return;
    }
    e->drop_at = monotonic_s() + DROP_S;
    int dropped = sender_drop_old(&e->sender);
    if (dropped > 0) {
        log_info("export: %d partitions that were past their time are dropped", dropped);
    } else if (dropped < 0) {
        log_warning("export: partitions that are past their time are not dropped (%s); tried again "
                    "in an hour",
                    e->sender.why);
    }
}

static bool prepare(struct exporter *e) {
    if (!e->ready) {
        e->ready = sender_set_up(&e->sender) || fail(e, e->sender.why);
        if (e->ready && !e->told) {
            log_info("export: to %s as %s, ClickHouse %u.%u", e->to, e->name, e->sender.major,
                     e->sender.minor);
            e->told = true;
        }
    }
    return e->ready;
}

// The one of the two that is not e->batch.
static struct batch *other(struct exporter *e) {
    return e->batch == &e->batches[0] ? &e->batches[1] : &e->batches[0];
}

static bool read_into(struct exporter *e, struct batch *b) {
    struct changes *c = open_changes(e);
    if (!c) {
        return false;
    }
    b->most = e->most;
    bool ok = batch_read(b, c, e->ending ? CHANGES_ALL : wall_s(), e->before) ||
              fail(e, changes_error(c));
    changes_close(c);
    return ok;
}

// Puts the next batch into e->batch: that which was read ahead, or else it is read now.
static bool next_batch(struct exporter *e) {
    struct batch *b = e->ahead ? e->ahead : other(e);
    if (!e->ahead && !read_into(e, b)) {
        return false;
    }
    e->ahead = NULL;
    e->batch = b;
    e->before = b;
    return true;
}

// Reads the batch behind the one that is sent. Where that fails it is tried again in its turn, and
// told then.
static void read_ahead(struct exporter *e) {
    size_t twice = 2 * e->most;
    e->most = twice < LIMIT_EXPORT_BATCH_BYTES ? twice : LIMIT_EXPORT_BATCH_BYTES;
    struct batch *b = other(e);
    e->ahead = read_into(e, b) && b->rows + b->whole > 0 ? b : NULL;
}

// What is refused for its content is told once a batch, and stands in the database.
static void tell_refusals(const struct batch *b) {
    if (b->refused > 0) {
        const struct change_refusal *r = &b->refusals[0];
        log_error("export: refused and set aside: %llu row%s, such as one of %s, bucket %lld (%s)",
                  (unsigned long long)b->refused, text_plural(b->refused), r->table,
                  (long long)r->of.bucket_start, r->reason);
    }
}

// The engine has what was read: that is written down.
static bool note_sent(struct exporter *e) {
    const struct batch *b = e->batch;
    const struct change_report report = {.database_id = b->database_id,
                                         .sent = b->marks,
                                         .sent_count = b->whole,
                                         .gone = b->gone,
                                         .refusals = b->refusals,
                                         .refusal_count = b->refusal_count,
                                         .refused = b->refused};
    tell_refusals(b);
    if (b->whole == 0 && b->refused == 0) {
        return true;
    }
    if (!writer_sent(e->writer, &report)) {
        return fail(e, "the database cannot be written, so that nobody would know what was sent");
    }
    return true;
}

// While the engine takes it the next one is read, where there is more. Until the answer nothing is
// known of either.
static bool send_batch(struct exporter *e) {
    struct batch *b = e->batch;
    if (b->rows > 0) {
        sending_begin(&e->sending, b);
        if (b->full) {
            read_ahead(e);
        }
        if (sending_wait(&e->sending) != SENT_ALL) {
            return fail(e, e->sender.why);
        }
    }
    return note_sent(e);
}

// Sends the next batch. False: something went wrong, and the next one begins anew.
static bool send_next(struct exporter *e) {
    bool ok = prepare(e) && next_batch(e) && beat(e) && send_batch(e);
    if (!ok || !e->batch->full) {
        e->before = e->ahead = NULL;
        e->most = LIMIT_EXPORT_BATCH_LEAST;
    }
    return ok;
}

// Something went wrong: longer pauses, the longer it does.
static bool hold(struct exporter *e) {
    int64_t pause_s = tries_failed(&e->tries);
    e->count_at = 0; // the pauses are long enough
    count_backlog(e);
    set_status(e);
    complain(e);
    return worker_sleep(&e->worker, pause_s * SECOND);
}

static void go_on(struct exporter *e) {
    if (tries_worked(&e->tries)) {
        log_info("export: %s takes rows again", e->to);
    }
    count_backlog(e);
    set_status(e);
    complain(e);
}

// Sends what is due. Whether to go on.
static bool turn(struct exporter *e) {
    take_renewed(e);
    if (!send_next(e)) {
        // what went wrong may have changed the engine's tables, and taken long
        e->ready = false;
        e->beat_at = 0;
        return worker_stopped(&e->worker) ? false : hold(e);
    }
    go_on(e);
    drop_old(e);
    int64_t rest = pace_rest(&e->pace, e->batch->rows, clock_monotonic());
    bool more = e->batch->full && e->batch->rows + e->batch->whole > 0;
    return worker_sleep(&e->worker, more ? rest : SECOND);
}

// What is there is sent now, due or not: nobody knows whether this file is ever opened again.
static void send_rest(struct exporter *e) {
    e->ending = true;
    do {
        if (!send_next(e)) {
            return;
        }
    } while (e->batch->rows + e->batch->whole > 0 && !http_stopped(e->http));
}

static void *export_thread(void *arg) {
    struct exporter *e = arg;
    pthread_setname_np(pthread_self(), "export");
    worker_nice();
    while (turn(e)) {
    }
    if (!e->tries.failing) {
        send_rest(e);
    }
    return NULL;
}

// -- the caller's side ----------------------------------------------------------------------------

bool export_name_valid(const char *name) {
    struct slice text = slice_text(name);
    return text.len > 0 && text.len < EXPORT_NAME_BYTES && names_is_clean(text);
}

_Static_assert((int)EXPORT_WHY_BYTES == TARGET_WHY_BYTES, "one is told as the other");

bool export_database_valid(const char *name) {
    return target_database_valid(name);
}

void export_schema(const char *database, bool old, struct buffer *out) {
    statement_schema(database, old, out);
}

bool export_check(const char *url, bool password, char why[EXPORT_WHY_BYTES]) {
    struct target t;
    if (!target_parse(url, &t, why)) {
        return false;
    }
    if (password && !t.tls && !target_loopback(&t)) {
        snprintf(why, EXPORT_WHY_BYTES,
                 "without TLS the password could be read on the way; take clickhouses://, or an "
                 "engine on this machine");
        return false;
    }
    return true;
}

static void free_exporter(struct exporter *e) {
    http_free(e->http);
    sending_end(&e->sending);
    sender_free(&e->sender);
    batch_free(&e->batches[0]);
    batch_free(&e->batches[1]);
    worker_free(&e->worker);
    free(e);
}

static struct http *make_http(const struct exporter *e, const char *password) {
    const struct http_options options = {
        .target = &e->target, .password = password, .ca = e->ca[0] ? e->ca : NULL};
    return http_new(&options);
}

static struct exporter *make(const struct export_options *o, const struct target *target) {
    struct exporter *e = calloc(1, sizeof *e);
    if (!e) {
        return NULL;
    }
    e->target = *target;
    worker_init(&e->worker);
    target_text(target, e->to);
    snprintf(e->status.to, sizeof e->status.to, "%.*s", EXPORT_WHY_BYTES - 1, e->to);
    snprintf(e->name, sizeof e->name, "%s", o->name);
    snprintf(e->cluster, sizeof e->cluster, "%s", o->cluster ? o->cluster : "");
    e->began_s = wall_s();
    snprintf(e->database, sizeof e->database, "%s", o->database);
    batch_init(&e->batches[0], e->name);
    batch_init(&e->batches[1], e->name);
    e->batch = &e->batches[0];
    e->most = LIMIT_EXPORT_BATCH_LEAST;
    snprintf(e->ca, sizeof e->ca, "%s", o->ca ? o->ca : "");
    e->http = make_http(e, o->password);
    sender_init(&e->sender, e->http, e->target.database);
    e->sender.near = target_loopback(target);
    if (!e->http || RAND_bytes((unsigned char *)&e->instance, sizeof e->instance) != 1) {
        free_exporter(e);
        return NULL;
    }
    return e;
}

struct exporter *exporter_start(const struct export_options *o, struct writer *writer,
                                char why[EXPORT_WHY_BYTES]) {
    struct target target;
    if (!export_check(o->url, o->password, why)) {
        return NULL;
    }
    target_parse(o->url, &target, why);
    struct exporter *e = make(o, &target);
    if (!e) {
        snprintf(why, EXPORT_WHY_BYTES, "out of memory");
        return NULL;
    }
    e->writer = writer;
    if (!sending_start(&e->sending, &e->sender) || !worker_start(&e->worker, export_thread, e)) {
        snprintf(why, EXPORT_WHY_BYTES, "no thread can be made");
        free_exporter(e);
        return NULL;
    }
    return e;
}

bool exporter_renew(struct exporter *e, const char *password) {
    struct http *http = make_http(e, password);
    if (http) {
        worker_renew(&e->worker, http);
    }
    return http;
}

void exporter_stop(struct exporter *e) {
    if (e) {
        worker_end(&e->worker, &e->http);
        free_exporter(e);
    }
}
