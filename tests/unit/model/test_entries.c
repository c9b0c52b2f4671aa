// SPDX-License-Identifier: Apache-2.0
#include "base/limits.h"
#include "request_script.h"

// What finished of a script, and what was counted as stale, unwound, and as a lost token.
static void expect(const char *commands, const char *expected, uint64_t stale, uint64_t unwound,
                   uint64_t lost_tokens) {
    struct script *s = script_new(true, 0);
    script_run(s, commands);
    script_run(s, "now 90000");
    script_expect(s, expected);
    script_expect_counts(s, 0, stale, 0);
    script_expect_joins(s, unwound, 0, lost_tokens);
    script_free(s);
}

static void plain(void **state) {
    (void)state;
    script_check("enter 1 A a 0; ret A a 30", "complete 0..30 self 0: Aa 0..30 self 30;");
    script_check("enter 1 A a 0; call 1 A b 10; ret A b 20; ret A a 30",
                 "complete 0..30 self 0: Aa 0..30 self 20, >Ab 10..20 self 10;");
    // the outcome
    script_check("enter 1 A a 0; exc A a 3", "complete 0..3 error self 0: Aa 0..3 self 3 error;");
    script_check("enter 1 A a 0; call 1 A b 1; exc A b 2; ret A a 3",
                 "complete 0..3 self 0: Aa 0..3 self 2, >Ab 1..2 self 1 error;");
    // killed: the VM tells of its open calls, then of its death
    script_check("enter 1 A a 0; call 1 A b 1; exc A b 2; exc A a 2; die A 2",
                 "complete 0..2 error self 0: Aa 0..2 self 1 error, >Ab 1..2 self 1 error;");
    // killed from OTP 27 on: of its death alone
    script_check("enter 1 A a 0; call 1 A b 1; die A 2",
                 "complete 0..2 error self 0: Aa 0..2 self 1 error, >Ab 1..2 self 1 error;");
    // other processes: a call, a spawn, and what ends later
    script_check(
        "enter 1 A a 0; call 1 A b 1; call 1 B c 3 A; ret B c 5; ret A b 7; spawn 1 A C 8; call 1 C d 9; ret A a 10; ret C d 20",
        "complete 0..10 self 0: Aa 0..10 self 4, >Ab 1..7 self 2, >>Bc 3..5 self 2 wait 2, >Cd 9..20 self 0 async wait 1;");
    // what overtook the entry's call
    script_check("call 1 B c 3 A; ret B c 5; enter 1 A a 0; ret A a 10",
                 "complete 0..10 self 0: Aa 0..10 self 5, >Bc 3..5 self 2 wait 3;");
}

// Entries whose returned values stay at home: control goes back to their caller.
static void without_values(void **state) {
    (void)state;
    script_check("blind 1 A a z 0; to A z 30", "complete 0..30 self 0: Aa 0..30 self 30 unknown;");
    script_check(
        "blind 1 A a z 0; call 1 A b 10; ret A b 20; to A a 20; to A z 30; blind 2 A a z 40; to A z 50",
        "complete 0..30 self 0: Aa 0..30 self 20 unknown, >Ab 10..20 self 10;"
        "complete 40..50 self 0: Aa 40..50 self 10 unknown;");
    // tiers without values in it, called in turn and by tail calls
    script_check(
        "blind 1 A a z 0; none 1 A b a 10; to A a 20; none 1 A c z 25; to A z 30",
        "complete 0..30 self 0: Aa 0..30 self 15 unknown, >Ab 10..20 self 10 unknown, >Ac 25..30 self 5 unknown;");
    // an entry's call inside of another's
    script_check(
        "blind 1 A a z 0; blind 2 A a a 5; to A a 10; to A z 20",
        "complete 0..20 self 0: Aa 0..20 self 15 unknown, >Aa 5..10 self 5 inner unknown;");
    // its process dies, or it had ended in silence before
    script_check("blind 1 A a z 0; die A 5", "incomplete 0..5 error;");
    // left by an exception that its caller has not caught, of which no word comes: the next call
    // tells
    struct script *s = script_new(true, 0);
    script_run(s,
               "blind 1 A a z 0; call 1 A b 1; exc A b 2; blind 2 A a z 10; to A z 20; now 90000");
    script_expect(s, "incomplete 0..10 error;"
                     "complete 10..20 self 0: Aa 10..20 self 10 unknown;");
    script_free(s);
}

