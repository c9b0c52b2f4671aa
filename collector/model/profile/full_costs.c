// SPDX-License-Identifier: Apache-2.0
// What a full trace costs: how long its patterns stand, and how long requests take that only the
// tiers trace.
#include "base/time_math.h"
#include "full_state.h"

void full_trace_stands(struct full_trace *f, int64_t asked, int64_t since) {
    struct full_window *w = &f->window;
    *w = (struct full_window){
        .off_before = w->off, .asked = asked, .since = since, .stands = true, .any = true};
}

void full_trace_off(struct full_trace *f, int64_t at) {
    struct full_window *w = &f->window;
    if (w->stands) {
        w->stands = false;
        w->off = at > w->since ? at : w->since;
        f->profile.counts.stood_ns = time_add(f->profile.counts.stood_ns, w->off - w->since);
    }
}

// Whether a request lies where no pattern stood, or was about to.
static bool outside(const struct full_window *w, int64_t begin, int64_t end) {
    return w->any &&
           ((begin >= w->off_before && end <= w->asked) || (!w->stands && begin >= w->off));
}

// What is known of an identity's requests; NULL: they are too many, or without memory.
static struct profile_identity *identity_of(struct profile *p, struct slice name) {
    uint32_t id = names_find(&p->stacks.names, name), i = 0;
    while (i < p->identity_count && p->identities[i].name != id) {
        i++;
    }
    if (i < p->identity_count) {
        return &p->identities[i];
    }
    id = i < PROFILE_IDENTITIES ? names_intern(&p->stacks.names, name) : NAME_NONE;
    if (id == NAME_NONE) {
        return NULL;
    }
    p->identities[i] = (struct profile_identity){.name = (uint16_t)id};
    p->identity_count++;
    return &p->identities[i];
}

void costs_traced(struct full_trace *f, const struct full_request *r) {
    struct profile *p = &f->profile;
    struct profile_identity *i =
        identity_of(p, slice_text(names_text(&p->stacks.names, r->identity)));
    if (i) {
        i->requests++;
        i->ns = time_add(i->ns, r->duration);
    }
}

void costs_fate(struct full_trace *f, const struct full_fate *fate) {
    if (!fate->complete ||
        !outside(&f->window, fate->begin, time_add(fate->begin, fate->duration))) {
        return;
    }
    struct profile_identity *i = identity_of(&f->profile, fate->identity);
    if (i) {
        i->others++;
        i->others_ns = time_add(i->others_ns, fate->duration);
    }
}
