// SPDX-License-Identifier: Apache-2.0
// The picture: a path for each colour. heat_script.js names what is under the pointer; without it
// the picture stands all the same, and each column names its range.
#include "report/heat/cells.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/embedded.h"
#include "base/text_amount.h"
#include "report/flame/forms.h"

enum {
    WIDTH = 1200, // px
    MARGIN = 16,
    LEFT = 76, // of the cells: room for the marks of rows
    TITLE = 34,
    NOTE = 17,
    HEIGHT = 400, // of a column, about
    WIDEST = 40,  // column
    LEVELS = 12,
    AXIS = 24,
    RANGE = 20,
    SWATCH = 14,
    STEP = 30, // of the scale
    LEGEND = 22
};

struct picture {
    const struct heat_answer *a;
    const struct heat *h;
    int width, height;      // of a cell
    int top, right, bottom; // of the cells
    struct buffer *out;
};

static void put_text(struct buffer *out, const char *text) {
    flame_put_escaped(out, text, strlen(text));
}

static void put_line(const struct picture *p, const char *how, int x, int y, const char *text) {
    buffer_printf(p->out, "<text %s x=\"%d\" y=\"%d\">", how, x, y);
    put_text(p->out, text);
    buffer_text(p->out, "</text>\n");
}

// -- cells ----------------------------------------------------------------------------------------

// What a cell is drawn as: a level of heat, and behind those the states.
static uint32_t look_of(const struct heat *h, const struct heat_cell *cell) {
    enum heat_state state = heat_state_of(cell);
    return state == HEAT_SEEN ? heat_level(h, cell, LEVELS) : LEVELS + (uint32_t)state;
}

// How the cells of a state are painted.
static const char *const state_paint[HEAT_STATES] = {[HEAT_IDLE] = "class=\"idle\"",
                                                     [HEAT_LATE] = "style=\"fill:url(#late)\"",
                                                     [HEAT_HELD] = "style=\"fill:url(#held)\"",
                                                     [HEAT_NOTHING] = "class=\"frame\"",
                                                     [HEAT_NO_PROFILE] = "class=\"unkept\""};

// A path of all cells that look alike: those on top of one another in one piece.
static void put_alike(const struct picture *p, const char *paint, uint32_t look) {
    const struct heat *h = p->h;
    bool any = false;
    for (uint32_t column = 0; column < h->columns; column++) {
        const struct heat_cell *cells = &h->cells[column * h->rows];
        for (uint32_t row = 0, end; row < h->rows; row = end) {
            end = row + 1;
            if (look_of(h, &cells[row]) != look) {
                continue;
            }
            while (end < h->rows && look_of(h, &cells[end]) == look) {
                end++;
            }
            if (!any) {
                buffer_printf(p->out, "<path %s d=\"", paint);
                any = true;
            }
            buffer_printf(p->out, "M%d %dh%dv-%dh-%dz", LEFT + (int)column * p->width,
                          p->bottom - (int)row * p->height, p->width, (int)(end - row) * p->height,
                          p->width);
        }
    }
    buffer_text(p->out, any ? "\"/>\n" : "");
}

static void put_cells(const struct picture *p) {
    char paint[24];
    buffer_text(p->out, "<g shape-rendering=\"crispEdges\">\n");
    for (uint32_t level = 0; level < LEVELS; level++) {
        snprintf(paint, sizeof paint, "class=\"c%" PRIu32 "\"", level);
        put_alike(p, paint, level);
    }
    for (enum heat_state state = HEAT_IDLE; state < HEAT_STATES; state++) {
        if (state != HEAT_NOTHING) {
            put_alike(p, state_paint[state], LEVELS + state);
        }
    }
    buffer_printf(p->out, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
                  LEFT, p->top, p->right - LEFT, p->bottom - p->top);
    buffer_text(p->out, "</g>\n");
}

// -- around them ----------------------------------------------------------------------------------

