// SPDX-License-Identifier: Apache-2.0
// Profiles written and read back, and what the views say of them.
#include "profile_fixture.h"
#include "store_fixture.h"

#include "model/profile/flame.h"
#include "store/keep_profile.h"
#include "store/query_profile.h"

static void add(struct profile *p, const char *identity, const char *stack, uint64_t calls,
                int64_t ns) {
    fixture_weight(p, "shop_http", identity, stack, calls, ns);
}

static void fill(struct profile *p) {
    assert_true(profile_init(p));
    p->head = (struct profile_head){.kind = PROFILE_FULL,
                                    .name = "slow one",
                                    .node = "shop@host",
                                    .begin_ns = 1763640000000000000,
                                    .end_ns = 1763640002500000000,
                                    .settings = "{\"requests\":20}"};
    p->counts = (struct profile_counts){.requests = 1,
                                        .incomplete = 2,
                                        .others = 3,
                                        .unseen = 4,
                                        .refused = 5,
                                        .processes = 6,
                                        .messages = 7,
                                        .bytes = 700,
                                        .functions = 70,
                                        .lost = 8,
                                        .duration_ns = 9000,
                                        .parallel_ns = 1000,
                                        .missing_ns = 500,
                                        .stood_ns = 1234567890,
                                        .rested = true};
    strcpy(p->head.otp, "25");
    p->head.asleep_in_self = true;
    profile_module(p, slice_text("shop_http"), slice_text("shop"));
    add(p, "create", "b", 1, 3000);
    add(p, "create", "a;c;d", 2, 2000);
    add(p, "create", "a;c;waiting", 0, 7000);
    add(p, "read", "a;c;e", 1, 1000);
    add(p, "read", "a;f", 0, 4000);
    add(p, "read", "g;c;d", 9, 0);
    // of what the processes did that are known
    fixture_process(p, "shop_http", "create", "pool", "a;c;d", 3, 500);
    fixture_process(p, "shop_http", "create", "writer", "a;c;d", 0, 1500);
    fixture_process(p, "shop_http", "read", "pool", "a;c;waiting", 0, 250);
    uint16_t line = timeline_line(&p->timeline, 77);
    for (uint32_t i = 0; i < p->stacks.stack_count; i++) {
        struct timeline_event e = {1000 * i, i, line, TIMELINE_RUNS};
        timeline_add(&p->timeline, &e, 100);
    }
    p->timeline_ns = 9000;
    p->timeline_identity = (uint16_t)names_intern(&p->stacks.names, slice_text("read"));
    const struct profile_identity of[] = {
        {(uint16_t)names_intern(&p->stacks.names, slice_text("create")), 4, 9000, 2, 3000},
        {(uint16_t)names_intern(&p->stacks.names, slice_text("none")), 0, 0, 7, 7000},
        {(uint16_t)names_intern(&p->stacks.names, slice_text("read")), 6, 6000, 0, 0}};
    memcpy(p->identities, of, sizeof of);
    p->identity_count = 3;
    p->missed[0] = (struct profile_missed){"<0.9.0>", "pool_worker", 3};
    p->missed[1] = (struct profile_missed){"<0.10.0>", "", 1};
    p->missed_count = 2;
}

// The stacks of the timeline, "all a;b a;c …".
static void timeline_text(const struct profile *p, char *out) {
    *out = 0;
    for (uint32_t i = 0; i < p->timeline.count; i++) {
        out += sprintf(out, " %d:", (int)p->timeline.events[i].time);
        for (uint32_t s = p->timeline.events[i].stack; s != STACK_ROOT;
             s = p->stacks.all[s].parent) {
            out += sprintf(out, "%s;", stacks_name_of(&p->stacks, s));
        }
    }
}

