// One finished request as a tree of spans, and what each span's time is worth. Pure: arrays in, arrays out.
//
// A span's parent is the span below it on its process's stack when that is of the same request; for the first in its process,
// the span that was open in the process which its token came from, when the call began (or the last one begun there, when
// none was open any more). A span without a parent hangs below the request itself.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SPAN_NONE UINT32_MAX

struct span {
    int64_t start; // node time, ns
    int64_t end;   // >= start; when open: meaningless
    uint64_t pid;
    uint64_t from;   // the process its token came from
    uint32_t parent; // in: the span below it on the stack, in arrival order, or SPAN_NONE. Out: in the sorted order
    uint16_t tier;
    bool open;  // its return was not seen
    bool error; // ended by an exception
    bool blind; // of a tier without return values (return_to): whether it ended by an exception is not known
    int64_t gc;      // garbage collection while it was the innermost of its process, ns
    int64_t off_cpu; // the same for being scheduled out, ns

    // out
    bool async;     // ended after its request
    bool outermost; // none of the same tier goes on above it: its duration counts as the tier's inclusive time
    uint32_t depth; // 0: below the request itself
    int64_t wait;   // for the first span that a message brought to its process: from the sender's last event to its start, ns; else 0
    int64_t self;   // duration less the union of what child spans cover, ns; 0 for open and async spans
};

struct request_tree; // scratch memory, reused

// Scratch for requests of at most LIMIT_SPANS_PER_REQUEST spans. NULL without memory.
struct request_tree *request_tree_new(void);
void request_tree_free(struct request_tree *t);
// Where the caller puts the spans in their order of arrival.
struct span *request_tree_spans(struct request_tree *t);

// Works out the tree of `count` spans of a request that lasted from begin to end. Afterwards request_tree_spans holds them
// ordered by start with the out fields set. Returns the request's self time: its duration less the union of all spans.
int64_t request_tree_build(struct request_tree *t, uint32_t count, int64_t begin, int64_t end);
