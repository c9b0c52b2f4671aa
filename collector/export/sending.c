// SPDX-License-Identifier: Apache-2.0
#include "export/sending.h"

#include "export/worker.h"

static void *sending_thread(void *arg) {
    struct sending *s = arg;
    pthread_setname_np(pthread_self(), "export_send");
    worker_nice();
    pthread_mutex_lock(&s->mutex);
    while (!s->stop) {
        if (s->batch) {
            struct batch *batch = s->batch;
            pthread_mutex_unlock(&s->mutex);
            enum sent sent = sender_send(s->sender, batch);
            pthread_mutex_lock(&s->mutex);
            s->sent = sent;
            s->batch = NULL;
            pthread_cond_broadcast(&s->changed);
        } else {
            pthread_cond_wait(&s->changed, &s->mutex);
        }
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

bool sending_start(struct sending *s, struct sender *sender) {
    *s = (struct sending){.sender = sender};
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->running = pthread_create(&s->thread, NULL, sending_thread, s) == 0;
    if (!s->running) {
        pthread_cond_destroy(&s->changed);
        pthread_mutex_destroy(&s->mutex);
    }
    return s->running;
}

void sending_begin(struct sending *s, struct batch *batch) {
    pthread_mutex_lock(&s->mutex);
    s->batch = batch;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
}

enum sent sending_wait(struct sending *s) {
    pthread_mutex_lock(&s->mutex);
    while (s->batch) {
        pthread_cond_wait(&s->changed, &s->mutex);
    }
    enum sent sent = s->sent;
    pthread_mutex_unlock(&s->mutex);
    return sent;
}

void sending_end(struct sending *s) {
    if (s->running) {
        pthread_mutex_lock(&s->mutex);
        s->stop = true;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->mutex);
        pthread_join(s->thread, NULL);
        pthread_cond_destroy(&s->changed);
        pthread_mutex_destroy(&s->mutex);
        s->running = false;
    }
}
