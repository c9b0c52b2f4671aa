// SPDX-License-Identifier: Apache-2.0
// A trace stream kept in a file, for kprof replay, which tells of it what was told live. A full
// disk ends the recording, never the collecting.
//
// Returned values and the reasons of exceptions are left out unless they are wanted
// (model/message/message_values.h): a frame that cannot be understood becomes one that a replay
// counts as undecodable, too, and behind what is no frame at all nothing is kept. Blocks
// (model/message/native.h) hold no such values and are kept as they are.
#pragma once

#include "base/bytes.h"

struct recording;

struct recording_place {
    const char *dir;
    bool values; // keep the stream byte for byte
};

// Starts DIR/NODE-TIME-SESSION.cap, or DIR/NODE-TIME-SESSION.N.cap where that is there already: a
// file of its owner's alone. now is ns since 1970 UTC. NULL, and the log says why, when it cannot.
struct recording *recording_start(const struct recording_place *place, const char *node,
                                  int64_t session, int64_t now);
void recording_add(struct recording *r, struct slice bytes);
// NULL is allowed.
void recording_end(struct recording *r);
