// SPDX-License-Identifier: Apache-2.0
// What the engine is asked takes only the rows that are asked about. That these are the right ones
// is seen by 75_export.sh; rows that the store leaves out again when they have come are not.
#include "unit.h"

#include <string.h>

#include "export/questions.h"
#include "fail_alloc.h"

#define BOTH "one" QUERY_OR "it's"
#define BOTH_QUOTED "('one', 'it\\'s')"

static const struct question_scope everything = {.database = "kprof"};
static const struct piece hour = {3600, 7200, 10800};

// The text is valid until the next call.
static const char *rows_of(const struct question_scope *scope, const struct mirror_ask *ask) {
    static char text[8192];
    struct buffer out = buffer_make(sizeof text - 1);
    const struct question_file file = {"east", 5};
    question_rows(scope, ask, &file, 42, &out);
    assert_false(out.failed);
    memcpy(text, out.data, out.len);
    text[out.len] = 0;
    buffer_free(&out);
    return text;
}

static void has(const char *text, const char *part) {
    if (!strstr(text, part)) {
        fail_msg("no \"%s\" in %s", part, text);
    }
}

static void has_not(const char *text, const char *part) {
    if (strstr(text, part)) {
        fail_msg("\"%s\" in %s", part, text);
    }
}

static void statistics(void **state) {
    (void)state;
    struct mirror_ask ask = {.table = CHANGE_TIERS, .pieces = &hour, .piece_count = 1};
    const char *text = rows_of(&everything, &ask);
    has(text, "FROM kprof.tier_stats FINAL PREWHERE ((resolution_s = 3600 AND bucket_start >= "
              "toDateTime(7200) AND bucket_start < toDateTime(10800))) GROUP BY");
    has_not(text, "sumMap"); // without histograms
    ask.node = BOTH;
    has(rows_of(&everything, &ask), " AND node IN " BOTH_QUOTED " GROUP BY");
    ask.node = NULL;
    ask.identity = BOTH;
    has(rows_of(&everything, &ask), " AND identity IN " BOTH_QUOTED " GROUP BY");
    ask.tier = "db";
    has(rows_of(&everything, &ask), " AND tier IN ('db') GROUP BY");
    ask.counts = true;
    has(rows_of(&everything, &ask), "sumMap(histogram_keys, histogram_counts)");
    ask.counts_of = "o'db";
    has(rows_of(&everything, &ask), "sumMap(if(tier = 'o\\'db', histogram_keys");
    ask.table = CHANGE_LEDGER; // which has no identities
    has_not(rows_of(&everything, &ask), "identity");
    ask.piece_count = 0; // nothing, and not all
    has(rows_of(&everything, &ask), "WHERE (0)");
}

static void collectors(void **state) {
    (void)state;
    const struct mirror_ask asks[] = {
        {.table = CHANGE_TIERS, .pieces = &hour, .piece_count = 1},
        {.table = CHANGE_REQUESTS, .requests = MIRROR_LONGEST, .until_ns = INT64_MAX, .most = 20},
        {.table = CHANGE_SPANS, .requests = MIRROR_LONGEST, .until_ns = INT64_MAX, .most = 20}};
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
        has_not(rows_of(&everything, &asks[i]), "cluster");
        struct question_scope scope = {.database = "kprof", .collectors = BOTH};
        has(rows_of(&scope, &asks[i]), " AND collector IN " BOTH_QUOTED);
        scope.clusters = "eu";
        has(rows_of(&scope, &asks[i]), "HAVING argMax(cluster, seen) IN ('eu'))");
        scope.chosen = "us";
        has(rows_of(&scope, &asks[i]), "HAVING argMax(cluster, seen) IN ('eu'))");
        has(rows_of(&scope, &asks[i]), "HAVING argMax(cluster, seen) IN ('us'))");
    }
}

static void requests(void **state) {
    (void)state;
    const enum change_table tables[] = {CHANGE_REQUESTS, CHANGE_SPANS};
    for (int i = 0; i < 2; i++) {
        struct mirror_ask ask = {
            .table = tables[i], .until_ns = INT64_MAX, .most = 20, .node = BOTH, .identity = "get"};
        const char *text = rows_of(&everything, &ask);
        has(text, " AND node IN " BOTH_QUOTED " AND identity IN ('get') ORDER BY duration_ns DESC, "
                  "id LIMIT 20");
        has_not(text, "begin_ns >=");
        has_not(text, "begin_ns <");
        ask.from_ns = 7200 * 1000000000LL;
        ask.until_ns = 7201 * 1000000000LL;
        // a request stands in the bucket of its end
        has(rows_of(&everything, &ask), " AND bucket_start >= toDateTime(3600) AND begin_ns >= "
                                        "7200000000000 AND begin_ns < 7201000000000 AND node");
        ask.failed = true;
        has(rows_of(&everything, &ask), " AND outcome = 'error' ORDER BY");
        ask.requests = MIRROR_SLOW;
        has(rows_of(&everything, &ask), "LIMIT 20 BY identity");
        ask.requests = MIRROR_ONE;
        text = rows_of(&everything, &ask);
        has(text, "(collector = 'east' AND database_id = 5 AND ");
        has(text, "id = 42)");
        ask.requests = MIRROR_PARTS;
        has(rows_of(&everything, &ask),
            " AND NOT (collector = 'east' AND database_id = 5 AND id = 42)");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(statistics), cmocka_unit_test(collectors),
                                       cmocka_unit_test(requests)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
