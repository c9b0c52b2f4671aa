// SPDX-License-Identifier: Apache-2.0
#include "tool/sample/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_time.h"
#include "tool/command.h"

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

int run_parse(int argc, char **argv, const struct option *options,
              int (*take)(void *to, int option, const char *value), void *to,
              struct run_options *o) {
    int status = command_options(argc, argv, options, take, to);
    status = status == EXIT_SUCCESS ? command_at_most(argc, argv, 1) : status;
    o->around.node = status == EXIT_SUCCESS && optind < argc ? argv[optind] : NULL;
    return status == EXIT_SUCCESS && !o->around.node
               ? command_fail(o->around.command, EXIT_USAGE, "of what? Say NODE")
               : status;
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

// -- asking ---------------------------------------------------------------------------------------

static void ask(const void *options, const char *node, struct buffer *question) {
    const struct run_options *o = options;
    struct control_writer w = control_begin(question, CONTROL_STACKS, 12);
    control_text(&w, FIELD_NODE, slice_text(node));
    control_int(&w, FIELD_SECONDS, o->seconds);
    control_int(&w, FIELD_HZ, o->hz);
    control_int(&w, FIELD_TOP, o->top);
    control_int(&w, FIELD_EVERY_MS, o->every_ms);
    control_int(&w, FIELD_BUDGET_PPM, o->budget_ppm);
    control_int(&w, FIELD_VIEW_S, o->view_s);
    control_bool(&w, FIELD_LOOKS, o->looks);
    control_text(&w, FIELD_BY, slice_text(o->by));
    control_text(&w, FIELD_APPLICATION, slice_text(o->application ? o->application : ""));
    follow_put_texts(&w, FIELD_REGISTERED, FIELD_NAME, o->registered, o->registered_count);
    follow_put_texts(&w, FIELD_PROCESSES, FIELD_PID, o->pids, o->pid_count);
    control_end(&w);
}

int run_follow(struct run_options *o, struct follow_ear ear) {
    const struct follow f = {o->around.command, ask, o, CONTROL_STACKS_STOP, ear};
    return follow(&f, &o->reach, o->around.node);
}
