// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text_time.h"
#include "base/time_math.h"
#include "store/query_slow.h"
#include "tool/command.h"
#include "tool/diff/print.h"
#include "tool/node.h"
#include "tool/report/print.h"
#include "tool/text.h"

enum { OUTPUT_BYTES = 64 << 20, SECOND_NS = 1000000000 };

const char report_help[] =
    "usage: kprof report --db FILE [OPTIONS]\n"
    "       kprof report --from URL [OPTIONS]\n"
    "\n"
    "Shows where the time of requests goes: for each identity (row) the mean time per request in\n"
    "each tier (column), the slowest identity first. What these numbers rest on stands below. When\n"
    "they cannot be trusted, the reasons stand above. Under the totals: the time in mailboxes and\n"
    "run queues before a tier began. Below the table: the notes of that time (kprof note).\n"
    "\n"
    "  --db FILE       the database that kprof-collector writes\n"
    "  --since TIME    from this time on: a length back from now such as 30m or 2d, or a time such\n"
    "                  as 12:00, \"yesterday 14:30\", \"2026-11-20 10:00\" (local time) or\n"
    "                  2026-11-20T10:00Z (UTC; default: all there is)\n"
    "  --until TIME    up to this time (default: now)\n"
    "  --node NAME     only this node (default: all nodes together); as much of a name as tells it\n"
    "                  from the others\n"
    "  --identity NAME only this identity\n"
    "  --wait          the waiting before each tier in the table, instead of its time\n"
    "  --percentiles   p50, p90, p99 and p99.9 of requests instead of the time in tiers, and what\n"
    "                  makes the slow ones slow that were kept: the parts of the difference to the\n"
    "                  mean, the largest first\n"
    "  --tier NAME     the calls of this tier alone, as --percentiles has requests, and its own part\n"
    "                  in the slow requests that called it\n"
    "  --compare-to WHEN\n"
    "                  against another time that is as long, as kprof diff does: before (right before\n"
    "                  it), \"1h before\" (so much earlier), yesterday, \"last week\"\n"
    "  --cost          what tracing costs, tier by tier, and advice where it is much\n"
    "  --json          one JSON object instead of the table\n"
    "\n" SOURCE_HELP "\n"
    "The JSON object has from and until (UTC), resolution_s, tiers and identities (in the order of\n"
    "the table), rows, ledger, bias, stale_tiers, findings and notes.\n"
    "rows: one for each identity and tier with calls; \"_total\" is all identities, and the whole\n"
    "request. Each has identity, tier, requests, calls, errors, async_calls, total_us, self_us,\n"
    "async_us, wait_us, gc_us, off_cpu_us; waiting_us, the waiting until calls began, each moment of\n"
    "a request once, and of _total parallel_us: what counts more than once. self_us of _total is what\n"
    "no tier covers. So self_us and waiting_us of all tiers, and self_us less parallel_us of _total,\n"
    "add up to total_us of _total. Of all calls mean_us, stddev_us, min_us, max_us, p25_us, p50_us,\n"
    "p75_us, p90_us, p95_us, p99_us, p999_us; and the table's numbers: per_request_us,\n"
    "async_per_request_us, wait_per_request_us, waiting_per_request_us.\n"
    "slow, with --percentiles or --tier: what makes the slow ones slow. Each has identity, requests\n"
    "(that were kept), mean_us (of all), slow_us (of these), parts: kind (self, waiting, uncovered,\n"
    "parallel), tier, mean_us, slow_us.\n"
    "With --tier they are the slow requests that called it, and the times its self time and the\n"
    "waiting before it, a request that called it.\n"
    "ledger: the columns of the view of that name. Its verdict is ok, unclear, lossy or paused.\n"
    "bias: \"low\" where so many long requests are missing that the true times are higher, else null.\n"
    "stale_tiers: where calls came after their request was over: tier, calls, stale_calls.\n"
    "findings: what stands above the table. Each has kind (paused, lossy, unclear, incomplete,\n"
    "biased, stale, coarse, overloaded, dropped, lent, lost_tokens, expired, unwritten, ambiguous,\n"
    "unmarked, reloaded, untraced), level (problem: something is not in the numbers; warning: they\n"
    "may be wrong; note), since (start of the first bucket in which it was so), title, text,\n"
    "counts, meaning and advice (what to do). A count has name (a column of the ledger; where kind\n"
    "is stale, a tier), count, of (how many in all) and text. A field without a value is null.\n"
    "notes: those of that time, the latest first, 200 at most. Each has id, at (UTC), at_s, node\n"
    "(null: all nodes) and text.\n"
    "\n"
    "With --cost it has from, until, resolution_s, tiers (most bytes first), none, all and estimate.\n"
    "tiers: tier, messages, bytes, messages_share and bytes_share (of the stream, 0 to 1), cost_us\n"
    "(estimated, in the node), calls (of complete requests), errors, bytes_per_call,\n"
    "cost_per_call_us, cost_share (of the tier's mean time), advice: a list of sample,\n"
    "returns_none and identity_patterns; and findings: kind (of these, or keep_returns), text and\n"
    "advice, as below the table.\n"
    "none and all: what names no tier, and the whole stream. estimate: the constants.\n"
    "What is not known is null.\n"
    "\n"
    "With --compare-to it is that of kprof diff.\n"
    "\n"
    "Exit status: 0, 1 when there is no data or no database, 2 when the command line is wrong.\n";

