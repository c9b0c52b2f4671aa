// SPDX-License-Identifier: Apache-2.0
#include "pipeline_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/time_math.h"
#include "codec/frame.h"
#include "codec/mfa.h"
#include "model/stats/keep.h"

struct pipeline_names *pipeline_names_new(uint32_t pipelines) {
    struct pipeline_names *names = calloc(1, sizeof *names);
    if (!names) {
        return NULL;
    }
    names->pipelines = pipelines;
    if (!directory_init(&names->directory)) {
        goto err0;
    }
    if (!label_makers_init(&names->makers)) {
        goto err1;
    }
    if (pipelines > 1) {
        directory_thread(&names->directory);
        names->makers.threads = true;
    }
    return names;
err1:
    directory_free(&names->directory);
err0:
    free(names);
    return NULL;
}

void pipeline_names_free(struct pipeline_names *names) {
    if (names) {
        label_makers_free(&names->makers);
        directory_free(&names->directory);
        free(names);
    }
}

struct stats *pipeline_stats_new(const struct pipeline *p) {
    struct stats *stats = stats_new();
    if (stats && p->options.shared) {
        stats_share(stats);
    }
    if (stats) {
        stats_divide(stats, p->names->pipelines);
    }
    return stats;
}

struct pipeline *pipeline_new(const struct pipeline_options *options) {
    struct pipeline *p = calloc(1, sizeof *p);
    if (!p) {
        return NULL;
    }
    p->options = *options;
    p->names = options->names ? options->names : pipeline_names_new(1);
    if (!p->names) {
        goto err0;
    }
    p->directory = &p->names->directory;
    p->user = p->names->joined;
    p->pool = request_pool_new();
    if (!p->pool || p->user == p->names->pipelines) {
        goto err1;
    }
    request_pool_divide(p->pool, p->names->pipelines);
    if (options->shared) {
        request_pool_share(p->pool);
        directory_share(p->directory);
    }
    p->stats = pipeline_stats_new(p);
    if (!p->stats) {
        goto err1;
    }
    p->keep = keep_new();
    if (!p->keep) {
        goto err2;
    }
    keep_divide(p->keep, p->names->pipelines);
    gate_init(&p->gate);
    p->names->all[p->names->joined++] = p;
    return p;
err2:
    stats_free(p->stats);
err1:
    request_pool_free(p->pool);
    if (!options->names) {
        pipeline_names_free(p->names);
    }
err0:
    free(p);
    return NULL;
}

void pipeline_node_free(struct pipeline_node *n) {
    tracker_free(n->tracker);
    tier_set_free(&n->tiers);
    identify_free(&n->identify);
    partial_free(n);
    free(n);
}

void pipeline_free(struct pipeline *p) {
    if (!p) {
        return;
    }
    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        if (p->nodes[i]) {
            pipeline_node_free(p->nodes[i]);
        }
    }
    free(p->native);
    stats_free(p->stats);
    keep_free(p->keep);
    request_pool_free(p->pool);
    gate_destroy(&p->gate);
    if (!p->options.names) {
        pipeline_names_free(p->names);
    }
    free(p);
}

struct directory *pipeline_directory(struct pipeline *p) {
    return p->directory;
}

// -- those that share names -----------------------------------------------------------------------

uint32_t pipeline_siblings(const struct pipeline *p) {
    return p->names->joined;
}

struct pipeline *pipeline_sibling(const struct pipeline *p, uint32_t number) {
    return p->names->all[number];
}

struct gate *pipeline_gate(struct pipeline *p) {
    return &p->gate;
}

void pipeline_visit(struct pipeline *p) {
    if (p->names->pipelines > 1) {
        gate_visit(&p->gate);
    }
}

void pipeline_part(struct pipeline *p) {
    if (p->names->pipelines > 1) {
        gate_part(&p->gate);
    }
}

void pipeline_visit_all(const struct pipeline *p) {
    for (uint32_t i = 0; i < pipeline_siblings(p); i++) {
        pipeline_visit(pipeline_sibling(p, i));
    }
}

void pipeline_part_all(const struct pipeline *p) {
    for (uint32_t i = 0; i < pipeline_siblings(p); i++) {
        pipeline_part(pipeline_sibling(p, i));
    }
}

