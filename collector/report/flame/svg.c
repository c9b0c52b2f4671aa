// SPDX-License-Identifier: Apache-2.0
// The picture: a frame for each node, its callees above it, as wide as it is heavy. svg_script.js
// makes it answer to the mouse and the keys; without it the picture stands all the same.
#include "report/flame/forms.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embedded.h"
#include "base/hash.h"
#include "base/text_amount.h"

enum {
    WIDTH = 1200, // px
    MARGIN = 10,
    ROW = 17,
    TITLE = 30,
    NOTE = 16,
    FOOT = 30,
    MOST_FRAMES = 6000,   // a person looks at some hundreds; usually 200 bytes each,
    MOST_BYTES = 1900000, // fewer where they are long: all forms of the file stay below 2 MB
    LEAST_CHARACTERS = 3
};
// px: a monospaced font of 11 px, and how narrow a frame may be.
static const double CHARACTER = 6.63, NARROWEST = 0.1;

// Of the nodes of a drawing that are drawn.
struct layout {
    const struct flame_drawing *d;
    double *x;        // of each node, px; -1: it is not drawn
    uint32_t *order;  // the nodes that are wide enough, the widest first
    uint32_t wide;    // how many that are,
    uint32_t drawn;   // and of these the first ones are drawn
    uint32_t deepest; // depth that may be drawn
    double scale;     // px for each unit
    double top;       // px: where the highest frame begins
    struct buffer *out;
};

void flame_put_escaped(struct buffer *out, const char *text, size_t len) {
    for (size_t i = 0; i < len; i++) {
        const char *entity = text[i] == '<'   ? "&lt;"
                             : text[i] == '>' ? "&gt;"
                             : text[i] == '&' ? "&amp;"
                             : text[i] == '"' ? "&quot;"
                                              : NULL;
        entity ? buffer_text(out, entity) : buffer_append(out, text + i, 1);
    }
}

static void put_text(struct buffer *out, const char *text) {
    flame_put_escaped(out, text, strlen(text));
}

// Bytes of the first so many characters of a text in UTF-8.
static size_t bytes_of(const char *text, size_t characters) {
    size_t at = 0;
    while (text[at] && characters > 0) {
        at++;
        while (((uint8_t)text[at] & 0xc0) == 0x80) {
            at++;
        }
        characters--;
    }
    return at;
}

// -- colours --------------------------------------------------------------------------------------

// The same in every run, so that a function keeps its colour (FNV-1a).
static uint32_t number_of(const char *text) {
    uint32_t h = 2166136261u;
    for (; *text; text++) {
        h = (h ^ (uint8_t)*text) * 16777619u;
    }
    return h ^ h >> 15;
}

// A colour for each application, modules and functions of it in shades; of a module whose
// application is not known, by its name up to the first "_" or ".".
static void put_function_colour(struct buffer *out, const struct flame_frame *f) {
    char family[64];
    const char *of = f->application[0] ? f->application : f->module;
    size_t len = f->application[0] ? strlen(of) : strcspn(of, "_");
    snprintf(family, sizeof family, "%.*s", (int)(len < 60 ? len : 60), of);
    uint32_t shade = number_of(f->name);
    uint32_t hue = (number_of(family) + number_of(f->module) % 24) % 360;
    buffer_printf(out, "hsl(%u,%u%%,%u%%)", hue, 55 + shade % 20, 62 + shade / 32 % 16);
}

// More than before is red, less is blue, as much is grey.
static void put_change_colour(const struct layout *l, const struct flame_node *n) {
    const struct flame_node *root = l->d->tree->nodes;
    double scale =
        root->before.total > 0 ? (double)root->weight.total / (double)root->before.total : 0;
    double change = (double)n->weight.total - (double)n->before.total * scale;
    double most = (double)n->weight.total + (double)n->before.total * scale;
    double share = most > 0 ? change / most : 0; // -1: all is gone; 1: all is new
    int light = 92 - (int)(fabs(share) * 40);
    buffer_printf(l->out, "hsl(%d,%d%%,%d%%)", share >= 0 ? 4 : 212, fabs(share) < 0.005 ? 0 : 85,
                  light);
}

static void put_colour(const struct layout *l, const struct flame_node *n) {
    const struct flame_frame *f = &l->d->tree->frames[n->frame];
    if (l->d->compared) {
        put_change_colour(l, n);
        return;
    }
    switch ((enum stack_frame_kind)f->kind) {
    case FRAME_FUNCTION:
        put_function_colour(l->out, f);
        break;
    case FRAME_WAITING:
        buffer_text(l->out, "#b9c6d6");
        break;
    case FRAME_ASLEEP:
        buffer_text(l->out, "#dcdcdc");
        break;
    case FRAME_GC:
        buffer_text(l->out, "#c9a66b");
        break;
    case FRAME_CUT:
    case FRAME_GROUP:
        buffer_text(l->out, "#e8e4da");
        break;
    }
}

// -- layout ---------------------------------------------------------------------------------------

static double width_of(const struct layout *l, uint32_t node) {
    return (double)l->d->tree->nodes[node].weight.total * l->scale;
}

