// SPDX-License-Identifier: Apache-2.0
#include "app/shim_link.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/tool_link.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/text_time.h"

static const int64_t SILENT_NS = 3000000000; // of a shim that says something every second

static const char *name_of(const struct shim_link *link) {
    return pipeline_node_name(link->node);
}

// Logs what a node does and says. One that never stops fills no disk, and leaves room for others.
__attribute__((format(printf, 3, 4))) static void
tell(const struct shim_link *link, enum log_level level, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log_from(&(struct log_origin){format, &link->seen->lines}, level, "node %s: %s", name_of(link),
             text);
}

// -- to the shim ----------------------------------------------------------------------------------

void shim_link_left_out(struct shim_link *link) {
    if (!link->output_full) {
        tell(link, LOG_WARNING, "it does not read what it is sent; some is left out");
    }
    link->output_full = true;
}

void shim_link_send(struct shim_link *link, const struct buffer *messages) {
    if (session_send(link->session, messages)) {
        link->output_full = false;
    } else {
        shim_link_left_out(link);
    }
}

static void send_function(struct shim_link *link, const char *type, const struct traced_function *f,
                          uint32_t id, struct slice arguments) {
    bool question = arguments.data != NULL;
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct buffer term = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, type, question ? 5 : 4);
    control_text(&w, FIELD_M, slice_text(f->module));
    control_text(&w, FIELD_F, slice_text(f->function));
    control_int(&w, FIELD_A, f->arity);
    if (question) {
        control_int(&w, FIELD_ID, id);
        buffer_append(&term, &(uint8_t){TERM_VERSION}, 1);
        buffer_append(&term, arguments.data, arguments.len);
        control_bytes(&w, FIELD_ARGS, slice_of(term.data, term.len));
    } else {
        control_text(&w, FIELD_REASON, slice_text("its calls pile up and never return"));
    }
    if (control_end(&w) && !term.failed) {
        shim_link_send(link, &b);
    }
    buffer_free(&term);
    buffer_free(&b);
}

void shim_link_identify(void *user, uint32_t id, const struct traced_function *function,
                        struct slice arguments) {
    send_function(user, CONTROL_IDENTIFY, function, id, arguments);
}

void shim_link_disarm(void *user, const struct traced_function *function) {
    send_function(user, CONTROL_DISARM, function, 0, slice_of(NULL, 0));
}

void shim_link_stale(void *user, const char *tier, uint64_t label) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_STALE, 2);
    control_text(&w, FIELD_TIER, slice_text(tier));
    control_int(&w, FIELD_LABEL, (int64_t)label);
    if (control_end(&w)) {
        shim_link_send(user, &b);
    }
    buffer_free(&b);
}

static void pack_span(struct control_writer *w, const struct pipeline_calls *c,
                      const struct span *span) {
    char pid[32];
    message_pid_text(span->pid, pid);
    control_map(w, 9);
    control_text(w, FIELD_TIER, slice_text(names_text(&c->directory->tiers, span->tier)));
    control_int(w, FIELD_DEPTH, span->depth);
    control_text(w, FIELD_PID, slice_text(pid));
    control_number(w, FIELD_START_US, (double)(span->start - c->result->begin) / 1e3);
    control_number(w, FIELD_DURATION_US, span->open ? 0 : (double)(span->end - span->start) / 1e3);
    control_number(w, FIELD_SELF_US, (double)span->self / 1e3);
    control_number(w, FIELD_WAIT_US, (double)span->wait / 1e3);
    control_bool(w, FIELD_ASYNC, span->async);
    const char *outcome = span->open    ? "open"
                          : span->error ? "error"
                          : span->blind ? "unknown"
                                        : "ok";
    control_text(w, FIELD_OUTCOME, slice_text(outcome));
}

// The spans below `parent`, each followed by those below it. Few spans, no deeper than there are
// spans.
static void pack_below(struct control_writer *w, const struct pipeline_calls *c, uint32_t count,
                       uint32_t parent) {
    for (uint32_t i = parent == SPAN_NONE ? 0 : parent + 1; i < count; i++) {
        if (c->result->spans[i].parent == parent) {
            pack_span(w, c, &c->result->spans[i]);
            pack_below(w, c, count, i);
        }
    }
}

