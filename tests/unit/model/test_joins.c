// SPDX-License-Identifier: Apache-2.0
// Spans whose ends or parents need more than their own return: deaths, spawns, return_to, pauses,
// answers, reloads.
#include "request_script.h"

static void check(const char *commands, const char *expected, uint64_t unwound, uint64_t ambiguous,
                  uint64_t orphans) {
    struct script *s = script_new(true, 0);
    script_run(s, commands);
    script_run(s, "now 60000");
    script_expect(s, expected);
    script_expect_joins(s, unwound, ambiguous, 0);
    script_expect_counts(s, orphans, 0, 0);
    script_free(s);
}

// -- parents and waiting --------------------------------------------------------------------------

static void spawned(void **state) {
    (void)state;
    // two children in parallel, whose tokens come from themselves: they hang where they were
    // spawned
    script_check(
        "begin 1 A 0; call 1 A a 1; spawn 1 A B 2; spawn 1 A C 3; call 1 B b 4 B; call 1 C b 6 C; ret B b 8; ret C b 9;"
        "ret A a 10; end 1 A 11",
        "complete 0..11 self 2: Aa 1..10 self 2, >Bb 4..8 self 4 wait 2, >Cb 6..9 self 3 wait 3;");
    // outside of any span; and a grandchild
    script_check(
        "begin 1 A 0; spawn 1 A B 1; call 1 B b 2 B; spawn 1 B C 3; ret B b 4; call 1 C c 5 C; ret C c 6; end 1 A 7",
        "complete 0..7 self 3: Bb 2..4 self 2 wait 1, >Cc 5..6 self 1 wait 2;");
    // the middle one without a span: its child hangs where it was itself spawned
    script_check(
        "begin 1 A 0; call 1 A a 1; spawn 1 A B 2; spawn 1 B C 3; call 1 C c 5 C; ret C c 6; ret A a 8; end 1 A 9",
        "complete 0..9 self 2: Aa 1..8 self 4, >Cc 5..6 self 1 wait 2;");
    // the one in the middle worked for somebody else when its child first called
    script_check(
        "begin 1 A 0; call 1 A a 1; call 1 S s 2 A; ret S s 3; spawn 1 S B 4; ret A a 5; call 1 A b 6; call 1 S s 7 A; "
        "ret S s 8; call 1 B c 9 B;"
        "ret B c 10; ret A b 11; end 1 A 12",
        "complete 0..12 self 3: Aa 1..5 self 2, >Ss 2..3 self 1 wait 1, Ab 6..11 self 3, >Ss 7..8 self 1 wait 1, >Bc 9..10 self "
        "1 wait 5;");
    // its second span has waited for nobody; a child that has spoken to a server by then hangs
    // where it was spawned
    script_check(
        "begin 1 A 0; call 1 A a 1; spawn 1 A B 2; call 1 B b 3 B; ret B b 4; call 1 B b 6 B; ret B b 7; ret A a 8; end 1 A 9",
        "complete 0..9 self 2: Aa 1..8 self 4, >Bb 3..4 self 1 wait 1, >Bb 6..7 self 1;");
    script_check(
        "begin 1 A 0; call 1 A a 1; spawn 1 A B 2; call 1 S s 4 B; ret S s 5; call 1 B b 6 S; ret B b 7; ret A a 8; end 1 A 9",
        "complete 0..9 self 2: Aa 1..8 self 3, >Ss 4..5 self 1 wait 2, >Bb 6..7 self 1;");
    // a spawn that raised leaves nothing
    script_check(
        "begin 1 A 0; call 1 A a 1; raise 1 A 2; ret A a 3; raise 1 A 4; call 1 A b 5; ret A b 6; end 1 A 7",
        "complete 0..7 self 4: Aa 1..3 self 2, Ab 5..6 self 1;");
    script_check(
        "begin 1 A 0; call 1 A a 1; raise 1 A 2; call 1 A b 3; ret A b 4; raise 1 A 5; spawn 1 A B 6; call 1 B c 7 B; "
        "ret B c 8; ret A a 9; end 1 A 10",
        "complete 0..10 self 2: Aa 1..9 self 5, >Ab 3..4 self 1, >Bc 7..8 self 1 wait 1;");
    // a spawner without spans whose message comes back is an answer's sender
    script_check(
        "begin 1 A 0; spawn 1 A B 1; spawn 1 B C 2; call 1 A a 5 B; ret A a 6; call 1 C c 7 C; ret C c 8; end 1 A 9",
        "complete 0..9 self 6: Aa 5..6 self 1, Cc 7..8 self 1 wait 5;");
    // a spawn that comes before the begin of its request; one under a token that is over
    script_check(
        "spawn 1 A B 1; call 1 B b 2 B; begin 1 A 0; ret B b 3; end 1 A 4; now 2000; spawn 1 A C 2001",
        "complete 0..4 self 2: Bb 2..3 self 1 wait 1;");
    // of a token that nobody began nothing is kept
    struct script *s = script_new(true, 0);
    script_run(s, "spawn 5 A B 1; call 1 A a 2; now 9000");
    script_expect(s, "");
    script_expect_counts(s, 0, 1, 0);
    script_free(s);
}

