// SPDX-License-Identifier: Apache-2.0
#include "report/paths.h"

#include <stdlib.h>
#include <string.h>

#include "base/text_time.h"
#include "base/time_math.h"
#include "codec/json.h"

enum { NONE = UINT32_MAX };
static const char joint[] = " > ";

// -- the tree -------------------------------------------------------------------------------------

// Nodes as they are found, by path: those below one stand in a list of it.
struct draft {
    struct path_node node;
    uint64_t weight; // what it is ordered by: its own time, or of what is below it
    uint32_t first, next;
};

struct drafts {
    struct draft *all;
    uint32_t count;
    uint32_t first; // below the request itself
    char *text;     // where the next tier's name goes; there is room for each part of each path
};

static uint32_t tiers_in(const char *path) {
    uint32_t n = 1;
    for (const char *at = path; (at = strstr(at, joint)); at += sizeof joint - 1) {
        n++;
    }
    return n;
}

static uint32_t child(struct drafts *d, uint32_t parent, const char *tier, size_t len) {
    uint32_t *link = parent == NONE ? &d->first : &d->all[parent].first;
    for (uint32_t i = *link; i != NONE; i = d->all[i].next) {
        const struct path_node *node = &d->all[i].node;
        if (strncmp(node->tier, tier, len) == 0 && !node->tier[len]) {
            return i;
        }
    }
    memcpy(d->text, tier, len); // NULs follow
    d->all[d->count] =
        (struct draft){.node = {.tier = d->text,
                                .parent = parent,
                                .depth = parent == NONE ? 0 : d->all[parent].node.depth + 1},
                       .first = NONE,
                       .next = *link};
    d->text += len + 1;
    return *link = d->count++;
}

static void add(struct drafts *d, const struct path_sums *sums) {
    uint32_t at = NONE;
    const char *tier = sums->path;
    uint64_t weight = sums->total_ns + sums->async_ns;
    for (const char *end; tier; tier = end ? end + sizeof joint - 1 : NULL) {
        end = strstr(tier, joint);
        at = child(d, at, tier, end ? (size_t)(end - tier) : strlen(tier));
        d->all[at].weight = d->all[at].weight > weight ? d->all[at].weight : weight;
    }
    d->all[at].node.sums = sums;
}

static int by_weight(const void *a, const void *b) {
    const struct draft *x = *(const struct draft *const *)a, *y = *(const struct draft *const *)b;
    if (x->weight != y->weight) {
        return x->weight < y->weight ? 1 : -1;
    }
    return strcmp(x->node.tier, y->node.tier);
}

// Orders a list; `scratch` has room for all of it.
static void order(struct drafts *d, uint32_t *link, struct draft **scratch) {
    uint32_t n = 0;
    for (uint32_t i = *link; i != NONE; i = d->all[i].next) {
        scratch[n++] = &d->all[i];
    }
    qsort(scratch, n, sizeof(struct draft *), by_weight);
    for (uint32_t i = 0; i < n; i++) {
        *link = (uint32_t)(scratch[i] - d->all);
        link = &scratch[i]->next;
    }
    *link = NONE;
}

// Writes all depth first. A draft's weight then is where its node stands.
static void write_out(struct path_tree *tree, struct drafts *d) {
    uint32_t i = d->first;
    while (i != NONE) {
        struct draft *draft = &d->all[i];
        uint32_t parent = draft->node.parent;
        draft->weight = tree->count;
        tree->nodes[tree->count] = draft->node;
        tree->nodes[tree->count++].parent = parent == NONE ? NONE : (uint32_t)d->all[parent].weight;
        if (draft->first != NONE) {
            i = draft->first;
            continue;
        }
        while (i != NONE && d->all[i].next == NONE) {
            i = d->all[i].node.parent;
        }
        i = i == NONE ? NONE : d->all[i].next;
    }
}

