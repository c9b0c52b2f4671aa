// SPDX-License-Identifier: Apache-2.0
#include "tool/attach/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_amount.h"
#include "codec/json.h"
#include "report/trust.h"
#include "tool/node.h"
#include "tool/text.h"

enum { CELL = 40, NAME_WIDTH = 40, NAME_LEAST = 12 };

// -- taking rows in -------------------------------------------------------------------------------

static void add_int(struct control_map map, const char *key, int64_t *sum) {
    int64_t n = 0;
    control_get_int(map, key, &n);
    if (__builtin_add_overflow(*sum, n > 0 ? n : 0, sum)) {
        *sum = INT64_MAX;
    }
}

static struct view_identity *row_of(struct view *v, const char *name) {
    for (uint32_t i = 0; v->rows && i < v->count; i++) {
        if (strcmp(v->rows[i].name, name) == 0) {
            return &v->rows[i];
        }
    }
    struct view_identity *row = v->rows && v->count < VIEW_ROWS ? &v->rows[v->count++] : NULL;
    if (row) {
        *row = (struct view_identity){0};
        snprintf(row->name, sizeof row->name, "%s", name);
    }
    return row;
}

static void take_identity(struct view *v, struct control_map map) {
    char name[VIEW_NAME_BYTES];
    text_take(map, FIELD_IDENTITY, name, sizeof name);
    struct view_identity *row = row_of(v, name);
    if (row) {
        row->now = 0;
        add_int(map, FIELD_REQUESTS, &row->now);
        row->requests += row->now;
        add_int(map, FIELD_ERRORS, &row->errors);
        add_int(map, FIELD_INCOMPLETE, &row->lost);
        add_int(map, FIELD_EXPIRED, &row->lost);
        row->per_second = v->seconds > 0 ? (double)row->now / v->seconds : 0;
        control_get_number(map, FIELD_MEAN_US, &row->mean_us);
        control_get_number(map, FIELD_P99_US, &row->p99_us);
    }
}

static void no_rates(struct view *v) {
    for (uint32_t i = 0; i < v->count; i++) {
        v->rows[i].now = 0;
        v->rows[i].per_second = 0;
    }
}

void view_silent(struct view *v) {
    no_rates(v);
    snprintf(v->state, sizeof v->state, "no word from the collector");
}

bool view_take(struct view *v, struct control_map rows) {
    struct control_list list = {0};
    if (!v->rows) {
        v->rows = calloc(VIEW_ROWS, sizeof *v->rows);
    }
    if (!v->rows) {
        return false;
    }
    row_of(v, "_total"); // the first one, also when nothing has finished yet
    no_rates(v);
    text_take(rows, FIELD_NODE, v->node, sizeof v->node);
    text_take(rows, FIELD_STATE, v->state, sizeof v->state);
    v->seconds = 0;
    control_get_number(rows, FIELD_SECONDS, &v->seconds);
    control_get_list(rows, FIELD_IDENTITIES, &list);
    for (uint32_t i = 0; i < list.count; i++) {
        take_identity(v, control_list_at(list, i));
    }
    add_int(rows, FIELD_INCOMPLETE, &v->incomplete);
    add_int(rows, FIELD_EXPIRED, &v->expired);
    add_int(rows, FIELD_UNSAMPLED, &v->unsampled);
    add_int(rows, FIELD_DROPPED_MESSAGES, &v->dropped_messages);
    add_int(rows, FIELD_DECODE_ERRORS, &v->decode_errors);
    add_int(rows, FIELD_OFF_MS, &v->off_ms);
    v->unmarked_calls = 0;
    add_int(rows, FIELD_UNMARKED_CALLS, &v->unmarked_calls);
    return true;
}

void view_free(struct view *v) {
    free(v->rows);
    *v = (struct view){0};
}

// -- the table ------------------------------------------------------------------------------------

enum { LAST = 3 }; // lines of the table that are there always: _total, the state, the losses

static const char red[] = "\x1b[31m", yellow[] = "\x1b[33m", bold[] = "\x1b[1m",
                  plain[] = "\x1b[0m";

// The numbers of a row, the most important first: where there is little room the last ones are left
// out. The first three are of the last second, the others of all the time.
enum { RATE, MEAN, P99, ERRORS, LOST, REQUESTS, FAILED, NUMBERS };

static const struct {
    const char *head;
    uint32_t width;
} columns[NUMBERS] = {[RATE] = {"req/s", 8},    [MEAN] = {"mean", 9}, [P99] = {"p99", 9},
                      [ERRORS] = {"errors", 8}, [LOST] = {"lost", 8}, [REQUESTS] = {"requests", 10},
                      [FAILED] = {"failed", 8}};

struct cell {
    char text[CELL];
    const char *colour; // NULL: as it is
};

static void put_cell(struct buffer *out, const struct cell *cell, size_t width, bool colour) {
    buffer_text(out, colour && cell->colour ? cell->colour : "");
    text_width(cell->text) <= width ? text_pad_left(out, cell->text, width)
                                    : text_fit(out, cell->text, width);
    buffer_text(out, colour && cell->colour ? plain : "");
}

