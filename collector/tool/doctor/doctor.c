// SPDX-License-Identifier: Apache-2.0
// kprof doctor: options and output.
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text_amount.h"
#include "tool/command.h"
#include "tool/doctor/checks.h"
#include "tool/reach.h"

const char doctor_help[] =
    "usage: kprof doctor [NODE]... [OPTIONS]\n"
    "\n"
    "Says what is there and what is wrong with it, and what to do: the collector and the nodes\n"
    "that it knows, whether they trace, pause or lose messages, how far their clocks are off, and\n"
    "whether versions fit; with --db the database; and each NODE (name@host) itself, over\n"
    "Erlang's distribution: whether it can be traced, what of kprof is in it, whether each\n"
    "tier's function is armed, and who else traces there.\n"
    "\n" REACH_HELP "  --db FILE               the database that it writes\n"
    "  --cookie-file FILE      a file with the nodes' cookie (default: ~/.erlang.cookie)\n"
    "  --json                  one JSON object instead of text\n"
    "\n"
    "The JSON object: findings, a list of level (ok, warning, problem), about, text and advice\n"
    "(or null); problems and warnings, their numbers.\n"
    "\n"
    "Exit status: 0 there are no problems (perhaps warnings), 1 there are, 2 the command line is\n"
    "wrong.\n";

struct options {
    struct reach reach;
    const char *db;
    const char *cookie_file;
    bool json;
};

static int take(void *to, int option, const char *value) {
    struct options *o = to;
    switch (option) {
    case 'd':
        o->db = value;
        break;
    case 'k':
        o->cookie_file = value;
        break;
    case 'j':
        o->json = true;
        break;
    default:
        reach_option(&o->reach, option, value);
    }
    return EXIT_SUCCESS;
}

static int parse(int argc, char **argv, struct options *o) {
    static const struct option options[] = {REACH_OPTIONS,
                                            {"db", required_argument, NULL, 'd'},
                                            {"cookie-file", required_argument, NULL, 'k'},
                                            {"json", no_argument, NULL, 'j'},
                                            {NULL, 0, NULL, 0}};
    char host[REACH_HOST_BYTES];
    uint16_t port;
    *o = (struct options){.reach = {.collector = REACH_DEFAULT}};
    int status = command_options(argc, argv, options, take, o);
    return status == EXIT_SUCCESS ? reach_address("doctor", o->reach.collector, host, &port)
                                  : status;
}

static int show(struct doctor *d, const struct options *o) {
    uint32_t problems = d->found[DOCTOR_PROBLEM], warnings = d->found[DOCTOR_WARNING];
    if (d->text.failed || d->json.failed) {
        return command_fail("doctor", EXIT_FAILURE, "no memory");
    }
    if (o->json) {
        printf("{\"findings\":[%.*s],\"problems\":%u,\"warnings\":%u}\n", (int)d->json.len,
               (const char *)d->json.data, problems, warnings);
    } else {
        printf("%.*s\n %u problem%s, %u warning%s\n", (int)d->text.len, (const char *)d->text.data,
               problems, text_plural(problems), warnings, text_plural(warnings));
    }
    return problems > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int doctor_main(int argc, char **argv) {
    struct options o;
    struct doctor d = doctor_make();
    int status = parse(argc, argv, &o);
    if (status == EXIT_SUCCESS) {
        int nodes = optind; // getopt has put them behind the options
        for (int i = nodes; i < argc; i++) {
            node_names_add(&d.names, argv[i]);
        }
        doctor_collector(&d, &o.reach);
        if (o.db) {
            doctor_database(&d, o.db);
        }
        for (int i = nodes; i < argc; i++) {
            doctor_node(&d, argv[i], o.cookie_file);
        }
        status = show(&d, &o);
    }
    doctor_free(&d);
    return status;
}
