// SPDX-License-Identifier: Apache-2.0
// What samples tell of single processes. The figures are worked out by hand.
#include "report/processes_seen.h"

#include <inttypes.h>
#include <stdio.h>

#include "fail_alloc.h"
#include "model/profile/sample_taker.h"
#include "unit.h"

struct told {
    struct buffer bytes;
    struct profile profile;
    struct sample_taker *taker;
};

static void put(struct told *t, struct sample_record r) {
    sample_record_write(&t->bytes, &r);
}

static void at(struct told *t, uint64_t us) {
    put(t, (struct sample_record){.kind = SAMPLE_TIME, .number = us});
}

static void look(struct told *t, uint32_t process, uint8_t status, uint32_t stack, uint8_t mask,
                 uint64_t reductions, uint64_t queue) {
    struct sample_record r = {
        .kind = SAMPLE_LOOK, .process = process, .status = status, .stack = stack, .mask = mask};
    r.values[VALUE_REDUCTIONS] = reductions;
    r.values[VALUE_QUEUE] = queue;
    r.values[VALUE_MEMORY] = queue * 100;
    put(t, r);
}

static void of(struct told *t, enum sample_kind kind, uint32_t process) {
    put(t, (struct sample_record){
               .kind = (uint8_t)kind, .process = process, .status = STATUS_WAITING});
}

enum { QUEUE = MASK_REDUCTIONS | MASK_QUEUE, ALL = QUEUE | MASK_MEMORY };

// Four seconds: a's queue grows from 10 to 50 and shrinks to 30, b never answers, c is looked at
// once.
static void begin(struct told *t) {
    static const char *const pids[] = {"<0.1.0>", "<0.2.0>", "<0.3.0>"};
    *t = (struct told){.bytes = buffer_make(1 << 16)};
    assert_true(profile_init(&t->profile));
    t->taker = sample_taker_new(&t->profile);
    assert_non_null(t->taker);
    for (int i = 0; i < 2; i++) {
        put(t, (struct sample_record){.kind = SAMPLE_FRAME,
                                      .texts = {slice_text("m"), slice_text(i ? "g" : "f")}});
    }
    put(t, (struct sample_record){.kind = SAMPLE_STACK, .frame_count = 1, .frames = {0}});
    put(t, (struct sample_record){.kind = SAMPLE_STACK, .frame_count = 2, .frames = {0, 1}});
    for (int i = 0; i < 3; i++) {
        put(t, (struct sample_record){.kind = SAMPLE_PROCESS,
                                      .texts = {slice_text(pids[i]), slice_text(i ? "" : "a"),
                                                slice_text("m:init/1"), slice_text("app")}});
    }
    at(t, 1000000);
    look(t, 0, STATUS_RUNNING, 1, ALL, 9999, 10); // of before
    of(t, SAMPLE_UNANSWERED, 1);
    at(t, 1000000);
    look(t, 0, STATUS_RUNNABLE, 2, QUEUE, 700, 50);
    of(t, SAMPLE_UNANSWERED, 1);
    look(t, 2, STATUS_WAITING, 1, ALL, 0, 1);
    at(t, 1000000);
    look(t, 0, STATUS_RUNNING, 0, QUEUE, 300, 30);
    of(t, SAMPLE_GONE, 2);
    at(t, 1000000);
    of(t, SAMPLE_UNCHANGED, 0);
    assert_true(sample_taker_take(t->taker, slice_of(t->bytes.data, t->bytes.len)));
}

static void end(struct told *t) {
    sample_taker_free(t->taker);
    profile_free(&t->profile);
    buffer_free(&t->bytes);
}