bool path_tree_make(struct path_tree *tree, const struct path_list *list) {
    size_t most = 1, bytes = 1;
    for (uint32_t i = 0; i < list->count; i++) {
        most += tiers_in(list->rows[i].path);
        bytes += strlen(list->rows[i].path) + 1;
    }
    *tree =
        (struct path_tree){.nodes = calloc(most, sizeof *tree->nodes), .texts = calloc(bytes, 1)};
    struct drafts d = {.all = calloc(most, sizeof *d.all), .first = NONE, .text = tree->texts};
    struct draft **scratch = calloc(most, sizeof(struct draft *));
    bool ok = d.all && scratch && tree->nodes && tree->texts;
    for (uint32_t i = 0; ok && i < list->count; i++) {
        add(&d, &list->rows[i]);
    }
    if (ok) {
        order(&d, &d.first, scratch);
        for (uint32_t i = 0; i < d.count; i++) {
            order(&d, &d.all[i].first, scratch);
        }
        write_out(tree, &d);
    }
    free(d.all);
    free(scratch);
    return ok;
}

void path_tree_free(struct path_tree *tree) {
    free(tree->nodes);
    free(tree->texts);
    *tree = (struct path_tree){0};
}

// -- as JSON --------------------------------------------------------------------------------------

static void key_us(struct json *j, const char *key, double ns) {
    json_key_number(j, key, ns / 1000, 3);
}

// null: not known.
static void key_some_us(struct json *j, const char *key, bool known, double ns) {
    json_key(j, key);
    known ? json_number(j, ns / 1000, 3) : json_null(j);
}

static void write_node(struct json *j, const struct path_node *node, uint64_t requests) {
    static const struct path_sums none;
    const struct path_sums *s = node->sums ? node->sums : &none;
    double per = requests > 0 ? (double)requests : 1;
    json_open(j, '{');
    json_key_text(j, "tier", node->tier);
    json_key(j, "parent");
    node->parent == NONE ? json_null(j) : json_int(j, node->parent);
    json_key_int(j, "depth", node->depth);
    json_key_int(j, "calls", (int64_t)s->calls);
    json_key_int(j, "errors", (int64_t)s->errors);
    json_key_int(j, "async_calls", (int64_t)s->async_calls);
    key_us(j, "total_us", (double)s->total_ns);
    key_us(j, "self_us", (double)s->self_ns);
    key_us(j, "async_us", (double)s->async_ns);
    key_us(j, "wait_us", (double)s->wait_ns);
    key_some_us(j, "waiting_us", !s->unsplit, (double)s->waiting_ns);
    key_us(j, "mean_us", s->calls ? (double)s->duration_ns / (double)s->calls : 0);
    key_us(j, "min_us", (double)s->min_ns);
    key_us(j, "max_us", (double)s->max_ns);
    key_us(j, "per_request_us", (double)s->total_ns / per);
    key_us(j, "self_per_request_us", (double)s->self_ns / per);
    key_us(j, "measured_us", (double)s->measured_ns);
    bool apart = s->mailbox_ns > 0 || s->run_queue_ns > 0;
    key_some_us(j, "mailbox_us", apart, (double)s->mailbox_ns);
    key_some_us(j, "run_queue_us", apart, (double)s->run_queue_ns);
    key_us(j, "wait_per_request_us", (double)s->wait_ns / per);
    key_some_us(j, "waiting_per_request_us", !s->unsplit, (double)s->waiting_ns / per);
    json_close(j, '}');
}

static void key_time(struct json *j, const char *key, bool any, int64_t seconds) {
    char text[TEXT_TIME_BYTES];
    json_key(j, key);
    any ? json_text(j, text_time_format(time_of_seconds(seconds), false, text)) : json_null(j);
}

void path_tree_json(const struct path_tree *tree, const struct path_list *list,
                    struct buffer *out) {
    struct json j = json_make(out);
    bool any = list->first_s != 0 || list->last_s != 0;
    json_open(&j, '{');
    key_time(&j, "from", any, list->first_s);
    key_time(&j, "until", any, list->last_s);
    json_key_int(&j, "resolution_s", list->resolution_s);
    json_key_int(&j, "requests", (int64_t)list->requests);
    json_key(&j, "paths");
    json_open(&j, '[');
    for (uint32_t i = 0; i < tree->count; i++) {
        write_node(&j, &tree->nodes[i], list->requests);
    }
    json_close(&j, ']');
    json_close(&j, '}');
    buffer_text(out, "\n");
}
