// SPDX-License-Identifier: Apache-2.0
#include "app/flames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/flame_missed.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "codec/json.h"

enum {
    SECOND_NS = 1000000000,
    MOST_REQUESTS = 100000,
    MOST_SECONDS = 3600,
    START_SECONDS = 10, // until a shim has set its patterns, and taken them off
    REASON_BYTES = 32,
    TEXT_BYTES = 400
};
// For so long the processes of requests are learned, once there is one.
static const int64_t LEARN_NS = SECOND_NS / 2;
// Patterns stand for so long at a time, and as long again while a request is open; between two such
// windows they are off for that long. Requests that are rare cost the others little.
static const int64_t WINDOW_NS = 5LL * SECOND_NS;
// Behind the last message of the trace the fates of requests come: their grace time, and that of
// questions about their identity.
static const int64_t FATES_NS = GRACE_NS + GRACE_ASK_NS + SECOND_NS;

enum flame_state {
    LEARNS,   // which processes requests go through
    ASKED,    // the shim has not answered yet
    RUNS,     // it traces
    PAUSES,   // it was told to stop for now
    RESTS,    // it does not trace, and will again
    STOPPING, // it was told to stop
    CLOSING,  // it has stopped, and fates may come still
    WRITES,   // the profile waits for the writer, or is with it
    OVER
};

struct flame {
    struct flame *next;
    struct flame_asker asker;
    struct flame_shim shim;   // its link is NULL when it is gone
    struct full_trace *trace; // NULL until it takes messages
    enum flame_state state;
    int64_t id;
    int64_t since;    // of the state, monotonic ns
    int64_t learned;  // when the first request had come, ns after that; 0: none has
    int64_t started;  // when it began to run, ns since 1970; 0: it does not yet
    int64_t deadline; // monotonic ns; 0: the shim has not been asked to begin
    int64_t requests; // wanted
    int64_t seconds;
    int64_t label; // of the one request that is wanted, which is about to begin; 0: any
    bool all_modules;
    char *applications[LIMIT_FULL_NAMES], *modules[LIMIT_FULL_NAMES];
    uint32_t application_count, module_count;
    char only[LIMIT_NAME_BYTES + 4]; // "": any
    char name[LIMIT_NAME_BYTES + 4];
    int64_t functions, processes; // as the shim tells
    bool new_processes;           // those that are made are traced, too
    bool scheduling;
    bool handed; // to the writer
    struct flame_missed missed;
    char reason[REASON_BYTES];
    char text[TEXT_BYTES];
};

// -- to who has asked -----------------------------------------------------------------------------

static void put_counts(struct control_writer *w, const struct flame *f) {
    struct profile_counts none = {0};
    const struct profile_counts *c = f->trace ? &full_trace_profile(f->trace)->counts : &none;
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {{FIELD_REQUESTS, c->requests},
                  {FIELD_INCOMPLETE, c->incomplete},
                  {FIELD_OTHERS, c->others},
                  {FIELD_UNSEEN, c->unseen},
                  {FIELD_MESSAGES, c->messages},
                  {FIELD_FUNCTIONS, (uint64_t)f->functions},
                  {FIELD_PROCESSES, (uint64_t)f->processes}};
    _Static_assert(sizeof counts / sizeof *counts == 7, "as many as are announced");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        control_int(w, counts[i].key, (int64_t)counts[i].value);
    }
}

static void put_others(struct control_writer *w, const struct flame *f) {
    uint32_t count = 0;
    const struct full_other *others = f->trace ? full_trace_others(f->trace, &count) : NULL;
    control_list(w, FIELD_IDENTITIES, count);
    for (uint32_t i = 0; i < count; i++) {
        control_map(w, 2);
        control_text(w, FIELD_IDENTITY, slice_text(others[i].identity));
        control_int(w, FIELD_REQUESTS, (int64_t)others[i].requests);
    }
}

