// SPDX-License-Identifier: Apache-2.0
#include "tool/sample/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_time.h"
#include "tool/command.h"
#include "tool/stop.h"
#include "tool/text.h"

enum { LOOK_MS = 100, SILENT_MS = 15000 };

// -- the command line -----------------------------------------------------------------------------

struct run_options run_usual(const char *command) {
    return (struct run_options){.around.command = command,
                                .by = "reductions",
                                .hz = 99,
                                .top = 100,
                                .every_ms = 5000,
                                .budget_ppm = 20000};
}

int run_take_number(const struct run_options *o, const char *option, const char *value,
                    int64_t most, int64_t *number) {
    return command_number(value, most, number)
               ? EXIT_SUCCESS
               : command_fail(o->around.command, EXIT_USAGE,
                              "--%s %s is no number from 1 to %" PRId64, option, value, most);
}

int run_take_time(const struct run_options *o, const char *option, const char *value,
                  int64_t least_ms, int64_t most_ms, int64_t *ms) {
    int64_t ns = 0;
    if (!text_duration_parse(value, &ns) || ns < least_ms * 1000000 || ns > most_ms * 1000000) {
        return command_fail(o->around.command, EXIT_USAGE, "--%s %s is no length such as 30s",
                            option, value);
    }
    *ms = (ns + 999999) / 1000000;
    return EXIT_SUCCESS;
}

static int take_name(const struct run_options *o, const char *option, const char *value,
                     const char **names, uint32_t *count) {
    if (*count == RUN_NAMES) {
        return command_fail(o->around.command, EXIT_USAGE, "--%s: %d at most", option, RUN_NAMES);
    }
    names[(*count)++] = value;
    return EXIT_SUCCESS;
}

static int take_budget(const struct run_options *o, const char *value, int64_t *ppm) {
    char *end;
    double percent = strtod(value, &end);
    if (end == value || (*end && strcmp(end, "%") != 0) || !(percent >= 0.1 && percent <= 50)) {
        return command_fail(o->around.command, EXIT_USAGE, "--budget %s is none of 0.1%% to 50%%",
                            value);
    }
    *ppm = (int64_t)(percent * 10000);
    return EXIT_SUCCESS;
}

int run_take(struct run_options *o, int option, const char *value) {
    switch (option) {
    case RUN_HZ:
        return run_take_number(o, "hz", value, 1000, &o->hz);
    case RUN_TOP:
        return run_take_number(o, "top", value, 1000, &o->top);
    case RUN_REGISTERED:
        return take_name(o, "registered", value, o->registered, &o->registered_count);
    case RUN_PID:
        return take_name(o, "pid", value, o->pids, &o->pid_count);
    case RUN_APPLICATION:
        o->application = value;
        return EXIT_SUCCESS;
    case RUN_BUDGET:
        return take_budget(o, value, &o->budget_ppm);
    case RUN_COOKIE_FILE:
        return around_take(&o->around, "--cookie-file", value);
    case RUN_LISTEN:
        o->around.listen = value;
        return EXIT_SUCCESS;
    default:
        reach_option(&o->reach, option, value);
        return EXIT_SUCCESS;
    }
}

// -- the way --------------------------------------------------------------------------------------

int run_enter(struct run_options *o, struct around *a, const char **db,
              struct collector_seen *seen) {
    *a = AROUND_NONE;
    if (o->around.listen && o->reach.collector) {
        return command_fail(o->around.command, EXIT_USAGE,
                            "--listen is for a collector of this command's own, --collector names "
                            "one that runs");
    }
    int status = around_settle(&o->around, &o->reach, db, seen);
    if (status != EXIT_SUCCESS || seen->traced) {
        return status;
    }
    status = around_take(&o->around, "--no-tiers", NULL);
    return status == EXIT_SUCCESS ? around_begin(a, &o->around, &o->reach) : status;
}

// -- messages -------------------------------------------------------------------------------------

