// SPDX-License-Identifier: Apache-2.0
#include "tool/trigger.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_time.h"
#include "codec/json.h"
#include "tool/command.h"
#include "tool/question.h"
#include "tool/steered.h"

enum { MS_NS = 1000000 };

const char trigger_help[] =
    "usage: kprof trigger NODE add WHAT --above N [OPTIONS]\n"
    "       kprof trigger NODE list [--json]\n"
    "       kprof trigger NODE remove NAME|--all\n"
    "\n"
    "Has a node that is traced sample its stacks by itself, when it is worth it: one of its values\n"
    "is above a limit for a while. The run is kept as a profile, labelled with the trigger's name.\n"
    "What happens stands in the node's log, the collector's and in kprof nodes --history. What is\n"
    "added lasts as long as the trace; triggers that shall be there always stand in its options.\n"
    "\n"
    "WHAT, and N:\n"
    "  run_queue           processes that are ready to run\n"
    "  message_queue_len   messages in the longest queue of a process\n"
    "  memory              bytes in use; 2GB, 500MB\n"
    "  reductions          a second, of the whole node\n"
    "  tier_p99 TIER       99 % of the calls of a tier take less; a time, such as 200ms\n"
    "\n"
    "  --above N               the limit\n"
    "  --for TIME              above it without a pause for so long (default: 5s)\n"
    "  --high-water            instead: above it, and higher than in the five minutes before\n"
    "  --every TIME            at most one run in that time (default: 10m)\n"
    "  --sample-for TIME       how long a run lasts (default: 30s)\n"
    "  --hz N                  looks a second at each process (default: 99)\n"
    "  --label LABEL           label of its profiles (default: the trigger's name)\n"
    "  --name NAME             what it is called (default: WHAT)\n"
    "  --all                   remove: all of them\n"
    "\n" REACH_HELP
    "  --json                  one JSON object: node, command, ok, text; of list also triggers:\n"
    "                          name, trigger, tier, above, for_ms, high_water, every_ms, seconds,\n"
    "                          hz, label, began (runs), again_ms (until the next one may begin;\n"
    "                          0: any time), value (the last one), process (whose queue that is)\n"
    "\n"
    "The values are looked at once a second; the percentile whenever the collector counts, where\n"
    "calls have ended. One run of a node goes on at a time.\n"
    "\n"
    "Exit status: 0, 1 when it was not done, 2 when the command line is wrong.\n";

struct options {
    struct reach reach;
    const char *node, *command;
    const char *what, *tier;   // of add
    const char *above, *label; // likewise; NULL: not given
    double limit;              // above, as it is sent
    const char *name;          // of add and remove
    int64_t for_ms, every_ms;  // -1: not given
    int64_t seconds, hz;       // 0: not given
    bool high_water, all, json;
};

static int take_time(const char *option, const char *text, int64_t unit_ns, int64_t *to) {
    int64_t ns;
    if (!text_duration_parse(text, &ns)) {
        return command_fail("trigger", EXIT_USAGE, "--%s %s is no length such as 5s", option, text);
    }
    *to = ns / unit_ns;
    return EXIT_SUCCESS;
}

static int take(void *to, int option, const char *value) {
    struct options *o = to;
    switch (option) {
    case 'a':
        o->above = value;
        return EXIT_SUCCESS;
    case 'f':
        return take_time("for", value, MS_NS, &o->for_ms);
    case 'e':
        return take_time("every", value, MS_NS, &o->every_ms);
    case 's':
        return take_time("sample-for", value, 1000LL * MS_NS, &o->seconds);
    case 'z':
        return command_number(value, 1000, &o->hz)
                   ? EXIT_SUCCESS
                   : command_fail("trigger", EXIT_USAGE, "--hz %s: want a number from 1 to 1000",
                                  value);
    case 'l':
        o->label = value;
        return EXIT_SUCCESS;
    case 'n':
        o->name = value;
        return EXIT_SUCCESS;
    case 'w':
        o->high_water = true;
        return EXIT_SUCCESS;
    case 'A':
        o->all = true;
        return EXIT_SUCCESS;
    case 'j':
        o->json = true;
        return EXIT_SUCCESS;
    default:
        reach_option(&o->reach, option, value);
        return EXIT_SUCCESS;
    }
}

