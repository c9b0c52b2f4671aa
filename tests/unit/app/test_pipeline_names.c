// SPDX-License-Identifier: Apache-2.0
// Names given back, and each node's share of them: nodes that come and go, through the pipeline
// into a database.
#include "app/roster.h"
#include "base/limits.h"
#include "ingest/pipeline.h"
#include "store_fixture.h"
#include "trace_bytes.h"

#define MS 1000000LL
#define SECOND (1000 * MS)

static struct pipeline *p;
static struct roster roster;
static struct stats *spare;
static struct store *store;
static struct pipeline_now now;
static uint64_t seed;
static bool waits; // spare is still to be written

static int setup(void **state) {
    struct pipeline_options options = {.bucket_s = 10, .timeout_ns = 30 * SECOND, .shared = true};
    now = (struct pipeline_now){1000 * SECOND, 1000 * SECOND};
    seed = 5;
    waits = false;
    fixture_setup(state);
    store = fixture_open();
    out = buffer_make(1 << 20);
    p = pipeline_new(&options);
    assert_non_null(p);
    spare = pipeline_stats_new(p);
    assert_non_null(spare);
    pipeline_tick(p, now);
    return 0;
}

static int teardown(void **state) {
    roster_free(&roster);
    pipeline_free(p);
    stats_free(spare);
    store_close(store);
    buffer_free(&out);
    return fixture_teardown(state);
}

static void pass(int64_t ns) {
    now.wall += ns;
    now.steady += ns;
    pipeline_tick(p, now);
}

static void returned(const char *module, const char *function, int64_t time) {
    size_t at = frame_begin();
    put_head(6, "trace_ts", 7);
    put_atom("return_from");
    put_function(module, function, 1);
    put_atom("ok");
    put_big(time);
    frame_end(at);
}

static void request(uint32_t label, const char *identity, int64_t time) {
    frame_mark("request_begin", 7, label, identity, time);
    frame_mark("request_end", 7, label, "ok", time + 10 * MS);
}

static void feed(struct pipeline_node *n) {
    assert_int_equal(pipeline_feed(n, slice_of(out.data, out.len)), -1);
    buffer_reset(&out);
}

static void begin(struct pipeline_node *n) {
    struct pipeline_stream stream = {.live = true, .markers = true, .entry = TIER_NONE};
    pipeline_set_clock(n, SECOND, 0);
    pipeline_sync(n, now.wall, now);
    assert_true(pipeline_begin(n, &stream));
}

// What the collector does every second, but that the writer may take its time.
static void flush(bool writes) {
    if (waits && writes) {
        if (!store_write(store, 10, spare, pipeline_directory(p))) {
            fail_msg("%s", store_error(store));
        }
        waits = false;
    }
    if (!waits) {
        stats_reset(spare);
        if (!stats_empty(pipeline_stats(p))) {
            spare = pipeline_swap(p, spare);
            waits = true;
        }
    }
}

// As shim_link.c does it.
static struct pipeline_node *node_of(const char *name) {
    struct pipeline_node *n = pipeline_node(p, slice_text(name));
    if (!n) {
        bool used[LIMIT_NODES];
        pipeline_used_nodes(p, used);
        struct roster_node *oldest = roster_oldest(&roster, used);
        if (!oldest) {
            return NULL;
        }
        uint16_t id = pipeline_node_id(oldest->node);
        assert_false(oldest->connected);
        roster_forget(&roster, oldest);
        pipeline_forget(p, id);
        n = pipeline_node(p, slice_text(name));
        assert_int_equal(pipeline_node_id(n), id);
    }
    return n;
}

static void write_all(void) {
    for (int i = 0; i < 3; i++) {
        flush(true);
    }
}

