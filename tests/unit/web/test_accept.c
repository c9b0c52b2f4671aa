// SPDX-License-Identifier: Apache-2.0
// Which form of the metrics a program takes.
#include "unit.h"

#include "web/accept.h"

#define PROTOBUF                                                                                   \
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"

static void expect(const char *accept, enum meters_form form) {
    if (accept_form(accept) != form) {
        fail_msg("form %d instead of %d for \"%s\"", accept_form(accept), form,
                 accept ? accept : "nothing");
    }
}

// As Prometheus 2.42 asks with native histograms and without, and Prometheus 3.
static void test_prometheus(void **state) {
    (void)state;
    expect(PROTOBUF ",application/openmetrics-text;version=1.0.0;q=0.8,"
                    "application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;"
                    "q=0.5,*/*;q=0.1",
           METERS_PROTOBUF);
    expect("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
           "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
           METERS_OPEN);
    expect("application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
           "application/openmetrics-text;version=0.0.1;q=0.5,"
           "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,"
           "*/*;q=0.2",
           METERS_OPEN);
}

static void test_everybody_else(void **state) {
    (void)state;
    expect(NULL, METERS_PROMETHEUS);
    expect("", METERS_PROMETHEUS);
    expect("*/*", METERS_PROMETHEUS);
    expect("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", METERS_PROMETHEUS);
    expect("application/json", METERS_PROMETHEUS);
    expect("text/plain", METERS_PROMETHEUS);
}

static void test_quality(void **state) {
    (void)state;
    expect("text/plain;q=0.5," PROTOBUF ";q=0.6", METERS_PROTOBUF);
    expect("text/plain;q=0.6," PROTOBUF ";q=0.5", METERS_PROMETHEUS);
    expect("text/plain;q=0.501," PROTOBUF ";q=0.50", METERS_PROMETHEUS);
    expect("text/plain," PROTOBUF, METERS_PROMETHEUS); // the same: the first
    expect(PROTOBUF ",text/plain", METERS_PROTOBUF);
    expect("*/*;q=0.9," PROTOBUF ";q=0.1", METERS_PROMETHEUS);
    expect(PROTOBUF ";q=0", METERS_PROMETHEUS); // it is not taken
    const char *const none[] = {"", "x", "-1", "1.1", "2", "0.1234", ".5", "1.001", "0,5"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char accept[200];
        snprintf(accept, sizeof accept, PROTOBUF ";q=%s", none[i]);
        expect(accept, METERS_PROMETHEUS);
    }
    expect(PROTOBUF ";q=1.000", METERS_PROTOBUF);
}

static void test_parameters(void **state) {
    (void)state;
    expect("application/vnd.google.protobuf", METERS_PROMETHEUS);
    expect("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text",
           METERS_PROMETHEUS);
    expect("application/vnd.google.protobuf;proto=other;encoding=delimited", METERS_PROMETHEUS);
    expect("Application/Vnd.Google.Protobuf ; Proto = \"io.prometheus.client.MetricFamily\" ; "
           "ENCODING=delimited ; q = 0.9",
           METERS_PROTOBUF);
    expect("application/openmetrics-text", METERS_OPEN);
    expect("application/openmetrics-text;version=0.0.1", METERS_PROMETHEUS);
    expect("application/openmetrics-text;version=2.0.0", METERS_PROMETHEUS);
    expect("text/plain;version=1.0.0;q=1,application/openmetrics-text;q=0.1", METERS_OPEN);
}

static void test_broken(void **state) {
    (void)state;
    const char *const broken[] = {",",     ";",      ";;,;,",  "=",      ";=;=",
                                  ",;q",   ";q=",    "a;\"\"", "a;b=\"", "application/openmetrics",
                                  "\t \t", "*;q=1.0"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        expect(broken[i], METERS_PROMETHEUS);
    }
    expect(",,;q=1,application/openmetrics-text", METERS_OPEN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prometheus), cmocka_unit_test(test_everybody_else),
        cmocka_unit_test(test_quality), cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
