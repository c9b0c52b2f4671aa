#include "model/stats.h"

#include "base/limits.h"
#include "unit.h"

static void a_key_has_one_row(void **state) {
    (void)state;
    struct stats *s = stats_new();
    // keys that differ in one part each, at the ends of what each part may be
    const int64_t buckets[] = {0, 10, 1795168800, 8589934580};
    const uint16_t nodes[] = {0, 1, LIMIT_NODES - 1}, identities[] = {0, 1, LIMIT_IDENTITIES + 2}, tiers[] = {0, 1, LIMIT_TIER_NAMES};
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
    assert_true(histogram_quantile(&row->durations, 0.5) > 1900 && histogram_quantile(&row->durations, 0.5) < 2100);
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
        assert_non_null(stats_row(s, (struct stat_key){i / 1000, 0, (uint16_t)(i % 1000), 3}));
    }
    assert_null(stats_row(s, (struct stat_key){0, 1, 0, 3}));
    assert_non_null(stats_row(s, (struct stat_key){0, 0, 0, 3})); // a known one
    assert_int_equal(stats_rows(s), LIMIT_STAT_ROWS);
    stats_reset(s);
    assert_non_null(stats_row(s, (struct stat_key){0, 1, 0, 3}));
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
    for (int64_t b = 0; b < 5000; b++) { // loss is counted somewhere, whatever the number
        stats_ledger(s, 1000 + b, 0)->messages++;
    }
    assert_true(stats_ledgers(s) < 5000);
    uint64_t sum = 0;
    for (uint32_t i = 300; i < stats_ledgers(s); i++) {
        sum += stats_ledger_at(s, i)->messages;
    }
    assert_int_equal(sum, 5000);
    stats_free(s);
}

static void without_memory(void **state) {
    (void)state;
    for (long fail = 0; fail < 3; fail++) {
        fail_alloc_at(fail);
        assert_null(stats_new());
        fail_alloc_at(-1);
    }
    struct stats *s = stats_new();
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
    for (uint16_t i = 0; i < 40; i++) { // ledgers past the first sixteen
        assert_non_null(stats_ledger(s, 10, i));
    }
    fail_alloc_at(-1);
    assert_int_equal(stats_ledgers(s), 16);
    stats_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_has_one_row), cmocka_unit_test(every_bit_of_a_key_counts), cmocka_unit_test(counting),
        cmocka_unit_test(reset_forgets_and_keeps_memory), cmocka_unit_test(the_cap),
        cmocka_unit_test(ledgers), cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
