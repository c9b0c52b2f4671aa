// SPDX-License-Identifier: Apache-2.0
#include "app/stack_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "codec/json.h"
#include "model/profile/sample_taker.h"
#include "model/profile/sample_view.h"
#include "model/profile/sample_weights.h"

enum {
    SECOND_NS = 1000000000,
    ANSWER_SECONDS = 10, // until a shim has begun, or ended
    REASON_BYTES = 32,
    TEXT_BYTES = 400,
    MOST_NAMES = 100
};

enum run_state {
    ASKED, // the shim has not answered yet
    RUNS,
    STOPPING, // it was told to stop
    WRITES,   // the profile waits for the writer, or is with it
    OVER
};

// The numbers that a shim tells, as they go on to the tool.
static const char *const numbers[] = {FIELD_SAMPLES,  FIELD_UNCHANGED, FIELD_UNANSWERED,
                                      FIELD_HELD_MS,  FIELD_LATE_MS,   FIELD_COST_US,
                                      FIELD_PROCESSES};
enum { NUMBERS = sizeof numbers / sizeof *numbers, COST = 5 };

struct stack_run {
    struct stack_run *next;
    struct stack_asker asker;
    struct flame_shim shim; // its link is NULL when it is gone
    struct profile profile;
    struct sample_taker *taker; // NULL: nothing is kept
    struct sample_view *view;   // shown to who has asked as it goes; NULL: it is not
    enum view_by view_by;
    int64_t view_s, view_in; // how often, and seconds until the next one
    enum run_state state;
    int64_t id;
    int64_t since;   // of the state, monotonic ns
    int64_t started; // ns since 1970; 0: it has not
    int64_t told[NUMBERS];
    bool handed; // to the writer
    char reason[REASON_BYTES];
    char text[TEXT_BYTES];
};

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

// -- telling --------------------------------------------------------------------------------------

static void put_numbers(struct control_writer *w, const struct stack_run *r) {
    for (int i = 0; i < NUMBERS; i++) {
        control_int(w, numbers[i], r->told[i]);
    }
}

static void tell_state(struct stack_run *r) {
    if (r->asker.user) {
        struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
        struct control_writer w = control_begin(&b, CONTROL_STACKS_STATE, NUMBERS);
        put_numbers(&w, r);
        if (control_end(&w)) {
            r->asker.tell(r->asker.user, &b, false);
        }
        buffer_free(&b);
    }
}

static void put_process(struct control_writer *w, const struct view_process *p) {
    bool memory = p->now.memory >= 0;
    control_map(w, memory ? 13 : 11);
    control_text(w, FIELD_PID, slice_text(p->pid));
    control_text(w, FIELD_NAME, slice_text(p->name));
    control_text(w, FIELD_INITIAL_CALL, slice_text(p->initial));
    control_text(w, FIELD_APPLICATION, slice_text(p->application));
    control_text(w, FIELD_STATUS,
                 slice_text(p->gone                        ? "ended"
                            : p->looks + p->unchanged == 0 ? "did not answer"
                                                           : samples_status(p->status)));
    control_text(w, FIELD_FUNCTION, slice_text(p->function));
    control_int(w, FIELD_REDUCTIONS, p->reductions);
    control_int(w, FIELD_QUEUE, p->now.queue > 0 ? p->now.queue : 0);
    control_int(w, FIELD_QUEUE_CHANGE, p->now.queue - p->before.queue);
    control_int(w, FIELD_SAMPLES, p->looks + p->unchanged);
    control_int(w, FIELD_UNANSWERED, p->unanswered);
    if (memory) {
        control_int(w, FIELD_MEMORY, p->now.memory);
        control_int(w, FIELD_MEMORY_CHANGE, p->now.memory - p->before.memory);
    }
}

// Values in maps and lists, keys included.
enum { OF_PROCESS = 1 + 2 * 13, OF_FUNCTION = 1 + 2 * 3, OF_VIEW = 1 + 2 * 6 };
_Static_assert(OF_VIEW + VIEW_PROCESSES * OF_PROCESS + 2 * VIEW_FUNCTIONS * OF_FUNCTION <=
                   LIMIT_CONTROL_ELEMENTS,
               "a view fits a message");

static bool put_view(struct buffer *b, const struct view *v, uint32_t processes) {
    struct control_writer w = control_begin(b, CONTROL_STACKS_VIEW, 5);
    control_int(&w, FIELD_DURATION_US, (int64_t)v->us);
    control_int(&w, FIELD_SAMPLES, v->looks);
    control_int(&w, FIELD_BUSY, v->busy);
    control_list(&w, FIELD_PROCESSES, processes);
    for (uint32_t i = 0; i < processes; i++) {
        put_process(&w, &v->processes[i]);
    }
    control_list(&w, FIELD_FUNCTIONS, v->function_count);
    for (uint32_t i = 0; i < v->function_count; i++) {
        control_map(&w, 3);
        control_text(&w, FIELD_NAME, slice_text(v->functions[i].name));
        control_int(&w, FIELD_SELF, v->functions[i].self);
        control_int(&w, FIELD_TOTAL, v->functions[i].total);
    }
    return control_end(&w);
}

