// SPDX-License-Identifier: Apache-2.0
// What calls waited, where the stream tells when messages were sent and taken.
#include "base/limits.h"
#include "model/requests/tracker.h"

#include "../request_script.h"

// What finishes of such commands.
static void finishes(const char *commands, const char *expected) {
    struct script *s = script_new(true, 0);
    script_run(s, commands);
    script_run(s, "now 60000");
    assert_string_equal(s->told, expected);
    script_free(s);
}

// S has worked for another request before, and rested since then.
#define BEFORE "enter 9 Q a 0; take 9 S 0.1 Q 1; call 9 S d 0.2 Q 1; ret S d 0.3; ret Q a 0.4; "
#define BEFORE_TOLD "complete 0..0.4 self 0: Qa 0..0.4 self 0.1, >Sd 0.2..0.3 self 0.1 wait 0.2;"

// From when a message is sent until it is taken. What its process does from then on until its call
// begins is the caller's own time.
static void from_sent_to_taken(void **state) {
    (void)state;
    finishes("enter 1 A a 0; send 1 A 1 1; take 1 V 3 A 1; call 1 V d 4 A 1; ret V d 5; ret A a 9",
             "complete 0..9 self 0: Aa 0..9 self 6, >Vd 4..5 self 1 wait 2!;");
    // below the request itself that is covered by nothing
    finishes("begin 1 A 0; send 1 A 1 1; take 1 V 3 A 1; call 1 V d 4 A 1; ret V d 5; end 1 A 9",
             "complete 0..9 self 6: Vd 4..5 self 1 wait 2!;");
    // without the sending it is an estimate
    finishes("enter 1 A a 0; take 1 V 3 A 1; call 1 V d 4 A 1; ret V d 5; ret A a 9",
             "complete 0..9 self 0: Aa 0..9 self 4, >Vd 4..5 self 1 wait 4;");
    // and so it is where what is told cannot be
    finishes(
        "enter 1 A a 0; send 1 A 3.5 1; take 1 V 3 A 1; call 1 V d 4 A 1; ret V d 5; ret A a 9",
        "complete 0..9 self 0: Aa 0..9 self 4, >Vd 4..5 self 1 wait 4;");
}

// By way of D, which makes no calls: each message has waited, and the first of two calls that D
// asked for has got what D itself was waited for.
static void by_way_of_others(void **state) {
    (void)state;
    finishes("enter 1 A a 0; send 1 A 0.5 1; take 1 D 1 A 1; "
             "send 1 D 1.5 2; take 1 V 2 D 2 1; call 1 V d 3 D 2 1; ret V d 4; "
             "send 1 D 4.5 3; take 1 W 6 D 3 1; call 1 W d 6 D 3 1; ret W d 7; ret A a 9",
             "complete 0..9 self 0: Aa 0..9 self 4.5, >Vd 3..4 self 1 wait 1!, "
             ">Wd 6..7 self 1 wait 1.5!;");
    // of D's message nobody knows when it was sent
    finishes("enter 1 A a 0; take 1 D 1 A 1; "
             "send 1 D 1.5 2; take 1 V 2 D 2 1; call 1 V d 3 D 2 1; ret V d 4; ret A a 9",
             "complete 0..9 self 0: Aa 0..9 self 5, >Vd 3..4 self 1 wait 3;");
}

// Further calls at the same message have not waited, whatever the sender does meanwhile; at the
// next one they have.
static void calls_of_one_message(void **state) {
    (void)state;
    finishes("enter 1 A a 0; send 1 A 1 1; take 1 V 2 A 1; call 1 V d 2 A 1; ret V d 3; "
             "call 1 A b 3.5 A; ret A b 4; call 1 V e 5 A 1; ret V e 6; "
             "send 1 A 6.5 2; take 1 V 7 A 2 1; call 1 V d 7 A 2 1; ret V d 8; ret A a 9",
             "complete 0..9 self 0: Aa 0..9 self 4, >Vd 2..3 self 1 wait 1!, >Ab 3.5..4 self 0.5, "
             ">Ve 5..6 self 1, >Vd 7..8 self 1 wait 0.5!;");
}

