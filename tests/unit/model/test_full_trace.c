// SPDX-License-Identifier: Apache-2.0
// Scripts of messages of one or several processes, and the stacks that they make. Times are µs.
#include "full_script.h"
#include "unit.h"

enum { TOKEN = 77, P = 1, Q = 2, R = 3, NOBODY = 0 };

static struct full_trace_options options;

static void begin(bool scheduling) {
    options.requests = 1000000;
    options.scheduling = scheduling;
    trace = full_trace_new(&options);
    assert_non_null(trace);
}

static void call(uint64_t pid, uint64_t from, int64_t us, const char *function,
                 const char *caller) {
    call_of(TOKEN, pid, from, us, function, caller, FULL_PLAIN);
}

static void entry(int64_t us, const char *function) {
    call_of(TOKEN, P, P, us, function, "bottom", FULL_IS_ENTRY);
}

static int by_text(const void *a, const void *b) {
    return strcmp(a, b);
}

// The stacks and what they weigh, one a line and in the order of the alphabet: "a;b calls µs".
static const char *drawn(void) {
    enum { LINES = 64, BYTES = 256 };
    static char lines[LINES][BYTES + 32], text[LINES * (BYTES + 32)];
    const struct profile *p = full_trace_profile(trace);
    uint32_t count = p->weights.count;
    assert_in_range(count, 0, LINES);
    for (uint32_t i = 0; i < count; i++) {
        const struct weight *w = &p->weights.all[i];
        char line[BYTES] = "";
        for (uint32_t s = profile_key_stack(w->key); s != STACK_ROOT; s = p->stacks.all[s].parent) {
            char above[BYTES];
            const char *name = stacks_name_of(&p->stacks, s);
            name = strncmp(name, "m:", 2) == 0 ? name + 2 : name;
            strcpy(above, line);
            assert_true(strlen(above) + strlen(name) < BYTES - 1);
            size_t len = strcspn(name, "/");
            memcpy(line, name, len);
            strcpy(line + len, above[0] ? ";" : "");
            strcat(line, above);
        }
        sprintf(lines[i], "%s %d %d\n", line, (int)w->calls, (int)(w->ns / US));
    }
    qsort(lines, count, sizeof *lines, by_text);
    text[0] = 0;
    for (uint32_t i = 0; i < count; i++) {
        strcat(text, lines[i]);
    }
    return text;
}

static void end(int64_t us, const char *expected) {
    fate_of(TOKEN, true, 0, us, "create");
    assert_string_equal(drawn(), expected);
    const struct profile_counts *c = &full_trace_profile(trace)->counts;
    assert_int_equal(c->requests, 1);
    assert_int_equal(c->duration_ns, us * US);
    full_trace_free(trace);
}

// -- one process ----------------------------------------------------------------------------------

static void nested(void **s) {
    (void)s;
    begin(true);
    entry(0, "a");
    call(P, P, 10, "b", "a");
    call(P, P, 12, "c", "b");
    return_to(P, 17, "b");
    return_to(P, 20, "a");
    call(P, P, 23, "b", "a");
    return_to(P, 30, "a");
    return_to(P, 31, "bottom");
    end(31, "a 1 14\na;b 2 12\na;b;c 1 5\n");
}

// The frame of who calls another function last is over.
static void tail_calls(void **s) {
    (void)s;
    begin(true);
    entry(0, "a");
    call(P, P, 1, "b", "a");
    call(P, P, 3, "c", "a");
    call(P, P, 6, "loop", "a");
    call(P, P, 10, "loop", "a");
    call(P, P, 15, "even", "a");
    call(P, P, 21, "odd", "a");
    return_to(P, 28, "a");
    return_to(P, 30, "bottom");
    end(30, "a 1 3\na;b 1 2\na;c 1 3\na;even 1 6\na;loop 2 9\na;odd 1 7\n");
}

// As process_info shows a recursion: once.
static void recursion(void **s) {
    (void)s;
    begin(true);
    entry(0, "a");
    call(P, P, 1, "f", "a");
    call(P, P, 2, "f", "f");
    call(P, P, 3, "f", "f");
    call(P, P, 4, "leaf", "f");
    return_to(P, 6, "f");
    return_to(P, 7, "f");
    return_to(P, 8, "f");
    call(P, P, 9, "leaf", "f");
    return_to(P, 10, "f");
    return_to(P, 11, "a");
    call(P, P, 12, "g", "a");
    call(P, P, 13, "h", "g");
    call(P, P, 14, "g", "h");
    return_to(P, 15, "h");
    return_to(P, 16, "g");
    return_to(P, 17, "a");
    return_to(P, 18, "bottom");
    end(18, "a 1 3\na;f 3 7\na;f;leaf 2 3\na;g 1 2\na;g;h 1 2\na;g;h;g 1 1\n");
}

