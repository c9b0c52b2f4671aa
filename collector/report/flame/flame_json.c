// SPDX-License-Identifier: Apache-2.0
#include "report/flame.h"
#include "report/longest.h"

#include "base/text_time.h"
#include "codec/json.h"

static void key_us(struct json *j, const char *key, int64_t ns) {
    json_key_number(j, key, (double)ns / 1000, 3);
}

static void key_bool(struct json *j, const char *key, bool value) {
    json_key(j, key);
    json_bool(j, value);
}

static void put_profile(struct json *j, int64_t id, const struct profile_head *h,
                        const struct profile_counts *c, bool cut) {
    char started[TEXT_TIME_BYTES];
    json_key_int(j, "id", id);
    json_key_text(j, "kind", h->kind == PROFILE_FULL ? "full" : "samples");
    json_key_text(j, "name", h->name);
    json_key_text(j, "label", h->label);
    json_key_text(j, "trigger", h->trigger);
    json_key_text(j, "node", h->node);
    json_key_text(j, "started_at", text_time_format(h->begin_ns, true, started));
    json_key_int(j, "duration_ms", (h->end_ns - h->begin_ns) / 1000000);
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {{"requests", c->requests}, {"incomplete", c->incomplete},
                  {"others", c->others},     {"unseen", c->unseen},
                  {"refused", c->refused},   {"processes", c->processes},
                  {"messages", c->messages}, {"losses", c->lost}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        json_key_int(j, counts[i].key, (int64_t)counts[i].value);
    }
    key_us(j, "requests_us", c->duration_ns);
    key_us(j, "parallel_us", c->parallel_ns);
    key_us(j, "missing_us", c->missing_ns);
    key_bool(j, "cut", cut);
    json_key_text(j, "otp", h->otp);
    key_bool(j, "asleep_in_self", h->asleep_in_self);
    key_bool(j, "gc_in_self", h->gc_in_self);
    json_key_int(j, "functions", (int64_t)c->functions);
    json_key_int(j, "bytes", (int64_t)c->bytes);
    json_key_int(j, "patterns_ms", c->stood_ns / 1000000);
    json_key_int(j, "paused_ms", c->rested ? c->stood_ns / 1000000 : 0);
}

static void put_missed(struct json *j, const struct profile_missed *missed, uint32_t count) {
    json_key(j, "missed");
    json_open(j, '[');
    for (uint32_t i = 0; i < count; i++) {
        json_open(j, '{');
        json_key_text(j, "pid", missed[i].pid);
        json_key_text(j, "name", missed[i].name);
        json_key_int(j, "requests", (int64_t)missed[i].requests);
        json_close(j, '}');
    }
    json_close(j, ']');
}

