// SPDX-License-Identifier: Apache-2.0
// What a shim says: its control messages, to the pipeline, the roster and the log.
#include <inttypes.h>
#include <stdio.h>

#include "app/flames.h"
#include "app/shim_link.h"
#include "app/triggers.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/names.h"

// A module or function, whose name is an atom's.
static bool is_atom(struct slice text) {
    return text.len > 0 && text.len <= LIMIT_ATOM_BYTES;
}

static void add_tier(struct shim_link *link, struct directory *names, struct tier_set *set,
                     struct control_map tier) {
    struct slice name = {0}, m = {0}, f = {0};
    int64_t arity = -1;
    control_get_text(tier, FIELD_NAME, &name);
    control_get_text(tier, FIELD_M, &m);
    control_get_text(tier, FIELD_F, &f);
    control_get_int(tier, FIELD_A, &arity);
    const char *why = NULL;
    uint16_t id = DIRECTORY_NONE;
    if (name.len == 0 || !is_atom(m) || !is_atom(f) || arity < 0 || arity > 255) {
        why = "is incomplete, or its name is longer than a function's can be";
    } else if ((id = directory_tier_of(names, link->node_id, name)) == TIER_TOTAL) {
        why = "has the name of the whole request";
    } else if (id == DIRECTORY_NONE ||
               tier_set_add(set, m, f, (uint32_t)arity, id) != TIER_SET_OK) {
        why = "is given twice, or is one too many";
    }
    if (why) {
        shim_link_tell(link, LOG_WARNING, "tier %.*s %s and is left out",
                       (int)(name.len < 100 ? name.len : 100),
                       name.data ? (const char *)name.data : "", why);
    }
}

static void on_tiers(struct shim_link *link, struct control_map message) {
    struct shim_links *links = link->links;
    struct tier_set set;
    struct control_list list = {0};
    if (!tier_set_init(&set)) {
        shim_link_tell(link, LOG_ERROR, "out of memory");
        return;
    }
    pipeline_make_room(link->ingest->pipeline);
    control_get_list(message, FIELD_TIERS, &list);
    for (uint32_t i = 0; i < list.count; i++) {
        add_tier(link, pipeline_directory(link->ingest->pipeline), &set, control_list_at(list, i));
    }
    bool calls = false;
    int64_t slow_us = -1;
    control_get_bool(message, FIELD_CALLS, &calls);
    control_get_int(message, FIELD_SLOW_THRESHOLD_US, &slow_us);
    control_get_bool(message, FIELD_STATS, &link->stats_wanted);
    control_get_bool(message, FIELD_SLOW, &link->slow_wanted);
    shim_link_tell(link, LOG_INFO, "%u tier%s", set.tiers, set.tiers == 1 ? "" : "s");
    pipeline_want_calls(link->node, calls);
    pipeline_set_slow(link->node,
                      slow_us >= 0 && slow_us < INT64_MAX / 1000 ? slow_us * 1000 : links->slow_ns);
    pipeline_set_tiers(link->node, set);
    session_ready(link->session);
}

static uint64_t get_count(struct control_map message, const char *key) {
    int64_t n = 0;
    control_get_int(message, key, &n);
    return n > 0 ? (uint64_t)n : 0;
}

static void on_clock(struct shim_link *link, struct control_map message) {
    int64_t at, offset;
    if (control_get_int(message, FIELD_TIME_OFFSET, &offset)) {
        pipeline_set_offset(link->node, offset);
    }
    if (control_get_int(message, FIELD_AT, &at)) {
        pipeline_sync(link->node, at, (struct pipeline_now){clock_wall(), clock_monotonic()});
    }
    uint64_t off = get_count(message, FIELD_OFF_MS), tripped = get_count(message, FIELD_TRIPPED_MS),
             away = get_count(message, FIELD_AWAY_MS);
    tripped = tripped < off ? tripped : off;
    away = away < off - tripped ? away : off - tripped;
    struct pipeline_counts counts = {.unsampled = get_count(message, FIELD_UNSAMPLED),
                                     .paused_ms = off - tripped - away,
                                     .tripped_ms = tripped,
                                     .away_ms = away,
                                     .trips = get_count(message, FIELD_TRIPS),
                                     .lowered_ms = get_count(message, FIELD_LOWERED_MS),
                                     .unmarked_calls = get_count(message, FIELD_UNMARKED_CALLS)};
    link->seen->unmarked = get_count(message, FIELD_UNMARKED);
    pipeline_count(link->node, &counts);
}

static void on_total(struct shim_link *link, struct control_map message) {
    int64_t labels;
    if (control_get_int(message, FIELD_LABELS, &labels) && labels > 0 && labels <= UINT32_MAX) {
        link->total = (struct pipeline_total){.labels = (uint32_t)labels,
                                              .messages = get_count(message, FIELD_MESSAGES),
                                              .unsent = get_count(message, FIELD_UNSENT)};
        shim_link_settle(link);
    }
}

