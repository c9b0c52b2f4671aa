// SPDX-License-Identifier: Apache-2.0
#include "app/tool_link.h"

#include <inttypes.h>
#include <stdlib.h>

#include "app/triggers.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/text_time.h"
#include "base/time_math.h"
#include "report/cost.h"

enum { SECOND_NS = 1000000000, SAMPLED_BYTES = 600 };
// How far ahead of now a note's time may be, and how far behind.
static const int64_t NOTE_AHEAD_NS = 86400LL * SECOND_NS, NOTE_AGE_NS = NOTE_KEPT_S * SECOND_NS;

// A node that tools watch; gone with the last of them.
struct watch {
    struct watch *next;
    struct roster_node *node;
    struct live *rows;
    struct pipeline_totals before; // at the last sending
    int64_t since;                 // then, on the monotonic clock
};

struct tool_link {
    struct tool_links *links;
    struct tool_link *previous, *next;
    struct tool_ear ear;
    bool output_full;            // something was left out for it; told once
    struct watch *watch;         // NULL: none
    struct roster_node *steered; // the node that has not answered yet, NULL: none
    int64_t steer_id;            // names that question
    int64_t deadline;            // for the answer, on the monotonic clock
    int64_t ticket;              // of a note that is not written yet, 0: none
    struct note note;
    int64_t note_deadline; // likewise
};

// -- answers --------------------------------------------------------------------------------------

static void send_end(struct tool_link *t, struct buffer *b, struct control_writer *w) {
    bool sent = control_end(w) && t->ear.hear(t->ear.user, b);
    if (!sent && !t->output_full) {
        log_warning("tool at %s: it does not read what it is sent; some is left out", t->ear.peer);
    }
    t->output_full = !sent;
    buffer_free(b);
}

static void send_error(struct tool_link *t, const char *text) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_ERROR, 1);
    control_text(&w, FIELD_TEXT, slice_text(text));
    send_end(t, &b, &w);
}

// The node that a message names; NULL and the tool is told.
static struct roster_node *named_node(struct tool_link *t, struct control_map message) {
    struct slice name = {0};
    control_get_text(message, FIELD_NODE, &name);
    struct roster_node *node = roster_find(t->links->roster, name);
    if (!node) {
        send_error(t, "the collector knows no node of this name; kprof nodes lists those it knows");
    }
    return node;
}

static struct shim_link *shim_of(const struct tool_links *links, const struct roster_node *node) {
    for (struct shim_link *s = links->shims->first; s; s = s->next) {
        if (s->node == node->node) {
            return s;
        }
    }
    return NULL;
}

// -- nodes ----------------------------------------------------------------------------------------

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
    struct control_writer w = control_begin(&b, CONTROL_NODE, COUNTS + 11 + told + stacks);
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
    control_number(&w, FIELD_REQUESTS_PER_S, rates.requests);
    control_number(&w, FIELD_MESSAGES_PER_S, rates.messages);
    control_number(&w, FIELD_COST_US_PER_S, cost_time_ns(rates.messages, rates.bytes) / 1000);
    for (size_t i = 0; i < COUNTS; i++) {
        control_int(&w, counts[i].key, (int64_t)counts[i].value);
    }
    pack_history(&w, n);
    send_end(t, &b, &w);
}

static void on_nodes(struct tool_link *t) {
    int64_t count = 0;
    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        if (t->links->roster->nodes[i]) {
            send_node(t, t->links->roster->nodes[i]);
            count++;
        }
    }
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_NODES, 3);
    control_int(&w, FIELD_COUNT, count);
    control_int(&w, FIELD_UNWRITTEN_S, writer_refused_s(t->links->writer));
    const char *database = t->links->database;
    control_text(&w, FIELD_DATABASE, slice_text(database ? database : ""));
    send_end(t, &b, &w);
}

// -- watching -------------------------------------------------------------------------------------

