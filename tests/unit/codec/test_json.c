// SPDX-License-Identifier: Apache-2.0
// What is written is read by SQLite's JSON functions, which know nothing of this writer.
#include "codec/json.h"

#include <math.h>
#include <sqlite3.h>

#include "unit.h"

static sqlite3 *db;

// The value of an SQL expression with ?1 = the JSON text, as text; "invalid" when it is no JSON.
static const char *read_back(const struct buffer *b, const char *expression, char out[1024]) {
    char sql[256];
    snprintf(sql, sizeof sql, "SELECT CASE WHEN json_valid(?1) THEN %s ELSE 'invalid' END",
             expression);
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    sqlite3_bind_text(s, 1, (const char *)b->data, (int)b->len, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    const unsigned char *text = sqlite3_column_text(s, 0);
    snprintf(out, 1024, "%s", text ? (const char *)text : "null");
    sqlite3_finalize(s);
    return out;
}

static void expect_bytes(const struct buffer *b, const char *expected) {
    assert_false(b->failed);
    assert_int_equal(b->len, strlen(expected));
    assert_memory_equal(b->data, expected, b->len);
}

static void structure(void **state) {
    (void)state;
    struct buffer b = buffer_make(10000);
    struct json j = json_make(&b);
    json_open(&j, '{');
    json_key_text(&j, "a", "x");
    json_key_int(&j, "b", -5);
    json_key(&j, "c");
    json_open(&j, '[');
    json_open(&j, '[');
    json_close(&j, ']');
    json_open(&j, '{');
    json_close(&j, '}');
    json_bool(&j, true);
    json_bool(&j, false);
    json_null(&j);
    json_int(&j, INT64_MIN);
    json_text(&j, "");
    json_close(&j, ']');
    json_key_number(&j, "d", 0.5, 3);
    json_close(&j, '}');
    expect_bytes(
        &b,
        "{\"a\":\"x\",\"b\":-5,\"c\":[[],{},true,false,null,-9223372036854775808,\"\"],\"d\":0.5}");
    char out[1024];
    assert_string_equal(read_back(&b, "json_extract(?1, '$.c[5]')", out), "-9223372036854775808");
    buffer_free(&b);
}

// Each text comes back as it was; what is no UTF-8 as U+FFFD.
static void texts(void **state) {
    (void)state;
#define FFFD "\xef\xbf\xbd"
    static const char *const cases[][2] = {
        {"plain", "plain"},
        {"\"quoted\" \\ /", "\"quoted\" \\ /"},
        {"\n\r\t\b\f\x01\x1f", "\n\r\t\b\f\x01\x1f"},
        {"\x7f", "\x7f"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80", "\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80"},
        {"\xff", FFFD},
        {"a\x80z", "a" FFFD "z"},
        {"\xc3", FFFD},
        {"\xe2\x82", FFFD FFFD},
        {"\xf0\x9f\x98", FFFD FFFD FFFD},
        {"\xc0\xaf", FFFD FFFD},
        {"\xe0\x80\xaf", FFFD FFFD FFFD},
        {"\xed\xa0\x80", FFFD FFFD FFFD},
        {"\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD},
        {"\xf8\x88\x80\x80\x80", FFFD FFFD FFFD FFFD FFFD},
        {"\xe2\"", FFFD "\""},
        {"\xf0\\x", FFFD "\\x"},
    };
    struct guarded g = guarded_make(64);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer b = buffer_make(10000);
        struct json j = json_make(&b);
        struct slice text = guarded_copy(&g, cases[i][0], strlen(cases[i][0]) + 1);
        json_open(&j, '[');
        json_text(&j, (const char *)text.data);
        json_close(&j, ']');
        char out[1024];
        assert_string_equal(read_back(&b, "json_extract(?1, '$[0]')", out), cases[i][1]);
        for (size_t k = 0; k < b.len; k++) {
            assert_true(b.data[k] >= ' ');
        }
        // as a key, too
        buffer_reset(&b);
        j = json_make(&b);
        json_open(&j, '{');
        json_key_int(&j, (const char *)text.data, 1);
        json_close(&j, '}');
        assert_string_equal(read_back(&b, "(SELECT key FROM json_each(?1))", out), cases[i][1]);
        buffer_free(&b);
    }
    guarded_free(&g);
}

// Any bytes make valid JSON.
static void any_text_is_valid(void **state) {
    (void)state;
    uint64_t seed = 8;
    struct buffer b = buffer_make(10000);
    for (int i = 0; i < 20000; i++) {
        char text[24];
        size_t len = random_u64(&seed) % 23;
        for (size_t k = 0; k < len; k++) {
            static const uint8_t leads[] = {0xc2, 0xe0, 0xed, 0xf0, 0xf4, 0x80,
                                            0x9f, 0xa0, '"',  '\\', '\n', 'a'};
            uint64_t r = random_u64(&seed);
            uint8_t byte = r % 3 ? leads[r % sizeof leads] : (uint8_t)(r >> 8);
            text[k] = byte ? (char)byte : 'x';
        }
        text[len] = 0;
        buffer_reset(&b);
        struct json j = json_make(&b);
        json_text(&j, text);
        char out[1024];
        assert_string_equal(read_back(&b, "json_type(?1)", out), "text");
    }
    buffer_free(&b);
}

static void number_is(double value, int decimals, const char *expected) {
    struct buffer b = buffer_make(1000);
    struct json j = json_make(&b);
    json_number(&j, value, decimals);
    expect_bytes(&b, expected);
    char out[1024];
    assert_string_not_equal(read_back(&b, "'valid'", out), "invalid");
    buffer_free(&b);
}

static void numbers(void **state) {
    (void)state;
    number_is(0, 3, "0");
    number_is(1.5, 3, "1.5");
    number_is(1.0, 3, "1");
    number_is(100, 0, "100");
    number_is(100, 2, "100");
    number_is(0.0004, 3, "0");
    number_is(1234.5678, 2, "1234.57");
    number_is(-2.25, 4, "-2.25");
    number_is(1e15, 1, "1000000000000000");
    number_is(NAN, 2, "null");
    number_is(INFINITY, 2, "null");
    number_is(-INFINITY, 2, "null");
    struct buffer b = buffer_make(1000);
    struct json j = json_make(&b);
    json_number(&j, -1.7976931348623157e308, 50);
    assert_int_equal(b.len, 310);
    assert_false(b.failed);
    buffer_free(&b);
}

static void past_the_cap_it_fails_and_says_so(void **state) {
    (void)state;
    struct buffer whole = buffer_make(1000);
    struct json j = json_make(&whole);
    json_open(&j, '[');
    json_text(&j, "caf\xc3\xa9 \"x\" \n");
    json_int(&j, 12);
    json_close(&j, ']');
    for (size_t cap = 0; cap < whole.len + 8; cap++) {
        struct buffer b = buffer_make(cap);
        j = json_make(&b);
        json_open(&j, '[');
        json_text(&j, "caf\xc3\xa9 \"x\" \n");
        json_int(&j, 12);
        json_close(&j, ']');
        assert_true(b.len <= cap);
        assert_true(b.failed || b.len == whole.len);
        assert_true(cap >= whole.len || b.failed);
        buffer_free(&b);
    }
    buffer_free(&whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structure),
        cmocka_unit_test(texts),
        cmocka_unit_test(any_text_is_valid),
        cmocka_unit_test(numbers),
        cmocka_unit_test(past_the_cap_it_fails_and_says_so),
    };
    sqlite3_open(":memory:", &db);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sqlite3_close(db);
    return failed;
}