// A call of the full traces' trace session, of a function of module m or another one.
static void call_apart(uint64_t pid, uint64_t from, int64_t us, const char *module,
                       const char *function, const char *caller) {
    struct message m = {.kind = MESSAGE_CALL,
                        .clock = MESSAGE_STRICT,
                        .pid = pid,
                        .has_token = true,
                        .token = TOKEN,
                        .from = from,
                        .name = slice_text(function),
                        .module.text = slice_text(module),
                        .function.text = slice_text(function),
                        .caller = target(caller)};
    full_trace_message(trace, &m, us * US, FULL_PLAIN);
}

// What another full trace wants of the same processes changes nothing: it is as if those functions
// were not traced, whatever they call or return to, in a recursion too. Who runs nothing else is
// not known.
static void of_another(void **s) {
    (void)s;
    begin(true);
    full_trace_module(trace, slice_text("m"));
    entry(0, "a");
    call_apart(P, P, 1, "m", "f", "a");
    call_apart(P, P, 2, "m", "f", "f");
    call_apart(P, P, 3, "other", "x", "f");
    call_apart(P, P, 4, "m", "leaf", "x");
    return_to(P, 5, "x");
    return_to(P, 6, "f");
    call_apart(P, P, 7, "m", "leaf", "f");
    return_to(P, 8, "f");
    return_to(P, 9, "f");
    call_apart(P, P, 10, "other", "x", "f");
    call_apart(P, P, 11, "other", "x", "x");
    call_apart(P, P, 12, "m", "f", "x"); // through x: one stack, as through any that is not traced
    return_to(P, 13, "x");
    return_to(P, 14, "x");
    return_to(P, 15, "f");
    return_to(P, 16, "a");
    call_apart(Q, P, 16, "other", "y", "bottom");
    return_to(Q, 17, "bottom");
    return_to(P, 18, "bottom");
    end(18, "a 1 3\na;f 3 13\na;f;leaf 2 2\n");
}

// b and c raise, and a catches: control is back in a.
static void exceptions(void **s) {
    (void)s;
    begin(true);
    entry(0, "a");
    call(P, P, 1, "b", "a");
    call(P, P, 3, "c", "b");
    return_to(P, 6, "a");
    call(P, P, 8, "d", "a"); // which a function of OTP's called in it catches: nothing tells
    call(P, P, 9, "e", "d");
    call(P, P, 11, "f", "a");
    return_to(P, 12, "a");
    return_to(P, 20, "bottom");
    end(20, "a 1 11\na;b 1 2\na;b;c 1 3\na;d 1 1\na;d;e 1 2\na;f 1 1\n");
}

// Funs that a function calls which is not traced: one inside of the other, and one that ends with a
// call of a named function.
static void functions_between(void **s) {
    (void)s;
    begin(true);
    entry(0, "a");
    call(P, P, 1, "outer", "map");
    call(P, P, 2, "inner", "map");
    return_to(P, 4, "map");
    call(P, P, 5, "inner", "map");
    return_to(P, 7, "map");
    return_to(P, 8, "map");
    call(P, P, 9, "outer", "map");
    return_to(P, 10, "map");
    call(P, P, 20, "fun", "foreach");
    call(P, P, 21, "named", "foreach");
    return_to(P, 23, "foreach");
    call(P, P, 24, "fun", "foreach"); // so the one before had ended with that call
    call(P, P, 25, "named", "foreach");
    return_to(P, 27, "foreach");
    call(P, P, 28, "b", "a");
    return_to(P, 29, "a");
    return_to(P, 30, "bottom");
    end(30, "a 1 15\na;b 1 1\na;fun 2 2\na;fun;named 2 4\na;outer 2 4\na;outer;inner 2 4\n");
}

static void return_of(uint64_t pid, int64_t us, const char *function) {
    struct message m = {.kind = MESSAGE_RETURN, .pid = pid, .name = slice_text(function)};
    full_trace_message(trace, &m, us * US, FULL_PLAIN);
}

// A tier's call tells no caller; its return has a value, and a return_to behind it.
static void a_tier(void **s) {
    (void)s;
    begin(true);
    entry(0, "a");
    call(P, P, 1, "fun", "map");
    call(P, P, 2, "tier", NULL);
    call(P, P, 3, "b", "tier");
    return_to(P, 4, "tier");
    return_of(P, 6, "tier");
    return_to(P, 6, "map"); // the tier's: a function that is not traced had called it
    call(P, P, 8, "c", "fun");
    return_to(P, 9, "fun");
    return_to(P, 10, "map");
    return_to(P, 11, "bottom");
    end(11, "a 1 2\na;fun 1 4\na;fun;c 1 1\na;fun;tier 1 3\na;fun;tier;b 1 1\n");
}

static void asleep_and_gc(void **s) {
    (void)s;
    begin(true);
    entry(0, "a");
    call(P, P, 1, "b", "a");
    state(P, 3, MESSAGE_OUT);
    state(P, 10, MESSAGE_IN);
    state(P, 12, MESSAGE_GC_START);
    state(P, 17, MESSAGE_GC_END);
    return_to(P, 18, "a");
    return_to(P, 19, "bottom");
    end(19, "a 1 2\na;b 1 5\na;b;asleep 0 7\na;b;garbage collection 0 5\n");
}