static void send_request(struct shim_link *link, const char *type, const struct pipeline_calls *c) {
    const struct request_result *r = c->result;
    char started[TEXT_TIME_BYTES];
    // The spans are in order of their start, parents before children: the first ones are a whole
    // tree.
    uint32_t count = r->count < LIMIT_CALLS_SPANS ? r->count : LIMIT_CALLS_SPANS;
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, type, 5);
    control_text(&w, FIELD_IDENTITY,
                 slice_text(names_text(&c->directory->identities, r->identity)));
    control_text(&w, FIELD_OUTCOME, slice_text(r->error ? "error" : "ok"));
    control_text(&w, FIELD_STARTED_AT,
                 slice_text(text_time_format(r->begin + c->offset, true, started)));
    control_number(&w, FIELD_DURATION_US, (double)(r->end - r->begin) / 1e3);
    control_list(&w, FIELD_SPANS, count);
    pack_below(&w, c, count, SPAN_NONE);
    if (control_end(&w)) {
        shim_link_send(link, &b);
    }
    buffer_free(&b);
}

void shim_link_calls(void *user, const struct pipeline_calls *c) {
    send_request(user, CONTROL_CALLS, c);
}

void shim_link_slow(void *user, const struct pipeline_calls *c) {
    const struct shim_link *link = user;
    const struct request_result *r = c->result;
    char started[TEXT_TIME_BYTES];
    tell(link, LOG_WARNING, "slow_call %s, %.1f ms, %s, begun %s",
         names_text(&c->directory->identities, r->identity), (double)(r->end - r->begin) / 1e6,
         r->error ? "error" : "ok", text_time_format(r->begin + c->offset, true, started));
    if (link->slow_wanted) {
        send_request(user, CONTROL_SLOW, c);
    }
}

// -- from the shim --------------------------------------------------------------------------------

static struct shim_link *link_of(const struct shim_links *links, const struct pipeline_node *node) {
    struct shim_link *l = links->first;
    while (l && l->node != node) {
        l = l->next;
    }
    return l;
}

// Whether the node may connect: nobody of its name is there, or one who lives no more. A machine
// that lost its power or its network says no farewell, and shims tell their time every second. Two
// living nodes of a name do not push each other out.
static bool make_way(const struct shim_links *links, const struct pipeline_node *node) {
    struct shim_link *there = link_of(links, node);
    if (there && clock_monotonic() - there->heard < SILENT_NS) {
        return false;
    }
    if (there) {
        tell(there, LOG_WARNING, "silent, and back on another connection");
        session_dismiss(there->session, "the node has connected anew");
    }
    return true;
}

// What `kprof nodes` tells of a node besides its name.
static void note_origin(struct roster_node *n, struct control_map hello, const char *peer) {
    struct slice otp = slice_text(""), version = slice_text("");
    control_get_text(hello, FIELD_OTP, &otp);
    control_get_text(hello, FIELD_VERSION, &version);
    control_get_int(hello, FIELD_OS_PID, &n->os_pid);
    names_clean(otp, n->otp, sizeof n->otp);
    names_clean(version, n->version, sizeof n->version);
    snprintf(n->peer, sizeof n->peer, "%s", peer);
}

// The node of a name. When there are as many as may be, one that is gone makes room: the one that
// has been gone for longest, of those of which everything is written.
static struct pipeline_node *node_of(const struct shim_links *links, struct slice name) {
    struct pipeline_node *node = pipeline_node(links->pipeline, name);
    if (!node) {
        bool used[LIMIT_NODES];
        pipeline_used_nodes(links->pipeline, used);
        tool_link_mark(links->tools, used);
        struct roster_node *oldest = roster_oldest(links->roster, used);
        if (oldest) {
            uint16_t id = pipeline_node_id(oldest->node);
            roster_forget(links->roster, oldest);
            pipeline_forget(links->pipeline, id);
            node = pipeline_node(links->pipeline, name);
        }
    }
    return node;
}

