// SPDX-License-Identifier: Apache-2.0
// The longest request of a profile as calls, from lines of time that stand here. Times are µs.
#include "report/longest.h"

#include "profile_fixture.h"
#include "unit.h"

enum { US = 1000 };

static struct profile profile;
static struct longest longest;
static char text[4096];

static int prepare(void **state) {
    (void)state;
    assert_true(profile_init(&profile));
    strcpy(profile.head.node, "shop@host");
    profile.timeline_ns = 100 * US;
    profile.timeline_identity = (uint16_t)names_intern(&profile.stacks.names, slice_text("create"));
    return 0;
}

static int forget(void **state) {
    (void)state;
    longest_free(&longest);
    profile_free(&profile);
    return 0;
}

static uint16_t process(uint64_t pid) {
    return timeline_line(&profile.timeline, pid);
}

static void at_state(uint16_t line, int64_t us, const char *stack, enum timeline_state state) {
    struct timeline_event e = {us * US, fixture_stack(&profile, "m", stack), line, (uint8_t)state};
    timeline_add(&profile.timeline, &e, 1000);
}

static void at(uint16_t line, int64_t us, const char *stack) {
    at_state(line, us, stack, TIMELINE_RUNS);
}

static void leaves(uint16_t line, int64_t us) {
    at_state(line, us, "", TIMELINE_LEFT);
}

// "name parent pid start+duration self gc off", one a line.
static const char *made(uint32_t most) {
    char *to = text;
    longest_free(&longest);
    assert_true(longest_calls(&profile, most, &longest));
    *to = 0;
    for (uint32_t i = 0; i < longest.spans.count; i++) {
        const struct slow_span *s = &longest.spans.spans[i];
        to += sprintf(to, "%s %d %s %d+%d %d %d %d%s%s\n", s->name, (int)s->parent, s->pid,
                      (int)(s->start_ns / US), (int)(s->duration_ns / US), (int)(s->self_ns / US),
                      (int)(s->gc_ns / US), (int)(s->off_cpu_ns / US), s->outcome[0] ? " " : "",
                      s->outcome);
    }
    return text;
}

// Two processes: the second one works for a call of the first.
static void two(void) {
    uint16_t one = process(77), other = process(78);
    at(one, 0, "");
    at(one, 0, "a");
    at(one, 10, "a;b");
    at_state(one, 20, "a;b", TIMELINE_OUT);
    at(other, 25, "a;b");
    at(other, 27, "a;b;q");
    at(other, 30, "a;b;q;r");
    at_state(other, 32, "a;b;q;r", TIMELINE_COLLECTS);
    at(other, 35, "a;b;q;r");
    at(other, 40, "a;b;q");
    at(other, 45, "a;b");
    leaves(other, 46);
    at(one, 50, "a;b");
    at(one, 60, "a");
    at(one, 60, "a;b");
    at(one, 90, "a");
    leaves(one, 100);
}

static void calls(void **state) {
    (void)state;
    two();
    assert_string_equal(made(100), "a -1 <0.77.0> 0+100 20 0 0\n"
                                   "b 0 <0.77.0> 10+50 20 0 30\n"
                                   "q 1 <0.78.0> 27+18 8 0 0\n"
                                   "r 2 <0.78.0> 30+10 7 3 0\n"
                                   "b 0 <0.77.0> 60+30 30 0 0\n");
    assert_int_equal(longest.own_ns, 118 * US);
    assert_int_equal(longest.here_ns, 118 * US);
    assert_int_equal(longest.spans.request.duration_ns, 100 * US);
    assert_int_equal(longest.spans.request.spans, 5);
    assert_string_equal(longest.spans.request.node, "shop@host");
    assert_false(longest.spans.request.cut);
}