static void put_row(const char *name, const struct cell cells[NUMBERS],
                    const struct view_style *style, struct buffer *out) {
    // a blank, and the last column stays free: the line would wrap
    uint32_t left = style->width > 2 ? style->width - 2 : 0;
    uint32_t shown = 0;
    while (shown < NUMBERS && left >= NAME_LEAST + columns[shown].width) {
        left -= columns[shown++].width;
    }
    buffer_text(out, " ");
    text_fit(out, name, left < NAME_WIDTH ? left : NAME_WIDTH);
    for (uint32_t i = 0; i < shown; i++) {
        put_cell(out, &cells[i], columns[i].width, style->colour);
    }
    buffer_text(out, "\n");
}

static void put_heads(const struct view_style *style, struct buffer *out) {
    struct cell cells[NUMBERS] = {0};
    for (int i = 0; i < NUMBERS; i++) {
        snprintf(cells[i].text, CELL, "%s", columns[i].head);
    }
    buffer_text(out, style->colour ? bold : "");
    put_row("identity", cells, style, out);
    buffer_text(out, style->colour ? plain : "");
}

// A number of seven digits at most, or about as much.
static struct cell count(int64_t n, const char *colour) {
    struct cell cell = {.colour = n > 0 ? colour : NULL};
    snprintf(cell.text, CELL, n < 10000000 ? "%.0f" : "%.1e", (double)n);
    return cell;
}

static void put_identity(const struct view_identity *row, const struct view_style *style,
                         struct buffer *out) {
    struct cell cells[NUMBERS] = {[MEAN].text = "-", [P99].text = "-"};
    snprintf(cells[RATE].text, CELL, row->per_second < 9.95 && row->now > 0 ? "%.1f" : "%.0f",
             row->per_second);
    if (row->now > 0) {
        text_duration(row->mean_us * 1000, cells[MEAN].text);
        text_duration(row->p99_us * 1000, cells[P99].text);
    }
    cells[ERRORS] = count(row->errors, red);
    cells[LOST] = count(row->lost, yellow);
    cells[REQUESTS] = count(row->requests, NULL);
    double failed = row->requests > 0 ? 100.0 * (double)row->errors / (double)row->requests : 0;
    snprintf(cells[FAILED].text, CELL, failed > 0 && failed < 9.95 ? "%.1f %%" : "%.0f %%", failed);
    put_row(row->name, cells, style, out);
}

// Puts a line, cut where the terminal ends, so that lines can be counted. Frees it.
static void put_line(struct buffer *line, const char *colour, const struct view_style *style,
                     struct buffer *out) {
    uint32_t width = style->width > 1 ? style->width - 1 : 0;
    buffer_append(line, "", 1);
    if (!line->failed) {
        const char *text = (const char *)line->data;
        size_t fits = text_width(text);
        buffer_text(out, style->colour && colour ? colour : "");
        text_fit(out, text, fits < width ? fits : width);
        buffer_text(out, style->colour && colour ? plain : "");
        buffer_text(out, "\n");
    }
    buffer_free(line);
}

static void put_state(const struct view *v, const struct view_style *style, struct buffer *out) {
    struct buffer line = buffer_make(4096);
    char node[NODE_TEXT_BYTES];
    buffer_printf(&line, " %s: %s", node_short(v->node, node), v->state);
    if (v->unsampled > 0) {
        buffer_printf(&line, "; %" PRId64 " requests not sampled", v->unsampled);
    }
    if (v->off_ms > 0) {
        buffer_printf(&line, "; not traced for %.1f s", (double)v->off_ms / 1000);
    }
    put_line(&line, strcmp(v->state, STATE_TRACING) == 0 ? NULL : yellow, style, out);
}

// What helps where tiers are called but nothing begins a request, below what is the matter where
// they have no room beside each other.
static void put_unmarked(const struct view *v, const struct view_style *style, struct buffer *out) {
    const char *advice = v->hint ? TRUST_UNMARKED_ADVICE : "no call of the entry was seen";
    char text[TRUST_UNMARKED_BYTES], whole[2 * TRUST_UNMARKED_BYTES];
    struct buffer line = buffer_make(4096), below = buffer_make(4096);
    trust_unmarked_text((uint64_t)v->unmarked_calls, text);
    snprintf(whole, sizeof whole, " armed; %s: %s", text, advice);
    if (text_width(whole) < style->width || style->height <= LAST + 1) {
        buffer_text(&line, whole);
        put_line(&line, yellow, style, out);
        buffer_free(&below);
    } else {
        buffer_printf(&line, " armed; %s:", text);
        buffer_printf(&below, "  %s", advice);
        put_line(&line, yellow, style, out);
        put_line(&below, yellow, style, out);
    }
}

