// SPDX-License-Identifier: Apache-2.0
#include "export/batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/time_math.h"
#include "export/row_binary.h"

enum {
    DAY_S = 86400,
    // of a table's bytes: the batch's, and one row that is longer than it is allowed to be
    TABLE_BYTES = LIMIT_EXPORT_BATCH_BYTES + 2 * LIMIT_EXPORT_ROW_BYTES,
    KEEP_BYTES = LIMIT_EXPORT_BATCH_BYTES / 4 // of a table's memory, for the next batch
};

void batch_init(struct batch *b, const char *collector) {
    *b = (struct batch){.collector = collector};
    for (int i = 0; i < CHANGE_TABLES; i++) {
        b->tables[i].bytes = buffer_make(TABLE_BYTES);
    }
}

void batch_free(struct batch *b) {
    for (int i = 0; i < CHANGE_TABLES; i++) {
        buffer_free(&b->tables[i].bytes);
        free(b->tables[i].rows);
    }
}

static void empty(struct batch *b) {
    for (int i = 0; i < CHANGE_TABLES; i++) {
        struct batch_table *t = &b->tables[i];
        if (t->bytes.room > KEEP_BYTES) {
            buffer_free(&t->bytes);
            t->bytes = buffer_make(TABLE_BYTES);
        }
        buffer_reset(&t->bytes);
        t->count = 0;
    }
    b->bytes = b->rows = b->count = b->whole = b->gone = b->refusal_count = 0;
    b->refused = 0;
    b->full = false;
}

void batch_again(struct batch *b) {
    b->unfinished = false;
}

// -- rows -----------------------------------------------------------------------------------------

struct reading {
    struct batch *batch;
    enum change_table table;
};

static void note_refusal(struct batch *b, enum change_table table, uint32_t mark,
                         const struct change_place *at, const char *reason) {
    b->refused++;
    if (b->refusal_count < LIMIT_EXPORT_BATCH_REFUSALS) {
        struct change_refusal *r = &b->refusals[b->refusal_count++];
        *r = (struct change_refusal){
            b->marks[mark], change_shape(table)->name, {at->key[0], at->key[1]}, ""};
        snprintf(r->reason, sizeof r->reason, "%s", reason);
    }
}

void batch_refuse(struct batch *b, enum change_table table, uint32_t row, const char *reason) {
    const struct batch_row *r = &b->tables[table].rows[row];
    note_refusal(b, table, r->mark, &r->at, reason);
}

// Appends a row. NULL, or why it is none.
static const char *put_row(struct batch *b, enum change_table table,
                           const struct change_cell *cells, struct buffer *out) {
    const struct change_shape *shape = change_shape(table);
    for (int i = 0; i < shape->count; i++) {
        if (cells[i].bytes.len > LIMIT_EXPORT_ROW_BYTES) {
            return "a text in it is too long";
        }
        const char *why = row_binary_cell(shape->columns[i].kind, &cells[i], out);
        if (why) {
            return why;
        }
    }
    row_binary_text(slice_text(b->collector), out);
    row_binary_u64((uint64_t)b->database_id, out);
    row_binary_u64((uint64_t)b->marks[b->count - 1].revision, out);
    return NULL;
}

static bool take(void *context, const struct change_cell *cells, const struct change_place *at) {
    struct reading *r = context;
    struct batch *b = r->batch;
    struct batch_table *t = &b->tables[r->table];
    size_t start = t->bytes.len;
    if (b->rows >= LIMIT_EXPORT_BATCH_ROWS || b->bytes >= LIMIT_EXPORT_BATCH_BYTES ||
        !array_grow((void **)&t->rows, &t->room, t->count, sizeof *t->rows)) {
        return false;
    }
    b->read = true;
    const char *why = put_row(b, r->table, cells, &t->bytes);
    if (!why && t->bytes.len - start > LIMIT_EXPORT_ROW_BYTES) {
        why = "it is too long";
    }
    if (why || t->bytes.failed) {
        bool failed = t->bytes.failed;
        t->bytes.len = start;
        t->bytes.failed = false;
        if (failed && t->count > 0) { // what is there is sent, and then there is room
            return false;
        }
        note_refusal(b, r->table, b->count - 1, at, failed ? "there is no memory for it" : why);
        return true;
    }
    b->bytes += t->bytes.len - start;
    b->rows++;
    t->rows[t->count++] = (struct batch_row){(uint32_t)t->bytes.len, b->count - 1, *at};
    return true;
}

// Reads the rows of the last mark from where they go on. False on failure.
static bool read_mark(struct batch *b, struct changes *c) {
    const struct change *mark = &b->marks[b->count - 1];
    for (; b->next_table < CHANGE_TABLES; b->next_table++) {
        struct reading r = {b, (enum change_table)b->next_table};
        if (change_shape(r.table)->kept != (mark->resolution_s == 0)) {
            continue;
        }
        enum change_read read = changes_read(c, r.table, mark, &b->next, take, &r);
        if (read != CHANGE_ALL) {
            b->unfinished = b->full = read == CHANGE_MORE;
            return b->unfinished;
        }
        b->next = CHANGE_START;
    }
    b->gone += !b->read;
    b->whole++;
    b->unfinished = false;
    return true;
}

static void begin_mark(struct batch *b, const struct change *mark) {
    b->marks[b->count++] = *mark;
    b->next_table = 0;
    b->next = CHANGE_START;
    b->read = false;
}

static bool same(const struct change *a, const struct change *b) {
    return a->bucket_start == b->bucket_start && a->resolution_s == b->resolution_s &&
           a->node_id == b->node_id;
}

static bool read_all(struct batch *b, struct changes *c, int64_t now_s) {
    struct change *due = malloc(LIMIT_EXPORT_BATCH_MARKS * sizeof *due);
    int count = due ? changes_due(c, now_s, due, LIMIT_EXPORT_BATCH_MARKS) : -1;
    bool ok = count >= 0;
    struct change last = b->marks[0];
    bool goes_on = b->unfinished;
    if (ok && goes_on) {
        b->count = 1;
        ok = read_mark(b, c);
    }
    for (int i = 0; ok && i < count && !b->full && b->count < LIMIT_EXPORT_BATCH_MARKS; i++) {
        bool far = b->count > 0 && time_sub(due[i].bucket_start, b->marks[0].bucket_start) >
                                       (int64_t)LIMIT_EXPORT_BATCH_DAYS * DAY_S;
        if (far) {
            b->full = true;
        } else if (!goes_on || !same(&due[i], &last)) {
            begin_mark(b, &due[i]);
            ok = read_mark(b, c);
        }
    }
    b->full = b->full || count == LIMIT_EXPORT_BATCH_MARKS;
    free(due);
    return ok;
}

bool batch_read(struct batch *b, struct changes *c, int64_t now_s) {
    if (b->unfinished) {
        b->marks[0] = b->marks[b->count - 1];
    }
    empty(b);
    int64_t id;
    if (!changes_begin(c)) {
        return false;
    }
    bool ok = true;
    if (changes_database(c, &id)) {
        b->unfinished = b->unfinished && id == b->database_id;
        b->database_id = id;
        ok = read_all(b, c, now_s);
    }
    changes_end(c);
    if (!ok) {
        empty(b);
        batch_again(b);
    }
    return ok;
}