// What the processes did, "process identity stack calls ns;" in the order of the alphabet.
static void processes_text(const struct profile *p, char *out) {
    enum { LINES = 32, BYTES = 128 };
    static char lines[LINES][BYTES];
    assert_in_range(p->weights.count, 0, LINES);
    for (uint32_t i = 0; i < p->weights.count; i++) {
        const struct weight *w = &p->weights.all[i];
        uint16_t process = profile_key_process(w->key);
        char *to = lines[i];
        to += sprintf(to, "%s %s ",
                      process == PROFILE_NOBODY ? "-" : names_text(&p->stacks.names, process),
                      names_text(&p->stacks.names, profile_key_identity(w->key)));
        for (uint32_t s = profile_key_stack(w->key); s != STACK_ROOT; s = p->stacks.all[s].parent) {
            to += sprintf(to, "%s<", stacks_name_of(&p->stacks, s));
        }
        sprintf(to, " %d %d;", (int)w->calls, (int)w->ns);
    }
    qsort(lines, p->weights.count, BYTES, (int (*)(const void *, const void *))strcmp);
    *out = 0;
    for (uint32_t i = 0; i < p->weights.count; i++) {
        strcat(out, lines[i]);
    }
}

static int64_t keep(const struct profile *p) {
    int64_t id;
    struct store *s = fixture_open();
    assert_true(store_keep_profile(s, p, &id));
    store_close(s);
    return id;
}

static void views(void **state) {
    (void)state;
    struct profile p;
    fill(&p);
    assert_int_equal(keep(&p), 1);
    fixture_expect("SELECT kind || '|' || name || '|' || node || '|' || started_at || '|' || "
                   "duration_ms || '|' || requests || '|' || incomplete || '|' || others || '|' || "
                   "unseen || '|' || refused || '|' || processes || '|' || messages || '|' || "
                   "losses || '|' || requests_us || '|' || parallel_us || '|' || missing_us "
                   "FROM profiles",
                   "full|slow one|shop@host|2025-11-20T12:00:00Z|2500|1|2|3|4|5|6|7|8|9.0|1.0|0.5");
    fixture_expect("SELECT otp || '|' || asleep_in_self || '|' || gc_in_self || '|' || functions "
                   "|| '|' || bytes || '|' || patterns_ms || '|' || paused_ms FROM profiles",
                   "25|1|0|70|700|1234|1234");
    fixture_expect("SELECT group_concat(identity || ' ' || requests || ' ' || mean_us || ' ' || "
                   "others || ' ' || coalesce(others_mean_us, '-')) FROM profile_requests",
                   "create 4 2.25 2 1.5,read 6 1.0 0 -");
    fixture_expect("SELECT group_concat(pid || name || requests) FROM profile_missed",
                   "<0.9.0>pool_worker3,<0.10.0>1");
    fixture_expect("SELECT group_concat(process || ' ' || identity || ' ' || name || ' ' || kind "
                   "|| ' ' || self_us || ' ' || calls) FROM (SELECT * FROM profile_processes WHERE "
                   "profile = 1 ORDER BY process, identity, stack)",
                   "pool create d function 0.5 3,pool read waiting waiting 0.25 0,"
                   "writer create d function 1.5 0");
    fixture_expect("SELECT group_concat(level || label || value || '/' || self, ' ') "
                   "FROM profile_flame WHERE profile = 1 AND metric = 'wall'",
                   "0all19.25/0.0 1a16.25/0.0 2c12.25/0.0 3d4.0/4.0 3e1.0/1.0 3waiting7.25/7.25 "
                   "2f4.0/4.0 1b3.0/3.0");
    fixture_expect("SELECT group_concat(level || label || value || '/' || self, ' ') "
                   "FROM profile_flame WHERE profile = 1 AND metric = 'calls'",
                   "0all16/0 1a6/0 2c6/0 3d5/5 3e1/1 1b1/1 1g9/0 2c9/0 3d9/9");
    fixture_expect("SELECT sum(self) FROM profile_stacks WHERE identity = 'read' AND metric = "
                   "'wall' AND kind = 'function' AND application = 'shop'",
                   "5.0");
    profile_free(&p);
}

