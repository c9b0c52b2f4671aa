// SPDX-License-Identifier: Apache-2.0
#include "model/stats/live.h"

#include <stdlib.h>

#include "model/directory/directory.h"

enum { IDENTITIES = LIMIT_IDENTITIES + IDENTITIES_FIXED }; // as many as a directory has

struct live {
    struct histogram_budget budget;
    uint32_t count;        // rows in use, the first is _total's
    struct live_row *rows; // `room` of them, grown as identities come
    uint32_t room;
    uint32_t place[IDENTITIES]; // of an identity in rows, plus 1; 0: none yet
};

struct live *live_new(void) {
    struct live *l = calloc(1, sizeof *l);
    if (l) {
        l->budget.cap = LIMIT_LIVE_BYTES;
    }
    return l;
}

void live_free(struct live *l) {
    if (!l) {
        return;
    }
    for (uint32_t i = 0; i < l->room; i++) {
        histogram_free(&l->rows[i].durations);
    }
    free(l->rows);
    free(l);
}

static bool grow(struct live *l) {
    uint32_t room = l->room ? 2 * l->room : 16;
    struct live_row *rows = realloc(l->rows, room * sizeof *rows);
    if (!rows) {
        return false;
    }
    for (uint32_t i = l->room; i < room; i++) {
        rows[i] = (struct live_row){.durations.budget = &l->budget};
    }
    l->rows = rows;
    l->room = room;
    return true;
}

static struct live_row *row_of(struct live *l, uint16_t identity) {
    if (identity >= IDENTITIES) {
        return NULL;
    }
    if (l->place[identity] == 0) {
        if ((!l->rows || l->count == l->room) && !grow(l)) {
            return NULL;
        }
        l->rows[l->count].identity = identity;
        l->place[identity] = ++l->count;
    }
    return &l->rows[l->place[identity] - 1];
}

static void add(struct live_row *row, const struct request_result *r) {
    if (!row) {
        return;
    }
    switch (r->fate) {
    case REQUEST_COMPLETE: {
        uint64_t duration = (uint64_t)(r->end - r->begin);
        row->requests++;
        row->errors += r->error;
        row->duration_ns += duration;
        histogram_add(&row->durations, duration);
        break;
    }
    case REQUEST_INCOMPLETE:
        row->incomplete++;
        break;
    case REQUEST_EXPIRED:
        row->expired++;
        break;
    }
}

void live_add(struct live *l, const struct request_result *r) {
    add(row_of(l, IDENTITY_TOTAL), r);
    add(row_of(l, r->identity), r);
}

static void add_refused(struct live_row *row, uint64_t count) {
    if (row) {
        row->incomplete += count;
    }
}

void live_refused(struct live *l, uint64_t count) {
    if (count > 0) {
        add_refused(row_of(l, IDENTITY_TOTAL), count);
        add_refused(row_of(l, IDENTITY_UNDEFINED), count);
    }
}

uint32_t live_count(const struct live *l) {
    return l->count;
}

const struct live_row *live_at(const struct live *l, uint32_t i) {
    return &l->rows[i];
}

void live_reset(struct live *l) {
    for (uint32_t i = 0; i < l->count; i++) {
        struct live_row *row = &l->rows[i];
        l->place[row->identity] = 0;
        row->requests = row->errors = row->duration_ns = row->incomplete = row->expired = 0;
        histogram_reset(&row->durations);
    }
    l->count = 0;
}
