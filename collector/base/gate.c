// SPDX-License-Identifier: Apache-2.0
#include "base/gate.h"

#include "base/clock.h"

void gate_init(struct gate *g) {
    *g = (struct gate){.inside = GATE_NOBODY};
    pthread_mutex_init(&g->mutex, NULL);
    pthread_cond_init(&g->left, NULL);
}

void gate_destroy(struct gate *g) {
    pthread_mutex_destroy(&g->mutex);
    pthread_cond_destroy(&g->left);
}

// Whether the worker has waited for so long that the visitor leaves him the next turn.
static bool is_due(const struct gate *g) {
    return g->worker_waits && clock_monotonic() - g->since >= GATE_WORK_NS;
}

void gate_work(struct gate *g) {
    pthread_mutex_lock(&g->mutex);
    while (g->inside != GATE_NOBODY || (g->visitor_waits && !is_due(g))) {
        g->since = g->worker_waits ? g->since : clock_monotonic();
        g->worker_waits = true;
        pthread_cond_wait(&g->left, &g->mutex);
    }
    g->worker_waits = false;
    g->inside = GATE_WORKER;
    pthread_mutex_unlock(&g->mutex);
}

void gate_rest(struct gate *g) {
    pthread_mutex_lock(&g->mutex);
    g->inside = GATE_NOBODY;
    if (g->visitor_waits) {
        pthread_cond_signal(&g->left);
    }
    pthread_mutex_unlock(&g->mutex);
}

void gate_visit(struct gate *g) {
    if (g->visits++ > 0) {
        return;
    }
    pthread_mutex_lock(&g->mutex);
    while (g->inside != GATE_NOBODY || is_due(g)) {
        if (g->inside == GATE_NOBODY) { // he may have gone to sleep because the visitor was waiting
            pthread_cond_signal(&g->left);
        }
        g->visitor_waits = true;
        pthread_cond_wait(&g->left, &g->mutex);
    }
    g->visitor_waits = false;
    g->inside = GATE_VISITOR;
    pthread_mutex_unlock(&g->mutex);
}

void gate_part(struct gate *g) {
    if (--g->visits > 0) {
        return;
    }
    pthread_mutex_lock(&g->mutex);
    g->inside = GATE_NOBODY;
    if (g->worker_waits) {
        pthread_cond_signal(&g->left);
    }
    pthread_mutex_unlock(&g->mutex);
}