static void drawn(const struct profile *p, enum flame_metric metric, char *out) {
    struct flame_tree t;
    struct flame_options options = {.metric = metric, .group = FLAME_BY_IDENTITY};
    assert_true(flame_tree_init(&t) && flame_tree_add(&t, p, &options, FLAME_AFTER) &&
                flame_tree_finish(&t));
    *out = 0;
    for (uint32_t i = 0; i < t.node_count; i++) {
        const struct flame_node *n = &t.nodes[i];
        const struct flame_frame *f = &t.frames[n->frame];
        out += sprintf(out, "%d %s %s %s %d %d %d\n", (int)n->depth, f->name, f->module,
                       f->application, (int)n->weight.total, (int)n->weight.self, (int)n->calls);
    }
    flame_tree_free(&t);
}

// One that an older version has kept: its processes are not known.
static void without_processes(void **state) {
    (void)state;
    static char before[4096], after[4096];
    struct profile p, q;
    bool found;
    fill(&p);
    int64_t id = keep(&p);
    free(fixture_ask(fixture_db, "DELETE FROM profile_process_rows"));
    free(fixture_ask(fixture_db, "DELETE FROM profile_process_names"));
    struct store *s = fixture_reader();
    assert_true(query_profile(s, id, &found, &q) && found);
    drawn(&p, FLAME_WALL, before);
    drawn(&q, FLAME_WALL, after);
    assert_string_equal(after, before);
    for (uint32_t i = 0; i < q.weights.count; i++) {
        assert_int_equal(profile_key_process(q.weights.all[i].key), PROFILE_NOBODY);
    }
    store_close(s);
    profile_free(&q);
    profile_free(&p);
}

static void read_back(void **state) {
    (void)state;
    static char before[4096], after[4096];
    struct profile p, q;
    bool found;
    fill(&p);
    keep(&p);
    assert_int_equal(keep(&p), 2);
    struct store *s = fixture_reader();
    for (enum flame_metric m = 0; m < FLAME_METRICS; m++) {
        assert_true(query_profile(s, 2, &found, &q));
        assert_true(found);
        drawn(&p, m, before);
        drawn(&q, m, after);
        assert_string_equal(after, before);
        processes_text(&p, before);
        processes_text(&q, after);
        assert_string_equal(after, before);
        timeline_text(&p, before);
        timeline_text(&q, after);
        assert_string_equal(after, before);
        assert_int_equal(q.timeline_ns, 9000);
        assert_string_equal(names_text(&q.stacks.names, q.timeline_identity), "read");
        assert_string_equal(q.head.otp, "25");
        assert_true(q.head.asleep_in_self && !q.head.gc_in_self);
        assert_int_equal(q.identity_count, 2); // by their requests
        assert_string_equal(names_text(&q.stacks.names, q.identities[0].name), "read");
        assert_int_equal(q.identities[1].requests, 4);
        assert_int_equal(q.identities[1].ns, 9000);
        assert_int_equal(q.identities[1].others, 2);
        assert_int_equal(q.identities[1].others_ns, 3000);
        assert_int_equal(q.missed_count, 2);
        assert_memory_equal(q.missed, p.missed, 2 * sizeof *p.missed);
        assert_memory_equal(&p.counts, &q.counts, sizeof p.counts);
        assert_string_equal(q.head.name, p.head.name);
        assert_string_equal(q.head.node, p.head.node);
        assert_string_equal(q.head.settings, p.head.settings);
        assert_int_equal(q.head.begin_ns, p.head.begin_ns);
        profile_free(&q);
    }
    assert_true(query_profile(s, 3, &found, &q));
    assert_false(found);
    profile_free(&q);
    int64_t id;
    assert_true(query_profile_named(s, "slow one", &id));
    assert_int_equal(id, 2);
    assert_true(query_profile_named(s, "no such", &id));
    assert_int_equal(id, 0);
    struct profile_list list;
    struct profile_filter filter = {.until_s = INT64_MAX, .most = 10};
    assert_true(query_profiles(s, &filter, &list));
    assert_int_equal(list.count, 2);
    assert_int_equal(list.lines[0].id, 2);
    assert_string_equal(list.lines[1].head.node, "shop@host");
    assert_int_equal(list.lines[0].rows, list.lines[1].rows);
    assert_int_equal(list.lines[1].missed_count, 2);
    assert_string_equal(list.lines[1].missed[0].name, "pool_worker");
    profile_list_free(&list);
    filter.node = "other@host";
    assert_true(query_profiles(s, &filter, &list));
    assert_int_equal(list.count, 0);
    profile_list_free(&list);
    // they took from 1763640000 to 1763640002.5
    struct profile_filter begins = {.from_s = 1763639990, .until_s = 1763640001, .most = 10};
    assert_true(query_profiles(s, &begins, &list));
    assert_int_equal(list.count, 0);
    begins.in_part = true;
    assert_true(query_profiles(s, &begins, &list));
    assert_int_equal(list.count, 2);
    profile_list_free(&list);
    begins.until_s = 1763640000; // then, and not before
    assert_true(query_profiles(s, &begins, &list));
    assert_int_equal(list.count, 0);
    store_close(s);
    profile_free(&p);
}

