// SPDX-License-Identifier: Apache-2.0
#include "web/answers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/json.h"
#include "report/compare.h"
#include "report/flame.h"
#include "report/heat.h"
#include "report/notes_json.h"
#include "report/paths.h"
#include "report/report.h"
#include "report/series.h"
#include "report/slow.h"
#include "store/mirror.h"
#include "store/query_slow.h"
#include "web/metrics.h"

enum { OK = 200, BAD = 400, NOT_FOUND = 404, UNREAD = 503, NO_MEMORY = 500 };
enum { MARKED_NOTES = 200, MARKED_PROFILES = 200 }; // at most in a chart: the latest
static const uint64_t US_OF_MS = 1000;

static const char NO_PROFILE[] = "there is no such profile, or it is not kept any more";

static void fail(struct answer *a, int status, const char *why) {
    a->status = status;
    a->why = why;
}

static const char *some(const char *text) {
    return *text ? text : NULL;
}

static struct query query_of(const struct params *p) {
    return (struct query){.from_s = p->from_s,
                          .until_s = p->until_s,
                          .node = some(p->node),
                          .identity = some(p->identity)};
}

// -- what there is --------------------------------------------------------------------------------

static void add_name(void *json, const char *name) {
    json_text(json, name);
}

static void work_nodes(struct store *store, struct answer *a) {
    struct json j = json_make(&a->out);
    int64_t first_s = 0, last_s = 0;
    bool any = query_extent(store, &first_s, &last_s);
    json_open(&j, '{');
    json_key_text(&j, "version", KPROF_VERSION);
    json_key(&j, "exported");
    json_bool(&j, store_is_mirror(store));
    json_key(&j, "clusters");
    json_open(&j, '[');
    bool read = query_clusters(store, add_name, &j);
    json_close(&j, ']');
    json_key(&j, "nodes");
    json_open(&j, '[');
    read = read && query_nodes(store, add_name, &j);
    json_close(&j, ']');
    json_key(&j, "tiers");
    json_open(&j, '[');
    read = read && query_tiers(store, add_name, &j);
    json_close(&j, ']');
    json_key(&j, "first_s");
    any ? json_int(&j, first_s) : json_null(&j);
    json_key(&j, "last_s");
    any ? json_int(&j, last_s) : json_null(&j);
    json_close(&j, '}');
    buffer_text(&a->out, "\n");
    if (!read) {
        fail(a, UNREAD, store_error(store));
    }
}

// -- statistics -----------------------------------------------------------------------------------

static void work_table(struct store *store, struct answer *a) {
    struct query q = query_of(&a->params);
    struct query_sums sums;
    struct report report = {0};
    struct note_filter of = {q.from_s, q.until_s, q.node, REPORT_JSON_NOTES};
    struct note_list notes = {0};
    if (!query_sums(store, &q, &sums) || !query_notes(store, &of, &notes)) {
        fail(a, UNREAD, store_error(store));
    } else if (!report_make(&report, &sums)) {
        fail(a, NO_MEMORY, "no memory");
    } else {
        report_json(&report, some(a->params.tier), NULL, &notes, &a->out);
    }
    note_list_free(&notes);
    report_free(&report);
    query_sums_free(&sums);
}

static void work_series(struct store *store, struct answer *a) {
    const struct params *p = &a->params;
    struct series_filter filter = {.from_s = p->from_s,
                                   .until_s = p->until_s,
                                   .node = some(p->node),
                                   .identity = *p->identity ? p->identity : "_total",
                                   .step_s = series_step(p->from_s, p->until_s, p->points)};
    struct profile_filter in = {.from_s = p->from_s,
                                .until_s = p->until_s,
                                .node = some(p->node),
                                .identity = some(p->identity),
                                .most = MARKED_PROFILES,
                                .in_part = true};
    struct note_filter of = {p->from_s, p->until_s + p->open, some(p->node), MARKED_NOTES};
    struct series series;
    struct profile_list profiles = {0};
    struct note_list notes = {0};
    if (query_series(store, &filter, &series) && query_profiles(store, &in, &profiles) &&
        query_notes(store, &of, &notes)) {
        series_json(&series, &profiles, &notes, &a->out);
    } else {
        fail(a, UNREAD, store_error(store));
    }
    note_list_free(&notes);
    profile_list_free(&profiles);
    series_free(&series);
}

