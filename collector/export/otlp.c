// SPDX-License-Identifier: Apache-2.0
#include "export/otlp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text_amount.h"
#include "export/otlp_batch.h"
#include "export/otlp_headers.h"
#include "export/target.h"
#include "export/worker.h"

static const int64_t SECOND = 1000000000, MILLISECOND = 1000000;
enum {
    COUNT_S = 5, // between two counts of what waits
    TELL_S = 60, // what waits for so long the log tells of
    PATH_BYTES = 4096
};

// One of the signals on its way.
struct stream {
    bool wanted;
    bool known; // the receiver has answered to it,
    bool told;  // and the log said so once
    struct otlp_batch batch;
    struct tries tries;
    struct tries notices; // of what the receiver has to say; none of them fails
    int64_t next_at;      // no further try before this, monotonic seconds
    struct otlp_waiting waiting;
};

struct otlp {
    struct target target;
    char to[TARGET_TEXT_BYTES];
    char database[PATH_BYTES];
    char ca[PATH_BYTES]; // "": the system's
    uint32_t bucket_s;
    struct writer *writer;
    struct worker worker;
    struct http *http;         // the thread asks through it; others may stop it
    struct otlp_status status; // the worker's mutex protects both

    // the thread's own
    struct stream streams[OTLP_SIGNALS];
    struct otlp_state state; // of the database, as it was read last
    bool ending;             // what is over is sent, due or not
    int64_t count_at;
};

static int64_t monotonic_s(void) {
    return clock_monotonic() / SECOND;
}

const char *otlp_signal_name(enum otlp_signal signal) {
    return signal == OTLP_TRACES ? "traces" : "metrics";
}

// -- the status -----------------------------------------------------------------------------------

static void set_status(struct otlp *o) {
    int64_t now = clock_wall() / SECOND;
    pthread_mutex_lock(&o->worker.mutex);
    for (int i = 0; i < OTLP_SIGNALS; i++) {
        const struct stream *m = &o->streams[i];
        struct otlp_signal_status *s = &o->status.signals[i];
        s->sending = m->known && !m->tries.failing;
        s->behind_s =
            m->waiting.count > 0 && now > m->waiting.oldest_s ? now - m->waiting.oldest_s : 0;
        s->waiting = m->waiting.count;
        s->sent = m->batch.sent;
        s->refused = o->state.refused[i];
        s->lost = o->state.lost[i];
        snprintf(s->why, sizeof s->why, "%s", m->tries.failing ? m->batch.why : "");
    }
    o->status.late = o->state.late;
    pthread_mutex_unlock(&o->worker.mutex);
}

void otlp_get_status(struct otlp *o, struct otlp_status *out) {
    pthread_mutex_lock(&o->worker.mutex);
    *out = o->status;
    pthread_mutex_unlock(&o->worker.mutex);
}

// One line a minute of what is not as it should be.
static void complain(struct otlp *o, enum otlp_signal signal) {
    struct otlp_status all;
    struct stream *m = &o->streams[signal];
    const char *what = signal == OTLP_TRACES ? "request" : "bucket";
    otlp_get_status(o, &all);
    const struct otlp_signal_status *s = &all.signals[signal];
    if ((!m->tries.failing && s->behind_s < TELL_S) ||
        !tries_may_tell(&m->tries, monotonic_s(), m->tries.failing)) {
        return;
    }
    if (m->tries.failing && s->waiting == 0) {
        log_warning("otlp: %s takes no %s (%s). It is tried again", o->to, otlp_signal_name(signal),
                    s->why);
    } else if (m->tries.failing) {
        log_warning("otlp: %s takes no %s (%s). It is tried again; unsent: %llu %s%s, the oldest "
                    "for %lld s",
                    o->to, otlp_signal_name(signal), s->why, (unsigned long long)s->waiting, what,
                    text_plural(s->waiting), (long long)s->behind_s);
    } else {
        log_info("otlp: behind; unsent as %s to %s: %llu %s%s, the oldest for %lld s",
                 otlp_signal_name(signal), o->to, (unsigned long long)s->waiting, what,
                 text_plural(s->waiting), (long long)s->behind_s);
    }
}

// -- the thread -----------------------------------------------------------------------------------

// Goes on with the headers that it was given since, at once.
static void take_renewed(struct otlp *o) {
    if (worker_take_renewed(&o->worker, &o->http)) {
        for (int i = 0; i < OTLP_SIGNALS; i++) {
            o->streams[i].batch.http = o->http;
            o->streams[i].tries.pause_s = 0;
            o->streams[i].next_at = 0;
        }
    }
}

static struct otlp_time time_of(const struct otlp *o) {
    return (struct otlp_time){clock_wall() / SECOND, o->bucket_s, o->ending};
}

