// SPDX-License-Identifier: Apache-2.0
// kprof heat: what it prints, its JSON and its picture, of a profile that a test has written.
#include "sample_kept.h"

enum { MS = 1000, SECOND = 1000000 };

// Looks at both processes each 20 ms for so long: a has run at each `busy`-th of them (0: at none).
static void looks(struct told *t, int ms, int busy, uint64_t memory) {
    for (int i = 0; i < ms / 20; i++) {
        if (busy > 0 && i % busy == 0) {
            look(t, 0, STATUS_RUNNING, 1, 1000 + (uint64_t)i, memory + (uint64_t)i * 1000);
        } else {
            unchanged(t, 0);
        }
        unchanged(t, 1);
        at(t, 20 * MS);
    }
}

// Eight seconds: idle, busy, half busy; from 4 s on too busy for 0.7 s; from 6 s on held back for
// 1 s.
static void keep_usual(const char *name) {
    struct told t;
    begin(&t);
    snprintf(t.profile.head.name, sizeof t.profile.head.name, "%s", name);
    look(&t, 0, STATUS_WAITING, 1, 0, 1000);
    look(&t, 1, STATUS_WAITING, 3, 0, 300);
    looks(&t, 1000, 0, 0);
    looks(&t, 2000, 1, 5000);
    looks(&t, 1000, 2, 9000);
    at(&t, 700 * MS);
    late(&t, 700 * MS);
    looks(&t, 1300, 0, 0);
    at(&t, 1000 * MS);
    held(&t, 1000 * MS);
    looks(&t, 500, 0, 0);
    keep(&t, 8);
}

static const char *picture(const char *arguments) {
    static char svg[1 << 21];
    char more[256];
    snprintf(more, sizeof more, "%s --out %s/x.svg", arguments, fixture_dir);
    assert_int_equal(tool_ask("heat", more), 0);
    snprintf(more, sizeof more, "%s/x.svg", fixture_dir);
    FILE *f = fopen(more, "r");
    assert_non_null(f);
    size_t len = fread(svg, 1, sizeof svg - 1, f);
    assert_in_range(len, 1000, sizeof svg - 2);
    svg[len] = 0;
    fclose(f);
    return svg;
}

static void printed(void **state) {
    (void)state;
    keep_usual("");
    assert_int_equal(tool_ask("heat", "--profile 1"), 0);
    expect_part("active of shop@host, 2025-11-20T12:00:00Z\n"
                "Profile 1: 582 looks at 2 processes, ");
    expect_part("A column is a second, from the bottom up, and each of its cells 50 ms\n");
    // each cell twice, as there is room
    expect_part("\n950 ms |..####xx....==\n");
    expect_part("\n700 ms |..####xx....==\n");
    expect_part("\n650 ms |..####xx!!..==\n");
    expect_part("\n     0 |..######!!..==..\n"
                "        0s        5s\n\n");
    expect_part("--++xx##  1 sample to 3 samples\n"
                ". idle: looked at, and no process had run (2.8 s)\n"
                "! too busy: the node had no time for the sampler (700 ms)\n"
                "= held back: the sampler kept to its budget (1.0 s)\n"
                "  not looked at: no look was due (500 ms)\n");
    expect_no_part("\033");
}