static void tell(struct flame *f, bool last, int64_t profile) {
    if (!f->asker.user) {
        return;
    }
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w =
        control_begin(&b, last ? CONTROL_FLAMED : CONTROL_FLAMING, last ? 13 : 8);
    if (last) {
        control_int(&w, FIELD_PROFILE, profile);
        control_text(&w, FIELD_REASON, slice_text(f->reason));
        control_text(&w, FIELD_TEXT, slice_text(f->text));
        put_others(&w, f);
        missed_put(&f->missed, f->trace, &w);
    }
    put_counts(&w, f);
    control_bool(&w, FIELD_NEW_PROCESSES, f->new_processes);
    if (control_end(&w)) {
        f->asker.tell(f->asker.user, &b, last);
    }
    buffer_free(&b);
}

static void enter(struct flame *f, enum flame_state state) {
    f->state = state;
    f->since = clock_monotonic();
}

static void drop_trace(struct flame *f) {
    if (f->trace && f->state < WRITES) {
        pipeline_set_full(f->shim.node, NULL);
    }
    full_trace_free(f->trace);
    f->trace = NULL;
}

// It is over; profile: its number, 0: there is none.
static void end(struct flame *f, int64_t profile) {
    tell(f, true, profile);
    drop_trace(f);
    enter(f, OVER);
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
static int64_t seconds_left(struct flame *f) {
    int64_t now = clock_monotonic();
    f->deadline = f->deadline > 0 ? f->deadline : now + f->seconds * SECOND_NS;
    return f->deadline > now ? (f->deadline - now) / SECOND_NS + 1 : 0;
}

// Tells the shim what to trace, for longer than it will: it is told when to stop. Without processes
// it only looks whether there are such modules. False when that is too long for a message.
static bool ask_shim(struct flame *f, bool begin) {
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
    control_list(&w, FIELD_PROCESSES, count);
    for (uint32_t i = 0; i < count; i++) {
        char pid[32];
        message_pid_text(pids[i], pid);
        control_map(&w, 1);
        control_text(&w, FIELD_PID, slice_text(pid));
    }
    bool fits = control_end(&w);
    if (fits) {
        f->shim.send(f->shim.link, &b);
    }
    buffer_free(&b);
    return fits;
}

static void ask_missed(struct flame *f) {
    if (f->shim.link) {
        missed_ask(&f->missed, f->trace, &f->shim, f->id);
    }
}

// STOPPING, or PAUSES. What comes after this moment may have lost its patterns.
static void stop_shim(struct flame *f, enum flame_state state) {
    if (f->trace) {
        full_trace_shut(f->trace, pipeline_node_time(f->shim.node));
        ask_missed(f);
    }
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, CONTROL_FULL_STOP, 1);
    control_int(&w, FIELD_ID, f->id);
    if (control_end(&w) && f->shim.link) {
        f->shim.send(f->shim.link, &b);
    }
    buffer_free(&b);
    enter(f, state);
}

// -- its life -------------------------------------------------------------------------------------

static struct flame *flame_of(const struct flames *flames, const void *link) {
    struct flame *f = flames->first;
    while (f && (f->shim.link != link || f->state == OVER)) {
        f = f->next;
    }
    return f;
}

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

static void free_flame(struct flame *f) {
    for (uint32_t i = 0; i < f->application_count; i++) {
        free(f->applications[i]);
    }
    for (uint32_t i = 0; i < f->module_count; i++) {
        free(f->modules[i]);
    }
    free(f);
}

// From now on the node's messages go to it. NULL, or why they do not.
static const char *take_messages(struct flames *flames, struct flame *f, int64_t since) {
    struct full_trace_options options = {.since = since,
                                         .requests = (uint32_t)f->requests,
                                         .token = f->label ? hash_mix((uint64_t)f->label) : 0,
                                         .only = f->only[0] ? f->only : NULL,
                                         .scheduling = f->scheduling};
    if (!pipeline_spare(f->shim.node, true)) {
        return "the collector has too many open requests for a full trace beside them";
    }
    flames->spared = f->shim.node;
    f->trace = full_trace_new(&options);
    if (!f->trace) {
        return "the collector is out of memory";
    }
    pipeline_set_full(f->shim.node, f->trace);
    return NULL;
}