static bool fail(struct stream *m, const char *why) {
    snprintf(m->batch.why, sizeof m->batch.why, "%.*s", (int)sizeof m->batch.why - 1, why);
    return false;
}

// Reads what stands in the database about us. NULL, and why, on failure.
static struct store *open_database(struct otlp *o, struct stream *m) {
    char error[STORE_ERROR_BYTES];
    struct store *s;
    if (store_open_reader(o->database, &s, error) != STORE_OK) {
        fail(m, error);
        return NULL;
    }
    if (!otlp_state(s, &o->state)) { // another file stands there, which is not followed yet
        o->state = (struct otlp_state){0};
    }
    return s;
}

static void count_waiting(struct otlp *o, struct store *s) {
    const struct otlp_time time = time_of(o);
    if (monotonic_s() < o->count_at) {
        return;
    }
    for (int i = 0; i < OTLP_SIGNALS; i++) {
        struct stream *m = &o->streams[i];
        m->waiting = (struct otlp_waiting){0};
        if (o->state.follows[i]) {
            otlp_waiting(s, &o->state, (enum otlp_signal)i, &time, &m->waiting);
        }
    }
    o->count_at = monotonic_s() + COUNT_S;
}

static bool read_batch(struct otlp *o, struct stream *m) {
    struct store *s = open_database(o, m);
    if (!s) {
        return false;
    }
    const struct otlp_time time = time_of(o);
    count_waiting(o, s);
    bool ok = otlp_batch_read(&m->batch, s, &o->state, &time);
    store_close(s);
    return ok;
}

static void tell_refusals(const struct otlp_report *r) {
    if (r->refused > 0) {
        log_error("otlp: refused and set aside: %llu %s%s, such as those of %s %lld (%s)",
                  (unsigned long long)r->refused, r->signal == OTLP_TRACES ? "span" : "data point",
                  text_plural(r->refused), r->signal == OTLP_TRACES ? "request" : "bucket",
                  (long long)r->refusals[0].first, r->refusals[0].reason);
    }
}

static void tell_notice(struct otlp *o, struct stream *m) {
    if (m->batch.notice[0] && tries_may_tell(&m->notices, monotonic_s(), false)) {
        log_info("otlp: %s has taken all %s that it was given, and says: %s", o->to,
                 otlp_signal_name(m->batch.signal), m->batch.notice);
    }
}

// What is certain is written down, also where the rest is not.
static bool send_batch(struct otlp *o, struct stream *m) {
    struct otlp_report report;
    bool all = otlp_batch_send(&m->batch, &report);
    tell_notice(o, m);
    if (report.database_id == 0) {
        return all;
    }
    tell_refusals(&report);
    if (!writer_otlp_sent(o->writer, &report)) {
        return fail(m, "the database cannot be written, so that nobody would know what was sent");
    }
    return all;
}

static bool is_there(struct otlp *o, struct stream *m) {
    if (!m->known && m->batch.count == 0 && !otlp_batch_knock(&m->batch)) {
        return false;
    }
    if (!m->told) {
        m->told = true;
        log_info("otlp: %s to %s", otlp_signal_name(m->batch.signal), o->to);
    }
    m->known = true;
    return true;
}

static void hold(struct otlp *o, struct stream *m) {
    int64_t pause_s = tries_failed(&m->tries);
    // it may want more than we would wait, but not for ever
    int64_t wanted_s =
        m->batch.retry_s < LIMIT_EXPORT_RETRY_MOST ? m->batch.retry_s : LIMIT_EXPORT_RETRY_MOST;
    m->next_at = monotonic_s() + (pause_s > wanted_s ? pause_s : wanted_s);
    o->count_at = 0; // the pauses are long enough
}

// Sends what is due of one signal. Whether there is more at once.
static bool turn(struct otlp *o, enum otlp_signal signal) {
    struct stream *m = &o->streams[signal];
    bool ok = read_batch(o, m) && send_batch(o, m) && is_there(o, m);
    if (!ok) {
        m->known = false;
        hold(o, m);
    } else if (tries_worked(&m->tries)) {
        log_info("otlp: %s takes %s again", o->to, otlp_signal_name(signal));
    }
    if (ok && !m->batch.full) {
        m->waiting = (struct otlp_waiting){0}; // all that was due is sent
    }
    set_status(o);
    if (!worker_stopped(&o->worker)) {
        complain(o, signal);
    }
    return ok && m->batch.full;
}

static bool is_time(const struct stream *m) {
    return m->wanted && monotonic_s() >= m->next_at;
}

// What is over is sent now: nobody knows whether this file is ever opened again.
static void send_rest(struct otlp *o) {
    o->ending = true;
    for (int i = 0; i < OTLP_SIGNALS; i++) {
        struct stream *m = &o->streams[i];
        while (m->wanted && !m->tries.failing && !http_stopped(o->http) &&
               turn(o, (enum otlp_signal)i)) {
        }
    }
}