// A number with the unit that it may have: of bytes, or of time, which becomes ms.
static bool read_above(struct options *o) {
    static const struct {
        const char *text;
        double times;
    } units[] = {{"", 1}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
    int64_t ns;
    if (o->tier) {
        bool good = text_duration_parse(o->above, &ns);
        o->limit = good ? (double)ns / MS_NS : 0;
        return good;
    }
    char *end;
    size_t digits = strspn(o->above, "0123456789.");
    o->limit = strtod(o->above, &end);
    if (digits == 0 || end != o->above + digits) {
        return false;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].text) == 0 && (i == 0 || strcmp(o->what, "memory") == 0)) {
            o->limit *= units[i].times;
            return true;
        }
    }
    return false;
}

static int take_add(int argc, char **argv, struct options *o) {
    if (argc < 3) {
        return command_fail("trigger", EXIT_USAGE,
                            "add what? run_queue, message_queue_len, memory, reductions or "
                            "tier_p99 TIER");
    }
    o->what = argv[2];
    bool tier = strcmp(o->what, "tier_p99") == 0;
    if (tier && argc < 4) {
        return command_fail("trigger", EXIT_USAGE, "tier_p99 of which tier?");
    }
    o->tier = tier ? argv[3] : NULL;
    if (argc > (tier ? 4 : 3)) {
        return command_fail("trigger", EXIT_USAGE, "unexpected argument '%s'", argv[tier ? 4 : 3]);
    }
    if (!o->above) {
        return command_fail("trigger", EXIT_USAGE, "above what? Say --above N");
    }
    if (!read_above(o)) {
        return command_fail("trigger", EXIT_USAGE, "--above %s: want %s", o->above,
                            tier                             ? "a time such as 200ms"
                            : strcmp(o->what, "memory") == 0 ? "bytes, such as 2GB"
                                                             : "a number");
    }
    return o->high_water && o->for_ms >= 0
               ? command_fail("trigger", EXIT_USAGE, "--for and --high-water exclude each other")
               : EXIT_SUCCESS;
}

static int take_remove(int argc, char **argv, struct options *o) {
    o->name = argc > 2 ? argv[2] : o->name;
    if (argc > 3) {
        return command_fail("trigger", EXIT_USAGE, "unexpected argument '%s'", argv[3]);
    }
    return o->all == !o->name
               ? EXIT_SUCCESS
               : command_fail("trigger", EXIT_USAGE, "remove which one? Say its name, or --all");
}

static int take_arguments(int argc, char **argv, struct options *o) {
    if (argc < 2) {
        return command_fail(
            "trigger", EXIT_USAGE,
            "want NODE and one of add, list, remove; kprof trigger --help tells more");
    }
    o->node = argv[0];
    o->command = argv[1];
    if (strcmp(o->command, "add") == 0) {
        return take_add(argc, argv, o);
    }
    if (strcmp(o->command, "remove") == 0) {
        return take_remove(argc, argv, o);
    }
    if (strcmp(o->command, "list") != 0) {
        return command_fail("trigger", EXIT_USAGE, "'%s' is none of add, list, remove", o->command);
    }
    return argc == 2 ? EXIT_SUCCESS
                     : command_fail("trigger", EXIT_USAGE, "unexpected argument '%s'", argv[2]);
}

static int parse(int argc, char **argv, struct options *o) {
    static const struct option options[] = {REACH_OPTIONS,
                                            {"above", required_argument, NULL, 'a'},
                                            {"for", required_argument, NULL, 'f'},
                                            {"high-water", no_argument, NULL, 'w'},
                                            {"every", required_argument, NULL, 'e'},
                                            {"sample-for", required_argument, NULL, 's'},
                                            {"hz", required_argument, NULL, 'z'},
                                            {"label", required_argument, NULL, 'l'},
                                            {"name", required_argument, NULL, 'n'},
                                            {"all", no_argument, NULL, 'A'},
                                            {"json", no_argument, NULL, 'j'},
                                            {NULL, 0, NULL, 0}};
    *o = (struct options){.for_ms = -1, .every_ms = -1};
    int status = command_options(argc, argv, options, take, o);
    return status == EXIT_SUCCESS ? take_arguments(argc - optind, argv + optind, o) : status;
}

