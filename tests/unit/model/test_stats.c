// SPDX-License-Identifier: Apache-2.0
#include "model/stats/stats.h"

#include "base/limits.h"
#include "model/directory/directory.h"
#include "unit.h"

static void a_key_has_one_row(void **state) {
    (void)state;
    struct stats *s = stats_new();
    // keys that differ in one part each, at the ends of what each part may be
    const int64_t buckets[] = {0, 10, 1795168800, 8589934580};
    const uint16_t nodes[] = {0, 1, LIMIT_NODES - 1}, identities[] = {0, 1, LIMIT_IDENTITIES + 2},
                   tiers[] = {0, 1, LIMIT_TIER_NAMES};
    struct stat_row *rows[4 * 27];
    uint32_t n = 0;
    for (int b = 0; b < 4; b++) {
        for (int i = 0; i < 27; i++) {
            struct stat_key key = {buckets[b], nodes[i % 3], identities[i / 3 % 3], tiers[i / 9]};
            rows[n] = stats_row(s, key);
            assert_non_null(rows[n]);
            assert_int_equal(rows[n]->calls, 0);
            rows[n]->calls = n + 1;
            n++;
        }
    }
    assert_int_equal(stats_rows(s), n);
    for (uint32_t k = 0; k < n; k++) { // found again, in the order made, at the same place
        const struct stat_row *row = stats_row_at(s, k);
        assert_int_equal(row->calls, k + 1);
        assert_ptr_equal(row, rows[k]);
        assert_ptr_equal(stats_row(s, row->key), rows[k]);
        assert_int_equal(row->key.bucket_start, buckets[k / 27]);
        assert_int_equal(row->key.node, nodes[k % 3]);
        assert_int_equal(row->key.identity, identities[k / 3 % 3]);
        assert_int_equal(row->key.tier, tiers[k / 9 % 3]);
    }
    assert_int_equal(stats_rows(s), n);
    stats_free(s);
    stats_free(NULL);
}

// Every bit of every part tells keys apart.
static void every_bit_of_a_key_counts(void **state) {
    (void)state;
    struct stats *s = stats_new();
    uint32_t n = 0;
    stats_row(s, (struct stat_key){0, 0, 0, 0});
    for (uint32_t bit = 1; bit < LIMIT_TIER_NAMES; bit *= 2) {
        stats_row(s, (struct stat_key){0, 0, 0, (uint16_t)bit});
        n++;
    }
    for (uint32_t bit = 1; bit < LIMIT_IDENTITIES; bit *= 2) {
        stats_row(s, (struct stat_key){0, 0, (uint16_t)bit, 0});
        n++;
    }
    for (uint32_t bit = 1; bit < LIMIT_NODES; bit *= 2) {
        stats_row(s, (struct stat_key){0, (uint16_t)bit, 0, 0});
        n++;
    }
    for (int64_t bit = 1; bit < 1LL << 33; bit *= 2) {
        stats_row(s, (struct stat_key){bit, 0, 0, 0});
        n++;
    }
    assert_int_equal(stats_rows(s), n + 1);
    stats_free(s);
}

static void counting(void **state) {
    (void)state;
    struct stats *s = stats_new();
    struct stat_row *row = stats_row(s, (struct stat_key){10, 0, 0, 0});
    assert_true(row->min_ns == UINT64_MAX);
    stats_count(row, 1000);
    stats_count(row, 3000);
    stats_count(row, 2000);
    assert_int_equal(row->calls, 3);
    assert_int_equal(row->duration_ns, 6000);
    assert_true(row->square_ns == 14e6);
    assert_int_equal(row->min_ns, 1000);
    assert_int_equal(row->max_ns, 3000);
    assert_int_equal(histogram_count(&row->durations), 3);
    assert_true(histogram_quantile(&row->durations, 0.5) > 1900 &&
                histogram_quantile(&row->durations, 0.5) < 2100);
    assert_int_equal(row->requests, 0);
    assert_int_equal(row->total_ns, 0);
    // without memory for the histogram's window the rest is counted
    fail_alloc_at(0);
    stats_count(row, 1ULL << 50);
    fail_alloc_at(-1);
    assert_int_equal(row->calls, 4);
    assert_int_equal(row->max_ns, 1ULL << 50);
    stats_free(s);
}

