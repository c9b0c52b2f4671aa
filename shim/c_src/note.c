// SPDX-License-Identifier: Apache-2.0
#include "note.h"

struct note_atoms note_atoms(ErlNifEnv *env) {
    return (struct note_atoms){
        .undefined = enif_make_atom(env, "undefined"),
        .none = enif_make_atom(env, "none"),
        .erlang = enif_make_atom(env, "erlang"),
        .spawn = enif_make_atom(env, "spawn"),
        .spawn_link = enif_make_atom(env, "spawn_link"),
        .spawn_opt = enif_make_atom(env, "spawn_opt"),
        .extra = enif_make_atom(env, "extra"),
        .match_spec_result = enif_make_atom(env, "match_spec_result"),
        .receive = enif_make_atom(env, "receive"),
        .send = enif_make_atom(env, "send"),
    };
}

// Encodes an atom of ASCII letters. Returns 0 for any other.
static size_t note_atom(ErlNifEnv *env, ERL_NIF_TERM term, uint8_t *out, size_t room) {
    enum { SMALL_ATOM_UTF8 = 119, HEAD = 2, LETTERS = 255 };
    char text[LETTERS + 1];
    int size = enif_get_atom(env, term, text, sizeof text, ERL_NIF_LATIN1) - 1;
    if (size < 0 || (size_t)size + HEAD > room) {
        return 0;
    }
    out[0] = SMALL_ATOM_UTF8;
    out[1] = (uint8_t)size;
    for (int i = 0; i < size; i++) {
        if ((text[i] & 0x80) != 0) {
            return 0;
        }
        out[HEAD + i] = (uint8_t)text[i];
    }
    return HEAD + (size_t)size;
}

// Encodes a binary. Returns 0 for any other term, and for what does not fit.
static size_t note_binary(ErlNifEnv *env, ERL_NIF_TERM term, uint8_t *out, size_t room) {
    enum { BINARY = 109, HEAD = 5 };
    ErlNifBinary bytes;
    if (!enif_is_binary(env, term) || !enif_inspect_binary(env, term, &bytes) || room < HEAD ||
        bytes.size > room - HEAD) {
        return 0;
    }
    out[0] = BINARY;
    for (unsigned i = 1; i < HEAD; i++) {
        out[i] = (uint8_t)(bytes.size >> (8 * (HEAD - 1 - i)));
    }
    for (size_t i = 0; i < bytes.size; i++) {
        out[HEAD + i] = bytes.data[i];
    }
    return HEAD + bytes.size;
}

size_t note_term(ErlNifEnv *env, ERL_NIF_TERM term, uint8_t *out, size_t room) {
    ErlNifBinary encoded; // outside of any process's heap
    // What identities and outcomes mostly are, in a tenth of the time that any term takes.
    size_t size = enif_is_atom(env, term) ? note_atom(env, term, out, room)
                                          : note_binary(env, term, out, room);
    if (size > 0) {
        return size;
    }
    if (!enif_term_to_binary(env, term, &encoded)) {
        return 0;
    }
    if (encoded.size > 1 && encoded.size - 1 <= room) {
        for (size = 0; size < encoded.size - 1; size++) {
            out[size] = encoded.data[size + 1];
        }
    }
    enif_release_binary(&encoded);
    return size;
}

// -- functions ------------------------------------------------------------------------------------

// Reads {M, F, Arity or Args}.
static bool read_function(ErlNifEnv *env, ERL_NIF_TERM mfa, ERL_NIF_TERM *module,
                          ERL_NIF_TERM *function, unsigned *arity) {
    const ERL_NIF_TERM *of;
    int size;
    if (!enif_get_tuple(env, mfa, &size, &of) || size != 3 || !enif_is_atom(env, of[0]) ||
        !enif_is_atom(env, of[1]) ||
        (!enif_get_uint(env, of[2], arity) && !enif_get_list_length(env, of[2], arity)) ||
        *arity > 255) {
        return false;
    }
    *module = of[0];
    *function = of[1];
    return true;
}

