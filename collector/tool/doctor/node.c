// SPDX-License-Identifier: Apache-2.0
// kprof doctor: a node, asked over the distribution.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text_amount.h"
#include "codec/term.h"
#include "dist/cookie.h"
#include "tool/attach/attach.h"
#include "tool/doctor/checks.h"

enum {
    ASK_MS = 3000,
    BINARY_HEAD = 5 // tag and length
};

static const int64_t CLOCK_OFF_NS = 1000000000;

// Calls module:function with atoms, separated by blanks, or without. False when there is no answer;
// nothing is told of it.
static bool ask(struct dist_node *n, const char *module, const char *function, const char *atoms,
                struct cursor *answer) {
    ei_x_buff args;
    struct slice result;
    struct dist_error ignored;
    bool good = ei_x_new(&args) == 0;
    while (good && atoms && *atoms) {
        int len = (int)strcspn(atoms, " ");
        good =
            ei_x_encode_list_header(&args, 1) == 0 && ei_x_encode_atom_len(&args, atoms, len) == 0;
        atoms += len + (atoms[len] == ' ');
    }
    good = good && ei_x_encode_empty_list(&args) == 0 &&
           channel_call(&n->channel, module, function, &args, ASK_MS, &result, &ignored);
    ei_x_free(&args);
    if (good) {
        *answer = cursor_of(result.data, result.len);
    }
    return good;
}

// An atom that the node answers with, as text; "" when it does not.
static void ask_atom(struct dist_node *n, const char *module, const char *function, char out[64]) {
    struct cursor c;
    out[0] = 0;
    if (ask(n, module, function, NULL, &c) && term_is_atom(term_peek(&c))) {
        struct slice text = term_atom(&c).text;
        snprintf(out, 64, "%.*s", (int)(text.len < 63 ? text.len : 63), (const char *)text.data);
    }
}

static void look_at_clock(struct doctor *d, struct dist_node *n, const struct doctor_about *about) {
    struct cursor c;
    char off[TEXT_DURATION_BYTES];
    int64_t before = clock_wall();
    if (!ask(n, "erlang", "system_time", "nanosecond", &c)) {
        return;
    }
    int64_t after = clock_wall(), theirs = term_integer(&c),
            ns = theirs - (before + (after - before) / 2);
    bool far = ns > CLOCK_OFF_NS || ns < -CLOCK_OFF_NS;
    doctor_tell(d, far ? DOCTOR_WARNING : DOCTOR_OK, about,
                far ? "set the clocks of both hosts right (NTP)" : NULL,
                "its clock is %s %s this host's", text_duration((double)(ns < 0 ? -ns : ns), off),
                ns < 0 ? "behind" : "ahead of");
}

static void look_at_runtime_tools(struct doctor *d, struct dist_node *n,
                                  const struct doctor_about *about) {
    struct cursor c;
    if (ask(n, "code", "lib_dir", "runtime_tools", &c) && term_peek(&c) != TERM_STRING) {
        doctor_tell(
            d, DOCTOR_PROBLEM, about,
            "install runtime_tools there (Debian: erlang-runtime-tools), or put it into the "
            "release",
            "it lacks runtime_tools, which brings the trace port");
    }
}

// Each tier's function, and who else traces there: a list of {ok | warning, Text}, made by the shim
// (kprof_armed).
static void look_at_armed(struct doctor *d, struct dist_node *n, const struct doctor_about *about) {
    struct cursor c;
    struct slice bytes;
    bool has_tail;
    uint32_t count = ask(n, "kprof_life", "armed", NULL, &c) && term_peek(&c) == TERM_LIST
                         ? term_list(&c, &has_tail, &bytes)
                         : 0;
    for (uint32_t i = 0; i < count && !c.failed; i++) {
        bool pair =
            term_is_tuple(term_peek(&c)) && term_tuple(&c) == 2 && term_is_atom(term_peek(&c));
        struct slice level = pair ? term_atom(&c).text : slice_text("");
        struct slice text = pair && term_peek(&c) == TERM_BINARY ? term_take(&c) : slice_text("");
        if (text.len <= BINARY_HEAD) {
            return;
        }
        text = slice_of(text.data + BINARY_HEAD, text.len - BINARY_HEAD);
        doctor_tell(d, slice_is(level, "ok") ? DOCTOR_OK : DOCTOR_WARNING, about, NULL, "%.*s",
                    (int)(text.len < 900 ? text.len : 900), (const char *)text.data);
    }
}

