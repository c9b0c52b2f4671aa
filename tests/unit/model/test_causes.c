// SPDX-License-Identifier: Apache-2.0
// Whose work a call is: pools, locks and servers that hand on one request's label with another
// one's answer.
#include "model/requests/tracker.h"
#include "request_script.h"

// Runs a script to its end, and compares what finished.
static struct script *run_through(const char *commands, const char *expected) {
    struct script *s = script_new(true, 0);
    script_run(s, commands);
    script_run(s, "now 60000");
    script_expect(s, expected);
    return s;
}

static void finishes(const char *commands, const char *expected) {
    script_free(run_through(commands, expected));
}

// The same of a script in three parts.
static void finishes_with(const char *begin, const char *between, const char *end,
                          const char *expected) {
    struct script *s = script_new(true, 0);
    script_run(s, begin);
    script_run(s, between);
    script_run(s, end);
    script_run(s, "now 60000");
    script_expect(s, expected);
    script_free(s);
}

// The same, and how many calls were given to another request than their label's, or were stale.
static void check(const char *commands, const char *expected, uint64_t recredited, uint64_t stale) {
    struct script *s = run_through(commands, expected);
    assert_int_equal(s->counts.recredited_calls, recredited);
    script_expect_counts(s, 0, stale, 0);
    script_free(s);
}

// A pool hands worker W, which A gives back, to B that waits for it: B asks W under A's label.
static void lent_worker(void **state) {
    (void)state;
    check(
        "enter 1 A a 0; enter 2 B a 1; call 1 W d 2 A; ret W d 8; call 1 W d 9 B; ret W d 29; ret A a 10; ret B a 30",
        "complete 0..10 self 0: Aa 0..10 self 2, >Wd 2..8 self 6 wait 2;"
        "complete 1..30 self 0: Ba 1..30 self 1, >Wd 9..29 self 20 wait 8;",
        1, 0);
    // with markers
    check(
        "begin 1 A 0; begin 2 B 1; call 1 W d 2 A; ret W d 8; call 1 W d 9 B; ret W d 29; end 1 A 10; end 2 B 30",
        "complete 0..10 self 2: Wd 2..8 self 6 wait 2;complete 1..30 self 1: Wd 9..29 self 20 wait 8;",
        1, 0);
    // the label's request is over long ago
    check(
        "enter 1 A a 0; ret A a 5; now 2000; enter 2 B a 2001; call 1 W d 2002 B; ret W d 2003; ret B a 2004",
        "complete 0..5 self 0: Aa 0..5 self 5;complete 2001..2004 self 0: Ba 2001..2004 self 1, >Wd 2002..2003 self 1 wait 1;",
        1, 0);
    // what B calls itself under that label is its own, too
    check(
        "enter 1 A a 0; enter 2 B a 1; call 1 B c 3 X; ret B c 4; ret B a 5; ret A a 6",
        "complete 1..5 self 0: Ba 1..5 self 3, >Bc 3..4 self 1;complete 0..6 self 0: Aa 0..6 self 6;",
        1, 0);
}

// The one that asks another one that asks another one, whatever the label says.
static void hops(void **state) {
    (void)state;
    check(
        "enter 1 A a 0; enter 2 B a 1; call 1 W d 2 B; call 1 V e 3 W; call 1 U f 4 V; "
        "ret U f 5; ret V e 6; ret W d 7; ret B a 8; ret A a 9",
        "complete 1..8 self 0: Ba 1..8 self 1, >Wd 2..7 self 1 wait 1, >>Ve 3..6 self 1 wait 1, >>>Uf 4..5 self 1 wait 1;"
        "complete 0..9 self 0: Aa 0..9 self 9;",
        3, 0);
}

// Messages of different processes overtake each other: the worker's call comes before its sender's
// own messages, or long after them.
static void overtaken(void **state) {
    (void)state;
    check(
        "enter 1 A a 0; enter 3 B a 1; ret B a 2; call 1 W d 9 B; ret W d 11; enter 2 B a 8; ret B a 12; ret A a 20",
        "complete 1..2 self 0: Ba 1..2 self 1;complete 8..12 self 0: Ba 8..12 self 1, >Wd 9..11 self 2 wait 1;"
        "complete 0..20 self 0: Aa 0..20 self 20;",
        1, 0);
    check(
        "enter 1 A a 0; enter 2 B a 1; ret B a 2; enter 3 B a 2.1; ret B a 2.2; enter 4 B a 2.3; "
        "call 1 W d 1.5 B; ret W d 1.8; ret B a 3; ret A a 4",
        "complete 1..2 self 0: Ba 1..2 self 0.2, >Wd 1.5..1.8 self 0.3 wait 0.5;complete 2.1..2.2 self 0: Ba 2.1..2.2 self 0.1;"
        "complete 2.3..3 self 0: Ba 2.3..3 self 0.7;complete 0..4 self 0: Aa 0..4 self 4;",
        1, 0);
}

// The token of a begin marker is a new one and shows no serial. The end marker before it tells what
// was sent until then.
static void serial_at_the_end(void **state) {
    (void)state;
    check(
        "begin 1 A 0; call 1 W d 1 A 3; ret W d 2; end 1 A 3 serial 7; begin 2 A 4; call 1 W d 5 A 13; ret W d 6; end 2 A 8 serial 15",
        "complete 0..3 self 1: Wd 1..2 self 1 wait 1;complete 4..8 self 2: Wd 5..6 self 1 wait 1;",
        1, 0);
    check(
        "begin 1 A 0; call 1 W d 1 A 3; ret W d 2; end 1 A 3 serial 7; begin 2 A 4; call 1 W d 5 A 6; ret W d 6; end 2 A 8 serial 15",
        "complete 0..3 self 1: Wd 1..2 self 1 wait 1, Wd 5..6 self 0 async;complete 4..8 self 4;",
        0, 0);
}

// S works for C, sends something to W under A's label, and then answers C, as the serial of C's
// next request tells: what it sent may be C's work. When it had answered before that, it is not.
static void sent_before_the_answer(void **state) {
    (void)state;
    const char *begin = "enter 1 A a 0; enter 2 C a 1; call 2 S d 2 C 5; ret S d 3; ret C a 5;";
    const char *end = "call 1 W e 6.5 S 9; ret W e 6.6; ret C a 7; ret A a 8; now 2000";
    const char *third = "complete 6..7 self 0: Ca 6..7 self 1;";
    char expected[400];
    snprintf(expected, sizeof expected, "incomplete 1..5;%sincomplete 0..8;", third);
    finishes_with(begin, "enter 3 C a 6 12 S;", end, expected);
    snprintf(expected, sizeof expected,
             "complete 1..5 self 0: Ca 1..5 self 2, >Sd 2..3 self 1 wait 1;%s"
             "complete 0..8 self 0: Aa 0..8 self 8, We 6.5..6.6 self 0.1;",
             third);
    finishes_with(begin, "enter 3 C a 6 8 S;", end, expected);
}

// W calls d from within d under the label of the one whose answer it has got. Where labels are lent
// that may be the next turn of a loop, too, in which W has taken a message of that request.
static void turn_or_recursion(void **state) {
    (void)state;
    const char *begin =
        "enter 1 A a 0; enter 2 B a 1; enter 3 C a 1; call 1 P e 1.5 A 3; ret P e 1.8; "
        "call 2 W d 2 B 5; call 1 C c 3 X 7; ret C c 3.5;";
    const char *end = "ret W d 5; ret W d 6; ret B a 8; ret A a 9; ret C a 10";
    const char *c = "complete 1..10 self 0: Ca 1..10 self 8.5, >Cc 3..3.5 self 0.5;";
    char expected[400];
    snprintf(expected, sizeof expected, "incomplete 1..8;incomplete 0..9;%s", c);
    finishes_with(begin, "call 1 W d 4 P 9;", end, expected);
    // a token that is older than W's own is no answer: the next message
    snprintf(
        expected, sizeof expected,
        "complete 1..8 self 0: Ba 1..8 self 2, >Wd 2..6 self 4 wait 1;"
        "complete 0..9 self 0: Aa 0..9 self 4, >Pe 1.5..1.8 self 0.3 wait 1.5, >Wd 4..5 self 1 wait 2.2;%s",
        c);
    finishes_with(begin, "call 1 W d 4 P 4;", end, expected);
}