static void work_compare(struct store *store, struct answer *a) {
    const struct params *p = &a->params;
    struct query after = query_of(p), before = after;
    struct query_sums was = {0}, is = {0}, kept = {0};
    struct compare compare = {0}, slow = {0};
    before.from_s = p->before_from_s;
    before.until_s = p->before_until_s;
    if (!query_sums(store, &before, &was) || !query_sums(store, &after, &is) ||
        !query_slow_sums(store, &after, &kept)) {
        fail(a, UNREAD, store_error(store));
    } else if (!compare_make(&compare, &was, &is) ||
               !compare_slow(&slow, &is, &kept, *p->tier ? p->tier : "_total")) {
        fail(a, NO_MEMORY, "no memory");
    } else {
        compare_json(&compare, &was, &is, &slow, some(p->tier), &a->out);
    }
    compare_free(&compare);
    compare_free(&slow);
    query_sums_free(&was);
    query_sums_free(&is);
    query_sums_free(&kept);
}

static void work_paths(struct store *store, struct answer *a) {
    struct query q = query_of(&a->params);
    struct path_list list;
    struct path_tree tree = {0};
    if (!query_paths(store, &q, &list)) {
        fail(a, UNREAD, store_error(store));
    } else if (!path_tree_make(&tree, &list)) {
        fail(a, NO_MEMORY, "no memory");
    } else {
        path_tree_json(&tree, &list, &a->out);
    }
    path_tree_free(&tree);
    path_list_free(&list);
}

// -- requests that were kept ----------------------------------------------------------------------

static void work_slow_list(struct store *store, struct answer *a) {
    const struct params *p = &a->params;
    struct slow_filter filter = {.from_s = p->from_s,
                                 .until_s = p->until_s,
                                 .node = some(p->node),
                                 .identity = some(p->identity),
                                 .failed = p->failed,
                                 .most = p->most};
    struct slow_list list;
    if (query_slow_list(store, &filter, &list)) {
        slow_list_json(&list, &a->out);
    } else {
        fail(a, UNREAD, store_error(store));
    }
    slow_list_free(&list);
}

static void work_slow(struct store *store, struct answer *a) {
    struct slow_whole whole;
    switch (slow_read(store, a->id, &whole)) {
    case SLOW_FOUND:
        slow_spans_json(&whole.spans, &whole.profiles, &a->out);
        break;
    case SLOW_NONE:
        fail(a, NOT_FOUND, "there is no such request, or it is not kept any more");
        break;
    case SLOW_UNREAD:
        fail(a, UNREAD, store_error(store));
        break;
    case SLOW_NO_MEMORY:
        fail(a, NO_MEMORY, "no memory");
    }
    slow_whole_free(&whole);
}

// -- notes ----------------------------------------------------------------------------------------

static void work_notes(struct store *store, struct answer *a) {
    const struct params *p = &a->params;
    // until now is with the second that has begun
    struct note_filter filter = {.from_s = p->bounded ? p->from_s : INT64_MIN,
                                 .until_s = p->bounded ? p->until_s + p->open : INT64_MAX,
                                 .node = some(p->node),
                                 .most = p->most};
    struct note_list list;
    if (query_notes(store, &filter, &list)) {
        note_list_json(&list, &a->out);
    } else {
        fail(a, UNREAD, store_error(store));
    }
    note_list_free(&list);
}

// -- profiles -------------------------------------------------------------------------------------

