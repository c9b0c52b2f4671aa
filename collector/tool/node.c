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
    snprintf(out, NODE_TEXT_BYTES, "%.*s", (int)(len < NODE_TEXT_BYTES ? len : NODE_TEXT_BYTES - 1), full);
    return out;
}

// What a search among the nodes has come to.
struct search {
    const char *text;
    char *found;       // the first that is meant
    unsigned meant;    // how many are
    bool exact;        // one of them by its full name
    struct buffer all; // of them, for the error
};

static void look_at(void *arg, const char *node) {
    struct search *s = arg;
    if (!node_meant(node, s->text)) {
        return;
    }
    s->exact = s->exact || strcmp(node, s->text) == 0;
    if (s->meant++ == 0) {
        snprintf(s->found, NODE_TEXT_BYTES, "%s", node);
    }
    buffer_printf(&s->all, "%s%s", s->meant > 1 ? ", " : "", node);
}

int node_find(const char *command, struct store *store, const char *text, char found[NODE_TEXT_BYTES], const char **node) {
    struct search s = {.text = text, .found = found, .all = buffer_make(1024)};
    int status = EXIT_SUCCESS;
    *node = text;
    if (!query_nodes(store, look_at, &s)) {
        status = command_fail(command, EXIT_FAILURE, "cannot read the nodes (%s)", store_error(store));
    } else if (s.meant > 1 && !s.exact) {
        buffer_append(&s.all, "", 1);
        status = command_fail(command, EXIT_USAGE, "--node %s can be any of %u: %s", text, s.meant,
                              s.all.failed ? "too many to tell" : (const char *)s.all.data);
    } else if (s.meant == 1) {
        *node = found;
    }
    buffer_free(&s.all);
    return status;
}
