// SPDX-License-Identifier: Apache-2.0
#include "pipeline_node.h"

uint16_t deliver_identity(struct pipeline_node *n, struct slice text) {
    uint16_t identity = directory_identity_of(n->pipeline->directory, n->id, text);
    return identity == IDENTITY_TOTAL || identity == IDENTITY_REMOTE ? IDENTITY_UNDEFINED
                                                                     : identity;
}

// What a name is worth: the first FIRMLY stays, AT_END is for a request that no call has named, nor
// will by an answer that is still to come, and AT_BEGIN for one that nothing else names.
enum naming { FIRMLY, AT_END, AT_BEGIN };

static void name_by_term(struct pipeline_node *n, struct request_ref ref, struct slice term,
                         enum naming naming) {
    struct cursor c = cursor_of(term.data, term.len);
    if (!tracker_unnamed(n->tracker, ref) ||
        (term_is_atom(term_peek(&c)) && slice_is(term_atom(&c).text, "undefined"))) {
        return;
    }
    char text[LIMIT_NAME_BYTES + 4]; // room for the character that the cut falls into
    size_t len = term_text(term, text, sizeof text);
    if (naming == AT_BEGIN) {
        tracker_name_begun(n->tracker, ref, slice_of(text, len));
        return;
    }
    uint16_t identity = deliver_identity(n, slice_of(text, len));
    if (identity == IDENTITY_UNDEFINED) {
        return;
    }
    if (naming == AT_END) {
        tracker_name_late(n->tracker, ref, identity);
    } else {
        tracker_name(n->tracker, ref, identity);
    }
}

// The term of argument `which` (1 …) of a call that carries its arguments; empty when there is
// none. room is for a small integer, which has no term of its own when all arguments are such.
static struct slice argument(const struct message *m, uint32_t which, uint8_t room[2]) {
    if (m->arguments.len == 0) {
        return slice_of(NULL, 0);
    }
    struct cursor c = cursor_of(m->arguments.data, m->arguments.len);
    bool has_tail;
    struct slice bytes;
    if (which > term_list(&c, &has_tail, &bytes)) {
        return slice_of(NULL, 0);
    }
    if (bytes.len > 0) {
        room[0] = TERM_SMALL_INTEGER;
        room[1] = bytes.data[which - 1];
        return slice_of(room, 2);
    }
    for (uint32_t i = 1; i < which; i++) {
        term_skip(&c);
    }
    return term_take(&c);
}

static void name_by_call(struct pipeline_node *n, struct request_ref ref,
                         const struct traced_function *f, const struct message *m) {
    if (f->identity_argument > 0) {
        uint8_t room[2];
        struct slice term = argument(m, f->identity_argument, room);
        if (term.len > 0) {
            name_by_term(n, ref, term, FIRMLY);
        }
    } else if (m->note_kind == NOTE_IDENTITY) {
        name_by_term(n, ref, m->note, FIRMLY);
    } else if (m->note_kind == NOTE_ARGUMENTS) {
        uint32_t id;
        if (n->user && n->pipeline->options.identify &&
            identify_call(&n->identify, n->tracker, ref, m, &id)) {
            n->pipeline->options.identify(n->user, id, f, m->note);
        }
    }
}

static inline void name_request(struct pipeline_node *n, struct request_ref ref,
                                const struct traced_function *f, const struct message *m) {
    if (f->identity_argument != 0 || m->note_kind != NOTE_NONE) {
        name_by_call(n, ref, f, m);
    }
}

static bool take_atom(struct cursor *c, const char *text) {
    if (!term_is_atom(term_peek(c))) {
        term_skip(c);
        return false;
    }
    return slice_is(term_atom(c).text, text);
}

// What an end marker says besides the outcome: token_lost, {token_changed, Label}, sending, or
// kept.
static void take_how(struct cursor *c, struct tracker_end *end) {
    if (term_is_atom(term_peek(c))) {
        struct slice how = term_atom(c).text;
        end->token_lost = slice_is(how, "token_lost");
        end->sending = slice_is(how, "sending");
    } else if (!term_is_tuple(term_peek(c))) {
        term_skip(c);
    } else if (term_tuple(c) == 2 && take_atom(c, "token_changed") &&
               term_is_integer(term_peek(c))) {
        end->shown = hash_mix((uint64_t)term_integer(c));
    } else {
        cursor_fail(c);
    }
}

