// SPDX-License-Identifier: Apache-2.0
#include "store/keep_profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "model/profile/flame.h"
#include "store/keep_samples.h"

// The numbers stand in the file: schema/008_profiles.sql and those behind it.
_Static_assert(PROFILE_FULL == 0 && PROFILE_SAMPLES == 1, "kinds as the schema tells them");
_Static_assert(FRAME_FUNCTION == 0 && FRAME_WAITING == 1 && FRAME_ASLEEP == 2 && FRAME_GC == 3 &&
                   FRAME_CUT == 4 && FRAME_GROUP == 5,
               "frames as the schema tells them");
enum { METRIC_WALL, METRIC_CALLS, METRIC_SAMPLES, METRIC_REDUCTIONS };
enum { MOST_TIMELINE_BYTES = 24 * LIMIT_TIMELINE_EVENTS + 10 * LIMIT_TIMELINE_LINES + 64 };

static const char what[] = "keep a profile";

struct keeping {
    struct store *store;
    const struct profile *profile;
    int64_t id;
    int64_t rows;
    const struct flame_tree *tree; // of all identities: its nodes are the stacks
    uint32_t *nodes;               // of the profile's stacks
    int64_t *identities;   // names of the profile -> row ids of identities, 0: not asked yet
    struct buffer longest; // the stored form of the timeline
};

static sqlite3_stmt *prepare(struct store *s, const char *sql) {
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(s->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        store_fail(s, what);
    }
    return statement;
}

static bool no_memory(struct store *s) {
    snprintf(s->error, sizeof s->error, "%s: no memory", what);
    return false;
}

// The row id of an identity by its number among the profile's names; 0 when it cannot be had.
static int64_t identity_id(struct keeping *k, uint16_t name) {
    if (k->identities[name] == 0) {
        k->identities[name] =
            store_name_id(k->store, STATEMENT_ADD_IDENTITY, STATEMENT_FIND_IDENTITY,
                          names_text(&k->profile->stacks.names, name));
    }
    return k->identities[name];
}

// -- stacks as they are numbered in the file ------------------------------------------------------

// The node of a frame above another node; that one when there is none.
static uint32_t node_above(const struct keeping *k, uint32_t below,
                           const struct stack_frame *frame) {
    const char *name = names_text(&k->profile->stacks.names, frame->name);
    for (uint32_t at = below + 1; at < k->tree->nodes[below].end; at = k->tree->nodes[at].end) {
        const struct flame_frame *f = &k->tree->frames[k->tree->nodes[at].frame];
        if (f->kind == frame->kind && strcmp(f->name, name) == 0) {
            return at;
        }
    }
    return below;
}

// A stack comes behind the one below it.
static bool number_stacks(struct keeping *k) {
    const struct stacks *all = &k->profile->stacks;
    k->nodes = calloc(all->stack_count, sizeof *k->nodes);
    for (uint32_t i = 1; k->nodes && i < all->stack_count; i++) {
        const struct stack *s = &all->all[i];
        k->nodes[i] = node_above(k, k->nodes[s->parent], &all->frames[s->frame]);
    }
    return k->nodes || no_memory(k->store);
}

// Packs the timeline with these numbers.
static bool pack_longest(struct keeping *k) {
    const struct profile *p = k->profile;
    struct timeline renamed = p->timeline;
    renamed.events = malloc((p->timeline.count + 1) * sizeof *renamed.events);
    bool ok = renamed.events;
    for (uint32_t i = 0; ok && i < p->timeline.count; i++) {
        renamed.events[i] = p->timeline.events[i];
        renamed.events[i].stack = k->nodes[p->timeline.events[i].stack];
    }
    ok = ok && timeline_pack(&renamed, &k->longest);
    free(renamed.events);
    return ok || no_memory(k->store);
}

// -- rows -----------------------------------------------------------------------------------------

