// SPDX-License-Identifier: Apache-2.0
// A file for browsers: the flame viewer of collector/web/page, and the profile's data for it, with
// all metrics. Nothing comes from elsewhere, and nothing else runs: the file's policy names the
// sums of its own script and style.
#include "report/flame/forms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embedded.h"
#include "base/text_time.h"
#include "codec/json.h"
#include "report/flame/parts.h"
#include "report/heat/cells.h"

enum { TITLE_BYTES = 3 * PROFILE_TEXT_BYTES };

extern const struct embedded flame_viewer_script, flame_viewer_style;

// -- the data: collector/web/page/README.md tells their form --------------------------------------

// The numbers of the texts that frames are made of.
struct texts {
    struct map numbers; // by hash
    struct json *json;
    uint32_t count;
    bool failed;
};

// Writes a text when it is new.
static uint32_t text_number(struct texts *t, const char *text) {
    uint64_t key = hash_bytes(slice_text(text));
    uint32_t at = map_get(&t->numbers, key);
    if (at == MAP_NONE) {
        at = t->count++;
        t->failed = t->failed || !map_set(&t->numbers, key, at);
        json_text(t->json, text);
    }
    return at;
}

enum { NAME, MODULE, APPLICATION, FRAME_TEXTS };

// names, and in numbers how each frame is made of them.
static bool put_names(struct json *j, const struct flame_tree *t,
                      uint32_t (*numbers)[FRAME_TEXTS]) {
    struct texts texts = {.json = j};
    if (!map_init(&texts.numbers)) {
        return false;
    }
    json_key(j, "names");
    json_open(j, '[');
    for (uint32_t i = 0; i < t->frame_count; i++) {
        const struct flame_frame *f = &t->frames[i];
        numbers[i][NAME] = text_number(&texts, f->name);
        numbers[i][MODULE] = text_number(&texts, f->module);
        numbers[i][APPLICATION] = text_number(&texts, f->application);
    }
    json_close(j, ']');
    map_free(&texts.numbers);
    return !texts.failed;
}

static bool put_frames(struct json *j, const struct flame_tree *t) {
    static const char *const keys[FRAME_TEXTS] = {"name", "module", "application"};
    uint32_t(*numbers)[FRAME_TEXTS] = malloc(t->frame_count * sizeof *numbers);
    bool ok = numbers && put_names(j, t, numbers);
    if (ok) {
        json_key(j, "frames");
        json_open(j, '{');
        for (int k = NAME; k < FRAME_TEXTS; k++) {
            json_key(j, keys[k]);
            json_open(j, '[');
            for (uint32_t i = 0; i < t->frame_count; i++) {
                json_int(j, numbers[i][k]);
            }
            json_close(j, ']');
        }
        json_key(j, "kind");
        json_open(j, '[');
        for (uint32_t i = 0; i < t->frame_count; i++) {
            json_int(j, t->frames[i].kind);
        }
        json_close(j, ']');
        json_close(j, '}');
    }
    free(numbers);
    return ok;
}

static int64_t depth_of(const struct flame_node *n) {
    return n->depth;
}
static int64_t number_of_frame(const struct flame_node *n) {
    return n->frame;
}
static int64_t wall_of(const struct flame_node *n) {
    return n->weight.self;
}
static int64_t wall_before(const struct flame_node *n) {
    return n->before.self;
}
static int64_t calls_of(const struct flame_node *n) {
    return (int64_t)n->calls;
}
static int64_t calls_before(const struct flame_node *n) {
    return (int64_t)n->calls_before;
}

static void put_column(struct json *j, const char *key, const struct flame_tree *t,
                       int64_t (*value)(const struct flame_node *n)) {
    json_key(j, key);
    json_open(j, '[');
    for (uint32_t i = 0; i < t->node_count; i++) {
        json_int(j, value(&t->nodes[i]));
    }
    json_close(j, ']');
}

static void put_series(struct json *j, enum flame_metric metric, const struct flame_drawing *d,
                       const struct flame_tree *t) {
    bool calls = metric == FLAME_CALLS;
    json_open(j, '{');
    json_key_text(j, "name", flame_metric_name(metric));
    json_key_text(j, "unit", flame_metric_unit(metric));
    put_column(j, "self", t, calls ? calls_of : wall_of);
    if (d->compared) {
        put_column(j, "before", t, calls ? calls_before : wall_before);
    }
    json_close(j, '}');
}

// What the profile is of, whatever is drawn of it.
static void put_title(const struct flame_drawing *d, char out[TITLE_BYTES]) {
    if (!d->profile) {
        snprintf(out, TITLE_BYTES, "%s", d->title);
        return;
    }
    const struct profile_head *h = &d->profile->head;
    const char *what = d->weighed.only ? d->weighed.only : h->name;
    char started[TEXT_TIME_BYTES];
    snprintf(out, TITLE_BYTES, "%s%s%s, %s", what, what[0] ? " in " : "", h->node,
             text_time_format(h->begin_ns, false, started));
}

// The tree of a metric; of samples with all stacks, whatever they weigh by it.
static bool weigh_by(const struct flame_drawing *d, enum flame_metric metric,
                     struct flame_tree *t) {
    struct flame_options whole = {
        .metric = metric, .group = d->weighed.group, .only = d->weighed.only, .every = true};
    if (!flame_tree_init(t)) {
        return false;
    }
    bool ok = !d->profile || flame_tree_add(t, d->profile, &whole, FLAME_AFTER);
    for (uint32_t i = 0; ok && i < d->before_count; i++) {
        ok = flame_tree_add(t, &d->before[i], &whole, FLAME_BEFORE);
    }
    if (!ok || !flame_tree_finish(t)) {
        flame_tree_free(t);
        return false;
    }
    return true;
}