// W's call overtakes all that S did for B under A's label: by that label it went to A's request.
// Who is told when labels turn out to be lent, and S's messages have come.
static void overtook_the_lending(void **state) {
    (void)state;
    finishes("enter 1 A a 0; call 1 S d 1 A 3; ret S d 2; ret A a 3; enter 2 B a 4; "
             "call 1 W e 9 S 21; ret W e 9.5; "
             "call 1 B c 5 S 9; ret B c 5.5; call 1 S d 6 B 10; ret S d 7; ret B a 12; now 1004",
             "incomplete 0..9.5;incomplete 4..12;");
}

// Nothing is known of W, and the request is over: its asynchronous work, or that of whoever was
// lent its label?
static void strangers(void **state) {
    (void)state;
    check("begin 1 A 0; call 1 D d 1 W; ret D d 2; end 1 A 3; call 1 D d 4 W; ret D d 5",
          "complete 0..3 self 2: Dd 1..2 self 1, Dd 4..5 self 0 async;", 0, 1);
    check("begin 1 A 0; end 1 A 3; call 1 D d 4 A; ret D d 5",
          "complete 0..3 self 3: Dd 4..5 self 0 async wait 4;", 0, 0);
}

// A cast that waited for long in a slow process is of the request that sent it, although its sender
// has begun another one.
static void queued_cast(void **state) {
    (void)state;
    check(
        "enter 1 A a 0 5; ret A a 2; enter 2 A a 3 9; call 1 S s 4 A 7; ret S s 6; ret A a 8",
        "complete 0..2 self 0: Aa 0..2 self 2, >Ss 4..6 self 0 async wait 2;complete 3..8 self 0: Aa 3..8 self 5;",
        0, 0);
    // nor does it become the later one's when the first is closed
    check(
        "enter 1 A a 0 5; ret A a 2; now 2000; enter 2 A a 2003 9; call 1 S s 2004 A 7; ret S s 2006; ret A a 2008",
        "complete 0..2 self 0: Aa 0..2 self 2;complete 2003..2008 self 0: Aa 2003..2008 self 5;", 0,
        1);
    // serials of more than 48 bits are all the same one
    check(
        "enter 1 A a 0 281474976710655; ret A a 2; enter 2 A a 3 281474976710655; call 1 S s 4 A 281474976710655; ret S s 6; ret A a 8",
        "complete 0..2 self 0: Aa 0..2 self 2, >Ss 4..6 self 0 async wait 2;complete 3..8 self 0: Aa 3..8 self 5;",
        0, 0);
    // but a process that gets its own old label back with a worker shows it with a later serial
    check(
        "enter 1 A a 0 5; ret A a 2; enter 2 A a 3 9; call 1 S s 4 A 12; ret S s 6; ret A a 8",
        "complete 0..2 self 0: Aa 0..2 self 2;complete 3..8 self 0: Aa 3..8 self 2, >Ss 4..6 self 2 wait 1;",
        1, 0);
}

// B asks W with the label of A's request, and dies before W's call is told.
static void dead_sender(void **state) {
    (void)state;
    const char *expected =
        "complete 1..4 self 0: Ba 1..4 self 3, >Wd 5..6 self 0 async wait 1;complete 0..9 self 0: Aa 0..9 self 9;";
    check(
        "enter 1 A a 0; enter 2 B a 1 3; ret B a 4; die B 4.1; call 1 W d 5 B 6; ret W d 6; ret A a 9",
        expected, 1, 0);
    // as it does when it lives on
    check("enter 1 A a 0; enter 2 B a 1 3; ret B a 4; call 1 W d 5 B 6; ret W d 6; ret A a 9",
          expected, 1, 0);
    // what it was at long ago tells nothing
    finishes(
        "enter 2 B a 1; ret B a 4; die B 4.1; now 3000; enter 1 A a 3000; call 1 W d 3001 B; ret W d 3002; ret A a 3003",
        "complete 1..4 self 0: Ba 1..4 self 3;complete 3000..3003 self 0: Aa 3000..3003 self 3, Wd 3001..3002 self 1;");
}

// The begin of the request whose label W's call shows comes later. The label is B's already.
static void begin_to_come(void **state) {
    (void)state;
    check(
        "enter 1 B b 0 3; call 2 W d 1 B 5; ret W d 2; enter 2 A a 0.5; ret B b 3; ret A a 4",
        "complete 0..3 self 0: Bb 0..3 self 1, >Wd 1..2 self 1 wait 1;complete 0.5..4 self 0: Aa 0.5..4 self 3.5;",
        1, 0);
    check(
        "begin 4 B -2; end 4 B -1 serial 3; begin 1 B 0; call 2 W d 1 B 5; ret W d 2; begin 2 A 0.5; end 1 B 3; end 2 A 4",
        "complete -2..-1 self 1;complete 0..3 self 1: Wd 1..2 self 1 wait 1;complete 0.5..4 self 3.5;",
        1, 0);
    // W got it with an answer, from within a call
    check(
        "enter 1 B b 0; call 1 W d 0.5 B 1; call 2 W e 1 M 5; ret W e 2; ret W d 2.5; enter 2 A a 0.8; ret B b 3; ret A a 4",
        "complete 0..3 self 0: Bb 0..3 self 0.5, >Wd 0.5..2.5 self 1 wait 0.5, >>We 1..2 self 1;"
        "complete 0.8..4 self 0: Aa 0.8..4 self 3.2;",
        1, 0);
}

// W's call comes before all that tells of B, which asked for it, and of the label.
static void sender_to_come(void **state) {
    (void)state;
    finishes(
        "call 2 W d 1 B; ret W d 2; enter 1 B b 0; call 2 B c 0.8 X; ret B c 0.9; enter 2 A a 0.5; ret B b 3; ret A a 4",
        "incomplete 0..3;incomplete 0.5..4;");
}

// W's calls come before what B, which asked for them, did until then. They go to their label's
// request. When B turns out to have been at another one, both are incomplete.
static void ahead_of_the_sender(void **state) {
    (void)state;
    const char *expected_doubt = "incomplete 1..5;incomplete 0..6;";
    // nothing was known of B
    finishes("enter 1 A a 0; call 1 W d 3 B 9; ret W d 4; enter 2 B b 1 2; ret B b 5; ret A a 6",
             expected_doubt);
    // not even of the label
    finishes("call 1 W d 3 B 9; ret W d 4; enter 2 B b 1 2; ret B b 5; enter 1 A a 0; ret A a 6",
             expected_doubt);
    // the label is B's own
    finishes(
        "enter 1 A a 0; call 2 W d 3 B 9; ret W d 4; enter 2 B b 1 2; ret B b 5; ret A a 6",
        "complete 1..5 self 0: Bb 1..5 self 1, >Wd 3..4 self 1 wait 2;complete 0..6 self 0: Aa 0..6 self 6;");
    // B was not yet at its own, or had sent that before
    finishes(
        "enter 1 A a 0; call 1 W d 3 B 9; ret W d 4; enter 2 B b 3.5 9; ret B b 5; ret A a 6",
        "complete 3.5..5 self 0: Bb 3.5..5 self 1.5;complete 0..6 self 0: Aa 0..6 self 6, Wd 3..4 self 1;");
    // B was known to be at the label's request, which had been lent, and is at its next one
    const char *lent = "enter 1 B b 0 3; enter 3 M a 0; call 1 M d 1 X; ret M d 1.5;";
    finishes_with(lent, "call 1 W d 5 B 20; ret W d 6; ret B b 4; enter 2 B b 4.5 15;",
                  "ret B b 8; ret M a 9",
                  "incomplete 0..6;incomplete 4.5..8;"
                  "complete 0..9 self 0: Ma 0..9 self 8.5, >Md 1..1.5 self 0.5;");
    // and had sent that at the one before
    finishes_with(
        lent, "call 1 W d 5 B 12; ret W d 6; ret B b 4; enter 2 B b 4.5 15;",
        "ret B b 8; ret M a 9",
        "complete 0..4 self 0: Bb 0..4 self 4, >Wd 5..6 self 0 async wait 1;complete 4.5..8 self 0: Bb 4.5..8 self 3.5;"
        "complete 0..9 self 0: Ma 0..9 self 8.5, >Md 1..1.5 self 0.5;");
}

