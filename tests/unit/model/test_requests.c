// SPDX-License-Identifier: Apache-2.0
#include "base/limits.h"
#include "request_script.h"

// -- spans ----------------------------------------------------------------------------------------

static void plain(void **state) {
    (void)state;
    script_check("begin 1 A 0; end 1 A 30", "complete 0..30 self 30;");
    script_check("begin 1 A 0; call 1 A a 10; ret A a 20; end 1 A 30",
                 "complete 0..30 self 20: Aa 10..20 self 10;");
    // nested, siblings, the same tier several times
    script_check(
        "begin 1 A 0; call 1 A a 10; call 1 A b 12; ret A b 15; call 1 A b 16; ret A b 18; ret A a 20;"
        "call 1 A b 22; ret A b 23; end 1 A 30",
        "complete 0..30 self 19: Aa 10..20 self 5, >Ab 12..15 self 3, >Ab 16..18 self 2, Ab 22..23 self 1;");
    // the outcome
    script_check("begin 1 A 0; call 1 A a 1; exc A a 2; end 1 A 3 error",
                 "complete 0..3 error self 2: Aa 1..2 self 1 error;");
    script_check("begin 1 A 0; call 1 A a 1; call 1 A b 2; exc A b 3; ret A a 4; end 1 A 5",
                 "complete 0..5 self 2: Aa 1..4 self 2, >Ab 2..3 self 1 error;");
    // no time at all
    script_check("begin 1 A 5; call 1 A a 5; ret A a 5; end 1 A 5",
                 "complete 5..5 self 0: Aa 5..5 self 0;");
}

// All calls are spans; only the outermost counts as the tier's inclusive time.
static void recursion(void **state) {
    (void)state;
    script_check(
        "begin 1 A 0; call 1 A a 1; call 1 A a 2; call 1 A a 3; ret A a 4; ret A a 6; ret A a 9; end 1 A 10",
        "complete 0..10 self 2: Aa 1..9 self 4, >Aa 2..6 self 3 inner, >>Aa 3..4 self 1 inner;");
    script_check(
        "begin 1 A 0; call 1 A a 1; call 1 A b 2; call 1 A a 3; call 1 A b 4; ret A b 5; ret A a 6; ret A b 7;"
        "ret A a 8; end 1 A 9",
        "complete 0..9 self 2: Aa 1..8 self 2, >Ab 2..7 self 2, >>Aa 3..6 self 2 inner, >>>Ab 4..5 self 1 inner;");
    // through another process
    script_check("begin 1 A 0; call 1 A a 1; call 1 B a 2 A; ret B a 5; ret A a 8; end 1 A 9",
                 "complete 0..9 self 2: Aa 1..8 self 3, >Ba 2..5 self 3 inner wait 1;");
}

static void across_processes(void **state) {
    (void)state;
    // gen_server:call through three processes: the token's From tells the parent
    script_check(
        "begin 1 A 0; call 1 A a 1; call 1 B b 3 A; call 1 C c 5 B; ret C c 8; ret B b 10; ret A a 12; end 1 A 13",
        "complete 0..13 self 2: Aa 1..12 self 2, >Bb 3..10 self 2 wait 2, >>Cc 5..8 self 3 wait 2;");
    // without a tier in the middle process the chain is broken: the span hangs below the request
    script_check("begin 1 A 0; call 1 A a 1; call 1 C c 5 B; ret C c 8; ret A a 12; end 1 A 13",
                 "complete 0..13 self 2: Aa 1..12 self 11, Cc 5..8 self 3;");
    // parallel children: self time is the duration less their union
    script_check(
        "begin 1 A 0; call 1 A a 0; call 1 B b 10 A; call 1 C b 20 A; call 1 D b 50 A; ret B b 30; ret C b 40;"
        "ret D b 60; ret A a 100; end 1 A 100",
        "complete 0..100 self 0: Aa 0..100 self 40, >Bb 10..30 self 20 wait 10, >Cb 20..40 self 20 wait 20, >Db 50..60 self 10 "
        "wait 10;");
    // a child process that outlives the parent span, within the request
    script_check("begin 1 A 0; call 1 A a 10; call 1 B b 15 A; ret A a 20; ret B b 40; end 1 A 50",
                 "complete 0..50 self 20: Aa 10..20 self 0, >Bb 15..40 self 25 wait 5;");
    // begun in one process, ended in another
    script_check("begin 1 A 0; call 1 A a 1; ret A a 2; call 1 B b 5 A; ret B b 6; end 1 B 7",
                 "complete 0..7 self 2: Aa 1..2 self 1, Bb 5..6 self 1 wait 3;");
}

// What a span's parent covers is over when it has ended: a call that only came after it is no
// recursion, and takes its time from the request's own. An answer brings back the token, but is no
// new work.
static void after_the_parent(void **state) {
    (void)state;
    // a direct call, then a server that does the same
    script_check("begin 1 A 0; call 1 A a 10; ret A a 20; call 1 B a 30 A; ret B a 40; end 1 A 50",
                 "complete 0..50 self 20: Aa 10..20 self 10, Ba 30..40 self 10 wait 10;");
    // the answer brought the token back from the server
    script_check(
        "begin 1 A 0; call 1 B a 10 A; ret B a 20; call 1 A a 30 B; ret A a 40; end 1 A 50",
        "complete 0..50 self 20: Ba 10..20 self 10 wait 10, Aa 30..40 self 10;");
    // begun before the end of the parent: that is recursion
    script_check("begin 1 A 0; call 1 A a 10; call 1 B a 19 A; ret A a 20; ret B a 40; end 1 A 50",
                 "complete 0..50 self 20: Aa 10..20 self 0, >Ba 19..40 self 21 inner wait 9;");
}

static void asynchronous(void **state) {
    (void)state;
    // a cast that outlives the request does not lengthen it
    script_check("begin 1 A 0; call 1 A a 1; ret A a 5; call 1 B b 8 A; end 1 A 10; ret B b 300",
                 "complete 0..10 self 6: Aa 1..5 self 4, >Bb 8..300 self 0 async wait 3;");
    // that begins after it
    script_check("begin 1 A 0; end 1 A 10; call 1 B b 20 A; ret B b 30",
                 "complete 0..10 self 10: Bb 20..30 self 0 async wait 20;");
    // that begins after it and may have ended in silence: its end is not known, the request's is
    script_check("begin 1 A 0; end 1 A 10; none 1 B b z 20 A",
                 "complete 0..10 self 10: Bb 20.. async open unknown wait 20;");
    // that outlives the grace time: the request goes without it, which is counted, and its return
    // is nobody's fault
    struct script *s = script_new(true, 0);
    script_run(s, "begin 1 A 0; call 1 B b 8 A; end 1 A 10; now 1009");
    script_expect(s, "");
    script_run(s, "now 1010");
    script_expect(s, "complete 0..10 self 10: Bb 8.. async open wait 8;");
    script_run(s, "ret B b 2000");
    script_expect_counts(s, 0, 1, 0);
    // and the record of the closed request is another's meanwhile, who is called in the middle of
    // it
    script_run(s, "begin 1 A 2000; call 1 T a 2001 A; end 1 A 2002; now 2950; now 3003");
    s->len = 0;
    script_run(
        s,
        "begin 7 A 3004; call 7 A c 3005; ret A c 3006; call 7 T b 3007; ret T b 3008; ret T a 3009; end 7 A 3010;"
        "now 5000");
    script_expect(s, "complete 3004..3010 self 4: Ac 3005..3006 self 1, Tb 3007..3008 self 1;");
    // a sync child of an async span
    script_run(
        s,
        "begin 2 A 6000; call 2 B b 6001 A; call 2 B c 6002; ret B c 6003; end 2 A 6004; ret B b 6005; now 9000");
    script_expect(
        s, "complete 6000..6004 self 3: Bb 6001..6005 self 0 async wait 1, >Bc 6002..6003 self 1;");
    script_free(s);
}