static void reset_forgets_and_keeps_memory(void **state) {
    (void)state;
    struct stats *s = stats_new();
    for (int round = 0; round < 3; round++) {
        fail_alloc_at(round == 0 ? -1 : 0); // the second time all memory is there
        for (uint16_t i = 0; i < 1000; i++) {
            struct stat_row *row = stats_row(s, (struct stat_key){10 * round, 0, i, 0});
            assert_non_null(row);
            assert_int_equal(row->calls, 0);
            assert_true(row->min_ns == UINT64_MAX);
            assert_int_equal(histogram_count(&row->durations), 0);
            assert_int_equal(row->key.bucket_start, 10 * round);
            stats_count(row, 500);
            assert_int_equal(histogram_count(&row->durations), 1);
        }
        fail_alloc_at(-1);
        stats_ledger(s, 10, 1)->messages = 5;
        assert_int_equal(stats_rows(s), 1000);
        assert_int_equal(stats_ledgers(s), 1);
        stats_reset(s);
        assert_int_equal(stats_rows(s), 0);
        assert_int_equal(stats_ledgers(s), 0);
        assert_int_equal(stats_ledger(s, 10, 1)->messages, 0);
        stats_reset(s);
    }
    stats_free(s);
}

static void the_cap(void **state) {
    (void)state;
    struct stats *s = stats_new();
    for (uint32_t i = 0; i < LIMIT_STAT_ROWS; i++) {
        assert_non_null(stats_row(s, (struct stat_key){i / 1000, 0, (uint16_t)(3 + i % 1000), 3}));
    }
    assert_null(stats_row(s, (struct stat_key){0, 1, 3, 3}));
    assert_non_null(stats_row(s, (struct stat_key){0, 0, 3, 3})); // a known one
    assert_int_equal(stats_rows(s), LIMIT_STAT_ROWS);
    for (uint32_t i = 0; i < LIMIT_STAT_ROWS / 2; i++) {
        assert_non_null(stats_row(s, (struct stat_key){1000 + i, 0, IDENTITY_OTHER, 4}));
    }
    assert_null(stats_row(s, (struct stat_key){0, 1, IDENTITY_OTHER, 3}));
    stats_add_totals(s); // always has room
    assert_int_equal(stats_rows(s), 2 * LIMIT_STAT_ROWS + LIMIT_STAT_ROWS / 1000);
    stats_reset(s);
    assert_non_null(stats_row(s, (struct stat_key){0, 1, 3, 3}));
    stats_free(s);
}

static void ledgers(void **state) {
    (void)state;
    struct stats *s = stats_new();
    for (uint16_t node = 0; node < 100; node++) {
        for (int b = 0; b < 3; b++) {
            stats_ledger(s, b * 10, node)->messages += node * 3u + (unsigned)b;
        }
    }
    assert_int_equal(stats_ledgers(s), 300);
    for (uint32_t i = 0; i < 300; i++) {
        const struct ledger_row *row = stats_ledger_at(s, i);
        assert_int_equal(row->messages, i);
        assert_int_equal(row->node, i / 3);
        assert_int_equal(row->bucket_start, i % 3 * 10);
        assert_int_equal(row->dropped_messages, 0);
    }
    assert_ptr_equal(stats_ledger(s, 0, 0), stats_ledger_at(s, 0));
    assert_int_equal(stats_ledgers(s), 300);
    assert_false(stats_overflowed(s));
    stats_free(s);
}

static uint64_t messages_of(const struct stats *s, uint16_t node) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < stats_ledgers(s); i++) {
        sum += stats_ledger_at(s, i)->node == node ? stats_ledger_at(s, i)->messages : 0;
    }
    return sum;
}

