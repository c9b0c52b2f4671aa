// SPDX-License-Identifier: Apache-2.0
// Functions as Erlang and Elixir write them.
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "codec/mfa.h"

// Reads text, expects these parts, and expects that it is written as shown.
static void reads(const char *text, const char *module, const char *function, uint32_t arity,
                  const char *shown) {
    struct mfa mfa;
    char out[MFA_TEXT_BYTES];
    if (!mfa_parse(text, &mfa)) {
        fail_msg("%s is not read", text);
    }
    assert_string_equal(mfa.module, module);
    assert_string_equal(mfa.function, function);
    assert_int_equal(mfa.arity, arity);
    assert_string_equal(mfa_text(&mfa, out), shown);
    // what is shown can be given again
    assert_true(mfa_parse(out, &mfa));
    assert_string_equal(mfa.module, module);
    assert_string_equal(mfa.function, function);
}

static void refuses(const char *text) {
    struct mfa mfa;
    if (mfa_parse(text, &mfa)) {
        fail_msg("%s is read as %s:%s/%u", text, mfa.module, mfa.function, mfa.arity);
    }
}

static void erlang_functions(void **state) {
    (void)state;
    reads("shop_http:handle/2", "shop_http", "handle", 2, "shop_http:handle/2");
    reads("a:b/0", "a", "b", 0, "a:b/0");
    reads("a@b:c_D9/255", "a@b", "c_D9", 255, "a@b:c_D9/255");
    reads("'my mod':'do it'/3", "my mod", "do it", 3, "'my mod':'do it'/3");
    reads("'a:b':'c/d'/1", "a:b", "c/d", 1, "'a:b':'c/d'/1");
    reads("'it\\'s':f/1", "it's", "f", 1, "'it\\'s':f/1");
    reads("m:'-f/1-fun-0-'/2", "m", "-f/1-fun-0-", 2, "m:'-f/1-fun-0-'/2");
    reads("größe:länge/1", "größe", "länge", 1, "'größe':'länge'/1");
}

static void atoms(void **state) {
    (void)state;
    const char *const names[][2] = {{"create", "create"},       {"Elixir.My.App", "My.App"},
                                    {"Elixir", "Elixir"},       {"Elixir.", "Elixir."},
                                    {"Elixir.my", "Elixir.my"}, {"", ""},
                                    {"elixir.My", "elixir.My"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!slice_is(mfa_atom(slice_text(names[i][0])), names[i][1])) {
            fail_msg("%s is not shown as %s", names[i][0], names[i][1]);
        }
    }
}

static void elixir_functions(void **state) {
    (void)state;
    reads("MyApp.Repo.all/2", "Elixir.MyApp.Repo", "all", 2, "MyApp.Repo.all/2");
    reads("Enum.map/2", "Elixir.Enum", "map", 2, "Enum.map/2");
    reads("'Elixir.MyApp.Repo':all/2", "Elixir.MyApp.Repo", "all", 2, "MyApp.Repo.all/2");
    reads("Elixir.MyApp.Repo:all/2", "Elixir.MyApp.Repo", "all", 2,
          "MyApp.Repo.all/2"); // the shell took the quotes
    reads("Elixir.MyApp.Repo.all/2", "Elixir.MyApp.Repo", "all", 2, "MyApp.Repo.all/2");
    reads("MyApp.Repo.get!/3", "Elixir.MyApp.Repo", "get!", 3, "MyApp.Repo.get!/3");
    reads("MyApp.valid?/1", "Elixir.MyApp", "valid?", 1, "MyApp.valid?/1");
    reads("MyApp.\"do it\"/1", "Elixir.MyApp", "do it", 1, "MyApp.\"do it\"/1");
    reads("MyApp.//2", "Elixir.MyApp", "/", 2, "MyApp.//2");
    reads("MyApp.<>/2", "Elixir.MyApp", "<>", 2, "MyApp.<>/2");
    reads("MyApp.__struct__/0", "Elixir.MyApp", "__struct__", 0, "MyApp.__struct__/0");
    reads("A.B2.C_d.E.f/1", "Elixir.A.B2.C_d.E", "f", 1, "A.B2.C_d.E.f/1");
    reads(":ets.lookup/2", "ets", "lookup", 2, "ets:lookup/2");
    reads(":\"my mod\".f/2", "my mod", "f", 2, "'my mod':f/2");
    reads("'Elixir.odd':f/1", "Elixir.odd", "f", 1, "'Elixir.odd':f/1"); // no alias
}

