// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "tool/command.h"
#include "tool/flame/draw.h"
#include "tool/sample/run.h"
#include "tool/stop.h"

const char sample_help[] =
    "usage: kprof sample NODE [--for TIME] [--hz N] [--top N] [OPTIONS] [--out FILE]...\n"
    "\n"
    "Looks at the busiest processes of a node so many times a second, keeps their stacks together\n"
    "with their status, memory and queues as a profile, and draws it: as a table of functions, and\n"
    "as flame graphs. Nothing is traced. Ctrl-C ends it, and keeps what there is.\n"
    "\n"
    "  --for TIME      for so long (default: 60s)\n"
    "  --hz N          look at each process this many times a second (default: 99)\n"
    "  --top N         at the N busiest processes (default: 100)\n"
    "  --by WHAT       the busiest by reductions (default), memory, message_queue_len or binary:\n"
    "                  those in which it changed most since they were chosen last\n"
    "  --every TIME    choose them anew so often (default: 5s)\n" RUN_WHOM_HELP
    "\n" RUN_WAY_HELP REACH_HELP "\n"
    "  --db FILE       the database (default: the one that the collector tells of; kprof.db of one of\n"
    "                  its own)\n"
    "  --metric NAME   samples (default), active (of processes that had run), reductions, memory,\n"
    "                  memory_growth, memory_release, queue, queue_growth, binary, binary_growth,\n"
    "                  binary_release\n"
    "  --group WHAT    none (default), status, process, application, identity, memory, queue\n"
    "  --out FILE      write a file; its ending tells the form, as in kprof flame\n"
    "  --json          one JSON object instead of the table\n"
    "\n"
    "Of processes that --pid and --registered name it also tells, each in a few lines, where they\n"
    "are, what they do, how fast their queues grow, and what was not answered: kprof sample NODE\n"
    "--pid '<0.123.0>' --for 5s says why a mailbox is long. The JSON object is that of kprof flame;\n"
    "for these it has processes_seen, a list of pid, name, initial_call, application, looks (that\n"
    "were answered), unanswered, ended, statuses (looks by status), queue and memory (first, last,\n"
    "most, first_s, last_s, per_s), reductions_per_s, stack (innermost first) and stack_looks (the\n"
    "looks at which it was in that).\n"
    "\n"
    "Exit status: 0, 1 when it cannot be asked for, 2 when the command line is wrong, 3 to 9 those of\n"
    "kprof attach when kprof does not get into the node, 10 when there was nothing to look at.\n";

// Functions beside what single processes did: all of it fits a screen.
enum { FEW = 8 };

struct options {
    struct run_options run;
    struct draw_options draw;
    int64_t profile; // that came of it
};

// -- what the collector tells ---------------------------------------------------------------------

static void show_progress(const struct options *o, struct control_map m) {
    if (o->draw.json) {
        return;
    }
    bool draws = isatty(STDERR_FILENO);
    fprintf(stderr,
            "%s%" PRId64 " looks at %" PRId64 " processes, %" PRId64 " unchanged, %" PRId64
            " not answered; %.1f s held back, %.0f ms of processor time%s",
            draws ? "\r\033[K" : "", follow_number(m, FIELD_SAMPLES),
            follow_number(m, FIELD_PROCESSES), follow_number(m, FIELD_UNCHANGED),
            follow_number(m, FIELD_UNANSWERED), (double)follow_number(m, FIELD_HELD_MS) / 1000,
            (double)follow_number(m, FIELD_COST_US) / 1000, draws ? "" : "\n");
}

static int take_end(struct options *o, struct control_map m) {
    char text[FOLLOW_TEXT_BYTES];
    if (isatty(STDERR_FILENO)) {
        fputs("\r\033[K", stderr);
    }
    follow_text(m, FIELD_TEXT, text);
    o->profile = follow_number(m, FIELD_PROFILE);
    if (o->profile <= 0) {
        return command_fail("sample", EXIT_NO_REQUEST, "there was nothing to look at%s%s",
                            text[0] ? ": " : "", text);
    }
    if (text[0]) {
        fprintf(stderr, "it ended early: %s\n", text);
    }
    return EXIT_SUCCESS;
}

