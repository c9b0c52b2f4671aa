// SPDX-License-Identifier: Apache-2.0
#include "model/stats/histogram.h"

#include <math.h>

#include "unit.h"

// floor(2^(63 + i/32)), from integer roots: floor of the 32nd root of 2^(32*63 + i). No power of
// two but the first is on a border.
static const uint64_t border[32] = {
    0x8000000000000000ULL, 0x82cd8698ac2ba1d7ULL, 0x85aac367cc487b14ULL, 0x88980e8092da8527ULL,
    0x8b95c1e3ea8bd6e6ULL, 0x8ea4398b45cd53c0ULL, 0x91c3d373ab11c336ULL, 0x94f4efa8fef70961ULL,
    0x9837f0518db8a96fULL, 0x9b8d39b9d54e5538ULL, 0x9ef5326091a111adULL, 0xa27043030c496818ULL,
    0xa5fed6a9b15138eaULL, 0xa9a15ab4ea7c0ef8ULL, 0xad583eea42a14ac6ULL, 0xb123f581d2ac258fULL,
    0xb504f333f9de6484ULL, 0xb8fbaf4762fb9ee9ULL, 0xbd08a39f580c36beULL, 0xc12c4cca66709456ULL,
    0xc5672a115506daddULL, 0xc9b9bd866e2f27a2ULL, 0xce248c151f8480e3ULL, 0xd2a81d91f12ae45aULL,
    0xd744fccad69d6af4ULL, 0xdbfbb797daf23755ULL, 0xe0ccdeec2a94e111ULL, 0xe5b906e77c8348a8ULL,
    0xeac0c6e7dd24392eULL, 0xefe4b99bdcdaf5cbULL, 0xf5257d152486cc2cULL, 0xfa83b2db722a033aULL,
};

// The last value of a bucket: floor(2^((bucket + 1) / 32)).
static uint64_t last_of(uint32_t bucket) {
    uint32_t power = (bucket + 1) / 32;
    return border[(bucket + 1) % 32] >> (63 - power);
}

static void the_table_is_right(void **state) {
    (void)state;
    for (int i = 0; i < 32; i++) {
        assert_true(fabsl((long double)border[i] - exp2l(63 + i / 32.0L)) <= 1);
    }
}

static void buckets_have_the_borders_of_the_data_model(void **state) {
    (void)state;
    assert_int_equal(histogram_bucket(0), 0);
    assert_int_equal(histogram_bucket(1), 0);
    for (uint32_t bucket = 0; bucket < HISTOGRAM_BUCKETS - 1; bucket++) {
        uint64_t last = last_of(bucket);
        uint64_t before = bucket > 0 ? last_of(bucket - 1) : 0;
        if (last > before && last > 1) { // the small ones share a value
            assert_int_equal(histogram_bucket(last), bucket);
            assert_int_equal(histogram_bucket(before + 1 > 1 ? before + 1 : 2), bucket);
        }
        for (uint64_t d = 1; d < 4; d++) {
            if (last + d > last && last >= 64) {
                assert_true(histogram_bucket(last + d) >= bucket + 1);
            }
        }
    }
    for (unsigned power = 1; power < 64; power++) { // 2^p is the last of its bucket
        assert_int_equal(histogram_bucket(1ULL << power), power * 32 - 1);
        assert_true(histogram_bucket((1ULL << power) + 1) >= power * 32);
    }
    assert_int_equal(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}

static void values_never_go_down_a_bucket(void **state) {
    (void)state;
    uint32_t before = 0;
    for (uint64_t v = 0; v < 3000000; v++) {
        uint32_t bucket = histogram_bucket(v);
        assert_true(bucket >= before);
        before = bucket;
    }
}

static void the_middle_is_near(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 1000000; i++) {
        uint64_t v = random_u64(&seed) >> (random_u64(&seed) & 63);
        if (v > 0) {
            double middle = histogram_middle(histogram_bucket(v));
            assert_true(fabs(middle - (double)v) / (double)v < 0.011);
        }
    }
}

// -- counting -------------------------------------------------------------------------------------

static void counts_are_plain(const struct histogram *h, const uint64_t *plain) {
    uint64_t n = 0;
    for (uint32_t b = 0; b < HISTOGRAM_BUCKETS; b++) {
        uint64_t count = b >= h->first && b - h->first < h->len ? h->counts[b - h->first] : 0;
        assert_int_equal(count, plain[b]);
        n += plain[b];
    }
    assert_int_equal(histogram_count(h), n);
}