// Before the first marker tells that there are any, a call that comes before its request's begin
// seems to be the request.
static void before_the_first_marker(void **state) {
    (void)state;
    struct script *s = script_new(false, 0);
    script_run(s, "call 1 B b 2 B; ret B b 3; spawn 1 A B 1; begin 1 A 0; end 1 A 4; now 9000");
    script_expect(s, "complete 0..4 self 2: Bb 2..3 self 1 wait 1;");
    script_expect_counts(s, 0, 0, 0);
    script_free(s);
}

static void waiting(void **state) {
    (void)state;
    // a busy server: since the caller's last event, the start of its own span
    script_check("begin 1 A 0; call 1 A a 1; call 1 S s 5 A; ret S s 7; ret A a 8; end 1 A 9",
                 "complete 0..9 self 2: Aa 1..8 self 1, >Ss 5..7 self 2 wait 4;");
    // since the end of a span there, since the begin of the request
    script_check(
        "begin 1 A 0; call 1 A a 1; call 1 A b 2; ret A b 3; call 1 S s 5 A; ret S s 7; ret A a 8; end 1 A 9",
        "complete 0..9 self 2: Aa 1..8 self 2, >Ab 2..3 self 1, >Ss 5..7 self 2 wait 2;");
    script_check("begin 1 A 0; call 1 S s 5 A; ret S s 7; end 1 A 9",
                 "complete 0..9 self 2: Ss 5..7 self 2 wait 5;");
    // one message, two spans of the server; then another message, as the caller has done something
    // in between
    script_check(
        "begin 1 A 0; call 1 A a 1; call 1 S s 3 A; ret S s 4; call 1 S s 6 A; ret S s 7; ret A a 8; call 1 A a 9; "
        "call 1 S s 12 A;"
        "ret S s 13; ret A a 14; end 1 A 15",
        "complete 0..15 self 3: Aa 1..8 self 3, >Ss 3..4 self 1 wait 2, >Ss 6..7 self 1, Aa 9..14 self 1, >Ss 12..13 self 1 wait "
        "3;");
    // since an answer: of the server before, of a process that it had spawned; not of one that
    // still works
    script_check(
        "begin 1 A 0; call 1 A a 1; call 1 S s 2 A; ret S s 6; call 1 T t 7 A; ret T t 8; ret A a 9; end 1 A 10",
        "complete 0..10 self 2: Aa 1..9 self 1, >Ss 2..6 self 4 wait 1, >Tt 7..8 self 1 wait 1;");
    script_check(
        "begin 1 A 0; call 1 A a 1; spawn 1 A B 2; spawn 1 A C 2.5; call 1 B b 3 B; call 1 C c 3 C; ret B b 5; call 1 T t 7 A; "
        "ret T t 8; ret C c 9;"
        "ret A a 10; end 1 A 11",
        "complete 0..11 self 2: Aa 1..10 self 2, >Bb 3..5 self 2 wait 1, >Cc 3..9 self 6 wait 0.5, >Tt 7..8 self 1 wait 2;");
    // of a sender that was never seen nothing is known
    script_check("begin 1 A 0; call 1 S s 5 X; ret S s 7; end 1 A 9",
                 "complete 0..9 self 7: Ss 5..7 self 2;");
}

// No span is open where the message came from.
static void casts(void **state) {
    (void)state;
    // it waits for the answer: the span hangs where its own do
    script_check(
        "begin 1 A 0; call 1 A a 1; ret A a 2; call 1 S s 3 A; ret S s 4; call 1 A b 5; ret A b 6; end 1 A 7",
        "complete 0..7 self 3: Aa 1..2 self 1, Ss 3..4 self 1 wait 1, Ab 5..6 self 1;");
    script_check(
        "begin 1 A 0; call 1 A a 1; call 1 S s 2 A; ret S s 3; call 1 T t 4 S; ret T t 5; call 1 S s 6 T; ret S s 7; ret A a 8; "
        "end 1 A 9",
        "complete 0..9 self 2: Aa 1..8 self 2, >Ss 2..3 self 1 wait 1, >Tt 4..5 self 1 wait 1, >Ss 6..7 self 1;");
    // it goes on meanwhile: by a span, by the request's end, which may be long ago
    script_check(
        "begin 1 A 0; call 1 A a 1; ret A a 2; call 1 S s 3 A; call 1 A b 4; ret A b 5; ret S s 6; end 1 A 7",
        "complete 0..7 self 3: Aa 1..2 self 1, >Ss 3..6 self 3 wait 1, Ab 4..5 self 1;");
    script_check("begin 1 A 0; call 1 A a 1; ret A a 2; call 1 S s 3 A; end 1 A 4; ret S s 5",
                 "complete 0..4 self 3: Aa 1..2 self 1, >Ss 3..5 self 0 async wait 1;");
    script_check("begin 1 A 0; call 1 A a 1; ret A a 2; end 1 A 3; call 1 S s 4 A; ret S s 5",
                 "complete 0..3 self 2: Aa 1..2 self 1, >Ss 4..5 self 0 async wait 2;");
}

