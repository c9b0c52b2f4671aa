// SPDX-License-Identifier: Apache-2.0
#include "store/query_profile.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "internal.h"
#include "store/query_samples.h"

#define LINES                                                                                       \
    "SELECT p.id, kind, p.name, n.name, begin_ns, end_ns, settings, requests, incomplete, others, " \
    "unseen, refused, processes, messages, losses, duration_ns, parallel_ns, missing_ns, p.cut, "   \
    "rows, bytes, functions, stood_ns, tiers_rested, otp, asleep_in_self, gc_in_self, "             \
    "coalesce(s.looks + s.unchanged, 0), p.label, "                                                 \
    "CASE WHEN json_valid(settings) THEN json_extract(settings, '$.trigger') END "                  \
    "FROM profile_rows AS p JOIN node_names AS n "                                                  \
    "ON n.id = p.node_id LEFT JOIN profile_sampled_rows AS s ON s.profile_id = p.id "

enum {
    ID,
    KIND,
    NAME,
    NODE,
    BEGIN,
    END,
    SETTINGS,
    COUNTS,
    DURATION = COUNTS + 8,
    PARALLEL,
    MISSING,
    CUT,
    ROWS,
    BYTES,
    FUNCTIONS,
    STOOD,
    RESTED,
    OTP,
    ASLEEP_IN_SELF,
    GC_IN_SELF,
    LOOKS,
    LABEL,
    TRIGGER
};

static const char *text(sqlite3_stmt *from, int column) {
    const unsigned char *bytes = sqlite3_column_text(from, column);
    return bytes ? (const char *)bytes : "";
}

// Whoever edits the file may enter anything: times are brought within bounds, a profile of which
// other numbers do not fit is refused. Values of some hundred profiles can be added up: what
// those of one come to is a number that a double holds exactly, 104 days.
static const int64_t LATEST = INT64_MAX / 2, LARGEST = 1LL << 53;

static int64_t within(int64_t value, int64_t least, int64_t most) {
    return value < least ? least : value > most ? most : value;
}

static void read_line(sqlite3_stmt *from, struct profile_line *out) {
    *out = (struct profile_line){.id = sqlite3_column_int64(from, ID),
                                 .cut = sqlite3_column_int64(from, CUT) != 0,
                                 .rows = sqlite3_column_int64(from, ROWS),
                                 .looks = within(sqlite3_column_int64(from, LOOKS), 0, LARGEST)};
    struct profile_head *h = &out->head;
    h->kind = sqlite3_column_int64(from, KIND) == PROFILE_SAMPLES ? PROFILE_SAMPLES : PROFILE_FULL;
    names_clean(slice_text(text(from, NAME)), h->name, sizeof h->name);
    names_clean(slice_text(text(from, NODE)), h->node, sizeof h->node);
    names_clean(slice_text(text(from, SETTINGS)), h->settings, sizeof h->settings);
    names_clean(slice_text(text(from, LABEL)), h->label, sizeof h->label);
    names_clean(slice_text(text(from, TRIGGER)), h->trigger, sizeof h->trigger);
    h->begin_ns = within(sqlite3_column_int64(from, BEGIN), 0, LATEST);
    h->end_ns = within(sqlite3_column_int64(from, END), h->begin_ns, LATEST);
    struct profile_counts *c = &out->counts;
    uint64_t *const counts[] = {&c->requests, &c->incomplete, &c->others,   &c->unseen,
                                &c->refused,  &c->processes,  &c->messages, &c->lost};
    for (int i = 0; i < 8; i++) {
        *counts[i] = (uint64_t)sqlite3_column_int64(from, COUNTS + i);
    }
    c->duration_ns = sqlite3_column_int64(from, DURATION);
    c->parallel_ns = sqlite3_column_int64(from, PARALLEL);
    c->missing_ns = sqlite3_column_int64(from, MISSING);
    names_clean(slice_text(text(from, OTP)), h->otp, sizeof h->otp);
    h->asleep_in_self = sqlite3_column_int64(from, ASLEEP_IN_SELF) != 0;
    h->gc_in_self = sqlite3_column_int64(from, GC_IN_SELF) != 0;
    c->bytes = (uint64_t)sqlite3_column_int64(from, BYTES);
    c->functions = (uint64_t)sqlite3_column_int64(from, FUNCTIONS);
    c->stood_ns = within(sqlite3_column_int64(from, STOOD), 0, LATEST);
    c->rested = sqlite3_column_int64(from, RESTED) != 0;
}

