// SPDX-License-Identifier: Apache-2.0
#include "app/triggers.h"

#include <stdlib.h>
#include <string.h>

#include "base/names.h"

// What a trigger is, and how it stands: what a tool says of one, and what a shim does.
enum kind { TEXT, INT, NUMBER, FLAG };
static const struct field {
    const char *key;
    enum kind kind;
} fields[] = {
    {FIELD_NAME, TEXT},    {FIELD_TRIGGER, TEXT},    {FIELD_TIER, TEXT},    {FIELD_LABEL, TEXT},
    {FIELD_PROCESS, TEXT}, {FIELD_ABOVE, NUMBER},    {FIELD_VALUE, NUMBER}, {FIELD_FOR_MS, INT},
    {FIELD_EVERY_MS, INT}, {FIELD_SECONDS, INT},     {FIELD_HZ, INT},       {FIELD_BEGAN, INT},
    {FIELD_AGAIN_MS, INT}, {FIELD_HIGH_WATER, FLAG}, {FIELD_ALL, FLAG},
};
enum { FIELDS = sizeof fields / sizeof *fields };

struct value {
    struct slice text;
    int64_t n;
    double number;
    bool flag;
};

static bool get(struct control_map map, const struct field *f, struct value *v) {
    switch (f->kind) {
    case TEXT:
        return control_get_text(map, f->key, &v->text);
    case INT:
        return control_get_int(map, f->key, &v->n);
    case NUMBER:
        return control_get_number(map, f->key, &v->number);
    default:
        return control_get_bool(map, f->key, &v->flag);
    }
}

static uint32_t count_fields(struct control_map map) {
    uint32_t count = 0;
    struct value v;
    for (int i = 0; i < FIELDS; i++) {
        count += get(map, &fields[i], &v);
    }
    return count;
}

static void copy_fields(struct control_writer *w, struct control_map map) {
    for (int i = 0; i < FIELDS; i++) {
        const struct field *f = &fields[i];
        struct value v;
        if (!get(map, f, &v)) {
            continue;
        }
        switch (f->kind) {
        case TEXT:
            control_text(w, f->key, v.text);
            break;
        case INT:
            control_int(w, f->key, v.n);
            break;
        case NUMBER:
            control_number(w, f->key, v.number);
            break;
        default:
            control_bool(w, f->key, v.flag);
        }
    }
}

bool triggers_is_command(struct slice command) {
    return slice_is(command, STEER_TRIGGER_ADD) || slice_is(command, STEER_TRIGGER_LIST) ||
           slice_is(command, STEER_TRIGGER_REMOVE);
}

bool triggers_pack_order(struct control_map message, int64_t id, struct buffer *out) {
    struct slice command = slice_text("");
    control_get_text(message, FIELD_COMMAND, &command);
    struct control_writer w = control_begin(out, CONTROL_STEER, 2 + count_fields(message));
    control_int(&w, FIELD_ID, id);
    control_text(&w, FIELD_COMMAND, command);
    copy_fields(&w, message);
    return control_end(&w);
}

bool triggers_has(struct control_map answer) {
    struct control_list list;
    return control_get_list(answer, FIELD_TRIGGERS, &list);
}

void triggers_put(struct control_writer *w, struct control_map answer) {
    struct control_list list = {0};
    control_get_list(answer, FIELD_TRIGGERS, &list);
    uint32_t count = list.count < LIMIT_TRIGGERS ? list.count : LIMIT_TRIGGERS;
    control_list(w, FIELD_TRIGGERS, count);
    for (uint32_t i = 0; i < count; i++) {
        struct control_map trigger = control_list_at(list, i);
        control_map(w, count_fields(trigger));
        copy_fields(w, trigger);
    }
}

// -- percentiles ----------------------------------------------------------------------------------

struct triggers_p99 {
    uint32_t count;
    char tiers[LIMIT_TRIGGERS][LIMIT_NAME_BYTES + 1];
};

struct triggers_p99 *triggers_want(struct triggers_p99 *before, struct control_map message) {
    struct control_list list = {0};
    control_get_list(message, FIELD_TIERS, &list);
    struct triggers_p99 *p = list.count > 0 ? calloc(1, sizeof *p) : NULL;
    triggers_p99_free(before);
    for (uint32_t i = 0; p && i < list.count && p->count < LIMIT_TRIGGERS; i++) {
        struct slice tier;
        if (control_get_text(control_list_at(list, i), FIELD_TIER, &tier)) {
            names_clean(tier, p->tiers[p->count++], sizeof p->tiers[0]);
        }
    }
    return p;
}

void triggers_p99_free(struct triggers_p99 *p) {
    free(p);
}

static bool is_wanted(const struct triggers_p99 *p, const struct rows *rows, uint16_t node,
                      const struct stat_row *row) {
    if (row->key.node != node || row->key.identity != IDENTITY_TOTAL || row->calls == 0) {
        return false;
    }
    for (uint32_t i = 0; i < p->count; i++) {
        if (strcmp(names_text(&rows->names->tiers, row->key.tier), p->tiers[i]) == 0) {
            return true;
        }
    }
    return false;
}

void triggers_pack_p99(const struct triggers_p99 *p, const struct rows *rows, uint16_t node,
                       struct buffer *out) {
    // of one flush: a tier has a row in each of two buckets at most
    const struct stat_row *found[2 * LIMIT_TRIGGERS];
    enum { MOST = sizeof found / sizeof *found };
    uint32_t count = 0;
    for (uint32_t i = 0; i < stats_rows(rows->stats) && count < MOST; i++) {
        const struct stat_row *row = stats_row_at(rows->stats, i);
        if (is_wanted(p, rows, node, row)) {
            found[count++] = row;
        }
    }
    if (count == 0) {
        return;
    }
    struct control_writer w = control_begin(out, CONTROL_P99, 1);
    control_list(&w, FIELD_TIERS, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct stat_row *row = found[i];
        double ns = stat_quantile(&row->durations, 0.99, row->min_ns, row->max_ns);
        control_map(&w, 2);
        control_text(&w, FIELD_TIER, slice_text(names_text(&rows->names->tiers, row->key.tier)));
        control_number(&w, FIELD_P99_US, ns / 1e3);
    }
    control_end(&w);
}
