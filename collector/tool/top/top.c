// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text_time.h"
#include "tool/command.h"
#include "tool/redraw.h"
#include "tool/sample/run.h"
#include "tool/stop.h"
#include "tool/terminal.h"
#include "tool/top/print.h"

const char top_help[] =
    "usage: kprof top NODE [--by WHAT] [--every TIME] [OPTIONS]\n"
    "\n"
    "Shows what a node does now: the busiest processes with their reductions, memory, queues and\n"
    "what they run, and the functions that run most. It looks at their stacks some times a second;\n"
    "nothing is traced, and nothing is kept. It ends with q or Ctrl-C.\n"
    "\n"
    "  --by WHAT       the processes by reductions (default), memory or queue, at which and in\n"
    "                  whose order it looks. On a terminal the keys r, m and l do the same\n"
    "  --functions-by self|total\n"
    "                  the functions by what they run themselves (default), or with all that they\n"
    "                  call. The keys s and t do the same\n"
    "  --every TIME    show it anew so often, from 1s on (default: 1s)\n"
    "  --for TIME      end after this time\n"
    "  --count N       end after it was shown this many times\n"
    "  --limit N       this many processes and functions (default: what fits the terminal; 20 of\n"
    "                  each without one, and all with --json)\n"
    "  --json          a line with a JSON object each time instead, also without a terminal\n"
    "  --hz N          look at each process this many times a second (default: 20)\n"
    "  --top N         at the N busiest processes, chosen anew every 5 s (default: 100;\n"
    "                  500 at most)\n" RUN_WHOM_HELP "\n"
    "A process stands by its registered name, its label or the function that it began with; its\n"
    "function is the one that it was last seen in. A function's share is that of the looks at\n"
    "processes that were running, or ready to. Without a terminal one table follows the other.\n"
    "\n"
    "The JSON object has at, node, seconds (that it covers), by, samples (looks), busy (those at\n"
    "processes that were running, or ready to), unanswered, held_ms, late_ms, cost_us; processes, a\n"
    "list of pid, name, initial_call, application, status, function, reductions, memory,\n"
    "memory_change, queue, queue_change, samples, unanswered; and functions, a list of name, self,\n"
    "total, which are numbers of looks. Changes are since the object before.\n"
    "\n" RUN_WAY_HELP REACH_HELP "  --db FILE       the database of a collector of its own\n"
    "\n"
    "Exit status: 0, 1 when it cannot be asked for, 2 when the command line is wrong, 3 to 9 those of\n"
    "kprof attach when kprof does not get into the node, 10 when there was nothing to look at.\n";

enum { OUTPUT_BYTES = 4 << 20, BATCH_LINES = 20, LEAST_LINES = 4 };

struct options {
    struct run_options run;
    struct top_style style;
    const char *db;
    int64_t limit, every_ms, for_ms, count; // 0: none
    bool json;
};

struct top {
    struct options *o;
    struct top_rows rows;
    struct buffer shown; // what stands on the terminal
    bool draws;
    bool drawn; // there is something in rows
    bool again; // the run ends, for another choice of processes
    bool over;
    int64_t end_ns; // 0: none
    int64_t shows;
};

// -- showing --------------------------------------------------------------------------------------

// Processes get what functions do not need, and more than half of the lines.
static void fit(struct options *o) {
    enum { AROUND = 4 }; // two heads, a line of numbers, one of keys; and the cursor's
    uint32_t height = terminal_height(), room = height > AROUND + 1 ? height - AROUND - 1 : 0;
    room = room > LEAST_LINES ? room : LEAST_LINES;
    o->style.width = terminal_width();
    o->style.functions = room * 2 / 5;
    o->style.processes = room - o->style.functions;
}

