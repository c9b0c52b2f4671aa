// SPDX-License-Identifier: Apache-2.0
#include "app/page_control.h"

#include <stdio.h>
#include <stdlib.h>

#include "app/triggers.h"
#include "base/clock.h"
#include "base/log.h"
#include "report/notes_json.h"

enum { SECOND_NS = 1000000000, DONE = 200, MADE = 201, TAKEN = 202, NOT_THERE = 404, CANNOT = 409 };

// An order that a tool of ours has asked for.
struct page_asked {
    struct page_asked *next;
    struct page_control *control;
    struct web_order *from; // NULL: it is answered
    struct tool_link *tool;
    int64_t flame; // its id; 0: it is none
    bool over;     // nothing more will be told
};

static struct page_flame *flame_at(struct page_control *c, int64_t id) {
    struct page_flame *f = &c->flames[id % LIMIT_WEB_FLAMES];
    return f->id == id ? f : NULL;
}

// -- answers --------------------------------------------------------------------------------------

static void answer(struct page_asked *a, int status, struct buffer *body) {
    buffer_text(body, "\n");
    web_order_answer(a->from, status, body);
    a->from = NULL;
}

static void refuse(struct page_asked *a, int status, struct slice why) {
    char text[400];
    snprintf(text, sizeof text, "%.*s", (int)(why.len < sizeof text ? why.len : sizeof text),
             (const char *)why.data);
    if (a->from) {
        web_order_refuse(a->from, status, text);
    }
    a->from = NULL;
    a->over = true;
}

static void answer_note(struct page_asked *a, struct control_map kept) {
    int64_t at = 0;
    struct slice node = slice_text(""), text = slice_text("");
    struct buffer body = buffer_make(LIMIT_WEB_BODY_BYTES);
    struct json j = json_make(&body);
    struct note note;
    control_get_int(kept, FIELD_AT, &at);
    control_get_text(kept, FIELD_NODE, &node);
    control_get_text(kept, FIELD_TEXT, &text);
    note_make(&note, at, node, text);
    control_get_int(kept, FIELD_ID, &note.id);
    note_json(&j, &note);
    answer(a, MADE, &body);
    a->over = true;
}

static void answer_steered(struct page_asked *a, struct control_map steered) {
    bool ok = false;
    struct slice text = slice_text("");
    control_get_bool(steered, FIELD_OK, &ok);
    control_get_text(steered, FIELD_TEXT, &text);
    if (!ok) {
        refuse(a, CANNOT, text);
        return;
    }
    struct buffer body = buffer_make(LIMIT_CONTROL_BYTES);
    struct json j = json_make(&body);
    json_open(&j, '{');
    control_json(steered, &j);
    json_close(&j, '}');
    answer(a, DONE, &body);
    a->over = true;
}

static void answer_id(struct page_asked *a, int status, int64_t id) {
    struct buffer body = buffer_make(LIMIT_WEB_BODY_BYTES);
    struct json j = json_make(&body);
    json_open(&j, '{');
    json_key_int(&j, "id", id);
    json_close(&j, '}');
    answer(a, status, &body);
}

// Keeps what is told of a full trace.
static void keep_told(struct page_asked *a, const struct buffer *message, bool over) {
    struct page_flame *f = flame_at(a->control, a->flame);
    a->over = over;
    if (f) {
        buffer_reset(&f->told);
        buffer_append(&f->told, message->data, message->len);
        f->over = over;
    }
}

static bool hear(void *user, const struct buffer *bytes) {
    struct page_asked *a = user;
    struct slice type = slice_text(""), text = slice_text("it gives no reason");
    struct control *message = control_decode_message(bytes);
    struct control_map m = message ? control_root(message) : (struct control_map){0};
    control_get_text(m, FIELD_TYPE, &type);
    bool last = slice_is(type, CONTROL_FLAMED);
    if (last || slice_is(type, CONTROL_FLAMING)) {
        keep_told(a, bytes, last);
    } else if (slice_is(type, CONTROL_ERROR)) {
        control_get_text(m, FIELD_TEXT, &text);
        refuse(a, CANNOT, text);
    } else if (slice_is(type, CONTROL_STEERED) && a->from) {
        answer_steered(a, m);
    } else if (slice_is(type, CONTROL_NOTED) && a->from) {
        answer_note(a, m);
    }
    control_free(message);
    return true;
}

// -- orders ---------------------------------------------------------------------------------------

static uint32_t put_text(struct control_writer *w, const char *key, const char *text) {
    if (w && text[0]) {
        control_text(w, key, slice_text(text));
    }
    return text[0] != 0;
}

static uint32_t put_int(struct control_writer *w, const char *key, int64_t value, int64_t least) {
    if (w && value >= least) {
        control_int(w, key, value);
    }
    return value >= least;
}

