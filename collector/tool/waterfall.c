// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_amount.h"
#include "base/time_math.h"
#include "tool/node.h"
#include "tool/terminal.h"
#include "tool/text.h"
#include "tool/waterfall.h"

// The bar's least width, and the one that tier names give way to; the levels that are indented, two
// columns each; the least that names are cut to.
enum { CELL_BYTES = 256, GAP = 2, BAR_LEAST = 10, BAR_WANTED = 24, LEVELS = 12, TIER_LEAST = 24 };

// In the order of a line; the bar stands behind the offset.
enum column { OFFSET, DURATION, SELF, WAIT, GC, OFF_CPU, PROCESS, TIER, OUTCOME, COLUMNS };

// NULL: not shown.
static const char *const headings[][COLUMNS] = {
    [WATERFALL_TIERS] = {"offset", "duration", "self", "wait", "gc", "off-cpu", "process", "tier",
                         "outcome"},
    [WATERFALL_FUNCTIONS] = {"offset", "duration", "self", NULL, "gc", "off-cpu", "process",
                             "function", NULL}};

struct waterfall {
    const struct slow_spans *of;
    const struct waterfall_style *style;
    const char *const *headings;
    uint32_t *order;        // the spans' numbers in tree order
    uint32_t *depth;        // of each span, 0 at the top
    double scale_ns;        // what the bar's whole width stands for
    size_t widths[COLUMNS]; // 0: a column that is not shown
    size_t bar;
    uint32_t levels; // that are indented; spans further down tell their depth
    bool tail;       // the scale goes on after the request's end
    bool waited, open, blind, remote;
    bool measured, estimated; // waits of some
    struct node_names names;
};

// -- tree

// Puts the spans into tree order. Whatever the parents are, every span comes once: only smaller
// numbers count as parents.
static bool arrange(struct waterfall *w) {
    uint32_t count = w->of->count;
    uint32_t *first = malloc(((size_t)count + 1) * sizeof *first); // child; [count]: at the top
    uint32_t *next = malloc(((size_t)count + 1) * sizeof *next);   // sibling
    bool ok = first && next;
    for (uint32_t i = 0; ok && i <= count; i++) {
        first[i] = UINT32_MAX;
    }
    // backwards, so that earlier siblings come to stand first
    for (uint32_t i = count; ok && i-- > 0;) {
        uint32_t parent = w->of->spans[i].parent < i ? w->of->spans[i].parent : count;
        next[i] = first[parent];
        first[parent] = i;
    }
    uint32_t at = ok ? first[count] : UINT32_MAX;
    for (uint32_t n = 0; at != UINT32_MAX;) {
        uint32_t parent = w->of->spans[at].parent;
        w->depth[at] = parent < at ? w->depth[parent] + 1 : 0;
        w->order[n++] = at;
        uint32_t to = first[at];
        for (; to == UINT32_MAX && at != count;
             at = w->of->spans[at].parent < at ? w->of->spans[at].parent : count) {
            to = next[at];
        }
        at = to;
    }
    free(first);
    free(next);
    return ok;
}

static bool is(const char *text, const char *what) {
    return strcmp(text, what) == 0;
}

// What the whole request needs: its scale and what is worth a legend.
static void survey(struct waterfall *w) {
    double request = (double)w->of->request.duration_ns;
    w->scale_ns = request > 0 ? request : 0;
    for (uint32_t i = 0; i < w->of->count; i++) {
        const struct slow_span *s = &w->of->spans[i];
        double end = (double)s->start_ns + (double)s->duration_ns;
        w->scale_ns = end > w->scale_ns ? end : w->scale_ns;
        w->waited = w->waited || s->wait_ns > 0;
        w->measured = w->measured || s->measured;
        w->estimated = w->estimated || (s->wait_ns > 0 && !s->measured);
        w->open = w->open || is(s->outcome, "open");
        w->blind = w->blind || is(s->outcome, "unknown");
        w->remote = w->remote || s->node;
        if (s->node) {
            node_names_add(&w->names, s->node);
        }
        w->widths[GC] += s->gc_ns > 0;
        w->widths[OFF_CPU] += s->off_cpu_ns > 0;
    }
    node_names_add(&w->names, w->of->request.node);
    for (uint32_t i = 0; i < w->of->part_count; i++) {
        node_names_add(&w->names, w->of->parts[i].node);
    }
    w->tail = w->scale_ns > request;
    w->scale_ns = w->scale_ns > 0 ? w->scale_ns : 1;
}