static void show(struct top *t) {
    struct options *o = t->o;
    char at[TEXT_TIME_BYTES];
    struct buffer out = buffer_make(OUTPUT_BYTES);
    o->style.at = text_time_format(clock_wall(), true, at);
    top_rows_sort(&t->rows, o->style.by, o->style.functions_by);
    if (t->draws) {
        fit(o);
        redraw_hide(&t->shown, &out);
        top_table(&t->rows, &o->style, &t->shown);
        buffer_append(&out, t->shown.data, t->shown.len);
    } else if (o->json) {
        top_json(&t->rows, &o->style, &out);
    } else {
        buffer_printf(&out, "%s%s\n", t->shows > 0 ? "\n" : "", o->style.at);
        top_table(&t->rows, &o->style, &out);
    }
    if (!out.failed && out.len > 0) {
        fwrite(out.data, 1, out.len, stdout);
    }
    t->over = t->over || fflush(stdout) != 0; // main tells
    buffer_free(&out);
}

// -- the run --------------------------------------------------------------------------------------

static int take_view(struct top *t, struct control_map m) {
    if (t->again || t->over) {
        return -1;
    }
    if (!top_rows_take(&t->rows, m)) {
        return command_fail("top", EXIT_FAILURE,
                            "what the collector sends is no view of a node; is it of another "
                            "release?");
    }
    t->drawn = true;
    show(t);
    t->rows.before = t->rows.totals;
    t->shows++;
    t->over = t->over || (t->o->count > 0 && t->shows >= t->o->count);
    return -1;
}

static int take_end(const struct top *t, struct control_map m) {
    char reason[FOLLOW_TEXT_BYTES], text[FOLLOW_TEXT_BYTES];
    follow_text(m, FIELD_REASON, reason);
    follow_text(m, FIELD_TEXT, text);
    if (t->again || t->over || strcmp(reason, "stopped") == 0) {
        return EXIT_SUCCESS;
    }
    return strcmp(reason, "no_process") == 0
               ? command_fail("top", EXIT_NO_REQUEST, "there is nothing to look at%s%s",
                              text[0] ? ": " : "", text)
               : command_fail("top", EXIT_FAILURE, "it has ended: %s",
                              text[0] ? text : "the node gives no reason");
}

static int hear(void *user, struct slice type, struct control_map m) {
    struct top *t = user;
    if (slice_is(type, CONTROL_STACKS_KEPT)) {
        return take_end(t, m);
    }
    if (slice_is(type, CONTROL_STACKS_STATE)) {
        top_rows_totals(&t->rows, m);
    } else if (slice_is(type, CONTROL_STACKS_VIEW)) {
        return take_view(t, m);
    }
    return -1;
}

// Those who are named stay the same.
static void choose(struct top *t, enum top_by by) {
    const struct run_options *run = &t->o->run;
    bool named = run->registered_count > 0 || run->pid_count > 0;
    t->again = t->again || (by != t->o->style.by && !named);
    t->o->style.by = by;
}

static void press(struct top *t, char key) {
    switch (key) {
    case 'q':
        t->over = true;
        return;
    case 'r':
        choose(t, TOP_BY_REDUCTIONS);
        break;
    case 'm':
        choose(t, TOP_BY_MEMORY);
        break;
    case 'l':
        choose(t, TOP_BY_QUEUE);
        break;
    case 's':
        t->o->style.functions_by = TOP_BY_SELF;
        break;
    case 't':
        t->o->style.functions_by = TOP_BY_TOTAL;
        break;
    default:
        return;
    }
    if (t->drawn) {
        show(t);
    }
}

static bool turn(void *user) {
    struct top *t = user;
    for (char key = terminal_key(); key; key = terminal_key()) {
        press(t, key);
    }
    t->over = t->over || stop_wanted() || (t->end_ns > 0 && clock_monotonic() >= t->end_ns);
    return t->over || t->again;
}

static int watch(struct options *o) {
    static struct top t; // large
    t = (struct top){.o = o, .shown = buffer_make(OUTPUT_BYTES)};
    t.draws = !o->json && terminal_draws();
    t.end_ns = o->for_ms > 0 ? clock_monotonic() + o->for_ms * 1000000 : 0;
    o->style.colour = terminal_colour();
    o->style.keys = t.draws && terminal_keys_begin();
    int status = EXIT_SUCCESS;
    do {
        t.again = false;
        t.rows.totals = t.rows.before = (struct top_totals){0};
        o->run.by = top_by_name(o->style.by);
        status = run_follow(&o->run, (struct follow_ear){&t, hear, turn});
    } while (status == EXIT_SUCCESS && t.again && !t.over);
    terminal_keys_end();
    buffer_free(&t.shown);
    return status;
}