static int64_t ask(const char *sql) {
    sqlite3 *db;
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_open_v2(fixture_db, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(db);
    return n;
}

// Nodes with names of their own, one after the other, some at a time, while the database is slow:
// each one's requests stand under its own name and identities.
static void pods(void **state) {
    (void)state;
    enum { PODS = 800, AT_A_TIME = 40, IDENTITIES = 4 };
    struct pipeline_node *open[AT_A_TIME] = {0};
    struct roster_node *seen[AT_A_TIME] = {0};
    int full = 0;
    for (uint32_t i = 0; i < PODS; i++) {
        char name[64], identity[80];
        uint32_t place = i % AT_A_TIME;
        snprintf(name, sizeof name, "pod%u@host", i);
        if (open[place]) {
            int64_t cut;
            pipeline_end(open[place], true, &cut);
            roster_leave(seen[place], now.wall);
            pipeline_set_user(open[place], NULL);
        }
        struct pipeline_node *n;
        while (!(n = node_of(name))) { // it tries again
            pass(SECOND);
            flush(true);
            assert_true(++full < 10000);
        }
        open[place] = n;
        seen[place] = roster_join(&roster, pipeline_node_id(n), n, now.wall);
        pipeline_set_user(n, &open[place]);
        begin(n);
        for (uint32_t k = 0; k < IDENTITIES; k++) {
            snprintf(identity, sizeof identity, "%s work %u", name, k);
            request(k + 1, identity, now.wall);
        }
        feed(n);
        pass(SECOND);
        flush(random_u64(&seed) % 4 == 0);
    }
    for (uint32_t i = 0; i < AT_A_TIME; i++) {
        int64_t cut;
        pipeline_end(open[i], true, &cut);
    }
    write_all();
    assert_int_equal(
        ask("SELECT count(*) FROM tier_stats WHERE resolution_s = 10 AND identity <> '_total'"),
        PODS * IDENTITIES);
    assert_int_equal(ask("SELECT count(*) FROM tier_stats WHERE resolution_s = 10 AND requests = 1 "
                         "AND identity GLOB node || ' work [0-3]'"),
                     PODS * IDENTITIES);
    assert_int_equal(
        ask("SELECT sum(requests) FROM tier_stats WHERE resolution_s = 10 AND identity = '_total'"),
        PODS * IDENTITIES);
    assert_int_equal(
        ask("SELECT count(*) FROM slow_requests WHERE identity GLOB node || ' work [0-3]'"),
        PODS * IDENTITIES);
    assert_int_equal(ask("SELECT count(*) FROM slow_requests"), PODS * IDENTITIES);
    assert_int_equal(ask("SELECT sum(requests_complete) FROM ledger WHERE resolution_s = 10"),
                     PODS * IDENTITIES);
}

// Tiers with names of the pod's own, one in the other, as its shim tells them and as deep as they
// are many.
static void tell_tiers(struct pipeline_node *n, const char *node, uint32_t many) {
    struct tier_set set;
    char name[80], function[16];
    assert_true(tier_set_init(&set));
    pipeline_make_room(p);
    for (uint32_t k = 0; k < many; k++) {
        snprintf(name, sizeof name, "%s tier %u", node, k);
        snprintf(function, sizeof function, "f%u", k);
        uint16_t id =
            directory_tier_of(pipeline_directory(p), pipeline_node_id(n), slice_text(name));
        assert_true(id != DIRECTORY_NONE);
        assert_int_equal(tier_set_add(&set, slice_text("m"), slice_text(function), 1, id),
                         TIER_SET_OK);
    }
    pipeline_set_tiers(n, set);
}

// Names of tiers, and the paths made of them, are given back like the rest: each pod's calls stand
// under its own, where they belong.
static void pods_with_tiers(void **state) {
    (void)state;
    enum { PODS = 1000, TIERS = 12, REQUESTS = 3 };
    char name[64], function[16];
    for (uint32_t i = 0; i < PODS; i++) {
        int64_t cut;
        snprintf(name, sizeof name, "pod%u@host", i);
        struct pipeline_node *n;
        for (int tries = 0; !(n = node_of(name)); tries++) {
            pass(SECOND);
            flush(true);
            assert_true(tries < 1000);
        }
        struct roster_node *seen = roster_join(&roster, pipeline_node_id(n), n, now.wall);
        pipeline_set_user(n, &roster);
        tell_tiers(n, name, TIERS);
        begin(n);
        for (uint32_t r = 1; r <= REQUESTS; r++) {
            frame_mark("request_begin", 7, r, "work", now.wall);
            for (uint32_t k = 0; k < TIERS; k++) {
                snprintf(function, sizeof function, "f%u", k);
                frame_call("m", function, 7, r, "undefined", now.wall + k + 1);
            }
            for (uint32_t k = TIERS; k-- > 0;) {
                snprintf(function, sizeof function, "f%u", k);
                returned("m", function, now.wall + MS);
            }
            frame_mark("request_end", 7, r, "ok", now.wall + 2 * MS);
            feed(n);
            pass(SECOND / 2);
            flush(random_u64(&seed) % 4 == 0);
        }
        assert_false(pipeline_end(n, true, &cut));
        roster_leave(seen, now.wall);
        pipeline_set_user(n, NULL);
        pass(SECOND);
        flush(random_u64(&seed) % 4 == 0);
    }
    write_all();
    assert_int_equal(ask("SELECT sum(requests_complete) FROM ledger WHERE resolution_s = 3600"),
                     PODS * REQUESTS);
    assert_int_equal(
        ask("SELECT count(*) FROM (SELECT node, tier, sum(calls) AS calls FROM tier_stats WHERE resolution_s = 3600 "
            "AND identity = 'work' AND tier GLOB node || ' tier *' GROUP BY 1, 2) WHERE calls = 3"),
        PODS * TIERS);
    assert_int_equal(
        ask("SELECT sum(calls) FROM tier_stats WHERE resolution_s = 3600 AND identity = 'work' AND tier <> '_total'"),
        PODS * TIERS * REQUESTS);
    assert_int_equal(
        ask("SELECT sum(calls) FROM path_stats WHERE resolution_s = 3600 AND identity = 'work' AND path GLOB node || '*' "
            "AND (length(path) - length(replace(path, node, ''))) / length(node) = "
            "length(path) - length(replace(path, '>', '')) + 1"), // no step of another pod
        PODS * TIERS * REQUESTS);
    assert_int_equal(
        ask("SELECT count(DISTINCT path) FROM path_stats WHERE resolution_s = 3600 AND identity = 'work'"),
        PODS * TIERS);
}

// Identities of open requests, and of those that are not written, are not given back: no name comes
// to stand for another one's.
static void names_in_use_stay(void **state) {
    (void)state;
    enum { ROUNDS = 40, EACH = 100 };
    struct pipeline_node *n = pipeline_node(p, slice_text("n@h"));
    begin(n);
    frame_mark("request_begin", 7, 9999, "long", now.wall);
    feed(n);
    int64_t begun = now.wall;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < EACH; i++) {
            char identity[32];
            snprintf(identity, sizeof identity, "i%u", round * EACH + i);
            request(round * EACH + i + 1, identity, now.wall);
        }
        feed(n);
        pipeline_sync(n, now.wall, now);
        pass(500 * MS);
        flush(random_u64(&seed) % 3 == 0);
    }
    frame_mark("request_end", 7, 9999, "ok", begun + 20 * SECOND);
    feed(n);
    int64_t cut;
    pipeline_end(n, true, &cut);
    write_all();
    assert_int_equal(
        ask("SELECT sum(requests) FROM tier_stats WHERE resolution_s = 10 AND identity = 'long'"),
        1);
    assert_int_equal(
        ask("SELECT sum(requests) FROM tier_stats WHERE resolution_s = 10 AND identity = '_total'"),
        ROUNDS * EACH + 1);
    int64_t other = ask(
        "SELECT ifnull(sum(requests), 0) FROM tier_stats WHERE resolution_s = 10 AND identity = '_other'");
    assert_true(other < ROUNDS * EACH / 2);
    assert_int_equal(
        ask("SELECT count(*) FROM tier_stats WHERE resolution_s = 10 AND identity GLOB 'i[0-9]*' AND requests = 1"),
        ROUNDS * EACH - other);
}