// -- the command ----------------------------------------------------------------------------------

struct options {
    struct source source;
    struct query query;
    enum report_of of;
    const char *tier, *against; // NULL: not asked for
    bool percentiles;
    bool cost;
    bool json;
};

static int check(struct options *o) {
    if (source_check("report", &o->source) != EXIT_SUCCESS) {
        return EXIT_USAGE;
    }
    if (command_range("report", o->query.from_s, o->query.until_s) != EXIT_SUCCESS) {
        return EXIT_USAGE;
    }
    if (o->cost && (o->query.identity || o->of == REPORT_WAIT)) {
        return command_fail("report", EXIT_USAGE,
                            "--cost is a table of its own, of all identities: not with %s",
                            o->query.identity ? "--identity" : "--wait");
    }
    if ((o->percentiles || o->tier || o->against) && (o->cost || o->of == REPORT_WAIT)) {
        return command_fail("report", EXIT_USAGE, "%s is a table of its own: not with %s",
                            o->against ? "--compare-to"
                            : o->tier  ? "--tier"
                                       : "--percentiles",
                            o->cost ? "--cost" : "--wait");
    }
    if (o->against && o->query.from_s == INT64_MIN) {
        return command_fail("report", EXIT_USAGE, "--compare-to: of which time? Say --since TIME");
    }
    return EXIT_SUCCESS;
}

static int take(void *to, int option, const char *value) {
    struct options *o = to;
    if (source_take(&o->source, option, value)) {
        return EXIT_SUCCESS;
    }
    switch (option) {
    case 's':
        return command_time("report", "since", value, false, &o->query.from_s);
    case 'u':
        return command_time("report", "until", value, true, &o->query.until_s);
    case 'n':
        o->query.node = value;
        break;
    case 'i':
        o->query.identity = value;
        break;
    case 'w':
        o->of = REPORT_WAIT;
        break;
    case 'c':
        o->cost = true;
        break;
    case 'p':
        o->percentiles = true;
        break;
    case 't':
        o->tier = value;
        break;
    case 'a':
        o->against = value;
        break;
    default:
        o->json = true;
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
        {"wait", no_argument, NULL, 'w'},
        {"cost", no_argument, NULL, 'c'},
        {"percentiles", no_argument, NULL, 'p'},
        {"tier", required_argument, NULL, 't'},
        {"compare-to", required_argument, NULL, 'a'},
        {"json", no_argument, NULL, 'j'},
        {NULL, 0, NULL, 0},
    };
    *o = (struct options){.query = {.from_s = INT64_MIN, .until_s = INT64_MAX}};
    int status = command_options(argc, argv, options, take, o);
    status = status == EXIT_SUCCESS ? command_at_most(argc, argv, 0) : status;
    return status == EXIT_SUCCESS ? check(o) : status;
}