static void *on_hello(void *context, struct session *s, struct control_map hello,
                      const char **refusal) {
    struct shim_links *links = context;
    struct slice name = {0}, otp = {0};
    int64_t ticks = 0, offset = 0;
    control_get_text(hello, FIELD_OTP, &otp);
    if (!control_get_text(hello, FIELD_NODE, &name) || name.len == 0 ||
        !control_get_int(hello, FIELD_TICKS_PER_SECOND, &ticks) || ticks < 1 ||
        ticks > 1000000000000 || !control_get_int(hello, FIELD_TIME_OFFSET, &offset)) {
        *refusal = "the hello lacks node, ticks_per_second or time_offset";
        return NULL;
    }
    struct pipeline_node *node = node_of(links, name);
    if (!node) {
        *refusal =
            "too many nodes: it has as many as it takes, and forgets one that is gone when all of "
            "it is written";
        return NULL;
    }
    if (!make_way(links, node)) {
        *refusal = "a node of this name is connected already";
        return NULL;
    }
    struct shim_link *link = calloc(1, sizeof *link);
    if (!link) {
        *refusal = "out of memory";
        return NULL;
    }
    link->links = links;
    link->node = node;
    link->node_id = pipeline_node_id(node);
    link->seen = roster_join(links->roster, link->node_id, node, clock_wall());
    if (!link->seen) {
        *refusal = "out of memory";
        free(link);
        return NULL;
    }
    note_origin(link->seen, hello, session_peer(s));
    link->session = s;
    link->heard = clock_monotonic();
    link->next = links->first;
    if (link->next) {
        link->next->previous = link;
    }
    links->first = link;
    pipeline_set_clock(node, ticks, offset);
    pipeline_set_user(node, link);
    log_from(&(struct log_origin){.source = &link->seen->lines}, LOG_INFO,
             "node %s (OTP %.*s) connected from %s", name_of(link),
             (int)(otp.len < 16 ? otp.len : 16), otp.data ? (const char *)otp.data : "",
             session_peer(s));
    return link;
}

// A module or function, whose name is an atom's.
static bool is_atom(struct slice text) {
    return text.len > 0 && text.len <= LIMIT_ATOM_BYTES;
}

static void add_tier(struct shim_link *link, struct directory *names, struct tier_set *set,
                     struct control_map tier) {
    struct slice name = {0}, m = {0}, f = {0};
    int64_t arity = -1;
    control_get_text(tier, FIELD_NAME, &name);
    control_get_text(tier, FIELD_M, &m);
    control_get_text(tier, FIELD_F, &f);
    control_get_int(tier, FIELD_A, &arity);
    const char *why = NULL;
    uint16_t id = DIRECTORY_NONE;
    if (name.len == 0 || !is_atom(m) || !is_atom(f) || arity < 0 || arity > 255) {
        why = "is incomplete, or has a longer name than functions have";
    } else if ((id = directory_tier_of(names, link->node_id, name)) == TIER_TOTAL) {
        why = "has the name of the whole request";
    } else if (id == DIRECTORY_NONE ||
               tier_set_add(set, m, f, (uint32_t)arity, id) != TIER_SET_OK) {
        why = "is one too many, or twice there";
    }
    if (why) {
        tell(link, LOG_WARNING, "tier %.*s %s and is left out",
             (int)(name.len < 100 ? name.len : 100), name.data ? (const char *)name.data : "", why);
    }
}

static void on_tiers(struct shim_link *link, struct control_map message) {
    struct shim_links *links = link->links;
    struct tier_set set;
    struct control_list list = {0};
    if (!tier_set_init(&set)) {
        tell(link, LOG_ERROR, "out of memory");
        return;
    }
    pipeline_make_room(links->pipeline);
    control_get_list(message, FIELD_TIERS, &list);
    for (uint32_t i = 0; i < list.count; i++) {
        add_tier(link, pipeline_directory(links->pipeline), &set, control_list_at(list, i));
    }
    bool calls = false;
    int64_t slow_us = -1;
    control_get_bool(message, FIELD_CALLS, &calls);
    control_get_int(message, FIELD_SLOW_THRESHOLD_US, &slow_us);
    control_get_bool(message, FIELD_STATS, &link->stats_wanted);
    control_get_bool(message, FIELD_SLOW, &link->slow_wanted);
    tell(link, LOG_INFO, "%u tier%s", set.tiers, set.tiers == 1 ? "" : "s");
    pipeline_want_calls(link->node, calls);
    pipeline_set_slow(link->node,
                      slow_us >= 0 && slow_us < INT64_MAX / 1000 ? slow_us * 1000 : links->slow_ns);
    pipeline_set_tiers(link->node, set);
    session_ready(link->session);
}

static uint64_t get_count(struct control_map message, const char *key) {
    int64_t n = 0;
    control_get_int(message, key, &n);
    return n > 0 ? (uint64_t)n : 0;
}

static void on_clock(struct shim_link *link, struct control_map message) {
    int64_t at, offset;
    if (control_get_int(message, FIELD_TIME_OFFSET, &offset)) {
        pipeline_set_offset(link->node, offset);
    }
    if (control_get_int(message, FIELD_AT, &at)) {
        pipeline_sync(link->node, at, (struct pipeline_now){clock_wall(), clock_monotonic()});
    }
    uint64_t off = get_count(message, FIELD_OFF_MS), tripped = get_count(message, FIELD_TRIPPED_MS),
             away = get_count(message, FIELD_AWAY_MS);
    tripped = tripped < off ? tripped : off;
    away = away < off - tripped ? away : off - tripped;
    struct pipeline_counts counts = {.unsampled = get_count(message, FIELD_UNSAMPLED),
                                     .paused_ms = off - tripped - away,
                                     .tripped_ms = tripped,
                                     .away_ms = away,
                                     .trips = get_count(message, FIELD_TRIPS),
                                     .lowered_ms = get_count(message, FIELD_LOWERED_MS),
                                     .unmarked_calls = get_count(message, FIELD_UNMARKED_CALLS)};
    link->seen->unmarked = get_count(message, FIELD_UNMARKED);
    pipeline_count(link->node, &counts);
}