// A marker begins the request in code that is not traced, and another one ends it.
static void markers(void **s) {
    (void)s;
    begin(true);
    call_of(TOKEN, P, P, 0, "begin", NULL, FULL_IS_BEGIN);
    call(P, P, 5, "a", "server");
    return_to(P, 9, "server");
    state(P, 10, MESSAGE_OUT);
    state(P, 12, MESSAGE_IN);
    call(P, P, 15, "b", "server");
    return_to(P, 16, "server");
    call_of(TOKEN, P, P, 20, "end", NULL, FULL_IS_END);
    call(P, P, 30, "late", "server");
    end(20, " 0 13\na 1 4\nasleep 0 2\nb 1 1\n");
}

// -- several --------------------------------------------------------------------------------------

// What a server does for its caller is the server's time, on the caller's stack.
static void a_server(void **s) {
    (void)s;
    begin(true);
    entry(0, "a");
    call(P, P, 1, "get", "a");
    state(P, 3, MESSAGE_OUT);
    state(Q, 5, MESSAGE_IN);
    call(Q, P, 6, "handle", "gen_server");
    call(Q, P, 8, "work", "handle");
    return_to(Q, 18, "handle");
    return_to(Q, 20, "gen_server");
    state(Q, 21, MESSAGE_OUT);
    state(P, 24, MESSAGE_IN);
    return_to(P, 26, "a");
    return_to(P, 27, "bottom");
    end(27, "a 1 2\na;get 1 4\na;get;handle 1 4\na;get;handle;work 1 10\na;get;waiting 0 7\n");
}

// Where scheduling is not traced, the time until the server begins is taken for waiting.
static void a_server_by_messages(void **s) {
    (void)s;
    begin(false);
    entry(0, "a");
    call(P, P, 1, "get", "a");
    call(Q, P, 6, "handle", "gen_server");
    return_to(Q, 20, "gen_server");
    return_to(P, 26, "a");
    return_to(P, 27, "bottom");
    end(27, "a 1 2\na;get 1 6\na;get;handle 1 14\na;get;waiting 0 5\n");
}

// A server with a loop of its own: that it waits for the next message, in a function called for the
// request before, is nobody's time; nor does it hide that its caller sleeps.
static void a_loop(void **s) {
    (void)s;
    begin(true);
    entry(0, "a");
    state(P, 2, MESSAGE_OUT);
    state(Q, 3, MESSAGE_IN);
    call(Q, P, 4, "handle", "loop");
    return_to(Q, 8, "loop");
    call(Q, P, 9, "loop", "bottom");
    state(Q, 10, MESSAGE_OUT);
    state(P, 11, MESSAGE_IN);
    call(P, P, 13, "b", "a");
    return_to(P, 14, "a");
    state(P, 20, MESSAGE_OUT);
    state(P, 50, MESSAGE_IN);
    return_to(P, 60, "bottom");
    call_of(TOKEN + 1, Q, R, 100, "handle", "loop", FULL_PLAIN);
    end(60, "a 1 20\na;asleep 0 30\na;b 1 1\na;handle 1 4\na;loop 1 0\na;waiting 0 5\n");
}

// The same by messages alone: behind the last sign of the loop its caller goes on.
static void a_loop_by_messages(void **s) {
    (void)s;
    begin(false);
    entry(0, "a");
    call(Q, P, 4, "handle", "loop");
    return_to(Q, 8, "loop");
    call(Q, P, 9, "loop", "bottom");
    call(P, P, 13, "b", "a");
    return_to(P, 14, "a");
    return_to(P, 60, "bottom");
    end(60, "a 1 50\na;b 1 1\na;handle 1 4\na;loop 1 0\na;waiting 0 5\n");
}

// The longest request stands on a line of time: µs, process, state, function.
static void the_longest(void **s) {
    (void)s;
    begin(true);
    entry(1000, "short");
    return_to(P, 1005, "bottom");
    call_of(TOKEN + 1, P, P, 2000, "a", "bottom", FULL_IS_ENTRY);
    call_of(TOKEN + 1, P, P, 2001, "get", "a", FULL_PLAIN);
    state(P, 2003, MESSAGE_OUT);
    call_of(TOKEN + 1, Q, P, 2006, "handle", "gen_server", FULL_PLAIN);
    return_to(Q, 2018, "gen_server");
    state(P, 2024, MESSAGE_IN);
    return_to(P, 2026, "a");
    return_to(P, 2027, "bottom");
    fate_of(TOKEN + 1, true, 2000, 27, "long");
    fate_of(TOKEN, true, 1000, 5, "short");
    const struct profile *p = full_trace_profile(trace);
    assert_int_equal(p->timeline_ns, 27 * US);
    assert_string_equal(names_text(&p->stacks.names, p->timeline_identity), "long");
    char text[1024], *to = text; // a process begins where the one that asked it is
    for (uint32_t i = 0; i < p->timeline.count; i++) {
        const struct timeline_event *e = &p->timeline.events[i];
        to += sprintf(to, "%d %d %d %s\n", (int)(e->time / US), (int)p->timeline.pids[e->line],
                      e->state, stacks_name_of(&p->stacks, e->stack));
    }
    assert_string_equal(text, "0 1 0 all\n0 1 0 m:a/0\n1 1 0 m:get/0\n3 1 1 m:get/0\n"
                              "6 2 0 m:get/0\n6 2 0 m:handle/0\n"
                              "18 2 3 all\n24 1 0 m:get/0\n26 1 0 m:a/0\n27 1 3 all\n");
    full_trace_free(trace);
}

