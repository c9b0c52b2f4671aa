// SPDX-License-Identifier: Apache-2.0
#include "base/text_time.h"

#include "unit.h"

#define S 1000000000LL

static void formats(void **state) {
    (void)state;
    char out[TEXT_TIME_BYTES];
    // seconds as date -u -d @N prints them
    static const struct {
        int64_t ns;
        const char *text, *with_ms;
    } cases[] = {
        {0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"},
        {1795168800 * S, "2026-11-20T10:00:00Z", "2026-11-20T10:00:00Z"},
        {1795168800 * S + 7999999, "2026-11-20T10:00:00Z", "2026-11-20T10:00:00.007Z"},
        {1795168800 * S + 999999, "2026-11-20T10:00:00Z", "2026-11-20T10:00:00Z"},
        {-1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999Z"},
        {951782400 * S, "2000-02-29T00:00:00Z", "2000-02-29T00:00:00Z"},
        {INT64_MAX, "2262-04-11T23:47:16Z", "2262-04-11T23:47:16.854Z"},
        {INT64_MIN, "1677-09-21T00:12:43Z", "1677-09-21T00:12:43.145Z"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(text_time_format(cases[i].ns, false, out), cases[i].text);
        assert_string_equal(text_time_format(cases[i].ns, true, out), cases[i].with_ms);
    }
}

static void parses(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t ns;
    } good[] = {
        {"2026-11-20T10:00:00Z", 1795168800 * S},
        {"2026-11-20T10:00:00", 1795168800 * S},
        {"2026-11-20 10:00:00", 1795168800 * S},
        {"2026-11-20T10:00Z", 1795168800 * S},
        {"2026-11-20 10:00", 1795168800 * S},
        {"2026-11-20", 1795132800 * S},
        {"2024-02-29", 1709164800 * S},
        {"1970-01-01", 0},
        {"1969-12-31", -86400 * S},
        {"now", 1000 * S},
        {"30m", 1000 * S - 1800 * S},
        {"90s", 1000 * S - 90 * S},
        {"90", 1000 * S - 90 * S},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t ns = 1;
        if (!text_time_parse(good[i].text, 1000 * S, &ns)) {
            fail_msg("not read: %s", good[i].text);
        }
        assert_int_equal(ns, good[i].ns);
    }
    static const char *const bad[] = {"",
                                      "x",
                                      "2026-11-20T10:00:00+01:00",
                                      "2026-02-29",
                                      "2026-02-31",
                                      "2026-13-01",
                                      "2026-11-20x",
                                      "2026-11-20T25:00",
                                      "yesterdayx",
                                      "yesterday 14",
                                      "tomorrow",
                                      "12:60",
                                      "24:00",
                                      " 12:00",
                                      "2026-11-20 Z",
                                      "2026-11-20Z",
                                      "-5m",
                                      "5 m",
                                      "9999-01-01",
                                      "2262-04-12",
                                      "1677-09-20",
                                      "0001-01-01",
                                      "now "};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t ns = 77;
        if (text_time_parse(bad[i], 1000 * S, &ns)) {
            fail_msg("read: %s", bad[i]);
        }
        assert_int_equal(ns, 77);
    }
}

// In a zone with summer time: 2026-03-29 from 2:00 to 3:00, 2026-10-25 from 3:00 back to 2:00. The
// seconds are as date -d prints them.
static void local_times(void **state) {
    (void)state;
    static const struct {
        int64_t now_s;
        const char *text;
        int64_t s; // 0: no such time
    } cases[] = {
        {1795168800, "12:00", 1795172400}, // at 11:00 in Vienna, of the 20th of November
        {1795168800, "12:00Z", 1795176000},
        {1795168800, "12:00:30", 1795172430},
        {1795168800, "today", 1795129200},
        {1795168800, "yesterday", 1795042800},
        {1795168800, "yesterday 14:30", 1795095000},
        {1795168800, "2026-11-20 10:00", 1795165200},
        {1795168800, "2026-11-20T10:00", 1795165200},
        {1795168800, "2026-11-20T10:00Z", 1795168800},
        {1795168800, "2026-07-01 12:00", 1782900000},
        {1774771200, "yesterday 10:00", 1774688400}, // on the day on which summer time begins,
        {1774771200, "12:00", 1774778400},
        {1774771200, "02:30", 0},
        {1774771200, "03:00", 1774746000},
        {1774771200, "90m", 1774765800},
        {1792926000, "02:30", 1792888200}, // and on which it ends: the first of two
        {1792926000, "03:00", 1792893600},
        {1792926000, "yesterday 12:00", 1792836000},
    };
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t ns = 0;
        assert_int_equal(text_time_parse(cases[i].text, cases[i].now_s * S, &ns), cases[i].s != 0);
        if (ns != cases[i].s * S) {
            fail_msg("%s at %lld: %lld", cases[i].text, (long long)cases[i].now_s,
                     (long long)(ns / S));
        }
    }
    // where a day has no midnight it begins later
    setenv("TZ", "XST3XDT,M10.3.0/0,M2.3.0/0", 1);
    int64_t ns;
    assert_true(text_time_parse("2026-10-18", 0, &ns));
    assert_int_equal(ns, 1792292400 * S);
    setenv("TZ", "UTC", 1);
}