// -- the command line -----------------------------------------------------------------------------

static int take_by(const char *value, enum top_by *by) {
    static const char *const names[] = {"reductions", "memory", "queue"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(value, names[i]) == 0 || strcmp(value, top_by_name((enum top_by)i)) == 0) {
            *by = (enum top_by)i;
            return EXIT_SUCCESS;
        }
    }
    return command_fail("top", EXIT_USAGE, "--by %s is none of reductions, memory, queue", value);
}

static int take_functions_by(const char *value, enum top_functions_by *by) {
    *by = strcmp(value, "total") == 0 ? TOP_BY_TOTAL : TOP_BY_SELF;
    return *by == TOP_BY_TOTAL || strcmp(value, "self") == 0
               ? EXIT_SUCCESS
               : command_fail("top", EXIT_USAGE, "--functions-by %s is none of self, total", value);
}

static int take(void *to, int option, const char *value) {
    struct options *o = to;
    switch (option) {
    case 'b':
        return take_by(value, &o->style.by);
    case 'f':
        return take_functions_by(value, &o->style.functions_by);
    case 'e':
        return run_take_time(&o->run, "every", value, 1000, 3600000, &o->every_ms);
    case 't':
        return run_take_time(&o->run, "for", value, 1000, INT64_C(1000) * LIMIT_SAMPLE_SECONDS,
                             &o->for_ms);
    case 'c':
        return run_take_number(&o->run, "count", value, INT32_MAX, &o->count);
    case 'l':
        return run_take_number(&o->run, "limit", value, TOP_PROCESSES, &o->limit);
    case 'd':
        o->db = value;
        return EXIT_SUCCESS;
    case 'j':
        o->json = true;
        return EXIT_SUCCESS;
    default:
        return option == RUN_TOP
                   ? run_take_number(&o->run, "top", value, TOP_PROCESSES, &o->run.top)
                   : run_take(&o->run, option, value);
    }
}

static int parse(int argc, char **argv, struct options *o) {
    static const struct option options[] = {
        {"by", required_argument, NULL, 'b'},
        {"functions-by", required_argument, NULL, 'f'},
        {"every", required_argument, NULL, 'e'},
        {"for", required_argument, NULL, 't'},
        {"count", required_argument, NULL, 'c'},
        {"limit", required_argument, NULL, 'l'},
        {"db", required_argument, NULL, 'd'},
        {"json", no_argument, NULL, 'j'},
        RUN_OPTIONS,
        {NULL, 0, NULL, 0},
    };
    *o = (struct options){.run = run_usual("top"), .every_ms = 1000};
    o->run.hz = 20;
    int status = run_parse(argc, argv, options, take, o, &o->run);
    if (status != EXIT_SUCCESS) {
        return status;
    }
    o->run.around.quiet = o->json;
    o->run.around.forgets = true;
    o->run.view_s = (o->every_ms + 999) / 1000;
    o->style.node = o->run.around.node;
    o->style.width = terminal_width();
    o->style.processes = o->limit ? (uint32_t)o->limit : o->json ? UINT32_MAX : BATCH_LINES;
    o->style.functions = o->style.processes;
    return EXIT_SUCCESS;
}

int top_main(int argc, char **argv) {
    static struct options o;
    static struct collector_seen seen; // the database's path lies there
    static struct around around;
    int status = parse(argc, argv, &o);
    if (status != EXIT_SUCCESS) {
        return status;
    }
    stop_catch();
    status = run_enter(&o.run, &around, &o.db, &seen);
    status = status == EXIT_SUCCESS ? watch(&o) : status;
    int left = around_end(&around);
    return status == EXIT_SUCCESS ? left : status;
}