// -- what is missing ------------------------------------------------------------------------------

static void unwinding(void **state) {
    (void)state;
    // the return of b never came
    script_check("begin 1 A 0; call 1 A a 1; call 1 A b 2; ret A a 4; end 1 A 5",
                 "incomplete 0..5;");
    // nor did that of a, in the process that ended the request
    script_check("begin 1 A 0; call 1 A a 1; end 1 A 5", "incomplete 0..5;");
    // what ends a moment after the marker is async
    script_check("begin 1 A 0; call 1 A a 1; end 1 A 5; ret A a 6",
                 "complete 0..5 self 5: Aa 1..6 self 0 async;");
    // what the ending process begins later does not matter
    script_check("begin 1 A 0; end 1 A 5; call 1 A a 6",
                 "complete 0..5 self 5: Aa 6.. async open;");
    // the beginning process may go on with what it has open when another one ends the request
    script_check("begin 1 A 0; call 1 A a 1; end 1 B 5",
                 "complete 0..5 self 5: Aa 1.. async open;");
    script_check("call 1 A a 1; end 1 B 5; begin 1 A 0; now 5000",
                 "complete 0..5 self 5: Aa 1.. async open;");
    // only requests that had something unwound are hurt
    struct script *s = script_new(true, 0);
    script_run(
        s,
        "begin 1 A 0; begin 2 B 0; call 2 S a 1 B; call 1 S b 2 A; ret S a 3; end 1 A 4; end 2 B 4; now 9000");
    script_expect(s, "incomplete 0..4;complete 0..4 self 1: Sa 1..3 self 2 wait 1;");
    script_expect_counts(s, 0, 0, 0);
    script_free(s);
}

static void orphans(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    script_run(
        s,
        "ret A a 1; begin 1 A 2; call 1 A a 3; ret A b 4; ret B a 5; ret A a 6; ret A a 7; end 1 A 8; now 9000");
    script_expect(s, "complete 2..8 self 3: Aa 3..6 self 3;");
    script_expect_counts(s, 4, 0, 0);
    script_free(s);
}

// What had ended before a loss, by more than messages overtake each other, with nothing open, is
// not hurt; nor is what begins later.
static void losses_after_the_end(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    script_run(
        s,
        "begin 20 A 100; call 20 B b 101 A; ret B b 102; end 20 A 103; begin 21 A 104; call 21 B b 104.5 A; end 21 A 105;"
        "begin 22 A 106; end 22 A 106.5; lost 107.01; lost 107.02; begin 23 A 108; end 23 A 109; now 1500");
    script_expect(
        s,
        "complete 100..103 self 1: Bb 101..102 self 1 wait 1;incomplete 104..105;incomplete 106..106.5;"
        "complete 108..109 self 1;");
    // an asynchronous call makes it later
    script_run(
        s, "begin 24 A 2000; call 24 B b 2001 A; end 24 A 2002; ret B b 2010; lost 2013; now 4000");
    script_expect(s, "incomplete 2000..2010;");
    // as many losses as are not remembered one by one
    script_run(s, "begin 25 A 5000; end 25 A 5001");
    for (int i = 0; i < 2000; i++) {
        script_run(s, "lost 5100");
    }
    script_run(s, "now 7000");
    script_expect(s, "incomplete 5000..5001;");
    script_free(s);
}

static void losses(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    // all that are open are hurt, also those in their grace time; later ones are whole
    script_run(s, "begin 1 A 0; end 1 A 5; begin 2 B 1; call 2 B a 2; lost; ret B a 4; end 2 B 6;"
                  "begin 3 C 7; call 3 C a 8; ret C a 9; end 3 C 10; now 2000");
    script_expect(s, "incomplete 0..5;incomplete 1..6;complete 7..10 self 2: Ca 8..9 self 1;");
    // a begin that was lost: what is left of the request is no request
    script_run(s, "lost; call 4 A a 2001; ret A a 2002; end 4 A 2003; now 5000");
    script_expect(s, "incomplete 2001..2003;");
    script_run(s, "lost; end 5 A 6000; now 9000");
    script_expect(s, "incomplete 6000..6000;");
    // an end that was lost
    script_run(s, "begin 6 A 9000; lost; now 38999");
    script_expect(s, "");
    script_run(s, "now 39001");
    script_expect(s, "expired 9000..9000;");
    script_expect_counts(s, 0, 0, 0);
    // calls whose returns were lost leave the stack, so that a server's next requests are as before
    script_run(
        s, "begin 7 A 40000; call 7 S a 40001 A; lost; end 7 A 40003; now 42000; begin 8 A 42001;"
           "call 8 S a 42002 A; ret S a 42003; end 8 A 42004; ret S a 42005; now 44000");
    script_expect(
        s, "incomplete 40000..40003;complete 42001..42004 self 1: Sa 42002..42003 self 1 wait 1;");
    script_expect_counts(s, 1, 0, 0);
    script_free(s);
}

static void without_a_begin(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    // calls under somebody's token are no request: they are given up after the grace time, and
    // another at most
    script_run(s, "call 1 A a 0; ret A a 1; call 1 A b 2; ret A b 3; now 1003");
    assert_int_equal(request_pool_open(s->pool), 1);
    script_run(s, "now 2003");
    assert_int_equal(request_pool_open(s->pool), 0);
    script_expect(s, "");
    script_expect_counts(s, 0, 2, 0);
    // with an end they were one, but not a whole one
    script_run(s, "call 2 A a 2000; ret A a 2001; end 2 A 2102; now 4000");
    script_expect(s, "incomplete 2000..2102;");
    script_free(s);
}

