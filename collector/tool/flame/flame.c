// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/text_time.h"
#include "tool/around.h"
#include "tool/command.h"
#include "tool/flame/draw.h"
#include "tool/flame/full_trace.h"
#include "tool/stop.h"

enum { ROWS_MOST = 100000, WIDTH_MOST = 1000 };

// Options of kprof attach, behind those of reach.h.
enum { ENTRY = 2000, TIER, IDENTITY, CONFIG, COOKIE_FILE, LISTEN };
enum { FROM = 2100, UNTIL, THROUGH, BEFORE_THROUGH };

const char flame_help[] =
    "usage: kprof flame NODE [--entry M:F/A]... [OPTIONS] [--out FILE]...\n"
    "       kprof flame --profile ID --db FILE [--out FILE]... [OPTIONS]\n"
    "\n"
    "Traces every function that requests of a node run, for a moment, and draws where their time\n"
    "goes: the functions that they spend most in, and flame graphs. With --profile it draws what\n"
    "was kept; kprof profiles lists that. Ctrl-C ends the trace, and keeps what there is.\n"
    "\n"
    "Only processes that requests go through are traced; where that came too late for some it says\n"
    "which, and in how many of the requests. Where requests are rare, functions are traced for 5 s\n"
    "at a time, with pauses of 5 s. After 5 million messages, or 500 MB of them, it ends early.\n"
    "\n"
    "A node that kprof traces already goes on being traced, and its requests are taken; before\n"
    "OTP 27 its tiers rest for that moment. Into any other node kprof is loaded for as long as this\n"
    "takes. What is a request there is told by these options, which are those of kprof attach:\n"
    "  --entry M:F/A   each call of this function is a request\n"
    "  --tier NAME=M:F/A       processes that the calls of this function run in are traced, too\n"
    "  --identity M:F/A:N      argument N of this call names the request\n"
    "  --config FILE   these and more as Erlang terms\n"
    "  --cookie-file FILE      a file with the node's cookie (default: ~/.erlang.cookie)\n"
    "\n"
    "--collector names the collector. With --db instead, this command runs one of its own for as\n"
    "long as it takes. Without either it uses the one at 127.0.0.1:4711 if that answers, and runs\n"
    "one that writes kprof.db if not; the first line says which. A collector that it runs demands\n"
    "a secret that is made for this run.\n"
    "  --listen [ADDR:]PORT    where that one listens (default: a free port of loopback, or, for\n"
    "                          a node on another host, of the address at which that node\n"
    "                          reaches this host)\n"
    "\n"
    "  --requests N    trace this many requests (default: 20)\n"
    "  --for TIME      trace for this long at most (default: 30s)\n"
    "  --only NAME     only requests of this identity\n"
    "  --app APP       functions of this application; may be given more than once\n"
    "  --module NAME   functions of this module, where * stands for anything; may be given more\n"
    "                  than once\n"
    "  --all-modules   functions of erts, kernel and stdlib, too (default: all but these)\n" REACH_HELP
    "\n"
    "  --db FILE       the database\n"
    "  --profile ID    a profile's number, or the name that it was asked for by\n"
    "  --out FILE      write a file; may be given more than once. Its ending tells the form:\n"
    "                    .html            for browsers: all metrics, search, zoom, callers, callees\n"
    "                    .svg             a picture for browsers: click to zoom, / to search\n"
    "                    .collapsed       stacks and numbers, for flamegraph.pl and others\n"
    "                    .speedscope.json for speedscope.app\n"
    "                    .chrome.json     the longest request on a line of time, for Perfetto\n"
    "                    .pprof           for go tool pprof, with all metrics\n"
    "                    .callgrind       for callgrind_annotate and KCachegrind\n"
    "                    .perf.txt        as perf script prints it; each look of samples, with what\n"
    "                                     it saw of the process as metric_erlang_NAME\n"
    "  --format ENDING the form of files whose names have no such ending\n"
    "  --metric NAME   wall (default), self, waiting, asleep, gc, calls\n"
    "                  of samples: samples (default), active (of processes that had run since the\n"
    "                  look before), reductions, memory, memory_growth, memory_release, queue,\n"
    "                  queue_growth, binary, binary_growth, binary_release\n"
    "  --group WHAT    of samples: the lowest frames: none (default), status, process, application,\n"
    "                  identity, memory, queue\n"
    "  --from TIME     of samples: from this time after the begin on, such as 12s\n"
    "  --to TIME       of samples: up to this time after the begin\n"
    "  --through ID    of samples: with the profiles behind it under the same label, up to this one, as\n"
    "                  one; times count from the first one's begin\n"
    "  --no-asleep     leave out the time that processes slept\n"
    "  --by-identity   a frame for each identity below all others (.pprof has labels for that)\n"
    "  --by-process    likewise for each process, by its name or the function that it began with\n"
    "  --before ID     compare with this profile, scaled to the same sum: red is more, blue is less\n"
    "  --before-through ID     as --through, of what it is compared with\n"
    "  --before-range FROM..UNTIL\n"
    "                  compare with all profiles of the node that ended in that time: lengths back\n"
    "                  from now such as 2d..1d, or times such as 12:00..14:30, local or with Z\n"
    "  --waterfall     draw the longest request instead: a line a call, below the call that it was\n"
    "                  made under\n"
    "  --limit N       this many functions in the table (default: 20), or calls of the waterfall\n"
    "                  (default: 40): those at which most time passed\n"
    "  --width N       columns of the waterfall (default: those of the terminal; 100 without one)\n"
    "  --json          one JSON object instead of the table\n"
    "\n"
    "wall: all of the time. self: functions of the process ran. waiting: the process waited for\n"
    "another one that worked for the request, or for its turn after that. asleep: it was scheduled\n"
    "out for any other reason.\n"
    "\n"
    "The JSON object has the columns of the view profiles; identities, a list of identity, requests,\n"
    "mean_us, and others that only the tiers traced, with others_mean_us; missed, the processes that\n"
    "it was not followed into: pid, name, requests; metric, unit, notes; and stacks, depth first: a\n"
    "list of stack, parent, level, name, kind, module, application, value, self, calls. Compared with\n"
    "others it also has before, a list of their ids, and of each stack before_value and before_self;\n"
    "with --through it has through, the last one's id.\n"
    "With --waterfall it has profile, node, identity, duration_us, cut, asleep_in_self, gc_in_self\n"
    "(not traced: off_cpu_us and gc_us are within self_us), and spans, all calls of the request, by\n"
    "start: span, parent, pid, name, start_us, duration_us (null: it was open where the request was\n"
    "cut), self_us, gc_us, off_cpu_us (scheduled out, at this call).\n"
    "\n"
    "Exit status: 0, 1 when it cannot be asked for, 2 when the command line is wrong, 3 to 9 those of\n"
    "kprof attach when kprof does not get into the node; and where there is no profile: 10 no request\n"
    "came, or none lay whole in that time, 11 requests came, but of other identities, 12 no module\n"
    "has such a name, 13 requests came, but through no process or module that was followed, 14 of\n"
    "each request that came messages were lost or could not be joined, 15 the node's guard ended the\n"
    "trace.\n";

