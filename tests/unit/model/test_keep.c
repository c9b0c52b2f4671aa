// SPDX-License-Identifier: Apache-2.0
#include "model/stats/keep.h"

#include "base/limits.h"
#include "model/directory/directory.h"
#include "unit.h"

static const int64_t SECOND = 1000000000;
enum { OVER = 1000 }; // the threshold, where there is one

struct fixture {
    struct keep *keep;
    struct account account;
};

static struct fixture start(void) {
    struct fixture f = {keep_new(),
                        {.stats = stats_new(), .bucket_s = 10, .node = 3, .offset = 100 * SECOND}};
    assert_non_null(f.keep);
    assert_non_null(f.account.stats);
    return f;
}

static void stop(struct fixture *f) {
    keep_free(f->keep);
    stats_free(f->account.stats);
}

// Offers a request of identity 5 without spans.
static bool offer(struct fixture *f, int64_t begin, int64_t duration, bool error) {
    struct request_result r = {
        .identity = 5, .begin = begin, .end = begin + duration, .error = error};
    return keep_offer(f->keep, &f->account, &r, OVER);
}

static void one_reason_each(void **state) {
    (void)state;
    struct fixture f = start();
    const struct {
        int64_t duration;
        bool error;
        enum kept_reason reason;
    } cases[] = {{OVER + 1, false, KEPT_OVER},
                 {OVER + 1, true, KEPT_OVER},
                 {OVER, true, KEPT_FAILED},
                 {OVER, false, KEPT_SLOWEST}};
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(offer(&f, 7, cases[i].duration, cases[i].error));
        const struct kept_request *kept = stats_kept_at(f.account.stats, i);
        assert_int_equal(kept->reason, cases[i].reason);
        assert_int_equal(kept->error, cases[i].error);
        assert_int_equal(kept->duration, cases[i].duration);
        assert_true(kept->begin == 100 * SECOND + 7 && kept->bucket_start == 100 &&
                    kept->node == 3 && kept->identity == 5);
        assert_int_equal(kept->count, 0);
    }
    assert_int_equal(stats_kept(f.account.stats), 4);
    stop(&f);
}

// As many as there is room for, then those that are slower than the one that is fastest among them.
static void room_for_the_slowest(void **state) {
    (void)state;
    const struct {
        int64_t base;
        bool error;
        int64_t limit;
    } cases[] = {{2000, false, LIMIT_KEPT_OVER},
                 {500, true, LIMIT_KEPT_FAILED},
                 {500, false, LIMIT_KEPT_SLOWEST}};
    struct fixture f = start();
    for (int c = 0; c < 3; c++) {
        int64_t base = cases[c].base, limit = cases[c].limit;
        bool error = cases[c].error;
        for (int64_t i = 0; i < limit; i++) {
            assert_true(offer(&f, 50, base - i, error)); // base - limit + 1 … base
        }
        int64_t worst = base - limit + 1;
        assert_false(offer(&f, 0, worst - 1, error));
        assert_false(offer(&f, 51, worst, error)); // a tie: the earlier begin stays,
        assert_false(offer(&f, 50, worst, error)); // and at the same begin the first
        assert_true(offer(&f, 49, worst, error));
        assert_false(offer(&f, 49, worst, error));
        for (int64_t i = 0; i < limit; i++) { // each pushes out one
            assert_true(offer(&f, 50, base + 10, error));
        }
        assert_false(offer(&f, 50, base + 9, error));
    }
    stop(&f);
}

// What was kept under one node, identity or bucket takes no room from others.
static void room_of_their_own(void **state) {
    (void)state;
    struct fixture f = start();
    struct request_result r = {.identity = 5, .begin = 0, .end = 100};
    for (uint16_t node = 0; node < LIMIT_NODES; node += 83) {
        for (uint16_t identity = 0; identity < LIMIT_IDENTITIES + IDENTITIES_FIXED;
             identity += 17) {
            f.account.node = node;
            r.identity = identity;
            for (uint32_t i = 0; i < LIMIT_KEPT_SLOWEST; i++) {
                assert_true(keep_offer(f.keep, &f.account, &r, INT64_MAX));
            }
            assert_false(keep_offer(f.keep, &f.account, &r, INT64_MAX));
        }
    }
    stop(&f);
}