// The heaviest first. None stands before the one that it lies on, which is as heavy at least.
static int by_weight(const void *left, const void *right, void *nodes) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    int64_t x = ((const struct flame_node *)nodes)[a].weight.total;
    int64_t y = ((const struct flame_node *)nodes)[b].weight.total;
    return x != y ? (x > y ? -1 : 1) : (a > b) - (a < b);
}

static void find_wide(struct layout *l) {
    const struct flame_tree *t = l->d->tree;
    uint32_t deepest = 0;
    l->wide = 0;
    for (uint32_t i = 0; i < t->node_count; i++) {
        if (i == 0 || width_of(l, i) >= NARROWEST) {
            l->order[l->wide++] = i;
            deepest = t->nodes[i].depth > deepest ? t->nodes[i].depth : deepest;
        }
    }
    l->deepest = deepest < t->deepest ? deepest + 1 : deepest; // narrow ones lie on it
    qsort_r(l->order, l->wide, sizeof *l->order, by_weight, t->nodes);
}

// Gives the first nodes of the order their places.
static void lay_out(struct layout *l) {
    const struct flame_tree *t = l->d->tree;
    for (uint32_t i = 0; i < t->node_count; i++) {
        l->x[i] = -1;
    }
    for (uint32_t i = 0; i < l->drawn; i++) {
        l->x[l->order[i]] = 0;
    }
    for (uint32_t i = 0; i < t->node_count; i++) {
        double x = l->x[i];
        if (x < 0) {
            continue;
        }
        for (uint32_t child = i + 1; child < t->nodes[i].end; child = t->nodes[child].end) {
            if (l->x[child] >= 0) {
                l->x[child] = x;
            }
            x += width_of(l, child);
        }
    }
}

// -- drawing --------------------------------------------------------------------------------------

static char *value_text(const struct flame_drawing *d, int64_t value,
                        char out[TEXT_DURATION_BYTES]) {
    if (flame_metric_is_time(d->weighed.metric)) {
        return text_duration((double)value, out);
    }
    const char *unit = flame_metric_unit(d->weighed.metric); // a plural
    snprintf(out, TEXT_DURATION_BYTES, "%" PRId64 " %.*s", value,
             (int)(strlen(unit) - (value == 1)), unit);
    return out;
}

static double share_of(double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0;
}

// What the pointer shows: the name, and behind it what it weighs.
static void put_tooltip(const struct layout *l, const struct flame_node *n) {
    const struct flame_node *root = l->d->tree->nodes;
    char text[TEXT_DURATION_BYTES];
    put_text(l->out, l->d->tree->frames[n->frame].name);
    buffer_printf(l->out, "\n%s, %.2f %%", value_text(l->d, n->weight.total, text),
                  share_of((double)n->weight.total, (double)root->weight.total));
    if (n->weight.self != n->weight.total) {
        buffer_printf(l->out, ", self %s", value_text(l->d, n->weight.self, text));
    }
    if (n->calls > 0 && flame_metric_is_time(l->d->weighed.metric)) {
        buffer_printf(l->out, ", %" PRIu64 " call%s", n->calls, n->calls == 1 ? "" : "s");
    }
    if (l->d->compared) {
        buffer_printf(l->out, "; before %s, %.2f %%", value_text(l->d, n->before.total, text),
                      share_of((double)n->before.total, (double)root->before.total));
    }
}

static void put_box(const struct layout *l, uint32_t depth, double x, double width) {
    double y = l->top + (double)(l->deepest - depth) * ROW;
    buffer_printf(l->out, "<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" fill=\"",
                  MARGIN + x, y, width, ROW - 1);
}

static void put_label(const struct layout *l, uint32_t depth, double x, double width,
                      const char *name) {
    double y = l->top + (double)(l->deepest - depth) * ROW;
    size_t room = width > 6 ? (size_t)((width - 6) / CHARACTER) : 0;
    if (room < LEAST_CHARACTERS) {
        return;
    }
    size_t bytes = bytes_of(name, room);
    buffer_printf(l->out, "<text x=\"%.2f\" y=\"%.0f\">", MARGIN + x + 3, y + ROW - 5);
    if (name[bytes]) {
        flame_put_escaped(l->out, name, bytes_of(name, room - 2));
        buffer_text(l->out, "..");
    } else {
        put_text(l->out, name);
    }
    buffer_text(l->out, "</text>");
}

static void put_node(const struct layout *l, uint32_t i) {
    const struct flame_node *n = &l->d->tree->nodes[i];
    double width = width_of(l, i);
    buffer_text(l->out, "<g><title>");
    put_tooltip(l, n);
    buffer_text(l->out, "</title>");
    put_box(l, n->depth, l->x[i], width);
    put_colour(l, n);
    buffer_text(l->out, "\"/>");
    put_label(l, n->depth, l->x[i], width, l->d->tree->frames[n->frame].name);
    buffer_text(l->out, "</g>\n");
}

