// SPDX-License-Identifier: Apache-2.0
// Where requests begin and end: markers, web servers, the death of a process.
#include "tracker.h"

// A marker of a request: it is no longer one of a stream without markers, and an end that was found
// out is none.
static struct request *request_marked(struct tracker *t, uint32_t index) {
    struct request *r = request_at(t, index);
    if (r->root != SPAN_NONE) {
        r->root = SPAN_NONE;
        r->root_pid = 0;
        if (r->has_end) {
            r->has_end = false;
            r->error = false;
            request_list(t, index, PHASE_NEW, t->now + GRACE_NS);
        }
    }
    return r;
}

struct request_ref request_begins(struct tracker *t, const struct tracker_call *call) {
    t->markers = true;
    uint32_t known = map_get(&t->by_token, call->token);
    if (known != MAP_NONE && request_at(t, known)->has_begin) {
        request_leave_token(
            t, call->token); // it is used again: the request before it closes by itself
    }
    forget_closed(t, call->token);
    uint32_t index = request_under(t, call->token, call->time);
    if (index == SLAB_NONE) {
        request_refuse(t, call->token);
        return NO_REQUEST;
    }
    struct request *r = request_marked(t, index);
    struct process *p = process_for(t, call->pid, call->time);
    r->has_begin = true;
    r->begin = call->time;
    r->begin_pid = call->pid;
    if (p) {
        p->clock = call->serial > p->clock ? call->serial : p->clock;
        p->begun = index;
        p->begun_generation = r->generation;
        p->begun_clock = clock_next(p->clock);
        p->begun_open += !r->has_end;
        p->label = call->token;
        p->work = index;
        p->work_generation = r->generation;
        p->last_event = LAST_RETURN;
        p->returned = index;
    }
    return (struct request_ref){index, r->generation};
}

// A begin inside of the request that its process has begun with a call, or with a marker under the
// same token: it names that one. One under an entry's token elsewhere is work for that entry's
// request. Returns true for these.
static bool begins_inside(struct tracker *t, const struct tracker_call *call,
                          struct request_ref *ref) {
    struct process *p = process_find(t, call->pid);
    *ref = NO_REQUEST;
    t->markers = true;
    if (p && in_entry(t, p)) {
        *ref = entry_met(t, p, call);
        return true;
    }
    return entry_made(t, call->token);
}

struct request_ref tracker_begin(struct tracker *t, const struct tracker_call *call) {
    struct request_ref ref;
    return begins_inside(t, call, &ref) ? ref : request_begins(t, call);
}

struct request_ref tracker_web_begin(struct tracker *t, const struct tracker_call *call) {
    struct request_ref ref;
    if (begins_inside(t, call, &ref)) {
        return ref;
    }
    ref = request_begins(t, call);
    struct process *p = process_find(t, call->pid);
    if (ref.index != SPAN_NONE) {
        request_at(t, ref.index)->ends_here = true;
        if (p) {
            p->web_open++;
        }
    }
    return ref;
}

void tracker_asked_for(struct tracker *t, const struct tracker_call *call,
                       const struct trace_parent *parent) {
    uint32_t index = request_find(t, call->token);
    struct process *p = process_find(t, call->pid);
    if (p) {
        p->clock = call->serial > p->clock ? call->serial : p->clock;
        p->last_event = LAST_RETURN;
        p->returned = index;
    }
    if (index == MAP_NONE || request_at(t, index)->asked_for) {
        return;
    }
    struct request *r = request_at(t, index);
    struct span_record record = record_of_parent(parent);
    r->asked_for = record_add(t, index, &record);
    if (!r->asked_for) {
        request_hurt(r, REASON_ROOM);
    }
}

static void end_of_death(struct tracker *t, uint32_t index, uint64_t pid, int64_t time) {
    struct request *r = request_at(t, index);
    request_ends(t, index,
                 &(struct tracker_end){.pid = pid, .time = time, .error = !r->sending || r->error});
    r->died = true;
}

