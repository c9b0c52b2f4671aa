// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/query_slow.h"
#include "tool/command.h"
#include "tool/diff/print.h"
#include "tool/node.h"
#include "tool/report/print.h"

enum { OUTPUT_BYTES = 64 << 20 };

const char diff_help[] =
    "usage: kprof diff --db FILE|--from URL --before FROM..UNTIL --after FROM..UNTIL [OPTIONS]\n"
    "\n"
    "Compares two stretches of time: for each identity how the mean, the percentiles and the share\n"
    "of errors of its requests have changed, whether that is more than chance, and where a change of\n"
    "the mean comes from. Its parts add up to it: the time of each tier itself, waiting until calls\n"
    "of a tier began, what no tier covers, and what ran in parallel (which counts once). They are\n"
    "rounded so that they add up to the change as it is shown.\n"
    "\n"
    "  --db FILE              the database that kprof-collector writes\n"
    "  --before FROM..UNTIL   lengths back from now such as 2h..1h, or times such as 12:00..12:30,\n"
    "  --after FROM..UNTIL    local, or with Z (UTC)\n"
    "  --node NAME            only this node (default: all nodes together)\n"
    "  --identity NAME        only this identity\n"
    "  --fail-over PERCENT    end with 1 where the mean, p50 or p99 of an identity's requests, or of\n"
    "                         all together, has grown by more than that, and by more than chance:\n"
    "                         for deploy pipelines\n"
    "  --json                 one JSON object instead of the text\n"
    "\n" SOURCE_HELP "\n"
    "The JSON object has before and after (from, until, resolution_s, verdict, bias) and rows, one\n"
    "for each identity and tier: calls_before, calls_after; mean_us, p50_us, p90_us, p99_us,\n"
    "p999_us, errors (share of calls) and per_s, each with before, after and sure (more than\n"
    "chance); waiting: apart, or in_self where the rows are of an old version, which counted it\n"
    "there, or mixed; and where tier is _total, parts: kind (self, waiting, uncovered, parallel),\n"
    "tier, before_us, after_us. slow: what makes the slow ones of an identity slow that were kept\n"
    "of the time after: identity, requests, mean_us (of all), slow_us (of these), and parts of the\n"
    "difference (kind, tier, mean_us, slow_us).\n"
    "\n"
    "Exit status: 0, 1 past the limit, or when there is no data or no database, 2 when the command\n"
    "line is wrong.\n";

struct options {
    struct source source;
    struct query before, after;
    bool has_before, has_after, json;
    double fail_over; // a share; negative: not asked for
};

static int take_percent(struct options *o, const char *value) {
    char *end;
    errno = 0;
    double percent = strtod(value, &end);
    bool ok = end != value && !errno && percent >= 0 && percent <= 1e6;
    if (!ok || (*end && strcmp(end, "%") != 0)) {
        return command_fail("diff", EXIT_USAGE, "--fail-over %s: want a number such as 10%%",
                            value);
    }
    o->fail_over = percent / 100;
    return EXIT_SUCCESS;
}

static int take(void *to, int option, const char *value) {
    struct options *o = to;
    if (source_take(&o->source, option, value)) {
        return EXIT_SUCCESS;
    }
    switch (option) {
    case 'b':
        o->has_before = true;
        return command_stretch("diff", "before", value, &o->before.from_s, &o->before.until_s);
    case 'a':
        o->has_after = true;
        return command_stretch("diff", "after", value, &o->after.from_s, &o->after.until_s);
    case 'n':
        o->before.node = value;
        break;
    case 'i':
        o->before.identity = o->after.identity = value;
        break;
    case 'f':
        return take_percent(o, value);
    default:
        o->json = true;
    }
    return EXIT_SUCCESS;
}

