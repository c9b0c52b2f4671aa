// SPDX-License-Identifier: Apache-2.0
#include "tool/nodes/nodes.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/names.h"
#include "tool/command.h"
#include "tool/reach.h"
#include "tool/text.h"

enum { OUTPUT_BYTES = 64 << 20 };

const char nodes_help[] =
    "usage: kprof nodes [--collector HOST:PORT] [--node NAME] [--history] [--json]\n"
    "\n"
    "Lists the nodes that a running collector knows: those connected, and those that were since\n"
    "it started.\n"
    "\n" REACH_HELP
    "  --node NAME             only nodes of this name; its host may be short or left out\n"
    "  --history               also what happened to each lately: trips of the breaker,\n"
    "                          sampling, pauses; changes of the level in a row are one line\n"
    "  --json                  one JSON object instead of text\n"
    "\n"
    "node: with its short host where that tells it from the others; whole in JSON. state:\n"
    "tracing (native: by the native tracer, else through a trace port), tripped (by the guard:\n"
    "the node made messages faster than they are taken), paused (with kprof trace), idle, gone.\n"
    "sampling: of requests, as asked for;\n"
    "level: what the guard lets through of that under load. req/s: requests that were traced,\n"
    "over the last ten seconds. lost: requests that were incomplete or expired, and messages\n"
    "that the trace port dropped or that could not be decoded, since the collector started.\n"
    "\n"
    "The JSON object: nodes, a list of node, connected, since (UTC), state, tracer (of the latest\n"
    "trace: port or native, null: not known), peer, otp, version, os_pid, one_in and per_second\n"
    "(of which one is 0, null when not known), level (0 to 1), trips, requests_per_s, and since the\n"
    "collector started: complete, incomplete, expired,\n"
    "unsampled, messages, dropped_messages, decode_errors, off_ms, lowered_ms;\n"
    "unmarked_calls, of tiers, while nothing has begun a request (0 as soon as something has);\n"
    "stacks: what samples its stacks now, as a text, null when nothing does;\n"
    "and history, a list of at (UTC) and text, oldest first. And export: null without\n"
    "--export, else its text, behind_s (for how long the oldest change waits) and waiting\n"
    "(how many buckets of nodes do).\n"
    "\n"
    "Exit status: 0, 1 when the collector cannot be reached or knows no such node, 2 when the\n"
    "command line is wrong.\n";

struct options {
    struct reach reach;
    const char *node; // NULL: all
    bool history;
    bool json;
};

static int take(void *to, int option, const char *value) {
    struct options *o = to;
    if (option == 'n') {
        o->node = value;
    } else if (option == 'h') {
        o->history = true;
    } else if (option == 'j') {
        o->json = true;
    } else {
        reach_option(&o->reach, option, value);
    }
    return EXIT_SUCCESS;
}

static int parse(int argc, char **argv, struct options *o) {
    static const struct option options[] = {REACH_OPTIONS,
                                            {"node", required_argument, NULL, 'n'},
                                            {"history", no_argument, NULL, 'h'},
                                            {"json", no_argument, NULL, 'j'},
                                            {NULL, 0, NULL, 0}};
    *o = (struct options){0};
    int status = command_options(argc, argv, options, take, o);
    return status == EXIT_SUCCESS ? command_at_most(argc, argv, 0) : status;
}

// -- reading the answer

static void take_history(struct control_map message, struct node_row *row) {
    struct control_list list = {0};
    control_get_list(message, FIELD_HISTORY, &list);
    row->events = list.count < LIMIT_NODE_EVENTS ? list.count : LIMIT_NODE_EVENTS;
    for (uint32_t i = 0; i < row->events; i++) {
        struct control_map event = control_list_at(list, i);
        text_take(event, FIELD_AT, row->history[i].at, NODE_TIME);
        text_take(event, FIELD_TEXT, row->history[i].text, NODE_TEXT);
    }
}

static void take_node(struct control_map m, struct node_row *row) {
    const struct {
        const char *key;
        int64_t *value;
    } numbers[] = {{FIELD_OS_PID, &row->os_pid},
                   {FIELD_TIERS, &row->tiers},
                   {FIELD_ONE_IN, &row->one_in},
                   {FIELD_PER_SECOND, &row->per_second},
                   {FIELD_LEVEL_PPM, &row->level_ppm},
                   {FIELD_TRIPS, &row->trips},
                   {FIELD_COMPLETE, &row->complete},
                   {FIELD_INCOMPLETE, &row->incomplete},
                   {FIELD_EXPIRED, &row->expired},
                   {FIELD_UNSAMPLED, &row->unsampled},
                   {FIELD_MESSAGES, &row->messages},
                   {FIELD_DROPPED_MESSAGES, &row->dropped_messages},
                   {FIELD_DECODE_ERRORS, &row->decode_errors},
                   {FIELD_OFF_MS, &row->off_ms},
                   {FIELD_LOWERED_MS, &row->lowered_ms},
                   {FIELD_UNMARKED_CALLS, &row->unmarked_calls}};
    *row = (struct node_row){0};
    text_take(m, FIELD_NODE, row->node, sizeof row->node);
    text_take(m, FIELD_SINCE, row->since, sizeof row->since);
    text_take(m, FIELD_PEER, row->peer, sizeof row->peer);
    text_take(m, FIELD_OTP, row->otp, sizeof row->otp);
    text_take(m, FIELD_VERSION, row->version, sizeof row->version);
    text_take(m, FIELD_TRACER, row->tracer, sizeof row->tracer);
    text_take(m, FIELD_STATE, row->state, sizeof row->state);
    text_take(m, FIELD_STACKS, row->stacks, sizeof row->stacks);
    control_get_bool(m, FIELD_CONNECTED, &row->connected);
    row->has_clock = control_get_int(m, FIELD_CLOCK_OFFSET_US, &row->clock_offset_us);
    control_get_number(m, FIELD_REQUESTS_PER_S, &row->requests_per_s);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        control_get_int(m, numbers[i].key, numbers[i].value);
    }
    take_history(m, row);
}