static void put_names(struct control_writer *w, const char *list, const char *key,
                      const char *const *names, uint32_t count) {
    control_list(w, list, count);
    for (uint32_t i = 0; i < count; i++) {
        control_map(w, 1);
        control_text(w, key, slice_text(names[i]));
    }
}

static int ask(struct client *c, const struct run_options *o, const char *node) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_STACKS, 11);
    control_text(&w, FIELD_NODE, slice_text(node));
    control_int(&w, FIELD_SECONDS, o->seconds);
    control_int(&w, FIELD_HZ, o->hz);
    control_int(&w, FIELD_TOP, o->top);
    control_int(&w, FIELD_EVERY_MS, o->every_ms);
    control_int(&w, FIELD_BUDGET_PPM, o->budget_ppm);
    control_int(&w, FIELD_VIEW_S, o->view_s);
    control_text(&w, FIELD_BY, slice_text(o->by));
    control_text(&w, FIELD_APPLICATION, slice_text(o->application ? o->application : ""));
    put_names(&w, FIELD_REGISTERED, FIELD_NAME, o->registered, o->registered_count);
    put_names(&w, FIELD_PROCESSES, FIELD_PID, o->pids, o->pid_count);
    control_end(&w);
    return reach_ask(o->around.command, c, &b);
}

static void ask_to_stop(struct client *c) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_STACKS_STOP, 0);
    if (control_end(&w)) {
        client_send(c, &b);
    }
    buffer_free(&b);
}

int64_t run_number(struct control_map m, const char *key) {
    int64_t n = 0;
    control_get_int(m, key, &n);
    return n;
}

char *run_text(struct control_map m, const char *key, char out[RUN_TEXT_BYTES]) {
    struct slice said = slice_text("");
    control_get_text(m, key, &said);
    snprintf(out, RUN_TEXT_BYTES, "%.*s",
             (int)(said.len < RUN_TEXT_BYTES ? said.len : RUN_TEXT_BYTES - 1),
             (const char *)said.data);
    text_clean(out);
    return out;
}

// -- following ------------------------------------------------------------------------------------

// -1: it goes on.
static int hear(const struct run_options *o, const struct run_ear *ear, struct control_map m) {
    struct slice type = slice_text("");
    char text[RUN_TEXT_BYTES];
    control_get_text(m, FIELD_TYPE, &type);
    return slice_is(type, CONTROL_ERROR)
               ? command_fail(o->around.command, EXIT_FAILURE, "%s", run_text(m, FIELD_TEXT, text))
               : ear->hear(ear->user, type, m);
}

static int follow(struct client *c, const struct run_options *o, const struct run_ear *ear) {
    bool stopping = false;
    for (int silent = 0; silent <= SILENT_MS;) {
        struct control *message;
        bool stop = ear->turn && ear->turn(ear->user);
        if (!stopping && (stop || stop_wanted())) {
            stopping = true;
            ask_to_stop(c);
        }
        enum client_status got = client_next(c, LOOK_MS, &message);
        if (got == CLIENT_CLOSED) {
            return command_fail(o->around.command, EXIT_FAILURE, "the collector is gone: %s",
                                client_why(c));
        }
        if (got == CLIENT_TIMEOUT) {
            silent += LOOK_MS;
            continue;
        }
        silent = 0;
        int status = hear(o, ear, control_root(message));
        control_free(message);
        if (status >= 0) {
            return status;
        }
    }
    return command_fail(o->around.command, EXIT_FAILURE, "the collector does not answer");
}

int run_follow(struct run_options *o, const struct run_ear *ear) {
    char found[NODE_TEXT_BYTES];
    const char *node = o->around.node;
    int status = EXIT_FAILURE;
    struct client *c = reach_open(o->around.command, &o->reach, &status);
    if (c) {
        status = nodes_find(o->around.command, c, o->around.node, found, &node);
        status = status == EXIT_SUCCESS ? ask(c, o, node) : status;
        status = status == EXIT_SUCCESS ? follow(c, o, ear) : status;
        client_close(c);
    }
    reach_close(&o->reach);
    return status;
}