const char *flame_begin(struct flames *flames, const struct flame_shim *shim,
                        struct control_map message, const struct flame_asker *asker) {
    int64_t requests = 0, seconds = 0;
    struct slice only = slice_text(""), name = slice_text("");
    control_get_int(message, FIELD_REQUESTS, &requests);
    control_get_int(message, FIELD_SECONDS, &seconds);
    control_get_text(message, FIELD_ONLY, &only);
    control_get_text(message, FIELD_NAME, &name);
    if (requests < 1 || requests > MOST_REQUESTS || seconds < 1 || seconds > MOST_SECONDS) {
        return "this collector takes 1 to 100000 requests, and 1 to 3600 seconds";
    }
    if (flame_of(flames, shim->link)) {
        return "a full trace of this node runs already; try again when it is over";
    }
    if (flames->count >= LIMIT_FULL_TRACES) {
        return "the collector takes no more full traces at a time; try again when one is over";
    }
    struct flame *f = calloc(1, sizeof *f);
    if (!f) {
        return "the collector is out of memory";
    }
    *f = (struct flame){.next = flames->first,
                        .asker = *asker,
                        .shim = *shim,
                        .id = ++flames->last_id,
                        .requests = requests,
                        .seconds = seconds};
    names_clean(only, f->only, sizeof f->only);
    names_clean(name, f->name, sizeof f->name);
    control_get_bool(message, FIELD_ALL, &f->all_modules);
    if (!take_names(message, FIELD_APPLICATIONS, f->applications, &f->application_count) ||
        !take_names(message, FIELD_MODULES, f->modules, &f->module_count)) {
        free_flame(f);
        return "these are more applications or modules than a full trace may name";
    }
    if (asker->user == shim->link && control_get_int(message, FIELD_LABEL, &f->label) &&
        f->label != 0) {
        control_get_bool(message, FIELD_SCHEDULING, &f->scheduling);
        const char *why = take_messages(flames, f, INT64_MIN); // before the request begins
        if (why) {
            free_flame(f);
            return why;
        }
    }
    if (!ask_shim(f, f->trace)) {
        drop_trace(f);
        free_flame(f);
        return "the names of these applications and modules are too long for a message";
    }
    enter(f, f->trace ? ASKED : LEARNS);
    flames->first = f;
    flames->count++;
    return NULL;
}

static void set_reason(struct flame *f, const char *reason, const char *text) {
    if (!f->reason[0]) {
        snprintf(f->reason, sizeof f->reason, "%s", reason);
        snprintf(f->text, sizeof f->text, "%s", text);
    }
}

void flame_stop(struct flames *flames, const void *user, bool gone) {
    for (struct flame *f = flames->first; f; f = f->next) {
        if (f->asker.user == user) {
            set_reason(f, "stopped", "the tool wanted no more");
            if (f->state == ASKED || f->state == RUNS) {
                stop_shim(f, STOPPING);
            }
            f->asker.user = gone ? NULL : f->asker.user;
        }
    }
}

static struct flame *named(const struct flames *flames, const void *link,
                           struct control_map message) {
    int64_t id = 0;
    struct flame *f = flame_of(flames, link);
    return f && control_get_int(message, FIELD_ID, &id) && id == f->id ? f : NULL;
}

void flame_missed_told(struct flames *flames, const void *link, struct control_map message) {
    struct flame *f = named(flames, link, message);
    if (f && f->trace) {
        missed_take(&f->missed, f->trace, message);
    }
}

