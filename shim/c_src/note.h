// SPDX-License-Identifier: Apache-2.0
// Turns what the VM tells a tracer of a call or return, terms, into a record. Looks at no value
// that is not named here, and leaves nothing on the heap of the traced process.
#pragma once

#include "erl_nif.h"
#include "record.h"

// The words of atoms.
struct note_atoms {
    ERL_NIF_TERM undefined, none, erlang, spawn, spawn_link, spawn_opt, extra, match_spec_result;
    ERL_NIF_TERM receive, send;
};

struct note_atoms note_atoms(ErlNifEnv *env);

// Writes module, function and arity of {M, F, Arity or Args}. False: it is none.
bool note_function(ErlNifEnv *env, ERL_NIF_TERM mfa, union record *r);

// Writes what the match spec's message says, of a call whose function is written: its token, its
// caller, the rest. `options` are the tracer's. Returns the flags of the record, and its words.
//
//   {Token, undefined}                       nothing besides the token
//   {Token, Caller, undefined, none}         nothing besides these two
//   {Token, Caller, Identity, none}          the identity
//   {Token, Element, …}                      all elements
//
// An element that is too long for the rest, RECORD_REST_BYTES for all, is told as undefined. Of
// more than NOTE_ELEMENTS none is told. Messages without a token in front say nothing.
enum { NOTE_ELEMENTS = 8 };
uint8_t note_call(ErlNifEnv *env, const struct note_atoms *atoms, ERL_NIF_TERM options,
                  union record *r, uint64_t *words);

// The process that a function whose name is written has returned, or of a pair the one in front,
// if that is a function that spawns; else 0.
uint64_t note_spawned(ErlNifEnv *env, const struct note_atoms *atoms, ERL_NIF_TERM options,
                      const union record *r);

// Writes what seq_trace tells of a message that a process of this node sends, or takes out of its
// mailbox, {send | 'receive', {Previous, Serial}, From, To, Message}: that process and the token,
// whose label stands apart. Does not look at the message. Returns the kind and flags of the record,
// and its words; 0: it is nothing of use.
uint8_t note_message(ErlNifEnv *env, const struct note_atoms *atoms, ERL_NIF_TERM label,
                     ERL_NIF_TERM what, union record *r, uint64_t *words);

// Writes a term as encoded in the external term format, without its leading 131. Returns how many
// bytes it has; 0: it has more than `room`, and nothing is written.
size_t note_term(ErlNifEnv *env, ERL_NIF_TERM term, uint8_t *out, size_t room);
