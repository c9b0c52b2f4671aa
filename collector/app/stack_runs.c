// SPDX-License-Identifier: Apache-2.0
#include "app/stack_run_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text_time.h"
#include "model/profile/sample_weights.h"

static void enter(struct stack_run *r, enum run_state state) {
    r->state = state;
    r->since = clock_monotonic();
}

static void set_reason(struct stack_run *r, struct slice reason, struct slice text) {
    if (!r->reason[0]) { // the first one stays
        names_clean(reason, r->reason, sizeof r->reason);
        names_clean(text, r->text, sizeof r->text);
    }
}

static void forget(struct stack_run *r) {
    sample_taker_free(r->taker);
    sample_view_free(r->view);
    profile_free(&r->profile);
    free(r);
}

// It is over; profile: its number, 0: there is none.
static void end(struct stack_run *r, int64_t profile) {
    stack_run_tell_end(r, profile);
    enter(r, OVER);
}

static void tell_stop(const struct stack_run *r) {
    stack_run_tell_shim(r, CONTROL_STACKS_STOP);
}

// Every second: one that lost looks goes on with what the shim tells anew.
static void catch_up(struct stack_run *r, int64_t now) {
    if (r->passed_on && r->relay.behind && r->state == RUNS && now >= r->anew_at) {
        stack_run_tell_shim(r, CONTROL_STACKS_ANEW);
        r->anew_at = now + (int64_t)ANEW_SECONDS * SECOND_NS;
    }
}

// -- asking -------------------------------------------------------------------------------------

// Whether one of that kind looks at the node.
static bool is_on(const struct stack_runs *runs, const void *link, bool standing) {
    for (const struct stack_run *r = runs->first; r; r = r->next) {
        if (r->shim.link == link && r->state < CLOSED && stands(r) == standing) {
            return true;
        }
    }
    return false;
}

// Why there is no room for one.
static const char *refusal(const struct stack_runs *runs, const void *link, bool standing) {
    return is_on(runs, link, standing)
               ? "stacks of this node are sampled already; one run of a node at a time"
           : standing && runs->standing >= LIMIT_STANDING_RUNS
               ? "the collector samples the stacks of no more nodes for ever"
           : !standing && runs->count >= LIMIT_STACK_RUNS
               ? "the collector samples the stacks of no more nodes at a time; try again when a run "
                 "is over"
               : NULL;
}

// For what the shim sends: it is kept or, where the tool wants to see it as it goes, shown, or
// both; or it is passed on.
static bool make_room(struct stack_run *r, struct control_map message) {
    struct slice by = slice_text("");
    bool keep = false;
    control_get_bool(message, FIELD_LOOKS, &r->passed_on);
    if (r->passed_on) {
        return true;
    }
    control_get_int(message, FIELD_VIEW_S, &r->view_s);
    control_get_text(message, FIELD_BY, &by);
    r->view_by = slice_is(by, "memory")              ? VIEW_BY_MEMORY
                 : slice_is(by, "message_queue_len") ? VIEW_BY_QUEUE
                                                     : VIEW_BY_REDUCTIONS;
    control_get_bool(message, FIELD_KEEP, &keep);
    if (keep || r->view_s <= 0) {
        r->taker = sample_taker_new(&r->profile);
    }
    if (r->view_s <= 0 || (keep && !r->taker)) {
        return r->taker;
    }
    r->view_s = r->view_s < LIMIT_SAMPLE_SECONDS ? r->view_s : LIMIT_SAMPLE_SECONDS;
    r->view_in = r->view_s;
    r->view = sample_view_new();
    return r->view;
}

// Puts one behind those that have begun before: their profiles are written before its own. Returns
// its place.
static struct stack_run **add(struct stack_runs *runs, struct stack_run *r) {
    struct stack_run **at = &runs->first;
    while (*at) {
        at = &(*at)->next;
    }
    *at = r;
    *(stands(r) ? &runs->standing : &runs->count) += 1;
    stack_run_measure(runs, r);
    return at;
}

