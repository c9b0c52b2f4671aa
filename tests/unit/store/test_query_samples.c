// SPDX-License-Identifier: Apache-2.0
// Profiles of samples written and read back, and what the view says of them.
#include "sample_script.h"
#include "store_fixture.h"

#include "store/keep_profile.h"
#include "store/query_profile.h"

// Three seconds, in which all kinds of looks are, kept as it is at the end of a run.
static int64_t keep(struct told *t) {
    int64_t id;
    struct store *s = fixture_open();
    usual(t);
    put(t, (struct sample_record){
               .kind = SAMPLE_IDENTITY, .process = 1, .texts = {slice_text("read")}});
    look(t, 1, STATUS_RUNNING, 3, 20, 700);
    held(t, 3000);
    late(t, 50000);
    put(t, (struct sample_record){.kind = SAMPLE_GONE, .process = 1});
    assert_true(taken(t));
    t->profile.samples->counts.cost_us = 4500;
    t->profile.head = (struct profile_head){.kind = PROFILE_SAMPLES,
                                            .name = "night",
                                            .node = "shop@host",
                                            .begin_ns = 1763640000000000000,
                                            .end_ns = 1763640003000000000,
                                            .settings = "{\"hz\":99}"};
    assert_true(samples_weigh(&t->profile, &(struct sample_choice){.kept = true}));
    assert_true(store_keep_profile(s, &t->profile, &id));
    store_close(s);
    return id;
}

static void read_whole(int64_t id, struct told *t) {
    bool found;
    struct store *s = fixture_reader();
    *t = (struct told){0};
    if (!query_profile(s, id, &found, &t->profile)) {
        fail_msg("%s", store_error(s));
    }
    assert_true(found);
    store_close(s);
}

// By every metric and group, of all and of a stretch, what was read weighs what was kept.
static void read_back(void **state) {
    (void)state;
    struct told kept, read;
    char before[2000];
    int64_t id = keep(&kept);
    read_whole(id, &read);
    assert_memory_equal(&kept.profile.samples->counts, &read.profile.samples->counts,
                        sizeof(struct sample_counts));
    assert_int_equal(read.profile.head.kind, PROFILE_SAMPLES);
    for (enum flame_metric m = FLAME_SAMPLES; m < FLAME_METRICS; m++) {
        for (enum flame_group g = 0; g < FLAME_GROUPS; g++) {
            for (uint64_t from = 0; from < 2000000; from += 1200000) {
                struct sample_choice choice = {.metric = m, .group = g, .from_us = from};
                snprintf(before, sizeof before, "%s", weighed(&kept, choice));
                assert_string_equal(weighed(&read, choice), before);
            }
        }
    }
    end(&read);
    end(&kept);
}

// A list tells how many looks there are: five, and one that found nothing new.
static void listed(void **state) {
    (void)state;
    struct told t;
    keep(&t);
    struct store *s = fixture_open();
    struct profile_filter all = {.from_s = INT64_MIN, .until_s = INT64_MAX, .most = 5};
    struct profile_list list;
    assert_true(query_profiles(s, &all, &list));
    assert_true(list.count >= 1);
    assert_int_equal(list.lines[0].head.kind, PROFILE_SAMPLES);
    assert_int_equal(list.lines[0].looks, 6);
    profile_list_free(&list);
    store_close(s);
    end(&t);
}

static void views(void **state) {
    (void)state;
    struct told t;
    keep(&t);
    fixture_expect(
        "SELECT profile || ' ' || looks || ' ' || unchanged || ' ' || unanswered || ' ' || "
        "held_ms || ' ' || late_ms || ' ' || cut || ' ' || cost_ms FROM profile_sampled",
        "1 5 1 1 3.0 50.0 0 4.5");
    fixture_expect("SELECT group_concat(name || ' ' || identity || ' ' || self, ', ') FROM (SELECT "
                   "* FROM profile_stacks WHERE metric = 'samples' AND self > 0 ORDER BY name, "
                   "identity)",
                   "M.h/2 _none 2, M.h/2 read 1, did not answer _none 1, m:f/1 _none 1, "
                   "m:g/0 _none 2");
    fixture_expect("SELECT sum(self) FROM profile_stacks WHERE metric = 'reductions'", "770");
    end(&t);
}

static void deleted(void **state) {
    (void)state;
    struct told t;
    keep(&t);
    free(fixture_ask(fixture_db, "DELETE FROM profile_rows"));
    fixture_expect("SELECT (SELECT count(*) FROM profile_sampled_rows) + (SELECT count(*) FROM "
                   "profile_sampled_processes) + (SELECT count(*) FROM profile_second_rows)",
                   "0");
    end(&t);
}

// What somebody has edited is an error, or read as something that can be weighed.
static void edited(void **state) {
    (void)state;
    static const struct {
        const char *edit;
        bool reads;
    } edits[] = {
        {"UPDATE profile_second_rows SET records = x'ff' WHERE second = 1", false},
        {"UPDATE profile_second_rows SET records = x'0500000900' WHERE second = 0", false},
        {"UPDATE profile_second_rows SET records = x'0507000100' WHERE second = 0", false},
        {"UPDATE profile_second_rows SET second = -1 WHERE second = 0", false},
        {"UPDATE profile_second_rows SET second = 9223372036854775807 WHERE second = 1", false},
        {"UPDATE profile_sampled_processes SET process = 7 WHERE process = 1", false},
        {"DELETE FROM profile_sampled_processes WHERE process = 0", false},
        {"DELETE FROM profile_sampled_processes", false},
        {"UPDATE profile_second_rows SET records = x'' WHERE second = 0", true},
        {"UPDATE profile_second_rows SET records = zeroblob(0)", true},
        {"DELETE FROM profile_second_rows", true},
        {"DELETE FROM profile_sampled_rows", true},
        {"UPDATE profile_sampled_rows SET looks = -1", true},
        {"UPDATE profile_sampled_processes SET name = CAST(x'ff00' AS TEXT)", true},
    };
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        struct told t;
        struct profile read;
        bool found;
        int64_t id = keep(&t);
        free(fixture_ask(fixture_db, edits[i].edit));
        struct store *s = fixture_reader();
        bool ok = query_profile(s, id, &found, &read);
        if (ok != edits[i].reads) {
            fail_msg("%s: %s", edits[i].edit, ok ? "it was read" : store_error(s));
        }
        for (enum flame_metric m = FLAME_SAMPLES; ok && m < FLAME_METRICS; m++) {
            assert_true(samples_weigh(&read, &(struct sample_choice){.metric = m}));
        }
        profile_free(&read);
        store_close(s);
        end(&t);
        free(fixture_ask(fixture_db, "DELETE FROM profile_rows"));
    }
}

#define A_FILE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {A_FILE(read_back), A_FILE(listed), A_FILE(views),
                                       A_FILE(deleted), A_FILE(edited)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
