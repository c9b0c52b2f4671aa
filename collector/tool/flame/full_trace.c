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
#include "tool/nodes/nodes.h"
#include "tool/stop.h"
#include "tool/text.h"

enum { LOOK_MS = 100, SILENT_MS = 15000, TEXT_BYTES = 400 };

// -- messages -------------------------------------------------------------------------------------

static void put_names(struct control_writer *w, const char *key, const char *const *names,
                      uint32_t count) {
    control_list(w, key, count);
    for (uint32_t i = 0; i < count; i++) {
        control_map(w, 1);
        control_text(w, FIELD_NAME, slice_text(names[i]));
    }
}

static int ask(struct client *c, const struct full_trace_options *o, const char *node) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_FLAME, o->only ? 7 : 6);
    control_text(&w, FIELD_NODE, slice_text(node));
    control_int(&w, FIELD_REQUESTS, o->requests);
    control_int(&w, FIELD_SECONDS, o->seconds);
    control_bool(&w, FIELD_ALL, o->all_modules);
    put_names(&w, FIELD_APPLICATIONS, o->applications, o->application_count);
    put_names(&w, FIELD_MODULES, o->modules, o->module_count);
    if (o->only) {
        control_text(&w, FIELD_ONLY, slice_text(o->only));
    }
    control_end(&w);
    return reach_ask("flame", c, &b);
}

static void ask_to_stop(struct client *c) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_FLAME_STOP, 0);
    if (control_end(&w)) {
        client_send(c, &b);
    }
    buffer_free(&b);
}

static int64_t count_of(struct control_map m, const char *key) {
    int64_t n = 0;
    control_get_int(m, key, &n);
    return n;
}

static void show_progress(const struct full_trace_options *o, struct control_map m) {
    if (o->quiet) {
        return;
    }
    bool draws = isatty(STDERR_FILENO), fresh = false;
    struct slice awaits = slice_text("");
    control_get_text(m, FIELD_TEXT, &awaits);
    if (awaits.len > 0) {
        char text[TEXT_BYTES];
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
            draws ? "\r\033[K" : "", count_of(m, FIELD_REQUESTS), o->requests,
            count_of(m, FIELD_MESSAGES), count_of(m, FIELD_FUNCTIONS), count_of(m, FIELD_PROCESSES),
            fresh ? " and in new ones" : "", draws ? "" : "\n");
}

// "3 cart, 1 create": the other identities. Returns out.
static char *others_text(struct control_map m, char out[TEXT_BYTES]) {
    struct control_list list = {0};
    size_t len = 0;
    control_get_list(m, FIELD_IDENTITIES, &list);
    out[0] = 0;
    for (uint32_t i = 0; i < list.count && len + 1 < TEXT_BYTES; i++) {
        struct control_map one = control_list_at(list, i);
        struct slice name = slice_text("");
        control_get_text(one, FIELD_IDENTITY, &name);
        int n = snprintf(out + len, TEXT_BYTES - len, "%s%" PRId64 " %.*s", len > 0 ? ", " : "",
                         count_of(one, FIELD_REQUESTS), (int)(name.len < 80 ? name.len : 80),
                         (const char *)name.data);
        len = n > 0 ? len + (size_t)n : len;
    }
    text_clean(out);
    return out;
}

// Says why there is no profile, in one line, with an exit status of its own.
static int tell_none(const struct full_trace_options *o, struct control_map m, const char *text) {
    uint64_t others = (uint64_t)count_of(m, FIELD_OTHERS),
             unseen = (uint64_t)count_of(m, FIELD_UNSEEN),
             incomplete = (uint64_t)count_of(m, FIELD_INCOMPLETE);
    char names[TEXT_BYTES];
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
    return command_fail(
        "flame", EXIT_NO_REQUEST,
        "no request came in that time; kprof doctor tells whether requests are marked");
}

// Says why there are fewer requests than wanted.
static void tell_early(const struct full_trace_options *o, struct control_map m, const char *text) {
    int64_t requests = count_of(m, FIELD_REQUESTS);
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
        char text[TEXT_BYTES];
        int64_t taken = count_of(m, FIELD_REQUESTS), of = taken ? taken : count_of(m, FIELD_UNSEEN);
        control_get_text(one, FIELD_PID, &pid);
        control_get_text(one, FIELD_NAME, &name);
        snprintf(text, sizeof text, "%.*s%s%.*s", (int)(pid.len < 40 ? pid.len : 40),
                 (const char *)pid.data, name.len > 0 ? " " : "",
                 (int)(name.len < 200 ? name.len : 200), (const char *)name.data);
        text_clean(text);
        fprintf(stderr,
                "not followed into %s: it had no flag yet; %" PRId64 " of %" PRId64 " request%s\n",
                text, count_of(one, FIELD_REQUESTS), of, text_plural((uint64_t)of));
    }
}