// Compares what the shim has told of a stream with what came of it, once nothing more can come.
static void settle_total(struct shim_link *link) {
    bool comes =
        session_streams(link->session) && link->total.labels == pipeline_labels(link->node);
    if (link->total.labels > 0 && !comes) {
        uint64_t lost = pipeline_total(link->node, &link->total);
        if (lost > 0) {
            tell(link, LOG_WARNING, "%" PRIu64 " trace messages were lost on their way", lost);
        }
        link->total.labels = 0;
    }
}

static void on_total(struct shim_link *link, struct control_map message) {
    int64_t labels;
    if (control_get_int(message, FIELD_LABELS, &labels) && labels > 0 && labels <= UINT32_MAX) {
        link->total = (struct pipeline_total){.labels = (uint32_t)labels,
                                              .messages = get_count(message, FIELD_MESSAGES),
                                              .unsent = get_count(message, FIELD_UNSENT)};
        settle_total(link);
    }
}

static void stream_over(struct shim_link *link) {
    int64_t cut;
    if (!link->streaming) {
        return;
    }
    link->streaming = false;
    if (pipeline_end(link->node, link->stopped_cleanly, &cut)) {
        tell(link, LOG_WARNING, "the trace stream ended in the middle of a frame, at byte %" PRId64,
             cut);
    }
    recording_end(link->recording);
    link->recording = NULL;
}

static void on_started(const struct shim_link *link, struct control_map message) {
    int64_t labels;
    if (control_get_int(message, FIELD_LABELS, &labels) && labels > 0 && labels <= UINT32_MAX) {
        pipeline_set_labels(link->node, (uint32_t)labels);
    }
    tell(link, LOG_INFO, "tracing");
}

static void on_stopped(struct shim_link *link, struct control_map message) {
    struct slice reason = slice_text("unknown"), text = slice_text("");
    control_get_text(message, FIELD_REASON, &reason);
    control_get_text(message, FIELD_TEXT, &text);
    bool paused = slice_is(reason, STATE_PAUSED);
    bool orderly = paused || slice_is(reason, "stopped") || slice_is(reason, "time_limit");
    link->stopped_cleanly = orderly;
    if (orderly && !session_streams(link->session)) {
        stream_over(link);
    }
    roster_state(link->seen,
                 paused                            ? STATE_PAUSED
                 : slice_is(reason, STATE_TRIPPED) ? STATE_TRIPPED
                                                   : STATE_IDLE,
                 clock_wall());
    tell(link, orderly ? LOG_INFO : LOG_WARNING, "tracing stopped (%.*s) %.*s",
         (int)(reason.len < 40 ? reason.len : 40), reason.data,
         (int)(text.len < 400 ? text.len : 400), text.data);
}

static void on_note(const struct shim_link *link, struct control_map message) {
    struct slice level = {0}, text = {0};
    control_get_text(message, FIELD_LEVEL, &level);
    if (control_get_text(message, FIELD_TEXT, &text)) {
        tell(link, slice_is(level, LEVEL_WARNING) ? LOG_WARNING : LOG_INFO, "%.*s",
             (int)(text.len < 800 ? text.len : 800), text.data);
    }
}

static void on_gap(const struct shim_link *link, struct control_map message) {
    int64_t from, until;
    struct slice text = slice_text(""), reason = slice_text("");
    control_get_text(message, FIELD_TEXT, &text);
    control_get_text(message, FIELD_REASON, &reason);
    bool reload = slice_is(reason, GAP_RELOAD);
    if (control_get_int(message, FIELD_FROM, &from) &&
        control_get_int(message, FIELD_UNTIL, &until)) {
        pipeline_gap(link->node, from, until, reload);
        tell(link, LOG_INFO, "%s; requests of that moment are incomplete (%.*s)",
             reload ? "code was reloaded" : "trace flags were taken off",
             (int)(text.len < 400 ? text.len : 400), text.data);
    }
}

