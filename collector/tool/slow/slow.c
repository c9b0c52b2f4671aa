// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text_amount.h"
#include "tool/command.h"
#include "tool/node.h"
#include "tool/slow/print.h"

enum { OUTPUT_BYTES = 256 << 20, LIST = 20, LIST_MOST = 100000, WIDTH_MOST = 1000 };

const char slow_help[] =
    "usage: kprof slow --db FILE [OPTIONS]\n"
    "       kprof slow ID --db FILE [--json] [--width N]\n"
    "       kprof slow [ID] --from URL [OPTIONS]\n"
    "\n"
    "Lists the requests that were kept whole, slowest first: those over the collector's\n"
    "--slow-threshold, the slowest few of each identity and time, and those that failed. With an\n"
    "ID, draws one of them: a line a call, below the call that it was made under.\n"
    "\n"
    "  --db FILE       the database that kprof-collector writes\n"
    "  --since TIME    requests that began from this time on: a length back from now such as 30m,\n"
    "                  12h or 2d, or a time such as 12:00, \"yesterday 14:30\", \"2026-11-20 10:00\"\n"
    "                  (local time) or 2026-11-20T10:00Z (UTC; default: all there are)\n"
    "  --until TIME    up to this time (default: now)\n"
    "  --node NAME     only of this node; as much of a name as tells it from the others\n"
    "  --identity NAME only of this identity\n"
    "  --failed        only those that ended in an exception\n"
    "  --limit N       this many at most (default: 20)\n"
    "  --width N       columns of the drawing (default: those of the terminal; 100 without one)\n"
    "  --json          one JSON object instead of text\n"
    "\n" SOURCE_HELP "\n"
    "offset: from the request's begin.\n"
    "self: the duration less what the calls below cover, in whatever process.\n"
    "wait: of a call that a message or a spawn brought to its process, how long that waited there:\n"
    "measured by the native tracer, from when it was sent until it was taken; else estimated (est.),\n"
    "from what the caller is last known to have done to the call's start.\n"
    "async: ended after the request. open: no return was seen. unknown: how it ended is not known,\n"
    "as its tier has returns => none. gc and off-cpu: there when they were traced.\n"
    "_remote: a part of another node's request. Parts that were kept, too, stand in the drawing of\n"
    "their request, with their node, below the call that asked for them, whose self time is less by\n"
    "them than in statistics. ~: placed by that node's clock.\n"
    "\n"
    "The JSON object has requests, a list of id, node, identity, started_at (UTC), duration_us,\n"
    "outcome, reason, complete, spans, kept_spans, remote, origin, trace_id, parent_span_id (of the\n"
    "header traceparent that the request came with; null: not known).\n"
    "With an ID it has request, the same of one; spans, a list of span, parent, node, pid, name,\n"
    "start_us, duration_us, self_us, wait_us, waiting_us, measured (whether wait_us is), mailbox_us,\n"
    "run_queue_us (of wait_us; null: not known), gc_us, off_cpu_us, async, outcome; and parts, what\n"
    "other nodes did for it as far as that was kept: id, node, started_at, duration_us, remote;\n"
    "and profiles, the latest that kprof flame has made of requests of its node and identity: id,\n"
    "ended_at, requests.\n"
    "All is as in the views slow_requests and slow_spans, except that the spans of parts stand\n"
    "among the request's own, as drawn: span and parent number this list, and self_us is less by\n"
    "parts. complete, async, measured and remote are booleans.\n"
    "\n"
    "Colours: on terminals, unless NO_COLOR is set. Exit status: 0, 1 when there is no such\n"
    "request or no database, 2 when the command line is wrong.\n";

struct options {
    struct source source;
    struct slow_filter filter;
    int64_t id; // 0: the list
    int64_t width;
    bool json;
    const char *of_list; // an option that was given and is for the list only
};

// -- options

static int number(const char *option, const char *text, int64_t most, int64_t *n) {
    if (!command_number(text, most, n)) {
        return command_fail("slow", EXIT_USAGE, "--%s %s is no number from 1 to %" PRId64, option,
                            text, most);
    }
    return EXIT_SUCCESS;
}

static int take(void *to, int option, const char *value) {
    struct options *o = to;
    int64_t n = LIST;
    int status = EXIT_SUCCESS;
    if (source_take(&o->source, option, value)) {
        return EXIT_SUCCESS;
    }
    switch (option) {
    case 'j':
        o->json = true;
        break;
    case 's':
        o->of_list = "since";
        return command_time("slow", "since", value, false, &o->filter.from_s);
    case 'u':
        o->of_list = "until";
        return command_time("slow", "until", value, true, &o->filter.until_s);
    case 'n':
        o->of_list = "node";
        o->filter.node = value;
        break;
    case 'i':
        o->of_list = "identity";
        o->filter.identity = value;
        break;
    case 'f':
        o->of_list = "failed";
        o->filter.failed = true;
        break;
    case 'l':
        o->of_list = "limit";
        status = number("limit", value, LIST_MOST, &n);
        o->filter.most = (uint32_t)n;
        break;
    default:
        return number("width", value, WIDTH_MOST, &o->width);
    }
    return status;
}

// What getopt_long has left: at most the ID.
static int take_id(int argc, char **argv, struct options *o) {
    int status = command_at_most(argc, argv, 1);
    if (status == EXIT_SUCCESS && optind < argc &&
        !command_number(argv[optind], INT64_MAX, &o->id)) {
        status = command_fail("slow", EXIT_USAGE,
                              "'%s' is no ID; kprof slow without an ID lists those there are",
                              argv[optind]);
    }
    return status;
}