static uint64_t random_value(uint64_t *seed) {
    return random_u64(seed) >> (random_u64(seed) & 63);
}

static void adding_counts(void **state) {
    (void)state;
    uint64_t seed = 2;
    for (int round = 0; round < 50; round++) {
        struct histogram h = {0};
        static uint64_t plain[HISTOGRAM_BUCKETS];
        memset(plain, 0, sizeof plain);
        for (int i = 0; i < 300; i++) {
            uint64_t v = random_value(&seed);
            assert_true(histogram_add(&h, v));
            plain[histogram_bucket(v)]++;
        }
        counts_are_plain(&h, plain);
        histogram_reset(&h);
        memset(plain, 0, sizeof plain);
        counts_are_plain(&h, plain);
        assert_true(histogram_add(&h, 5));
        plain[histogram_bucket(5)]++;
        counts_are_plain(&h, plain);
        histogram_free(&h);
        assert_int_equal(histogram_count(&h), 0);
    }
}

static void merging_is_adding(void **state) {
    (void)state;
    uint64_t seed = 3;
    for (int round = 0; round < 300; round++) {
        struct histogram parts[3] = {{0}}, merged = {0};
        static uint64_t plain[HISTOGRAM_BUCKETS];
        memset(plain, 0, sizeof plain);
        for (int p = 0; p < 3; p++) {
            int n = (int)(random_u64(&seed) % 20); // some are empty
            for (int i = 0; i < n; i++) {
                uint64_t v = random_value(&seed);
                histogram_add(&parts[p], v);
                plain[histogram_bucket(v)]++;
            }
            assert_true(histogram_merge(&merged, &parts[p]));
        }
        counts_are_plain(&merged, plain);
        for (int p = 0; p < 3; p++) {
            histogram_free(&parts[p]);
        }
        histogram_free(&merged);
    }
}

// -- quantiles ------------------------------------------------------------------------------------

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double uniform(uint64_t *seed) {
    return ((double)(random_u64(seed) >> 11) + 0.5) / 9007199254740992.0;
}

static void quantiles_against_sorted_values(void **state) {
    (void)state;
    enum { N = 5000 };
    static uint64_t values[N];
    static const double qs[] = {0.001, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999};
    uint64_t seed = 4;
    for (int shape = 0; shape < 4; shape++) {
        struct histogram h = {0};
        for (int i = 0; i < N; i++) {
            double u = uniform(&seed), v = 0;
            switch (shape) {
            case 0: // even
                v = 1000 + u * 1e9;
                break;
            case 1: // exponential
                v = -log(u) * 1e6;
                break;
            case 2: // a heavy tail
                v = 1e4 / pow(u, 1.5);
                break;
            case 3: // two humps
                v = (i % 10 ? 2e5 : 9e8) * (1 + u / 10);
                break;
            }
            values[i] = (uint64_t)v + 50;
            assert_true(histogram_add(&h, values[i]));
        }
        qsort(values, N, sizeof *values, by_value);
        for (size_t k = 0; k < sizeof qs / sizeof *qs; k++) {
            double exact = (double)values[(size_t)ceil(qs[k] * N) - 1];
            double got = histogram_quantile(&h, qs[k]);
            assert_true(fabs(got - exact) / exact < 0.011);
        }
        histogram_free(&h);
    }
}

static void quantiles_at_the_ends(void **state) {
    (void)state;
    struct histogram h = {0};
    assert_true(histogram_quantile(&h, 0.5) == 0);
    histogram_add(&h, 1000);
    histogram_add(&h, 2000000);
    double low = histogram_middle(histogram_bucket(1000)),
           high = histogram_middle(histogram_bucket(2000000));
    assert_true(histogram_quantile(&h, 0) == low);
    assert_true(histogram_quantile(&h, 0.5) == low);
    assert_true(histogram_quantile(&h, 0.500001) == high);
    assert_true(histogram_quantile(&h, 1) == high);
    // what no share is: the ends
    assert_true(histogram_quantile(&h, -1e300) == low);
    assert_true(histogram_quantile(&h, 1e300) == high);
    assert_true(histogram_quantile(&h, (double)NAN) == low);
    histogram_free(&h);
}

// -- stored form ----------------------------------------------------------------------------------