// Where no time has passed there is nothing to tell yet.
static void tell_view(struct stack_run *r) {
    const struct view *v = r->asker.user ? sample_view_next(r->view, r->view_by) : NULL;
    if (v) {
        struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
        uint32_t processes = v->process_count;
        while (!put_view(&b, v, processes) && processes > 0) { // names may be long: the busiest
            processes /= 2;
        }
        if (b.len > 0) {
            r->asker.tell(r->asker.user, &b, false);
        }
        buffer_free(&b);
        r->view_in = r->view_s;
    }
}

// It is over; profile: its number, 0: there is none.
static void end(struct stack_run *r, int64_t profile) {
    if (r->asker.user) {
        struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
        struct control_writer w = control_begin(&b, CONTROL_STACKS_KEPT, NUMBERS + 3);
        control_int(&w, FIELD_PROFILE, profile);
        control_text(&w, FIELD_REASON, slice_text(r->reason));
        control_text(&w, FIELD_TEXT, slice_text(r->text));
        put_numbers(&w, r);
        if (control_end(&w)) {
            r->asker.tell(r->asker.user, &b, true);
        }
        buffer_free(&b);
    }
    enter(r, OVER);
}

static void tell_stop(const struct stack_run *r) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_STACKS_STOP, 1);
    control_int(&w, FIELD_ID, r->id);
    if (control_end(&w) && r->shim.link) {
        r->shim.send(r->shim.link, &b);
    }
    buffer_free(&b);
}

// -- asking ---------------------------------------------------------------------------------------

static void copy_names(struct control_writer *w, struct control_map message, const char *list,
                       const char *key) {
    struct control_list from = {0};
    control_get_list(message, list, &from);
    uint32_t count = from.count < MOST_NAMES ? from.count : MOST_NAMES;
    control_list(w, list, count);
    for (uint32_t i = 0; i < count; i++) {
        struct slice text = slice_text("");
        control_get_text(control_list_at(from, i), key, &text);
        control_map(w, 1);
        control_text(w, key, text);
    }
}

static const char *const asked[] = {FIELD_SECONDS, FIELD_HZ, FIELD_TOP, FIELD_EVERY_MS,
                                    FIELD_BUDGET_PPM};
enum { ASKED_NUMBERS = sizeof asked / sizeof *asked };

// Passes the question on. False when it is too long for a message.
static bool ask_shim(const struct stack_run *r, struct control_map message) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_STACKS, ASKED_NUMBERS + 5);
    struct slice by = slice_text("reductions"), application = slice_text("");
    control_get_text(message, FIELD_BY, &by);
    control_get_text(message, FIELD_APPLICATION, &application);
    control_int(&w, FIELD_ID, r->id);
    for (int i = 0; i < ASKED_NUMBERS; i++) {
        int64_t value = 0;
        control_get_int(message, asked[i], &value);
        control_int(&w, asked[i], value);
    }
    control_text(&w, FIELD_BY, by);
    control_text(&w, FIELD_APPLICATION, application);
    copy_names(&w, message, FIELD_REGISTERED, FIELD_NAME);
    copy_names(&w, message, FIELD_PROCESSES, FIELD_PID);
    bool fits = control_end(&w);
    if (fits) {
        r->shim.send(r->shim.link, &b);
    }
    buffer_free(&b);
    return fits;
}

// What was asked for, as a JSON object.
static void put_settings(struct profile_head *head, struct control_map message) {
    struct buffer b = buffer_make(sizeof head->settings - 1);
    struct json j = json_make(&b);
    struct slice by = slice_text("reductions");
    char word[REASON_BYTES];
    control_get_text(message, FIELD_BY, &by);
    names_clean(by, word, sizeof word);
    json_open(&j, '{');
    for (int i = 0; i < ASKED_NUMBERS; i++) {
        int64_t value = 0;
        control_get_int(message, asked[i], &value);
        json_key_int(&j, asked[i], value);
    }
    json_key_text(&j, FIELD_BY, word);
    json_close(&j, '}');
    snprintf(head->settings, sizeof head->settings, "%.*s", b.failed ? 2 : (int)b.len,
             b.failed ? "{}" : (const char *)b.data);
    buffer_free(&b);
}

static bool is_on(const struct stack_runs *runs, const void *link) {
    for (const struct stack_run *r = runs->first; r; r = r->next) {
        if (r->shim.link == link && r->state < WRITES) {
            return true;
        }
    }
    return false;
}

