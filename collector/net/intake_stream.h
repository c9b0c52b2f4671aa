// SPDX-License-Identifier: Apache-2.0
// Data connections that a thread reads (net/intake.h). The functions are for the event loop's
// thread.
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct intake;
struct intake_stream; // one of them

struct intake_events {
    // On the intake's thread, and behind its gate. Bytes were read; false: they are none that the
    // connection may bring. more: whether more may have come by now that is not read yet.
    bool (*data)(void *user, uint32_t stream, struct slice bytes, bool more);
    void *user;
    uint32_t stream;
    // On the event loop, once: nothing more is read, as it has ended, or data returned false.
    void (*over)(void *context, bool damaged);
    void *context;
};

// From now on it reads a socket that does not block, through its TLS unless that is NULL. Both stay
// the caller's, who leaves them alone until intake_remove. NULL without memory.
struct intake_stream *intake_add(struct intake *in, int fd, SSL *ssl,
                                 const struct intake_events *events);
// It reads it no more, and has told all that it has read.
void intake_remove(struct intake_stream *s);
// The same gate, for who tells himself what was read before; NULL is allowed, and nothing happens.
void intake_visit(struct intake *in);
void intake_part(struct intake *in);
// How often it has brought something.
uint64_t intake_turns(const struct intake_stream *s);