static bool add_line(struct store *s, sqlite3_stmt *from, struct profile_list *list) {
    bool full = (list->count & (list->count - 1)) == 0; // 0, 1, 2, 4, …
    if (full) {
        size_t room = list->count ? 2 * (size_t)list->count : 1;
        struct profile_line *more = realloc(list->lines, room * sizeof *more);
        if (!more) {
            return query_no_memory(s);
        }
        list->lines = more;
    }
    read_line(from, &list->lines[list->count++]);
    return true;
}

static void read_process(sqlite3_stmt *at, struct profile_missed *out) {
    names_clean(slice_text(text(at, 0)), out->pid, sizeof out->pid);
    names_clean(slice_text(text(at, 1)), out->name, sizeof out->name);
    out->requests = (uint64_t)sqlite3_column_int64(at, 2);
}

static const char missed_sql[] = "SELECT pid, name, requests FROM profile_missed_rows WHERE "
                                 "profile_id = ?1 ORDER BY place LIMIT 32";
_Static_assert(LIMIT_FULL_SUSPECTS == 32, "as many are asked for");

// The processes that each was not followed into.
static bool add_missed(struct store *s, struct profile_list *list) {
    sqlite3_stmt *missed;
    bool ok = sqlite3_prepare_v2(s->db, missed_sql, -1, &missed, NULL) == SQLITE_OK ||
              store_fail(s, "query the profiles");
    for (uint32_t i = 0; ok && i < list->count; i++) {
        struct profile_line *l = &list->lines[i];
        int rc;
        sqlite3_bind_int64(missed, 1, l->id);
        for (uint32_t room = 0; ok && (rc = sqlite3_step(missed)) == SQLITE_ROW;) {
            ok = array_grow((void **)&l->missed, &room, l->missed_count, sizeof *l->missed) ||
                 query_no_memory(s);
            if (ok) {
                read_process(missed, &l->missed[l->missed_count++]);
            }
        }
        ok = ok && (rc == SQLITE_DONE || store_fail(s, "query the profiles"));
        sqlite3_reset(missed);
    }
    sqlite3_finalize(missed);
    return ok;
}

bool query_profiles(struct store *s, const struct profile_filter *filter,
                    struct profile_list *out) {
    sqlite3_stmt *lines;
    *out = (struct profile_list){0};
    if (sqlite3_prepare_v2(
            s->db,
            LINES
            "WHERE end_ns >= ?1 AND iif(?6, begin_ns, end_ns) < ?2 AND (?7 IS NULL OR p.label = ?7) AND (?3 IS NULL OR " QUERY_AMONG(
                "n.name",
                "?3") ") AND (?5 IS NULL OR EXISTS (SELECT 1 FROM profile_value_rows AS v "
                      "JOIN identity_names AS i ON i.id = v.identity_id WHERE "
                      "v.profile_id = p.id AND v.metric = 0 AND " QUERY_AMONG(
                          "i.name", "?5") " AND "
                                          "v.stack = 0)) ORDER BY end_ns DESC, p.id DESC LIMIT ?4",
            -1, &lines, NULL) != SQLITE_OK) {
        return store_fail(s, "query the profiles");
    }
    sqlite3_bind_int64(lines, 1, time_of_seconds(filter->from_s));
    sqlite3_bind_int64(lines, 2, time_of_seconds(filter->until_s));
    sqlite3_bind_text(lines, 3, filter->node, -1, SQLITE_STATIC); // NULL binds NULL
    sqlite3_bind_int64(lines, 4, filter->most);
    sqlite3_bind_text(lines, 5, filter->identity, -1, SQLITE_STATIC);
    sqlite3_bind_int(lines, 6, filter->in_part);
    sqlite3_bind_text(lines, 7, filter->label, -1, SQLITE_STATIC);
    int rc = SQLITE_ERROR;
    bool ok = true;
    while (ok && (rc = sqlite3_step(lines)) == SQLITE_ROW) {
        ok = add_line(s, lines, out);
    }
    ok = ok && (rc == SQLITE_DONE || store_fail(s, "query the profiles"));
    sqlite3_finalize(lines);
    return ok && add_missed(s, out);
}

