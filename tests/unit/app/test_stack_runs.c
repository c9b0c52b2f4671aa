// SPDX-License-Identifier: Apache-2.0
// Runs of stack sampling as the collector keeps them: one that stands for ever goes on in another
// profile, and each look is in one of them; beside it one that was asked for.
#include "app/stack_runs.h"

#include <time.h>

#include "base/clock.h"
#include "model/profile/flame.h"
#include "sample_script.h"
#include "store_fixture.h"

#define SECOND 1000000000LL
enum { SLICE_S = 3600 };

static struct stack_runs runs;
static struct writer *writer;
static struct pipeline *p;
static struct told told;
static char sent[32];      // the type of the latest message to the shim
static int64_t sent_id;    // its run
static int64_t kept_slice; // of the latest stacks_kept, -1: there was none
static char kept_why[32];

// Reads a message as it was written.
static struct control *decoded(const struct buffer *b) {
    struct control *c = control_decode(slice_of(b->data + 4, b->len - 4));
    assert_non_null(c);
    return c;
}

static void take_text(struct control_map map, const char *key, char *out, size_t room) {
    struct slice text = slice_text("");
    control_get_text(map, key, &text);
    snprintf(out, room, "%.*s", (int)text.len, (const char *)text.data);
}

static void on_sent(void *link, const struct buffer *messages) {
    struct control *c = decoded(messages);
    (void)link;
    take_text(control_root(c), "type", sent, sizeof sent);
    control_get_int(control_root(c), FIELD_ID, &sent_id);
    control_free(c);
}

static bool on_told(void *user, const struct buffer *message, bool last) {
    (void)user;
    if (last) {
        struct control *c = decoded(message);
        control_get_int(control_root(c), FIELD_SLICE_S, &kept_slice);
        take_text(control_root(c), FIELD_REASON, kept_why, sizeof kept_why);
        control_free(c);
    }
    return true;
}

static int setup(void **state) {
    const struct pipeline_options options = {.bucket_s = 10, .timeout_ns = 30 * SECOND};
    fixture_setup(state);
    writer = writer_start(fixture_open(), &(struct writer_options){.bucket_s = 10});
    p = pipeline_new(&options);
    runs = (struct stack_runs){.pipeline = p};
    kept_slice = -1;
    begin(&told); // writes what a shim says; its own profile is not used
    return writer && p ? 0 : -1;
}

static int teardown(void **state) {
    end(&told);
    writer_stop(writer);
    pipeline_free(p);
    return fixture_teardown(state);
}

// A message with this and what else these have, until the next one is made.
static struct control *message(int64_t id, const char *key, int64_t value, struct slice bytes) {
    static struct buffer b; // texts lie in it
    buffer_free(&b);
    b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, "any", 5);
    control_int(&w, FIELD_ID, id);
    control_int(&w, key, value);
    control_text(&w, FIELD_LABEL, slice_text("always"));
    control_text(&w, FIELD_REASON, slice_text("stopped"));
    control_bytes(&w, FIELD_BYTES, bytes);
    assert_true(control_end(&w));
    return decoded(&b);
}

static struct slice nothing(void) {
    return slice_of((const uint8_t *)"", 0);
}

static const char *begin_run(void *link, int64_t slice_s) {
    struct flame_shim shim = {
        .link = link, .node = pipeline_node(p, slice_text("shop@h")), .send = on_sent};
    struct stack_asker asker = {link, on_told};
    struct control *c = message(0, FIELD_SLICE_S, slice_s, nothing());
    const char *why = stack_run_begin(&runs, &shim, control_root(c), &asker);
    control_free(c);
    return why;
}

static void says(void (*what)(struct stack_runs *, const void *, struct control_map), void *link,
                 int64_t id, int64_t cost_us, struct slice bytes) {
    struct control *c = message(id, FIELD_COST_US, cost_us, bytes);
    what(&runs, link, control_root(c));
    control_free(c);
}

// What was written since goes to the collector.
static void takes(void *link, int64_t id, int64_t cost_us) {
    says(stack_run_taken, link, id, cost_us, slice_of(told.bytes.data, told.bytes.len));
    buffer_reset(&told.bytes);
}

static void tick(int64_t after_s) {
    stack_runs_tick(&runs, writer, clock_monotonic() + after_s * SECOND, true);
}

