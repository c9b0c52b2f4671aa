// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "tool/command.h"
#include "tool/flame/draw.h"

enum { FUNCTIONS = 20, FUNCTIONS_MOST = 100000 };

const char flame_help[] =
    "usage: kprof flame --profile ID --db FILE [--out FILE]... [OPTIONS]\n"
    "\n"
    "Draws a profile that was kept: prints the functions that it spends most in, and writes flame\n"
    "graphs. kprof profiles lists the profiles there are.\n"
    "\n"
    "  --db FILE       the database that kprof-collector writes\n"
    "  --profile ID    a profile's number, or the name that it was asked for by\n"
    "  --out FILE      write a file, again and again; its form is told by its ending:\n"
    "                    .svg             a picture for browsers: click to zoom, / to search\n"
    "                    .collapsed       stacks and numbers, for flamegraph.pl and others\n"
    "                    .speedscope.json for speedscope.app\n"
    "                    .callgrind       for callgrind_annotate and KCachegrind\n"
    "                    .perf.txt        as perf script prints it\n"
    "  --format ENDING the form of the files whose names do not end so\n"
    "  --metric NAME   wall (default), self, waiting, asleep, gc, calls\n"
    "  --no-asleep     leave out what processes slept\n"
    "  --only NAME     only requests of this identity\n"
    "  --by-identity   a frame for each identity below all others\n"
    "  --before ID     compare with this profile, as heavy in all: red is more, blue is less\n"
    "  --limit N       so many functions in the table (default: 20)\n"
    "  --json          one JSON object instead of the table\n"
    "\n"
    "wall: whatever the process did. self: its functions ran. waiting: for another process that\n"
    "worked for the request, or to be run after it. asleep: scheduled out for any other reason.\n"
    "\n"
    "The JSON object has the columns of the view profiles, and metric, unit, notes, and stacks: a\n"
    "list of stack, parent, level, name, kind, module, application, value, self, calls, depth\n"
    "first; compared with another profile also before, and of each stack before_value and\n"
    "before_self.\n"
    "\n"
    "Exit status: 0, 1 when there is no such profile or no database, 2 when the command line is\n"
    "wrong.\n";

struct options {
    struct draw_options draw;
    const char *format;
};

static int take(void *to, int option, const char *value) {
    struct options *o = to;
    struct flame_options *weighed = &o->draw.question.weighed;
    int64_t n = FUNCTIONS;
    switch (option) {
    case 'd':
        o->draw.db = value;
        break;
    case 'p':
        o->draw.question.profile = value;
        break;
    case 'b':
        o->draw.question.before = value;
        break;
    case 'o':
        if (o->draw.file_count == DRAW_FILES) {
            return command_fail("flame", EXIT_USAGE, "--out: %d files at most", DRAW_FILES);
        }
        o->draw.files[o->draw.file_count++].name = value;
        break;
    case 'f':
        o->format = value;
        break;
    case 'm':
        if (!flame_metric_parse(value, &weighed->metric)) {
            return command_fail("flame", EXIT_USAGE,
                                "--metric %s is none of wall, self, waiting, asleep, gc, calls",
                                value);
        }
        break;
    case 'a':
        weighed->no_asleep = true;
        break;
    case 'i':
        weighed->only = value;
        break;
    case 'g':
        weighed->group = FLAME_BY_IDENTITY;
        break;
    case 'j':
        o->draw.json = true;
        break;
    default:
        if (!command_number(value, FUNCTIONS_MOST, &n)) {
            return command_fail("flame", EXIT_USAGE, "--limit %s is no number from 1 to %d", value,
                                FUNCTIONS_MOST);
        }
        o->draw.most = (uint32_t)n;
    }
    return EXIT_SUCCESS;
}

// The form of each file, by its own name's ending or by --format.
static int take_formats(struct options *o) {
    enum flame_format given = FLAME_SVG;
    if (o->format && !flame_format_of(o->format, &given)) {
        return command_fail("flame", EXIT_USAGE,
                            "--format %s is none of svg, collapsed, speedscope.json, callgrind, "
                            "perf.txt",
                            o->format);
    }
    for (uint32_t i = 0; i < o->draw.file_count; i++) {
        if (!flame_format_of(o->draw.files[i].name, &o->draw.files[i].format)) {
            if (!o->format) {
                return command_fail("flame", EXIT_USAGE,
                                    "--out %s: its name ends with none of .svg, .collapsed, "
                                    ".speedscope.json, .callgrind, .perf.txt; say --format",
                                    o->draw.files[i].name);
            }
            o->draw.files[i].format = given;
        }
    }
    return EXIT_SUCCESS;
}

static int check(struct options *o) {
    if (!o->draw.db) {
        return command_fail("flame", EXIT_USAGE,
                            "which database? Say --db FILE, the file that kprof-collector writes");
    }
    if (!o->draw.question.profile) {
        return command_fail("flame", EXIT_USAGE,
                            "which profile? Say --profile ID; kprof profiles --db FILE lists those "
                            "there are");
    }
    return take_formats(o);
}

static int parse(int argc, char **argv, struct options *o) {
    static const struct option options[] = {
        {"db", required_argument, NULL, 'd'},     {"profile", required_argument, NULL, 'p'},
        {"before", required_argument, NULL, 'b'}, {"out", required_argument, NULL, 'o'},
        {"format", required_argument, NULL, 'f'}, {"metric", required_argument, NULL, 'm'},
        {"no-asleep", no_argument, NULL, 'a'},    {"only", required_argument, NULL, 'i'},
        {"by-identity", no_argument, NULL, 'g'},  {"limit", required_argument, NULL, 'l'},
        {"json", no_argument, NULL, 'j'},         {NULL, 0, NULL, 0},
    };
    *o = (struct options){.draw.most = FUNCTIONS};
    int status = command_options(argc, argv, options, take, o);
    status = status == EXIT_SUCCESS ? command_at_most(argc, argv, 0) : status;
    return status == EXIT_SUCCESS ? check(o) : status;
}

int flame_main(int argc, char **argv) {
    static struct options o;
    int status = parse(argc, argv, &o);
    return status == EXIT_SUCCESS ? draw_profile(&o.draw) : status;
}