// Takes out one that is over. at: where its place is told.
static void take_out(struct stack_runs *runs, struct stack_run **at) {
    struct stack_run *r = *at;
    *at = r->next;
    *(stands(r) ? &runs->standing : &runs->count) -= 1;
    runs->bytes -= r->bytes;
    forget(r);
}

const char *stack_run_begin(struct stack_runs *runs, const struct flame_shim *shim,
                            struct control_map message, const struct stack_asker *asker) {
    struct slice name = slice_text(""), label = slice_text(""), trigger = slice_text("");
    int64_t slice_s = 0;
    control_get_int(message, FIELD_SLICE_S, &slice_s);
    const char *why = refusal(runs, shim->link, slice_s > 0);
    if (why) {
        return why;
    }
    struct stack_run *r = calloc(1, sizeof *r);
    if (!r || !profile_init(&r->profile) || !make_room(r, message)) {
        if (r) {
            forget(r);
        }
        return "the collector is out of memory";
    }
    r->asker = *asker;
    r->shim = *shim;
    r->id = ++runs->last_id;
    r->slice_s = slice_s < LIMIT_SLICE_SECONDS ? slice_s : LIMIT_SLICE_SECONDS;
    struct profile_head *head = &r->profile.head;
    head->kind = PROFILE_SAMPLES;
    control_get_text(message, FIELD_NAME, &name);
    control_get_text(message, FIELD_LABEL, &label);
    control_get_text(message, FIELD_TRIGGER, &trigger);
    names_clean(name.len > 0 ? name : label, head->name, sizeof head->name);
    names_clean(label, head->label, sizeof head->label);
    names_clean(trigger, head->trigger, sizeof head->trigger);
    snprintf(head->node, sizeof head->node, "%s", pipeline_node_name(shim->node));
    snprintf(head->otp, sizeof head->otp, "%s", shim->otp);
    stack_run_put_settings(head, message, r->slice_s);
    struct stack_run **at = add(runs, r);
    why = !stack_runs_provide(runs)
              ? "the collector has too many open requests for a profile beside them"
          : stack_run_ask_shim(r, message) ? NULL
                                           : "the names are too long for one message";
    if (why) {
        take_out(runs, at);
        return why;
    }
    enter(r, ASKED);
    return NULL;
}

// -- what shims say -------------------------------------------------------------------------------

static struct stack_run *of_number(const struct stack_runs *runs, const void *link, int64_t id) {
    struct stack_run *r = runs->first;
    while (r && (r->id != id || r->shim.link != link || r->state >= CLOSED)) {
        r = r->next;
    }
    return r;
}

static struct stack_run *named(const struct stack_runs *runs, const void *link,
                               struct control_map message) {
    int64_t id = 0;
    control_get_int(message, FIELD_ID, &id);
    return of_number(runs, link, id);
}

bool stack_run_stands(const struct stack_runs *runs, const void *link, int64_t id) {
    const struct stack_run *r = of_number(runs, link, id);
    return r && stands(r);
}

// From the node's time `begin` on it is told what the requests are called whose tokens the
// processes hold.
static void follow_requests(struct stack_run *r, int64_t begin) {
    pipeline_add_sampled(r->shim.node, sample_taker_labels(r->taker), begin);
    r->begin = begin;
    r->follows = true;
}

static bool find_request(void *run, struct sample_request *request) {
    const struct stack_run *r = run;
    return pipeline_find_request(r->shim.node, r->begin, request);
}

// Those that are known by now. False without memory.
static bool settle_requests(struct stack_run *r) {
    bool ok = sample_labels_settle(sample_taker_labels(r->taker), find_request, r);
    if (r->follows) {
        pipeline_remove_sampled(r->shim.node, sample_taker_labels(r->taker));
        r->follows = false;
    }
    return ok;
}