static void add_node(void *arg, const char *node) {
    struct buffer *out = arg;
    buffer_printf(out, "%s%s", out->len > 0 ? ", " : "", node);
}

// Nothing was found: says what there is instead.
static int no_data(struct store *store, const struct options *o) {
    char from[TEXT_TIME_BYTES], until[TEXT_TIME_BYTES];
    int64_t first, last;
    if (!query_extent(store, &first, &last)) {
        return command_fail("report", EXIT_FAILURE, "%s holds no data yet", o->source.name);
    }
    struct buffer nodes = buffer_make(1024); // more names than this are left out
    query_nodes(store, add_node, &nodes);
    buffer_append(&nodes, "", 1);
    int status = command_fail(
        "report", EXIT_FAILURE,
        "no complete requests%s%s%s%s in this time; %s has data from %s to %s, of %s",
        o->query.node ? " of node " : "", o->query.node ? o->query.node : "",
        o->query.identity ? " with identity " : "", o->query.identity ? o->query.identity : "",
        o->source.name, text_time_format(time_of_seconds(first), false, from),
        text_time_format(time_of_seconds(last), false, until),
        nodes.failed ? "many nodes" : (const char *)nodes.data);
    buffer_free(&nodes);
    return status;
}

static bool no_memory(struct buffer *out) {
    out->failed = true;
    return true;
}

static bool has_tier(const struct query_sums *sums, const char *tier) {
    bool found = false;
    for (uint32_t i = 0; i < sums->count; i++) {
        found = found || strcmp(sums->rows[i].tier, tier) == 0;
    }
    return found;
}

// What the database says of the time that is asked for.
struct found {
    struct query_sums sums;
    struct query_sums kept; // slow requests, with --percentiles or --tier
    struct costs costs;     // with --cost
    struct note_list notes;
};

// The times and what they rest on. Returns whether there is something to show, whatever became of
// it.
static bool show_times(const struct options *o, const struct report *report, struct found *f,
                       struct buffer *out) {
    struct compare slow = {0};
    bool details = o->percentiles || o->tier;
    const char *tier = o->tier ? o->tier : "_total";
    bool any = f->sums.count > 0 && has_tier(&f->sums, tier);
    if (details && !compare_slow(&slow, &f->sums, &f->kept, tier)) {
        return no_memory(out);
    }
    if (o->json) {
        report_json(report, o->tier, details ? &slow : NULL, &f->notes, out);
    } else if (any) {
        report_trust(report, out);
        details ? report_percentiles(report, tier, out) : report_table(report, o->of, out);
        diff_slow(&slow, tier, out);
        report_notes(&f->notes, out);
    } else if (f->sums.has_ledger) {
        report_trust(report, out);
        report_ledger(report, out);
    }
    compare_free(&slow);
    return any;
}

// The same for what tracing costs.
static bool show_cost(const struct options *o, const struct report *report, struct found *f,
                      struct buffer *out) {
    struct report_cost cost;
    bool any = f->costs.count > 0 || f->costs.stream_messages > 0;
    if (!report_cost_make(&cost, &f->costs, &f->sums)) {
        return no_memory(out);
    }
    if (o->json) {
        report_cost_json(&cost, out);
    } else if (any) {
        report_trust(report, out);
        report_cost_table(&cost, out);
    }
    report_cost_free(&cost);
    return any;
}

static int show(struct store *store, const struct options *o, struct found *f) {
    struct report report;
    struct buffer out = buffer_make(OUTPUT_BYTES);
    report_clean(&f->sums);
    report_clean(&f->kept);
    report_clean_costs(&f->costs);
    if (!report_make(&report, &f->sums)) {
        return command_fail("report", EXIT_FAILURE, "no memory");
    }
    bool any = o->cost ? show_cost(o, &report, f, &out) : show_times(o, &report, f, &out);
    int status = command_print("report", &out);
    if (!any && status == EXIT_SUCCESS) {
        status = no_data(store, o);
    }
    report_free(&report);
    return status;
}

