// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit_status.h"
#include "base/limits.h"
#include "base/text_amount.h"
#include "base/text_time.h"
#include "tool/command.h"
#include "tool/flame/draw.h"
#include "tool/flame/full_trace.h"
#include "tool/text.h"

const char sample_help[] =
    "usage: kprof sample NODE [--for TIME] [--hz N] [--top N] [OPTIONS] [--out FILE]...\n"
    "\n"
    "Looks at the busiest processes of a node so many times a second, keeps their stacks together\n"
    "with their status, memory and queues as a profile, and draws it: as a table of functions, and\n"
    "as flame graphs. Nothing is traced. The node must be connected to the collector. Ctrl-C ends\n"
    "it, and keeps what there is.\n"
    "\n"
    "  --for TIME      for so long (default: 60s)\n"
    "  --hz N          look at each process this many times a second (default: 99)\n"
    "  --top N         at the N busiest processes (default: 100)\n"
    "  --by WHAT       the busiest by reductions (default), memory, message_queue_len or binary:\n"
    "                  those in which it changed most since they were chosen last\n"
    "  --every TIME    choose them anew so often (default: 5s)\n"
    "  --registered NAME       at this process instead; may be given more than once\n"
    "  --pid PID       likewise, such as <0.123.0>\n"
    "  --application APP       at all of this application\n"
    "  --budget PERCENT        use so much of one processor at most, else look less often\n"
    "                  (default: 2%)\n" REACH_HELP "\n"
    "  --db FILE       the database that this collector writes (default: the one it tells of)\n"
    "  --metric NAME   samples (default), active (of processes that had run), reductions, memory,\n"
    "                  memory_growth, memory_release, queue, queue_growth, binary, binary_growth,\n"
    "                  binary_release\n"
    "  --group WHAT    none (default), status, process, application, identity, memory, queue\n"
    "  --out FILE      write a file; its ending tells the form, as in kprof flame\n"
    "  --json          one JSON object instead of the table\n"
    "\n"
    "Exit status: 0, 1 when it cannot be asked for, 2 when the command line is wrong, 10 when there\n"
    "was nothing to look at.\n";

enum { LOOK_MS = 100, SILENT_MS = 15000, TEXT_BYTES = 400, NAMES = 100 };

struct options {
    struct draw_options draw;
    struct reach reach;
    const char *node;
    const char *by, *application;
    int64_t seconds, hz, top, every_ms, budget_ppm;
    const char *registered[NAMES], *pids[NAMES];
    uint32_t registered_count, pid_count;
};

// -- asking ---------------------------------------------------------------------------------------

static void put_names(struct control_writer *w, const char *list, const char *key,
                      const char *const *names, uint32_t count) {
    control_list(w, list, count);
    for (uint32_t i = 0; i < count; i++) {
        control_map(w, 1);
        control_text(w, key, slice_text(names[i]));
    }
}

static int ask(struct client *c, const struct options *o, const char *node) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_STACKS, 10);
    control_text(&w, FIELD_NODE, slice_text(node));
    control_int(&w, FIELD_SECONDS, o->seconds);
    control_int(&w, FIELD_HZ, o->hz);
    control_int(&w, FIELD_TOP, o->top);
    control_int(&w, FIELD_EVERY_MS, o->every_ms);
    control_int(&w, FIELD_BUDGET_PPM, o->budget_ppm);
    control_text(&w, FIELD_BY, slice_text(o->by));
    control_text(&w, FIELD_APPLICATION, slice_text(o->application ? o->application : ""));
    put_names(&w, FIELD_REGISTERED, FIELD_NAME, o->registered, o->registered_count);
    put_names(&w, FIELD_PROCESSES, FIELD_PID, o->pids, o->pid_count);
    control_end(&w);
    return reach_ask("sample", c, &b);
}

static void ask_to_stop(struct client *c) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_STACKS_STOP, 0);
    if (control_end(&w)) {
        client_send(c, &b);
    }
    buffer_free(&b);
}

static int64_t count_of(struct control_map m, const char *key) {
    int64_t n = 0;
    control_get_int(m, key, &n);
    return n;
}