// Until no more than so many are there.
static void written(uint32_t left) {
    for (int ms = 0; runs.count + runs.standing > left && ms < 60000; ms++) {
        const struct profile *profile;
        int64_t id;
        tick(0);
        if (writer_kept(writer, &profile, &id)) {
            assert_true(stack_run_kept(&runs, profile, id));
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_true(runs.count + runs.standing <= left);
}

// The word that numbers begin anew, and what a shim tells behind it.
static void tell_anew(void) {
    put(&told, (struct sample_record){.kind = SAMPLE_FORGET});
    frame(&told, "m", "f", 1);
    put(&told, (struct sample_record){.kind = SAMPLE_STACK, .frame_count = 1, .frames = {0}});
    process(&told, "<0.100.0>", "a", "app");
}

static void goes_on(void **state) {
    (void)state;
    int link;
    assert_null(begin_run(&link, SLICE_S));
    assert_string_equal(sent, "stacks");
    int64_t id = sent_id;
    assert_non_null(begin_run(&link, SLICE_S));
    says(stack_run_started, &link, id, 0, nothing());
    look(&told, 0, STATUS_RUNNING, 1, 0, 1000);
    at(&told, 1500000);
    takes(&link, id, 70);
    tick(SLICE_S - 1);
    assert_string_equal(sent, "stacks");
    // numbers that begin anew by themselves begin no profile
    tell_anew();
    look(&told, 0, STATUS_RUNNING, 1, 0, 1000);
    takes(&link, id, 80);
    assert_int_equal(runs.standing, 1);
    tick(SLICE_S + 1);
    assert_string_equal(sent, "stacks_anew");
    // what was on its way is the first one's still
    look(&told, 0, STATUS_RUNNING, 1, 0, 1000);
    at(&told, 500000);
    takes(&link, id, 100);
    assert_int_equal(runs.standing, 1);
    tell_anew();
    look(&told, 0, STATUS_RUNNING, 1, 0, 1000);
    unchanged(&told, 0);
    takes(&link, id, 100);
    assert_int_equal(runs.standing, 2);
    written(1);
    assert_int_equal(kept_slice, -1);
    says(stack_run_stopped, &link, id, 130, nothing());
    written(0);
    assert_int_equal(kept_slice, SLICE_S);
    assert_string_equal(kept_why, "stopped");
    fixture_expect("SELECT group_concat(looks || ' ' || unchanged || ' ' || cost_us, ', ') FROM "
                   "profile_sampled_rows",
                   "3 0 100, 1 1 30");
    fixture_expect("SELECT (b.begin_ns - a.begin_ns) || ' ' || (b.begin_ns - a.end_ns) || ' ' || "
                   "b.label || ' ' || b.name FROM profile_rows AS a JOIN profile_rows AS b ON "
                   "a.id = 1 AND b.id = 2",
                   "2000000000 0 always always");
}

// One that is stopped right after it went on in another profile: they are kept in their order.
static void stopped_at_once(void **state) {
    (void)state;
    int link;
    assert_null(begin_run(&link, SLICE_S));
    int64_t id = sent_id;
    says(stack_run_started, &link, id, 0, nothing());
    look(&told, 0, STATUS_RUNNING, 1, 0, 1000);
    at(&told, 1500000);
    takes(&link, id, 0);
    tick(SLICE_S + 1);
    tell_anew();
    look(&told, 0, STATUS_RUNNING, 1, 0, 1000);
    look(&told, 0, STATUS_RUNNING, 1, 0, 1000);
    takes(&link, id, 0);
    says(stack_run_stopped, &link, id, 0, nothing());
    assert_int_equal(runs.standing, 2);
    written(0);
    fixture_expect("SELECT group_concat(looks) FROM (SELECT looks FROM profile_sampled_rows JOIN "
                   "profile_rows AS p ON p.id = profile_id ORDER BY p.id)",
                   "1,2");
}

// A profile that is nearly full is followed by another one; a shim that does not tell its names
// anew is told to stop before it has more than its room.
static void full(void **state) {
    (void)state;
    int link;
    assert_null(begin_run(&link, SLICE_S));
    int64_t id = sent_id;
    says(stack_run_started, &link, id, 0, nothing());
    while (strcmp(sent, "stacks_anew") != 0) {
        for (int i = 0; i < 1000; i++) {
            at(&told, 100);
            look(&told, 0, STATUS_RUNNING, 1, 1000000, 1000000);
        }
        takes(&link, id, 0);
        tick(0);
    }
    assert_int_equal(runs.standing, 1);
    strcpy(sent, "");
    size_t bytes = 0;
    while (strcmp(sent, "stacks_stop") != 0) {
        for (int i = 0; i < 1000; i++) {
            at(&told, 100);
            look(&told, 0, STATUS_RUNNING, 1, 1000000, 1000000);
        }
        bytes += told.bytes.len;
        assert_true(bytes < LIMIT_SLICE_BYTES);
        takes(&link, id, 0);
    }
    says(stack_run_stopped, &link, id, 0, nothing());
    written(0);
    assert_string_equal(kept_why, "full");
}

// What the page is told of those that go on: of one, which does not stand; "": nothing.
static void told_to_page(const char *begin_of_it) {
    struct buffer out = buffer_make(1000);
    struct json j = json_make(&out);
    int64_t now = clock_wall() / SECOND, since = now;
    stack_runs_json(&runs, &j);
    size_t told_len = out.len;
    buffer_append(&out, "", 1);
    if (begin_of_it[0]) {
        char rest[100];
        const char *text = (const char *)out.data, *at = strstr(text, "\"since_s\":");
        size_t len = strlen(begin_of_it);
        assert_non_null(at);
        assert_memory_equal(text + 1, begin_of_it, len);
        assert_int_equal(sscanf(at, "\"since_s\":%" SCNd64 ",%99s", &since, rest), 2);
        assert_string_equal(rest, "\"stands\":false}");
        assert_true(since <= now && since > now - 60);
    } else {
        assert_int_equal(told_len, 0);
    }
    buffer_free(&out);
}

// One that was asked for beside it; they end with the node, whose asking is over.
static void beside(void **state) {
    (void)state;
    static char others[LIMIT_STANDING_RUNS + 1];
    int link;
    assert_null(begin_run(&link, SLICE_S));
    assert_null(begin_run(&link, 0));
    assert_non_null(begin_run(&link, 0));
    assert_int_equal(runs.count, 1);
    assert_int_equal(runs.standing, 1);
    told_to_page("");
    says(stack_run_started, &link, sent_id, 0, nothing());
    told_to_page("\"node\":\"shop@h\",\"name\":\"always\",\"label\":\"always\",\"trigger\":\"\",");
    stack_run_lost(&runs, &link);
    told_to_page("");
    written(0);
    assert_int_equal(kept_slice, -1);
    for (uint32_t i = 0; i < LIMIT_STANDING_RUNS; i++) {
        assert_null(begin_run(&others[i], SLICE_S));
    }
    assert_non_null(begin_run(&others[LIMIT_STANDING_RUNS], SLICE_S));
    stack_runs_end(&runs);
    written(0);
}

// Runs of many nodes share their room: none takes it all, and where it is used up each run has its
// part. Open requests have less meanwhile, and all of it again when the runs are over.
static void shared(void **state) {
    (void)state;
    enum { LOOKS = 20000 };
    static char links[LIMIT_STACK_RUNS + 1];
    int64_t ids[LIMIT_STACK_RUNS];
    assert_int_equal(runs.mb, 0);
    for (uint32_t i = 0; i < LIMIT_STACK_RUNS; i++) {
        assert_null(begin_run(&links[i], 0));
        ids[i] = sent_id;
        says(stack_run_started, &links[i], ids[i], 0, nothing());
        says(stack_run_taken, &links[i], ids[i], 0, slice_of(told.bytes.data, told.bytes.len));
    }
    buffer_reset(&told.bytes);
    assert_non_null(begin_run(&links[LIMIT_STACK_RUNS], 0));
    assert_int_equal(runs.mb, LIMIT_MB_SAMPLES_STEP);
    size_t taken = 0;
    for (uint32_t i = 0; strcmp(sent, "stacks_stop") != 0; i = (i + 1) % LIMIT_STACK_RUNS) {
        for (int look_at = 0; look_at < LOOKS; look_at++) {
            at(&told, 100);
            look(&told, 0, STATUS_RUNNING, 1, 1000000, 1000000);
        }
        taken += told.bytes.len;
        takes(&links[i], ids[i], 0);
        tick(0);
    }
    // each has as much
    assert_true(taken > LIMIT_RUNS_BYTES / 4 * 3 && runs.bytes < LIMIT_RUNS_BYTES);
    assert_int_equal(runs.mb, LIMIT_RUNS_BYTES / 1000000);
    stack_runs_end(&runs);
    written(0);
    assert_int_equal(runs.bytes, 0);
    tick(0);
    assert_int_equal(runs.mb, 0);
}

#define A_RUN(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {A_RUN(goes_on), A_RUN(stopped_at_once), A_RUN(full),
                                       A_RUN(beside), A_RUN(shared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