// What is left out gives its calls to the one below it; the first one stays.
static void some(void **state) {
    (void)state;
    two();
    assert_string_equal(made(4), "a -1 <0.77.0> 0+100 20 0 0\n"
                                 "b 0 <0.77.0> 10+50 20 0 30\n"
                                 "r 1 <0.78.0> 30+10 7 3 0\n"
                                 "b 0 <0.77.0> 60+30 30 0 0\n");
    assert_int_equal(longest.own_ns, 118 * US);
    assert_int_equal(longest.here_ns, 110 * US);
    assert_int_equal(longest.spans.request.spans, 5);
    assert_int_equal(longest.spans.request.kept, 4);
    assert_string_equal(made(1), "a -1 <0.77.0> 0+100 20 0 0\n");
}

// A process of which nobody knows who asked it stands at the top, and so does one that comes back.
static void unknown(void **state) {
    (void)state;
    uint16_t one = process(77), other = process(78), again = process(78);
    at(one, 0, "a");
    at(other, 10, "x;y");
    leaves(other, 20);
    at(again, 30, "a");
    at(again, 30, "a;z");
    leaves(again, 40);
    assert_string_equal(made(100), "a -1 <0.77.0> 0+100 100 0 0\n"
                                   "x -1 <0.78.0> 10+10 0 0 0\n"
                                   "y 1 <0.78.0> 10+10 10 0 0\n"
                                   "z 0 <0.78.0> 30+10 10 0 0\n");
}

// Where the line of time was cut nobody knows how long what was open went on.
static void cut(void **state) {
    (void)state;
    uint16_t one = process(77);
    at(one, 0, "a");
    at(one, 10, "a;b");
    profile.timeline.cut = true;
    profile.head.gc_in_self = true;
    assert_string_equal(made(100), "a -1 <0.77.0> 0+100 10 0 0 open\n"
                                   "b 0 <0.77.0> 10+90 0 0 0 open\n");
    assert_true(longest.spans.request.cut);
    struct buffer out = buffer_make(1 << 16);
    longest_json(&longest, 7, &out);
    buffer_append(&out, "", 1);
    assert_string_equal(
        (char *)out.data,
        "{\"profile\":7,\"node\":\"shop@host\",\"identity\":\"create\",\"duration_us\":100,\"cut\":true,"
        "\"asleep_in_self\":false,\"gc_in_self\":true,\"spans\":[{\"span\":0,\"parent\":null,\"pid\":\"<0.77.0>\",\"name\":\"a\",\"start_us\":0,"
        "\"duration_us\":null,\"self_us\":10,\"gc_us\":0,\"off_cpu_us\":0},{\"span\":1,\"parent\":0,"
        "\"pid\":\"<0.77.0>\",\"name\":\"b\",\"start_us\":10,\"duration_us\":null,\"self_us\":0,"
        "\"gc_us\":0,\"off_cpu_us\":0}]}\n");
    buffer_free(&out);
}

// Before OTP 25.3 nobody sees who is scheduled out: that is told with it.
static void within_self(void **state) {
    (void)state;
    two();
    made(100);
    assert_string_equal(longest.in_self, "");
    profile.head.asleep_in_self = profile.head.gc_in_self = true;
    strcpy(profile.head.otp, "25");
    made(100);
    assert_string_equal(longest.in_self,
                        "Waiting, time asleep and garbage collection are within self: tracing them "
                        "is not safe on the node's release, OTP 25 (otp#6448)");
}

static void none(void **state) {
    (void)state;
    assert_string_equal(made(100), "");
    two();
    for (int i = 0; i < 6; i++) {
        longest_free(&longest);
        fail_alloc_at(i);
        assert_false(longest_calls(&profile, 3, &longest));
        fail_alloc_at(-1);
    }
}

#define A_REQUEST(test) cmocka_unit_test_setup_teardown(test, prepare, forget)

int main(void) {
    const struct CMUnitTest tests[] = {A_REQUEST(calls), A_REQUEST(some),        A_REQUEST(unknown),
                                       A_REQUEST(cut),   A_REQUEST(within_self), A_REQUEST(none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
