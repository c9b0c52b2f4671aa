// SPDX-License-Identifier: Apache-2.0
// What answers of a receiver of OTLP mean, and of what is none; and headers as people write them.
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "export/otlp.h"
#include "export/otlp_answer.h"
#include "export/otlp_headers.h"

static struct otlp_partial partial;
static char reason[CHANGE_REASON_BYTES];

static enum answer_meaning meaning(long status, const char *body, size_t len, bool cut) {
    const struct answer a = {.status = status, .body = slice_of(body, len), .cut = cut};
    return otlp_answer(&a, &partial, reason);
}

#define MEANING(status, body) meaning(status, body, sizeof(body) - 1, false)

static void all_taken(void **state) {
    (void)state;
    static const char *const empty[] = {"", "{}", "{}\n", "{\"partialSuccess\":{}}", "\x0a\x00"};
    static const size_t lens[] = {0, 2, 3, 21, 2};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        for (long status = 200; status < 205; status += 2) {
            assert_int_equal(meaning(status, empty[i], lens[i], false), ANSWER_DONE);
            assert_int_equal(partial.rejected, 0);
            assert_string_equal(partial.message, "");
            assert_string_equal(reason, "");
        }
    }
}

// Field 1 of the answer; in there rejected is field 1, error_message field 2.
static void some_taken(void **state) {
    (void)state;
    assert_int_equal(MEANING(200, "\x0a\x07\x08\x03\x12\x03ouch"), ANSWER_LATER); // a byte too many
    assert_int_equal(MEANING(200, "\x0a\x08\x08\x03\x12\x04ouch"), ANSWER_DONE);
    assert_int_equal(partial.rejected, 3);
    assert_string_equal(partial.message, "ouch");
    // a warning, none of which is lost
    assert_int_equal(MEANING(200, "\x0a\x06\x12\x04hmhm"), ANSWER_DONE);
    assert_int_equal(partial.rejected, 0);
    assert_string_equal(partial.message, "hmhm");
    // less than nothing is nothing, and what is told is one clean line
    assert_int_equal(MEANING(200, "\x0a\x10\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\x03"
                                  "\x1b\n\xff"),
                     ANSWER_DONE);
    assert_int_equal(partial.rejected, 0);
    assert_string_equal(partial.message, "???");
    // fields that are not known say nothing
    assert_int_equal(MEANING(200, "\x0a\x04\x08\x01\x18\x05\x10\x07"), ANSWER_DONE);
    assert_int_equal(partial.rejected, 1);
}

static void no_answers(void **state) {
    (void)state;
    assert_int_equal(MEANING(200, "<html>welcome</html>"), ANSWER_LATER);
    assert_non_null(strstr(reason, "it answers what OTLP does not: <html>welcome"));
    assert_int_equal(MEANING(200, "\x0a\x7f\x08"), ANSWER_LATER);
    assert_int_equal(MEANING(200, "{\"partialSuccess\":{\"rejectedSpans\":\"1\"}}"), ANSWER_LATER);
    assert_int_equal(meaning(200, "", 0, true), ANSWER_LATER);
}

static void refused(void **state) {
    (void)state;
    // google.rpc.Status: code is field 1, message field 2
    assert_int_equal(MEANING(400, "\x08\x03\x12\x05wrong"), ANSWER_REFUSED);
    assert_string_equal(reason, "it answers with HTTP status 400: wrong");
    assert_int_equal(MEANING(413, "too large\n"), ANSWER_REFUSED);
    assert_string_equal(reason, "it answers with HTTP status 413: too large");
    assert_int_equal(MEANING(422, ""), ANSWER_REFUSED);
    assert_string_equal(reason, "it answers with HTTP status 422");
    static const long later[] = {100, 302, 307, 401, 403, 404, 405, 408, 415, 429, 500, 502, 503};
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        char number[20];
        assert_int_equal(MEANING(later[i], "no\033[31m\n"), ANSWER_LATER);
        snprintf(number, sizeof number, "status %ld: no?", later[i]);
        assert_non_null(strstr(reason, number));
    }
    // however long it is
    static char text[LIMIT_EXPORT_ANSWER_BYTES];
    memset(text, 'x', sizeof text);
    assert_int_equal(meaning(400, text, sizeof text, true), ANSWER_REFUSED);
    assert_true(strlen(reason) < CHANGE_REASON_BYTES);
}

// -- headers --------------------------------------------------------------------------------------

static void headers(void **state) {
    (void)state;
    struct otlp_headers h;
    char why[HEADERS_WHY_BYTES];
    assert_true(otlp_headers_read("Authorization: Bearer a.b=c\r\n\nX-Scope-OrgID:7\n", &h, why));
    assert_string_equal(h.lines[0], "Authorization: Bearer a.b=c");
    assert_string_equal(h.lines[1], "X-Scope-OrgID:7");
    assert_null(h.lines[2]);
    otlp_headers_free(&h);
    static const struct {
        const char *text, *why;
    } bad[] = {{"", "there is no header in it"},
               {"\n\r\n", "there is no header in it"},
               {"A: b\nhush\n", "line 2 is no \"Name: value\""},
               {"A b: hush", "line 1 is no \"Name: value\""},
               {": hush", "line 1 is no \"Name: value\""},
               {"A: b\n\nC:  \n", "line 3 is a header without a value"},
               {"A: hush\tx", "line 1 is a header with a control byte"},
               {"A: hush\rX: y", "line 1 is a header with a control byte"},
               {"content-TYPE: hush", "line 1 is a header that kprof sets itself"},
               {"Host: hush", "line 1 is a header that kprof sets itself"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(otlp_headers_check(bad[i].text, why));
        assert_string_equal(why, bad[i].why);
    }
    char many[20 * (LIMIT_OTLP_HEADERS + 1)] = "";
    for (int i = 0; i < LIMIT_OTLP_HEADERS; i++) {
        strcat(many, "A: b\n");
    }
    assert_true(otlp_headers_check(many, why));
    strcat(many, "A: b\n");
    assert_false(otlp_headers_check(many, why));
    assert_string_equal(why, "line 17 is one header too many");
}

static void where_they_may_go(void **state) {
    (void)state;
    static const struct {
        const char *url;
        bool headers, good;
    } cases[] = {{"http://localhost", true, true},
                 {"http://127.0.0.2:1/x", true, true},
                 {"http://[::1]", true, true},
                 {"http://10.0.0.1", true, false},
                 {"http://localhost.a.org", true, false},
                 {"http://10.0.0.1", false, true},
                 {"https://10.0.0.1", true, true}};
    char why[OTLP_WHY_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(otlp_check(cases[i].url, cases[i].headers, why), cases[i].good);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_taken),  cmocka_unit_test(some_taken),
        cmocka_unit_test(no_answers), cmocka_unit_test(refused),
        cmocka_unit_test(headers),    cmocka_unit_test(where_they_may_go)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
