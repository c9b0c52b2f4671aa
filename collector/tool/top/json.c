// SPDX-License-Identifier: Apache-2.0
#include "codec/json.h"
#include "tool/top/print.h"

static void put_process(struct json *j, const struct top_process *p) {
    json_open(j, '{');
    json_key_text(j, FIELD_PID, p->pid);
    json_key_text(j, FIELD_NAME, p->name);
    json_key_text(j, FIELD_INITIAL_CALL, p->initial);
    json_key_text(j, FIELD_APPLICATION, p->application);
    json_key_text(j, FIELD_STATUS, p->status);
    json_key_text(j, FIELD_FUNCTION, p->function);
    json_key_int(j, FIELD_REDUCTIONS, p->reductions);
    if (p->memory >= 0) {
        json_key_int(j, FIELD_MEMORY, p->memory);
        json_key_int(j, FIELD_MEMORY_CHANGE, p->memory_change);
    } else {
        json_key(j, FIELD_MEMORY);
        json_null(j);
        json_key(j, FIELD_MEMORY_CHANGE);
        json_null(j);
    }
    json_key_int(j, FIELD_QUEUE, p->queue);
    json_key_int(j, FIELD_QUEUE_CHANGE, p->queue_change);
    json_key_int(j, FIELD_SAMPLES, p->samples);
    json_key_int(j, FIELD_UNANSWERED, p->unanswered);
    json_close(j, '}');
}

static void put_function(struct json *j, const struct top_function *f) {
    json_open(j, '{');
    json_key_text(j, FIELD_NAME, f->name);
    json_key_int(j, FIELD_SELF, f->self);
    json_key_int(j, FIELD_TOTAL, f->total);
    json_close(j, '}');
}

void top_json(const struct top_rows *r, const struct top_style *style, struct buffer *out) {
    struct json j = json_make(out);
    json_open(&j, '{');
    json_key_text(&j, FIELD_AT, style->at);
    json_key_text(&j, FIELD_NODE, style->node);
    json_key_number(&j, FIELD_SECONDS, r->seconds, 6);
    json_key_text(&j, FIELD_BY, top_by_name(style->by));
    json_key_int(&j, FIELD_SAMPLES, r->samples);
    json_key_int(&j, FIELD_BUSY, r->busy);
    json_key_int(&j, FIELD_UNANSWERED, r->totals.unanswered - r->before.unanswered);
    json_key_int(&j, FIELD_HELD_MS, r->totals.held_ms - r->before.held_ms);
    json_key_int(&j, FIELD_LATE_MS, r->totals.late_ms - r->before.late_ms);
    json_key_int(&j, FIELD_COST_US, r->totals.cost_us - r->before.cost_us);
    json_key(&j, FIELD_PROCESSES);
    json_open(&j, '[');
    for (uint32_t i = 0; i < r->process_count && i < style->processes; i++) {
        put_process(&j, &r->processes[i]);
    }
    json_close(&j, ']');
    json_key(&j, FIELD_FUNCTIONS);
    json_open(&j, '[');
    for (uint32_t i = 0; i < r->function_count && i < style->functions; i++) {
        put_function(&j, &r->functions[i]);
    }
    json_close(&j, ']');
    json_close(&j, '}');
    buffer_text(out, "\n");
}
