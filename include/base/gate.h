// SPDX-License-Identifier: Apache-2.0
// A lock between a thread that works nearly all the time, piece by piece, and one that now and then
// has to get at the same things, the visitor. A mutex would be got by who asks first, and that is
// the worker, who has just given it back. Here the visitor waits for the end of a piece that goes
// on, and no longer; who comes again before the worker is back at work does not wait at all, which
// matters where processors are short. The worker waits for GATE_WORK_NS at most before it is his
// turn. There is one worker, and one visitor, who may visit while he visits.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define GATE_WORK_NS 10000000LL

struct gate {
    pthread_mutex_t mutex; // protects what follows
    pthread_cond_t left;
    enum gate_side { GATE_NOBODY, GATE_WORKER, GATE_VISITOR } inside;
    bool visitor_waits;
    bool worker_waits;
    int64_t since;   // when he began to, monotonic ns
    uint32_t visits; // the visitor's own
};

void gate_init(struct gate *g);
void gate_destroy(struct gate *g);
// The worker begins a piece, and ends it.
void gate_work(struct gate *g);
void gate_rest(struct gate *g);
// The visitor comes, and goes.
void gate_visit(struct gate *g);
void gate_part(struct gate *g);
