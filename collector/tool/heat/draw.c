// SPDX-License-Identifier: Apache-2.0
#include "tool/heat/draw.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text_amount.h"
#include "tool/text.h"

enum {
    LABEL = 8, // columns of the marks of rows, and the edge
    LEVELS = 4,
    AROUND = 13, // lines above and below the map
    MARK = 8     // columns between the marks of seconds, at least
};

// What a cell looks like: its heat from the least to the most, and the states.
static const struct {
    const char *utf8, *ascii;
    const char *colour; // of 256, those that a light and a dark terminal both show
} looks[LEVELS + HEAT_STATES] = {
    {"░", "-", "38;5;172"},
    {"▒", "+", "38;5;172"},
    {"▓", "x", "38;5;208"},
    {"█", "#", "38;5;202"},
    [LEVELS + HEAT_IDLE] = {"·", ".", "38;5;244"},
    [LEVELS + HEAT_LATE] = {"!", "!", "38;5;32"},
    [LEVELS + HEAT_HELD] = {"=", "=", "38;5;169"},
    [LEVELS + HEAT_NOTHING] = {" ", " ", NULL},
    [LEVELS + HEAT_NO_PROFILE] = {"╱", "/", "38;5;244"},
};

uint32_t heat_columns_of(uint32_t width) {
    return width > LABEL + 10 ? width - LABEL : 10;
}

uint32_t heat_rows_of(uint32_t height) {
    static const uint32_t rows[] = {50, 40, 25, 20, 16, 10, 8};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i] + AROUND <= height) {
            return rows[i];
        }
    }
    return 5;
}

struct drawing {
    const struct heat_answer *a;
    const struct heat *h;
    const struct heat_style *style;
    uint32_t width; // characters of a cell
    struct buffer *out;
};

static uint32_t look_of(const struct heat *h, const struct heat_cell *cell) {
    enum heat_state state = heat_state_of(cell);
    return state == HEAT_SEEN ? heat_level(h, cell, LEVELS) : LEVELS + (uint32_t)state;
}

static void put_look(const struct drawing *d, uint32_t look, uint32_t times) {
    const char *colour = d->style->colour ? looks[look].colour : NULL;
    if (colour) {
        buffer_printf(d->out, "\033[%sm", colour);
    }
    for (uint32_t i = 0; i < times; i++) {
        buffer_text(d->out, d->style->utf8 ? looks[look].utf8 : looks[look].ascii);
    }
    buffer_text(d->out, colour ? "\033[m" : "");
}

static void put_clean(struct buffer *out, const char *line) {
    char text[FLAME_NOTE_BYTES];
    snprintf(text, sizeof text, "%s", line);
    text_clean(text);
    buffer_printf(out, "%s\n", text);
}

// A row of all columns; rows go from the bottom up.
static void put_row(const struct drawing *d, uint32_t row) {
    const struct heat *h = d->h;
    char begin[TEXT_DURATION_BYTES];
    text_duration((double)(row * heat_cell_us(h)) * 1000, begin);
    text_pad_left(d->out, row == 0 ? "0" : begin, LABEL - 2);
    buffer_text(d->out, d->style->utf8 ? " │" : " |");
    size_t end = d->out->len; // behind what is seen
    for (uint32_t column = 0, next; column < h->columns; column = next) {
        uint32_t look = look_of(h, &h->cells[column * h->rows + row]);
        for (next = column + 1;
             next < h->columns && look_of(h, &h->cells[next * h->rows + row]) == look;) {
            next++;
        }
        put_look(d, look, (next - column) * d->width);
        end = look == LEVELS + HEAT_NOTHING ? end : d->out->len;
    }
    d->out->len = end < d->out->len ? end : d->out->len;
    buffer_text(d->out, "\n");
}

static void put_axis(const struct drawing *d) {
    const struct heat *h = d->h;
    char mark[HEAT_TIME_BYTES];
    uint32_t step = heat_marks(h, h->columns * d->width / MARK + 1);
    uint32_t first = (uint32_t)((step - h->from_us / h->column_us % step) % step);
    uint32_t at = 0;
    text_pad_left(d->out, "", LABEL);
    for (uint32_t column = first; column < h->columns; column += step) {
        for (; at < column * d->width; at++) {
            buffer_text(d->out, " ");
        }
        if (d->a->id == 0) {
            heat_axis_text(d->a, h->from_us + column * h->column_us, mark);
        } else {
            heat_time_text(h->from_us + column * h->column_us, mark);
        }
        buffer_text(d->out, mark);
        at += (uint32_t)strlen(mark);
    }
    buffer_text(d->out, "\n");
}

static void put_legend(const struct drawing *d) {
    const struct heat *h = d->h;
    char text[HEAT_VALUE_BYTES], duration[TEXT_DURATION_BYTES];
    buffer_text(d->out, "\n");
    if (h->highest > 0) {
        for (uint32_t level = 0; level < LEVELS; level++) {
            put_look(d, level, 2);
        }
        bool from_least = samples_is_level(h->metric);
        buffer_printf(d->out, "  %s", heat_value_text(h, from_least ? h->lowest : 1, text));
        buffer_printf(d->out, " to %s\n", heat_value_text(h, h->highest, text));
    }
    for (enum heat_state state = HEAT_IDLE; state < HEAT_STATES; state++) {
        uint64_t ns = h->of_state[state] * heat_cell_us(h) * 1000;
        if (ns > 0) {
            put_look(d, LEVELS + state, 1);
            buffer_printf(d->out, " %s (%s)\n", heat_state_text(h, state),
                          text_duration((double)ns, duration));
        }
    }
}

void heat_draw(const struct heat_answer *a, uint32_t width, const struct heat_style *style,
               struct buffer *out) {
    const struct heat *h = &a->heat;
    bool twice = h->columns * 2 <= heat_columns_of(width);
    struct drawing d = {.a = a, .h = h, .style = style, .width = twice ? 2 : 1, .out = out};
    put_clean(out, a->title);
    for (uint32_t i = 0; i < a->notes.count; i++) {
        put_clean(out, a->notes.text[i]);
    }
    buffer_text(out, "\n");
    for (uint32_t row = h->rows; row > 0; row--) {
        put_row(&d, row - 1);
    }
    put_axis(&d);
    put_legend(&d);
}
