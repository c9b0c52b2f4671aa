// SPDX-License-Identifier: Apache-2.0
// Which processes the weights of a full trace are of, and what these are called.
#include "full_script.h"
#include "unit.h"

enum { P = 1, Q = 2, R = 3 };

static void begin(uint32_t requests) {
    struct full_trace_options options = {.requests = requests, .scheduling = true};
    trace = full_trace_new(&options);
    assert_non_null(trace);
}

static void call(uint64_t token, uint64_t pid, uint64_t from, int64_t us, const char *function,
                 enum full_role role) {
    call_of(token, pid, from, us, function, "bottom", role);
}

static void returns(uint64_t pid, int64_t us) {
    return_to(pid, us, "bottom");
}

static void ends(uint64_t token, int64_t begin_us, int64_t us) {
    fate_of(token, true, begin_us, us, "create");
}

// A request of P, for which the others work one after the other: 10 µs each.
static void request(uint64_t token, int64_t at, const uint64_t *others, uint32_t count,
                    const char *function) {
    call(token, P, P, at, "handle", FULL_IS_ENTRY);
    state(P, at, MESSAGE_OUT);
    for (uint32_t i = 0; i < count; i++) {
        call(token, others[i], P, at + 10 * i, function, FULL_PLAIN);
        returns(others[i], at + 10 * i + 10);
    }
    state(P, at + 10 * count, MESSAGE_IN);
    returns(P, at + 10 * count + 5);
    ends(token, at, 10 * count + 5);
}

static int by_text(const void *a, const void *b) {
    return strcmp(a, b);
}

// What each process has done, "name calls µs" and in the order of the alphabet.
static const char *done(void) {
    enum { LINES = 16, BYTES = 100 };
    static char lines[LINES][BYTES], text[LINES * BYTES];
    const struct profile *p = full_trace_profile(trace);
    uint64_t calls[LINES] = {0};
    int64_t ns[LINES] = {0};
    uint16_t names[LINES];
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->weights.count; i++) {
        uint32_t at = 0;
        uint16_t process = profile_key_process(p->weights.all[i].key);
        while (at < count && names[at] != process) {
            at++;
        }
        assert_in_range(at, 0, LINES - 1);
        names[at] = process;
        count += at == count;
        calls[at] += p->weights.all[i].calls;
        ns[at] += p->weights.all[i].ns;
    }
    for (uint32_t i = 0; i < count; i++) {
        const char *name =
            names[i] == PROFILE_NOBODY ? "nobody" : names_text(&p->stacks.names, names[i]);
        sprintf(lines[i], "%s %d %d\n", name, (int)calls[i], (int)(ns[i] / US));
    }
    qsort(lines, count, sizeof *lines, by_text);
    text[0] = 0;
    for (uint32_t i = 0; i < count; i++) {
        strcat(text, lines[i]);
    }
    return text;
}

// How many names processes have.
static uint32_t named(void) {
    const struct profile *p = full_trace_profile(trace);
    static bool seen[PROFILE_NOBODY + 1];
    memset(seen, 0, sizeof seen);
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->weights.count; i++) {
        uint16_t process = profile_key_process(p->weights.all[i].key);
        count += process != PROFILE_NOBODY && !seen[process];
        seen[process] = true;
    }
    return count;
}

// By the name that their node tells, else by what they called first.
static void names(void **s) {
    (void)s;
    uint64_t pids[8];
    begin(100);
    request(1, 1000, (uint64_t[]){Q}, 1, "work");
    assert_int_equal(full_trace_unnamed(trace, pids, 1), 1);
    assert_int_equal(pids[0], P);
    assert_int_equal(full_trace_unnamed(trace, pids, 8), 1);
    assert_int_equal(pids[0], Q);
    assert_int_equal(full_trace_unnamed(trace, pids, 8), 0); // each once
    assert_string_equal(done(), "m:handle/0 1 5\nm:work/0 1 10\n");
    full_trace_named(trace, Q, slice_text("pool"));
    full_trace_named(trace, Q, slice_text("another")); // it has one
    full_trace_named(trace, P, slice_text(""));        // this is none
    full_trace_named(trace, R, slice_text("nobody's"));
    full_trace_named(trace, 0, slice_text("many"));
    request(2, 2000, (uint64_t[]){Q, R}, 2, "work");
    request(3, 3000, (uint64_t[]){Q, R}, 2, "other"); // they are who they were
    assert_string_equal(done(), "m:handle/0 3 15\nm:work/0 3 30\npool 2 20\n");
    full_trace_free(trace);
}

