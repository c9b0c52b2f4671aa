// SPDX-License-Identifier: Apache-2.0
// What a run of stack sampling shows as it goes. The figures are worked out by hand.
#include "model/profile/sample_view.h"

#include <inttypes.h>
#include <stdio.h>

#include "fail_alloc.h"
#include "model/profile/samples.h"
#include "unit.h"

struct told {
    struct buffer bytes;
    struct sample_view *view;
};

static void put(struct told *t, struct sample_record r) {
    sample_record_write(&t->bytes, &r);
}

static bool taken(struct told *t) {
    bool ok = sample_view_take(t->view, slice_of(t->bytes.data, t->bytes.len));
    buffer_reset(&t->bytes);
    return ok;
}

static void frame(struct told *t, const char *function) {
    put(t, (struct sample_record){.kind = SAMPLE_FRAME,
                                  .texts = {slice_text("m"), slice_text(function)},
                                  .number = 0});
}

static void process(struct told *t, const char *pid, const char *name) {
    put(t, (struct sample_record){.kind = SAMPLE_PROCESS,
                                  .texts = {slice_text(pid), slice_text(name),
                                            slice_text("m:init/1"), slice_text("app")}});
}

static void at(struct told *t, uint64_t us) {
    put(t, (struct sample_record){.kind = SAMPLE_TIME, .number = us});
}

// a works in m:f/0, which calls itself and m:g/0; b sleeps in m:h/0.
static void begin(struct told *t) {
    *t = (struct told){.bytes = buffer_make(1 << 20), .view = sample_view_new()};
    assert_non_null(t->view);
    frame(t, "f");
    frame(t, "g");
    frame(t, "h");
    put(t, (struct sample_record){.kind = SAMPLE_STACK, .frame_count = 1, .frames = {0}});
    put(t, (struct sample_record){.kind = SAMPLE_STACK, .frame_count = 3, .frames = {0, 0, 1}});
    put(t, (struct sample_record){.kind = SAMPLE_STACK, .frame_count = 1, .frames = {2}});
    process(t, "<0.100.0>", "a");
    process(t, "<0.101.0>", "");
}

static void look(struct told *t, uint32_t of, uint8_t status, uint32_t stack, uint64_t reductions,
                 uint64_t queue, uint64_t memory) {
    struct sample_record r = {.kind = SAMPLE_LOOK,
                              .process = of,
                              .status = status,
                              .stack = stack,
                              .mask = MASK_REDUCTIONS | MASK_QUEUE | (memory ? MASK_MEMORY : 0)};
    r.values[VALUE_REDUCTIONS] = reductions;
    r.values[VALUE_QUEUE] = queue;
    r.values[VALUE_MEMORY] = memory;
    put(t, r);
}

static void of(struct told *t, enum sample_kind kind, uint32_t process, uint8_t status) {
    put(t, (struct sample_record){.kind = (uint8_t)kind, .process = process, .status = status});
}

static void end(struct told *t) {
    sample_view_free(t->view);
    buffer_free(&t->bytes);
}

// The view as text: "us looks/busy | pid function status looks+unchanged-unanswered reductions
// queue(change) memory(change) … | function self/total …".
static const char *viewed(struct told *t) {
    static char out[4000];
    const struct view *v = sample_view_next(t->view, VIEW_BY_REDUCTIONS);
    if (!v) {
        return "no time has passed";
    }
    size_t len = (size_t)snprintf(out, sizeof out, "%" PRIu64 " %u/%u |", v->us, v->looks, v->busy);
    for (uint32_t i = 0; i < v->process_count; i++) {
        const struct view_process *p = &v->processes[i];
        len += (size_t)snprintf(
            out + len, sizeof out - len,
            " %s %s %s%s %u+%u-%u %" PRId64 " %" PRId64 "(%" PRId64 ") %" PRId64 "(%" PRId64 ")",
            p->pid, p->function, samples_status(p->status), p->gone ? "!" : "", p->looks,
            p->unchanged, p->unanswered, p->reductions, p->now.queue,
            p->now.queue - p->before.queue, p->now.memory, p->now.memory - p->before.memory);
    }
    len += (size_t)snprintf(out + len, sizeof out - len, " |");
    for (uint32_t i = 0; i < v->function_count; i++) {
        const struct view_function *f = &v->functions[i];
        len +=
            (size_t)snprintf(out + len, sizeof out - len, " %s %u/%u", f->name, f->self, f->total);
    }
    return out;
}

static void shown(void **state) {
    (void)state;
    struct told t;
    begin(&t);
    look(&t, 0, STATUS_RUNNING, 1, 0, 5, 1000);
    look(&t, 1, STATUS_WAITING, 3, 0, 0, 0);
    at(&t, 400000);
    look(&t, 0, STATUS_RUNNABLE, 2, 700, 25, 5000);
    of(&t, SAMPLE_UNCHANGED, 1, STATUS_WAITING);
    at(&t, 600000);
    look(&t, 0, STATUS_RUNNING, 0, 50, 15, 0);
    of(&t, SAMPLE_UNANSWERED, 1, 0);
    assert_true(taken(&t));
    // f is in all three looks at a, though twice in two of them; b runs nothing, and has told no
    // memory
    assert_string_equal(viewed(&t),
                        "1000000 5/3 | <0.100.0> m:g/0 running 3+0-0 750 15(10) 5000(4000) "
                        "<0.101.0> m:h/0 waiting 1+1-1 0 0(0) -1(0) | m:g/0 2/2 m:f/0 1/3");
    end(&t);
}