void profile_list_free(struct profile_list *list) {
    for (uint32_t i = 0; i < list->count; i++) {
        free(list->lines[i].missed);
    }
    free(list->lines);
    *list = (struct profile_list){0};
}

// -- one profile ----------------------------------------------------------------------------------

static const char what[] = "query a profile";

struct reading {
    struct store *store;
    int64_t id;
    struct profile *profile;
    uint32_t *frames; // the file's -> the profile's
    uint32_t frame_count;
    uint32_t *stacks; // likewise
    uint32_t stack_count;
    uint16_t processes[LIMIT_PROFILE_PROCESSES]; // the file's -> names of the profile's
    uint32_t process_count;
    int64_t wall, calls; // of all values so far
};

static bool each_row(struct reading *r, const char *sql, bool (*row)(void *to, sqlite3_stmt *at)) {
    return query_rows_of(r->store, what, r->id, sql, row, r);
}

static bool damaged(struct reading *r, const char *why) {
    snprintf(r->store->error, sizeof r->store->error, "%s: %s", what, why);
    return false;
}

static bool read_head(void *to, sqlite3_stmt *at) {
    struct reading *r = to;
    struct profile_line line;
    read_line(at, &line);
    r->profile->head = line.head;
    r->profile->counts = line.counts;
    r->profile->stacks.full = line.cut;
    r->frame_count = 1; // found
    return true;
}

static bool read_frame(void *to, sqlite3_stmt *at) {
    struct reading *r = to;
    int64_t number = sqlite3_column_int64(at, 0), kind = sqlite3_column_int64(at, 1);
    if (number != r->frame_count || r->frame_count == LIMIT_PROFILE_FRAMES || kind < 0 ||
        kind > FRAME_GROUP) {
        return damaged(r, "its frames are not in order");
    }
    const char *module = text(at, 3);
    uint32_t frame = stacks_frame(&r->profile->stacks, (enum stack_frame_kind)kind,
                                  slice_text(text(at, 2)), slice_text(module));
    if (module[0] && text(at, 4)[0]) {
        profile_module(r->profile, slice_text(module), slice_text(text(at, 4)));
    }
    r->frames[r->frame_count++] = frame;
    return frame != UINT32_MAX || query_no_memory(r->store);
}

static bool read_stack(void *to, sqlite3_stmt *at) {
    struct reading *r = to;
    int64_t number = sqlite3_column_int64(at, 0), parent = sqlite3_column_int64(at, 1),
            frame = sqlite3_column_int64(at, 2);
    if (number != r->stack_count || r->stack_count == LIMIT_PROFILE_STACKS || frame < 0 ||
        frame >= r->frame_count || parent < 0 || (number > 0 && parent >= number)) {
        return damaged(r, "its stacks are not in order");
    }
    r->stacks[r->stack_count++] =
        number == 0 ? STACK_ROOT
                    : stacks_push(&r->profile->stacks, r->stacks[parent], r->frames[frame]);
    return true;
}

