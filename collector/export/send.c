// SPDX-License-Identifier: Apache-2.0
#include "export/send.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/pack.h"

enum { SQL_BYTES = 65536, PACKED_BYTES = 2 * LIMIT_EXPORT_BATCH_BYTES };

void sender_init(struct sender *s, struct http *http, const char *database) {
    *s = (struct sender){.http = http,
                         .database = database,
                         .sql = buffer_make(SQL_BYTES),
                         .packed = buffer_make(PACKED_BYTES)};
}

void sender_free(struct sender *s) {
    buffer_free(&s->sql);
    buffer_free(&s->packed);
}

static bool fail(struct sender *s, const char *why) {
    snprintf(s->why, sizeof s->why, "%s", why);
    return false;
}

// -- statements -----------------------------------------------------------------------------------

// Says what stands in s->sql, and takes the answer. Everything but ANSWER_DONE is in s->why.
static enum answer_meaning say(struct sender *s, bool question, struct answer *out) {
    if (s->sql.failed) {
        fail(s, "no memory for a statement");
        return ANSWER_LATER;
    }
    const struct http_question q = {.body = slice_of(s->sql.data, s->sql.len)};
    if (!http_ask(s->http, &q, out, s->why)) {
        return ANSWER_LATER;
    }
    return question ? answer_to_question(out, s->why) : answer_to_order(out, s->why);
}

static enum answer_meaning order(struct sender *s) {
    struct answer answer;
    return say(s, false, &answer);
}

static bool has_table(struct sender *s, int table, bool *has) {
    struct answer answer;
    buffer_reset(&s->sql);
    statement_exists(s->database, table, &s->sql);
    enum answer_meaning meaning = say(s, true, &answer);
    *has = meaning == ANSWER_DONE && slice_is(answer.body, "1\n");
    return meaning == ANSWER_DONE || meaning == ANSWER_MISSING;
}

static bool make_table(struct sender *s, int table) {
    buffer_reset(&s->sql);
    statement_create(s->database, table, !statement_modern(s->major), &s->sql);
    return order(s) == ANSWER_DONE;
}

bool sender_set_up(struct sender *s) {
    struct answer answer;
    bool has = false, tried = false;
    buffer_reset(&s->sql);
    buffer_text(&s->sql, "SELECT version()");
    if (say(s, true, &answer) != ANSWER_DONE) {
        return false;
    }
    if (!answer_version(answer.body, &s->major, &s->minor)) {
        return fail(s, "what answers there is no ClickHouse");
    }
    for (int i = 0; i <= CHANGE_TABLES; i++) {
        if (!has_table(s, i, &has)) {
            return false;
        }
        if (!has && !tried) { // who may not make one may be let into one that is there
            buffer_reset(&s->sql);
            buffer_printf(&s->sql, "CREATE DATABASE IF NOT EXISTS %s", s->database);
            order(s);
            tried = true;
        }
        if (!has && !make_table(s, i)) {
            return false;
        }
    }
    s->why[0] = 0;
    return true;
}

bool sender_beat(struct sender *s, const struct statement_self *self, int64_t *twin_s) {
    struct answer answer;
    uint64_t numbers[2];
    buffer_reset(&s->sql);
    statement_beat(self, &s->sql);
    if (order(s) != ANSWER_DONE) {
        return false;
    }
    buffer_reset(&s->sql);
    statement_twins(self, &s->sql);
    if (say(s, true, &answer) != ANSWER_DONE) {
        return false;
    }
    if (!answer_numbers(answer.body, numbers) || numbers[0] > UINT32_MAX) {
        return fail(s, "it answers what ClickHouse does not");
    }
    *twin_s = (int64_t)numbers[0];
    return numbers[1] > 0 || fail(s, "it does not keep what it is given");
}

int sender_drop_old(struct sender *s) {
    struct answer answer;
    char table[ANSWER_WORD_BYTES], partition[ANSWER_WORD_BYTES];
    int dropped = 0;
    if (statement_modern(s->major)) {
        return 0;
    }
    buffer_reset(&s->sql);
    statement_old_partitions(s->database, &s->sql);
    if (say(s, true, &answer) != ANSWER_DONE) {
        return -1;
    }
    // the next statement takes the answer's place
    struct buffer list = buffer_make(LIMIT_EXPORT_ANSWER_BYTES);
    buffer_append(&list, answer.body.data, answer.body.len);
    struct slice rest = slice_of(list.data, list.len);
    while (answer_pair(&rest, table, partition) && dropped >= 0) {
        buffer_reset(&s->sql);
        statement_drop(s->database, table, partition, &s->sql);
        dropped = order(s) == ANSWER_DONE ? dropped + 1 : -1;
    }
    buffer_free(&list);
    return dropped;
}

// -- rows -----------------------------------------------------------------------------------------

static bool pack(struct sender *s, struct slice bytes) {
    buffer_reset(&s->packed);
    return pack_gzip(bytes, &s->packed) || fail(s, "no memory to pack the rows");
}

// The rows of a table.
struct table {
    struct sender *sender;
    struct batch *batch;
    enum change_table table;
};

static enum answer_meaning insert(void *context, uint32_t from, uint32_t until) {
    const struct table *of = context;
    struct sender *s = of->sender;
    const struct batch_table *t = &of->batch->tables[of->table];
    struct answer answer;
    uint32_t start = from > 0 ? t->rows[from - 1].end : 0;
    buffer_reset(&s->sql);
    statement_insert(s->database, of->table, &s->sql);
    buffer_append(&s->sql, "", 1);
    struct slice rows = slice_of(t->bytes.data + start, t->rows[until - 1].end - start);
    if (s->sql.failed || (!s->near && !pack(s, rows))) {
        return ANSWER_LATER;
    }
    const struct http_question q = {
        .sql = (const char *)s->sql.data,
        // an insert that the engine only queues may be lost after it is acknowledged
        .setting = statement_modern(s->major) && s->major >= 22 ? "async_insert=0" : NULL,
        .body = s->near ? rows : slice_of(s->packed.data, s->packed.len),
        .packed = !s->near};
    enum answer_meaning meaning =
        http_ask(s->http, &q, &answer, s->why) ? answer_to_order(&answer, s->why) : ANSWER_LATER;
    s->rows += meaning == ANSWER_DONE ? until - from : 0;
    return meaning;
}

static void refuse(void *context, uint32_t row, const char *reason) {
    const struct table *of = context;
    batch_refuse(of->batch, of->table, row, reason);
}

enum sent sender_send(struct sender *s, struct batch *b) {
    for (int i = 0; i < CHANGE_TABLES; i++) {
        struct table table = {s, b, (enum change_table)i};
        struct parts p = {.insert = insert, .refuse = refuse, .context = &table, .why = s->why};
        enum sent sent = b->tables[i].count > 0 ? parts_send(&p, b->tables[i].count) : SENT_ALL;
        if (sent != SENT_ALL) {
            return sent;
        }
    }
    return SENT_ALL;
}