// One row of cells a column, each of its length from its begin on.
static void as_json(void **state) {
    (void)state;
    keep_usual("");
    assert_int_equal(tool_ask("heat", "--profile 1 --from 3.5s --to 5s --json"), 0);
    expect_json("$.from_ms", "3000");
    expect_json("$.column_ms", "1000");
    expect_json("$.cell_ms", "20");
    expect_json("$.columns", "2");
    expect_json("$.rows", "50");
    expect_json("$.length_ms", "8000");
    expect_json("$.metric", "active");
    expect_json("$.adds_up", "1");
    expect_json("$.highest", "1");
    expect_json("$.states[0]", "sisisisisisisisisisisisisisisisisisisisisisisisisi");
    expect_json("$.states[1]", "llllllllllllllllllllllllllllllllllliiiiiiiiiiiiiii");
    expect_json("$.values[2]", "1");
    expect_json("$.looks[2]", "2");
    expect_json("$.late_ms[60]", "20");
    expect_json("$.held_ms[60]", "0");
    assert_int_equal(tool_ask("heat", "--profile 1 --metric memory --json"), 0);
    expect_json("$.adds_up", "0");
    expect_json("$.values[60]", "15300");
    expect_json("$.lowest", "1300");
    assert_int_equal(tool_ask("heat", "--profile 1 --metric samples --json"), 0);
    expect_json("$.values[0]", "4"); // the first looks, and those of the first 20 ms
}

// Each part is closed, in its order; the script and the cells are no parts.
static void is_well_formed(const char *svg) {
    char open[16][20];
    int depth = 0;
    for (const char *at = strchr(svg + 1, '<'); at; at = strchr(at, '<')) {
        char name[20];
        const char *close = strchr(at, '>');
        assert_non_null(close);
        if (strncmp(at, "<![CDATA[", 9) == 0) {
            close = strstr(at, "]]>");
            assert_non_null(close);
        } else if (at[1] == '/') {
            assert_int_equal(sscanf(at, "</%19[a-z]>", name), 1);
            assert_true(depth > 0);
            assert_string_equal(open[--depth], name);
        } else {
            assert_int_equal(sscanf(at, "<%19[a-zA-Z]", name), 1);
            if (close[-1] != '/') {
                assert_true(depth < 16);
                strcpy(open[depth++], name);
            }
        }
        at = close;
    }
    assert_int_equal(depth, 0);
}

static void drawn(void **state) {
    (void)state;
    keep_usual("<b>&\"]]>");
    char *first = strdup(picture("--profile 1"));
    assert_string_equal(picture("--profile 1"), first); // the same each time
    is_well_formed(first);
    static const char *const parts[] = {
        "<text id=\"title\" x=\"16\" y=\"24\">&lt;b&gt;&amp;&quot;]]&gt;: active of shop@host, ",
        "<title>--from 4s --to 5s</title>",
        ">idle: looked at, and no process had run (3.3 s)<",
        ">too busy: the node had no time for the sampler (700 ms)<",
        ">held back: the sampler kept to its budget (1.0 s)<",
        ">not looked at: no look was due (500 ms)<",
        // the cells of 4 s to 4.7 s are one piece, 35 of 8 px; and the whole second from 6 s on
        "<path style=\"fill:url(#late)\" d=\"M236 ",
        "h40v-280h-40z\"/>\n<path style=\"fill:url(#held)\" d=\"M316 ",
        "h40v-400h-40z\"/>",
        "\"states\":[",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!strstr(first, parts[i])) {
            fail_msg("no %s in %s", parts[i], first);
        }
    }
    free(first);
}

// A day, in which something happens each second minute: fewer columns, and a picture of a size that
// a browser shows.
static void a_day(void **state) {
    (void)state;
    struct told t;
    begin(&t);
    for (int minute = 0; minute < 24 * 60; minute++) {
        look(&t, 0, STATUS_RUNNING, 1, (uint64_t)minute + 1, 5000);
        look(&t, 1, STATUS_RUNNING, 3, 0, 0);
        at(&t, 60 * (uint64_t)SECOND);
    }
    keep(&t, 86400);
    const char *svg = picture("--profile 1");
    is_well_formed(svg);
    assert_true(strlen(svg) < 1000000);
    assert_non_null(
        strstr(svg, ">A column is 300 s, from the bottom up, and each of its cells 6.0 s: "));
    assert_non_null(strstr(svg, "<title>--from 3600s --to 3900s</title>"));
    assert_non_null(strstr(svg, ">12h</text>"));
    assert_int_equal(tool_ask("heat", "--profile 1"), 0);
    expect_part("A column is 1200 s, ");
    assert_int_equal(tool_ask("heat", "--profile 1 --from 3600s --to 3601s"), 0);
    expect_part("A column is a second, ");
}

