// SPDX-License-Identifier: Apache-2.0
#include "app/flame_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"

// Copies the texts of a list of maps. False when there are too many, or without memory.
static bool take_names(struct control_map message, const char *key, char **names, uint32_t *count) {
    struct control_list list = {0};
    control_get_list(message, key, &list);
    for (uint32_t i = 0; i < list.count; i++) {
        struct slice name;
        if (!control_get_text(control_list_at(list, i), FIELD_NAME, &name)) {
            continue;
        }
        if (*count == LIMIT_FULL_NAMES ||
            !(names[*count] = strndup((const char *)name.data, name.len))) {
            return false;
        }
        ++*count;
    }
    return true;
}

// From now on the node's messages go to it. NULL, or why they do not.
static const char *take_messages(struct flames *flames, struct flame_job *f, int64_t since) {
    struct full_trace_options options = {.since = since,
                                         .requests = (uint32_t)f->requests,
                                         .token = f->label ? hash_mix((uint64_t)f->label) : 0,
                                         .only = f->only[0] ? f->only : NULL,
                                         .scheduling = f->scheduling};
    if (!pipeline_spare(flames->pipeline, SPARED_TRACES, LIMIT_MB_PROFILES)) {
        return "the collector has too many open requests for a profile beside them";
    }
    f->trace = full_trace_new(&options);
    if (!f->trace) {
        return "the collector is out of memory";
    }
    pipeline_add_full(f->shim.node, f->trace);
    return NULL;
}

// Behind all others: of those that wait the first goes first.
static void add(struct flames *flames, struct flame_job *f) {
    struct flame_job **at = &flames->first;
    while (*at) {
        at = &(*at)->next;
    }
    *at = f;
    flames->count++;
}

const char *flame_begin(struct flames *flames, const struct flame_shim *shim,
                        struct control_map message, const struct flame_asker *asker) {
    int64_t requests = 0, seconds = 0;
    struct slice only = slice_text(""), name = slice_text("");
    control_get_int(message, FIELD_REQUESTS, &requests);
    control_get_int(message, FIELD_SECONDS, &seconds);
    control_get_text(message, FIELD_ONLY, &only);
    control_get_text(message, FIELD_NAME, &name);
    if (requests < 1 || requests > LIMIT_FULL_ASKED || seconds < 1 ||
        seconds > LIMIT_FULL_SECONDS) {
        static_assert(LIMIT_FULL_ASKED == 100000 && LIMIT_FULL_SECONDS == 3600, "as it is told");
        return "this collector takes 1 to 100000 requests, and 1 to 3600 seconds";
    }
    if (flames->count >= LIMIT_FULL_TRACES + LIMIT_FULL_WAITING) {
        return "the collector takes no more full traces; try again when one is over";
    }
    struct flame_job *f = calloc(1, sizeof *f);
    if (!f) {
        return "the collector is out of memory";
    }
    *f = (struct flame_job){.asker = *asker,
                            .shim = *shim,
                            .id = ++flames->last_id,
                            .shut = INT64_MIN,
                            .requests = requests,
                            .seconds = seconds};
    names_clean(only, f->only, sizeof f->only);
    names_clean(name, f->name, sizeof f->name);
    control_get_bool(message, FIELD_ALL, &f->all_modules);
    if (!take_names(message, FIELD_APPLICATIONS, f->applications, &f->application_count) ||
        !take_names(message, FIELD_MODULES, f->modules, &f->module_count)) {
        flame_forget(f);
        return "too many applications or modules are named";
    }
    const char *awaits = flame_awaits(flames, f);
    if (asker->user == shim->link && control_get_int(message, FIELD_LABEL, &f->label) &&
        f->label != 0) {
        control_get_bool(message, FIELD_SCHEDULING, &f->scheduling);
        // its messages are taken before the request begins, which does not wait for others
        const char *why = awaits ? awaits : take_messages(flames, f, INT64_MIN);
        if (why) {
            flame_forget(f);
            return why;
        }
    }
    if (!awaits && !flame_ask_shim(f, f->trace)) {
        flame_drop_trace(f);
        flame_forget(f);
        return "the names of the applications and modules are too long for one message";
    }
    flame_enter(f, awaits ? WAITS : f->trace ? ASKED : LEARNS);
    add(flames, f);
    if (awaits) {
        flame_tell(f, awaits);
    }
    return NULL;
}

void flame_stop(struct flames *flames, const void *user, bool gone) {
    for (struct flame_job *f = flames->first; f; f = f->next) {
        if (f->asker.user == user) {
            flame_set_reason(f, "stopped", "the tool wanted no more");
            if (f->state == ASKED || f->state == RUNS) {
                flame_stop_shim(f, STOPPING);
            }
            f->asker.user = gone ? NULL : f->asker.user;
        }
    }
}