// Against another time.
static int show_compared(const struct options *o, struct query_sums *before,
                         struct query_sums *after, struct query_sums *kept) {
    struct compare compare = {0}, slow = {0};
    struct buffer out = buffer_make(OUTPUT_BYTES);
    const char *tier = o->tier ? o->tier : "_total";
    int status = EXIT_SUCCESS;
    if (!has_tier(before, tier) || !has_tier(after, tier)) {
        return command_fail("report", EXIT_FAILURE, "--compare-to: no %s in the time %s",
                            o->tier ? "calls of that tier" : "complete requests",
                            has_tier(after, tier) ? "to compare with" : "asked for");
    }
    report_clean(before);
    report_clean(after);
    report_clean(kept);
    if (!compare_make(&compare, before, after) || !compare_slow(&slow, after, kept, tier)) {
        status = command_fail("report", EXIT_FAILURE, "no memory");
    } else if (o->json) {
        compare_json(&compare, before, after, &slow, o->tier, &out);
    } else {
        diff_table(&(struct diff_shown){&compare, before, after, &slow, tier, o->percentiles},
                   &out);
    }
    compare_free(&compare);
    compare_free(&slow);
    return status == EXIT_SUCCESS ? command_print("report", &out) : status;
}

static int compared(struct store *store, const struct options *o) {
    struct query before_q = o->query, after_q = o->query;
    struct query_sums before = {0}, after = {0}, kept = {0};
    int64_t from, until;
    before_q.quantiles_of = after_q.quantiles_of = o->json ? NULL : o->tier ? o->tier : "_total";
    after_q.until_s = o->query.until_s == INT64_MAX ? clock_wall() / SECOND_NS : o->query.until_s;
    const char *why = text_against_parse(o->against, time_of_seconds(after_q.from_s),
                                         time_of_seconds(after_q.until_s), &from, &until);
    if (why) {
        return command_fail("report", EXIT_USAGE, "--compare-to %s %s", o->against, why);
    }
    before_q.from_s = from / SECOND_NS;
    before_q.until_s = until / SECOND_NS;
    int status = query_sums(store, &before_q, &before) && query_sums(store, &after_q, &after) &&
                         query_slow_sums(store, &after_q, &kept)
                     ? show_compared(o, &before, &after, &kept)
                     : command_fail("report", EXIT_FAILURE, "cannot read %s (%s)", o->source.name,
                                    store_error(store));
    query_sums_free(&before);
    query_sums_free(&after);
    query_sums_free(&kept);
    return status;
}

static bool find(struct store *store, const struct options *o, struct found *f) {
    bool details = o->percentiles || o->tier;
    struct query q = o->query;
    struct note_filter of = {q.from_s, q.until_s, q.node,
                             o->json ? REPORT_JSON_NOTES : REPORT_NOTES + 1};
    q.quantiles_of = o->json    ? NULL
                     : !details ? "" // none
                     : o->tier  ? o->tier
                                : "_total";
    return query_sums(store, &q, &f->sums) &&
           (o->cost ? query_costs(store, &o->query, &f->costs)
                    : query_notes(store, &of, &f->notes)) &&
           (!details || query_slow_sums(store, &o->query, &f->kept));
}

static int plain(struct store *store, const struct options *o) {
    struct found f = {0};
    int status = find(store, o, &f) ? show(store, o, &f)
                                    : command_fail("report", EXIT_FAILURE, "cannot read %s (%s)",
                                                   o->source.name, store_error(store));
    costs_free(&f.costs);
    query_sums_free(&f.sums);
    query_sums_free(&f.kept);
    note_list_free(&f.notes);
    return status;
}

int report_main(int argc, char **argv) {
    struct options o;
    struct store *store;
    char node[NODE_TEXT_BYTES];
    int status = parse(argc, argv, &o);
    status = status == EXIT_SUCCESS ? node_open("report", &o.source, &o.query.node, node, &store)
                                    : status;
    if (status != EXIT_SUCCESS) {
        return status;
    }
    status = o.against ? compared(store, &o) : plain(store, &o);
    store_close(store);
    return status;
}
