// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "codec/json.h"
#include "tool/command.h"
#include "tool/nodes/nodes.h"
#include "tool/reach.h"
#include "tool/text.h"

enum { ANSWER_MS = (LIMIT_STEER_SECONDS + 2) * 1000 };

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

static int ask(struct client *c, const struct options *o) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    const char *how = o->sampling.one_in > 0       ? FIELD_ONE_IN
                      : o->sampling.per_second > 0 ? FIELD_PER_SECOND
                                                   : NULL;
    struct control_writer w = control_begin(&b, CONTROL_STEER, how ? 3 : 2);
    control_text(&w, FIELD_NODE, slice_text(o->node));
    control_text(&w, FIELD_COMMAND, slice_text(o->command));
    if (how) {
        control_int(&w, how, o->sampling.one_in + o->sampling.per_second); // one of them is 0
    }
    control_end(&w);
    return reach_ask("trace", c, &b);
}

static int show(const struct options *o, bool ok, char *text) {
    text_clean(text);
    if (o->json) {
        struct buffer out = buffer_make(1 << 16);
        struct json j = json_make(&out);
        json_open(&j, '{');
        json_key_text(&j, "node", o->node);
        json_key_text(&j, "command", o->command);
        json_key(&j, "ok");
        json_bool(&j, ok);
        json_key_text(&j, "text", text);
        json_close(&j, '}');
        buffer_text(&out, "\n");
        fwrite(out.data, 1, out.len, stdout);
        buffer_free(&out);
    } else if (ok) {
        printf("%s: %s\n", o->node, text);
    } else {
        return command_fail("trace", EXIT_FAILURE, "%s: %s", o->node, text);
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

int trace_main(int argc, char **argv) {
    struct options o;
    int status = parse(argc, argv, &o);
    struct client *c = status == EXIT_SUCCESS ? reach_open("trace", &o.reach, &status) : NULL;
    if (!c) {
        reach_close(&o.reach);
        return status;
    }
    char found[NODE_TEXT_BYTES];
    status = nodes_find("trace", c, o.node, found, &o.node);
    status = status == EXIT_SUCCESS ? ask(c, &o) : status;
    struct control *answer =
        status == EXIT_SUCCESS ? reach_answer("trace", c, CONTROL_STEERED, ANSWER_MS) : NULL;
    if (answer) {
        char text[512];
        bool ok = false;
        struct slice said = slice_text("");
        control_get_bool(control_root(answer), FIELD_OK, &ok);
        control_get_text(control_root(answer), FIELD_TEXT, &said);
        snprintf(text, sizeof text, "%.*s", (int)(said.len < sizeof text ? said.len : sizeof text),
                 (const char *)said.data);
        status = show(&o, ok, text);
    } else if (status == EXIT_SUCCESS) {
        status = EXIT_FAILURE;
    }
    control_free(answer);
    client_close(c);
    reach_close(&o.reach);
    return status;
}
