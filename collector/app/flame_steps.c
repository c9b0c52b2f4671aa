// SPDX-License-Identifier: Apache-2.0
#include "app/flame_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "codec/json.h"

// For so long the processes of requests are learned, once there is one.
static const int64_t LEARN_NS = SECOND_NS / 2;
// Patterns stand for so long at a time, and as long again while a request is open; between two such
// windows they are off for that long. Requests that are rare cost the others little.
static const int64_t WINDOW_NS = 5LL * SECOND_NS;
// Behind the last message of the trace the fates of requests come: their grace time, and that of
// questions about their identity.
static const int64_t FATES_NS = GRACE_NS + GRACE_ASK_NS + SECOND_NS;
// So long where messages from before its end are on their way still.
static const int64_t LATE_FATES_NS = 20LL * SECOND_NS;

void flame_enter(struct flame_job *f, enum flame_state state) {
    f->state = state;
    f->since = clock_monotonic();
}

void flame_set_reason(struct flame_job *f, const char *reason, const char *text) {
    if (!f->reason[0]) {
        snprintf(f->reason, sizeof f->reason, "%s", reason);
        snprintf(f->text, sizeof f->text, "%s", text);
    }
}

void flame_drop_trace(struct flame_job *f) {
    if (f->trace && f->state < WRITES) {
        pipeline_remove_full(f->shim.node, f->trace);
    }
    full_trace_free(f->trace);
    f->trace = NULL;
}

void flame_over(struct flame_job *f, int64_t profile) {
    flame_tell_end(f, profile);
    flame_drop_trace(f);
    flame_enter(f, OVER);
}

void flame_traces_no_more(struct flame_job *f) {
    if (f->started) {
        flame_enter(f, CLOSING);
    } else {
        flame_over(f, 0);
    }
}

void flame_forget(struct flame_job *f) {
    for (uint32_t i = 0; i < f->application_count; i++) {
        free(f->applications[i]);
    }
    for (uint32_t i = 0; i < f->module_count; i++) {
        free(f->modules[i]);
    }
    free(f);
}

const char *flame_awaits(const struct flames *flames, const struct flame_job *f) {
    uint32_t others = 0;
    for (const struct flame_job *o = flames->first; o; o = o->next) {
        if (o == f || o->state == WAITS || o->state == OVER) {
            continue;
        }
        if (f->shim.single && o->shim.node == f->shim.node && o->state < WRITES) {
            return "another full trace of this node runs: before OTP 27 it takes one at a time";
        }
        others++;
    }
    return others < LIMIT_FULL_TRACES
               ? NULL
               : "the collector takes no more full traces at a time: one has to end first";
}

static void ask_missed(struct flame_job *f) {
    if (f->shim.link) {
        missed_ask(&f->missed, f->trace, &f->shim, f->id);
    }
}

void flame_stop_shim(struct flame_job *f, enum flame_state state) {
    if (f->trace) {
        ask_missed(f);
    }
    flame_tell_stop(f);
    flame_enter(f, state);
}

// What was asked for, as a JSON object.
static void put_settings(const struct flame_job *f, struct profile_head *head) {
    struct buffer b = buffer_make(sizeof head->settings - 1);
    struct json j = json_make(&b);
    json_open(&j, '{');
    json_key_int(&j, "requests", f->requests);
    json_key_int(&j, "seconds", f->seconds);
    json_key_int(&j, "functions", f->functions);
    json_key_int(&j, "processes", f->processes);
    json_key(&j, "new_processes");
    json_bool(&j, f->new_processes);
    json_key(&j, "scheduling");
    json_bool(&j, f->scheduling);
    if (f->only[0]) {
        json_key_text(&j, "only", f->only);
    }
    json_close(&j, '}');
    snprintf(head->settings, sizeof head->settings, "%.*s", b.failed ? 2 : (int)b.len,
             b.failed ? "{}" : (const char *)b.data);
    buffer_free(&b);
}

// No more fates come: the profile is what there is.
static void close_profile(struct flame_job *f) {
    struct profile *p = full_trace_profile(f->trace);
    full_trace_close(f->trace);
    full_trace_off(f->trace, pipeline_node_time(f->shim.node)); // if nobody has told
    pipeline_remove_full(f->shim.node, f->trace);
    if (!full_trace_reached(f->trace)) { // a picture of the tiers alone tells nothing new
        p->counts.unseen += p->counts.requests;
        p->counts.requests = 0;
    }
    if (p->counts.requests == 0) {
        f->state = WRITES;
        flame_over(f, 0);
        return;
    }
    p->head.kind = PROFILE_FULL;
    p->head.begin_ns = f->started;
    p->head.end_ns = clock_wall();
    snprintf(p->head.name, sizeof p->head.name, "%s", f->name);
    snprintf(p->head.node, sizeof p->head.node, "%s", pipeline_node_name(f->shim.node));
    snprintf(p->head.otp, sizeof p->head.otp, "%s", f->shim.otp);
    p->head.asleep_in_self = !f->scheduling;
    p->head.gc_in_self = !f->gc;
    p->counts.functions = f->functions > 0 ? (uint64_t)f->functions : 0;
    missed_keep(&f->missed, f->trace);
    put_settings(f, &p->head);
    flame_enter(f, WRITES);
}

// Whether no fate comes any more that counts.
static bool fates_over(const struct flame_job *f, int64_t waited) {
    bool late = f->shim.link && !pipeline_settled(f->shim.node, f->shut);
    return full_trace_done(f->trace) || waited > (late ? LATE_FATES_NS : FATES_NS);
}