// What was lost of the whole node, or what helps when there is nothing.
static void put_losses(const struct view *v, const struct view_style *style, struct buffer *out) {
    struct buffer line = buffer_make(4096);
    bool lost = v->incomplete + v->expired + v->dropped_messages + v->decode_errors > 0;
    if (!lost && v->rows[0].requests == 0) {
        buffer_printf(&line, " no request yet%s%s", v->hint ? ": " : "", v->hint ? v->hint : "");
    } else {
        buffer_printf(&line,
                      " lost: requests incomplete %" PRId64 ", expired %" PRId64
                      "; messages dropped %" PRId64 ", unreadable %" PRId64,
                      v->incomplete, v->expired, v->dropped_messages, v->decode_errors);
    }
    put_line(&line, lost ? yellow : NULL, style, out);
}

static bool is_unmarked(const struct view *v) {
    bool lost = v->incomplete + v->expired + v->dropped_messages + v->decode_errors > 0;
    return !lost && v->rows[0].requests == 0 && v->unmarked_calls > 0;
}

static int by_requests(const void *a, const void *b) {
    const struct view_identity *x = *(const struct view_identity *const *)a,
                               *y = *(const struct view_identity *const *)b;
    return x->requests != y->requests ? (x->requests < y->requests ? 1 : -1)
                                      : strcmp(x->name, y->name);
}

static void put_identities(const struct view *v, const struct view_style *style, uint32_t room,
                           struct buffer *out) {
    const struct view_identity *order[VIEW_ROWS];
    uint32_t count = v->count - 1;
    uint32_t shown = count <= room ? count : room - 1;
    for (uint32_t i = 0; i < count; i++) {
        order[i] = &v->rows[i + 1];
    }
    qsort(order, count, sizeof *order, by_requests);
    for (uint32_t i = 0; i < shown; i++) {
        put_identity(order[i], style, out);
    }
    if (count > shown) {
        struct buffer line = buffer_make(4096);
        buffer_printf(&line, " … and %u more", count - shown);
        put_line(&line, NULL, style, out);
    }
}

void view_table(const struct view *v, const struct view_style *style, struct buffer *out) {
    if (!v->rows) {
        return;
    }
    if (style->height > LAST + 1) {
        put_heads(style, out);
        put_identities(v, style, style->height - LAST - 1, out);
    }
    put_identity(&v->rows[0], style, out);
    if (style->height >= LAST) {
        put_state(v, style, out);
        if (is_unmarked(v)) {
            put_unmarked(v, style, out);
        } else {
            put_losses(v, style, out);
        }
    }
}

// -- JSON -----------------------------------------------------------------------------------------

static void json_identity(struct json *j, struct control_map map) {
    char name[VIEW_NAME_BYTES];
    int64_t requests = 0, errors = 0, incomplete = 0, expired = 0;
    double mean = 0, p99 = 0;
    text_take(map, FIELD_IDENTITY, name, sizeof name);
    control_get_int(map, FIELD_REQUESTS, &requests);
    control_get_int(map, FIELD_ERRORS, &errors);
    control_get_number(map, FIELD_MEAN_US, &mean);
    control_get_number(map, FIELD_P99_US, &p99);
    control_get_int(map, FIELD_INCOMPLETE, &incomplete);
    control_get_int(map, FIELD_EXPIRED, &expired);
    json_open(j, '{');
    json_key_text(j, "identity", name);
    json_key_int(j, "requests", requests);
    json_key_int(j, "errors", errors);
    json_key_number(j, "mean_us", mean, 3);
    json_key_number(j, "p99_us", p99, 3);
    json_key_int(j, "incomplete", incomplete);
    json_key_int(j, "expired", expired);
    json_close(j, '}');
}

void view_json(struct control_map rows, const char *at, struct buffer *out) {
    static const char *const counts[] = {
        FIELD_INCOMPLETE,    FIELD_EXPIRED, FIELD_UNSAMPLED,     FIELD_DROPPED_MESSAGES,
        FIELD_DECODE_ERRORS, FIELD_OFF_MS,  FIELD_UNMARKED_CALLS};
    struct json j = json_make(out);
    struct control_list list = {0};
    char text[256];
    double seconds = 0;
    json_open(&j, '{');
    json_key_text(&j, "at", at);
    text_take(rows, FIELD_NODE, text, sizeof text);
    json_key_text(&j, "node", text);
    text_take(rows, FIELD_STATE, text, sizeof text);
    json_key_text(&j, "state", text);
    control_get_number(rows, FIELD_SECONDS, &seconds);
    json_key_number(&j, "seconds", seconds, 3);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int64_t n = 0;
        control_get_int(rows, counts[i], &n);
        json_key_int(&j, counts[i], n);
    }
    json_key(&j, "identities");
    json_open(&j, '[');
    control_get_list(rows, FIELD_IDENTITIES, &list);
    for (uint32_t i = 0; i < list.count; i++) {
        json_identity(&j, control_list_at(list, i));
    }
    json_close(&j, ']');
    json_close(&j, '}');
    buffer_text(out, "\n");
}