static void on_started(const struct shim_link *link, struct control_map message) {
    int64_t labels;
    struct slice tracer = {0};
    if (control_get_int(message, FIELD_LABELS, &labels) && labels > 0 && labels <= UINT32_MAX) {
        pipeline_set_labels(link->node, (uint32_t)labels);
    }
    control_get_text(message, FIELD_TRACER, &tracer);
    names_clean(tracer, link->seen->tracer, sizeof link->seen->tracer);
    shim_link_tell(link, LOG_INFO, "tracing%s",
                   slice_is(tracer, TRACER_NATIVE) ? ", by the native tracer" : "");
}

static void on_stopped(struct shim_link *link, struct control_map message) {
    struct slice reason = slice_text("unknown"), text = slice_text("");
    control_get_text(message, FIELD_REASON, &reason);
    control_get_text(message, FIELD_TEXT, &text);
    bool paused = slice_is(reason, STATE_PAUSED);
    bool orderly = paused || slice_is(reason, "stopped") || slice_is(reason, "time_limit");
    link->stopped_cleanly = orderly;
    if (orderly && !session_streams(link->session)) {
        shim_link_end_stream(link);
    }
    roster_state(link->seen,
                 paused                            ? STATE_PAUSED
                 : slice_is(reason, STATE_TRIPPED) ? STATE_TRIPPED
                                                   : STATE_IDLE,
                 clock_wall());
    shim_link_tell(link, orderly ? LOG_INFO : LOG_WARNING, "tracing stopped (%.*s) %.*s",
                   (int)(reason.len < 40 ? reason.len : 40), reason.data,
                   (int)(text.len < 400 ? text.len : 400), text.data);
}

static void on_note(const struct shim_link *link, struct control_map message) {
    struct slice level = {0}, text = {0};
    bool history = false;
    control_get_text(message, FIELD_LEVEL, &level);
    control_get_bool(message, FIELD_HISTORY, &history);
    if (control_get_text(message, FIELD_TEXT, &text)) {
        if (history) {
            roster_event(link->seen, clock_wall(), "%.*s",
                         (int)(text.len < ROSTER_TEXT ? text.len : ROSTER_TEXT), text.data);
        }
        shim_link_tell(link, slice_is(level, LEVEL_WARNING) ? LOG_WARNING : LOG_INFO, "%.*s",
                       (int)(text.len < 800 ? text.len : 800), text.data);
    }
}

static void on_gap(const struct shim_link *link, struct control_map message) {
    int64_t from, until;
    struct slice text = slice_text(""), reason = slice_text("");
    control_get_text(message, FIELD_TEXT, &text);
    control_get_text(message, FIELD_REASON, &reason);
    bool reload = slice_is(reason, GAP_RELOAD), messages = slice_is(reason, GAP_MESSAGES);
    if (control_get_int(message, FIELD_FROM, &from) &&
        control_get_int(message, FIELD_UNTIL, &until)) {
        if (messages) {
            pipeline_messages_gap(link->node, from, until);
        } else {
            pipeline_gap(link->node, from, until, reload);
        }
        shim_link_tell(link, LOG_INFO, "%s; requests that were open then are incomplete (%.*s)",
                       reload     ? "code was reloaded"
                       : messages ? "somebody else is told which messages processes take"
                                  : "trace flags were taken off",
                       (int)(text.len < 400 ? text.len : 400), text.data);
    }
}

static void on_state(const struct shim_link *link, struct control_map message) {
    struct roster_node *n = link->seen;
    struct roster_sampling sampling = n->sampling;
    struct slice state = {0}, text = slice_text("");
    char word[ROSTER_WORD];
    snprintf(word, sizeof word, "%s", n->state);
    control_get_int(message, FIELD_ONE_IN, &sampling.one_in);
    control_get_int(message, FIELD_PER_SECOND, &sampling.per_second);
    control_get_int(message, FIELD_LEVEL_PPM, &sampling.level_ppm);
    control_get_int(message, FIELD_TRIPS, &sampling.trips);
    control_get_text(message, FIELD_TEXT, &text);
    if (control_get_text(message, FIELD_STATE, &state)) {
        names_clean(state, word, sizeof word);
    }
    roster_told(n, word, &sampling, text, clock_wall());
}

static void on_identify_reply(struct shim_link *link, struct control_map message) {
    int64_t id;
    struct slice identity;
    if (control_get_int(message, FIELD_ID, &id) && id >= 0 && id <= UINT32_MAX) {
        bool named = control_get_text(message, FIELD_IDENTITY, &identity);
        pipeline_answer(link->node, (uint32_t)id, named ? &identity : NULL);
    }
}

// -- profiles that the node itself wants ---------------------------------------------------------

static void tell_end(void *user, const struct buffer *message, bool last) {
    if (last) {
        shim_link_send(user, message);
    }
}

// The same, of a run of sampling.
static bool tell_run(void *user, const struct buffer *message, bool last) {
    tell_end(user, message, last);
    return true;
}