// Past the cap a loss is counted at another time, but never as another node's.
static void ledgers_cap(void **state) {
    (void)state;
    struct stats *s = stats_new();
    for (int64_t b = 0; b < LIMIT_STAT_ROWS; b++) {
        stats_ledger(s, b, (uint16_t)(b % 2))->messages++;
    }
    assert_false(stats_overflowed(s));
    for (int64_t b = 0; b < 1000; b++) {
        for (uint16_t node = 0; node < LIMIT_NODES; node++) {
            stats_ledger(s, LIMIT_STAT_ROWS + b, node)->messages++;
        }
    }
    assert_true(stats_overflowed(s));
    assert_true(stats_ledgers(s) < LIMIT_STAT_ROWS + LIMIT_NODES);
    assert_int_equal(stats_ledger(s, 5, 1)->messages, 1); // found again
    for (uint16_t node = 0; node < LIMIT_NODES; node++) {
        assert_int_equal(messages_of(s, node), 1000 + (node < 2 ? LIMIT_STAT_ROWS / 2 : 0));
    }
    stats_reset(s);
    assert_false(stats_overflowed(s));
    assert_int_equal(stats_ledger(s, 5, 1)->messages, 0);
    stats_free(s);
}

static void without_memory(void **state) {
    (void)state;
    struct stats *s = NULL;
    for (long fail = 0; !s; fail++) {
        assert_true(fail < 100);
        fail_alloc_at(fail);
        s = stats_new();
        fail_alloc_at(-1);
    }
    // whichever allocation fails, a new row is there or is not, and all that are there stay
    uint32_t made = 0;
    for (uint16_t i = 0; i < 1100; i++) {
        for (long fail = 0; fail < 3; fail++) {
            fail_alloc_at(fail);
            struct stat_row *row = stats_row(s, (struct stat_key){10, 0, i, 1});
            fail_alloc_at(-1);
            if (row) {
                assert_int_equal(row->key.identity, i);
                made = i + 1u;
                break;
            }
            assert_int_equal(stats_rows(s), made);
        }
        assert_int_equal(stats_rows(s), i + 1);
    }
    for (uint16_t i = 0; i < 1100; i++) {
        assert_int_equal(stats_row_at(s, i)->key.identity, i);
    }
    fail_alloc_at(0);
    stats_ledger(s, 10, 0)->messages = 7; // for nobody
    fail_alloc_at(-1);
    assert_int_equal(stats_ledgers(s), 0);
    assert_int_equal(stats_ledger(s, 10, 0)->messages, 0);
    fail_alloc_at(0);
    for (uint16_t i = 0; i < 100; i++) { // past the index's first size
        assert_non_null(stats_ledger(s, 10, i));
        stats_ledger(s, 20, 0)->messages = i;
    }
    fail_alloc_at(-1);
    assert_int_equal(stats_ledgers(s), 48);
    for (uint16_t i = 0; i < 48; i++) {
        assert_true(stats_ledger_at(s, i)->messages == 0 || stats_ledger_at(s, i)->node == 0);
    }
    assert_true(stats_overflowed(s));
    stats_free(s);
}

// -- paths ----------------------------------------------------------------------------------------

static void every_bit_of_a_path_counts(void **state) {
    (void)state;
    struct stats *s = stats_new();
    uint32_t n = 0;
    stats_path(s, 0, 0, 0, 0)->calls = ++n;
    for (uint32_t path = 1; path < LIMIT_PATHS; path *= 2) {
        stats_path(s, 0, 0, 0, path)->calls = ++n;
    }
    stats_path(s, 0, 0, 0, PATH_OTHER)->calls = ++n;
    for (uint32_t identity = 1; identity < LIMIT_IDENTITIES + IDENTITIES_FIXED; identity *= 2) {
        stats_path(s, 0, 0, (uint16_t)identity, 0)->calls = ++n;
    }
    for (uint32_t node = 1; node < LIMIT_NODES; node *= 2) {
        stats_path(s, 0, (uint16_t)node, 0, 0)->calls = ++n;
    }
    for (int64_t bucket = 1; bucket < 1LL << 31; bucket *= 2) {
        stats_path(s, bucket, 0, 0, 0)->calls = ++n;
    }
    assert_int_equal(stats_paths(s), n);
    for (uint32_t i = 0; i < n; i++) { // found again, in the order made, at the same place
        const struct path_row *row = stats_path_at(s, i);
        assert_int_equal(row->calls, i + 1);
        assert_true(row->min_ns == UINT64_MAX && row->max_ns == 0 && row->total_ns == 0);
        assert_ptr_equal(stats_path(s, row->bucket_start, row->node, row->identity, row->path),
                         row);
    }
    assert_int_equal(stats_paths(s), n);
    assert_false(stats_empty(s));
    stats_reset(s);
    assert_true(stats_empty(s));
    assert_int_equal(stats_paths(s), 0);
    assert_int_equal(stats_path(s, 0, 0, 0, 1)->calls, 0); // not what stood there before
    stats_free(s);
}