static void since_the_one_before(void **state) {
    (void)state;
    struct told t;
    begin(&t);
    at(&t, 1000);
    look(&t, 0, STATUS_RUNNING, 1, 10, 5, 1000);
    look(&t, 1, STATUS_WAITING, 3, 0, 0, 0);
    assert_true(taken(&t));
    assert_string_equal(viewed(&t), "1000 2/1 | <0.100.0> m:f/0 running 1+0-0 10 5(0) 1000(0) "
                                    "<0.101.0> m:h/0 waiting 1+0-0 0 0(0) -1(0) | m:f/0 1/1");
    assert_string_equal(viewed(&t), "no time has passed");
    // one has ended; of the other all is as it was, but its queue
    at(&t, 2000);
    look(&t, 1, STATUS_RUNNING, 0, 3, 7, 0);
    of(&t, SAMPLE_GONE, 0, 0);
    assert_true(taken(&t));
    assert_string_equal(viewed(&t), "2000 1/1 | <0.101.0> m:h/0 running 1+0-0 3 7(7) -1(0) "
                                    "<0.100.0> m:f/0 running! 0+0-0 0 5(0) 1000(0) | m:h/0 1/1");
    at(&t, 1);
    assert_true(taken(&t));
    assert_string_equal(viewed(&t), "1 0/0 | |");
    // changes are since the view before, not since the first one
    at(&t, 1);
    look(&t, 1, STATUS_WAITING, 0, 1, 9, 0);
    assert_true(taken(&t));
    assert_string_equal(viewed(&t), "1 1/0 | <0.101.0> m:h/0 waiting 1+0-0 1 9(2) -1(0) |");
    end(&t);
}

static void begun_anew(void **state) {
    (void)state;
    struct told t;
    begin(&t);
    put(&t, (struct sample_record){.kind = SAMPLE_FORGET});
    frame(&t, "x");
    put(&t, (struct sample_record){.kind = SAMPLE_STACK, .frame_count = 1, .frames = {0}});
    process(&t, "<0.9.0>", "");
    at(&t, 10);
    look(&t, 0, STATUS_COLLECTING, 1, 1, 0, 0);
    assert_true(taken(&t));
    assert_string_equal(viewed(&t),
                        "10 1/1 | <0.9.0> m:x/0 garbage collecting 1+0-0 1 0(0) -1(0) | m:x/0 1/1");
    look(&t, 1, STATUS_RUNNING, 1, 1, 0, 0); // of before
    assert_false(taken(&t));
    end(&t);
}

static void refused(struct sample_record r) {
    struct told t;
    begin(&t);
    put(&t, r);
    assert_false(taken(&t));
    end(&t);
}

static void nonsense(void **state) {
    (void)state;
    struct told t;
    refused((struct sample_record){.kind = SAMPLE_LOOK, .process = 2});
    refused((struct sample_record){.kind = SAMPLE_LOOK, .process = 0, .stack = 4});
    refused((struct sample_record){.kind = SAMPLE_UNCHANGED, .process = 2});
    refused((struct sample_record){.kind = SAMPLE_STACK, .frame_count = 1, .frames = {3}});
    refused((struct sample_record){.kind = SAMPLE_FRAME, .number = 1});
    refused((struct sample_record){.kind = SAMPLE_PROCESS});
    refused((struct sample_record){.kind = SAMPLE_TIME, .number = UINT64_MAX});
    begin(&t);
    buffer_append(&t.bytes, "\xff\xff", 2);
    assert_false(taken(&t));
    end(&t);
}

// More than a shim may number is refused; sums of absurd values stay within bounds.
static void bounds(void **state) {
    (void)state;
    struct told t;
    begin(&t);
    for (uint32_t i = 0; i < LIMIT_SAMPLE_PROCESSES - 2; i++) {
        process(&t, "<0.1.0>", "");
        at(&t, 1);
        look(&t, i + 2, STATUS_RUNNING, 1, UINT64_MAX, UINT64_MAX, UINT64_MAX);
        assert_true(taken(&t));
    }
    look(&t, 2, STATUS_RUNNING, 1, UINT64_MAX, UINT64_MAX, UINT64_MAX);
    assert_true(taken(&t));
    const struct view *v = sample_view_next(t.view, VIEW_BY_MEMORY);
    assert_int_equal(v->process_count, VIEW_PROCESSES);
    assert_int_equal(v->processes[0].reductions, SAMPLE_MOST_VALUE);
    process(&t, "<0.1.0>", "");
    assert_false(taken(&t));
    end(&t);
}

// Whichever allocation fails: the records are refused, or the view lacks its functions.
static void without_memory(void **state) {
    (void)state;
    struct told t;
    fail_alloc_at(0);
    assert_null(sample_view_new());
    fail_alloc_at(-1);
    for (long n = 0; n < 6; n++) {
        begin(&t);
        at(&t, 1);
        look(&t, 0, STATUS_RUNNING, 1, 0, 0, 0);
        fail_alloc_at(n);
        if (taken(&t)) {
            assert_non_null(sample_view_next(t.view, VIEW_BY_MEMORY));
        }
        fail_alloc_at(-1);
        end(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shown),      cmocka_unit_test(since_the_one_before),
        cmocka_unit_test(begun_anew), cmocka_unit_test(nonsense),
        cmocka_unit_test(bounds),     cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
