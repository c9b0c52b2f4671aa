// SPDX-License-Identifier: Apache-2.0
#include "export/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/limits.h"
#include "export/answer.h"
#include "export/export.h"
#include "export/http.h"
#include "export/questions.h"
#include "export/row_read.h"
#include "export/target.h"
#include "store/mirror.h"

enum { SQL_BYTES = 1 << 20, FILE_SHIFT = 40, OPEN_SECONDS = 15 };
static const int64_t SECOND = 1000000000;

// A file that was exported, and its place among all.
struct place {
    char *collector;
    uint64_t database_id;
    uint32_t at;
};

struct history {
    struct target target;
    char name[TARGET_TEXT_BYTES];
    struct http *http;
    char *clusters, *collectors, *chosen;
    struct buffer sql;
    struct place *places; // by collector and number
    uint32_t place_count, place_room;
};

static struct question_scope scope_of(const struct history *h) {
    return (struct question_scope){h->target.database, h->clusters, h->collectors, h->chosen};
}

// -- asking ---------------------------------------------------------------------------------------

static bool feed(void *to, struct slice bytes) {
    return row_reader_feed(to, bytes);
}

static bool fail(const struct history *h, const char *reason, char *why) {
    snprintf(why, STORE_ERROR_BYTES, "%.200s: %.300s", h->name, reason);
    return false;
}

// Whether all rows came, and were taken. False: `why` says why they did not, unless it was take.
static bool judge(const struct history *h, const struct row_reader *r, const struct answer *a,
                  char *why) {
    char reason[CHANGE_REASON_BYTES];
    enum answer_meaning meaning = answer_to_question(a, reason);
    if (r->malformed) {
        return fail(h, "it answers what ClickHouse does not", why);
    }
    if (r->stopped) {
        return false;
    }
    if (a->cut) {
        return fail(h, "the answer is too large: ask for a shorter time", why);
    }
    if (meaning == ANSWER_MISSING) {
        snprintf(why, STORE_ERROR_BYTES,
                 "%.200s has no history of kprof, or none that this user may read (%.200s)",
                 h->name, reason);
        return false;
    }
    if (meaning != ANSWER_DONE) {
        return fail(h, reason, why);
    }
    return row_reader_whole(r) || fail(h, "its answer ends in the middle of a row", why);
}

// Says what stands in h->sql, and gives each row to take.
static bool ask(struct history *h, int64_t deadline_ns, const enum change_kind *kinds, int count,
                bool (*take)(void *to, const struct change_cell *cells), void *to, char *why) {
    char reason[CHANGE_REASON_BYTES];
    struct row_reader reader;
    struct answer answer;
    if (h->sql.failed) {
        return fail(h, "no memory for a question", why);
    }
    row_reader_init(&reader, kinds, count, take, to);
    // an answer that ends in an exception says so at its begin
    const struct http_question q = {.body = slice_of(h->sql.data, h->sql.len),
                                    .setting = "wait_end_of_query=1",
                                    .take = feed,
                                    .to = &reader,
                                    .most = LIMIT_HISTORY_ANSWER_BYTES,
                                    .deadline_ns = deadline_ns == INT64_MAX ? 0 : deadline_ns};
    bool came = http_ask(h->http, &q, &answer, reason);
    // who ends it by itself knows why
    bool ok = came || reader.stopped || reader.malformed ? judge(h, &reader, &answer, why)
                                                         : fail(h, reason, why);
    row_reader_free(&reader);
    return ok;
}

// -- files ----------------------------------------------------------------------------------------

static int compare_places(const void *a, const void *b) {
    const struct place *x = a, *y = b;
    int order = strcmp(x->collector, y->collector);
    return order != 0 ? order
                      : (x->database_id > y->database_id) - (x->database_id < y->database_id);
}

static void forget_places(struct history *h) {
    for (uint32_t i = 0; i < h->place_count; i++) {
        free(h->places[i].collector);
    }
    h->place_count = 0;
}

static bool take_place(void *to, const struct change_cell *cells) {
    struct history *h = to;
    char *collector = strndup((const char *)cells[0].bytes.data, cells[0].bytes.len);
    if (!collector || h->place_count > LIMIT_HISTORY_DATABASES ||
        !array_grow((void **)&h->places, &h->place_room, h->place_count, sizeof *h->places)) {
        free(collector);
        return false;
    }
    h->places[h->place_count] =
        (struct place){collector, (uint64_t)cells[1].number, h->place_count};
    h->place_count++;
    return true;
}

