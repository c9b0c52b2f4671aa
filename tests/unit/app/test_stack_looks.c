// SPDX-License-Identifier: Apache-2.0
// A run of stack sampling that is passed on to a tool: what a tool gets that reads in time, what
// one misses that does not, and what the shim is asked for then.
#include "app/stack_runs.h"

#include "base/clock.h"
#include "codec/sample_records.h"
#include "unit.h"

enum { SECOND = 1000000000 };

// What was sent to the tool and the shim since somebody looked: a word each.
static char to_tool[1000], to_shim[1000];
static struct slice records; // of the last stacks_looks
static uint8_t kept[1000];
static bool reads;
static int64_t lost;

static struct control *read_message(const struct buffer *b, struct slice *type) {
    struct slice payload;
    assert_true(control_frame(slice_of(b->data, b->len), &payload) == (long)b->len);
    struct control *c = control_decode(payload);
    assert_non_null(c);
    control_get_text(control_root(c), FIELD_TYPE, type);
    return c;
}

static void note(char *to, struct slice type) {
    size_t len = strlen(to);
    snprintf(to + len, sizeof to_tool - len, "%s%.*s", len > 0 ? " " : "", (int)type.len,
             (const char *)type.data);
}

static bool tell(void *user, const struct buffer *message, bool last) {
    (void)last;
    struct slice type;
    (void)user;
    if (!reads) {
        return false;
    }
    struct control *c = read_message(message, &type);
    if (control_get_bytes(control_root(c), FIELD_BYTES, &records)) {
        assert_in_range(records.len, 1, sizeof kept);
        memcpy(kept, records.data, records.len);
        records.data = kept;
    }
    control_get_int(control_root(c), FIELD_LOST, &lost);
    note(to_tool, type);
    control_free(c);
    return true;
}

static void send_shim(void *link, const struct buffer *message) {
    struct slice type;
    (void)link;
    struct control *c = read_message(message, &type);
    note(to_shim, type);
    control_free(c);
}

static void sent(const char *tool, const char *shim) {
    assert_string_equal(to_tool, tool);
    assert_string_equal(to_shim, shim);
    to_tool[0] = to_shim[0] = 0;
}

// -- a run ----------------------------------------------------------------------------------------

static struct pipeline *p;
static struct stack_runs runs;
static struct flame_shim shim;
static int link_to_it;

static struct control *message_of(struct buffer *b, struct control_writer *w) {
    struct slice type;
    assert_true(control_end(w));
    return read_message(b, &type);
}

static int setup(void **state) {
    (void)state;
    struct pipeline_options options = {.bucket_s = 10, .timeout_ns = 30000000000};
    struct buffer b = buffer_make(1000);
    p = pipeline_new(&options);
    runs = (struct stack_runs){.pipeline = p};
    shim = (struct flame_shim){.link = &link_to_it,
                               .node = pipeline_node(p, slice_text("shop@host")),
                               .otp = "27",
                               .send = send_shim};
    reads = true;
    lost = 0;
    to_tool[0] = to_shim[0] = 0;
    struct control_writer w = control_begin(&b, CONTROL_STACKS, 1);
    control_bool(&w, FIELD_LOOKS, true);
    struct control *c = message_of(&b, &w);
    assert_null(
        stack_run_begin(&runs, &shim, control_root(c), &(struct stack_asker){&link_to_it, tell}));
    control_free(c);
    buffer_free(&b);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    stack_runs_end(&runs);
    stack_runs_tick(&runs, NULL, clock_monotonic(), false);
    assert_int_equal(runs.count, 0);
    pipeline_free(p);
    return 0;
}

static void says(void (*take)(struct stack_runs *, const void *, struct control_map),
                 const char *type, struct slice bytes) {
    struct buffer b = buffer_make(10000);
    struct control_writer w = control_begin(&b, type, 3);
    control_int(&w, FIELD_ID, 1);
    control_text(&w, FIELD_REASON, slice_text("stopped"));
    control_bytes(&w, FIELD_BYTES, bytes);
    struct control *c = message_of(&b, &w);
    take(&runs, &link_to_it, control_root(c));
    control_free(c);
    buffer_free(&b);
}

static void takes(const struct sample_record *all, size_t count) {
    struct buffer b = buffer_make(1000);
    for (size_t i = 0; i < count; i++) {
        sample_record_write(&b, &all[i]);
    }
    says(stack_run_taken, CONTROL_STACKS_TAKEN, slice_of(b.data, b.len));
    buffer_free(&b);
}

static const struct sample_record look = {.kind = SAMPLE_UNCHANGED},
                                  later = {.kind = SAMPLE_TIME, .number = 1000},
                                  anew = {.kind = SAMPLE_FORGET};

static void passes_on(void **state) {
    (void)state;
    sent("", "stacks");
    takes(&look, 1); // before it has begun: nobody's
    says(stack_run_started, CONTROL_STACKS_STARTED, slice_text(""));
    takes((struct sample_record[]){later, look}, 2);
    assert_int_equal(records.len, 6);
    assert_int_equal(kept[0], SAMPLE_TIME);
    stack_runs_tick(&runs, NULL, clock_monotonic(), true);
    sent("stacks_looks stacks_state", "");
    stack_run_stop(&runs, &link_to_it, false);
    takes(&look, 1);
    says(stack_run_stopped, CONTROL_STACKS_STOPPED, slice_text(""));
    sent("stacks_looks stacks_kept", "stacks_stop");
    assert_int_equal(lost, 0);
}

static void who_does_not_read(void **state) {
    (void)state;
    says(stack_run_started, CONTROL_STACKS_STARTED, slice_text(""));
    int64_t now = clock_monotonic();
    reads = false;
    takes((struct sample_record[]){later, look, look}, 3);
    reads = true;
    sent("", "stacks");
    takes((struct sample_record[]){later, look}, 2); // it does not know what this means
    sent("", "");
    for (int second = 0; second < 7; second++) { // the node is not asked all the time
        stack_runs_tick(&runs, NULL, now + (int64_t)second * SECOND, true);
    }
    sent("stacks_state stacks_state stacks_state stacks_state stacks_state stacks_state "
         "stacks_state",
         "stacks_anew stacks_anew");
    assert_int_equal(lost, 3);
    takes((struct sample_record[]){look, later, anew, look}, 4);
    sent("stacks_looks", "");
    // 3,000 µs have gone by
    assert_int_equal(records.len, 7);
    assert_memory_equal(kept, "\x04\xb8\x17\x0c\x06\x00\x00", 7);
    stack_runs_tick(&runs, NULL, now + (int64_t)20 * SECOND, true);
    takes(&look, 1);
    sent("stacks_state stacks_looks", "");
    assert_int_equal(lost, 4);
}

static void nonsense(void **state) {
    (void)state;
    says(stack_run_started, CONTROL_STACKS_STARTED, slice_text(""));
    says(stack_run_taken, CONTROL_STACKS_TAKEN, slice_text("\x7f"));
    sent("stacks_kept", "stacks stacks_stop");
}

static void tool_is_gone(void **state) {
    (void)state;
    says(stack_run_started, CONTROL_STACKS_STARTED, slice_text(""));
    stack_run_stop(&runs, &link_to_it, true);
    takes(&look, 1);
    says(stack_run_stopped, CONTROL_STACKS_STOPPED, slice_text(""));
    sent("", "stacks stacks_stop");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(passes_on, setup, teardown),
        cmocka_unit_test_setup_teardown(who_does_not_read, setup, teardown),
        cmocka_unit_test_setup_teardown(nonsense, setup, teardown),
        cmocka_unit_test_setup_teardown(tool_is_gone, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