static void put_add(struct control_writer *w, const struct options *o) {
    control_text(w, FIELD_TRIGGER, slice_text(o->what));
    control_number(w, FIELD_ABOVE, o->limit);
    if (o->tier) {
        control_text(w, FIELD_TIER, slice_text(o->tier));
    }
    if (o->label) {
        control_text(w, FIELD_LABEL, slice_text(o->label));
    }
    if (o->for_ms >= 0) {
        control_int(w, FIELD_FOR_MS, o->for_ms);
    }
    if (o->every_ms >= 0) {
        control_int(w, FIELD_EVERY_MS, o->every_ms);
    }
    if (o->seconds > 0) {
        control_int(w, FIELD_SECONDS, o->seconds);
    }
    if (o->hz > 0) {
        control_int(w, FIELD_HZ, o->hz);
    }
    if (o->high_water) {
        control_bool(w, FIELD_HIGH_WATER, true);
    }
}

static void ask(const void *options, const char *node, struct buffer *message) {
    const struct options *o = options;
    bool add = o->what != NULL;
    uint32_t pairs = 2 + (o->name != NULL) + o->all;
    pairs += add ? 2U + (o->tier != NULL) + (o->label != NULL) + (o->for_ms >= 0) +
                       (o->every_ms >= 0) + (o->seconds > 0) + (o->hz > 0) + o->high_water
                 : 0;
    struct control_writer w = control_begin(message, CONTROL_STEER, pairs);
    control_text(&w, FIELD_NODE, slice_text(node));
    control_text(&w, FIELD_COMMAND,
                 slice_text(add                               ? STEER_TRIGGER_ADD
                            : strcmp(o->command, "list") == 0 ? STEER_TRIGGER_LIST
                                                              : STEER_TRIGGER_REMOVE));
    if (o->name) {
        control_text(&w, FIELD_NAME, slice_text(o->name));
    }
    if (o->all) {
        control_bool(&w, FIELD_ALL, true);
    }
    if (add) {
        put_add(&w, o);
    }
    control_end(&w);
}

static int show_json(const struct options *o, const char *node, const struct steered *steered,
                     const struct control_list *triggers) {
    struct buffer out = buffer_make(1 << 20);
    struct json j = json_make(&out);
    json_open(&j, '{');
    steered_json(&j, node, o->command, steered);
    if (strcmp(o->command, "list") == 0) {
        json_key(&j, FIELD_TRIGGERS);
        json_open(&j, '[');
        for (uint32_t i = 0; i < triggers->count; i++) {
            json_open(&j, '{');
            control_json(control_list_at(*triggers, i), &j);
            json_close(&j, '}');
        }
        json_close(&j, ']');
    }
    json_close(&j, '}');
    buffer_text(&out, "\n");
    int status = command_print("trigger", &out);
    return steered->ok ? status : EXIT_FAILURE;
}

static int show(const void *options, const char *node, struct control_map answer) {
    const struct options *o = options;
    struct steered steered = steered_read(answer);
    struct control_list triggers = {0};
    control_get_list(answer, FIELD_TRIGGERS, &triggers);
    if (o->json) {
        return show_json(o, node, &steered, &triggers);
    }
    if (!steered.ok || strcmp(o->command, "list") != 0) {
        return steered_tell("trigger", node, &steered);
    }
    if (triggers.count == 0) {
        printf("%s has no triggers\n", node);
        return EXIT_SUCCESS;
    }
    struct buffer out = buffer_make(1 << 16);
    trigger_table(triggers, &out);
    return command_print("trigger", &out);
}

int trigger_main(int argc, char **argv) {
    struct options o;
    int status = parse(argc, argv, &o);
    struct question q = {.command = "trigger", .node = o.node, .ask = ask, .options = &o};
    return status == EXIT_SUCCESS ? question_put(&q, &o.reach, CONTROL_STEERED, show) : status;
}