// -- cells

static void duration_or_none(int64_t ns, bool none, char out[CELL_BYTES]) {
    if (none) {
        snprintf(out, CELL_BYTES, "-");
    } else {
        text_duration((double)ns, out);
    }
}

static void tier_cell(const struct waterfall *w, uint32_t span, char out[CELL_BYTES]) {
    uint32_t depth = w->depth[span];
    int indent = 2 * (int)(depth < w->levels ? depth : w->levels);
    if (depth > w->levels) {
        snprintf(out, CELL_BYTES, "%*s[%" PRIu32 "] %s", indent, "", depth,
                 w->of->spans[span].name);
    } else {
        snprintf(out, CELL_BYTES, "%*s%s", indent, "", w->of->spans[span].name);
    }
    text_clean(out); // it may end in the middle of a character
}

static void cell(const struct waterfall *w, uint32_t span, enum column column,
                 char out[CELL_BYTES]) {
    const struct slow_span *s = &w->of->spans[span];
    bool open = is(s->outcome, "open");
    switch (column) {
    case OFFSET:
        text_duration((double)s->start_ns, out + (s->node != NULL));
        *out = s->node ? '~' : *out;
        break;
    case DURATION:
        duration_or_none(s->duration_ns, open, out);
        break;
    case SELF:
        duration_or_none(s->self_ns, open || s->async, out);
        break;
    case WAIT:
        duration_or_none(s->wait_ns, s->wait_ns == 0, out);
        if (s->wait_ns > 0 && !s->measured && w->measured) {
            snprintf(out + strlen(out), CELL_BYTES - strlen(out), " est.");
        }
        break;
    case GC:
        duration_or_none(s->gc_ns, s->gc_ns == 0, out);
        break;
    case OFF_CPU:
        duration_or_none(s->off_cpu_ns, s->off_cpu_ns == 0, out);
        break;
    case PROCESS:
        snprintf(out, CELL_BYTES, "%s%s%s", s->pid, s->node ? " " : "",
                 s->node ? node_names_shown(&w->names, s->node) : "");
        text_clean(out);
        break;
    case TIER:
        tier_cell(w, span, out);
        break;
    default:
        snprintf(out, CELL_BYTES, "%s%s", s->outcome, s->async ? ", async" : "");
    }
}

static void measure(struct waterfall *w) {
    char text[CELL_BYTES];
    for (int c = 0; c < COLUMNS; c++) {
        if (!w->headings[c] || ((c == GC || c == OFF_CPU) && w->widths[c] == 0)) {
            continue; // no span has any
        }
        w->widths[c] = text_width(w->headings[c]);
        for (uint32_t i = 0; i < w->of->count; i++) {
            cell(w, i, c, text);
            size_t wide = text_width(text);
            w->widths[c] = wide > w->widths[c] ? wide : w->widths[c];
        }
    }
}

// Shares out the line: the bar gets what the columns leave, and when that is little, names are cut.
static void share_out(struct waterfall *w) {
    size_t taken = 1 + GAP; // a margin, and what stands before the bar
    w->levels = LEVELS;
    measure(w);
    for (int c = 0; c < COLUMNS; c++) {
        taken += w->widths[c] + (w->widths[c] > 0 && c != OFFSET ? GAP : 0);
    }
    size_t wanted = taken + BAR_WANTED;
    if (wanted > w->style->width && w->widths[TIER] > TIER_LEAST) {
        size_t less = wanted - w->style->width;
        size_t most = w->widths[TIER] - TIER_LEAST;
        less = less < most ? less : most;
        w->widths[TIER] -= less;
        taken -= less;
        // At least half of the column stays for names.
        uint32_t levels = (uint32_t)w->widths[TIER] / 4;
        w->levels = levels < LEVELS ? levels : LEVELS;
    }
    w->bar = w->style->width > taken + BAR_LEAST ? w->style->width - taken : BAR_LEAST;
}