// The modules that have patterns, and whose they are.
static void take_modules(struct profile *p, struct control_map message) {
    struct control_list list = {0};
    control_get_list(message, FIELD_MODULES, &list);
    for (uint32_t i = 0; i < list.count; i++) {
        struct slice module, application;
        struct control_map one = control_list_at(list, i);
        if (control_get_text(one, FIELD_NAME, &module) &&
            control_get_text(one, FIELD_APPLICATION, &application) && application.len > 0) {
            profile_module(p, module, application);
        }
    }
}

void flame_started(struct flames *flames, const void *link, struct control_map message) {
    struct flame *f = named(flames, link, message);
    int64_t at = 0;
    if (!f || (f->started && f->state != ASKED) || !control_get_int(message, FIELD_AT, &at)) {
        return;
    }
    control_get_int(message, FIELD_FUNCTIONS, &f->functions);
    control_get_int(message, FIELD_PROCESSES, &f->processes);
    control_get_bool(message, FIELD_NEW_PROCESSES, &f->new_processes);
    control_get_bool(message, FIELD_SCHEDULING, &f->scheduling);
    if (f->started) { // another window
        full_trace_open(f->trace, pipeline_ns(f->shim.node, at));
        enter(f, RUNS);
        return;
    }
    const char *why = f->trace ? NULL : take_messages(flames, f, pipeline_ns(f->shim.node, at));
    if (why) {
        set_reason(f, "error", why);
        stop_shim(f, STOPPING);
        return;
    }
    f->started = clock_wall();
    take_modules(full_trace_profile(f->trace), message);
    if (f->state == ASKED) {
        enter(f, RUNS);
    }
}

void flame_stopped(struct flames *flames, const void *link, struct control_map message) {
    struct flame *f = named(flames, link, message);
    struct slice reason = slice_text("error"), text = slice_text("");
    if (!f || f->state >= CLOSING) {
        return;
    }
    control_get_text(message, FIELD_REASON, &reason);
    control_get_text(message, FIELD_TEXT, &text);
    char word[REASON_BYTES], said[TEXT_BYTES];
    names_clean(reason, word, sizeof word);
    names_clean(text, said, sizeof said);
    if (f->state == PAUSES && !f->reason[0] && slice_is(reason, "done")) {
        enter(f, RESTS);
        return;
    }
    set_reason(f, word, said);
    if (f->started) {
        int64_t at;
        if (control_get_int(message, FIELD_AT, &at)) {
            full_trace_shut(f->trace, pipeline_ns(f->shim.node, at));
        }
        enter(f, CLOSING);
    } else {
        end(f, 0);
    }
}

void flame_lost(struct flames *flames, const void *link) {
    struct flame *f = flame_of(flames, link);
    if (f) {
        set_reason(f, "error", "the node is gone");
        f->asker.user = f->asker.user == link ? NULL : f->asker.user;
        f->shim.link = NULL;
        if (f->state < CLOSING && f->started) {
            enter(f, CLOSING);
        } else if (f->state < CLOSING) {
            end(f, 0);
        }
    }
}