static void answers(void **state) {
    (void)state;
    // a worker that asks a server goes on below the span that gave it its work, though another
    // worker asked that server meanwhile
    script_check(
        "begin 1 A 0; call 1 A a 1; call 1 V v 2 A; ret V v 3; call 1 W v 2.5 A; ret W v 3.5; call 1 S s 4 V; ret S s 5; "
        "call 1 S s 6 W;"
        "ret S s 7; call 1 V v 8 S; ret V v 9; call 1 W v 8.5 S; ret W v 9.5; ret A a 10; end 1 A 11",
        "complete 0..11 self 2: Aa 1..10 self 1.5, >Vv 2..3 self 1 wait 1, >Wv 2.5..3.5 self 1 wait 1.5, >Ss 4..5 self 1 wait 1, "
        ">Ss 6..7 self 1 wait 2.5, >Vv 8..9 self 1, >Wv 8.5..9.5 self 1;");
    // by way of a second server that answers itself
    script_check(
        "begin 1 A 0; call 1 S s 1 A; ret S s 2; call 1 T t 3 S; ret T t 4; call 1 A a 5 T; ret A a 6; end 1 A 7",
        "complete 0..7 self 2: Ss 1..2 self 1 wait 1, Tt 3..4 self 1 wait 1, Aa 5..6 self 1;");
    // of a process without spans
    script_check(
        "begin 1 A 0; call 1 A a 1; call 1 S s 2 A; ret S s 3; call 1 S s 5 X; ret S s 6; ret A a 7; end 1 A 8",
        "complete 0..8 self 2: Aa 1..7 self 3, >Ss 2..3 self 1 wait 1, >Ss 5..6 self 1;");
}

// More processes and spawns than are looked through one by one.
static void many_processes(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    script_run(s, "begin 1 A 0; call 1 A a 0.5");
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 1; i < 21; i++) {
            char line[128];
            double t = 20 * turn + i;
            snprintf(line, sizeof line, "spawn 1 A %c %g; call 1 %c b %g %c; ret %c b %g", 'A' + i,
                     t, 'A' + i, t + 0.25, 'A' + i, 'A' + i, t + 0.5);
            script_run(s, line);
        }
    }
    script_run(s, "ret A a 100; end 1 A 101; now 9000");
    s->told[s->len] = 0;
    unsigned below = 0, waits = 0;
    for (const char *at = s->told; (at = strstr(at, ", >")); at++) {
        below++;
    }
    for (const char *at = s->told; (at = strstr(at, " wait 0.25")); at++) {
        waits++;
    }
    assert_int_equal(below, 39); // 40 spans are told, the first is a
    assert_int_equal(waits, 20); // of the second ones none: their processes were there already
    script_expect_joins(s, 0, 0, 0);
    s->len = 0;
    script_free(s);
}

// -- returns without values -----------------------------------------------------------------------

static void return_to(void **state) {
    (void)state;
    // in the body, then a tail call: one return_to ends both
    check(
        "begin 1 A 0; none 1 A a x 1; none 1 A b a 2; to A a 3; to A x 4; none 1 A a x 5; none 1 A b x 6; to A x 7; end 1 A 8",
        "complete 0..8 self 3: Aa 1..4 self 2 unknown, >Ab 2..3 self 1 unknown, Aa 5..7 self 1 unknown, >Ab 6..7 self 1 unknown;",
        0, 0, 0);
    // recursion in the body; a tail-recursive loop
    check(
        "begin 1 A 0; none 1 A a x 1; none 1 A a a 2; none 1 A a a 3; to A a 4; to A a 5; to A x 6; end 1 A 7",
        "complete 0..7 self 2: Aa 1..6 self 2 unknown, >Aa 2..5 self 2 inner unknown, >>Aa 3..4 self 1 inner unknown;",
        0, 0, 0);
    check(
        "begin 1 A 0; none 1 A a x 1; none 1 A a x 2; none 1 A a x 3; to A x 6; end 1 A 7",
        "complete 0..7 self 2: Aa 1..6 self 1 unknown, >Aa 2..6 self 1 inner unknown, >>Aa 3..6 self 3 inner unknown;",
        0, 0, 0);
    // mutual recursion
    check(
        "begin 1 A 0; none 1 A a x 1; none 1 A b a 2; none 1 A a b 3; none 1 A b a 4; to A a 5; to A b 6; to A a 7; to A x 8; end 1 A 9",
        "complete 0..9 self 2: Aa 1..8 self 2 unknown, >Ab 2..7 self 2 unknown, >>Aa 3..6 self 2 inner unknown, "
        ">>>Ab 4..5 self 1 inner unknown;",
        0, 0, 0);
    // nothing open: what was called without the token, or never seen
    check("begin 1 A 0; to B x 1; end 1 A 2", "complete 0..2 self 2;", 0, 0, 0);
}

