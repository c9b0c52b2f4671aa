// SPDX-License-Identifier: Apache-2.0
// Names of nodes as people give and read them: shop@web1.example.org is also shop@web1, and shop
// where that is enough to tell.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/limits.h"
#include "store/store.h"
#include "tool/source.h"

enum { NODE_TEXT_BYTES = LIMIT_NAME_BYTES + 4 };

// Whether a node may be meant: its full name, its name with the start of its host (whole words of
// it), or its name alone.
bool node_meant(const char *full, const char *text);

// The name with its short host, as far as that tells it: an address stays whole. Cut at
// NODE_TEXT_BYTES. Returns out.
char *node_short(const char *full, char out[NODE_TEXT_BYTES]);

// Names of nodes that are shown together.
struct node_names {
    struct {
        const char *full;            // the caller's
        char brief[NODE_TEXT_BYTES]; // with its short host,
        bool tells;                  // which is another one than the others'
    } of[LIMIT_NODES];
    uint32_t count;
};

// Adds one more, which must stay as it is while it is among them; the same name again is no matter.
// What comes after LIMIT_NODES is shown whole.
void node_names_add(struct node_names *names, const char *full);
// The name with its short host where that tells it from the others, otherwise whole. It lives as
// long as both.
const char *node_names_shown(const struct node_names *names, const char *full);

// A search for the one node that a text means.
struct node_search {
    const char *text;
    char *found;       // NODE_TEXT_BYTES: the first that may be meant
    unsigned meant;    // how many may be
    bool exact;        // one of them by its full name
    struct buffer all; // of them, for the error
};

struct node_search node_search_make(const char *text, char found[NODE_TEXT_BYTES]);
// Looks at one more node. search: a struct node_search.
void node_search_look(void *search, const char *full);
// Ends it. *node is the full name, in found: of the node that the text names in full, or of the
// only one that it may mean; when there is none, the text as it is. EXIT_USAGE, and has told why,
// when several are meant. option: how the text was given, "--node " or "".
int node_search_end(const char *command, const char *option, struct node_search *s,
                    const char **node);

// The value of --node among the nodes of a database, likewise; EXIT_FAILURE when they cannot be
// read.
int node_find(const char *command, struct store *store, const char *text,
              char found[NODE_TEXT_BYTES], const char **node);

// Opens a database to ask it, and finds the node that *node names among its nodes; NULL: any is
// meant. EXIT_SUCCESS, and *store is the caller's to close; or it has told why not.
int node_open(const char *command, const struct source *source, const char **node,
              char found[NODE_TEXT_BYTES], struct store **store);
