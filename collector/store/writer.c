// SPDX-License-Identifier: Apache-2.0
#include "store/writer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/time_math.h"
#include "store/keep_profile.h"
#include "store/query.h"
#include "store/retention.h"

enum { COMPLAIN_S = 60, MORE_S = 1, LOOK_S = 1 };

enum state {
    IDLE,    // no batch
    PENDING, // a batch to write, or being written
    REFUSED  // a batch that could not be written; writer_retry makes it PENDING again
};

// What somebody has sent, to be written down.
struct report {
    bool (*write)(struct store *s, const void *of);
    const void *of;
    bool done, written;
};

struct writer {
    struct store *store; // the thread's, until it is joined
    struct writer_options options;
    pthread_t thread;
    pthread_mutex_t mutex; // protects what follows
    pthread_cond_t changed;
    enum state state;
    bool stop;
    // when the batch at hand was first refused, monotonic seconds; 0: it was not
    int64_t refused_since;
    const struct stats *sets[LIMIT_PIPELINES]; // of the batch at hand, unless IDLE
    uint32_t set_count;
    const struct directory *names;
    const struct profile *profile; // to be kept, NULL: none,
    int64_t profile_id;            // and its number once it is; 0 before
    // notes by their tickets, a ring: the last one given out, and the last one written
    struct note notes[LIMIT_NOTES_WAITING];
    int64_t notes_taken, notes_written;
    struct report *report; // of who waits for it, NULL: none

    // the thread's own
    uint64_t refusals;   // of the batch at hand
    int64_t complain_at; // no further line in the log before this
    int64_t look_at;     // when the file's place is looked at next
    bool lost;           // the file is out of place, and nothing could be opened instead
    int64_t keep_at;     // when a profile is tried next
    int64_t note_at;     // and when a note is
    int64_t expire_at;   // when old rows are looked for next
    bool looked;         // they have been looked for before, when
    int64_t clock_ahead; // the wall clock was this far ahead of the monotonic one, seconds
};

static int64_t monotonic_s(void) {
    return clock_monotonic() / 1000000000;
}

// -- the thread -----------------------------------------------------------------------------------

static const char *what_of(enum store_place place) {
    switch (place) {
    case STORE_MOVED:
        return "the file was moved away; what was written until now is in it";
    case STORE_REMOVED:
        return "the file was removed, with what was in it";
    case STORE_CUT:
        return "somebody cut the file, or wrote over it: some or all of what was in it is lost";
    case STORE_WAL_GONE:
        return "its log (-wal) was moved or removed; what was in the log is in the file";
    case STORE_WAL_CUT:
        return "somebody cut its log (-wal): what was written in the last moments may be missing";
    default:
        return "";
    }
}

// Complains once a minute.
static void complain(struct writer *w, const char *what) {
    if (monotonic_s() >= w->complain_at) {
        log_error("database: cannot write (%s); the statistics are kept in memory and tried again",
                  what);
        w->complain_at = monotonic_s() + COMPLAIN_S;
    }
}

// Whether the file stands where it should, or what stands there now could be opened.
static bool in_place(struct writer *w) {
    enum store_place place = store_look(w->store);
    w->look_at = monotonic_s() + LOOK_S;
    if (place == STORE_IN_PLACE) {
        return true;
    }
    if (place != STORE_CLOSED) {
        log_error("database: %s. It is opened anew", what_of(place));
        w->complain_at = 0;
    }
    w->lost = store_reopen(w->store, place) != STORE_OK;
    if (w->lost) {
        complain(w, store_error(w->store));
        return false;
    }
    log_info("database: written to again, where it should stand");
    w->looked = false; // the newest data is another file's
    return true;
}

// Writes the batch, into a file that can be found. What went into one that was removed meanwhile
// has to be written again.
static bool write_in_place(struct writer *w) {
    if (!in_place(w)) {
        return false;
    }
    if (!store_write_sets(w->store, w->options.bucket_s, w->sets, w->set_count, w->names)) {
        complain(w, store_error(w->store));
        return false;
    }
    enum store_place place = store_look(w->store);
    return place != STORE_REMOVED && place != STORE_CUT && place != STORE_WAL_CUT;
}

// Whether the file went out of place while it was written to.
static bool misplaced(const struct writer *w) {
    enum store_place place = store_look(w->store);
    return place != STORE_IN_PLACE && place != STORE_CLOSED;
}

// Writes the batch and says so. Without the mutex: the caller of submit never waits for the disk.
static bool write_batch(struct writer *w) {
    if (write_in_place(w) || (misplaced(w) && write_in_place(w))) {
        if (w->refusals > 0) {
            log_info("database: written again, after %llu failed attempts",
                     (unsigned long long)w->refusals);
        }
        w->refusals = 0;
        return true;
    }
    w->refusals++;
    return false;
}

