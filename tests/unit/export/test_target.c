// SPDX-License-Identifier: Apache-2.0
// Addresses of engines: what is one, what is none and why, and where a password may go.
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "export/export.h"
#include "export/target.h"

static struct target taken(const char *url) {
    struct target t;
    char why[EXPORT_WHY_BYTES];
    if (!target_parse(url, &t, why)) {
        fail_msg("%s: %s", url, why);
    }
    return t;
}

static void expect(const char *url, bool tls, const char *user, const char *host, int port,
                   const char *database) {
    struct target t = taken(url);
    assert_int_equal(t.tls, tls);
    assert_string_equal(t.user, user);
    assert_string_equal(t.host, host);
    assert_int_equal(t.port, port);
    assert_string_equal(t.database, database);
}

static void addresses(void **state) {
    (void)state;
    expect("clickhouse://localhost/kprof", false, "", "localhost", 8123, "kprof");
    expect("clickhouses://db.example.org/kprof", true, "", "db.example.org", 8443, "kprof");
    expect("clickhouse://me@10.0.0.1:9/a_1", false, "me", "10.0.0.1", 9, "a_1");
    expect("clickhouses://a.b-c_d@[::1]:65535/_x", true, "a.b-c_d", "::1", 65535, "_x");
    expect("clickhouse://[fe80::1]/k", false, "", "fe80::1", 8123, "k");
}

static void refused(void **state) {
    (void)state;
    static const char *const all[] = {"",
                                      "clickhouse",
                                      "http://localhost/k",
                                      "clickhouse:/localhost/k",
                                      "clickhouse://",
                                      "clickhouse:///k",
                                      "clickhouse://localhost",
                                      "clickhouse://localhost/",
                                      "clickhouse://localhost/1k",
                                      "clickhouse://localhost/k;drop",
                                      "clickhouse://localhost/k/",
                                      "clickhouse://localhost/k?x=1",
                                      "clickhouse://@localhost/k",
                                      "clickhouse://a b@localhost/k",
                                      "clickhouse://a@b@localhost/k",
                                      "clickhouse://local host/k",
                                      "clickhouse://localhost:/k",
                                      "clickhouse://localhost:0/k",
                                      "clickhouse://localhost:65536/k",
                                      "clickhouse://localhost:+1/k",
                                      "clickhouse://localhost:8123x/k",
                                      "clickhouse://[::1/k",
                                      "clickhouse://[]/k",
                                      "clickhouse://[::1]x/k",
                                      "clickhouse://[::1]9/k",
                                      "clickhouse://host\r\nX: y/k"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct target t;
        char why[EXPORT_WHY_BYTES] = "";
        if (target_parse(all[i], &t, why)) {
            fail_msg("'%s' was taken", all[i]);
        }
        assert_true(strlen(why) > 10);
    }
}

// Names that are as long as they may be, and longer.
static void long_ones(void **state) {
    (void)state;
    static const struct {
        const char *before, *behind;
        int most;
    } parts[] = {{"clickhouse://", "@h/k", 64},
                 {"clickhouse://", "/k", 253},
                 {"clickhouse://h/", "", 64},
                 {"clickhouse://[", "]/k", 253}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        for (int more = 0; more < 2; more++) {
            char url[400], name[300], why[EXPORT_WHY_BYTES];
            struct target t;
            int n = parts[i].most + more;
            memset(name, 'a', (size_t)n);
            name[n] = 0;
            snprintf(url, sizeof url, "%s%s%s", parts[i].before, name, parts[i].behind);
            assert_int_equal(target_parse(url, &t, why), !more);
        }
    }
}