// A node past its share of what is remembered begins anew, and pushes nobody else out; what is
// forgotten on purpose is compared with nothing.
static void a_share_for_each_node(void **state) {
    (void)state;
    struct fixture f = start();
    struct request_result r = {.begin = 0, .end = 100};
    for (uint16_t node = 0; node < 100; node++) { // five times what there is room for
        f.account.node = node;
        for (uint16_t identity = 4; identity < LIMIT_IDENTITIES + 4; identity++) {
            r.identity = identity;
            for (uint32_t i = 0; i <= LIMIT_KEPT_SLOWEST && (node == 0 || i == 0); i++) {
                keep_offer(f.keep, &f.account, &r, INT64_MAX);
            }
        }
        stats_reset(f.account.stats);
    }
    f.account.node = 0;
    for (uint16_t identity = 4; identity < LIMIT_IDENTITIES + 4; identity++) {
        r.identity = identity;
        assert_false(keep_offer(f.keep, &f.account, &r, INT64_MAX));
    }
    keep_forget_identity(f.keep, 7);
    r.identity = 7;
    for (uint32_t i = 0; i < LIMIT_KEPT_SLOWEST; i++) {
        assert_true(keep_offer(f.keep, &f.account, &r, INT64_MAX));
    }
    assert_false(keep_offer(f.keep, &f.account, &r, INT64_MAX));
    for (uint16_t node = 0; node < 100; node++) {
        keep_forget_node(f.keep, node);
    }
    for (uint16_t identity = 4; identity < 14; identity++) {
        r.identity = identity;
        for (uint32_t i = 0; i <= LIMIT_KEPT_SLOWEST; i++) {
            assert_int_equal(keep_offer(f.keep, &f.account, &r, INT64_MAX), i < LIMIT_KEPT_SLOWEST);
        }
    }
    stop(&f);
}

// How many of ten requests of the same duration are kept, in a bucket counted from that of time 0.
static int kept_of_ten(struct fixture *f, int64_t bucket, int64_t duration) {
    int kept = 0;
    for (int i = 0; i < 10; i++) {
        kept += offer(f, bucket * 10 * SECOND, duration, false);
    }
    return kept;
}

static void buckets_out_of_order(void **state) {
    (void)state;
    struct fixture f = start();
    assert_int_equal(kept_of_ten(&f, 0, 100), LIMIT_KEPT_SLOWEST);
    assert_int_equal(kept_of_ten(&f, 1, 100), LIMIT_KEPT_SLOWEST);
    for (int i = 0; i < 5; i++) { // the bucket before goes on, in turns
        assert_int_equal(kept_of_ten(&f, i % 2, 100), 0);
    }
    assert_int_equal(kept_of_ten(&f, 0, 101), LIMIT_KEPT_SLOWEST);
    // a third: the bucket that was used before it is still known
    assert_int_equal(kept_of_ten(&f, 2, 100), LIMIT_KEPT_SLOWEST);
    assert_int_equal(kept_of_ten(&f, 0, 101), 0);
    assert_int_equal(kept_of_ten(&f, 2, 100), 0);
    // a request counts where it ends
    assert_true(offer(&f, 30 * SECOND - 1, 2, false));
    assert_int_equal(stats_kept_at(f.account.stats, stats_kept(f.account.stats) - 1)->bucket_start,
                     130);
    // the clock was set back for good: no flood
    assert_int_equal(kept_of_ten(&f, -400, 100), LIMIT_KEPT_SLOWEST);
    assert_int_equal(kept_of_ten(&f, -399, 100), LIMIT_KEPT_SLOWEST);
    assert_int_equal(kept_of_ten(&f, -399, 100), 0);
    assert_int_equal(stats_kept_at(f.account.stats, stats_kept(f.account.stats) - 1)->bucket_start,
                     100 - 3990);
    stop(&f);
}

