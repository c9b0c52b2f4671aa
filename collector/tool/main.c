// SPDX-License-Identifier: Apache-2.0
// kprof: the tool that people query and steer with. One table of sub-commands.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "tool/command.h"

static const struct command {
    const char *name;
    const char *summary;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"report", "where the time of requests goes: a table of identities and tiers", report_main,
     report_help},
    {"diff", "two stretches of time compared, and where the change comes from", diff_main,
     diff_help},
    {"slow", "single requests that were kept whole: the list, and one drawn as a waterfall",
     slow_main, slow_help},
    {"top", "the busiest processes and functions of a node, live", top_main, top_help},
    {"sample", "what the busiest processes of a node do, by looking at their stacks", sample_main,
     sample_help},
    {"flame", "a profile as a flame graph, and the functions that it spends most in", flame_main,
     flame_help},
    {"heat", "when a profile of samples saw what: a heat map, with the gaps told apart", heat_main,
     heat_help},
    {"profiles", "the profiles that were kept", profiles_main, profiles_help},
    {"serve", "the page, for browsers, of a database", serve_main, serve_help},
    {"nodes", "the nodes that a running collector knows, and what they do", nodes_main, nodes_help},
    {"trace", "pause, resume or sample a node's trace through the collector", trace_main,
     trace_help},
    {"trigger", "stacks sampled by themselves, when a value of a node passes a limit", trigger_main,
     trigger_help},
    {"note", "writes down what was done, such as a deploy, for charts and comparisons", note_main,
     note_help},
    {"export", "the tables that kprof-collector --export fills, as statements for ClickHouse",
     export_main, export_help},
    {"suggest", "what to trace in a running node, as a command of kprof attach", suggest_main,
     suggest_help},
    {"attach", "trace a running node, which has nothing of kprof, until Ctrl-C", attach_main,
     attach_help},
    {"detach", "take kprof out of a node", detach_main, detach_help},
    {"doctor", "what is there, what is wrong with it, and what to do", doctor_main, doctor_help},
    {"replay", "a trace-port capture through the same pipeline into a new database", replay_main,
     replay_help},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static void help(FILE *to) {
    fprintf(to,
            "kprof, a production profiler for Erlang nodes\n\nusage: kprof COMMAND [OPTIONS]\n\n");
    for (int i = 0; i < COMMANDS; i++) {
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].summary);
    }
    fprintf(to, "\n"
                "  kprof COMMAND --help   tells about a command\n"
                "  kprof --version        tells the version\n");
}

static const struct command *find(const char *name) {
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(name, commands[i].name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

static int is_help(const char *arg) {
    return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}

// Standard output may be a full disk: what was not written is a failure.
static int finish(int status) {
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("kprof: cannot write the output");
        return status ? status : EXIT_FAILURE;
    }
    return status;
}

static int run(const struct command *c, int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (is_help(argv[i])) {
            fputs(c->help, stdout);
            return EXIT_SUCCESS;
        }
    }
    return c->run(argc, argv);
}

int main(int argc, char **argv) {
    log_start();
    if (argc < 2) {
        help(stderr);
        return EXIT_USAGE;
    }
    bool asks = strcmp(argv[1], "help") == 0;
    if (is_help(argv[1]) || (asks && argc == 2)) {
        help(stdout);
        return finish(EXIT_SUCCESS);
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("kprof " KPROF_VERSION);
        return finish(EXIT_SUCCESS);
    }
    const char *name = asks ? argv[2] : argv[1];
    const struct command *c = find(name);
    if (!c) {
        fprintf(stderr, "kprof: unknown %s '%s'; kprof --help lists the commands\n",
                name[0] == '-' ? "option" : "command", name);
        return EXIT_USAGE;
    }
    if (asks) { // kprof help COMMAND
        fputs(c->help, stdout);
        return finish(EXIT_SUCCESS);
    }
    return finish(run(c, argc - 1, argv + 1));
}
