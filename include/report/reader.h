// SPDX-License-Identifier: Apache-2.0
// Reading from the database for programs that have other things to do: questions are worked out on
// threads of the reader's own, each with a read-only connection, and come back to the thread that
// asked. A file that is moved, removed or replaced is opened anew at its path with the next
// question.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

struct reader; // opaque

// A question. The caller's memory, which the reader has from reader_ask until it calls done.
struct reader_job {
    // Works it out, on a thread of the reader. store is NULL where the file cannot be opened: error
    // says why. What it leaves in the job is for done.
    void (*work)(struct reader_job *job, struct store *store);
    void (*done)(struct reader_job *job); // in reader_settle
    char error[STORE_ERROR_BYTES];
    struct reader_job *next; // the reader's
};

struct reader_options {
    const char *path; // of the database; lives as long as the reader
    // Where there is no such path (NULL): opens what is read instead, and error says why not. Each
    // thread does, and keeps it.
    enum store_status (*open)(const void *from, struct store **out, char error[STORE_ERROR_BYTES]);
    const void *from;
    uint32_t threads;        // questions that are worked out at the same time
    int64_t limit_ns;        // that one may take: then its query fails
    void (*wake)(void *arg); // a question is ready for reader_settle; called by any thread
    void *arg;
};

// Starts the threads. NULL without memory or threads.
struct reader *reader_start(const struct reader_options *options);
// Asks. False, and done is not called, where LIMIT_READER_JOBS wait already.
bool reader_ask(struct reader *r, struct reader_job *job);
// Calls done of each question that is ready, in the caller's thread.
void reader_settle(struct reader *r);
// Ends: waits for what is being worked out, and calls done of that and of all that wait. NULL is
// allowed.
void reader_stop(struct reader *r);