// Each incomplete request has one reason, the first that applies.
static void reasons(void **state) {
    (void)state;
    static const struct {
        const char *commands;
        enum incomplete_reason reason;
    } cases[] = {
        {"begin 1 A 0; lost; end 1 A 5", REASON_LOSS},
        {"begin 1 A 0; call 1 A a 1; end 1 A 5; lost", REASON_LOSS},
        {"begin 1 A 0; call 1 A a 1; end 1 A 5", REASON_RETURN},
        {"begin 1 A 0; call 1 A a 1; call 1 A b 2; ret A a 3; end 1 A 5", REASON_RETURN},
        {"begin 1 A 0; gap 3 4; end 1 A 5", REASON_GAP},
        {"begin 1 A 0; gap 3 4; lost; end 1 A 5", REASON_LOSS},
        {"begin 1 A 0; call 1 A a 1", REASON_END},
        {"call 1 A a 1; ret A a 2; end 1 A 3", REASON_END},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct script *s = script_new(true, 0);
        script_run(s, cases[i].commands);
        script_run(s, cases[i].reason == REASON_END ? "reset" : "now 9000");
        if (s->finished[REQUEST_INCOMPLETE] != 1 || s->reasons[cases[i].reason] != 1) {
            fail_msg("%s: told %s, and not reason %d", cases[i].commands, s->told, cases[i].reason);
        }
        script_free(s);
    }
}

// Where calls whose request is over are from.
static void stale_tiers(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    script_run(
        s,
        "begin 1 A 0; end 1 A 1; now 2000; call 1 T a 2000; call 1 T b 2001; ret T b 2002; ret T a 2003; now 4000;"
        "call 2 A b 4000; ret A b 4001; now 9000");
    assert_string_equal(s->stale, "abb");
    script_expect_counts(s, 0, 3, 0);
    script_free(s);
}

// A stranger's call behind the end, or one that is still open when the request closes, is stale as
// well as told, but not twice when it is both.
static void stale_once(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    script_run(s, "begin 1 A 0; end 1 A 10; call 1 C a 11 X; ret C a 12; call 1 D b 13 X;"
                  "call 1 E c 14 A; now 9000");
    script_expect(s, "complete 0..10 self 10: Ca 11..12 self 0 async, Db 13.. async open, "
                     "Ec 14.. async open wait 14;");
    assert_string_equal(s->stale, "abc");
    script_free(s);
}

static void expired(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    script_run(s, "begin 1 A 0; call 1 A a 1; ret A a 29000; begin 2 B 100; now 30000");
    script_expect(s, "");
    script_run(s, "now 30000.001");
    script_expect(s, "expired 0..29000;");
    script_run(s, "end 2 B 30099; now 31099");
    script_expect(s, "complete 100..30099 self 29999;");
    // what still comes under the expired one is stale, and its returns are no orphans; its end is
    // no call
    script_run(s, "call 1 A a 31100; ret A a 31101; end 1 A 31102; now 40000");
    script_expect(s, "");
    script_expect_counts(s, 0, 1, 0);
    script_free(s);
}

static void stale(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    script_run(
        s,
        "begin 1 A 0; end 1 A 1; now 2000; call 1 T a 2000; call 1 T b 2001; ret T b 2002; ret T a 2003; end 1 A 2004");
    script_expect(s, "complete 0..1 self 1;");
    script_expect_counts(s, 0, 2, 0);
    // a timer's stale call around a good request's in the same server
    script_run(
        s,
        "begin 2 A 3000; call 1 S a 3001; call 2 S b 3002 A; ret S b 3003; ret S a 3004; end 2 A 3005; now 5000");
    script_expect(s, "complete 3000..3005 self 2: Sb 3002..3003 self 1 wait 2;");
    script_expect_counts(s, 0, 3, 0);
    // a begin makes the token good again
    script_run(s, "begin 1 A 6000; call 1 A a 6001; ret A a 6002; end 1 A 6003; now 9000");
    script_expect(s, "complete 6000..6003 self 2: Aa 6001..6002 self 1;");
    script_expect_counts(s, 0, 3, 0);
    // also while the one before is in its grace time, or never ended
    script_run(
        s,
        "begin 1 A 10000; end 1 A 10001; begin 1 A 10002; call 1 A a 10003; ret A a 10004; begin 1 A 10005;"
        "end 1 A 10006; now 20000; now 50000");
    script_expect(
        s, "complete 10000..10001 self 1;complete 10005..10006 self 1;expired 10002..10004;");
    script_free(s);
}

// LIMIT_CLOSED_TOKENS tokens are remembered, exactly.
static void closed_tokens(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    struct tracker_call call = {.pid = 1, .from = 1};
    // so many that of each set of tokens all but the latest are pushed out
    enum { MANY = 4 * LIMIT_CLOSED_TOKENS };
    for (uint64_t i = 0; i < MANY; i++) {
        call.token = 1000 + i;
        call.time = (int64_t)i * 10000;
        tracker_begin(s->tracker, &call);
        script_end(s->tracker, call.token, 1, false, call.time + 1);
        tracker_advance(s->tracker, call.time);
        s->len = 0;
    }
    tracker_advance(s->tracker, call.time + 2 * GRACE_NS);
    s->len = 0;
    assert_int_equal(request_pool_open(s->pool), 0);
    // the latest are all remembered
    for (uint64_t i = MANY - LIMIT_CLOSED_TOKENS / 16; i < MANY; i++) {
        call.token = 1000 + i;
        assert_int_equal(tracker_call(s->tracker, &call).index, SPAN_NONE);
    }
    script_run(s, "");
    script_expect_counts(s, 0, LIMIT_CLOSED_TOKENS / 16, 0);
    script_run(s, "call 1000 A a 5000"); // forgotten: opens a request
    script_expect_counts(s, 0, LIMIT_CLOSED_TOKENS / 16, 0);
    assert_int_equal(request_pool_open(s->pool), 1);
    script_free(s);
}

// -- disorder -------------------------------------------------------------------------------------

static void interleaved(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    // one server, two requests one after the other
    script_run(
        s,
        "begin 1 A 0; begin 2 B 0; call 1 S a 1 A; ret S a 2; call 2 S a 3 B; ret S a 4; call 1 S a 5 A;"
        "ret S a 6; end 2 B 9; end 1 A 10; now 5000");
    script_expect(
        s,
        "complete 0..9 self 5: Sa 3..4 self 1 wait 3;complete 0..10 self 7: Sa 1..2 self 1 wait 1, Sa 5..6 self 1;");
    // one within the other: a selective receive inside a call. Neither is the other's child
    script_run(
        s,
        "begin 3 A 6000; begin 4 B 6000; call 3 S a 6001 A; call 4 S a 6002 B; ret S a 6003; ret S a 6008;"
        "end 3 A 6010; end 4 B 6010; now 9000");
    script_expect(
        s,
        "complete 6000..6010 self 2: Sa 6001..6008 self 7 wait 1;complete 6000..6010 self 7: Sa 6002..6003 self 1 wait 2;");
    // and back in the first's call below it
    script_run(
        s,
        "begin 5 A 10000; begin 6 B 10000; call 5 S a 10001 A; call 6 S b 10002 B; call 5 S c 10003 S;"
        "ret S c 10004; ret S b 10005; ret S a 10006; end 5 A 10007; end 6 B 10007; now 20000");
    script_expect_counts(s, 0, 0, 0);
    script_free(s);
}

