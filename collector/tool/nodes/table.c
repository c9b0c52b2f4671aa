// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text_amount.h"
#include "base/text_time.h"
#include "codec/protocol.h"
#include "report/trust.h"
#include "tool/nodes/nodes.h"
#include "tool/text.h"

enum { CELL = NODE_TEXT, SECOND_NS = 1000000000 };

enum { NODE, STATE, SINCE, OTP, PID, RATE, SAMPLING, LEVEL, TRIPS, OFF, LOST, COLUMNS };

static const struct {
    const char *head;
    bool left;
} columns[COLUMNS] = {
    {"node", true},   {"state", true},  {"since", false},    {"OTP", false},
    {"pid", false},   {"req/s", false}, {"sampling", false}, {"level", false},
    {"trips", false}, {"off", false},   {"lost", false},
};

char *nodes_sampling(const struct node_row *row, char out[NODE_WORD]) {
    if (row->level_ppm <= 0) {
        snprintf(out, NODE_WORD, "-");
    } else if (row->per_second > 0) {
        snprintf(out, NODE_WORD, "%" PRId64 "/s", row->per_second);
    } else if (row->one_in <= 1) {
        snprintf(out, NODE_WORD, "all");
    } else {
        snprintf(out, NODE_WORD, "1 in %" PRId64, row->one_in);
    }
    return out;
}

// "17 s", "5 min", "3 h", "2 d": how long ago.
static void ago(const char *since, int64_t now, char *out) {
    int64_t then;
    if (!text_time_parse(since, now, &then) || then > now) {
        snprintf(out, CELL, "-");
        return;
    }
    int64_t s = (now - then) / SECOND_NS;
    if (s < 120) {
        snprintf(out, CELL, "%" PRId64 " s", s);
    } else if (s < 7200) {
        snprintf(out, CELL, "%" PRId64 " min", s / 60);
    } else if (s < 172800) {
        snprintf(out, CELL, "%" PRId64 " h", s / 3600);
    } else {
        snprintf(out, CELL, "%" PRId64 " d", s / 86400);
    }
}

static void fill(const struct node_row *r, const struct node_names *names, int64_t now,
                 char cells[COLUMNS][CELL]) {
    snprintf(cells[NODE], CELL, "%s", node_names_shown(names, r->node));
    bool native = strcmp(r->state, STATE_TRACING) == 0 && strcmp(r->tracer, TRACER_NATIVE) == 0;
    snprintf(cells[STATE], CELL, "%s%s", r->state, native ? ", native" : "");
    ago(r->since, now, cells[SINCE]);
    snprintf(cells[OTP], CELL, "%s", r->otp);
    snprintf(cells[PID], CELL, "%" PRId64, r->os_pid);
    snprintf(cells[RATE], CELL, "%.1f", r->requests_per_s);
    nodes_sampling(r, cells[SAMPLING]);
    if (r->level_ppm > 0) {
        snprintf(cells[LEVEL], CELL, "%.3g %%", (double)r->level_ppm / 1e4);
    } else {
        snprintf(cells[LEVEL], CELL, "-");
    }
    snprintf(cells[TRIPS], CELL, "%" PRId64, r->trips);
    if (r->off_ms > 0) {
        text_duration((double)r->off_ms * 1e6, cells[OFF]);
    } else {
        snprintf(cells[OFF], CELL, "-");
    }
    snprintf(cells[LOST], CELL, "%" PRId64 " req, %" PRId64 " msg", r->incomplete + r->expired,
             r->dropped_messages + r->decode_errors);
}

static void put_line(char cells[COLUMNS][CELL], const size_t widths[COLUMNS], struct buffer *out) {
    for (int i = 0; i < COLUMNS; i++) {
        buffer_text(out, i == 0 ? " " : "  ");
        (columns[i].left ? text_pad_right : text_pad_left)(out, cells[i], widths[i]);
    }
    buffer_text(out, "\n");
}

static void put_unmarked(const struct node_row *row, struct buffer *out) {
    char text[TRUST_UNMARKED_BYTES];
    if (row->unmarked_calls > 0) {
        buffer_printf(out, "   armed; %s: %s\n",
                      trust_unmarked_text((uint64_t)row->unmarked_calls, text),
                      TRUST_UNMARKED_ADVICE);
    }
}

static void put_history(const struct node_row *row, struct buffer *out) {
    for (uint32_t i = 0; i < row->events; i++) {
        buffer_printf(out, "   %s  %s\n", row->history[i].at, row->history[i].text);
    }
}

void nodes_table(const struct node_row *rows, uint32_t count, bool history, int64_t now,
                 struct buffer *out) {
    char cells[COLUMNS][CELL];
    size_t widths[COLUMNS];
    struct node_names names = {0};
    for (uint32_t k = 0; k < count; k++) {
        node_names_add(&names, rows[k].node);
    }
    for (int i = 0; i < COLUMNS; i++) {
        widths[i] = text_width(columns[i].head);
    }
    for (uint32_t k = 0; k < count; k++) {
        fill(&rows[k], &names, now, cells);
        for (int i = 0; i < COLUMNS; i++) {
            size_t width = text_width(cells[i]);
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    for (int i = 0; i < COLUMNS; i++) {
        snprintf(cells[i], CELL, "%s", columns[i].head);
    }
    put_line(cells, widths, out);
    for (uint32_t k = 0; k < count; k++) {
        fill(&rows[k], &names, now, cells);
        put_line(cells, widths, out);
        put_unmarked(&rows[k], out);
        if (rows[k].stacks[0]) {
            buffer_printf(out, "   stacks are sampled %s\n", rows[k].stacks);
        }
        if (history) {
            put_history(&rows[k], out);
        }
    }
}

static void put_waiting(int64_t waiting, const char *what, int64_t behind_s, struct buffer *out) {
    char behind[TEXT_DURATION_BYTES];
    if (waiting > 0) {
        text_duration((double)behind_s * SECOND_NS, behind);
        buffer_printf(out, "; unsent: %" PRId64 " %s%s, the oldest for %s", waiting, what,
                      text_plural((uint64_t)waiting), behind);
    }
}

void nodes_export(const struct nodes_collector *of, struct buffer *out) {
    if (of->exported[0]) {
        buffer_printf(out, " export %s", of->exported);
        put_waiting(of->waiting, "bucket", of->behind_s, out);
        buffer_text(out, "\n");
    }
    if (of->otlp[0]) {
        buffer_printf(out, " otlp %s", of->otlp);
        put_waiting(of->traces.waiting, "request", of->traces.behind_s, out);
        put_waiting(of->metrics.waiting, "bucket", of->metrics.behind_s, out);
        buffer_text(out, "\n");
    }
}
