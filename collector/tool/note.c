// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text_time.h"
#include "codec/json.h"
#include "store/notes.h"
#include "tool/command.h"
#include "tool/question.h"

const char note_help[] =
    "usage: kprof note TEXT [OPTIONS]\n"
    "\n"
    "Writes down what was done, such as \"deployed 1.4\", through a running collector. The note\n"
    "stands on the time line of the page's charts, and below kprof report.\n"
    "\n"
    "  --node NAME             it is of this node only (default: of all of them); as much of a\n"
    "                          name as tells it from the others\n"
    "  --at TIME               when it was: a length back from now such as 30m, or a time such as\n"
    "                          12:00, \"yesterday 14:30\", \"2026-11-20 10:00\" (local time) or\n"
    "                          2026-11-20T10:00Z (UTC; default: now)\n"
    "\n" REACH_HELP "  --json                  one JSON object: id, at (UTC), node (null: all of "
    "them), text\n"
    "\n"
    "Returns once the note is in the database. A text has 240 bytes at most.\n"
    "\n"
    "Exit status: 0, 1 when it was not written, 2 when the command line is wrong.\n";

struct options {
    struct reach reach;
    const char *text, *node; // node NULL: all of them
    int64_t at_ns;
    bool json;
};

static int take_time(struct options *o, const char *text) {
    return text_time_parse(text, clock_wall(), &o->at_ns)
               ? EXIT_SUCCESS
               : command_fail("note", EXIT_USAGE,
                              "--at %s is no time: say 30m, 12:00, \"yesterday 14:30\" or "
                              "2026-11-20T10:00Z",
                              text);
}

static int take(void *to, int option, const char *value) {
    struct options *o = to;
    switch (option) {
    case 'n':
        o->node = value;
        return EXIT_SUCCESS;
    case 'a':
        return take_time(o, value);
    case 'j':
        o->json = true;
        return EXIT_SUCCESS;
    default:
        reach_option(&o->reach, option, value);
        return EXIT_SUCCESS;
    }
}

static int parse(int argc, char **argv, struct options *o) {
    static const struct option options[] = {REACH_OPTIONS,
                                            {"node", required_argument, NULL, 'n'},
                                            {"at", required_argument, NULL, 'a'},
                                            {"json", no_argument, NULL, 'j'},
                                            {NULL, 0, NULL, 0}};
    *o = (struct options){.at_ns = clock_wall()};
    int status = command_options(argc, argv, options, take, o);
    status = status == EXIT_SUCCESS ? command_at_most(argc, argv, 1) : status;
    if (status != EXIT_SUCCESS) {
        return status;
    }
    o->text = optind < argc ? argv[optind] : "";
    if (!o->text[strspn(o->text, " ")]) {
        return command_fail("note", EXIT_USAGE,
                            "what was done? As in: kprof note \"deployed 1.4\"");
    }
    return strlen(o->text) <= LIMIT_NOTE_BYTES
               ? EXIT_SUCCESS
               : command_fail("note", EXIT_USAGE, "a text has %u bytes at most, this one has %zu",
                              LIMIT_NOTE_BYTES, strlen(o->text));
}

static void ask(const void *options, const char *node, struct buffer *message) {
    const struct options *o = options;
    struct control_writer w = control_begin(message, CONTROL_NOTE, node ? 3 : 2);
    control_text(&w, FIELD_TEXT, slice_text(o->text));
    control_int(&w, FIELD_AT, o->at_ns);
    if (node) {
        control_text(&w, FIELD_NODE, slice_text(node));
    }
    control_end(&w);
}

// The note as it was kept.
static int show(const void *options, const char *of, struct control_map kept) {
    const struct options *o = options;
    char at[TEXT_TIME_BYTES];
    struct slice node = slice_text(""), text = slice_text("");
    struct note note;
    int64_t id = 0, ns = 0;
    (void)of; // it stands in the note
    control_get_int(kept, FIELD_ID, &id);
    control_get_int(kept, FIELD_AT, &ns);
    control_get_text(kept, FIELD_NODE, &node);
    control_get_text(kept, FIELD_TEXT, &text);
    note_make(&note, ns, node, text);
    text_time_format(ns, false, at);
    if (!o->json) {
        printf("noted: %s %s%s%s%s\n", at, note.text, note.node[0] ? " (" : "", note.node,
               note.node[0] ? ")" : "");
        return EXIT_SUCCESS;
    }
    struct buffer out = buffer_make(1 << 16);
    struct json j = json_make(&out);
    json_open(&j, '{');
    json_key_int(&j, "id", id);
    json_key_text(&j, "at", at);
    json_key(&j, "node");
    note.node[0] ? json_text(&j, note.node) : json_null(&j);
    json_key_text(&j, "text", note.text);
    json_close(&j, '}');
    buffer_text(&out, "\n");
    return command_print("note", &out);
}

int note_main(int argc, char **argv) {
    struct options o;
    int status = parse(argc, argv, &o);
    struct question q = {.command = "note", .node = o.node, .ask = ask, .options = &o};
    return status == EXIT_SUCCESS ? question_put(&q, &o.reach, CONTROL_NOTED, show) : status;
}