// -- what the model tells -------------------------------------------------------------------------

// Labels tell only what shims have told of them.
static uint16_t on_maker(void *context, uint64_t label) {
    struct pipeline_node *n = context;
    uint16_t maker = label_makers_find(&n->pipeline->names->makers, label);
    return maker == n->id ? DIRECTORY_NONE : maker;
}

static uint16_t on_identity(void *context, struct slice name) {
    return deliver_identity(context, name);
}

static void on_never_returns(void *context, uint16_t tier) {
    struct pipeline_node *n = context;
    for (uint32_t i = 0; i < n->tiers.count; i++) {
        const struct traced_function *f = &n->tiers.functions[i];
        if (f->role == ROLE_TIER && f->tier == tier) {
            struct mfa mfa = {.arity = f->arity};
            char text[MFA_TEXT_BYTES];
            snprintf(mfa.module, sizeof mfa.module, "%s", f->module);
            snprintf(mfa.function, sizeof mfa.function, "%s", f->function);
            log_warning("node %s: tier %s (%s) never returns, taking it off", pipeline_node_name(n),
                        names_text(&n->pipeline->directory->tiers, tier), mfa_text(&mfa, text));
            if (n->user && n->pipeline->options.disarm) {
                n->pipeline->options.disarm(n->user, f);
            }
        }
    }
}

// The shim takes whoever works on under a label of its node out of the trace, once that label's
// request is over: it is told of each call of a tier under one, once a second.
static void tell_stale(struct pipeline_node *n, uint16_t tier, uint64_t label) {
    const struct pipeline *p = n->pipeline;
    int64_t second = p->now.steady / NANOSECONDS;
    if (n->stale_second != second) {
        n->stale_second = second;
        n->stale_count = 0;
    }
    uint32_t i = 0;
    while (i < n->stale_count && (n->stale[i].label != label || n->stale[i].tier != tier)) {
        i++;
    }
    if (i == n->stale_count && i < LIMIT_STALE_PER_SECOND) {
        n->stale[n->stale_count++] = (struct stale_label){label, tier};
        p->options.stale(n->user, names_text(&p->directory->tiers, tier), label);
    }
}

static void on_stale(void *context, uint16_t tier, uint64_t over) {
    struct pipeline_node *n = context;
    struct cost *cost = pipeline_node_cost(n, tier);
    if (cost) {
        cost->stale_calls++;
    }
    if (over != 0 && n->user && n->pipeline->options.stale &&
        label_makers_find(&n->pipeline->names->makers, over) == n->id) {
        tell_stale(n, tier, over);
    }
}

static void on_met(void *context) {
    log_info(
        "node %s: markers or a web server's helper begin requests inside of an entry's calls: each "
        "is counted once, under the name that they give",
        pipeline_node_name(context));
}

struct request_events pipeline_events(struct pipeline_node *n, bool live) {
    return (struct request_events){.context = n,
                                   .finished = takers_take,
                                   .maker = live ? on_maker : NULL,
                                   .identity = on_identity,
                                   .never_returns = on_never_returns,
                                   .stale = on_stale,
                                   .met = on_met};
}

// -- nodes ----------------------------------------------------------------------------------------

static struct pipeline_node *node_new(struct pipeline *p, uint16_t id) {
    struct pipeline_node *n = calloc(1, sizeof *n);
    if (!n) {
        return NULL;
    }
    *n = (struct pipeline_node){.pipeline = p,
                                .id = id,
                                .ticks_per_second = NANOSECONDS,
                                .slow_ns = INT64_MAX,
                                .untraced_until = INT64_MIN,
                                .rested = INT64_MIN,
                                .partial = buffer_make(LIMIT_FRAME_BYTES + FRAME_HEADER),
                                .account = {.stats = p->stats,
                                            .paths = &p->directory->paths,
                                            .bucket_s = p->options.bucket_s,
                                            .node = id},
                                .totals.first_error = -1};
    if (!tier_set_init(&n->tiers)) {
        goto err0;
    }
    if (!identify_init(&n->identify)) {
        goto err1;
    }
    return n;
err1:
    tier_set_free(&n->tiers);
err0:
    free(n);
    return NULL;
}