struct options {
    struct draw_options draw;
    struct full_trace_options full;
    struct around_options around;
    const char *format;
};

// The options of a node that kprof does not trace yet.
static int take_around(struct around_options *o, int option, const char *value) {
    switch (option) {
    case ENTRY:
        return around_take(o, "--entry", value);
    case TIER:
        return around_take(o, "--tier", value);
    case IDENTITY:
        return around_take(o, "--identity", value);
    case CONFIG:
        return around_take(o, "--config", value);
    case COOKIE_FILE:
        return around_take(o, "--cookie-file", value);
    default: // LISTEN
        o->listen = value;
        return EXIT_SUCCESS;
    }
}

static int take_name(const char *option, const char *value, const char **names, uint32_t *count) {
    if (*count == LIMIT_FULL_NAMES) {
        return command_fail("flame", EXIT_USAGE, "--%s: %u at most", option, LIMIT_FULL_NAMES);
    }
    names[(*count)++] = value;
    return EXIT_SUCCESS;
}

// The options of a full trace.
static int take_full_trace(struct full_trace_options *o, int option, const char *value) {
    int64_t ns = 0;
    switch (option) {
    case 'r':
        return command_number(value, LIMIT_FULL_ASKED, &o->requests)
                   ? EXIT_SUCCESS
                   : command_fail("flame", EXIT_USAGE, "--requests %s is no number from 1 to %u",
                                  value, LIMIT_FULL_ASKED);
    case 't':
        if (!text_duration_parse(value, &ns) || ns < 1000000000 ||
            ns > LIMIT_FULL_SECONDS * INT64_C(1000000000)) {
            return command_fail("flame", EXIT_USAGE,
                                "--for %s is no length from 1s to 1h, such as 30s", value);
        }
        o->seconds = (ns + 999999999) / 1000000000;
        return EXIT_SUCCESS;
    case 'A':
        return take_name("app", value, o->applications, &o->application_count);
    case 'M':
        return take_name("module", value, o->modules, &o->module_count);
    case 'L':
        o->all_modules = true;
        return EXIT_SUCCESS;
    default:
        reach_option(&o->reach, option, value);
        return EXIT_SUCCESS;
    }
}

