// SPDX-License-Identifier: Apache-2.0
#include "app/tool_state.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/limits.h"

enum { SECOND_NS = 1000000000 };

void tool_watch_stop(struct tool_link *t) {
    struct watch *over = t->watch;
    t->watch = NULL;
    if (!over) {
        return;
    }
    for (const struct tool_link *other = t->links->first; other; other = other->next) {
        if (other->watch == over) {
            return;
        }
    }
    struct watch **at = &t->links->watches;
    while (*at != over) {
        at = &(*at)->next;
    }
    *at = over->next;
    pipeline_set_live(over->node->node, NULL);
    live_free(over->rows);
    free(over);
}

static struct watch *watch_of(struct tool_links *links, struct roster_node *node) {
    struct watch *w = links->watches;
    while (w && w->node != node) {
        w = w->next;
    }
    if (w) {
        return w;
    }
    w = calloc(1, sizeof *w);
    struct live *rows = live_new();
    if (!w || !rows) {
        free(w);
        live_free(rows);
        return NULL;
    }
    *w = (struct watch){.next = links->watches,
                        .node = node,
                        .rows = rows,
                        .before = pipeline_totals(node->node),
                        .since = clock_monotonic()};
    links->watches = w;
    pipeline_set_live(node->node, rows);
    return w;
}

void tool_watch(struct tool_link *t, struct control_map message) {
    struct roster_node *node = tool_named_node(t, message);
    if (!node) {
        return;
    }
    tool_watch_stop(t);
    t->watch = watch_of(t->links, node);
    if (!t->watch) {
        tool_refuse(t, "the collector is out of memory");
    }
}

static void pack_row(struct control_writer *w, const struct directory *names,
                     const struct live_row *row) {
    control_map(w, 7);
    control_text(w, FIELD_IDENTITY, slice_text(names_text(&names->identities, row->identity)));
    control_int(w, FIELD_REQUESTS, (int64_t)row->requests);
    control_int(w, FIELD_ERRORS, (int64_t)row->errors);
    control_number(w, FIELD_MEAN_US,
                   row->requests > 0 ? (double)row->duration_ns / 1e3 / (double)row->requests : 0);
    control_number(w, FIELD_P99_US,
                   row->requests > 0 ? histogram_quantile(&row->durations, 0.99) / 1e3 : 0);
    control_int(w, FIELD_INCOMPLETE, (int64_t)row->incomplete);
    control_int(w, FIELD_EXPIRED, (int64_t)row->expired);
}

static bool pack_rows(const struct tool_links *links, const struct watch *watch, int64_t now,
                      struct buffer *out) {
    struct pipeline_totals t = pipeline_totals(watch->node->node);
    const struct pipeline_totals *before = &watch->before;
    struct control_writer w = control_begin(out, CONTROL_ROWS, 12);
    control_text(&w, FIELD_NODE, slice_text(pipeline_node_name(watch->node->node)));
    control_bool(&w, FIELD_CONNECTED, watch->node->connected);
    control_text(&w, FIELD_STATE, slice_text(watch->node->state));
    control_number(&w, FIELD_SECONDS, (double)(now - watch->since) / SECOND_NS);
    control_int(&w, FIELD_INCOMPLETE, (int64_t)(t.incomplete - before->incomplete));
    control_int(&w, FIELD_EXPIRED, (int64_t)(t.expired - before->expired));
    control_int(&w, FIELD_UNSAMPLED, (int64_t)(t.shim.unsampled - before->shim.unsampled));
    control_int(&w, FIELD_DROPPED_MESSAGES, (int64_t)(t.dropped - before->dropped));
    control_int(&w, FIELD_DECODE_ERRORS, (int64_t)(t.decode_errors - before->decode_errors));
    control_int(&w, FIELD_OFF_MS,
                (int64_t)(pipeline_off_ms(&t.shim) - pipeline_off_ms(&before->shim)));
    control_int(&w, FIELD_UNMARKED_CALLS, (int64_t)watch->node->unmarked);
    control_list(&w, FIELD_IDENTITIES, live_count(watch->rows));
    for (uint32_t i = 0; i < live_count(watch->rows); i++) {
        pack_row(&w, pipeline_directory(links->pipeline), live_at(watch->rows, i));
    }
    return control_end(&w);
}

static void send_rows(struct tool_links *links, struct watch *watch, int64_t now) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    if (pack_rows(links, watch, now, &b)) {
        for (struct tool_link *t = links->first; t; t = t->next) {
            if (t->watch == watch) {
                t->ear.hear(t->ear.user, &b); // who does not read misses a second, and sees so
            }
        }
    }
    buffer_free(&b);
    live_reset(watch->rows);
    watch->before = pipeline_totals(watch->node->node);
    watch->since = now;
}

void tool_watch_second(struct tool_links *links, int64_t now) {
    for (struct watch *w = links->watches; w; w = w->next) {
        send_rows(links, w, now);
    }
}