struct pipeline_node *pipeline_node(struct pipeline *p, struct slice name) {
    uint16_t id = directory_node_of(p->directory, p->user, name);
    if (id == DIRECTORY_NONE) {
        return NULL;
    }
    if (!p->nodes[id]) {
        p->nodes[id] = node_new(p, id);
    }
    return p->nodes[id];
}

uint16_t pipeline_node_id(const struct pipeline_node *n) {
    return n->id;
}

struct pipeline *pipeline_of(const struct pipeline_node *n) {
    return n->pipeline;
}

const char *pipeline_node_name(const struct pipeline_node *n) {
    return names_text(&n->pipeline->directory->nodes, n->id);
}

// What a node that is gone needs no more: it tells its tiers anew when it comes back.
static void rest(struct pipeline_node *n) {
    tracker_free(n->tracker);
    n->tracker = NULL;
    identify_reset(&n->identify);
    n->reader = (struct message_reader){0};
    tier_set_clear(&n->tiers);
    memset(n->tiers_had, 0, sizeof n->tiers_had);
    keep_forget_node(n->pipeline->keep, n->id);
}

void pipeline_set_user(struct pipeline_node *n, void *user) {
    n->user = user;
    n->labels_to_come = 0;
    if (!user && !n->open) {
        rest(n);
    }
}

void pipeline_want_calls(struct pipeline_node *n, bool wanted) {
    n->calls_wanted = wanted;
}

void pipeline_add_full(struct pipeline_node *n, struct full_trace *full) {
    n->full_apart = n->full_apart && n->full_count > 0;
    n->full[n->full_count++] = full;
    n->reader = (struct message_reader){0}; // what it has learned does without names
}

void pipeline_remove_full(struct pipeline_node *n, const struct full_trace *full) {
    for (uint32_t i = 0; i < n->full_count; i++) {
        if (n->full[i] == full) {
            n->full[i] = n->full[--n->full_count];
            n->reader = (struct message_reader){0};
            return;
        }
    }
}

void pipeline_full_lost(struct pipeline_node *n) {
    for (uint32_t i = 0; i < n->full_count; i++) {
        full_trace_lost(n->full[i]);
    }
}

void pipeline_add_sampled(struct pipeline_node *n, struct sample_labels *labels, int64_t begin) {
    struct sampled *s = n->sampled;
    while (s->labels && s < n->sampled + PIPELINE_LOOKERS - 1) {
        s++;
    }
    *s = (struct sampled){labels, begin};
}

void pipeline_remove_sampled(struct pipeline_node *n, const struct sample_labels *labels) {
    for (int i = 0; i < PIPELINE_LOOKERS; i++) {
        if (n->sampled[i].labels == labels) {
            n->sampled[i].labels = NULL;
        }
    }
}

bool pipeline_find_request(const struct pipeline_node *n, int64_t begin,
                           struct sample_request *request) {
    uint16_t identity;
    int64_t end;
    if (!n->tracker || !tracker_known(n->tracker, hash_mix(request->label), &identity, &end)) {
        return false;
    }
    request->identity = slice_text(names_text(&n->pipeline->directory->identities, identity));
    request->end_us = end == INT64_MAX ? end : time_sub(end, begin) / 1000;
    return true;
}

// What one pipeline spares, of its part of all.
static bool spare(struct pipeline *p, enum pipeline_spared use, uint32_t mb) {
    uint32_t all = mb;
    for (int i = 0; i < SPARED_USES; i++) {
        all += i == (int)use ? 0 : p->spared[i];
    }
    bool spared = request_pool_spare(p->pool, all);
    p->spared[use] = spared ? mb : p->spared[use];
    return spared;
}

bool pipeline_spare(const struct pipeline *p, enum pipeline_spared use, uint32_t mb) {
    uint32_t before = p->spared[use], done = 0, count = pipeline_siblings(p);
    if (before == mb) {
        return true;
    }
    pipeline_visit_all(p);
    while (done < count && spare(pipeline_sibling(p, done), use, mb)) {
        done++;
    }
    bool spared = done == count;
    while (!spared && done > 0) {
        spare(pipeline_sibling(p, --done), use, before);
    }
    pipeline_part_all(p);
    return spared;
}

