// SPDX-License-Identifier: Apache-2.0
#include "ingest/identify.h"

#include "base/limits.h"
#include "request_script.h"

static struct identify questions;

// Asks about a call of m:f/1 with some argument list. Returns whether the shim is to be asked.
static bool ask(struct script *s, struct request_ref ref, const char *function, struct slice note,
                uint32_t *id) {
    struct message m = {.module = {slice_text("m"), false},
                        .function = {slice_text(function), false},
                        .arity = 1,
                        .note = note};
    return identify_call(&questions, s->tracker, ref, &m, id);
}

static struct request_ref begin(struct script *s, uint64_t token) {
    char line[64];
    snprintf(line, sizeof line, "begin %lu A 0", (unsigned long)token);
    script_run(s, line);
    return tracker_find(s->tracker, token);
}

static int setup(void **state) {
    *state = script_new(true, 0);
    return identify_init(&questions) ? 0 : -1;
}

static int teardown(void **state) {
    identify_free(&questions);
    script_free(*state);
    return 0;
}

static void remembered(void **state) {
    struct script *s = *state;
    uint32_t id, other;
    struct request_ref one = begin(s, 1), two = begin(s, 2);
    assert_true(ask(s, one, "f", slice_text("x"), &id));
    assert_true(ask(s, two, "f", slice_text("x"), &other)); // not answered yet: asked again
    assert_true(other != id);
    identify_answer(&questions, s->tracker, id, 5);
    assert_false(tracker_unnamed(s->tracker, one));
    assert_true(tracker_unnamed(s->tracker, two));
    identify_answer(&questions, s->tracker, other, 5);
    assert_false(ask(s, one, "f", slice_text("y"), &id)); // has its name
    struct request_ref three = begin(s, 3);
    assert_false(ask(s, three, "f", slice_text("x"), &id)); // known
    assert_false(tracker_unnamed(s->tracker, three));
    // other arguments, another function, and calls that name nothing
    struct request_ref four = begin(s, 4);
    assert_true(ask(s, four, "f", slice_text("y"), &id));
    assert_true(ask(s, four, "g", slice_text("x"), &other));
    identify_answer(&questions, s->tracker, id, DIRECTORY_NONE);
    assert_true(tracker_unnamed(s->tracker, four));
    assert_false(ask(s, four, "f", slice_text("y"), &id));
    assert_true(tracker_unnamed(s->tracker, four));
    identify_answer(&questions, s->tracker, 12345, 9); // nobody's
    identify_answer(&questions, s->tracker, other, 6);
    script_run(s, "end 1 A 1; end 2 A 2; end 3 A 3; end 4 A 4; now 2000");
    script_expect(
        s,
        "complete 0..1 as 5 self 1;complete 0..2 as 5 self 2;complete 0..3 as 5 self 3;complete 0..4 as 6 self 4;");
    // an answer after the end of its request is remembered all the same
    struct request_ref five = begin(s, 5);
    assert_true(ask(s, five, "h", slice_text("x"), &id));
    script_run(s, "end 5 A 1; now 9000; now 9001");
    script_expect(s, "complete 0..1 self 1;");
    identify_answer(&questions, s->tracker, id, 8);
    struct request_ref six = begin(s, 6);
    assert_false(ask(s, six, "h", slice_text("x"), &id));
    assert_false(tracker_unnamed(s->tracker, six));
    // another identity function
    identify_reset(&questions);
    struct request_ref seven = begin(s, 7);
    assert_true(ask(s, seven, "h", slice_text("x"), &id));
    // too long to be sent
    static char large[LIMIT_ASK_BYTES + 1];
    assert_false(ask(s, seven, "h", slice_of(large, sizeof large), &id));
    assert_true(ask(s, seven, "h", slice_of(large, sizeof large - 1), &id));
    // no request
    assert_false(ask(s, (struct request_ref){SPAN_NONE, 0}, "h", slice_text("x"), &id));
}

// The oldest of too many open questions is given up; memory stays bounded whatever is answered.
static void limits(void **state) {
    struct script *s = *state;
    static uint32_t ids[LIMIT_ASKS_OPEN + 1];
    static struct request_ref refs[LIMIT_ASKS_OPEN + 1];
    for (uint32_t i = 0; i <= LIMIT_ASKS_OPEN; i++) {
        char text[16];
        snprintf(text, sizeof text, "%u", i);
        refs[i] = begin(s, i + 1);
        assert_true(ask(s, refs[i], "f", slice_text(text), &ids[i]));
    }
    assert_int_equal(questions.waiting.count, LIMIT_ASKS_OPEN);
    script_run(s, "end 1 A 1; now 1001"); // waits for no answer
    script_expect(s, "complete 0..1 self 1;");
    identify_answer(&questions, s->tracker, ids[0], 7);
    for (uint32_t i = LIMIT_ASKS_OPEN; i > 0; i--) {
        identify_answer(&questions, s->tracker, ids[i], 7);
        assert_false(tracker_unnamed(s->tracker, refs[i]));
    }
    assert_int_equal(questions.waiting.count, 0);
    for (uint32_t i = 0; i < 3 * LIMIT_ASK_CACHE; i++) {
        char text[16];
        uint32_t id;
        snprintf(text, sizeof text, "c%u", i);
        struct request_ref ref = begin(s, 100000 + i);
        assert_true(ask(s, ref, "f", slice_text(text), &id));
        identify_answer(&questions, s->tracker, id, 7);
        assert_true(questions.cache.count <= LIMIT_ASK_CACHE);
    }
}

static void without_memory(void **state) {
    (void)state;
    struct identify i;
    for (long fail = 0; fail < 3; fail++) {
        fail_alloc_once(fail);
        assert_false(identify_init(&i));
    }
    fail_alloc_at(-1);
}

#define UNIT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {UNIT(remembered), UNIT(limits),
                                       cmocka_unit_test(without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
