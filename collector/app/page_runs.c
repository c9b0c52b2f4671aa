// SPDX-License-Identifier: Apache-2.0
#include "app/page_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

enum { SECOND_NS = 1000000000, DONE = 200, TAKEN = 202, NOT_THERE = 404, CANNOT = 409, BUSY = 503 };
// After this time without a question a look ends: pages ask every second.
enum { LOOK_SECONDS = 10 };
enum { USUAL_HZ = 99, USUAL_LOOK_HZ = 20, USUAL_TOP = 100, USUAL_EVERY_MS = 5000 };
enum { USUAL_BUDGET_PPM = 20000 };

struct page_run {
    struct page_run *next;
    int64_t id;             // 0: a look, of which nothing is kept
    struct order wanted;    // with what is usual where nothing was said
    struct web_order *from; // that waits for its answer; NULL: none
    struct tool_link *tool; // that has asked for it; NULL: it has not begun, or is over
    int64_t begun_s;        // since 1970 UTC
    int64_t begun, ended;   // monotonic ns; 0: not yet
    int64_t asked;          // of a look: for the last time, likewise
    struct buffer told;     // stacks_state or stacks_kept, as it came; empty: nothing yet
    struct buffer view;     // stacks_view, likewise
    bool stops, refused;
};

static bool is_on(const struct page_run *r) {
    return r->tool && r->ended == 0;
}

// The run of a node that is at work: of those that are kept, or a look.
static struct page_run *on_node(const struct page_runs *runs, const char *node, bool kept) {
    struct page_run *r = runs->first;
    while (r && (!is_on(r) || kept != (r->id > 0) || strcmp(r->wanted.node, node) != 0)) {
        r = r->next;
    }
    return r;
}

// -- what is told ---------------------------------------------------------------------------------

static void refuse(struct page_run *r, int status, struct slice why) {
    char text[400];
    snprintf(text, sizeof text, "%.*s", (int)(why.len < sizeof text ? why.len : sizeof text),
             (const char *)why.data);
    if (r->from) {
        web_order_refuse(r->from, status, text);
    }
    r->from = NULL;
    r->refused = true;
}

static void keep(struct buffer *to, const struct buffer *message) {
    buffer_reset(to);
    buffer_append(to, message->data, message->len);
}

static bool hear(void *user, const struct buffer *bytes) {
    struct page_run *r = user;
    struct slice type = slice_text(""), text = slice_text("it gives no reason");
    struct control *message = control_decode_message(bytes);
    struct control_map m = message ? control_root(message) : (struct control_map){0};
    control_get_text(m, FIELD_TYPE, &type);
    if (slice_is(type, CONTROL_STACKS_VIEW)) {
        keep(&r->view, bytes);
    } else if (slice_is(type, CONTROL_STACKS_STATE)) {
        keep(&r->told, bytes);
    } else if (slice_is(type, CONTROL_STACKS_KEPT)) {
        keep(&r->told, bytes);
        r->ended = clock_monotonic();
    } else if (slice_is(type, CONTROL_ERROR)) {
        control_get_text(m, FIELD_TEXT, &text);
        refuse(r, CANNOT, text);
    }
    control_free(message);
    return true;
}

// -- asking ---------------------------------------------------------------------------------------

static void put_name(struct control_writer *w, const char *list, const char *key,
                     const char *name) {
    control_list(w, list, name[0] ? 1 : 0);
    if (name[0]) {
        control_map(w, 1);
        control_text(w, key, slice_text(name));
    }
}

// As a tool would ask. False: memory is out.
static bool put_question(struct buffer *out, const struct page_run *r) {
    const struct order *o = &r->wanted;
    struct control_writer w = control_begin(out, CONTROL_STACKS, 12);
    control_text(&w, FIELD_NODE, slice_text(o->node));
    control_int(&w, FIELD_SECONDS, o->seconds);
    control_int(&w, FIELD_HZ, o->hz);
    control_int(&w, FIELD_TOP, o->top);
    control_int(&w, FIELD_EVERY_MS, o->every_ms);
    control_int(&w, FIELD_BUDGET_PPM, o->budget_ppm);
    control_int(&w, FIELD_VIEW_S, 1);
    control_bool(&w, FIELD_KEEP, r->id > 0);
    control_text(&w, FIELD_BY, slice_text(o->by));
    control_text(&w, FIELD_APPLICATION, slice_text(o->application));
    put_name(&w, FIELD_REGISTERED, FIELD_NAME, o->registered);
    put_name(&w, FIELD_PROCESSES, FIELD_PID, o->pid);
    return control_end(&w);
}

static bool say(struct page_run *r, const struct buffer *bytes) {
    struct control *message = control_decode_message(bytes);
    struct slice type = slice_text("");
    if (message) {
        control_get_text(control_root(message), FIELD_TYPE, &type);
        tool_link_ask(r->tool, type, control_root(message));
    }
    control_free(message);
    return message;
}