uint32_t pipeline_processes(const struct pipeline_node *n, uint64_t *pids, uint32_t room) {
    return n->tracker ? tracker_processes(n->tracker, pids, room) : 0;
}

int64_t pipeline_ns(const struct pipeline_node *n, int64_t ticks) {
    return pipeline_node_ns(n, ticks);
}

int64_t pipeline_node_time(const struct pipeline_node *n) {
    return pipeline_node_now(n);
}

bool pipeline_settled(const struct pipeline_node *n, int64_t time) {
    return !n->open || n->advanced >= time_add(time, GRACE_NS + GRACE_ASK_NS);
}

void pipeline_rested(struct pipeline_node *n, int64_t time) {
    int64_t settled = time_add(time, DISORDER_NS);
    n->rested = time;
    n->advance_at = n->advance_at < settled ? n->advance_at : settled;
}

void pipeline_set_live(struct pipeline_node *n, struct live *live) {
    n->live_rows = live;
}

void pipeline_set_slow(struct pipeline_node *n, int64_t slow_ns) {
    n->slow_ns = slow_ns;
}

void pipeline_node_has_tiers(struct pipeline_node *n) {
    for (uint32_t i = 0; i < n->tiers.count; i++) {
        if (n->tiers.functions[i].role == ROLE_TIER) {
            n->tiers_had[n->tiers.functions[i].tier] = true;
        }
    }
}

// Costs go with the functions.
static void find_costs(struct pipeline_node *n) {
    memset(n->costs, 0, sizeof n->costs);
    memset(n->cost_of, 0, sizeof n->cost_of);
    for (uint32_t i = 0; i < n->tiers.count; i++) {
        if (n->tiers.functions[i].role == ROLE_TIER) {
            n->cost_of[n->tiers.functions[i].tier] = (uint16_t)(i + 1);
        }
    }
}

void pipeline_set_tiers(struct pipeline_node *n, struct tier_set tiers) {
    ledger_settle_costs(n);
    tier_set_free(&n->tiers);
    n->tiers = tiers;
    n->tier_count = tiers.tiers;
    pipeline_node_has_tiers(n);
    find_costs(n);
    n->reader = (struct message_reader){0};
    identify_reset(&n->identify);
}

void pipeline_set_labels(struct pipeline_node *n, uint32_t start) {
    if (n->open && n->latest_stream.labels == 0) {
        n->latest_stream.labels = start;
    } else {
        n->labels_to_come = start;
    }
    label_makers_tell(&n->pipeline->names->makers, n->id, start);
}

void pipeline_set_clock(struct pipeline_node *n, int64_t ticks_per_second, int64_t offset_ticks) {
    n->ticks_per_second = ticks_per_second;
    n->synced = false; // a node that was started anew counts its time anew
    n->untraced_until = INT64_MIN;
    pipeline_set_offset(n, offset_ticks);
}

void pipeline_set_offset(struct pipeline_node *n, int64_t offset_ticks) {
    n->account.offset = pipeline_node_ns(n, offset_ticks);
}

void pipeline_sync(struct pipeline_node *n, int64_t at_ticks, struct pipeline_now now) {
    n->synced = true;
    n->synced_node = pipeline_node_ns(n, at_ticks);
    n->synced_at = now;
}

struct stats *pipeline_swap(struct pipeline *p, struct stats *empty) {
    struct stats *full = p->stats;
    p->stats = empty;
    p->handed_out = full;
    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        if (p->nodes[i]) {
            p->nodes[i]->account.stats = empty;
        }
    }
    stats_add_totals(full);
    return full;
}

const struct stats *pipeline_stats(const struct pipeline *p) {
    return p->stats;
}

bool pipeline_clock_offset(const struct pipeline_node *n, int64_t *ahead) {
    *ahead = time_sub(time_add(n->synced_node, n->account.offset), n->synced_at.wall);
    return n->synced;
}

uint32_t pipeline_tiers(const struct pipeline_node *n) {
    return n->tier_count;
}

struct pipeline_totals pipeline_totals(const struct pipeline_node *n) {
    return n->totals;
}