static void spans(void **state) {
    (void)state;
    struct fixture f = start();
    static struct span all[LIMIT_KEPT_SPANS + 500];
    uint32_t n = sizeof all / sizeof *all;
    for (uint32_t i = 0; i < n; i++) {
        all[i] = (struct span){.start = 1000 + i,
                               .end = 1500 + 2 * i,
                               .pid = i + 7,
                               .parent = i == 0 ? SPAN_NONE : i / 2,
                               .tier = 3};
    }
    all[1] = (struct span){.start = 1001,
                           .end = 1400,
                           .parent = 0,
                           .tier = 4,
                           .self = 11,
                           .wait = 12,
                           .measured = true,
                           .run_queue = 5,
                           .gc = 13,
                           .off_cpu = 14,
                           .async = true};
    all[2] = (struct span){.start = 1002, .end = -1, .parent = 1, .open = true, .async = true};
    all[3] = (struct span){.start = 1003, .end = 1004, .parent = 1, .error = true};
    all[4] = (struct span){.start = 1004, .end = 1004, .parent = 1, .blind = true, .error = true};
    // how it ended nobody knows
    all[5] = (struct span){.start = 1005, .end = 1508, .parent = 2, .blind = true, .pid = 12};
    struct request_result r = {.fate = REQUEST_INCOMPLETE,
                               .cut = true,
                               .begin = 990,
                               .end = 9000,
                               .spans = all,
                               .count = n,
                               .calls = 77777};
    assert_true(keep_offer(f.keep, &f.account, &r, INT64_MAX));
    r = (struct request_result){.begin = 1000, .end = 1600, .spans = all, .count = 1, .calls = 1};
    assert_true(keep_offer(f.keep, &f.account, &r, INT64_MAX));
    const struct kept_request *kept = stats_kept_at(f.account.stats, 0);
    assert_true(kept->cut && kept->spans == 77777 && kept->count == LIMIT_KEPT_SPANS &&
                kept->duration == 8010);
    const struct kept_span *s = stats_kept_spans(f.account.stats, 0);
    assert_true(s[0].start == 10 && s[0].duration == 500 && s[0].parent == UINT32_MAX &&
                s[0].pid == 7 && s[0].tier == 3);
    assert_true(!s[0].open && !s[0].error && !s[0].async && !s[0].blind);
    assert_true(s[1].start == 11 && s[1].duration == 399 && s[1].parent == 0 && s[1].tier == 4);
    assert_true(s[1].self == 11 && s[1].wait == 12 && s[1].gc == 13 && s[1].off_cpu == 14 &&
                s[1].async && !s[1].open && s[1].measured && s[1].run_queue == 5);
    assert_true(s[2].open && s[2].async && s[2].duration == 0 && s[2].parent == 1);
    assert_true(s[3].error && !s[3].blind && s[3].duration == 1);
    assert_true(s[4].blind && s[4].error && s[5].blind && !s[5].error);
    for (uint32_t i = 6; i < LIMIT_KEPT_SPANS; i++) {
        assert_true(s[i].start == 10 + i && s[i].duration == 500 + i && s[i].parent == i / 2 &&
                    s[i].pid == i + 7);
    }
    kept = stats_kept_at(f.account.stats, 1);
    s = stats_kept_spans(f.account.stats, 1);
    assert_true(!kept->cut && kept->spans == 1 && kept->count == 1 && s->start == 0 &&
                s->duration == 500);
    stop(&f);
}

// Of a part it is kept which process each call without a parent was made for.
static void callers(void **state) {
    (void)state;
    struct fixture f = start();
    struct span all[] = {{.start = 1, .end = 9, .pid = 7, .from = 99, .parent = SPAN_NONE},
                         {.start = 2, .end = 3, .pid = 7, .from = 99, .parent = 0},
                         {.start = 4, .end = 5, .pid = 8, .from = 8, .parent = SPAN_NONE}};
    struct request_result r = {.begin = 1, .end = 9, .spans = all, .count = 3, .calls = 3};
    for (int remote = 0; remote < 2; remote++) {
        r.remote = remote;
        assert_true(keep_offer(f.keep, &f.account, &r, INT64_MAX));
        const struct kept_span *s = stats_kept_spans(f.account.stats, (uint32_t)remote);
        assert_true(s[0].caller == (remote ? 99u : 0) && s[1].caller == 0 && s[2].caller == 0);
    }
    stop(&f);
}