// Tiers of both kinds in one process: those with values send a return_to besides.
static void both_kinds(void **state) {
    (void)state;
    check("begin 1 A 0; call 1 A w 1; ret A w 2; to A x 2; end 1 A 3",
          "complete 0..3 self 2: Aw 1..2 self 1;", 0, 0, 0);
    // w in the body of a; a in the body of w
    check("begin 1 A 0; none 1 A a x 1; call 1 A w 2; ret A w 3; to A a 3; to A x 4; end 1 A 5",
          "complete 0..5 self 2: Aa 1..4 self 2 unknown, >Aw 2..3 self 1;", 0, 0, 0);
    check("begin 1 A 0; call 1 A w 1; none 1 A a w 2; to A w 3; ret A w 4; to A x 4; end 1 A 5",
          "complete 0..5 self 2: Aw 1..4 self 2, >Aa 2..3 self 1 unknown;", 0, 0, 0);
    // tail calls: of a by w, of w by a
    check("begin 1 A 0; call 1 A w 1; none 1 A a x 2; ret A w 4; to A x 4; end 1 A 5",
          "complete 0..5 self 2: Aw 1..4 self 1, >Aa 2..4 self 2 unknown;", 0, 0, 0);
    check("begin 1 A 0; none 1 A a x 1; call 1 A w 2; ret A w 4; to A x 4; end 1 A 5",
          "complete 0..5 self 2: Aa 1..4 self 1 unknown, >Aw 2..4 self 2;", 0, 0, 0);
    // a's caller calls w below a too: its return_to is taken for a's, which the next one shows to
    // be wrong
    check("begin 1 A 0; none 1 A a x 1; call 1 A w 2; ret A w 3; to A x 3; to A x 4; end 1 A 5",
          "incomplete 0..5;", 0, 1, 0);
    // recursion of a tier with values below one without
    check(
        "begin 1 A 0; none 1 A a x 1; none 1 A a a 2; call 1 A w 3; ret A w 4; to A a 4; to A a 5; to A x 6; end 1 A 7",
        "complete 0..7 self 2: Aa 1..6 self 2 unknown, >Aa 2..5 self 2 inner unknown, >>Aw 3..4 self 1;",
        0, 0, 0);
}

static void exceptions_without_values(void **state) {
    (void)state;
    // out of c, through b, caught in b's caller, which may return all the same
    check(
        "begin 1 A 0; none 1 A a x 1; none 1 A b a 2; none 1 A c b 3; to A a 4; to A x 5; end 1 A 6",
        "complete 0..6 self 2: Aa 1..5 self 2 unknown, >Ab 2..4 self 1 error, >>Ac 3..4 self 1 error;",
        0, 0, 0);
    // a was called by a tail call of d, or by its caller's own recursion
    check(
        "begin 1 A 0; none 1 A d x 1; none 1 A a x 1; none 1 A b a 2; to A x 3; end 1 A 4",
        "complete 0..4 self 2: Ad 1..3 self 0 unknown, >Aa 1..3 self 1 error, >>Ab 2..3 self 1 error;",
        0, 0, 0);
    // b being called by a function of a's: when it was left, and by what, is not known
    check("begin 1 A 0; none 1 A a x 1; none 1 A b y 2; to A a 3; to A x 4; end 1 A 5",
          "incomplete 0..5;", 0, 1, 0);
    check("begin 1 A 0; none 1 A a x 1; none 1 A b y 2; to A x 4; end 1 A 5", "incomplete 0..5;", 0,
          1, 0);
    // caught somewhere above w, which has not raised
    check("begin 1 A 0; call 1 A w 1; none 1 A b y 2; to A z 3; ret A w 4; to A x 4; end 1 A 5",
          "incomplete 0..5;", 0, 1, 0);
    // in silence, in a server: the call is still open in the end; the server's next request is as
    // if nothing had been
    check(
        "begin 1 A 0; none 1 S b y 2 A; end 1 A 5; begin 2 A 2000; none 2 S c x 2002 A; to S x 2003; end 2 A 2004",
        "incomplete 0..5;complete 2000..2004 self 1: Sc 2002..2003 self 1 unknown wait 2;", 0, 1,
        0);
    // of two nobody can tell which were left
    check("begin 1 A 0; none 1 A a x 1; none 1 A b y 2; to A z 3; to A x 4; end 1 A 5",
          "incomplete 0..5;", 0, 2, 0);
    // through w, caught by the caller of a, by a, and by a function of a's: had it passed a, that
    // one would have called a
    check("begin 1 A 0; none 1 A a x 1; call 1 A w 2; exc A w 3; to A x 3; end 1 A 5",
          "complete 0..5 self 3: Aa 1..3 self 1 unknown, >Aw 2..3 self 1 error;", 0, 0, 0);
    check("begin 1 A 0; none 1 A a x 1; call 1 A w 2; exc A w 3; to A a 3; to A x 4; end 1 A 5",
          "complete 0..5 self 2: Aa 1..4 self 2 unknown, >Aw 2..3 self 1 error;", 0, 0, 0);
    check("begin 1 A 0; none 1 A a x 1; call 1 A w 2; exc A w 3; to A z 3; to A x 4; end 1 A 5",
          "complete 0..5 self 2: Aa 1..4 self 2 unknown, >Aw 2..3 self 1 error;", 0, 0, 0);
    // out of b through w
    check("begin 1 A 0; call 1 A w 1; none 1 A b w 2; exc A w 3; to A x 3; end 1 A 5",
          "complete 0..5 self 3: Aw 1..3 self 1 error, >Ab 2..3 self 1 error;", 0, 0, 0);
    // a recursion that may have ended by itself or by an exception
    check(
        "begin 1 A 0; none 1 A a x 1; none 1 A a a 2; none 1 A a a 3; to A a 4; to A x 5; end 1 A 6",
        "incomplete 0..6;", 0, 1, 0);
}