// Two processes at a time are more time than passes.
static void parallel(void **s) {
    (void)s;
    begin(true);
    entry(0, "a");
    state(P, 1, MESSAGE_OUT);
    call(Q, P, 2, "q", "spawned");
    call(R, P, 4, "r", "spawned");
    return_to(Q, 10, "spawned");
    return_to(R, 12, "spawned");
    state(P, 13, MESSAGE_IN);
    return_to(P, 14, "bottom");
    fate_of(TOKEN, true, 0, 14, "create");
    assert_string_equal(drawn(), "a 1 2\na;q 1 8\na;r 1 8\na;waiting 0 2\n");
    assert_int_equal(full_trace_profile(trace)->counts.parallel_ns, 6 * US);
    assert_int_equal(full_trace_profile(trace)->counts.processes, 3);
    full_trace_free(trace);
}

// A process in between has no flag: what it asked for lies where the request waits.
static void not_followed(void **s) {
    (void)s;
    enum { UNKNOWN = 9 };
    begin(true);
    entry(0, "a");
    state(P, 1, MESSAGE_OUT);
    call(Q, UNKNOWN, 5, "q", "gen_server");
    return_to(Q, 8, "gen_server");
    state(P, 10, MESSAGE_IN);
    return_to(P, 11, "bottom");
    end(11, "a 1 2\na;q 1 3\na;waiting 0 6\n");
}

// Messages of different processes overtake each other.
static void disorder(void **s) {
    (void)s;
    begin(true);
    call(Q, P, 6, "handle", "gen_server");
    return_to(Q, 16, "gen_server");
    entry(0, "a");
    state(P, 2, MESSAGE_OUT);
    state(P, 18, MESSAGE_IN);
    return_to(P, 19, "bottom");
    end(19, "a 1 3\na;handle 1 10\na;waiting 0 6\n");
}

// -- requests -------------------------------------------------------------------------------------

static void one_request(uint64_t token, int64_t us) {
    call_of(token, P, P, us, "a", "bottom", FULL_IS_ENTRY);
    return_to(P, us + 5, "bottom");
}

// Of the one request that is wanted, whatever else its processes do.
static void one_token(void **s) {
    (void)s;
    options.token = 3;
    begin(true);
    options.token = 0;
    const struct profile_counts *c = &full_trace_profile(trace)->counts;
    for (uint64_t token = 1; token <= 200; token++) { // more than there is room for at a time
        one_request(token, (int64_t)(100 * token));
    }
    full_trace_advance(trace, INT64_MAX);
    fate_of(2, true, 200, 5, "create");
    fate_of(3, true, 300, 5, "read");
    assert_string_equal(drawn(), "a 1 5\n");
    assert_int_equal(c->requests, 1);
    assert_int_equal(c->others, 0);
    assert_int_equal(c->unseen, 0);
    assert_int_equal(c->refused, 0);
    full_trace_free(trace);
}

static void what_is_taken(void **s) {
    (void)s;
    options = (struct full_trace_options){.only = "create", .since = 50 * US};
    begin(true);
    options = (struct full_trace_options){0};
    const struct profile_counts *c = &full_trace_profile(trace)->counts;
    for (uint64_t token = 1; token <= 5; token++) {
        one_request(token, (int64_t)(100 * token));
    }
    full_trace_advance(trace, INT64_MAX);
    fate_of(1, true, 100, 5, "create");
    fate_of(2, false, 200, 5, "create"); // incomplete
    fate_of(3, true, 300, 5, "read");    // another one
    fate_of(4, true, 40, 5, "create");   // began too early
    fate_of(6, true, 600, 5, "create");  // nothing of it was traced
    assert_string_equal(drawn(), "a 1 5\n");
    assert_int_equal(c->requests, 1);
    assert_int_equal(c->incomplete, 1);
    assert_int_equal(c->others, 1);
    assert_int_equal(c->unseen, 1);
    full_trace_lost(trace); // 5 has ended just before
    fate_of(5, true, 500, 5, "create");
    assert_int_equal(c->requests, 1);
    assert_int_equal(c->incomplete, 2);
    // what comes late begins nothing
    one_request(1, 1000);
    fate_of(1, true, 1000, 5, "create");
    assert_int_equal(c->requests, 1);
    one_request(7, 2000);
    fate_of(7, true, 2000, 15, "create");
    assert_string_equal(drawn(), "a 2 10\nnot followed 0 10\n");
    assert_int_equal(c->missing_ns, 10 * US);
    // it has ended before the second one has
    full_trace_shut(trace, 3004 * US);
    one_request(8, 2990);
    one_request(9, 3000);
    fate_of(8, true, 2990, 5, "create");
    fate_of(9, true, 3000, 5, "create");
    assert_int_equal(c->requests, 3);
    assert_int_equal(c->others, 1);
    full_trace_free(trace);
}