// Asks for it; where that cannot be, it is refused.
static void begin(struct page_runs *runs, struct page_run *r) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct tool_ear ear = {r, hear, "the page"};
    r->begun = clock_monotonic();
    r->begun_s = clock_wall() / SECOND_NS;
    r->ended = 0;
    r->stops = false;
    r->tool = tool_link_open(runs->tools, &ear);
    if (!r->tool || !put_question(&b, r) || !say(r, &b)) {
        refuse(r, 500, slice_text("no memory"));
    }
    buffer_free(&b);
}

static void stop(struct page_run *r) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_STACKS_STOP, 0);
    if (is_on(r) && !r->stops && control_end(&w)) {
        r->stops = say(r, &b);
    }
    buffer_free(&b);
}

// -- orders ---------------------------------------------------------------------------------------

static void answer_id(struct web_order *from, int status, int64_t id) {
    struct buffer body = buffer_make(LIMIT_WEB_BODY_BYTES);
    struct json j = json_make(&body);
    json_open(&j, '{');
    json_key_int(&j, "id", id);
    json_close(&j, '}');
    buffer_text(&body, "\n");
    web_order_answer(from, status, &body);
}

static int64_t usual(int64_t said, int64_t otherwise) {
    return said > 0 ? said : otherwise;
}

static struct page_run *add(struct page_runs *runs, const struct order *o, int64_t id) {
    struct page_run *r = calloc(1, sizeof *r);
    if (r) {
        *r = (struct page_run){.next = runs->first,
                               .id = id,
                               .wanted = *o,
                               .told = buffer_make(LIMIT_CONTROL_BYTES),
                               .view = buffer_make(LIMIT_CONTROL_BYTES)};
        r->wanted.hz = usual(o->hz, id > 0 ? USUAL_HZ : USUAL_LOOK_HZ);
        r->wanted.top = usual(o->top, USUAL_TOP);
        r->wanted.every_ms = usual(o->every_ms, USUAL_EVERY_MS);
        r->wanted.budget_ppm = usual(o->budget_ppm, USUAL_BUDGET_PPM);
        snprintf(r->wanted.by, sizeof r->wanted.by, "%s", o->by[0] ? o->by : "reductions");
        runs->first = r;
    }
    return r;
}

// How many there are that are not over: of those that are kept, or looks.
static uint32_t count_of(const struct page_runs *runs, bool kept) {
    uint32_t count = 0;
    for (const struct page_run *r = runs->first; r; r = r->next) {
        count += kept ? r->id > 0 && r->ended == 0 && !r->refused : r->id == 0;
    }
    return count;
}

static void begin_kept(struct page_runs *runs, struct page_run *r) {
    begin(runs, r);
    if (r->from) {
        log_info("the page asks for samples of %s", r->wanted.node);
        answer_id(r->from, TAKEN, r->id);
        r->from = NULL;
    }
}

static void order_run(struct page_runs *runs, const struct order *o, struct web_order *from) {
    if (count_of(runs, true) >= LIMIT_WEB_RUNS) {
        web_order_refuse(from, BUSY, "too many nodes are sampled from pages; stop one of them");
        return;
    }
    struct page_run *r = add(runs, o, runs->last_id + 1), *look = on_node(runs, o->node, false);
    if (!r) {
        web_order_refuse(from, 500, "no memory");
        return;
    }
    r->from = from;
    runs->last_id++;
    if (look) {
        stop(look); // r begins in a tick, when it is over
    } else {
        begin_kept(runs, r);
    }
}

static void order_stop(struct page_runs *runs, const struct order *o, struct web_order *from) {
    struct page_run *r = runs->first;
    while (r && (r->id != o->id || !is_on(r))) {
        r = r->next;
    }
    if (r) {
        stop(r);
        answer_id(from, DONE, o->id);
    } else {
        web_order_refuse(from, NOT_THERE, "there is no such run of sampling, or it is over");
    }
}

// -- looks ----------------------------------------------------------------------------------------

static void put_message(struct json *j, const char *key, const struct buffer *bytes) {
    struct control *message = control_decode_message(bytes);
    json_key(j, key);
    if (message) {
        json_open(j, '{');
        control_json(control_root(message), j);
        json_close(j, '}');
    } else {
        json_null(j);
    }
    control_free(message);
}

static void put_ran(struct json *j, const struct page_run *r) {
    int64_t until = r->ended > 0 ? r->ended : clock_monotonic();
    json_key_int(j, "ran_s", r->begun > 0 ? (until - r->begun) / SECOND_NS : 0);
}

static void answer_look(const struct page_run *r, struct web_order *from) {
    struct buffer body = buffer_make(LIMIT_WEB_ANSWER_BYTES);
    struct json j = json_make(&body);
    json_open(&j, '{');
    json_key_text(&j, "by", r->wanted.by);
    json_key_int(&j, "run", r->id);
    put_ran(&j, r);
    put_message(&j, "told", &r->told);
    put_message(&j, "view", &r->view);
    json_close(&j, '}');
    buffer_text(&body, "\n");
    web_order_answer(from, DONE, &body);
}