void flame_list_json(const struct profile_list *list, struct buffer *out) {
    struct json j = json_make(out);
    json_open(&j, '{');
    json_key(&j, "profiles");
    json_open(&j, '[');
    for (uint32_t i = 0; i < list->count; i++) {
        const struct profile_line *l = &list->lines[i];
        json_open(&j, '{');
        put_profile(&j, l->id, &l->head, &l->counts, l->cut);
        json_key_int(&j, "looks", l->looks);
        put_missed(&j, l->missed, l->missed_count);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    buffer_text(out, "\n");
}

// Times in µs, numbers as they are.
static void key_value(struct json *j, const struct flame_answer *a, const char *key,
                      int64_t value) {
    if (flame_metric_is_time(a->drawing.weighed.metric)) {
        key_us(j, key, value);
    } else {
        json_key_int(j, key, value);
    }
}

static void put_stack(struct json *j, const struct flame_answer *a, uint32_t i) {
    static const char *const kinds[] = {"function", "waiting", "asleep", "gc", "cut", "group"};
    const struct flame_node *n = &a->tree.nodes[i];
    const struct flame_frame *f = &a->tree.frames[n->frame];
    json_open(j, '{');
    json_key_int(j, "stack", i);
    json_key_int(j, "parent", n->parent);
    json_key_int(j, "level", n->depth);
    json_key_text(j, "name", f->name);
    json_key_text(j, "kind", kinds[f->kind]);
    json_key_text(j, "module", f->module);
    json_key_text(j, "application", f->application);
    key_value(j, a, "value", n->weight.total);
    key_value(j, a, "self", n->weight.self);
    json_key_int(j, "calls", (int64_t)n->calls);
    if (a->drawing.compared) {
        key_value(j, a, "before_value", n->before.total);
        key_value(j, a, "before_self", n->before.self);
    }
    json_close(j, '}');
}

static void put_requests(struct json *j, const struct profile *p) {
    json_key(j, "identities");
    json_open(j, '[');
    for (uint32_t i = 0; i < p->identity_count; i++) {
        const struct profile_identity *of = &p->identities[i];
        json_open(j, '{');
        json_key_text(j, "identity", names_text(&p->stacks.names, of->name));
        json_key_int(j, "requests", (int64_t)of->requests);
        key_us(j, "mean_us", of->ns / (int64_t)of->requests);
        json_key_int(j, "others", (int64_t)of->others);
        json_key(j, "others_mean_us");
        of->others > 0 ? json_number(j, (double)of->others_ns / 1000 / (double)of->others, 3)
                       : json_null(j);
        json_close(j, '}');
    }
    json_close(j, ']');
}

void flame_json(const struct flame_answer *a, struct buffer *out) {
    struct json j = json_make(out);
    json_open(&j, '{');
    put_profile(&j, a->id, &a->profile.head, &a->profile.counts, a->profile.stacks.full);
    put_requests(&j, &a->profile);
    put_missed(&j, a->profile.missed, a->profile.missed_count);
    if (a->last_id > 0) {
        json_key_int(&j, "through", a->last_id);
    }
    json_key_text(&j, "metric", flame_metric_name(a->drawing.weighed.metric));
    json_key_text(&j, "unit",
                  flame_metric_is_time(a->drawing.weighed.metric)
                      ? "us"
                      : flame_metric_unit(a->drawing.weighed.metric));
    if (a->drawing.compared) {
        json_key(&j, "before");
        json_open(&j, '[');
        for (uint32_t i = 0; i < a->before_count; i++) {
            json_int(&j, a->before_ids[i]);
        }
        json_close(&j, ']');
    }
    json_key(&j, "notes");
    json_open(&j, '[');
    for (const char *const *line = a->note_lines; *line; line++) {
        json_text(&j, *line);
    }
    json_close(&j, ']');
    if (a->seen.count > 0) {
        json_key(&j, "processes_seen");
        processes_seen_json(&a->profile, &a->seen, &j);
    }
    json_key(&j, "stacks");
    json_open(&j, '[');
    for (uint32_t i = 0; i < a->tree.node_count; i++) {
        put_stack(&j, a, i);
    }
    json_close(&j, ']');
    json_close(&j, '}');
    buffer_text(out, "\n");
}

// -- the longest request
// ---------------------------------------------------------------------------

static void put_call(struct json *j, const struct slow_span *s, uint32_t number) {
    json_open(j, '{');
    json_key_int(j, "span", number);
    json_key(j, "parent");
    s->parent < number ? json_int(j, s->parent) : json_null(j);
    json_key_text(j, "pid", s->pid);
    json_key_text(j, "name", s->name);
    key_us(j, "start_us", s->start_ns);
    json_key(j, "duration_us");
    s->outcome[0] ? json_null(j) : json_number(j, (double)s->duration_ns / 1000, 3);
    key_us(j, "self_us", s->self_ns);
    key_us(j, "gc_us", s->gc_ns);
    key_us(j, "off_cpu_us", s->off_cpu_ns);
    json_close(j, '}');
}

void longest_json(const struct longest *longest, int64_t id, struct buffer *out) {
    const struct slow_request *r = &longest->spans.request;
    struct json j = json_make(out);
    json_open(&j, '{');
    json_key_int(&j, "profile", id);
    json_key_text(&j, "node", r->node);
    json_key_text(&j, "identity", r->identity);
    key_us(&j, "duration_us", r->duration_ns);
    json_key(&j, "cut");
    json_bool(&j, r->cut);
    key_bool(&j, "asleep_in_self", longest->asleep_in_self);
    key_bool(&j, "gc_in_self", longest->gc_in_self);
    json_key(&j, "spans");
    json_open(&j, '[');
    for (uint32_t i = 0; i < longest->spans.count; i++) {
        put_call(&j, &longest->spans.spans[i], i);
    }
    json_close(&j, ']');
    json_close(&j, '}');
    buffer_text(out, "\n");
}
