// SPDX-License-Identifier: Apache-2.0
#include "base/trace_parent.h"

#include "base/hex.h"
#include "unit.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"
static const uint8_t wanted[] = {0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd, 0x84,
                                 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c, 0xb7, 0xad,
                                 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31, 0x03};
static const uint8_t none[TRACE_PARENT_BYTES];

static bool parse(const char *trace_id, const char *span_id, struct trace_parent *out) {
    return trace_parent_parse(slice_text(trace_id), slice_text(span_id), 3, out);
}

static void digits(void **state) {
    (void)state;
    struct trace_parent p;
    char trace[2 * TRACE_ID_BYTES + 1], span[2 * SPAN_ID_BYTES + 1];
    assert_true(parse(TRACE, SPAN, &p));
    assert_memory_equal(&p, wanted, sizeof wanted);
    assert_true(trace_parent_known(&p));
    hex_text(p.trace_id, TRACE_ID_BYTES, trace);
    hex_text(p.span_id, SPAN_ID_BYTES, span);
    assert_string_equal(trace, TRACE);
    assert_string_equal(span, SPAN);
}

static void what_is_none(void **state) {
    (void)state;
    static const struct {
        const char *trace_id, *span_id;
    } texts[] = {{"", ""},
                 {TRACE, ""},
                 {TRACE "0", SPAN},
                 {TRACE, SPAN "00"},
                 {"0AF7651916CD43DD8448EB211C80319C", SPAN},
                 {TRACE, "b7ad6b716920333g"},
                 {TRACE, "b7ad6b716920333 "},
                 {"00000000000000000000000000000000", SPAN},
                 {TRACE, "0000000000000000"}};
    struct trace_parent p;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        memset(&p, 1, sizeof p);
        assert_false(parse(texts[i].trace_id, texts[i].span_id, &p));
        assert_memory_equal(&p, none, sizeof none);
    }
    // a text of the right length that holds a 0
    assert_false(trace_parent_parse(slice_text(TRACE), slice_of("b7ad6b71692033\0001", 16), 0, &p));
    assert_false(trace_parent_known(&p));
}

static void bytes(void **state) {
    (void)state;
    struct trace_parent p;
    uint8_t changed[sizeof wanted];
    assert_true(trace_parent_read(slice_of(wanted, sizeof wanted), &p));
    assert_memory_equal(&p, wanted, sizeof wanted);
    assert_false(trace_parent_read(slice_of(wanted, sizeof wanted - 1), &p));
    memcpy(changed, wanted, sizeof wanted);
    memset(changed, 0, TRACE_ID_BYTES);
    assert_false(trace_parent_read(slice_of(changed, sizeof changed), &p));
    memcpy(changed, wanted, sizeof wanted);
    memset(changed + TRACE_ID_BYTES, 0, SPAN_ID_BYTES);
    assert_false(trace_parent_read(slice_of(changed, sizeof changed), &p));
    assert_memory_equal(&p, none, sizeof none);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(digits), cmocka_unit_test(what_is_none),
                                       cmocka_unit_test(bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