// A request that the statistics have no room for leaves its place to the next.
static void statistics_full(void **state) {
    (void)state;
    struct fixture f = start();
    static struct span all[LIMIT_KEPT_SPANS];
    struct request_result r = {.end = 100, .spans = all, .count = LIMIT_KEPT_SPANS};
    while (keep_offer(f.keep, &f.account, &r, INT64_MAX)) {
        r.end += 1;
    }
    assert_true(stats_kept(f.account.stats) > LIMIT_KEPT_SLOWEST); // not for want of a better one
    for (uint32_t i = 0; i < LIMIT_KEPT_SLOWEST; i++) {
        assert_false(keep_offer(f.keep, &f.account, &r, INT64_MAX));
    }
    struct stats *full = f.account.stats;
    f.account.stats = stats_new();
    assert_true(keep_offer(f.keep, &f.account, &r, INT64_MAX));
    stats_free(full);
    stop(&f);
}

static void without_memory(void **state) {
    (void)state;
    struct fixture f = start();
    keep_free(f.keep);
    for (long fail = 0;; fail++) {
        fail_alloc_at(fail);
        f.keep = keep_new();
        fail_alloc_at(-1);
        if (f.keep) {
            assert_int_equal(fail, 2);
            break;
        }
    }
    keep_free(NULL);
    // without a record everything is offered to the store
    // allocates the first block of records, and what the statistics need
    assert_true(offer(&f, 0, 10, false));
    int made = 0;
    for (uint16_t identity = 10; identity < 900; identity++) {
        struct request_result r = {.identity = identity, .begin = 0, .end = 100};
        fail_alloc_once(0); // the map's growth, when it is due
        for (int i = 0; i < 10; i++) {
            made += keep_offer(f.keep, &f.account, &r, INT64_MAX);
        }
        fail_alloc_at(-1);
        stats_reset(f.account.stats);
    }
    assert_in_range(made, 890 * LIMIT_KEPT_SLOWEST, 890 * LIMIT_KEPT_SLOWEST + 20);
    stop(&f);
    // no block of records at all
    f = start();
    struct kept_request none = {0};
    for (int i = 0; i < 10; i++) {
        assert_true(stats_keep(f.account.stats, &none, NULL)); // so that this has memory
    }
    stats_reset(f.account.stats);
    fail_alloc_at(0);
    assert_int_equal(kept_of_ten(&f, 0, 100), 10);
    fail_alloc_at(-1);
    assert_int_equal(kept_of_ten(&f, 0, 100), LIMIT_KEPT_SLOWEST);
    stop(&f);
}

// -- against the plain rule -----------------------------------------------------------------------

struct offered {
    int64_t bucket, duration, begin;
    uint32_t node, identity, reason;
    uint32_t number; // in the order of offering
};

static int compare(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

// By group; in it as the store ranks them.
static int by_rank(const void *x, const void *y) {
    const struct offered *a = x, *b = y;
    const int order[] = {compare(a->node, b->node),         compare(a->identity, b->identity),
                         compare(a->bucket, b->bucket),     compare(a->reason, b->reason),
                         compare(b->duration, a->duration), compare(a->begin, b->begin),
                         compare(a->number, b->number)};
    for (int i = 0; i < 7; i++) {
        if (order[i] != 0) {
            return order[i];
        }
    }
    return 0;
}

// What the store leaves: the first few of each group. Returns their number.
static uint32_t prune(struct offered *all, uint32_t count) {
    const uint32_t limits[] = {LIMIT_KEPT_OVER, LIMIT_KEPT_FAILED, LIMIT_KEPT_SLOWEST};
    qsort(all, count, sizeof *all, by_rank);
    uint32_t left = 0, rank = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct offered *a = &all[i], *b = i > 0 ? &all[i - 1] : NULL;
        bool same = b && a->node == b->node && a->identity == b->identity &&
                    a->bucket == b->bucket && a->reason == b->reason;
        rank = same ? rank + 1 : 0;
        if (rank < limits[a->reason]) {
            all[left++] = *a;
        }
    }
    return left;
}