static void whole(void **state) {
    (void)state;
    struct told t;
    struct processes_seen seen;
    begin(&t);
    assert_true(processes_seen_take(&t.profile, 0, 0, &seen));
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.more, 0);
    const struct process_seen *a = &seen.of[0], *b = &seen.of[1], *c = &seen.of[2];
    assert_string_equal(a->name, "a");
    assert_string_equal(b->name, "");
    assert_int_equal(a->looks, 4);
    assert_int_equal(a->statuses[STATUS_RUNNING], 2);
    assert_int_equal(a->statuses[STATUS_WAITING], 1);
    assert_int_equal(a->queue.first, 10);
    assert_int_equal(a->queue.last, 30);
    assert_int_equal(a->queue.most, 50);
    assert_int_equal(a->queue.last_us, 3000000); // not asked for when it stood still
    assert_int_equal(a->last_us, 4000000);
    assert_true(seen_per_second(&a->queue) == 10);
    assert_int_equal(a->reductions, 1000);
    assert_true(seen_reductions_per_second(a) > 333.3 && seen_reductions_per_second(a) < 333.4);
    assert_int_equal(a->memory.last, 1000);
    assert_true(seen_per_second(&a->memory) == 0); // told once
    assert_int_equal(a->stack_looks, 3);
    assert_string_equal(stacks_name_of(&t.profile.stacks, a->stack), "m:g/0");
    assert_int_equal(b->looks, 0);
    assert_int_equal(b->unanswered, 2);
    assert_true(c->ended && !a->ended);
    assert_true(seen_reductions_per_second(c) == 0);
    end(&t);
}

static void stretch(void **state) {
    (void)state;
    struct told t;
    struct processes_seen seen;
    begin(&t);
    assert_true(processes_seen_take(&t.profile, 2000000, 4000000, &seen));
    assert_int_equal(seen.of[0].looks, 2);
    assert_int_equal(seen.of[0].reductions, 300);
    assert_int_equal(seen.of[0].queue.first, 50);
    assert_int_equal(seen.of[1].unanswered, 1);
    end(&t);
}

static void json(void **state) {
    (void)state;
    struct told t;
    struct processes_seen seen;
    struct buffer out = buffer_make(1 << 16);
    struct json j = json_make(&out);
    begin(&t);
    assert_true(processes_seen_take(&t.profile, 0, 0, &seen));
    seen.count = 2;
    processes_seen_json(&t.profile, &seen, &j);
    buffer_append(&out, "", 1);
    assert_string_equal(
        (const char *)out.data,
        "[{\"pid\":\"<0.1.0>\",\"name\":\"a\",\"initial_call\":\"m:init/1\",\"application\":"
        "\"app\",\"looks\":4,\"unanswered\":0,\"ended\":false,\"statuses\":{\"running\":2,"
        "\"runnable\":1,\"waiting\":1},\"queue\":{\"first\":10,\"last\":30,\"most\":50,\"first_s\":"
        "1,\"last_s\":3,\"per_s\":10},\"memory\":{\"first\":1000,\"last\":1000,\"most\":1000,"
        "\"first_s\":1,\"last_s\":1,\"per_s\":0},\"reductions_per_s\":333.333,\"stack\":["
        "\"m:g/0\",\"m:f/0\"],\"stack_looks\":3},{\"pid\":\"<0.2.0>\",\"name\":\"\","
        "\"initial_call\":\"m:init/1\",\"application\":\"app\",\"looks\":0,\"unanswered\":2,"
        "\"ended\":false,\"statuses\":{},\"queue\":null,\"memory\":null,\"reductions_per_s\":0,"
        "\"stack\":[],\"stack_looks\":0}]");
    buffer_free(&out);
    end(&t);
}

static void failures(void **state) {
    (void)state;
    struct told t;
    struct processes_seen seen;
    begin(&t);
    for (long n = 0; n < 2; n++) {
        fail_alloc_at(n);
        assert_false(processes_seen_take(&t.profile, 0, 0, &seen));
        fail_alloc_at(-1);
    }
    t.profile.samples->records.data[t.profile.samples->records.len - 3] = 0xff; // a kind
    assert_false(processes_seen_take(&t.profile, 0, 0, &seen));
    end(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole),
        cmocka_unit_test(stretch),
        cmocka_unit_test(json),
        cmocka_unit_test(failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
