// SPDX-License-Identifier: Apache-2.0
// Parts of requests of other nodes: tokens from 9000 on are of labels that node 7 has made.
#include "request_script.h"

#include "base/hash.h"

static uint16_t made_by(void *context, uint64_t label) {
    (void)context;
    return hash_mix(label) >= 9000 ? 7 : DIRECTORY_NONE;
}

static void part_finished(void *context, const struct request_result *r) {
    struct script *s = context;
    script_finished(context, r);
    assert_int_equal(r->remote, r->identity == IDENTITY_REMOTE);
    assert_true(hash_mix(r->label) < 20000); // the token
    if (r->remote) {
        s->len--; // the ';'
        script_tell(s, " of node %u;", r->maker);
    }
}

static struct script *remote_script(void) {
    struct script *s = script_new(true, 0);
    struct tracker_options options = {.timeout_ns = 30000LL * SCRIPT_MS,
                                      .markers = true,
                                      .entry = TIER_NONE,
                                      .events = {.context = s,
                                                 .finished = part_finished,
                                                 .maker = made_by,
                                                 .never_returns = script_never_returns}};
    tracker_free(s->tracker);
    s->tracker = tracker_new(s->pool, &options);
    assert_non_null(s->tracker);
    return s;
}

static void check(const char *commands, const char *expected, uint64_t stale) {
    struct script *s = remote_script();
    script_run(s, commands);
    script_expect(s, expected);
    script_expect_counts(s, 0, stale, 0);
    script_free(s);
}

static void a_part_is_no_request(void **state) {
    (void)state;
    check("call 9001 A a 10 Z; call 9001 A b 12; ret A b 15; ret A a 20; now 1019; now 2040",
          "complete 10..20 as 3 self 0: Aa 10..20 self 7, >Ab 12..15 self 3 of node 7;", 0);
    // in several processes, and with a request of our own among them
    check(
        "call 9001 A a 10 Z; begin 1 B 11; call 1 B a 12; call 9001 C b 13 A; ret C b 14; ret B a 15; end 1 B 16; ret A a 17; now 1100",
        "complete 11..16 self 2: Ba 12..15 self 3;"
        "complete 10..17 as 3 self 0: Aa 10..17 self 3, >Cb 13..14 self 1 wait 3 of node 7;",
        0);
}

static void errors_are_those_of_the_outermost_calls(void **state) {
    (void)state;
    check("call 9001 A a 10 Z; call 9001 A b 12; exc A b 15; ret A a 20; now 1100",
          "complete 10..20 as 3 self 0: Aa 10..20 self 7, >Ab 12..15 self 3 error of node 7;", 0);
    check("call 9001 A a 10 Z; ret A a 11; call 9001 A b 12 Z; exc A b 15; now 1100",
          "complete 10..15 as 3 error self 1: Aa 10..11 self 1, Ab 12..15 self 3 error of node 7;",
          0);
}

// It is over when it has been silent for a second with nothing open.
static void a_part_ends_in_silence(void **state) {
    (void)state;
    check("call 9001 A a 10 Z; now 2000; now 5000; ret A a 6000; now 6100; now 7200",
          "complete 10..6000 as 3 self 0: Aa 10..6000 self 5990 of node 7;", 0);
    check(
        "call 9001 A a 10 Z; ret A a 20; now 600; call 9001 A a 900 Z; ret A a 910; now 1500; now 3000",
        "complete 10..910 as 3 self 880: Aa 10..20 self 10, Aa 900..910 self 10 of node 7;", 0);
    // the same request comes again: another part, and nothing of it is stale
    check(
        "call 9001 A a 10 Z; ret A a 20; now 2000; call 9001 A a 3000 Z; ret A a 3010; now 5000",
        "complete 10..20 as 3 self 0: Aa 10..20 self 10 of node 7;complete 3000..3010 as 3 self 0: Aa 3000..3010 self 10 of node 7;",
        0);
}

static void what_is_not_whole_is_told_to_nobody(void **state) {
    (void)state;
    check("call 9001 A a 10 Z; lost; ret A a 20; now 1100", "", 1);
    check("call 9001 A a 10 Z; call 9001 A b 11; now 31000", "", 2); // never returned
    check("call 9001 A a 10 Z; call 9001 A b 11; ret A a 20; now 1100", "",
          2); // b was left without a return
    check("call 9001 A a 10 Z; gap 12 13; ret A a 20; now 1100", "", 1);
    check("call 9001 A a 10 Z; ret A a 20; call 9001 A b 21 Z; reset", "", 2);
    check("call 9001 A a 10 Z; ret A a 20; reset",
          "complete 10..20 as 3 self 0: Aa 10..20 self 10 of node 7;", 0);
}

// Who made the label is not known, or it is ours: as before.
static void nobodys_calls_are_stale(void **state) {
    (void)state;
    check("call 500 A a 10 Z; ret A a 20; now 1100", "", 1);
    check("lost; call 500 A a 10 Z; lost; ret A a 20; now 1100", "incomplete 10..20;", 0);
    // another node's label with a begin of ours cannot be: ours counts
    check("begin 9001 A 5; call 9001 A a 10; ret A a 20; end 9001 A 25; now 1100",
          "complete 5..25 self 10: Aa 10..20 self 10;", 0);
}

static void unmixing(void **state) {
    (void)state;
    uint64_t x = 1;
    for (int i = 0; i < 100000; i++, x = x * 6364136223846793005ULL + 1442695040888963407ULL) {
        assert_true(hash_unmix(hash_mix(x)) == x);
        assert_true(hash_mix(hash_unmix(x)) == x);
    }
    assert_true(hash_unmix(hash_mix(0)) == 0 && hash_unmix(hash_mix(UINT64_MAX)) == UINT64_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_is_no_request),
        cmocka_unit_test(errors_are_those_of_the_outermost_calls),
        cmocka_unit_test(a_part_ends_in_silence),
        cmocka_unit_test(what_is_not_whole_is_told_to_nobody),
        cmocka_unit_test(nobodys_calls_are_stale),
        cmocka_unit_test(unmixing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
