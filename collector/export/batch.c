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
    KEEP_BYTES = LIMIT_EXPORT_BATCH_LEAST / 4 // of a table's memory, for the next batch
};

void batch_init(struct batch *b, const char *collector) {
    *b = (struct batch){.collector = collector, .most = LIMIT_EXPORT_BATCH_BYTES};
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
    b->full = b->unfinished = false;
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
    if (b->rows >= LIMIT_EXPORT_BATCH_ROWS || b->bytes >= b->most ||
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

// The order in which changes_due gives them.
static int compare(const struct change *a, const struct change *b) {
    if (a->bucket_start != b->bucket_start) {
        return a->bucket_start < b->bucket_start ? -1 : 1;
    }
    if (a->resolution_s != b->resolution_s) {
        return a->resolution_s < b->resolution_s ? -1 : 1;
    }
    return (a->node_id > b->node_id) - (a->node_id < b->node_id);
}

static int compare_any(const void *a, const void *b) {
    return compare(a, b);
}

// Of the marks that are due takes those away that the batch before has, as they are. One that has
// changed since is due again. Marks stand in order. How many are left.
static int leave_out(struct change *due, int count, const struct batch *before) {
    int left = 0;
    for (int i = 0; i < count; i++) {
        // the first of a batch may be out of order, as it goes on with the one before that
        const struct change *other =
            before->count == 0 ? NULL
            : compare(&due[i], &before->marks[0]) == 0
                ? &before->marks[0]
                : bsearch(&due[i], before->marks + 1, before->count - 1, sizeof *due, compare_any);
        if (!other || other->revision != due[i].revision) {
            due[left++] = due[i];
        }
    }
    return left;
}

static bool read_due(struct batch *b, struct changes *c, const struct change *due, int count) {
    bool goes_on = b->unfinished, ok = true;
    const struct change first = b->marks[0];
    int i = 0;
    if (goes_on) {
        b->count = 1;
        ok = read_mark(b, c);
    }
    for (; ok && i < count && !b->full && b->count < LIMIT_EXPORT_BATCH_MARKS; i++) {
        bool far = b->count > 0 && time_sub(due[i].bucket_start, b->marks[0].bucket_start) >
                                       (int64_t)LIMIT_EXPORT_BATCH_DAYS * DAY_S;
        if (far) {
            b->full = true;
        } else if (!goes_on || compare(&due[i], &first) != 0) {
            begin_mark(b, &due[i]);
            ok = read_mark(b, c);
        }
    }
    b->full = b->full || i < count;
    return ok;
}

static bool read_all(struct batch *b, struct changes *c, int64_t now_s,
                     const struct batch *before) {
    int most = LIMIT_EXPORT_BATCH_MARKS + (before ? (int)before->count : 0);
    struct change *due = malloc((size_t)most * sizeof *due);
    int count = due ? changes_due(c, now_s, due, most) : -1;
    bool more = count == most;
    count = count > 0 && before ? leave_out(due, count, before) : count;
    bool ok = count >= 0 && read_due(b, c, due, count);
    b->full = b->full || more;
    free(due);
    return ok;
}

// It begins where the one before ended.
static void go_on(struct batch *b, const struct batch *before) {
    b->marks[0] = before->marks[before->count - 1];
    b->next_table = before->next_table;
    b->next = before->next;
    b->read = before->read;
    b->unfinished = true;
}

bool batch_read(struct batch *b, struct changes *c, int64_t now_s, const struct batch *before) {
    int64_t id;
    empty(b);
    if (!changes_begin(c)) {
        return false;
    }
    bool ok = true;
    if (changes_database(c, &id)) {
        before = before && before->database_id == id ? before : NULL; // it may be of another file
        b->database_id = id;
        if (before && before->unfinished) {
            go_on(b, before);
        }
        ok = read_all(b, c, now_s, before);
    }
    changes_end(c);
    if (!ok) {
        empty(b);
    }
    return ok;
}
