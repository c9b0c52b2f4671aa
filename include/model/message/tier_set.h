// SPDX-License-Identifier: Apache-2.0
// The functions that a node traces, and what a call of each means. Lookup is by hash of module,
// function and arity; an atom's encoding (Latin-1 or UTF-8) does not matter. One thread at a time.
#pragma once

#include "base/map.h"
#include "codec/term.h"
#include "model/directory/directory.h"
#include "model/message/message.h"

enum {
    TIER_NONE = UINT16_MAX // of a function that is traced for another reason
};

enum function_role {
    ROLE_TIER,      // its calls are spans
    ROLE_BEGIN,     // the shim's marker kprof_mark:request_begin/1
    ROLE_WEB_BEGIN, // and web_begin/1, of a request that ends in its process
    ROLE_PARENT,    // and trace_parent/1: which span outside has asked for one
    ROLE_END,       // and request_end/1
    ROLE_SAYS,      // and says/1: what a process says itself that it works for
    ROLE_UPGRADE,   // begins to serve what an entry's request has made a websocket
    ROLE_SPAWN,     // makes a process: erlang:spawn/3, spawn_link/3, spawn_opt/4
    ROLE_NAMING     // no tier, but an argument of it is the identity
};

struct traced_function {
    char *module; // UTF-8, like the next two
    char *function;
    uint32_t arity;
    enum function_role role;
    uint16_t tier;              // directory id, TIER_NONE unless ROLE_TIER
    uint32_t identity_argument; // 1 …: that argument of a call is the request's identity; 0: none
};

struct tier_set {
    struct map index;
    // hash of a message's encoded name -> index in functions, past them for no entry
    struct map by_name;
    struct traced_function *functions;
    uint32_t count;
    uint32_t tiers; // how many have ROLE_TIER
    uint32_t bytes; // of all their names
};

// A set that knows the markers and the spawn functions only. Returns false without memory.
bool tier_set_init(struct tier_set *s);
void tier_set_free(struct tier_set *s);
// Forgets all functions, the markers too, and keeps nearly no memory; only to be freed or replaced
// after that.
void tier_set_clear(struct tier_set *s);

enum tier_set_result { TIER_SET_OK, TIER_SET_FULL, TIER_SET_DUPLICATE, TIER_SET_NO_MEMORY };

// Adds a tier; tier is its name's id in the directory.
enum tier_set_result tier_set_add(struct tier_set *s, struct slice module, struct slice function,
                                  uint32_t arity, uint16_t tier);
// Makes an argument of a function the identity of its request; the function need not be a tier.
enum tier_set_result tier_set_name_by(struct tier_set *s, struct slice module,
                                      struct slice function, uint32_t arity, uint32_t argument);

// The entry of a message's function, or NULL. Remembers what it finds by the name's bytes, for up
// to LIMIT_FUNCTION_NAMES names.
const struct traced_function *tier_set_find(struct tier_set *s, const struct message *message);
