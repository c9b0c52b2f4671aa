// SPDX-License-Identifier: Apache-2.0
// Looks gone through as they come are those that are kept, and who is too slow for them loses some,
// which are counted, and is right about all others.
#include "model/profile/sample_stream.h"

#include "model/profile/sample_relay.h"
#include "sample_script.h"

// What was seen, a line each.
struct seen {
    char text[4000];
    size_t len;
    unsigned left; // looks until it is enough
};

static bool see(void *user, const struct sample_walk *w, uint64_t from_us) {
    struct seen *seen = user;
    const struct sample_record *r = &w->record;
    const struct sample_state *s = &w->states[r->process];
    const struct stacks *stacks = &w->profile->stacks;
    if (r->kind == SAMPLE_HELD || r->kind == SAMPLE_LATE) {
        return true;
    }
    seen->len +=
        (size_t)snprintf(seen->text + seen->len, sizeof seen->text - seen->len,
                         "%" PRIu64 " %s %u %s %" PRId64 " %+" PRId64 "\n", from_us + w->us,
                         w->profile->samples->processes[r->process].pid, r->kind,
                         s->stack == STACK_ROOT ? "-" : stacks_name_of(stacks, s->stack),
                         s->values[VALUE_MEMORY], w->changes[VALUE_MEMORY]);
    return --seen->left > 0;
}

static enum stream_status give(struct sample_stream *s, struct seen *seen, struct slice records) {
    return sample_stream_take(s, records, &(struct sample_eye){seen, see});
}

static const char usual_seen[] = "0 <0.100.0> 5 m:f/1 1000 +0\n"
                                 "0 <0.101.0> 5 M.h/2 300 +0\n"
                                 "1000000 <0.100.0> 5 m:g/0 5000 +4000\n"
                                 "1000000 <0.101.0> 6 M.h/2 300 +0\n"
                                 "2500000 <0.100.0> 5 m:g/0 2000 -3000\n"
                                 "2500000 <0.101.0> 7 M.h/2 300 +0\n";

// The records of usual() (sample_script.h), which are not taken.
static void usual_bytes(struct told *t) {
    begin(t);
    look(t, 0, STATUS_RUNNING, 1, 0, 1000);
    look(t, 1, STATUS_WAITING, 3, 0, 300);
    at(t, 1000000);
    look(t, 0, STATUS_RUNNABLE, 2, 700, 5000);
    unchanged(t, 1);
    held(t, 1000);
    at(t, 1500000);
    look(t, 0, STATUS_RUNNING, 0, 50, 2000);
    unanswered(t, 1);
}

static void as_they_come(void **state) {
    (void)state;
    // as large as is given at a time
    for (unsigned batch = 1; batch < 20; batch++) {
        struct told t;
        struct sample_stream s;
        struct seen seen = {.left = 1000};
        struct sample_record r;
        usual_bytes(&t);
        assert_true(sample_stream_begin(&s));
        struct cursor c = cursor_of(t.bytes.data, t.bytes.len);
        while (cursor_left(&c) > 0) {
            const uint8_t *from = c.at;
            for (unsigned i = 0; i < batch; i++) {
                sample_record_read(&c, &r);
            }
            assert_int_equal(give(&s, &seen, slice_of(from, (size_t)(c.at - from))), STREAM_TAKEN);
        }
        assert_string_equal(seen.text, usual_seen);
        assert_int_equal(s.looks, 6);
        assert_int_equal(s.us, 2500000);
        assert_true(s.lost == 0 && !s.full);
        sample_stream_end(&s);
        end(&t);
    }
}