// There is none, of this reason. slice_s: of a run that shall stand for ever, else 0.
static void tell_none(struct shim_link *link, const char *type, const char *why, int64_t slice_s) {
    struct buffer b = buffer_make(LIMIT_CONTROL_BYTES);
    struct control_writer w = control_begin(&b, type, 4);
    control_int(&w, FIELD_PROFILE, 0);
    control_int(&w, FIELD_SLICE_S, slice_s);
    control_text(&w, FIELD_REASON, slice_text("error"));
    control_text(&w, FIELD_TEXT, slice_text(why));
    if (control_end(&w)) {
        shim_link_send(link, &b);
    }
    buffer_free(&b);
}

static void on_flame(struct shim_link *link, struct control_map message) {
    struct flame_asker asker = {link, tell_end};
    struct flame_shim shim = shim_link_of_flame(link);
    const char *why = flame_begin(link->links->flames, &shim, message, &asker);
    if (why) {
        tell_none(link, CONTROL_FLAMED, why, 0);
    }
}

static void on_stacks(struct shim_link *link, struct control_map message) {
    struct flames *flames = link->links->flames;
    struct stack_asker asker = {link, tell_run};
    struct flame_shim shim = shim_link_of_flame(link);
    int64_t slice_s = 0;
    control_get_int(message, FIELD_SLICE_S, &slice_s);
    const char *why = stack_run_begin(&flames->runs, &shim, message, &asker);
    if (why) {
        tell_none(link, CONTROL_STACKS_KEPT, why, slice_s);
    } else if (slice_s > 0) {
        shim_link_tell(link, LOG_INFO, "stacks are sampled for ever");
    }
}

// Told once, as what comes of it may be looked at much later.
static void on_stacks_stopped(const struct shim_link *link, struct control_map message) {
    struct stack_runs *runs = &link->links->flames->runs;
    struct slice reason = slice_text("error"), text = slice_text("");
    int64_t id = 0;
    control_get_int(message, FIELD_ID, &id);
    control_get_text(message, FIELD_REASON, &reason);
    control_get_text(message, FIELD_TEXT, &text);
    if (stack_run_stands(runs, link, id)) {
        shim_link_tell(link, LOG_INFO,
                       "stacks are sampled no longer, for ever: %" PRIu64 " looks, %" PRIu64
                       " unchanged, %" PRIu64 " not answered (%.*s) %.*s",
                       get_count(message, FIELD_SAMPLES), get_count(message, FIELD_UNCHANGED),
                       get_count(message, FIELD_UNANSWERED),
                       (int)(reason.len < 40 ? reason.len : 40), reason.data,
                       (int)(text.len < 400 ? text.len : 400), text.data);
    }
    stack_run_stopped(runs, link, message);
}

void shim_link_message(struct shim_link *link, struct slice type, struct control_map message) {
    link->heard = clock_monotonic();
    if (slice_is(type, CONTROL_CLOCK)) {
        on_clock(link, message);
    } else if (slice_is(type, CONTROL_IDENTIFY_REPLY)) {
        on_identify_reply(link, message);
    } else if (slice_is(type, CONTROL_TIERS)) {
        on_tiers(link, message);
    } else if (slice_is(type, CONTROL_TRACE_STARTED)) {
        on_started(link, message);
        roster_state(link->seen, STATE_TRACING, clock_wall());
    } else if (slice_is(type, CONTROL_TRACE_STOPPED)) {
        on_stopped(link, message);
    } else if (slice_is(type, CONTROL_TRACE_TOTAL)) {
        on_total(link, message);
    } else if (slice_is(type, CONTROL_GAP)) {
        on_gap(link, message);
    } else if (slice_is(type, CONTROL_NOTE)) {
        on_note(link, message);
    } else if (slice_is(type, CONTROL_STATE)) {
        on_state(link, message);
    } else if (slice_is(type, CONTROL_STEERED)) {
        link->links->steering.steered(link->links->steering.context, link, message);
    } else if (slice_is(type, CONTROL_P99)) {
        link->p99 = triggers_want(link->p99, message);
    } else if (slice_is(type, CONTROL_FULL_STARTED)) {
        flame_started(link->links->flames, link, message);
    } else if (slice_is(type, CONTROL_FULL_SHUT)) {
        flame_shut(link->links->flames, link, message);
    } else if (slice_is(type, CONTROL_FULL_STOPPED)) {
        flame_stopped(link->links->flames, link, message);
    } else if (slice_is(type, CONTROL_FULL_MISSED)) {
        flame_missed_told(link->links->flames, link, message);
    } else if (slice_is(type, CONTROL_FULL_NAMED)) {
        flame_named(link->links->flames, link, message);
    } else if (slice_is(type, CONTROL_STACKS_STARTED)) {
        stack_run_started(&link->links->flames->runs, link, message);
    } else if (slice_is(type, CONTROL_STACKS_TAKEN)) {
        stack_run_taken(&link->links->flames->runs, link, message);
    } else if (slice_is(type, CONTROL_STACKS_STOPPED)) {
        on_stacks_stopped(link, message);
    } else if (slice_is(type, CONTROL_FLAME)) {
        on_flame(link, message);
    } else if (slice_is(type, CONTROL_STACKS)) {
        on_stacks(link, message);
    }
}