static void refused(void **state) {
    (void)state;
    struct profile full;
    int64_t id;
    keep_usual("");
    assert_true(profile_init(&full));
    full.head = (struct profile_head){.node = "shop@host", .end_ns = 1, .settings = "{}"};
    full.counts = (struct profile_counts){.requests = 1, .duration_ns = 1000};
    struct store *s = fixture_open();
    assert_true(store_keep_profile(s, &full, &id));
    store_close(s);
    profile_free(&full);
    static const struct {
        const char *arguments, *told;
        int status;
    } wrong[] = {
        {"--profile 2",
         "profile 2 is a full trace of requests; heat maps are of profiles of samples, which kprof "
         "sample makes",
         1},
        {"--profile 3", "keeps no profile 3; kprof profiles --db FILE lists those there are", 1},
        {"--profile 1 --metric wall", "--metric wall is none of those that kprof heat --help lists",
         2},
        {"--profile 1 --metric heat", "--metric heat is none of those that kprof heat --help lists",
         2},
        {"--profile 1 --from 9s", "profile 1 has nothing from --from up to --to: it is 8.0 s long",
         1},
        {"--profile 1 --from 5s --to 5s", "profile 1 has nothing from --from up to --to", 1},
        {"--profile 1 --from 1x", "--from 1x is no length such as 12s", 2},
        {"--profile 1 --out x.png", "--out x.png: its name must end with .svg", 2},
        {"--profile 1 --out /nowhere/x.svg", "cannot write /nowhere/x.svg", 1},
        {"", "of what? Say --profile ID", 2},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(tool_ask("heat", wrong[i].arguments), wrong[i].status);
        expect_part(wrong[i].told);
    }
}

// -- the parts that a file for browsers has
// ---------------------------------------------------------

static char html[8 << 20];

// What stands in an element of the file that kprof flame has written, to be freed; NULL: there is
// none.
static char *part_of(const char *id) {
    char begin[64];
    snprintf(begin, sizeof begin, "id=\"%s\">", id);
    const char *from = strstr(html, begin), *end = from ? strstr(from, "</script>") : NULL;
    return end ? strndup(from + strlen(begin), (size_t)(end - from) - strlen(begin)) : NULL;
}

static void write_html(const char *arguments) {
    char more[400];
    snprintf(more, sizeof more, "--profile 1 --out %s/x.html %s", fixture_dir, arguments);
    assert_int_equal(tool_ask("flame", more), 0);
    snprintf(more, sizeof more, "%s/x.html", fixture_dir);
    FILE *f = fopen(more, "r");
    assert_non_null(f);
    size_t len = fread(html, 1, sizeof html - 1, f);
    assert_in_range(len, 1000, sizeof html - 2);
    html[len] = 0;
    fclose(f);
}

// A number that SQL makes of two texts.
static int64_t number_of(const char *sql, const char *a, const char *b) {
    sqlite3 *db;
    sqlite3_stmt *asking;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &asking, NULL), SQLITE_OK);
    sqlite3_bind_text(asking, 1, a, -1, SQLITE_STATIC);
    sqlite3_bind_text(asking, 2, b, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(asking), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(asking, 0);
    sqlite3_finalize(asking);
    sqlite3_close(db);
    return number;
}

