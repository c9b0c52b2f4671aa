// SPDX-License-Identifier: Apache-2.0
#include "codec/json.h"
#include "tool/nodes/nodes.h"

static void put_sampling(struct json *j, const struct node_row *row) {
    bool known = row->level_ppm > 0;
    const char *const keys[] = {"one_in", "per_second"};
    const int64_t values[] = {row->one_in, row->per_second};
    for (int i = 0; i < 2; i++) {
        json_key(j, keys[i]);
        if (known) {
            json_int(j, values[i]);
        } else {
            json_null(j);
        }
    }
    json_key(j, "level");
    if (known) {
        json_number(j, (double)row->level_ppm / 1e6, 6);
    } else {
        json_null(j);
    }
}

static void put_counts(struct json *j, const struct node_row *row) {
    json_key_int(j, "complete", row->complete);
    json_key_int(j, "incomplete", row->incomplete);
    json_key_int(j, "expired", row->expired);
    json_key_int(j, "unsampled", row->unsampled);
    json_key_int(j, "messages", row->messages);
    json_key_int(j, "dropped_messages", row->dropped_messages);
    json_key_int(j, "decode_errors", row->decode_errors);
    json_key_int(j, "off_ms", row->off_ms);
    json_key_int(j, "lowered_ms", row->lowered_ms);
    json_key_int(j, "unmarked_calls", row->unmarked_calls);
    json_key(j, "stacks");
    if (row->stacks[0]) {
        json_text(j, row->stacks);
    } else {
        json_null(j);
    }
}

static void put_history(struct json *j, const struct node_row *row) {
    json_key(j, "history");
    json_open(j, '[');
    for (uint32_t i = 0; i < row->events; i++) {
        json_open(j, '{');
        json_key_text(j, "at", row->history[i].at);
        json_key_text(j, "text", row->history[i].text);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void put_node(struct json *j, const struct node_row *row) {
    json_open(j, '{');
    json_key_text(j, "node", row->node);
    json_key(j, "connected");
    json_bool(j, row->connected);
    json_key_text(j, "since", row->since);
    json_key_text(j, "state", row->state);
    json_key(j, "tracer");
    row->tracer[0] ? json_text(j, row->tracer) : json_null(j);
    json_key_text(j, "peer", row->peer);
    json_key_text(j, "otp", row->otp);
    json_key_text(j, "version", row->version);
    json_key_int(j, "os_pid", row->os_pid);
    put_sampling(j, row);
    json_key_int(j, "trips", row->trips);
    json_key_number(j, "requests_per_s", row->requests_per_s, 1);
    put_counts(j, row);
    put_history(j, row);
    json_close(j, '}');
}

static void put_export(struct json *j, const struct nodes_collector *of) {
    json_key(j, "export");
    if (!of->exported[0]) {
        json_null(j);
        return;
    }
    json_open(j, '{');
    json_key_text(j, "text", of->exported);
    json_key_int(j, "behind_s", of->behind_s);
    json_key_int(j, "waiting", of->waiting);
    json_close(j, '}');
}

static void put_otlp(struct json *j, const struct nodes_collector *of) {
    json_key(j, "otlp");
    if (!of->otlp[0]) {
        json_null(j);
        return;
    }
    json_open(j, '{');
    json_key_text(j, "text", of->otlp);
    json_key_int(j, "traces_behind_s", of->traces.behind_s);
    json_key_int(j, "traces_waiting", of->traces.waiting);
    json_key_int(j, "metrics_behind_s", of->metrics.behind_s);
    json_key_int(j, "metrics_waiting", of->metrics.waiting);
    json_close(j, '}');
}

void nodes_json(const struct node_row *rows, uint32_t count, const struct nodes_collector *of,
                struct buffer *out) {
    struct json j = json_make(out);
    json_open(&j, '{');
    json_key(&j, "nodes");
    json_open(&j, '[');
    for (uint32_t i = 0; i < count; i++) {
        put_node(&j, &rows[i]);
    }
    json_close(&j, ']');
    put_export(&j, of);
    put_otlp(&j, of);
    json_close(&j, '}');
    buffer_text(out, "\n");
}