// What it has cost, a line each: the profile itself, which tells that, too, may lie on another
// host.
static void tell_costs(struct control_map m) {
    struct control_list list = {0};
    control_get_list(m, FIELD_COSTS, &list);
    for (uint32_t i = 0; i < list.count; i++) {
        struct control_map one = control_list_at(list, i);
        struct slice line = slice_text("");
        char text[TEXT_BYTES];
        control_get_text(one, FIELD_TEXT, &line);
        snprintf(text, sizeof text, "%.*s",
                 (int)(line.len < TEXT_BYTES ? line.len : TEXT_BYTES - 1), (const char *)line.data);
        text_clean(text);
        fprintf(stderr, "%s\n", text);
    }
}

static enum full_trace_end take_end(const struct full_trace_options *o, struct control_map m,
                                    int64_t *profile, int *status) {
    char text[TEXT_BYTES];
    struct slice said = slice_text("");
    if (!o->quiet && isatty(STDERR_FILENO)) {
        fputs("\r\033[K", stderr);
    }
    control_get_text(m, FIELD_TEXT, &said);
    snprintf(text, sizeof text, "%.*s", (int)(said.len < TEXT_BYTES ? said.len : TEXT_BYTES - 1),
             (const char *)said.data);
    text_clean(text);
    *profile = count_of(m, FIELD_PROFILE);
    if (!o->quiet && !(o->drawn && *profile > 0)) {
        tell_missed(m);
        tell_costs(m);
    }
    if (*profile == 0) {
        *status = tell_none(o, m, text);
        return FULL_TRACE_NONE;
    }
    tell_early(o, m, text);
    return FULL_TRACE_KEPT;
}

static int gone(struct client *c) {
    return command_fail("flame", EXIT_FAILURE, "the collector is gone: %s", client_why(c));
}

static enum full_trace_end follow(struct client *c, const struct full_trace_options *o,
                                  int64_t *profile, int *status) {
    bool stopping = false;
    int silent = 0;
    for (;;) {
        struct control *message;
        if (stop_wanted() && !stopping) {
            stopping = true;
            ask_to_stop(c);
        }
        switch (client_next(c, LOOK_MS, &message)) {
        case CLIENT_CLOSED:
            *status = gone(c);
            return FULL_TRACE_FAILED;
        case CLIENT_TIMEOUT:
            silent += LOOK_MS;
            if (silent > SILENT_MS) {
                *status = command_fail("flame", EXIT_FAILURE, "the collector does not answer");
                return FULL_TRACE_FAILED;
            }
            continue;
        case CLIENT_MESSAGE:
            break;
        }
        struct control_map m = control_root(message);
        struct slice type = slice_text(""), text = slice_text("it gives no reason");
        enum full_trace_end end = FULL_TRACE_FAILED;
        bool over = true;
        silent = 0;
        control_get_text(m, FIELD_TYPE, &type);
        if (slice_is(type, CONTROL_FLAMED)) {
            end = take_end(o, m, profile, status);
        } else if (slice_is(type, CONTROL_ERROR)) {
            control_get_text(m, FIELD_TEXT, &text);
            *status = command_fail("flame", EXIT_FAILURE, "%.*s",
                                   (int)(text.len < TEXT_BYTES ? text.len : TEXT_BYTES),
                                   (const char *)text.data);
        } else {
            over = false;
            if (slice_is(type, CONTROL_FLAMING)) {
                show_progress(o, m);
            }
        }
        control_free(message);
        if (over) {
            return end;
        }
    }
}

enum full_trace_end full_trace_make(const struct full_trace_options *options, int64_t *profile,
                                    int *status) {
    struct reach reach = options->reach;
    char found[NODE_TEXT_BYTES];
    const char *node = options->node;
    enum full_trace_end end = FULL_TRACE_FAILED;
    *profile = 0;
    struct client *c = reach_open("flame", &reach, status);
    if (c) {
        *status = nodes_find("flame", c, options->node, found, &node);
        *status = *status == EXIT_SUCCESS ? ask(c, options, node) : *status;
        if (*status == EXIT_SUCCESS) {
            end = follow(c, options, profile, status);
        }
        client_close(c);
    }
    reach_close(&reach);
    return end;
}
