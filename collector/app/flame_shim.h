// SPDX-License-Identifier: Apache-2.0
// A node's shim, as full traces need it: they lie below the links to shims.
#pragma once

#include "base/buffer.h"
#include "codec/control.h"
#include "ingest/pipeline.h"
#include "model/profile/profile.h"

struct flame_shim {
    void *link; // NULL: it is gone
    struct pipeline_node *node;
    bool single;                 // before OTP 27: it takes one full trace at a time
    char otp[PROFILE_OTP_BYTES]; // the node's release
    // Sends messages, or leaves them out when too much waits for the shim already.
    void (*send)(void *link, const struct buffer *messages);
};

// Writes the field `processes` of a message: a list of the pids.
void flame_shim_put_pids(struct control_writer *w, const uint64_t *pids, uint32_t count);
// Asks it about processes: sends a message of this type (protocol.h) with the full trace's id and a
// list of the pids. Nothing is sent without memory.
void flame_shim_ask(const struct flame_shim *shim, const char *type, int64_t id,
                    const uint64_t *pids, uint32_t count);
