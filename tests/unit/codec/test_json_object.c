// SPDX-License-Identifier: Apache-2.0
// Flat JSON objects: what is taken, what is not, and each cut of them.
#include "unit.h"

#include "codec/json_object.h"

// What an object comes to: "a=t:x b=n:-1 c=b:1 d=0", or "!" and why.
static const char *read_all(struct slice bytes) {
    static char out[4096];
    struct json_object o = json_object_of(bytes);
    size_t len = 0;
    out[0] = 0;
    for (enum json_kind kind; (kind = json_object_next(&o)) != JSON_END;) {
        if (kind == JSON_BAD) {
            assert_int_equal(json_object_next(&o), JSON_BAD); // for ever
            snprintf(out, sizeof out, "!%s", o.why);
            return out;
        }
        len += (size_t)snprintf(out + len, sizeof out - len, "%s%s=", len > 0 ? " " : "", o.key);
        len += (size_t)(kind == JSON_TEXT ? snprintf(out + len, sizeof out - len, "t:%s", o.text)
                        : kind == JSON_WHOLE
                            ? snprintf(out + len, sizeof out - len, "n:%lld", (long long)o.number)
                        : kind == JSON_BOOL
                            ? snprintf(out + len, sizeof out - len, "b:%d", (int)o.number)
                            : snprintf(out + len, sizeof out - len, "0"));
    }
    return out;
}

static void expect(const char *json, const char *wanted) {
    assert_string_equal(read_all(slice_text(json)), wanted);
}

static void taken(void **state) {
    (void)state;
    expect("{}", "");
    expect(" \t\r\n{ } \n", "");
    expect("{\"a\":\"x\",\"b\":-1,\"c\":true,\"d\":null}", "a=t:x b=n:-1 c=b:1 d=0");
    expect(" { \"a\" : false , \"b\" : 0 } ", "a=b:0 b=n:0");
    expect("{\"a\":9223372036854775807}", "a=n:9223372036854775807");
    expect("{\"a\":-9223372036854775808}", "a=n:-9223372036854775808");
    expect("{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", "a=t:\"\\/\b\f\n\r\t");
    expect("{\"a\":\"\\u00e4\\u20ac\\ud83d\\ude00\"}", "a=t:ä€😀");
    expect("{\"\\u0061\":\"\"}", "a=t:");
}

static void refused(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      "x",
                                      "[]",
                                      "\"a\"",
                                      "{",
                                      "}",
                                      "{,}",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{\"a\":1,}",
                                      "{\"a\":1 \"b\":2}",
                                      "{\"a\":1}}",
                                      "{\"a\":1}x",
                                      "{a:1}",
                                      "{'a':1}",
                                      "{\"a\":01}",
                                      "{\"a\":-}",
                                      "{\"a\":+1}",
                                      "{\"a\":1.5}",
                                      "{\"a\":1e3}",
                                      "{\"a\":.5}",
                                      "{\"a\":9223372036854775808}",
                                      "{\"a\":-9223372036854775809}",
                                      "{\"a\":99999999999999999999999}",
                                      "{\"a\":{}}",
                                      "{\"a\":[1]}",
                                      "{\"a\":tru}",
                                      "{\"a\":True}",
                                      "{\"a\":nul}",
                                      "{\"a\":\"x}",
                                      "{\"a\":\"\n\"}",
                                      "{\"a\":\"\\x\"}",
                                      "{\"a\":\"\\u12\"}",
                                      "{\"a\":\"\\u0000\"}",
                                      "{\"a\":\"\\ud83d\"}",
                                      "{\"a\":\"\\ude00\"}",
                                      "{\"a\":\"\\ud83d\\u0041\"}",
                                      "{\"a\":\"\\"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (read_all(slice_text(bad[i]))[0] != '!') {
            fail_msg("taken: %s", bad[i]);
        }
    }
    assert_int_equal(read_all(slice_of("{\"a\":\"x\0y\"}", 11))[0], '!');
    assert_int_equal(read_all(slice_of("{}\0", 3))[0], '!');
}

static void lengths(void **state) {
    (void)state;
    char json[JSON_OBJECT_TEXT_BYTES + 100];
    for (int more = 0; more < 2; more++) {
        int len =
            snprintf(json, sizeof json, "{\"a\":\"%0*d\"}", JSON_OBJECT_TEXT_BYTES - 1 + more, 0);
        assert_int_equal(read_all(slice_of(json, (size_t)len))[0], more ? '!' : 'a');
        len = snprintf(json, sizeof json, "{\"%0*d\":1}", JSON_OBJECT_KEY_BYTES - 1 + more, 0);
        assert_int_equal(read_all(slice_of(json, (size_t)len))[0], more ? '!' : '0');
    }
}

// Not one byte behind the end is read, and no part of an object is one.
static void cut(void **state) {
    (void)state;
    static const char whole[] =
        "{\"a\":\"\\u00e4\\ud83d\\ude00x\",\"b\":-12,\"c\":true,\"d\":null}";
    for (size_t len = 0; len < sizeof whole - 1; len++) {
        uint8_t *copy = malloc(len + !len);
        memcpy(copy, whole, len);
        assert_int_equal(read_all(slice_of(copy, len))[0], '!');
        free(copy);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(taken), cmocka_unit_test(refused),
                                       cmocka_unit_test(lengths), cmocka_unit_test(cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