// Across processes messages overtake each other by up to 4 ms.
static void overtaking(void **state) {
    (void)state;
    script_check("call 1 B a 2 A; ret B a 3; begin 1 A 0; end 1 A 5",
                 "complete 0..5 self 2: Ba 2..3 self 1 wait 2;");
    script_check("begin 1 A 0; end 1 A 5; call 1 B a 2 A; ret B a 3",
                 "complete 0..5 self 2: Ba 2..3 self 1 wait 2;");
    script_check("end 1 B 5; begin 1 A 0", "complete 0..5 self 5;");
    script_check(
        "call 1 C c 3 B; call 1 B b 2 A; ret B b 4; ret C c 6; call 1 A a 1; ret A a 7; begin 1 A 0; end 1 A 8",
        "complete 0..8 self 2: Aa 1..7 self 3, >Bb 2..4 self 0 wait 1, >>Cc 3..6 self 3 wait 1;");
    // an end before its begin is no request
    script_check("begin 1 A 5; end 1 A 4", "incomplete 4..5;");
    // a second end changes nothing
    script_check("begin 1 A 0; end 1 A 4; end 1 B 6 error", "complete 0..4 self 4;");
    // a clock that goes back within a process gives no negative time
    script_check("begin 1 A 0; call 1 A a 4; ret A a 3; end 1 A 9",
                 "complete 0..9 self 9: Aa 4..4 self 0;");
}

// Requests are told in the order in which they ended, after their grace time.
static void order_of_closing(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    script_run(
        s, "begin 1 A 0; begin 2 B 1; begin 3 C 2; end 3 C 10; end 1 A 11; end 2 B 12; now 1010");
    script_expect(s, "complete 2..10 self 8;");
    script_run(s, "now 1011.5");
    script_expect(s, "complete 0..11 self 11;");
    script_run(s, "now 500; now 1011.9"); // time never goes back
    script_expect(s, "");
    script_run(s, "now 1012");
    script_expect(s, "complete 1..12 self 11;");
    script_free(s);
}

// -- without markers ------------------------------------------------------------------------------

static void raw(void **state) {
    (void)state;
    struct script *s = script_new(false, 0);
    script_run(s, "call 1 A a 0; call 1 B b 2 A; ret B b 4; ret A a 10; now 1010");
    script_expect(s, "complete 0..10 self 0: Aa 0..10 self 6, >Bb 2..4 self 2 wait 2;");
    script_run(s, "call 2 A a 2000; exc A a 2010; now 9000");
    script_expect(s, "complete 2000..2010 error self 0: Aa 2000..2010 self 10 error;");
    // the root's return opens the grace time: async work
    script_run(s, "call 3 A a 10000; call 3 B b 10001 A; ret A a 10002; ret B b 10500; now 12000");
    script_expect(
        s,
        "complete 10000..10002 self 0: Aa 10000..10002 self 2, >Bb 10001..10500 self 0 async wait 1;");
    // recursion of the root
    script_run(s, "call 4 A a 20000; call 4 A a 20001; ret A a 20002; ret A a 20003; now 22000");
    script_expect(
        s, "complete 20000..20003 self 0: Aa 20000..20003 self 2, >Aa 20001..20002 self 1 inner;");
    // the root's call is overtaken by a child's
    script_run(s, "call 5 B b 30001 A; call 5 A a 30000; ret B b 30002; ret A a 30005; now 32000");
    script_expect(
        s, "complete 30000..30005 self 0: Aa 30000..30005 self 3, >Bb 30001..30002 self 1 wait 1;");
    // never returned
    script_run(s, "call 6 A a 40000; now 70001");
    script_expect(s, "expired 40000..40000;");
    // the token again, later: stale, since any call would open a request
    script_run(s, "call 1 C a 80000; ret C a 80001; now 90000");
    script_expect(s, "");
    script_expect_counts(s, 0, 1, 0);
    script_free(s);
}

static void entry(void **state) {
    (void)state;
    struct script *s = script_new(false, 'a');
    // one label, the process itself, again and again
    script_run(
        s,
        "call 1 A a 0; call 1 A b 1; ret A b 2; ret A a 3; call 1 A a 4; ret A a 5; now 2000; call 1 A a 3000;"
        "ret A a 3001; now 5000");
    script_expect(
        s,
        "complete 0..3 self 0: Aa 0..3 self 2, >Ab 1..2 self 1;complete 4..5 self 0: Aa 4..5 self 1;"
        "complete 3000..3001 self 0: Aa 3000..3001 self 1;");
    // recursion of the entry is no new request
    script_run(s, "call 2 A a 6000; call 2 A a 6001; ret A a 6002; ret A a 6003; now 8000");
    script_expect(s,
                  "complete 6000..6003 self 0: Aa 6000..6003 self 2, >Aa 6001..6002 self 1 inner;");
    // a token whose first call is another tier
    script_run(s, "call 3 A b 9000; call 3 A a 9001; ret A a 9002; ret A b 9003; now 11000");
    script_expect(s, "incomplete 9000..9003;");
    // and that never enters: given up after the grace time
    script_run(s, "call 4 A b 12000; ret A b 12001; now 13001");
    script_expect(s, "");
    script_run(s, "now 14001");
    script_expect(s, "incomplete 12000..12001;");
    script_expect_counts(s, 0, 0, 0);
    // stale: other tiers under the token between two entries
    script_run(
        s,
        "call 1 B b 20000; ret B b 20001; now 22000; call 1 A a 23000; ret A a 23001; now 25000");
    script_expect(s, "complete 23000..23001 self 0: Aa 23000..23001 self 1;");
    script_expect_counts(s, 0, 1, 0);
    // a lost return: once the request has expired, the token's next entry is good again
    script_run(s, "call 5 A a 30000; lost; now 61000; call 5 A a 61001; ret A a 61002; now 63000");
    script_expect(s, "expired 30000..30000;complete 61001..61002 self 0: Aa 61001..61002 self 1;");
    script_free(s);
}