static int check(struct options *o) {
    if (source_check("slow", &o->source) != EXIT_SUCCESS) {
        return EXIT_USAGE;
    }
    if (command_range("slow", o->filter.from_s, o->filter.until_s) != EXIT_SUCCESS) {
        return EXIT_USAGE;
    }
    if (o->id != 0 && o->of_list) {
        return command_fail("slow", EXIT_USAGE,
                            "--%s chooses from the list; with an ID there is nothing to choose",
                            o->of_list);
    }
    if (o->id == 0 && o->width != 0) {
        return command_fail("slow", EXIT_USAGE,
                            "--width is for the drawing of one request; say its ID");
    }
    return EXIT_SUCCESS;
}

static int parse(int argc, char **argv, struct options *o) {
    static const struct option options[] = {
        SOURCE_OPTIONS,
        {"since", required_argument, NULL, 's'},
        {"until", required_argument, NULL, 'u'},
        {"node", required_argument, NULL, 'n'},
        {"identity", required_argument, NULL, 'i'},
        {"failed", no_argument, NULL, 'f'},
        {"limit", required_argument, NULL, 'l'},
        {"width", required_argument, NULL, 'w'},
        {"json", no_argument, NULL, 'j'},
        {NULL, 0, NULL, 0},
    };
    *o = (struct options){.filter = {.from_s = INT64_MIN, .until_s = INT64_MAX, .most = LIST}};
    int status = command_options(argc, argv, options, take, o);
    status = status == EXIT_SUCCESS ? take_id(argc, argv, o) : status;
    return status == EXIT_SUCCESS ? check(o) : status;
}

// -- the command

static int cannot_read(struct store *store, const struct options *o) {
    return command_fail("slow", EXIT_FAILURE, "cannot read %s (%s)", o->source.name,
                        store_error(store));
}

static int show_list(struct store *store, const struct options *o) {
    struct slow_list list;
    struct buffer out = buffer_make(OUTPUT_BYTES);
    int status = EXIT_SUCCESS;
    struct slow_filter one_more = o->filter; // so that it shows whether there are more
    one_more.most++;
    if (!query_slow_list(store, &one_more, &list)) {
        slow_list_free(&list);
        return cannot_read(store, o);
    }
    bool empty = list.count == 0;
    bool limited = list.count > o->filter.most;
    list.count -= limited;
    slow_clean_list(&list);
    if (o->json) {
        slow_list_json(&list, &out);
    } else if (!empty) {
        slow_table(&list, &o->source, limited, &out);
    }
    status = command_print("slow", &out);
    slow_list_free(&list);
    if (empty && status == EXIT_SUCCESS) {
        status =
            command_fail("slow", EXIT_FAILURE, "%s keeps no %srequest%s", o->source.name,
                         o->filter.failed ? "failed " : "", o->of_list ? " of that kind" : " yet");
    }
    return status;
}

// Profiles of such requests, and how to draw the latest.
static void put_profiles(const struct profile_list *profiles, const struct options *o,
                         struct buffer *out) {
    if (profiles->count == 0) {
        return;
    }
    buffer_text(out, "\n Profiles of such requests:");
    for (uint32_t i = 0; i < profiles->count; i++) {
        const struct profile_line *p = &profiles->lines[i];
        buffer_printf(out, "%s %" PRId64 " (%" PRIu64 " request%s)", i > 0 ? "," : "", p->id,
                      p->counts.requests, text_plural(p->counts.requests));
    }
    buffer_printf(out, "; kprof flame --profile %" PRId64, profiles->lines[0].id);
    source_again(&o->source, out);
    buffer_text(out, " draws the latest.\n");
}

static void show_whole(const struct slow_whole *whole, const struct options *o,
                       struct buffer *out) {
    const struct waterfall_style style = waterfall_style((uint32_t)o->width);
    if (o->json) {
        slow_spans_json(&whole->spans, &whole->profiles, out);
    } else {
        slow_waterfall(&whole->spans, &style, out);
        put_profiles(&whole->profiles, o, out);
    }
}

static int show_one(struct store *store, const struct options *o) {
    struct slow_whole whole;
    struct buffer out = buffer_make(OUTPUT_BYTES);
    int status;
    switch (slow_read(store, o->id, &whole)) {
    case SLOW_FOUND:
        slow_clean_spans(&whole.spans);
        show_whole(&whole, o, &out);
        status = command_print("slow", &out);
        break;
    case SLOW_NONE:
        status = command_fail("slow", EXIT_FAILURE,
                              "%s keeps no request %" PRId64
                              "; kprof slow without an ID lists those there are",
                              o->source.name, o->id);
        break;
    case SLOW_UNREAD:
        status = cannot_read(store, o);
        break;
    default:
        status = command_fail("slow", EXIT_FAILURE, "no memory");
    }
    slow_whole_free(&whole);
    return status;
}

int slow_main(int argc, char **argv) {
    struct options o;
    struct store *store;
    char node[NODE_TEXT_BYTES];
    int status = parse(argc, argv, &o);
    status = status == EXIT_SUCCESS ? node_open("slow", &o.source, &o.filter.node, node, &store)
                                    : status;
    if (status == EXIT_SUCCESS) {
        status = o.id != 0 ? show_one(store, &o) : show_list(store, &o);
        store_close(store);
    }
    return status;
}