static void what_is_formatted_is_read_back(void **state) {
    (void)state;
    uint64_t seed = 3;
    for (int i = 0; i < 20000; i++) {
        char out[TEXT_TIME_BYTES];
        int64_t ns = (int64_t)(random_u64(&seed) % 9000000000) * S, back = 0;
        assert_true(text_time_parse(text_time_format(ns, false, out), 0, &back));
        assert_int_equal(ns, back);
    }
}

static void durations(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t ns;
    } good[] = {
        {"0", 0},          {"1ms", 1000000},   {"1.5s", 1500000000},
        {"2", 2 * S},      {"2m", 120 * S},    {"1h", 3600 * S},
        {"1d", 86400 * S}, {"0.25ms", 250000}, {"36525d", 36525LL * 86400 * S},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t ns = -1;
        assert_true(text_duration_parse(good[i].text, &ns));
        assert_int_equal(ns, good[i].ns);
    }
    static const char *const bad[] = {"",       "m",      "-1s", "1x",  "1 s",  "1ss",
                                      "36526d", "1e300d", "nan", "inf", "infd", "1e999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t ns = 77;
        assert_false(text_duration_parse(bad[i], &ns));
        assert_int_equal(ns, 77);
    }
}

// The seconds are as date -d prints them, in a zone with summer time.
static void stretches_to_compare_with(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t from, until; // asked about
        int64_t before;      // where the other one begins
    } cases[] = {
        {"before", 1795168800, 1795172400, 1795165200},
        {"1h before", 1795168800, 1795172400, 1795165200},
        {"90m before", 1795168800, 1795172400, 1795163400},
        {"7d before", 1795168800, 1795172400, 1794564000},
        {"yesterday", 1795168800, 1795172400, 1795082400},
        {"last week", 1795168800, 1795172400, 1794564000},
        {"yesterday", 1792926000, 1792929600, 1792836000}, // 12:00 after a day of 25 hours
        {"last week", 1774778400, 1774782000, 1774177200}, // 12:00 after one of 23
    };
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t from = 0, until = 0;
        const char *why =
            text_against_parse(cases[i].text, cases[i].from * S, cases[i].until * S, &from, &until);
        assert_null(why);
        if (from != cases[i].before * S) {
            fail_msg("%s %lld: %lld", cases[i].text, (long long)cases[i].from,
                     (long long)(from / S));
        }
        assert_int_equal(until - from, (cases[i].until - cases[i].from) * S);
    }
    setenv("TZ", "UTC", 1);
    static const char *const none[] = {
        "",          "after",      "yesterdays",
        "before ",   "h before",   " before",
        "1y before", "-1h before", "0000000000000000000000000000000001h before"};
    int64_t from = 77, until = 77;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_non_null(strstr(text_against_parse(none[i], 0, S, &from, &until), "none of"));
    }
    // a stretch is not compared with itself
    assert_non_null(strstr(text_against_parse("59m before", 0, 3600 * S, &from, &until), "share"));
    assert_non_null(strstr(text_against_parse("yesterday", 0, 86401 * S, &from, &until), "share"));
    assert_int_equal(from, 77);
}

int main(void) {
    setenv("TZ", "UTC", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats),     cmocka_unit_test(parses),
        cmocka_unit_test(local_times), cmocka_unit_test(what_is_formatted_is_read_back),
        cmocka_unit_test(durations),   cmocka_unit_test(stretches_to_compare_with),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