// Children of a node that are not drawn, next to one another: one frame, unless that is narrower
// than all that are.
static void put_merged(const struct layout *l, uint32_t depth, uint32_t count, double x,
                       double width) {
    double narrowest = width_of(l, l->order[l->drawn - 1]);
    if (count == 0 || width < NARROWEST || width < narrowest) {
        return;
    }
    buffer_printf(l->out, "<g class=\"m\"><title>%" PRIu32 " narrow frame%s\n%.2f %%</title>",
                  count, count == 1 ? "" : "s", share_of(width, WIDTH - 2 * MARGIN));
    put_box(l, depth, x, width);
    buffer_text(l->out, "url(#narrow)\"/></g>\n");
}

static void put_merged_children(const struct layout *l, uint32_t i) {
    const struct flame_tree *t = l->d->tree;
    double x = l->x[i], from = x;
    uint32_t count = 0;
    for (uint32_t child = i + 1; child < t->nodes[i].end; child = t->nodes[child].end) {
        double width = width_of(l, child);
        if (l->x[child] >= 0) {
            put_merged(l, t->nodes[i].depth + 1, count, from, x - from);
            count = 0;
            from = x + width;
        } else {
            count += t->nodes[child].weight.total > 0;
        }
        x += width;
    }
    put_merged(l, t->nodes[i].depth + 1, count, from, x - from);
}

extern const struct embedded flame_svg_script;

static void put_head(const struct layout *l, double height) {
    struct buffer *out = l->out;
    buffer_printf(out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
                  "viewBox=\"0 0 %d %.0f\">\n"
                  "<style>text{font:11px monospace;fill:#111}#title{font:bold 15px sans-serif}"
                  ".note{font:12px sans-serif;fill:#555}.link{font:12px sans-serif;fill:#06c;"
                  "cursor:pointer}g{cursor:pointer}g.m{cursor:default}g.found rect{fill:#e600e6}"
                  "g.far{opacity:.5}g text{pointer-events:none}</style>\n"
                  "<defs><pattern id=\"narrow\" width=\"4\" height=\"4\" "
                  "patternUnits=\"userSpaceOnUse\"><rect width=\"4\" height=\"4\" fill=\"#eee\"/>"
                  "<path d=\"M0 4L4 0\" stroke=\"#aaa\"/></pattern></defs>\n"
                  "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                  WIDTH, height, WIDTH, height);
    buffer_printf(out, "<text id=\"title\" x=\"%d\" y=\"20\">", MARGIN);
    put_text(out, l->d->title);
    buffer_text(out, "</text>\n");
    int y = TITLE + NOTE - 4;
    for (const char *const *note = l->d->notes; note && *note; note++, y += NOTE) {
        buffer_printf(out, "<text class=\"note\" x=\"%d\" y=\"%d\">", MARGIN, y);
        put_text(out, *note);
        buffer_text(out, "</text>\n");
    }
    buffer_printf(out,
                  "<text id=\"search\" class=\"link\" x=\"%d\" y=\"20\" text-anchor=\"end\">Search "
                  "(/)</text><text id=\"reset\" class=\"link\" x=\"%d\" y=\"20\" "
                  "text-anchor=\"end\" visibility=\"hidden\">Reset zoom (Esc)</text>\n",
                  WIDTH - MARGIN, WIDTH - 110);
    buffer_printf(out,
                  "<text id=\"details\" class=\"note\" x=\"%d\" y=\"%.0f\"></text>"
                  "<text id=\"matched\" class=\"note\" x=\"%d\" y=\"%.0f\" text-anchor=\"end\">"
                  "</text>\n<g id=\"frames\">\n",
                  MARGIN, height - 10, WIDTH - MARGIN, height - 10);
}

static void put_frames(const struct layout *l) {
    for (uint32_t i = 0; i < l->d->tree->node_count; i++) {
        if (l->x[i] >= 0) {
            put_node(l, i);
            put_merged_children(l, i);
        }
    }
}

void flame_svg(const struct flame_drawing *d, struct buffer *out) {
    const struct flame_tree *t = d->tree;
    int64_t total = t->nodes[0].weight.total;
    struct layout l = {.d = d,
                       .x = malloc(t->node_count * sizeof *l.x),
                       .order = malloc(t->node_count * sizeof *l.order),
                       .scale = total > 0 ? (double)(WIDTH - 2 * MARGIN) / (double)total : 0,
                       .top = TITLE + NOTE / 2.0,
                       .out = out};
    for (const char *const *note = d->notes; note && *note; note++) {
        l.top += NOTE;
    }
    if (l.x && l.order) {
        find_wide(&l);
        put_head(&l, l.top + (l.deepest + 1.0) * ROW + FOOT);
        size_t head = out->len, most = head + MOST_BYTES;
        l.drawn = l.wide < MOST_FRAMES ? l.wide : MOST_FRAMES;
        for (; l.drawn > 0; l.drawn = out->len > most ? l.drawn * 3 / 4 : 0) {
            out->len = head;
            lay_out(&l);
            put_frames(&l);
        }
        buffer_text(out, "</g>\n<script><![CDATA[\n");
        buffer_append(out, flame_svg_script.bytes, flame_svg_script.len);
        buffer_text(out, "]]></script>\n</svg>\n");
    } else {
        out->failed = true;
    }
    free(l.x);
    free(l.order);
}
