// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "tool/command.h"
#include "tool/flame/draw.h"
#include "tool/sample/look_files.h"
#include "tool/sample/run.h"
#include "tool/stop.h"

const char sample_help[] =
    "usage: kprof sample NODE [--for TIME] [--hz N] [--top N] [OPTIONS] [--out FILE]...\n"
    "       kprof sample NODE --dir DIR [--flush TIME] [--rotate TIME] [--keep N] [OPTIONS]\n"
    "\n"
    "Looks at the busiest processes of a node so many times a second, keeps their stacks together\n"
    "with their status, memory and queues as a profile, and draws it: as a table of functions, and\n"
    "as flame graphs. Nothing is traced. Ctrl-C ends it, and keeps what there is.\n"
    "\n"
    "  --for TIME      for so long (default: 60s; with --dir until it is stopped)\n"
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
    "  --only NAME     draw only looks at processes that hold the token of a request of this\n"
    "                  identity; all are taken and kept\n"
    "  --out FILE      write a file; its ending tells the form, as in kprof flame\n"
    "  --json          one JSON object instead of the table\n"
    "  --dir DIR       write the looks as they come into files of this folder, as kprof flame --out\n"
    "                  x.perf.txt does, and keep nothing in a database: --metric alone says what a\n"
    "                  look weighs; --db, --group, --out and --json are not for this\n"
    "  --rotate TIME   a new file so often: NODE-2026-11-25T21-08-00Z.perf.txt (default: 60s)\n"
    "  --keep N        the newest N of these files, older ones are removed (default: 30)\n"
    "  --flush TIME    bring what is there to the disk so often (default: 15s)\n"
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
    int64_t profile;                  // that came of it
    bool group, only;                 // was named
    struct rotation_options rotation; // its folder NULL: the run is kept, and these are 0
    struct look_files files;
    bool failed; // these, and it is told
};

enum {
    SECOND_NS = 1000000000,
    USUAL_S = 60,
    ROTATE_S = 60,
    FLUSH_S = 15,
    KEEP = 30,
    MOST_KEPT = 10000
};

// -- what the collector tells ---------------------------------------------------------------------

