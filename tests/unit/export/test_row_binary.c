// SPDX-License-Identifier: Apache-2.0
// Values as ClickHouse's RowBinary has them: the bytes are those of its documentation.
#include "unit.h"

#include <math.h>
#include <string.h>

#include "export/row_binary.h"
#include "export/statements.h"
#include "fail_alloc.h"

static void expect(enum change_kind kind, struct change_cell cell, const char *hex) {
    struct buffer out = buffer_make(4096);
    char text[400] = "";
    const char *why = row_binary_cell(kind, &cell, &out);
    assert_null(why);
    assert_false(out.failed);
    for (size_t i = 0; i < out.len; i++) {
        sprintf(text + 2 * i, "%02x", out.data[i]);
    }
    assert_string_equal(text, hex);
    buffer_free(&out);
}

#define NUMBER(n) ((struct change_cell){.number = n})
#define BYTES(text) ((struct change_cell){.bytes = slice_text(text)})

static void values(void **state) {
    (void)state;
    expect(CHANGE_TIME, NUMBER(1763640000), "c0021f69");
    expect(CHANGE_TIME, NUMBER(UINT32_MAX), "ffffffff");
    expect(CHANGE_SMALL, NUMBER(258), "02010000");
    expect(CHANGE_SMALL, NUMBER(INT64_MAX), "ffffffff");
    expect(CHANGE_NUMBER, NUMBER(1), "0100000000000000");
    expect(CHANGE_NUMBER, NUMBER(-1), "0000000000000000"); // edited: never a huge one
    expect(CHANGE_NUMBER, NUMBER(INT64_MAX), "ffffffffffffff7f");
    expect(CHANGE_SIGNED, NUMBER(-2), "feffffffffffffff");
    expect(CHANGE_OPTIONAL, NUMBER(3), "000300000000000000");
    expect(CHANGE_OPTIONAL, (struct change_cell){.null = true, .number = 9}, "01");
    expect(CHANGE_OPTIONAL, NUMBER(-1), "00ffffffffffffffff"); // a label is any 64 bits
    expect(CHANGE_REAL, (struct change_cell){.real = 1.0}, "000000000000f03f");
    expect(CHANGE_NAME, BYTES("ab"), "026162");
    expect(CHANGE_TEXT, BYTES(""), "00");
}

static void long_text(void **state) {
    (void)state;
    struct buffer out = buffer_make(4096);
    char text[301];
    memset(text, 'x', 300);
    text[300] = 0;
    assert_null(row_binary_cell(CHANGE_TEXT, &BYTES(text), &out));
    assert_int_equal(out.len, 302); // 300 is 0xac 0x02
    assert_int_equal(out.data[0], 0xac);
    assert_int_equal(out.data[1], 2);
    buffer_free(&out);
}

static void histograms(void **state) {
    (void)state;
    struct histogram h = {0};
    struct buffer stored = buffer_make(HISTOGRAM_BYTES);
    assert_true(histogram_write(&h, &stored));
    expect(CHANGE_COUNTS, (struct change_cell){.bytes = slice_of(stored.data, stored.len)}, "0000");
    buffer_reset(&stored);
    assert_true(histogram_add(&h, 1)); // bucket 0 holds (1, 2^(1/32)], and 0 and 1
    for (int i = 0; i < 300; i++) {
        assert_true(histogram_add(&h, 1025)); // 2^(320/32) < 1025 <= 2^(321/32)
    }
    assert_true(histogram_write(&h, &stored));
    // two keys of 16 bits, then two counts of 64: 0 and 320, 1 and 300
    char hex[200] = "0200004001"
                    "02"
                    "0100000000000000"
                    "2c01000000000000";
    if (histogram_bucket(1) != 0) {
        fail_msg("bucket %u", histogram_bucket(1));
    }
    expect(CHANGE_COUNTS, (struct change_cell){.bytes = slice_of(stored.data, stored.len)}, hex);
    buffer_free(&stored);
    histogram_free(&h);
}

static void no_values(void **state) {
    (void)state;
    struct buffer out = buffer_make(64);
    assert_string_equal(row_binary_cell(CHANGE_TIME, &NUMBER(-1), &out),
                        "its time is none that ClickHouse has");
    assert_non_null(row_binary_cell(CHANGE_TIME, &NUMBER(UINT32_MAX + 1LL), &out));
    assert_string_equal(row_binary_cell(CHANGE_COUNTS, &BYTES("no"), &out),
                        "its histogram is malformed");
    assert_non_null(row_binary_cell(CHANGE_COUNTS, &BYTES(""), &out));
    out.cap = 3; // and where there is no room the buffer says so
    assert_null(row_binary_cell(CHANGE_NUMBER, &NUMBER(1), &out));
    assert_true(out.failed);
    buffer_free(&out);
}

static void quotes(void **state) {
    (void)state;
    struct buffer out = buffer_make(64);
    statement_quote("it's \\'; DROP", &out);
    assert_true(slice_is(slice_of(out.data, out.len), "'it\\'s \\\\\\'; DROP'"));
    buffer_free(&out);
}

// Every column of every table has a type, and is inserted by its name.
static void statements(void **state) {
    (void)state;
    for (int t = 0; t < CHANGE_TABLES; t++) {
        const struct change_shape *shape = change_shape((enum change_table)t);
        struct buffer create = buffer_make(1 << 16), insert = buffer_make(1 << 16);
        statement_create("k", t, true, &create);
        statement_insert("k", (enum change_table)t, &insert);
        buffer_append(&create, "", 1);
        buffer_append(&insert, "", 1);
        for (int i = 0; i < shape->count; i++) {
            char text[80];
            const char *suffix = shape->columns[i].kind == CHANGE_COUNTS ? "_keys" : "";
            snprintf(text, sizeof text, "    %s%s ", shape->columns[i].name, suffix);
            assert_non_null(strstr((const char *)create.data, text));
            snprintf(text, sizeof text, "%s%s, ", shape->columns[i].name, suffix);
            assert_non_null(strstr((const char *)insert.data, text));
        }
        assert_null(strstr((const char *)create.data, "TTL"));
        assert_null(strstr((const char *)create.data, "LowCardinality"));
        buffer_reset(&create);
        statement_create("k", t, false, &create);
        buffer_append(&create, "", 1);
        assert_non_null(strstr((const char *)create.data, "TTL"));
        assert_non_null(strstr((const char *)create.data, "LowCardinality(String)"));
        buffer_free(&create);
        buffer_free(&insert);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(values),     cmocka_unit_test(long_text),
                                       cmocka_unit_test(histograms), cmocka_unit_test(no_values),
                                       cmocka_unit_test(quotes),     cmocka_unit_test(statements)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
