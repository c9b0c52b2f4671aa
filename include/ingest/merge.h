// SPDX-License-Identifier: Apache-2.0
// The data connections of one session as one trace stream: whole frames, in the order of their
// times. While there is only one connection its bytes go through as they come. One thread.
//
// A message waits until every other connection has one that is later. It waits for MERGE_HOLD_NS
// only where the other one has nothing on its way: its last frame was an empty one, such as the
// guard's gauge makes every 10 ms, and all that has come was read. So a request is closed by the
// connection that is furthest behind. Where the collector itself has stood still, what was sent
// meanwhile may be anywhere on its way: for MERGE_SILENT_NS from then on no empty frame tells
// anything.
//
// A frame may hold a list of messages in the order of their times, as who traces by a process sends
// them: they are handed on one by one, each in a frame of its own. So are what messages and losses
// a block (model/message/native.h) has, each in a block of its own.
//
// A connection that has brought nothing for MERGE_SILENT_NS holds up the others no longer. What
// does not fit into LIMIT_PARTIAL_BYTES while it waits goes on out of order, and counts as a loss.
// Where a connection has lost something, is lost or is silent, all requests are incomplete until it
// goes on.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/limits.h"

struct merge;
struct pipeline_node;

#define MERGE_HOLD_NS 100000000LL
#define MERGE_SILENT_NS 1000000000LL
// The next merge_tick comes so much later than is usual: the collector stood still.
#define MERGE_STILL_NS 300000000LL

// For a node whose stream is open in its pipeline, and gets (pipeline_feed) what `take` is given.
// take returns what pipeline_feed returned. NULL without memory.
struct merge *merge_new(struct pipeline_node *n, int64_t (*take)(void *context, struct slice bytes),
                        void *context);
// NULL is allowed. What waits is thrown away.
void merge_free(struct merge *m);
// A connection begins; number: below LIMIT_STREAMS, and not open. False without memory.
bool merge_open(struct merge *m, uint32_t number);
// It has brought bytes; more: it has brought more, which follows. -1, or the offset of what is no
// trace frame: it is to be closed then.
int64_t merge_feed(struct merge *m, uint32_t number, struct slice bytes, bool more);
// It has ended; clean: nothing of the trace comes after what it brought. The same is true of this
// connection where its last frame was a FRAME_END. What it brought keeps its place among the
// others'.
void merge_close(struct merge *m, uint32_t number, bool clean);
// Time has passed: after pipeline_tick.
void merge_tick(struct merge *m);
// All connections have ended: hands everything on that waits.
void merge_end(struct merge *m);