// A connection's process handles one request after the other, and its token stays with it in
// between.
static void keep_alive(void **state) {
    (void)state;
    script_check(
        "enter 1 A a 0; call 1 A b 1; ret A b 2; ret A a 5; enter 2 A a 10; ret A a 12",
        "complete 0..5 self 0: Aa 0..5 self 4, >Ab 1..2 self 1;complete 10..12 self 0: Aa 10..12 self 2;");
    // what it calls in between is nobody's, whatever it spawns on the way
    expect(
        "enter 1 A a 0; ret A a 5; call 1 A b 6; call 1 A c 7; spawn 1 A B 7; ret A c 8; ret A b 9; enter 2 A a 10; ret A a 12; "
        "call 2 A b 13; ret A b 14",
        "complete 0..5 self 0: Aa 0..5 self 5;complete 10..12 self 0: Aa 10..12 self 2;", 3, 0, 0);
    // and still is when the request has closed
    expect("enter 1 A a 0; ret A a 5; now 2000; call 1 A b 2001; ret A b 2002",
           "complete 0..5 self 0: Aa 0..5 self 5;", 1, 0, 0);
    // asynchronous work of one request that begins during the next
    script_check(
        "enter 1 A a 0; ret A a 5; enter 2 A a 10; call 1 B b 11 A; ret B b 12; ret A a 13",
        "complete 0..5 self 0: Aa 0..5 self 5, >Bb 11..12 self 0 async wait 6;complete 10..13 self 0: Aa 10..13 self 3;");
    // a new process inherits the token of a request that is over, and handles the next
    script_check(
        "enter 1 A a 0; ret A a 5; enter 2 B a 6; call 2 B b 7; ret B b 8; ret B a 9",
        "complete 0..5 self 0: Aa 0..5 self 5;complete 6..9 self 0: Ba 6..9 self 2, >Bb 7..8 self 1;");
}

// Nothing was traced for a moment, in which the first one of A has ended. The next one is either
// within it or behind it; those after that, and what began later elsewhere, are what they are.
static void rested(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    script_run(s, "enter 1 A a 0; enter 2 B a 20");
    tracker_rested(s->tracker, 10 * SCRIPT_MS);
    script_run(s, "ret B a 25; enter 3 A a 30; ret A a 35; enter 4 A a 40; ret A a 45; now 90000");
    script_expect(s, "complete 20..25 self 0: Ba 20..25 self 5;"
                     "incomplete 0..0;incomplete 30..35;"
                     "complete 40..45 self 0: Aa 40..45 self 5;");
    script_free(s);
}

static void keep_alive_long(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    for (unsigned i = 0; i < 20000; i++) {
        char line[200];
        snprintf(
            line, sizeof line,
            "enter %u A a %u; call %u A b %u.1; ret A b %u.2; ret A a %u.5; call %u A c %u.6; ret A c %u.7; now %u.8",
            i + 1, i, i + 1, i, i, i, i + 1, i, i, i);
        script_run(s, line);
        s->len = 0;
    }
    script_run(s, "now 90000");
    assert_int_equal(s->finished[REQUEST_COMPLETE], 20000);
    assert_int_equal(s->finished[REQUEST_INCOMPLETE] + s->finished[REQUEST_EXPIRED], 0);
    script_expect_counts(s, 0, 20000, 0);
    script_expect_joins(s, 0, 0, 0);
    script_free(s);
}