static void stop_watching(struct tool_link *t) {
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

static void on_watch(struct tool_link *t, struct control_map message) {
    struct roster_node *node = named_node(t, message);
    if (!node) {
        return;
    }
    stop_watching(t);
    t->watch = watch_of(t->links, node);
    if (!t->watch) {
        send_error(t, "the collector is out of memory");
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

// -- steering -------------------------------------------------------------------------------------

// answer: of the shim; its list of triggers goes on.
static void send_steered(struct tool_link *t, bool ok, struct slice text,
                         const struct control_map *answer) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    bool triggers = answer && triggers_has(*answer);
    struct control_writer w = control_begin(&b, CONTROL_STEERED, triggers ? 3 : 2);
    control_bool(&w, FIELD_OK, ok);
    control_text(&w, FIELD_TEXT, text);
    if (triggers) {
        triggers_put(&w, *answer);
    }
    send_end(t, &b, &w);
    t->steered = NULL;
}

static bool is_steered(const struct tool_links *links, const struct roster_node *node) {
    for (const struct tool_link *t = links->first; t; t = t->next) {
        if (t->steered == node) {
            return true;
        }
    }
    return false;
}

// What the shim is to do, from what the tool says. False when that is nothing it could.
static bool pack_steer(struct control_map message, int64_t id, struct buffer *out) {
    struct slice command = {0};
    int64_t n = 0;
    if (control_get_text(message, FIELD_COMMAND, &command) && triggers_is_command(command)) {
        return triggers_pack_order(message, id, out);
    }
    const char *how = control_get_int(message, FIELD_ONE_IN, &n)       ? FIELD_ONE_IN
                      : control_get_int(message, FIELD_PER_SECOND, &n) ? FIELD_PER_SECOND
                                                                       : NULL;
    bool known = slice_is(command, STEER_PAUSE) || slice_is(command, STEER_RESUME) ||
                 (slice_is(command, STEER_SAMPLE) && how && n > 0);
    struct control_writer w = control_begin(out, CONTROL_STEER, how ? 3 : 2);
    control_int(&w, FIELD_ID, id);
    control_text(&w, FIELD_COMMAND, command);
    if (how) {
        control_int(&w, how, n);
    }
    return control_end(&w) && known;
}

static void on_steer(struct tool_link *t, struct control_map message) {
    struct roster_node *node = named_node(t, message);
    if (!node) {
        return;
    }
    struct shim_link *shim = shim_of(t->links, node);
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    if (!shim) {
        send_error(t, "the node is not connected");
    } else if (is_steered(t->links, node)) {
        send_error(t, "the node has not answered an earlier question yet; try again");
    } else if (!pack_steer(message, ++t->links->last_id, &b)) {
        send_error(t, "this collector knows pause, resume, sample with a number from 1 on, and "
                      "orders about triggers");
    } else {
        t->steered = node;
        t->steer_id = t->links->last_id;
        t->deadline = clock_monotonic() + (int64_t)LIMIT_STEER_SECONDS * SECOND_NS;
        shim_link_send(shim, &b);
    }
    buffer_free(&b);
}

static void on_steered(void *context, const struct shim_link *shim, struct control_map answer) {
    const struct tool_links *links = context;
    int64_t id = 0;
    bool ok = false;
    struct slice text = slice_text("");
    control_get_int(answer, FIELD_ID, &id);
    control_get_bool(answer, FIELD_OK, &ok);
    control_get_text(answer, FIELD_TEXT, &text);
    for (struct tool_link *t = links->first; t; t = t->next) {
        if (t->steered && t->steered->node == shim->node && t->steer_id == id) {
            send_steered(t, ok, text, &answer);
        }
    }
}

// -- full traces ----------------------------------------------------------------------------------

static void tell_flame(void *user, const struct buffer *message, bool last) {
    struct tool_link *t = user;
    t->ear.hear(t->ear.user, message); // who does not read misses a second
    (void)last;
}

static void on_flame(struct tool_link *t, struct control_map message) {
    const struct roster_node *node = named_node(t, message);
    struct shim_link *link = node ? shim_of(t->links, node) : NULL;
    struct flame_asker asker = {t, tell_flame};
    if (node) {
        struct flame_shim shim = link ? shim_link_of_flame(link) : (struct flame_shim){0};
        const char *why = link ? flame_begin(t->links->flames, &shim, message, &asker)
                               : "the node is not connected";
        if (why) {
            send_error(t, why);
        }
    }
}

// -- stack sampling -------------------------------------------------------------------------------

static bool tell_stacks(void *user, const struct buffer *message, bool last) {
    const struct tool_link *t = user;
    (void)last;
    return t->ear.hear(t->ear.user, message); // who does not read misses a second
}

static void on_stacks(struct tool_link *t, struct control_map message) {
    const struct roster_node *node = named_node(t, message);
    struct shim_link *link = node ? shim_of(t->links, node) : NULL;
    struct stack_asker asker = {t, tell_stacks};
    if (node) {
        struct flames *flames = t->links->flames;
        struct flame_shim shim = link ? shim_link_of_flame(link) : (struct flame_shim){0};
        const char *why = link ? stack_run_begin(&flames->runs, &shim, message, &asker)
                               : "the node is not connected";
        if (why) {
            send_error(t, why);
        }
    }
}

// -- notes ----------------------------------------------------------------------------------------

// Why a note cannot be of that time; NULL: it can.
static const char *note_refusal(int64_t at, int64_t now) {
    return at > time_add(now, NOTE_AHEAD_NS) ? "the note's time is more than a day ahead"
           : at < time_sub(now, NOTE_AGE_NS)
               ? "the note's time is so long ago that nothing of it is kept"
               : NULL;
}

static void on_note(struct tool_link *t, struct control_map message) {
    int64_t now = clock_wall(), at = now;
    struct slice node = slice_text(""), text = slice_text("");
    control_get_int(message, FIELD_AT, &at);
    control_get_text(message, FIELD_TEXT, &text);
    if (control_get_text(message, FIELD_NODE, &node) && !named_node(t, message)) {
        return;
    }
    const char *why = note_refusal(at, now);
    if (!t->links->writer) {
        send_error(t, "this collector keeps no notes");
    } else if (t->ticket) {
        send_error(t, "the note before is not written yet; try again");
    } else if (why) {
        send_error(t, why);
    } else if (!note_make(&t->note, at, node, text)) {
        send_error(t, "the note has no text");
    } else if (!(t->ticket = writer_note(t->links->writer, &t->note))) {
        send_error(t, "too many notes wait to be written; try again");
    } else {
        t->note_deadline = clock_monotonic() + (int64_t)LIMIT_STEER_SECONDS * SECOND_NS;
    }
}

static void send_noted(struct tool_link *t, int64_t id) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_NOTED, 4);
    control_int(&w, FIELD_ID, id);
    control_int(&w, FIELD_AT, t->note.at_ns);
    control_text(&w, FIELD_NODE, slice_text(t->note.node));
    control_text(&w, FIELD_TEXT, slice_text(t->note.text));
    send_end(t, &b, &w);
}