// A profile goes whole, and its number is no other's.
static void deleted(void **state) {
    (void)state;
    struct profile p;
    fill(&p);
    keep(&p);
    free(fixture_ask(fixture_db, "DELETE FROM profile_rows"));
    fixture_expect("SELECT (SELECT count(*) FROM profile_frame_rows) + (SELECT count(*) FROM "
                   "profile_stack_rows) + (SELECT count(*) FROM profile_value_rows) + (SELECT "
                   "count(*) FROM profile_request_rows) + (SELECT count(*) FROM "
                   "profile_missed_rows) + (SELECT count(*) FROM profile_process_names) + "
                   "(SELECT count(*) FROM profile_process_rows)",
                   "0");
    assert_int_equal(keep(&p), 2);
    profile_free(&p);
}

// A week after their end they go; and when there are too many rows, the oldest of who has most.
static void retention(void **state) {
    (void)state;
    const int64_t end_s = 1763640002, week_s = 7 * 86400;
    struct profile p;
    fill(&p);
    keep(&p);
    struct store *s = fixture_open();
    store_expire(s, end_s + week_s - 1);
    fixture_expect("SELECT count(*) FROM profile_rows", "1");
    assert_true(store_expire(s, end_s + week_s + 1));
    fixture_expect("SELECT count(*) FROM profile_rows", "0");
    store_close(s);
    keep(&p);
    keep(&p);
    strcpy(p.head.node, "other@host");
    keep(&p);
    free(fixture_ask(fixture_db, "UPDATE profile_rows SET rows = 9000000"));
    s = fixture_open();
    assert_true(store_expire(s, end_s));
    assert_false(store_expire(s, end_s));
    store_close(s);
    fixture_expect("SELECT group_concat(id, ' ') FROM profile_rows", "3 4");
    profile_free(&p);
}

// Profiles that come by themselves push out each other, of the label that has most; and full traces
// and samples have room of their own.
static void retention_by_label(void **state) {
    (void)state;
    const int64_t end_s = 1763640002;
    struct profile p;
    fill(&p);
    const char *const labels[] = {"", "busy", "always", "always", ""};
    for (int i = 0; i < 5; i++) {
        strcpy(p.head.label, labels[i]);
        keep(&p);
    }
    free(fixture_ask(fixture_db, "UPDATE profile_rows SET kind = id = 5, rows = CASE label WHEN '' "
                                 "THEN 15000000 ELSE 29000000 END"));
    struct store *s = fixture_open();
    assert_true(store_expire(s, end_s));
    assert_false(store_expire(s, end_s));
    store_close(s);
    fixture_expect("SELECT group_concat(id || label, ' ') FROM profile_rows", "1 2busy 4always 5");
    profile_free(&p);
}