// A stream is known to have markers by its first one; what looked like a root before it was none.
static void markers_are_noticed(void **state) {
    (void)state;
    struct script *s = script_new(false, 0);
    script_run(
        s,
        "call 1 B a 2 A; ret B a 3; begin 1 A 0; call 1 A a 10; ret A a 19; end 1 A 20; now 5000");
    script_expect(s, "complete 0..20 self 8: Ba 2..3 self 1 wait 2, Aa 10..19 self 9;");
    script_free(s);
    s = script_new(false, 0);
    script_run(s, "call 1 B a 2 A; ret B a 3; end 1 A 20; begin 1 A 0; now 5000");
    script_expect(s, "complete 0..20 self 17: Ba 2..3 self 1 wait 2;");
    // two requests, the second's begin first
    script_free(s);
    s = script_new(false, 0);
    script_run(
        s, "call 1 B a 2 A; ret B a 3; begin 2 C 0; begin 1 A 0; end 2 C 9; end 1 A 20; now 5000");
    script_expect(s, "complete 0..9 self 9;complete 0..20 self 17: Ba 2..3 self 1 wait 2;");
    // cut off at the start: its begin is not in the stream
    script_free(s);
    s = script_new(false, 0);
    script_run(
        s,
        "call 1 A a 2; ret A a 3; call 1 A a 4; ret A a 5; end 1 A 6; begin 2 A 7; end 2 A 8; now 5000");
    script_expect(s, "incomplete 2..6;complete 7..8 self 1;");
    script_free(s);
}

// -- identities -----------------------------------------------------------------------------------

static void names(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    script_run(s, "begin 1 A 0");
    struct request_ref ref = tracker_find(s->tracker, 1);
    assert_true(tracker_unnamed(s->tracker, ref));
    tracker_name(s->tracker, ref, 7);
    assert_false(tracker_unnamed(s->tracker, ref));
    tracker_name(s->tracker, ref, 8); // the first name stays
    int place = tracker_asked(s->tracker, ref);
    tracker_answered(s->tracker, ref, place, 9); // before any answer
    script_run(s, "end 1 A 1; now 2000");
    script_expect(s, "complete 0..1 as 7 self 1;");
    // refs to a closed request
    assert_false(tracker_unnamed(s->tracker, ref));
    tracker_name(s->tracker, ref, 10);
    assert_int_equal(tracker_asked(s->tracker, ref), -1);
    script_run(s, "begin 2 A 3000"); // takes the record
    assert_int_equal(tracker_find(s->tracker, 2).index, ref.index);
    assert_false(tracker_unnamed(s->tracker, ref));
    tracker_name(s->tracker, ref, 11);
    tracker_answered(s->tracker, ref, 0, 12);
    script_run(s, "end 2 A 3001; now 5000");
    script_expect(s, "complete 3000..3001 self 1;");
    assert_int_equal(tracker_find(s->tracker, 3).index, SPAN_NONE);
    assert_false(tracker_unnamed(s->tracker, tracker_find(s->tracker, 3)));
    script_free(s);
}

// What a begin calls a request is a text until nothing else has named it.
static void begun_names(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    script_run(s, "web 1 A 0 21; die A 1; web 2 B 0 22");
    struct request_ref ref = tracker_find(s->tracker, 2);
    assert_true(tracker_unnamed(s->tracker, ref));
    tracker_name_begun(s->tracker, ref, slice_text("23")); // the first one stays
    script_run(s, "now 2000");
    script_expect(s, "complete 0..1 as 21 error self 1;");
    assert_int_equal(s->named, 1);
    tracker_name_late(s->tracker, ref, 7);
    script_run(s, "end 2 B 2000; web 3 B 2001 24");
    assert_int_equal(tracker_asked(s->tracker, tracker_find(s->tracker, 3)), 0);
    tracker_answered(s->tracker, tracker_find(s->tracker, 3), 0, 8);
    script_run(s, "end 3 B 2002; now 4000; web 4 B 4000 25; now 40000");
    script_expect(
        s,
        "complete 0..2000 as 7 self 2000;complete 2001..2002 as 8 self 1;expired 4000..4000 as 25;");
    assert_int_equal(s->named, 2); // of what was called otherwise nobody has asked
    tracker_name_begun(s->tracker, ref, slice_text("26")); // a closed request
    script_free(s);
    // their memory is given back
    s = script_new(true, 0);
    for (uint32_t i = 1; i <= LIMIT_OPEN_REQUESTS + 1; i++) {
        struct tracker_call call = {.pid = 1, .token = i, .from = 1, .time = i * 10LL * SCRIPT_MS};
        tracker_name_begun(s->tracker, tracker_web_begin(s->tracker, &call), slice_text("27"));
        script_end(s->tracker, i, 1, false, call.time + SCRIPT_MS);
        tracker_advance(s->tracker, call.time);
    }
    script_run(s, "reset");
    assert_int_equal(s->named, LIMIT_OPEN_REQUESTS + 1);
    script_free(s);
}

// Which span outside has asked for a request: told behind its begin, or late, or by another
// process; the first word counts, and none for what is no request.
static void asked_for(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    script_run(s, "web 1 A 0; asked 1 A 0 171; asked 1 A 0 9; call 1 A a 1; ret A a 2;"
                  "call 1 B b 1 A; ret B b 3; end 1 A 4; now 1005");
    script_expect(s, "complete 0..4 self 2 asked by 171: Aa 1..2 self 0, >Bb 1..3 self 2;");
    script_run(s, "asked 1 A 1006 7; asked 2 A 1006 8; now 3000"); // over; none
    script_expect(s, "");
    script_run(s, "call 3 B a 4000 A; asked 3 B 4000 12; web 3 A 3999; ret B a 4001; end 3 A 4002;"
                  "asked 3 A 4003 13; web 4 A 4010; end 4 A 4011; asked 4 A 4012 255; now 6000");
    script_expect(s, "complete 3999..4002 self 1 asked by 12: Ba 4000..4001 self 1 wait 1;"
                     "complete 4010..4011 self 1 asked by 255;");
    // in an entry's call it is the entry's, whatever its own token
    script_run(
        s,
        "enter 5 A a 7000; web 6 A 7001; asked 6 A 7001 3; end 6 A 7002; ret A a 7003; now 9000");
    script_expect(s, "complete 7000..7003 self 0 asked by 3: Aa 7000..7003 self 3;");
    // a return_to of the marker itself ends no call
    script_run(s,
               "web 7 A 10000; none 7 A a x 10001; asked 7 A 10002 4; to A m 10002; to A x 10003;"
               "end 7 A 10004; now 12000");
    script_expect(s, "complete 10000..10004 self 2 asked by 4: Aa 10001..10003 self 2 unknown;");
    script_free(s);
}

// It takes the place of a span: past the cap of those the request is incomplete, not another one's.
static void asked_for_without_room(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    script_run(s, "web 1 A 0; web 2 B 0");
    for (uint32_t i = 0; i < 7 * LIMIT_SPAN_CHUNKS; i++) {
        struct tracker_call call = {
            .pid = 3, .token = 100 + i / 7000, .from = 3, .time = 0, .tier = 1};
        tracker_call(s->tracker, &call);
        tracker_return(s->tracker, 3, 1, false, 0);
    }
    script_run(s, "asked 1 A 0 5; end 1 A 1; end 2 B 1; now 1002");
    assert_int_equal(s->finished[REQUEST_COMPLETE], 1);
    assert_int_equal(s->reasons[REASON_ROOM], 1);
    assert_null(strstr(s->told, "asked"));
    script_free(s);
}

