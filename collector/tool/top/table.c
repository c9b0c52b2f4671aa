// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text_amount.h"
#include "tool/text.h"
#include "tool/top/print.h"

enum { CELL = 64, NAME_LEAST = 16 };

static const char bold[] = "\x1b[1m", plain[] = "\x1b[0m";

// -- numbers --------------------------------------------------------------------------------------

// "123,456", "12,345 k", "123 M": in at most eight columns, but for what no node does.
static void rate(double n, char out[CELL]) {
    char grouped[TEXT_GROUPED_BYTES];
    double most = n < 1e15 ? n : 1e15, of = most < 1e6 ? 1 : most < 1e8 ? 1e3 : 1e6;
    snprintf(out, CELL, "%s%s", text_grouped((uint64_t)(most / of + 0.5), grouped),
             of < 2     ? ""
             : of < 2e3 ? " k"
                        : " M");
}

// Puts its sign before a text that is not nought.
static void put_sign(double n, const char *zero, const char *text, char out[CELL]) {
    const char *sign = strcmp(text, zero) == 0 ? "" : n < 0 ? "-" : "+";
    snprintf(out, CELL, "%s%.40s", sign, text);
}

static void signed_rate(double per_s, char out[CELL]) {
    char text[CELL];
    rate(per_s < 0 ? -per_s : per_s, text);
    put_sign(per_s, "0", text, out);
}

static void signed_size(double bytes, char out[CELL]) {
    char text[TEXT_SIZE_BYTES];
    put_sign(bytes, "0 B", text_size(bytes < 0 ? -bytes : bytes, text), out);
}

static double per_second(int64_t n, const struct top_rows *r) {
    return (double)n / r->seconds;
}

// -- processes ------------------------------------------------------------------------------------

enum column { REDUCTIONS, MEMORY, MEMORY_CHANGE, QUEUE, QUEUE_CHANGE, STATUS, PID, NUMBERS };

static const struct {
    const char *head;
    uint32_t width;
} columns[NUMBERS] = {
    [REDUCTIONS] = {"reds/s", 9}, [MEMORY] = {"memory", 8},      [MEMORY_CHANGE] = {"per s", 8},
    [QUEUE] = {"queue", 8},       [QUEUE_CHANGE] = {"per s", 8}, [STATUS] = {"status", 10},
    [PID] = {"pid", 12}};

// Where columns go when there is little room: the first ones of this list.
static const enum column spared[] = {MEMORY_CHANGE, STATUS, MEMORY, QUEUE_CHANGE, QUEUE};

struct layout {
    bool shown[NUMBERS];
    uint32_t name, function, application; // columns of these; 0: not shown
};

static struct layout layout_of(uint32_t width) {
    enum { APPLICATION = 12 };
    struct layout l = {.shown = {true, true, true, true, true, true, true}};
    uint32_t used = 0;
    for (int i = 0; i < NUMBERS; i++) {
        used += columns[i].width + 1;
    }
    for (size_t i = 0; i < sizeof spared / sizeof *spared && used + 2 * NAME_LEAST > width; i++) {
        l.shown[spared[i]] = false;
        used -= columns[spared[i]].width + 1;
    }
    uint32_t rest = width > used + 3 ? width - used - 3 : 0;
    l.application = rest >= 4 * NAME_LEAST ? APPLICATION : 0;
    rest -= l.application ? APPLICATION + 1 : 0;
    l.name = rest * 2 / 5;
    l.function = rest - l.name;
    return l;
}

static void number_cell(const struct top_rows *r, const struct top_process *p, enum column c,
                        char out[CELL]) {
    switch (c) {
    case REDUCTIONS:
        rate(per_second(p->reductions, r), out);
        break;
    case MEMORY:
        p->memory < 0 ? (void)snprintf(out, CELL, "-") : (void)text_size((double)p->memory, out);
        break;
    case MEMORY_CHANGE:
        p->memory < 0 ? (void)snprintf(out, CELL, "-")
                      : signed_size(per_second(p->memory_change, r), out);
        break;
    case QUEUE:
        rate((double)p->queue, out);
        break;
    default: // QUEUE_CHANGE
        signed_rate(per_second(p->queue_change, r), out);
    }
}

// Names that have room for more go to their columns' ends.
static void put_text(struct buffer *out, const char *text, uint32_t width) {
    buffer_text(out, " ");
    text_fit(out, text, width);
}

static void end_line(struct buffer *out) {
    while (out->len > 0 && out->data[out->len - 1] == ' ') {
        out->len--;
    }
    buffer_text(out, "\n");
}