static bool add_head(struct keeping *k) {
    struct store *s = k->store;
    const struct profile_head *h = &k->profile->head;
    const struct profile_counts *c = &k->profile->counts;
    int64_t node = store_name_id(s, STATEMENT_ADD_NODE, STATEMENT_FIND_NODE, h->node);
    sqlite3_stmt *adding = prepare(
        s,
        "INSERT INTO profile_rows (kind, name, node_id, begin_ns, end_ns, settings, "
        "requests, incomplete, others, unseen, refused, processes, messages, losses, "
        "duration_ns, parallel_ns, missing_ns, cut, longest_ns, longest, bytes, functions, "
        "stood_ns, tiers_rested, otp, asleep_in_self, gc_in_self, longest_identity, label, rows) "
        "VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,"
        "?20,?21,?22,?23,?24,?25,?26,?27,?28,?29,0)");
    if (node == 0 || !adding) {
        sqlite3_finalize(adding);
        return false;
    }
    sqlite3_bind_int(adding, 1, h->kind);
    sqlite3_bind_text(adding, 2, h->name, -1, SQLITE_STATIC);
    sqlite3_bind_int64(adding, 3, node);
    sqlite3_bind_int64(adding, 4, h->begin_ns);
    sqlite3_bind_int64(adding, 5, h->end_ns);
    sqlite3_bind_text(adding, 6, h->settings, -1, SQLITE_STATIC);
    const uint64_t counts[] = {c->requests, c->incomplete, c->others,   c->unseen,
                               c->refused,  c->processes,  c->messages, c->lost};
    for (int i = 0; i < 8; i++) {
        store_bind_count(adding, 7 + i, counts[i]);
    }
    sqlite3_bind_int64(adding, 15, c->duration_ns);
    sqlite3_bind_int64(adding, 16, c->parallel_ns);
    sqlite3_bind_int64(adding, 17, c->missing_ns);
    sqlite3_bind_int(adding, 18, k->profile->stacks.full);
    sqlite3_bind_int64(adding, 19, k->longest.len > 0 ? k->profile->timeline_ns : 0);
    if (k->longest.len > 0) {
        sqlite3_bind_blob64(adding, 20, k->longest.data, k->longest.len, SQLITE_STATIC);
        sqlite3_bind_text(adding, 28,
                          names_text(&k->profile->stacks.names, k->profile->timeline_identity), -1,
                          SQLITE_STATIC);
    }
    store_bind_count(adding, 21, c->bytes);
    store_bind_count(adding, 22, c->functions);
    sqlite3_bind_int64(adding, 23, c->stood_ns);
    sqlite3_bind_int(adding, 24, c->rested);
    sqlite3_bind_text(adding, 25, h->otp, -1, SQLITE_STATIC);
    sqlite3_bind_int(adding, 26, h->asleep_in_self);
    sqlite3_bind_int(adding, 27, h->gc_in_self);
    sqlite3_bind_text(adding, 29, h->label, -1, SQLITE_STATIC);
    bool ok = store_run(s, adding, what);
    sqlite3_finalize(adding);
    k->id = sqlite3_last_insert_rowid(s->db);
    return ok;
}

static bool add_frames(struct keeping *k) {
    sqlite3_stmt *adding = prepare(k->store, "INSERT INTO profile_frame_rows (profile_id, frame, "
                                             "kind, name, module, application) "
                                             "VALUES (?1,?2,?3,?4,?5,?6)");
    bool ok = adding != NULL;
    for (uint32_t i = 0; ok && i < k->tree->frame_count; i++) {
        const struct flame_frame *f = &k->tree->frames[i];
        sqlite3_bind_int64(adding, 1, k->id);
        sqlite3_bind_int64(adding, 2, i);
        sqlite3_bind_int(adding, 3, f->kind);
        sqlite3_bind_text(adding, 4, f->name, -1, SQLITE_STATIC);
        sqlite3_bind_text(adding, 5, f->module, -1, SQLITE_STATIC);
        sqlite3_bind_text(adding, 6, f->application, -1, SQLITE_STATIC);
        ok = store_run(k->store, adding, what);
        k->rows++;
    }
    sqlite3_finalize(adding);
    return ok;
}

