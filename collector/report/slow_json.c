// SPDX-License-Identifier: Apache-2.0
#include "report/slow.h"

#include <string.h>

#include "codec/json.h"

static void key_us(struct json *j, const char *key, int64_t ns) {
    json_key_number(j, key, (double)ns / 1000, 3);
}

static void key_bool(struct json *j, const char *key, bool value) {
    json_key(j, key);
    json_bool(j, value);
}

static void key_known(struct json *j, const char *key, const char *text) {
    json_key(j, key);
    text ? json_text(j, text) : json_null(j);
}

static void request_json(struct json *j, const struct slow_request *r) {
    char started[TEXT_TIME_BYTES];
    json_open(j, '{');
    json_key_int(j, "id", r->id);
    json_key_text(j, "node", r->node);
    json_key_text(j, "identity", r->identity);
    json_key_text(j, "started_at", slow_started(r->started_ns, started));
    key_us(j, "duration_us", r->duration_ns);
    json_key_text(j, "outcome", r->outcome);
    json_key_text(j, "reason", r->reason);
    key_bool(j, "complete", !r->cut);
    json_key_int(j, "spans", r->spans);
    json_key_int(j, "kept_spans", r->kept);
    key_bool(j, "remote", r->origin != NULL);
    key_known(j, "origin", r->origin);
    key_known(j, "trace_id", r->trace_id);
    key_known(j, "parent_span_id", r->parent_span_id);
    json_close(j, '}');
}

static void span_json(struct json *j, const struct slow_span *s, uint32_t number,
                      const char *node) {
    json_open(j, '{');
    json_key_int(j, "span", number);
    json_key(j, "parent");
    s->parent < number ? json_int(j, s->parent) : json_null(j);
    json_key_text(j, "node", s->node ? s->node : node);
    json_key_text(j, "pid", s->pid);
    json_key_text(j, "name", s->name);
    key_us(j, "start_us", s->start_ns);
    key_us(j, "duration_us", s->duration_ns);
    key_us(j, "self_us", s->self_ns);
    key_us(j, "wait_us", s->wait_ns);
    json_key(j, "waiting_us");
    s->waiting_ns >= 0 ? json_number(j, (double)s->waiting_ns / 1000, 3) : json_null(j);
    key_bool(j, "measured", s->measured);
    bool apart = s->measured && s->run_queue_ns >= 0;
    json_key(j, "mailbox_us");
    apart ? json_number(j, (double)(s->wait_ns - s->run_queue_ns) / 1000, 3) : json_null(j);
    json_key(j, "run_queue_us");
    apart ? json_number(j, (double)s->run_queue_ns / 1000, 3) : json_null(j);
    key_us(j, "gc_us", s->gc_ns);
    key_us(j, "off_cpu_us", s->off_cpu_ns);
    key_bool(j, "async", s->async);
    json_key_text(j, "outcome", s->outcome);
    json_close(j, '}');
}

static void part_json(struct json *j, const struct slow_part *part) {
    char started[TEXT_TIME_BYTES];
    json_open(j, '{');
    json_key_int(j, "id", part->id);
    json_key_text(j, "node", part->node);
    json_key_text(j, "started_at", slow_started(part->started_ns, started));
    key_us(j, "duration_us", part->duration_ns);
    key_bool(j, "remote", part->remote);
    json_close(j, '}');
}

static void profile_json(struct json *j, const struct profile_line *line) {
    char ended[TEXT_TIME_BYTES];
    json_open(j, '{');
    json_key_int(j, "id", line->id);
    json_key_text(j, "ended_at", slow_started(line->head.end_ns, ended));
    json_key_int(j, "requests", (int64_t)line->counts.requests);
    json_close(j, '}');
}

void slow_list_json(const struct slow_list *list, struct buffer *out) {
    struct json j = json_make(out);
    json_open(&j, '{');
    json_key(&j, "requests");
    json_open(&j, '[');
    for (uint32_t i = 0; i < list->count; i++) {
        request_json(&j, &list->requests[i]);
    }
    json_close(&j, ']');
    json_close(&j, '}');
    buffer_text(out, "\n");
}

void slow_spans_json(const struct slow_spans *spans, const struct profile_list *profiles,
                     struct buffer *out) {
    struct json j = json_make(out);
    json_open(&j, '{');
    json_key(&j, "request");
    request_json(&j, &spans->request);
    json_key(&j, "spans");
    json_open(&j, '[');
    for (uint32_t i = 0; i < spans->count; i++) {
        span_json(&j, &spans->spans[i], i, spans->request.node);
    }
    json_close(&j, ']');
    json_key(&j, "parts");
    json_open(&j, '[');
    for (uint32_t i = 0; i < spans->part_count; i++) {
        part_json(&j, &spans->parts[i]);
    }
    json_close(&j, ']');
    json_key(&j, "profiles");
    json_open(&j, '[');
    for (uint32_t i = 0; i < profiles->count; i++) {
        profile_json(&j, &profiles->lines[i]);
    }
    json_close(&j, ']');
    json_close(&j, '}');
    buffer_text(out, "\n");
}