// The metrics besides looks, each of the same stacks in the same order; of those that are 0
// everywhere only what is asked for.
static bool put_sampled(struct json *j, const struct flame_drawing *d) {
    for (enum flame_metric m = FLAME_SAMPLES + 1; m < FLAME_METRICS; m++) {
        struct flame_tree t;
        if (!weigh_by(d, m, &t)) {
            return false;
        }
        if (m == d->weighed.metric || t.nodes[0].weight.total + t.nodes[0].before.total > 0) {
            put_series(j, m, d, &t);
        }
        flame_tree_free(&t);
    }
    return true;
}

static bool put_all_series(struct json *j, const struct flame_drawing *d,
                           const struct flame_tree *t) {
    bool sampled = d->profile && d->profile->samples, ok = true;
    json_key(j, "series");
    json_open(j, '[');
    put_series(j, sampled ? FLAME_SAMPLES : FLAME_WALL, d, t);
    if (sampled) {
        ok = put_sampled(j, d);
    } else {
        put_series(j, FLAME_CALLS, d, t);
    }
    json_close(j, ']');
    return ok;
}

static bool put_data(struct json *j, const struct flame_drawing *d, const struct flame_tree *t) {
    char title[TITLE_BYTES];
    put_title(d, title);
    json_open(j, '{');
    json_key_text(j, "title", title);
    json_key(j, "notes");
    json_open(j, '[');
    for (const char *const *note = d->notes; note && *note; note++) {
        json_text(j, *note);
    }
    if (d->profile && d->profile->samples) {
        json_text(j,
                  "Reductions, growth and release count where a process was found when they were "
                  "seen: often where it waits again");
    }
    json_close(j, ']');
    bool awake = d->weighed.metric == FLAME_WALL && d->weighed.no_asleep;
    json_key_text(j, "metric", awake ? "awake" : flame_metric_name(d->weighed.metric));
    if (d->compared) {
        json_key_text(j, "before", d->before_name);
    }
    bool ok = put_frames(j, t);
    json_key(j, "stacks");
    json_open(j, '{');
    put_column(j, "depth", t, depth_of);
    put_column(j, "frame", t, number_of_frame);
    json_close(j, '}');
    ok = put_all_series(j, d, t) && ok;
    json_close(j, '}');
    return ok;
}

// Metrics of full traces come of one tree: each stack's time, which its frame's kind tells apart,
// and calls. Those of samples have one each.
void flame_view_json(const struct flame_drawing *d, struct buffer *out) {
    bool sampled = d->profile && d->profile->samples;
    struct flame_tree tree;
    if (!weigh_by(d, sampled ? FLAME_SAMPLES : FLAME_WALL, &tree)) {
        out->failed = true;
        return;
    }
    struct json j = json_make(out);
    if (!put_data(&j, d, &tree)) {
        out->failed = true;
    }
    flame_tree_free(&tree);
}

// -- the file -------------------------------------------------------------------------------------

// JSON within an element <script>: no "<" ends it or begins a comment there.
static void put_embedded(struct buffer *out, const struct buffer *json) {
    const char *at = (const char *)json->data, *end = at + json->len;
    while (at < end) {
        const char *stop = memchr(at, '<', (size_t)(end - at));
        size_t len = (size_t)((stop ? stop : end) - at);
        buffer_append(out, at, len);
        at += len;
        if (stop) {
            buffer_text(out, "\\u003c");
            at++;
        }
    }
}

// What parts of it weigh; of one that is compared no part is drawn.
static void put_parts(const struct flame_drawing *d, struct buffer *out) {
    struct buffer data = buffer_make(out->cap);
    if (!d->compared && parts_put(d, &data)) {
        buffer_text(out, "<script type=\"application/json\" id=\"parts\">");
        put_embedded(out, &data);
        buffer_text(out, "</script>\n");
    }
    buffer_free(&data);
}

// Of samples when they were taken, too; of the part that is drawn.
static void put_heat(const struct flame_drawing *d, struct buffer *out) {
    struct buffer data = buffer_make(out->cap);
    struct json j = json_make(&data);
    if (heat_put_maps(&j, d->profile, d->id, d->last_id, d->from_us, d->until_us)) {
        buffer_text(out, "<script type=\"application/json\" id=\"heat\">");
        put_embedded(out, &data);
        buffer_text(out, "</script>\n");
    }
    out->failed = out->failed || data.failed;
    buffer_free(&data);
}

void flame_html(const struct flame_drawing *d, struct buffer *out) {
    struct buffer data = buffer_make(out->cap);
    flame_view_json(d, &data);
    buffer_printf(out,
                  "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                  "script-src 'sha256-%s'; style-src 'sha256-%s'; base-uri 'none'; "
                  "form-action 'none'\">\n"
                  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                  "<title>",
                  flame_viewer_script.sha256, flame_viewer_style.sha256);
    char title[TITLE_BYTES];
    put_title(d, title);
    flame_put_escaped(out, title, strlen(title));
    buffer_text(out, "</title>\n<style>");
    buffer_append(out, flame_viewer_style.bytes, flame_viewer_style.len);
    buffer_text(out, "</style>\n</head>\n<body>\n<main id=\"flame\"><noscript>This file draws with "
                     "JavaScript, which is its own; a .svg needs none.</noscript></main>\n");
    if (d->profile && d->profile->samples) {
        put_heat(d, out);
        put_parts(d, out);
    }
    buffer_text(out, "<script type=\"application/json\" id=\"data\">");
    put_embedded(out, &data);
    buffer_text(out, "</script>\n<script>");
    buffer_append(out, flame_viewer_script.bytes, flame_viewer_script.len);
    buffer_text(out, "</script>\n</body>\n</html>\n");
    out->failed = out->failed || data.failed;
    buffer_free(&data);
}