static void set_byte(union record *r, unsigned byte, uint64_t value) {
    r->of.head &= ~((uint64_t)0xff << (8 * byte));
    r->of.head |= value << (8 * byte);
}

bool note_function(ErlNifEnv *env, ERL_NIF_TERM mfa, union record *r) {
    ERL_NIF_TERM module, function;
    unsigned arity;
    if (!read_function(env, mfa, &module, &function, &arity)) {
        return false;
    }
    r->of.module = module;
    r->of.function = function;
    set_byte(r, RECORD_ARITY, arity);
    return true;
}

// Writes who has called: {M, F, Arity} or undefined. False: it is neither.
static bool note_caller(ErlNifEnv *env, const struct note_atoms *atoms, ERL_NIF_TERM caller,
                        union record *r) {
    ERL_NIF_TERM module, function;
    unsigned arity;
    if (caller == atoms->undefined) {
        r->of.caller_module = 0;
        return true;
    }
    if (!read_function(env, caller, &module, &function, &arity)) {
        return false;
    }
    r->of.caller_module = module;
    r->of.caller_function = function;
    set_byte(r, RECORD_CALLER_ARITY, arity);
    return true;
}

// -- calls ----------------------------------------------------------------------------------------

// A clock of a token. Each spawn multiplies the parent's by 16, so that it overflows, into negative
// numbers, too: these are told as what they are in 64 bits, which the collector takes for high.
static uint64_t serial_of(ErlNifEnv *env, ERL_NIF_TERM term) {
    ErlNifSInt64 serial;
    return enif_get_int64(env, term, &serial) ? (uint64_t)serial : UINT64_MAX;
}

// Appends bytes to the tail as its next part, of which there is none behind it yet.
static size_t note_part(ErlNifEnv *env, ERL_NIF_TERM term, union record *r, size_t used,
                        unsigned part, size_t room) {
    size_t size = note_term(env, term, (uint8_t *)r->of.tail + used, room);
    r->of.lengths |= (uint64_t)size << (16 * part);
    return used + size;
}

// What a token has, beside its flags.
struct token {
    ERL_NIF_TERM label, serial, from, previous;
};

// Writes a token. Adds what it puts into the tail to *used. Returns its flags, 0: it cannot be
// told.
static uint8_t note_token(ErlNifEnv *env, const struct token *token, union record *r,
                          size_t *used) {
    ErlNifSInt64 label;
    uint8_t flags = RECORD_TOKEN;
    if (enif_get_int64(env, token->label, &label)) {
        r->of.label = (uint64_t)label;
    } else {
        flags |= RECORD_TERM;
        *used = note_part(env, token->label, r, *used, 0, RECORD_LABEL_BYTES);
        if (*used == 0) {
            return 0;
        }
    }
    r->of.serial = serial_of(env, token->serial);
    ErlNifPid from;
    r->of.from = 0;
    if (enif_get_local_pid(env, token->from, &from)) {
        r->of.from = from.pid;
    } else if (enif_is_pid(env, token->from)) {
        *used = note_part(env, token->from, r, *used, 1, RECORD_FROM_BYTES);
    }
    r->of.previous = serial_of(env, token->previous);
    return flags;
}

// Reads {Flags, Label, Serial, From, LastCount}.
static bool read_token(ErlNifEnv *env, ERL_NIF_TERM term, struct token *token) {
    const ERL_NIF_TERM *of;
    int size;
    if (!enif_get_tuple(env, term, &size, &of) || size != 5) {
        return false;
    }
    *token = (struct token){of[1], of[2], of[3], of[4]};
    return true;
}

