// SPDX-License-Identifier: Apache-2.0
// Control messages between shim and collector: length:u32 big-endian, then one msgpack map with
// text keys, at most LIMIT_CONTROL_BYTES. Unknown keys and types are ignored by both sides. The
// messages (shim/src/link/kprof_control.erl is the other side):
//
//   Where there is a secret, the four messages of net/auth.h come first: auth, challenge, answer,
//   proven.
//
//   shim -> collector
//     hello           role "control" or "data", protocol 1, node, otp, os_pid, ticks_per_second,
//                     time_offset, creation, version;
//                     of role "data": protocol, session, key, and after it the trace port's raw
//                     bytes for ever
//     tiers           tiers [{name, m, f, a, returns}], identity "none" | "spec" | "ask",
//                     slow_threshold_us, stats, calls, slow;
//                     returns "none": return values of the tier do not travel; stats, calls, slow:
//                     what it wants to be sent
//     trace_started   at, labels
//                     at: the node's monotonic time in ticks, here and below; labels: what the
//                     labels of its requests start with, above 32 bits of counter
//     trace_stopped   at, reason, text
//     clock           at, time_offset, unsampled, paused_ms, tripped_ms, away_ms, trips,
//                     lowered_ms, unmarked_calls, unmarked
//                     before the tiers and every second; all but the first two since the clock
//                     message before. paused_ms: all the time without a trace, and of it what was
//                     the breaker's doing, and when there was no collector; the rest somebody asked
//                     for. unmarked_calls: calls of tiers while nothing had begun a request;
//                     unmarked: the same of the whole trace, 0 as soon as something has begun one
//     gap             from, until, reason "reload" | "flags", text
//                     the node's monotonic time: calls of tiers between the two may not have been
//                     traced
//     trace_total     labels (as in trace_started), messages, unsent
//                     after a trace's end: the messages that its trace port gave, dropped ones
//                     included, and how many of them were never sent. What its data connection did
//                     not bring is lost
//     identify_reply  id, identity (text or nil)
//     note            level, text
//     state           state "tracing" | "paused" (by the breaker) | "held" (by steer), one_in,
//                     per_second (0: no such bound), level_ppm (what the guard lets through of
//                     these), trips (of the breaker), text (why, or empty)
//                     at first and whenever it changes
//     steered         id, ok, text
//   collector -> shim
//     welcome         session, key (16 bytes), version
//     ping            every 2 s
//     identify        id, m, f, a, args (external term of the argument list)
//     disarm          m, f, a, reason
//     stale           tier, label: the tier is called under this label, whose request is over
//     stats           rows [{bucket_start, resolution_s, node, identity, tier, requests, …}]
//     calls           identity, outcome, started_at, duration_us, spans [{tier, depth, pid, …}]:
//                     a finished request
//     slow            the same of one that took longer than slow_threshold_us
//     steer           id, command "pause" | "resume" | "sample", one_in or per_second: answered by
//                     steered
//     bye             reason
//
// And between a tool (role "tool": protocol, version) and the collector, which welcomes and pings
// it likewise:
//
//   tool -> collector
//     nodes
//     watch           node: from now on its rows every second, instead of another node's
//     trace           node, command, one_in or per_second, as in steer
//     pong            to every ping
//   collector -> tool
//     node            node, connected, since, …: one for each node, see collector/app/tool_link.c;
//                     then nodes
//     nodes           count, unwritten_s: for how long the database could not be written, 0: it can
//                     be
//     rows            node, connected, state, seconds (what the rows cover), identities [{identity,
//                     requests, errors, mean_us, p99_us, incomplete, expired}], the first one
//                     _total; and incomplete, expired, unsampled, dropped_messages, decode_errors,
//                     paused_ms of that time (all without a trace); unmarked_calls of the whole
//                     trace, as long as nothing has begun a request
//     traced          ok, text: what the node answered
//     error           text: what was asked for cannot be
//
// Decoding allocates (msgpack-c's zone), behind msgpack_guard. One thread at a time per object.
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "base/bytes.h"

enum { CONTROL_PROTOCOL = 1, CONTROL_HEADER = 4 };

// -- reading --------------------------------------------------------------------------------------

struct control; // one decoded message, owns its memory

// A map inside a message; valid as long as the message.
struct control_map {
    const void *object;
};

// An array of maps inside a message.
struct control_list {
    const void *objects;
    uint32_t count;
};

// Finds the frame at the start of bytes: the bytes it takes with its header and *payload, 0 when
// more are needed, -1 when the claimed length is 0 or over the limit.
long control_frame(struct slice bytes, struct slice *payload);

// Decodes a payload. NULL when it is no acceptable msgpack map, or without memory.
struct control *control_decode(struct slice payload);
void control_free(struct control *c);
struct control_map control_root(const struct control *c);

// The value of a key, when it is there and of that type; else false, and *value stays.
bool control_get_text(struct control_map map, const char *key, struct slice *value);
bool control_get_bytes(struct control_map map, const char *key, struct slice *value);
bool control_get_int(struct control_map map, const char *key, int64_t *value);
bool control_get_bool(struct control_map map, const char *key, bool *value);
// Of an integer or a floating-point number.
bool control_get_number(struct control_map map, const char *key, double *value);
bool control_get_list(struct control_map map, const char *key, struct control_list *value);
// Member i of a list, as a map without keys when it is something else.
struct control_map control_list_at(struct control_list list, uint32_t i);

// -- writing --------------------------------------------------------------------------------------

// Writes a message at the end of a buffer: control_begin, then `pairs` keys with their values, then
// control_end, which fills in the length. control_end returns false, and the buffer is as before
// control_begin, when it did not fit.
struct control_writer {
    struct buffer *out;
    size_t start;
};

struct control_writer control_begin(struct buffer *out, const char *type, uint32_t more_pairs);
bool control_end(struct control_writer *w);

void control_text(struct control_writer *w, const char *key, struct slice value);
void control_bytes(struct control_writer *w, const char *key, struct slice value);
void control_int(struct control_writer *w, const char *key, int64_t value);
void control_number(struct control_writer *w, const char *key, double value);
void control_bool(struct control_writer *w, const char *key, bool value);
// A list of `count` maps; each member is begun with control_map.
void control_list(struct control_writer *w, const char *key, uint32_t count);
void control_map(struct control_writer *w, uint32_t pairs);
