#include "tool/attach_live.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/json.h"
#include "tool/text.h"

enum { CELL = 40, NUMBERS = 6, NUMBER_WIDTH = 10, NAME_WIDTH = 40, NAME_LEAST = 12 };

// -- taking rows in ----------------------------------------------------------------------------------------

static void take_text(struct control_map map, const char *key, char *out, size_t room) {
    struct slice text = slice_text("");
    control_get_text(map, key, &text);
    size_t n = text.len < room ? text.len : room - 1;
    memcpy(out, text.data, n);
    out[n] = 0;
    text_clean(out);
}

static void add_int(struct control_map map, const char *key, int64_t *sum) {
    int64_t n = 0;
    control_get_int(map, key, &n);
    *sum += n > 0 ? n : 0;
}

static struct live_identity *row_of(struct live_view *v, const char *name) {
    for (uint32_t i = 0; v->rows && i < v->count; i++) {
        if (strcmp(v->rows[i].name, name) == 0) {
            return &v->rows[i];
        }
    }
    struct live_identity *row = v->rows && v->count < LIVE_ROWS ? &v->rows[v->count++] : NULL;
    if (row) {
        *row = (struct live_identity){0};
        snprintf(row->name, sizeof row->name, "%s", name);
    }
    return row;
}

static void take_identity(struct live_view *v, struct control_map map) {
    char name[LIVE_NAME_BYTES];
    take_text(map, "identity", name, sizeof name);
    struct live_identity *row = row_of(v, name);
    if (row) {
        row->now = 0;
        add_int(map, "requests", &row->now);
        row->requests += row->now;
        add_int(map, "errors", &row->errors);
        row->per_second = v->seconds > 0 ? (double)row->now / v->seconds : 0;
        control_get_number(map, "mean_us", &row->mean_us);
        control_get_number(map, "p99_us", &row->p99_us);
    }
}

bool live_take(struct live_view *v, struct control_map rows) {
    struct control_list list = {0};
    if (!v->rows) {
        v->rows = calloc(LIVE_ROWS, sizeof *v->rows);
    }
    if (!v->rows) {
        return false;
    }
    row_of(v, "_total"); // the first one, also when nothing has finished yet
    for (uint32_t i = 0; i < v->count; i++) {
        v->rows[i].now = 0;
        v->rows[i].per_second = 0;
    }
    take_text(rows, "node", v->node, sizeof v->node);
    take_text(rows, "state", v->state, sizeof v->state);
    v->seconds = 0;
    control_get_number(rows, "seconds", &v->seconds);
    control_get_list(rows, "identities", &list);
    for (uint32_t i = 0; i < list.count; i++) {
        take_identity(v, control_list_at(list, i));
    }
    add_int(rows, "incomplete", &v->incomplete);
    add_int(rows, "expired", &v->expired);
    add_int(rows, "unsampled", &v->unsampled);
    add_int(rows, "dropped_messages", &v->dropped_messages);
    add_int(rows, "decode_errors", &v->decode_errors);
    add_int(rows, "paused_ms", &v->paused_ms);
    return true;
}

void live_view_free(struct live_view *v) {
    free(v->rows);
    *v = (struct live_view){0};
}

// -- the table ---------------------------------------------------------------------------------------------

// As many of the numbers as there is room for, the most important first.
static void put_row(const char *name, char cells[NUMBERS][CELL], uint32_t width, struct buffer *out) {
    uint32_t room = width > NAME_LEAST + 2 ? width - 2 - NAME_LEAST : 0;
    uint32_t numbers = room / NUMBER_WIDTH < NUMBERS ? room / NUMBER_WIDTH : NUMBERS;
    uint32_t left = NAME_LEAST + room - numbers * NUMBER_WIDTH;
    buffer_text(out, " ");
    text_fit(out, name, left < NAME_WIDTH ? left : NAME_WIDTH);
    for (uint32_t i = 0; i < numbers; i++) {
        text_pad_left(out, cells[i], NUMBER_WIDTH);
    }
    buffer_text(out, "\n");
}

static void put_identity(const struct live_identity *row, uint32_t width, struct buffer *out) {
    char cells[NUMBERS][CELL];
    snprintf(cells[0], CELL, row->per_second < 9.95 && row->now > 0 ? "%.1f" : "%.0f", row->per_second);
    snprintf(cells[1], CELL, "-");
    snprintf(cells[2], CELL, "-");
    if (row->now > 0) {
        text_duration(row->mean_us * 1000, cells[1]);
        text_duration(row->p99_us * 1000, cells[2]);
    }
    snprintf(cells[3], CELL, "%" PRId64, row->errors);
    snprintf(cells[4], CELL, "%.2g %%",
             row->requests > 0 ? 100.0 * (double)row->errors / (double)row->requests : 0.0);
    snprintf(cells[5], CELL, "%" PRId64, row->requests);
    put_row(row->name, cells, width, out);
}

