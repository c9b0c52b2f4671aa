// SPDX-License-Identifier: Apache-2.0
#include "tool/flame/full_trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit_status.h"
#include "base/text_amount.h"
#include "tool/command.h"
#include "tool/follow.h"
#include "tool/text.h"

struct following {
    const struct full_trace_options *o;
    int64_t *profile;
};

// -- messages -------------------------------------------------------------------------------------

static void ask(const void *options, const char *node, struct buffer *question) {
    const struct full_trace_options *o = options;
    struct control_writer w = control_begin(question, CONTROL_FLAME, o->only ? 7 : 6);
    control_text(&w, FIELD_NODE, slice_text(node));
    control_int(&w, FIELD_REQUESTS, o->requests);
    control_int(&w, FIELD_SECONDS, o->seconds);
    control_bool(&w, FIELD_ALL, o->all_modules);
    follow_put_texts(&w, FIELD_APPLICATIONS, FIELD_NAME, o->applications, o->application_count);
    follow_put_texts(&w, FIELD_MODULES, FIELD_NAME, o->modules, o->module_count);
    if (o->only) {
        control_text(&w, FIELD_ONLY, slice_text(o->only));
    }
    control_end(&w);
}

static void show_progress(const struct full_trace_options *o, struct control_map m) {
    if (o->quiet) {
        return;
    }
    bool draws = isatty(STDERR_FILENO), fresh = false;
    struct slice awaits = slice_text("");
    control_get_text(m, FIELD_TEXT, &awaits);
    if (awaits.len > 0) {
        char text[FOLLOW_TEXT_BYTES];
        snprintf(text, sizeof text, "%.*s", (int)(awaits.len < 200 ? awaits.len : 200),
                 (const char *)awaits.data);
        text_clean(text);
        fprintf(stderr, "%swaiting: %s%s", draws ? "\r\033[K" : "", text, draws ? "" : "\n");
        return;
    }
    control_get_bool(m, FIELD_NEW_PROCESSES, &fresh);
    fprintf(stderr,
            "%s%" PRId64 " of %" PRId64 " requests, %" PRId64 " messages (%" PRId64
            " functions in %" PRId64 " processes%s)%s",
            draws ? "\r\033[K" : "", follow_number(m, FIELD_REQUESTS), o->requests,
            follow_number(m, FIELD_MESSAGES), follow_number(m, FIELD_FUNCTIONS),
            follow_number(m, FIELD_PROCESSES), fresh ? " and in new ones" : "", draws ? "" : "\n");
}

// "3 cart, 1 create": the other identities. Returns out.
static char *others_text(struct control_map m, char out[FOLLOW_TEXT_BYTES]) {
    struct control_list list = {0};
    size_t len = 0;
    control_get_list(m, FIELD_IDENTITIES, &list);
    out[0] = 0;
    for (uint32_t i = 0; i < list.count && len + 1 < FOLLOW_TEXT_BYTES; i++) {
        struct control_map one = control_list_at(list, i);
        struct slice name = slice_text("");
        control_get_text(one, FIELD_IDENTITY, &name);
        int n = snprintf(out + len, FOLLOW_TEXT_BYTES - len, "%s%" PRId64 " %.*s",
                         len > 0 ? ", " : "", follow_number(one, FIELD_REQUESTS),
                         (int)(name.len < 80 ? name.len : 80), (const char *)name.data);
        len = n > 0 ? len + (size_t)n : len;
    }
    text_clean(out);
    return out;
}

// Says why there is no profile, in one line, with an exit status of its own.
static int tell_none(const struct full_trace_options *o, struct control_map m, const char *text) {
    uint64_t others = (uint64_t)follow_number(m, FIELD_OTHERS),
             unseen = (uint64_t)follow_number(m, FIELD_UNSEEN),
             partly = (uint64_t)follow_number(m, FIELD_PARTLY),
             incomplete = (uint64_t)follow_number(m, FIELD_INCOMPLETE);
    char names[FOLLOW_TEXT_BYTES];
    struct slice reason = slice_text("");
    control_get_text(m, FIELD_REASON, &reason);
    if (slice_is(reason, "no_function")) {
        return command_fail("flame", EXIT_NO_FUNCTION, "%s", text);
    }
    if (slice_is(reason, "tripped")) {
        return command_fail("flame", EXIT_TRIPPED, "the guard of the node has ended it: %s", text);
    }
    if (text[0] && slice_is(reason, "error")) {
        return command_fail("flame", EXIT_FAILURE, "%s", text);
    }
    if (incomplete > 0) {
        return command_fail("flame", EXIT_DAMAGED_REQUESTS,
                            "%" PRIu64 " request%s came, and of each messages were lost or could "
                            "not be joined; kprof report tells why",
                            incomplete, text_plural(incomplete));
    }
    if (unseen > 0) {
        return command_fail("flame", EXIT_UNSEEN,
                            "%" PRIu64 " request%s came, but ran through none of these modules, or "
                            "in processes that were not followed",
                            unseen, text_plural(unseen));
    }
    if (others > 0) {
        return command_fail("flame", EXIT_OTHERS, "%" PRIu64 " request%s came, but none of %s: %s",
                            others, text_plural(others), o->only ? o->only : "these",
                            others_text(m, names));
    }
    if (partly > 0) {
        return command_fail("flame", EXIT_NO_REQUEST,
                            "%" PRIu64 " request%s came, but none began and ended while functions "
                            "were traced, which is for 10 s at a time at most",
                            partly, text_plural(partly));
    }
    return command_fail(
        "flame", EXIT_NO_REQUEST,
        "no request came in that time; kprof doctor tells whether requests are marked");
}

