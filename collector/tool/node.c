// SPDX-License-Identifier: Apache-2.0
#include "tool/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "store/query.h"
#include "tool/command.h"

bool node_meant(const char *full, const char *text) {
    size_t len = strlen(text);
    if (len == 0 || strncmp(full, text, len) != 0) {
        return false;
    }
    bool with_host = strchr(text, '@') != NULL;
    return full[len] == 0 || full[len] == (with_host ? '.' : '@');
}

char *node_short(const char *full, char out[NODE_TEXT_BYTES]) {
    const char *host = strchr(full, '@');
    size_t len = strlen(full);
    if (host && host[1 + strspn(host + 1, "0123456789.:")] != 0) {
        len = (size_t)(host - full) + strcspn(host, ".");
    }
    snprintf(out, NODE_TEXT_BYTES, "%.*s", (int)(len < NODE_TEXT_BYTES ? len : NODE_TEXT_BYTES - 1),
             full);
    return out;
}

static uint32_t find(const struct node_names *names, const char *full) {
    uint32_t i = 0;
    while (i < names->count && strcmp(names->of[i].full, full) != 0) {
        i++;
    }
    return i;
}

void node_names_add(struct node_names *names, const char *full) {
    uint32_t new = find(names, full);
    if (new < names->count || new == LIMIT_NODES) {
        return;
    }
    names->of[new].full = full;
    names->of[new].tells = true;
    node_short(full, names->of[new].brief);
    for (uint32_t i = 0; i < new; i++) {
        if (strcmp(names->of[i].brief, names->of[new].brief) == 0) {
            names->of[i].tells = names->of[new].tells = false;
        }
    }
    names->count++;
}

const char *node_names_shown(const struct node_names *names, const char *full) {
    uint32_t i = find(names, full);
    return i < names->count && names->of[i].tells ? names->of[i].brief : full;
}

struct node_search node_search_make(const char *text, char found[NODE_TEXT_BYTES]) {
    return (struct node_search){.text = text, .found = found, .all = buffer_make(1024)};
}

void node_search_look(void *search, const char *full) {
    struct node_search *s = search;
    if (!node_meant(full, s->text)) {
        return;
    }
    bool exact = strcmp(full, s->text) == 0;
    if (s->meant++ == 0 || exact) {
        snprintf(s->found, NODE_TEXT_BYTES, "%s", full);
    }
    s->exact = s->exact || exact;
    buffer_printf(&s->all, "%s%s", s->meant > 1 ? ", " : "", full);
}

int node_search_end(const char *command, const char *option, struct node_search *s,
                    const char **node) {
    int status = EXIT_SUCCESS;
    *node = s->meant > 0 ? s->found : s->text;
    if (s->meant > 1 && !s->exact) {
        buffer_append(&s->all, "", 1);
        status =
            command_fail(command, EXIT_USAGE, "%s%s matches %u nodes: %s", option, s->text,
                         s->meant, s->all.failed ? "too many to list" : (const char *)s->all.data);
    }
    buffer_free(&s->all);
    return status;
}

int node_find(const char *command, struct store *store, const char *text,
              char found[NODE_TEXT_BYTES], const char **node) {
    struct node_search s = node_search_make(text, found);
    if (!query_nodes(store, node_search_look, &s)) {
        buffer_free(&s.all);
        return command_fail(command, EXIT_FAILURE, "cannot read the nodes (%s)",
                            store_error(store));
    }
    return node_search_end(command, "--node ", &s, node);
}

int node_open(const char *command, const struct source *source, const char **node,
              char found[NODE_TEXT_BYTES], struct store **store) {
    int status = source_open(command, source, store);
    if (status != EXIT_SUCCESS) {
        return status;
    }
    status = *node ? node_find(command, *store, *node, found, node) : EXIT_SUCCESS;
    if (status != EXIT_SUCCESS) {
        store_close(*store);
    }
    return status;
}
