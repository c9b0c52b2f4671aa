// SPDX-License-Identifier: Apache-2.0
#include "export/worker.h"

#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"

static const int64_t SECOND = 1000000000, MILLISECOND = 1000000;
enum { NICE = 10, TELL_S = 60 };

void worker_init(struct worker *w) {
    pthread_condattr_t attributes;
    *w = (struct worker){.stop = false};
    pthread_mutex_init(&w->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

void worker_free(struct worker *w) {
    http_free(w->renewed);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->mutex);
}

bool worker_start(struct worker *w, void *(*run)(void *arg), void *arg) {
    return pthread_create(&w->thread, NULL, run, arg) == 0;
}

void worker_nice(void) {
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE); // of this thread alone, on Linux
}

bool worker_sleep(struct worker *w, int64_t ns) {
    int64_t at = clock_monotonic() + ns;
    struct timespec until = {.tv_sec = at / SECOND, .tv_nsec = at % SECOND};
    pthread_mutex_lock(&w->mutex);
    int rc = 0;
    while (!w->stop && !w->renewed && rc == 0) {
        rc = pthread_cond_timedwait(&w->changed, &w->mutex, &until);
    }
    bool stop = w->stop;
    pthread_mutex_unlock(&w->mutex);
    return !stop;
}

bool worker_stopped(struct worker *w) {
    pthread_mutex_lock(&w->mutex);
    bool stop = w->stop;
    pthread_mutex_unlock(&w->mutex);
    return stop;
}

void worker_renew(struct worker *w, struct http *http) {
    pthread_mutex_lock(&w->mutex);
    struct http *unused = w->renewed;
    w->renewed = http;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
    http_free(unused);
}

bool worker_take_renewed(struct worker *w, struct http **http) {
    struct http *old = NULL;
    pthread_mutex_lock(&w->mutex);
    if (w->renewed && !w->stop) {
        old = *http;
        *http = w->renewed;
        w->renewed = NULL;
    }
    pthread_mutex_unlock(&w->mutex);
    http_free(old);
    return old;
}

void worker_end(struct worker *w, struct http *const *http) {
    pthread_mutex_lock(&w->mutex);
    w->stop = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LIMIT_EXPORT_END_SECONDS;
    if (pthread_timedjoin_np(w->thread, NULL, &until) != 0) {
        pthread_mutex_lock(&w->mutex);
        http_stop(*http);
        pthread_mutex_unlock(&w->mutex);
        pthread_join(w->thread, NULL);
    }
}

// -- trying again ---------------------------------------------------------------------------------

int64_t tries_failed(struct tries *t) {
    t->failing = true;
    t->pause_s = t->pause_s == 0 ? LIMIT_EXPORT_PAUSE_LEAST : 2 * t->pause_s;
    t->pause_s = t->pause_s < LIMIT_EXPORT_PAUSE_MOST ? t->pause_s : LIMIT_EXPORT_PAUSE_MOST;
    return t->pause_s;
}

bool tries_worked(struct tries *t) {
    bool tell = t->failing && t->told;
    t->told = t->told && !tell;
    t->failing = false;
    t->pause_s = 0;
    return tell;
}

bool tries_may_tell(struct tries *t, int64_t monotonic_s, bool failure) {
    if (monotonic_s < t->tell_at) {
        return false;
    }
    t->told = failure;
    t->tell_at = monotonic_s + TELL_S;
    return true;
}

int64_t pace_rest(struct pace *p, uint32_t rows, int64_t now) {
    int64_t earliest = now - LIMIT_EXPORT_CATCH_UP_MS * MILLISECOND;
    p->until = p->until > earliest ? p->until : earliest;
    p->until += (int64_t)rows * SECOND / LIMIT_EXPORT_ROWS_PER_SECOND;
    return p->until - now;
}
