// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/text_amount.h"
#include "tool/text.h"
#include "tool/trigger.h"

enum { NAME, ABOVE, FOR, NOW, EVERY, BEGAN, AGAIN, PROCESS, COLUMNS };
enum { CELL = 256 };

static const struct {
    const char *head;
    bool left;
} columns[COLUMNS] = {
    {"trigger", true}, {"above", false}, {"for", false},      {"now", false},
    {"every", false},  {"runs", false},  {"next run", false}, {"", true},
};

// "1.5 s", "5 s", "10 min", "3 h".
static void put_time(int64_t ms, char out[CELL]) {
    int64_t s = ms / 1000;
    if (ms % 1000 != 0 && s < 10) {
        snprintf(out, CELL, "%.1f s", (double)ms / 1000);
    } else if (s < 120) {
        snprintf(out, CELL, "%" PRId64 " s", s);
    } else if (s < 7200) {
        snprintf(out, CELL, "%" PRId64 " min", s / 60);
    } else {
        snprintf(out, CELL, "%" PRId64 " h", s / 3600);
    }
}

// In the unit of what it is about.
static void put_amount(struct slice of, double n, char out[CELL]) {
    if (slice_is(of, "memory")) {
        text_size(n, out);
    } else if (slice_is(of, "tier_p99")) {
        text_duration(n * 1e6, out);
    } else {
        text_grouped(n > 0 ? (uint64_t)(n + 0.5) : 0, out);
    }
}

static void fill(struct control_map t, char cells[COLUMNS][CELL]) {
    struct slice of = slice_text("");
    double above = 0, value = 0;
    int64_t for_ms = 0, every_ms = 0, began = 0, again_ms = 0;
    bool high_water = false;
    control_get_text(t, FIELD_TRIGGER, &of);
    control_get_number(t, FIELD_ABOVE, &above);
    control_get_int(t, FIELD_FOR_MS, &for_ms);
    control_get_int(t, FIELD_EVERY_MS, &every_ms);
    control_get_int(t, FIELD_BEGAN, &began);
    control_get_int(t, FIELD_AGAIN_MS, &again_ms);
    control_get_bool(t, FIELD_HIGH_WATER, &high_water);
    text_take(t, FIELD_NAME, cells[NAME], CELL);
    put_amount(of, above, cells[ABOVE]);
    put_time(for_ms, cells[FOR]);
    if (high_water) {
        snprintf(cells[FOR], CELL, "new high");
    }
    snprintf(cells[NOW], CELL, "-");
    if (control_get_number(t, FIELD_VALUE, &value)) {
        put_amount(of, value, cells[NOW]);
    }
    put_time(every_ms, cells[EVERY]);
    snprintf(cells[BEGAN], CELL, "%" PRId64, began);
    snprintf(cells[AGAIN], CELL, "any time");
    if (again_ms > 0) {
        char in[CELL];
        put_time(again_ms, in);
        snprintf(cells[AGAIN], CELL, "in %.40s", in);
    }
    text_take(t, FIELD_PROCESS, cells[PROCESS], CELL);
}

static void put_line(char cells[COLUMNS][CELL], const size_t widths[COLUMNS], struct buffer *out) {
    int last = cells[PROCESS][0] ? PROCESS : AGAIN;
    for (int i = 0; i <= last; i++) {
        buffer_text(out, i == 0 ? " " : "  ");
        (columns[i].left ? text_pad_right : text_pad_left)(out, cells[i],
                                                           i == PROCESS ? 0 : widths[i]);
    }
    buffer_text(out, "\n");
}

void trigger_table(struct control_list triggers, struct buffer *out) {
    char cells[LIMIT_TRIGGERS + 1][COLUMNS][CELL];
    size_t widths[COLUMNS] = {0};
    uint32_t count = triggers.count < LIMIT_TRIGGERS ? triggers.count : LIMIT_TRIGGERS;
    for (int i = 0; i < COLUMNS; i++) {
        snprintf(cells[0][i], CELL, "%s", columns[i].head);
    }
    for (uint32_t k = 0; k < count; k++) {
        fill(control_list_at(triggers, k), cells[k + 1]);
    }
    for (uint32_t k = 0; k <= count; k++) {
        for (int i = 0; i < COLUMNS; i++) {
            size_t width = text_width(cells[k][i]);
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    for (uint32_t k = 0; k <= count; k++) {
        put_line(cells[k], widths, out);
    }
}