// Each look is in one cell and of one stack; what a cell weighs is what the map shows.
static void parts_of_html(void **state) {
    (void)state;
    keep_usual("");
    write_html("");
    char *heat = part_of("heat"), *parts = part_of("parts");
    static const char values[] =
        "SELECT sum(v.value) FROM json_each(?1, '$.metrics.samples') AS c, "
        "json_each(c.value) AS v WHERE v.key % 2 = 1";
    static const char differ[] =
        "WITH hot AS (SELECT m.value AS m FROM json_each(?1, '$.maps') AS m "
        "WHERE m.value ->> 'metric' = 'active') SELECT count(*) FROM hot, json_each(m, '$.values') "
        "AS h JOIN json_each(?2, '$.metrics.active') AS c ON c.key = h.key WHERE h.value <> "
        "(SELECT coalesce(sum(v.value), 0) FROM json_each(c.value) AS v WHERE v.key % 2 = 1)";
    assert_non_null(heat);
    assert_non_null(parts);
    assert_int_equal(number_of(values, parts, ""), 582);
    assert_int_equal(number_of("SELECT json_array_length(?1, '$.metrics.active')", parts, ""), 400);
    assert_int_equal(number_of(differ, heat, parts), 0);
    assert_int_equal(number_of("SELECT json_extract(?1, '$.metrics.memory') IS NULL", parts, ""),
                     1);
    free(heat);
    free(parts);
    write_html("--from 1s --to 3s --group process");
    parts = part_of("parts");
    assert_int_equal(number_of("SELECT json_extract(?1, '$.from_ms')", parts, ""), 1000);
    assert_int_equal(number_of(values, parts, ""), 200);
    free(parts);
    write_html("--before 1");
    assert_null(part_of("parts"));
}

// -- several profiles -----------------------------------------------------------------------------

// Both of a label, an hour apart; another one of none.
static void of_a_node(void **state) {
    (void)state;
    keep_usual("");
    keep_usual("");
    keep_usual("");
    free(fixture_ask(fixture_db, "UPDATE profile_rows SET label = 'always' WHERE id < 3"));
    free(fixture_ask(fixture_db, "UPDATE profile_rows SET begin_ns = begin_ns + 3600000000000, "
                                 "end_ns = end_ns + 3600000000000 WHERE id = 2"));
    static const char day[] = "--since 2025-11-20T00:00:00Z --until 2025-11-21T00:00:00Z";
    char arguments[200];
    snprintf(arguments, sizeof arguments, "--node shop %s --json", day);
    assert_int_equal(tool_ask("heat", arguments), 0);
    assert_int_equal(number_of("SELECT json_extract(?1, '$.profile') IS NULL", output, ""), 1);
    assert_int_equal(number_of("SELECT json_array_length(?1, '$.profiles')", output, ""), 2);
    expect_json("$.profiles[0].id", "1");
    expect_json("$.profiles[1].id", "2");
    expect_json("$.profiles[1].from_ms", "46800000");
    expect_part("\"started_at\":\"2025-11-20T00:00:00");
    expect_json("$.from_ms", "43200000"); // noon
    expect_json("$.column_ms", "10000");
    expect_json("$.columns", "361");
    expect_json("$.looks[0]", "22"); // of 0.2 s, beside the first looks
    expect_json("$.states[1]", "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn");
    expect_json("$.node", "shop@host");
    snprintf(arguments, sizeof arguments, "--node shop %s", day);
    assert_int_equal(tool_ask("heat", arguments), 0);
    expect_part("always: active of shop@host, 2025-11-20T12:00:00Z to 2025-11-20T13:");
    expect_part("2 profiles, 1 to 2: 1,164 looks at processes\n");
    expect_part("/ no profile: nothing is kept of that time (");
    expect_part("12:00");
    assert_non_null(strstr(picture(arguments), ">12:10<"));
    assert_int_equal(tool_ask("heat", "--node shop --since 2025-11-21T00:00:00Z"), 1);
    expect_part("keeps no samples of shop@host with the label always of that time");
    assert_int_equal(tool_ask("heat", "--node shop --label x"), 1);
    assert_int_equal(tool_ask("heat", "--node shop --profile 1"), 2);
    assert_int_equal(tool_ask("heat", "--node shop --from 1s"), 2);
    assert_int_equal(tool_ask("heat", "--profile 1 --since 1h"), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(printed, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(as_json, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(drawn, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_day, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(of_a_node, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(parts_of_html, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(refused, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
