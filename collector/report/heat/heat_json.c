// SPDX-License-Identifier: Apache-2.0
#include "report/heat/cells.h"

#include "base/text_time.h"

static void key_ms(struct json *j, const char *key, uint64_t us) {
    json_key_number(j, key, (double)us / 1000, 3);
}

// A list of a number of each cell.
static void put_list(struct json *j, const struct heat *h, const char *key,
                     double (*number)(const struct heat_cell *cell)) {
    json_key(j, key);
    json_open(j, '[');
    for (uint32_t i = 0; i < h->columns * h->rows; i++) {
        json_number(j, number(&h->cells[i]), 3);
    }
    json_close(j, ']');
}

static double value_of(const struct heat_cell *c) {
    return (double)c->value;
}

static double looks_of(const struct heat_cell *c) {
    return (double)c->looks;
}

static double unanswered_of(const struct heat_cell *c) {
    return (double)c->unanswered;
}

static double late_of(const struct heat_cell *c) {
    return (double)c->late_us / 1000;
}

static double held_of(const struct heat_cell *c) {
    return (double)c->held_us / 1000;
}

// A text for each column, a letter for each cell.
static void put_states(struct json *j, const struct heat *h) {
    static const char letters[HEAT_STATES] = {
        [HEAT_SEEN] = 's', [HEAT_IDLE] = 'i',    [HEAT_LATE] = 'l',
        [HEAT_HELD] = 'h', [HEAT_NOTHING] = '-', [HEAT_NO_PROFILE] = 'n'};
    char text[LIMIT_HEAT_ROWS + 1];
    json_key(j, "states");
    json_open(j, '[');
    for (uint32_t column = 0; column < h->columns; column++) {
        for (uint32_t row = 0; row < h->rows; row++) {
            text[row] = letters[heat_state_of(&h->cells[column * h->rows + row])];
        }
        text[h->rows] = 0;
        json_text(j, text);
    }
    json_close(j, ']');
}

static void put_grid(struct json *j, const struct heat *h) {
    key_ms(j, "from_ms", h->from_us);
    key_ms(j, "column_ms", h->column_us);
    key_ms(j, "cell_ms", heat_cell_us(h));
    json_key_int(j, "columns", h->columns);
    json_key_int(j, "rows", h->rows);
}

static void put_metric(struct json *j, const struct heat *h) {
    json_key_text(j, "metric", flame_metric_name(h->metric));
    json_key_text(j, "unit", flame_metric_unit(h->metric));
    json_key(j, "adds_up");
    json_bool(j, !samples_is_level(h->metric));
}

void heat_put_cells(struct json *j, const struct heat *h) {
    put_grid(j, h);
    json_key_int(j, "lowest", h->lowest);
    json_key_int(j, "highest", h->highest);
    put_states(j, h);
    put_list(j, h, "values", value_of);
    put_list(j, h, "looks", looks_of);
    put_list(j, h, "unanswered", unanswered_of);
    put_list(j, h, "late_ms", late_of);
    put_list(j, h, "held_ms", held_of);
}

void heat_put_pieces(struct json *j, const struct heat_answer *a) {
    json_key(j, "profiles");
    json_open(j, '[');
    for (uint32_t i = 0; i < a->piece_count; i++) {
        const struct heat_piece *p = &a->pieces[i];
        json_open(j, '{');
        json_key_int(j, "id", p->id);
        json_key_number(j, "from_ms", (double)p->from_us / 1000, 3);
        json_key_number(j, "until_ms", (double)p->until_us / 1000, 3);
        json_close(j, '}');
    }
    json_close(j, ']');
}

void heat_json(const struct heat_answer *a, struct buffer *out) {
    const struct profile_head *head = &a->profile.head;
    struct json j = json_make(out);
    char started[TEXT_TIME_BYTES];
    json_open(&j, '{');
    json_key(&j, "profile");
    a->id > 0 ? json_int(&j, a->id) : json_null(&j);
    heat_put_pieces(&j, a);
    json_key_text(&j, "name", head->name);
    json_key_text(&j, "node", head->node);
    json_key_text(&j, "started_at", text_time_format(a->started_ns, true, started));
    key_ms(&j, "length_ms", a->heat.length_us);
    put_metric(&j, &a->heat);
    json_key(&j, "notes");
    json_open(&j, '[');
    for (uint32_t i = 0; i < a->notes.count; i++) {
        json_text(&j, a->notes.text[i]);
    }
    json_close(&j, ']');
    heat_put_cells(&j, &a->heat);
    json_close(&j, '}');
    buffer_text(out, "\n");
}

static void put_map(struct json *j, const struct heat *h) {
    json_open(j, '{');
    put_metric(j, h);
    json_key_int(j, "lowest", h->lowest);
    json_key_int(j, "highest", h->highest);
    put_states(j, h);
    put_list(j, h, "values", value_of);
    json_close(j, '}');
}

// What is the same by each metric; maps is open then.
static void put_shared(struct json *j, const struct heat *h, int64_t id, int64_t last) {
    json_key_int(j, "profile", id);
    if (last > 0) {
        json_key_int(j, "through", last);
    }
    key_ms(j, "length_ms", h->length_us);
    put_grid(j, h);
    put_list(j, h, "looks", looks_of);
    put_list(j, h, "unanswered", unanswered_of);
    json_key(j, "maps");
    json_open(j, '[');
}

bool heat_put_maps(struct json *j, const struct profile *p, int64_t id, int64_t last,
                   uint64_t from_us, uint64_t until_us) {
    bool begun = false, ok = true;
    json_open(j, '{');
    for (enum flame_metric m = FLAME_SAMPLES + 1; ok && m < FLAME_METRICS; m++) {
        struct heat h = {0};
        struct heat_choice choice = {m, from_us, until_us, HEAT_FILE_COLUMNS, HEAT_PICTURE_ROWS};
        ok = heat_make(&h, p, &choice) == HEAT_MADE;
        if (ok && !begun) {
            put_shared(j, &h, id, last);
            begun = true;
        }
        if (ok && (m == FLAME_ACTIVE || h.of_state[HEAT_SEEN] > 0)) {
            put_map(j, &h);
        }
        heat_free(&h);
    }
    if (begun) {
        json_close(j, ']');
    }
    json_close(j, '}');
    return ok;
}
