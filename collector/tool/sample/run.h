// SPDX-License-Identifier: Apache-2.0
// A run of stack sampling, as commands of the tool ask for it: what their command lines have in
// common, the way into a node that kprof is not in yet, and what the collector tells meanwhile. One
// thread.
#pragma once

#include <getopt.h>

#include "tool/around.h"
#include "tool/follow.h"

enum { RUN_NAMES = 100 };

struct run_options {
    struct around_options around; // whose run it is, and of which node
    struct reach reach;
    const char *by, *application;
    int64_t seconds; // 0: until it is stopped
    int64_t hz, top, every_ms, budget_ppm;
    int64_t view_s; // nothing is kept, but shown so often; 0: it is kept
    bool looks;     // nothing is kept, but all of it is told as it comes
    const char *registered[RUN_NAMES], *pids[RUN_NAMES];
    uint32_t registered_count, pid_count;
};

// getopt_long's values of the options that these commands have in common.
enum {
    RUN_HZ = 2200,
    RUN_TOP,
    RUN_REGISTERED,
    RUN_PID,
    RUN_APPLICATION,
    RUN_BUDGET,
    RUN_COOKIE_FILE,
    RUN_LISTEN
};

#define RUN_OPTIONS                                                                                \
    {"hz", required_argument, NULL, RUN_HZ}, {"top", required_argument, NULL, RUN_TOP},            \
        {"registered", required_argument, NULL, RUN_REGISTERED},                                   \
        {"pid", required_argument, NULL, RUN_PID},                                                 \
        {"application", required_argument, NULL, RUN_APPLICATION},                                 \
        {"budget", required_argument, NULL, RUN_BUDGET},                                           \
        {"cookie-file", required_argument, NULL, RUN_COOKIE_FILE},                                 \
        {"listen", required_argument, NULL, RUN_LISTEN}, REACH_OPTIONS

#define RUN_WHOM_HELP                                                                              \
    "  --registered NAME       at this process instead; may be given more than once\n"             \
    "  --pid PID       likewise, such as '<0.123.0>'\n"                                            \
    "  --application APP       at all of this application\n"                                       \
    "  --budget PERCENT        use so much of one processor at most, as it counts that itself,\n"  \
    "                  else look less often (default: 2%)\n"

#define RUN_WAY_HELP                                                                                    \
    "Into a node that no collector's trace is in kprof is loaded for as long as this takes, as kprof\n" \
    "attach does, and taken out again. Nothing is traced there.\n"                                      \
    "  --cookie-file FILE      a file with the node's cookie (default: ~/.erlang.cookie)\n"             \
    "--collector names the collector. With --db instead, this command runs one of its own for as\n"     \
    "long as it takes. Without either it uses the one at 127.0.0.1:4711 if that answers, and runs\n"    \
    "one of its own if not.\n"                                                                          \
    "  --listen [ADDR:]PORT    where that one listens (default: a free port that the node reaches)\n"

// The usual ones, for a command.
struct run_options run_usual(const char *command);
// Reads the whole command line, as command_options does, NODE with it. EXIT_SUCCESS, or EXIT_USAGE
// and has told why.
int run_parse(int argc, char **argv, const struct option *options,
              int (*take)(void *to, int option, const char *value), void *to,
              struct run_options *o);
// Takes one of RUN_OPTIONS. EXIT_SUCCESS, or EXIT_USAGE and has told why.
int run_take(struct run_options *o, int option, const char *value);
// A number from 1 to most, and a length of time, of other options. Likewise.
int run_take_number(const struct run_options *o, const char *option, const char *value,
                    int64_t most, int64_t *number);
int run_take_time(const struct run_options *o, const char *option, const char *value,
                  int64_t least_ms, int64_t most_ms, int64_t *ms);

// Has the collector, and the node with it, which is connected to it or is entered. *db as
// around_settle has it. EXIT_SUCCESS, or another status and has told why; around_end in either
// case.
int run_enter(struct run_options *o, struct around *a, const char **db,
              struct collector_seen *seen);

// Asks for a run and follows it; Ctrl-C has it stopped, and what there is kept. An exit status.
int run_follow(struct run_options *o, struct follow_ear ear);
