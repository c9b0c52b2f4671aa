// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_amount.h"
#include "base/text_time.h"
#include "tool/flame/print.h"
#include "tool/node.h"
#include "tool/text.h"

enum { CELL_BYTES = 256, GAP = 3, MOST_COLUMNS = 8 };

// A table's cells, row by row, the headings first.
struct cells {
    uint32_t columns, rows;
    char (*text)[CELL_BYTES];
};

static char *cell(const struct cells *c, uint32_t row, uint32_t column) {
    return c->text[row * c->columns + column];
}

// Prints the cells; the last column is as long as it is, and numbers, the columns of `right`, stand
// on the right.
static void print(const struct cells *c, uint32_t right, struct buffer *out) {
    size_t widths[MOST_COLUMNS] = {0};
    for (uint32_t r = 0; r < c->rows; r++) {
        for (uint32_t i = 0; i < c->columns; i++) {
            size_t width = text_width(cell(c, r, i));
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    for (uint32_t r = 0; r < c->rows; r++) {
        for (uint32_t i = 0; i < c->columns; i++) {
            if (right & 1u << i) {
                text_pad_left(out, cell(c, r, i), widths[i]);
            } else if (i + 1 < c->columns) {
                text_pad_right(out, cell(c, r, i), widths[i]);
            } else {
                buffer_text(out, cell(c, r, i));
            }
            buffer_printf(out, "%*s", i + 1 < c->columns ? GAP : 0, "");
        }
        buffer_text(out, "\n");
    }
}

static bool make_cells(struct cells *c, uint32_t rows, uint32_t columns,
                       const char *const *headings, struct buffer *out) {
    *c = (struct cells){columns, rows + 1, calloc((size_t)(rows + 1) * columns, CELL_BYTES)};
    for (uint32_t i = 0; c->text && i < columns; i++) {
        strcpy(cell(c, 0, i), headings[i]);
    }
    out->failed = out->failed || !c->text;
    return c->text != NULL;
}

// -- profiles -------------------------------------------------------------------------------------

void flame_clean_list(struct profile_list *list) {
    for (uint32_t i = 0; i < list->count; i++) {
        text_clean(list->lines[i].head.name);
        text_clean(list->lines[i].head.node);
    }
}

// What it is of: a full trace of requests, samples of looks.
static void put_seen(const struct profile_line *l, char out[CELL_BYTES]) {
    bool full = l->head.kind == PROFILE_FULL;
    uint64_t count = full ? l->counts.requests : (uint64_t)l->looks;
    char grouped[TEXT_GROUPED_BYTES];
    snprintf(out, CELL_BYTES, "%s %s%s", text_grouped(count, grouped), full ? "request" : "look",
             text_plural(count));
}

void flame_list_table(const struct profile_list *list, struct buffer *out) {
    static const char *const headings[] = {"id",   "started",   "node", "kind",
                                           "seen", "processes", "took", "name"};
    struct cells c;
    if (!make_cells(&c, list->count, sizeof headings / sizeof *headings, headings, out)) {
        return;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        const struct profile_line *l = &list->lines[i];
        char started[TEXT_TIME_BYTES], node[NODE_TEXT_BYTES];
        uint32_t row = i + 1;
        snprintf(cell(&c, row, 0), CELL_BYTES, "%" PRId64, l->id);
        snprintf(cell(&c, row, 1), CELL_BYTES, "%s",
                 text_time_format(l->head.begin_ns, false, started));
        snprintf(cell(&c, row, 2), CELL_BYTES, "%s", node_short(l->head.node, node));
        snprintf(cell(&c, row, 3), CELL_BYTES, "%s",
                 l->head.kind == PROFILE_FULL ? "full" : "samples");
        put_seen(l, cell(&c, row, 4));
        snprintf(cell(&c, row, 5), CELL_BYTES, "%" PRIu64, l->counts.processes);
        text_duration((double)l->head.end_ns - (double)l->head.begin_ns, cell(&c, row, 6));
        snprintf(cell(&c, row, 7), CELL_BYTES, "%s", l->head.name);
    }
    print(&c, 1u << 0 | 1u << 4 | 1u << 5 | 1u << 6, out);
    free(c.text);
}

// -- functions ------------------------------------------------------------------------------------

static double share(double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0;
}

static void put_value(const struct flame_answer *a, double value, char *out) {
    enum flame_metric metric = a->drawing.weighed.metric;
    if (flame_metric_is_time(metric)) {
        text_duration(value, out);
    } else if (strcmp(flame_metric_unit(metric), "bytes") == 0) {
        text_size(value, out);
    } else {
        snprintf(out, CELL_BYTES, "%.0f", value);
    }
}

static void put_name(const struct flame_answer *a, uint32_t frame, char out[CELL_BYTES]) {
    snprintf(out, CELL_BYTES, "%s", a->tree.frames[frame].name);
    text_clean(out);
}

static void weighed_row(const struct flame_answer *a, const struct cells *c, uint32_t row,
                        uint32_t frame) {
    const struct flame_weight *w = &a->functions[frame].weight;
    double whole = (double)a->tree.nodes[0].weight.total;
    put_value(a, (double)w->self, cell(c, row, 0));
    snprintf(cell(c, row, 1), CELL_BYTES, "%.1f %%", share((double)w->self, whole));
    put_value(a, (double)w->total, cell(c, row, 2));
    snprintf(cell(c, row, 3), CELL_BYTES, "%.1f %%", share((double)w->total, whole));
    put_name(a, frame, cell(c, row, 4));
}

// Shares of all that each profile weighs, so that both are as heavy.
static void compared_row(const struct flame_answer *a, const struct cells *c, uint32_t row,
                         uint32_t frame) {
    const struct flame_function *f = &a->functions[frame];
    const struct flame_node *root = a->tree.nodes;
    double before = share((double)f->before.self, (double)root->before.total);
    double after = share((double)f->weight.self, (double)root->weight.total);
    snprintf(cell(c, row, 0), CELL_BYTES, "%+.2f", after - before);
    snprintf(cell(c, row, 1), CELL_BYTES, "%.2f %%", before);
    snprintf(cell(c, row, 2), CELL_BYTES, "%.2f %%", after);
    snprintf(cell(c, row, 3), CELL_BYTES, "%s",
             f->weight.total == 0   ? "gone"
             : f->before.total == 0 ? "new"
                                    : "");
    put_name(a, frame, cell(c, row, 4));
}

void flame_table(const struct flame_answer *a, uint32_t most, struct buffer *out) {
    static const char *const weighed[] = {"self", "", "total", "", "function"};
    static const char *const compared[] = {"change", "before", "after", "", "function, self"};
    uint32_t count;
    uint32_t *ranked = flame_ranked(a, &count);
    uint32_t rows = ranked && count > most ? most : count;
    struct cells c;
    if (!ranked) {
        out->failed = true;
    } else if (make_cells(&c, rows, 5, a->drawing.compared ? compared : weighed, out)) {
        for (uint32_t i = 0; i < rows; i++) {
            (a->drawing.compared ? compared_row : weighed_row)(a, &c, i + 1, ranked[i]);
        }
        print(&c, a->drawing.compared ? 7u : 15u, out);
        free(c.text);
    }
    free(ranked);
}