// A number of at most `most`.
static int take_number(const char *option, const char *value, int64_t most, uint32_t *number) {
    int64_t n = 0;
    if (!command_number(value, most, &n)) {
        return command_fail("flame", EXIT_USAGE, "--%s %s is no number from 1 to %" PRId64, option,
                            value, most);
    }
    *number = (uint32_t)n;
    return EXIT_SUCCESS;
}

static int take_metric(const char *value, enum flame_metric *metric) {
    return flame_metric_parse(value, metric)
               ? EXIT_SUCCESS
               : command_fail("flame", EXIT_USAGE,
                              "--metric %s is none of those that kprof flame --help lists", value);
}

static int take_group(const char *value, enum flame_group *group) {
    return flame_group_parse(value, group)
               ? EXIT_SUCCESS
               : command_fail("flame", EXIT_USAGE,
                              "--group %s is none of those that kprof flame --help lists", value);
}

static int take(void *to, int option, const char *value) {
    struct options *o = to;
    struct flame_options *weighed = &o->draw.question.weighed;
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
    case 'B':
        return command_stretch("flame", "before-range", value, &o->draw.question.before_from_s,
                               &o->draw.question.before_until_s);
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
        return take_metric(value, &weighed->metric);
    case 'G':
        return take_group(value, &weighed->group);
    case FROM:
        return command_offset("flame", "from", value, &o->draw.question.from_us);
    case UNTIL:
        return command_offset("flame", "to", value, &o->draw.question.until_us);
    case THROUGH:
        o->draw.question.through = value;
        break;
    case BEFORE_THROUGH:
        o->draw.question.before_through = value;
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
    case 'P':
        weighed->group = FLAME_BY_PROCESS;
        break;
    case 'j':
        o->draw.json = true;
        break;
    case 'l':
        return take_number("limit", value, ROWS_MOST, &o->draw.most);
    case 'W':
        return take_number("width", value, WIDTH_MOST, &o->draw.width);
    case 'w':
        o->draw.waterfall = true;
        break;
    default:
        return option >= ENTRY && option <= LISTEN ? take_around(&o->around, option, value)
                                                   : take_full_trace(&o->full, option, value);
    }
    return EXIT_SUCCESS;
}

// The form of each file, by its own name's ending or by --format.
static int take_formats(struct options *o) {
    enum flame_format given = FLAME_SVG;
    if (o->format && !flame_format_of(o->format, &given)) {
        return command_fail(
            "flame", EXIT_USAGE,
            "--format %s is none of html, svg, collapsed, speedscope.json, chrome.json, "
            "pprof, callgrind, perf.txt",
            o->format);
    }
    for (uint32_t i = 0; i < o->draw.file_count; i++) {
        if (!flame_format_of(o->draw.files[i].name, &o->draw.files[i].format)) {
            if (!o->format) {
                return command_fail("flame", EXIT_USAGE,
                                    "--out %s: its name ends with none of .html, .svg, .collapsed, "
                                    ".speedscope.json, .chrome.json, .pprof, .callgrind, "
                                    ".perf.txt; say --format",
                                    o->draw.files[i].name);
            }
            o->draw.files[i].format = given;
        }
    }
    return EXIT_SUCCESS;
}

static int check(struct options *o) {
    const char *profile = o->draw.question.profile;
    if (!o->full.node && !profile) {
        return command_fail("flame", EXIT_USAGE,
                            "of what? Say NODE, or --profile ID; kprof profiles --db FILE lists "
                            "those there are");
    }
    if (o->full.node && profile) {
        return command_fail("flame", EXIT_USAGE,
                            "NODE makes a profile, --profile draws one: say one of them");
    }
    if (o->around.argument_count > 0 && !o->full.node) {
        return command_fail("flame", EXIT_USAGE, "%s is for NODE", o->around.arguments[0]);
    }
    if (o->around.listen && (!o->full.node || o->full.reach.collector)) {
        return command_fail("flame", EXIT_USAGE,
                            "--listen is for a collector of this command's own, --collector names "
                            "one that runs");
    }
    if (o->draw.waterfall && (o->draw.question.before || o->draw.question.before_until_s != 0)) {
        return command_fail("flame", EXIT_USAGE,
                            "--waterfall draws one request; there is nothing to compare");
    }
    if ((o->draw.question.through && !profile) ||
        (o->draw.question.before_through && !o->draw.question.before)) {
        return command_fail("flame", EXIT_USAGE,
                            "--through goes on from --profile, --before-through from --before");
    }
    if (o->draw.width != 0 && !o->draw.waterfall) {
        return command_fail("flame", EXIT_USAGE, "--width is for --waterfall");
    }
    if (profile && command_database("flame", o->draw.db) != EXIT_SUCCESS) {
        return EXIT_USAGE;
    }
    return take_formats(o);
}

