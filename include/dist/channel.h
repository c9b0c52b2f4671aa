// SPDX-License-Identifier: Apache-2.0
// Calls of functions in an Erlang node over a distribution connection, as a hidden C node makes
// them: a request to the node's rex server (kernel: rpc), an answer to a pid of this call's own.
// erl_interface encodes; what arrives is framed, bounded and walked here before anybody looks into
// it, as ei's decoders do not check lengths. One thread at a time.
#pragma once

#include <ei.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "dist/error.h"

enum {
    CHANNEL_BYTES = 16 << 20
}; // of one message, either way: the largest is the shim's modules, some 300 KB

struct channel {
    int fd;           // connected, its handshake done; -1: closed
    ei_cnode *self;   // makes pids
    const char *node; // the other side's name, for errors
    struct buffer in; // what has been read
    size_t used;      // bytes of it that are done with
};

struct channel channel_make(int fd, ei_cnode *self, const char *node);
void channel_close(struct channel *c);

// Calls module:function with arguments, a list in external format without the leading 131, in the
// node. Waits timeout_ms at most. True: *result is what it returned, one whole term without the
// leading 131, valid until the next call. False with *e: DIST_DOWN when the connection is lost,
// silent or not understood (it is closed then), else DIST_OTHER: the function failed, and the text
// holds the reason.
bool channel_call(struct channel *c, const char *module, const char *function,
                  const ei_x_buff *arguments, int timeout_ms, struct slice *result,
                  struct dist_error *e);

// To be called when the socket can be read between two calls: answers the node's ticks, drops
// answers that came too late. False when the connection is lost (it is closed then).
bool channel_serve(struct channel *c);