static void put_process(const struct top_rows *r, const struct layout *l,
                        const struct top_process *p, struct buffer *out) {
    for (int c = 0; c < STATUS; c++) {
        char cell[CELL];
        if (l->shown[c]) {
            number_cell(r, p, (enum column)c, cell);
            buffer_text(out, " ");
            text_pad_left(out, cell, columns[c].width);
        }
    }
    if (l->shown[STATUS]) {
        put_text(out, p->status, columns[STATUS].width);
    }
    put_text(out, p->pid, columns[PID].width);
    put_text(out, p->name[0] ? p->name : p->initial, l->name);
    if (l->application) {
        put_text(out, p->application, l->application);
    }
    put_text(out, p->function, l->function);
    end_line(out);
}

static void put_head(const struct layout *l, const struct top_style *style, struct buffer *out) {
    buffer_text(out, style->colour ? bold : "");
    for (int c = 0; c < NUMBERS; c++) {
        if (l->shown[c]) {
            buffer_text(out, " ");
            (c < STATUS ? text_pad_left : text_pad_right)(out, columns[c].head, columns[c].width);
        }
    }
    put_text(out, "process", l->name);
    if (l->application) {
        put_text(out, "application", l->application);
    }
    put_text(out, "function", l->function);
    end_line(out);
    buffer_text(out, style->colour ? plain : "");
}

// -- functions ------------------------------------------------------------------------------------

static void share(int64_t of, int64_t all, char out[CELL]) {
    snprintf(out, CELL, "%.1f %%", all > 0 ? 100 * (double)of / (double)all : 0);
}

static void put_functions(const struct top_rows *r, const struct top_style *style,
                          struct buffer *out) {
    enum { SHARE = 9 };
    char cell[CELL];
    uint32_t lines = r->function_count < style->functions ? r->function_count : style->functions;
    if (lines == 0) {
        buffer_text(out, r->busy > 0 ? "" : " no process was running, or ready to\n");
        return;
    }
    buffer_text(out, style->colour ? bold : "");
    buffer_text(out, "      self     total function\n");
    buffer_text(out, style->colour ? plain : "");
    for (uint32_t i = 0; i < lines; i++) {
        const struct top_function *f = &r->functions[i];
        buffer_text(out, " ");
        share(f->self, r->busy, cell);
        text_pad_left(out, cell, SHARE);
        buffer_text(out, " ");
        share(f->total, r->busy, cell);
        text_pad_left(out, cell, SHARE);
        put_text(out, f->name, style->width > 2 * SHARE + 6 ? style->width - 2 * SHARE - 6 : 1);
        end_line(out);
    }
}

// -- all ------------------------------------------------------------------------------------------

// What it is of; what went wrong since the view before; how much was seen, and what that has cost.
// In one line, whose end goes first where there is no room.
static void put_summary(const struct top_rows *r, const struct top_style *style,
                        struct buffer *out) {
    static const char *const by[] = {"reductions", "memory", "queue"};
    const struct top_totals *t = &r->totals, *before = &r->before;
    const struct {
        const char *head, *tail;
        int64_t n;
    } troubles[] = {{"", "not answered", t->unanswered - before->unanswered},
                    {"late ", "ms", t->late_ms - before->late_ms},
                    {"held back ", "ms", t->held_ms - before->held_ms}};
    char looks[TEXT_GROUPED_BYTES], cost[TEXT_PERCENT_BYTES], node[200];
    double used = (double)(t->cost_us - before->cost_us) / 1e6 / r->seconds;
    struct buffer line = buffer_make(1000);
    snprintf(node, sizeof node, "%s", style->node);
    text_clean(node);
    buffer_printf(&line, " %s by %s", node, by[style->by]);
    for (size_t i = 0; i < sizeof troubles / sizeof *troubles; i++) {
        if (troubles[i].n > 0) {
            buffer_printf(&line, ", %s%" PRId64 " %s", troubles[i].head, troubles[i].n,
                          troubles[i].tail);
        }
    }
    buffer_printf(&line, ", %s look%s in %.1f s at %u process%s, costs %s",
                  text_grouped((uint64_t)r->samples, looks), text_plural((uint64_t)r->samples),
                  r->seconds, r->process_count, r->process_count == 1 ? "" : "es",
                  text_percent(used > 0 ? used : 0, cost));
    buffer_append(&line, "", 1);
    if (!line.failed) {
        text_fit(out, (const char *)line.data, style->width > 1 ? style->width - 1 : 1);
    }
    buffer_free(&line);
    end_line(out);
}

void top_table(const struct top_rows *r, const struct top_style *style, struct buffer *out) {
    struct layout l = layout_of(style->width);
    uint32_t lines = r->process_count < style->processes ? r->process_count : style->processes;
    put_summary(r, style, out);
    put_head(&l, style, out);
    for (uint32_t i = 0; i < lines; i++) {
        put_process(r, &l, &r->processes[i], out);
    }
    put_functions(r, style, out);
    if (style->keys) {
        static const char keys[] =
            " r reductions, m memory, l queue length; s self, t total; q quits";
        text_fit(out, keys, style->width > 1 ? style->width - 1 : 1);
        end_line(out);
    }
}