static bool add_stacks(struct keeping *k) {
    sqlite3_stmt *adding = prepare(k->store, "INSERT INTO profile_stack_rows (profile_id, stack, "
                                             "parent, level, frame) VALUES (?1,?2,?3,?4,?5)");
    bool ok = adding != NULL;
    for (uint32_t i = 0; ok && i < k->tree->node_count; i++) {
        const struct flame_node *n = &k->tree->nodes[i];
        sqlite3_bind_int64(adding, 1, k->id);
        sqlite3_bind_int64(adding, 2, i);
        sqlite3_bind_int64(adding, 3, n->parent);
        sqlite3_bind_int64(adding, 4, n->depth);
        sqlite3_bind_int64(adding, 5, n->frame);
        ok = store_run(k->store, adding, what);
        k->rows++;
    }
    sqlite3_finalize(adding);
    return ok;
}

// -- values, identity by identity -----------------------------------------------------------------

// What is known of a node of a part of the tree.
struct placed {
    uint32_t stack; // its number: the node of the whole tree
    uint32_t next;  // where its next child is looked for there; both have them in the same order
    uint64_t calls; // of it and all above it
};

// The node of the whole tree above another one; UINT32_MAX: there is none from `at` on.
static uint32_t find_node(const struct flame_tree *whole, uint32_t below, uint32_t at,
                          const struct flame_frame *frame) {
    for (; at < whole->nodes[below].end; at = whole->nodes[at].end) {
        const struct flame_frame *f = &whole->frames[whole->nodes[at].frame];
        if (f->kind == frame->kind && strcmp(f->name, frame->name) == 0) {
            return at;
        }
    }
    return UINT32_MAX;
}

static bool add_value(struct keeping *k, sqlite3_stmt *adding, uint32_t stack, int64_t value,
                      int64_t self) {
    if (value == 0 && self == 0) {
        return true;
    }
    sqlite3_bind_int64(adding, 4, stack);
    sqlite3_bind_int64(adding, 5, value);
    sqlite3_bind_int64(adding, 6, self);
    k->rows++;
    return store_run(k->store, adding, what);
}

static bool place_node(const struct keeping *k, const struct flame_tree *part,
                       struct placed *places, uint32_t i) {
    if (i == 0) {
        places[0].stack = 0;
        places[0].next = 1;
        return true;
    }
    struct placed *below = &places[part->nodes[i].parent];
    uint32_t stack =
        find_node(k->tree, below->stack, below->next, &part->frames[part->nodes[i].frame]);
    if (stack == UINT32_MAX) {
        snprintf(k->store->error, sizeof k->store->error, "%s: its stacks do not fit", what);
        return false;
    }
    below->next = k->tree->nodes[stack].end;
    places[i].stack = stack;
    places[i].next = stack + 1;
    return true;
}

static bool add_part(struct keeping *k, sqlite3_stmt *adding, const struct flame_tree *part,
                     struct placed *places) {
    for (uint32_t i = part->node_count; i > 0; i--) {
        const struct flame_node *n = &part->nodes[i - 1];
        places[i - 1].calls += n->calls;
        if (i > 1) {
            places[n->parent].calls += places[i - 1].calls;
        }
    }
    for (uint32_t i = 0; i < part->node_count; i++) {
        const struct flame_node *n = &part->nodes[i];
        if (!place_node(k, part, places, i)) {
            return false;
        }
        bool samples = k->profile->head.kind == PROFILE_SAMPLES;
        sqlite3_bind_int(adding, 2, samples ? METRIC_REDUCTIONS : METRIC_WALL);
        bool ok = add_value(k, adding, places[i].stack, n->weight.total, n->weight.self);
        sqlite3_bind_int(adding, 2, samples ? METRIC_SAMPLES : METRIC_CALLS);
        if (!ok ||
            !add_value(k, adding, places[i].stack, (int64_t)places[i].calls, (int64_t)n->calls)) {
            return false;
        }
    }
    return true;
}

