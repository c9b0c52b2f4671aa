// SPDX-License-Identifier: Apache-2.0
// The thread of an export: it sleeps between its turns and is ended within a time. And how long it
// waits after what went wrong and after what went well, and how often the log tells of that.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "export/http.h"

struct worker {
    pthread_t thread;
    pthread_mutex_t mutex; // protects what follows, and what its owner tells others of
    pthread_cond_t changed;
    bool stop;
    struct http *renewed; // NULL, or what its owner is to go on with
};

void worker_init(struct worker *w);
void worker_free(struct worker *w); // ended, or never started
// Starts the thread, which gives way to who ingests where it calls worker_nice first. False: none
// can be made.
bool worker_start(struct worker *w, void *(*run)(void *arg), void *arg);
void worker_nice(void);
// The thread's own: sleeps, unless it is to end or something is renewed. Whether to go on.
bool worker_sleep(struct worker *w, int64_t ns);
bool worker_stopped(struct worker *w);
// Others: the thread is to go on with this, which is its own from then on.
void worker_renew(struct worker *w, struct http *http);
// The thread's own: puts what is renewed into the place of *http, which is freed. Whether it has.
bool worker_take_renewed(struct worker *w, struct http **http);
// Tells it to end, and waits for that: after LIMIT_EXPORT_END_SECONDS what it asks fails.
void worker_end(struct worker *w, struct http *const *http);

// What of one kind is tried again and again. All zero: it was not tried yet.
struct tries {
    bool failing;    // the last one went wrong
    bool told;       // and the log said so
    int64_t pause_s; // until the next
    int64_t tell_at; // no further line before this, monotonic seconds
};

// It went wrong. For how many seconds to wait: twice as long as the last time, up to a limit.
int64_t tries_failed(struct tries *t);
// It went well. Whether that is to be told, as the log has said that it does not.
bool tries_worked(struct tries *t);
// Whether the log may have a line of it now: one a minute. failure: it is of one.
bool tries_may_tell(struct tries *t, int64_t monotonic_s, bool failure);

// The pace of a backlog. All zero: nothing was sent yet.
struct pace {
    int64_t until; // monotonic ns at which all that was sent would be through, at the allowed rate
};

// So many rows more were sent by now. For how many ns to wait before the next batch; less than one:
// go on. Time lost to a slow batch may be made up, up to LIMIT_EXPORT_CATCH_UP_MS.
int64_t pace_rest(struct pace *p, uint32_t rows, int64_t now);