// An end marker: Outcome, {Outcome, How} or, of a web server's helper, {Outcome, How, Identity}.
// Names the request in the last case.
static struct tracker_end read_end(struct pipeline_node *n, const struct message *m, int64_t time) {
    struct tracker_end end = {.token = m->token, .pid = m->pid, .time = time, .serial = m->serial};
    if (m->note_kind != NOTE_IDENTITY) {
        return end;
    }
    struct cursor c = cursor_of(m->note.data, m->note.len);
    uint32_t parts = term_is_tuple(term_peek(&c)) ? term_tuple(&c) : 1;
    end.error = term_is_atom(term_peek(&c)) && !take_atom(&c, "ok");
    if (parts >= 2) {
        take_how(&c, &end);
    }
    end.by_helper = parts == 3;
    if (parts == 3 && !c.failed) {
        struct slice identity = term_take(&c);
        if (identity.len > 0) {
            name_by_term(n, tracker_find(n->tracker, m->token), identity, AT_END);
        }
    }
    return end;
}

// The span outside that has asked for the request of a token: a binary of its bytes. It comes from
// strangers: what is none is nothing.
static void take_parent(struct pipeline_node *n, const struct tracker_call *call,
                        const struct message *m) {
    enum { HEAD_BYTES = 5 }; // of a binary
    struct trace_parent parent;
    struct cursor c = cursor_of(m->note.data, m->note_kind == NOTE_IDENTITY ? m->note.len : 0);
    struct slice term = term_peek(&c) == TERM_BINARY ? term_take(&c) : slice_of(NULL, 0);
    if (term.len > HEAD_BYTES &&
        trace_parent_read(slice_of(term.data + HEAD_BYTES, term.len - HEAD_BYTES), &parent)) {
        tracker_asked_for(n->tracker, call, &parent);
    }
}

// What a process says of itself: within, from_now or no_more.
static void take_word(struct pipeline_node *n, const struct tracker_call *call,
                      const struct message *m) {
    struct cursor c = cursor_of(m->note.data, m->note_kind == NOTE_IDENTITY ? m->note.len : 0);
    struct slice word = term_is_atom(term_peek(&c)) ? term_atom(&c).text : slice_of(NULL, 0);
    if (slice_is(word, "within")) {
        tracker_says(n->tracker, call, SAYS_WITHIN);
    } else if (slice_is(word, "from_now")) {
        tracker_says(n->tracker, call, SAYS_FROM_NOW);
    } else if (slice_is(word, "no_more")) {
        tracker_says(n->tracker, call, SAYS_NO_MORE);
    }
}

// Apart, as nearly no message is part of a full trace: the way of the others stays short.
__attribute__((noinline)) static void to_full_traces(const struct pipeline_node *n,
                                                     const struct message *m, int64_t time,
                                                     enum full_role role) {
    for (uint32_t i = 0; i < n->full_count; i++) {
        full_trace_message(n->full[i], m, time, role);
    }
}

void deliver_full(const struct pipeline_node *n, const struct message *m, int64_t time,
                  enum full_role role) {
    if (n->full_count > 0) {
        to_full_traces(n, m, time, role);
    }
}

// What a marker is to a full trace; false: nothing.
static bool full_role(enum function_role role, const struct tracker_end *end, enum full_role *out) {
    *out = role == ROLE_END ? FULL_IS_END : role == ROLE_NAMING ? FULL_PLAIN : FULL_IS_BEGIN;
    return role == ROLE_NAMING || role == ROLE_BEGIN || role == ROLE_WEB_BEGIN ||
           (role == ROLE_END && !end->sending);
}

// What is no tier's call.
static void deliver_marker(struct pipeline_node *n, const struct traced_function *f,
                           const struct message *m, const struct tracker_call *call) {
    struct tracker_end end = {0};
    enum full_role role;
    switch (f->role) {
    case ROLE_TIER:
        break;
    case ROLE_BEGIN:
        name_request(n, tracker_begin(n->tracker, call), f, m);
        break;
    case ROLE_WEB_BEGIN: {
        struct request_ref begun = tracker_web_begin(n->tracker, call);
        if (m->note_kind == NOTE_IDENTITY) {
            name_by_term(n, begun, m->note, AT_BEGIN);
        }
        break;
    }
    case ROLE_PARENT:
        take_parent(n, call, m);
        break;
    case ROLE_END:
        end = read_end(n, m, call->time);
        tracker_end(n->tracker, &end);
        break;
    case ROLE_SAYS:
        take_word(n, call, m);
        break;
    case ROLE_UPGRADE:
        tracker_upgraded(n->tracker, call);
        break;
    case ROLE_SPAWN:
        tracker_spawn(n->tracker, call);
        break;
    case ROLE_NAMING:
        name_request(n, tracker_find(n->tracker, m->token), f, m);
        break;
    }
    if (full_role(f->role, &end, &role)) {
        deliver_full(n, m, call->time, role);
    }
}

