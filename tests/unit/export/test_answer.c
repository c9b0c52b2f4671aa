// SPDX-License-Identifier: Apache-2.0
// What answers mean, of engines old and new, and of what is no engine.
#include "unit.h"

#include <string.h>

#include "export/answer.h"

static enum answer_meaning meaning(long status, uint32_t head, const char *body, char *reason) {
    const struct answer a = {status, head, slice_text(body), false, 0};
    return answer_to_order(&a, reason);
}

static void expect(long status, uint32_t head, const char *body, enum answer_meaning wanted) {
    char reason[CHANGE_REASON_BYTES];
    enum answer_meaning got = meaning(status, head, body, reason);
    if (got != wanted) {
        fail_msg("%ld %s: %d, wanted %d", status, body, got, wanted);
    }
    assert_int_equal(reason[0] == 0, wanted == ANSWER_DONE);
}

// As 18.16 and later ones say it.
static void orders(void **state) {
    (void)state;
    expect(200, 0, "", ANSWER_DONE);
    expect(500, 0, "Code: 33, e.displayText() = DB::Exception: Cannot read all data",
           ANSWER_REFUSED);
    expect(400, 469, "Code: 469. DB::Exception: Constraint `c` is violated", ANSWER_REFUSED);
    expect(500, 395, "", ANSWER_REFUSED);
    expect(404, 0, "Code: 60, e.displayText() = DB::Exception: Table k.x doesn't exist",
           ANSWER_MISSING);
    expect(404, 81, "Code: 81. DB::Exception: Database k does not exist", ANSWER_MISSING);
    expect(401, 0, "Code: 193, e.displayText() = DB::Exception: Wrong password", ANSWER_LATER);
    expect(500, 241, "Code: 241. DB::Exception: Memory limit exceeded", ANSWER_LATER);
    expect(500, 0, "Code: 252. DB::Exception: Too many parts", ANSWER_LATER);
    expect(500, 243, "Code: 243. DB::Exception: Cannot reserve 1.00 MiB, not enough space",
           ANSWER_LATER);
    // an exception that came after the head
    expect(200, 0, "Code: 33. DB::Exception: Cannot read all data", ANSWER_REFUSED);
    expect(200, 241, "", ANSWER_LATER);
}

// Nothing of it may be taken for what an engine says of rows, or for success.
static void strangers(void **state) {
    (void)state;
    expect(200, 0, "<html>It works!</html>", ANSWER_LATER);
    expect(204, 0, "", ANSWER_LATER);
    expect(301, 0, "", ANSWER_LATER);
    expect(302, 0, "Code: 33", ANSWER_LATER);
    expect(404, 0, "not found", ANSWER_LATER);
    expect(502, 0, "Bad gateway", ANSWER_LATER);
    expect(0, 0, "", ANSWER_LATER);
    expect(500, 0, "Code: ", ANSWER_LATER);
    expect(500, 0, " Code: 33", ANSWER_LATER);
    expect(500, 0, "Code: 99999999999999999999", ANSWER_LATER);
    char reason[CHANGE_REASON_BYTES];
    const struct answer cut = {200, 0, slice_text(""), true, 0};
    assert_int_equal(answer_to_order(&cut, reason), ANSWER_LATER);
    assert_int_equal(answer_to_question(&cut, reason), ANSWER_LATER);
}

static void reasons(void **state) {
    (void)state;
    char reason[CHANGE_REASON_BYTES];
    meaning(500, 0, "Code: 47, e.displayText() = DB::Exception: No, e.what() = DB::Exception\n",
            reason);
    assert_string_equal(reason, "Code: 47, e.displayText() = DB::Exception: No");
    meaning(500, 0, "Code: 47\033[31m\nnext line", reason);
    assert_string_equal(reason, "Code: 47?[31m?next line");
    meaning(502, 0, "Bad gateway\n", reason);
    assert_string_equal(reason, "it answers with HTTP status 502: Bad gateway");
    meaning(302, 0, "", reason);
    assert_string_equal(reason, "it answers with HTTP status 302");
    meaning(200, 0, "hello", reason);
    assert_string_equal(reason, "it answers what ClickHouse does not: hello");
    char body[2000];
    memset(body, 'x', sizeof body);
    memcpy(body, "Code: 47", 8);
    body[sizeof body - 1] = 0;
    meaning(500, 0, body, reason);
    assert_int_equal(strlen(reason), CHANGE_REASON_BYTES - 1);
}

static void versions(void **state) {
    (void)state;
    uint32_t major = 0, minor = 0;
    assert_true(answer_version(slice_text("18.16.1\n"), &major, &minor));
    assert_int_equal(major, 18);
    assert_int_equal(minor, 16);
    assert_true(answer_version(slice_text("24.3.2.23-lts"), &major, &minor));
    assert_int_equal(major, 24);
    static const char *const none[] = {"",
                                       "18",
                                       "18.",
                                       ".16",
                                       "x.1",
                                       "18,16",
                                       "18.16x",
                                       "-1.2",
                                       "<html>",
                                       "99999999999.1",
                                       "1.99999999999999999999"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_false(answer_version(slice_text(none[i]), &major, &minor));
    }
}

static void numbers_and_pairs(void **state) {
    (void)state;
    uint64_t two[2];
    assert_true(answer_numbers(slice_text("0\t1\n"), two));
    assert_true(two[0] == 0 && two[1] == 1);
    static const char *const none[] = {"",        "1",     "1\t",    "1\t2",
                                       "1\t2\n3", "1 2\n", "a\t2\n", "-1\t2\n"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_false(answer_numbers(slice_text(none[i]), two));
    }
    char first[ANSWER_WORD_BYTES], second[ANSWER_WORD_BYTES];
    struct slice body = slice_text("tier_stats\t10-20250101\nledger\t3600-202501\nrest");
    assert_true(answer_pair(&body, first, second));
    assert_string_equal(first, "tier_stats");
    assert_string_equal(second, "10-20250101");
    assert_true(answer_pair(&body, first, second));
    assert_string_equal(second, "3600-202501");
    assert_false(answer_pair(&body, first, second));
    assert_true(slice_is(body, "rest"));
    body = slice_text("a\tb';DROP\n");
    assert_false(answer_pair(&body, first, second));
    char longest[300];
    memset(longest, 'x', sizeof longest);
    body = slice_of(longest, sizeof longest);
    assert_false(answer_pair(&body, first, second));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(orders), cmocka_unit_test(strangers),
                                       cmocka_unit_test(reasons), cmocka_unit_test(versions),
                                       cmocka_unit_test(numbers_and_pairs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