static void show_progress(const struct options *o, struct control_map m) {
    if (o->draw.json) {
        return;
    }
    bool draws = isatty(STDERR_FILENO);
    char lost[40] = "";
    if (follow_number(m, FIELD_LOST) > 0) {
        snprintf(lost, sizeof lost, ", %" PRId64 " lost", follow_number(m, FIELD_LOST));
    }
    fprintf(stderr,
            "%s%" PRId64 " looks at %" PRId64 " processes, %" PRId64 " unchanged, %" PRId64
            " not answered%s; %.1f s held back, %.0f ms of processor time%s",
            draws ? "\r\033[K" : "", follow_number(m, FIELD_SAMPLES),
            follow_number(m, FIELD_PROCESSES), follow_number(m, FIELD_UNCHANGED),
            follow_number(m, FIELD_UNANSWERED), lost,
            (double)follow_number(m, FIELD_HELD_MS) / 1000,
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

// -- into files -----------------------------------------------------------------------------------

// Of all that were made.
static uint64_t seen_looks(struct control_map m) {
    static const char *const parts[] = {FIELD_SAMPLES, FIELD_UNCHANGED, FIELD_UNANSWERED};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        int64_t part = follow_number(m, parts[i]);
        sum += part > 0 ? (uint64_t)part : 0;
    }
    return sum;
}

static int take_files_end(struct options *o, struct control_map m) {
    char text[FOLLOW_TEXT_BYTES];
    bool closed = look_files_close(&o->files) && !o->failed;
    int64_t lost = follow_number(m, FIELD_LOST), profile = follow_number(m, FIELD_PROFILE);
    if (isatty(STDERR_FILENO)) {
        fputs("\r\033[K", stderr);
    }
    follow_text(m, FIELD_TEXT, text);
    if (profile > 0) {
        return command_fail("sample", EXIT_FAILURE,
                            "the collector is of an older release: it has kept profile %" PRId64
                            ", and sent nothing to be written",
                            profile);
    }
    if (o->files.rotation.made > 0) {
        look_files_tell(&o->files, seen_looks(m), lost > 0 ? (uint64_t)lost : 0);
    } else if (closed) {
        return command_fail("sample", EXIT_NO_REQUEST, "there was nothing to look at%s%s",
                            text[0] ? ": " : "", text);
    }
    if (closed && text[0]) {
        fprintf(stderr, "it ended early: %s\n", text);
    }
    return closed ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int hear_files(void *user, struct slice type, struct control_map m) {
    struct options *o = user;
    if (slice_is(type, CONTROL_STACKS_KEPT)) {
        return take_files_end(o, m);
    }
    if (slice_is(type, CONTROL_STACKS_LOOKS)) {
        o->failed = o->failed || !look_files_take(&o->files, m, clock_monotonic());
    } else if (slice_is(type, CONTROL_STACKS_STATE) && !o->failed) {
        show_progress(o, m);
    }
    return -1;
}

// When a file cannot be written the run is over, and what is there stays.
static bool turn_files(void *user) {
    struct options *o = user;
    o->failed = o->failed || !rotation_turn(&o->files.rotation, clock_monotonic());
    return o->failed;
}

static int write_files(struct options *o, struct around *around, struct collector_seen *seen) {
    const char *db = NULL;
    int status = look_files_begin(&o->files, &o->rotation, o->draw.question.weighed.metric);
    status = status == EXIT_SUCCESS ? run_enter(&o->run, around, &db, seen) : status;
    status = status == EXIT_SUCCESS
                 ? run_follow(&o->run, (struct follow_ear){o, hear_files, turn_files})
                 : status;
    status = look_files_close(&o->files) || status != EXIT_SUCCESS ? status : EXIT_FAILURE;
    look_files_end(&o->files);
    return status;
}

// -- into a database ------------------------------------------------------------------------------

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
    case 'i':
        o->question.weighed.only = value;
        return EXIT_SUCCESS;
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

static int take_rotation(struct options *o, int option, const char *value) {
    const int64_t day_ms = INT64_C(86400000);
    int64_t number = 0;
    int status;
    if (option == 'D') {
        o->rotation.folder = value;
        return *value ? EXIT_SUCCESS : command_fail("sample", EXIT_USAGE, "--dir has no name");
    }
    if (option == 'k') {
        status = run_take_number(&o->run, "keep", value, MOST_KEPT, &number);
        o->rotation.keep = (uint32_t)number;
        return status;
    }
    status =
        run_take_time(&o->run, option == 'r' ? "rotate" : "flush", value, 1000, day_ms, &number);
    *(option == 'r' ? &o->rotation.rotate_ns : &o->rotation.flush_ns) = number * 1000000;
    return status;
}

// What goes with --dir, and what does not.
static int settle_rotation(struct options *o) {
    struct rotation_options *r = &o->rotation;
    const char *alone = r->rotate_ns  ? "--rotate"
                        : r->flush_ns ? "--flush"
                        : r->keep     ? "--keep"
                                      : NULL;
    const char *clash = o->draw.db           ? "--db"
                        : o->draw.file_count ? "--out"
                        : o->draw.json       ? "--json"
                        : o->group           ? "--group"
                        : o->only            ? "--only"
                                             : NULL;
    if (!r->folder) {
        o->run.seconds = o->run.seconds ? o->run.seconds : USUAL_S;
        return alone ? command_fail("sample", EXIT_USAGE, "%s is for files of --dir", alone)
                     : EXIT_SUCCESS;
    }
    if (clash) {
        return command_fail("sample", EXIT_USAGE,
                            "--dir writes looks as they come, and keeps nothing that %s could be "
                            "for; leave one of them out",
                            clash);
    }
    r->command = "sample";
    r->rotate_ns = r->rotate_ns ? r->rotate_ns : (int64_t)ROTATE_S * SECOND_NS;
    r->flush_ns = r->flush_ns ? r->flush_ns : (int64_t)FLUSH_S * SECOND_NS;
    r->keep = r->keep ? r->keep : KEEP;
    o->run.looks = true;
    o->run.around.forgets = true;
    return EXIT_SUCCESS;
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
    case 'D':
    case 'r':
    case 'k':
    case 'f':
        return take_rotation(o, option, value);
    case 'G':
        o->group = true;
        return take_drawing(&o->draw, option, value);
    case 'i':
        o->only = true;
        return take_drawing(&o->draw, option, value);
    case 'd':
    case 'm':
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
        {"only", required_argument, NULL, 'i'},
        {"out", required_argument, NULL, 'o'},
        {"json", no_argument, NULL, 'j'},
        {"dir", required_argument, NULL, 'D'},
        {"rotate", required_argument, NULL, 'r'},
        {"keep", required_argument, NULL, 'k'},
        {"flush", required_argument, NULL, 'f'},
        RUN_OPTIONS,
        {NULL, 0, NULL, 0},
    };
    *o =
        (struct options){.run = run_usual("sample"), .draw.question.weighed.metric = FLAME_SAMPLES};
    int status = run_parse(argc, argv, options, take, o, &o->run);
    status = status == EXIT_SUCCESS ? settle_rotation(o) : status;
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
    around = AROUND_NONE;
    stop_catch();
    if (o.rotation.folder) {
        status = write_files(&o, &around, &seen);
    } else {
        status = run_enter(&o.run, &around, &o.draw.db, &seen);
        status = status == EXIT_SUCCESS ? run_follow(&o.run, (struct follow_ear){&o, hear, NULL})
                                        : status;
    }
    int left = around_end(&around);
    status = status == EXIT_SUCCESS ? left : status;
    return status == EXIT_SUCCESS && !o.rotation.folder ? draw_kept(&o.draw, o.profile) : status;
}
