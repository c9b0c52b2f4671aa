// SPDX-License-Identifier: Apache-2.0
// Functions as people write them. Erlang's way: shop_http:handle/2, 'my mod':'do it'/2. Elixir's
// way: MyApp.Repo.all/2 is 'Elixir.MyApp.Repo':all/2, :ets.lookup/2 is ets:lookup/2. Pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum {
    MFA_ATOM_CHARACTERS = 255, // of the longest atom
    MFA_ATOM_BYTES = 4 * MFA_ATOM_CHARACTERS + 1,
    MFA_TEXT_BYTES = 2 * (2 * MFA_ATOM_BYTES) + 16 // every character escaped, quotes, arity
};

struct mfa {
    char module[MFA_ATOM_BYTES]; // UTF-8, as the atom is
    char function[MFA_ATOM_BYTES];
    uint32_t arity; // up to 255
};

// Reads a function in either way. Quotes that a shell took away are not missed where no doubt is:
// Elixir.MyApp.Repo:all/2. False when the text is no function, or names all modules or functions
// ('_').
bool mfa_parse(const char *text, struct mfa *out);

// Reads "FUNCTION:N", an argument of a function, 1 the first. NULL, or what is wanted instead, also
// when the function has fewer.
const char *mfa_parse_argument(const char *text, struct mfa *out, uint32_t *argument);

// An atom's name as it is shown: of a module of Elixir's without "Elixir.".
struct slice mfa_atom(struct slice name);

// Writes a function as its language does: modules whose names begin with "Elixir." as Elixir.
// Returns out.
char *mfa_text(const struct mfa *mfa, char out[MFA_TEXT_BYTES]);