// What is said of a trigger; returns of how many values that is. w: NULL: only that.
static uint32_t put_trigger(struct control_writer *w, const struct order *o) {
    bool tier = o->above_us >= 0;
    uint32_t count = put_text(w, FIELD_NAME, o->name);
    if (o->kind != ORDER_TRIGGER_ADD) {
        return count;
    }
    if (w) {
        control_number(w, FIELD_ABOVE, tier ? (double)o->above_us / 1e3 : (double)o->above);
    }
    if (w && o->high_water) {
        control_bool(w, FIELD_HIGH_WATER, true);
    }
    return count + 1 + o->high_water + put_text(w, FIELD_TRIGGER, o->trigger) +
           put_text(w, FIELD_TIER, o->tier) + put_text(w, FIELD_LABEL, o->label) +
           put_int(w, FIELD_FOR_MS, o->for_ms, 0) + put_int(w, FIELD_EVERY_MS, o->every_ms, 1) +
           put_int(w, FIELD_SECONDS, o->seconds, 1) + put_int(w, FIELD_HZ, o->hz, 1);
}

static void put_steer(struct control_writer *w, const struct order *o) {
    static const char *const commands[] = {[ORDER_PAUSE] = STEER_PAUSE,
                                           [ORDER_RESUME] = STEER_RESUME,
                                           [ORDER_SAMPLE] = STEER_SAMPLE,
                                           [ORDER_TRIGGERS] = STEER_TRIGGER_LIST,
                                           [ORDER_TRIGGER_ADD] = STEER_TRIGGER_ADD,
                                           [ORDER_TRIGGER_REMOVE] = STEER_TRIGGER_REMOVE};
    control_text(w, FIELD_NODE, slice_text(o->node));
    control_text(w, FIELD_COMMAND, slice_text(commands[o->kind]));
    if (o->kind == ORDER_SAMPLE) {
        control_int(w, o->one_in > 0 ? FIELD_ONE_IN : FIELD_PER_SECOND, o->one_in + o->per_second);
    } else if (triggers_is_command(slice_text(commands[o->kind]))) {
        put_trigger(w, o);
    }
}

static void put_note(struct control_writer *w, const struct order *o) {
    int64_t now = clock_wall();
    control_text(w, FIELD_TEXT, slice_text(o->text));
    control_int(w, FIELD_AT, o->at_s > 0 ? o->at_s * SECOND_NS : now);
    if (o->node[0]) {
        control_text(w, FIELD_NODE, slice_text(o->node));
    }
}

static void put_flame(struct control_writer *w, const struct order *o) {
    control_text(w, FIELD_NODE, slice_text(o->node));
    control_int(w, FIELD_REQUESTS, o->requests);
    control_int(w, FIELD_SECONDS, o->seconds);
    if (o->identity[0]) {
        control_text(w, FIELD_ONLY, slice_text(o->identity));
    }
}

// As a tool would ask. False: memory is out.
static bool put_question(struct buffer *out, const struct order *o) {
    struct control_writer w;
    switch (o->kind) {
    case ORDER_NOTE:
        w = control_begin(out, CONTROL_NOTE, o->node[0] ? 3 : 2);
        put_note(&w, o);
        break;
    case ORDER_FLAME:
        w = control_begin(out, CONTROL_FLAME, o->identity[0] ? 4 : 3);
        put_flame(&w, o);
        break;
    case ORDER_FLAME_STOP:
        w = control_begin(out, CONTROL_FLAME_STOP, 0);
        break;
    default:
        w = control_begin(out, CONTROL_STEER, 2 + (o->kind == ORDER_SAMPLE) + put_trigger(NULL, o));
        put_steer(&w, o);
    }
    return control_end(&w);
}

static void ask(struct page_asked *a, const struct order *o) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control *message = put_question(&b, o) ? control_decode_message(&b) : NULL;
    struct slice type = slice_text("");
    if (message) {
        control_get_text(control_root(message), FIELD_TYPE, &type);
        tool_link_ask(a->tool, type, control_root(message));
    } else {
        refuse(a, 500, slice_text("no memory"));
    }
    control_free(message);
    buffer_free(&b);
}

// The full trace is one of those that are remembered from now on.
static void remember(struct page_control *c, struct page_asked *a, const struct order *o) {
    a->flame = ++c->last_flame;
    struct page_flame *f = &c->flames[a->flame % LIMIT_WEB_FLAMES];
    buffer_free(&f->told);
    *f = (struct page_flame){.id = a->flame,
                             .told = buffer_make(LIMIT_CONTROL_BYTES),
                             .begun_s = clock_wall() / SECOND_NS,
                             .requests = o->requests,
                             .seconds = o->seconds};
    snprintf(f->node, sizeof f->node, "%s", o->node);
    snprintf(f->identity, sizeof f->identity, "%s", o->identity);
}

