// SPDX-License-Identifier: Apache-2.0
// What the listening side tells of a shim, or of a tool, and what can be said to it. Everything
// runs on the thread of the event loop, but what server_events.intake says.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "codec/control.h"

// One shim: its control connection, and while it traces one or more data connections, which have
// numbers from 0. Or one tool, which has the first only.
struct session;
struct intake;

// What happens, told to the layer above. `user` is what hello returned.
struct server_events {
    void *context;
    // A shim, or a tool, introduces itself. Returns the user of the session, never NULL, or NULL
    // with *refusal set to the reason, which the shim is told.
    void *(*hello)(void *context, struct session *s, struct control_map hello,
                   const char **refusal);
    // A control message after the hello.
    void (*message)(void *user, struct slice type, struct control_map message);
    // Tools have none of the next three. A data connection is there; false refuses it. Bytes follow
    // once session_ready was called. stream: its number; when 0 comes, all before it have ended.
    bool (*data_begin)(void *user, uint32_t stream);
    // Trace-port bytes. False when they are none: the data connection is closed. more: whether more
    // has come by now that is not read yet.
    bool (*data)(void *user, uint32_t stream, struct slice bytes, bool more);
    void (*data_end)(void *user, uint32_t stream);
    // The thread that shall read its data connections: `data` is called on that, behind its gate,
    // and, for what had come before, on the event loop's thread, which visits then. NULL, as this
    // function may be: the event loop's thread reads them. Always the same one for a session.
    struct intake *(*intake)(void *user);
    // The control connection is gone; the data connections have ended before: what had been sent on
    // them was read, if it came within two seconds each time. The session is no more: what is sent
    // to it now is thrown away.
    void (*closed)(void *user);
};

// Where a shim connects from, "127.0.0.1:40312".
const char *session_peer(const struct session *s);
// Counts the sessions of a server, from 1.
int64_t session_id(const struct session *s);
// Ends a session and says why; its events data_end and closed are told. Not from within its own
// events.
void session_dismiss(struct session *s, const char *reason);
// Whether it has a data connection, of any number.
bool session_streams(const struct session *s);
// Whether its control connection is gone and data connections are read to their end.
bool session_leaves(const struct session *s);
// Data connections may be read now: the tiers are known.
void session_ready(struct session *s);
// Sends a message that control_end accepted, or several. Returns false when it was left out since
// more than LIMIT_OUTPUT_BYTES wait already.
bool session_send(struct session *s, const struct buffer *messages);