static void answers(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    // out of order: the earliest call that names it wins
    script_run(s, "begin 1 A 0");
    struct request_ref ref = tracker_find(s->tracker, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tracker_asked(s->tracker, ref), i);
    }
    tracker_answered(s->tracker, ref, 2, 22);
    tracker_answered(s->tracker, ref, 0, DIRECTORY_NONE);
    tracker_answered(s->tracker, ref, 1, 21);
    script_run(s, "end 1 A 1; now 1001");
    script_expect(s, "complete 0..1 as 21 self 1;");
    // late, but in time
    script_run(s, "begin 2 A 2000");
    ref = tracker_find(s->tracker, 2);
    assert_int_equal(tracker_asked(s->tracker, ref), 0);
    script_run(s, "end 2 A 2001; now 3001; now 3100");
    script_expect(s, "");
    tracker_answered(s->tracker, ref, 0, 33);
    script_run(s, "now 5001");
    script_expect(s, "complete 2000..2001 as 33 self 1;");
    // never
    script_run(s, "begin 3 A 6000");
    ref = tracker_find(s->tracker, 3);
    assert_int_equal(tracker_asked(s->tracker, ref), 0);
    script_run(s, "end 3 A 6001; now 7001; now 9000");
    script_expect(s, "");
    script_run(s, "now 9001");
    script_expect(s, "complete 6000..6001 self 1;");
    tracker_answered(s->tracker, ref, 0, 44); // too late
    // at most so many
    script_run(s, "begin 4 A 10000");
    ref = tracker_find(s->tracker, 4);
    for (unsigned i = 0; i < LIMIT_ASKS_PER_REQUEST; i++) {
        assert_int_equal(tracker_asked(s->tracker, ref), (int)i);
    }
    assert_int_equal(tracker_asked(s->tracker, ref), -1);
    script_free(s);
}

// -- never returns --------------------------------------------------------------------------------

// A server's loop, called anew under every request, with a tier that does return called by it.
// Which of the two never returns?
static void loop(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    for (unsigned i = 1; i <= 300; i++) {
        char line[200];
        snprintf(
            line, sizeof line,
            "begin %u A %u; call %u S h %u A; ret S h %u; call %u S l %u A; end %u A %u; now %u", i,
            10 * i, i, 10 * i + 1, 10 * i + 2, i, 10 * i + 3, i, 10 * i + 4, 10 * i);
        script_run(s, line);
        s->len = 0;
        assert_int_equal(strlen(s->never), i > LIMIT_LOOP_REQUESTS);
    }
    assert_string_equal(s->never, "l");
    script_free(s);
}

// By depth, when it is always the same request, or a stale token.
static void depth(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    struct tracker_call call = {.pid = 1, .token = 1, .from = 1, .tier = 3};
    tracker_begin(s->tracker, &call);
    script_end(s->tracker, 1, 1, false, 0);
    tracker_advance(s->tracker, 2 * GRACE_NS);
    s->len = 0;
    for (unsigned i = 0; i < LIMIT_CALL_DEPTH; i++) {
        call.time = 2 * GRACE_NS + i;
        tracker_call(s->tracker, &call);
    }
    call.tier = 4; // called by the loop
    tracker_call(s->tracker, &call);
    assert_string_equal(s->never, "");
    tracker_call(s->tracker, &call);
    tracker_call(s->tracker, &call);
    assert_string_equal(s->never, "c");
    script_run(s, "");
    script_expect_counts(s, 0, LIMIT_CALL_DEPTH + 3, 0);
    tracker_reset(s->tracker); // and told again in another stream
    call.tier = 3;
    for (unsigned i = 0; i < LIMIT_CALL_DEPTH + 2; i++) {
        call.token = 2;
        tracker_call(s->tracker, &call);
    }
    assert_string_equal(s->never, "cc");
    script_free(s);
}

// Lost returns pile up too, but are no loop: a server under drops keeps its tier.
static void losses_are_no_loop(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    for (unsigned i = 1; i <= 300; i++) {
        char line[200];
        snprintf(line, sizeof line, "begin %u A %u; call %u S h %u A; lost; end %u A %u; now %u", i,
                 i, i, i, i, i, i);
        script_run(s, line);
        s->len = 0;
    }
    assert_string_equal(s->never, "");
    script_run(
        s, "now 5000; begin 999 A 5000; call 999 S h 5001; ret S h 5002; end 999 A 5003; now 9000");
    s->told[s->len] = 0;
    assert_non_null(strstr(s->told, "complete 5000..5003 self 2: Sh 5001..5002 self 1;"));
    script_free(s);
}

// -- caps -----------------------------------------------------------------------------------------

static void spans_per_request(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    script_run(s, "begin 1 A 0; begin 2 B 0");
    for (unsigned i = 0; i < LIMIT_SPANS_PER_REQUEST; i++) {
        script_run(s, "call 1 A a 1; ret A a 2");
    }
    script_expect_counts(s, 0, 0, 0);
    script_run(
        s,
        "call 1 A a 3; call 1 A b 3; ret A b 4; ret A a 4; end 1 A 5; call 2 B a 3; ret B a 4; end 2 B 6; now 5000");
    script_expect(s, "incomplete 0..5 cut from 20002;complete 0..6 self 5: Ba 3..4 self 1;");
    script_expect_counts(s, 0, 0, 2);
    script_free(s);
    // exactly as many as there may be
    s = script_new(true, 0);
    script_run(s, "begin 1 A 0");
    for (unsigned i = 0; i < LIMIT_SPANS_PER_REQUEST; i++) {
        script_run(s, "call 1 A a 1; ret A a 2");
    }
    script_run(s, "end 1 A 3; now 5000");
    assert_int_equal(s->finished[REQUEST_COMPLETE], 1);
    script_free(s);
}