// What somebody has edited is an error, and nothing worse.
static void edited(void **state) {
    (void)state;
    static const char *const edits[] = {
        "UPDATE profile_stack_rows SET parent = 99 WHERE stack = 3",
        "UPDATE profile_stack_rows SET frame = -1 WHERE stack = 3",
        "DELETE FROM profile_stack_rows WHERE stack = 2",
        "UPDATE profile_frame_rows SET kind = 77 WHERE frame = 2",
        "UPDATE profile_frame_rows SET frame = 1000000 WHERE frame = 2",
        "UPDATE profile_value_rows SET stack = 1000 WHERE stack = 3",
        "UPDATE profile_value_rows SET self = -5 WHERE stack = 3",
        "UPDATE profile_process_names SET process = 1000 WHERE process = 1",
        "DELETE FROM profile_process_names",
        "UPDATE profile_process_rows SET process = -1 WHERE process = 1",
        "UPDATE profile_process_rows SET stack = 1000",
        "UPDATE profile_process_rows SET ns = -1 WHERE ns = 250",
        "UPDATE profile_process_rows SET ns = 2501 WHERE ns = 500",
        "UPDATE profile_process_rows SET calls = 9223372036854775807",
        "UPDATE profile_rows SET longest = x'0102'",
        "UPDATE profile_rows SET longest = NULL",
    };
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        struct profile p, q;
        bool found;
        fill(&p);
        int64_t id = keep(&p);
        free(fixture_ask(fixture_db, edits[i]));
        struct store *s = fixture_reader();
        assert_false(query_profile(s, id, &found, &q));
        assert_true(strlen(store_error(s)) > 0);
        profile_free(&q);
        store_close(s);
        profile_free(&p);
    }
}

// A million calls in a usual number of stacks, of a hundred processes, take less than 5 MB.
static void size(void **state) {
    (void)state;
    struct profile p;
    assert_true(profile_init(&p));
    strcpy(p.head.node, "shop@host");
    strcpy(p.head.settings, "{}");
    uint64_t random = 5;
    for (uint32_t i = 0; i < 1000000; i++) {
        uint32_t at = STACK_ROOT;
        uint64_t r = random_u64(&random);
        char process[32];
        sprintf(process, "shop_storage_worker_%d", (int)(i % 100));
        for (uint32_t d = 0; d < 3 + r % 20; d++) {
            char name[64];
            uint64_t which = r >> 8 & 15;
            sprintf(name, "shop_application_module_%d:function_%d/3", (int)d, (int)(which % 5));
            r = r * 6364136223846793005u + (d % 4 ? 0 : 1442695040888963407u);
            at = stacks_push(&p.stacks, at,
                             stacks_frame(&p.stacks, FRAME_FUNCTION, slice_text(name),
                                          slice_text("shop_application_module")));
        }
        profile_add(&p, profile_key(at, fixture_name(&p, "i"), fixture_name(&p, process)), 1,
                    1000 + i % 100);
    }
    keep(&p);
    assert_false(p.stacks.full);
    char *bytes =
        fixture_ask(fixture_db, "SELECT sum(pgsize) < 5000000 FROM dbstat WHERE name LIKE "
                                "'profile%'");
    assert_string_equal(bytes, "1");
    free(bytes);
    profile_free(&p);
}

#define A_FILE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        A_FILE(views),     A_FILE(without_processes),  A_FILE(read_back), A_FILE(deleted),
        A_FILE(retention), A_FILE(retention_by_label), A_FILE(edited),    A_FILE(size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