// Past the cap known rows are found, and each node and bucket has a row for what has none.
static void the_cap_of_paths(void **state) {
    (void)state;
    struct stats *s = stats_new();
    uint32_t n = 0;
    while (stats_path(s, 10, 1, (uint16_t)(n / LIMIT_PATHS), 1 + n % LIMIT_PATHS)) {
        n++;
    }
    assert_int_equal(stats_paths(s), n);
    assert_int_equal(n, LIMIT_PATH_ROWS - 1000);
    assert_null(stats_path(s, 10, 1, 0, PATH_OTHER));
    assert_null(stats_path(s, 10, 1, IDENTITY_OTHER, LIMIT_PATHS + 1));
    assert_non_null(stats_path(s, 10, 1, 0, 1));
    for (int64_t bucket = 10; bucket <= 30; bucket += 10) {
        for (uint16_t node = 0; node < LIMIT_NODES; node++) {
            assert_non_null(stats_path(s, bucket, node, IDENTITY_OTHER, PATH_OTHER));
        }
    }
    for (int64_t bucket = 1000; stats_path(s, bucket, 0, IDENTITY_OTHER, PATH_OTHER); bucket++) {
    }
    assert_int_equal(stats_paths(s), LIMIT_PATH_ROWS);
    stats_reset(s);
    assert_non_null(stats_path(s, 10, 1, 0, PATH_OTHER));
    stats_free(s);
}

static void costs(void **state) {
    (void)state;
    struct stats *s = stats_new();
    for (int round = 0; round < 2; round++) {
        uint32_t n = 0;
        for (int64_t bucket = 0; bucket < 20; bucket += 10) {
            for (uint16_t node = 0; node < LIMIT_STAT_ROWS / (2 * LIMIT_TIER_NAMES); node++) {
                for (uint16_t tier = 0; tier < LIMIT_TIER_NAMES; tier++) {
                    struct cost_row *row = stats_cost(s, bucket, node, tier);
                    assert_true(row && row->messages == 0 && row->bytes == 0);
                    row->messages = ++n;
                }
            }
        }
        assert_int_equal(n, LIMIT_STAT_ROWS);
        assert_int_equal(stats_costs(s), n);
        assert_null(stats_cost(s, 20, 0, 0));
        for (uint32_t i = 0; i < n; i++) {
            const struct cost_row *row = stats_cost_at(s, i);
            assert_int_equal(row->messages, i + 1);
            assert_ptr_equal(stats_cost(s, row->bucket_start, row->node, row->tier), row);
        }
        assert_false(stats_empty(s));
        stats_reset(s);
        assert_true(stats_empty(s));
        assert_int_equal(stats_costs(s), 0);
    }
    stats_free(s);
}

