// SPDX-License-Identifier: Apache-2.0
#include "app/tool_state.h"

#include <stdio.h>

#include "app/otlp_link.h"
#include "base/limits.h"
#include "base/text_amount.h"
#include "base/text_time.h"
#include "report/cost.h"

enum { SAMPLED_BYTES = 600, EXPORTED_BYTES = 2 * EXPORT_WHY_BYTES + 240 };

static void pack_time(struct control_writer *w, const char *key, int64_t ns) {
    char text[TEXT_TIME_BYTES];
    control_text(w, key, slice_text(text_time_format(ns, true, text)));
}

static void pack_history(struct control_writer *w, const struct roster_node *n) {
    uint64_t count = n->happened < LIMIT_NODE_EVENTS ? n->happened : LIMIT_NODE_EVENTS;
    control_list(w, FIELD_HISTORY, (uint32_t)count);
    for (uint64_t i = n->happened - count; i < n->happened; i++) {
        const struct roster_event *event = &n->events[i % LIMIT_NODE_EVENTS];
        control_map(w, 2);
        pack_time(w, FIELD_AT, event->at);
        control_text(w, FIELD_TEXT, slice_text(event->text));
    }
}

static void send_node(struct tool_link *t, const struct roster_node *n) {
    struct pipeline_totals totals = pipeline_totals(n->node);
    char since[TEXT_TIME_BYTES];
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {{FIELD_OS_PID, (uint64_t)n->os_pid},
                  {FIELD_TIERS, pipeline_tiers(n->node)},
                  {FIELD_ONE_IN, (uint64_t)n->sampling.one_in},
                  {FIELD_PER_SECOND, (uint64_t)n->sampling.per_second},
                  {FIELD_LEVEL_PPM, (uint64_t)n->sampling.level_ppm},
                  {FIELD_TRIPS, (uint64_t)n->sampling.trips},
                  {FIELD_COMPLETE, totals.complete},
                  {FIELD_INCOMPLETE, totals.incomplete},
                  {FIELD_EXPIRED, totals.expired},
                  {FIELD_UNSAMPLED, totals.shim.unsampled},
                  {FIELD_MESSAGES, totals.messages},
                  {FIELD_DROPPED_MESSAGES, totals.dropped},
                  {FIELD_DECODE_ERRORS, totals.decode_errors},
                  {FIELD_OFF_MS, pipeline_off_ms(&totals.shim)},
                  {FIELD_LOWERED_MS, totals.shim.lowered_ms},
                  {FIELD_UNMARKED_CALLS, n->unmarked}};
    enum { COUNTS = sizeof counts / sizeof *counts };
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    int64_t ahead = 0;
    bool told = n->connected && pipeline_clock_offset(n->node, &ahead);
    struct roster_rates rates = roster_rates(n);
    char sampled[SAMPLED_BYTES];
    bool stacks = stack_runs_tell(&t->links->flames->runs, n->node, sampled, sizeof sampled);
    struct control_writer w = control_begin(&b, CONTROL_NODE, COUNTS + 12 + told + stacks);
    if (stacks) {
        control_text(&w, FIELD_STACKS, slice_text(sampled));
    }
    if (told) {
        control_int(&w, FIELD_CLOCK_OFFSET_US, ahead / 1000);
    }
    control_text(&w, FIELD_NODE, slice_text(pipeline_node_name(n->node)));
    control_bool(&w, FIELD_CONNECTED, n->connected);
    control_text(&w, FIELD_SINCE, slice_text(text_time_format(n->since, false, since)));
    control_text(&w, FIELD_PEER, slice_text(n->peer));
    control_text(&w, FIELD_OTP, slice_text(n->otp));
    control_text(&w, FIELD_VERSION, slice_text(n->version));
    control_text(&w, FIELD_STATE, slice_text(n->state));
    control_text(&w, FIELD_TRACER, slice_text(n->tracer));
    control_number(&w, FIELD_REQUESTS_PER_S, rates.requests);
    control_number(&w, FIELD_MESSAGES_PER_S, rates.messages);
    control_number(&w, FIELD_COST_US_PER_S, cost_time_ns(rates.messages, rates.bytes) / 1000);
    for (size_t i = 0; i < COUNTS; i++) {
        control_int(&w, counts[i].key, (int64_t)counts[i].value);
    }
    pack_history(&w, n);
    tool_send(t, &b, &w);
}

// In words, and the numbers of them.
static void pack_export(struct control_writer *w, struct exporter *exporter) {
    struct export_status s;
    char text[EXPORTED_BYTES];
    exporter_status(exporter, &s);
    int n = s.sending ? snprintf(text, sizeof text, "to %s", s.to)
                      : snprintf(text, sizeof text, "%s takes nothing: %s", s.to,
                                 s.why[0] ? s.why : "it was not asked yet");
    if (s.twin) {
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "; another collector exports under the same name");
    }
    if (s.refused > 0) {
        n += snprintf(text + n, sizeof text - (size_t)n, "; refused: %llu row%s",
                      (unsigned long long)s.refused, text_plural(s.refused));
    }
    if (s.lost > 0) {
        snprintf(text + n, sizeof text - (size_t)n,
                 "; deleted unsent, for their age: %llu bucket%s", (unsigned long long)s.lost,
                 text_plural(s.lost));
    }
    control_text(w, FIELD_EXPORT, slice_text(text));
    control_int(w, FIELD_EXPORT_BEHIND_S, s.behind_s);
    control_int(w, FIELD_EXPORT_WAITING, s.marks < INT64_MAX ? (int64_t)s.marks : INT64_MAX);
}

void tool_nodes(struct tool_link *t) {
    int64_t count = 0;
    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        if (t->links->roster->nodes[i]) {
            send_node(t, t->links->roster->nodes[i]);
            count++;
        }
    }
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct exporter *exporter = t->links->exporter;
    struct otlp *otlp = t->links->otlp;
    struct control_writer w =
        control_begin(&b, CONTROL_NODES, 3 + (exporter ? 3 : 0) + (otlp ? OTLP_LINK_FIELDS : 0));
    control_int(&w, FIELD_COUNT, count);
    control_int(&w, FIELD_UNWRITTEN_S, writer_refused_s(t->links->writer));
    const char *database = t->links->database;
    control_text(&w, FIELD_DATABASE, slice_text(database ? database : ""));
    if (exporter) {
        pack_export(&w, exporter);
    }
    if (otlp) {
        otlp_link_pack(&w, otlp);
    }
    tool_send(t, &b, &w);
}