// The shim is told to begin. False when that cannot be, and that is the reason.
static bool begin(struct flame_job *f) {
    if (!flame_ask_shim(f, true)) {
        flame_set_reason(f, "error", "too many processes and names for one message");
        return false;
    }
    f->enough = false;
    flame_enter(f, ASKED);
    return true;
}

// Others run. When it may begin, the shim looks whether there are such modules.
static void wait_for_others(struct flames *flames, struct flame_job *f) {
    if (f->reason[0]) {
        flame_over(f, 0);
    } else if (!flame_awaits(flames, f)) {
        flame_ask_shim(f, false);
        flame_enter(f, LEARNS);
    }
}

// Which processes requests go through is not known before one has come.
static void learn(struct flame_job *f, int64_t waited) {
    uint64_t pid;
    bool known = pipeline_processes(f->shim.node, &pid, 1) > 0;
    if (f->reason[0] || (!known && waited >= f->seconds * SECOND_NS)) {
        flame_set_reason(f, "time_limit", "");
        flame_over(f, 0);
    } else if (known && f->learned == 0) {
        f->learned = waited > 0 ? waited : 1;
    } else if (known && waited - f->learned > LEARN_NS && !begin(f)) {
        flame_over(f, 0);
    }
}

// A window is open: whether it, or all, is over.
static void run(struct flame_job *f, int64_t now) {
    int64_t waited = now - f->since;
    ask_missed(f);
    bool waits = full_trace_busy(f->trace) && waited < 2 * WINDOW_NS;
    if (full_trace_done(f->trace)) {
        flame_set_reason(f, "done", "");
        flame_stop_shim(f, STOPPING);
    } else if (now >= f->deadline) {
        flame_set_reason(f, "time_limit", "");
        flame_stop_shim(f, STOPPING);
    } else if (full_trace_enough(f->trace)) {
        f->enough = true;
        if (f->label != 0) { // no other one comes
            flame_set_reason(f, "done", "");
        }
        flame_stop_shim(f, f->label != 0 ? STOPPING : PAUSES);
    } else if (waited > WINDOW_NS && !waits && f->label == 0) {
        flame_stop_shim(f, PAUSES);
    }
}

// Between two windows. Fates of requests of the last one still come. When it was closed as enough
// had come, and too many turned out to be incomplete, the next one need not wait.
static void rest(struct flame_job *f, int64_t now) {
    if (f->reason[0] || full_trace_done(f->trace) || now >= f->deadline) {
        flame_set_reason(f, now >= f->deadline ? "time_limit" : "done", "");
        flame_enter(f, CLOSING);
    } else if (now - f->since > WINDOW_NS || (f->enough && !full_trace_awaits_fates(f->trace))) {
        begin(f);
    }
}

static void step(struct flames *flames, struct flame_job *f, int64_t now) {
    int64_t waited = now - f->since;
    if (f->trace && f->state < WRITES && f->shim.link) {
        names_ask(f->trace, &f->shim, f->id);
    }
    switch (f->state) {
    case WAITS:
        wait_for_others(flames, f);
        break;
    case LEARNS:
        learn(f, waited);
        break;
    case ASKED:
    case PAUSES:
    case STOPPING:
        if (waited > (int64_t)START_SECONDS * SECOND_NS) {
            flame_set_reason(f, "error",
                             "the node does not answer; its shim may be of an older release");
            flame_traces_no_more(f);
        }
        break;
    case RUNS:
        run(f, now);
        break;
    case RESTS:
        rest(f, now);
        break;
    case CLOSING:
        if (fates_over(f, waited)) {
            close_profile(f);
        }
        break;
    case WRITES:
        if (!flames->writer) {
            flame_over(f, 0);
            break;
        }
        f->handed = f->handed || writer_keep(flames->writer, full_trace_profile(f->trace));
        break;
    case OVER:
        break;
    }
}

static void take_kept(struct flames *flames) {
    const struct profile *kept;
    int64_t id;
    while (flames->writer && writer_kept(flames->writer, &kept, &id)) {
        if (stack_run_kept(&flames->runs, kept, id)) {
            continue;
        }
        for (struct flame_job *f = flames->first; f; f = f->next) {
            if (f->trace && full_trace_profile(f->trace) == kept) {
                flame_over(f, id);
                break;
            }
        }
    }
}

void flame_tick(struct flames *flames, int64_t now, bool second) {
    bool traces = false;
    take_kept(flames);
    stack_runs_tick(&flames->runs, flames->writer, now, second);
    for (struct flame_job **at = &flames->first; *at;) {
        struct flame_job *f = *at;
        step(flames, f, now);
        traces = traces || f->trace;
        if (second && f->state < OVER) {
            flame_tell(f, f->state == WAITS ? flame_awaits(flames, f) : NULL);
        }
        if (f->state == OVER) {
            *at = f->next;
            flame_forget(f);
            flames->count--;
        } else {
            at = &f->next;
        }
    }
    if (!traces) {
        pipeline_spare(flames->pipeline, SPARED_TRACES, 0);
    }
}

void flames_end(struct flames *flames) {
    enum { MOST_MS = 3000, STEP_MS = 20 };
    for (struct flame_job *f = flames->first; f; f = f->next) {
        flame_set_reason(f, "error", "the collector ended");
        if (f->trace && f->state < WRITES) {
            close_profile(f);
        } else if (!f->trace && f->state != OVER) {
            flame_over(f, 0);
        }
    }
    stack_runs_end(&flames->runs);
    for (int ms = 0; (flames->first || flames->runs.first) && ms < MOST_MS; ms += STEP_MS) {
        flame_tick(flames, clock_monotonic(), false);
        bool more = flames->first || flames->runs.first;
        struct timespec wait = {.tv_nsec = more ? STEP_MS * 1000000 : 0};
        nanosleep(&wait, NULL);
    }
}
