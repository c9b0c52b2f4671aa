// SPDX-License-Identifier: Apache-2.0
#include "model/profile/heat.h"

#include <math.h>
#include <stdlib.h>

#include "base/limits.h"

enum { SECOND_US = 1000000 };
// A process that was not looked at for so long is no longer among those that are: choices of
// processes are made anew in that time, unless told otherwise.
static const uint64_t FORGOTTEN_US = UINT64_C(5) * SECOND_US;

// What a process counts in the sum of a level.
struct counted {
    int64_t value;
    uint64_t us; // of its last look
};

// How much of each cell is covered by stretches of time, with a few steps for each, however long:
// of the cells in which one begins and ends the parts, and of those between how many more cover
// them than the cell before.
struct cover {
    uint64_t *parts;
    int64_t *more;
};

struct heat_maker {
    struct heat *heat;
    const struct profile *profile; // that is added now
    int64_t begin_us;              // of it
    struct sample_walk walk;
    struct counted *counted;       // of each process; NULL: the metric is no level
    int64_t sum;                   // of them
    uint64_t second;               // up to which those not looked at are left out
    struct cover late, held, made; // made: by profiles
};

uint64_t heat_cell_us(const struct heat *h) {
    return h->column_us / h->rows;
}

uint64_t heat_cell_begin(const struct heat *h, uint32_t cell) {
    return h->from_us + cell * heat_cell_us(h);
}

enum heat_state heat_state_of(const struct heat_cell *cell) {
    if (cell->no_profile) {
        return HEAT_NO_PROFILE;
    }
    if (cell->looks > 0) {
        return cell->value > 0 ? HEAT_SEEN : HEAT_IDLE;
    }
    return cell->late_us + cell->held_us == 0 ? HEAT_NOTHING
           : cell->late_us >= cell->held_us   ? HEAT_LATE
                                              : HEAT_HELD;
}

uint32_t heat_level(const struct heat *h, const struct heat_cell *cell, uint32_t levels) {
    double least = samples_is_level(h->metric) ? (double)h->lowest : 0;
    double most = (double)h->highest - least;
    double share = most > 0 ? sqrt(((double)cell->value - least) / most) : 1;
    uint32_t level = share > 0 ? (uint32_t)(share * levels) : 0;
    return level < levels ? level : levels - 1;
}

// -- columns --------------------------------------------------------------------------------------

static uint64_t length_of(const struct profile *p) {
    const struct samples *s = p->samples;
    const uint64_t most = (uint64_t)LIMIT_SAMPLE_SECONDS * SECOND_US;
    uint64_t us = p->head.end_ns > p->head.begin_ns
                      ? ((uint64_t)p->head.end_ns - (uint64_t)p->head.begin_ns) / 1000
                      : 0;
    uint64_t last = s->second_count > 0 ? s->seconds[s->second_count - 1].second : 0;
    us = us > last * SECOND_US ? us : (last + 1) * SECOND_US;
    return us < most ? us : most;
}

// Columns of as few seconds as fit, and that people can count by. False: the stretch is empty.
static bool lay_out(struct heat *h, const struct heat_choice *c) {
    static const uint32_t seconds[] = {
        1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 3600, LIMIT_SAMPLE_SECONDS};
    enum { LAST = sizeof seconds / sizeof *seconds - 1 };
    h->rows = c->rows;
    uint64_t until = c->until_us > 0 && c->until_us < h->length_us ? c->until_us : h->length_us;
    if (c->from_us >= until) {
        return false;
    }
    for (int i = 0; i <= LAST; i++) {
        h->column_us = (uint64_t)seconds[i] * SECOND_US;
        h->from_us = c->from_us / h->column_us * h->column_us;
        h->columns = (uint32_t)((until - h->from_us + h->column_us - 1) / h->column_us);
        if (h->columns <= c->columns) {
            break;
        }
    }
    return true;
}

// -- gaps -----------------------------------------------------------------------------------------