static bool add_identity(struct keeping *k, sqlite3_stmt *adding, uint16_t identity) {
    struct flame_tree part;
    int64_t row = identity_id(k, identity);
    struct flame_options options = {.metric = FLAME_WALL,
                                    .only = names_text(&k->profile->stacks.names, identity)};
    if (row == 0) {
        return false;
    }
    if (!flame_tree_init(&part)) {
        return no_memory(k->store);
    }
    bool made =
        flame_tree_add(&part, k->profile, &options, FLAME_AFTER) && flame_tree_finish(&part);
    struct placed *places = made ? calloc(part.node_count, sizeof *places) : NULL;
    sqlite3_bind_int64(adding, 1, k->id);
    sqlite3_bind_int64(adding, 3, row);
    bool ok = places ? add_part(k, adding, &part, places) : no_memory(k->store);
    free(places);
    flame_tree_free(&part);
    return ok;
}

static bool add_values(struct keeping *k) {
    const struct weights *w = &k->profile->weights;
    sqlite3_stmt *adding = prepare(k->store, "INSERT INTO profile_value_rows (profile_id, metric, "
                                             "identity_id, stack, value, self) "
                                             "VALUES (?1,?2,?3,?4,?5,?6)");
    bool *done = calloc(PROFILE_NOBODY + 1, sizeof *done);
    bool ok = adding && (done || no_memory(k->store));
    for (uint32_t i = 0; ok && i < w->count; i++) {
        uint16_t identity = profile_key_identity(w->all[i].key);
        if (!done[identity] && identity != PROFILE_NOBODY) {
            done[identity] = true;
            ok = add_identity(k, adding, identity);
        }
    }
    free(done);
    sqlite3_finalize(adding);
    return ok;
}

// -- processes ------------------------------------------------------------------------------------

static bool add_process(struct keeping *k, sqlite3_stmt *adding, uint32_t number, uint16_t name) {
    sqlite3_bind_int64(adding, 1, k->id);
    sqlite3_bind_int64(adding, 2, number);
    sqlite3_bind_text(adding, 3, names_text(&k->profile->stacks.names, name), -1, SQLITE_STATIC);
    k->rows++;
    return store_run(k->store, adding, what);
}

static bool add_process_weight(struct keeping *k, sqlite3_stmt *adding, const struct weight *w,
                               uint32_t process) {
    int64_t identity = identity_id(k, profile_key_identity(w->key));
    sqlite3_bind_int64(adding, 1, k->id);
    sqlite3_bind_int64(adding, 2, k->nodes[profile_key_stack(w->key)]);
    sqlite3_bind_int64(adding, 3, identity);
    sqlite3_bind_int64(adding, 4, process);
    sqlite3_bind_int64(adding, 5, w->ns);
    store_bind_count(adding, 6, w->calls);
    k->rows++;
    return identity != 0 && store_run(k->store, adding, what);
}

// What the weights of processes are that have a name: a part of the values.
static bool add_processes(struct keeping *k) {
    const struct weights *w = &k->profile->weights;
    sqlite3_stmt *naming = prepare(k->store, "INSERT INTO profile_process_names (profile_id, "
                                             "process, name) VALUES (?1,?2,?3)");
    sqlite3_stmt *adding = prepare(k->store, "INSERT INTO profile_process_rows (profile_id, stack, "
                                             "identity_id, process, ns, calls) "
                                             "VALUES (?1,?2,?3,?4,?5,?6)");
    uint32_t *numbers = calloc(PROFILE_NOBODY, sizeof *numbers); // of names, plus 1
    uint32_t count = 0;
    bool ok = naming && adding && (numbers || no_memory(k->store));
    for (uint32_t i = 0; ok && i < w->count; i++) {
        uint16_t process = profile_key_process(w->all[i].key);
        if (process == PROFILE_NOBODY || profile_key_identity(w->all[i].key) == PROFILE_NOBODY) {
            continue;
        }
        if (numbers[process] == 0) {
            ok = add_process(k, naming, count, process);
            numbers[process] = ++count;
        }
        ok = ok && add_process_weight(k, adding, &w->all[i], numbers[process] - 1);
    }
    free(numbers);
    sqlite3_finalize(naming);
    sqlite3_finalize(adding);
    return ok;
}