// Exceptions of calls with values, in every way that they can be met with.
static void exceptions(void **state) {
    (void)state;
    // out of c, caught by b, by a, by nobody (the request's end tells of that)
    check(
        "begin 1 A 0; call 1 A a 1; call 1 A b 2; call 1 A c 3; exc A c 4; ret A b 5; ret A a 6; end 1 A 7",
        "complete 0..7 self 2: Aa 1..6 self 2, >Ab 2..5 self 2, >>Ac 3..4 self 1 error;", 0, 0, 0);
    check(
        "begin 1 A 0; call 1 A a 1; call 1 A b 2; call 1 A c 3; exc A c 4; exc A b 4; ret A a 6; end 1 A 7",
        "complete 0..7 self 2: Aa 1..6 self 3, >Ab 2..4 self 1 error, >>Ac 3..4 self 1 error;", 0,
        0, 0);
    check(
        "begin 1 A 0; call 1 A a 1; call 1 A b 2; call 1 A c 3; exc A c 4; exc A b 4; exc A a 4; end 1 A 7 error",
        "complete 0..7 error self 4: Aa 1..4 self 1 error, >Ab 2..4 self 1 error, >>Ac 3..4 self 1 error;",
        0, 0, 0);
    // caught and raised again a while later; in a server whose client then exits
    check("begin 1 A 0; call 1 A a 1; call 1 A b 2; exc A b 3; exc A a 5; end 1 A 7 error",
          "complete 0..7 error self 3: Aa 1..5 self 3 error, >Ab 2..3 self 1 error;", 0, 0, 0);
    check("begin 1 A 0; call 1 A a 1; call 1 S s 2 A; exc S s 3; exc A a 4; end 1 A 5 error",
          "complete 0..5 error self 2: Aa 1..4 self 1 error, >Ss 2..3 self 1 error wait 1;", 0, 0,
          0);
}

// One process that serves a connection, and a pool of workers that are given messages.
static void keep_alive_and_pools(void **state) {
    (void)state;
    script_check(
        "begin 1 A 0; call 1 A a 1; call 1 W w 2 A; call 1 V w 3 A; ret W w 5; ret V w 6; ret A a 7; end 1 A 8; begin 2 A 9; "
        "call 2 A a 10;"
        "call 2 V w 11 A; call 2 W w 11.5 A; ret V w 12; ret W w 14; ret A a 15; end 2 A 16",
        "complete 0..8 self 2: Aa 1..7 self 1, >Ww 2..5 self 3 wait 1, >Vw 3..6 self 3 wait 2;"
        "complete 9..16 self 2: Aa 10..15 self 1, >Vw 11..12 self 1 wait 1, >Ww 11.5..14 self 2.5 wait 1.5;");
}