// Numbers begin anew: what they were is forgotten, and the time is not.
static void anew(void **state) {
    (void)state;
    struct told t;
    struct sample_stream s;
    struct seen seen = {.left = 1000};
    usual_bytes(&t);
    at(&t, 500000);
    put(&t, (struct sample_record){.kind = SAMPLE_FORGET});
    frame(&t, "n", "new", 0);
    put(&t, (struct sample_record){.kind = SAMPLE_STACK, .frame_count = 1, .frames = {0}});
    process(&t, "<0.7.0>", "", "");
    unchanged(&t, 0);
    at(&t, 7);
    look(&t, 0, STATUS_RUNNING, 1, 0, 4);
    assert_true(sample_stream_begin(&s));
    assert_int_equal(give(&s, &seen, slice_of(t.bytes.data, t.bytes.len)), STREAM_TAKEN);
    assert_string_equal(seen.text + sizeof usual_seen - 1, "3000000 <0.7.0> 6 - 0 +0\n"
                                                           "3000007 <0.7.0> 5 n:new/0 4 +0\n");
    assert_int_equal(s.profile.samples->process_count, 1);
    assert_int_equal(s.looks, 8);
    sample_stream_end(&s);
    end(&t);
}

static void damaged(void **state) {
    (void)state;
    struct told t;
    struct seen seen = {.left = 1000};
    const struct sample_record bad[] = {
        {.kind = SAMPLE_UNCHANGED, .process = 2},
        {.kind = SAMPLE_LOOK, .process = 0, .stack = 4},
        {.kind = SAMPLE_STACK, .frame_count = 1, .frames = {3}},
        {.kind = SAMPLE_TIME, .number = UINT64_MAX},
        {.kind = SAMPLE_KINDS},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct sample_stream s;
        begin(&t);
        put(&t, bad[i]);
        assert_true(sample_stream_begin(&s));
        assert_int_equal(give(&s, &seen, slice_of(t.bytes.data, t.bytes.len)), STREAM_DAMAGED);
        sample_stream_end(&s);
        end(&t);
    }
    // more time than there is
    struct sample_stream s;
    enum stream_status status = STREAM_TAKEN;
    begin(&t);
    at(&t, UINT64_C(86400) * 1000000);
    assert_true(sample_stream_begin(&s));
    unsigned days = 0;
    for (; status == STREAM_TAKEN; days++) {
        status = give(&s, &seen, slice_of(t.bytes.data, t.bytes.len));
        assert_in_range(days, 0, 40000);
        buffer_reset(&t.bytes);
        at(&t, UINT64_C(86400) * 1000000);
    }
    assert_true(status == STREAM_DAMAGED && days > 36000);
    sample_stream_end(&s);
    end(&t);
}

static void enough(void **state) {
    (void)state;
    struct told t;
    struct sample_stream s;
    struct seen seen = {.left = 2};
    usual_bytes(&t);
    assert_true(sample_stream_begin(&s));
    assert_int_equal(give(&s, &seen, slice_of(t.bytes.data, t.bytes.len)), STREAM_ENOUGH);
    assert_int_equal(seen.left, 0);
    sample_stream_end(&s);
    end(&t);
}

// Whichever allocation fails: it is told, or looks are counted as lost or without all frames.
static void no_memory(void **state) {
    (void)state;
    for (long n = 0, count = 1; n < count; n++) {
        struct told t;
        struct sample_stream s;
        struct seen seen = {.left = 1000};
        usual_bytes(&t);
        put(&t, (struct sample_record){.kind = SAMPLE_FORGET});
        fail_alloc_at(n);
        bool begun = sample_stream_begin(&s);
        if (begun && give(&s, &seen, slice_of(t.bytes.data, t.bytes.len)) == STREAM_TAKEN) {
            assert_true(s.looks + s.lost == 6);
        }
        count = fail_alloc_count();
        fail_alloc_at(-1);
        sample_stream_end(&s);
        end(&t);
    }
}

// -- the relay ------------------------------------------------------------------------------------

struct way {
    struct sample_relay relay;
    struct sample_stream stream;
    struct seen seen;
    struct buffer out;
};

static void way_begin(struct way *w) {
    *w = (struct way){.seen.left = 1000, .out = buffer_make(1 << 20)};
    assert_true(sample_stream_begin(&w->stream));
}

// Takes what is told; whether it gets there.
static void pass(struct way *w, struct told *t, bool there) {
    buffer_reset(&w->out);
    assert_true(sample_relay_take(&w->relay, slice_of(t->bytes.data, t->bytes.len), &w->out));
    buffer_reset(&t->bytes);
    struct slice passed = slice_of(w->out.data, w->out.len);
    if (there) {
        assert_int_equal(give(&w->stream, &w->seen, passed), STREAM_TAKEN);
    } else {
        sample_relay_lose(&w->relay, passed);
    }
}