// Writes elements of the message as the rest.
static void note_rest(ErlNifEnv *env, const struct note_atoms *atoms, const ERL_NIF_TERM *of,
                      unsigned count, union record *r, size_t *used) {
    static const uint8_t undefined[] = {119, 9, 'u', 'n', 'd', 'e', 'f', 'i', 'n', 'e', 'd'};
    uint8_t *rest = (uint8_t *)r->of.tail + *used;
    size_t at = 0;
    for (unsigned i = 0; i < count; i++) {
        // every element behind this one has room for an undefined
        size_t room = RECORD_REST_BYTES - at - (count - i - 1) * sizeof undefined;
        size_t size = of[i] == atoms->undefined ? 0 : note_term(env, of[i], rest + at, room);
        for (size_t k = 0; size == 0 && k < sizeof undefined; k++) {
            rest[at + k] = undefined[k];
        }
        at += size > 0 ? size : sizeof undefined;
    }
    *used += at;
    r->of.lengths |= (uint64_t)at << 32;
    set_byte(r, RECORD_ELEMENTS, count);
}

// Words of a record with so many bytes in its tail.
static uint64_t words_of(size_t used) {
    return RECORD_END(tail) + (used + sizeof(uint64_t) - 1) / sizeof(uint64_t);
}

uint8_t note_call(ErlNifEnv *env, const struct note_atoms *atoms, ERL_NIF_TERM options,
                  union record *r, uint64_t *words) {
    ERL_NIF_TERM message;
    const ERL_NIF_TERM *of;
    struct token token;
    int size;
    size_t used = 0;
    uint8_t flags = 0;
    r->of.lengths = 0;
    if (enif_get_map_value(env, options, atoms->match_spec_result, &message) &&
        enif_get_tuple(env, message, &size, &of) && size > 0 && read_token(env, of[0], &token)) {
        flags = note_token(env, &token, r, &used);
    }
    if (flags != 0) {
        unsigned count = (unsigned)size - 1;
        if (count == 3 && of[3] == atoms->none && note_caller(env, atoms, of[1], r)) {
            flags |= RECORD_CALLER;
            of++;
            count = 1;
        }
        if (count != 1 || of[1] != atoms->undefined) {
            flags |= RECORD_REST;
            note_rest(env, atoms, of + 1, count <= NOTE_ELEMENTS ? count : 0, r, &used);
        }
        *words = words_of(used);
    }
    return flags;
}

uint8_t note_message(ErlNifEnv *env, const struct note_atoms *atoms, ERL_NIF_TERM label,
                     ERL_NIF_TERM what, union record *r, uint64_t *words) {
    enum { FROM = 2, TO, SIZE = 5 };
    const ERL_NIF_TERM *of, *serials;
    int size, count;
    ErlNifPid process;
    size_t used = 0;
    if (!enif_get_tuple(env, what, &size, &of) || size != SIZE ||
        (of[0] != atoms->receive && of[0] != atoms->send) ||
        !enif_get_tuple(env, of[1], &count, &serials) || count != 2 ||
        !enif_get_local_pid(env, of[of[0] == atoms->send ? FROM : TO], &process)) {
        return 0;
    }
    r->of.process = process.pid;
    r->of.lengths = 0;
    struct token token = {label, serials[1], of[FROM], serials[0]};
    uint8_t flags = note_token(env, &token, r, &used);
    *words = words_of(used);
    return flags == 0 ? 0 : flags | (of[0] == atoms->send ? RECORD_SENT : RECORD_TAKEN);
}

uint64_t note_spawned(ErlNifEnv *env, const struct note_atoms *atoms, ERL_NIF_TERM options,
                      const union record *r) {
    ERL_NIF_TERM value, function = r->of.function;
    const ERL_NIF_TERM *of;
    int size;
    uint8_t arity = record_byte(r, RECORD_ARITY);
    ErlNifPid pid;
    if (r->of.module != atoms->erlang ||
        !((arity == 3 && (function == atoms->spawn || function == atoms->spawn_link)) ||
          (arity == 4 && function == atoms->spawn_opt)) ||
        !enif_get_map_value(env, options, atoms->extra, &value)) {
        return 0;
    }
    if (enif_get_tuple(env, value, &size, &of) && size == 2) {
        value = of[0]; // {Pid, Monitor}
    }
    return enif_get_local_pid(env, value, &pid) ? pid.pid : 0;
}