// An entry inside of another's call is a tier like others. Its token replaces the first: both are
// the request's from then on.
static void nested(void **state) {
    (void)state;
    script_check(
        "enter 1 A a 0; enter 2 A a 2; call 2 A b 3; ret A b 4; ret A a 5; call 2 A b 6; ret A b 7; ret A a 9; enter 3 A a 10; "
        "ret A a 11",
        "complete 0..9 self 0: Aa 0..9 self 5, >Aa 2..5 self 2 inner, >>Ab 3..4 self 1, >Ab 6..7 self 1;"
        "complete 10..11 self 0: Aa 10..11 self 1;");
    // what others do under either
    script_check(
        "enter 1 A a 0; call 1 B b 1 A; enter 2 A c 2; call 2 C b 3 A; ret C b 4; exc A c 5; ret B b 6; ret A a 9",
        "complete 0..9 self 0: Aa 0..9 self 3, >Bb 1..6 self 5 wait 1, >Ac 2..5 self 1 error, >>Cb 3..4 self 1 wait 1;");
    // both are stale at the end
    expect(
        "enter 1 A a 0; enter 2 A c 2; ret A c 5; ret A a 9; now 3000; call 1 B b 3001; ret B b 3002; call 2 B b 3003; ret B b 3004",
        "complete 0..9 self 0: Aa 0..9 self 6, >Ac 2..5 self 3;", 2, 0, 0);
    // in another process it begins a request
    script_check("enter 1 A a 0; enter 2 B a 2; ret B a 5; ret A a 9",
                 "complete 2..5 self 0: Ba 2..5 self 3;complete 0..9 self 0: Aa 0..9 self 9;");
}

// The process works for the request that is open on its stack, whatever token a message brought.
// What it gave away meanwhile is elsewhere.
static void token_replaced(void **state) {
    (void)state;
    expect(
        "enter 1 A a 0; enter 2 B a 1; call 2 A b 3; ret A b 4; call 2 A b 5; ret A b 6; ret A a 9; ret B a 10",
        "complete 0..9 self 0: Aa 0..9 self 7, >Ab 3..4 self 1, >Ab 5..6 self 1;complete 1..10 self 0: Ba 1..10 self 9;",
        0, 0, 0);
    // the sampler took it away
    expect("enter 1 A a 0; leftout A; ret A a 9; leftout A; enter 2 A a 10; ret A a 11",
           "incomplete 0..9;complete 10..11 self 0: Aa 10..11 self 1;", 0, 0, 1);
    expect("leftout B; enter 1 A a 0; leftout B; ret A a 9",
           "complete 0..9 self 0: Aa 0..9 self 9;", 0, 0, 0);
    // nor is another process, where a call of the request is open, under whatever label
    expect("enter 1 A a 0; call 1 B b 1 A; leftout B; ret B b 2; ret A a 9", "incomplete 0..9;", 0,
           0, 1);
    expect("enter 1 A a 0; call 1 B b 1 A; ret B b 2; leftout B; ret A a 9",
           "complete 0..9 self 0: Aa 0..9 self 7, >Bb 1..2 self 1 wait 1;", 0, 0, 0);
}

// Tokens are counted without a lock: two requests may get the same.
static void token_twice(void **state) {
    (void)state;
    // at the same time: nobody knows whose calls are whose
    expect(
        "enter 1 A a 0; enter 1 B a 1; call 1 C b 2 A; ret C b 3; ret A a 5; ret B a 6; enter 2 A a 7; ret A a 8",
        "incomplete 0..5;incomplete 1..6;complete 7..8 self 0: Aa 7..8 self 1;", 0, 0, 0);
    // one after the other
    script_check(
        "enter 1 A a 0; ret A a 5; enter 1 B a 6; call 1 C b 7 B; ret C b 8; ret B a 9",
        "complete 0..5 self 0: Aa 0..5 self 5;complete 6..9 self 0: Ba 6..9 self 1, >Cb 7..8 self 1 wait 1;");
    // in the same process, and long ago
    expect(
        "enter 1 A a 0; ret A a 5; enter 1 A a 6; call 1 A b 7; ret A b 8; ret A a 9; now 5000; enter 1 A a 5000; ret A a 5001",
        "complete 0..5 self 0: Aa 0..5 self 5;complete 6..9 self 0: Aa 6..9 self 2, >Ab 7..8 self 1;complete 5000..5001 self 0: Aa "
        "5000..5001 self 1;",
        0, 0, 0);
    // that of one that is open, inside of another
    expect("enter 1 A a 0; enter 2 B a 1; enter 2 A a 2; ret A a 3; ret A a 4; ret B a 5",
           "incomplete 0..4;complete 1..5 self 0: Ba 1..5 self 4;", 0, 0, 0);
}