static void loses(void **state) {
    (void)state;
    struct told t;
    struct way w;
    way_begin(&w);
    begin(&t);
    look(&t, 0, STATUS_RUNNING, 1, 0, 1000);
    pass(&w, &t, true);
    at(&t, 1000000);
    look(&t, 0, STATUS_RUNNING, 2, 0, 9000); // its stack is another one now
    unchanged(&t, 1);
    pass(&w, &t, false);
    assert_true(w.relay.behind && w.relay.lost == 2);
    at(&t, 1000000);
    look(&t, 0, STATUS_RUNNING, 0, 0, 0); // which it would not know of
    unanswered(&t, 0);
    pass(&w, &t, true);
    assert_true(w.relay.behind && w.relay.lost == 4 && w.out.len == 0);
    unchanged(&t, 0);
    at(&t, 500000);
    put(&t, (struct sample_record){.kind = SAMPLE_FORGET});
    frame(&t, "m", "g", 0);
    put(&t, (struct sample_record){.kind = SAMPLE_STACK, .frame_count = 1, .frames = {0}});
    process(&t, "<0.100.0>", "a", "app");
    at(&t, 1);
    look(&t, 0, STATUS_RUNNING, 1, 0, 9500);
    pass(&w, &t, false); // lost again, and with it that all was told anew
    assert_true(w.relay.behind && w.relay.lost == 6 && w.relay.us == 2500001);
    put(&t, (struct sample_record){.kind = SAMPLE_FORGET});
    frame(&t, "m", "g", 0);
    put(&t, (struct sample_record){.kind = SAMPLE_STACK, .frame_count = 1, .frames = {0}});
    process(&t, "<0.100.0>", "a", "app");
    at(&t, 9);
    look(&t, 0, STATUS_RUNNING, 1, 0, 9500);
    pass(&w, &t, true);
    unchanged(&t, 0);
    pass(&w, &t, true);
    assert_true(!w.relay.behind && w.relay.lost == 6 && w.relay.us == 0);
    assert_string_equal(w.seen.text, "0 <0.100.0> 5 m:f/1 1000 +0\n"
                                     "2500010 <0.100.0> 5 m:g/0 9500 +0\n"
                                     "2500010 <0.100.0> 6 m:g/0 9500 +0\n");
    sample_stream_end(&w.stream);
    buffer_free(&w.out);
    end(&t);
}

static void of_days(void **state) {
    (void)state;
    struct told t;
    struct way w;
    way_begin(&w);
    begin(&t);
    pass(&w, &t, false);
    for (int day = 0; day < 3; day++) {
        at(&t, UINT64_C(86400) * 1000000);
        pass(&w, &t, true);
    }
    put(&t, (struct sample_record){.kind = SAMPLE_FORGET});
    process(&t, "<0.9.0>", "", "");
    unchanged(&t, 0);
    pass(&w, &t, true);
    assert_string_equal(w.seen.text, "259200000000 <0.9.0> 6 - 0 +0\n");
    sample_stream_end(&w.stream);
    buffer_free(&w.out);
    end(&t);
}

static void relay_of_nonsense(void **state) {
    (void)state;
    struct sample_relay relay = {0};
    struct buffer out = buffer_make(4);
    assert_false(sample_relay_take(&relay, slice_text("\x7f"), &out));
    assert_true(sample_relay_take(&relay, slice_text(""), &out));
    assert_false(
        sample_relay_take(&relay, slice_text("\x0a\x01\x0a\x01\x0a\x01"), &out)); // no room
    relay.behind = true;
    assert_false(sample_relay_take(&relay, slice_text("\x0a"), &out));
    buffer_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_they_come), cmocka_unit_test(anew),
        cmocka_unit_test(damaged),      cmocka_unit_test(enough),
        cmocka_unit_test(loses),        cmocka_unit_test(no_memory),
        cmocka_unit_test(of_days),      cmocka_unit_test(relay_of_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