static uint32_t take_kept(struct stats *s, struct offered *kept, uint32_t count) {
    for (uint32_t i = 0; i < stats_kept(s); i++) {
        const struct kept_request *k = stats_kept_at(s, i);
        kept[count++] = (struct offered){k->bucket_start, k->duration, k->begin, k->node,
                                         k->identity,     k->reason,   k->spans};
    }
    stats_reset(s);
    return count;
}

// A stream of requests: how far apart, and how much out of order they come.
struct stream {
    int64_t step, disorder;
    uint32_t count;
    uint32_t most; // of them that may be kept before the store prunes
};

static void one_stream(uint64_t seed, const struct stream *stream) {
    struct fixture f = start();
    struct offered *all = malloc(stream->count * sizeof *all),
                   *kept = malloc(stream->count * sizeof *kept);
    assert_true(all && kept);
    uint32_t taken = 0;
    uint64_t random = seed;
    int64_t now = 0;
    for (uint32_t i = 0; i < stream->count; i++) {
        now += (int64_t)(random_u64(&random) % (uint64_t)(2 * stream->step));
        int64_t end = now - (int64_t)(random_u64(&random) % (uint64_t)stream->disorder);
        uint64_t dice = random_u64(&random);
        int64_t duration = dice % 100 < 2 ? OVER + (int64_t)(dice >> 32) % 300
                                          : (int64_t)(dice >> 32) % (OVER + 1);
        struct request_result r = {.identity = (uint16_t)(dice >> 8 & 3),
                                   .begin = end - duration,
                                   .end = end,
                                   .error = dice % 13 == 0,
                                   .calls = i};
        f.account.node = (uint16_t)(dice >> 16 & 1);
        int64_t begin = r.begin + f.account.offset;
        uint32_t reason = duration > OVER ? KEPT_OVER : r.error ? KEPT_FAILED : KEPT_SLOWEST;
        all[i] = (struct offered){account_bucket(&f.account, end),
                                  duration,
                                  begin,
                                  f.account.node,
                                  r.identity,
                                  reason,
                                  i};
        keep_offer(f.keep, &f.account, &r, OVER);
        if (dice >> 40 & 0xfff || stats_kept(f.account.stats) > 100000) {
            taken = take_kept(f.account.stats, kept, taken);
        }
    }
    taken = take_kept(f.account.stats, kept, taken);
    if (taken > stream->most) {
        fail_msg("seed %llu: %u of %u offered to the store", (unsigned long long)seed, taken,
                 stream->count);
    }
    uint32_t want = prune(all, stream->count), got = prune(kept, taken);
    for (uint32_t i = 0; i < want || i < got; i++) {
        if (i >= want || i >= got || by_rank(&all[i], &kept[i]) != 0) {
            fail_msg("seed %llu: %u kept, want %u; number %u differs", (unsigned long long)seed,
                     got, want, i);
        }
    }
    free(all);
    free(kept);
    stop(&f);
}

static void random_streams(void **state) {
    (void)state;
    const struct stream streams[] = {
        {SECOND / 1000, 1, 100000, 6000}, // in order: 10 buckets of 8 groups of 16
        // what one bucket's end and the next one's begin mix
        {SECOND / 1000, 3 * SECOND, 100000, 6000},
        {SECOND / 1000, 100 * SECOND, 50000, 50000}, // anything
        {SECOND, SECOND, 20000, 20000},              // few in each bucket
    };
    for (uint64_t seed = 1; seed <= 5; seed++) {
        for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
            one_stream(seed, &streams[i]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_reason_each),      cmocka_unit_test(room_for_the_slowest),
        cmocka_unit_test(room_of_their_own),    cmocka_unit_test(a_share_for_each_node),
        cmocka_unit_test(buckets_out_of_order), cmocka_unit_test(spans),
        cmocka_unit_test(statistics_full),      cmocka_unit_test(callers),
        cmocka_unit_test(without_memory),       cmocka_unit_test(random_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
