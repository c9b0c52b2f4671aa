// SPDX-License-Identifier: Apache-2.0
// What is said of a profile, line by line.
#include "report/flame/notes.h"

#include "profile_fixture.h"
#include "unit.h"

static struct flame_answer answer;

static int prepare(void **state) {
    (void)state;
    answer = (struct flame_answer){.id = 7};
    assert_true(profile_init(&answer.profile));
    answer.profile.counts =
        (struct profile_counts){.requests = 20, .processes = 3, .duration_ns = 20000000};
    return 0;
}

static int forget(void **state) {
    (void)state;
    profile_free(&answer.profile);
    return 0;
}

static void expect(const struct flame_lines *lines, const char *expected) {
    static char text[FLAME_TOLD * FLAME_NOTE_BYTES];
    text[0] = 0;
    for (uint32_t i = 0; i < lines->count; i++) {
        strcat(text, lines->text[i]);
        strcat(text, "\n");
    }
    assert_string_equal(text, expected);
}

#define FIRST "Profile 7: 20 requests, together 20 ms, in 3 processes\n"

// Of one that an older version has kept.
static void little(void **state) {
    (void)state;
    notes_put(&answer, &(struct flame_question){0});
    expect(&answer.notes, FIRST);
    expect(&answer.told, "");
    assert_ptr_equal(answer.note_lines[0], answer.notes.text[0]);
    assert_null(answer.note_lines[1]);
}

static void in_self(void **state) {
    (void)state;
    strcpy(answer.profile.head.otp, "27");
    answer.profile.head.gc_in_self = true;
    notes_put(&answer, &(struct flame_question){0});
    expect(&answer.notes, FIRST "Garbage collection is within self: tracing it is not safe on the "
                                "node's release, OTP 27 (otp#11624)\n");
    answer.notes.count = 0;
    answer.profile.head.otp[0] = 0;
    answer.profile.head.asleep_in_self = true;
    notes_put(&answer, &(struct flame_question){0});
    expect(&answer.notes, FIRST "Time asleep and garbage collection are within self: tracing them "
                                "is not safe on the node's release (otp#6448)\n");
}

static void missed(void **state) {
    (void)state;
    struct profile *p = &answer.profile;
    p->missed[0] = (struct profile_missed){"<0.9.0>", "pool_worker", 3};
    p->missed[1] = (struct profile_missed){"<0.10.0>", "", 1};
    p->missed_count = 2;
    notes_put(&answer, &(struct flame_question){0});
    expect(&answer.notes,
           FIRST "Not followed into <0.9.0> pool_worker: it had no flag yet; 3 of 20 requests\n"
                 "Nor into 1 other process\n");
    expect(&answer.told, "Not followed into <0.10.0>: it had no flag yet; 1 of 20 requests\n");
}

static void cost(void **state) {
    (void)state;
    struct profile *p = &answer.profile;
    p->counts.messages = 1234567;
    p->counts.bytes = 50000000;
    p->counts.functions = 800;
    p->counts.stood_ns = 2300000000;
    p->counts.rested = true;
    for (uint64_t i = 0; i < 7; i++) {
        char name[32];
        snprintf(name, sizeof name, "create %d", (int)i);
        p->identities[p->identity_count++] =
            (struct profile_identity){(uint16_t)names_intern(&p->stacks.names, slice_text(name)),
                                      10, 13000000, 4 * i, (int64_t)i * 2000000};
    }
    notes_put(&answer, &(struct flame_question){0});
    expect(&answer.notes, FIRST);
    expect(&answer.told,
           "It cost 1,234,567 messages, 50 MB; 800 functions had patterns for 2.3 s, and the tiers "
           "were not traced meanwhile\n"
           "create 0: 10 requests, mean 1.3 ms; none that only the tiers traced, to compare with\n"
           "create 1: 10 requests, mean 1.3 ms; 4 that only the tiers traced, mean 500 µs\n"
           "create 2: 10 requests, mean 1.3 ms; 8 that only the tiers traced, mean 500 µs\n"
           "create 3: 10 requests, mean 1.3 ms; 12 that only the tiers traced, mean 500 µs\n"
           "create 4: 10 requests, mean 1.3 ms; 16 that only the tiers traced, mean 500 µs\n"
           "and 2 more identities\n");
}

#define A_PROFILE(test) cmocka_unit_test_setup_teardown(test, prepare, forget)

int main(void) {
    const struct CMUnitTest tests[] = {A_PROFILE(little), A_PROFILE(in_self), A_PROFILE(missed),
                                       A_PROFILE(cost)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
