// SPDX-License-Identifier: Apache-2.0
// What a shim is told: questions, what it shall take off, and the requests that its user wants.
#include <stdio.h>
#include <stdlib.h>

#include "app/shim_link.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/text_time.h"

void shim_link_left_out(struct shim_link *link) {
    if (!link->output_full) {
        shim_link_tell(link, LOG_WARNING, "it does not read what it is sent; some is left out");
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

// From a callback of the pipeline: sent now, or once the event loop's thread comes to it.
static void say(struct shim_link *link, const struct buffer *messages) {
    if (!link->fed_apart) {
        shim_link_send(link, messages);
        return;
    }
    struct shim_ingest *ingest = link->ingest;
    bool room = ingest->said + messages->len <= link->said.cap &&
                buffer_append(&link->said, messages->data, messages->len);
    ingest->said += room ? messages->len : 0;
    link->said_full = link->said_full || !room;
    if (!ingest->has_said) {
        ingest->has_said = true;
        intake_news(ingest->intake);
    }
}

void shim_link_unsay(struct shim_link *link) {
    link->ingest->said -= link->said.len;
    buffer_free(&link->said);
    link->said_full = false;
}

void shim_links_say(void *context) {
    struct shim_ingest *ingest = context;
    pipeline_visit(ingest->pipeline);
    struct shim_link *link = ingest->has_said ? ingest->links->first : NULL;
    for (; link; link = link->next) {
        if (link->ingest != ingest) {
            continue;
        }
        if (link->said.len > 0) {
            shim_link_send(link, &link->said);
        }
        if (link->said_full) {
            shim_link_left_out(link);
        }
        shim_link_unsay(link);
    }
    ingest->has_said = false;
    pipeline_part(ingest->pipeline);
}

static void send_of_flame(void *link, const struct buffer *messages) {
    shim_link_send(link, messages);
}

struct flame_shim shim_link_of_flame(struct shim_link *link) {
    enum { BESIDE = 27 }; // the release from which on full traces have a trace session
    struct flame_shim shim = {.link = link,
                              .node = link->node,
                              .single = strtol(link->seen->otp, NULL, 10) < BESIDE,
                              .send = send_of_flame};
    names_clean(slice_text(link->seen->otp), shim.otp, sizeof shim.otp);
    return shim;
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
        say(link, &b);
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
        say(user, &b);
    }
    buffer_free(&b);
}

static void pack_span(struct control_writer *w, const struct pipeline_calls *c,
                      const struct span *span) {
    char pid[MESSAGE_PID_BYTES];
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
        say(link, &b);
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
    shim_link_tell(link, LOG_WARNING, "slow_call %s, %.1f ms, %s, begun %s",
                   names_text(&c->directory->identities, r->identity),
                   (double)(r->end - r->begin) / 1e6, r->error ? "error" : "ok",
                   text_time_format(r->begin + c->offset, true, started));
    if (link->slow_wanted) {
        send_request(user, CONTROL_SLOW, c);
    }
}