// Whether the wall clock has leapt ahead of what is known of the time. It is believed the next
// time.
static bool clock_leapt(struct writer *w, int64_t now) {
    int64_t first, last, ahead = now - monotonic_s();
    if (!w->looked) {
        w->clock_ahead =
            query_extent(w->store, &first, &last) ? time_sub(last, monotonic_s()) : ahead;
        w->looked = true;
    }
    int64_t leap = time_sub(ahead, w->clock_ahead);
    w->clock_ahead = ahead;
    if (leap <= RETENTION_AHEAD_S) {
        return false;
    }
    log_warning(
        "database: the clock is suddenly %lld hours ahead of the last data. What is too old by it "
        "is deleted in an hour, unless the clock is set back",
        (long long)leap / 3600);
    return true;
}

static void expire(struct writer *w) {
    int64_t now = clock_wall() / 1000000000;
    if (clock_leapt(w, now)) {
        w->expire_at = monotonic_s() + RETENTION_DOUBT_S;
        return;
    }
    bool more = store_expire(w->store, now);
    if (store_error(w->store)[0]) {
        log_error("database: old data is not deleted (%s); tried again in a minute",
                  store_error(w->store));
    }
    w->expire_at = monotonic_s() + (more ? MORE_S : RETENTION_PERIOD_S);
}

// Keeps the profile at hand. Its number; 0 when that cannot be done now.
static int64_t keep_profile(struct writer *w, const struct profile *profile) {
    int64_t id;
    w->keep_at = monotonic_s() + MORE_S;
    if (!in_place(w)) {
        return 0;
    }
    if (store_keep_profile(w->store, profile, &id)) {
        return id;
    }
    complain(w, store_error(w->store));
    return 0;
}

// Keeps a note; false when that cannot be done now.
static bool keep_note(struct writer *w, struct note *note) {
    w->note_at = monotonic_s() + MORE_S;
    if (!in_place(w)) {
        return false;
    }
    if (!store_keep_note(w->store, note, &note->id)) {
        complain(w, store_error(w->store));
        return false;
    }
    w->note_at = 0;
    return true;
}

static bool has_note(const struct writer *w) {
    return w->notes_written < w->notes_taken;
}

// With the mutex, which is not held while the oldest of the notes is written.
static void write_note(struct writer *w) {
    struct note note = w->notes[(w->notes_written + 1) % LIMIT_NOTES_WAITING];
    pthread_mutex_unlock(&w->mutex);
    bool ok = keep_note(w, &note);
    pthread_mutex_lock(&w->mutex);
    if (ok) {
        w->notes_written++;
        w->notes[w->notes_written % LIMIT_NOTES_WAITING].id = note.id;
    } else if (w->stop) { // it was tried once more
        log_error("database: the note \"%s\" is lost", note.text);
        w->notes_written++;
    }
}

// Writes down what was sent; once, as it can be sent again.
static bool write_report(struct writer *w, const struct report *report) {
    if (!in_place(w)) {
        return false;
    }
    if (!report->write(w->store, report->of)) {
        complain(w, store_error(w->store));
        return false;
    }
    return true;
}