// What was asked for, as a JSON object.
static void put_settings(const struct flame *f, struct profile_head *head) {
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
static void close_profile(struct flame *f) {
    struct profile *p = full_trace_profile(f->trace);
    full_trace_advance(f->trace, INT64_MAX);
    pipeline_set_full(f->shim.node, NULL);
    if (p->counts.requests == 0) {
        f->state = WRITES;
        end(f, 0);
        return;
    }
    p->head.kind = PROFILE_FULL;
    p->head.begin_ns = f->started;
    p->head.end_ns = clock_wall();
    snprintf(p->head.name, sizeof p->head.name, "%s", f->name);
    snprintf(p->head.node, sizeof p->head.node, "%s", pipeline_node_name(f->shim.node));
    put_settings(f, &p->head);
    enter(f, WRITES);
}

// The shim is told to begin. False when that cannot be, and that is the reason.
static bool begin(struct flame *f) {
    if (!ask_shim(f, true)) {
        set_reason(f, "error", "these processes and names are too many for a message");
        return false;
    }
    enter(f, ASKED);
    return true;
}

// Which processes requests go through is not known before one has come.
static void learn(struct flame *f, int64_t waited) {
    uint64_t pid;
    bool known = pipeline_processes(f->shim.node, &pid, 1) > 0;
    if (f->reason[0] || (!known && waited >= f->seconds * SECOND_NS)) {
        set_reason(f, "time_limit", "");
        end(f, 0);
    } else if (known && f->learned == 0) {
        f->learned = waited > 0 ? waited : 1;
    } else if (known && waited - f->learned > LEARN_NS && !begin(f)) {
        end(f, 0);
    }
}

// A window is open: whether it, or all, is over.
static void run(struct flame *f, int64_t now) {
    int64_t waited = now - f->since;
    ask_missed(f);
    bool waits = full_trace_busy(f->trace) && waited < 2 * WINDOW_NS;
    if (full_trace_done(f->trace)) {
        set_reason(f, "done", "");
        stop_shim(f, STOPPING);
    } else if (now >= f->deadline) {
        set_reason(f, "time_limit", "");
        stop_shim(f, STOPPING);
    } else if (waited > WINDOW_NS && !waits && f->label == 0) {
        stop_shim(f, PAUSES);
    }
}

// Between two windows. Fates of requests of the last one still come.
static void rest(struct flame *f, int64_t now) {
    if (f->reason[0] || full_trace_done(f->trace) || now >= f->deadline) {
        set_reason(f, now >= f->deadline ? "time_limit" : "done", "");
        enter(f, CLOSING);
    } else if (now - f->since > WINDOW_NS) {
        begin(f);
    }
}

static void step(struct flames *flames, struct flame *f, int64_t now) {
    int64_t waited = now - f->since;
    switch (f->state) {
    case LEARNS:
        learn(f, waited);
        break;
    case ASKED:
    case PAUSES:
    case STOPPING:
        if (waited > (int64_t)START_SECONDS * SECOND_NS) {
            set_reason(f, "error", "the node does not answer; its shim may be of an older release");
            if (f->started) {
                enter(f, CLOSING);
            } else {
                end(f, 0);
            }
        }
        break;
    case RUNS:
        run(f, now);
        break;
    case RESTS:
        rest(f, now);
        break;
    case CLOSING:
        if (full_trace_done(f->trace) || waited > FATES_NS) {
            close_profile(f);
        }
        break;
    case WRITES:
        if (!flames->writer) {
            end(f, 0);
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
        for (struct flame *f = flames->first; f; f = f->next) {
            if (f->trace && full_trace_profile(f->trace) == kept) {
                end(f, id);
                break;
            }
        }
    }
}

void flame_tick(struct flames *flames, int64_t now, bool second) {
    bool traces = false;
    take_kept(flames);
    for (struct flame **at = &flames->first; *at;) {
        struct flame *f = *at;
        step(flames, f, now);
        traces = traces || f->trace;
        if (second && f->state < OVER) {
            tell(f, false, 0);
        }
        if (f->state == OVER) {
            *at = f->next;
            free_flame(f);
            flames->count--;
        } else {
            at = &f->next;
        }
    }
    if (flames->spared && !traces) {
        pipeline_spare(flames->spared, false);
        flames->spared = NULL;
    }
}

void flames_end(struct flames *flames) {
    enum { MOST_MS = 3000, STEP_MS = 20 };
    for (struct flame *f = flames->first; f; f = f->next) {
        set_reason(f, "error", "the collector ended");
        if (f->trace && f->state < WRITES) {
            close_profile(f);
        } else if (!f->trace && f->state != OVER) {
            end(f, 0);
        }
    }
    for (int ms = 0; flames->first && ms < MOST_MS; ms += STEP_MS) {
        flame_tick(flames, clock_monotonic(), false);
        struct timespec wait = {.tv_nsec = flames->first ? STEP_MS * 1000000 : 0};
        nanosleep(&wait, NULL);
    }
}
