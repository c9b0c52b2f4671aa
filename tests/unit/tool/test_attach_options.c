// SPDX-License-Identifier: Apache-2.0
// The command line of kprof attach: what is read of it, and what is said of what is wrong with it.
#include "tool_fixture.h"

#include <fcntl.h>

#include "tool/attach/attach.h"
#include "tool/command.h"

enum { MOST_WORDS = 16 };

static char cookie_file[96];
static struct attach_options o;

// Reads "attach NODE --tier a=b:c/1" and these options, separated by blanks.
static void reads(const char *options) {
    char line[512], *words[MOST_WORDS] = {"attach",    "shop@h", "--cookie-file",
                                          cookie_file, "--tier", "a=b:c/1"},
                    *next;
    int n = 6;
    snprintf(line, sizeof line, "%s", options);
    for (char *word = strtok_r(line, " ", &next); word; word = strtok_r(NULL, " ", &next)) {
        assert_in_range(n, 0, MOST_WORDS - 2);
        words[n++] = word;
    }
    attach_options_free(&o); // of the reading before
    assert_int_equal(attach_options_read(n, words, &o), EXIT_SUCCESS);
}

static void sampling(void **state) {
    (void)state;
    reads("");
    assert_int_equal(o.trace.one_in, 0);
    assert_int_equal(o.trace.per_second, 0);
    reads("--sample 20 --entry d:e/2");
    assert_int_equal(o.trace.one_in, 20);
    assert_int_equal(o.trace.per_second, 0);
    reads("--sample 50/s");
    assert_int_equal(o.trace.one_in, 0);
    assert_int_equal(o.trace.per_second, 50);
    reads("--sample 1000000/s");
    assert_int_equal(o.trace.per_second, 1000000);
    reads("--sample 50/s --sample 1073741824");
    assert_int_equal(o.trace.one_in, 1073741824);
    assert_int_equal(o.trace.per_second, 0);
}

static void entries(void **state) {
    (void)state;
    reads("--entry d:e/2 --entry d:f/1,returns=none --entry D.e/2,returns=none");
    assert_int_equal(o.trace.entry_count, 3);
    assert_false(o.trace.entries[0].blind);
    assert_true(o.trace.entries[1].blind);
    assert_string_equal(o.trace.entries[1].mfa.function, "f");
    assert_int_equal(o.trace.entries[1].mfa.arity, 1);
    assert_true(o.trace.entries[2].blind);
    assert_string_equal(o.trace.entries[2].mfa.module, "Elixir.D");
}

static void tiers(void **state) {
    (void)state;
    reads("--tier d=d:e/2,returns=none --tier f=D.f/1");
    assert_int_equal(o.trace.tier_count, 3);
    assert_false(o.trace.tiers[0].blind);
    assert_true(o.trace.tiers[1].blind);
    assert_string_equal(o.trace.tiers[1].mfa.function, "e");
    assert_int_equal(o.trace.tiers[1].mfa.arity, 2);
    assert_false(o.trace.tiers[2].blind);
}

static void presets(void **state) {
    (void)state;
    reads("--preset phoenix=A.B --preset ecto");
    assert_int_equal(o.trace.preset_count, 2);
    assert_string_equal(o.trace.presets[0], "phoenix=A.B");
    assert_string_equal(o.trace.presets[1], "ecto");
}

static void tracer(void **state) {
    (void)state;
    reads("");
    assert_null(o.trace.tracer);
    reads("--tracer native");
    assert_string_equal(o.trace.tracer, "native");
    reads("--tracer native --tracer port"); // the last one counts
    assert_string_equal(o.trace.tracer, "port");
}

static void identity(void **state) {
    (void)state;
    reads("--identity b:c/1:1");
    assert_string_equal(o.trace.identity->function, "c");
    assert_int_equal(o.trace.identity_argument, 1);
    reads("--identity fun(_)->x%end");
    assert_string_equal(o.trace.identity_fun, "fun(_)->x%end");
    reads("--identity b:c/1:1 --identity fun(_)->x%end"); // the last one counts
    assert_null(o.trace.identity);
    reads("--identity fun(_)->x%end --identity b:c/1:1");
    assert_non_null(o.trace.identity);
    assert_null(o.trace.identity_fun);
    reads("--identity fn{_,_,_}->:x;end");
    assert_string_equal(o.trace.identity_fun, "fn{_,_,_}->:x;end");
    reads("--identity fn:c/1:1"); // a module of that name
    assert_string_equal(o.trace.identity->module, "fn");
    reads("--identity \nfun(_)->x%end");
    assert_string_equal(o.trace.identity_fun, "fun(_)->x%end");
}

