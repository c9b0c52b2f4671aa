// SPDX-License-Identifier: Apache-2.0
// The writer thread: owns the connection that writes, from writer_start to writer_stop, and takes
// one batch at a time, so that whoever gathers statistics never waits for the disk. All functions
// here are for one thread, the one that started it, but for writer_sent and writer_otlp_sent.
//
// The use: gather into one set of statistics, hand it over every second, go on gathering into the
// other. While the writer still holds a batch (a slow disk, a full one), writer_submit says no and
// the caller gathers on; the next second it asks again, or with writer_retry has it try what was
// refused.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/profile/profile.h"
#include "store/changes.h"
#include "store/notes.h"
#include "store/otlp.h"
#include "store/store.h"

struct writer; // opaque

struct writer_options {
    uint32_t bucket_s; // length of the batches' buckets, seconds
    // called on the writer thread when a batch is written and the writer idle again; may be NULL
    void (*done)(void *arg);
    void *arg;
};

// Starts the thread. The store stays the caller's, who must not touch it before writer_stop. NULL
// without memory or threads.
struct writer *writer_start(struct store *store, const struct writer_options *options);

// Hands a batch over. True: batch must not be changed or read by others until writer_idle says
// true. False: the writer holds the batch before; nothing was taken. Batches without any row may be
// handed over; they are done at once.
bool writer_submit(struct writer *w, const struct stats *batch, const struct directory *names);
// The same of a batch in several sets, LIMIT_PIPELINES at most: all of them are written, or none.
bool writer_submit_sets(struct writer *w, const struct stats *const *sets, uint32_t count,
                        const struct directory *names);

// Has the writer try the batch again that it holds, if the disk refused that. Never takes anything:
// the batch may have been written a moment ago, and would be written twice.
void writer_retry(struct writer *w);

// Hands a profile over to be kept. True: it must not be changed or freed until writer_kept gives it
// back. False: the writer has one already.
bool writer_keep(struct writer *w, const struct profile *profile);
// Whether a profile that was handed over is written: then it is the caller's again, and *id its
// number in the database. What cannot be written is tried again every second.
bool writer_kept(struct writer *w, const struct profile **profile, int64_t *id);

// Hands a note over, which is copied. Its ticket, or 0 where LIMIT_NOTES_WAITING wait already. What
// cannot be written is tried again every second.
int64_t writer_note(struct writer *w, const struct note *note);
// Whether the note of a ticket is written: then *id is its number in the database, 0 where so many
// have come since then that it is not known any more.
bool writer_noted(struct writer *w, int64_t ticket, int64_t *id);

// For the thread of an export, which is to have ended before writer_stop: has what it has sent
// written down (store_sent), and waits for that. False when that could not be done: the same is
// sent again then, which does no harm.
bool writer_sent(struct writer *w, const struct change_report *report);
// The same of --otlp (store_otlp_sent).
bool writer_otlp_sent(struct writer *w, const struct otlp_report *report);

// True when the writer holds no batch: the last one is written, and its set may be reset and filled
// again.
bool writer_idle(struct writer *w);

// For how many seconds, begun ones too, the disk has refused the batch that the writer holds; 0
// when it does not. NULL is allowed: nothing is refused.
int64_t writer_refused_s(struct writer *w);

// Waits until the writer holds no batch. False when the disk refuses the batch; the writer still
// holds it then.
bool writer_wait(struct writer *w);

// Writes what was submitted (once more when it was refused before), ends the thread and frees w.
// False when the batch could not be written and is lost, which the log says too. NULL is allowed.
bool writer_stop(struct writer *w);