// Adds a weight of the file's. identity: its name.
static bool add_weight(struct reading *r, int64_t stack, const char *identity, uint16_t process,
                       int64_t calls, int64_t ns) {
    if (stack < 0 || stack >= r->stack_count || calls < 0 || ns < 0) {
        return damaged(r, "its values are of no stack");
    }
    uint32_t name = names_intern(&r->profile->stacks.names, slice_text(identity));
    if (calls > LARGEST - r->calls || ns > LARGEST - r->wall) {
        return damaged(r, "its values are too large");
    }
    r->calls += calls;
    r->wall += ns;
    if (name == NAME_NONE) {
        return query_no_memory(r->store);
    }
    profile_add(r->profile, profile_key(r->stacks[stack], (uint16_t)name, process), (uint64_t)calls,
                ns);
    return true;
}

static bool read_process_name(void *to, sqlite3_stmt *at) {
    struct reading *r = to;
    if (sqlite3_column_int64(at, 0) != r->process_count ||
        r->process_count == LIMIT_PROFILE_PROCESSES) {
        return damaged(r, "its processes are not in order");
    }
    uint32_t name = names_intern(&r->profile->stacks.names, slice_text(text(at, 1)));
    r->processes[r->process_count++] = (uint16_t)name;
    return name != NAME_NONE || query_no_memory(r->store);
}

static bool read_process_weight(void *to, sqlite3_stmt *at) {
    struct reading *r = to;
    int64_t process = sqlite3_column_int64(at, 2);
    if (process < 0 || process >= r->process_count) {
        return damaged(r, "its values are of no process");
    }
    return add_weight(r, sqlite3_column_int64(at, 0), text(at, 1), r->processes[process],
                      sqlite3_column_int64(at, 4), sqlite3_column_int64(at, 3));
}

// What of a value is of no process that is known.
static bool read_value(void *to, sqlite3_stmt *at) {
    struct reading *r = to;
    bool wall = sqlite3_column_int64(at, 0) == 0;
    int64_t self = sqlite3_column_int64(at, 3);
    return add_weight(r, sqlite3_column_int64(at, 2), text(at, 1), PROFILE_NOBODY, wall ? 0 : self,
                      wall ? self : 0);
}

static bool read_longest(void *to, sqlite3_stmt *at) {
    struct reading *r = to;
    struct timeline *t = &r->profile->timeline;
    struct slice bytes = slice_of(sqlite3_column_blob(at, 0), (size_t)sqlite3_column_bytes(at, 0));
    if (!timeline_unpack(bytes, r->stack_count, t)) {
        return damaged(r, "its longest request cannot be read");
    }
    for (uint32_t i = 0; i < t->count; i++) {
        t->events[i].stack = r->stacks[t->events[i].stack];
    }
    r->profile->timeline_ns = sqlite3_column_int64(at, 1);
    uint32_t identity = names_intern(&r->profile->stacks.names, slice_text(text(at, 2)));
    r->profile->timeline_identity = (uint16_t)identity;
    return identity != NAME_NONE || query_no_memory(r->store);
}

static bool read_requests(void *to, sqlite3_stmt *at) {
    struct reading *r = to;
    struct profile *p = r->profile;
    uint32_t name = names_intern(&p->stacks.names, slice_text(text(at, 0)));
    if (name == NAME_NONE || p->identity_count == PROFILE_IDENTITIES) {
        return true; // these numbers are not needed to draw it
    }
    p->identities[p->identity_count++] =
        (struct profile_identity){.name = (uint16_t)name,
                                  .requests = (uint64_t)sqlite3_column_int64(at, 1),
                                  .ns = sqlite3_column_int64(at, 2),
                                  .others = (uint64_t)sqlite3_column_int64(at, 3),
                                  .others_ns = sqlite3_column_int64(at, 4)};
    return true;
}

static bool read_missed(void *to, sqlite3_stmt *at) {
    struct reading *r = to;
    struct profile *p = r->profile;
    if (p->missed_count < LIMIT_FULL_SUSPECTS) {
        read_process(at, &p->missed[p->missed_count++]);
    }
    return true;
}