void stack_run_started(struct stack_runs *runs, const void *link, struct control_map message) {
    struct stack_run *r = named(runs, link, message);
    int64_t at = 0;
    if (r && r->started == 0) {
        r->started = clock_wall();
        if (r->taker && control_get_int(message, FIELD_AT, &at)) {
            follow_requests(r, pipeline_ns(r->shim.node, at));
        }
        if (r->state == ASKED) {
            enter(r, RUNS);
        }
    }
}

static bool take_looks(struct stack_run *r, struct slice bytes) {
    return (!r->passed_on || stack_run_pass_on(r, bytes)) &&
           (!r->view || sample_view_take(r->view, bytes)) &&
           (!r->taker || sample_taker_take(r->taker, bytes));
}

static void take_numbers(struct stack_run *r, struct control_map message) {
    for (int i = 0; i < NUMBERS; i++) {
        control_get_int(message, stack_run_numbers[i], &r->told[i]);
        r->told[i] = r->told[i] > 0 ? r->told[i] : 0;
    }
}

static void end_without_memory(struct stack_run *r) {
    set_reason(r, slice_text("error"), slice_text("the collector is out of memory"));
    end(r, 0);
}

// What there is becomes a profile, which ends then, ns since 1970.
static void close_at(struct stack_run *r, int64_t end_ns) {
    struct profile *p = &r->profile;
    if (r->view) {
        stack_run_tell_view(r);
    }
    if (!r->taker) {
        end(r, 0);
        return;
    }
    struct sample_counts *c = &p->samples->counts;
    p->head.begin_ns = r->started;
    p->head.end_ns = end_ns;
    p->counts.processes = p->samples->process_count;
    c->cost_us = (uint64_t)(r->told[COST] > r->cost_before ? r->told[COST] - r->cost_before : 0);
    p->stacks.full = p->stacks.full || p->samples->full;
    bool settled = settle_requests(r);
    sample_taker_free(r->taker);
    r->taker = NULL;
    if (r->started == 0 || c->looks == 0) {
        end(r, 0);
    } else if (!settled) {
        end_without_memory(r);
    } else {
        enter(r, CLOSED);
    }
}

static void close_run(struct stack_run *r) {
    close_at(r, clock_wall());
}

// -- for ever -------------------------------------------------------------------------------------

enum { NEARLY_FULL = 7, FULL = 8 }; // eighths

// Whether one that stands has so many eighths of its room.
static bool passes(const struct stack_runs *runs, const struct stack_run *r, uint32_t eighths) {
    const struct profile *p = &r->profile;
    const struct samples *s = p->samples;
    return !stack_run_has_room(runs, r, eighths) || s->full || p->stacks.full ||
           s->records.len > LIMIT_SLICE_BYTES / 8 * eighths ||
           p->stacks.names.count > LIMIT_SLICE_NAMES / 8 * eighths ||
           p->stacks.stack_count > LIMIT_SAMPLE_STACKS / 8 * eighths ||
           s->process_count > LIMIT_SAMPLE_PROCESSES / 8 * eighths;
}

// One profile of those that stand is closed at a time.
static bool closes(const struct stack_runs *runs) {
    for (const struct stack_run *r = runs->first; r; r = r->next) {
        if (stands(r) && (r->state == CLOSED || r->state == WRITES)) {
            return true;
        }
    }
    return false;
}

// Its profile has its time, or is nearly full: from where the shim tells its names anew on, what
// comes is the next one's. Until then there is room in this one.
static void look_ahead(const struct stack_runs *runs, struct stack_run *r, int64_t now) {
    bool due = now - r->since >= r->slice_s * SECOND_NS || passes(runs, r, NEARLY_FULL) ||
               sample_labels_full(sample_taker_labels(r->taker));
    bool waits = r->asked_anew > 0 && now - r->asked_anew < (int64_t)ANSWER_SECONDS * SECOND_NS;
    if (due && !waits && !closes(runs)) {
        r->asked_anew = now;
        stack_run_tell_shim(r, CONTROL_STACKS_ANEW);
    }
}