static bool cover_make(struct cover *c, uint32_t cells) {
    c->parts = calloc(cells + 1, sizeof *c->parts);
    c->more = calloc(cells + 1, sizeof *c->more);
    return c->parts && c->more;
}

static void cover_free(struct cover *c) {
    free(c->parts);
    free(c->more);
}

// Covers a stretch up to a time.
static void cover_add(struct cover *c, const struct heat *h, int64_t until_us, uint64_t length) {
    uint64_t until = until_us > 0 ? (uint64_t)until_us : 0;
    uint64_t cell = heat_cell_us(h), end = (uint64_t)h->columns * h->column_us;
    uint64_t from = until > length ? until - length : 0;
    from = from > h->from_us ? from - h->from_us : 0;
    until = until > h->from_us ? until - h->from_us : 0;
    until = until < end ? until : end;
    if (from >= until) {
        return;
    }
    uint64_t first = from / cell, last = until / cell; // last: no part of it where it begins there
    if (first == last) {
        c->parts[first] += until - from;
        return;
    }
    c->parts[first] += (first + 1) * cell - from;
    c->parts[last] += until - last * cell;
    c->more[first + 1]++;
    c->more[last]--;
}

// How much of a cell is covered. Those before it have been asked for.
static uint64_t cover_of(const struct cover *c, uint32_t i, uint64_t cell_us, int64_t *whole) {
    *whole += c->more[i];
    return *whole > 0 || c->parts[i] > cell_us ? cell_us : c->parts[i];
}

// -- looks ----------------------------------------------------------------------------------------

// Of the record, in the map's time.
static int64_t time_of(const struct heat_maker *g) {
    return (int64_t)g->walk.us + g->begin_us;
}

static void count_level(struct heat_maker *g, uint32_t process, int64_t value) {
    g->sum += value - g->counted[process].value;
    g->counted[process] = (struct counted){value, g->walk.us};
}

static void forget_levels(struct heat_maker *g) {
    for (uint32_t i = 0; i < g->profile->samples->process_count; i++) {
        if (g->counted[i].value > 0 && g->walk.us - g->counted[i].us > FORGOTTEN_US) {
            count_level(g, i, 0);
        }
    }
}

static struct heat_cell *cell_at(const struct heat *h, int64_t us) {
    bool within = us >= 0 && (uint64_t)us >= h->from_us;
    uint64_t from = within ? (uint64_t)us - h->from_us : UINT64_MAX;
    return from < h->columns * h->column_us ? &h->cells[from / heat_cell_us(h)] : NULL;
}

static void take_look(struct heat_maker *g) {
    const struct sample_record *r = &g->walk.record;
    struct heat_cell *cell = cell_at(g->heat, time_of(g));
    bool answered = r->kind != SAMPLE_UNANSWERED;
    enum flame_metric metric = g->heat->metric;
    int64_t value = 0;
    bool told = samples_value(&g->walk, metric, &value) &&
                (answered || metric == FLAME_SAMPLES || metric == FLAME_ACTIVE);
    if (g->counted && told) {
        count_level(g, r->process, value);
    }
    if (!cell) {
        return;
    }
    cell->looks++;
    cell->unanswered += !answered;
    if (g->counted) {
        cell->value = cell->value > g->sum ? cell->value : g->sum;
    } else {
        cell->value += told ? value : 0;
    }
}

static void take_record(struct heat_maker *g) {
    const struct sample_record *r = &g->walk.record;
    if (g->counted && g->walk.us / SECOND_US > g->second) {
        g->second = g->walk.us / SECOND_US;
        forget_levels(g);
    }
    switch (r->kind) {
    case SAMPLE_LOOK:
    case SAMPLE_UNCHANGED:
    case SAMPLE_UNANSWERED:
        take_look(g);
        break;
    case SAMPLE_GONE:
        if (g->counted) {
            count_level(g, r->process, 0);
        }
        break;
    case SAMPLE_LATE:
        cover_add(&g->late, g->heat, time_of(g), r->number);
        break;
    case SAMPLE_HELD:
        cover_add(&g->held, g->heat, time_of(g), r->number);
        break;
    default:
        break;
    }
}

