// SPDX-License-Identifier: Apache-2.0
#include "app/roster.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/text_time.h"

void roster_free(struct roster *r) {
    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        free(r->nodes[i]);
        r->nodes[i] = NULL;
    }
}

struct roster_node *roster_join(struct roster *r, uint16_t id, struct pipeline_node *node,
                                int64_t now) {
    struct roster_node *n = r->nodes[id];
    if (!n) {
        n = r->nodes[id] = calloc(1, sizeof *n);
        if (!n) {
            return NULL;
        }
        n->node = node;
    }
    n->connected = true;
    n->since = now;
    n->sampling = (struct roster_sampling){0};
    snprintf(n->state, sizeof n->state, "idle");
    roster_event(n, now, "connected");
    return n;
}

struct roster_node *roster_oldest(const struct roster *r, const bool used[LIMIT_NODES]) {
    struct roster_node *oldest = NULL;
    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        struct roster_node *n = r->nodes[i];
        if (n && !n->connected && !used[i] && (!oldest || n->since < oldest->since)) {
            oldest = n;
        }
    }
    return oldest;
}

void roster_forget(struct roster *r, struct roster_node *n) {
    r->nodes[pipeline_node_id(n->node)] = NULL;
    free(n);
}

void roster_leave(struct roster_node *n, int64_t now) {
    n->connected = false;
    n->since = now;
    n->unmarked = 0;
    snprintf(n->state, sizeof n->state, "gone");
    roster_event(n, now, "disconnected");
}

void roster_state(struct roster_node *n, const char *state, int64_t now) {
    if (strcmp(n->state, state) != 0) {
        snprintf(n->state, sizeof n->state, "%s", state);
        roster_event(n, now, "%s", state);
    }
}

void roster_event(struct roster_node *n, int64_t now, const char *format, ...) {
    struct roster_event *event = &n->events[n->happened++ % LIMIT_NODE_EVENTS];
    char text[2 * ROSTER_TEXT];
    va_list args;
    event->at = now;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    names_clean(slice_text(text), event->text, sizeof event->text);
}

static double percent(int64_t ppm) {
    return (double)ppm / 1e4;
}

// The level is another one than before. (No event is the 0th: the first one is "connected".)
static void level_event(struct roster_node *n, int64_t before, struct slice text, int64_t now) {
    struct roster_levels *run = &n->levels;
    int64_t level = n->sampling.level_ppm;
    int len = (int)(text.len < ROSTER_TEXT ? text.len : ROSTER_TEXT);
    if (run->event != n->happened) {
        *run = (struct roster_levels){.changes = 1, .from_ppm = before, .least_ppm = level};
        roster_event(n, now, "%.*s", len, (const char *)text.data);
    } else {
        char until[TEXT_TIME_BYTES], least[64] = "";
        int64_t began = n->events[--n->happened % LIMIT_NODE_EVENTS].at;
        run->changes++;
        run->least_ppm = level < run->least_ppm ? level : run->least_ppm;
        if (run->least_ppm < level && run->least_ppm < run->from_ppm) {
            snprintf(least, sizeof least, ", %.3g %% at the least", percent(run->least_ppm));
        }
        roster_event(n, began,
                     "the guard has changed the level %" PRIu64
                     " times until %s, from %.3g %% to %.3g %%%s: %.*s",
                     run->changes, text_time_format(now, false, until), percent(run->from_ppm),
                     percent(level), least, len, (const char *)text.data);
    }
    run->event = n->happened;
}

void roster_told(struct roster_node *n, const char *state, const struct roster_sampling *sampling,
                 struct slice text, int64_t now) {
    struct roster_sampling before = n->sampling;
    bool level = strcmp(n->state, state) == 0 && before.level_ppm > 0 &&
                 before.level_ppm != sampling->level_ppm && before.one_in == sampling->one_in &&
                 before.per_second == sampling->per_second && before.trips == sampling->trips;
    n->sampling = *sampling;
    roster_state(n, state, now);
    if (level && text.len > 0) {
        level_event(n, before.level_ppm, text, now);
    } else if (text.len > 0) {
        roster_event(n, now, "%.*s", (int)(text.len < ROSTER_TEXT ? text.len : ROSTER_TEXT),
                     (const char *)text.data);
    }
}

static struct roster_counts counts_of(const struct roster_node *n) {
    struct pipeline_totals t = pipeline_totals(n->node);
    return (struct roster_counts){t.complete + t.incomplete + t.expired, t.messages, t.bytes};
}

void roster_second(struct roster *r) {
    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        struct roster_node *n = r->nodes[i];
        if (n) {
            n->counts[n->seconds++ % (ROSTER_RATE_SECONDS + 1)] = counts_of(n);
        }
    }
}

struct roster_rates roster_rates(const struct roster_node *n) {
    if (n->seconds < 2) {
        return (struct roster_rates){0};
    }
    uint64_t span = n->seconds - 1 < ROSTER_RATE_SECONDS ? n->seconds - 1 : ROSTER_RATE_SECONDS;
    const struct roster_counts *last = &n->counts[(n->seconds - 1) % (ROSTER_RATE_SECONDS + 1)];
    const struct roster_counts *first =
        &n->counts[(n->seconds - 1 - span) % (ROSTER_RATE_SECONDS + 1)];
    return (struct roster_rates){(double)(last->requests - first->requests) / (double)span,
                                 (double)(last->messages - first->messages) / (double)span,
                                 (double)(last->bytes - first->bytes) / (double)span};
}

struct roster_node *roster_find(const struct roster *r, struct slice name) {
    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        if (r->nodes[i] && slice_is(name, pipeline_node_name(r->nodes[i]->node))) {
            return r->nodes[i];
        }
    }
    return NULL;
}
