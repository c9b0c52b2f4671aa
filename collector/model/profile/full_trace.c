// SPDX-License-Identifier: Apache-2.0
#include "full_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "codec/mfa.h"
#include "model/message/message_learned.h"

static uint32_t special(struct full_trace *f, enum stack_frame_kind kind, const char *name) {
    return stacks_frame(&f->profile.stacks, kind, slice_text(name), slice_of(NULL, 0));
}

struct full_trace *full_trace_new(const struct full_trace_options *options) {
    struct full_trace *f = calloc(1, sizeof *f);
    if (!f) {
        return NULL;
    }
    f->options = *options;
    f->options.only = NULL;
    f->since = options->since;
    f->until = INT64_MAX;
    f->process_free = NO_PROCESS;
    f->window.off = INT64_MIN;
    f->profile.counts.rested = true;
    if (options->only) {
        names_clean(slice_text(options->only), f->only, sizeof f->only);
    }
    bool ok = profile_init(&f->profile) && map_init(&f->modules) && map_init(&f->frames) &&
              map_init(&f->by_token) && map_init(&f->by_pid);
    for (uint32_t i = 0; ok && i < LIMIT_FULL_REQUESTS; i++) {
        ok = weights_init(&f->requests[i].weights);
    }
    if (ok) {
        f->waiting = special(f, FRAME_WAITING, "waiting");
        f->asleep = special(f, FRAME_ASLEEP, "asleep");
        f->gc = special(f, FRAME_GC, "garbage collection");
        f->missing = special(f, FRAME_WAITING, "not followed");
        ok = !f->profile.stacks.full;
    }
    if (!ok) {
        full_trace_free(f);
        return NULL;
    }
    return f;
}

void full_trace_free(struct full_trace *f) {
    if (!f) {
        return;
    }
    for (uint32_t i = 0; i < LIMIT_FULL_REQUESTS; i++) {
        weights_free(&f->requests[i].weights);
        timeline_free(&f->requests[i].timeline);
    }
    for (uint32_t i = 0; i < f->process_made; i++) {
        free(f->processes[i].calls);
    }
    free(f->processes);
    map_free(&f->by_pid);
    map_free(&f->by_token);
    map_free(&f->frames);
    map_free(&f->modules);
    reorder_free(&f->held);
    profile_free(&f->profile);
    free(f);
}

// -- processes ------------------------------------------------------------------------------------

static uint32_t process_of(const struct full_trace *f, uint64_t pid) {
    uint32_t at = map_get(&f->by_pid, pid);
    return at == MAP_NONE ? NO_PROCESS : at;
}

static void process_gone(struct full_trace *f, uint32_t at) {
    struct full_process *p = process_at(f, at);
    full_request_left(f, p);
    map_remove(&f->by_pid, p->pid, at);
    free(p->calls);
    f->open_calls -= p->room;
    *p = (struct full_process){.next = f->process_free};
    f->process_free = at;
}

// One that works for no request makes room for others.
static void process_make_room(struct full_trace *f) {
    for (uint32_t i = 0; i < f->process_made; i++) {
        if (process_at(f, i)->pid != 0 && !process_at(f, i)->request) {
            process_gone(f, i);
        }
    }
}

static uint32_t process_made(struct full_trace *f, uint64_t pid) {
    uint32_t at = process_of(f, pid);
    if (at != NO_PROCESS || pid == 0) {
        return at;
    }
    if (f->process_free == NO_PROCESS && f->process_made == LIMIT_FULL_PROCESSES) {
        process_make_room(f);
    }
    at = f->process_free != NO_PROCESS ? f->process_free : f->process_made;
    if (at == LIMIT_FULL_PROCESSES ||
        !array_grow((void **)&f->processes, &f->process_room, at, sizeof *f->processes) ||
        !map_set(&f->by_pid, pid, at)) {
        return NO_PROCESS;
    }
    if (at == f->process_made) {
        f->process_made++;
    } else {
        f->process_free = process_at(f, at)->next;
    }
    *process_at(f, at) =
        (struct full_process){.pid = pid, .asker = NO_PROCESS, .named = PROFILE_NOBODY};
    return at;
}