// Where scheduling is traced: who rested when the message was sent was in the run queue until it
// ran; who ran, was not. Rests from before messages are told are not known.
static void run_queue(void **state) {
    (void)state;
    const char *ask = "enter 1 A a 1; send 1 A 2 1; ";
    const char *take = "take 1 S 4 A 1; call 1 S d 4 A 1; ret S d 5; ret A a 9";
    static const struct {
        const char *rests, *told;
    } cases[] = {
        {"off S 0.5 3; ", "!1"},                                 // 1 in the queue, 1 in the mailbox
        {"off S 0.5 1.5; ", "!0"},                               // it ran,
        {"off S 0.5 1.5; off S 2.5 3.5; ", "!0"},                // and waited for something else
        {"off S 0.5 2.5; off S 2.6 2.7; off S 3 3.9; ", "!0.5"}, // it was woken several times
        {"off S 0.5 2; ", "!0"},                                 // at that moment
        {"off S 2 3; ", "!1"},
        {"", "!"}, // not traced
        {"off S 2.5 3; ", "!"},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        char commands[400], expected[400];
        snprintf(commands, sizeof commands, "%s%s%s%s", BEFORE, ask, cases[i].rests, take);
        snprintf(expected, sizeof expected,
                 "%scomplete 1..9 self 0: Aa 1..9 self 5, >Sd 4..5 self 1 wait 2%s;", BEFORE_TOLD,
                 cases[i].told);
        finishes(commands, expected);
    }
    // of both messages, or nothing is known
    finishes(BEFORE "enter 1 A a 1; send 1 A 2 1; off S 0.5 3; take 1 S 4 A 1; send 1 S 5 2; "
                    "take 1 V 6 S 2 1; call 1 V d 6 S 2 1; ret V d 7; ret A a 9",
             BEFORE_TOLD "complete 1..9 self 0: Aa 1..9 self 4, >Vd 6..7 self 1 wait 3!;");
}

// A loss may have been of when a process ran.
static void rests_before_a_loss(void **state) {
    (void)state;
    const char *begin = "enter 9 S a 0; ret S a 0.4; take 8 X 0.4 Y 1; off S 0.5 3; ";
    const char *end = "take 1 S 4 A 1; call 1 S d 4 A 1; ret S d 5; ret A a 9; now 60000";
    for (unsigned lost = 0; lost < 2; lost++) {
        struct script *s = script_new(true, 0);
        script_run(s, begin);
        script_run(s, lost ? "lost; enter 1 A a 1; send 1 A 2 1" : "enter 1 A a 1; send 1 A 2 1");
        script_run(s, end);
        assert_non_null(
            strstr(s->told, lost ? ">Sd 4..5 self 1 wait 2!;" : ">Sd 4..5 self 1 wait 2!1;"));
        script_free(s);
    }
}

// Two messages of one sender that have the same serial under a lent label: nobody can tell which is
// which while both are on their way.
static void equal_serials(void **state) {
    (void)state;
    finishes("enter 1 A a 0; send 1 A 1 1; send 1 A 2 1; take 1 V 3 A 1; call 1 V d 3 A 1; "
             "ret V d 4; ret A a 9",
             "complete 0..9 self 0: Aa 0..9 self 5, >Vd 3..4 self 1 wait 3;");
    // one was taken before the other was sent
    finishes("enter 1 A a 0; send 1 A 1 1; take 1 X 1.5 A 1; send 1 A 2 1; take 1 V 3 A 1; "
             "call 1 V d 3 A 1; ret V d 4; ret A a 9",
             "complete 0..9 self 0: Aa 0..9 self 7, >Vd 3..4 self 1 wait 1!;");
}

// A piece takes what its calls waited along.
static void in_a_piece(void **state) {
    (void)state;
    finishes("enter 1 A a 0; enter 2 B a 0.1; send 1 A 1 1; take 1 V 2 A 1; call 1 V d 2 A 1; "
             "send 1 V 2.5 2; take 1 W 3 V 2 1; call 1 W e 3.5 V 2 1; ret W e 4; ret V d 5; "
             "ret A a 9; ret B a 9",
             "complete 0..9 self 0: Aa 0..9 self 5, >Vd 2..5 self 2 wait 1!, "
             ">>We 3.5..4 self 0.5 wait 0.5!;complete 0.1..9 self 0: Ba 0.1..9 self 8.9;");
}

// More messages on their way than are remembered: of these nothing is measured, and none is taken
// for another one.
static void many_on_their_way(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    script_run(s, "enter 1 A a 0; send 1 A 1 1");
    for (uint64_t i = 0; i < 4 * (uint64_t)LIMIT_SENDS; i++) {
        tracker_sent(
            s->tracker,
            &(struct tracker_call){
                .pid = 9, .token = 7, .from = 9, .full_serial = 100 + i, .time = script_ns(1)});
    }
    script_run(s, "take 1 V 3 A 1; call 1 V d 3 A 1; ret V d 4; send 1 A 5 4; take 1 V 6 A 4 1; "
                  "call 1 V d 6 A 4 1; ret V d 7; ret A a 9; now 60000");
    assert_string_equal(s->told, "complete 0..9 self 0: Aa 0..9 self 3, >Vd 3..4 self 1 wait 3, "
                                 ">Vd 6..7 self 1 wait 1!;");
    script_free(s);
}

