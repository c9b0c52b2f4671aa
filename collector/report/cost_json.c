// SPDX-License-Identifier: Apache-2.0
#include "report/cost.h"

#include "base/text_time.h"
#include "base/time_math.h"
#include "codec/json.h"

// Negative: not known.
static void key_known(struct json *j, const char *key, double value, int decimals) {
    json_key(j, key);
    value < 0 ? json_null(j) : json_number(j, value, decimals);
}

// What tiers, the rest and the whole have in common; each: what it is counted by.
static void body(struct json *j, const struct cost *row, const struct cost_estimate *e) {
    json_key_int(j, "messages", (int64_t)row->messages);
    json_key_int(j, "bytes", (int64_t)row->bytes);
    key_known(j, "messages_share", e->messages_share, 4);
    key_known(j, "bytes_share", e->bytes_share, 4);
    json_key_number(j, "cost_us", e->ns / 1000, 3);
}

static void tier(struct json *j, const struct report_cost *r, uint32_t i) {
    const struct cost *row = &r->costs->rows[i];
    const struct cost_estimate *e = &r->tiers[i];
    struct cost_finding findings[COST_FINDINGS];
    uint32_t count = report_cost_findings(r, i, findings);
    json_open(j, '{');
    json_key_text(j, "tier", row->tier);
    body(j, row, e);
    json_key_int(j, "calls", (int64_t)row->calls);
    json_key_int(j, "errors", (int64_t)row->errors);
    key_known(j, "bytes_per_call", e->bytes_per_call, 1);
    key_known(j, "cost_per_call_us", e->per_call_ns < 0 ? -1 : e->per_call_ns / 1000, 3);
    key_known(j, "cost_share", e->of_time, 4);
    json_key(j, "advice");
    json_open(j, '[');
    if (e->sample) {
        json_text(j, "sample");
    }
    if (e->returns) {
        json_text(j, "returns_none");
    }
    if (e->arguments) {
        json_text(j, "identity_patterns");
    }
    json_close(j, ']');
    json_key(j, "findings");
    json_open(j, '[');
    for (uint32_t k = 0; k < count; k++) {
        json_open(j, '{');
        json_key_text(j, "kind", findings[k].kind);
        json_key_text(j, "text", findings[k].text);
        json_key_text(j, "advice", findings[k].advice);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

static void sums(struct json *j, const struct report_cost *r) {
    json_key(j, "none");
    json_open(j, '{');
    body(j, &r->other_row, &r->other);
    json_close(j, '}');
    json_key(j, "all");
    json_open(j, '{');
    body(j, &r->all_row, &r->all);
    json_key_int(j, "requests", (int64_t)r->all_row.calls);
    key_known(j, "bytes_per_request", r->all.bytes_per_call, 1);
    key_known(j, "cost_per_request_us", r->all.per_call_ns < 0 ? -1 : r->all.per_call_ns / 1000, 3);
    key_known(j, "cost_share", r->all.of_time, 4);
    json_close(j, '}');
    json_key(j, "estimate");
    json_open(j, '{');
    json_key_number(j, "message_ns", cost_message_ns, 3);
    json_key_number(j, "byte_ns", cost_byte_ns, 3);
    json_key_number(j, "ordinary_message_bytes", cost_ordinary_bytes, 3);
    json_close(j, '}');
}

void report_cost_json(const struct report_cost *r, struct buffer *out) {
    struct json j = json_make(out);
    char from[TEXT_TIME_BYTES], until[TEXT_TIME_BYTES];
    bool any = r->costs->resolution_s > 0 && r->costs->last_s > r->costs->first_s;
    json_open(&j, '{');
    json_key(&j, "from");
    any ? json_text(&j, text_time_format(time_of_seconds(r->costs->first_s), false, from))
        : json_null(&j);
    json_key(&j, "until");
    any ? json_text(&j, text_time_format(time_of_seconds(r->costs->last_s), false, until))
        : json_null(&j);
    json_key_int(&j, "resolution_s", r->costs->resolution_s);
    json_key(&j, "tiers");
    json_open(&j, '[');
    for (uint32_t i = 0; i < r->costs->count; i++) {
        tier(&j, r, i);
    }
    json_close(&j, ']');
    sums(&j, r);
    json_close(&j, '}');
    buffer_text(out, "\n");
}
