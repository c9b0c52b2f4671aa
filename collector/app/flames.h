// SPDX-License-Identifier: Apache-2.0
// Full traces that tools and nodes have asked for: what the shims are told, what becomes of their
// messages, the profile in the end. Runs on the event loop's thread.
//
//   tool            flame --+                          +--> flaming, every second --> flamed
//   here                    +--> full        stop? ----+--> full_stop     keep --+
//   shim                          +--> full_started         +--> full_shut,      writer
//                                                                full_stopped
#pragma once

#include "app/flame_shim.h"
#include "app/stack_runs.h"
#include "codec/control.h"
#include "store/writer.h"

struct flame_job;

// Who is told of a full trace: a tool, or the node's shim.
struct flame_asker {
    void *user; // NULL: nobody any more
    // A message for it: flaming or flamed (last). After that nothing more comes.
    void (*tell)(void *user, const struct buffer *message, bool last);
};

struct flames {
    struct pipeline *pipeline; // or one of those that share its names; who calls visits all
    struct writer *writer;     // NULL: profiles are not kept
    struct stack_runs runs;
    struct flame_job *first;
    uint32_t count;
    int64_t last_id;
};

// Somebody asks for a full trace of a node. NULL: it is begun; else why it is not.
const char *flame_begin(struct flames *flames, const struct flame_shim *shim,
                        struct control_map message, const struct flame_asker *asker);
// The tool wants no more, or is gone: what there is is kept. Of the latter nobody is told.
void flame_stop(struct flames *flames, const void *user, bool gone);
// What a shim says of a full trace; link: of struct flame_shim.
void flame_started(struct flames *flames, const void *link, struct control_map message);
void flame_shut(struct flames *flames, const void *link, struct control_map message);
void flame_stopped(struct flames *flames, const void *link, struct control_map message);
// Processes that it was not followed into.
void flame_missed_told(struct flames *flames, const void *link, struct control_map message);
// What processes are called that it goes through.
void flame_named(struct flames *flames, const void *link, struct control_map message);
// A shim is gone. If it had asked itself, it is told nothing more.
void flame_lost(struct flames *flames, const void *link);
// Time passes: some ten times a second. now: ns of the monotonic clock; second: a second is over,
// too.
void flame_tick(struct flames *flames, int64_t now, bool second);
// The daemon ends: waits until what there is is kept. The writer must run still.
void flames_end(struct flames *flames);