static bool read_stacks(struct reading *r) {
    return each_row(r,
                    "SELECT frame, kind, name, module, application FROM profile_frame_rows "
                    "WHERE profile_id = ?1 ORDER BY frame",
                    read_frame) &&
           each_row(r,
                    "SELECT stack, parent, frame FROM profile_stack_rows WHERE profile_id = ?1 "
                    "ORDER BY stack",
                    read_stack);
}

static bool read_all(struct reading *r, bool *found) {
    r->frame_count = 0;
    if (!each_row(r, LINES "WHERE p.id = ?1", read_head)) {
        return false;
    }
    *found = r->frame_count > 0;
    r->frame_count = r->stack_count = 0;
    if (*found && r->profile->head.kind == PROFILE_SAMPLES) {
        return read_stacks(r) &&
               query_samples(r->store, r->id, r->stacks, r->stack_count, r->profile);
    }
    return !*found ||
           (read_stacks(r) &&
            each_row(
                r,
                "SELECT longest, longest_ns, longest_identity FROM profile_rows WHERE id = ?1 AND "
                "longest_ns > 0",
                read_longest) &&
            each_row(r,
                     "SELECT i.name, requests, duration_ns, others, others_ns FROM "
                     "profile_request_rows AS r JOIN identity_names AS i ON i.id = r.identity_id "
                     "WHERE profile_id = ?1 AND requests > 0 ORDER BY requests DESC, i.name",
                     read_requests) &&
            each_row(r, missed_sql, read_missed) &&
            each_row(r,
                     "SELECT process, name FROM profile_process_names WHERE profile_id = ?1 "
                     "ORDER BY process",
                     read_process_name) &&
            each_row(r,
                     "SELECT stack, i.name, process, ns, calls FROM profile_process_rows AS r "
                     "JOIN identity_names AS i ON i.id = r.identity_id WHERE profile_id = ?1",
                     read_process_weight) &&
            each_row(r,
                     "SELECT metric, i.name, v.stack, self - coalesce((SELECT "
                     "sum(CASE v.metric WHEN 0 THEN ns ELSE calls END) "
                     "FROM profile_process_rows AS p WHERE p.profile_id = v.profile_id AND "
                     "p.stack = v.stack AND p.identity_id = v.identity_id), 0) AS rest "
                     "FROM profile_value_rows AS v JOIN identity_names AS i ON i.id = "
                     "v.identity_id WHERE v.profile_id = ?1 AND rest <> 0",
                     read_value));
}

bool query_profile(struct store *s, int64_t id, bool *found, struct profile *out) {
    struct reading r = {.store = s,
                        .id = id,
                        .profile = out,
                        .frames = malloc(LIMIT_PROFILE_FRAMES * sizeof *r.frames),
                        .stacks = malloc(LIMIT_PROFILE_STACKS * sizeof *r.stacks)};
    bool ok = profile_init(out) && r.frames && r.stacks;
    *found = false;
    if (!ok) {
        query_no_memory(s);
    } else if (sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
        ok = store_fail(s, what);
    } else {
        ok = read_all(&r, found);
        sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
    }
    free(r.frames);
    free(r.stacks);
    return ok;
}

bool query_profile_named(struct store *s, const char *name, int64_t *id) {
    sqlite3_stmt *finding;
    *id = 0;
    if (sqlite3_prepare_v2(s->db, "SELECT max(id) FROM profile_rows WHERE name = ?1", -1, &finding,
                           NULL) != SQLITE_OK) {
        return store_fail(s, what);
    }
    sqlite3_bind_text(finding, 1, name, -1, SQLITE_STATIC);
    bool ok = sqlite3_step(finding) == SQLITE_ROW || store_fail(s, what);
    *id = ok ? sqlite3_column_int64(finding, 0) : 0;
    sqlite3_finalize(finding);
    return ok;
}