// -- events ---------------------------------------------------------------------------------------

// Whether a process goes on with the request that it has begun, whatever token it shows.
static bool at_its_own(const struct full_trace *f, const struct full_process *p) {
    return p->request && p->request->root != NO_PROCESS && process_at(f, p->request->root) == p;
}

// A process has begun a request.
static void begins(struct full_trace *f, const struct full_event *e) {
    uint32_t at = process_made(f, e->pid);
    if (at == NO_PROCESS || at_its_own(f, process_at(f, at))) {
        return; // a begin inside of a begin is the same request
    }
    struct full_request *r = full_request_open(f, e->token);
    if (!r || r->phase != FULL_OPEN || r->root != NO_PROCESS) {
        return;
    }
    full_request_left(f, process_at(f, at));
    r->root = at;
    r->by_entry = e->kind == FULL_ENTRY;
    names_know(f, process_at(f, at), NO_FRAME);
    full_request_joined(f, at, r, NO_PROCESS, e->time);
}

// Notes a process that sent a token and has called nothing, as one that was not followed. A process
// of another node has a hash for its number: this node's shim does not know it.
static void look_at_sender(struct full_trace *f, struct full_request *r,
                           const struct full_event *e) {
    if (e->from != 0 && e->from != e->pid && process_of(f, e->from) == NO_PROCESS) {
        full_request_suspects(f, r, e->from);
    }
}

// The process that asked for what begins now: the token's sender, or else who has begun the
// request and waits.
static uint32_t asker_of(const struct full_trace *f, const struct full_request *r, uint32_t at,
                         uint64_t from) {
    uint32_t sender = process_of(f, from);
    if (sender != NO_PROCESS && sender != at && process_at(f, sender)->request == r) {
        return sender;
    }
    bool waits = r->root != NO_PROCESS && r->root != at &&
                 (process_at(f, r->root)->state == PROCESS_OUT || !f->options.scheduling);
    return waits ? r->root : NO_PROCESS;
}

static void calls(struct full_trace *f, const struct full_event *e) {
    if (e->kind != FULL_CALL) {
        begins(f, e);
    }
    uint32_t at = process_of(f, e->pid);
    struct full_process *p = at == NO_PROCESS ? NULL : process_at(f, at);
    struct full_request *r = p && at_its_own(f, p)  ? p->request
                             : e->kind == FULL_CALL ? full_request_open(f, e->token)
                                                    : full_request_of(f, e->token);
    if (p) {
        times_pass(f, p, e->time);
        if (p->request != r) {
            full_request_left(f, p);
        }
    }
    if (!r || r->phase != FULL_OPEN || e->kind == FULL_BEGIN) {
        return;
    }
    if (e->frame == FRAME_ELSEWHERE && !(p && p->request == r)) {
        return; // nothing of ours has been called there
    }
    at = process_made(f, e->pid);
    if (at == NO_PROCESS) {
        r->damaged = true;
        return;
    }
    p = process_at(f, at);
    if (!p->request && !full_request_joined(f, at, r, asker_of(f, r, at, e->from), e->time)) {
        return;
    }
    look_at_sender(f, r, e);
    p->flagged = p->flagged || e->apart;
    if (f->apart && !p->flagged) { // all that is known of it is from the tiers
        full_request_suspects(f, r, p->pid);
    }
    p->state = PROCESS_RUNS;
    p->returned = false;
    names_know(f, p, e->frame);
    frames_call(f, p, e);
    full_request_show(f, p, e->time);
}

