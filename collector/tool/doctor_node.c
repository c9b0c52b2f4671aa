// kprof doctor: a node, asked over the distribution.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "codec/term.h"
#include "dist/cookie.h"
#include "tool/attach.h"
#include "tool/doctor.h"
#include "tool/text.h"

enum { ASK_MS = 3000 };

static const int64_t CLOCK_OFF_NS = 1000000000;

// Calls module:function([argument]) with an atom, or without. False when there is no answer; nothing is told of it.
static bool ask(struct node *n, const char *module, const char *function, const char *argument, struct cursor *answer) {
    ei_x_buff args;
    struct slice result;
    struct dist_error ignored;
    bool good = ei_x_new(&args) == 0;
    if (good && argument) {
        good = ei_x_encode_list_header(&args, 1) == 0 && ei_x_encode_atom(&args, argument) == 0;
    }
    good = good && ei_x_encode_empty_list(&args) == 0 && channel_call(&n->channel, module, function, &args, ASK_MS, &result, &ignored);
    ei_x_free(&args);
    if (good) {
        *answer = cursor_of(result.data, result.len);
    }
    return good;
}

// An atom that the node answers with, as text; "" when it does not.
static void ask_atom(struct node *n, const char *module, const char *function, char out[64]) {
    struct cursor c;
    out[0] = 0;
    if (ask(n, module, function, NULL, &c) && term_is_atom(term_peek(&c))) {
        struct slice text = term_atom(&c).text;
        snprintf(out, 64, "%.*s", (int)(text.len < 63 ? text.len : 63), (const char *)text.data);
    }
}

static void look_at_clock(struct doctor *d, struct node *n, const char *about) {
    struct cursor c;
    char off[TEXT_DURATION_BYTES];
    int64_t before = clock_wall();
    if (!ask(n, "erlang", "system_time", "nanosecond", &c)) {
        return;
    }
    int64_t after = clock_wall(), theirs = term_integer(&c), ns = theirs - (before + (after - before) / 2);
    bool far = ns > CLOCK_OFF_NS || ns < -CLOCK_OFF_NS;
    doctor_tell(d, far ? DOCTOR_WARNING : DOCTOR_OK, about, far ? "have both hosts keep the time (NTP)" : NULL,
                "its clock is %s %s this host's",
                text_duration((double)(ns < 0 ? -ns : ns), off), ns < 0 ? "behind" : "ahead of");
}

static void look_at_runtime_tools(struct doctor *d, struct node *n, const char *about) {
    struct cursor c;
    if (ask(n, "code", "lib_dir", "runtime_tools", &c) && term_peek(&c) != TERM_STRING) {
        doctor_tell(d, DOCTOR_PROBLEM, about, "install runtime_tools there (Debian: erlang-runtime-tools), or put it into the release",
                    "it lacks runtime_tools, which brings the trace port");
    }
}

// What of kprof is in it. Asking a module that is not there would have the code server look for it: its state says so without.
static void look_at_kprof(struct doctor *d, struct node *n, const char *about) {
    struct cursor c;
    char state[64] = "";
    if (!ask(n, "code", "is_loaded", "kprof_session", &c)) {
        doctor_tell(d, DOCTOR_WARNING, about, NULL, "it does not tell what is loaded");
        return;
    }
    if (term_is_atom(term_peek(&c))) { // false
        doctor_tell(d, DOCTOR_OK, about, NULL, "nothing of kprof is in it");
        return;
    }
    ask_atom(n, "kprof_session", "status", state);
    bool traced = strcmp(state, "tracing") == 0 || strcmp(state, "waiting") == 0 || strcmp(state, "paused") == 0 ||
                  strcmp(state, "held") == 0;
    if (strcmp(state, "waiting") == 0) {
        doctor_tell(d, DOCTOR_WARNING, about, "is the collector running, and reached from there?",
                    "kprof is in it and waits for its collector");
    } else {
        doctor_tell(d, DOCTOR_OK, about, NULL, "kprof is in it: %s", traced ? state : "nothing is armed");
    }
}

void doctor_node(struct doctor *d, const char *text, const char *cookie_file) {
    struct node n;
    struct node_name name;
    struct dist_error e;
    char cookie[COOKIE_BYTES], about[NODE_NAME_BYTES + 8];
    snprintf(about, sizeof about, "node %s", text);
    if (attach_read_node("doctor", text, cookie_file, &name, cookie) != 0) { // has told on stderr why
        doctor_tell(d, DOCTOR_PROBLEM, about, "name it as node() says in it, and its cookie with --cookie-file",
                    "its name or the cookie is no use");
        return;
    }
    bool there = node_connect(&n, &name, attach_own_name(), cookie, ATTACH_CONNECT_MS, &e);
    explicit_bzero(cookie, sizeof cookie);
    if (!there) {
        doctor_tell(d, DOCTOR_PROBLEM, about, NULL, "%s", e.text); // says what to do itself
        return;
    }
    doctor_tell(d, DOCTOR_OK, about, NULL, "reached, OTP %d", n.otp);
    look_at_clock(d, &n, about);
    look_at_runtime_tools(d, &n, about);
    look_at_kprof(d, &n, about);
    node_disconnect(&n);
}