static void losses(void **state) {
    (void)state;
    // an entry's return may be among what was lost: the next call ends its request, and is not
    // trusted itself
    expect("enter 1 A a 0; lost; enter 2 A a 10; ret A a 12; enter 3 A a 20; ret A a 21",
           "incomplete 0..0;incomplete 10..12;complete 20..21 self 0: Aa 20..21 self 1;", 0, 0, 0);
    // its frame is taken off once the request is closed, and nothing is unwound
    expect(
        "enter 1 A a 0; lost; enter 2 A a 10; ret A a 12; now 3000; enter 3 A a 3001; ret A a 3002; enter 4 A a 3003; ret A a 3004",
        "incomplete 0..0;incomplete 10..12;complete 3001..3002 self 0: Aa 3001..3002 self 1;complete 3003..3004 self 0: Aa 3003..3004 "
        "self 1;",
        0, 0, 0);
    // while it is open
    expect("enter 1 A a 0; lost; ret A a 10; enter 2 A a 11; ret A a 12",
           "incomplete 0..10;complete 11..12 self 0: Aa 11..12 self 1;", 0, 0, 0);
    // a return that never came without a loss: what is below it shows that
    expect("call 9 A b 0; enter 1 A a 1; ret A b 5; enter 2 A a 6; ret A a 7",
           "incomplete 1..1;complete 6..7 self 0: Aa 6..7 self 1;", 1, 1, 0);
    // that never ends at all
    expect("enter 1 A a 0; now 40000; enter 2 A a 40001; ret A a 40002",
           "expired 0..0;complete 40001..40002 self 0: Aa 40001..40002 self 1;", 0, 0, 0);
}

// A loop as an entry: all that comes later is inside of its first call. A marker, or a web server's
// helper, inside of the entry's call: one request, under the inner name.
static void met(void **state) {
    (void)state;
    // a helper has a token of its own, and what comes under either is the request's
    script_check(
        "enter 1 A a 0; web 2 A 1 7; call 2 B b 2 A; ret B b 3; end 2 A 4 helper; call 1 A b 5; ret "
        "A b 6; ret A a 9",
        "complete 0..9 as 7 self 0: Aa 0..9 self 5, >Bb 2..3 self 1 wait 2, >Ab 5..6 self 1;");
    script_check("enter 1 A a 0; web 2 A 1; end 2 A 4 error; ret A a 9",
                 "complete 0..9 error self 0: Aa 0..9 self 9;");
    script_check("enter 1 A a 0; web 2 A 1; exc A a 9; end 2 A 10 error",
                 "complete 0..9 error self 0: Aa 0..9 self 9 error;");
    script_check("enter 1 A a 0; web 2 A 1; ret A a 9; end 2 A 10 error",
                 "complete 0..9 error self 0: Aa 0..9 self 9;");
    // a marker goes on with the entry's
    script_check(
        "enter 1 A a 0; begin 1 A 1 7; ret A a 9; enter 2 A a 10; ret A a 11",
        "complete 0..9 as 7 self 0: Aa 0..9 self 9;complete 10..11 self 0: Aa 10..11 self 1;");
    // in another process it is work for that request, and names nothing
    script_check("enter 1 A a 0; begin 1 B 1 7; call 1 B b 2 A; ret B b 3; ret A a 9",
                 "complete 0..9 self 0: Aa 0..9 self 6, >Bb 2..3 self 1 wait 2;");
    // a helper there has a request of its own, and so has one behind the entry's return
    script_check(
        "enter 1 A a 0; web 2 B 1; end 2 B 3 helper; ret A a 9; web 3 A 10; call 3 A b 11; ret A b "
        "12; end 3 A 13 helper",
        "complete 1..3 self 2;complete 0..9 self 0: Aa 0..9 self 9;complete 10..13 self 2: Ab "
        "11..12 self 1;");
    // the name of the entry's own is worth less, whenever it comes
    struct script *s = script_new(true, 0);
    script_run(s, "enter 1 A a 0");
    struct request_ref ref = tracker_find(s->tracker, 1);
    tracker_name(s->tracker, ref, 5);
    int place = tracker_asked(s->tracker, ref);
    script_run(s, "web 2 A 1 7; end 2 A 4 helper");
    tracker_name_late(s->tracker, ref, 8);
    tracker_answered(s->tracker, ref, place, 6);
    script_run(s, "ret A a 9; enter 3 A a 10");
    tracker_name(s->tracker, tracker_find(s->tracker, 3), 5);
    script_run(s, "begin 3 A 11; ret A a 12; now 90000");
    script_expect(
        s,
        "complete 0..9 as 8 self 0: Aa 0..9 self 9;complete 10..12 as 5 self 0: Aa 10..12 self 2;");
    script_free(s);
}