// For what the shim sends: it is kept or, where the tool wants to see it as it goes, shown; or
// both.
static bool make_room(struct stack_run *r, struct control_map message) {
    struct slice by = slice_text("");
    bool keep = false;
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

const char *stack_run_begin(struct stack_runs *runs, const struct flame_shim *shim,
                            struct control_map message, const struct stack_asker *asker) {
    struct slice name = slice_text("");
    if (is_on(runs, shim->link)) {
        return "stacks of this node are sampled already; one run of a node at a time";
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
    struct profile_head *head = &r->profile.head;
    head->kind = PROFILE_SAMPLES;
    if (!control_get_text(message, FIELD_NAME, &name) || name.len == 0) {
        control_get_text(message, FIELD_LABEL, &name);
    }
    names_clean(name, head->name, sizeof head->name);
    snprintf(head->node, sizeof head->node, "%s", pipeline_node_name(shim->node));
    snprintf(head->otp, sizeof head->otp, "%s", shim->otp);
    put_settings(head, message);
    if (!ask_shim(r, message)) {
        forget(r);
        return "the names are too long for one message";
    }
    enter(r, ASKED);
    r->next = runs->first;
    runs->first = r;
    runs->count++;
    return NULL;
}

// -- what shims say -------------------------------------------------------------------------------

static struct stack_run *named(const struct stack_runs *runs, const void *link,
                               struct control_map message) {
    int64_t id = 0;
    control_get_int(message, FIELD_ID, &id);
    struct stack_run *r = runs->first;
    while (r && (r->id != id || r->shim.link != link || r->state >= WRITES)) {
        r = r->next;
    }
    return r;
}

void stack_run_started(struct stack_runs *runs, const void *link, struct control_map message) {
    struct stack_run *r = named(runs, link, message);
    if (r && r->started == 0) {
        r->started = clock_wall();
        if (r->state == ASKED) {
            enter(r, RUNS);
        }
    }
}

static void take_numbers(struct stack_run *r, struct control_map message) {
    for (int i = 0; i < NUMBERS; i++) {
        control_get_int(message, numbers[i], &r->told[i]);
        r->told[i] = r->told[i] > 0 ? r->told[i] : 0;
    }
}

// What there is becomes a profile.
static void close_run(struct stack_run *r) {
    struct profile *p = &r->profile;
    if (r->view) {
        tell_view(r);
    }
    if (!r->taker) {
        end(r, 0);
        return;
    }
    struct sample_counts *c = &p->samples->counts;
    p->head.begin_ns = r->started;
    p->head.end_ns = clock_wall();
    p->counts.processes = p->samples->process_count;
    c->cost_us = (uint64_t)r->told[COST];
    p->stacks.full = p->stacks.full || p->samples->full;
    if (r->started == 0 || c->looks == 0) {
        end(r, 0);
    } else if (!samples_weigh(p, &(struct sample_choice){.kept = true})) {
        set_reason(r, slice_text("error"), slice_text("the collector is out of memory"));
        end(r, 0);
    } else {
        enter(r, WRITES);
    }
}

void stack_run_taken(struct stack_runs *runs, const void *link, struct control_map message) {
    struct stack_run *r = named(runs, link, message);
    struct slice bytes;
    if (!r || r->started == 0) {
        return;
    }
    take_numbers(r, message);
    bool good = !control_get_bytes(message, FIELD_BYTES, &bytes) ||
                ((!r->view || sample_view_take(r->view, bytes)) &&
                 (!r->taker || sample_taker_take(r->taker, bytes)));
    if (!good) {
        set_reason(r, slice_text("error"), slice_text("the node sent what are no samples"));
        tell_stop(r);
        close_run(r);
    } else if (r->taker && r->profile.samples->full && r->state == RUNS) {
        set_reason(r, slice_text("full"),
                   slice_text("the collector keeps 8 MB and 5,000 processes of a run"));
        tell_stop(r);
        enter(r, STOPPING);
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
            if (r->state < WRITES) {
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

// -- time -----------------------------------------------------------------------------------------

static void step(struct stack_run *r, struct writer *writer, int64_t now) {
    bool silent = now - r->since > (int64_t)ANSWER_SECONDS * SECOND_NS;
    if ((r->state == ASKED || r->state == STOPPING) && silent) {
        set_reason(r, slice_text("error"),
                   slice_text("the node does not answer; its shim may be of an older release"));
        close_run(r);
    }
    if (r->state == WRITES && !writer) {
        end(r, 0);
    } else if (r->state == WRITES && !r->handed) {
        r->handed = writer_keep(writer, &r->profile);
    }
}

void stack_runs_tick(struct stack_runs *runs, struct writer *writer, int64_t now, bool second) {
    for (struct stack_run **at = &runs->first; *at;) {
        struct stack_run *r = *at;
        step(r, writer, now);
        if (second && r->state < OVER) {
            tell_state(r);
        }
        if (second && r->view && r->state == RUNS && --r->view_in <= 0) {
            tell_view(r);
        }
        if (r->state == OVER) {
            *at = r->next;
            forget(r);
            runs->count--;
        } else {
            at = &r->next;
        }
    }
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
        if (r->state < WRITES) {
            set_reason(r, slice_text("error"), slice_text("the collector ended"));
            close_run(r);
        }
    }
}