static void show_progress(const struct options *o, struct control_map m) {
    if (o->draw.json) {
        return;
    }
    bool draws = isatty(STDERR_FILENO);
    fprintf(stderr,
            "%s%" PRId64 " looks at %" PRId64 " processes, %" PRId64 " unchanged, %" PRId64
            " not answered; %.1f s held back, %.0f ms of processor time%s",
            draws ? "\r\033[K" : "", count_of(m, FIELD_SAMPLES), count_of(m, FIELD_PROCESSES),
            count_of(m, FIELD_UNCHANGED), count_of(m, FIELD_UNANSWERED),
            (double)count_of(m, FIELD_HELD_MS) / 1000, (double)count_of(m, FIELD_COST_US) / 1000,
            draws ? "" : "\n");
}

static void take_text(struct control_map m, char out[TEXT_BYTES]) {
    struct slice said = slice_text("");
    control_get_text(m, FIELD_TEXT, &said);
    snprintf(out, TEXT_BYTES, "%.*s", (int)(said.len < TEXT_BYTES ? said.len : TEXT_BYTES - 1),
             (const char *)said.data);
    text_clean(out);
}

static int take_end(struct control_map m, int64_t *profile) {
    char text[TEXT_BYTES];
    if (isatty(STDERR_FILENO)) {
        fputs("\r\033[K", stderr);
    }
    take_text(m, text);
    *profile = count_of(m, FIELD_PROFILE);
    if (*profile == 0) {
        return command_fail("sample", EXIT_NO_REQUEST, "there was nothing to look at%s%s",
                            text[0] ? ": " : "", text);
    }
    if (text[0]) {
        fprintf(stderr, "it ended early: %s\n", text);
    }
    return EXIT_SUCCESS;
}

static int gone(struct client *c) {
    return command_fail("sample", EXIT_FAILURE, "the collector is gone: %s", client_why(c));
}

static int follow(struct client *c, const struct options *o, int64_t *profile) {
    bool stopping = false;
    for (int silent = 0; silent <= SILENT_MS;) {
        struct control *message;
        if (full_trace_stops() && !stopping) {
            stopping = true;
            ask_to_stop(c);
        }
        enum client_status got = client_next(c, LOOK_MS, &message);
        if (got == CLIENT_CLOSED) {
            return gone(c);
        }
        if (got == CLIENT_TIMEOUT) {
            silent += LOOK_MS;
            continue;
        }
        struct control_map m = control_root(message);
        struct slice type = slice_text("");
        char text[TEXT_BYTES];
        int status = -1;
        silent = 0;
        control_get_text(m, FIELD_TYPE, &type);
        if (slice_is(type, CONTROL_STACKS_KEPT)) {
            status = take_end(m, profile);
        } else if (slice_is(type, CONTROL_ERROR)) {
            take_text(m, text);
            status = command_fail("sample", EXIT_FAILURE, "%s", text);
        } else if (slice_is(type, CONTROL_STACKS_STATE)) {
            show_progress(o, m);
        }
        control_free(message);
        if (status >= 0) {
            return status;
        }
    }
    return command_fail("sample", EXIT_FAILURE, "the collector does not answer");
}

static int make_profile(struct options *o, int64_t *profile) {
    char found[NODE_TEXT_BYTES];
    const char *node = o->node;
    int status = EXIT_FAILURE;
    struct client *c = reach_open("sample", &o->reach, &status);
    if (c) {
        status = nodes_find("sample", c, o->node, found, &node);
        status = status == EXIT_SUCCESS ? ask(c, o, node) : status;
        status = status == EXIT_SUCCESS ? follow(c, o, profile) : status;
        client_close(c);
    }
    reach_close(&o->reach);
    return status;
}

// -- the command line -----------------------------------------------------------------------------

static int take_number(const char *option, const char *value, int64_t most, int64_t *number) {
    return command_number(value, most, number)
               ? EXIT_SUCCESS
               : command_fail("sample", EXIT_USAGE, "--%s %s is no number from 1 to %" PRId64,
                              option, value, most);
}

static int take_time(const char *option, const char *value, int64_t least_ms, int64_t most_ms,
                     int64_t *ms) {
    int64_t ns = 0;
    if (!text_duration_parse(value, &ns) || ns < least_ms * 1000000 || ns > most_ms * 1000000) {
        return command_fail("sample", EXIT_USAGE, "--%s %s is no length such as 30s", option,
                            value);
    }
    *ms = (ns + 999999) / 1000000;
    return EXIT_SUCCESS;
}

