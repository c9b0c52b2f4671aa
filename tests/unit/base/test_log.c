// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"

#include "unit.h"

// What is logged while fd 2 is a file.
static char logged[65536];
static FILE *file;
static int stderr_before;

static void capture_begin(void) {
    file = tmpfile();
    assert_non_null(file);
    fflush(stderr);
    stderr_before = dup(2);
    dup2(fileno(file), 2);
}

static void capture_end(void) {
    fflush(stderr);
    dup2(stderr_before, 2);
    close(stderr_before);
    rewind(file);
    logged[fread(logged, 1, sizeof logged - 1, file)] = 0;
    fclose(file);
}

// "2026-11-20T10:00:00.000Z " before the level
enum { TIME_LENGTH = 25 };

static void the_line(void **state) {
    (void)state;
    capture_begin();
    log_warning("hello %d", 42);
    capture_end();
    int y, mo, d, h, mi, s, ms, n = 0;
    assert_int_equal(
        sscanf(logged, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ %n", &y, &mo, &d, &h, &mi, &s, &ms, &n), 7);
    assert_int_equal(n, TIME_LENGTH);
    assert_true(y >= 2024);
    assert_string_equal(logged + n, "warning hello 42\n");
}

static void levels(void **state) {
    (void)state;
    capture_begin();
    log_debug("no");
    log_info("yes");
    log_set_level(LOG_ERROR);
    log_warning("no");
    log_error("yes");
    log_set_level(LOG_DEBUG);
    log_debug("yes");
    log_set_level(LOG_INFO);
    capture_end();
    static const char *const expected[] = {"info yes\n", "error yes\n", "debug yes\n"};
    char *at = logged;
    for (int i = 0; i < 3; i++) {
        assert_memory_equal(at + TIME_LENGTH, expected[i], strlen(expected[i]));
        at += TIME_LENGTH + strlen(expected[i]);
    }
    assert_string_equal(at, "");
}

// systemd's journal is told the priority; somebody else's, whose stderr is not ours, is not meant.
static void journal(void **state) {
    (void)state;
    struct stat st;
    char stream[64];
    capture_begin();
    assert_int_equal(fstat(2, &st), 0);
    snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    log_start();
    log_info("a\nline");
    log_warning("and");
    log_error("another");
    setenv("JOURNAL_STREAM", "8:1", 1);
    log_start();
    log_info("mine");
    unsetenv("JOURNAL_STREAM");
    log_start();
    log_info("mine, too");
    capture_end();
    static const char expected[] = "<6>a?line\n<4>and\n<3>another\n";
    assert_memory_equal(logged, expected, strlen(expected));
    const char *mine = logged + strlen(expected) + TIME_LENGTH;
    assert_memory_equal(mine, "info mine\n", 10);
    assert_string_equal(mine + 10 + TIME_LENGTH, "info mine, too\n");
}

static void no_text_forges_a_line_or_steers_a_terminal(void **state) {
    (void)state;
    capture_begin();
    log_info("%s", "a\nb\rc\x1b[2Jd\x7f \xc2\x9b"
                   "2J \x9b"
                   "2J \xc3\xa9 \xe2\x82\xac \xc2\xa0 \xf0\x9f\x98\x80");
    capture_end();
    // U+009B is the 8 bit form of ESC [
    assert_string_equal(
        logged + TIME_LENGTH,
        "info a?b?c?[2Jd? \xc2?2J ?2J \xc3\xa9 \xe2\x82\xac \xc2\xa0 \xf0\x9f\x98\x80\n");
}

static void long_text_is_cut(void **state) {
    (void)state;
    char text[5000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    capture_begin();
    log_info("%s", text);
    capture_end();
    assert_int_equal(strlen(logged), TIME_LENGTH + strlen("info ") + 1023 + 1);
    assert_int_equal(logged[strlen(logged) - 1], '\n');
}

// Lines of the log that hold a text.
static unsigned lines_with(const char *text) {
    unsigned count = 0;
    for (const char *at = logged; (at = strstr(at, text)); at++) {
        count++;
    }
    return count;
}

// What was left out of it, as told.
static unsigned told_left_out(const char *sample) {
    unsigned sum = 0, n, seconds;
    char line[300];
    for (const char *at = logged; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        const char *told = strstr(line, " log: ");
        if (told && strstr(told, sample) &&
            sscanf(told, " log: %u more line%*[s] left out in %u s", &n, &seconds) == 2) {
            sum += n;
        }
    }
    return sum;
}

static void floods_are_counted(void **state) {
    (void)state;
    enum { FLOOD = 5000 };
    struct rate_budget node = {0}, other = {0};
    capture_begin();
    for (int i = 0; i < FLOOD; i++) {
        log_info("stranger %d", i);
    }
    for (int i = 0; i < FLOOD; i++) { // what one node makes us write counts together
        log_from(&(struct log_origin){"hello", &node}, LOG_INFO, "node %d", i);
        log_from(&(struct log_origin){"bye", &node}, LOG_INFO, "gone %d", i);
    }
    log_from(&(struct log_origin){"hello", &other}, LOG_INFO,
             "the other node"); // is not heard: its kind is used up
    log_error("our own");       // but this is
    log_settle(false);
    assert_int_equal(told_left_out(""), 0); // after ten seconds
    log_settle(true);
    log_settle(true);
    capture_end();
    assert_in_range(lines_with("\n"), 150, LIMIT_LOG_LINES + 4 * LIMIT_LOG_LINES_RARE + 4);
    assert_int_equal(lines_with("info stranger "), LIMIT_LOG_LINES_OF_KIND);
    assert_int_equal(told_left_out("stranger"), FLOOD - LIMIT_LOG_LINES_OF_KIND);
    assert_int_equal(told_left_out("node ") + told_left_out("gone "),
                     2 * FLOOD + 1 - lines_with("info node ") - lines_with("info gone "));
    assert_int_equal(lines_with("error our own"), 1);
}

static void budgets(void **state) {
    (void)state;
    struct rate_budget b = {0};
    int64_t now = 1000;
    for (int i = 0; i < 3; i++) {
        assert_true(rate_has(&b, now, 10, 3));
        rate_take(&b, now, 10);
    }
    assert_false(rate_has(&b, now + 9, 10, 3));
    assert_true(rate_has(&b, now + 10, 10, 3)); // one is earned
    rate_take(&b, now + 10, 10);
    assert_false(rate_has(&b, now + 10, 10, 3));
    int taken = 0;
    for (now = 2000; now < 3000; now++) {
        if (rate_has(&b, now, 10, 3)) {
            rate_take(&b, now, 10);
            taken++;
        }
    }
    assert_int_equal(taken, 3 + 99);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line),
        cmocka_unit_test(levels),
        cmocka_unit_test(journal),
        cmocka_unit_test(no_text_forges_a_line_or_steers_a_terminal),
        cmocka_unit_test(long_text_is_cut),
        cmocka_unit_test(floods_are_counted),
        cmocka_unit_test(budgets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