static void *writer_thread(void *arg) {
    struct writer *w = arg;
    pthread_mutex_lock(&w->mutex);
    for (;;) {
        if (w->state == PENDING) {
            pthread_mutex_unlock(&w->mutex);
            bool ok = write_batch(w);
            pthread_mutex_lock(&w->mutex);
            w->state = ok ? IDLE : REFUSED;
            w->refused_since = ok ? 0 : w->refused_since > 0 ? w->refused_since : monotonic_s();
            pthread_cond_broadcast(&w->changed);
            if (ok && w->options.done) {
                pthread_mutex_unlock(&w->mutex);
                w->options.done(w->options.arg);
                pthread_mutex_lock(&w->mutex);
            }
        } else if (w->profile && w->profile_id == 0 && (w->stop || monotonic_s() >= w->keep_at)) {
            const struct profile *profile = w->profile;
            pthread_mutex_unlock(&w->mutex);
            int64_t id = keep_profile(w, profile);
            pthread_mutex_lock(&w->mutex);
            w->profile_id = id;
            w->profile = id == 0 && w->stop ? NULL : profile; // it is tried once more
        } else if (has_note(w) && (w->stop || monotonic_s() >= w->note_at)) {
            write_note(w);
        } else if (w->report) {
            struct report *report = w->report;
            pthread_mutex_unlock(&w->mutex);
            bool ok = write_report(w, report);
            pthread_mutex_lock(&w->mutex);
            report->written = ok;
            report->done = true;
            w->report = NULL;
            pthread_cond_broadcast(&w->changed);
        } else if (w->stop) {
            break;
        } else if (monotonic_s() >= w->look_at) {
            pthread_mutex_unlock(&w->mutex);
            in_place(w);
            pthread_mutex_lock(&w->mutex);
        } else if (monotonic_s() >= w->expire_at && !w->lost) {
            pthread_mutex_unlock(&w->mutex);
            expire(w);
            pthread_mutex_lock(&w->mutex);
        } else {
            int64_t next = w->look_at < w->expire_at || w->lost ? w->look_at : w->expire_at;
            bool keeps = w->profile && w->profile_id == 0;
            next = keeps && w->keep_at < next ? w->keep_at : next;
            next = has_note(w) && w->note_at < next ? w->note_at : next;
            struct timespec until = {.tv_sec = next};
            pthread_cond_timedwait(&w->changed, &w->mutex, &until);
        }
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

// -- the caller's side ----------------------------------------------------------------------------

struct writer *writer_start(struct store *store, const struct writer_options *options) {
    pthread_condattr_t attributes;
    struct writer *w = calloc(1, sizeof *w);
    if (!w) {
        return NULL;
    }
    w->store = store;
    w->options = *options;
    pthread_mutex_init(&w->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&w->thread, NULL, writer_thread, w) != 0) {
        pthread_cond_destroy(&w->changed);
        pthread_mutex_destroy(&w->mutex);
        free(w);
        return NULL;
    }
    return w;
}

bool writer_submit(struct writer *w, const struct stats *batch, const struct directory *names) {
    return writer_submit_sets(w, &batch, 1, names);
}

bool writer_submit_sets(struct writer *w, const struct stats *const *sets, uint32_t count,
                        const struct directory *names) {
    pthread_mutex_lock(&w->mutex);
    bool taken = w->state == IDLE;
    if (taken) {
        memcpy(w->sets, sets, count * sizeof *sets);
        w->set_count = count;
        w->names = names;
        w->state = PENDING;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->mutex);
    return taken;
}

bool writer_keep(struct writer *w, const struct profile *profile) {
    pthread_mutex_lock(&w->mutex);
    bool taken = !w->profile;
    if (taken) {
        w->profile = profile;
        w->profile_id = 0;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->mutex);
    return taken;
}

bool writer_kept(struct writer *w, const struct profile **profile, int64_t *id) {
    pthread_mutex_lock(&w->mutex);
    bool kept = w->profile && w->profile_id != 0;
    if (kept) {
        *profile = w->profile;
        *id = w->profile_id;
        w->profile = NULL;
    }
    pthread_mutex_unlock(&w->mutex);
    return kept;
}

int64_t writer_note(struct writer *w, const struct note *note) {
    int64_t ticket = 0;
    pthread_mutex_lock(&w->mutex);
    if (w->notes_taken - w->notes_written < LIMIT_NOTES_WAITING) {
        ticket = ++w->notes_taken;
        w->notes[ticket % LIMIT_NOTES_WAITING] = *note;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->mutex);
    return ticket;
}

bool writer_noted(struct writer *w, int64_t ticket, int64_t *id) {
    pthread_mutex_lock(&w->mutex);
    bool written = w->notes_written >= ticket;
    bool known = w->notes_taken - ticket < LIMIT_NOTES_WAITING;
    *id = written && known ? w->notes[ticket % LIMIT_NOTES_WAITING].id : 0;
    pthread_mutex_unlock(&w->mutex);
    return written;
}

static bool report_and_wait(struct writer *w, struct report report) {
    pthread_mutex_lock(&w->mutex);
    while (w->report) { // somebody else's
        pthread_cond_wait(&w->changed, &w->mutex);
    }
    w->report = &report;
    pthread_cond_broadcast(&w->changed);
    while (!report.done) {
        pthread_cond_wait(&w->changed, &w->mutex);
    }
    pthread_mutex_unlock(&w->mutex);
    return report.written;
}

static bool write_changes(struct store *s, const void *of) {
    return store_sent(s, of);
}

bool writer_sent(struct writer *w, const struct change_report *report) {
    return report_and_wait(w, (struct report){.write = write_changes, .of = report});
}

static bool write_otlp(struct store *s, const void *of) {
    return store_otlp_sent(s, of);
}

bool writer_otlp_sent(struct writer *w, const struct otlp_report *report) {
    return report_and_wait(w, (struct report){.write = write_otlp, .of = report});
}

static void try_again(struct writer *w) {
    if (w->state == REFUSED) {
        w->state = PENDING;
        pthread_cond_broadcast(&w->changed);
    }
}

void writer_retry(struct writer *w) {
    pthread_mutex_lock(&w->mutex);
    try_again(w);
    pthread_mutex_unlock(&w->mutex);
}

bool writer_idle(struct writer *w) {
    pthread_mutex_lock(&w->mutex);
    bool idle = w->state == IDLE;
    pthread_mutex_unlock(&w->mutex);
    return idle;
}

int64_t writer_refused_s(struct writer *w) {
    if (!w) {
        return 0;
    }
    pthread_mutex_lock(&w->mutex);
    int64_t since = w->refused_since;
    pthread_mutex_unlock(&w->mutex);
    return since > 0 ? monotonic_s() - since + 1 : 0;
}

bool writer_wait(struct writer *w) {
    pthread_mutex_lock(&w->mutex);
    while (w->state == PENDING) {
        pthread_cond_wait(&w->changed, &w->mutex);
    }
    bool idle = w->state == IDLE;
    pthread_mutex_unlock(&w->mutex);
    return idle;
}

bool writer_stop(struct writer *w) {
    if (!w) {
        return true;
    }
    pthread_mutex_lock(&w->mutex);
    try_again(w);
    w->stop = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
    pthread_join(w->thread, NULL);
    bool written = w->state == IDLE;
    if (!written) {
        log_error("database: the last statistics are lost (%s)", store_error(w->store));
    }
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->mutex);
    free(w);
    return written;
}