static void apart(uint64_t pid, int64_t us, enum message_kind kind) {
    struct message m = {.kind = kind, .clock = MESSAGE_STRICT, .pid = pid};
    full_trace_message(trace, &m, us * US, FULL_PLAIN);
}

// Who may not have been followed, and how many requests that concerns.
static void suspects(void **s) {
    (void)s;
    uint32_t count;
    begin(true);
    for (uint64_t token = 1; token <= 3; token++) {
        int64_t t = (int64_t)(100 * token);
        call_of(token, P, P, t, "a", "bottom", FULL_IS_ENTRY);
        call_of(token, Q, token == 3 ? P : R, t + 1, "b", "bottom", FULL_PLAIN); // R is not known
        return_to(Q, t + 2, "bottom");
        return_to(P, t + 5, "bottom");
        fate_of(token, token != 1, t, 5, "create");
    }
    const struct full_suspect *all = full_trace_suspects(trace, &count);
    assert_int_equal(count, 1);
    assert_int_equal(all[0].pid, R);
    assert_int_equal(all[0].requests, 1); // 1 is incomplete, 3 did not go through it
    // with a session of its own, who calls a tier and tells that session nothing
    apart(P, 1000, MESSAGE_IN);
    apart(Q, 1000, MESSAGE_IN);
    for (uint64_t token = 4; token <= 5; token++) {
        int64_t t = (int64_t)(1000 * token);
        call_of(token, P, P, t, "a", "bottom", FULL_IS_ENTRY);
        call_of(token, Q, P, t + 1, "b", "bottom", FULL_PLAIN);
        call_of(token, 9, P, t + 1, "b", "bottom", FULL_PLAIN);
        return_to(Q, t + 2, "bottom");
        return_to(9, t + 2, "bottom");
        return_to(P, t + 5, "bottom");
        fate_of(token, true, t, 5, "create");
    }
    all = full_trace_suspects(trace, &count);
    assert_int_equal(count, 2);
    assert_int_equal(all[1].pid, 9);
    assert_int_equal(all[1].requests, 2);
    // no more than there is room for
    for (uint64_t i = 0; i < LIMIT_FULL_SUSPECTS + 5; i++) {
        call_of(6, P, 100 + i, 10000 + (int64_t)i, "a", "bottom",
                i > 0 ? FULL_PLAIN : FULL_IS_ENTRY);
    }
    return_to(P, 11000, "bottom");
    fate_of(6, true, 10000, 1000, "create");
    full_trace_suspects(trace, &count);
    assert_int_equal(count, LIMIT_FULL_SUSPECTS);
    full_trace_free(trace);
}

// As many requests have ended as are wanted, before anything is known of their fates.
static void enough(void **s) {
    (void)s;
    trace = full_trace_new(&(struct full_trace_options){.requests = 4});
    for (uint64_t i = 1; i <= 6; i++) {
        assert_false(full_trace_enough(trace));
        one_request(i, (int64_t)i * 100);
        full_trace_advance(trace, INT64_MAX);
    }
    assert_false(full_trace_enough(trace)); // a quarter and two more
    fate_of(1, true, 100, 5, "create");
    fate_of(2, false, 200, 5, "create");
    assert_false(full_trace_enough(trace));
    one_request(7, 700);
    full_trace_advance(trace, INT64_MAX);
    assert_false(full_trace_enough(trace)); // one was incomplete
    one_request(8, 800);
    full_trace_advance(trace, INT64_MAX);
    assert_true(full_trace_enough(trace) && !full_trace_done(trace));
    assert_true(full_trace_awaits_fates(trace));
    for (uint64_t i = 3; i <= 8; i++) {
        fate_of(i, true, (int64_t)i * 100, 5, "create");
    }
    assert_true(full_trace_done(trace));
    assert_false(full_trace_awaits_fates(trace));
    full_trace_free(trace);
    trace = full_trace_new(&(struct full_trace_options){.requests = 1, .only = "create"});
    for (uint64_t i = 1; i <= 9; i++) {
        one_request(i, (int64_t)i * 100);
        full_trace_advance(trace, INT64_MAX);
    }
    assert_false(full_trace_enough(trace)); // they may all be others
    full_trace_free(trace);
}