static void put_head(const struct picture *p, int height) {
    extern const struct embedded heat_svg_style;
    struct buffer *out = p->out;
    buffer_printf(out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                  "viewBox=\"0 0 %d %d\">\n<style>\n",
                  WIDTH, height, WIDTH, height);
    buffer_append(out, heat_svg_style.bytes, heat_svg_style.len);
    buffer_text(out,
                "</style>\n<defs>\n"
                "<pattern id=\"late\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
                "<rect class=\"late\" width=\"6\" height=\"6\"/>"
                "<path class=\"lines\" d=\"M-1 1L1 -1M0 6L6 0M5 7L7 5\"/></pattern>\n"
                "<pattern id=\"held\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
                "<rect class=\"held\" width=\"6\" height=\"6\"/>"
                "<circle class=\"dots\" cx=\"1.5\" cy=\"1.5\" r=\"1\"/>"
                "<circle class=\"dots\" cx=\"4.5\" cy=\"4.5\" r=\"1\"/></pattern>\n</defs>\n"
                "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n");
    put_line(p, "id=\"title\"", MARGIN, 24, p->a->title);
    for (uint32_t i = 0; i < p->a->notes.count; i++) {
        put_line(p, "class=\"note\"", MARGIN, TITLE + NOTE * (int)(i + 1) - 4, p->a->notes.text[i]);
    }
}

static void put_axes(const struct picture *p) {
    enum { APART = 56, ROW_MARKS = 5 };
    const struct heat *h = p->h;
    char label[HEAT_TIME_BYTES], duration[TEXT_DURATION_BYTES];
    uint32_t step = heat_marks(h, (uint32_t)(p->right - LEFT) / APART + 1);
    uint64_t first = (step - h->from_us / h->column_us % step) % step;
    for (uint64_t column = first; column < h->columns; column += step) {
        int x = LEFT + (int)column * p->width;
        heat_axis_text(p->a, h->from_us + column * h->column_us, label);
        buffer_printf(p->out, "<path class=\"tick\" d=\"M%d.5 %dv5\"/>", x, p->bottom);
        put_line(p, "class=\"axis\"", x, p->bottom + 18, label);
    }
    for (uint32_t mark = 0; mark <= ROW_MARKS; mark++) {
        int y = p->bottom - (int)mark * (p->bottom - p->top) / ROW_MARKS;
        text_duration((double)h->column_us * mark * 1000 / ROW_MARKS, duration);
        buffer_printf(p->out, "<path class=\"tick\" d=\"M%d %d.5h-5\"/>", LEFT, y);
        put_line(p, "class=\"axis\" text-anchor=\"end\"", LEFT - 9, y + (int)mark * 9 / ROW_MARKS,
                 mark == 0 ? "0" : duration);
    }
}

// What the colours stand for: where the scale begins, its middle and its end.
static void put_scale(const struct picture *p, int y) {
    const struct heat *h = p->h;
    char text[HEAT_VALUE_BYTES];
    double least = samples_is_level(h->metric) ? (double)h->lowest : 0,
           most = (double)h->highest - least;
    for (int i = 0; i < LEVELS; i++) {
        buffer_printf(p->out, "<rect class=\"c%d\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>",
                      i, LEFT + STEP * i, y, STEP, SWATCH);
    }
    buffer_text(p->out, "\n");
    for (int i = 0; i <= 2; i++) {
        static const char *const anchors[] = {"start", "middle", "end"};
        double value = least + most * i * i / 4;
        char how[48];
        if (i == 1 && most < 2 * LEVELS) {
            continue; // it has no middle
        }
        snprintf(how, sizeof how, "class=\"axis\" text-anchor=\"%s\"", anchors[i]);
        put_line(p, how, LEFT + STEP * LEVELS / 2 * i, y + SWATCH + 14,
                 value > 0 ? heat_value_text(h, (int64_t)llround(value), text) : "0");
    }
}