// A look at the node, which may be over.
static struct page_run *look_at(const struct page_runs *runs, const char *node) {
    struct page_run *r = runs->first;
    while (r && (r->id > 0 || r->refused || strcmp(r->wanted.node, node) != 0)) {
        r = r->next;
    }
    return r;
}

static bool is_awaited(const struct page_runs *runs, const char *node) {
    const struct page_run *r = runs->first;
    while (r && !(r->id > 0 && r->from && strcmp(r->wanted.node, node) == 0)) {
        r = r->next;
    }
    return r;
}

// By another choice of processes it begins anew, when it is over.
static void order_look(struct page_runs *runs, const struct order *o, struct web_order *from) {
    struct page_run *kept = on_node(runs, o->node, true), *look = look_at(runs, o->node);
    if (kept) {
        answer_look(kept, from);
        return;
    }
    if (!look && count_of(runs, false) >= LIMIT_WEB_LOOKS) {
        web_order_refuse(from, BUSY, "too many nodes are looked at from pages; close one of them");
        return;
    }
    look = look ? look : add(runs, o, 0);
    if (!look) {
        web_order_refuse(from, 500, "no memory");
        return;
    }
    look->asked = clock_monotonic();
    if (o->by[0] && strcmp(o->by, look->wanted.by) != 0) {
        snprintf(look->wanted.by, sizeof look->wanted.by, "%s", o->by);
        stop(look);
    }
    look->from = from;
    if (!look->tool && !is_awaited(runs, o->node)) {
        begin(runs, look);
    }
    if (look->from) {
        answer_look(look, from);
        look->from = NULL;
    }
}

bool page_runs_order(struct page_runs *runs, const struct order *o, struct web_order *from) {
    bool names = o->kind == ORDER_STACKS || o->kind == ORDER_TOP;
    if (!names && o->kind != ORDER_STACKS_STOP) {
        return false;
    }
    if (names && !roster_find(runs->tools->roster, slice_text(o->node))) {
        web_order_refuse(from, NOT_THERE, "the collector knows no node of this name");
    } else if (o->kind == ORDER_STACKS) {
        order_run(runs, o, from);
    } else if (o->kind == ORDER_TOP) {
        order_look(runs, o, from);
    } else {
        order_stop(runs, o, from);
    }
    return true;
}

// -- the state ------------------------------------------------------------------------------------

static void put_run(struct json *j, const struct page_run *r) {
    const struct order *o = &r->wanted;
    json_open(j, '{');
    json_key_int(j, "id", r->id);
    json_key_text(j, "node", o->node);
    json_key_text(j, "by", o->by);
    json_key_int(j, "hz", o->hz);
    json_key_int(j, "top", o->top);
    json_key_text(j, "application", o->application);
    json_key_text(j, "registered", o->registered);
    json_key_text(j, "pid", o->pid);
    json_key_int(j, "begun_s", r->begun_s);
    json_key_int(j, "seconds", o->seconds);
    put_ran(j, r);
    json_key(j, "over");
    json_bool(j, r->ended > 0);
    put_message(j, "told", &r->told);
    json_close(j, '}');
}

void page_runs_state(const struct page_runs *runs, struct json *j) {
    json_key(j, "runs");
    json_open(j, '[');
    for (const struct page_run *r = runs->first; r; r = r->next) {
        if (r->id > 0 && r->begun > 0 && !r->refused) {
            put_run(j, r);
        }
    }
    json_close(j, ']');
}

// -- time -----------------------------------------------------------------------------------------

static void release(struct page_run *r) {
    if (r->tool) {
        tool_link_close(r->tool);
    }
    buffer_free(&r->told);
    buffer_free(&r->view);
    free(r);
}

static void step(struct page_runs *runs, struct page_run *r, int64_t now) {
    if (r->tool && r->ended > 0) {
        tool_link_close(r->tool);
        r->tool = NULL;
    }
    if (r->id > 0 && r->ended > 0) {
        buffer_free(&r->view);
    } else if (r->id > 0 && r->from && !on_node(runs, r->wanted.node, false)) {
        begin_kept(runs, r);
    } else if (r->id == 0 && now - r->asked > (int64_t)LOOK_SECONDS * SECOND_NS) {
        stop(r);
    }
}

void page_runs_tick(struct page_runs *runs) {
    int64_t now = clock_monotonic();
    uint32_t kept = 0;
    for (struct page_run **at = &runs->first; *at;) {
        struct page_run *r = *at;
        step(runs, r, now);
        kept += r->id > 0;
        bool unasked = r->id == 0 && !r->tool && now - r->asked > (int64_t)LOOK_SECONDS * SECOND_NS;
        if (r->refused || unasked || (r->ended > 0 && r->id > 0 && kept > LIMIT_WEB_RUNS)) {
            *at = r->next;
            release(r);
        } else {
            at = &r->next;
        }
    }
}

void page_runs_close(struct page_runs *runs) {
    while (runs->first) {
        struct page_run *r = runs->first;
        runs->first = r->next;
        refuse(r, BUSY, slice_text("the collector ends"));
        release(r);
    }
}
