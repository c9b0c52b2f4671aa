// SPDX-License-Identifier: Apache-2.0
#include "app/flame_state.h"

#include "base/clock.h"
#include "report/flame.h"

// -- to who has asked -----------------------------------------------------------------------------

static void put_counts(struct control_writer *w, const struct flame_job *f) {
    struct profile_counts none = {0};
    const struct profile_counts *c = f->trace ? &full_trace_profile(f->trace)->counts : &none;
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {{FIELD_REQUESTS, c->requests},
                  {FIELD_INCOMPLETE, c->incomplete},
                  {FIELD_OTHERS, c->others},
                  {FIELD_UNSEEN, c->unseen},
                  {FIELD_PARTLY, c->partly},
                  {FIELD_MESSAGES, c->messages},
                  {FIELD_FUNCTIONS, (uint64_t)f->functions},
                  {FIELD_PROCESSES, (uint64_t)f->processes}};
    _Static_assert(sizeof counts / sizeof *counts == 8, "as many as are announced");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        control_int(w, counts[i].key, (int64_t)counts[i].value);
    }
}

static void put_others(struct control_writer *w, const struct flame_job *f) {
    uint32_t count = 0;
    const struct full_other *others = f->trace ? full_trace_others(f->trace, &count) : NULL;
    control_list(w, FIELD_IDENTITIES, count);
    for (uint32_t i = 0; i < count; i++) {
        control_map(w, 2);
        control_text(w, FIELD_IDENTITY, slice_text(others[i].identity));
        control_int(w, FIELD_REQUESTS, (int64_t)others[i].requests);
    }
}

// What it has cost, as a tool tells it that reads the database; one on another host cannot.
static void put_costs(struct control_writer *w, const struct flame_job *f, int64_t profile) {
    static struct flame_lines lines;
    lines = (struct flame_lines){.most = FLAME_TOLD};
    if (profile > 0 && f->trace) {
        flame_cost(full_trace_profile(f->trace), &lines);
    }
    control_list(w, FIELD_COSTS, lines.count);
    for (uint32_t i = 0; i < lines.count; i++) {
        control_map(w, 1);
        control_text(w, FIELD_TEXT, slice_text(lines.text[i]));
    }
}

// What both messages have: COMMON fields.
enum { COMMON = 9 };
static void tell(struct flame_job *f, struct buffer *b, struct control_writer *w, bool last) {
    put_counts(w, f);
    control_bool(w, FIELD_NEW_PROCESSES, f->new_processes);
    if (control_end(w)) {
        f->asker.tell(f->asker.user, b, last);
    }
    buffer_free(b);
}

void flame_tell(struct flame_job *f, const char *awaits) {
    if (f->asker.user) {
        struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
        struct control_writer w = control_begin(&b, CONTROL_FLAMING, COMMON + 1);
        control_text(&w, FIELD_TEXT, slice_text(awaits ? awaits : ""));
        tell(f, &b, &w, false);
    }
}

void flame_tell_end(struct flame_job *f, int64_t profile) {
    if (f->asker.user) {
        struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
        struct control_writer w = control_begin(&b, CONTROL_FLAMED, COMMON + 6);
        control_int(&w, FIELD_PROFILE, profile);
        control_text(&w, FIELD_REASON, slice_text(f->reason));
        control_text(&w, FIELD_TEXT, slice_text(f->text));
        put_others(&w, f);
        missed_put(&f->missed, f->trace, &w);
        put_costs(&w, f, profile);
        tell(f, &b, &w, true);
    }
}

// -- to the shim ----------------------------------------------------------------------------------

static void put_names(struct control_writer *w, const char *key, char *const *names,
                      uint32_t count) {
    control_list(w, key, count);
    for (uint32_t i = 0; i < count; i++) {
        control_map(w, 1);
        control_text(w, FIELD_NAME, slice_text(names[i]));
    }
}

// How long it may run still, rounded up. Its time begins when this is asked first.
static int64_t seconds_left(struct flame_job *f) {
    int64_t now = clock_monotonic();
    f->deadline = f->deadline > 0 ? f->deadline : now + f->seconds * SECOND_NS;
    return f->deadline > now ? (f->deadline - now) / SECOND_NS + 1 : 0;
}

bool flame_ask_shim(struct flame_job *f, bool begin) {
    static uint64_t pids[LIMIT_FULL_PIDS];
    uint32_t count = begin ? pipeline_processes(f->shim.node, pids, LIMIT_FULL_PIDS) : 0;
    if (begin && f->trace) { // of a window before
        count += missed_pids(&f->missed, f->trace, pids + count, LIMIT_FULL_PIDS - count);
    }
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_FULL, 7);
    control_int(&w, FIELD_ID, f->id);
    control_int(&w, FIELD_LABEL, f->label);
    control_int(&w, FIELD_SECONDS, begin ? seconds_left(f) + START_SECONDS : f->seconds);
    control_bool(&w, FIELD_ALL, f->all_modules);
    put_names(&w, FIELD_APPLICATIONS, f->applications, f->application_count);
    put_names(&w, FIELD_MODULES, f->modules, f->module_count);
    flame_shim_put_pids(&w, pids, count);
    bool fits = control_end(&w);
    f->asked = pipeline_node_time(f->shim.node);
    if (fits) {
        f->shim.send(f->shim.link, &b);
    }
    buffer_free(&b);
    return fits;
}

void flame_tell_stop(const struct flame_job *f) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_FULL_STOP, 1);
    control_int(&w, FIELD_ID, f->id);
    if (control_end(&w) && f->shim.link) {
        f->shim.send(f->shim.link, &b);
    }
    buffer_free(&b);
}