// What is left in silence in a server is found out by what comes next.
static void left_in_silence(void **state) {
    (void)state;
    struct script *s;
    // another request's call above it; a return_to of the same caller that is another request's
    check(
        "begin 1 A 0; none 1 S b y 2 A; end 1 A 5; begin 2 A 100; none 2 S c x 102 A; to S x 103; end 2 A 104",
        "incomplete 0..5;complete 100..104 self 1: Sc 102..103 self 1 unknown wait 2;", 0, 1, 0);
    check(
        "begin 1 A 0; none 1 S b y 2 A; end 1 A 5; begin 2 A 100; call 2 S w 102 A; ret S w 103; to S y 103; end 2 A 104",
        "incomplete 0..103;complete 100..104 self 1: Sw 102..103 self 1 wait 2;", 0, 2, 0);
    // a return_to cannot have passed the open call of a tier with values, whatever lies below it
    check(
        "begin 1 A 0; none 1 S b y 2 A; end 1 A 5; begin 2 A 100; call 2 S w 102 A; call 2 S v 103 A; exc S v 104; to S y 104; "
        "ret S w 105; end 2 A 106",
        "incomplete 0..5;complete 100..106 self 1: Sw 102..105 self 2 wait 2, >Sv 103..104 self 1 error;",
        0, 1, 0);
    // nor does a call of the request before explain what shows a guess to be wrong: m goes on
    // behind w, and behind v
    check(
        "begin 1 A 0; none 1 A a x 1; end 1 A 2; begin 2 A 3; none 2 A m x 4; call 2 A w 5; ret A w 6; to A x 6; to A x 7; end 2 A 8",
        "incomplete 0..6;incomplete 3..8;", 0, 3, 0);
    check(
        "begin 1 A 0; none 1 A a x 1; none 1 A b y 2; end 1 A 3; begin 2 A 4; none 2 A m x 5; call 2 A w 6; ret A w 7; to A x 7; "
        "to A x 8; end 2 A 9",
        "incomplete 0..8;incomplete 4..9;", 0, 3, 0);
    // a call under a token that is over
    s = script_new(true, 0);
    script_run(
        s,
        "begin 1 X 0; end 1 X 1; now 2000; begin 2 A 2001; none 2 S b y 2002 A; none 1 S c y 2003 X; to S y 2004; "
        "end 2 A 2005; now 9000");
    script_expect(s, "complete 0..1 self 1;incomplete 2001..2005;");
    script_free(s);
    // the death of a process that has gone on to another request is none of that one's
    check("begin 1 A 0; none 1 A b y 2; end 1 A 5; begin 2 A 100; die A 104",
          "incomplete 0..104;expired 100..100;", 0, 1, 0);
    // a spawn of a request that is closed has its own return_to
    s = script_new(true, 0);
    script_run(
        s,
        "begin 1 S 0; end 1 S 1; now 2000; begin 2 A 2001; none 2 S b y 2002 A; spawn 1 S X 2003; to S z 2003; raise 1 S 2004; "
        "to S z 2004; to S y 2005; end 2 A 2006; now 9000");
    script_expect(
        s, "complete 0..1 self 1;complete 2001..2006 self 1: Sb 2002..2005 self 3 unknown wait 1;");
    script_free(s);
}

// An untraced function calls a tier and is called in it again: what it calls there seems to be
// called by tail calls, until the tier returns.
static void recursion_of_an_untraced_function(void **state) {
    (void)state;
    check(
        "begin 1 A 0; none 1 A b x 1; none 1 A c x 2; to A x 3; none 1 A c x 4; to A x 5; to A x 6; end 1 A 7",
        "incomplete 0..7;", 0, 1, 0);
    check(
        "begin 1 A 0; none 1 A b x 1; call 1 A w 2; ret A w 3; to A x 3; call 1 A w 4; ret A w 5; to A x 5; to A x 6; end 1 A 7",
        "incomplete 0..7;", 0, 1, 0);
}

// -- deaths ---------------------------------------------------------------------------------------