// The one request that is wanted has ended: there is nothing else to trace.
static void enough_of_one(void **s) {
    (void)s;
    trace =
        full_trace_new(&(struct full_trace_options){.requests = 1, .token = 3, .only = "create"});
    one_request(2, 200);
    call_of(3, P, P, 300, "a", "bottom", FULL_IS_ENTRY);
    full_trace_advance(trace, INT64_MAX);
    assert_false(full_trace_enough(trace));
    return_to(P, 305, "bottom");
    full_trace_advance(trace, INT64_MAX);
    assert_true(full_trace_enough(trace) && !full_trace_done(trace));
    full_trace_shut(trace, 310 * US);
    fate_of(3, true, 300, 5, "create");
    assert_true(full_trace_done(trace));
    full_trace_free(trace);
}

// Only requests count that lie whole within a window, whenever their fate is told.
static void windows(void **s) {
    (void)s;
    options = (struct full_trace_options){.since = 100 * US};
    begin(true);
    options = (struct full_trace_options){0};
    const struct profile_counts *c = &full_trace_profile(trace)->counts;
    one_request(1, 200);
    call_of(2, P, P, 900, "a", "bottom", FULL_IS_ENTRY); // open when the window is shut
    full_trace_shut(trace, 1000 * US);
    full_trace_shut(trace, 1100 * US); // is shut already
    call_of(2, P, P, 1050, "b", "a", FULL_PLAIN);
    return_to(P, 1060, "bottom");
    one_request(3, 2000); // between two windows
    full_trace_advance(trace, INT64_MAX);
    assert_true(full_trace_busy(trace)); // with 2
    fate_of(3, true, 2000, 5, "create");
    assert_int_equal(c->unseen, 0);
    assert_int_equal(c->partly, 0);
    full_trace_open(trace, 3000 * US);
    assert_false(full_trace_busy(trace));
    assert_int_equal(c->partly, 1); // of 2
    fate_of(2, true, 900, 160, "create");
    fate_of(1, true, 200, 5, "create"); // late
    one_request(4, 3000);
    fate_of(4, true, 2990, 15, "create"); // began before the second one
    one_request(5, 4000);
    fate_of(5, true, 4000, 5, "create");
    fate_of(6, true, 4000, 5, "create");
    assert_int_equal(c->requests, 2);
    assert_int_equal(c->incomplete, 0);
    assert_int_equal(c->unseen, 1);
    assert_int_equal(c->partly, 2); // and of 4
    assert_string_equal(drawn(), "a 2 10\n");
    full_trace_free(trace);
}

// The node's word that a window is shut comes behind messages of what is not traced whole.
static void shut_late(void **s) {
    (void)s;
    begin(true);
    const struct profile_counts *c = &full_trace_profile(trace)->counts;
    one_request(1, 200);
    one_request(2, 300);
    call_of(3, P, P, 400, "a", "bottom", FULL_IS_ENTRY);
    full_trace_advance(trace, INT64_MAX);
    full_trace_shut(trace, 302 * US);
    assert_int_equal(c->partly, 1); // 2 ended later
    fate_of(2, true, 300, 5, "create");
    fate_of(1, true, 200, 5, "create");
    assert_int_equal(c->partly, 1);
    assert_int_equal(c->requests, 1);
    full_trace_close(trace); // what becomes of 3 nobody has told
    assert_int_equal(c->partly, 2);
    assert_int_equal(c->unseen, 0);
    assert_string_equal(drawn(), "a 1 5\n");
    full_trace_free(trace);
}

// Of a request within the window the message of its end has not come: it is not as if it were none.
static void no_end(void **s) {
    (void)s;
    begin(true);
    const struct profile_counts *c = &full_trace_profile(trace)->counts;
    call_of(1, P, P, 100, "a", "bottom", FULL_IS_ENTRY);
    full_trace_advance(trace, INT64_MAX);
    fate_of(1, false, 100, 50, "create");
    call_of(2, Q, Q, 200, "a", "bottom", FULL_IS_ENTRY);
    full_trace_advance(trace, INT64_MAX);
    fate_of(2, true, 200, 50, "create");
    assert_int_equal(c->incomplete, 0);
    full_trace_close(trace);
    assert_int_equal(c->incomplete, 2);
    assert_int_equal(c->requests + c->partly + c->unseen, 0);
    full_trace_free(trace);
}

// Messages of a request were lost, that of its end among them: so nobody tells what became of it.
static void lost_with_its_end(void **s) {
    (void)s;
    begin(true);
    const struct profile_counts *c = &full_trace_profile(trace)->counts;
    call_of(1, P, P, 100, "a", "bottom", FULL_IS_ENTRY);
    full_trace_advance(trace, INT64_MAX);
    full_trace_lost(trace);
    call_of(2, Q, Q, 9000, "a", "bottom", FULL_IS_ENTRY);
    full_trace_close(trace);
    assert_int_equal(c->incomplete, 1);
    assert_int_equal(c->partly, 1); // 2 goes on
    full_trace_free(trace);
}