static bool ask_places(struct history *h, int64_t deadline_ns, char *why) {
    static const enum change_kind kinds[] = {CHANGE_TEXT, CHANGE_SIGNED};
    const struct question_scope scope = scope_of(h);
    forget_places(h);
    buffer_reset(&h->sql);
    question_files(&scope, &h->sql);
    snprintf(why, STORE_ERROR_BYTES, "%.200s: too many files were exported there, or no memory",
             h->name);
    if (!ask(h, deadline_ns, kinds, 2, take_place, h, why)) {
        return false;
    }
    qsort(h->places, h->place_count, sizeof *h->places, compare_places);
    return true;
}

static const struct place *find_place(const struct history *h, struct slice collector,
                                      uint64_t database_id) {
    char name[EXPORT_NAME_BYTES];
    size_t len = collector.len < sizeof name ? collector.len : sizeof name - 1;
    memcpy(name, collector.data, len);
    name[len] = 0;
    const struct place wanted = {name, database_id, 0};
    return h->place_count == 0
               ? NULL
               : bsearch(&wanted, h->places, h->place_count, sizeof wanted, compare_places);
}

static const struct place *place_at(const struct history *h, int64_t id) {
    for (uint32_t i = 0; i < h->place_count; i++) {
        if (h->places[i].at == (uint64_t)id >> FILE_SHIFT) {
            return &h->places[i];
        }
    }
    return NULL;
}

// -- rows -----------------------------------------------------------------------------------------

// Rows of kept requests on their way: their numbers become those of all files.
struct renumbering {
    struct history *history;
    int id;     // the column; below 0: none
    int column; // behind all
    bool (*take)(void *to, const struct change_cell *cells);
    void *to;
};

static bool renumber(void *to, const struct change_cell *cells) {
    struct renumbering *r = to;
    struct change_cell changed[CHANGE_COLUMNS];
    const struct place *p =
        find_place(r->history, cells[r->column].bytes, (uint64_t)cells[r->column + 1].number);
    int64_t id = cells[r->id].number;
    if (!p || id < 0 || id >= INT64_C(1) << FILE_SHIFT) {
        return true; // of a file that came after we asked for them
    }
    memcpy(changed, cells, (size_t)r->column * sizeof *cells);
    changed[r->id].number = (int64_t)((uint64_t)p->at << FILE_SHIFT | (uint64_t)id);
    return r->take(r->to, changed);
}