// A line that is cut where the terminal ends, so that lines can be counted.
static void put_line(struct buffer *line, uint32_t width, struct buffer *out) {
    buffer_append(line, "", 1);
    if (!line->failed && text_width((const char *)line->data) < width) {
        buffer_printf(out, "%s\n", (const char *)line->data);
    } else if (!line->failed) {
        text_fit(out, (const char *)line->data, width - 1);
        buffer_text(out, "\n");
    }
    buffer_free(line);
}

static void put_losses(const struct live_view *v, uint32_t width, struct buffer *out) {
    struct buffer line = buffer_make(4096);
    buffer_printf(&line, " %s: %s", v->node, v->state);
    if (v->unsampled > 0) {
        buffer_printf(&line, "; %" PRId64 " requests not sampled", v->unsampled);
    }
    if (v->paused_ms > 0) {
        buffer_printf(&line, "; paused for %.1f s", (double)v->paused_ms / 1000);
    }
    put_line(&line, width, out);
    line = buffer_make(4096);
    buffer_printf(&line,
                  " lost: requests incomplete %" PRId64 ", expired %" PRId64 "; messages dropped %" PRId64
                  ", unreadable %" PRId64,
                  v->incomplete, v->expired, v->dropped_messages, v->decode_errors);
    put_line(&line, width, out);
}

static int by_requests(const void *a, const void *b) {
    const struct live_identity *x = *(const struct live_identity *const *)a,
                               *y = *(const struct live_identity *const *)b;
    return x->requests != y->requests ? (x->requests < y->requests ? 1 : -1) : strcmp(x->name, y->name);
}

void live_table(const struct live_view *v, uint32_t width, uint32_t height, struct buffer *out) {
    enum { AROUND = 5 }; // lines: the heads, how many more, _total, the state, the losses
    static char heads[NUMBERS][CELL] = {"req/s", "mean", "p99", "errors", "", "requests"};
    const struct live_identity *order[LIVE_ROWS];
    uint32_t others = v->count > 0 ? v->count - 1 : 0;
    uint32_t shown = height > AROUND ? height - AROUND : 0;
    for (uint32_t i = 0; i < others; i++) {
        order[i] = &v->rows[i + 1];
    }
    qsort(order, others, sizeof *order, by_requests);
    put_row("identity", heads, width, out);
    for (uint32_t i = 0; i < others && i < shown; i++) {
        put_identity(order[i], width, out);
    }
    if (others > shown) {
        buffer_printf(out, " … and %u more\n", others - shown);
    }
    if (v->count > 0) {
        put_identity(&v->rows[0], width, out);
    }
    put_losses(v, width, out);
}

// -- JSON --------------------------------------------------------------------------------------------------

static void json_identity(struct json *j, struct control_map map) {
    char name[LIVE_NAME_BYTES];
    int64_t requests = 0, errors = 0;
    double mean = 0, p99 = 0;
    take_text(map, "identity", name, sizeof name);
    control_get_int(map, "requests", &requests);
    control_get_int(map, "errors", &errors);
    control_get_number(map, "mean_us", &mean);
    control_get_number(map, "p99_us", &p99);
    json_open(j, '{');
    json_key_text(j, "identity", name);
    json_key_int(j, "requests", requests);
    json_key_int(j, "errors", errors);
    json_key_number(j, "mean_us", mean, 3);
    json_key_number(j, "p99_us", p99, 3);
    json_close(j, '}');
}

void live_json(struct control_map rows, const char *at, struct buffer *out) {
    static const char *const counts[] = {"incomplete",       "expired",       "unsampled",
                                         "dropped_messages", "decode_errors", "paused_ms"};
    struct json j = json_make(out);
    struct control_list list = {0};
    char text[256];
    double seconds = 0;
    json_open(&j, '{');
    json_key_text(&j, "at", at);
    take_text(rows, "node", text, sizeof text);
    json_key_text(&j, "node", text);
    take_text(rows, "state", text, sizeof text);
    json_key_text(&j, "state", text);
    control_get_number(rows, "seconds", &seconds);
    json_key_number(&j, "seconds", seconds, 3);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int64_t n = 0;
        control_get_int(rows, counts[i], &n);
        json_key_int(&j, counts[i], n);
    }
    json_key(&j, "identities");
    json_open(&j, '[');
    control_get_list(rows, "identities", &list);
    for (uint32_t i = 0; i < list.count; i++) {
        json_identity(&j, control_list_at(list, i));
    }
    json_close(&j, ']');
    json_close(&j, '}');
    buffer_text(out, "\n");
}