static void open_requests(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    struct tracker_call call = {.pid = 1, .from = 1, .tier = 1};
    for (unsigned i = 0; i < LIMIT_OPEN_REQUESTS; i++) {
        call.token = i + 1;
        assert_true(tracker_begin(s->tracker, &call).index != SPAN_NONE);
    }
    assert_int_equal(request_pool_open(s->pool), LIMIT_OPEN_REQUESTS);
    call.token++;
    assert_int_equal(tracker_begin(s->tracker, &call).index, SPAN_NONE);
    assert_int_equal(tracker_call(s->tracker, &call).index, SPAN_NONE);
    tracker_return(s->tracker, 1, 1, false, 1);
    script_end(s->tracker, call.token, 1, false, 2);
    script_end(s->tracker, call.token + 1, 1, false, 2); // of a begin that was lost
    struct tracker_call other = {.pid = 2, .token = call.token + 2, .from = 2, .tier = 1};
    assert_int_equal(tracker_enter(s->tracker, &other).index, SPAN_NONE);
    assert_int_equal(
        tracker_call(s->tracker,
                     &(struct tracker_call){.pid = 3, .token = call.token + 3, .tier = 1})
            .index,
        SPAN_NONE);
    script_run(s, "");
    // a call of the first request; the entry's own, and one that nothing is known of
    script_expect_counts(s, 0, 1, 2);
    assert_int_equal(s->counts.refused_requests, 3);
    // there is room again for what comes late of those who had none: they are counted already
    script_run(s, "end 1 A 0; end 2 A 0; now 2000");
    script_expect(s, "complete 0..0 self 0;complete 0..0 self 0;");
    assert_int_equal(tracker_call(s->tracker, &call).index, SPAN_NONE);
    tracker_return(s->tracker, 1, 1, false, 2001LL * SCRIPT_MS);
    script_end(s->tracker, call.token, 1, false, 2001LL * SCRIPT_MS);
    script_run(s, "now 5000");
    script_expect(s, "");
    script_expect_counts(s, 0, 2, 2);
    assert_int_equal(s->counts.refused_requests, 3);
    script_run(s, "now 30001");
    assert_int_equal(s->finished[REQUEST_EXPIRED], LIMIT_OPEN_REQUESTS - 2);
    s->len = 0;
    script_run(s, "begin 999999 A 30002; end 999999 A 30003; now 40000");
    script_expect(s, "complete 30002..30003 self 1;");
    script_free(s);
}

// Two nodes share a pool: one that opens requests without end takes nothing that the other's need,
// and gets it all back in time.
static void a_share_for_each_node(void **state) {
    (void)state;
    struct script *hog = script_new(true, 0);
    struct script *s = script_new(true, 0);
    struct request_pool *own = s->pool;
    tracker_free(s->tracker);
    s->pool = hog->pool;
    s->tracker = script_tracker(s, true, TIER_NONE);
    request_pool_share(hog->pool);
    struct tracker_call call = {.from = 1, .tier = 1};
    unsigned taken = 0;
    for (unsigned i = 0; i < LIMIT_OPEN_REQUESTS; i++) {
        call.pid = call.token = i + 1;
        taken += tracker_begin(hog->tracker, &call).index != SPAN_NONE;
        for (unsigned k = 0; k < 10; k++) {
            tracker_call(hog->tracker, &call);
        }
    }
    assert_int_equal(taken, LIMIT_OPEN_REQUESTS / 4 * 3);
    for (int i = 0; i < 1000; i++) {
        char text[200];
        snprintf(
            text, sizeof text,
            "begin %d A %d; call %d A a %d; call %d B b %d A; ret B b %d; ret A a %d; end %d A %d",
            i + 1, i, i + 1, i + 1, i + 1, i + 2, i + 3, i + 4, i + 1, i + 5);
        script_run(s, text);
    }
    script_run(s, "now 5000");
    assert_int_equal(s->finished[REQUEST_COMPLETE], 1000);
    assert_int_equal(s->finished[REQUEST_INCOMPLETE] + s->finished[REQUEST_EXPIRED], 0);
    tracker_advance(hog->tracker, 31000LL * SCRIPT_MS);
    assert_int_equal(hog->finished[REQUEST_INCOMPLETE] + hog->finished[REQUEST_EXPIRED], taken);
    assert_int_equal(request_pool_open(hog->pool), 0);
    tracker_free(s->tracker);
    s->pool = own;
    s->tracker = script_tracker(s, true, TIER_NONE);
    script_free(s);
    script_free(hog);
}

// Processes that die in the middle of a call, one after the other: forgotten, at the latest a
// timeout and a sweep later.
static void processes(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    struct tracker_call call = {.token = 1, .from = 1, .tier = 1};
    for (unsigned i = 0; i < LIMIT_PROCESSES + 10; i++) {
        call.pid = call.from = i + 1;
        call.token = i < LIMIT_PROCESSES ? i / 10000 + 1 : 1;
        tracker_call(s->tracker, &call);
    }
    script_run(s, "");
    script_expect_counts(s, 0, 0, 10);
    s->len = 0;
    script_run(
        s,
        "now 1; now 30002; now 61000; now 130000; begin 1000 A 130000; call 1000 A a 130001; ret A a 130002;"
        "end 1000 A 130003; now 140000");
    s->told[s->len] = 0;
    assert_non_null(strstr(s->told, "complete 130000..130003 self 2: Aa 130001..130002 self 1;"));
    // the request of the refused ones is incomplete, the rest never began
    script_expect_counts(s, 0, LIMIT_PROCESSES - 10000, 10);
    script_free(s);
}

// -- time and reset -------------------------------------------------------------------------------

static void reset(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    script_run(
        s,
        "begin 1 A 0; call 1 A a 1; ret A a 2; end 1 A 3; begin 2 B 0; call 2 B a 1; call 3 C a 1; reset");
    script_expect(s, "complete 0..3 self 2: Aa 1..2 self 1;incomplete 0..1;");
    assert_int_equal(request_pool_open(s->pool), 0);
    script_expect_counts(s, 0, 1, 0); // token 3 never began
    // the next stream's clock may stand far before; processes are forgotten
    script_run(s, "ret B a -90000; begin 4 A -80000; end 4 A -79999; now -70000");
    script_expect(s, "complete -80000..-79999 self 1;");
    script_expect_counts(s, 1, 1, 0);
    script_free(s);
}

// Times as far apart as the model takes them (requests.h).
static void extreme_times(void **state) {
    (void)state;
    const int64_t far = TRACKER_FARTHEST;
    const int64_t times[] = {-far, far, 0, -1, far - 1, 1 - far};
    for (size_t markers = 0; markers < 2; markers++) {
        struct script *s = script_new(markers == 1, 0);
        for (uint64_t i = 0; i < 6 * 6 * 6 * 6; i++) {
            const int64_t a = times[i % 6], b = times[i / 6 % 6], c = times[i / 36 % 6],
                          d = times[i / 216 % 6];
            struct tracker_call call = {
                .pid = 1 + i % 7, .token = i, .from = 1, .time = a, .tier = 1};
            if (markers) {
                tracker_begin(s->tracker, &call);
            }
            call.time = b;
            tracker_call(s->tracker, &call);
            tracker_return(s->tracker, call.pid, 1, false, c);
            if (markers) {
                script_end(s->tracker, i, call.pid, false, d);
            }
            if (i % 100 == 99) {
                tracker_advance(s->tracker, d);
            }
            if (i % 500 == 499) {
                tracker_reset(s->tracker);
            }
            s->len = 0;
        }
        script_free(s);
    }
}