void tool_link_tick(struct tool_links *links, int64_t now) {
    for (struct tool_link *t = links->first; t; t = t->next) {
        int64_t id = 0;
        bool written = t->ticket && writer_noted(links->writer, t->ticket, &id);
        if (t->ticket && (written || now >= t->note_deadline)) {
            t->ticket = 0;
            written ? send_noted(t, id)
                    : send_error(t, "the database cannot be written now; the note is kept in "
                                    "memory, and written as soon as it can be");
        }
    }
}

static void mark_needed(const void *context, bool nodes[LIMIT_NODES]) {
    const struct tool_links *links = context;
    for (const struct tool_link *t = links->first; t; t = t->next) {
        if (t->watch) {
            nodes[pipeline_node_id(t->watch->node->node)] = true;
        }
        if (t->steered) {
            nodes[pipeline_node_id(t->steered->node)] = true;
        }
    }
}

struct shim_steering tool_link_steering(struct tool_links *links) {
    return (struct shim_steering){links, on_steered, mark_needed};
}

void tool_link_second(struct tool_links *links, int64_t now) {
    for (struct watch *w = links->watches; w; w = w->next) {
        send_rows(links, w, now);
    }
    for (struct tool_link *t = links->first; t; t = t->next) {
        if (t->steered && (now >= t->deadline || !t->steered->connected)) {
            send_steered(
                t, false,
                slice_text(t->steered->connected
                               ? "the node does not answer; its shim may be of an older release"
                               : "the node is gone"),
                NULL);
        }
    }
}

// -- tools ----------------------------------------------------------------------------------------

struct tool_link *tool_link_open(struct tool_links *links, const struct tool_ear *ear) {
    struct tool_link *t = calloc(1, sizeof *t);
    if (!t) {
        return NULL;
    }
    *t = (struct tool_link){.links = links, .ear = *ear, .next = links->first};
    if (t->next) {
        t->next->previous = t;
    }
    links->first = t;
    return t;
}

void tool_link_ask(struct tool_link *t, struct slice type, struct control_map message) {
    if (slice_is(type, CONTROL_NODES)) {
        on_nodes(t);
    } else if (slice_is(type, CONTROL_WATCH)) {
        on_watch(t, message);
    } else if (slice_is(type, CONTROL_STEER)) {
        on_steer(t, message);
    } else if (slice_is(type, CONTROL_FLAME)) {
        on_flame(t, message);
    } else if (slice_is(type, CONTROL_FLAME_STOP)) {
        flame_stop(t->links->flames, t, false);
    } else if (slice_is(type, CONTROL_STACKS)) {
        on_stacks(t, message);
    } else if (slice_is(type, CONTROL_STACKS_STOP)) {
        stack_run_stop(&t->links->flames->runs, t, false);
    } else if (slice_is(type, CONTROL_NOTE)) {
        on_note(t, message);
    } else if (!slice_is(type, CONTROL_PONG)) {
        send_error(t, "this collector does not know that request; is it older than the tool?");
    }
}

void tool_link_close(struct tool_link *t) {
    stop_watching(t);
    flame_stop(t->links->flames, t, true);
    stack_run_stop(&t->links->flames->runs, t, true);
    if (t->previous) {
        t->previous->next = t->next;
    } else {
        t->links->first = t->next;
    }
    if (t->next) {
        t->next->previous = t->previous;
    }
    free(t);
}

// -- the server's events --------------------------------------------------------------------------

static bool hear(void *session, const struct buffer *message) {
    return session_send(session, message);
}

static void *on_hello(void *context, struct session *s, struct control_map hello,
                      const char **refusal) {
    (void)hello;
    struct tool_ear ear = {s, hear, session_peer(s)};
    struct tool_link *t = tool_link_open(context, &ear);
    if (!t) {
        *refusal = "out of memory";
    }
    return t;
}

static void on_message(void *user, struct slice type, struct control_map message) {
    tool_link_ask(user, type, message);
}

static void on_closed(void *user) {
    tool_link_close(user);
}

struct server_events tool_link_events(struct tool_links *links) {
    return (struct server_events){
        .context = links, .hello = on_hello, .message = on_message, .closed = on_closed};
}
