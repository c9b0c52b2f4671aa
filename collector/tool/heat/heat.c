// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text_amount.h"
#include "tool/command.h"
#include "tool/heat/draw.h"
#include "tool/node.h"
#include "tool/terminal.h"

enum { OUTPUT_BYTES = 64 << 20, TERMINAL_ROWS = 20 };

const char heat_help[] =
    "usage: kprof heat --profile ID --db FILE [OPTIONS] [--out FILE.svg]\n"
    "       kprof heat --node NODE --db FILE [--label NAME] [--since TIME] [--until TIME] [OPTIONS]\n"
    "\n"
    "Draws when a profile of samples saw what: a column for each second, cut into rows, and the\n"
    "hotter a cell, the more was seen then. What is no heat is told apart: the processes that were\n"
    "looked at were idle; the node was too busy for the sampler; or the sampler held itself back,\n"
    "to keep to its budget. kprof sample makes such a profile, kprof profiles lists those there are.\n"
    "\n"
    "A long run has columns of some seconds each, as it says then.\n"
    "\n"
    "With --node it draws several profiles of a node as one map: those of a sampler that stands for\n"
    "ever, {sampling, #{}}, one after the other, the last 24 hours of them. Times of which nothing is\n"
    "kept are told apart, too. Times of the day are UTC.\n"
    "\n"
    "  --db FILE       the database\n"
    "  --profile ID    a profile's number, or the name that it was asked for by\n"
    "  --node NODE     the node instead, by its name or the start of it\n"
    "  --label NAME    the label of the profiles (default: always)\n"
    "  --since TIME    from then on: 24h (default), 30m, 2d, or 2026-11-20T18:00:00\n"
    "  --until TIME    up to then: likewise, or now (default)\n"
    "  --metric NAME   active (default: looks at processes that had run since the look before),\n"
    "                  samples (all looks), reductions, memory, memory_growth, memory_release,\n"
    "                  queue, queue_growth, binary, binary_growth, binary_release\n"
    "  --from TIME     from this time after the begin on, such as 12s\n"
    "  --to TIME       up to this time after the begin\n"
    "  --out FILE.svg  write a picture for browsers, of 50 rows. It names the range under the\n"
    "                  pointer, or that of a drag, as --from and --to: kprof flame draws that range.\n"
    "                  Of several profiles it names the profile, too\n"
    "  --json          one JSON object instead of the map\n"
    "\n"
    "The JSON object has profile (null: several), profiles (each with id, from_ms, until_ms), name,\n"
    "node, started_at, length_ms, metric, unit, adds_up (false:\n"
    "values are what processes have together, at its highest), notes, from_ms, column_ms, cell_ms,\n"
    "columns, rows, lowest and highest (of the values that are not 0); states, for each column a\n"
    "text of a letter for each cell, from its begin on: s seen, i idle, l too busy, h held back, -\n"
    "not looked at, n of several profiles none of that time (times are from started_at on); and, a number for each cell, a column behind the other: values, looks,\n"
    "unanswered, late_ms (too busy), held_ms.\n"
    "\n"
    "Exit status: 0, 1 when there is no such profile, or none of samples, 2 when the command line is\n"
    "wrong.\n";

struct options {
    const char *db, *out;
    struct heat_question question;
    const char *node, *label; // of several profiles; NULL: of one
    int64_t since_s, until_s; // likewise; INT64_MIN: not given
    bool json;
};

static int take(void *to, int option, const char *value) {
    struct options *o = to;
    struct heat_choice *choice = &o->question.choice;
    switch (option) {
    case 'd':
        o->db = value;
        break;
    case 'p':
        o->question.profile = value;
        break;
    case 'm':
        return flame_metric_parse(value, &choice->metric) &&
                       flame_metric_is_of(choice->metric, PROFILE_SAMPLES)
                   ? EXIT_SUCCESS
                   : command_fail("heat", EXIT_USAGE,
                                  "--metric %s is none of those that kprof heat --help lists",
                                  value);
    case 'f':
        return command_offset("heat", "from", value, &choice->from_us);
    case 't':
        return command_offset("heat", "to", value, &choice->until_us);
    case 'o':
        o->out = value;
        break;
    case 'n':
        o->node = value;
        break;
    case 'l':
        o->label = value;
        break;
    case 's':
        return command_time("heat", "since", value, false, &o->since_s);
    case 'u':
        return command_time("heat", "until", value, true, &o->until_s);
    default: // 'j'
        o->json = true;
    }
    return EXIT_SUCCESS;
}

static bool ends_with(const char *text, const char *end) {
    size_t len = strlen(text), n = strlen(end);
    return len >= n && strcmp(text + len - n, end) == 0;
}

// One profile, or several.
static int take_what(struct options *o) {
    const struct heat_choice *choice = &o->question.choice;
    bool times = o->since_s != INT64_MIN || o->until_s != INT64_MIN;
    if (!o->question.profile && !o->node) {
        return command_fail("heat", EXIT_USAGE,
                            "of what? Say --profile ID; kprof profiles --db FILE lists those "
                            "there are. Or --node NODE, of a sampler that stands");
    }
    if (o->question.profile && (o->node || o->label || times)) {
        return command_fail("heat", EXIT_USAGE,
                            "--profile is of one, --node, --label, --since and --until of several");
    }
    if (o->node && (choice->from_us | choice->until_us) != 0) {
        return command_fail(
            "heat", EXIT_USAGE,
            "--from and --to are of one profile; of --node say --since and --until");
    }
    if (o->node) {
        int64_t now_s = clock_wall() / 1000000000;
        o->label = o->label ? o->label : "always";
        o->until_s = o->until_s == INT64_MIN ? now_s : o->until_s;
        o->since_s = o->since_s == INT64_MIN ? o->until_s - 86400 : o->since_s;
        return command_range("heat", o->since_s, o->until_s);
    }
    return EXIT_SUCCESS;
}