static void work_profiles(struct store *store, struct answer *a) {
    const struct params *p = &a->params;
    struct profile_filter filter = {.from_s = p->bounded ? p->from_s : INT64_MIN,
                                    .until_s = p->bounded ? p->until_s : INT64_MAX,
                                    .node = some(p->node),
                                    .identity = some(p->identity),
                                    .most = p->most};
    struct profile_list list;
    if (query_profiles(store, &filter, &list)) {
        flame_list_json(&list, &a->out);
    } else {
        fail(a, UNREAD, store_error(store));
    }
    profile_list_free(&list);
}

// Why it has not what was asked for.
static void fail_kind(struct answer *a, const struct profile_head *head) {
    const struct params *p = &a->params;
    bool full = head->kind == PROFILE_FULL;
    if (p->metric_told && !flame_metric_is_of(p->metric, head->kind)) {
        fail(a, BAD,
             full ? "metric: that is of samples, and the profile is a full trace"
                  : "metric: that is of full traces, and the profile is of samples");
    } else {
        fail(a, NOT_FOUND, "a profile of another kind cannot be compared with it");
    }
}

static void put_profile(struct store *store, struct answer *a, enum flame_found found,
                        const struct flame_answer *of) {
    switch (found) {
    case FLAME_FOUND:
        flame_view_json(&of->drawing, &a->out);
        break;
    case FLAME_NONE:
        fail(a, NOT_FOUND, NO_PROFILE);
        break;
    case FLAME_NONE_BEFORE:
        fail(a, NOT_FOUND, "there is no such profile to compare with");
        break;
    case FLAME_UNREAD:
        fail(a, UNREAD, store_error(store));
        break;
    case FLAME_OTHER_KIND:
        fail_kind(a, &of->profile.head);
        break;
    case FLAME_OTHER_GROUP:
        fail(a, BAD, "group: that is of samples, and the profile is a full trace");
        break;
    case FLAME_NO_PARTS:
        fail(a, BAD, "part_from, through: these are of samples, and the profile is a full trace");
        break;
    case FLAME_NOT_THROUGH:
        fail(a, BAD, "through: want a later profile of samples, of the same node and label");
        break;
    case FLAME_NO_MEMORY:
        fail(a, NO_MEMORY, "no memory");
    }
}

// As the flame viewer takes it; compared with another one where that is asked for.
static void work_profile(struct store *store, struct answer *a) {
    const struct params *p = &a->params;
    char profile[24];
    struct flame_question question = {
        .profile = profile,
        .before = some(p->before),
        .through = some(p->through),
        .before_through = some(p->before_through),
        .weighed = {.metric = p->metric, .group = p->group, .only = some(p->identity)},
        .from_us = US_OF_MS * p->part.from,
        .until_us = US_OF_MS * p->part.until,
        .before_from_us = US_OF_MS * p->other.from,
        .before_until_us = US_OF_MS * p->other.until};
    struct flame_answer *of = calloc(1, sizeof *of); // large
    if (!of) {
        fail(a, NO_MEMORY, "no memory");
        return;
    }
    snprintf(profile, sizeof profile, "%lld", (long long)a->id);
    enum flame_found found = flame_ask(store, &question, of);
    if (found == FLAME_FOUND && p->metric_told &&
        !flame_metric_is_of(p->metric, of->profile.head.kind)) {
        found = FLAME_OTHER_KIND; // flame_ask takes the first metric as what is usual
    }
    put_profile(store, a, found, of);
    flame_answer_free(of);
    free(of);
}

static void put_heat(struct store *store, struct answer *a, enum heat_found found,
                     const struct heat_answer *of) {
    switch (found) {
    case HEAT_FOUND:
        heat_json(of, &a->out);
        break;
    case HEAT_NONE:
        fail(a, NOT_FOUND, NO_PROFILE);
        break;
    case HEAT_FULL_TRACE:
        fail(a, BAD, "only profiles of samples have a heat map, and this is a full trace");
        break;
    case HEAT_NOT_THEN:
        fail(a, BAD, "part_from: that part is none of the profile's time");
        break;
    case HEAT_UNREAD:
        fail(a, UNREAD, store_error(store));
        break;
    case HEAT_FAILED:
        fail(a, NO_MEMORY, "no memory");
    }
}

