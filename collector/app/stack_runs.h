// SPDX-License-Identifier: Apache-2.0
// Runs of stack sampling that tools and nodes have asked for: what the shims are told, what becomes
// of the looks that they send, the profile in the end. Runs on the event loop's thread.
//
//   tool            stacks --+                                     +--> stacks_state, every second
//   here                     +--> stacks           stacks_stop --> |      keep --+
//   shim                            +--> stacks_started            |             +--> stacks_kept
//                                        stacks_taken … -----------+--> stacks_stopped
//
// A run that stands for ever goes on in another profile when one has its time or is full:
//
//   here            stacks_anew --+                +-- stacks_taken: the next profile's
//   shim   … stacks_taken …       +-- stacks_taken +   from the word on that names begin anew
//
// Or nothing is kept: the tool is shown what is seen (stacks_view), or is sent all of it
// (stacks_looks) and loses what it does not read in time.
#pragma once

#include "app/flame_shim.h"
#include "codec/control.h"
#include "codec/json.h"
#include "store/writer.h"

struct stack_run;

// Who is told of a run: a tool, or the node's shim.
struct stack_asker {
    void *user; // NULL: nobody any more
    // A message for it: stacks_kept is the last; after that nothing more comes. False: it was left
    // out, as what was told before is not read yet.
    bool (*tell)(void *user, const struct buffer *message, bool last);
};

struct stack_runs {
    struct pipeline *pipeline; // as in struct flames
    struct stack_run *first;
    uint32_t count;    // of those that end
    uint32_t standing; // of those that stand for ever, and their profiles that wait to be written
    size_t bytes;      // that all take
    uint32_t mb;       // that they may take: so many fewer are for open requests
    int64_t last_id;
};

// Somebody asks for a run on a node. NULL: it is asked for; else why it is not.
const char *stack_run_begin(struct stack_runs *runs, const struct flame_shim *shim,
                            struct control_map message, const struct stack_asker *asker);
// The tool wants no more, or is gone: what there is is kept. Of the latter nobody is told.
void stack_run_stop(struct stack_runs *runs, const void *user, bool gone);
// What a shim says; link: of struct flame_shim.
void stack_run_started(struct stack_runs *runs, const void *link, struct control_map message);
void stack_run_taken(struct stack_runs *runs, const void *link, struct control_map message);
void stack_run_stopped(struct stack_runs *runs, const void *link, struct control_map message);
// Whether the run that a shim calls so stands for ever.
bool stack_run_stands(const struct stack_runs *runs, const void *link, int64_t id);
// A shim is gone. If it had asked itself, it is told nothing more.
void stack_run_lost(struct stack_runs *runs, const void *link);
// Time passes. now: ns of the monotonic clock; second: a second is over, too. writer: NULL:
// profiles are not kept.
void stack_runs_tick(struct stack_runs *runs, struct writer *writer, int64_t now, bool second);
// A profile is kept; false: it is none of theirs.
bool stack_run_kept(struct stack_runs *runs, const struct profile *profile, int64_t id);
// The daemon ends: they are over, but for their profiles, which stack_runs_tick hands on.
void stack_runs_end(struct stack_runs *runs);
// Those that go on now: each an object of a JSON list, with node, name, label, since_s (seconds
// since 1970 UTC) and stands.
void stack_runs_json(const struct stack_runs *runs, struct json *j);
// What looks at a node's stacks now, for people. False: nothing does.
bool stack_runs_tell(const struct stack_runs *runs, const struct pipeline_node *node, char *text,
                     size_t room);