// Somebody else is told of them now.
static void told_no_more(void **state) {
    (void)state;
    struct script *s = script_new(true, 0);
    script_run(s, "enter 1 A a 0; send 1 A 1 1; take 1 V 2 A 1; call 1 V d 2 A 1; ret V d 3");
    tracker_takes_nothing(s->tracker);
    script_run(s, "call 1 A b 3.5 A; ret A b 4; call 1 V e 5 A 2; ret V e 6; ret A a 9; now 60000");
    assert_string_equal(s->told, "complete 0..9 self 0: Aa 0..9 self 4.5, >Vd 2..3 self 1 wait 1!, "
                                 ">Ab 3.5..4 self 0.5, >Ve 5..6 self 1 wait 1;");
    script_free(s);
}

// As many messages as a request has room for, by way of others; of what is beyond waits are
// estimated.
static void large(void **state) {
    (void)state;
    enum { CALLS = TREE_WAITS / 2 + 2 };
    struct script *s = script_new(true, 0);
    char commands[300];
    script_run(s, "enter 1 A a 0; take 1 D 0 A 1");
    for (unsigned long i = 1; i <= CALLS; i++) {
        unsigned long at = 10 * i, serial = 10 * i;
        snprintf(commands, sizeof commands,
                 "send 1 A %lu.1 %lu; take 1 D %lu.2 A %lu; send 1 D %lu.3 %lu; "
                 "take 1 V %lu.4 D %lu %lu; call 1 V d %lu.5 D %lu %lu; ret V d %lu.6",
                 at, serial, at, serial, at, serial + 1, at, serial + 1, serial, at, serial + 1,
                 serial, at);
        script_run(s, commands);
    }
    snprintf(commands, sizeof commands, "ret A a %d; now 10000000", 10 * CALLS + 5);
    script_run(s, commands);
    const struct span *spans = request_tree_spans(s->pool->tree);
    uint32_t measured = 0;
    for (uint32_t i = 1; i <= CALLS; i++) {
        assert_int_equal(spans[i].measured, i <= TREE_WAITS / 2);
        measured += spans[i].measured;
        assert_true(!spans[i].measured || spans[i].wait == script_ns(0.2));
    }
    assert_int_equal(measured, TREE_WAITS / 2);
    script_free(s);
}

// More calls and messages than a request has room for together: it is incomplete, and nothing is
// written behind that room.
static void too_large(void **state) {
    (void)state;
    enum { CALLS = RECORDS / 5 + 2 }; // four messages each
    struct script *s = script_new(true, 0);
    char commands[400];
    script_run(s, "enter 1 A a 0; take 1 D 0 A 1; take 1 E 0 A 1; take 1 F 0 A 1");
    for (unsigned long i = 1; i <= CALLS; i++) {
        unsigned long at = 10 * i, n = 10 * i;
        snprintf(commands, sizeof commands,
                 "send 1 A %lu.1 %lu; take 1 D %lu.2 A %lu; send 1 D %lu.3 %lu; "
                 "take 1 E %lu.4 D %lu %lu; send 1 E %lu.45 %lu; take 1 F %lu.5 E %lu %lu; "
                 "send 1 F %lu.55 %lu; take 1 V %lu.6 F %lu %lu; call 1 V d %lu.7 F %lu %lu; "
                 "ret V d %lu.8",
                 at, n, at, n, at, n + 1, at, n + 1, n, at, n + 2, at, n + 2, n + 1, at, n + 3, at,
                 n + 3, n + 2, at, n + 3, n + 2, at);
        script_run(s, commands);
    }
    snprintf(commands, sizeof commands, "ret A a %d; now 10000000", 10 * CALLS + 5);
    script_run(s, commands);
    snprintf(commands, sizeof commands, "incomplete 0..%d;", 10 * CALLS + 5);
    assert_string_equal(s->told, commands);
    script_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_sent_to_taken),
        cmocka_unit_test(by_way_of_others),
        cmocka_unit_test(calls_of_one_message),
        cmocka_unit_test(run_queue),
        cmocka_unit_test(rests_before_a_loss),
        cmocka_unit_test(equal_serials),
        cmocka_unit_test(in_a_piece),
        cmocka_unit_test(many_on_their_way),
        cmocka_unit_test(told_no_more),
        cmocka_unit_test(large),
        cmocka_unit_test(too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