// -- bars

// What a column of the bar shows. The eighths of a column that are filled from the left are FILLED
// + 1 … 8.
enum glyph { NOTHING, END, WAITING, OPEN, RIGHT_EIGHTH, RIGHT_HALF, FILLED };

static const char *const blocks[FILLED + 9] = {" ", "│", "╌", "░", "▕", "▐", " ", "▏",
                                               "▎", "▍", "▌", "▋", "▊", "▉", "█"};
static const char *const plain[FILLED + 9] = {" ", "|", "-", "?", "#", "#", " ", "#",
                                              "#", "#", "#", "#", "#", "#", "#"};

// A time of the request in eighths of the bar's columns, within the bar.
static size_t eighths(const struct waterfall *w, double ns) {
    double all = (double)w->bar * 8;
    double at = ns / w->scale_ns * all + 0.5;
    return at >= all ? (size_t)all : at > 0 ? (size_t)at : 0;
}

// Where a span's waiting, its bar and that bar's end lie.
struct extent {
    size_t wait, begin, end; // eighths
    bool open;
};

static struct extent extent_of(const struct waterfall *w, const struct slow_span *s) {
    struct extent e = {.open = is(s->outcome, "open")};
    double start = (double)s->start_ns;
    e.begin = eighths(w, start);
    e.end = e.open ? w->bar * 8 : eighths(w, start + (double)s->duration_ns);
    e.begin = e.begin < w->bar * 8 ? e.begin : w->bar * 8 - 1;
    e.end = e.end > e.begin ? e.end : e.begin + 1; // every span can be seen
    e.wait = s->wait_ns > 0 ? eighths(w, start - (double)s->wait_ns) : e.begin;
    return e;
}

static enum glyph glyph_at(const struct waterfall *w, const struct extent *e, size_t column) {
    size_t low = column * 8, high = low + 8;
    size_t from = e->begin > low ? e->begin : low;
    size_t to = e->end < high ? e->end : high;
    if (from < to && e->open) {
        return OPEN;
    }
    if (from < to && to == high && from > low) { // there are few blocks that lean to the right
        return to - from >= 6 ? FILLED + 8 : to - from >= 3 ? RIGHT_HALF : RIGHT_EIGHTH;
    }
    if (from < to) {
        return FILLED + (enum glyph)(to - from);
    }
    if (e->wait < high && e->begin > low) {
        return WAITING;
    }
    return w->tail && column == eighths(w, (double)w->of->request.duration_ns) / 8 ? END : NOTHING;
}

// -- colours

static const char *const red = "\x1b[31m";
static const char *const cyan = "\x1b[36m";
static const char *const bold = "\x1b[1m";
static const char *const dim = "\x1b[2m";

// Switches colours where there are any; NULL: back to none.
static void paint(const struct waterfall *w, struct buffer *out, const char *colour) {
    if (w->style->colour) {
        buffer_text(out, colour ? colour : "\x1b[0m");
    }
}

static const char *colour_of(const struct slow_span *s) {
    return is(s->outcome, "error") ? red : s->async ? cyan : NULL;
}

static void draw(const struct waterfall *w, const struct slow_span *s, struct buffer *out) {
    const struct extent e = extent_of(w, s);
    const char *now = NULL;
    for (size_t c = 0; c < w->bar; c++) {
        enum glyph glyph = glyph_at(w, &e, c);
        const char *colour = glyph == NOTHING ? now : glyph <= WAITING ? dim : colour_of(s);
        if (colour != now) {
            paint(w, out, now ? NULL : "");
            paint(w, out, colour ? colour : "");
            now = colour;
        }
        buffer_text(out, (w->style->utf8 ? blocks : plain)[glyph]);
    }
    if (now) {
        paint(w, out, NULL);
    }
}

struct waterfall_style waterfall_style(uint32_t width) {
    return (struct waterfall_style){.width = width ? width : terminal_width(),
                                    .utf8 = terminal_utf8(),
                                    .colour = terminal_colour()};
}

void waterfall_title(const struct waterfall_style *style, bool begins, struct buffer *out) {
    struct waterfall w = {.style = style};
    paint(&w, out, begins ? bold : NULL);
}

