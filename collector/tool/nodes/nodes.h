// SPDX-License-Identifier: Apache-2.0
// The nodes that a collector knows, as kprof nodes shows them. Text out, nothing else.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/limits.h"
#include "net/client.h"
#include "tool/node.h"

enum {
    NODE_TEXT = 240,
    NODE_WORD = 64,
    NODE_TIME = 40,
    NODE_STACKS = 640,
    NODES_PATH_BYTES = 4096,
    NODES_EXPORT_BYTES = 900,
    NODES_OTLP_BYTES = 1600
};

struct node_event {
    char at[NODE_TIME]; // UTC
    char text[NODE_TEXT];
};

// As in the message `node` (codec/control.h). Texts are clean.
struct node_row {
    char node[NODE_TEXT];
    char since[NODE_TIME];
    char peer[NODE_WORD], otp[NODE_WORD], version[NODE_WORD], state[NODE_WORD];
    char tracer[NODE_WORD];   // of its latest trace: port or native; empty: not known
    char stacks[NODE_STACKS]; // what samples them now; empty: nothing does
    bool connected;
    double requests_per_s;
    bool has_clock;
    // by which its clock is ahead of the collector's, and the delay of a message
    int64_t clock_offset_us;
    int64_t tiers; // that it traces
    int64_t os_pid, one_in, per_second, level_ppm, trips;
    int64_t complete, incomplete, expired, unsampled, messages, dropped_messages, decode_errors,
        off_ms, lowered_ms;
    int64_t unmarked_calls;                       // of tiers, while nothing has begun a request
    struct node_event history[LIMIT_NODE_EVENTS]; // oldest first
    uint32_t events;
};

// What a collector says of itself with them.
struct nodes_collector {
    int64_t unwritten_s; // for how long it has not been able to write its database; 0: it can
    char database[NODES_PATH_BYTES];   // its absolute path on the collector's host; "": not known
    char exported[NODES_EXPORT_BYTES]; // how its export stands, in words; "": there is none
    int64_t behind_s, waiting;   // for how long the oldest change waits for it, and how many do
    char otlp[NODES_OTLP_BYTES]; // the same of --otlp, of
    struct {
        int64_t behind_s, waiting;
    } traces, metrics;
};

// Asks a collector for its nodes: fills rows (LIMIT_NODES of them), by name, and counts them. An
// exit status; has told why when it is none of success.
int nodes_ask(const char *command, struct client *c, struct node_row *rows, uint32_t *count,
              struct nodes_collector *of);
// The node that a text means among those that a collector knows, as node_find does among those of a
// database (tool/node.h).
int nodes_find(const char *command, struct client *c, const char *text, char found[NODE_TEXT_BYTES],
               const char **node);
// The sampling that a node's user asked for: "all", "1 in 10", "100/s", or "-" when that is not
// known. Returns out.
char *nodes_sampling(const struct node_row *row, char out[NODE_WORD]);
// A table, a line a node; with history, what happened to each below its line. now: ns since 1970
// UTC. Check out->failed.
void nodes_table(const struct node_row *rows, uint32_t count, bool history, int64_t now,
                 struct buffer *out);
// How the collector's export stands, a line; nothing where there is none.
void nodes_export(const struct nodes_collector *of, struct buffer *out);
// One JSON object and a newline; described in `kprof nodes --help`.
void nodes_json(const struct node_row *rows, uint32_t count, const struct nodes_collector *of,
                struct buffer *out);