// A shows M's label at its second request, and sent something under it at its first.
static void sent_before_under_a_new_label(void **state) {
    (void)state;
    check(
        "enter 7 M a 0; enter 1 A a 1 3; ret A a 2; enter 2 A a 3 9; call 7 A b 4 X 12; ret A b 5; call 7 S s 6 A 6; ret S s 7; ret A a 8; ret M a 9",
        "complete 1..2 self 0: Aa 1..2 self 1, >Ss 6..7 self 0 async wait 4;"
        "complete 3..8 self 0: Aa 3..8 self 4, >Ab 4..5 self 1;complete 0..9 self 0: Ma 0..9 self 9;",
        2, 0);
}

// The stream ends right behind that, while S's call for B is still a piece of B's request.
static void overtook_the_end(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    script_run(s,
               "enter 1 A a 0; call 1 S d 1 A 3; ret S d 2; enter 2 B a 4; call 1 W e 9 S 21 20; "
               "ret W e 9.5; call 1 S d 6 B 10; ret S d 10; call 1 B c 5 S 9; ret B c 5.5; "
               "ret A a 11; ret B a 12; reset");
    script_expect(s, "incomplete 0..11;incomplete 4..12;");
    script_free(s);
    // B's closes first
    s = script_new(true, 0);
    script_run(s,
               "enter 1 A a 0; call 1 S d 1 A 3; ret S d 2; enter 2 B a 4; call 1 W e 9 S 21 20; "
               "ret W e 9.5; call 1 S d 6 B 10; ret S d 10; call 1 B c 5 S 9; ret B c 5.5; "
               "ret B a 12; ret A a 13; reset");
    script_expect(s, "incomplete 4..12;incomplete 0..13;");
    script_free(s);
}

// The same where nothing was known to be lent until then, and on a clock that is negative, as a
// node's is.
static void ahead_before_labels_are_lent(void **state) {
    (void)state;
    finishes(
        "enter 1 A a -100; call 1 W d -97 B 9; ret W d -96; enter 2 B b -99 2; ret B b -95; ret A a -94",
        "incomplete -99..-95;incomplete -100..-94;");
    // B is known, the label is new
    finishes(
        "enter 3 B b 0; ret B b 0.1; call 1 W d 3 B 9; ret W d 4; enter 2 B b 1 2; ret B b 5; enter 1 A a 0.2; ret A a 6",
        "complete 0..0.1 self 0: Bb 0..0.1 self 0.1;incomplete 1..5;incomplete 0.2..6;");
    // B had begun that request, and is at its next one
    finishes(
        "begin 1 B 0; call 1 W d 5 B 20 19; ret W d 6; end 1 B 2 serial 9; begin 2 B 3; call 1 B e 4 B 19; ret B e 4.5; "
        "end 2 B 8",
        "incomplete 0..6;incomplete 3..8;");
}

// P is taken to have got W's next message within its call. Then it turns out that P had asked W
// under that message's label, which it was lent.
static void lent_after_all(void **state) {
    (void)state;
    const char *known = "enter 1 A a 0; call 1 W w 0.5 A 1; ret W w 0.6;";
    const char *then = "call 1 P d 4 W 30 29; ret P d 5; ret P c 6;";
    const char *asked = "call 1 W e 3 P 29 28; ret W e 3.5;";
    struct script *s = script_new(true, 0);
    script_run(s, known);
    script_run(s, "enter 2 B b 0.2; call 2 P c 1 B 2;");
    script_run(s, then);
    script_run(s, asked);
    script_run(s, "ret B b 7; ret A a 8; now 60000");
    script_expect(s, "incomplete 0.2..7;incomplete 0..8;");
    script_free(s);
    // also where P's call waits for what B, which asked for it, was at
    s = script_new(true, 0);
    script_run(s, "enter 3 B b -2; ret B b -1;");
    script_run(s, known);
    script_run(s, "call 2 V v 0.3 B 1; ret V v 0.4; call 2 P c 1 B 2;");
    script_run(s, then);
    script_run(s, "enter 2 B b 0.2;");
    script_run(s, asked);
    script_run(s, "ret B b 7; ret A a 8; now 60000");
    script_expect(s, "complete -2..-1 self 0: Bb -2..-1 self 1;incomplete 0.2..7;incomplete 0..8;");
    script_free(s);
}

// W's call comes when S, which asked for it, is at its next call already: what it was at then is
// known, whatever its serials are by now.
static void behind_the_sender(void **state) {
    (void)state;
    check(
        "enter 1 A a 0; enter 2 B b 0; call 2 S c 1 B 3; ret S c 3; call 2 S d 4 B 30; call 1 W e 2 S 12; ret W e 2.5;"
        "ret S d 5; ret B b 6; ret A a 7",
        "complete 0..6 self 0: Bb 0..6 self 2, >Sc 1..3 self 0.5 wait 1, >>We 2..2.5 self 0.5 wait 1, >Sd 4..5 self 1;"
        "complete 0..7 self 0: Aa 0..7 self 7;",
        1, 0);
}

// B shows the label of A's request at its end mark only: what it asked for under it is its own, and
// what a process asked for of which nothing is known may be.
static void shown_at_the_end(void **state) {
    (void)state;
    check("begin 1 A 0; begin 2 B 1; end 2 B 4 shows 1; call 1 W d 5 B; ret W d 6; end 1 A 9",
          "complete 1..4 self 3: Wd 5..6 self 0 async wait 4;complete 0..9 self 9;", 1, 0);
    finishes("begin 1 A 0; begin 2 B 1; call 1 W d 3 M; ret W d 6; end 2 B 4 shows 1; end 1 A 9",
             "incomplete 1..4;incomplete 0..9;");
    // so may be what one did who shows the label as its own, and whom nobody is known to have asked
    const char *begin = "begin 1 A 0; begin 2 B 1;", *end = "end 2 B 4 shows 1; end 1 A 9";
    finishes_with(begin, "call 1 W d 3; ret W d 3.5;", end, "incomplete 1..4;incomplete 0..9;");
    finishes_with(begin, "call 1 W c 2 A; ret W c 2.5; call 1 W d 3; ret W d 3.5;", end,
                  "complete 1..4 self 3;"
                  "complete 0..9 self 6: Wc 2..2.5 self 0.5 wait 2, Wd 3..3.5 self 0.5;");
    finishes_with(begin, "spawn 1 A W 2; call 1 W d 3; ret W d 3.5;", end,
                  "complete 1..4 self 3;complete 0..9 self 7.5: Wd 3..3.5 self 0.5 wait 1;");
}