static void take_otlp(struct control_map message, struct nodes_collector *of) {
    struct slice text = slice_text("");
    control_get_text(message, FIELD_OTLP, &text);
    names_clean(text, of->otlp, sizeof of->otlp);
    control_get_int(message, FIELD_OTLP_TRACES_BEHIND_S, &of->traces.behind_s);
    control_get_int(message, FIELD_OTLP_TRACES_WAITING, &of->traces.waiting);
    control_get_int(message, FIELD_OTLP_METRICS_BEHIND_S, &of->metrics.behind_s);
    control_get_int(message, FIELD_OTLP_METRICS_WAITING, &of->metrics.waiting);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct node_row *)a)->node, ((const struct node_row *)b)->node);
}

int nodes_ask(const char *command, struct client *c, struct node_row *rows, uint32_t *count,
              struct nodes_collector *of) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_NODES, 0);
    control_end(&w);
    int status = reach_ask(command, c, &b);
    *count = 0;
    *of = (struct nodes_collector){0};
    while (status == EXIT_SUCCESS) {
        struct control *message = reach_either(command, c, "node", "nodes", REACH_MS);
        struct slice type = {0};
        if (!message) {
            return EXIT_FAILURE;
        }
        control_get_text(control_root(message), FIELD_TYPE, &type);
        bool one = slice_is(type, CONTROL_NODE);
        if (one && *count < LIMIT_NODES) {
            take_node(control_root(message), &rows[(*count)++]);
        }
        control_get_int(control_root(message), FIELD_UNWRITTEN_S, &of->unwritten_s);
        struct slice path = slice_text("");
        control_get_text(control_root(message), FIELD_DATABASE, &path);
        if (path.len > 0 && path.len < sizeof of->database) {
            memcpy(of->database, path.data, path.len); // the rest is zero
        }
        control_get_int(control_root(message), FIELD_EXPORT_BEHIND_S, &of->behind_s);
        control_get_int(control_root(message), FIELD_EXPORT_WAITING, &of->waiting);
        struct slice exported = slice_text("");
        control_get_text(control_root(message), FIELD_EXPORT, &exported);
        names_clean(exported, of->exported, sizeof of->exported);
        take_otlp(control_root(message), of);
        control_free(message);
        if (!one) {
            break;
        }
    }
    qsort(rows, *count, sizeof *rows, by_name);
    return status;
}

// Leaves those of the nodes that may be meant.
static int choose(struct node_row *rows, uint32_t *count, const char *node) {
    uint32_t all = *count;
    *count = 0;
    for (uint32_t i = 0; i < all; i++) {
        if (node_meant(rows[i].node, node)) {
            rows[(*count)++] = rows[i];
        }
    }
    return *count > 0
               ? EXIT_SUCCESS
               : command_fail("nodes", EXIT_FAILURE,
                              "the collector knows no node %s; kprof nodes lists those it knows",
                              node);
}

static int show(const struct node_row *rows, uint32_t count, const struct nodes_collector *of,
                const struct options *o) {
    struct buffer out = buffer_make(OUTPUT_BYTES);
    if (o->json) {
        nodes_json(rows, count, of, &out);
    } else if (count > 0) {
        nodes_table(rows, count, o->history, clock_wall(), &out);
        nodes_export(of, &out);
    } else {
        nodes_export(of, &out);
        fprintf(stderr, "kprof nodes: no node has connected to this collector since it started\n");
    }
    return command_print("nodes", &out);
}

int nodes_find(const char *command, struct client *c, const char *text, char found[NODE_TEXT_BYTES],
               const char **node) {
    struct node_search s = node_search_make(text, found);
    struct node_row *rows = calloc(LIMIT_NODES, sizeof *rows);
    uint32_t count = 0;
    struct nodes_collector of;
    int status = rows ? nodes_ask(command, c, rows, &count, &of)
                      : command_fail(command, EXIT_FAILURE, "no memory");
    for (uint32_t i = 0; i < count; i++) {
        node_search_look(&s, rows[i].node);
    }
    free(rows);
    int told = node_search_end(command, "", &s, node);
    return status == EXIT_SUCCESS ? told : status;
}

int nodes_main(int argc, char **argv) {
    struct options o;
    uint32_t count = 0;
    struct nodes_collector of = {0};
    int status = parse(argc, argv, &o);
    if (status != EXIT_SUCCESS) {
        return status;
    }
    struct client *c = reach_open("nodes", &o.reach, &status);
    if (!c) {
        reach_close(&o.reach);
        return status;
    }
    struct node_row *rows = calloc(LIMIT_NODES, sizeof *rows);
    status = rows ? nodes_ask("nodes", c, rows, &count, &of)
                  : command_fail("nodes", EXIT_FAILURE, "no memory");
    if (of.unwritten_s > 0) {
        fprintf(stderr,
                "kprof nodes: the collector has not been able to write its database for %" PRId64
                " s; its log tells why\n",
                of.unwritten_s);
    }
    client_close(c);
    reach_close(&o.reach);
    if (status == EXIT_SUCCESS && o.node) {
        status = choose(rows, &count, o.node);
    }
    if (status == EXIT_SUCCESS) {
        status = show(rows, count, &of, &o);
    }
    free(rows);
    return status;
}