// What a message under a token says of who has it, from whom and when.
static inline struct tracker_call call_of(const struct message *m, int64_t time) {
    return (struct tracker_call){.pid = m->pid,
                                 .token = m->token,
                                 .from = m->from,
                                 .serial = m->serial,
                                 .previous = m->previous,
                                 .full_serial = m->full_serial,
                                 .full_previous = m->full_previous,
                                 .time = time};
}

void deliver_call(struct pipeline_node *n, const struct traced_function *f, const struct message *m,
                  int64_t time) {
    if (!m->has_token) {
        if (f->role == ROLE_TIER) {
            n->totals.tokenless_calls++;
            tracker_pass(n->tracker, m->pid, f->tier, time);
        }
        return;
    }
    struct tracker_call call = call_of(m, time);
    call.tier = f->tier;
    call.function = m->target;
    call.caller = m->caller;
    if (f->role != ROLE_TIER) {
        deliver_marker(n, f, m, &call);
        return;
    }
    n->costs[f - n->tiers.functions].calls++;
    n->totals.calls++;
    deliver_full(n, m, time, m->entry == ENTRY_BEGINS ? FULL_IS_ENTRY : FULL_PLAIN);
    if (m->entry == ENTRY_LEFT_OUT) {
        tracker_left_out(n->tracker, m->pid);
    } else {
        name_request(n,
                     m->entry == ENTRY_BEGINS ? tracker_enter(n->tracker, &call)
                                              : tracker_call(n->tracker, &call),
                     f, m);
    }
}

// The process that a spawn function has returned: Pid, or {Pid, Monitor}. 0: none.
static uint64_t spawned(const struct message *m) {
    if (m->note_kind == NOTE_PROCESS) {
        return m->spawned;
    }
    struct cursor c = cursor_of(m->note.data, m->note.len);
    if (term_is_tuple(term_peek(&c)) && term_tuple(&c) != 2) {
        return 0;
    }
    return message_pid(&c);
}

void deliver_return(struct pipeline_node *n, const struct traced_function *f,
                    const struct message *m, int64_t time) {
    if (f->role == ROLE_TIER) {
        n->totals.returns++;
        deliver_full(n, m, time, FULL_PLAIN);
        tracker_return(n->tracker, m->pid, f->tier, m->kind == MESSAGE_EXCEPTION, time);
    } else if (f->role == ROLE_SPAWN) {
        tracker_spawned(n->tracker, m->pid, m->kind == MESSAGE_RETURN ? spawned(m) : 0);
    }
}

uint16_t deliver_state(struct pipeline_node *n, const struct message *m, int64_t time) {
    struct tracker_call call;
    // full traces with a trace session of their own know all but the end of tiers' calls from that
    if (!n->full_apart || m->kind == MESSAGE_RETURN_TO) {
        deliver_full(n, m, time, FULL_PLAIN);
    }
    switch (m->kind) {
    case MESSAGE_RETURN_TO:
        n->totals.returns++;
        return tracker_return_to(n->tracker, m->pid, m->target, time);
    case MESSAGE_GC_START:
    case MESSAGE_GC_END:
        tracker_pause(n->tracker, m->pid, PAUSE_GC, m->kind == MESSAGE_GC_START, time);
        break;
    case MESSAGE_OUT:
    case MESSAGE_IN:
        tracker_pause(n->tracker, m->pid, PAUSE_OFF_CPU, m->kind == MESSAGE_OUT, time);
        break;
    case MESSAGE_EXITED:
        tracker_exited(n->tracker, m->pid, time);
        break;
    case MESSAGE_SENT:
        call = call_of(m, time);
        call.from = m->pid;
        tracker_sent(n->tracker, &call);
        break;
    case MESSAGE_TAKEN:
        call = call_of(m, time);
        tracker_taken(n->tracker, &call);
        break;
    default:
        break;
    }
    return TIER_NONE;
}
