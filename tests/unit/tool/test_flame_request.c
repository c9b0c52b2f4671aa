// SPDX-License-Identifier: Apache-2.0
// What is said around the waterfall of a profile's longest request, from structs.
#include "tool/flame/print.h"

#include "unit.h"

static struct slow_span call = {.duration_ns = 5000000,
                                .self_ns = 5000000,
                                .parent = UINT32_MAX,
                                .name = "m:f/0",
                                .pid = "<0.7.0>",
                                .outcome = ""};

static struct longest longest = {.spans = {.request = {.node = "shop@host",
                                                       .identity = "buy",
                                                       .duration_ns = 5000000,
                                                       .spans = 1,
                                                       .kept = 1},
                                           .spans = &call,
                                           .count = 1},
                                 .own_ns = 5000000,
                                 .here_ns = 5000000};

#define DRAWN                                                                                      \
    " The longest request of profile 7, buy: 5.0 ms on shop@host\n"                                \
    " 1 call.\n"                                                                                   \
    "\n"                                                                                           \
    " offset              duration    self  process  function\n"                                   \
    "   0 ns  ##########    5.0 ms  5.0 ms  <0.7.0>  m:f/0\n"

static void expect(const char *expected) {
    struct waterfall_style style = {.width = 40};
    struct buffer out = buffer_make(1 << 16);
    flame_request(&longest, 7, &style, &out);
    assert_false(out.failed);
    buffer_append(&out, "", 1);
    assert_string_equal((char *)out.data, expected);
    buffer_free(&out);
}

static void says(void **state) {
    (void)state;
    expect(DRAWN);
    strcpy(longest.in_self, "Garbage collection is within self");
    expect(DRAWN "\n Garbage collection is within self.\n");
    longest.in_self[0] = 0;
    longest.spans.request.cut = true;
    expect(DRAWN "\n It was more than there was room for: what came later is not known.\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
