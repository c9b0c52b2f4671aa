// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/json.h"
#include "tool/command.h"
#include "tool/question.h"
#include "tool/steered.h"

const char trace_help[] =
    "usage: kprof trace NODE pause|resume [--collector HOST:PORT] [--json]\n"
    "       kprof trace NODE sample N|R/s [--collector HOST:PORT] [--json]\n"
    "\n"
    "Steers the running trace of a node through the collector that it is connected to. NODE's\n"
    "host may be short or left out where that is enough to tell it from the others.\n"
    "\n"
    "  pause          takes all tracing off the node, and keeps it connected\n"
    "  resume         traces again after a pause; also at once after a trip of the breaker\n"
    "  sample N       one request in N from now on; 1 is all of them\n"
    "  sample R/s     at most R requests a second from now on\n"
    "\n" REACH_HELP "  --json                  one JSON object: node, command, ok, text\n"
    "\n"
    "Returns once the node has done it. What the guard lowers under load stays lowered until the\n"
    "load allows more; kprof nodes shows both. Requests that were open at a pause count as\n"
    "incomplete. A pause ends with the trace: a trace that is started anew runs.\n"
    "\n"
    "Exit status: 0, 1 when it was not done, 2 when the command line is wrong.\n";

struct options {
    struct reach reach;
    const char *node, *command;
    struct command_sampling sampling; // of the command sample
    bool json;
};

static int take_sample(const char *text, struct options *o) {
    return command_sampling(text, &o->sampling)
               ? EXIT_SUCCESS
               : command_fail("trace", EXIT_USAGE, "sample %s: want " COMMAND_SAMPLING, text);
}

static int take_arguments(int argc, char **argv, struct options *o) {
    if (argc < 2) {
        return command_fail(
            "trace", EXIT_USAGE,
            "want NODE and one of pause, resume, sample; kprof trace --help tells more");
    }
    o->node = argv[0];
    o->command = argv[1];
    bool sample = strcmp(o->command, STEER_SAMPLE) == 0;
    if (!sample && strcmp(o->command, STEER_PAUSE) != 0 && strcmp(o->command, STEER_RESUME) != 0) {
        return command_fail("trace", EXIT_USAGE, "'%s' is none of pause, resume, sample",
                            o->command);
    }
    if (argc != (sample ? 3 : 2)) {
        return command_fail("trace", EXIT_USAGE,
                            sample ? "sample wants one value: N or R/s"
                                   : "unexpected argument '%s'",
                            sample ? "" : argv[2]);
    }
    return sample ? take_sample(argv[2], o) : EXIT_SUCCESS;
}

static int take(void *to, int option, const char *value) {
    struct options *o = to;
    if (option == 'j') {
        o->json = true;
    } else {
        reach_option(&o->reach, option, value);
    }
    return EXIT_SUCCESS;
}

static int parse(int argc, char **argv, struct options *o) {
    static const struct option options[] = {
        REACH_OPTIONS, {"json", no_argument, NULL, 'j'}, {NULL, 0, NULL, 0}};
    *o = (struct options){0};
    int status = command_options(argc, argv, options, take, o);
    return status == EXIT_SUCCESS ? take_arguments(argc - optind, argv + optind, o) : status;
}

static void ask(const void *options, const char *node, struct buffer *message) {
    const struct options *o = options;
    const char *how = o->sampling.one_in > 0       ? FIELD_ONE_IN
                      : o->sampling.per_second > 0 ? FIELD_PER_SECOND
                                                   : NULL;
    struct control_writer w = control_begin(message, CONTROL_STEER, how ? 3 : 2);
    control_text(&w, FIELD_NODE, slice_text(node));
    control_text(&w, FIELD_COMMAND, slice_text(o->command));
    if (how) {
        control_int(&w, how, o->sampling.one_in + o->sampling.per_second); // one of them is 0
    }
    control_end(&w);
}

static int show(const void *options, const char *node, struct control_map answer) {
    const struct options *o = options;
    struct steered steered = steered_read(answer);
    if (!o->json) {
        return steered_tell("trace", node, &steered);
    }
    struct buffer out = buffer_make(1 << 16);
    struct json j = json_make(&out);
    json_open(&j, '{');
    steered_json(&j, node, o->command, &steered);
    json_close(&j, '}');
    buffer_text(&out, "\n");
    int status = command_print("trace", &out);
    return steered.ok ? status : EXIT_FAILURE;
}

int trace_main(int argc, char **argv) {
    struct options o;
    int status = parse(argc, argv, &o);
    struct question q = {.command = "trace", .node = o.node, .ask = ask, .options = &o};
    return status == EXIT_SUCCESS ? question_put(&q, &o.reach, CONTROL_STEERED, show) : status;
}
