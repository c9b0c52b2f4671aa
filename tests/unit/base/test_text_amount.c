// SPDX-License-Identifier: Apache-2.0
#include "base/text_amount.h"

#include "unit.h"

static void test_durations(void **state) {
    (void)state;
    static const struct {
        double ns;
        const char *text;
    } cases[] = {{0, "0 ns"},
                 {1, "1 ns"},
                 {999, "999 ns"},
                 {999.6, "1.0 µs"},
                 {1000, "1.0 µs"},
                 {1234, "1.2 µs"},
                 {9949, "9.9 µs"},
                 {9951, "10 µs"},
                 {12345, "12 µs"},
                 {999499, "999 µs"},
                 {999500, "1.0 ms"},
                 {50e6, "50 ms"},
                 {120e6, "120 ms"},
                 {1.234e9, "1.2 s"},
                 {59.6e9, "60 s"},
                 {1234.4e9, "1234 s"},
                 {9.2e18, "9200000000 s"}};
    char text[TEXT_DURATION_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(text_duration(cases[i].ns, text), cases[i].text);
    }
}

static void test_sizes(void **state) {
    (void)state;
    static const struct {
        double bytes;
        const char *text;
    } cases[] = {{0, "0 B"},       {999, "999 B"},     {999.6, "1.0 KB"},
                 {1234, "1.2 KB"}, {50e3, "50 KB"},    {1.5e6, "1.5 MB"},
                 {2e9, "2.0 GB"},  {9.96e12, "10 TB"}, {1.8e19, "18000000 TB"}};
    char text[TEXT_SIZE_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(text_size(cases[i].bytes, text), cases[i].text);
    }
}

static void test_percents(void **state) {
    (void)state;
    static const struct {
        double share;
        const char *text;
    } cases[] = {{0, "0.0 %"},      {0.0004, "<0.1 %"}, {0.0005, "0.1 %"}, {0.037, "3.7 %"},
                 {0.0994, "9.9 %"}, {0.0995, "10 %"},   {0.834, "83 %"},   {2.5, "250 %"}};
    char text[TEXT_PERCENT_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(text_percent(cases[i].share, text), cases[i].text);
    }
}

static void test_counts(void **state) {
    (void)state;
    char text[TEXT_GROUPED_BYTES];
    assert_string_equal(text_grouped(0, text), "0");
    assert_string_equal(text_grouped(999, text), "999");
    assert_string_equal(text_grouped(1000, text), "1,000");
    assert_string_equal(text_grouped(1234567, text), "1,234,567");
    assert_string_equal(text_grouped(UINT64_MAX, text), "18,446,744,073,709,551,615");
    assert_string_equal(text_plural(0), "s");
    assert_string_equal(text_plural(1), "");
    assert_string_equal(text_plural(2), "s");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_percents),
        cmocka_unit_test(test_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
