// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text_amount.h"
#include "tool/node.h"
#include "tool/slow/print.h"
#include "tool/text.h"

enum { CELL_BYTES = 256, GAP = 3 };

static void clean_request(struct slow_request *r) {
    const char *texts[] = {r->node, r->identity, r->origin, r->trace_id, r->parent_span_id};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i]) {
            text_clean((char *)texts[i]);
        }
    }
}

void slow_clean_list(struct slow_list *list) {
    for (uint32_t i = 0; i < list->count; i++) {
        clean_request(&list->requests[i]);
    }
}

void slow_clean_spans(struct slow_spans *spans) {
    clean_request(&spans->request);
    for (uint32_t i = 0; i < spans->count; i++) {
        text_clean((char *)spans->spans[i].name);
        text_clean((char *)spans->spans[i].pid);
    }
    for (uint32_t i = 0; i < spans->part_count; i++) {
        text_clean((char *)spans->parts[i].node); // its spans' node, too
    }
}

// -- the list

enum column { ID, STARTED, NODE, IDENTITY, DURATION, OUTCOME, REASON, SPANS, COLUMNS };

static const char *const headings[COLUMNS] = {"id",       "started", "node",   "identity",
                                              "duration", "outcome", "reason", "spans"};

static void cell(const struct slow_request *r, enum column column, const struct node_names *names,
                 char out[CELL_BYTES]) {
    char text[TEXT_TIME_BYTES];
    switch (column) {
    case ID:
        snprintf(out, CELL_BYTES, "%" PRId64, r->id);
        break;
    case STARTED:
        snprintf(out, CELL_BYTES, "%s", slow_started(r->started_ns, text));
        break;
    case DURATION:
        text_duration((double)r->duration_ns, out);
        break;
    case SPANS:
        snprintf(out, CELL_BYTES, "%" PRIu32 "%s", r->spans, r->cut ? ", cut" : "");
        break;
    default:
        snprintf(out, CELL_BYTES, "%s",
                 column == NODE       ? node_names_shown(names, r->node)
                 : column == IDENTITY ? r->identity
                 : column == OUTCOME  ? r->outcome
                                      : r->reason);
        text_clean(out); // it may end in the middle of a character
    }
}

static void line(struct buffer *out, const char cells[COLUMNS][CELL_BYTES], const size_t *widths) {
    for (int c = 0; c < COLUMNS; c++) {
        if (widths[c] == 0) {
            continue;
        }
        text_pad_right(out, "", c == ID ? 1 : GAP);
        if (c == SPANS) {
            buffer_text(out, cells[c]); // nothing stands behind it
        } else if (c == ID || c == DURATION) {
            text_pad_left(out, cells[c], widths[c]);
        } else {
            text_pad_right(out, cells[c], widths[c]);
        }
    }
    buffer_text(out, "\n");
}

void slow_table(const struct slow_list *list, const struct source *source, bool limited,
                struct buffer *out) {
    char cells[COLUMNS][CELL_BYTES];
    size_t widths[COLUMNS] = {0};
    bool cut = false;
    struct node_names names = {0};
    for (uint32_t i = 0; i < list->count; i++) {
        node_names_add(&names, list->requests[i].node);
    }
    for (int c = 0; c < COLUMNS; c++) {
        snprintf(cells[c], CELL_BYTES, "%s", headings[c]);
        // where all are of one node their column tells nothing
        bool told = c != NODE || names.count > 1;
        widths[c] = told ? text_width(headings[c]) : 0;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        for (int c = 0; c < COLUMNS; c++) {
            char text[CELL_BYTES];
            cell(&list->requests[i], c, &names, text);
            size_t wide = text_width(text);
            widths[c] = widths[c] > 0 && wide > widths[c] ? wide : widths[c];
        }
        cut = cut || list->requests[i].cut;
    }
    line(out, cells, widths);
    for (uint32_t i = 0; i < list->count; i++) {
        for (int c = 0; c < COLUMNS; c++) {
            cell(&list->requests[i], c, &names, cells[c]);
        }
        line(out, cells, widths);
    }
    buffer_printf(out, "\n %" PRIu32 " request%s, the slowest first%s.", list->count,
                  text_plural(list->count), limited ? "; --limit shows more" : "");
    buffer_text(out, cut ? " Cut: it had more spans than the collector takes.\n" : "\n");
    buffer_text(out, " kprof slow ID");
    source_again(source, out);
    buffer_text(out, " draws one.\n");
}