static struct flame_job *named(const struct flames *flames, const void *link,
                               struct control_map message) {
    int64_t id = 0;
    control_get_int(message, FIELD_ID, &id);
    struct flame_job *f = flames->first;
    while (f && (f->id != id || f->shim.link != link || f->state == OVER)) {
        f = f->next;
    }
    return f;
}

void flame_missed_told(struct flames *flames, const void *link, struct control_map message) {
    struct flame_job *f = named(flames, link, message);
    if (f && f->trace) {
        missed_take(&f->missed, f->trace, message);
    }
}

void flame_named(struct flames *flames, const void *link, struct control_map message) {
    struct flame_job *f = named(flames, link, message);
    if (f && f->trace && f->state < WRITES) { // then the profile is the writer's
        names_take(f->trace, message);
    }
}

// The modules that have patterns, and whose they are, as far as that is known.
static void take_modules(struct full_trace *trace, struct control_map message) {
    struct control_list list = {0};
    control_get_list(message, FIELD_MODULES, &list);
    for (uint32_t i = 0; i < list.count; i++) {
        struct slice module, application;
        struct control_map one = control_list_at(list, i);
        if (!control_get_text(one, FIELD_NAME, &module)) {
            continue;
        }
        full_trace_module(trace, module);
        if (control_get_text(one, FIELD_APPLICATION, &application) && application.len > 0) {
            profile_module(full_trace_profile(trace), module, application);
        }
    }
}

// Where the tiers rest for a full trace, returns are not traced while that begins or ends.
static void tell_rested(const struct flame_job *f, int64_t at) {
    if (f->shim.single) {
        pipeline_rested(f->shim.node, at);
    }
}

void flame_started(struct flames *flames, const void *link, struct control_map message) {
    struct flame_job *f = named(flames, link, message);
    int64_t at = 0;
    if (!f || (f->started && f->state != ASKED) || !control_get_int(message, FIELD_AT, &at)) {
        return;
    }
    control_get_int(message, FIELD_FUNCTIONS, &f->functions);
    control_get_int(message, FIELD_PROCESSES, &f->processes);
    control_get_bool(message, FIELD_NEW_PROCESSES, &f->new_processes);
    control_get_bool(message, FIELD_SCHEDULING, &f->scheduling);
    control_get_bool(message, FIELD_GC, &f->gc);
    at = pipeline_ns(f->shim.node, at);
    tell_rested(f, at);
    if (f->started) { // another window
        take_modules(f->trace, message);
        full_trace_stands(f->trace, f->asked, at);
        full_trace_open(f->trace, at);
        flame_enter(f, RUNS);
        return;
    }
    const char *why = f->trace ? NULL : take_messages(flames, f, at);
    if (why) {
        flame_set_reason(f, "error", why);
        flame_stop_shim(f, STOPPING);
        return;
    }
    f->started = clock_wall();
    full_trace_stands(f->trace, f->asked, at);
    take_modules(f->trace, message);
    if (f->state == ASKED) {
        flame_enter(f, RUNS);
    }
}

// What ends later is not traced to its end. By the node's clock: ours may be behind it.
static void take_shut(struct flame_job *f, struct control_map message) {
    int64_t at;
    if (f->started && control_get_int(message, FIELD_AT, &at)) {
        f->shut = pipeline_ns(f->shim.node, at);
        full_trace_shut(f->trace, f->shut);
    }
}

void flame_shut(struct flames *flames, const void *link, struct control_map message) {
    struct flame_job *f = named(flames, link, message);
    if (f && f->state < CLOSING) {
        take_shut(f, message);
    }
}

void flame_stopped(struct flames *flames, const void *link, struct control_map message) {
    struct flame_job *f = named(flames, link, message);
    struct slice reason = slice_text("error"), text = slice_text("");
    if (!f || f->state >= CLOSING) {
        return;
    }
    control_get_text(message, FIELD_REASON, &reason);
    control_get_text(message, FIELD_TEXT, &text);
    take_shut(f, message);
    int64_t at;
    if (f->started && control_get_int(message, FIELD_AT, &at)) {
        at = pipeline_ns(f->shim.node, at);
        full_trace_off(f->trace, at);
        tell_rested(f, at);
    }
    char word[REASON_BYTES], said[TEXT_BYTES];
    names_clean(reason, word, sizeof word);
    names_clean(text, said, sizeof said);
    if (f->state == PAUSES && !f->reason[0] && slice_is(reason, "done")) {
        flame_enter(f, RESTS);
        return;
    }
    flame_set_reason(f, word, said);
    flame_traces_no_more(f);
}

void flame_lost(struct flames *flames, const void *link) {
    for (struct flame_job *f = flames->first; f; f = f->next) {
        if (f->shim.link != link || f->state == OVER) {
            continue;
        }
        flame_set_reason(f, "error", "the node is gone");
        f->asker.user = f->asker.user == link ? NULL : f->asker.user;
        f->shim.link = NULL;
        if (f->state < CLOSING) {
            flame_traces_no_more(f);
        }
    }
}
