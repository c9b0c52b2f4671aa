// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "app/stack_run_state.h"
#include "codec/json.h"

enum { MOST_NAMES = 100 };

const char *const stack_run_numbers[NUMBERS] = {FIELD_SAMPLES,  FIELD_UNCHANGED, FIELD_UNANSWERED,
                                                FIELD_HELD_MS,  FIELD_LATE_MS,   FIELD_COST_US,
                                                FIELD_PROCESSES};

// -- telling --------------------------------------------------------------------------------------

static void put_numbers(struct control_writer *w, const struct stack_run *r) {
    for (int i = 0; i < NUMBERS; i++) {
        control_int(w, stack_run_numbers[i], r->told[i]);
    }
    control_int(w, FIELD_LOST, (int64_t)r->relay.lost);
}

void stack_run_tell_state(const struct stack_run *r) {
    if (r->asker.user) {
        struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
        struct control_writer w = control_begin(&b, CONTROL_STACKS_STATE, NUMBERS + 1);
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

void stack_run_tell_view(struct stack_run *r) {
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

void stack_run_tell_end(const struct stack_run *r, int64_t profile) {
    if (r->asker.user) {
        struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
        struct control_writer w = control_begin(&b, CONTROL_STACKS_KEPT, NUMBERS + 5);
        control_int(&w, FIELD_PROFILE, profile);
        control_int(&w, FIELD_SLICE_S, r->slice_s);
        control_text(&w, FIELD_REASON, slice_text(r->reason));
        control_text(&w, FIELD_TEXT, slice_text(r->text));
        put_numbers(&w, r);
        if (control_end(&w)) {
            r->asker.tell(r->asker.user, &b, true);
        }
        buffer_free(&b);
    }
}

void stack_run_tell_shim(const struct stack_run *r, const char *type) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, type, 1);
    control_int(&w, FIELD_ID, r->id);
    if (control_end(&w) && r->shim.link) {
        r->shim.send(r->shim.link, &b);
    }
    buffer_free(&b);
}

// -- passing on -----------------------------------------------------------------------------------

static bool put_looks(const struct stack_run *r, struct slice records, struct buffer *b) {
    struct control_writer w = control_begin(b, CONTROL_STACKS_LOOKS, 3);
    control_text(&w, FIELD_NODE, slice_text(r->profile.head.node));
    control_int(&w, FIELD_AT, r->started);
    control_bytes(&w, FIELD_BYTES, records);
    return control_end(&w);
}

bool stack_run_pass_on(struct stack_run *r, struct slice taken) {
    struct buffer records = buffer_make(LIMIT_CONTROL_BYTES),
                  b = buffer_make(LIMIT_CONTROL_BYTES + CONTROL_HEADER);
    bool good = sample_relay_take(&r->relay, taken, &records);
    struct slice passed = slice_of(records.data, records.len);
    if (good && passed.len > 0 &&
        !(r->asker.user && put_looks(r, passed, &b) && r->asker.tell(r->asker.user, &b, false))) {
        sample_relay_lose(&r->relay, passed);
    }
    buffer_free(&b);
    buffer_free(&records);
    return good;
}

// -- to the page ----------------------------------------------------------------------------------

void stack_runs_json(const struct stack_runs *runs, struct json *j) {
    for (const struct stack_run *r = runs->first; r; r = r->next) {
        if (r->state == RUNS && r->taker) { // else nothing is kept of it
            json_open(j, '{');
            json_key_text(j, "node", r->profile.head.node);
            json_key_text(j, "name", r->profile.head.name);
            json_key_text(j, "label", r->profile.head.label);
            json_key_text(j, "trigger", r->profile.head.trigger);
            json_key_int(j, "since_s", r->started / SECOND_NS);
            json_key(j, "stands");
            json_bool(j, stands(r));
            json_close(j, '}');
        }
    }
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

bool stack_run_ask_shim(const struct stack_run *r, struct control_map message) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_STACKS, ASKED_NUMBERS + 7);
    struct slice by = slice_text("reductions"), application = slice_text("");
    control_get_text(message, FIELD_BY, &by);
    control_get_text(message, FIELD_APPLICATION, &application);
    control_int(&w, FIELD_ID, r->id);
    control_int(&w, FIELD_SLICE_S, r->slice_s);
    for (int i = 0; i < ASKED_NUMBERS; i++) {
        int64_t value = 0;
        control_get_int(message, asked[i], &value);
        control_int(&w, asked[i], value);
    }
    control_text(&w, FIELD_BY, by);
    control_text(&w, FIELD_APPLICATION, application);
    control_bool(&w, FIELD_LABELS, r->taker != NULL);
    copy_names(&w, message, FIELD_REGISTERED, FIELD_NAME);
    copy_names(&w, message, FIELD_PROCESSES, FIELD_PID);
    bool fits = control_end(&w);
    if (fits) {
        r->shim.send(r->shim.link, &b);
    }
    buffer_free(&b);
    return fits;
}

void stack_run_put_settings(struct profile_head *head, struct control_map message,
                            int64_t slice_s) {
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
    if (slice_s > 0) {
        json_key_int(&j, FIELD_SLICE_S, slice_s);
    }
    if (head->trigger[0]) {
        json_key_text(&j, FIELD_TRIGGER, head->trigger);
    }
    json_close(&j, '}');
    snprintf(head->settings, sizeof head->settings, "%.*s", b.failed ? 2 : (int)b.len,
             b.failed ? "{}" : (const char *)b.data);
    buffer_free(&b);
}