static bool walk(struct heat_maker *g) {
    bool ok = sample_walk_begin(&g->walk, g->profile);
    while (ok && sample_walk_next(&g->walk)) {
        take_record(g);
    }
    ok = ok && !g->walk.damaged;
    sample_walk_end(&g->walk);
    return ok;
}

// What is known once all have been seen.
static void sum_up(struct heat_maker *g, bool several) {
    struct heat *h = g->heat;
    int64_t late = 0, held = 0, made = 0;
    for (uint32_t i = 0; i < h->columns * h->rows; i++) {
        struct heat_cell *cell = &h->cells[i];
        cell->late_us = cover_of(&g->late, i, heat_cell_us(h), &late);
        cell->held_us = cover_of(&g->held, i, heat_cell_us(h), &held);
        uint64_t covered = cover_of(&g->made, i, heat_cell_us(h), &made);
        cell->no_profile = several && covered == 0 && cell->looks == 0;
        enum heat_state state = heat_state_of(cell);
        h->of_state[state]++;
        if (state == HEAT_SEEN) {
            h->highest = cell->value > h->highest ? cell->value : h->highest;
            h->lowest = h->lowest == 0 || cell->value < h->lowest ? cell->value : h->lowest;
        }
    }
}

static void release(struct heat_maker *m) {
    cover_free(&m->late);
    cover_free(&m->held);
    cover_free(&m->made);
    free(m);
}

// Of a map that is laid out.
static struct heat_maker *maker_of(struct heat *h) {
    uint32_t cells = h->columns * h->rows;
    struct heat_maker *m = calloc(1, sizeof *m);
    h->cells = calloc(cells, sizeof *h->cells);
    if (m) {
        m->heat = h;
    }
    if (m && h->cells && cover_make(&m->late, cells) && cover_make(&m->held, cells) &&
        cover_make(&m->made, cells)) {
        return m;
    }
    if (m) {
        release(m);
    }
    heat_free(h);
    return NULL;
}

struct heat_maker *heat_begin(struct heat *h, const struct heat_choice *c) {
    *h = (struct heat){.metric = c->metric, .length_us = c->until_us};
    return lay_out(h, c) ? maker_of(h) : NULL;
}

bool heat_add(struct heat_maker *m, const struct profile *p, int64_t begin_us) {
    bool level = samples_is_level(m->heat->metric);
    int64_t ns = p->head.end_ns - p->head.begin_ns; // its last second may go on without it
    uint64_t length = ns > 0 ? (uint64_t)ns / 1000 : length_of(p);
    m->profile = p;
    m->begin_us = begin_us;
    m->sum = 0;
    m->second = 0;
    m->counted = level ? calloc(p->samples->process_count + 1, sizeof *m->counted) : NULL;
    bool ok = (!level || m->counted) && walk(m);
    cover_add(&m->made, m->heat, (int64_t)length + begin_us, length);
    free(m->counted);
    m->counted = NULL;
    return ok;
}

void heat_end(struct heat_maker *m) {
    sum_up(m, true);
    release(m);
}

enum heat_made heat_make(struct heat *h, const struct profile *p, const struct heat_choice *c) {
    *h = (struct heat){.metric = c->metric, .length_us = length_of(p)};
    if (!lay_out(h, c)) {
        return HEAT_OUTSIDE;
    }
    struct heat_maker *m = maker_of(h);
    bool ok = m && heat_add(m, p, 0);
    if (ok) {
        sum_up(m, false);
    }
    if (m) {
        release(m);
    }
    return ok ? HEAT_MADE : HEAT_NO_MEMORY;
}

void heat_free(struct heat *h) {
    free(h->cells);
    *h = (struct heat){0};
}
