// SPDX-License-Identifier: Apache-2.0
// Notes written, read back, cleaned, and given up when they are old or too many; and the writer
// that takes them.
#include "store_fixture.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/internal.h"
#include "store/notes.h"
#include "store/retention.h"
#include "store/writer.h"

static const int64_t NOON = 1763640000, S = 1000000000;

static struct note note_of(int64_t at_s, const char *node, const char *text) {
    struct note note;
    assert_true(note_make(&note, at_s * S, slice_text(node), slice_text(text)));
    return note;
}

static int64_t keep(struct store *s, int64_t at_s, const char *node, const char *text) {
    struct note note = note_of(at_s, node, text);
    int64_t id = 0;
    if (!store_keep_note(s, &note, &id)) {
        fail_msg("%s", store_error(s));
    }
    return id;
}

// The texts of an answer, one after the other.
static void expect_notes(struct note_filter filter, const char *wanted) {
    struct store *s = fixture_reader();
    struct note_list list;
    char texts[400] = "";
    assert_true(query_notes(s, &filter, &list));
    for (uint32_t i = 0; i < list.count; i++) {
        strcat(strcat(texts, i > 0 ? "," : ""), list.notes[i].text);
    }
    assert_string_equal(texts, wanted);
    note_list_free(&list);
    store_close(s);
}

static void kept_and_found(void **state) {
    (void)state;
    struct store *s = fixture_open();
    assert_int_equal(keep(s, NOON, "", "deployed 1.4"), 1);
    assert_int_equal(keep(s, NOON - 60, "shop@host", "one"), 2);
    assert_int_equal(keep(s, NOON + 60, "other@host", "two"), 3);
    store_close(s);
    fixture_expect("SELECT at || '|' || coalesce(node, '-') || '|' || text FROM notes WHERE id = 1",
                   "2025-11-20T12:00:00Z|-|deployed 1.4");
    fixture_expect("SELECT node FROM notes WHERE id = 2", "shop@host");
    const struct note_filter all = {INT64_MIN, INT64_MAX, NULL, 10};
    expect_notes(all, "two,deployed 1.4,one"); // the latest first
    expect_notes((struct note_filter){INT64_MIN, INT64_MAX, NULL, 2}, "two,deployed 1.4");
    expect_notes((struct note_filter){INT64_MIN, INT64_MAX, "shop@host", 10}, "deployed 1.4,one");
    expect_notes((struct note_filter){INT64_MIN, INT64_MAX, "none@host", 10}, "deployed 1.4");
    expect_notes((struct note_filter){NOON, NOON + 60, NULL, 10}, "deployed 1.4");
}

// What comes from outside is cut and cleaned, also when somebody has edited the file.
static void cleaned(void **state) {
    (void)state;
    struct note note;
    char longest[4 * LIMIT_NOTE_BYTES];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    assert_true(note_make(&note, 0, slice_text("a\033b"), slice_text("red \033[31m\n")));
    assert_string_equal(note.text, "red ?[31m?");
    assert_string_equal(note.node, "a?b");
    assert_true(note_make(&note, 0, slice_text(""), slice_text(longest)));
    assert_int_equal(strlen(note.text), LIMIT_NOTE_BYTES);
    assert_false(note_make(&note, 0, slice_text(""), slice_text("")));
    assert_false(note_make(&note, 0, slice_text(""), slice_text("   ")));
    struct store *s = fixture_open();
    keep(s, NOON, "", "one");
    store_close(s);
    free(fixture_ask(fixture_db, "UPDATE note_rows SET text = CAST(x'1b5b41ff' AS TEXT), node_id = "
                                 "77, at_ns = 9223372036854775807 WHERE 1"));
    expect_notes((struct note_filter){INT64_MIN, INT64_MAX, NULL, 10}, "");
    free(fixture_ask(fixture_db, "UPDATE note_rows SET at_ns = -9223372036854775807"));
    expect_notes((struct note_filter){INT64_MIN, INT64_MAX, NULL, 10}, "?[A?");
}

static void old_ones_go(void **state) {
    (void)state;
    char sql[300];
    struct store *s = fixture_open();
    keep(s, NOON - NOTE_KEPT_S - 1, "", "old");
    keep(s, NOON - NOTE_KEPT_S, "", "young");
    store_expire(s, NOON);
    assert_string_equal(store_error(s), "");
    fixture_expect("SELECT group_concat(text) FROM notes", "young");
    snprintf(sql, sizeof sql,
             "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
             "INSERT INTO note_rows (at_ns, text) SELECT (%lld + i) * 1000000000, 'n' || i FROM n",
             RETENTION_NOTES + 5, (long long)NOON);
    store_close(s);
    free(fixture_ask(fixture_db, sql));
    s = fixture_open();
    store_expire(s, NOON);
    store_close(s);
    snprintf(sql, sizeof sql, "%d n6", RETENTION_NOTES);
    fixture_expect("SELECT count(*) || ' ' || (SELECT text FROM notes ORDER BY at LIMIT 1) FROM "
                   "notes",
                   sql);
}

static int64_t wait_for(struct writer *w, int64_t ticket) {
    int64_t id = 0;
    for (int i = 0; i < 20000 && !writer_noted(w, ticket, &id); i++) {
        usleep(1000);
    }
    return id;
}

static void the_writer_takes_them(void **state) {
    (void)state;
    struct store *s = fixture_open();
    struct writer *w = writer_start(s, &(struct writer_options){.bucket_s = 10});
    struct note note = note_of(NOON, "", "one");
    int64_t id = 0, first = writer_note(w, &note);
    assert_int_equal(wait_for(w, first), 1);
    for (uint32_t i = 0; i < LIMIT_NOTES_WAITING; i++) {
        assert_int_equal(wait_for(w, writer_note(w, &note)), i + 2);
    }
    assert_true(writer_noted(w, first, &id)); // so long ago that its number is not known any more
    assert_int_equal(id, 0);
    assert_true(writer_stop(w));
    store_close(s);
    fixture_expect("SELECT count(*) FROM notes", "17");
}

// They wait for a disk that refuses, as many as have room; at the end they are written after all.
static void they_wait_for_the_disk(void **state) {
    (void)state;
    sqlite3 *other;
    struct store *s = fixture_open();
    struct note note = note_of(NOON, "shop@host", "waits");
    int64_t id = 0;
    sqlite3_busy_timeout(s->db, 10);
    assert_int_equal(sqlite3_open(fixture_db, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    struct writer *w = writer_start(s, &(struct writer_options){.bucket_s = 10});
    int64_t first = writer_note(w, &note);
    for (uint32_t i = 1; i < LIMIT_NOTES_WAITING; i++) {
        assert_int_equal(writer_note(w, &note), first + i);
    }
    assert_int_equal(writer_note(w, &note), 0);
    usleep(50000);
    assert_false(writer_noted(w, first, &id));
    sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL);
    assert_true(writer_stop(w));
    sqlite3_close(other);
    store_close(s);
    fixture_expect("SELECT count(*) || ' ' || count(DISTINCT node) FROM notes", "16 1");
}

#define A_FILE(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void) {
    log_set_level(LOG_ERROR + 1);
    const struct CMUnitTest tests[] = {A_FILE(kept_and_found), A_FILE(cleaned), A_FILE(old_ones_go),
                                       A_FILE(the_writer_takes_them),
                                       A_FILE(they_wait_for_the_disk)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