// Before OTP 27 a process has one tracer. Asked while kprof is not there.
static void look_at_foreign(struct doctor *d, struct dist_node *n,
                            const struct doctor_about *about) {
    struct cursor c;
    if (n->otp < 27 && ask(n, "erlang", "trace_info", "new tracer", &c) &&
        term_is_tuple(term_peek(&c)) && term_tuple(&c) == 2) {
        term_skip(&c);
        if (!c.failed && term_peek(&c) != TERM_NIL) {
            doctor_tell(d, DOCTOR_WARNING, about,
                        "end that first: before OTP 27 a process can have only one tracer",
                        "somebody else traces new processes there");
        }
    }
}

// What of kprof is in it. Asking a module that is not there would have the code server look for it:
// its state says so without.
static void look_at_kprof(struct doctor *d, struct dist_node *n, const struct doctor_about *about) {
    struct cursor c;
    char state[64] = "";
    if (!ask(n, "code", "is_loaded", "kprof_life", &c)) {
        doctor_tell(d, DOCTOR_WARNING, about, NULL, "it does not tell what is loaded");
        return;
    }
    if (term_is_atom(term_peek(&c))) { // false
        doctor_tell(d, DOCTOR_OK, about, NULL, "nothing of kprof is in it");
        look_at_foreign(d, n, about);
        return;
    }
    ask_atom(n, "kprof_life", "status", state);
    bool traced = strcmp(state, STATE_TRACING) == 0 || strcmp(state, STATE_WAITING) == 0 ||
                  strcmp(state, STATE_TRIPPED) == 0 || strcmp(state, STATE_PAUSED) == 0;
    if (strcmp(state, STATE_WAITING) == 0) {
        doctor_tell(d, DOCTOR_WARNING, about, "is the collector running, and reached from there?",
                    "kprof is in it and waits for its collector");
    } else {
        doctor_tell(d, DOCTOR_OK, about, NULL, "kprof is in it: %s",
                    traced ? state : "nothing is armed");
    }
    look_at_armed(d, n, about);
}

void doctor_node(struct doctor *d, const char *text, const char *cookie_file) {
    struct dist_node n;
    struct dist_name name;
    struct dist_error e;
    char cookie[COOKIE_BYTES], warning[COOKIE_WARNING_BYTES];
    const struct doctor_about *about = &(struct doctor_about){"node", text};
    if (attach_read_node("doctor", text, cookie_file, &name, cookie, warning) !=
        0) { // has told on stderr why
        doctor_tell(d, DOCTOR_PROBLEM, about,
                    "name it as node() says in it, and its cookie with --cookie-file",
                    "its name or the cookie cannot be used");
        return;
    }
    if (*warning) {
        doctor_tell(d, DOCTOR_WARNING, about, "whoever reads it can do anything in the node", "%s",
                    warning);
    }
    bool there = dist_node_connect(&n, &name, attach_own_name(), cookie, ATTACH_CONNECT_MS, &e);
    explicit_bzero(cookie, sizeof cookie);
    if (!there) {
        doctor_tell(d, DOCTOR_PROBLEM, about, NULL, "%s", e.text); // says what to do itself
        return;
    }
    doctor_tell(d, DOCTOR_OK, about, NULL, "reached, OTP %d", n.otp);
    look_at_clock(d, &n, about);
    look_at_runtime_tools(d, &n, about);
    look_at_kprof(d, &n, about);
    dist_node_disconnect(&n);
}
