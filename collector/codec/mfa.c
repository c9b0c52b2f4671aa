// SPDX-License-Identifier: Apache-2.0
#include "codec/mfa.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"

static const char LOWER[] = "abcdefghijklmnopqrstuvwxyz";
static const char DIGITS[] = "0123456789";
static const char WORD[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@";
static const char ELIXIR[] = "Elixir.";

static bool one_of(char c, const char *set) {
    return c != 0 && strchr(set, c);
}

static bool upper(char c) {
    return c >= 'A' && c <= 'Z';
}

// -- reading: each reader takes its part at *at, writes it to out and steps over it ---------------

// Printable UTF-8 of at most as many characters as an atom may have: a node closes the connection
// on which an atom comes that is none.
static bool is_atom(const char *text) {
    size_t characters = 0;
    for (const char *p = text; *p; p++) {
        characters += ((unsigned char)*p & 0xc0) != 0x80;
    }
    return characters > 0 && characters <= MFA_ATOM_CHARACTERS && strcmp(text, "_") != 0 &&
           names_is_clean(slice_text(text));
}

static bool put(char out[MFA_ATOM_BYTES], size_t *len, char c) {
    if (*len + 1 >= MFA_ATOM_BYTES) {
        return false;
    }
    out[(*len)++] = c;
    out[*len] = 0;
    return true;
}

static bool read_quoted(const char **at, char out[MFA_ATOM_BYTES]) {
    char quote = *(*at)++;
    size_t len = 0;
    out[0] = 0;
    while (**at && **at != quote) {
        if (**at == '\\' && (*at)[1]) {
            (*at)++;
        }
        if (!put(out, &len, *(*at)++)) {
            return false;
        }
    }
    return *(*at)++ == quote && is_atom(out);
}

// Everything up to a character of stop, or to the end. Bytes beyond ASCII may be letters.
static bool read_until(const char **at, const char *stop, const char *allowed,
                       char out[MFA_ATOM_BYTES]) {
    size_t len = 0;
    out[0] = 0;
    while (**at && !one_of(**at, stop)) {
        bool good = (unsigned char)**at >= 0x80 || one_of(**at, allowed);
        if (!good || !put(out, &len, *(*at)++)) {
            return false;
        }
    }
    return is_atom(out);
}

static bool read_erlang(const char *text, struct mfa *out) {
    static const char module[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@.";
    static const char function[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@?!";
    const char *at = text;
    if (!(*at == '\'' ? read_quoted(&at, out->module)
                      : read_until(&at, ":", module, out->module)) ||
        *at++ != ':') {
        return false;
    }
    return (*at == '\'' ? read_quoted(&at, out->function)
                        : read_until(&at, "", function, out->function)) &&
           *at == 0;
}

// A function behind its dot: a name, an operator, or anything in quotes.
static bool read_elixir_function(const char *at, char out[MFA_ATOM_BYTES]) {
    static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@?!";
    static const char operator[] = "+-*/<>=!&|^~.%\\";
    if (*at == '"') {
        return read_quoted(&at, out) && *at == 0;
    }
    return read_until(&at, "", one_of(*at, operator) ? operator : name, out) && *at == 0;
}

// MyApp.Repo.all: a module's parts begin with capital letters, what follows them is the function.
static bool read_alias(const char *text, struct mfa *out) {
    size_t len = strncmp(text, ELIXIR, sizeof ELIXIR - 1) == 0 ? 0 : sizeof ELIXIR - 1;
    const char *at = text;
    memcpy(out->module, ELIXIR, len);
    while (upper(*at)) {
        size_t part = strspn(at, WORD);
        if (at[part] != '.' || len + part + 2 > MFA_ATOM_BYTES) {
            return false;
        }
        memcpy(out->module + len, at, part);
        len += part;
        at += part + 1;
        out->module[len++] = '.';
    }
    out->module[len - 1] = 0; // the last dot
    return is_atom(out->module) && read_elixir_function(at, out->function);
}

// :ets.lookup
static bool read_elixir_atom(const char *text, struct mfa *out) {
    const char *at = text + 1;
    if (!(*at == '"' ? read_quoted(&at, out->module) : read_until(&at, ".", WORD, out->module))) {
        return false;
    }
    return *at == '.' && read_elixir_function(at + 1, out->function);
}

// A number of one to three digits, and nothing behind it, up to 255.
static bool read_number(const char *text, uint32_t *n) {
    size_t digits = strspn(text, DIGITS);
    if (digits == 0 || digits > 3 || text[digits] != 0) {
        return false;
    }
    *n = (uint32_t)strtoul(text, NULL, 10);
    return *n <= 255;
}

bool mfa_parse(const char *text, struct mfa *out) {
    char name[2 * MFA_ATOM_BYTES];
    const char *slash = strrchr(text, '/');
    if (!slash || (size_t)(slash - text) >= sizeof name || !read_number(slash + 1, &out->arity)) {
        return false;
    }
    memcpy(name, text, (size_t)(slash - text));
    name[slash - text] = 0;
    if (name[0] == ':') {
        return read_elixir_atom(name, out);
    }
    return upper(name[0]) && !strchr(name, ':') ? read_alias(name, out) : read_erlang(name, out);
}

const char *mfa_parse_argument(const char *text, struct mfa *out, uint32_t *argument) {
    static const char form[] = "MODULE:FUNCTION/ARITY:ARGUMENT, such as shop_http:handle/2:1";
    char name[MFA_TEXT_BYTES];
    const char *colon = strrchr(text, ':');
    if (mfa_parse(text, out)) {
        return "the number of one of its arguments behind it, such as shop_http:handle/2:1";
    }
    if (!colon || (size_t)(colon - text) >= sizeof name) {
        return form;
    }
    memcpy(name, text, (size_t)(colon - text));
    name[colon - text] = 0;
    if (!mfa_parse(name, out)) {
        return form;
    }
    if (out->arity == 0) {
        return "a function with arguments";
    }
    bool one = read_number(colon + 1, argument) && *argument >= 1 && *argument <= out->arity;
    return one ? NULL
               : "the number of an argument behind the last colon, from 1 up to the function's "
                 "arity";
}

// -- writing --------------------------------------------------------------------------------------

static char *put_quoted(char *to, const char *text, char quote) {
    *to++ = quote;
    for (; *text; text++) {
        if (*text == quote || *text == '\\') {
            *to++ = '\\';
        }
        *to++ = *text;
    }
    *to++ = quote;
    return to;
}

static char *put_atom(char *to, const char *text) {
    bool plain = one_of(*text, LOWER) && strspn(text, WORD) == strlen(text);
    return plain ? stpcpy(to, text) : put_quoted(to, text, '\'');
}

static char *put_elixir_function(char *to, const char *text) {
    size_t word = strspn(text, WORD);
    bool name = one_of(*text, LOWER) || *text == '_';
    bool plain = name && (text[word] == 0 || (one_of(text[word], "?!") && text[word + 1] == 0));
    bool operator= strspn(text, "+-*/<>=!&|^~.%\\") == strlen(text);
    return plain || operator? stpcpy(to, text) : put_quoted(to, text, '"');
}

struct slice mfa_atom(struct slice name) {
    const size_t prefix = sizeof ELIXIR - 1;
    bool elixir = name.len > prefix && memcmp(name.data, ELIXIR, prefix) == 0 &&
                  upper((char)name.data[prefix]);
    return elixir ? slice_of(name.data + prefix, name.len - prefix) : name;
}

char *mfa_text(const struct mfa *mfa, char out[MFA_TEXT_BYTES]) {
    const char *module = (const char *)mfa_atom(slice_text(mfa->module)).data;
    char *to = out;
    if (module != mfa->module) {
        to = stpcpy(to, module);
        *to++ = '.';
        to = put_elixir_function(to, mfa->function);
    } else {
        to = put_atom(to, mfa->module);
        *to++ = ':';
        to = put_atom(to, mfa->function);
    }
    sprintf(to, "/%u", mfa->arity);
    return out;
}