static int hear(void *user, struct slice type, struct control_map m) {
    struct options *o = user;
    if (slice_is(type, CONTROL_STACKS_KEPT)) {
        return take_end(o, m);
    }
    if (slice_is(type, CONTROL_STACKS_STATE)) {
        show_progress(o, m);
    }
    return -1;
}

// -- the command line -----------------------------------------------------------------------------

static int take_by(const char *value, const char **by) {
    static const char *const known[] = {"reductions", "memory", "message_queue_len", "binary"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(value, known[i]) == 0) {
            *by = known[i];
            return EXIT_SUCCESS;
        }
    }
    return command_fail("sample", EXIT_USAGE,
                        "--by %s is none of reductions, memory, message_queue_len, binary", value);
}

static int take_drawing(struct draw_options *o, int option, const char *value) {
    switch (option) {
    case 'd':
        o->db = value;
        return EXIT_SUCCESS;
    case 'm':
        return flame_metric_parse(value, &o->question.weighed.metric) &&
                       flame_metric_is_of(o->question.weighed.metric, PROFILE_SAMPLES)
                   ? EXIT_SUCCESS
                   : command_fail("sample", EXIT_USAGE,
                                  "--metric %s: kprof sample --help lists them", value);
    case 'G':
        return flame_group_parse(value, &o->question.weighed.group)
                   ? EXIT_SUCCESS
                   : command_fail("sample", EXIT_USAGE,
                                  "--group %s: kprof sample --help lists them", value);
    case 'o':
        if (o->file_count == DRAW_FILES ||
            !flame_format_of(value, &o->files[o->file_count].format)) {
            return command_fail("sample", EXIT_USAGE,
                                "--out %s: %d files at most, and its ending tells the form", value,
                                DRAW_FILES);
        }
        o->files[o->file_count++].name = value;
        return EXIT_SUCCESS;
    default: // 'j'
        o->json = true;
        return EXIT_SUCCESS;
    }
}

static int take(void *to, int option, const char *value) {
    struct options *o = to;
    int64_t ms = 0;
    int status;
    switch (option) {
    case 't':
        status =
            run_take_time(&o->run, "for", value, 1000, (int64_t)LIMIT_SAMPLE_SECONDS * 1000, &ms);
        o->run.seconds = (ms + 999) / 1000;
        return status;
    case 'e':
        return run_take_time(&o->run, "every", value, 100, 3600000, &o->run.every_ms);
    case 'b':
        return take_by(value, &o->run.by);
    case 'd':
    case 'm':
    case 'G':
    case 'o':
    case 'j':
        return take_drawing(&o->draw, option, value);
    default:
        return run_take(&o->run, option, value);
    }
}

static int parse(int argc, char **argv, struct options *o) {
    static const struct option options[] = {
        {"for", required_argument, NULL, 't'},
        {"by", required_argument, NULL, 'b'},
        {"every", required_argument, NULL, 'e'},
        {"db", required_argument, NULL, 'd'},
        {"metric", required_argument, NULL, 'm'},
        {"group", required_argument, NULL, 'G'},
        {"out", required_argument, NULL, 'o'},
        {"json", no_argument, NULL, 'j'},
        RUN_OPTIONS,
        {NULL, 0, NULL, 0},
    };
    *o =
        (struct options){.run = run_usual("sample"), .draw.question.weighed.metric = FLAME_SAMPLES};
    o->run.seconds = 60;
    int status = run_parse(argc, argv, options, take, o, &o->run);
    o->run.around.quiet = o->draw.json;
    o->draw.question.seen = o->run.pid_count > 0 || o->run.registered_count > 0;
    o->draw.most = o->draw.question.seen ? FEW : 0;
    o->run.around.reads = o->draw.json || o->draw.file_count > 0;
    return status;
}

int sample_main(int argc, char **argv) {
    static struct options o;
    static struct collector_seen seen; // the database's path lies there
    static struct around around;
    int status = parse(argc, argv, &o);
    if (status != EXIT_SUCCESS) {
        return status;
    }
    stop_catch();
    status = run_enter(&o.run, &around, &o.draw.db, &seen);
    status =
        status == EXIT_SUCCESS ? run_follow(&o.run, (struct follow_ear){&o, hear, NULL}) : status;
    int left = around_end(&around);
    status = status == EXIT_SUCCESS ? left : status;
    return status == EXIT_SUCCESS ? draw_kept(&o.draw, o.profile) : status;
}