// What it costs: bytes, how long patterns stand, and how long requests take meanwhile and else.
static void costs(void **s) {
    (void)s;
    options = (struct full_trace_options){.since = 1000 * US};
    begin(true);
    options = (struct full_trace_options){0};
    const struct profile *p = full_trace_profile(trace);
    full_trace_size(trace, 40);
    fate_of(90, true, 10, 7, "create"); // nobody knows yet when patterns stand
    full_trace_stands(trace, 900 * US, 1000 * US);
    fate_of(91, true, 100, 30, "create"); // before they were asked for
    fate_of(92, true, 880, 30, "create"); // meanwhile, and so the next one
    fate_of(93, true, 990, 5, "create");
    fate_of(94, false, 100, 30, "create");
    one_request(1, 1100);
    fate_of(1, true, 1100, 5, "create");
    one_request(2, 1200);
    fate_of(2, true, 1200, 7, "read");
    full_trace_shut(trace, 1500 * US);
    fate_of(95, true, 1490, 40, "create");
    full_trace_off(trace, 1600 * US);
    full_trace_off(trace, 1700 * US);      // they were off already
    fate_of(96, true, 1590, 40, "create"); // while they stood
    fate_of(97, true, 1600, 10, "create"); // between two windows, and so the next one
    full_trace_stands(trace, 2400 * US, 2500 * US);
    full_trace_open(trace, 2500 * US);
    fate_of(98, true, 2000, 20, "create");
    fate_of(99, true, 2390, 20, "create");
    one_request(3, 2600);
    fate_of(3, true, 2600, 9, "create");
    full_trace_off(trace, 2700 * US);
    fate_of(100, true, 3000, 4, "other");
    assert_int_equal(p->counts.stood_ns, 800 * US);
    assert_int_equal(p->counts.bytes, 40 * p->counts.messages);
    assert_true(p->counts.messages > 0);
    assert_true(p->counts.rested);
    assert_int_equal(p->identity_count, 3);
    const struct profile_identity *i = p->identities;
    assert_string_equal(names_text(&p->stacks.names, i->name), "create");
    assert_int_equal(i->requests, 2);
    assert_int_equal(i->ns, 14 * US);
    assert_int_equal(i->others, 3);
    assert_int_equal(i->others_ns, 60 * US);
    assert_int_equal(i[1].requests, 1);
    assert_int_equal(i[1].others, 0);
    assert_int_equal(i[2].requests, 0);
    assert_int_equal(i[2].others, 1);
    apart(P, 4000, MESSAGE_IN); // of a session of its own: the tiers' goes on
    assert_false(p->counts.rested);
    for (int k = 0; k < 2 * PROFILE_IDENTITIES; k++) { // no more than there is room for
        char name[32];
        snprintf(name, sizeof name, "identity %d", k);
        fate_of(1000 + (uint64_t)k, true, 5000, 1, name);
    }
    assert_int_equal(p->identity_count, PROFILE_IDENTITIES);
    full_trace_free(trace);
}

// The request that a process has begun goes before the token that it shows.
static void another_token(void **s) {
    (void)s;
    begin(true);
    entry(0, "a");
    call_of(TOKEN + 1, P, Q, 2, "b", "a", FULL_PLAIN);
    return_to(P, 5, "a");
    return_to(P, 6, "bottom");
    end(6, "a 1 3\na;b 1 3\n");
}

static void bounds(void **s) {
    (void)s;
    begin(true);
    // requests: those past the cap are refused, and their places are free again
    for (int round = 0; round < 3; round++) {
        uint64_t first = 1000 * (uint64_t)(round + 1);
        for (uint64_t i = 0; i < LIMIT_FULL_REQUESTS + 5; i++) {
            one_request(first + i, (int64_t)(100 * (first + i)));
        }
        full_trace_advance(trace, INT64_MAX);
        for (uint64_t i = 0; i < LIMIT_FULL_REQUESTS + 5; i++) {
            fate_of(first + i, true, (int64_t)(100 * (first + i)), 5, "create");
        }
    }
    assert_int_equal(full_trace_profile(trace)->counts.refused, 3 * 5);
    // depth: one stack of what is deeper, and the request is whole
    char name[32], caller[32] = "bottom";
    int64_t at = 10000000;
    for (int i = 0; i < 2 * (int)LIMIT_PROFILE_DEPTH; i++) {
        snprintf(name, sizeof name, "f%d", i);
        call_of(5, P, P, at + i, name, caller, i == 0 ? FULL_IS_ENTRY : FULL_PLAIN);
        strcpy(caller, name);
    }
    return_to(P, at + 1000, "bottom");
    uint64_t before = full_trace_profile(trace)->counts.requests;
    fate_of(5, true, at, 1000, "deep");
    assert_int_equal(full_trace_profile(trace)->counts.requests, before + 1);
    // processes: those that work for nobody make room
    for (uint64_t pid = 100; pid < 100 + 2 * LIMIT_FULL_PROCESSES; pid++) {
        call_of(pid, pid, pid, at + 2000 + (int64_t)pid * 10, "a", "bottom", FULL_IS_ENTRY);
        return_to(pid, at + 2005 + (int64_t)pid * 10, "bottom");
        fate_of(pid, true, at + 2000 + (int64_t)pid * 10, 5, "many");
    }
    assert_int_equal(full_trace_profile(trace)->counts.requests,
                     before + 1 + 2 * LIMIT_FULL_PROCESSES);
    full_trace_free(trace);
}

