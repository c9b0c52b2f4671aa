// SPDX-License-Identifier: Apache-2.0
// One finished request as a tree of spans, and what each span's time is worth. Pure: arrays in,
// arrays out.
//
// A span's parent is the span below it on its process's stack when that is of the same request. The
// first of a process hangs
//   - of a process that was spawned within the request: below the span that spawned it, or where
//     the spawner's own spans hung at that time,
//   - else below the span that was open in the process which its token came from, when it began,
//     unless that process itself works for this one, somewhere up its spans: then the token came
//     back with an answer, and the span hangs where this process's spans before it hang. Where no
//     span was open there any more: below the last one if that process did something else while the
//     span ran, or had ended the request (it has cast), else where its own spans hang (it waits for
//     the answer).
// A span without a parent hangs below the request itself. When all spans are in the process that
// began the request, nothing came from elsewhere.
//
// The first span that a message or a spawn brings to a process has waited since the last thing that
// the sender is known to have done or got back before: the begin of the request, a span's start or
// end, a spawn, the end of a span that its message or spawn had brought to another process. It is
// an estimate: too long by what the sender worked between that and the send, too short where it had
// sent before that came back. Whether a span that is not the first of its process was brought by
// another message from the same sender shows only by such a thing in between. A spawned process
// that was somebody's sender before its first span has not waited since its spawn.
//
// Where the messages that brought a span are told (struct span_wait) it is no estimate: the span
// has waited from when each was sent until its process took it. What that process did from then on
// until the span began is no waiting. It was done for who had asked, in no span, and so it is self
// time of that one's span, as what a function without a tier does is of its caller's; below the
// request itself it is uncovered.
//
// So each moment of a request is worth something once, but for what runs in parallel:
//   - self time of a span: none of its child spans covers it, nor does it wait for one of them to
//     begin;
//   - waiting: a span, or the request where no span runs, waits for a child span to begin that
//     begins within it: from when the child's message was sent until it was taken, as said above,
//     but not before all its child spans up to then were over (of the request: all spans). Where
//     several wait at once the moment is one of waiting, and the span's whose wait was over first;
//   - uncovered: no span runs, and the request does not wait for one.
// Spans that end after their request cover nothing and nobody waits for them: who called them has
// gone on. Self times, waiting and what is uncovered add up to the request's duration and
// `parallel`, which is never negative.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"

#define SPAN_NONE UINT32_MAX
#define SPAN_AGAIN (UINT32_MAX - 1)
#define SPAN_UNKNOWN INT64_MIN

struct span {
    int64_t start; // node time, ns
    int64_t end;   // >= start; when open: meaningless
    uint64_t pid;
    uint64_t from; // the process its token came from
    // in: the span below it on the stack, in arrival order, or SPAN_NONE. Out: in the sorted order
    uint32_t parent;
    uint16_t tier;
    bool open;  // its return was not seen
    bool error; // ended by an exception
    // of a tier without return values (return_to): whether it ended by an exception is not known
    // unless error says so
    bool blind;
    // the messages that brought it: the first of them among the waits; SPAN_NONE: they are not
    // told; SPAN_AGAIN: the same as the span before it in its process
    uint32_t waits;
    int64_t gc;      // garbage collection while it was the innermost of its process, ns
    int64_t off_cpu; // the same for being scheduled out, ns

    // out
    bool async; // ended after its request
    // none of the same tier goes on above it: its duration counts as the tier's inclusive time
    bool outermost;
    uint32_t depth; // 0: below the request itself
    // in: false. Whether a message or a spawn brought it to its process, and how long it waited is
    bool brought;
    bool measured; // and not estimated
    // For a span that was brought: how long the messages waited that did; estimated, from the
    // sender's last event to its start. Else 0, ns
    int64_t wait;
    // of a measured wait, until the processes that took the messages ran, which had not when they
    // were sent, ns; the rest was in their mailboxes. SPAN_UNKNOWN: that is not known
    int64_t run_queue;
    // of `wait`, what is waiting of the request, each moment once, ns; 0 for open and async spans
    int64_t waiting;
    // duration less what child spans cover and the waiting for them, ns; 0 for open and async spans
    int64_t self;
};

// What a request's time was, ns.
struct tree_times {
    int64_t uncovered; // neither a span's nor waiting
    int64_t waiting;   // of all spans
    int64_t
        parallel; // what counts more than once: self of all spans + waiting + uncovered - duration
};

enum { TREE_WAITS = LIMIT_SPANS_PER_REQUEST };

struct request_tree; // scratch memory, reused

// Scratch for requests of at most LIMIT_SPANS_PER_REQUEST spans. NULL without memory.
struct request_tree *request_tree_new(void);
void request_tree_free(struct request_tree *t);
// Where the caller puts the spans in their order of arrival.
struct span *request_tree_spans(struct request_tree *t);

// A process that was spawned within the request.
struct spawn {
    int64_t time;
    uint64_t pid; // the spawner
    uint64_t child;
    uint32_t parent; // the span that it spawned from, in arrival order; SPAN_NONE: none was open
};

// Where the caller puts them in their order of arrival, LIMIT_SPAWNS_PER_REQUEST at most.
struct spawn *request_tree_spawns(struct request_tree *t);

// A message that brought a span to its process, or the process that sent the next one.
struct span_wait {
    int64_t sent;
    int64_t taken; // not before `sent`
    int64_t ran; // when its process ran for the first time since it was sent; INT64_MIN: not known
    uint32_t span;
    uint32_t next; // of the span's waits, in the order of time; SPAN_NONE: the last
};

// Where the caller puts them, TREE_WAITS at most.
struct span_wait *request_tree_waits(struct request_tree *t);

struct tree_request {
    uint32_t count;  // spans
    uint32_t spawns; // and spawns
    uint32_t waits;  // and messages
    int64_t begin;
    int64_t end;
    uint64_t begin_pid; // the process that began it, if has_begin
    uint64_t end_pid;   // and the one that ended it
    bool has_begin;
};

// Works out the tree of the request whose spans and spawns stand in the scratch. Afterwards
// request_tree_spans holds the spans ordered by start with the out fields set.
struct tree_times request_tree_build(struct request_tree *t, const struct tree_request *request);