// The next profile of a run, which is the shim's from here on. NULL without memory.
static struct stack_run *next_profile(struct stack_runs *runs, struct stack_run *r) {
    struct stack_run *n = calloc(1, sizeof *n);
    if (!n || !profile_init(&n->profile) || !(n->taker = sample_taker_new(&n->profile))) {
        if (n) {
            forget(n);
        }
        return NULL;
    }
    n->asker = r->asker;
    n->shim = r->shim;
    n->id = r->id;
    n->slice_s = r->slice_s;
    n->profile.head = r->profile.head;
    int64_t later = (int64_t)sample_taker_us(r->taker) * 1000;
    n->started = r->started + later;
    memcpy(n->told, r->told, sizeof n->told);
    n->cost_before = r->told[COST];
    enter(n, RUNS);
    r->asker.user = NULL;
    set_reason(r, slice_text("slice"), slice_text(""));
    add(runs, n);
    if (r->follows) {
        follow_requests(n, r->begin + later);
    }
    return n;
}

// Records of one that stands: who gets them. They begin another profile where that was asked for.
static struct stack_run *go_on(struct stack_runs *runs, struct stack_run *r, struct slice records) {
    if (r->asked_anew == 0 || records.len == 0 || records.data[0] != SAMPLE_FORGET ||
        closes(runs)) {
        return r;
    }
    struct stack_run *next = next_profile(runs, r);
    r->asked_anew = 0;
    if (next) {
        close_at(r, next->started);
    }
    return next ? next : r;
}

// Whether a run has no room for more.
static bool is_full(const struct stack_runs *runs, const struct stack_run *r) {
    return stands(r) ? passes(runs, r, FULL)
                     : !stack_run_has_room(runs, r, FULL) || (r->taker && r->profile.samples->full);
}

_Static_assert(LIMIT_SAMPLE_BYTES == 8u << 20 && LIMIT_SAMPLE_PROCESSES == 5000 &&
                   LIMIT_RUNS_BYTES == 60000000,
               "on_full() says so");

static void on_full(struct stack_run *r) {
    set_reason(r, slice_text("full"),
               slice_text(stands(r) ? "the node or the database did not keep up"
                                    : "the collector keeps 8 MB and 5,000 processes of a run, and "
                                      "60 MB of all runs"));
    tell_stop(r);
    enter(r, STOPPING);
}

void stack_run_taken(struct stack_runs *runs, const void *link, struct control_map message) {
    struct stack_run *r = named(runs, link, message);
    struct slice bytes = slice_text("");
    if (!r || r->started == 0) {
        return;
    }
    take_numbers(r, message);
    control_get_bytes(message, FIELD_BYTES, &bytes);
    r = stands(r) && r->taker ? go_on(runs, r, bytes) : r;
    bool good = take_looks(r, bytes);
    stack_run_measure(runs, r);
    stack_runs_provide(runs);
    if (!good) {
        set_reason(r, slice_text("error"), slice_text("the node sent what are no samples"));
        tell_stop(r);
        close_run(r);
    } else if (r->state == RUNS && is_full(runs, r)) {
        on_full(r);
    }
}

void stack_run_stopped(struct stack_runs *runs, const void *link, struct control_map message) {
    struct stack_run *r = named(runs, link, message);
    struct slice reason = slice_text("error"), text = slice_text("");
    if (r) {
        take_numbers(r, message);
        control_get_text(message, FIELD_REASON, &reason);
        control_get_text(message, FIELD_TEXT, &text);
        set_reason(r, reason, text);
        close_run(r);
    }
}

void stack_run_lost(struct stack_runs *runs, const void *link) {
    for (struct stack_run *r = runs->first; r; r = r->next) {
        if (r->shim.link == link && r->state != OVER) {
            r->asker.user = r->asker.user == link ? NULL : r->asker.user;
            r->shim.link = NULL;
            if (r->state < CLOSED) {
                set_reason(r, slice_text("error"), slice_text("the node is gone"));
                close_run(r);
            }
        }
    }
}

