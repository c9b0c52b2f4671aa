// SPDX-License-Identifier: Apache-2.0
#include "model/message/tier_set.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/limits.h"

static uint64_t key_of(struct slice module, struct slice function, uint32_t arity) {
    return hash_mix(hash_bytes(module) + arity) ^ hash_bytes(function);
}

static struct traced_function *find(const struct tier_set *s, struct slice module,
                                    struct slice function, uint32_t arity) {
    uint32_t i = map_get(&s->index, key_of(module, function, arity));
    if (i == MAP_NONE) {
        return NULL;
    }
    struct traced_function *f = &s->functions[i];
    return f->arity == arity && slice_is(module, f->module) && slice_is(function, f->function)
               ? f
               : NULL;
}

// Adds an entry and sets *made to it.
static enum tier_set_result add(struct tier_set *s, struct slice module, struct slice function,
                                uint32_t arity, struct traced_function **made) {
    if (s->count == 2 * LIMIT_TIERS || s->bytes + module.len + function.len > LIMIT_TIER_BYTES) {
        return TIER_SET_FULL;
    }
    struct traced_function *more = realloc(s->functions, (s->count + 1) * sizeof *more);
    if (!more) {
        return TIER_SET_NO_MEMORY;
    }
    s->functions = more;
    struct traced_function *f = &more[s->count];
    map_clear(&s->by_name);
    *f = (struct traced_function){.arity = arity, .role = ROLE_NAMING, .tier = TIER_NONE};
    f->module = strndup((const char *)module.data, module.len);
    f->function = strndup((const char *)function.data, function.len);
    if (!f->module || !f->function ||
        !map_set(&s->index, key_of(module, function, arity), s->count)) {
        free(f->module);
        free(f->function);
        return TIER_SET_NO_MEMORY;
    }
    s->count++;
    s->bytes += (uint32_t)(module.len + function.len);
    *made = f;
    return TIER_SET_OK;
}

bool tier_set_init(struct tier_set *s) {
    *s = (struct tier_set){0};
    static const struct {
        const char *module, *function;
        uint32_t arity;
        enum function_role role;
    } known[] = {{"kprof_mark", "request_begin", 1, ROLE_BEGIN},
                 {"kprof_mark", "web_begin", 1, ROLE_WEB_BEGIN},
                 {"kprof_mark", "trace_parent", 1, ROLE_PARENT},
                 {"kprof_mark", "request_end", 1, ROLE_END},
                 {"kprof_mark", "says", 1, ROLE_SAYS},
                 {"erlang", "spawn", 3, ROLE_SPAWN},
                 {"erlang", "spawn_link", 3, ROLE_SPAWN},
                 {"erlang", "spawn_opt", 4, ROLE_SPAWN},
                 {"cowboy_websocket", "takeover", 7, ROLE_UPGRADE},
                 {"Elixir.Bandit.WebSocket.Handler", "handle_connection", 2, ROLE_UPGRADE}};
    bool ok = map_init(&s->index) && map_init(&s->by_name);
    for (size_t i = 0; ok && i < sizeof known / sizeof *known; i++) {
        struct traced_function *f;
        ok = add(s, slice_text(known[i].module), slice_text(known[i].function), known[i].arity,
                 &f) == TIER_SET_OK;
        if (ok) {
            f->role = known[i].role;
        }
    }
    if (!ok) {
        tier_set_free(s);
    }
    return ok;
}

static void free_functions(struct tier_set *s) {
    for (uint32_t i = 0; i < s->count; i++) {
        free(s->functions[i].module);
        free(s->functions[i].function);
    }
    free(s->functions);
    s->functions = NULL;
    s->count = s->tiers = s->bytes = 0;
}

void tier_set_clear(struct tier_set *s) {
    free_functions(s);
    map_clear(&s->index);
    map_clear(&s->by_name);
}

void tier_set_free(struct tier_set *s) {
    free_functions(s);
    map_free(&s->index);
    map_free(&s->by_name);
    *s = (struct tier_set){0};
}

enum tier_set_result tier_set_add(struct tier_set *s, struct slice module, struct slice function,
                                  uint32_t arity, uint16_t tier) {
    struct traced_function *f = find(s, module, function, arity);
    if (f && f->role != ROLE_NAMING && f->role != ROLE_SPAWN && f->role != ROLE_UPGRADE) {
        return TIER_SET_DUPLICATE;
    }
    if (s->tiers == LIMIT_TIERS) {
        return TIER_SET_FULL;
    }
    enum tier_set_result result = f ? TIER_SET_OK : add(s, module, function, arity, &f);
    if (result == TIER_SET_OK) {
        f->role = ROLE_TIER;
        f->tier = tier;
        s->tiers++;
    }
    return result;
}

enum tier_set_result tier_set_name_by(struct tier_set *s, struct slice module,
                                      struct slice function, uint32_t arity, uint32_t argument) {
    struct traced_function *f = find(s, module, function, arity);
    bool marker = f && (f->role == ROLE_BEGIN || f->role == ROLE_WEB_BEGIN ||
                        f->role == ROLE_PARENT || f->role == ROLE_END || f->role == ROLE_SAYS);
    if (marker || (f && f->identity_argument != 0)) {
        return TIER_SET_DUPLICATE;
    }
    enum tier_set_result result = f ? TIER_SET_OK : add(s, module, function, arity, &f);
    if (result == TIER_SET_OK) {
        f->identity_argument = argument;
    }
    return result;
}

// A Latin-1 atom's text as UTF-8, in out (510 bytes) when it needs changing.
static struct slice utf8_of(struct term_atom atom, uint8_t *out) {
    bool plain = true;
    for (size_t i = 0; atom.latin1 && i < atom.text.len; i++) {
        plain = plain && atom.text.data[i] < 0x80;
    }
    if (plain || atom.text.len > 255) {
        return atom.text;
    }
    size_t n = 0;
    for (size_t i = 0; i < atom.text.len; i++) {
        uint8_t byte = atom.text.data[i];
        if (byte >= 0x80) {
            out[n++] = (uint8_t)(0xc0 | byte >> 6);
            byte = 0x80 | (byte & 0x3f);
        }
        out[n++] = byte;
    }
    return slice_of(out, n);
}

const struct traced_function *tier_set_find(struct tier_set *s, const struct message *message) {
    enum { UNKNOWN = 2 * LIMIT_TIERS }; // more than there are functions
    uint64_t key = hash_bytes(message->name) + message->arity;
    uint32_t i = map_get(&s->by_name, key);
    if (i == MAP_NONE) {
        uint8_t m[510], f[510];
        const struct traced_function *found =
            find(s, utf8_of(message->module, m), utf8_of(message->function, f), message->arity);
        i = found ? (uint32_t)(found - s->functions) : UNKNOWN;
        if (s->by_name.count >= LIMIT_FUNCTION_NAMES) {
            map_clear(&s->by_name);
        }
        map_set(&s->by_name, key, i);
    }
    return i == UNKNOWN ? NULL : &s->functions[i];
}