// Whichever allocation fails, a new row of a path or tier is there or is not, and all that are
// there stay.
static void rows_without_memory(void **state) {
    (void)state;
    struct stats *s = stats_new();
    for (uint32_t i = 0; i < 2100; i++) {
        for (long fail = 0;; fail++) {
            assert_true(fail < 10);
            fail_alloc_at(fail);
            struct path_row *path = stats_path(s, 10, 0, 5, i);
            struct cost_row *cost = stats_cost(s, 10, (uint16_t)(i / 500), (uint16_t)(i % 500));
            fail_alloc_at(-1);
            if (path) {
                assert_int_equal(path->path, i);
            }
            if (cost) {
                assert_int_equal(cost->tier, i % 500);
            }
            if (path && cost) {
                break;
            }
            assert_in_range(stats_paths(s), i, i + 1);
            assert_in_range(stats_costs(s), i, i + 1);
        }
    }
    for (uint32_t i = 0; i < 2100; i++) {
        assert_int_equal(stats_path_at(s, i)->path, i);
        assert_int_equal(stats_cost_at(s, i)->tier, i % 500);
    }
    stats_free(s);
}

// -- kept requests --------------------------------------------------------------------------------

static void kept(void **state) {
    (void)state;
    struct stats *s = stats_new();
    struct kept_span spans[40];
    for (uint32_t i = 0; i < 40; i++) {
        spans[i] = (struct kept_span){.start = 100 * i, .pid = i};
    }
    for (int round = 0; round < 3; round++) {
        assert_true(stats_empty(s));
        for (uint32_t i = 0; i < 40; i++) {
            struct kept_request request = {
                .bucket_start = 10, .duration = i, .count = i % 7, .spans = 2 * i, .first = 12345};
            assert_true(stats_keep(s, &request, spans + i % 30));
        }
        assert_int_equal(stats_kept(s), 40);
        assert_false(stats_empty(s));
        for (uint32_t i = 0; i < 40; i++) {
            const struct kept_request *request = stats_kept_at(s, i);
            assert_true(request->bucket_start == 10 && request->duration == i &&
                        request->count == i % 7 && request->spans == 2 * i);
            for (uint32_t k = 0; k < request->count; k++) {
                assert_int_equal(stats_kept_spans(s, i)[k].pid, i % 30 + k);
            }
        }
        stats_reset(s);
        assert_int_equal(stats_kept(s), 0);
    }
    stats_free(s);
}

static void the_cap_of_kept(void **state) {
    (void)state;
    struct stats *s = stats_new();
    static struct kept_span spans[LIMIT_KEPT_SPANS];
    struct kept_request request = {.count = LIMIT_KEPT_SPANS};
    for (int round = 0; round < 2; round++) {
        uint32_t n = 0;
        while (stats_keep(s, &request, spans)) {
            n++;
        }
        assert_int_equal(n, LIMIT_KEPT_BYTES / (sizeof request + sizeof spans));
        assert_int_equal(stats_kept(s), n);
        struct kept_request small = {.duration = 5};
        assert_true(stats_keep(s, &small, NULL)); // has room still
        assert_int_equal(stats_kept_at(s, n)->duration, 5);
        fail_alloc_at(-1);
        stats_reset(s);
        assert_true(stats_keep(s, &request, spans));
        assert_true(fail_alloc_count() > 0); // so much memory was given back
        stats_reset(s);
    }
    stats_free(s);
}

static void kept_without_memory(void **state) {
    (void)state;
    struct stats *s = stats_new();
    struct kept_span spans[2] = {{.pid = 1}, {.pid = 2}};
    uint32_t refused = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        struct kept_request request = {.duration = i, .count = 2};
        spans[0].start = i;
        for (long fail = 0;; fail++) {
            fail_alloc_once(fail);
            bool done = stats_keep(s, &request, spans);
            fail_alloc_at(-1);
            if (done) {
                break;
            }
            refused++;
            assert_int_equal(stats_kept(s), i);
        }
    }
    assert_in_range(refused, 10, 30);
    for (uint32_t i = 0; i < 1000; i++) {
        const struct kept_request *request = stats_kept_at(s, i);
        // and no spans of those refused lie between
        assert_true(request->duration == i && request->first == 2 * i);
        assert_true(stats_kept_spans(s, i)[0].start == i && stats_kept_spans(s, i)[1].pid == 2);
    }
    stats_free(s);
}