// Any order of any messages: no more time is given than passed in each process.
static void any_messages(void **s) {
    (void)s;
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    uint64_t random = 1;
    for (int round = 0; round < 300; round++) {
        begin(round % 2 == 0);
        int64_t us = 0;
        for (int i = 0; i < 500; i++) {
            uint64_t r = random_u64(&random);
            uint64_t pid = 1 + r % 4, token = 1 + (r >> 8) % 3;
            const char *f = names[(r >> 16) % 5], *g = names[(r >> 24) % 5];
            us += (int64_t)((r >> 32) % 20);
            switch ((r >> 40) % 12) {
            case 0:
                call_of(token, pid, pid, us, f, "bottom", FULL_IS_ENTRY);
                break;
            case 1:
                call_of(token, pid, pid, us, f, NULL, FULL_IS_BEGIN);
                break;
            case 2:
                call_of(token, pid, pid, us, f, NULL, FULL_IS_END);
                break;
            case 3:
                state(pid, us, MESSAGE_GC_START + (enum message_kind)((r >> 48) % 5));
                break;
            case 4:
            case 5:
            case 6:
                return_to(pid, us, f);
                break;
            case 7:
                if ((r >> 48) % 8 == 0) {
                    full_trace_lost(trace);
                }
                break;
            default:
                call_of(token, pid, 1 + (r >> 48) % 4, us, f, g, FULL_PLAIN);
                break;
            }
        }
        for (uint64_t token = 1; token <= 3; token++) {
            fate_of(token, true, 0, us, "any");
        }
        const struct profile *p = full_trace_profile(trace);
        int64_t ns = 0;
        for (uint32_t i = 0; i < p->weights.count; i++) {
            assert_true(p->weights.all[i].ns >= 0);
            ns += p->weights.all[i].ns;
        }
        assert_int_equal(ns - p->counts.missing_ns,
                         p->counts.duration_ns - p->counts.missing_ns + p->counts.parallel_ns);
        assert_true(ns - p->counts.missing_ns <= 4 * us * US);
        full_trace_free(trace);
    }
}

static void without_memory(void **s) {
    (void)s;
    fail_alloc_at(-1);
    begin(true);
    long all = fail_alloc_count();
    full_trace_free(trace);
    for (long fail = 0; fail < all; fail++) {
        fail_alloc_at(fail);
        assert_null(full_trace_new(&options));
    }
    fail_alloc_at(-1);
    for (long fail = 0; fail < 60; fail++) {
        begin(true);
        fail_alloc_at(fail);
        entry(0, "a");
        call(P, P, 1, "b", "a");
        call(Q, P, 2, "c", "b");
        return_to(Q, 3, "b");
        return_to(P, 4, "a");
        return_to(P, 5, "bottom");
        fate_of(TOKEN, true, 0, 5, "create");
        fail_alloc_at(-1);
        full_trace_free(trace);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested),
        cmocka_unit_test(tail_calls),
        cmocka_unit_test(recursion),
        cmocka_unit_test(of_another),
        cmocka_unit_test(exceptions),
        cmocka_unit_test(functions_between),
        cmocka_unit_test(a_tier),
        cmocka_unit_test(asleep_and_gc),
        cmocka_unit_test(markers),
        cmocka_unit_test(a_server),
        cmocka_unit_test(a_server_by_messages),
        cmocka_unit_test(a_loop),
        cmocka_unit_test(a_loop_by_messages),
        cmocka_unit_test(the_longest),
        cmocka_unit_test(parallel),
        cmocka_unit_test(not_followed),
        cmocka_unit_test(disorder),
        cmocka_unit_test(one_token),
        cmocka_unit_test(what_is_taken),
        cmocka_unit_test(suspects),
        cmocka_unit_test(enough),
        cmocka_unit_test(enough_of_one),
        cmocka_unit_test(windows),
        cmocka_unit_test(shut_late),
        cmocka_unit_test(no_end),
        cmocka_unit_test(lost_with_its_end),
        cmocka_unit_test(costs),
        cmocka_unit_test(another_token),
        cmocka_unit_test(bounds),
        cmocka_unit_test(any_messages),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