static void known_bytes(void **state) {
    (void)state;
    struct histogram h = {0};
    struct buffer b = buffer_make(HISTOGRAM_BYTES);
    assert_true(histogram_write(&h, &b));
    assert_int_equal(b.len, 1);
    assert_memory_equal(b.data, "\1", 1);
    buffer_reset(&b);
    for (int i = 0; i < 300; i++) {
        histogram_add(&h, 1); // bucket 0
    }
    histogram_add(&h, 2);    // 31
    histogram_add(&h, 1024); // 319: 288 further
    assert_true(histogram_write(&h, &b));
    assert_int_equal(b.len, 1 + 3 + 2 + 3);
    assert_memory_equal(b.data, "\1\0\xac\2\x1f\1\xa0\2\1", b.len);
    struct histogram back = {0};
    assert_true(histogram_read(&back, slice_of(b.data, b.len)));
    assert_int_equal(histogram_count(&back), 302);
    assert_true(histogram_read(&back, slice_of(b.data, b.len))); // adds
    assert_int_equal(histogram_count(&back), 604);
    assert_int_equal(back.counts[31 - back.first], 2);
    histogram_free(&back);
    histogram_free(&h);
    buffer_free(&b);
}

// What a stored form is unpacked to is what was counted, and every bucket stands once.
static void unpacked_is_plain(struct slice stored, const uint64_t *plain) {
    uint16_t buckets[HISTOGRAM_BUCKETS];
    uint64_t counts[HISTOGRAM_BUCKETS];
    int n = histogram_unpack(stored, buckets, counts), used = 0;
    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (plain[i] > 0) {
            assert_true(used < n);
            assert_int_equal(buckets[used], i);
            assert_int_equal(counts[used], plain[i]);
            used++;
        }
    }
    assert_int_equal(n, used);
}

static void round_trip(void **state) {
    (void)state;
    uint64_t seed = 6;
    struct guarded g = guarded_make(HISTOGRAM_BYTES);
    for (int round = 0; round < 300; round++) {
        struct histogram h = {0}, back = {0};
        static uint64_t plain[HISTOGRAM_BUCKETS];
        memset(plain, 0, sizeof plain);
        int n = (int)(random_u64(&seed) % 400);
        for (int i = 0; i < n; i++) {
            uint64_t v = random_value(&seed);
            histogram_add(&h, v);
            plain[histogram_bucket(v)]++;
        }
        struct buffer b = buffer_make(HISTOGRAM_BYTES);
        assert_true(histogram_write(&h, &b));
        struct slice stored = guarded_copy(&g, b.data, b.len);
        assert_true(histogram_read(&back, stored));
        counts_are_plain(&back, plain);
        unpacked_is_plain(stored, plain);
        histogram_free(&h);
        histogram_free(&back);
        buffer_free(&b);
    }
    guarded_free(&g);
}

// All buckets full of counts as large as they get: HISTOGRAM_BYTES hold them.
static void the_largest(void **state) {
    (void)state;
    struct histogram h = {0}, back = {0};
    histogram_add(&h, 1);
    histogram_add(&h, UINT64_MAX);
    for (uint32_t i = 0; i < h.len; i++) {
        h.counts[i] = (1ULL << 63) - 1;
    }
    assert_int_equal(h.len, HISTOGRAM_BUCKETS);
    struct buffer b = buffer_make(HISTOGRAM_BYTES);
    assert_true(histogram_write(&h, &b));
    assert_true(histogram_read(&back, slice_of(b.data, b.len)));
    assert_int_equal(back.len, HISTOGRAM_BUCKETS);
    assert_memory_equal(back.counts, h.counts, HISTOGRAM_BUCKETS * sizeof *h.counts);
    struct buffer small = buffer_make(b.len - 1);
    assert_false(histogram_write(&h, &small));
    buffer_free(&small);
    buffer_free(&b);
    histogram_free(&h);
    histogram_free(&back);
}

#define BYTES(text)                                                                                \
    { text, sizeof(text) - 1 }