static void deaths(void **state) {
    (void)state;
    // a worker is killed: the VM ends its calls by an exception
    check("begin 1 A 0; call 1 A a 1; call 1 S s 2 A; exc S s 3; die S 3; ret A a 4; end 1 A 5",
          "complete 0..5 self 2: Aa 1..4 self 1, >Ss 2..3 self 1 error wait 1;", 0, 0, 0);
    // the request's own process
    check("begin 1 A 0; call 1 A a 1; call 1 A b 2; exc A b 3; exc A a 3; die A 4",
          "complete 0..4 error self 2: Aa 1..3 self 1 error, >Ab 2..3 self 1 error;", 0, 0, 0);
    // an exception, then something else: the process did not die of it, and its request goes on
    // elsewhere or expires
    check("begin 1 A 0; call 1 A a 1; exc A a 2; call 1 A b 3; ret A b 4; die A 5", "expired 0..4;",
          0, 0, 0);
    check("begin 1 A 0; die A 5; call 1 B b 6 A; ret B b 7; end 1 B 8",
          "complete 0..8 self 1: Bb 6..7 self 1 wait 6;", 0, 0, 0);
    // an end marker of another process tells that it did not die of it
    check("begin 1 A 0; call 1 A a 1; exc A a 2; die A 3; call 1 B b 4 A; ret B b 5; end 1 B 6",
          "complete 0..6 self 2: Aa 1..2 self 1 error, Bb 4..5 self 1 wait 2;", 0, 0, 0);
    // of a request that ends where it begins the death is the end, unless an end marker comes
    // before it, or within a second
    check("web 1 A 0; call 1 A a 1; ret A a 2; die A 4; now 1500",
          "complete 0..4 error self 3: Aa 1..2 self 1;", 0, 0, 0);
    check("web 1 A 0; end 1 A 3; die A 4; now 1500", "complete 0..3 self 3;", 0, 0, 0);
    check("web 1 A 0; die A 4; end 1 B 5; now 1500", "complete 0..5 self 5;", 0, 0, 0);
    // all of a connection's end with it, also those without a call, and none that has ended
    // elsewhere or is another's
    check(
        "web 1 A 0; web 2 A 1; web 3 A 2; web 4 B 2; web 5 A 2; end 2 A 3; end 5 B 3; die A 4; end 4 B 6; now 1500",
        "complete 1..3 self 2;complete 2..3 self 1;complete 0..4 error self 4;complete 2..4 error self 2;complete 2..6 self 4;",
        0, 0, 0);
    // the next request of the same process is another one
    check("begin 1 A 0; call 1 A a 1; exc A a 2; end 1 A 3 error; begin 2 A 4; end 2 A 5; die A 6",
          "complete 0..3 error self 2: Aa 1..2 self 1 error;complete 4..5 self 1;", 0, 0, 0);
    // what has no return value and is open at the death was left by it, or in silence before
    check("begin 1 A 0; spawn 1 A B 1; none 1 B b ? 2 B; die B 4; end 1 A 5", "incomplete 0..5;", 0,
          1, 0);
    check("begin 1 A 0; none 1 A a x 1; none 1 A b a 2; die A 3; now 1500",
          "incomplete 0..3 error;", 0, 1, 0);
    // not in silence where the function that called it goes on, which would have told of catching
    // anything
    check(
        "begin 1 A 0; call 1 A w 1; none 1 A a w 2; none 1 A b a 3; die A 5; now 1500",
        "complete 0..5 error self 1: Aw 1..5 self 1 error, >Aa 2..5 self 1 error, >>Ab 3..5 self 2 error;",
        0, 0, 0);
    // from OTP 27 on the VM kills in silence: what has a return value and is open then was left by
    // it
    check("begin 1 A 0; call 1 A a 1; call 1 S s 2 A; die S 3; ret A a 4; end 1 A 5",
          "complete 0..5 self 2: Aa 1..4 self 1, >Ss 2..3 self 1 error wait 1;", 0, 0, 0);
    check("begin 1 A 0; call 1 A a 1; call 1 A b 2; die A 4; now 1500",
          "complete 0..4 error self 1: Aa 1..4 self 1 error, >Ab 2..4 self 2 error;", 0, 0, 0);
    check("begin 1 A 0; call 1 A a 1; raise 1 A 2; die A 4; now 1500",
          "complete 0..4 error self 1: Aa 1..4 self 3 error;", 0, 0, 0);
    // what has none below it may have been left in silence before that was called
    check("begin 1 A 0; none 1 A a x 1; call 1 A b 2; die A 4; now 1500", "incomplete 0..4 error;",
          0, 1, 0);
    check("begin 1 A 0; call 1 A a 1; none 1 A b y 2; die A 4; now 1500", "incomplete 0..4 error;",
          0, 1, 0);
    // a return was lost: the death does not make up for it
    check("begin 1 A 0; call 1 B b 2 A; lost; die B 4; end 1 A 5", "incomplete 0..5;", 1, 0, 0);
    // a process of the same number begins anew
    check(
        "begin 1 A 0; call 1 B b 1 A; lost; die B 2; end 1 A 3; begin 2 A 4; call 2 B b 5 A; ret B b 6; end 2 A 7",
        "incomplete 0..3;complete 4..7 self 1: Bb 5..6 self 1 wait 1;", 1, 0, 0);
}

// -- pauses ---------------------------------------------------------------------------------------