// -- its requests, and where it was not followed --------------------------------------------------

static bool add_requests(struct keeping *k) {
    const struct profile *p = k->profile;
    sqlite3_stmt *adding =
        prepare(k->store, "INSERT INTO profile_request_rows (profile_id, identity_id, requests, "
                          "duration_ns, others, others_ns) VALUES (?1,?2,?3,?4,?5,?6)");
    bool ok = adding != NULL;
    for (uint32_t i = 0; ok && i < p->identity_count; i++) {
        const struct profile_identity *of = &p->identities[i];
        if (of->requests == 0) {
            continue;
        }
        int64_t identity = identity_id(k, of->name);
        sqlite3_bind_int64(adding, 1, k->id);
        sqlite3_bind_int64(adding, 2, identity);
        store_bind_count(adding, 3, of->requests);
        sqlite3_bind_int64(adding, 4, of->ns);
        store_bind_count(adding, 5, of->others);
        sqlite3_bind_int64(adding, 6, of->others_ns);
        ok = identity != 0 && store_run(k->store, adding, what);
        k->rows++;
    }
    sqlite3_finalize(adding);
    return ok;
}

static bool add_missed(struct keeping *k) {
    const struct profile *p = k->profile;
    sqlite3_stmt *adding =
        prepare(k->store, "INSERT INTO profile_missed_rows (profile_id, place, pid, name, "
                          "requests) VALUES (?1,?2,?3,?4,?5)");
    bool ok = adding != NULL;
    for (uint32_t i = 0; ok && i < p->missed_count; i++) {
        sqlite3_bind_int64(adding, 1, k->id);
        sqlite3_bind_int64(adding, 2, i);
        sqlite3_bind_text(adding, 3, p->missed[i].pid, -1, SQLITE_STATIC);
        sqlite3_bind_text(adding, 4, p->missed[i].name, -1, SQLITE_STATIC);
        store_bind_count(adding, 5, p->missed[i].requests);
        ok = store_run(k->store, adding, what);
        k->rows++;
    }
    sqlite3_finalize(adding);
    return ok;
}

static bool add_row_count(struct keeping *k) {
    sqlite3_stmt *setting = prepare(k->store, "UPDATE profile_rows SET rows = ?2 WHERE id = ?1");
    if (setting) {
        sqlite3_bind_int64(setting, 1, k->id);
        sqlite3_bind_int64(setting, 2, k->rows);
    }
    bool ok = store_run(k->store, setting, what);
    sqlite3_finalize(setting);
    return ok;
}

bool store_keep_profile(struct store *s, const struct profile *p, int64_t *id) {
    struct flame_tree tree;
    struct flame_options options = {.metric = FLAME_WALL};
    struct keeping k = {.store = s,
                        .profile = p,
                        .tree = &tree,
                        .identities = calloc(PROFILE_NOBODY + 1, sizeof *k.identities),
                        .longest = buffer_make(MOST_TIMELINE_BYTES)};
    s->error[0] = 0;
    if (!k.identities || !flame_tree_init(&tree)) {
        free(k.identities);
        return no_memory(s);
    }
    bool made = flame_tree_add(&tree, p, &options, FLAME_AFTER) && flame_tree_finish(&tree);
    bool ok = (made || no_memory(s)) && number_stacks(&k) &&
              (p->timeline.count == 0 || pack_longest(&k)) && store_begin(s, what);
    if (ok) {
        bool kept = add_head(&k) && add_frames(&k) && add_stacks(&k) && add_values(&k) &&
                    add_processes(&k) && add_requests(&k) && add_missed(&k) &&
                    (!p->samples || store_keep_samples(s, p, k.id, k.nodes, &k.rows)) &&
                    add_row_count(&k);
        ok = store_end(s, kept, what);
    }
    flame_tree_free(&tree);
    free(k.nodes);
    free(k.identities);
    buffer_free(&k.longest);
    *id = k.id;
    return ok;
}