// -- lines

// Without blanks at its end.
static void end_line(struct buffer *out) {
    while (out->len > 0 && out->data[out->len - 1] == ' ') {
        out->len--;
    }
    buffer_text(out, "\n");
}

// The columns of a line from one on; the last one is not padded.
static void columns(const struct waterfall *w, const char cells[COLUMNS][CELL_BYTES],
                    struct buffer *out) {
    for (int c = DURATION; c < OUTCOME; c++) {
        if (w->widths[c] == 0) {
            continue;
        }
        text_pad_right(out, "", GAP);
        if (c >= PROCESS) {
            text_fit(out, cells[c], w->widths[c]);
        } else {
            text_pad_left(out, cells[c], w->widths[c]);
        }
    }
    text_pad_right(out, "", GAP);
}

static void heading_line(const struct waterfall *w, struct buffer *out) {
    char cells[COLUMNS][CELL_BYTES];
    for (int c = 0; c < COLUMNS; c++) {
        snprintf(cells[c], CELL_BYTES, "%s", w->headings[c] ? w->headings[c] : "");
    }
    buffer_text(out, "\n");
    text_pad_left(out, cells[OFFSET], 1 + w->widths[OFFSET]);
    text_pad_right(out, "", GAP + w->bar);
    columns(w, cells, out);
    buffer_text(out, cells[OUTCOME]);
    end_line(out);
}

static void span_line(const struct waterfall *w, uint32_t span, struct buffer *out) {
    const struct slow_span *s = &w->of->spans[span];
    const char *colour = colour_of(s);
    char cells[COLUMNS][CELL_BYTES];
    for (int c = 0; c < COLUMNS; c++) {
        cell(w, span, c, cells[c]);
    }
    text_pad_left(out, cells[OFFSET], 1 + w->widths[OFFSET]);
    text_pad_right(out, "", GAP);
    draw(w, s, out);
    columns(w, cells, out);
    paint(w, out, colour ? colour : "");
    buffer_text(out, cells[OUTCOME]);
    if (colour) {
        paint(w, out, NULL);
    }
    end_line(out);
}

// What the drawing means, as far as it is not plain, and what is not in it.
static void legend(const struct waterfall *w, struct buffer *out) {
    const char *const *glyphs = w->style->utf8 ? blocks : plain;
    if (w->waited || w->open || w->tail || w->blind) {
        const char *between = "";
        buffer_text(out, "\n ");
        if (w->waited) {
            buffer_printf(out, "%s its caller waited for it to begin (%s)", glyphs[WAITING],
                          !w->measured   ? "estimated"
                          : w->estimated ? "measured; est.: estimated"
                                         : "measured");
            between = "   ";
        }
        if (w->open) {
            buffer_printf(out, "%s%s no return seen", between, glyphs[OPEN]);
            between = "   ";
        }
        if (w->tail) {
            buffer_printf(out, "%s%s end of the request", between, glyphs[END]);
            between = "   ";
        }
        buffer_text(out, w->blind ? between : "");
        buffer_text(out, w->blind ? "unknown: its tier has returns => none\n" : "\n");
    }
    if (w->remote) {
        buffer_text(
            out,
            "\n"
            " ~ on another node: timed by that node's clock, and drawn within the call above it, "
            "whose self time is less by it here, but not in statistics\n");
    }
}

void waterfall_draw(const struct slow_spans *spans, enum waterfall_of what,
                    const struct waterfall_style *style, struct buffer *out) {
    struct waterfall w = {.of = spans, .style = style, .headings = headings[what]};
    w.order = malloc(((size_t)spans->count + 1) * sizeof *w.order);
    w.depth = malloc(((size_t)spans->count + 1) * sizeof *w.depth);
    if (!w.order || !w.depth || !arrange(&w)) {
        out->failed = true;
    } else {
        survey(&w);
        share_out(&w);
        if (spans->count > 0) {
            heading_line(&w, out);
        }
        for (uint32_t i = 0; i < spans->count; i++) {
            span_line(&w, w.order[i], out);
        }
        legend(&w, out);
    }
    free(w.order);
    free(w.depth);
}