static int parse(int argc, char **argv, struct options *o) {
    static const struct option options[] = {
        {"db", required_argument, NULL, 'd'},
        {"profile", required_argument, NULL, 'p'},
        {"before", required_argument, NULL, 'b'},
        {"before-range", required_argument, NULL, 'B'},
        {"out", required_argument, NULL, 'o'},
        {"format", required_argument, NULL, 'f'},
        {"metric", required_argument, NULL, 'm'},
        {"no-asleep", no_argument, NULL, 'a'},
        {"only", required_argument, NULL, 'i'},
        {"group", required_argument, NULL, 'G'},
        {"from", required_argument, NULL, FROM},
        {"to", required_argument, NULL, UNTIL},
        {"through", required_argument, NULL, THROUGH},
        {"before-through", required_argument, NULL, BEFORE_THROUGH},
        {"by-identity", no_argument, NULL, 'g'},
        {"by-process", no_argument, NULL, 'P'},
        {"limit", required_argument, NULL, 'l'},
        {"waterfall", no_argument, NULL, 'w'},
        {"width", required_argument, NULL, 'W'},
        {"json", no_argument, NULL, 'j'},
        {"requests", required_argument, NULL, 'r'},
        {"for", required_argument, NULL, 't'},
        {"app", required_argument, NULL, 'A'},
        {"module", required_argument, NULL, 'M'},
        {"all-modules", no_argument, NULL, 'L'},
        {"entry", required_argument, NULL, ENTRY},
        {"tier", required_argument, NULL, TIER},
        {"identity", required_argument, NULL, IDENTITY},
        {"config", required_argument, NULL, CONFIG},
        {"cookie-file", required_argument, NULL, COOKIE_FILE},
        {"listen", required_argument, NULL, LISTEN},
        REACH_OPTIONS,
        {NULL, 0, NULL, 0},
    };
    *o = (struct options){.full = {.requests = 20, .seconds = 30}, .around.command = "flame"};
    int status = command_options(argc, argv, options, take, o);
    status = status == EXIT_SUCCESS ? command_at_most(argc, argv, 1) : status;
    o->full.node = status == EXIT_SUCCESS && optind < argc ? argv[optind] : NULL;
    o->full.only = o->draw.question.weighed.only;
    o->around.node = o->full.node;
    o->full.quiet = o->around.quiet = o->draw.json;
    return status == EXIT_SUCCESS ? check(o) : status;
}

static int settle(struct options *o, struct collector_seen *seen) {
    o->around.reads = o->draw.file_count > 0 || o->draw.json || o->draw.waterfall;
    int status = around_settle(&o->around, &o->full.reach, &o->draw.db, seen);
    if (status == EXIT_SUCCESS && o->around.db && o->around.argument_count == 0) {
        return command_fail("flame", EXIT_USAGE,
                            "which requests? Say --entry M:F/A, the function that handles one; or "
                            "--collector HOST:PORT of a node that kprof traces already");
    }
    return status;
}

static int make_profile(struct options *o, struct around *around, bool traced, int64_t *profile) {
    int status = EXIT_SUCCESS;
    *profile = 0;
    if (!traced && o->around.argument_count > 0) {
        status = around_begin(around, &o->around, &o->full.reach);
    } else if (traced && o->around.argument_count > 0 && !o->full.quiet) {
        fprintf(stderr,
                "%s is traced already: its requests are taken as they are, and %s is ignored\n",
                o->full.node, o->around.arguments[0]);
    }
    if (status == EXIT_SUCCESS) {
        status = full_trace_make(&o->full, profile);
    }
    return status;
}

// Makes a profile and, where there is a database to read it from, draws it.
static int make(struct options *o) {
    static struct around around;
    static struct collector_seen seen; // the database's path lies there
    int64_t profile = 0;
    around = AROUND_NONE;
    int status = settle(o, &seen);
    if (status != EXIT_SUCCESS) {
        return status;
    }
    o->full.drawn = o->draw.db != NULL;
    stop_catch();
    status = make_profile(o, &around, seen.traced, &profile);
    int left = around_end(&around);
    status = status == EXIT_SUCCESS ? left : status;
    return profile > 0 && status == EXIT_SUCCESS ? draw_kept(&o->draw, profile) : status;
}

int flame_main(int argc, char **argv) {
    static struct options o;
    int status = parse(argc, argv, &o);
    if (status != EXIT_SUCCESS) {
        return status;
    }
    return o.full.node ? make(&o) : draw_profile(&o.draw);
}