// The states, each with how much of the map it is.
static void put_legend(const struct picture *p, int y) {
    static const enum heat_state states[] = {HEAT_IDLE, HEAT_LATE, HEAT_HELD, HEAT_NOTHING,
                                             HEAT_NO_PROFILE};
    int count = p->a->id > 0 ? 4 : 5;
    char text[160], duration[TEXT_DURATION_BYTES];
    if (p->h->highest > 0) {
        put_scale(p, y);
    }
    for (int i = 0; i < count; i++) {
        int x = LEFT + 400 + i % 2 * 325, at = y + i / 2 * LEGEND;
        uint64_t ns = p->h->of_state[states[i]] * heat_cell_us(p->h) * 1000;
        buffer_printf(p->out, "<rect %s x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>",
                      state_paint[states[i]], x, at, SWATCH, SWATCH);
        snprintf(text, sizeof text, "%s (%s)", heat_state_text(p->h, states[i]),
                 ns > 0 ? text_duration((double)ns, duration) : "none");
        put_line(p, "", x + SWATCH + 6, at + 11, text);
    }
}

// -- what answers to the pointer ------------------------------------------------------------------

static void put_over(const struct picture *p) {
    extern const struct embedded heat_svg_script;
    const struct heat *h = p->h;
    struct buffer *out = p->out;
    char from[HEAT_TIME_BYTES], to[HEAT_TIME_BYTES];
    bool several = p->a->id == 0;
    int y = p->bottom + AXIS + RANGE - 4;
    put_line(p, "id=\"here\" class=\"range\"", LEFT, y, "");
    put_line(p, "id=\"chosen\" class=\"range\"", LEFT, y + RANGE, "");
    buffer_text(out, "<path id=\"mark\"/><path id=\"pointer\"/>\n<g id=\"over\" tabindex=\"0\">\n");
    for (uint32_t column = 0; column < h->columns; column++) {
        uint64_t begin = h->from_us + column * h->column_us;
        buffer_printf(out,
                      "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"><title>%s%s%s%s"
                      "</title></rect>\n",
                      LEFT + (int)column * p->width, p->top, p->width, p->bottom - p->top,
                      several ? "" : "--from ",
                      several ? heat_axis_text(p->a, begin, from) : heat_time_text(begin, from),
                      several ? " to " : " --to ",
                      several ? heat_axis_text(p->a, begin + h->column_us, to)
                              : heat_time_text(begin + h->column_us, to));
    }
    buffer_printf(out,
                  "</g>\n<metadata id=\"cells\" data-x=\"%d\" data-y=\"%d\" data-width=\"%d\" "
                  "data-height=\"%d\" data-unit=\"%s\" data-level=\"%d\"><![CDATA[",
                  LEFT, p->bottom, p->width, p->height, flame_metric_unit(h->metric),
                  samples_is_level(h->metric));
    struct json j = json_make(out);
    json_open(&j, '{');
    if (several) {
        heat_put_pieces(&j, p->a);
    }
    heat_put_cells(&j, h);
    json_close(&j, '}');
    buffer_text(out, "]]></metadata>\n<script><![CDATA[\n");
    buffer_append(out, heat_svg_script.bytes, heat_svg_script.len);
    buffer_text(out, "]]></script>\n");
}

void heat_svg(const struct heat_answer *a, struct buffer *out) {
    const struct heat *h = &a->heat;
    int room = WIDTH - LEFT - MARGIN;
    struct picture p = {.a = a, .h = h, .out = out};
    p.width = room / (int)h->columns > WIDEST ? WIDEST : room / (int)h->columns;
    p.width = p.width > 0 ? p.width : 1; // it is wider then
    p.height = HEIGHT / (int)h->rows > 0 ? HEIGHT / (int)h->rows : 1;
    p.top = TITLE + NOTE * (int)a->notes.count + 14;
    p.right = LEFT + (int)h->columns * p.width;
    p.bottom = p.top + (int)h->rows * p.height;
    int legend = p.bottom + AXIS + 2 * RANGE + 10;
    put_head(&p, legend + (a->id > 0 ? 2 : 3) * LEGEND + MARGIN);
    put_cells(&p);
    put_axes(&p);
    put_legend(&p, legend);
    put_over(&p);
    buffer_text(out, "</svg>\n");
}