// One node that has rows, kept requests and histograms without end leaves others what they need;
// and all of it goes when it is written.
static void a_share_for_each_node(void **state) {
    (void)state;
    enum { HOG = 3, OTHER = 200 };
    static struct kept_span spans[LIMIT_KEPT_SPANS];
    struct stats *s = stats_new();
    stats_share(s);
    for (int round = 0; round < 2; round++) {
        uint32_t n = 0;
        for (struct stat_row *row;
             (row = stats_row(s, (struct stat_key){10 * (n / 200), HOG, 77, (uint16_t)(n % 200)}));
             n++) {
            for (unsigned bit = 0; bit < 35; bit++) {
                stats_count(row, 1ULL << bit);
            }
            assert_int_equal(row->calls, 35);
            assert_int_equal(histogram_count(&row->durations), 35);
        }
        assert_int_equal(n, LIMIT_STAT_ROWS / 4 * 3);
        assert_true(stats_coarse(s) && stats_overflowed(s));
        for (n = 0; stats_path(s, 10, HOG, (uint16_t)(n / LIMIT_PATHS), 1 + n % LIMIT_PATHS); n++) {
        }
        while (stats_cost(s, n++, HOG, 1)) {
        }
        while (
            stats_keep(s, &(struct kept_request){.node = HOG, .count = LIMIT_KEPT_SPANS}, spans)) {
        }
        for (uint16_t i = 0; i < 1000; i++) {
            struct stat_row *row =
                stats_row(s, (struct stat_key){10 * (i / 100), OTHER, (uint16_t)(4 + i % 100), 5});
            assert_non_null(row);
            stats_count(row, 1000 + i);
            stats_count(row, 1000000 + i);
            assert_int_equal(row->durations.coarse, 0);
            assert_non_null(stats_path(s, 10, OTHER, 4, 1U + i));
            assert_non_null(stats_cost(s, 10, OTHER, i));
        }
        assert_true(
            stats_keep(s, &(struct kept_request){.node = OTHER, .count = LIMIT_KEPT_SPANS}, spans));
        assert_non_null(stats_row(s, (struct stat_key){10, OTHER, IDENTITY_OTHER, 5}));
        stats_add_totals(s);
        struct stat_row *total = stats_row(s, (struct stat_key){10, OTHER, IDENTITY_TOTAL, 5});
        assert_int_equal(total->calls, 200);
        assert_int_equal(histogram_count(&total->durations), 200);
        assert_int_equal(stats_row(s, (struct stat_key){10, HOG, IDENTITY_TOTAL, 5})->calls, 35);
        // the ledger tells of whose rows are coarse, and how many
        uint64_t coarse[2] = {0}, told[2] = {0};
        for (uint32_t i = 0; i < stats_rows(s); i++) {
            const struct stat_row *row = stats_row_at(s, i);
            coarse[row->key.node == HOG] += row->durations.coarse > 0;
        }
        for (uint32_t i = 0; i < stats_ledgers(s); i++) {
            told[stats_ledger_at(s, i)->node == HOG] += stats_ledger_at(s, i)->coarse_rows;
        }
        assert_true(coarse[1] > 0 && coarse[1] == told[1] && coarse[0] == told[0]);
        stats_reset(s);
        assert_false(stats_coarse(s) || stats_overflowed(s));
        fail_alloc_at(0);
        // so it has given its memory back
        assert_null(stats_row(s, (struct stat_key){10, OTHER, 4, 5}));
        fail_alloc_at(-1);
    }
    stats_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_has_one_row),
        cmocka_unit_test(every_bit_of_a_key_counts),
        cmocka_unit_test(counting),
        cmocka_unit_test(reset_forgets_and_keeps_memory),
        cmocka_unit_test(the_cap),
        cmocka_unit_test(ledgers),
        cmocka_unit_test(ledgers_cap),
        cmocka_unit_test(without_memory),
        cmocka_unit_test(every_bit_of_a_path_counts),
        cmocka_unit_test(the_cap_of_paths),
        cmocka_unit_test(costs),
        cmocka_unit_test(rows_without_memory),
        cmocka_unit_test(kept),
        cmocka_unit_test(the_cap_of_kept),
        cmocka_unit_test(kept_without_memory),
        cmocka_unit_test(a_share_for_each_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