static void on_state(const struct shim_link *link, struct control_map message) {
    struct roster_node *n = link->seen;
    struct slice state = {0}, text = {0};
    char word[ROSTER_WORD];
    control_get_int(message, FIELD_ONE_IN, &n->sampling.one_in);
    control_get_int(message, FIELD_PER_SECOND, &n->sampling.per_second);
    control_get_int(message, FIELD_LEVEL_PPM, &n->sampling.level_ppm);
    control_get_int(message, FIELD_TRIPS, &n->sampling.trips);
    if (control_get_text(message, FIELD_STATE, &state)) {
        names_clean(state, word, sizeof word);
        roster_state(n, word, clock_wall());
    }
    if (control_get_text(message, FIELD_TEXT, &text) && text.len > 0) {
        roster_event(n, clock_wall(), "%.*s",
                     (int)(text.len < ROSTER_TEXT ? text.len : ROSTER_TEXT), text.data);
    }
}

static void on_identify_reply(struct shim_link *link, struct control_map message) {
    int64_t id;
    struct slice identity;
    if (control_get_int(message, FIELD_ID, &id) && id >= 0 && id <= UINT32_MAX) {
        bool named = control_get_text(message, FIELD_IDENTITY, &identity);
        pipeline_answer(link->node, (uint32_t)id, named ? &identity : NULL);
    }
}

static void on_message(void *user, struct slice type, struct control_map message) {
    struct shim_link *link = user;
    link->heard = clock_monotonic();
    if (slice_is(type, CONTROL_CLOCK)) {
        on_clock(link, message);
    } else if (slice_is(type, CONTROL_IDENTIFY_REPLY)) {
        on_identify_reply(link, message);
    } else if (slice_is(type, CONTROL_TIERS)) {
        on_tiers(link, message);
    } else if (slice_is(type, CONTROL_TRACE_STARTED)) {
        on_started(link, message);
        roster_state(link->seen, STATE_TRACING, clock_wall());
    } else if (slice_is(type, CONTROL_TRACE_STOPPED)) {
        on_stopped(link, message);
    } else if (slice_is(type, CONTROL_TRACE_TOTAL)) {
        on_total(link, message);
    } else if (slice_is(type, CONTROL_GAP)) {
        on_gap(link, message);
    } else if (slice_is(type, CONTROL_NOTE)) {
        on_note(link, message);
    } else if (slice_is(type, CONTROL_STATE)) {
        on_state(link, message);
    } else if (slice_is(type, CONTROL_STEERED)) {
        tool_link_steered(link->links->tools, link, message);
    }
}

static bool on_data_begin(void *user) {
    struct shim_link *link = user;
    struct pipeline_stream stream = {.live = true, .markers = true, .entry = TIER_NONE};
    link->stopped_cleanly = false;
    stream_over(link);
    if (!pipeline_begin(link->node, &stream)) {
        tell(link, LOG_ERROR, "out of memory");
        return false;
    }
    link->streaming = true;
    if (link->links->record.dir) {
        link->recording = recording_start(&link->links->record, name_of(link),
                                          session_id(link->session), clock_wall());
    }
    return true;
}

static bool on_data(void *user, struct slice bytes) {
    struct shim_link *link = user;
    if (link->recording) {
        recording_add(link->recording, bytes);
    }
    int64_t damaged = pipeline_feed(link->node, bytes);
    if (damaged >= 0) {
        tell(link, LOG_WARNING, "no trace frame at byte %" PRId64 " of its stream", damaged);
    }
    return damaged < 0;
}

// The connection has ended. Whether anything was lost with it the shim tells on the other one, a
// moment later.
static void on_data_end(void *user) {
    struct shim_link *link = user;
    settle_total(link);
    if (link->stopped_cleanly || link->links->shutting_down) {
        link->stopped_cleanly = true;
        stream_over(link);
    }
}

static void on_closed(void *user) {
    struct shim_link *link = user;
    stream_over(link);
    log_from(&(struct log_origin){.source = &link->seen->lines}, LOG_INFO, "node %s disconnected",
             name_of(link));
    roster_leave(link->seen, clock_wall());
    pipeline_set_user(link->node, NULL);
    pipeline_want_calls(link->node, false);
    if (link->previous) {
        link->previous->next = link->next;
    } else {
        link->links->first = link->next;
    }
    if (link->next) {
        link->next->previous = link->previous;
    }
    free(link);
}

struct server_events shim_link_events(struct shim_links *links) {
    return (struct server_events){.context = links,
                                  .hello = on_hello,
                                  .message = on_message,
                                  .data_begin = on_data_begin,
                                  .data = on_data,
                                  .data_end = on_data_end,
                                  .closed = on_closed};
}