// What becomes a websocket ends its request: in another process that has ended already.
static void upgraded(void **state) {
    (void)state;
    script_check(
        "enter 1 A a 0; call 1 A b 1; call 1 B c 2 A; ret B c 3; upgrade 1 A 5; exc A b 5000; exc A a 5000; die A 5000",
        "complete 0..5 self 0: Aa 0..5 self 1, >Ab 1..5 self 2, >>Bc 2..3 self 1 wait 1;");
    script_check("enter 1 A a 0; ret A a 5; upgrade 1 B 6",
                 "complete 0..5 self 0: Aa 0..5 self 5;");
    script_check("enter 1 A a 0; ret A a 5; upgrade 1 A 6; enter 2 A a 7; ret A a 9",
                 "complete 0..5 self 0: Aa 0..5 self 5;complete 7..9 self 0: Aa 7..9 self 2;");
    script_check(
        "enter 1 A a 0; upgrade 1 A 5; now 100; ret A a 200; begin 2 A 299; call 2 A b 300; ret A b 301; end 2 A 302",
        "complete 0..5 self 0: Aa 0..5 self 5;complete 299..302 self 2: Ab 300..301 self 1;");
}

static void never_returns(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    for (unsigned i = 0; i <= LIMIT_LOOP_ENTRIES; i++) {
        char line[64];
        snprintf(line, sizeof line, "enter %u A a %u; enter %u B b %u; ret B b %u", 2 * i + 1,
                 10 * i, 2 * i + 2, 10 * i + 1, 10 * i + 2);
        script_run(s, line);
    }
    assert_string_equal(s->never, "");
    script_run(s, "now 60000");
    assert_string_equal(s->never, "a");
    assert_int_equal(s->finished[REQUEST_COMPLETE], LIMIT_LOOP_ENTRIES + 1);
    assert_int_equal(s->finished[REQUEST_EXPIRED], 1);
    script_free(s);
    // or at once, when it is fast
    s = script_new(true, 0);
    for (unsigned i = 0; i <= LIMIT_CALL_DEPTH + 1; i++) {
        char line[64];
        snprintf(line, sizeof line, "enter %u A a %u", i + 1, i / 1000);
        script_run(s, line);
    }
    assert_string_equal(s->never, "a");
    script_free(s);
}

// Markers in the same node: the entry's match spec keeps their tokens, and it is a tier.
static void beside_markers(void **state) {
    (void)state;
    script_check("begin 1 A 0; call 1 A a 2; ret A a 4; end 1 A 5; enter 2 A a 6; ret A a 7",
                 "complete 0..5 self 3: Aa 2..4 self 2;complete 6..7 self 0: Aa 6..7 self 1;");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(plain),
                                       cmocka_unit_test(without_values),
                                       cmocka_unit_test(keep_alive),
                                       cmocka_unit_test(rested),
                                       cmocka_unit_test(keep_alive_long),
                                       cmocka_unit_test(nested),
                                       cmocka_unit_test(token_replaced),
                                       cmocka_unit_test(token_twice),
                                       cmocka_unit_test(losses),
                                       cmocka_unit_test(never_returns),
                                       cmocka_unit_test(met),
                                       cmocka_unit_test(upgraded),
                                       cmocka_unit_test(beside_markers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