static void two_nodes(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    struct tracker *other = script_tracker(s, true, TIER_NONE);
    struct tracker_call call = {.pid = 1, .token = 1, .from = 1, .time = 0, .tier = 1};
    script_run(s, "begin 1 A 0; end 1 A 1; now 5000");
    script_expect(s, "complete 0..1 self 1;");
    // equal tokens and processes on another node are others
    assert_true(tracker_call(other, &call).index != SPAN_NONE);
    tracker_return(other, 1, 1, false, SCRIPT_MS);
    assert_int_equal(tracker_take_counts(other).orphan_returns, 0);
    script_run(s, "ret A a 1");
    script_expect_counts(s, 1, 0, 0);
    tracker_lost(s->tracker, INT64_MIN); // hurts its own node only
    tracker_begin(other, &call);
    script_end(other, 1, 1, false, 5 * SCRIPT_MS);
    tracker_free(other);
    script_expect(s, "complete 0..5 self 4: Aa 0..1 self 1;");
    script_free(s);
}

// -- memory ---------------------------------------------------------------------------------------

static void without_memory(void **state) {
    (void)state;
    fail_alloc_at(-1);
    struct script *s = script_new(true, 0);
    long all = fail_alloc_count();
    script_free(s);
    for (long i = 1; i < all; i++) { // 0 is the script's own
        fail_alloc_once(i);
        struct request_pool *pool = request_pool_new();
        struct tracker_options options = {.timeout_ns = 1};
        struct tracker *t = pool ? tracker_new(pool, &options) : NULL;
        fail_alloc_at(-1);
        tracker_free(t);
        request_pool_free(pool);
    }
    // in the middle of work: every request is told all the same, and none that was cut is complete
    for (long i = 0; i < 12; i++) {
        s = script_new(true, 0);
        fail_alloc_at(i);
        struct tracker_call call = {.from = 1, .tier = 1};
        for (uint64_t k = 0; k < 3000; k++) {
            call.token = k;
            call.pid = k;
            call.time = (int64_t)k;
            tracker_begin(s->tracker, &call);
            tracker_call(s->tracker, &call);
            tracker_call(s->tracker, &call);
        }
        for (uint64_t k = 0; k < 3000; k++) {
            tracker_return(s->tracker, k, 1, false, 5000);
            tracker_return(s->tracker, k, 1, false, 5001);
            script_end(s->tracker, k, k, false, 6000);
        }
        fail_alloc_at(-1);
        tracker_reset(s->tracker);
        struct request_counts counts = tracker_take_counts(s->tracker);
        assert_int_equal(s->finished[REQUEST_COMPLETE] + s->finished[REQUEST_INCOMPLETE] +
                             counts.refused_requests,
                         3000);
        assert_true(s->finished[REQUEST_COMPLETE] < 3000);
        script_free(s);
    }
}

// A helper's end mark from inside of calls: the last of these to return is the end.
static void end_inside(void **state) {
    (void)state;
    script_check("web 1 A 0; call 1 A a 1; call 1 A b 2; end 1 A 3 helper; ret A b 4; ret A a 9",
                 "complete 0..9 self 1: Aa 1..9 self 6, >Ab 2..4 self 2;");
    script_check("web 1 A 0; call 1 A a 1; call 1 B b 2 A; end 1 A 3 helper; ret A a 4; ret B b 9",
                 "complete 0..4 self 1: Aa 1..4 self 3, >Bb 2..9 self 0 async wait 1;");
    // however long that takes
    struct script *s = script_new(true, 0);
    script_run(
        s,
        "web 1 A 0; call 1 A a 1; end 1 A 3 helper; now 1500; now 3000; now 4500; ret A a 5000; now 5500");
    script_expect(s, "");
    script_run(s, "now 7000");
    script_expect(s, "complete 0..5000 self 1: Aa 1..5000 self 4999;");
    // but for a return that never comes, and where some were lost
    script_run(s, "web 2 A 7000; call 2 A a 7001; end 2 A 7003 helper; now 20000; now 36999");
    script_expect(s, "");
    script_run(s, "now 37002; now 39000");
    script_expect(s, "incomplete 7000..7003;");
    script_run(s, "web 3 B 40000; call 3 B a 40001; end 3 B 40003 helper; lost; now 41500");
    script_expect(s, "incomplete 40000..40003;");
    // a marker's end is one from wherever it comes: that of a call below it is missing
    script_run(s, "begin 4 C 50000; call 4 C a 50001; end 4 C 50003; now 52000");
    script_expect(s, "incomplete 50000..50003;");
    script_free(s);
}

// A response that is sent piece by piece: its outcome comes first, then its end, or that of its
// process.
static void sending(void **state) {
    (void)state;
    script_check("web 1 A 0; end 1 A 1 sending; call 1 A a 2; ret A a 8; end 1 A 9 helper",
                 "complete 0..9 self 3: Aa 2..8 self 6;");
    script_check("web 1 A 0; end 1 A 1 sending; call 1 A a 2; ret A a 8; die A 9",
                 "complete 0..9 self 3: Aa 2..8 self 6;");
    script_check("web 1 A 0; call 1 A a 1; end 1 A 2 sending; ret A a 8; end 1 A 9 error",
                 "complete 0..9 error self 2: Aa 1..8 self 7;");
    script_check("web 1 A 0; die A 9", "complete 0..9 error self 9;");
    script_check(
        "enter 1 A a 0; web 2 A 1; end 2 A 2 sending; call 1 A b 3; ret A b 4; end 2 A 5 helper; ret A a 6",
        "complete 0..6 self 0: Aa 0..6 self 5, >Ab 3..4 self 1;");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),
        cmocka_unit_test(recursion),
        cmocka_unit_test(across_processes),
        cmocka_unit_test(after_the_parent),
        cmocka_unit_test(asynchronous),
        cmocka_unit_test(unwinding),
        cmocka_unit_test(orphans),
        cmocka_unit_test(losses),
        cmocka_unit_test(losses_after_the_end),
        cmocka_unit_test(without_a_begin),
        cmocka_unit_test(expired),
        cmocka_unit_test(stale),
        cmocka_unit_test(stale_tiers),
        cmocka_unit_test(stale_once),
        cmocka_unit_test(reasons),
        cmocka_unit_test(closed_tokens),
        cmocka_unit_test(interleaved),
        cmocka_unit_test(overtaking),
        cmocka_unit_test(order_of_closing),
        cmocka_unit_test(raw),
        cmocka_unit_test(entry),
        cmocka_unit_test(markers_are_noticed),
        cmocka_unit_test(names),
        cmocka_unit_test(begun_names),
        cmocka_unit_test(asked_for),
        cmocka_unit_test(asked_for_without_room),
        cmocka_unit_test(answers),
        cmocka_unit_test(loop),
        cmocka_unit_test(depth),
        cmocka_unit_test(losses_are_no_loop),
        cmocka_unit_test(spans_per_request),
        cmocka_unit_test(open_requests),
        cmocka_unit_test(a_share_for_each_node),
        cmocka_unit_test(processes),
        cmocka_unit_test(reset),
        cmocka_unit_test(extreme_times),
        cmocka_unit_test(end_inside),
        cmocka_unit_test(sending),
        cmocka_unit_test(two_nodes),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
