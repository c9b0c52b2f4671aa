// SPDX-License-Identifier: Apache-2.0
// The shim in a connected node: bringing it in, starting a trace, giving our word, taking it out.
// The shim's modules are part of this binary (scripts/embed_shim.escript); the thinking is done by
// shim/src/node/kprof_attach.erl, in the node. All functions block, for half a minute at most, and
// return false with *e.
#pragma once

#include "codec/mfa.h"
#include "dist/node.h"

enum { SHIM_TIERS = 256, SHIM_ENTRIES = 32, SHIM_LINES_BYTES = 8192, SHIM_HOST_BYTES = 256 };
enum { SHIM_SUGGESTED = 128, SHIM_NOTES = 16, SHIM_PRESETS = 8 };

struct shim_tier {
    struct slice name; // UTF-8
    struct mfa mfa;
    bool blind; // what it returns is not sent
};

struct shim_entry {
    struct mfa mfa;
    bool blind; // what it returns is not sent
};

// What is to be traced; NULL and 0 stand for what is not told.
struct shim_options {
    struct slice config; // text of a configuration file; what is told below goes before its options
    const char *host;    // of the collector, as seen from the node
    uint16_t port;
    struct slice secret; // that the collector was given; len 0: none
    bool tls;            // towards the collector, with these, each in PEM form:
    struct slice tls_ca; // authorities that its certificate comes from; len 0: the node's system's
    struct slice tls_cert, tls_key; // the node's own certificate and key; len 0: none
    const char *tls_name;           // in the collector's certificate; NULL: host
    struct shim_tier *tiers;
    uint32_t tier_count;
    const struct shim_entry *entries;
    uint32_t entry_count;
    const char *const *presets; // as people write them
    uint32_t preset_count;
    const char *identity_fun;   // Erlang text, or
    const struct mfa *identity; // a function, whose
    uint32_t identity_argument; // argument is the identity, 1 the first
    // functions that are not there are no error: they are traced once they are
    bool wait;
    const char *tracer;          // "port", "native" or "auto"
    uint32_t one_in, per_second; // sampling: one request in so many, or so many a second at most
};

// What the node told, for people.
struct shim_told {
    char line[1024];
    char warnings[SHIM_LINES_BYTES]; // lines, each ended by a newline
};

// Loads and starts the shim. told->line: "loaded", "guest" (the node has its own kprof) or "again"
// (we had been there: it is tracing).
bool shim_enter(struct dist_node *n, struct shim_told *told, struct dist_error *e);
// Starts the trace. told->line: what is traced, in a few words.
bool shim_start(struct dist_node *n, const struct shim_options *o, struct shim_told *told,
                struct dist_error *e);

// False where the text of a configuration file, as the node evaluates it, says nothing of a
// collector: neither where one listens nor how it is entered. True also when the node cannot tell;
// shim_start says why.
bool shim_names_collector(struct dist_node *n, struct slice config);

// How the node reaches the collector of its trace.
struct shim_collector {
    char host[SHIM_HOST_BYTES];
    uint16_t port;
    struct slice secret; // len 0: none. It and those below live until shim_collector_wipe
    bool tls;            // in PEM form:
    struct slice tls_ca; // authorities
    struct slice tls_cert, tls_key; // the node's own; len 0: none
    char tls_name[SHIM_HOST_BYTES]; // in the collector's certificate; "": host
};

// Asks for that. False when the node does not tell.
bool shim_collector(struct dist_node *n, struct shim_collector *out);
// Wipes what was secret. Before another function of this header.
void shim_collector_wipe(struct dist_node *n, struct shim_collector *c);

enum shim_state { SHIM_TRACING, SHIM_WAITING, SHIM_TRIPPED, SHIM_PAUSED, SHIM_IDLE, SHIM_GONE };

// Tells the shim that we are here (it leaves by itself after 10 s without), and what it does: it
// waits for the collector, its guard has paused it, kprof trace has, somebody has stopped it, or
// taken it out.
bool shim_word(struct dist_node *n, enum shim_state *state, struct dist_error *e);
// Takes the shim out. With ours only what we began; else what any kprof attach began, or left
// behind. told->line: "out", or "nothing" when there was nothing to take out.
bool shim_leave(struct dist_node *n, bool ours, struct shim_told *told, struct dist_error *e);

// What a node suggests: options of kprof attach.
struct shim_suggestions {
    struct shim_suggested {
        struct slice option; // "entry", "tier" or "identity"
        struct slice value, reason;
    } of[SHIM_SUGGESTED];
    uint32_t count;
    struct slice config; // the same, as the text of a configuration file
    struct slice notes[SHIM_NOTES];
    uint32_t note_count;
    struct buffer bytes; // where all these lie, as the node wrote them
};

// Asks a node that was entered what to trace in it. It looks at its stacks for so many ms, 4000 at
// most; or tells what presets stand for, if there are some. False with *e. out is to be freed in
// either case.
bool shim_suggest(struct dist_node *n, uint32_t for_ms, const char *const *presets,
                  uint32_t preset_count, struct shim_suggestions *out, struct dist_error *e);
void shim_suggestions_free(struct shim_suggestions *s);