// A profile of samples over time.
static void work_heat(struct store *store, struct answer *a) {
    const struct params *p = &a->params;
    char profile[24];
    struct heat_question question = {.profile = profile,
                                     .choice = {.metric = p->metric_told ? p->metric : FLAME_ACTIVE,
                                                .from_us = US_OF_MS * p->part.from,
                                                .until_us = US_OF_MS * p->part.until,
                                                .columns = HEAT_PICTURE_COLUMNS,
                                                .rows = HEAT_PICTURE_ROWS}};
    struct heat_answer *of = calloc(1, sizeof *of); // large
    snprintf(profile, sizeof profile, "%lld", (long long)a->id);
    if (!of) {
        fail(a, NO_MEMORY, "no memory");
    } else if (!flame_metric_is_of(question.choice.metric, PROFILE_SAMPLES)) {
        fail(a, BAD, "metric: that is of full traces, and a heat map is of samples");
    } else {
        put_heat(store, a, heat_ask(store, &question, of), of);
        heat_answer_free(of);
    }
    free(of);
}

// The profiles of a sampler one after the other.
static void work_heat_stretch(struct store *store, struct answer *a) {
    const struct params *p = &a->params;
    struct heat_stretch stretch = {.node = p->node,
                                   .label = p->label,
                                   .from_s = p->from_s,
                                   .until_s = p->until_s,
                                   .choice = {.metric = p->metric_told ? p->metric : FLAME_ACTIVE,
                                              .columns = HEAT_STRETCH_COLUMNS,
                                              .rows = HEAT_PICTURE_ROWS}};
    struct heat_answer *of = calloc(1, sizeof *of); // large
    if (!of) {
        fail(a, NO_MEMORY, "no memory");
    } else if (!*p->node || strstr(p->node, QUERY_OR)) {
        fail(a, BAD, "node: want one");
    } else if (!flame_metric_is_of(stretch.choice.metric, PROFILE_SAMPLES)) {
        fail(a, BAD, "metric: that is of full traces, and a heat map is of samples");
    } else {
        enum heat_found found = heat_ask_stretch(store, &stretch, of);
        if (found == HEAT_NONE) {
            fail(a, NOT_FOUND, "the node has no samples of that label in that time");
        } else {
            put_heat(store, a, found, of);
        }
        heat_answer_free(of);
    }
    free(of);
}

static const struct address addresses[] = {
    {"/api/v1/nodes", work_nodes},       {"/api/v1/table", work_table},
    {"/api/v1/series", work_series},     {"/api/v1/compare", work_compare},
    {"/api/v1/paths", work_paths},       {"/api/v1/slow", work_slow_list},
    {"/api/v1/slow/", work_slow},        {"/api/v1/profiles", work_profiles},
    {"/api/v1/profiles/", work_profile}, {"/api/v1/heat", work_heat_stretch},
    {"/api/v1/heat/", work_heat},        {"/api/v1/notes", work_notes},
    {"/metrics", metrics_work},          {"/readyz", metrics_work_ready},
};

// A whole number of digits only, without zeros in front.
static bool id_of(const char *text, int64_t *id) {
    char *end;
    errno = 0;
    long long value = *text >= '1' && *text <= '9' ? strtoll(text, &end, 10) : 0;
    *id = value;
    return value > 0 && !errno && !*end;
}

const struct address *address_find(const char *path, int64_t *id) {
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        const struct address *a = &addresses[i];
        size_t len = strlen(a->path);
        bool named = a->path[len - 1] == '/';
        if (named ? strncmp(path, a->path, len) == 0 && id_of(path + len, id)
                  : strcmp(path, a->path) == 0) {
            return a;
        }
    }
    return NULL;
}