void request_died(struct tracker *t, const struct process *p, bool crashed, int64_t time) {
    if (crashed && alive(t, p->begun, p->begun_generation) && !request_at(t, p->begun)->has_end) {
        end_of_death(t, p->begun, p->pid, time);
    }
    // A connection may have had many at a time. Few processes die with one open, so that looking
    // for them is cheap.
    for (enum phase phase = PHASE_NEW; phase <= PHASE_OPEN && p->web_open > 0; phase++) {
        for (uint32_t index = t->lists[phase].head, next; index != SLAB_NONE; index = next) {
            const struct request *r = request_at(t, index);
            next = r->next;
            if (r->ends_here && r->begin_pid == p->pid) {
                end_of_death(t, index, p->pid, time);
            }
        }
    }
}

// Whether a process has calls of a request open.
static bool has_open(const struct tracker *t, const struct process *p, uint32_t request) {
    uint32_t i = p->top;
    while (i != SLAB_NONE &&
           (call_at(t, i)->request != request || call_at(t, i)->tier == RECORD_SPAWN ||
            call_at(t, i)->generation != request_at(t, request)->generation)) {
        i = call_at(t, i)->below;
    }
    return i != SLAB_NONE;
}

// The end mark of what began inside of an entry's call, or behind its return as an exception has
// left it. That return is the end of the request.
static void ends_inside(struct tracker *t, struct request *r, const struct tracker_end *end) {
    if (end->pid == r->begin_pid) {
        r->failed_inside = r->failed_inside || end->error;
        r->error = r->error || r->failed_inside;
        if (end->token_lost) {
            request_hurt(r, REASON_TOKEN);
        }
        t->counts.lost_tokens += end->token_lost;
    }
}

void tracker_end(struct tracker *t, const struct tracker_end *end) {
    t->markers = true;
    bool late = request_find(t, end->token) == MAP_NONE && closed_lately(t, end->token);
    // new: its begin may be late
    uint32_t index = late ? SLAB_NONE : request_under(t, end->token, end->time);
    struct process *p = process_find(t, end->pid);
    if (p) {
        // the next begin's token is a new one, and shows none
        p->clock = end->serial > p->clock ? end->serial : p->clock;
        process_acts(t, p, end->time);
        p->last_event = LAST_RETURN;
        p->returned = index;
        p->said = p->said_within ? p->said : 0;
    }
    if (index == SLAB_NONE) {
        if (!late) {
            request_refuse(t, end->token);
        }
        return;
    }
    if (request_at(t, index)->by_entry) {
        ends_inside(t, request_at(t, index), end);
        return;
    }
    struct request *r = request_marked(t, index);
    if (end->sending && !r->has_end) {
        r->sending = true;
        r->error = end->error;
        if (end->token_lost) {
            request_hurt(r, REASON_TOKEN);
        }
        t->counts.lost_tokens += end->token_lost;
        return;
    }
    if (p && p->web_open > 0 && r->ends_here && r->begin_pid == end->pid && !r->has_end) {
        p->web_open--;
    }
    if (end->token_lost) {
        request_hurt(r, REASON_TOKEN);
    }
    t->counts.lost_tokens += end->token_lost;
    if (end->shown != 0 && end->shown != r->token) {
        cause_borrowed(t, index, end->shown);
    }
    if (p && r->has_begin && r->begin_pid == end->pid && !r->has_end) {
        uint32_t before;
        struct episode *e = episode_new(t, p, &before);
        p->after_entry = false;
        *e = (struct episode){.start = r->begin,
                              .end = end->time,
                              .label = end->shown != 0 ? end->shown : p->label,
                              .clock = p->begun_clock,
                              .request = index,
                              .generation = r->generation,
                              .before = before,
                              .own = true};
    }
    r->stretches = r->stretches || (end->by_helper && !r->has_end && p && has_open(t, p, index));
    request_ends(t, index, end);
}