void stack_run_stop(struct stack_runs *runs, const void *user, bool gone) {
    for (struct stack_run *r = runs->first; r; r = r->next) {
        if (r->asker.user == user) {
            if (r->state == ASKED || r->state == RUNS) {
                set_reason(r, slice_text("stopped"), slice_text(""));
                tell_stop(r);
                enter(r, STOPPING);
            }
            r->asker.user = gone ? NULL : r->asker.user;
        }
    }
}

bool stack_runs_tell(const struct stack_runs *runs, const struct pipeline_node *node, char *text,
                     size_t room) {
    struct buffer b = buffer_make(room - 1);
    for (const struct stack_run *r = runs->first; r; r = r->next) {
        const struct samples *s = r->profile.samples;
        const char *name = r->profile.head.name;
        char since[TEXT_TIME_BYTES];
        if (r->shim.node == node && r->state == RUNS) {
            buffer_printf(&b, "%s%s%s%s%s: %" PRId64 " processes, %" PRId64 " looks since %s",
                          b.len > 0 ? "; " : "", stands(r) ? "for ever" : "for now",
                          name[0] ? " (" : "", name, name[0] ? ")" : "", r->told[PROCESSES],
                          s ? (int64_t)(s->counts.looks + s->counts.unchanged) : r->told[0],
                          text_time_format(r->started, false, since));
        }
    }
    snprintf(text, room, "%.*s", (int)b.len, b.data ? (const char *)b.data : "");
    buffer_free(&b);
    return text[0];
}

// -- time -----------------------------------------------------------------------------------------

// Whether one is weighed and waits for the writer, or is with it: another one has to wait, as that
// takes memory.
static bool writes(const struct stack_runs *runs) {
    const struct stack_run *r = runs->first;
    while (r && r->state != WRITES) {
        r = r->next;
    }
    return r;
}

static void step(const struct stack_runs *runs, struct stack_run *r, struct writer *writer,
                 int64_t now) {
    bool silent = now - r->since > (int64_t)ANSWER_SECONDS * SECOND_NS;
    if ((r->state == ASKED || r->state == STOPPING) && silent) {
        set_reason(r, slice_text("error"),
                   slice_text("the node does not answer; its shim may be of an older release"));
        close_run(r);
    }
    if (r->state == RUNS && stands(r) && r->taker) {
        look_ahead(runs, r, now);
    }
    if (r->state == CLOSED && !writer) {
        end(r, 0);
    } else if (r->state == CLOSED && !writes(runs)) {
        if (samples_weigh(&r->profile, &(struct sample_choice){.kept = true})) {
            enter(r, WRITES);
        } else {
            end_without_memory(r);
        }
    }
    if (r->state == WRITES && !r->handed) {
        r->handed = writer_keep(writer, &r->profile);
    }
}

void stack_runs_tick(struct stack_runs *runs, struct writer *writer, int64_t now, bool second) {
    for (struct stack_run **at = &runs->first; *at;) {
        struct stack_run *r = *at;
        step(runs, r, writer, now);
        stack_run_measure(runs, r);
        if (second && r->state < OVER) {
            stack_run_tell_state(r);
        }
        if (second && r->view && r->state == RUNS && --r->view_in <= 0) {
            stack_run_tell_view(r);
        }
        if (second) {
            catch_up(r, now);
        }
        if (r->state == OVER) {
            take_out(runs, at);
        } else {
            at = &r->next;
        }
    }
    stack_runs_provide(runs);
}

bool stack_run_kept(struct stack_runs *runs, const struct profile *profile, int64_t id) {
    for (struct stack_run *r = runs->first; r; r = r->next) {
        if (&r->profile == profile) {
            end(r, id);
            return true;
        }
    }
    return false;
}

void stack_runs_end(struct stack_runs *runs) {
    for (struct stack_run *r = runs->first; r; r = r->next) {
        if (r->state < CLOSED) {
            set_reason(r, slice_text("error"), slice_text("the collector ended"));
            close_run(r);
        }
    }
}