// A call has ended. When it was the last one of the process, that works for its request no longer;
// the last one of an entry ends the request.
static void returns(struct full_trace *f, struct full_process *p, uint32_t at,
                    const struct full_event *e) {
    struct full_request *r = p->request;
    if (e->kind == FULL_RETURN) {
        frames_return(f, p, e->function);
    } else if (!p->returned) { // else it is that one's, and tells nothing new
        frames_return_to(f, p, e->function);
    }
    p->returned = e->kind == FULL_RETURN;
    if (p->depth > 1) {
        full_request_show(f, p, e->time);
        return;
    }
    if (r->root != at) {
        full_request_left(f, p);
    } else if (r->by_entry) {
        full_request_ends(f, r, e->time);
    }
}

static void dies(struct full_trace *f, uint32_t at, int64_t time) {
    struct full_request *r = process_at(f, at)->request;
    if (r && r->root == at) {
        full_request_ends(f, r, time);
        r->root = NO_PROCESS;
    }
    process_gone(f, at);
}

// A message of a process that names no token.
static void goes_on(struct full_trace *f, const struct full_event *e) {
    uint32_t at = process_of(f, e->pid);
    if (at == NO_PROCESS && e->apart && e->kind == FULL_IN) { // what it calls next may be a tier
        at = process_made(f, e->pid);
    }
    struct full_process *p = at == NO_PROCESS ? NULL : process_at(f, at);
    if (!p) {
        return;
    }
    p->flagged = p->flagged || e->apart;
    times_pass(f, p, e->time);
    switch (e->kind) {
    case FULL_EXITED:
        dies(f, at, e->time);
        break;
    case FULL_RETURN:
    case FULL_RETURN_TO:
        if (p->request) {
            returns(f, p, at, e);
        }
        break;
    default:
        times_change(p, e->kind);
        full_request_show(f, p, e->time);
        break;
    }
}

static void take(struct full_trace *f, const struct full_event *e) {
    struct full_request *r;
    switch (e->kind) {
    case FULL_CALL:
    case FULL_ENTRY:
    case FULL_BEGIN:
        calls(f, e);
        break;
    case FULL_END:
        r = full_request_of(f, e->token);
        if (r && r->phase == FULL_OPEN) {
            full_request_ends(f, r, e->time);
        }
        break;
    default:
        goes_on(f, e);
        break;
    }
}

void full_trace_advance(struct full_trace *f, int64_t time) {
    struct full_event e;
    while (reorder_take(&f->held, time, &e)) {
        take(f, &e);
    }
}

// -- messages -------------------------------------------------------------------------------------

// An atom of a message as text; "" when it is longer than an atom may be.
static void atom_text(struct term_atom atom, char out[MFA_ATOM_BYTES]) {
    size_t n = 0;
    for (size_t i = 0; i < atom.text.len && n + 3 < MFA_ATOM_BYTES; i++) {
        uint8_t byte = atom.text.data[i];
        if (atom.latin1 && byte >= 0x80) {
            out[n++] = (char)(0xc0 | byte >> 6);
            byte = 0x80 | (byte & 0x3f);
        }
        out[n++] = (char)byte;
    }
    out[n] = 0;
}

void full_trace_module(struct full_trace *f, struct slice module) {
    if (f->modules.count < LIMIT_FULL_MODULES) {
        map_set(&f->modules, hash_bytes(module), 1);
    }
}

// The frame of a message's function; UINT32_MAX without room.
static uint32_t frame_of(struct full_trace *f, const struct message *m) {
    uint64_t key = hash_bytes(m->name) + m->arity;
    uint32_t frame = map_get(&f->frames, key);
    if (frame != MAP_NONE) {
        return frame;
    }
    struct mfa mfa = {.arity = m->arity};
    char text[MFA_TEXT_BYTES];
    atom_text(m->module, mfa.module);
    atom_text(m->function, mfa.function);
    bool elsewhere = m->clock == MESSAGE_STRICT &&
                     map_get(&f->modules, hash_bytes(slice_text(mfa.module))) == MAP_NONE;
    frame = elsewhere ? FRAME_ELSEWHERE
                      : stacks_frame(&f->profile.stacks, FRAME_FUNCTION,
                                     slice_text(mfa_text(&mfa, text)), slice_text(mfa.module));
    if (frame != UINT32_MAX && f->frames.count < 2 * LIMIT_PROFILE_FRAMES) {
        map_set(&f->frames, key, frame);
    }
    return frame;
}