static void malformed_bytes_change_nothing(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
    } bad[] = {
        BYTES(""),
        BYTES("\2"),
        BYTES("\0"),
        BYTES("\1\5"),                                     // no count
        BYTES("\1\x85"),                                   // a cut number
        BYTES("\1\5\x80"),                                 // a cut count
        BYTES("\1\5\0"),                                   // a count of zero
        BYTES("\1\5\1\0\1"),                               // the same bucket again
        BYTES("\1\x80\x10\1"),                             // bucket 2048
        BYTES("\1\5\1\xfb\x0f\1"),                         // 5 + 2043
        BYTES("\1\xff\xff\xff\xff\xff\xff\xff\xff\x7f\1"), // distances that would wrap
        BYTES("\1\5\1\xfb\xff\xff\xff\xff\xff\xff\xff\x7f\1"),
        BYTES("\1\5\x80\x80\x80\x80\x80\x80\x80\x80\x80\1"), // a number of more than 63 bits
    };
    struct guarded g = guarded_make(32);
    struct histogram h = {0}, twin = {0};
    histogram_add(&h, 1000);
    histogram_add(&twin, 1000);
    uint16_t buckets[HISTOGRAM_BUCKETS];
    uint64_t counts[HISTOGRAM_BUCKETS];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct slice bytes = guarded_copy(&g, bad[i].bytes, bad[i].len);
        assert_int_equal(histogram_unpack(bytes, buckets, counts), -1);
        assert_false(histogram_read(&h, guarded_copy(&g, bad[i].bytes, bad[i].len)));
        assert_int_equal(h.first, twin.first);
        assert_int_equal(h.len, twin.len);
        assert_int_equal(h.counts[0], 1);
    }
    assert_true(histogram_read(&h, slice_of("\1\5\1\xfa\x0f\1", 6))); // 5 + 2042 is the last bucket
    assert_int_equal(histogram_count(&h), 3);
    assert_int_equal(histogram_unpack(slice_of("\1\5\1\xfa\x0f\1", 6), buckets, counts), 2);
    assert_int_equal(buckets[1], HISTOGRAM_BUCKETS - 1);
    histogram_free(&h);
    histogram_free(&twin);
    guarded_free(&g);
}

static void truncated_it_is_refused_or_a_shorter_one(void **state) {
    (void)state;
    struct guarded g = guarded_make(HISTOGRAM_BYTES);
    struct histogram h = {0};
    uint64_t seed = 7;
    for (int i = 0; i < 500; i++) {
        histogram_add(&h, random_value(&seed) >> 20);
    }
    struct buffer b = buffer_make(HISTOGRAM_BYTES);
    histogram_write(&h, &b);
    uint64_t before = 0, refused = 0;
    for (size_t len = 0; len <= b.len; len++) {
        struct histogram part = {0};
        if (histogram_read(&part, guarded_copy(&g, b.data, len))) {
            assert_true(histogram_count(&part) > before || len <= 1);
            before = histogram_count(&part);
        } else {
            assert_int_equal(part.len, 0);
            refused++;
        }
        histogram_free(&part);
    }
    assert_int_equal(before, 500);
    assert_true(refused > b.len / 3);
    histogram_free(&h);
    buffer_free(&b);
    guarded_free(&g);
}

static void without_memory_nothing_changes(void **state) {
    (void)state;
    struct histogram h = {0}, far = {0};
    fail_alloc_at(0);
    assert_false(histogram_add(&h, 5));
    fail_alloc_at(-1);
    assert_int_equal(h.len, 0);
    histogram_add(&h, 1000);
    histogram_add(&far, 1ULL << 60);
    uint32_t first = h.first;
    fail_alloc_at(0);
    assert_false(histogram_add(&h, 1ULL << 60));
    assert_false(histogram_merge(&h, &far));
    assert_false(histogram_read(&h, slice_of("\1\x80\x0f\1", 4)));
    assert_true(histogram_add(&h, 1000)); // in the window: needs none
    fail_alloc_at(-1);
    assert_int_equal(h.first, first);
    assert_int_equal(h.len, 1);
    assert_int_equal(histogram_count(&h), 2);
    histogram_free(&h);
    histogram_free(&far);
}

// -- a budget -------------------------------------------------------------------------------------

// What a quantile may be off at most.
static double error_of(const struct histogram *h) {
    return exp2((double)(1U << h->coarse) / 64) - 1;
}