static int column_of(const struct change_shape *shape, const char *name) {
    for (int i = 0; i < shape->count; i++) {
        if (strcmp(shape->columns[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static bool kept_rows(struct history *h, const struct mirror_ask *a, enum change_kind *kinds,
                      bool (*take)(void *to, const struct change_cell *cells), void *to,
                      char *why) {
    const struct change_shape *shape = change_shape(a->table);
    const struct question_scope scope = scope_of(h);
    struct question_file of = {"", 0};
    struct renumbering r = {h, column_of(shape, a->table == CHANGE_SPANS ? "request_id" : "id"),
                            shape->count, take, to};
    // a question begins with requests; what it asks for next is of the same files
    bool first = a->table == CHANGE_REQUESTS && a->requests != MIRROR_PARTS;
    if (first && !ask_places(h, a->deadline_ns, why)) {
        return false;
    }
    const struct place *p = place_at(h, a->id);
    if (a->requests == MIRROR_ONE || a->requests == MIRROR_PARTS) {
        if (!p) {
            return true; // there is no such request
        }
        of = (struct question_file){p->collector, p->database_id};
    }
    kinds[shape->count] = CHANGE_TEXT;
    kinds[shape->count + 1] = CHANGE_SIGNED;
    buffer_reset(&h->sql);
    question_rows(&scope, a, &of, a->id & ((INT64_C(1) << FILE_SHIFT) - 1), &h->sql);
    return ask(h, a->deadline_ns, kinds, shape->count + 2, renumber, &r, why);
}

static bool rows(void *arg, const struct mirror_ask *a,
                 bool (*take)(void *to, const struct change_cell *cells), void *to, char *why) {
    struct history *h = arg;
    enum change_kind kinds[CHANGE_COLUMNS];
    const struct change_shape *shape = change_shape(a->table);
    const struct question_scope scope = scope_of(h);
    for (int i = 0; i < shape->count; i++) {
        kinds[i] = shape->columns[i].kind;
    }
    if (shape->kept) {
        return kept_rows(h, a, kinds, take, to, why);
    }
    buffer_reset(&h->sql);
    question_rows(&scope, a, NULL, 0, &h->sql);
    return ask(h, a->deadline_ns, kinds, shape->count, take, to, why);
}

// -- what there is --------------------------------------------------------------------------------

struct extent_list {
    struct extent *of;
    int most, *count;
};

static bool take_extent(void *to, const struct change_cell *cells) {
    struct extent_list *list = to;
    if (cells[0].number > 0 && *list->count < list->most) {
        list->of[(*list->count)++] =
            (struct extent){(uint32_t)cells[0].number, cells[1].number, cells[2].number};
    }
    return true;
}

static bool extents(void *arg, int64_t deadline_ns, struct extent *out, int most, int *count,
                    char *why) {
    static const enum change_kind kinds[] = {CHANGE_SMALL, CHANGE_TIME, CHANGE_TIME};
    struct history *h = arg;
    struct extent_list list = {out, most, count};
    const struct question_scope scope = scope_of(h);
    buffer_reset(&h->sql);
    question_extents(&scope, &h->sql);
    return ask(h, deadline_ns, kinds, 3, take_extent, &list, why);
}

struct name_taker {
    void (*each)(void *to, const char *name);
    void *to;
};

static bool take_name(void *to, const struct change_cell *cells) {
    struct name_taker *t = to;
    char *name = strndup((const char *)cells[0].bytes.data, cells[0].bytes.len);
    if (name) {
        t->each(t->to, name);
    }
    free(name);
    return true;
}

static bool names(void *arg, int64_t deadline_ns, bool tiers,
                  void (*each)(void *to, const char *name), void *to, char *why) {
    static const enum change_kind kinds[] = {CHANGE_NAME};
    struct history *h = arg;
    struct name_taker taker = {each, to};
    const struct question_scope scope = scope_of(h);
    buffer_reset(&h->sql);
    question_names(&scope, tiers, &h->sql);
    return ask(h, deadline_ns, kinds, 1, take_name, &taker, why);
}

static bool copy(char **to, const char *text) {
    *to = text ? strdup(text) : NULL;
    return *to || !text;
}

static bool clusters(void *arg, int64_t deadline_ns, void (*each)(void *to, const char *name),
                     void *to, char *why) {
    static const enum change_kind kinds[] = {CHANGE_NAME};
    struct history *h = arg;
    struct name_taker taker = {each, to};
    const struct question_scope scope = scope_of(h);
    buffer_reset(&h->sql);
    question_clusters(&scope, &h->sql);
    return ask(h, deadline_ns, kinds, 1, take_name, &taker, why);
}

static bool choose(void *arg, const char *chosen) {
    struct history *h = arg;
    free(h->chosen);
    return copy(&h->chosen, chosen);
}

// -- opening and closing --------------------------------------------------------------------------

static void close_history(void *arg) {
    struct history *h = arg;
    if (h) {
        http_free(h->http);
        buffer_free(&h->sql);
        forget_places(h);
        free(h->places);
        free(h->clusters);
        free(h->collectors);
        free(h->chosen);
        free(h);
    }
}

static struct history *make(const struct history_options *o, const struct target *target) {
    const struct http_options http = {.target = target, .password = o->password, .ca = o->ca};
    struct history *h = calloc(1, sizeof *h);
    if (!h) {
        return NULL;
    }
    h->target = *target;
    target_text(target, h->name);
    h->sql = buffer_make(SQL_BYTES);
    h->http = http_new(&http);
    if (!h->http || !copy(&h->clusters, o->clusters) || !copy(&h->collectors, o->collectors)) {
        close_history(h);
        return NULL;
    }
    return h;
}

bool history_name(const char *url, char *out, size_t size) {
    char why[TARGET_WHY_BYTES], text[TARGET_TEXT_BYTES];
    struct target target;
    bool ok = target_parse(url, &target, why);
    snprintf(out, size, "%s", ok ? target_text(&target, text) : "");
    return ok;
}

enum store_status history_open(const struct history_options *o, struct store **out,
                               char error[STORE_ERROR_BYTES]) {
    struct target target;
    char why[TARGET_WHY_BYTES];
    *out = NULL;
    if (!export_check(o->url, o->password, why)) {
        snprintf(error, STORE_ERROR_BYTES, "%s", why);
        return STORE_FAILED;
    }
    target_parse(o->url, &target, why);
    struct history *h = make(o, &target);
    if (!h) {
        snprintf(error, STORE_ERROR_BYTES, "no memory");
        return STORE_FAILED;
    }
    if (!ask_places(h, clock_monotonic() + OPEN_SECONDS * SECOND, error)) {
        close_history(h);
        return STORE_MISSING;
    }
    const struct mirror_source source = {h,     h->name,  extents, rows,
                                         names, clusters, choose,  close_history};
    return store_open_mirror(&source, out, error);
}