static int parse(int argc, char **argv, struct options *o) {
    static const struct option options[] = {
        SOURCE_OPTIONS,
        {"before", required_argument, NULL, 'b'},
        {"after", required_argument, NULL, 'a'},
        {"node", required_argument, NULL, 'n'},
        {"identity", required_argument, NULL, 'i'},
        {"fail-over", required_argument, NULL, 'f'},
        {"json", no_argument, NULL, 'j'},
        {NULL, 0, NULL, 0},
    };
    *o = (struct options){.fail_over = -1};
    int status = command_options(argc, argv, options, take, o);
    status = status == EXIT_SUCCESS ? command_at_most(argc, argv, 0) : status;
    status = status == EXIT_SUCCESS ? source_check("diff", &o->source) : status;
    if (status == EXIT_SUCCESS && (!o->has_before || !o->has_after)) {
        status = command_fail("diff", EXIT_USAGE, "--%s FROM..UNTIL is missing",
                              o->has_before ? "after" : "before");
    }
    return status;
}

// -- the limit ------------------------------------------------------------------------------------

static bool past(const struct options *o, const struct compare_row *row, const char *what,
                 const struct compare_number *n) {
    if (!n->sure || diff_share(n) <= o->fail_over) {
        return false;
    }
    command_fail("diff", EXIT_FAILURE, "%s of %s has grown by %.1f %%, more than %g %%", what,
                 strcmp(row->identity, "_total") == 0 ? "all requests" : row->identity,
                 100 * diff_share(n), 100 * o->fail_over);
    return true;
}

static int judge(const struct options *o, const struct compare *c) {
    int status = EXIT_SUCCESS;
    for (uint32_t i = 0; i < c->count && o->fail_over >= 0; i++) {
        const struct compare_row *row = &c->rows[i];
        if (diff_whole(row) && (past(o, row, "the mean", &row->mean_ns) ||
                                past(o, row, "p50", &row->quantiles_ns[0]) ||
                                past(o, row, "p99", &row->quantiles_ns[2]))) {
            status = EXIT_FAILURE;
        }
    }
    return status;
}

// -- the command ----------------------------------------------------------------------------------

static int show(const struct options *o, struct query_sums *before, struct query_sums *after,
                struct query_sums *kept) {
    struct compare compare = {0}, slow = {0};
    struct buffer out = buffer_make(OUTPUT_BYTES);
    if (before->count == 0 || after->count == 0) {
        return command_fail("diff", EXIT_FAILURE, "no complete requests in the time of --%s",
                            before->count == 0 ? "before" : "after");
    }
    report_clean(before);
    report_clean(after);
    report_clean(kept);
    int status = EXIT_SUCCESS;
    if (!compare_make(&compare, before, after) || !compare_slow(&slow, after, kept, "_total")) {
        status = command_fail("diff", EXIT_FAILURE, "no memory");
    } else if (o->json) {
        compare_json(&compare, before, after, &slow, NULL, &out);
    } else {
        diff_table(&(struct diff_shown){&compare, before, after, &slow, "_total", false}, &out);
    }
    status = status == EXIT_SUCCESS ? command_print("diff", &out) : status;
    status = status == EXIT_SUCCESS ? judge(o, &compare) : status;
    compare_free(&compare);
    compare_free(&slow);
    return status;
}

int diff_main(int argc, char **argv) {
    struct options o;
    struct store *store;
    struct query_sums before = {0}, after = {0}, kept = {0};
    char node[NODE_TEXT_BYTES];
    int status = parse(argc, argv, &o);
    status = status == EXIT_SUCCESS ? node_open("diff", &o.source, &o.before.node, node, &store)
                                    : status;
    if (status != EXIT_SUCCESS) {
        return status;
    }
    o.after.node = o.before.node;
    o.before.quantiles_of = o.after.quantiles_of = o.json ? NULL : "_total";
    status = query_sums(store, &o.before, &before) && query_sums(store, &o.after, &after) &&
                     query_slow_sums(store, &o.after, &kept)
                 ? show(&o, &before, &after, &kept)
                 : command_fail("diff", EXIT_FAILURE, "cannot read %s (%s)", o.source.name,
                                store_error(store));
    query_sums_free(&before);
    query_sums_free(&after);
    query_sums_free(&kept);
    store_close(store);
    return status;
}