static int parse(int argc, char **argv, struct options *o) {
    static const struct option options[] = {
        {"db", required_argument, NULL, 'd'},     {"profile", required_argument, NULL, 'p'},
        {"metric", required_argument, NULL, 'm'}, {"from", required_argument, NULL, 'f'},
        {"to", required_argument, NULL, 't'},     {"out", required_argument, NULL, 'o'},
        {"node", required_argument, NULL, 'n'},   {"label", required_argument, NULL, 'l'},
        {"since", required_argument, NULL, 's'},  {"until", required_argument, NULL, 'u'},
        {"json", no_argument, NULL, 'j'},         {NULL, 0, NULL, 0},
    };
    *o = (struct options){
        .question.choice.metric = FLAME_ACTIVE, .since_s = INT64_MIN, .until_s = INT64_MIN};
    int status = command_options(argc, argv, options, take, o);
    status = status == EXIT_SUCCESS ? command_at_most(argc, argv, 0) : status;
    status = status == EXIT_SUCCESS ? take_what(o) : status;
    if (status == EXIT_SUCCESS && o->out && !ends_with(o->out, ".svg")) {
        status = command_fail("heat", EXIT_USAGE, "--out %s: its name must end with .svg", o->out);
    }
    return status == EXIT_SUCCESS ? command_database("heat", o->db) : status;
}

static int print(const struct options *o, const struct heat_answer *a) {
    const struct heat_style style = {terminal_utf8(), terminal_colour()};
    struct buffer out = buffer_make(OUTPUT_BYTES);
    if (o->json) {
        heat_json(a, &out);
    } else {
        heat_draw(a, terminal_width(), &style, &out);
    }
    return command_print("heat", &out);
}

static int make_picture(const struct options *o, const struct heat_answer *a) {
    struct buffer out = buffer_make(OUTPUT_BYTES);
    heat_svg(a, &out);
    int status = command_write("heat", o->out, &out);
    if (status == EXIT_SUCCESS && !o->json) {
        printf("wrote %s\n", o->out);
    }
    buffer_free(&out);
    return status;
}

static int fail(const struct options *o, struct store *s, enum heat_found found,
                const struct heat_answer *a) {
    const char *profile = o->question.profile;
    char length[TEXT_DURATION_BYTES];
    if (o->node && found == HEAT_NONE) {
        return command_fail("heat", EXIT_FAILURE,
                            "%s keeps no samples of %s with the label %s of that time; kprof "
                            "profiles --db FILE lists what there is",
                            o->db, o->node, o->label);
    }
    switch (found) {
    case HEAT_NONE:
        return command_fail("heat", EXIT_FAILURE,
                            "%s keeps no profile %s; kprof profiles --db FILE lists those there "
                            "are",
                            o->db, profile);
    case HEAT_FULL_TRACE:
        return command_fail("heat", EXIT_FAILURE,
                            "profile %s is a full trace of requests; heat maps are of profiles of "
                            "samples, which kprof sample makes",
                            profile);
    case HEAT_NOT_THEN:
        return command_fail("heat", EXIT_FAILURE,
                            "profile %s has nothing from --from up to --to: it is %s long", profile,
                            text_duration((double)a->heat.length_us * 1000, length));
    case HEAT_UNREAD:
        return command_fail("heat", EXIT_FAILURE, "cannot read %s (%s)", o->db, store_error(s));
    default:
        return command_fail("heat", EXIT_FAILURE, "no memory");
    }
}

// The map for whoever reads it: a terminal has less room than a picture, which JSON is for, too.
static int ask(const struct options *o, struct store *s, bool picture) {
    static struct heat_answer answer; // large
    struct heat_question question = o->question;
    uint32_t wide = o->node ? HEAT_STRETCH_COLUMNS : HEAT_PICTURE_COLUMNS;
    question.choice.columns = picture ? wide : heat_columns_of(terminal_width());
    question.choice.rows = picture            ? HEAT_PICTURE_ROWS
                           : terminal_draws() ? heat_rows_of(terminal_height())
                                              : TERMINAL_ROWS;
    const struct heat_stretch stretch = {o->node, o->label, o->since_s, o->until_s,
                                         question.choice};
    enum heat_found found =
        o->node ? heat_ask_stretch(s, &stretch, &answer) : heat_ask(s, &question, &answer);
    int status = found != HEAT_FOUND   ? fail(o, s, found, &answer)
                 : picture && !o->json ? EXIT_SUCCESS
                                       : print(o, &answer);
    if (status == EXIT_SUCCESS && picture && o->out) {
        status = make_picture(o, &answer);
    }
    heat_answer_free(&answer);
    return status;
}

int heat_main(int argc, char **argv) {
    struct options o;
    struct store *store;
    char node[NODE_TEXT_BYTES];
    int status = parse(argc, argv, &o);
    status = status == EXIT_SUCCESS
                 ? node_open("heat", &(struct source){.db = o.db}, &o.node, node, &store)
                 : status;
    if (status != EXIT_SUCCESS) {
        return status;
    }
    status = o.json ? EXIT_SUCCESS : ask(&o, store, false);
    if (status == EXIT_SUCCESS && (o.json || o.out)) {
        status = ask(&o, store, true);
    }
    store_close(store);
    return status;
}
