// SPDX-License-Identifier: Apache-2.0
#include "store/notes.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/names.h"
#include "internal.h"

bool note_make(struct note *out, int64_t at_ns, struct slice node, struct slice text) {
    *out = (struct note){.at_ns = at_ns};
    names_clean(node, out->node, sizeof out->node);
    names_clean(text, out->text, sizeof out->text);
    return out->text[strspn(out->text, " ")] != 0;
}

// -- writing --------------------------------------------------------------------------------------

static bool add(struct store *s, const struct note *note, int64_t node) {
    static const char what[] = "keep a note";
    sqlite3_stmt *adding = NULL;
    if (sqlite3_prepare_v2(s->db, "INSERT INTO note_rows (at_ns, node_id, text) VALUES (?1,?2,?3)",
                           -1, &adding, NULL) != SQLITE_OK) {
        return store_fail(s, what);
    }
    sqlite3_bind_int64(adding, 1, note->at_ns);
    if (node != 0) {
        sqlite3_bind_int64(adding, 2, node);
    }
    sqlite3_bind_text(adding, 3, note->text, -1, SQLITE_STATIC);
    bool ok = store_run(s, adding, what);
    sqlite3_finalize(adding);
    return ok;
}

bool store_keep_note(struct store *s, const struct note *note, int64_t *id) {
    s->error[0] = 0;
    if (!store_begin(s, "begin")) {
        return false;
    }
    int64_t node = 0;
    bool ok = true;
    if (note->node[0]) {
        node = store_name_id(s, STATEMENT_ADD_NODE, STATEMENT_FIND_NODE, note->node);
        ok = node != 0;
    }
    ok = ok && add(s, note, node);
    *id = sqlite3_last_insert_rowid(s->db);
    return store_end(s, ok, "commit");
}

// -- reading --------------------------------------------------------------------------------------

static const char notes_sql[] =
    "SELECT r.id, r.at_ns, n.name, r.text FROM note_rows AS r "
    "LEFT JOIN node_names AS n ON n.id = r.node_id "
    "WHERE at_ns >= ?1 AND at_ns < ?2 AND (?3 IS NULL OR r.node_id IS NULL OR " QUERY_AMONG(
        "n.name", "?3") ") "
                        "ORDER BY at_ns DESC, r.id DESC LIMIT ?4";

static struct slice text_of(sqlite3_stmt *from, int column) {
    const unsigned char *text = sqlite3_column_text(from, column);
    return slice_text(text ? (const char *)text : "");
}

// Whoever edits the file may enter anything: texts are cleaned once more.
static bool add_note(struct store *s, sqlite3_stmt *from, uint32_t *room, struct note_list *out) {
    if (!array_grow((void **)&out->notes, room, out->count, sizeof *out->notes)) {
        return query_no_memory(s);
    }
    struct note *note = &out->notes[out->count++];
    note_make(note, sqlite3_column_int64(from, 1), text_of(from, 2), text_of(from, 3));
    note->id = sqlite3_column_int64(from, 0);
    return true;
}

bool query_notes(struct store *s, const struct note_filter *filter, struct note_list *out) {
    sqlite3_stmt *notes;
    uint32_t room = 0;
    int rc = SQLITE_ERROR;
    *out = (struct note_list){0};
    bool ok = sqlite3_prepare_v2(s->db, notes_sql, -1, &notes, NULL) == SQLITE_OK;
    if (!ok) {
        return store_fail(s, "query the notes");
    }
    sqlite3_bind_int64(notes, 1, time_of_seconds(filter->from_s));
    sqlite3_bind_int64(notes, 2, time_of_seconds(filter->until_s));
    sqlite3_bind_text(notes, 3, filter->node, -1, SQLITE_STATIC);
    sqlite3_bind_int64(notes, 4, filter->most);
    while (ok && (rc = sqlite3_step(notes)) == SQLITE_ROW) {
        ok = add_note(s, notes, &room, out);
    }
    ok = ok && (rc == SQLITE_DONE || store_fail(s, "query the notes"));
    sqlite3_finalize(notes);
    return ok;
}

void note_list_free(struct note_list *list) {
    free(list->notes);
    *list = (struct note_list){0};
}