// Says why there are fewer requests than wanted.
static void tell_early(const struct full_trace_options *o, struct control_map m, const char *text) {
    int64_t requests = follow_number(m, FIELD_REQUESTS);
    struct slice reason = slice_text("");
    control_get_text(m, FIELD_REASON, &reason);
    if (requests < o->requests) {
        fprintf(stderr, "%" PRId64 " of %" PRId64 " requests: it ended early, as %s%s\n", requests,
                o->requests,
                slice_is(reason, "tripped") ? "the guard of the node has tripped: " : "",
                text[0] ? text : "the time was over");
    }
}

// "not followed into <0.123.0> my_pool_worker: it had no flag yet; 3 of 20 requests", one a line.
static void tell_missed(struct control_map m) {
    struct control_list list = {0};
    control_get_list(m, FIELD_MISSED, &list);
    for (uint32_t i = 0; i < list.count; i++) {
        struct control_map one = control_list_at(list, i);
        struct slice pid = slice_text(""), name = slice_text("");
        char text[FOLLOW_TEXT_BYTES];
        int64_t taken = follow_number(m, FIELD_REQUESTS),
                of = taken ? taken : follow_number(m, FIELD_UNSEEN);
        control_get_text(one, FIELD_PID, &pid);
        control_get_text(one, FIELD_NAME, &name);
        snprintf(text, sizeof text, "%.*s%s%.*s", (int)(pid.len < 40 ? pid.len : 40),
                 (const char *)pid.data, name.len > 0 ? " " : "",
                 (int)(name.len < 200 ? name.len : 200), (const char *)name.data);
        text_clean(text);
        fprintf(stderr,
                "not followed into %s: it had no flag yet; %" PRId64 " of %" PRId64 " request%s\n",
                text, follow_number(one, FIELD_REQUESTS), of, text_plural((uint64_t)of));
    }
}

// What it has cost, a line each: the profile itself, which tells that, too, may lie on another
// host.
static void tell_costs(struct control_map m) {
    struct control_list list = {0};
    control_get_list(m, FIELD_COSTS, &list);
    for (uint32_t i = 0; i < list.count; i++) {
        struct control_map one = control_list_at(list, i);
        char text[FOLLOW_TEXT_BYTES];
        fprintf(stderr, "%s\n", follow_text(one, FIELD_TEXT, text));
    }
}

static int take_end(const struct following *f, struct control_map m) {
    const struct full_trace_options *o = f->o;
    char text[FOLLOW_TEXT_BYTES];
    if (!o->quiet && isatty(STDERR_FILENO)) {
        fputs("\r\033[K", stderr);
    }
    follow_text(m, FIELD_TEXT, text);
    *f->profile = follow_number(m, FIELD_PROFILE);
    if (!o->quiet && !(o->drawn && *f->profile > 0)) {
        tell_missed(m);
        tell_costs(m);
    }
    if (*f->profile == 0) {
        return tell_none(o, m, text);
    }
    tell_early(o, m, text);
    return EXIT_SUCCESS;
}

static int hear(void *user, struct slice type, struct control_map m) {
    const struct following *f = user;
    if (slice_is(type, CONTROL_FLAMED)) {
        return take_end(f, m);
    }
    if (slice_is(type, CONTROL_FLAMING)) {
        show_progress(f->o, m);
    }
    return -1;
}

int full_trace_make(const struct full_trace_options *o, int64_t *profile) {
    struct following following = {o, profile};
    struct reach reach = o->reach;
    *profile = 0;
    return follow(&(struct follow){"flame", ask, o, CONTROL_FLAME_STOP, {&following, hear, NULL}},
                  &reach, o->node);
}