// A node with names and requests without end takes none that another needs.
static void a_share_for_each_node(void **state) {
    (void)state;
    struct pipeline_node *hog = pipeline_node(p, slice_text("hog@h")),
                         *n = pipeline_node(p, slice_text("n@h"));
    char identity[32];
    begin(hog);
    begin(n);
    for (uint32_t i = 0; i < LIMIT_OPEN_REQUESTS; i++) {
        snprintf(identity, sizeof identity, "hog%u", i);
        if (i < 1000) {
            request(i + 1, identity, now.wall);
        }
        frame_mark("request_begin", 7, 1000000 + i, "open", now.wall);
        if (i % 1000 == 0) {
            feed(hog);
        }
    }
    feed(hog);
    for (uint32_t i = 0; i < 50; i++) {
        snprintf(identity, sizeof identity, "own%u", i);
        request(i + 1, identity, now.wall);
    }
    feed(n);
    int64_t cut;
    pipeline_end(n, true, &cut);
    assert_int_equal(pipeline_totals(n).complete, 50);
    assert_int_equal(pipeline_totals(n).incomplete, 0);
    pipeline_end(hog, true, &cut);
    write_all();
    assert_int_equal(
        ask("SELECT count(*) FROM tier_stats WHERE resolution_s = 10 AND node = 'n@h' AND identity GLOB 'own*'"),
        50);
    assert_int_equal(
        ask("SELECT count(*) FROM tier_stats WHERE resolution_s = 10 AND node = 'n@h' AND identity = '_other'"),
        0);
    assert_int_equal(
        ask("SELECT count(*) FROM tier_stats WHERE resolution_s = 10 AND node = 'hog@h' AND identity = '_other'"),
        1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pods, setup, teardown),
        cmocka_unit_test_setup_teardown(pods_with_tiers, setup, teardown),
        cmocka_unit_test_setup_teardown(names_in_use_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(a_share_for_each_node, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