// A child works for the request of its spawner, whatever their label says.
static void children(void **state) {
    (void)state;
    const char *begin = "enter 1 A a 0; enter 2 B a 1;";
    const char *end = "ret B a 8; ret A a 9";
    const struct {
        const char *between, *expected;
    } cases[] = {
        {"spawn 1 B C 2; call 1 C d 3; ret C d 4;",
         "complete 1..8 self 0: Ba 1..8 self 5, >Cd 3..4 self 1 wait 1;complete 0..9 self 0: Aa 0..9 self 9;"},
        // its own child, and who is asked by that one
        {"spawn 1 B C 2; spawn 1 C D 3; call 1 W d 4 D; ret W d 5;",
         "complete 1..8 self 0: Ba 1..8 self 5, >Wd 4..5 self 1 wait 1;complete 0..9 self 0: Aa 0..9 self 9;"},
        // spawned by the one that is asked, of which it is not known at once for whom
        {"call 1 W d 2 B; spawn 1 W C 3; call 1 C e 4; ret C e 5; ret W d 6;",
         "complete 1..8 self 0: Ba 1..8 self 2, >Wd 2..6 self 2 wait 1, >>Ce 4..5 self 1 wait 1;complete 0..9 self 0: Aa 0..9 self 9;"},
        // its call overtakes its spawn: it has gone to the label's request
        {"call 1 C d 3; ret C d 4; spawn 1 B C 2;", "incomplete 1..8;incomplete 0..9;"},
        {"call 1 C d 4; ret C d 5; call 1 W d 2 B; spawn 1 W C 3; ret W d 6;",
         "incomplete 1..8;incomplete 0..9;"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        finishes_with(begin, cases[i].between, end, cases[i].expected);
    }
    // the label's request is over long ago: then it is nobody's
    finishes(
        "enter 1 A a 0; ret A a 1; now 2000; enter 2 B a 2001; call 1 C d 2003; ret C d 2004; spawn 1 B C 2002; ret B a 2005",
        "complete 0..1 self 0: Aa 0..1 self 1;incomplete 2001..2005;");
}

// Serials are those of what a process got or sent last, so that what it sends at what it begins
// then has a higher one.
static void sent_right_before(void **state) {
    (void)state;
    // A sent that under M's label at the end of its first request
    check(
        "enter 1 A a 0 3; ret A a 2; enter 3 M a 2.5; enter 2 A a 3 7; call 3 S s 4 A 7; ret S s 6; ret A a 8; ret M a 9",
        "complete 0..2 self 0: Aa 0..2 self 2, >Ss 4..6 self 0 async wait 2;complete 3..8 self 0: Aa 3..8 self 5;"
        "complete 2.5..9 self 0: Ma 2.5..9 self 6.5;",
        1, 0);
    check(
        "begin 1 A 0; end 1 A 2 serial 7; begin 3 M 2.5; begin 2 A 3; call 3 S s 4 A 7; ret S s 6; end 2 A 8; end 3 M 9",
        "complete 0..2 self 2: Ss 4..6 self 0 async wait 4;complete 3..8 self 5;complete 2.5..9 self 6.5;",
        1, 0);
    // and with a later one at the second
    check(
        "enter 1 A a 0 3; ret A a 2; enter 3 M a 2.5; enter 2 A a 3 7; call 3 S s 4 A 8; ret S s 6; ret A a 8; ret M a 9",
        "complete 0..2 self 0: Aa 0..2 self 2;complete 3..8 self 0: Aa 3..8 self 2, >Ss 4..6 self 2 wait 1;"
        "complete 2.5..9 self 0: Ma 2.5..9 self 6.5;",
        1, 0);
    // the first is closed: it is nobody's
    check(
        "enter 1 A a 0 3; ret A a 2; now 2000; enter 3 M a 2002; enter 2 A a 2003 7; call 3 S s 2004 A 7; ret S s 2006; ret A a 2008;"
        "ret M a 2009",
        "complete 0..2 self 0: Aa 0..2 self 2;complete 2003..2008 self 0: Aa 2003..2008 self 5;"
        "complete 2002..2009 self 0: Ma 2002..2009 self 7;",
        0, 1);
}

// S, of which nothing is known but its call at A's, sent that before it got the message that it is
// at, and not for M's request as far as is known: whose label M's is lent to, nobody can tell.
static void sent_before_by_another(void **state) {
    (void)state;
    finishes(
        "enter 1 A a 0; enter 2 B a 0; enter 3 M a 0; call 3 B b 0.5 X; ret B b 0.6; call 1 S s 1 A 5; ret S s 2;"
        "call 2 S s 3 B 20; call 3 W d 4 S 9 7; ret W d 5; ret S s 6; ret A a 7; ret B a 8; ret M a 9",
        "incomplete 0..7;incomplete 0..8;incomplete 0..9;");
}

// A call of a request that is over, whose return was lost, is not what its process is at when it
// has begun and ended another since.
static void left_open(void **state) {
    (void)state;
    finishes(
        "begin 1 A 0; call 1 A a 1 X 5; end 1 A 2; begin 2 A 3; end 2 A 4 serial 7; call 2 W d 5 A 9 8; ret W d 6",
        "incomplete 0..2;complete 3..4 self 1: Wd 5..6 self 0 async wait 2;");
}

// A process that has begun two requests makes calls that wait for what their sender was at. When
// one of the two ends, the calls within these are still theirs.
static void within_a_piece(void **state) {
    (void)state;
    finishes(
        "begin 1 A 0; call 1 B x 0.1 A 1; ret B x 0.2; begin 2 A 0.5; call 2 A b 1 B 80; call 2 A c 2 B 80; end 2 C 9; "
        "call 2 A d 3 B 80; ret A d 4; ret A c 5; ret A b 6; end 1 A 10",
        "complete 0.5..9 self 3.5: Ab 1..6 self 2, >Ac 2..5 self 2, >>Ad 3..4 self 1;"
        "complete 0..10 self 9.8: Bx 0.1..0.2 self 0.1 wait 0.1;");
}

// Nothing is known of M, that asks W under a label which B holds, too: both requests are
// incomplete.
static void nobody_knows(void **state) {
    (void)state;
    finishes(
        "enter 1 A a 0; enter 2 B a 1; call 1 B c 2 X; ret B c 3; call 1 W d 4 M; ret W d 5; ret B a 6; ret A a 7",
        "incomplete 1..6;incomplete 0..7;");
    // also when B's call is told later
    finishes(
        "enter 1 A a 0; enter 2 B a 1; call 1 W d 4 M; ret W d 5; call 1 B c 3 X; ret B c 4.5; ret B a 6; ret A a 7",
        "incomplete 1..6;incomplete 0..7;");
}

// M has asked S, and with the answer sent something to a slow process K, before it began what it is
// at.
static void queued_behind_an_answer(void **state) {
    (void)state;
    const char *known =
        "enter 1 A a 0; call 1 M u 1 A 5; call 1 S d 2 M 6 5; ret S d 3; ret M u 4; ret A a 5; enter 2 B a 5.5;"
        "call 2 M u 6 B 2;";
    finishes_with(
        known, "", "call 1 K k 7 M 8 7; ret K k 8; ret M u 9; ret B a 10",
        "complete 0..5 self 0: Aa 0..5 self 1, >Mu 1..4 self 1 wait 1, >>Sd 2..3 self 1 wait 1, >Kk 7..8 self 0 async wait 3;"
        "complete 5.5..10 self 0: Ba 5.5..10 self 1, >Mu 6..9 self 3 wait 0.5;");
    // M has asked S, with a higher serial, before it got anything else at B's: what it sent when it
    // had, it had sent before
    const char *asked = "call 2 S d 6.5 M 40 2; ret S d 6.7;";
    finishes_with(
        known, asked, "call 1 K k 7 M 39 20; ret K k 8; ret M u 9; ret B a 10",
        "complete 0..5 self 0: Aa 0..5 self 1, >Mu 1..4 self 1 wait 1, >>Sd 2..3 self 1 wait 1, >Kk 7..8 self 0 async wait 3;"
        "complete 5.5..10 self 0: Ba 5.5..10 self 1, >Mu 6..9 self 2.3 wait 0.5, >>Sd 6.5..6.7 self 0.2 wait 0.5;");
    // but not with a serial behind that one
    finishes_with(known, asked, "call 1 K k 7 M 41 20; ret K k 8; ret M u 9; ret B a 10",
                  "incomplete 0..5;incomplete 5.5..10;");
    // an answer to what it asked for since then could have come with that serial
    finishes_with(known, "", "call 1 K k 7 M 9 8; ret K k 8; ret M u 9; ret B a 10",
                  "incomplete 0..5;incomplete 5.5..10;");
}

// W's call overtakes S's return from A's work, and B's that S had got before it asked W: as far as
// is known by then S is at A's still, but what it has sent tells nothing of that one's end.
static void sent_later_than_it_seemed(void **state) {
    (void)state;
    finishes("enter 7 M a 0; call 8 M c 0.1 X; ret M c 0.2; ret M a 9;"
             "enter 1 A a 0; enter 2 B a 0.5; call 1 S c 1 A 5; call 1 W e 5 S 12 11; ret W e 5.5;"
             "ret S c 2; call 1 S d 4 B 11; ret S d 6; ret A a 7; ret B a 8",
             "complete 0..9 self 0: Ma 0..9 self 8.9, >Mc 0.1..0.2 self 0.1;"
             "incomplete 0..7;incomplete 0.5..8;");
}

// Labels are lent, as M shows that calls under another one than its own.
static const char *somebody_lends = "enter 7 M a 0; call 8 M c 1 X; ret M c 2; ret M a 100;";
static const char *lending_done = "complete 0..100 self 0: Ma 0..100 self 99, >Mc 1..2 self 1;";

// What is in doubt where labels are lent: both requests are incomplete. Else the label stands.
static void in_doubt(const char *commands, const char *incomplete, const char *complete) {
    char expected[800];
    snprintf(expected, sizeof expected, "%s%s", lending_done, incomplete);
    finishes_with(somebody_lends, commands, "", expected);
    // which may be seen later
    snprintf(expected, sizeof expected, "%s%s", incomplete, lending_done);
    finishes_with("", commands, somebody_lends, expected);
    finishes(commands, complete);
}

// A began its second request before it sent this under the label of its first.
static void begun_since_then(void **state) {
    (void)state;
    in_doubt(
        "enter 1 A a 0 2; ret A a 2; enter 2 A a 3 9; ret A a 4; call 1 W d 5 A 15; ret W d 6;",
        "incomplete 0..6;incomplete 3..4;",
        "complete 0..2 self 0: Aa 0..2 self 2, >Wd 5..6 self 0 async wait 3;complete 3..4 self 0: Aa 3..4 self 1;");
}

// S has worked for B's request, is idle, and asks W under the label of A's: it may be at B's still.
static void idle_under_another_label(void **state) {
    (void)state;
    in_doubt(
        "enter 1 A a 0; enter 2 B a 1; call 2 S d 2 B 5; ret S d 3; call 1 W e 4 S 9; ret W e 5; ret B a 6; ret A a 7;",
        "incomplete 1..6;incomplete 0..7;",
        "complete 1..6 self 0: Ba 1..6 self 3, >Sd 2..3 self 1 wait 1;"
        "complete 0..7 self 0: Aa 0..7 self 7, We 4..5 self 1;");
}

// S has spawned for A's, which raises its clock, nobody knows how far: what it sent to W may have
// come right behind that. Or S has had an answer since, at B's under the same label.
static void sent_behind_a_spawn(void **state) {
    (void)state;
    const char *begin = "enter 1 A a 0 1; call 1 S d 1 A 5;";
    const char *end = "ret S d 2; ret A a 3; enter 2 B a 4; call 1 S d 6 B 20; "
                      "call 1 W e 7 S 160 159; ret W e 8; ret S d 9; ret B a 10";
    finishes_with(begin, "spawn 1 S C 1.2;", end, "incomplete 0..3;incomplete 4..10;");
    finishes_with(
        begin, "", end,
        "complete 0..3 self 0: Aa 0..3 self 1, >Sd 1..2 self 1 wait 1;"
        "complete 4..10 self 0: Ba 4..10 self 1, >Sd 6..9 self 1 wait 2, >>We 7..8 self 1 wait 1;");
}

// So many calls that everything is overwritten that is remembered of a process without open calls:
// of one, or one of each of so many that those that were forgotten make room, too.
static void call_often(struct script *s, bool others) {
    enum { CALLS = 4 * LIMIT_FORGOTTEN_PROCESSES, EACH = 10000 };
    _Static_assert(CALLS > LIMIT_EPISODES, "all are overwritten");
    for (uint32_t i = 0; i < CALLS; i++) {
        uint64_t pid = others ? 100000 + i : 1000;
        tracker_call(
            s->tracker,
            &(struct tracker_call){
                .pid = pid, .token = 10 + i / EACH, .from = pid, .time = script_ns(3), .tier = 1});
        tracker_return(s->tracker, pid, 1, false, script_ns(3));
    }
}

// So many processes have calls open that S is forgotten when it has none. Where labels are lent,
// what it sent before is in doubt as if it was known.
static void forgotten_sender(void **state) {
    (void)state;
    const struct {
        bool lent, crowd, often, others;
        const char *b, *a;
    } cases[] = {
        {true, true, false, false, "incomplete 1..6;", "incomplete 0..7;"},
        {true, false, false, false, "incomplete 1..6;", "incomplete 0..7;"},
        {false, true, false, false, NULL, NULL},
        // what it was at is no longer known
        {true, true, true, false, NULL, "incomplete 0..7;"},
        {true, false, true, false, NULL, "incomplete 0..7;"},
        {true, true, true, true, NULL, "incomplete 0..7;"},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct script *s = script_new(true, 0);
        script_run(s, cases[i].lent ? somebody_lends : "");
        for (uint64_t pid = 1001; pid <= 1000 + LIMIT_IDLE_PROCESSES && cases[i].crowd; pid++) {
            tracker_call(s->tracker,
                         &(struct tracker_call){.pid = pid, .token = 9, .from = pid, .tier = 1});
        }
        script_run(s, "enter 1 A a 0; enter 2 B a 1; call 2 S d 2 B 5; ret S d 3;");
        if (cases[i].often) {
            call_often(s, cases[i].others);
        }
        script_run(s, "call 1 W e 4 S 9; ret W e 5; ret B a 6; ret A a 7; now 1200");
        char expected[400];
        snprintf(expected, sizeof expected, "%s%s%s", cases[i].lent ? lending_done : "",
                 cases[i].b ? cases[i].b
                            : "complete 1..6 self 0: Ba 1..6 self 3, >Sd 2..3 self 1 wait 1;",
                 cases[i].a ? cases[i].a : "complete 0..7 self 0: Aa 0..7 self 7, We 4..5 self 1;");
        script_expect(s, expected);
        script_free(s);
    }
}

// B's serials are as high as can be told. It was lent M's label at its first request, and has ended
// another one since: at which of them it sent this to W nobody can tell.
static void serials_at_the_top(void **state) {
    (void)state;
    const char *begin = "enter 4 M a 0; enter 1 B a 1 281474976710655;";
    const char *end = "ret B a 4; enter 2 B a 5 281474976710655; ret B a 6; "
                      "call 4 W e 7 B 281474976710655; ret W e 8; ret M a 9";
    const char *lent = "call 4 S d 2 B 281474976710655; ret S d 3;";
    finishes_with(begin, lent, end,
                  "incomplete 1..4;incomplete 5..8;complete 0..9 self 0: Ma 0..9 self 9;");
    finishes_with(begin, "", end,
                  "complete 1..4 self 0: Ba 1..4 self 3;"
                  "complete 5..6 self 0: Ba 5..6 self 1, >We 7..8 self 0 async wait 1;"
                  "complete 0..9 self 0: Ma 0..9 self 9;");
}

// A label that is not known yet came from a process which is at a request's call, or was lent by
// one: it is not the sender's own.
static void new_label_from_work(void **state) {
    (void)state;
    check(
        "enter 1 A a 0; call 1 B b 0.5 A 1; call 4 K c 1 B 10; ret K c 1.2; call 4 B e 0.9 B 10; ret B e 0.95; ret B b 1.1;"
        "enter 4 D d 0.2; ret D d 3; ret A a 4",
        "complete 0.2..3 self 0: Dd 0.2..3 self 2.8;complete 0..4 self 0: Aa 0..4 self 2.9, >Bb 0.5..1.1 self 0.4 wait 0.5, "
        ">>Be 0.9..0.95 self 0.05, >>Kc 1..1.2 self 0.2 wait 0.05;",
        2, 0);
    check(
        "enter 1 A a 0; call 1 B b 0.5 A 1; call 4 B e 0.9 B 10; ret B e 0.95; ret B b 1.1; call 4 K c 1.15 B 10; ret K c 1.2;"
        "enter 4 D d 0.2; ret D d 3; ret A a 4",
        "complete 0.2..3 self 0: Dd 0.2..3 self 2.8;complete 0..4 self 0: Aa 0..4 self 2.8, >Bb 0.5..1.1 self 0.55 wait 0.5, "
        ">>Be 0.9..0.95 self 0.05, >Kc 1.15..1.2 self 0.05 wait 0.05;",
        2, 0);
}

// A label that is not known yet came from a process inside of its only entry, whose serial tells
// nothing.
static void new_label_from_entry(void **state) {
    (void)state;
    check("enter 7 A a 0; call 14 S s 1 A 5; ret S s 2; enter 14 B b 0.5; ret B b 4; ret A a 5",
          "complete 0.5..4 self 0: Bb 0.5..4 self 3.5;"
          "complete 0..5 self 0: Aa 0..5 self 3, >Ss 1..2 self 1 wait 1;",
          1, 0);
}

// P asks from within a call under a label that came from W, which has worked for the label's
// request: it may have lent it, or sent P the next message.
static void answered_by_a_known_one(void **state) {
    (void)state;
    const char *begin =
        "begin 5 M 0; call 5 W d 0.5 M 3; ret W d 0.6; begin 4 A 0.1; begin 2 B 0.2;"
        "call 2 P p 0.7 B 1;";
    const char *end = "call 5 P q 1 W 28; ret P q 2; ret P p 3; end 5 M 4; end 2 B 5; end 4 A 6";
    // it has lent it to A
    finishes_with(begin, "call 5 A c 0.8 X 9; ret A c 0.9;", end,
                  "incomplete 0..4;incomplete 0.2..5;"
                  "complete 0.1..6 self 5.8: Ac 0.8..0.9 self 0.1;");
    // another label was lent: this one may have been, too
    const char *lending = "call 4 M c 0.8 X 9; ret M c 0.9;";
    const char *lent = "incomplete 0..4;incomplete 0.2..5;complete 0.1..6 self 5.9;";
    finishes_with(begin, lending, end, lent);
    // also when that is seen later
    finishes_with(begin, "call 5 P q 1 W 28; ret P q 2;",
                  "call 4 M c 2.5 X 9; ret M c 2.6; ret P p 3; end 5 M 4; end 2 B 5; end 4 A 6",
                  lent);
    // nobody was lent any
    finishes_with(begin, "", end,
                  "complete 0..4 self 2: Wd 0.5..0.6 self 0.1 wait 0.5, Pq 1..2 self 1 wait 0.4;"
                  "complete 0.2..5 self 2: Pp 0.7..3 self 2.3 wait 0.5;"
                  "complete 0.1..6 self 5.9;");
}

// In doubt where labels were lent within the grace time before, as no loss may have made it seem.
static void lent_long_ago(void **state) {
    (void)state;
    const char *lending =
        "begin 8 L 0; begin 7 N 0; call 8 N c 1 X 9; ret N c 2; end 7 N 3; end 8 L 4;";
    const char *then = "begin 5 M 900; call 5 W d 901 M 3; ret W d 902; begin 2 B 903;"
                       "call 2 P p 904 B 1; call 5 P q 905 W 28; ret P q 906; ret P p 907;"
                       "end 5 M 908; end 2 B 909";
    finishes_with(lending, "", then,
                  "complete 0..3 self 2: Nc 1..2 self 1;complete 0..4 self 4;"
                  "incomplete 900..908;incomplete 903..909;");
    const char *whole =
        "complete 900..908 self 2: Wd 901..902 self 1 wait 1, Pq 905..906 self 1 wait 3;"
        "complete 903..909 self 2: Pp 904..907 self 3 wait 1;";
    char expected[400];
    snprintf(expected, sizeof expected, "incomplete 0..3;incomplete 0..4;%s", whole);
    finishes_with("begin 8 L 0; begin 7 N 0; lost;",
                  "call 8 N c 1 X 9; ret N c 2; end 7 N 3; end 8 L 4;", then, expected);
    lending =
        "begin 8 L -200; begin 7 N -200; call 8 N c -190 X 9; ret N c -189; end 7 N -188; end 8 L -187;";
    snprintf(expected, sizeof expected,
             "complete -200..-188 self 11: Nc -190..-189 self 1;complete -200..-187 self 13;%s",
             whole);
    finishes_with(lending, "", then, expected);
}

// What a sender was at that has nothing open, by the serial.
static void sent_by_an_idle_one(void **state) {
    (void)state;
    // at the first of its two requests
    check(
        "enter 9 M a 0; enter 1 A a 1 3; ret A a 2; enter 2 A a 3 7; ret A a 4; call 9 S s 5 A 6; ret S s 6; ret M a 9",
        "complete 1..2 self 0: Aa 1..2 self 1, >Ss 5..6 self 0 async wait 3;complete 3..4 self 0: Aa 3..4 self 1;"
        "complete 0..9 self 0: Ma 0..9 self 9;",
        1, 0);
    // behind the second's begin, under a label that it was lent at the first
    finishes(
        "enter 5 M a 0; enter 1 A a 0.5 3; call 5 A c 1 X 5; ret A c 1.1; ret A a 1.5; enter 2 A a 2 8; ret A a 2.5;"
        "call 5 S s 3 A 10; ret S s 3.2; ret M a 9",
        "incomplete 0.5..3.2;incomplete 2..2.5;complete 0..9 self 0: Ma 0..9 self 9;");
    // the begin's serial does not tell: at its latest request, rather than at what nobody has seen
    check("enter 6 M a 0; enter 3 A a 1; ret A a 2; call 6 S s 3 A 13; ret S s 4; ret M a 9",
          "complete 1..2 self 0: Aa 1..2 self 1, >Ss 3..4 self 0 async wait 1;"
          "complete 0..9 self 0: Ma 0..9 self 9;",
          1, 0);
}

// S works for A and then for B, both under M's label.
static void sent_before_under_the_same(void **state) {
    (void)state;
    const char *begin =
        "enter 1 M a 0; enter 2 A a 0 2; enter 4 B a 0 2; call 1 S s 1 A 5; ret S s 2; call 1 S t 3 B 20;";
    const char *end = "ret W w 5; ret S t 6; ret A a 7; ret B a 8; ret M a 9";
    const struct {
        const char *between, *expected;
    } cases[] = {
        {"call 1 W w 4 S 6 5;",
         "complete 0..7 self 0: Aa 0..7 self 2, >Ss 1..2 self 1 wait 1, >Ww 4..5 self 1 wait 2;"
         "complete 0..8 self 0: Ba 0..8 self 2, >St 3..6 self 3 wait 3;complete 0..9 self 0: Ma 0..9 self 9;"},
        {"call 1 W w 4 S 21 20;",
         "complete 0..7 self 0: Aa 0..7 self 5, >Ss 1..2 self 1 wait 1;"
         "complete 0..8 self 0: Ba 0..8 self 2, >St 3..6 self 1 wait 3, >>Ww 4..5 self 1 wait 1;complete 0..9 self 0: Ma 0..9 self 9;"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        finishes_with(begin, cases[i].between, end, cases[i].expected);
    }
}

// S has spawned C and sent it something at A's request, before it worked for B under the same
// label, whose message is older.
static void sent_to_a_child(void **state) {
    (void)state;
    check(
        "enter 7 M a 0; enter 1 A a 0 2; enter 2 B a 0 2; call 7 S s 1 A 6; spawn 7 S C 1.1; ret S s 1.5; "
        "call 7 S t 2 B 5; ret S t 2.5; call 7 C e 3 S 144 143; ret C e 4; ret A a 7; ret B a 8; ret M a 9",
        "complete 0..7 self 0: Aa 0..7 self 5.5, >Ss 1..1.5 self 0.5 wait 1, >>Ce 3..4 self 1 wait 1.9;"
        "complete 0..8 self 0: Ba 0..8 self 5.5, >St 2..2.5 self 0.5 wait 2;complete 0..9 self 0: Ma 0..9 self 9;",
        3, 0);
}

// S has sent W something at A's request, before it worked for B under the same label, and for M
// under another one.
static void sent_before_both(void **state) {
    (void)state;
    finishes(
        "enter 2 B a 0 2; enter 1 A a 0 2; enter 3 M a 0; call 1 S s 1 A 5; ret S s 2; call 1 S t 3 B 20; ret S t 4;"
        "call 2 B b 4.5; ret B b 4.6; call 3 S u 5 M 30; call 1 W w 6 S 6 5; ret W w 7; ret S u 8; ret A a 9; ret B a 10; ret M a 11",
        "complete 0..9 self 0: Aa 0..9 self 2, >Ss 1..2 self 1 wait 1, >Ww 6..7 self 1 wait 4;"
        "complete 0..10 self 0: Ba 0..10 self 5.9, >St 3..4 self 1 wait 3, >Bb 4.5..4.6 self 0.1;"
        "complete 0..11 self 0: Ma 0..11 self 3, >Su 5..8 self 3 wait 5;");
}

// What P is at has come with an older message than those that it had got: it may have sent that at
// something that nobody saw.
static void old_message(void **state) {
    (void)state;
    finishes(
        "enter 1 A a 0; enter 4 D a 0; enter 7 C a 0; call 7 P p 0.5 C 50; ret P p 0.6; call 1 P u 1 A 1; call 4 W w 2 P 60 55;"
        "ret W w 3; ret P u 4; ret A a 5; ret D a 6; ret C a 7",
        "incomplete 0..5;incomplete 0..6;complete 0..7 self 0: Ca 0..7 self 6.4, >Pp 0.5..0.6 self 0.1 wait 0.5;");
    // a newer one tells
    check(
        "enter 1 A a 0; enter 4 D a 0; enter 7 C a 0; call 7 P p 0.5 C 50; ret P p 0.6; call 1 P u 1 A 51; call 4 W w 2 P 60 55;"
        "ret W w 3; ret P u 4; ret A a 5; ret D a 6; ret C a 7",
        "complete 0..5 self 0: Aa 0..5 self 1, >Pu 1..4 self 1 wait 1, >>Ww 2..3 self 1 wait 1;complete 0..6 self 0: Da 0..6 self 6;"
        "complete 0..7 self 0: Ca 0..7 self 6.4, >Pp 0.5..0.6 self 0.1 wait 0.5;",
        1, 0);
}

// H works for A alone, and gets the label of A's request before back with a worker, which another
// process was lent. A had H's answer before it began the request that it is at.
static void helper(void **state) {
    (void)state;
    const char *before = "enter 1 A a 0; enter 2 B a 0.5; call 1 H u 1 A 1; ret H u 3;"
                         "call 1 W d 3.2 B 9; ret W d 3.4; ret B a 4; ret A a 5";
    const struct {
        const char *then;
        bool known;
    } cases[] = {
        {"enter 3 A a 6 7 H; call 3 H u 7 A 8; call 1 W d 8 H 20 19; ret W d 9; ret H u 10; ret A a 11",
         true},
        // the answer that A had got last is another one's
        {"enter 3 A a 6 7 X; call 3 H u 7 A 8; call 1 W d 8 H 20 19; ret W d 9; ret H u 10; ret A a 11",
         false},
        // or older than what A asked for last
        {"enter 3 A a 6 1 H; call 3 H u 7 A 2; call 1 W d 8 H 20 19; ret W d 9; ret H u 10; ret A a 11",
         false},
        // or older than what H sent
        {"enter 3 A a 6 30 H; call 3 H u 7 A 8; call 1 W d 8 H 20 19; ret W d 9; ret H u 10; ret A a 11",
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        finishes_with(
            before, "", cases[i].then,
            cases[i].known
                ? "complete 0.5..4 self 0: Ba 0.5..4 self 0.6, >Wd 3.2..3.4 self 0.2 wait 2.7;"
                  "complete 0..5 self 0: Aa 0..5 self 2, >Hu 1..3 self 2 wait 1;"
                  "complete 6..11 self 0: Aa 6..11 self 1, >Hu 7..10 self 1 wait 1, >>Wd 8..9 self 1 wait 1;"
                : "complete 0.5..4 self 0: Ba 0.5..4 self 0.6, >Wd 3.2..3.4 self 0.2 wait 2.7;"
                  "incomplete 0..5;incomplete 6..11;");
    }
    // H was still at it when A began the next one
    finishes(
        "enter 1 A a 0; enter 2 B a 0.5; call 1 H u 1 A 1; call 1 W d 3.2 B 9; ret W d 3.4; ret B a 4; ret A a 5; "
        "enter 3 A a 6 7 H; ret H u 6.5; call 3 H u 7 A 8; call 1 W d 8 H 20 19; ret W d 9; ret H u 10; ret A a 11",
        "complete 0.5..4 self 0: Ba 0.5..4 self 0.6, >Wd 3.2..3.4 self 0.2 wait 2.7;incomplete 0..6.5;incomplete 6..11;");
    // nobody was lent that label
    finishes_with("enter 1 A a 0; call 1 H u 1 A 1; ret H u 3; ret A a 5", "", cases[0].then,
                  "incomplete 0..5;incomplete 6..11;");
}

// What a server calls from within a call is of that call's request, when the label came with an
// answer.
static void answers(void **state) {
    (void)state;
    check(
        "begin 1 A 0; begin 2 B 0.5; call 2 W c 1 B 10; call 1 W d 2 X 15; ret W d 3; ret W c 4; end 2 B 5; end 1 A 6",
        "complete 0.5..5 self 1: Wc 1..4 self 2 wait 0.5, >Wd 2..3 self 1;complete 0..6 self 6;", 1,
        0);
    // and the next message's when it is none
    check(
        "begin 1 A 0; begin 2 B 0.5; call 2 W c 1 B 10; call 1 W d 2 A 8; ret W d 3; ret W c 4; end 2 B 5; end 1 A 6",
        "complete 0.5..5 self 1: Wc 1..4 self 3 wait 0.5;complete 0..6 self 3: Wd 2..3 self 1 wait 2;",
        0, 0);
}

// What a process says itself goes before its own entry, and before the label that a message brings
// while it says so.
static void said(void **state) {
    (void)state;
    const char *begin = "enter 1 A a 0; begin 2 B 0.5;";
    const char *end = "end 2 B 8; ret A a 9; now 60000";
    const struct {
        const char *between, *expected;
        uint64_t recredited;
    } cases[] = {
        {"says 2 A 1 within; call 2 A c 2; ret A c 3; call 2 W d 3.5 A; ret W d 4; says 2 A 5 no_more; call 1 A c 6; ret A c 7;",
         "complete 0.5..8 self 5.5: Ac 2..3 self 1, Wd 3.5..4 self 0.5 wait 0.5;complete 0..9 self 0: Aa 0..9 self 8, >Ac 6..7 self 1;",
         0},
        // a message has brought A what B, that began 3, gave back
        {"begin 3 C 0.7; says 2 A 1 within; call 3 A c 2; ret A c 3; says 2 A 5 no_more; call 1 A c 6; ret A c 7; end 3 C 7;",
         "complete 0.7..7 self 6.3;complete 0.5..8 self 6.5: Ac 2..3 self 1;complete 0..9 self 0: Aa 0..9 self 8, >Ac 6..7 self 1;",
         1},
        {"begin 3 C 0.7; says 2 A 1 from_now; call 2 A c 1.5; ret A c 1.7; call 3 A c 2; ret A c 3; end 3 C 7;",
         "complete 0.7..7 self 6.3;complete 0.5..8 self 7.3: Ac 1.5..1.7 self 0.2;"
         "complete 0..9 self 0: Aa 0..9 self 8, >Ac 2..3 self 1;",
         1},
        // what it begins later is a later word
        {"says 2 A 1 within; says 2 A 1.1 no_more; call 2 A c 2; ret A c 3;",
         "complete 0.5..8 self 7.5;complete 0..9 self 0: Aa 0..9 self 8, >Ac 2..3 self 1;", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct script *s = script_new(true, 0);
        script_run(s, begin);
        script_run(s, cases[i].between);
        script_run(s, end);
        script_expect(s, cases[i].expected);
        assert_int_equal(s->counts.recredited_calls, cases[i].recredited);
        script_free(s);
    }
}

// An entry within what a process says is a later word; behind it the process says the same again.
static void begun_while_said(void **state) {
    (void)state;
    check(
        "begin 1 B 0; says 1 A 1 within; call 1 A c 1.5; ret A c 2; enter 2 A a 3; call 2 A c 4; ret A c 5; ret A a 6;"
        "call 1 A c 7; ret A c 8; says 1 A 9 no_more; end 1 B 10",
        "complete 3..6 self 0: Aa 3..6 self 2, >Ac 4..5 self 1;"
        "complete 0..10 self 8.5: Ac 1.5..2 self 0.5, Ac 7..8 self 1;",
        0, 0);
}

// Messages that are told as taken: D, which makes no calls, works for who has asked it, and what V
// does for D is that one's.
static void through_the_dark(void **state) {
    (void)state;
    check(
        "enter 1 A a 0; take 1 D 1 A 1; take 1 V 2 D 2 1; call 1 V d 3 D 2 1; ret V d 4; ret A a 9",
        "complete 0..9 self 0: Aa 0..9 self 5, >Vd 3..4 self 1 wait 3;", 0, 0);
    // B has its worker D from P, under the label of A, which has given it back
    const char *pool =
        "enter 1 A a 0; enter 2 B a 1; take 2 P 2 B 1; take 1 P 3 A 1; take 1 B 4 P 4 1; ";
    const char *work = "take 1 D 5 B 5 4; take 1 V 6 D 6 5; call 1 V d 6 D 6 5; ret V d 7; ";
    const char *expected =
        "complete 1..8 self 0: Ba 1..8 self 1, >Vd 6..7 self 1 wait 5;complete 0..9 self 0: Aa 0..9 self 9;";
    char commands[600];
    snprintf(commands, sizeof commands, "%s%sret B a 8; ret A a 9", pool, work);
    check(commands, expected, 1, 0);
    // the same when A has asked D, too, before and behind that
    snprintf(commands, sizeof commands,
             "%stake 1 D 2.5 A 0; %stake 1 D 7.5 A 20; ret B a 8; ret A a 9", pool, work);
    check(commands, expected, 1, 0);
}

// H, which has begun no request and makes no calls, waits for its worker itself: nobody can tell
// whether what it gets under A's label is that, or new work.
static void answer_or_new_work(void **state) {
    (void)state;
    const char *begin = "enter 1 A a 0; enter 2 B a 1; call 1 X c 0.2 A 0; ret X c 0.3; "
                        "take 2 H 1.5 B 1; ";
    const char *end = "take 1 V 6 H 6 4; call 1 V d 6 H 6 4; ret V d 7; ret B a 8; ret A a 9";
    // it has asked P, and its next message is of P
    struct script *s = script_new(true, 0);
    script_run(s, begin);
    script_run(s, "take 2 P 2 H 2 1; take 1 P 3 A 1; take 1 H 4 P 4 1;");
    script_run(s, end);
    script_run(s, "now 60000");
    assert_int_equal(s->counts.recredited_calls, 0);
    script_free(s);
    // it has asked nobody
    finishes_with(begin, "take 1 P 3 A 1; take 1 H 4 P 4 1;", end,
                  "complete 1..8 self 0: Ba 1..8 self 7;"
                  "complete 0..9 self 0: Aa 0..9 self 2, >Xc 0.2..0.3 self 0.1 wait 0.2, "
                  ">Vd 6..7 self 1 wait 5.7;");
}

// A has worked out what B waited for, under A's label, and both have W work for them. W gets V's
// answer for A and the message of B with the same serial, and so asks V for B with the same
// previous one that its answer to A has. When it was sent tells which of the two it is; without
// that both are incomplete.
static void equal_serials(void **state) {
    (void)state;
    const char *sent[] = {"send 1 W 2.9 11; ", ""};
    for (int known = 0; known < 2; known++) {
        char commands[1000];
        snprintf(commands, sizeof commands,
                 "enter 1 A a 0; enter 2 B a 0.5; take 1 C 1 A 5 4; take 1 B 1.1 C 6 5; "
                 "call 1 B c 1.2 C 6 5; ret B c 1.3; "
                 "take 1 W 2.1 A 7 4; take 1 V 2.3 W 8 7; call 1 V d 2.4 W 8 7; ret V d 2.5; "
                 "take 1 W 2.7 V 9 8; take 1 W 2.8 B 9 6; take 1 A 3 W 10 9; "
                 "%stake 1 V 3.1 W 11 9; call 1 V d 3.2 W 11 9; ret V d 3.3; ret A a 8; ret B a 9",
                 sent[known]);
        struct script *s = script_new(true, 0);
        script_run(s, commands);
        script_run(s, "now 60000");
        assert_int_equal(s->reasons[REASON_CAUSE], known == 0 ? 0 : 2);
        if (known == 0) {
            script_expect(s,
                          "complete 0..8 self 0: Aa 0..8 self 5.5, >Vd 2.4..2.5 self 0.1 wait 2.4;"
                          "complete 0.5..9 self 0: Ba 0.5..9 self 6.4, >Bc 1.2..1.3 self 0.1, "
                          ">Vd 3.2..3.3 self 0.1 wait 1.9;");
        }
        script_free(s);
    }
}

// W works for three processes in turn, whose answers are always late: they have them when W is at
// the next one's. However long it has done so, each message that it gets is known to be new work.
static void late_answers(void **state) {
    (void)state;
    enum { REQUESTS = 300, WHO = 3 };
    struct script *s = script_new(true, 0);
    char commands[200];
    for (int i = 0; i < REQUESTS; i++) {
        int label = i + 1, at = 10 * i, sent = 4 * i;
        char who = (char)('A' + i % WHO), last = (char)('A' + (i + WHO - 1) % WHO);
        snprintf(commands, sizeof commands,
                 "begin %d %c %d; take %d W %d.1 %c %d; call %d W d %d.2 %c %d; ", label, who, at,
                 label, at, who, sent + 1, label, at, who, sent + 1);
        script_run(s, commands);
        if (i > 0) {
            snprintf(commands, sizeof commands, "take %d %c %d.3 W %d %d; end %d %c %d.4", i, last,
                     at, sent, sent - 1, i, last, at);
            script_run(s, commands);
        }
        snprintf(commands, sizeof commands,
                 "take %d S %d.5 W %d %d; take %d W %d.6 S %d %d; ret W d %d.7", label, at,
                 sent + 2, sent + 1, label, at, sent + 3, sent + 2, at);
        script_run(s, commands);
        s->len = 0;
    }
    uint32_t taken = s->pool->hop_count;
    assert_true(taken > 3 * REQUESTS);
    for (uint32_t i = 1; i <= taken; i++) {
        assert_true(s->pool->hops[i % LIMIT_HOPS].sure);
    }
    script_free(s);
}

// What a spawned child that makes no calls asks for is its parent's, whatever the label.
static void child_in_the_dark(void **state) {
    (void)state;
    check(
        "enter 1 A a 0; enter 2 B a 1; take 1 B 2 A 1; spawn 1 B C 3; take 1 V 4 C 34 33; "
        "call 1 V d 5 C 34 33; ret V d 6; ret B a 8; ret A a 9",
        "complete 1..8 self 0: Ba 1..8 self 4, >Vd 5..6 self 1 wait 2;complete 0..9 self 0: Aa 0..9 self 9;",
        2, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(through_the_dark),
        cmocka_unit_test(answer_or_new_work),
        cmocka_unit_test(equal_serials),
        cmocka_unit_test(late_answers),
        cmocka_unit_test(child_in_the_dark),
        cmocka_unit_test(lent_worker),
        cmocka_unit_test(hops),
        cmocka_unit_test(overtaken),
        cmocka_unit_test(serial_at_the_end),
        cmocka_unit_test(sent_before_the_answer),
        cmocka_unit_test(turn_or_recursion),
        cmocka_unit_test(overtook_the_lending),
        cmocka_unit_test(strangers),
        cmocka_unit_test(queued_cast),
        cmocka_unit_test(left_open),
        cmocka_unit_test(sent_right_before),
        cmocka_unit_test(sent_before_by_another),
        cmocka_unit_test(children),
        cmocka_unit_test(dead_sender),
        cmocka_unit_test(begin_to_come),
        cmocka_unit_test(sender_to_come),
        cmocka_unit_test(ahead_of_the_sender),
        cmocka_unit_test(ahead_before_labels_are_lent),
        cmocka_unit_test(sent_before_under_a_new_label),
        cmocka_unit_test(overtook_the_end),
        cmocka_unit_test(lent_after_all),
        cmocka_unit_test(behind_the_sender),
        cmocka_unit_test(shown_at_the_end),
        cmocka_unit_test(within_a_piece),
        cmocka_unit_test(nobody_knows),
        cmocka_unit_test(helper),
        cmocka_unit_test(queued_behind_an_answer),
        cmocka_unit_test(sent_later_than_it_seemed),
        cmocka_unit_test(begun_since_then),
        cmocka_unit_test(sent_behind_a_spawn),
        cmocka_unit_test(forgotten_sender),
        cmocka_unit_test(serials_at_the_top),
        cmocka_unit_test(idle_under_another_label),
        cmocka_unit_test(answers),
        cmocka_unit_test(said),
        cmocka_unit_test(begun_while_said),
        cmocka_unit_test(new_label_from_work),
        cmocka_unit_test(new_label_from_entry),
        cmocka_unit_test(answered_by_a_known_one),
        cmocka_unit_test(lent_long_ago),
        cmocka_unit_test(sent_by_an_idle_one),
        cmocka_unit_test(sent_before_under_the_same),
        cmocka_unit_test(sent_before_both),
        cmocka_unit_test(sent_to_a_child),
        cmocka_unit_test(old_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