static int take_name(const char *option, const char *value, const char **names, uint32_t *count) {
    if (*count == NAMES) {
        return command_fail("sample", EXIT_USAGE, "--%s: %d at most", option, NAMES);
    }
    names[(*count)++] = value;
    return EXIT_SUCCESS;
}

static int take_budget(const char *value, int64_t *ppm) {
    char *end;
    double percent = strtod(value, &end);
    if (end == value || (*end && strcmp(end, "%") != 0) || !(percent >= 0.1 && percent <= 50)) {
        return command_fail("sample", EXIT_USAGE, "--budget %s is none of 0.1%% to 50%%", value);
    }
    *ppm = (int64_t)(percent * 10000);
    return EXIT_SUCCESS;
}

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
        status = take_time("for", value, 1000, (int64_t)LIMIT_SAMPLE_SECONDS * 1000, &ms);
        o->seconds = (ms + 999) / 1000;
        return status;
    case 'e':
        return take_time("every", value, 100, 3600000, &o->every_ms);
    case 'h':
        return take_number("hz", value, 1000, &o->hz);
    case 'n':
        return take_number("top", value, 1000, &o->top);
    case 'b':
        return take_by(value, &o->by);
    case 'B':
        return take_budget(value, &o->budget_ppm);
    case 'r':
        return take_name("registered", value, o->registered, &o->registered_count);
    case 'p':
        return take_name("pid", value, o->pids, &o->pid_count);
    case 'a':
        o->application = value;
        return EXIT_SUCCESS;
    case 'd':
    case 'm':
    case 'G':
    case 'o':
    case 'j':
        return take_drawing(&o->draw, option, value);
    default:
        reach_option(&o->reach, option, value);
        return EXIT_SUCCESS;
    }
}

static int parse(int argc, char **argv, struct options *o) {
    static const struct option options[] = {
        {"for", required_argument, NULL, 't'},
        {"hz", required_argument, NULL, 'h'},
        {"top", required_argument, NULL, 'n'},
        {"by", required_argument, NULL, 'b'},
        {"every", required_argument, NULL, 'e'},
        {"registered", required_argument, NULL, 'r'},
        {"pid", required_argument, NULL, 'p'},
        {"application", required_argument, NULL, 'a'},
        {"budget", required_argument, NULL, 'B'},
        {"db", required_argument, NULL, 'd'},
        {"metric", required_argument, NULL, 'm'},
        {"group", required_argument, NULL, 'G'},
        {"out", required_argument, NULL, 'o'},
        {"json", no_argument, NULL, 'j'},
        REACH_OPTIONS,
        {NULL, 0, NULL, 0},
    };
    *o = (struct options){.seconds = 60,
                          .hz = 99,
                          .top = 100,
                          .every_ms = 5000,
                          .budget_ppm = 20000,
                          .by = "reductions",
                          .draw.question.weighed.metric = FLAME_SAMPLES};
    int status = command_options(argc, argv, options, take, o);
    status = status == EXIT_SUCCESS ? command_at_most(argc, argv, 1) : status;
    o->node = status == EXIT_SUCCESS && optind < argc ? argv[optind] : NULL;
    return status == EXIT_SUCCESS && !o->node
               ? command_fail("sample", EXIT_USAGE, "of what? Say NODE")
               : status;
}

int sample_main(int argc, char **argv) {
    static struct options o;
    static struct collector_seen seen;
    static char number[24];
    int64_t profile = 0;
    int status = parse(argc, argv, &o);
    if (status != EXIT_SUCCESS) {
        return status;
    }
    struct full_trace_options looks = {.reach = o.reach, .node = o.node};
    status = full_trace_look(&looks, false, &seen);
    if (status != EXIT_SUCCESS) {
        return status;
    }
    full_trace_catch_signals();
    o.draw.db = o.draw.db ? o.draw.db : seen.database[0] ? seen.database : NULL;
    status = make_profile(&o, &profile);
    if (status != EXIT_SUCCESS) {
        return status;
    }
    if (!o.draw.db) {
        printf("kept as profile %" PRId64 "; kprof flame --profile %" PRId64
               " --db FILE --out FILE.svg draws it\n",
               profile, profile);
        return status;
    }
    snprintf(number, sizeof number, "%" PRId64, profile);
    o.draw.question.profile = number;
    return draw_profile(&o.draw);
}
