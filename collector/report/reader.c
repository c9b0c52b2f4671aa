// SPDX-License-Identifier: Apache-2.0
#include "report/reader.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/time_math.h"

struct jobs {
    struct reader_job *first;
    struct reader_job **end; // where the next one goes
};

struct reader {
    struct reader_options options;
    pthread_t *threads;
    uint32_t started;
    pthread_mutex_t mutex; // guards what follows
    pthread_cond_t changed;
    struct jobs waiting, ready;
    uint32_t count; // of the waiting ones
    bool stop;
};

// A thread's connection, and which file it is of.
struct connection {
    struct store *store;
    struct stat file;
};

static void push(struct jobs *jobs, struct reader_job *job) {
    job->next = NULL;
    *jobs->end = job;
    jobs->end = &job->next;
}

static struct reader_job *pop(struct jobs *jobs) {
    struct reader_job *job = jobs->first;
    if (job) {
        jobs->first = job->next;
        if (!jobs->first) {
            jobs->end = &jobs->first;
        }
    }
    return job;
}

// The connection to what stands at the path now; NULL, and the job knows why.
static struct store *connected(const struct reader *r, struct connection *c,
                               struct reader_job *job) {
    struct stat now;
    if (!r->options.path) {
        return c->store || r->options.open(r->options.from, &c->store, job->error) == STORE_OK
                   ? c->store
                   : NULL;
    }
    bool there = stat(r->options.path, &now) == 0;
    if (c->store && there && now.st_dev == c->file.st_dev && now.st_ino == c->file.st_ino) {
        return c->store;
    }
    store_close(c->store);
    c->store = NULL;
    if (store_open_reader(r->options.path, &c->store, job->error) == STORE_OK) {
        c->file = now;
    }
    return c->store;
}

static void *run(void *context) {
    struct reader *r = context;
    struct connection connection = {0};
    pthread_mutex_lock(&r->mutex);
    while (true) {
        struct reader_job *job = r->stop ? NULL : pop(&r->waiting);
        if (r->stop) {
            break;
        }
        if (!job) {
            pthread_cond_wait(&r->changed, &r->mutex);
            continue;
        }
        r->count--;
        pthread_mutex_unlock(&r->mutex);
        job->error[0] = 0;
        struct store *store = connected(r, &connection, job);
        if (store) {
            store_set_deadline(store, time_add(clock_monotonic(), r->options.limit_ns));
        }
        job->work(job, store);
        pthread_mutex_lock(&r->mutex);
        push(&r->ready, job);
        r->options.wake(r->options.arg);
    }
    pthread_mutex_unlock(&r->mutex);
    store_close(connection.store);
    return NULL;
}

struct reader *reader_start(const struct reader_options *options) {
    struct reader *r = calloc(1, sizeof *r);
    if (!r || !(r->threads = calloc(options->threads, sizeof *r->threads))) {
        free(r);
        return NULL;
    }
    r->options = *options;
    r->waiting.end = &r->waiting.first;
    r->ready.end = &r->ready.first;
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->changed, NULL);
    while (r->started < options->threads &&
           pthread_create(&r->threads[r->started], NULL, run, r) == 0) {
        r->started++;
    }
    if (r->started == 0) {
        reader_stop(r);
        return NULL;
    }
    return r;
}

bool reader_ask(struct reader *r, struct reader_job *job) {
    pthread_mutex_lock(&r->mutex);
    bool room = r->count < LIMIT_READER_JOBS;
    if (room) {
        push(&r->waiting, job);
        r->count++;
        pthread_cond_signal(&r->changed);
    }
    pthread_mutex_unlock(&r->mutex);
    return room;
}

// Each job may ask again, or stop nothing: done runs without the mutex.
static void settle(struct reader *r, struct jobs *jobs) {
    pthread_mutex_lock(&r->mutex);
    for (struct reader_job *job; (job = pop(jobs));) {
        pthread_mutex_unlock(&r->mutex);
        job->done(job);
        pthread_mutex_lock(&r->mutex);
    }
    pthread_mutex_unlock(&r->mutex);
}

void reader_settle(struct reader *r) {
    settle(r, &r->ready);
}

void reader_stop(struct reader *r) {
    if (!r) {
        return;
    }
    pthread_mutex_lock(&r->mutex);
    r->stop = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->mutex);
    for (uint32_t i = 0; i < r->started; i++) {
        pthread_join(r->threads[i], NULL);
    }
    settle(r, &r->ready);
    for (struct reader_job *job = r->waiting.first; job; job = job->next) {
        snprintf(job->error, sizeof job->error, "the program ends");
    }
    settle(r, &r->waiting);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->mutex);
    free(r->threads);
    free(r);
}