static void pauses(void **state) {
    (void)state;
    // each counts where it was innermost; outside of calls, and of other processes, nowhere
    script_check(
        "gc A -2 -1; begin 1 A 0; gc A 0.1 0.2; call 1 A a 1; gc A 1.1 1.6; call 1 A b 2; gc A 2.25 2.5; off A 3 4; gc A 4 4.5; "
        "ret A b 5; off A 5 5.5;"
        "gc B 5 6; ret A a 6; off A 6 7; end 1 A 8",
        "complete 0..8 self 3: Aa 1..6 self 2 gc 0.5 off 0.5, >Ab 2..5 self 3 gc 0.75 off 1;");
    // the numbers beside are what they were; a span that is still open has some too
    script_check("begin 1 A 0; call 1 B b 1 A; off B 2 3; end 1 A 8; now 1009; ret B b 2000",
                 "complete 0..8 self 8: Bb 1.. async open wait 1;");
    // half a pause, one that began before the call, one in a spawn
    struct script *s = script_new(true, 0);
    script_run(s, "begin 1 A 0; call 1 A a 1; ret A a 1.5");
    tracker_pause(s->tracker, 1, PAUSE_GC, false, 2 * SCRIPT_MS);
    tracker_pause(s->tracker, 1, PAUSE_OFF_CPU, true, 2 * SCRIPT_MS);
    script_run(s, "call 1 A a 3");
    tracker_pause(s->tracker, 1, PAUSE_OFF_CPU, false, 4 * SCRIPT_MS);
    script_run(s, "raise 1 A 4; off A 5 6; ret A a 8; end 1 A 9; now 9000");
    script_expect(s, "complete 0..9 self 3.5: Aa 1..1.5 self 0.5, Aa 3..8 self 5 off 1;");
    script_free(s);
}

// -- what hurts -----------------------------------------------------------------------------------

static void reloads(void **state) {
    (void)state;
    // whatever was open at any time of it, also what ends or is seen later
    check(
        "begin 1 A 0; end 1 A 9; begin 2 B 1; begin 3 C 20; gap 10 15; end 2 B 12; end 3 C 21; begin 4 D 14; end 4 D 30; begin 5 E 5; "
        "end 5 E 10",
        "complete 0..9 self 9;incomplete 1..12;complete 20..21 self 1;incomplete 14..30;incomplete 5..10;",
        0, 0, 0);
    // several
    struct script *s = script_new(true, 0);
    script_run(s, "begin 1 A 5; end 1 A 6; begin 2 B 95; end 2 B 96; begin 3 C 97; end 3 C 98");
    for (int i = 1; i < 10; i++) {
        char line[32];
        snprintf(line, sizeof line, "gap %d %d.5", 10 * i, 10 * i + (i == 9) * 5);
        script_run(s, line);
    }
    script_run(s, "now 9000");
    script_expect(s, "complete 5..6 self 1;incomplete 95..96;complete 97..98 self 1;");
    script_free(s);
}

// Of end markers that overtook each other the earliest counts.
static void several_ends(void **state) {
    (void)state;
    script_check("begin 1 A 0; call 1 A a 1; ret A a 3; end 1 A 5 error; end 1 B 4; end 1 C 6",
                 "complete 0..4 self 2: Aa 1..3 self 2;");
}

static void lost_tokens(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    script_run(s, "begin 1 A 0; end 1 A 5 astray; begin 2 A 6; end 2 A 7; now 9000");
    script_expect(s, "incomplete 0..5;complete 6..7 self 1;");
    script_expect_joins(s, 0, 0, 1);
    script_run(
        s,
        "begin 3 A 10000; end 3 B 10001; end 3 A 10002 astray; now 19000"); // of whom another one
                                                                            // has ended the request
    script_expect(s, "incomplete 10000..10002;");
    script_expect_joins(s, 0, 0, 2);
    script_free(s);
}

// A message of another process may be some ms older than what came before it: a loss hurts also
// what begins after it in the stream.
static void overtaken_losses(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    script_run(s, "begin 1 A 0; end 1 A 1; lost");
    tracker_lost_until(s->tracker, 10 * SCRIPT_MS);
    script_run(s, "begin 2 B 9; end 2 B 20; begin 3 C 11; end 3 C 21; now 9000");
    script_expect(s, "incomplete 0..1;incomplete 9..20;complete 11..21 self 10;");
    script_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spawned),
        cmocka_unit_test(before_the_first_marker),
        cmocka_unit_test(waiting),
        cmocka_unit_test(casts),
        cmocka_unit_test(answers),
        cmocka_unit_test(many_processes),
        cmocka_unit_test(return_to),
        cmocka_unit_test(both_kinds),
        cmocka_unit_test(exceptions_without_values),
        cmocka_unit_test(left_in_silence),
        cmocka_unit_test(recursion_of_an_untraced_function),
        cmocka_unit_test(exceptions),
        cmocka_unit_test(keep_alive_and_pools),
        cmocka_unit_test(deaths),
        cmocka_unit_test(pauses),
        cmocka_unit_test(reloads),
        cmocka_unit_test(several_ends),
        cmocka_unit_test(lost_tokens),
        cmocka_unit_test(overtaken_losses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
