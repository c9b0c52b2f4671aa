// SPDX-License-Identifier: Apache-2.0
#include "app/tool_link.h"

#include <stdlib.h>

#include "app/tool_state.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/time_math.h"

enum { SECOND_NS = 1000000000 };
// How far ahead of now a note's time may be, and how far behind.
static const int64_t NOTE_AHEAD_NS = 86400LL * SECOND_NS, NOTE_AGE_NS = NOTE_KEPT_S * SECOND_NS;

// -- answers --------------------------------------------------------------------------------------

void tool_send(struct tool_link *t, struct buffer *b, struct control_writer *w) {
    bool sent = control_end(w) && t->ear.hear(t->ear.user, b);
    if (!sent && !t->output_full) {
        log_warning("tool at %s: it does not read what it is sent; some is left out", t->ear.peer);
    }
    t->output_full = !sent;
    buffer_free(b);
}

void tool_refuse(struct tool_link *t, const char *text) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_ERROR, 1);
    control_text(&w, FIELD_TEXT, slice_text(text));
    tool_send(t, &b, &w);
}

struct roster_node *tool_named_node(struct tool_link *t, struct control_map message) {
    struct slice name = {0};
    control_get_text(message, FIELD_NODE, &name);
    struct roster_node *node = roster_find(t->links->roster, name);
    if (!node) {
        tool_refuse(t,
                    "the collector knows no node of this name; kprof nodes lists those it knows");
    }
    return node;
}

struct shim_link *tool_shim_of(const struct tool_links *links, const struct roster_node *node) {
    for (struct shim_link *s = links->shims->first; s; s = s->next) {
        if (s->node == node->node) {
            return s;
        }
    }
    return NULL;
}

// -- full traces ----------------------------------------------------------------------------------

static void tell_flame(void *user, const struct buffer *message, bool last) {
    struct tool_link *t = user;
    t->ear.hear(t->ear.user, message); // who does not read misses a second
    (void)last;
}

static void on_flame(struct tool_link *t, struct control_map message) {
    const struct roster_node *node = tool_named_node(t, message);
    struct shim_link *link = node ? tool_shim_of(t->links, node) : NULL;
    struct flame_asker asker = {t, tell_flame};
    if (node) {
        struct flame_shim shim = link ? shim_link_of_flame(link) : (struct flame_shim){0};
        const char *why = link ? flame_begin(t->links->flames, &shim, message, &asker)
                               : "the node is not connected";
        if (why) {
            tool_refuse(t, why);
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
    const struct roster_node *node = tool_named_node(t, message);
    struct shim_link *link = node ? tool_shim_of(t->links, node) : NULL;
    struct stack_asker asker = {t, tell_stacks};
    if (node) {
        struct flames *flames = t->links->flames;
        struct flame_shim shim = link ? shim_link_of_flame(link) : (struct flame_shim){0};
        const char *why = link ? stack_run_begin(&flames->runs, &shim, message, &asker)
                               : "the node is not connected";
        if (why) {
            tool_refuse(t, why);
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
    if (control_get_text(message, FIELD_NODE, &node) && !tool_named_node(t, message)) {
        return;
    }
    const char *why = note_refusal(at, now);
    if (!t->links->writer) {
        tool_refuse(t, "this collector keeps no notes");
    } else if (t->ticket) {
        tool_refuse(t, "the note before is not written yet; try again");
    } else if (why) {
        tool_refuse(t, why);
    } else if (!note_make(&t->note, at, node, text)) {
        tool_refuse(t, "the note has no text");
    } else if (!(t->ticket = writer_note(t->links->writer, &t->note))) {
        tool_refuse(t, "too many notes wait to be written; try again");
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
    tool_send(t, &b, &w);
}

void tool_link_tick(struct tool_links *links, int64_t now) {
    for (struct tool_link *t = links->first; t; t = t->next) {
        int64_t id = 0;
        bool written = t->ticket && writer_noted(links->writer, t->ticket, &id);
        if (t->ticket && (written || now >= t->note_deadline)) {
            t->ticket = 0;
            written ? send_noted(t, id)
                    : tool_refuse(t, "the database cannot be written now; the note is kept in "
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
    return (struct shim_steering){links, tool_steered, mark_needed};
}

void tool_link_second(struct tool_links *links, int64_t now) {
    pipeline_visit_all(links->pipeline);
    tool_watch_second(links, now);
    tool_steer_second(links, now);
    pipeline_part_all(links->pipeline);
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

static void ask(struct tool_link *t, struct slice type, struct control_map message) {
    if (slice_is(type, CONTROL_NODES)) {
        tool_nodes(t);
    } else if (slice_is(type, CONTROL_WATCH)) {
        tool_watch(t, message);
    } else if (slice_is(type, CONTROL_STEER)) {
        tool_steer(t, message);
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
        tool_refuse(t, "this collector does not know that request; is it older than the tool?");
    }
}

void tool_link_ask(struct tool_link *t, struct slice type, struct control_map message) {
    const struct pipeline *pipeline = t->links->pipeline;
    pipeline_visit_all(pipeline);
    ask(t, type, message);
    pipeline_part_all(pipeline);
}

void tool_link_close(struct tool_link *t) {
    pipeline_visit_all(t->links->pipeline);
    tool_watch_stop(t);
    flame_stop(t->links->flames, t, true);
    stack_run_stop(&t->links->flames->runs, t, true);
    pipeline_part_all(t->links->pipeline);
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