// It was not begun after all.
static void forget(struct page_control *c, struct page_asked *a) {
    struct page_flame *f = flame_at(c, a->flame);
    buffer_free(&f->told);
    *f = (struct page_flame){0};
    c->last_flame--;
}

// Ends a full trace: what there is of it is kept.
static void stop_flame(struct page_control *c, const struct order *o, struct web_order *from) {
    for (struct page_asked *a = c->first; a; a = a->next) {
        if (a->flame == o->id && !a->over) {
            struct page_asked asks = {.control = c, .from = from, .tool = a->tool};
            ask(&asks, o);
            if (asks.from) {
                answer_id(&asks, DONE, o->id);
            }
            return;
        }
    }
    web_order_refuse(from, NOT_THERE, "there is no such full trace, or it is over");
}

static void release(struct page_asked *a) {
    tool_link_close(a->tool);
    free(a);
}

void page_control_order(struct page_control *c, const struct order *o, struct web_order *from) {
    if (o->kind == ORDER_FLAME_STOP) {
        stop_flame(c, o, from);
        return;
    }
    if (page_runs_order(&c->runs, o, from)) {
        return;
    }
    if (o->node[0] && !roster_find(c->tools->roster, slice_text(o->node))) {
        web_order_refuse(from, NOT_THERE, "the collector knows no node of this name");
        return;
    }
    struct page_asked *a = calloc(1, sizeof *a);
    struct tool_ear ear = {a, hear, "the page"};
    struct tool_link *tool = a ? tool_link_open(c->tools, &ear) : NULL;
    if (!tool) {
        free(a);
        web_order_refuse(from, 500, "no memory");
        return;
    }
    *a = (struct page_asked){.next = c->first, .control = c, .from = from, .tool = tool};
    c->first = a;
    if (o->kind == ORDER_FLAME) {
        remember(c, a, o);
    }
    ask(a, o);
    if (a->flame && a->over) {
        forget(c, a);
    } else if (a->flame) {
        log_info("the page asks for a full trace of %s", o->node);
        answer_id(a, TAKEN, a->flame);
    }
}

void page_control_tick(struct page_control *c) {
    page_runs_tick(&c->runs);
    struct page_asked **at = &c->first;
    while (*at) {
        struct page_asked *a = *at;
        if (a->over) {
            *at = a->next;
            release(a);
        } else {
            at = &a->next;
        }
    }
}

void page_control_close(struct page_control *c) {
    page_runs_close(&c->runs);
    while (c->first) {
        struct page_asked *a = c->first;
        c->first = a->next;
        refuse(a, 503, slice_text("the collector ends"));
        release(a);
    }
    for (size_t i = 0; i < LIMIT_WEB_FLAMES; i++) {
        buffer_free(&c->flames[i].told);
        c->flames[i] = (struct page_flame){0};
    }
}

// -- the state ------------------------------------------------------------------------------------

static bool hear_node(void *json, const struct buffer *bytes) {
    struct control *message = control_decode_message(bytes);
    struct slice type = slice_text("");
    if (message) {
        control_get_text(control_root(message), FIELD_TYPE, &type);
    }
    if (slice_is(type, CONTROL_NODE)) {
        json_open(json, '{');
        control_json(control_root(message), json);
        json_close(json, '}');
    }
    control_free(message);
    return true;
}

static void put_flame_state(struct json *j, const struct page_flame *f) {
    struct control *told = control_decode_message(&f->told);
    json_open(j, '{');
    json_key_int(j, "id", f->id);
    json_key_text(j, "node", f->node);
    json_key_text(j, "identity", f->identity);
    json_key_int(j, "begun_s", f->begun_s);
    json_key_int(j, "requests", f->requests);
    json_key_int(j, "seconds", f->seconds);
    json_key(j, "over");
    json_bool(j, f->over);
    json_key(j, "told");
    if (told) {
        json_open(j, '{');
        control_json(control_root(told), j);
        json_close(j, '}');
    } else {
        json_null(j);
    }
    json_close(j, '}');
    control_free(told);
}

void page_control_state(struct page_control *c, struct json *j) {
    struct tool_ear ear = {j, hear_node, "the page"};
    struct tool_link *tool = tool_link_open(c->tools, &ear);
    json_key(j, "nodes");
    json_open(j, '[');
    if (tool) {
        tool_link_ask(tool, slice_text(CONTROL_NODES), (struct control_map){0});
        tool_link_close(tool);
    }
    json_close(j, ']');
    json_key(j, "flames");
    json_open(j, '[');
    for (int64_t id = c->last_flame; id > 0 && id > c->last_flame - (int64_t)LIMIT_WEB_FLAMES;
         id--) {
        const struct page_flame *f = flame_at(c, id);
        if (f) {
            put_flame_state(j, f);
        }
    }
    json_close(j, ']');
    page_runs_state(&c->runs, j);
}