// Receivers of OTLP.
static void receivers(void **state) {
    (void)state;
    static const struct {
        const char *url;
        bool tls;
        const char *host;
        int port;
        const char *path, *text;
    } good[] = {
        {"http://localhost", false, "localhost", 4318, "", "localhost:4318/"},
        {"https://otel.example.org/", true, "otel.example.org", 4318, "", "otel.example.org:4318/"},
        {"https://a.example:443/otlp", true, "a.example", 443, "otlp/", "a.example:443/otlp/"},
        {"http://[::1]:1/a/b-c_d.e~//", false, "::1", 1, "a/b-c_d.e~/", "[::1]:1/a/b-c_d.e~/"}};
    char why[TARGET_WHY_BYTES], text[TARGET_TEXT_BYTES];
    struct target t;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(target_parse_otlp(good[i].url, &t, why));
        assert_int_equal(t.tls, good[i].tls);
        assert_string_equal(t.host, good[i].host);
        assert_int_equal(t.port, good[i].port);
        assert_string_equal(t.path, good[i].path);
        assert_string_equal(target_text(&t, text), good[i].text);
    }
    static const char *const bad[] = {"",
                                      "localhost:4318",
                                      "grpc://localhost:4317",
                                      "http://",
                                      "http:///v1",
                                      "http://host:0",
                                      "http://host:65536/",
                                      "http://host/a b",
                                      "http://host/a?b=c",
                                      "http://host/a#b",
                                      "http://host/a%0d%0aX:y",
                                      "http://host\r\nX: y/",
                                      "http://host/a\r\nX: y"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        why[0] = 0;
        if (target_parse_otlp(bad[i], &t, why)) {
            fail_msg("'%s' was taken", bad[i]);
        }
        assert_true(strlen(why) > 10);
    }
    assert_false(target_parse_otlp("https://me:hush@host/", &t, why));
    assert_null(strstr(why, "hush"));
    assert_non_null(strstr(why, "--otlp-headers-file"));
    char url[300] = "http://h/";
    memset(url + 9, 'p', 200);
    assert_true(target_parse_otlp(url, &t, why));
    assert_int_equal(strlen(t.path), 201);
    url[209] = 'p';
    assert_false(target_parse_otlp(url, &t, why));
}

static void passwords(void **state) {
    (void)state;
    char why[EXPORT_WHY_BYTES];
    struct target t;
    assert_false(target_parse("clickhouse://me:hush@localhost/k", &t, why));
    assert_null(strstr(why, "hush"));
    assert_non_null(strstr(why, "--export-password-file"));
    static const struct {
        const char *url;
        bool password, good;
    } cases[] = {{"clickhouse://me@localhost/k", true, true},
                 {"clickhouse://me@127.0.0.2/k", true, true},
                 {"clickhouse://me@[::1]/k", true, true},
                 {"clickhouse://me@10.0.0.1/k", true, false},
                 {"clickhouse://me@localhost.example.org/k", true, false},
                 {"clickhouse://me@10.0.0.1/k", false, true},
                 {"clickhouses://me@10.0.0.1/k", true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(export_check(cases[i].url, cases[i].password, why), cases[i].good);
    }
}

static void texts(void **state) {
    (void)state;
    char text[TARGET_TEXT_BYTES];
    struct target t = taken("clickhouses://me@[::1]/k");
    assert_string_equal(target_text(&t, text), "[::1]:8443/k");
    t = taken("clickhouse://me@host/k");
    assert_string_equal(target_text(&t, text), "host:8123/k");
    assert_true(export_name_valid("Köln, 2"));
    assert_false(export_name_valid(""));
    assert_false(export_name_valid("a\nb"));
    char name[EXPORT_NAME_BYTES + 1];
    memset(name, 'x', sizeof name);
    name[EXPORT_NAME_BYTES] = 0;
    assert_false(export_name_valid(name));
    name[EXPORT_NAME_BYTES - 1] = 0;
    assert_true(export_name_valid(name));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(addresses), cmocka_unit_test(refused),
                                       cmocka_unit_test(long_ones), cmocka_unit_test(passwords),
                                       cmocka_unit_test(texts),     cmocka_unit_test(receivers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