// Which collector it is: one that is named, one of its own, or either.
static void collector(void **state) {
    (void)state;
    reads("");
    assert_true(o.either);
    assert_null(o.db);
    reads("--collector 127.0.0.1:1");
    assert_false(o.either);
    assert_null(o.db);
    reads("--tls");
    assert_false(o.either);
    reads("--db x.db");
    assert_false(o.either);
    assert_string_equal(o.db, "x.db");
    reads("--listen 0");
    assert_false(o.either);
    assert_string_equal(o.db, "kprof.db");
    assert_string_equal(o.listen, "0");
}

static void wrong(void **state) {
    (void)state;
    const struct {
        const char *arguments, *line;
    } cases[] = {
        {"", "which node? Say name@host"},
        {"n m", "one node at a time"},
        {"n", "what is to be traced? Say --tier, --entry, --preset or --config"},
        {"n --tier b:c/1",
         "--tier b:c/1: want NAME=MODULE:FUNCTION/ARITY, such as db=my_db:query/2"},
        {"n --entry b", "--entry b: want MODULE:FUNCTION/ARITY"},
        {"n --entry b:c/1,returns=some",
         "--entry b:c/1,returns=some: want MODULE:FUNCTION/ARITY, or MODULE:FUNCTION/ARITY,returns=none"},
        {"n --entry ,returns=none", "--entry ,returns=none: want MODULE:FUNCTION/ARITY"},
        {"n --entry b:c/1 --sample 5/m",
         "--sample 5/m: want a number N from 1 to 1073741824, for one request in N, or R/s, R"},
        {"n --entry b:c/1 --sample 0", "--sample 0: want a number"},
        {"n --entry b:c/1 --sample /s", "--sample /s: want a number"},
        {"n --entry b:c/1 --sample 1073741825", "want a number"},
        {"n --entry b:c/1 --sample 1000001/s", "want a number"},
        {"n --sample 5/s --entry b:c/1",
         "with --entry say --sample N: its requests are sampled by one in N only"},
        {"n --entry b:c/1 --identity b:c/1:2",
         "--identity b:c/1:2: want the number of an argument behind the last colon, from 1 up to the function's arity; or a fun"},
        {"n --entry b:c/1 --identity b:c/1",
         "--identity b:c/1: want the number of one of its arguments behind it, such as"},
        {"n --entry b:c/1 --identity route",
         "--identity route: want MODULE:FUNCTION/ARITY:ARGUMENT, such as shop_http:handle/2"},
        {"n --entry b:c/1 --db x --collector 127.0.0.1:1", "say one of them"},
        {"n --entry b:c/1 --listen 0 --collector 127.0.0.1:1", "say one of them"},
        {"n --entry b:c/1 --db x --tls", "a collector of this command's own is without TLS"},
        {"n --entry b:c/1 --tracer Port", "--tracer Port: want port, native or auto"},
        {"n --entry b:c/1 --for x", "--for x: want a time such as 60s"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[512];
        snprintf(line, sizeof line, "attach %s", cases[i].arguments);
        assert_int_equal(tool_run("LC_ALL=C", line), EXIT_USAGE);
        expect_line(cases[i].line);
    }
}

static int setup(void **state) {
    int status = fixture_setup(state);
    snprintf(cookie_file, sizeof cookie_file, "%s/cookie", fixture_dir);
    int fd = open(cookie_file, O_WRONLY | O_CREAT | O_EXCL, 0400);
    return status != 0 || fd < 0 || write(fd, "cookie\n", 7) != 7 || close(fd) != 0;
}

static int teardown(void **state) {
    attach_options_free(&o);
    return fixture_teardown(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sampling),  cmocka_unit_test(entries),
                                       cmocka_unit_test(tiers),     cmocka_unit_test(presets),
                                       cmocka_unit_test(tracer),    cmocka_unit_test(identity),
                                       cmocka_unit_test(collector), cmocka_unit_test(wrong)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