static void no_functions(void **state) {
    static const char *const none[] = {
        "",          "/",        "a",       "a/1",     "a:b",      "a:b/",       "a:b/x",
        "a:b/256",   "a:b/-1",   "a:b/1 ",  "a:b/ 1",  ":b/1",     "a:/1",       ":/1",
        ":a/1",      ":a./1",    "A/1",     "A./1",    "A.B/1",    "A.B./1",     "A.b c/1",
        "A..b/1",    "a b:c/1",  "a:b c/1", "'a:b/1",  "'a'b:c/1", "'':b/1",     "a:''/1",
        "_:b/1",     "a:_/1",    "'_':b/1", "A.\"b/1", "A.\"\"/1", "A.\"b\"c/1", "a:b\n/1",
        "'a\n':b/1", "a:b/0001", "a;b:c/1", "a:b/2/1", "A.b+/1",
    };
    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        refuses(none[i]);
    }
}

static void long_names(void **state) {
    char text[3000], name[2 * MFA_ATOM_CHARACTERS + 1];
    struct mfa mfa;
    char out[MFA_TEXT_BYTES];
    (void)state;
    memset(name, 'x', sizeof name);
    sprintf(text, "%.255s:%.255s/1", name, name);
    assert_true(mfa_parse(text, &mfa));
    assert_string_equal(mfa_text(&mfa, out), text);
    sprintf(text, "%.256s:f/1", name);
    refuses(text);
    sprintf(text, "f:%.256s/1", name);
    refuses(text);
    sprintf(text, "X%.254s.f/1", name); // with its prefix more than an atom holds
    refuses(text);
    sprintf(text, "X%.510s.f/1", name);
    refuses(text);
    memset(text, 'x', sizeof text);
    memcpy(text + sizeof text - 5, "f:/1", 5);
    refuses(text);
    // characters count, not bytes
    for (size_t i = 0; i < sizeof name - 1; i++) {
        name[i] = "\xc3\xa4"[i % 2];
    }
    name[sizeof name - 1] = 0;
    sprintf(text, "f:%s/1", name);
    assert_true(mfa_parse(text, &mfa));
    sprintf(text, "'%s':'%s'/1", name, name);
    assert_true(mfa_parse(text, &mfa));
    assert_string_equal(mfa_text(&mfa, out), text);
    memset(name, '\'', sizeof name);
    memset(mfa.module, '\'', MFA_ATOM_CHARACTERS);
    mfa.module[MFA_ATOM_CHARACTERS] = 0;
    memcpy(mfa.function, mfa.module, MFA_ATOM_CHARACTERS + 1);
    assert_int_equal(strlen(mfa_text(&mfa, out)), 2 * (2 * MFA_ATOM_CHARACTERS + 2) + 3);
}

// Every beginning of a good text is read or refused within its bounds (the sanitizers look).
static void truncated(void **state) {
    static const char *const texts[] = {"'Elixir.MyApp.Repo':'do it'/12",
                                        "MyApp.Repo.\"do \\\" it\"/2", ":\"a\\\"b\".c/1"};
    struct mfa mfa;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (size_t n = 0; n < strlen(texts[i]); n++) {
            char *part = strndup(texts[i], n);
            assert_true(!mfa_parse(part, &mfa) || part[n - 1] == '1');
            free(part);
        }
    }
}

static void refuses_argument(const char *text, const char *wanted) {
    struct mfa mfa;
    uint32_t n;
    const char *want = mfa_parse_argument(text, &mfa, &n);
    if (!want || !strstr(want, wanted)) {
        fail_msg("%s: want %s", text, want ? want : "(nothing)");
    }
}

static void arguments(void **state) {
    struct mfa mfa;
    uint32_t n;
    (void)state;
    assert_null(mfa_parse_argument("shop_http:handle/2:1", &mfa, &n));
    assert_int_equal(n, 1);
    assert_string_equal(mfa.function, "handle");
    assert_null(mfa_parse_argument("MyApp.Router.call/2:2", &mfa, &n));
    assert_int_equal(n, 2);
    assert_string_equal(mfa.module, "Elixir.MyApp.Router");
    refuses_argument("a:b/2:3", "up to the function's arity");
    refuses_argument("a:b/2:0", "up to the function's arity");
    refuses_argument("a:b/2:", "up to the function's arity");
    refuses_argument("a:b/2:x", "up to the function's arity");
    refuses_argument("a:b/2", "behind it");
    refuses_argument("a:b/0:1", "a function with arguments");
    refuses_argument("a:b:1", "MODULE:FUNCTION/ARITY:ARGUMENT");
    refuses_argument("", "MODULE:FUNCTION/ARITY:ARGUMENT");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(erlang_functions), cmocka_unit_test(atoms),
        cmocka_unit_test(elixir_functions), cmocka_unit_test(no_functions),
        cmocka_unit_test(long_names),       cmocka_unit_test(truncated),
        cmocka_unit_test(arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
