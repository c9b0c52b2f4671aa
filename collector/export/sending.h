// SPDX-License-Identifier: Apache-2.0
// A thread that sends a batch, while who owns it reads the next one. One batch at a time, in order:
// the next is given only when the one before is answered.
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "export/send.h"

struct sending {
    struct sender *sender; // the thread's own between sending_begin and sending_wait
    pthread_t thread;
    pthread_mutex_t mutex; // protects what follows
    pthread_cond_t changed;
    bool running, stop;
    struct batch *batch; // that is sent; NULL: none
    enum sent sent;      // what came of the last one
};

// Starts the thread, which gives way to who ingests. False: none can be made.
bool sending_start(struct sending *s, struct sender *sender);
// Begins to send a batch, which has rows. The sender belongs to the thread until sending_wait, and
// the batch too, but for what batch_read reads of the batch before. Not while another is sent.
void sending_begin(struct sending *s, struct batch *batch);
// Waits until it is answered, or http_stop has ended that.
enum sent sending_wait(struct sending *s);
// Ends the thread, between two batches. One that is all zero was never started.
void sending_end(struct sending *s);