// Whatever the budget, each value is counted, quantiles are as near as the buckets are wide, and
// the memory is what it may be.
static void a_budget_costs_precision_alone(void **state) {
    (void)state;
    enum { N = 400 };
    uint64_t seed = 7;
    for (int round = 0; round < 300; round++) {
        struct histogram_budget budget = {.cap = (size_t)(round % 30) * 512};
        struct histogram h = {.budget = &budget}, merged = {0}, back = {0},
                         again = {.budget = &budget};
        static uint64_t values[N];
        for (int i = 0; i < N; i++) {
            values[i] = random_value(&seed) | 1;
            assert_true(histogram_add(&h, values[i]));
            assert_int_equal(budget.bytes, h.room > HISTOGRAM_LEAST
                                               ? (h.room - HISTOGRAM_LEAST) * sizeof *h.counts
                                               : 0);
            assert_true(budget.bytes <= budget.cap);
        }
        assert_int_equal(budget.coarse, h.coarse > 0);
        assert_int_equal(histogram_count(&h), N);
        qsort(values, N, sizeof *values, by_value);
        struct buffer b = buffer_make(HISTOGRAM_BYTES);
        assert_true(histogram_write(&h, &b));
        assert_true(histogram_read(&back, slice_of(b.data, b.len)));
        assert_true(histogram_merge(&merged, &h));
        assert_true(histogram_merge(&again, &merged)); // of both parts of the budget
        assert_true(budget.bytes <= budget.cap);
        for (int i = 0; i < N; i += 7) {
            double q = (i + 0.5) / N, value = (double)values[i];
            assert_true(fabs(histogram_quantile(&h, q) - value) / value < error_of(&h) * 1.0001);
            assert_true(fabs(histogram_quantile(&back, q) - value) / value <
                        (1 + error_of(&h)) * 1.0111 - 1);
            assert_true(fabs(histogram_quantile(&merged, q) - value) / value <
                        (1 + error_of(&h)) * 1.0111 - 1);
            double twice = (1 + error_of(&h)) * (1 + error_of(&again)) * 1.0111 - 1;
            assert_true(fabs(histogram_quantile(&again, q) - value) / value < twice * 1.0001);
        }
        assert_true(histogram_count(&back) == N && histogram_count(&merged) == N &&
                    histogram_count(&again) == N);
        histogram_free(&h);
        histogram_free(&again);
        assert_int_equal(budget.bytes, 0);
        histogram_free(&merged);
        histogram_free(&back);
        buffer_free(&b);
    }
}

// One user of a budget in parts leaves room for the others, and is as fine as can be again when it
// is reset.
static void a_part_of_a_budget(void **state) {
    (void)state;
    enum { N = 100 };
    static struct histogram hog[N];
    struct histogram_budget all = {.cap = 100000}, one = {.cap = SIZE_MAX, .all = &all},
                            other = {.cap = SIZE_MAX, .all = &all};
    for (int i = 0; i < N; i++) {
        hog[i].budget = &one;
        for (unsigned bit = 0; bit < 40; bit++) {
            assert_true(histogram_add(&hog[i], 1ULL << bit));
        }
    }
    assert_true(one.coarse && all.bytes == one.bytes);
    struct histogram h = {.budget = &other};
    assert_true(histogram_add(&h, 1000) && histogram_add(&h, 1000000));
    assert_int_equal(h.coarse, 0);
    assert_false(other.coarse);
    uint32_t coarse = hog[N - 1].coarse;
    assert_true(coarse > 0);
    for (int i = 0; i < N - 1; i++) {
        histogram_free(&hog[i]);
    }
    histogram_reset(&hog[N - 1]);
    for (unsigned bit = 0; bit < 40; bit++) {
        assert_true(histogram_add(&hog[N - 1], 1ULL << bit));
    }
    assert_int_equal(hog[N - 1].coarse, 0);
    histogram_free(&hog[N - 1]);
    histogram_free(&h);
    assert_true(all.bytes == 0 && one.bytes == 0 && other.bytes == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_right),
        cmocka_unit_test(buckets_have_the_borders_of_the_data_model),
        cmocka_unit_test(values_never_go_down_a_bucket),
        cmocka_unit_test(the_middle_is_near),
        cmocka_unit_test(adding_counts),
        cmocka_unit_test(merging_is_adding),
        cmocka_unit_test(quantiles_against_sorted_values),
        cmocka_unit_test(quantiles_at_the_ends),
        cmocka_unit_test(known_bytes),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(the_largest),
        cmocka_unit_test(malformed_bytes_change_nothing),
        cmocka_unit_test(truncated_it_is_refused_or_a_shorter_one),
        cmocka_unit_test(without_memory_nothing_changes),
        cmocka_unit_test(a_budget_costs_precision_alone),
        cmocka_unit_test(a_part_of_a_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