static void *run(void *arg) {
    struct otlp *o = arg;
    bool more;
    worker_nice();
    do {
        more = false;
        take_renewed(o);
        for (int i = 0; i < OTLP_SIGNALS && !worker_stopped(&o->worker); i++) {
            more = (is_time(&o->streams[i]) && turn(o, (enum otlp_signal)i)) || more;
        }
    } while (worker_sleep(&o->worker, more ? LIMIT_OTLP_PAUSE_MS * MILLISECOND : SECOND));
    send_rest(o);
    return NULL;
}

// -- the caller's side ----------------------------------------------------------------------------

_Static_assert((int)OTLP_WHY_BYTES == TARGET_WHY_BYTES && (int)OTLP_WHY_BYTES == HEADERS_WHY_BYTES,
               "one is told as the other");
_Static_assert((int)OTLP_TO_BYTES >= TARGET_TEXT_BYTES, "an address fits");

bool otlp_check(const char *url, bool headers, char why[OTLP_WHY_BYTES]) {
    struct target t;
    if (!target_parse_otlp(url, &t, why)) {
        return false;
    }
    if (headers && !t.tls && !target_loopback(&t)) {
        snprintf(why, OTLP_WHY_BYTES,
                 "without TLS the headers could be read on the way; take https://, or a receiver "
                 "on this machine");
        return false;
    }
    return true;
}

bool otlp_headers_check(const char *text, char why[OTLP_WHY_BYTES]) {
    struct otlp_headers headers;
    bool ok = otlp_headers_read(text, &headers, why);
    otlp_headers_free(&headers);
    return ok;
}

static void free_otlp(struct otlp *o) {
    for (int i = 0; i < OTLP_SIGNALS; i++) {
        otlp_batch_free(&o->streams[i].batch);
    }
    http_free(o->http);
    worker_free(&o->worker);
    free(o);
}

// NULL, and `why`, on failure.
static struct http *make_http(const struct otlp *o, const char *lines, char why[OTLP_WHY_BYTES]) {
    struct otlp_headers headers = {0};
    struct http *http = NULL;
    if (!lines || otlp_headers_read(lines, &headers, why)) {
        const struct http_options options = {.target = &o->target,
                                             .ca = o->ca[0] ? o->ca : NULL,
                                             .type = "application/x-protobuf",
                                             .heads = headers.lines};
        http = http_new(&options);
        if (!http) {
            snprintf(why, OTLP_WHY_BYTES, "out of memory");
        }
    }
    otlp_headers_free(&headers);
    return http;
}

static struct otlp *make(const struct otlp_options *options, const struct target *target,
                         char why[OTLP_WHY_BYTES]) {
    struct otlp *o = calloc(1, sizeof *o);
    if (!o) {
        snprintf(why, OTLP_WHY_BYTES, "out of memory");
        return NULL;
    }
    o->target = *target;
    o->bucket_s = options->bucket_s;
    worker_init(&o->worker);
    target_text(target, o->to);
    snprintf(o->status.to, sizeof o->status.to, "%s", o->to);
    snprintf(o->database, sizeof o->database, "%s", options->database);
    snprintf(o->ca, sizeof o->ca, "%s", options->ca ? options->ca : "");
    o->http = make_http(o, options->headers, why);
    for (int i = 0; i < OTLP_SIGNALS; i++) {
        o->streams[i].wanted = o->status.signals[i].wanted = options->signals[i];
        otlp_batch_init(&o->streams[i].batch, (enum otlp_signal)i, o->http);
    }
    if (!o->http) {
        free_otlp(o);
        return NULL;
    }
    return o;
}

struct otlp *otlp_start(const struct otlp_options *options, struct writer *writer,
                        char why[OTLP_WHY_BYTES]) {
    struct target target;
    if (!otlp_check(options->url, options->headers, why) ||
        !target_parse_otlp(options->url, &target, why)) {
        return NULL;
    }
    struct otlp *o = make(options, &target, why);
    if (!o) {
        return NULL;
    }
    o->writer = writer;
    if (!worker_start(&o->worker, run, o)) {
        snprintf(why, OTLP_WHY_BYTES, "no thread can be made");
        free_otlp(o);
        return NULL;
    }
    return o;
}

bool otlp_renew(struct otlp *o, const char *headers, char why[OTLP_WHY_BYTES]) {
    struct http *http = make_http(o, headers, why);
    if (http) {
        worker_renew(&o->worker, http);
    }
    return http;
}

void otlp_stop(struct otlp *o) {
    if (o) {
        worker_end(&o->worker, &o->http);
        free_otlp(o);
    }
}