static uint32_t function_of(const struct message *m) {
    return m->target != 0 ? m->target : message_target(m->name, m->arity);
}

static bool event_of(struct full_trace *f, const struct message *m, enum full_role role,
                     struct full_event *e) {
    switch (m->kind) {
    case MESSAGE_CALL:
        if (!m->has_token || m->entry == ENTRY_LEFT_OUT) {
            return false;
        }
        e->token = m->token;
        e->from = m->from;
        e->kind = role == FULL_IS_ENTRY   ? FULL_ENTRY
                  : role == FULL_IS_BEGIN ? FULL_BEGIN
                  : role == FULL_IS_END   ? FULL_END
                                          : FULL_CALL;
        if (role == FULL_PLAIN || role == FULL_IS_ENTRY) {
            e->frame = frame_of(f, m);
            e->function = function_of(m);
            e->caller = m->caller;
        }
        return true;
    case MESSAGE_RETURN:
    case MESSAGE_EXCEPTION:
        e->kind = FULL_RETURN;
        e->function = function_of(m);
        return true;
    case MESSAGE_RETURN_TO:
        e->kind = FULL_RETURN_TO;
        e->function = m->target;
        return true;
    case MESSAGE_OUT:
        e->kind = FULL_OUT;
        return f->options.scheduling;
    case MESSAGE_IN:
        e->kind = FULL_IN;
        return f->options.scheduling;
    case MESSAGE_GC_START:
        e->kind = FULL_GC_START;
        return true;
    case MESSAGE_GC_END:
        e->kind = FULL_GC_END;
        return true;
    case MESSAGE_EXITED:
        e->kind = FULL_EXITED;
        return true;
    default:
        return false;
    }
}

void full_trace_message(struct full_trace *f, const struct message *m, int64_t time,
                        enum full_role role) {
    struct full_event e = {.time = time, .pid = m->pid, .apart = m->clock == MESSAGE_STRICT};
    f->apart = f->apart || e.apart;
    f->profile.counts.rested = !f->apart;
    if (time > f->until || !event_of(f, m, role, &e)) {
        return;
    }
    f->profile.counts.messages++;
    f->profile.counts.bytes += f->size;
    while (!reorder_put(&f->held, &e)) {
        struct full_event earliest;
        if (!reorder_take(&f->held, INT64_MAX, &earliest)) {
            full_trace_lost(f);
            return;
        }
        take(f, &earliest);
    }
    full_trace_advance(f, f->held.latest - DISORDER_NS);
}

void full_trace_size(struct full_trace *f, size_t bytes) {
    f->size = bytes;
}

bool full_trace_done(const struct full_trace *f) {
    return f->profile.counts.requests >= f->options.requests;
}

bool full_trace_reached(const struct full_trace *f) {
    const struct profile *p = &f->profile;
    for (uint32_t i = 0; i < p->weights.count; i++) {
        const struct weight *w = &p->weights.all[i];
        const struct stack_frame *frame = stacks_frame_of(&p->stacks, profile_key_stack(w->key));
        if (w->calls == 0 || frame->module == NAME_NONE) {
            continue;
        }
        struct slice module = slice_text(names_text(&p->stacks.names, frame->module));
        // a name as long as that may have been cut
        if (module.len >= LIMIT_NAME_BYTES ||
            map_get(&f->modules, hash_bytes(module)) != MAP_NONE) {
            return true;
        }
    }
    return false;
}

struct profile *full_trace_profile(struct full_trace *f) {
    return &f->profile;
}