// What a process does before its first call that is traced is its own, too.
static void before_the_first_call(void **s) {
    (void)s;
    begin(100);
    call(1, P, P, 1000, "set_token", FULL_IS_BEGIN);
    call(1, P, P, 1010, "work", FULL_PLAIN);
    returns(P, 1015);
    call(1, P, P, 1020, "clear_token", FULL_IS_END);
    ends(1, 1000, 20);
    assert_string_equal(done(), "m:work/0 1 20\n");
    full_trace_free(trace);
}

// The processes of one request are told apart.
static void one_request(void **s) {
    (void)s;
    uint64_t pids[8];
    begin(1);
    call(1, P, P, 1000, "handle", FULL_IS_ENTRY);
    state(P, 1000, MESSAGE_OUT);
    call(1, Q, P, 1000, "work", FULL_PLAIN);
    returns(Q, 1010);
    call(1, R, P, 1010, "work", FULL_PLAIN);
    returns(R, 1030);
    state(P, 1030, MESSAGE_IN);
    returns(P, 1035);
    full_trace_advance(trace, INT64_MAX);
    assert_int_equal(full_trace_unnamed(trace, pids, 8), 3);
    full_trace_named(trace, Q, slice_text("pool"));
    full_trace_named(trace, R, slice_text("pool"));
    ends(1, 1000, 35);
    assert_string_equal(done(), "m:handle/0 <0.1.0> 1 5\npool <0.2.0> 1 10\npool <0.3.0> 1 20\n");
    full_trace_free(trace);
}

// Thousands of processes have few names, and no request is left out for them.
static void pools(void **s) {
    (void)s;
    enum { MANY = 3000 };
    static uint64_t workers[MANY];
    uint64_t pids[64];
    uint32_t asked = 0, got;
    for (uint32_t i = 0; i < MANY; i++) {
        workers[i] = 100 + i;
    }
    begin(10000);
    request(1, 0, workers, MANY, "work");
    assert_string_equal(done(), "m:handle/0 1 5\nm:work/0 3000 30000\n");
    while ((got = full_trace_unnamed(trace, pids, 64)) > 0) {
        for (uint32_t i = 0; i < got; i++) {
            char name[32];
            sprintf(name, "worker_%d", (int)pids[i]);
            full_trace_named(trace, pids[i], slice_text(name));
        }
        asked += got;
    }
    assert_int_equal(asked, LIMIT_FULL_NAMED);
    request(2, 100000, workers, MANY, "work");
    const struct profile_counts *c = &full_trace_profile(trace)->counts;
    assert_int_equal(c->requests, 2);
    assert_int_equal(c->incomplete, 0);
    // half of the room is for the names that the node tells, of which there are two already
    assert_int_equal(named(), LIMIT_PROFILE_PROCESSES / 2);
    assert_true(full_trace_profile(trace)->weights.count < 200);
    // very many that begin in different ways: the last of them are one
    for (uint32_t i = 0; i < 2 * LIMIT_PROFILE_PROCESSES; i++) {
        char function[32];
        sprintf(function, "work_%d", (int)i);
        workers[0] = 10000 + i;
        request(3 + i, 200000 + 1000 * (int64_t)i, workers, 1, function);
    }
    assert_int_equal(named(), LIMIT_PROFILE_PROCESSES);
    assert_true(names_find(&full_trace_profile(trace)->stacks.names,
                           slice_text("other processes")) != NAME_NONE);
    assert_int_equal(c->requests, 2 + 2 * LIMIT_PROFILE_PROCESSES);
    full_trace_free(trace);
}

// Where stacks need the room, processes are not told apart, and no request is left out.
static void room(void **s) {
    (void)s;
    enum { FUNCTIONS = 1000, WORKERS = 100 };
    begin(100);
    int64_t at = 0;
    call(1, P, P, at, "handle", FULL_IS_ENTRY);
    for (uint64_t worker = 0; worker < WORKERS; worker++) {
        for (int i = 0; i < FUNCTIONS; i++, at++) {
            char function[32];
            sprintf(function, "f%d", i);
            call(1, 100 + worker, P, at, function, FULL_PLAIN);
            returns(100 + worker, at);
        }
    }
    returns(P, at + 5);
    ends(1, 0, at + 5);
    const struct profile *p = full_trace_profile(trace);
    assert_int_equal(p->counts.requests, 1);
    assert_false(p->stacks.full);
    uint64_t calls = 0, nobodys = 0;
    for (uint32_t i = 0; i < p->weights.count; i++) {
        const struct weight *w = &p->weights.all[i];
        calls += w->calls;
        nobodys += profile_key_process(w->key) == PROFILE_NOBODY ? w->calls : 0;
    }
    assert_int_equal(calls, FUNCTIONS * WORKERS + 1);
    assert_true(nobodys > 0 && nobodys < calls);
    full_trace_free(trace);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names), cmocka_unit_test(before_the_first_call),
        cmocka_unit_test(one_request), cmocka_unit_test(pools), cmocka_unit_test(room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
