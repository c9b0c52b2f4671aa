// SPDX-License-Identifier: Apache-2.0
// What match specs tell of a call, as terms: read of whole messages (message.c), and of the parts
// of blocks that stay terms (native.c). Each takes a cursor at its term. Pure.
#pragma once

#include "base/hash.h"
#include "model/message/message_learned.h"

enum { TARGET_UNDEFINED = 2 }; // functions have odd numbers

static inline bool atom_is(struct term_atom atom, const char *text, size_t len) {
    return atom.text.len == len && memcmp(atom.text.data, text, len) == 0;
}

#define ATOM_IS(atom, literal) atom_is(atom, literal, sizeof(literal) - 1)

// What stands for a token's label.
static inline uint64_t note_label(struct cursor *c) {
    struct cursor label = *c;
    if (term_is_integer(term_peek(c))) {
        int64_t value = term_integer(c);
        if (!c->failed) {
            return hash_mix((uint64_t)value);
        }
        *c = label; // a number of more than 64 bits
    }
    return hash_bytes(term_take(c));
}

// A function that control goes back to: {M, F, A}, or undefined at the bottom of a process. 0 when
// it is neither.
static inline uint32_t note_target(struct cursor *c) {
    if (term_is_atom(term_peek(c))) {
        return ATOM_IS(term_atom(c), "undefined") ? TARGET_UNDEFINED : 0;
    }
    if (term_tuple(c) != 3) {
        return 0;
    }
    const uint8_t *name = c->at;
    term_atom(c);
    term_atom(c);
    struct slice atoms = slice_of(name, (size_t)(c->at - name));
    int64_t arity = term_is_integer(term_peek(c)) ? term_integer(c) : -1;
    return c->failed || arity < 0 || arity > 255 ? 0 : message_target(atoms, (uint32_t)arity);
}

// What a call of an entry function says of itself; ENTRY_NONE, and the cursor stays, when it is no
// such call's.
static inline enum message_entry note_entry(struct cursor *c, uint32_t elements) {
    struct cursor word = *c;
    if (elements < 2 || !term_is_atom(term_peek(&word))) {
        return ENTRY_NONE;
    }
    struct term_atom what = term_atom(&word);
    bool begins = ATOM_IS(what, "entry");
    if (!begins && !ATOM_IS(what, "left_out")) {
        return ENTRY_NONE;
    }
    *c = word;
    return begins ? ENTRY_BEGINS : ENTRY_LEFT_OUT;
}

// Reads what stands behind the token in a message of the shim: [entry,] [Caller,] Identity [, none]
// or [entry,] [Caller,] ask, Args [, none]. caller_told: neither Caller nor none is there, as m has
// the caller.
static inline void note_rest(struct cursor *c, uint32_t elements, bool caller_told,
                             struct message *m) {
    m->entry = note_entry(c, elements);
    if (m->entry == ENTRY_LEFT_OUT) {
        return;
    }
    elements -= m->entry == ENTRY_BEGINS;
    if (elements >= 3 && !caller_told) {
        m->caller = note_target(c);
        elements -= 2;
        if (m->caller == 0) {
            return;
        }
    }
    if (elements == 2 && term_is_atom(term_peek(c)) && ATOM_IS(term_atom(c), "ask")) {
        m->note_kind = NOTE_ARGUMENTS;
        m->note = term_take(c);
    } else if (elements == 1) {
        m->note_kind = NOTE_IDENTITY;
        m->note = term_take(c);
    }
}
